"""Hundreds of features of which few matter: forests and trees alone, screened, and LightGBM.

Each stream has 500 features, of which 4 to 18 are its own. Those of real streams are completed by
shuffled copies of their own features. Scores are R² from row 1,000 on of 5,000 rows, with labels at
once and by 1,000, and a row costs so many microseconds of the processor, predicted and learned in
batches. LightGBM with its defaults is refitted with all rows so far whenever 1,000 labels arrive. The
constants of `ScreenedRegressor` were chosen on Friedman's function, tents and products of seed 1, and
on bike, california and puma8NH; streams and seeds here are others. "Narrow" streams have the features
of real streams alone, where screening finds few numbers, and should lose nothing.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets, hard_cases
from benchmarks.data_sets import DataSet
from benchmarks.tables import Answer, Bound, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor, ScreenedRegressor

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "hard_features.csv"
ROWS, QUICK_ROWS, SKIPPED, BLOCK, WIDTH = 5_000, 2_000, 1_000, 1_000, 500
SEEDS = (20, 21)
REAL = ("diamonds", "maximum temperature", "wind")
NARROW = ("diamonds", "wind")
TIMINGS = ("at once", "by 1,000")
MODELS: dict[str, Callable[[], Any]] = {
    "tree": HoeffdingTreeRegressor,
    "tree, screened": lambda: ScreenedRegressor(HoeffdingTreeRegressor()),
    "forest": lambda: ForestRegressor(threads=1),
    "forest, screened": lambda: ScreenedRegressor(ForestRegressor(threads=1)),
}


class Record(NamedTuple):
    """The score of a model on a stream, and the CPU time of a row."""

    stream: str
    labels: str
    model: str
    r2: float
    microseconds: float


def run(quick: bool = False) -> Answer:
    """Evaluate models on all streams.

    Parameters
    ----------
    quick : bool
        Whether a few rows of generated streams of one seed are enough.
    """
    rows, seeds = (QUICK_ROWS, SEEDS[:1]) if quick else (ROWS, SEEDS)
    streams = [data for seed in seeds for data in _generated(rows, seed)]
    if not quick:
        streams += _real(rows)
    records = [record for data in streams for record in _records(data)]
    table = Table("R² and microseconds of a row", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    found = {(r.stream, r.labels, r.model): r.r2 for r in records}
    gains = [
        score - found[stream, labels, "forest"]
        for (stream, labels, model), score in found.items()
        if model == "forest, screened"
    ]
    return Answer([table], table, [Bound("least gain of forests", min(gains), -0.003, True)])


def _records(data: DataSet) -> Iterator[Record]:
    for labels in TIMINGS:
        for name, make in MODELS.items():
            start = time.process_time()
            found = hard_cases._predictions(make(), data, labels, is_open=False)
            spent = 1e6 * (time.process_time() - start) / len(data.y)
            yield Record(data.name, labels, name, hard_cases._r2(found, data.y), spent)
    found = hard_cases._of_lightgbm(data)
    yield Record(data.name, "by 1,000", "LightGBM", hard_cases._r2(found, data.y), np.nan)


def _generated(rows: int, seed: int) -> Iterator[DataSet]:
    rng = np.random.default_rng(seed)
    x, z, noise = rng.random((rows, WIDTH)), rng.normal(size=(rows, WIDTH)), rng.normal(size=rows)
    friedman = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    friedman += 10 * x[:, 3] + 5 * x[:, 4]
    tents = np.abs(z[:, :5]).sum(axis=1) + z[:, 5:10] @ rng.normal(size=5)
    products = z[:, 0] * z[:, 1] + z[:, 2] + z[:, 3] * (z[:, 4] > 0)
    steps = (z[:, :8] > rng.normal(size=8)) @ rng.normal(size=8)
    for name, matrix, y in (
        ("Friedman", x, friedman + noise),
        ("tents", z, tents + 0.5 * noise),
        ("products", z, products + 0.5 * noise),
        ("steps", z, steps + 0.5 * noise),
    ):
        yield DataSet(f"{name}, seed {seed}", hard_cases._columns(matrix), y)


def _real(rows: int) -> Iterator[DataSet]:
    for name in REAL:
        data = data_sets.load(name)
        if data is None:
            continue
        data, rng = data.head(rows), np.random.default_rng(1)
        if name in NARROW:
            yield data._replace(name=f"{name}, narrow")
        columns = dict(data.columns)
        numbers = [each for each in columns.values() if each.dtype != object]
        for place in range(WIDTH - len(columns)):
            columns[f"shuffled {place}"] = rng.permutation(numbers[place % len(numbers)])
        yield data._replace(columns=columns)
