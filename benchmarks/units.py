"""Whether a trained model is ever worse after a change than a new model.

Friedman's function for 40,000 rows; at row 20,000 something changes: which features matter, or the
units of a feature or of the target. R² after the change is compared with that of a new model of the
same kind that begins there.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import friedman
from benchmarks.tables import Answer, Bound, Cell, Table
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]
Rows = tuple[FloatArray, FloatArray]

BEFORE, AFTER, BATCH = 20_000, 20_000, 1_000
QUICK_BEFORE, QUICK_AFTER = 4_000, 5_000
SPANS = ((0, 500), (500, 2_000), (2_000, 5_000), (5_000, 10_000), (10_000, 20_000))
PROMISED_FROM, MAY_LOSE = 2_000, 0.05
MODELS: dict[str, Callable[[], Any]] = {
    "tree": HoeffdingTreeRegressor,
    "adaptive": partial(AdaptiveTreeRegressor, threads=1),
    "forest": partial(ForestRegressor, threads=1),
}
PROMISING = ("adaptive", "forest")
# A single tree follows changes of units alone: by how much it may be worse than one that begins
# at the change, by the first of the rows.
UNITS_MAY_LOSE = {500: 0.10, 2_000: 0.05, 5_000: 0.03}
PERMUTED = "features permuted"


def _x3(change: Callable[[FloatArray], FloatArray], x: FloatArray, y: FloatArray) -> Rows:
    x = x.copy()
    x[:, 3] = change(x[:, 3])
    return x, y


CHANGES: dict[str, Callable[[FloatArray, FloatArray], Rows]] = {
    PERMUTED: lambda x, y: (np.ascontiguousarray(np.roll(x, 5, axis=1)), y),
    "x3 times 1,000": partial(_x3, lambda values: 1e3 * values),
    "x3 times .001": partial(_x3, lambda values: 1e-3 * values),
    "x3 plus 100": partial(_x3, lambda values: values + 100),
    "y times 1,000": lambda x, y: (x, 1e3 * y),
    "y times .001": lambda x, y: (x, 1e-3 * y),
    "y plus 100": lambda x, y: (x, y + 100),
}


class Record(NamedTuple):
    """How well a model did over some rows after a change, and one that began there."""

    change: str
    model: str
    first: int
    last: int
    r2: float
    fresh: float


def run(quick: bool = False) -> Answer:
    """Let all models follow all changes.

    Parameters
    ----------
    quick : bool
        Fewer rows before the change and after it, and nothing promised.
    """
    before, after = (QUICK_BEFORE, QUICK_AFTER) if quick else (BEFORE, AFTER)
    x, y = friedman(np.random.default_rng(1), before + after)
    records = [
        record
        for change, changed in CHANGES.items()
        for name in MODELS
        for record in _records(
            change, name, (x[:before], y[:before]), changed(x[before:], y[before:])
        )
    ]
    bounds = [] if quick else list(_bounds(records))
    return Answer([_table(records)], Table("units", Record._fields, records), bounds)


def _records(change: str, name: str, before: Rows, after: Rows) -> Iterator[Record]:
    old, fresh = MODELS[name](), MODELS[name]()
    _follow(old, before)
    y, predicted, restarted = after[1], _follow(old, after), _follow(fresh, after)
    for first, last in SPANS:
        if last <= len(y):
            part = slice(first, last)
            yield Record(
                change,
                name,
                first,
                last,
                _r2(y[part], predicted[part]),
                _r2(y[part], restarted[part]),
            )


def _follow(model: Any, rows: Rows) -> FloatArray:
    x, y = rows
    parts = [slice(start, start + BATCH) for start in range(0, len(y), BATCH)]
    return np.concatenate([model.predict_learn_many(x[part], y[part]) for part in parts])


def _r2(y: FloatArray, predicted: FloatArray) -> float:
    return float(1 - np.mean((y - predicted) ** 2) / y.var())


def _text(value: float) -> str:
    return f"{value:.3f}" if value > -10 else f"{value:.1e}"


def _table(records: Sequence[Record]) -> Table:
    spans = list(dict.fromkeys((record.first, record.last) for record in records))
    found = {(r.change, r.model, r.first): r for r in records}
    rows: list[Sequence[Cell]] = []
    for change in CHANGES:
        for model in MODELS:
            here = [found[change, model, first] for first, _ in spans]
            rows.append((change, model, *(_text(record.r2) for record in here)))
            rows.append(("", f"{model}, new model", *(_text(record.fresh) for record in here)))
    names = [f"{first:,} to {last:,}" for first, last in spans]
    return Table("R² by rows after a change", ("change", "model", *names), rows)


def _bounds(records: Sequence[Record]) -> Iterator[Bound]:
    for record in records:
        if record.model in PROMISING and record.first >= PROMISED_FROM:
            name = f"R², {record.change}, {record.model}, from {record.first:,} rows on"
            yield Bound(name, record.r2, record.fresh - MAY_LOSE, at_least=True)
        elif (
            record.model == "tree" and record.change != PERMUTED and record.first in UNITS_MAY_LOSE
        ):
            name = f"R², {record.change}, {record.model}, from {record.first:,} rows on"
            least = record.fresh - UNITS_MAY_LOSE[record.first]
            yield Bound(name, record.r2, least, at_least=True)
