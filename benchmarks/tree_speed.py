"""What a row costs a tree that predicts it and then learns it: ours, river's and MOA's.

Friedman's function, the same rows for all, in memory before the clock starts. Ours is given them as
an array at once and as dicts one by one; river, with quantizer observers, as dicts; MOA's FIMT-DD
runs in pure Java on its own rows. Each pass starts with an empty tree, and the best pass counts.

And the longest single `learn_one`: of each row the shortest time of several passes over the same
stream, since what the tree does for it is the same each time, and then the longest of all rows.
"""

from collections.abc import Callable, Sequence
from statistics import median
from time import thread_time_ns
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data_sets import friedman
from benchmarks.moa_process import MoaTiming, time_fimtdd
from benchmarks.river_trees import quantizer_tree
from benchmarks.tables import Answer, Bound, Cell, Table
from benchmarks.timing import best_seconds
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

ROWS = 50_000
SEED = 1
SINGLE_PASSES = 3
MANY, DICTS, RIVER, MOA = "predict_learn_many", "predict_one + learn_one", "river", "MOA"
REQUIRED = ((MANY, RIVER, 100), (DICTS, RIVER, 25), (MANY, MOA, 20))
SINGLE_ALLOWED = 1e-3

Rows = list[tuple[dict[str, float], float]]


class Record(NamedTuple):
    """The CPU time of something, in seconds."""

    what: str
    seconds: float


def run(quick: bool = False) -> Answer:
    """Measure ours and the peers'.

    Parameters
    ----------
    quick : bool
        Fewer passes.
    """
    x, y = friedman(np.random.default_rng(SEED), ROWS)
    names = [f"x{i}" for i in range(x.shape[1])]
    dicts = [dict(zip(names, row, strict=True)) for row in x.tolist()]
    rows = list(zip(dicts, y.tolist(), strict=True))
    many = best_seconds(lambda: HoeffdingTreeRegressor().predict_learn_many(x, y))
    times = {
        MANY: many / ROWS,
        DICTS: best_seconds(lambda: _follow(HoeffdingTreeRegressor(), rows), 3) / ROWS,
        RIVER: best_seconds(lambda: _follow(quantizer_tree(), rows), 2 if quick else 5) / ROWS,
    }
    moa = time_fimtdd(x, y, 4 if quick else 10)
    if isinstance(moa, MoaTiming):
        times[MOA] = moa.seconds
    singles = {
        "ours": _single_times(HoeffdingTreeRegressor, rows),
        "river's": _single_times(quantizer_tree, rows),
    }
    records = [Record(what, seconds) for what, seconds in times.items()]
    records += [Record(f"worst learn_one, {who}", max(own)) for who, own in singles.items()]
    bounds = [
        Bound(f"{ours}: ours / {peer}'s", times[ours] / times[peer], 1 / factor)
        for ours, peer, factor in REQUIRED
        if peer in times
    ]
    bounds.append(Bound("worst learn_one, seconds", max(singles["ours"]), SINGLE_ALLOWED))
    tables = [_table(times, moa), _single_table(singles)]
    return Answer(tables, Table("speed", Record._fields, records), bounds)


def _follow(tree: Any, rows: Rows) -> None:
    predict, learn = tree.predict_one, tree.learn_one
    for x, y in rows:
        predict(x)
        learn(x, y)


def _single_times(make: Callable[[], Any], rows: Rows) -> list[float]:
    """Return the CPU time that each row's `learn_one` takes at least."""
    passes = [_one_pass(make(), rows) for _ in range(SINGLE_PASSES)]
    return [min(own) / 1e9 for own in zip(*passes, strict=True)]


def _one_pass(tree: Any, rows: Rows) -> list[int]:
    learn, times = tree.learn_one, []
    for x, y in rows:
        start = thread_time_ns()
        learn(x, y)
        times.append(thread_time_ns() - start)
    return times


def _table(times: dict[str, float], moa: MoaTiming | str) -> Table:
    note = f"MOA's R²: {moa.r2:.4f}" if isinstance(moa, MoaTiming) else f"MOA is skipped: {moa}"
    rows: list[Sequence[Cell]] = [
        (what, own * 1e6, *(_ratio(own, times.get(peer)) for peer in (RIVER, MOA)))
        for what, own in times.items()
    ]
    title = f"CPU time a row, predicted and learned; Friedman #1, {ROWS:,} rows ({note})"
    return Table(title, ("what", "µs", "of river's", "of MOA's"), rows)


def _ratio(own: float, peers: float | None) -> str:
    return "-" if peers is None else f"1/{peers / own:.1f}"


def _single_table(singles: dict[str, list[float]]) -> Table:
    rows = [(who, median(own) * 1e6, max(own) * 1e6) for who, own in singles.items()]
    title = f"CPU time of a single learn_one, the best of {SINGLE_PASSES} passes, in µs"
    return Table(title, ("whose", "median", "worst"), rows)
