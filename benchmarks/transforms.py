"""What a transform of the target brings: R² and Poisson deviance, with and without it.

Counts and log-normal targets are generated, three seeds each; bike rentals, traffic, PM2.5 and
diamond prices are real. Labels arrive at once, or by 1,000. Constants were chosen on bike rentals,
traffic and the generated streams of seed 0.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.data_sets import DataSet
from benchmarks.tables import Answer, Bound, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor, TransformedRegressor

__all__ = ["FILE", "counts", "deviance", "follow", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "transforms.csv"
ROWS, QUICK_ROWS, SKIPPED, BLOCK, SEEDS = 20_000, 3_000, 1_000, 1_000, 3
REAL = ("bike", "metro", "Beijing PM2.5", "diamonds")
TRANSFORMS = (None, "auto", "sqrt", "log1p")
MAY_LOSE = 0.01
MODELS: dict[str, Callable[[], Any]] = {
    "tree": HoeffdingTreeRegressor,
    "forest": partial(ForestRegressor, threads=1),
}


class Record(NamedTuple):
    """The scores of a model with some transform on a stream."""

    stream: str
    labels: str
    model: str
    transform: str
    r2: float
    deviance: float
    negative: float


def run(quick: bool = False) -> Answer:
    """Evaluate all models with all transforms.

    Parameters
    ----------
    quick : bool
        Whether a few rows of generated streams are enough.
    """
    rows = QUICK_ROWS if quick else ROWS
    streams = [
        make(rows, seed) for make in (counts, _log_normal) for seed in range(1 if quick else SEEDS)
    ]
    if not quick:
        found = map(data_sets.load, REAL)
        streams += [data.head(rows) for data in found if data is not None]
    records = [
        _record(data, by, name, transform)
        for data in streams
        for by in ("at once", "by 1,000")
        for name in MODELS
        for transform in TRANSFORMS
    ]
    table = Table("Transforms of the target", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    scores = {record[:4]: record for record in records}
    pairs = [(record, scores[(*record[:3], "auto")]) for record in records if not record.transform]
    worst = min(auto.r2 - alone.r2 for alone, auto in pairs)
    better = np.mean([auto.deviance < alone.deviance for alone, auto in pairs])
    bounds = [
        Bound("least difference in R² of auto and the model alone", worst, -MAY_LOSE, True),
        Bound("share of cases in which auto has the lower deviance", float(better), 0.9, True),
        Bound("negative predictions of auto", max(auto.negative for _, auto in pairs), 0.0),
    ]
    return Answer([table], table, bounds)


def _record(data: DataSet, by: str, name: str, transform: Any) -> Record:
    model = MODELS[name]()
    if transform is not None:
        model = TransformedRegressor(model, transform)
    predictions = follow(model, data, by)
    y, p = data.y[SKIPPED:], predictions[SKIPPED:]
    r2 = 1.0 - np.sum((y - p) ** 2) / np.sum((y - y.mean()) ** 2)
    negative = float(np.mean(p < 0.0))
    return Record(data.name, by, name, transform or "", float(r2), deviance(y, p), negative)


def follow(model: Any, data: DataSet, by: str) -> FloatArray:
    """Return what a model predicts for each row of a stream, whose labels arrive "at once" or late.

    Parameters
    ----------
    model : Regressor or Stage
        A new one.
    data : DataSet
        The stream.
    by : str
        When labels arrive: "at once", or by 1,000.
    """
    if by == "at once":
        return np.asarray(model.predict_learn_many(data.columns, data.y))
    predictions = np.empty(len(data.y))
    for start in range(0, len(data.y), BLOCK):
        part = slice(start, start + BLOCK)
        columns = {name: column[part] for name, column in data.columns.items()}
        predictions[part] = model.predict_many(columns)
        model.learn_many(columns, data.y[part])
    return predictions


def deviance(y: FloatArray, p: FloatArray) -> float:
    """Return the mean Poisson deviance; predictions are held above a thousandth of the mean.

    Parameters
    ----------
    y, p : array
        The counts, and their predictions.
    """
    p = np.maximum(p, 1e-3 * y.mean())
    logs = np.log(np.where(y > 0.0, y, 1.0) / p)
    return float(2.0 * np.mean(np.where(y > 0.0, y * logs, 0.0) - (y - p)))


def _signal(rows: int, seed: int) -> tuple[np.random.Generator, dict[str, FloatArray], FloatArray]:
    rng = np.random.default_rng(seed)
    x = {f"x{place}": rng.random(rows) for place in range(6)}
    waves = 0.3 + 1.2 * np.sin(3.0 * x["x0"]) + 1.5 * x["x1"] * x["x2"]
    return rng, x, waves + 0.7 * (x["x3"] > 0.5)


def counts(rows: int, seed: int) -> DataSet:
    """Return generated counts of six features, four of which matter.

    Parameters
    ----------
    rows : int
        How many.
    seed : int
        Of the generator.
    """
    rng, x, logs = _signal(rows, seed)
    return DataSet(f"counts, seed {seed}", x, rng.poisson(np.exp(logs)).astype(np.float64))


def _log_normal(rows: int, seed: int) -> DataSet:
    rng, x, logs = _signal(rows, seed)
    return DataSet(f"log-normal, seed {seed}", x, np.exp(logs + 0.8 * rng.normal(size=rows)))
