"""Agreement of feature importances, estimated during learning, with permutation importance.

Permutation importance is measured as by scikit-learn's ``permutation_importance``: the growth of the
mean squared error over the last rows if the values of a feature are shuffled among them, the mean
of several repetitions. Both are compared by their ranks; those of forests by their sizes, too.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks import data_sets, target_streams
from benchmarks.peers import sets
from benchmarks.tables import Answer, Cell, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

STREAMS = ("bike", "metro", "Beijing PM2.5", "california", "diamonds", "deliveries")
FURTHER = ("puma8NH", "maximum temperature", "dew point", "wind")  # of forests
FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "importances.csv"
FOREST_ROWS, FOREST_REPEATS, SEEDS = 12_000, 5, (1, 2, 3)
LAST_ROWS = 3_000  # among which values are shuffled
REPEATS = 20
SEVERAL_ROWS = 50_000  # at most, of streams with several targets
MOST_TARGETS = 3  # of a stream whose targets are reported one by one


class ForestRecord(NamedTuple):
    """Agreement of a forest's importances with permutation importance.

    Distances are sums of absolute differences of shares, 0 to 2.
    """

    stream: str
    seed: int
    rank: float  # correlation
    distance: float
    mean_rank: float  # of the mean over members, each by itself
    mean_distance: float
    halves: float  # distance between the permutation importances of both halves of the last rows


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
    forests = Table("Forests", ForestRecord._fields, [*_forests(SEEDS[:1] if quick else SEEDS)])
    if not quick:
        forests.write_csv(FILE)
    heads = ("stream", "features", "with", "rank correlation")
    records = Table("One tree of one target", heads, one)
    heads = ("stream", "target", "one tree", "a tree each")
    return Answer([records, Table("One tree of several targets", heads, several), forests], records)


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


def _forests(seeds: tuple[int, ...]) -> Iterator[ForestRecord]:
    for name in (*STREAMS, *FURTHER):
        known = name in data_sets.REAL or name in data_sets.FURTHER
        found = data_sets.load(name) if known else sets.real(name)
        if found is None:
            continue
        data = found.head(FOREST_ROWS)
        columns = {str(key): np.asarray(own, object) for key, own in data.columns.items()}
        for seed in seeds:
            forest = ForestRegressor(seed=seed)
            forest.learn_many({key: list(own) for key, own in columns.items()}, data.y)
            yield _of_forest(name, seed, forest, columns, data.y)


def _of_forest(
    name: str, seed: int, forest: ForestRegressor, columns: Columns, y: FloatArray
) -> ForestRecord:
    half = LAST_ROWS // 2
    costs = _costs(forest, columns, {"": y}, FOREST_REPEATS)[""]
    both = [
        _costs(forest, {key: own[part] for key, own in columns.items()}, {"": y[part]}, 2)[""]
        for part in (slice(-LAST_ROWS, -half), slice(-half, None))
    ]
    members = [
        forest.member(place).feature_importances for place in range(len(forest.summary.members) - 1)
    ]
    mean = {key: float(np.mean([own[key] for own in members])) for key in costs}
    own = forest.feature_importances
    return ForestRecord(
        name,
        seed,
        _agreement(own, costs),
        _distance(own, costs),
        _agreement(mean, costs),
        _distance(mean, costs),
        _distance(*both),
    )


def _distance(shares: Mapping[Any, float], costs: Mapping[str, float]) -> float:
    """Return the sum of absolute differences of shares, of which none is below 0."""
    one, other = (np.maximum([found[name] for name in costs], 0.0) for found in (shares, costs))
    return float(np.abs(one / one.sum() - other / other.sum()).sum())


def _costs(
    tree: HoeffdingTreeRegressor | ForestRegressor,
    columns: Columns,
    y: Mapping[str, FloatArray],
    repeats: int,
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
    tree: HoeffdingTreeRegressor | ForestRegressor, columns: Columns, y: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return the mean squared error of each target."""
    rows = {name: column.tolist() for name, column in columns.items()}
    predicted = tree.predict_many(rows, record=False)
    if not isinstance(predicted, dict):
        predicted = dict.fromkeys(y, predicted)
    return {name: float(np.nanmean((own - predicted[name]) ** 2)) for name, own in y.items()}


def _agreement(shares: Mapping[Any, float], costs: Mapping[str, float]) -> float:
    """Return the rank correlation of importances with costs."""
    return float(spearmanr([shares[name] for name in costs], list(costs.values()))[0])
