"""What a row costs the default tree, compared between builds of several commits.

``python -m benchmarks.commits FOLDER FOLDER ...`` takes folders that contain the package
``sapwood``, compiled in place, for example the ``src`` of two clones. Each is loaded by a process of
its own. The processes take turns, pass by pass, as other work on the machine changes all the time;
of each, the pass with the least CPU time counts. Ratios are those to the first folder.
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np

__all__ = ["main"]

ROWS = 50_000
FEATURES = 10
BATCH = 1_000
WAYS = ("batches of 1,000", "one batch", "predict_one + learn_one")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table; also write it as CSV, if a path is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args(arguments)
    workers = [_start(folder.resolve()) for folder in given.folders]
    records: list[tuple[str, str, float, float]] = []
    for way in WAYS:
        passes = [[_measured(each, way) for each in workers] for _ in range(given.passes)]
        best = [min(own) for own in zip(*passes, strict=True)]
        for folder, own in zip(given.folders, best, strict=True):
            records.append((way, str(folder), own, own / best[0]))
            print(f"{way:25} {own:8.0f} ns  {own / best[0]:6.3f}  {folder}")
    for each in workers:
        each.communicate()
    if given.csv is not None:
        with given.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("way", "folder", "ns", "ratio"), *records])


def _start(folder: Path) -> "subprocess.Popen[str]":
    """Start a process that measures a build: a way a line in, the nanoseconds a row out."""
    command = [sys.executable, "-P", __file__, "--worker", str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _measured(worker: "subprocess.Popen[str]", way: str) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{way}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def _serve(folder: str) -> None:
    """Measure what is asked for, with the package in a folder."""
    sys.path.insert(0, folder)
    import sapwood

    assert Path(sapwood.__file__).is_relative_to(folder)
    passes = _passes()
    for line in sys.stdin:
        tree = sapwood.HoeffdingTreeRegressor()
        start = thread_time_ns()
        passes[line.strip()](tree)
        print((thread_time_ns() - start) / ROWS, flush=True)


def _passes() -> dict[str, Callable[[Any], None]]:
    rng = np.random.default_rng(1)
    x = rng.random((ROWS, FEATURES))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
    y += 5 * x[:, 4] + rng.normal(size=ROWS)
    names = [f"x{place}" for place in range(FEATURES)]
    rows = [dict(zip(names, row, strict=True)) for row in x.tolist()]
    targets = y.tolist()

    def by_batches(tree: Any) -> None:
        for start in range(0, ROWS, BATCH):
            tree.predict_learn_many(x[start : start + BATCH], y[start : start + BATCH])

    def at_once(tree: Any) -> None:
        tree.predict_learn_many(x, y)

    def one_by_one(tree: Any) -> None:
        predict, learn = tree.predict_one, tree.learn_one
        for row, target in zip(rows, targets, strict=True):
            predict(row)
            learn(row, target)

    return dict(zip(WAYS, (by_batches, at_once, one_by_one), strict=True))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _serve(sys.argv[2])
    else:
        main()
