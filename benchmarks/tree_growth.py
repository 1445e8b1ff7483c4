"""Whether a tree stays as quick as it was, and within its bytes, while it learns millions of rows.

Friedman's function without end, in chunks. What a row costs at some place is the median of the
chunks around it: it is compared for two places, the later ten times as far as the earlier.
"""

from collections.abc import Sequence
from statistics import median
from time import thread_time_ns
from typing import NamedTuple

import numpy as np

from benchmarks.data_sets import friedman
from benchmarks.tables import Answer, Bound, Cell, Table
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

CHUNKS = 100
CHUNK_ROWS = 100_000
QUICK_CHUNK_ROWS = 10_000
EARLY = range(7, 12)
LATE = range(95, 100)
MAX_BYTES = 50_000_000
MAY_SLOW = 2.0
SEED = 1


class Record(NamedTuple):
    """A chunk: how many rows the tree had learned at its end, what it cost, how large it was."""

    rows: int
    seconds: float
    r2: float
    n_leaves: int
    nbytes: int


def run(quick: bool = False) -> Answer:
    """Let one tree learn ten million rows.

    Parameters
    ----------
    quick : bool
        One million instead.
    """
    size = QUICK_CHUNK_ROWS if quick else CHUNK_ROWS
    rng = np.random.default_rng(SEED)
    tree = HoeffdingTreeRegressor(max_bytes=MAX_BYTES)
    records = [_chunk(tree, rng, size, size * (i + 1)) for i in range(CHUNKS)]
    early, late = (median(records[i].seconds for i in place) for place in (EARLY, LATE))
    names = [f"{size * CHUNKS // share:,}" for share in (10, 1)]
    bounds = [
        Bound(f"cost a row: at {names[1]} rows / at {names[0]}", late / early, MAY_SLOW),
        Bound("largest nbytes", max(r.nbytes for r in records), MAX_BYTES),
    ]
    tables = [_table(records), _cost_table(dict(zip(names, (early, late), strict=True)))]
    return Answer(tables, Table("growth", Record._fields, records), bounds)


def _chunk(tree: HoeffdingTreeRegressor, rng: np.random.Generator, size: int, rows: int) -> Record:
    x, y = friedman(rng, size)
    start = thread_time_ns()
    predictions = tree.predict_learn_many(x, y)
    seconds = (thread_time_ns() - start) / 1e9 / size
    r2 = 1 - float(np.mean((y - predictions) ** 2) / y.var())
    return Record(rows, seconds, r2, tree.n_leaves, tree.nbytes)


def _table(records: Sequence[Record]) -> Table:
    shown: list[Sequence[Cell]] = [
        (r.rows, r.seconds * 1e6, f"{r.r2:.4f}", r.n_leaves, r.nbytes)
        for i, r in enumerate(records)
        if i in (0, 1, 4) or i % 10 == 9
    ]
    title = f"Friedman #1 in chunks of {records[0].rows:,}, max_bytes={MAX_BYTES:,}"
    return Table(title, ("rows", "µs a row", "R² of the chunk", "leaves", "nbytes"), shown)


def _cost_table(costs: dict[str, float]) -> Table:
    rows = [(f"around {rows} rows", cost * 1e6) for rows, cost in costs.items()]
    return Table("CPU time a row, predicted and learned, in µs", ("where", "µs"), rows)
