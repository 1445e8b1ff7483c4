"""Agreement of feature importances, estimated during learning, with permutation importance.

Permutation importance is measured as by scikit-learn's ``permutation_importance``: the growth of the
mean squared error over the last rows if the values of a feature are shuffled among them, the mean
of several repetitions. Both are compared by their ranks.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks import data_sets, target_streams
from benchmarks.peers import sets
from benchmarks.tables import Answer, Cell, Table
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

STREAMS = ("bike", "metro", "Beijing PM2.5", "california", "diamonds", "deliveries")
LAST_ROWS = 3_000  # among which values are shuffled
REPEATS = 20
SEVERAL_ROWS = 50_000  # at most, of streams with several targets
MOST_TARGETS = 3  # of a stream whose targets are reported one by one


def run(quick: bool) -> Answer:
    """Compare both on real streams.

    Parameters
    ----------
    quick : bool
        Shuffle twice, not 20 times.
    """
    repeats = 2 if quick else REPEATS
    one = [row for name in STREAMS for row in _one_target(name, repeats)]
    several = [
        row
        for stream in target_streams.streams(SEVERAL_ROWS)
        if len(stream.targets) <= MOST_TARGETS
        for row in _several_targets(stream, repeats)
    ]
    heads = ("stream", "features", "with", "rank correlation")
    records = Table("One tree of one target", heads, one)
    heads = ("stream", "target", "one tree", "a tree each")
    return Answer([records, Table("One tree of several targets", heads, several)], records)


def _one_target(name: str, repeats: int) -> list[tuple[Cell, ...]]:
    found = data_sets.load(name) if name in data_sets.REAL else sets.real(name)
    if found is None:
        return []
    columns = {str(name): np.asarray(column, object) for name, column in found.columns.items()}
    rows: list[tuple[Cell, ...]] = []
    for track in ("auto", None):
        tree = HoeffdingTreeRegressor(track=track)
        tree.predict_learn_many({key: list(own) for key, own in columns.items()}, found.y)
        costs = _costs(tree, columns, {"": found.y}, repeats)[""]
        layer = "error-correction layer" if track else "track=None"
        rows.append((name, len(costs), layer, _agreement(tree.feature_importances, costs)))
    return rows


def _several_targets(stream: target_streams.Stream, repeats: int) -> list[tuple[Cell, ...]]:
    together = HoeffdingTreeRegressor(track=None)
    together.learn_many(stream.columns, stream.targets)
    costs = _costs(together, stream.columns, stream.targets, repeats)
    rows: list[tuple[Cell, ...]] = []
    for name, y in stream.targets.items():
        known = ~np.isnan(y)
        columns = {key: own[known] for key, own in stream.columns.items()}
        alone = HoeffdingTreeRegressor(track=None)
        alone.learn_many(columns, y[known])
        own = _costs(alone, columns, {"": y[known]}, repeats)[""]
        shares = together.of_target(name).feature_importances
        agreements = _agreement(shares, costs[name]), _agreement(alone.feature_importances, own)
        rows.append((stream.name, name, *agreements))
    units = {name: np.nanvar(y) for name, y in stream.targets.items()}
    total = {
        key: float(np.mean([costs[name][key] / units[name] for name in units]))
        for key in stream.columns
    }
    rows.append((stream.name, "all", _agreement(together.feature_importances, total), None))
    return rows


def _costs(
    tree: HoeffdingTreeRegressor, columns: Columns, y: Mapping[str, FloatArray], repeats: int
) -> dict[str, dict[str, float]]:
    """Return, of each target, what it costs to shuffle each feature among the last rows."""
    rng = np.random.default_rng(1)
    last = {name: column[-LAST_ROWS:] for name, column in columns.items()}
    right = {name: column[-LAST_ROWS:] for name, column in y.items()}
    usual = _squares(tree, last, right)
    found: dict[str, dict[str, float]] = {name: {} for name in y}
    for feature, column in last.items():
        grown = []
        for _ in range(repeats):
            shuffled = {**last, feature: column[rng.permutation(len(column))]}
            own = _squares(tree, shuffled, right)
            grown.append([own[name] - usual[name] for name in y])
        for name, cost in zip(y, np.mean(grown, axis=0), strict=True):
            found[name][feature] = float(cost)
    return found


def _squares(
    tree: HoeffdingTreeRegressor, columns: Columns, y: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return the mean squared error of each target."""
    predicted = tree.predict_many({name: column.tolist() for name, column in columns.items()})
    if not isinstance(predicted, dict):
        predicted = dict.fromkeys(y, predicted)
    return {name: float(np.nanmean((own - predicted[name]) ** 2)) for name, own in y.items()}


def _agreement(shares: Mapping[Any, float], costs: Mapping[str, float]) -> float:
    """Return the rank correlation of importances with costs."""
    return float(spearmanr([shares[name] for name in costs], list(costs.values()))[0])
