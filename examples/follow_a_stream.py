"""Learn a stream of demand online: predict each row, then learn it, and keep the score."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import sapwood

ROWS = 100_000
BATCH = 10_000
CITIES = ("Bergen", "Oslo", "Tromsø")


def stream(seed: int = 7) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yield batches of hourly rows and of the demand that depends on them.

    Demand follows the hour, the cold and the city. One sensor in twenty is silent, one reading in
    a thousand is garbage, and half-way through a new tariff changes the evenings.
    """
    rng = np.random.default_rng(seed)
    level = 0.0
    for start in range(0, ROWS, BATCH):
        row = np.arange(start, start + BATCH)
        hour = row % 24
        temperature = 8.0 - 10.0 * np.cos(2 * np.pi * row / 8766) + rng.normal(0.0, 3.0, BATCH)
        city = rng.integers(len(CITIES), size=BATCH)
        evening = (hour >= 17) & (hour < 22)
        demand = (
            300.0
            + np.array([20.0, 60.0, -30.0])[city]
            + np.where(evening, 80.0 if start < ROWS // 2 else 20.0, 0.0)
            + np.maximum(15.0 - temperature, 0.0) * np.array([4.0, 9.0, 12.0])[city]
        )
        for i in range(BATCH):  # what no feature tells: a level that wanders
            level = 0.98 * level + rng.normal(0.0, 3.0)
            demand[i] += level
        temperature[rng.random(BATCH) < 0.001] *= 1e9
        temperature[rng.random(BATCH) < 0.05] = np.nan
        yield {"hour": hour, "temperature": temperature, "city": np.array(CITIES)[city]}, demand


def main() -> None:
    """Learn the stream batch by batch, and print how it goes."""
    tree = sapwood.HoeffdingTreeRegressor()
    mean = sapwood.Moments()
    print(f"{ROWS:,} rows of demand by hour, temperature and city: predicted, then learned\n")
    print(f"{'rows':>9}{'error':>9}{'of mean':>9}{'R²':>8}{'leaves':>8}{'bytes':>10}{'µs/row':>8}")
    for x, y in stream():
        start = time.thread_time()
        predictions = tree.predict_learn_many(x, y)
        seconds = time.thread_time() - start
        error, spread = np.abs(y - predictions).mean(), np.abs(y - y.mean()).mean()
        r2 = 1.0 - np.square(y - predictions).sum() / np.square(y - y.mean()).sum()
        mean.update_many(y)
        print(
            f"{int(mean.n):9,}{error:9.2f}{spread:9.2f}{r2:8.4f}{tree.n_leaves:8}"
            f"{tree.nbytes:10,}{seconds / len(y) * 1e6:8.2f}"
        )
    print("\nThe top of the tree:\n\n" + tree.to_text(max_depth=2))
    print("\nWhat its splits gained by:")
    for name, share in sorted(tree.feature_importances.items(), key=lambda item: -item[1]):
        print(f"{share:8.1%}  {name}")
    print("\nOne prediction:\n")
    print(tree.explain({"hour": 18, "temperature": -4.0, "city": "Oslo"}))


if __name__ == "__main__":
    main()
