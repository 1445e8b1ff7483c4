"""What columns that a user can add bring: cells and rotations of locations, crosses, and lags.

Each score is an R² from row 1,000 on, up to 10,000 rows. Locations and crosses: labels by 1,000, for
models with default parameters; LightGBM and the nearest neighbours (10 of them, columns standardised)
are refitted with all rows so far whenever 1,000 labels arrive, both without added columns. Rotated
columns are the standardised pair in 2 further directions between its axes; cells are crosses of both
numbers, rounded to an 8th, a 16th and a 32nd of the larger standard deviation. These sizes were chosen
among seven sets on both real locations and on other seeds of oblique stripes; the other generated
locations had no part in it. A cross of categories is a text of both values. Lags: blocks of 24
rows are predicted and then learned; the lags are the values 24, 48 and 168 rows before and the mean of
the last known 24. "Views" and cells are MultiViewRegressor, whose constants are those of forests.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import hard_cases
from benchmarks.data_sets import Columns, DataSet
from benchmarks.tables import Answer, Bound, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor, MultiViewRegressor

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "hard_columns.csv"
ROWS, QUICK_ROWS, SEEDS = 10_000, 3_000, 2
NEIGHBOURS, BLOCK, DAY = 10, 1_000, 24
CELLS = (8, 16, 32)  # in a standard deviation
LAGS = (24, 48, 168)
LOCATIONS = {"california": ("longitude", "latitude"), "maximum temperature": ("lon", "lat")}
PAIR = (("store", "item"),)
CROSSES = {
    "bike": (("hr", "workingday"),),
    "metro": (("hour", "weekday"),),
    "diamonds": (("cut", "color"), ("color", "clarity"), ("cut", "clarity")),
}
LAGGED = ("without lags", "with lags", "mean of both", "views")
SERIES = ("bike", "metro", "Beijing PM2.5", "dew point", "wind")
MODELS: dict[str, Callable[[], Any]] = {
    "tree": HoeffdingTreeRegressor,
    "forest": lambda: ForestRegressor(threads=1),
}


class Record(NamedTuple):
    """A score."""

    case: str
    stream: str
    model: str
    columns: str
    r2: float
    microseconds: float | None = None  # of the processor for a row, by our models


class Case(NamedTuple):
    """A stream, and the columns that are added to it, by how they are called."""

    case: str
    data: DataSet
    added: dict[str, Columns]
    crosses: tuple[Any, ...] = ()


def run(quick: bool = False) -> Answer:
    """Evaluate models on all streams.

    Parameters
    ----------
    quick : bool
        Whether a few rows of generated streams are enough.
    """
    rows = QUICK_ROWS if quick else ROWS
    real = [] if quick else list(hard_cases._real(rows))
    cases = [case for seed in range(1 if quick else SEEDS) for case in _generated(rows, seed)]
    cases += [case for data in real for case in _of_real(data)]
    records = [record for case in cases for record in _records(case)]
    records += [record for data in real if data.name in SERIES for record in _lagged(data)]
    table = Table("R² with and without added columns", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    found = {(each.stream, each.model, each.columns): each.r2 for each in records}
    gains = [
        r2 - found[stream, model, "plain"]
        for (stream, model, columns), r2 in found.items()
        if columns == "crosses" and stream.startswith("store")
    ]
    return Answer([table], table, [Bound("mean gain of a cross", float(np.mean(gains)), 0.0, True)])


def _records(case: Case) -> Iterator[Record]:
    """Yield the scores of models without and with added columns, and of alternatives."""
    data = case.data
    for name, make in MODELS.items():
        for columns, added in {"plain": {}, **case.added}.items():
            wider = DataSet(data.name, {**data.columns, **added}, data.y)
            yield _timed(case.case, wider, name, columns, make())
        views = MultiViewRegressor(make(), crosses=case.crosses)
        yield _timed(case.case, data, name, "views", views)
    others = {"LightGBM": hard_cases._of_lightgbm}
    if case.case == "location":
        others["nearest neighbours"] = _of_neighbours
    for name, predicted in others.items():
        yield Record(case.case, data.name, name, "plain", hard_cases._r2(predicted(data), data.y))


def _timed(case: str, data: DataSet, name: str, columns: str, model: Any) -> Record:
    """Return the score of a model, and its time for a row."""
    start = time.thread_time_ns()
    predictions = hard_cases._predictions(model, data, "by 1,000", is_open=False)
    cost = (time.thread_time_ns() - start) / 1e3 / len(data.y)
    return Record(case, data.name, name, columns, hard_cases._r2(predictions, data.y), cost)


def _of_neighbours(data: DataSet) -> FloatArray:
    """Return what the nearest neighbours predict; NaN without scikit-learn."""
    try:
        from sklearn.neighbors import KNeighborsRegressor
    except ImportError:
        return np.full(len(data.y), np.nan)
    X = np.column_stack([hard_cases._coded(column) for column in data.columns.values()])
    X = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0))
    predicted = np.full(len(data.y), data.y[:BLOCK].mean())
    for start in range(BLOCK, len(data.y), BLOCK):
        model = KNeighborsRegressor(NEIGHBOURS).fit(X[:start], data.y[:start])
        predicted[start : start + BLOCK] = model.predict(X[start : start + BLOCK])
    return predicted


# -- locations and crosses -------------------------------------------------------------------------


def _generated(rows: int, seed: int) -> Iterator[Case]:
    """Yield locations, and categories with and without a cross."""
    rng = np.random.default_rng(30 + seed)
    x, noise = rng.random((rows, 2)), rng.normal(size=rows)
    pair = {"east": x[:, 0], "north": x[:, 1]}
    for name, surface in _surfaces(x, seed).items():
        data = DataSet(f"{name}, seed {seed}", pair, surface + 0.3 * noise)
        yield Case("location", data, _rotated(pair), _cells(pair))
    stores, items = rng.integers(0, 10, rows), rng.integers(0, 20, rows)
    of_store, of_item = rng.normal(size=10), rng.normal(size=20)
    both = rng.normal(size=(10, 20))
    columns: Columns = {
        "store": np.array([f"store {each}" for each in stores], object),
        "item": np.array([f"item {each}" for each in items], object),
    }
    sums = of_store[stores] + of_item[items] + 0.5 * noise
    for name, y in (
        ("store and item, with a cross", sums + both[stores, items]),
        ("store and item, sums only", sums),
    ):
        data = DataSet(f"{name}, seed {seed}", columns, y)
        yield Case("crosses", data, {"crosses": _crossed(columns, PAIR)}, PAIR)


def _surfaces(x: FloatArray, seed: int) -> Columns:
    """Return what depends on a location: oblique stripes, regions with a level each, and hills."""
    rng = np.random.default_rng(60 + seed)
    places = rng.random((40, 2))
    squares = ((x[:, None, :] - places) ** 2).sum(axis=2)
    return {
        "oblique stripes": np.sin(6 * (x[:, 0] + 0.7 * x[:, 1])) + x[:, 0] * x[:, 1],
        "regions": rng.normal(size=40)[squares.argmin(axis=1)],
        "hills": np.exp(-squares / 0.02) @ rng.normal(size=40),
    }


def _of_real(data: DataSet) -> Iterator[Case]:
    if data.name in LOCATIONS:
        pair = {name: data.columns[name] for name in LOCATIONS[data.name]}
        added, cells = _rotated(pair), _cells(pair)
        yield Case("location", DataSet(f"{data.name}, location alone", pair, data.y), added, cells)
        yield Case("location", data, added, cells)
    if data.name in CROSSES:
        pairs = CROSSES[data.name]
        yield Case("crosses", data, {"crosses": _crossed(data.columns, pairs)}, pairs)


def _rotated(pair: Columns) -> dict[str, Columns]:
    """Return a pair of numbers in 2 further directions."""
    a, b = ((each - np.nanmean(each)) / np.nanstd(each) for each in pair.values())
    turns = (np.pi / 4, 3 * np.pi / 4)
    return {
        "2 rotated": {f"rotated {turn:.2f}": np.cos(turn) * a + np.sin(turn) * b for turn in turns}
    }


def _cells(pair: Columns) -> tuple[Any, ...]:
    """Return crosses of a pair of numbers in cells of three sizes."""
    spread = max(float(np.nanstd(each)) for each in pair.values())
    return tuple((*pair, spread / count) for count in CELLS)


def _crossed(columns: Columns, pairs: tuple[tuple[str, str], ...]) -> Columns:
    return {
        f"{a} and {b}": np.array(
            [f"{u}|{v}" for u, v in zip(columns[a], columns[b], strict=True)], object
        )
        for a, b in pairs
    }


# -- lags ------------------------------------------------------------------------------------------


def _lagged(data: DataSet) -> Iterator[Record]:
    """Yield the scores without lags, with lags, of the mean of both, and of the last known day."""
    y = data.y
    past = {f"lag {lag}": np.concatenate([np.full(lag, np.nan), y[:-lag]]) for lag in LAGS}
    starts = np.arange(len(y)) // DAY * DAY
    sums = np.concatenate([[0.0], np.cumsum(y)])
    past["mean"] = np.where(starts >= DAY, (sums[starts] - sums[starts - DAY]) / DAY, np.nan)
    for name, make in MODELS.items():
        found = [_by_days(make(), more, y) for more in (data.columns, {**data.columns, **past})]
        views = MultiViewRegressor(make(), without=[*past])
        found.append(_by_days(views, {**data.columns, **past}, y))
        predicted = {
            "views": found[2],
            "without lags": found[0],
            "with lags": found[1],
            "mean of both": (found[0] + found[1]) / 2,
        }
        for columns, predictions in predicted.items():
            yield Record("lags", data.name, name, columns, hard_cases._r2(predictions, y))
    yield Record("lags", data.name, "a day before", "lag 24", hard_cases._r2(past["lag 24"], y))


def _by_days(model: Any, columns: Columns, y: FloatArray) -> FloatArray:
    """Return predictions of blocks of 24 rows, each of which is then learned."""
    predicted = np.empty(len(y))
    for start in range(0, len(y), DAY):
        part = slice(start, start + DAY)
        rows = {name: column[part] for name, column in columns.items()}
        predicted[part] = model.predict_many(rows)
        model.learn_many(rows, y[part])
    return predicted
