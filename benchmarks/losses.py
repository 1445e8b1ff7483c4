"""What other losses bring: R², Poisson deviance, and R² of the truth where labels have outliers.

Counts are generated (three seeds) and real (bike rentals, traffic). Outliers are one per cent of the
labels of Friedman's function and of bike rentals, multiplied by 100; errors are of the labels
without them. Labels arrive at once, or by 1,000. Constants were chosen on counts of seed 0, on
Friedman's function of seed 0 and on bike rentals.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.data_sets import DataSet
from benchmarks.tables import Answer, Bound, Table
from benchmarks.transforms import counts, deviance, follow
from sapwood import HoeffdingTreeRegressor, LossRegressor, TransformedRegressor

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "losses.csv"
ROWS, QUICK_ROWS, SKIPPED, SEEDS = 10_000, 2_000, 1_000, 3
FACTOR, SHARE = 100.0, 0.01


class Record(NamedTuple):
    """The scores of a model on a stream."""

    stream: str
    labels: str
    model: str
    r2: float
    deviance: float | None


def run(quick: bool = False) -> Answer:
    """Evaluate all models.

    Parameters
    ----------
    quick : bool
        Whether a few rows of generated streams are enough.
    """
    rows, seeds = (QUICK_ROWS, 1) if quick else (ROWS, SEEDS)
    real = [] if quick else [data_sets.load(name) for name in ("bike", "metro")]
    found = [data.head(rows) for data in real if data is not None]
    records = [
        _record(data, data.y, by, name, make)
        for data in [*(counts(rows, seed) for seed in range(seeds)), *found]
        for by in ("at once", "by 1,000")
        for name, make in _count_models().items()
    ]
    records += [
        _record(spoilt, truth, by, name, make)
        for spoilt, truth in _spoilt(rows, seeds, found)
        for by in ("at once", "by 1,000")
        for name, make in _robust_models().items()
    ]
    table = Table("Losses", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    scores = {record[:3]: record for record in records}
    generated = [key for key in scores if key[0].startswith("counts") and key[2] == "poisson"]
    better = np.mean(
        [_deviance(scores[key]) < _deviance(scores[(*key[:2], "tree")]) for key in generated]
    )
    bounds = [
        Bound(
            "share of generated counts with a lower deviance by poisson", float(better), 1.0, True
        )
    ]
    return Answer([table], table, bounds)


def _deviance(record: Record) -> float:
    assert record.deviance is not None
    return record.deviance


def _count_models() -> dict[str, Callable[[], Any]]:
    models: dict[str, Callable[[], Any]] = {
        "tree": HoeffdingTreeRegressor,
        "transform auto": lambda: TransformedRegressor(HoeffdingTreeRegressor(), "auto"),
        "transform log1p": lambda: TransformedRegressor(HoeffdingTreeRegressor(), "log1p"),
        "poisson": lambda: LossRegressor(HoeffdingTreeRegressor(), "poisson"),
    }
    return models


def _robust_models() -> dict[str, Callable[[], Any]]:
    return {
        "tree": HoeffdingTreeRegressor,
        "huber": lambda: LossRegressor(HoeffdingTreeRegressor(), "huber"),
    }


def _spoilt(rows: int, seeds: int, real: list[DataSet]) -> list[tuple[DataSet, FloatArray]]:
    """Return streams with outliers among their labels, and the labels without them."""
    clean = [
        data_sets.friedman_set(rows, seed)._replace(name=f"Friedman #1, seed {seed}")
        for seed in range(seeds)
    ]
    found = []
    for place, data in enumerate([*clean, *(data for data in real if data.name == "bike")]):
        bad = np.random.default_rng(100 + place).random(len(data.y)) < SHARE
        y = np.where(bad, FACTOR * data.y, data.y)
        found.append((data._replace(name=f"{data.name}, outliers", y=y), data.y))
        found.append((data._replace(name=f"{data.name}, clean"), data.y))
    return found


def _record(
    data: DataSet, truth: FloatArray, by: str, name: str, make: Callable[[], Any]
) -> Record:
    predictions = follow(make(), data, by)[SKIPPED:]
    y = truth[SKIPPED:]
    r2 = 1.0 - np.sum((y - predictions) ** 2) / np.sum((y - y.mean()) ** 2)
    own = deviance(y, predictions) if truth.min() >= 0.0 and "Friedman" not in data.name else None
    return Record(data.name, by, name, float(r2), own)
