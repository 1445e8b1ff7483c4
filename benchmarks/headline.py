"""The figures of the README: accuracy, speed, coverage and false alarms, from one results file.

Accuracy is R² on the first 20,000 rows of six streams. Each row is predicted before it is learned,
every learner gets the same rows and each label at once, and all parameters have their defaults.
The first 1,000 rows are learned, but not scored. Speed is the CPU time to predict and learn a row
of ten numbers, best of three. Coverage is that of prediction intervals with nominal level 0.9.
False alarms are those of drift detectors on the errors of a tree on streams without drift.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import thread_time_ns
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sapwood
import sapwood.drift
from benchmarks.data_sets import DataSet, friedman_set
from benchmarks.peers import sets
from benchmarks.peers.learners import River, SapwoodRows, Sgd
from benchmarks.tables import Answer, Table

__all__ = ["FILE", "run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "headline.csv"
"""Where a full run writes its results; the README quotes them."""

ROWS, QUICK_ROWS, SKIPPED, BATCH = 20_000, 3_000, 1_000, 1_000
REAL = ("bike", "metro", "Beijing PM2.5", "california", "diamonds")
LEVEL, FIRST_INTERVAL = 0.9, 20
STATIONARY, STATIONARY_ROWS, ONCE_IN = 10, 100_000, 1_000_000

TREE, FOREST = "Sapwood tree", "Sapwood forest"
RIVERS_TREE, RIVERS_FOREST, SGD = "river Hoeffding tree", "river ARF", "scikit-learn SGD"

FloatArray = NDArray[np.float64]


class Record(NamedTuple):
    """One measurement."""

    measure: str
    stream: str
    learner: str
    rows: int
    value: float


def run(quick: bool = False) -> Answer:
    """Measure all figures of the README, and write them to `FILE` unless the run is quick.

    Parameters
    ----------
    quick : bool
        Use fewer rows, and write no file.
    """
    rows = QUICK_ROWS if quick else ROWS
    found = [data for data in map(sets.real, REAL) if data is not None]
    streams = [data.head(rows) for data in [*found, sets.generated("friedman", rows)]]
    records = [
        *_accuracy(streams),
        *_speed(rows, 1 if quick else 3),
        *_coverage(streams),
        *_false_alarms(1 if quick else STATIONARY, rows if quick else STATIONARY_ROWS),
    ]
    table = Table("README", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
        accuracy_table(records).write_csv(FILE.with_name("headline-r2.csv"))
    return Answer([table], table)


def accuracy_table(records: Sequence[Record]) -> Table:
    """Return R² with a row for each stream and a column for each learner.

    Parameters
    ----------
    records : sequence of Record
        Among them those of the accuracy.
    """
    scores = {(r.stream, r.learner): f"{r.value:.3f}" for r in records if r.measure == "r2"}
    sizes = {r.stream: f"{r.rows:,}" for r in records if r.measure == "r2"}
    rows = [[name, size, *(scores[name, who] for who in LEARNERS)] for name, size in sizes.items()]
    return Table("R²", ("stream", "rows", *LEARNERS), rows)


# -- accuracy --------------------------------------------------------------------------------------


def _accuracy(streams: list[DataSet]) -> Iterator[Record]:
    for data in streams:
        for name, predict in LEARNERS.items():
            predictions = predict(data)
            y = data.y[SKIPPED:]
            residual = np.sum((y - predictions[SKIPPED:]) ** 2)
            r2 = 1.0 - residual / np.sum((y - y.mean()) ** 2)
            yield Record("r2", data.name, name, len(data.y), float(r2))


def _by_sapwood(make: Callable[[], Any]) -> Callable[[DataSet], FloatArray]:
    def predict(data: DataSet) -> FloatArray:
        return np.asarray(make().predict_learn_many(data.columns, data.y))

    return predict


def _by_river(kind: str) -> Callable[[DataSet], FloatArray]:
    def predict(data: DataSet) -> FloatArray:
        from river import forest, tree

        if kind == RIVERS_FOREST:
            learner = River(data, {"kind": forest.ARFRegressor, "seed": 1})
        else:
            learner = River(data, {"kind": tree.HoeffdingTreeRegressor})
        return learner.follow(learner.calls(data))[0]

    return predict


def _by_sgd(data: DataSet) -> FloatArray:
    learner = Sgd(data, {"batch": 1})
    return learner.follow(learner.calls(data))[0]


LEARNERS: dict[str, Callable[[DataSet], FloatArray]] = {
    TREE: _by_sapwood(sapwood.HoeffdingTreeRegressor),
    FOREST: _by_sapwood(sapwood.ForestRegressor),
    RIVERS_TREE: _by_river(RIVERS_TREE),
    RIVERS_FOREST: _by_river(RIVERS_FOREST),
    SGD: _by_sgd,
}


# -- speed, coverage, false alarms -----------------------------------------------------------------


def _speed(rows: int, repetitions: int) -> Iterator[Record]:
    from river import tree

    data = friedman_set(rows)
    x = np.column_stack(list(data.columns.values()))

    def batches() -> int:
        model = sapwood.HoeffdingTreeRegressor()
        start = thread_time_ns()
        for first in range(0, rows, BATCH):
            model.predict_learn_many(x[first : first + BATCH], data.y[first : first + BATCH])
        return thread_time_ns() - start

    def singly(learner: Any) -> int:
        return int(learner.follow(learner.calls(data))[1])

    ways: dict[str, Callable[[], int]] = {
        f"{TREE}, batches of {BATCH:,}": batches,
        f"{TREE}, one by one": lambda: singly(SapwoodRows(data, {})),
        RIVERS_TREE: lambda: singly(River(data, {"kind": tree.HoeffdingTreeRegressor})),
    }
    for name, way in ways.items():
        best = min(way() for _ in range(repetitions))
        yield Record("microseconds a row", "friedman", name, rows, best / 1e3 / rows)


def _coverage(streams: list[DataSet]) -> Iterator[Record]:
    for data in streams:
        model = sapwood.IntervalRegressor(sapwood.HoeffdingTreeRegressor(), (LEVEL,))
        _, bounds = model.predict_learn_intervals(data.columns, data.y)
        inside = (data.y >= bounds[:, 0, 0]) & (data.y <= bounds[:, 0, 1])
        coverage = float(inside[FIRST_INTERVAL:].mean())
        yield Record("coverage at 0.9", data.name, TREE, len(data.y), coverage)


def _false_alarms(seeds: int, rows: int) -> Iterator[Record]:
    from river.drift import ADWIN

    detected = {"Sapwood ChangeDetector": 0, "river ADWIN": 0}
    for seed in range(seeds):
        data = friedman_set(rows + SKIPPED, seed=1_000 + seed)
        predictions = sapwood.HoeffdingTreeRegressor().predict_learn_many(data.columns, data.y)
        errors = np.abs(data.y - predictions)[SKIPPED:]
        detector = sapwood.drift.ChangeDetector(ONCE_IN, "up")
        detected["Sapwood ChangeDetector"] += len(detector.update_many(errors))
        rivers = ADWIN()
        for error in errors.tolist():
            rivers.update(error)
            detected["river ADWIN"] += bool(rivers.drift_detected)
    for name, count in detected.items():
        yield Record("false alarms", "friedman", name, seeds * rows, float(count))
