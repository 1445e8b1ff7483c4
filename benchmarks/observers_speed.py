"""What an observation and a query cost, in Sapwood and in river.

100,000 values of N(0, 1) and their cubes, the same for both. Rows that are given one by one are
Python floats in a `for` loop over a `zip`; the loop itself, some 20 ns a row, is counted on both
sides. Making the empty observer is counted, too. `update_many` is given NumPy arrays and compared
with river's `update`, since river has no other.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from river.tree.splitter import EBSTSplitter, QOSplitter, TEBSTSplitter

from benchmarks.river_corrected import CorrectedQOSplitter, check_corrected, river_query
from benchmarks.tables import Answer, Bound, Cell, Table
from benchmarks.timing import best_seconds
from sapwood import EBSTObserver, Observer, QuantizerObserver, TEBSTObserver

__all__ = ["run"]

ROWS = 100_000
AS_SHIPPED, CORRECTED = "as shipped", "corrected"


class Rows(NamedTuple):
    """The same rows as arrays and as lists."""

    arrays: tuple[Any, Any]
    lists: tuple[list[float], list[float]]


class Pair(NamedTuple):
    """An observer of ours, river's counterparts, and how many times as fast ours has to be."""

    name: str
    ours: Callable[[], Observer]
    rivers: dict[str, Callable[[], Any]]
    required: dict[str, int]


class Record(NamedTuple):
    """What one operation costs on both sides, in seconds."""

    observer: str
    what: str
    river_is: str
    ours: float
    rivers: float
    required: int | None

    def bound(self) -> Bound:
        """Return the promise that this is the measure of."""
        name = f"{self.observer}, {self.what}: ours / river's, {self.river_is}"
        return Bound(name, self.ours / self.rivers, 1 / self.required if self.required else 1.0)


def _quantizers(radius: float) -> dict[str, Callable[[], Any]]:
    return {
        AS_SHIPPED: lambda: QOSplitter(radius=radius),
        CORRECTED: lambda: CorrectedQOSplitter(radius=radius),
    }


PAIRS = (
    Pair(
        "QO 0.25",
        lambda: QuantizerObserver(0.25),
        _quantizers(0.25),
        {"update_many": 40, "update": 5},
    ),
    Pair("QO 0.01", lambda: QuantizerObserver(0.01), _quantizers(0.01), {"query": 100}),
    Pair("QO auto (river's: 0.25)", QuantizerObserver, _quantizers(0.25), {}),
    Pair("E-BST", EBSTObserver, {AS_SHIPPED: EBSTSplitter}, {"update_many": 10, "query": 100}),
    Pair(
        "TE-BST, 3 digits",
        lambda: TEBSTObserver(digits=3),
        {AS_SHIPPED: lambda: TEBSTSplitter(digits=3)},
        {},
    ),
)


def run(quick: bool = False) -> Answer:
    """Measure observing and asking.

    Parameters
    ----------
    quick : bool
        Measure river three times instead of seven.
    """
    check_corrected()
    x = np.random.default_rng(0).normal(size=ROWS)
    y = x**3
    rows = Rows((x, y), (x.tolist(), y.tolist()))
    records = [record for pair in PAIRS for record in _compare(pair, rows, 3 if quick else 7)]
    bounds = [record.bound() for record in records if record.required]
    return Answer([_table(records)], Table("speed", Record._fields, records), bounds)


def _compare(pair: Pair, rows: Rows, repeats: int) -> list[Record]:
    ours = pair.ours()
    ours.update_many(*rows.arrays)
    many = best_seconds(lambda: pair.ours().update_many(*rows.arrays)) / ROWS
    single = best_seconds(lambda: _observe(pair.ours(), rows)) / ROWS
    rivers = (
        best_seconds(lambda: _observe_in_river(pair.rivers[AS_SHIPPED](), rows), repeats) / ROWS
    )
    required = pair.required.get
    return [
        Record(pair.name, "update_many", AS_SHIPPED, many, rivers, required("update_many")),
        Record(pair.name, "update", AS_SHIPPED, single, rivers, required("update")),
        *_compare_queries(pair, best_seconds(ours.best_split), rows, repeats),
    ]


def _compare_queries(pair: Pair, ours: float, rows: Rows, repeats: int) -> list[Record]:
    records = []
    for river_is, make in pair.rivers.items():
        splitter = make()
        _observe_in_river(splitter, rows)
        rivers = best_seconds(river_query(splitter, rows.lists[1]), repeats)
        required = pair.required.get("query")
        records.append(Record(pair.name, "query", river_is, ours, rivers, required))
    return records


def _observe(observer: Observer, rows: Rows) -> None:
    update = observer.update
    for x, y in zip(*rows.lists, strict=True):
        update(x, y)


def _observe_in_river(splitter: Any, rows: Rows) -> None:
    update = splitter.update
    for x, y in zip(*rows.lists, strict=True):
        update(x, y, 1.0)


def _table(records: list[Record]) -> Table:
    title = (
        f"CPU time for an observation and for a query, {ROWS:,} values of N(0, 1), cubic target; "
        "river's quantizer as shipped, and with the two faults of its query corrected"
    )
    columns = ("observer", "what", "river", "ours", "river's", "ratio", "required", "met")
    return Table(title, columns, [_row(record) for record in records])


def _row(record: Record) -> list[Cell]:
    times = [_time(record.ours), _time(record.rivers)]
    ratio = f"1/{record.rivers / record.ours:.1f}"
    if not record.required:
        return [*record[:3], *times, ratio, "-", "-"]
    met = "yes" if record.bound().met else "NO"
    return [*record[:3], *times, ratio, f"1/{record.required}", met]


def _time(seconds: float) -> str:
    for unit, size in {"s": 1.0, "ms": 1e-3, "µs": 1e-6}.items():
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
