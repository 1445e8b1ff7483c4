"""What stages cost: a pair of predict_one and learn_one from a dict, and a batch, with and without.

Each model around another is measured in turn with the model alone, on rows of ten numbers of
Friedman's function: CPU time of the thread, the least of several runs. Times depend on the machine;
ratios of a batch much less. The first rows are not measured.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import friedman
from benchmarks.tables import Answer, Bound, Table
from benchmarks.timing import nanoseconds
from sapwood import (
    CorrectedRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    IntervalRegressor,
    LossRegressor,
    MonitoredRegressor,
    MultiViewRegressor,
    RecurringRegressor,
    ScreenedRegressor,
    SparseRegressor,
    TransformedRegressor,
)
from sapwood.lags import LaggedModel, Lags, NaiveStack

__all__ = ["FILE", "run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "stage_costs.csv"
FIRST, PAIRS, BATCH = 1_000, 2_000, 8_000
RUNS, QUICK_RUNS = 5, 1
MOST_US = 10.0  # of a pair, beyond the model inside
SINGLE = ("x0", "x1")
LAGS = (1, 24)  # which a model alone gets as columns


class Record(NamedTuple):
    """The microseconds of a row with and without stages around a model."""

    stages: str
    model: str
    pair: float
    pair_alone: float
    batch: float
    batch_alone: float


def tree(**own: Any) -> HoeffdingTreeRegressor:
    """Return a tree with defaults."""
    return HoeffdingTreeRegressor(**own)


def forest() -> ForestRegressor:
    """Return a forest in one thread."""
    return ForestRegressor(threads=1)


untracked = partial(tree, track=None)

Model = Callable[[], Any]
STAGES: dict[str, tuple[Callable[[Any], Any], str, Model]] = {
    "interval": (IntervalRegressor, "tree", tree),
    "lags": (lambda model: LaggedModel(model, Lags(LAGS)), "tree", tree),
    "interval(lags)": (
        lambda model: IntervalRegressor(LaggedModel(model, Lags(LAGS))),
        "forest",
        forest,
    ),
    "corrected": (CorrectedRegressor, "tree, track=None", untracked),
    "monitored": (MonitoredRegressor, "tree", tree),
    "loss huber": (lambda model: LossRegressor(model, "huber"), "tree", tree),
    "transform log1p": (lambda model: TransformedRegressor(model, "log1p"), "tree", tree),
    "views": (lambda model: MultiViewRegressor(model, without=SINGLE), "tree", tree),
    "screened": (lambda model: ScreenedRegressor(model, features=5), "tree", tree),
    "recurring": (RecurringRegressor, "tree", tree),
    "naive stack": (lambda model: NaiveStack(model, *SINGLE), "tree", tree),
    "sparse": (SparseRegressor, "tree", tree),
}
WITHIN = ("interval", "lags", "interval(lags)", "monitored")


def run(quick: bool = False) -> Answer:
    """Measure all stages.

    Parameters
    ----------
    quick : bool
        Measure each once.
    """
    X, y = friedman(np.random.default_rng(1), FIRST + max(PAIRS, BATCH))
    y -= y.min()  # as logarithms need
    columns = {f"x{place}": own for place, own in enumerate(np.ascontiguousarray(X.T))}
    lagged = {f"y.lag{lag}": np.concatenate([np.full(lag, np.nan), y[:-lag]]) for lag in LAGS}
    runs = QUICK_RUNS if quick else RUNS
    records = []
    for name, (around, model, make) in STAGES.items():
        pair, batch = np.full(2, np.inf), np.full(2, np.inf)
        for _ in range(runs):  # in turn, so that other work on the machine meets both
            for place, found in enumerate((around(make()), make())):
                own = {**columns, **lagged} if place and "lags" in name else columns
                found.learn_many(_part(own, 0, FIRST), y[:FIRST])
                pair[place] = min(pair[place], _pair(found.copy(), own, y))
                batch[place] = min(batch[place], _batch(found, own, y))
        records.append(Record(name, model, *pair.round(2), *batch.round(3)))
    table = Table("Microseconds of a row", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    bounds = [
        Bound(f"{each.stages}: pair beyond the model, us", each.pair - each.pair_alone, MOST_US)
        for each in records
        if each.stages in WITHIN
    ]
    return Answer([table], table, bounds)


def _part(columns: dict[str, NDArray[Any]], start: int, stop: int) -> dict[str, NDArray[Any]]:
    return {name: own[start:stop] for name, own in columns.items()}


def _pair(model: Any, columns: dict[str, NDArray[Any]], y: NDArray[np.float64]) -> float:
    """Return the microseconds of a prediction and of learning, from a dict."""
    own = [each.tolist() for each in _part(columns, FIRST, FIRST + PAIRS).values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*own, strict=True)]
    labels = y[FIRST : FIRST + PAIRS].tolist()

    def follow() -> None:
        for x, label in zip(rows, labels, strict=True):
            model.predict_one(x)
            model.learn_one(x, label)

    return nanoseconds(follow) / PAIRS / 1_000


def _batch(model: Any, columns: dict[str, NDArray[Any]], y: NDArray[np.float64]) -> float:
    """Return the microseconds of a row of a batch that is predicted and learned."""
    rows, labels = _part(columns, FIRST, FIRST + BATCH), y[FIRST : FIRST + BATCH]
    taken = nanoseconds(lambda: model.predict_learn_many(rows, labels))
    return taken / BATCH / 1_000
