"""Watch one stream with each observer, and print the split that each one finds."""

import time
from collections.abc import Iterator

import numpy as np

import sapwood

ROWS = 200_000
BATCH = 1_000


def stream(seed: int = 7) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of a temperature and of the demand that depends on it.

    Demand rises where it gets colder than 15 degrees or so, one reading in a thousand is
    garbage, and there is noise on everything.
    """
    rng = np.random.default_rng(seed)
    for _ in range(ROWS // BATCH):
        temperature = rng.normal(12.0, 8.0, BATCH)
        demand = 100.0 + 40.0 / (1.0 + np.exp(temperature - 15.0)) + rng.normal(0.0, 5.0, BATCH)
        temperature[rng.random(BATCH) < 0.001] *= 1e9
        yield temperature, demand


def main() -> None:
    """Feed every observer with the same stream, batch by batch."""
    observers: dict[str, sapwood.Observer] = {
        "QO auto": sapwood.QuantizerObserver(),
        "QO 0.01": sapwood.QuantizerObserver(radius=0.01),
        "QO 0.25": sapwood.QuantizerObserver(radius=0.25),
        "TE-BST": sapwood.TEBSTObserver(digits=3),
        "E-BST": sapwood.EBSTObserver(),
    }
    print(f"{ROWS:,} rows of x = temperature, y = demand; rows with x < cut go left\n")
    header = ["observer", "cut", "merit", "left mean", "right mean", "elements", "bytes"]
    print(f"{header[0]:9}" + "".join(f"{name:>12}" for name in header[1:]), end="")
    print(f"{'ns/row':>9}{'query µs':>10}")
    for name, observer in observers.items():
        watching = 0.0
        for x, y in stream():
            start = time.thread_time()
            observer.update_many(x, y)
            watching += time.thread_time() - start
        start = time.thread_time()
        split = observer.best_split()
        query = time.thread_time() - start
        if split is None:
            raise RuntimeError(f"{name} found nothing to split")
        left, right = split.left, split.right
        assert isinstance(left, sapwood.Moments)
        assert isinstance(right, sapwood.Moments)
        print(
            f"{name:9}{split.threshold:12.4f}{split.merit:12.4f}{left.mean:12.3f}"
            f"{right.mean:12.3f}{len(observer):12,}{observer.nbytes:12,}"
            f"{watching / ROWS * 1e9:9.1f}{query * 1e6:10.0f}"
        )


if __name__ == "__main__":
    main()
