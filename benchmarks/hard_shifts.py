"""Rows beyond the learned range, the first rows of a stream, and labels that are outliers.

Each score is an R². "Before" is the same model without what cures a case: with column ranges that
are open, or without a share of the last label at a cold start. Outliers: the squared error, the
Huber loss, and the winsorized loss. The rule for ranges and the constants of the cold start were
chosen on these real streams, among seven variants and about twenty settings: their gains are
optimistic. The constants of the winsorized loss were chosen among five settings, with other
outliers, on bike, metro, california, light, puma8NH, and another seed of the drifting streams.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets, hard_cases
from benchmarks.data_sets import DataSet
from benchmarks.tables import Answer, Bound, Table
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    LossRegressor,
)
from sapwood.corrector._layer import layer_parts
from sapwood.records import LARGEST

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "hard_shifts.csv"
ROWS, QUICK_ROWS, BLOCK, SEEDS = 12_000, 3_000, 1_000, 3
CHUNK = 64  # rows between two times that ranges are opened
FIRST, SKIPPED = 100, 1_000
COLD_STARTS = (0, 3_000, 6_000)  # rows at which a model begins
OUTLIER_ROWS, OUTLIERS, FACTOR = 8_000, 0.01, 100.0
RARE = 0.985  # events are above this quantile of a feature
METHODS: dict[str, Any] = {"plain": None, "huber": "huber", "winsorized": "winsorized"}
MODELS: dict[str, Callable[[int], Any]] = {
    "tree": lambda seed: HoeffdingTreeRegressor(),
    "adaptive": lambda seed: AdaptiveTreeRegressor(),
    "forest": lambda seed: ForestRegressor(threads=1, seed=seed),
}


class Record(NamedTuple):
    """A score."""

    case: str
    stream: str
    model: str
    method: str
    r2: float


def run(quick: bool = False) -> Answer:
    """Evaluate models on all streams.

    Parameters
    ----------
    quick : bool
        Whether a few rows of generated streams are enough.
    """
    rows = QUICK_ROWS if quick else ROWS
    generated = [data for seed in range(1 if quick else 2) for data in _generated(rows, seed)]
    real = [] if quick else list(_real(rows))
    records = [record for data in real or generated for record in _beyond(data)]
    records += [record for data in [*real, *generated] for record in _cold_starts(data)]
    rare = [_rare(rows, seed) for seed in range(1 if quick else 2)]
    records += [record for data in [*real, *generated, *rare] for record in _outliers(data)]
    table = Table("R² before, now, and of alternatives", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    gain = _mean(records, "cold start", "now") - _mean(records, "cold start", "before")
    return Answer([table], table, [Bound("mean gain at a cold start", gain, 0.0, True)])


def _mean(records: list[Record], case: str, method: str) -> float:
    found = [each.r2 for each in records if (each.case, each.method) == (case, method)]
    return float(np.mean(found))


def _r2(predictions: FloatArray, y: FloatArray) -> float:
    return float(1 - np.sum((predictions - y) ** 2) / np.sum((y - y.mean()) ** 2))


# -- streams ---------------------------------------------------------------------------------------


def _generated(rows: int, seed: int) -> Iterator[DataSet]:
    for case, data in hard_cases._generated(rows, seed):
        if case == "drift":
            yield data


def _real(rows: int) -> Iterator[DataSet]:
    """Yield the real streams, and california in the order of its file: by regions."""
    yield from hard_cases._real(rows)
    shuffled = data_sets.REAL["california"]
    ordered = data_sets.load("california in order", shuffled._replace(shuffled=False))
    if ordered is not None:
        yield ordered.head(rows)


def _part(data: DataSet, start: int, stop: int) -> DataSet:
    columns = {name: column[start:stop] for name, column in data.columns.items()}
    return DataSet(data.name, columns, data.y[start:stop])


# -- rows beyond the learned range -----------------------------------------------------------------


def _beyond(data: DataSet) -> Iterator[Record]:
    """Yield the scores with labels by 1,000 and at once, without and with ranges of columns."""
    for name, make in MODELS.items():
        seeds = range(SEEDS if name == "forest" else 1)
        for case, step in (("beyond the range", BLOCK), ("beyond the range, at once", CHUNK)):
            for method, is_open in (("before", True), ("now", False)):
                scores = [_by_block(make(seed), data, step, is_open) for seed in seeds]
                yield Record(case, data.name, name, method, float(np.mean(scores)))
    if data.name == "california in order":
        score = _r2(hard_cases._of_lightgbm(data)[SKIPPED:], data.y[SKIPPED:])
        yield Record("beyond the range", data.name, "LightGBM", "alternative", score)


def _by_block(model: Any, data: DataSet, step: int, is_open: bool) -> float:
    predictions = np.empty(len(data.y))
    for start in range(0, len(data.y), step):
        part = slice(start, start + step)
        columns = _part(data, start, start + step).columns
        for tree in getattr(model._kernel, "trees", [model._kernel]) if is_open else ():
            facts = tree.columns.known_facts
            facts["low"], facts["high"] = -LARGEST, LARGEST
        if step == CHUNK:
            predictions[part] = model.predict_learn_many(columns, data.y[part])
        else:
            predictions[part] = model.predict_many(columns)
            model.learn_many(columns, data.y[part])
    return _r2(predictions[SKIPPED:], data.y[SKIPPED:])


# -- the first rows --------------------------------------------------------------------------------


def _cold_starts(data: DataSet) -> Iterator[Record]:
    """Yield the scores of the first rows but one, labels at once."""
    starts = [start for start in COLD_STARTS if start + FIRST <= len(data.y)]
    parts = [_part(data, start, start + FIRST) for start in starts]
    parts = [part for part in parts if part.y[1:].std() > 0.0]
    record = partial(Record, "cold start", data.name)
    for name, make in MODELS.items():
        for method, is_cold in (("before", False), ("now", True)):
            scores = [_r2(_one_by_one(make(0), part, is_cold)[1:], part.y[1:]) for part in parts]
            yield record(name, method, float(np.mean(scores)))
    scores = [_r2(part.y[:-1], part.y[1:]) for part in parts]
    yield record("last value", "alternative", float(np.mean(scores)))


def _one_by_one(model: Any, data: DataSet, is_cold: bool) -> FloatArray:
    """Return what is predicted; with many labels on the books a cold start is over."""
    scored = next(start for name, start, _ in layer_parts() if name == "scored")
    predictions = np.empty(len(data.y))
    for row, (x, y) in enumerate(zip(data.dicts(), data.y.tolist(), strict=True)):
        layer = model._kernel.layer_table
        known = layer[scored]
        layer[scored] = known if is_cold else 1e6
        predictions[row] = model.predict_one(x)
        layer[scored] = known
        model.learn_one(x, y)
    return predictions


# -- outliers --------------------------------------------------------------------------------------


def _outliers(data: DataSet) -> Iterator[Record]:
    """Yield the scores of a tree against true labels, as it learns them as they are, or clipped."""
    data = data.head(OUTLIER_ROWS)
    are_bad = np.random.default_rng(0).random(len(data.y)) < OUTLIERS
    for case, y in (
        ("labels as they are", data.y),
        ("outliers", np.where(are_bad, FACTOR * data.y, data.y)),
    ):
        for method, loss in METHODS.items():
            tree = HoeffdingTreeRegressor()
            model = tree if loss is None else LossRegressor(tree, loss)
            predictions = model.predict_learn_many(data.columns, y)
            score = _r2(predictions[SKIPPED:], data.y[SKIPPED:])
            yield Record(case, data.name, "tree", method, score)


def _rare(rows: int, seed: int) -> DataSet:
    """Return a stream with rare events that a feature explains."""
    rng = np.random.default_rng(50 + seed)
    x, noise = rng.random((rows, 3)), rng.normal(size=rows)
    y = 10.0 * x[:, 0] + noise + 300.0 * (x[:, 1] > RARE)
    columns: dict[str, Any] = {f"x{place}": x[:, place] for place in range(3)}
    return DataSet(f"rare events, seed {seed}", columns, y)
