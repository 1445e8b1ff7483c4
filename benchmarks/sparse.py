"""Rows of a few of very many names: R² and cost of a row, with and without a sparse linear model.

Labels arrive at once, and rows one by one. Models alone get a column for each name instead, of the
most frequent ones if there are too many: all names are known before the first row. Generated rows
have 20 of 3,000 words: effects of words add up, or pairs of frequent words have an effect, too. The
real streams are turned into tags: each value, rounded, is a name. Streams of 500 numbers, of which
10 matter, are no sparse rows: there the most useful features are chosen. Constants were chosen on
other seeds of words; the other streams had no part in it. The alternative is the linear regression
of river with AdaGrad, of y as it is and of a standardised y.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.tables import Answer, Bound, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor, SparseRegressor

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "sparse.csv"
ROWS, QUICK_ROWS, SKIPPED = 3_000, 1_500, 1_000
SEEDS = (20, 21)
WORDS, LENGTH, FREQUENT, PAIRS = 3_000, 20, 40, 30
MOST_COLUMNS = 4_000
REAL = ("metro", "diamonds")


class Stream(NamedTuple):
    """Rows as dicts, and their labels."""

    name: str
    rows: list[dict[str, float]]
    y: FloatArray


class Record(NamedTuple):
    """The score of a model on a stream, and the CPU time of a row: predicted, then learned."""

    stream: str
    model: str
    r2: float
    microseconds: float


def _river(is_scaled: bool) -> Any:
    from river import linear_model, optim, preprocessing

    model = linear_model.LinearRegression(optimizer=optim.AdaGrad(0.3))
    return preprocessing.TargetStandardScaler(model) if is_scaled else model


MODELS: dict[str, Callable[[], Any]] = {
    "sparse, tree": lambda: SparseRegressor(HoeffdingTreeRegressor()),
    "sparse, forest": lambda: SparseRegressor(ForestRegressor(threads=1)),
    "river": lambda: _river(is_scaled=False),
    "river, scaled y": lambda: _river(is_scaled=True),
}
ALONE: dict[str, Callable[[], Any]] = {
    "tree alone": HoeffdingTreeRegressor,
    "forest alone": lambda: ForestRegressor(threads=1),
}


def run(quick: bool = False) -> Answer:
    """Evaluate all models on all streams.

    Parameters
    ----------
    quick : bool
        Whether a few rows of generated streams are enough.
    """
    rows = QUICK_ROWS if quick else ROWS
    seeds = SEEDS[:1] if quick else SEEDS
    streams = [*_generated(rows, seeds), *_numbers(rows, seeds)]
    if not quick:
        streams += _real(rows)
    records = [_record(stream, name) for stream in streams for name in MODELS]
    records += [_alone(stream, "tree alone") for stream in streams]
    records += [_alone(stream, "forest alone") for stream in streams if stream.name[0] == "5"]
    table = Table("Sparse rows", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    scores = {(each.stream, each.model): each for each in records}
    gains = [
        scores[stream.name, "sparse, tree"].r2 - scores[stream.name, other].r2
        for stream in streams
        for other in ("river", "river, scaled y")
    ]
    screened = [
        each.r2 - scores[each.stream, "forest alone"].r2
        for each in records
        if each.model == "sparse, forest" and (each.stream, "forest alone") in scores
    ]
    ratios = [
        scores[stream.name, "tree alone"].microseconds
        / scores[stream.name, "sparse, tree"].microseconds
        for stream in streams
        if stream.name.startswith("words")
    ]
    bounds = [
        Bound("least gain in R² of the sparse tree over river", min(gains), 0.0, True),
        Bound("least gain over a forest of 500 features", min(screened), 0.05, True),
        Bound("how many times faster it is than a tree alone", min(ratios), 3.0, True),
    ]
    return Answer([table], table, bounds)


def _record(stream: Stream, name: str) -> Record:
    model, found = MODELS[name](), np.empty(len(stream.y))
    labels = stream.y.tolist()
    start = time.thread_time()
    for place, x in enumerate(stream.rows):
        found[place] = model.predict_one(x)
        model.learn_one(x, labels[place])
    return _scored(stream, name, found, time.thread_time() - start)


def _alone(stream: Stream, name: str) -> Record:
    """Return the score of a model that gets a column for each name."""
    counts = Counter(key for x in stream.rows for key in x)
    names = [key for key, _ in counts.most_common(MOST_COLUMNS)]
    places = {key: place for place, key in enumerate(names)}
    X = np.zeros((len(stream.y), len(names)))
    for row, x in enumerate(stream.rows):
        for key, value in x.items():
            if key in places:
                X[row, places[key]] = value
    start = time.thread_time()
    found = ALONE[name]().predict_learn_many(X, stream.y)
    return _scored(stream, name, found, time.thread_time() - start)


def _scored(stream: Stream, name: str, found: FloatArray, seconds: float) -> Record:
    error, y = found[SKIPPED:] - stream.y[SKIPPED:], stream.y[SKIPPED:]
    r2 = 1.0 - np.sum(error**2) / np.sum((y - y.mean()) ** 2)
    return Record(stream.name, name, float(r2), 1e6 * seconds / len(found))


def _generated(rows: int, seeds: tuple[int, ...]) -> Iterator[Stream]:
    for seed in seeds:
        for has_pairs in (False, True):
            rng = np.random.default_rng(seed)
            shares = np.cumsum(1.0 / np.arange(3, WORDS + 3))
            effects = rng.normal(size=WORDS)
            pairs = rng.integers(0, FREQUENT, (PAIRS, 2))
            joint = 3.0 * rng.normal(size=PAIRS)
            found, y = [], np.empty(rows)
            for place in range(rows):
                draws = shares[-1] * rng.random(max(3, rng.poisson(LENGTH)))
                own = np.unique(np.searchsorted(shares, draws))
                y[place] = effects[own].sum()
                if has_pairs:
                    y[place] += np.isin(pairs, own).all(axis=1) @ joint
                found.append({f"w{word}": 1.0 for word in own.tolist()})
            y += 0.3 * y.std() * rng.normal(size=rows)
            name = "words and pairs" if has_pairs else "words"
            yield Stream(f"{name}, seed {seed}", found, y)


def _numbers(rows: int, seeds: tuple[int, ...]) -> Iterator[Stream]:
    """Yield streams of 500 numbers, of which 10 matter."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(rows, 500))
        y = x[:, :5] @ [1.0, 1.0, 1.0, 0.7, 0.7] + 2.0 * np.maximum(x[:, 5], 0.0)
        y += 1.5 * np.sin(2.0 * x[:, 6]) + x[:, 7] * x[:, 8] + 1.5 * (x[:, 9] > 0.0)
        y += rng.normal(size=rows)
        found = [{f"x{place}": value for place, value in enumerate(row)} for row in x.tolist()]
        yield Stream(f"500 features, seed {seed}", found, y)


def _real(rows: int) -> Iterator[Stream]:
    for data in filter(None, map(data_sets.load, REAL)):
        part = data.head(rows)
        columns = [
            [f"{name} {_tag(value)}" for value in column] for name, column in part.columns.items()
        ]
        found = [dict.fromkeys(tags, 1.0) for tags in zip(*columns, strict=True)]
        yield Stream(f"tags of {data.name}", found, part.y)


def _tag(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
