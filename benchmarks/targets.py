"""Multi-target regression: accuracy and costs of one model, compared with one for each target.

Each row is predicted before it is learned, and the first 1,000 are not scored. R² is the mean over
targets, each by the rows in which it is known; times are CPU time of the calling thread, in turns,
the best of several. Forests and adaptive trees learn in one thread. Nothing is promised where the
targets have no feature in common.

In the comparison with iSOUP trees, all learn the rows in which nothing is missing, in the same
order. River's is too slow for whole streams; MOA's learns whole streams, too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Answer, Bound, Cell, Table
from benchmarks.target_peers import moas_isoup, rivers_isoup
from benchmarks.target_streams import Stream, streams
from benchmarks.timing import nanoseconds
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]

ROWS, QUICK_ROWS, NOT_SCORED = 50_000, 3_000, 1_000
TIMED_ROWS, REPEATS = 20_000, 5
RIVER_ROWS, QUICK_RIVER_ROWS = 3_000, 1_200
MOA_PASSES = 3
MAY_LOSE = 0.01
ENSEMBLES: dict[str, Callable[[], Any]] = {
    "adaptive": partial(AdaptiveTreeRegressor, threads=1),
    "forest": partial(ForestRegressor, threads=1),
}
MOST_TIME = {4: 0.75, 16: 0.5}  # of separate trees, by the number of targets


def run(quick: bool = False) -> Answer:
    """Let one model, separate ones and iSOUP trees learn all streams, and time them.

    Parameters
    ----------
    quick : bool
        Fewer rows.
    """
    scores: list[list[Cell]] = []
    ensembles: list[list[Cell]] = []
    peers: list[list[Cell]] = []
    bounds: list[Bound] = []
    for stream in streams(QUICK_ROWS if quick else ROWS):
        scores.append(_trees(stream, quick, bounds))
        ensembles += [_ensemble(kind, stream, quick, bounds) for kind in ENSEMBLES]
        known = stream.without_gaps()
        peers.append(_peers(known.head(QUICK_RIVER_ROWS if quick else RIVER_ROWS), True))
        if not quick:
            peers.append(_peers(known, False))
    columns = (
        "stream", "rows", "targets", "R², one tree", "R², separate", "difference",
        "leaves", "leaves, separate", "time / separate",
    )  # fmt: skip
    table = Table("One tree for all targets compared with one for each", columns, scores)
    trees = Table(
        "One adaptive tree or forest compared with one for each target",
        ("model", "stream", "rows", "R², one", "R², separate", "difference", "time / separate"),
        ensembles,
    )
    other = Table(
        "Compared with the iSOUP trees of river and MOA, on the rows in which nothing is missing",
        (
            "stream", "rows", "R², one tree", "R², river", "R², MOA",
            "µs a row, one tree", "µs a row, river", "µs a row, MOA",
        ),
        peers,
    )  # fmt: skip
    return Answer([table, trees, other], table, bounds)


def _trees(stream: Stream, quick: bool, bounds: list[Bound]) -> list[Cell]:
    """Compare one tree with one for each target; what is promised of it is added."""
    one, leaves = _together(stream)
    each, own_leaves = _apart(stream)
    count = len(stream.targets)
    ratio = _time_ratio(stream.head(2_000 if quick else TIMED_ROWS), 2 if quick else REPEATS)
    if stream.promised:
        bounds.append(Bound(f"R² lost to separate trees, {stream.name}", each - one, MAY_LOSE))
        if count in MOST_TIME:
            named = f"time relative to separate trees, {stream.name}"
            bounds.append(Bound(named, ratio, MOST_TIME[count]))
    return [stream.name, stream.rows, count, one, each, one - each, leaves, own_leaves, ratio]


def _ensemble(kind: str, stream: Stream, quick: bool, bounds: list[Bound]) -> list[Cell]:
    """Compare one forest or adaptive tree with one for each target, as `_trees` does."""
    make = ENSEMBLES[kind]
    one, each = _together(stream, make)[0], _apart(stream, make)[0]
    ratio = _time_ratio(stream.head(2_000 if quick else TIMED_ROWS), 1 if quick else 2, make)
    if stream.promised:
        named = f"R² lost to separate models, {kind}, {stream.name}"
        bounds.append(Bound(named, each - one, MAY_LOSE))
    return [kind, stream.name, stream.rows, one, each, one - each, ratio]


def _peers(stream: Stream, with_river: bool) -> list[Cell]:
    """Compare one tree with those of others, on rows without gaps."""
    taken = min(nanoseconds(lambda: _together(stream)) for _ in range(REPEATS))
    river = rivers_isoup(stream) if with_river else None
    moa = moas_isoup(stream, MOA_PASSES)
    scores: list[Cell] = [_together(stream)[0]]
    times: list[Cell] = [taken / 1e3 / stream.rows]
    for found in (river, moa):
        scores.append(None if found is None else _mean_r2(stream, found[0]))
        times.append(None if found is None else found[1])
    return [stream.name, stream.rows, *scores, *times]


def _together(
    stream: Stream, make: Callable[[], Any] = HoeffdingTreeRegressor
) -> tuple[float, int]:
    """Return the mean R² of one model for all targets, and its leaves."""
    tree = make()
    predicted = tree.predict_learn_many(stream.columns, stream.targets)
    return _mean_r2(stream, predicted), tree.n_leaves


def _apart(stream: Stream, make: Callable[[], Any] = HoeffdingTreeRegressor) -> tuple[float, int]:
    """Return the same for a model for each target, which learns the rows that have it."""
    predicted, leaves = {}, 0
    for name, y in stream.targets.items():
        tree, known = make(), ~np.isnan(y)
        columns = {feature: column[known] for feature, column in stream.columns.items()}
        predicted[name] = np.full(len(y), np.nan)
        predicted[name][known] = tree.predict_learn_many(columns, y[known])
        leaves += tree.n_leaves
    return _mean_r2(stream, predicted), leaves


def _mean_r2(stream: Stream, predicted: dict[str, FloatArray]) -> float:
    scores = []
    for name, y in stream.targets.items():
        scored = ~np.isnan(y)
        scored[:NOT_SCORED] = False
        error = y[scored] - predicted[name][scored]
        scores.append(1.0 - float(error @ error) / float(np.var(y[scored]) * scored.sum()))
    return float(np.mean(scores))


def _time_ratio(
    stream: Stream, repeats: int, make: Callable[[], Any] = HoeffdingTreeRegressor
) -> float:
    """Return how long one model takes for all targets, as a share of separate ones.

    All get what they learn as it is learned: arrays, or columns where there are words.
    """
    X: Any = stream.columns
    if not any(column.dtype == object for column in X.values()):
        X = np.column_stack(list(X.values()))
    Y = np.column_stack(list(stream.targets.values()))
    known = [~np.isnan(y) for y in stream.targets.values()]
    each = [(_rows(X, own), y[own]) for own, y in zip(known, stream.targets.values(), strict=True)]

    def together() -> None:
        make().predict_learn_many(X, Y)

    def apart() -> None:
        for x, y in each:
            make().predict_learn_many(x, y)

    actions: list[Callable[[], object]] = [together, apart]
    taken = [[nanoseconds(action) for action in actions] for _ in range(repeats)]
    one, separate = np.min(taken, axis=0).tolist()
    return float(one / separate)


def _rows(X: Any, kept: NDArray[np.bool_]) -> Any:
    """Return some rows of an array or of columns."""
    if isinstance(X, dict):
        return {name: column[kept] for name, column in X.items()}
    return X if kept.all() else X[kept]
