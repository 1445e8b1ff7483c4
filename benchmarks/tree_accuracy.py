"""How well a tree predicts a stream, each row before it is learned, with default parameters.

R² over the whole stream, against the mean of all its targets, on Friedman's function and on real
streams, compared with the classical tree, the parts of the default one, and river's trees on the
same rows. One prediction far out of range can ruin a learner's R², so that a second table leaves out
each learner's worst predictions; nothing is promised there.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import CEILING, REAL, DataSet, friedman_set, load
from benchmarks.river_trees import RIVERS_TREES, rivers_rows, rivers_tree
from benchmarks.tables import Answer, Bound, Cell, Table
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]

FRIEDMAN_ROWS = 100_000
QUICK_ROWS = 5_000
LEFT_OUT = 0.01

DEFAULT, TARGET, UNTRACKED = "default", "target", "track=None"
OURS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    TARGET: {"split_on": "target", "leaf": "adaptive"},
    "residual": {"split_on": "residual"},
    UNTRACKED: {"track": None},
}
LEARNERS = (*OURS, *RIVERS_TREES)
PROMISED = {
    ("Friedman #1", DEFAULT): 0.93,
    ("bike", DEFAULT): 0.91,
    ("Beijing PM2.5", DEFAULT): 0.78,
    ("diamonds", DEFAULT): 0.935,
    ("puma8NH", DEFAULT): 0.57,
    ("california", DEFAULT): 0.70,
    ("bike", UNTRACKED): 0.87,
}
MAY_LOSE = 0.01


class Record(NamedTuple):
    """How well one learner did on one stream, with all rows and without its worst ones."""

    data: str
    rows: int
    learner: str
    r2: float
    r2_without_worst: float


def run(quick: bool = False) -> Answer:
    """Let every learner predict and learn every stream.

    Parameters
    ----------
    quick : bool
        Take the first 5,000 rows of each stream, and promise nothing.
    """
    found = {name: load(name) for name in REAL}
    streams = [friedman_set(FRIEDMAN_ROWS), *(data for data in found.values() if data is not None)]
    records: list[Record] = []
    for data in streams:
        records += _scores(data.head(QUICK_ROWS) if quick else data)
    absent = [name for name, data in found.items() if data is None]
    tables = [*_tables(records, absent), _ceiling_table(records)]
    bounds = [] if quick else list(_bounds(records))
    return Answer(tables, Table("accuracy", Record._fields, records), bounds)


def _scores(data: DataSet) -> Iterator[Record]:
    for name, parameters in OURS.items():
        tree = HoeffdingTreeRegressor(**parameters)
        yield _record(data, name, tree.predict_learn_many(data.columns, data.y))
    rows, targets = rivers_rows(data), data.y.tolist()
    for name in RIVERS_TREES:
        learner = rivers_tree(name, data)
        predictions = []
        for x, y in zip(rows, targets, strict=True):
            predictions.append(learner.predict_one(x))
            learner.learn_one(x, y)
        yield _record(data, name, np.array(predictions))


def _record(data: DataSet, learner: str, predictions: FloatArray) -> Record:
    by_error = np.argsort(np.abs(data.y - predictions))
    kept = by_error[: len(by_error) - int(LEFT_OUT * len(by_error))]
    scores = _r2(data.y, predictions), _r2(data.y[kept], predictions[kept])
    return Record(data.name, len(data.y), learner, *scores)


def _r2(y: FloatArray, predictions: FloatArray) -> float:
    return float(1 - np.mean((y - predictions) ** 2) / y.var())


def _tables(records: Sequence[Record], absent: list[str]) -> Iterator[Table]:
    title = "R² of predictions made before their rows are learned"
    if absent:
        title += f" (without {', '.join(absent)}: no such files; SAPWOOD_DATA names their folder)"
    score = {(r.data, r.learner): (r.r2, r.r2_without_worst) for r in records}
    sizes = {r.data: r.rows for r in records}
    titles = (title, f"The same without the worst {LEFT_OUT:.0%} of each learner's predictions")
    for i, each in enumerate(titles):
        rows: list[Sequence[Cell]] = [
            (data, n, *(f"{score[data, learner][i]:.4f}" for learner in LEARNERS))
            for data, n in sizes.items()
        ]
        yield Table(each, ("stream", "rows", *LEARNERS), rows)


def _ceiling_table(records: Sequence[Record]) -> Table:
    rows = [(r.learner, r.r2, r.r2 / CEILING) for r in records if r.data == "Friedman #1"]
    title = f"Friedman #1: how much of the {CEILING} that its noise leaves is reached"
    return Table(title, ("learner", "R²", "share"), rows)


def _bounds(records: Sequence[Record]) -> Iterator[Bound]:
    score = {(r.data, r.learner): r.r2 for r in records}
    for (data, learner), limit in PROMISED.items():
        if (data, learner) in score:
            yield Bound(f"R², {data}, {learner}", score[data, learner], limit, at_least=True)
    for data in dict.fromkeys(r.data for r in records):
        ours = score[data, DEFAULT]
        classical = score[data, TARGET] - MAY_LOSE
        rivers = max(score[data, name] for name in RIVERS_TREES)
        yield Bound(f"R², {data}, against target - {MAY_LOSE}", ours, classical, at_least=True)
        yield Bound(f"R², {data}, against river's best", ours, rivers, at_least=True)
