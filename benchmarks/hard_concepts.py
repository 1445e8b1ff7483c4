"""Concepts that return: a model, the same with a pool of retired models, and LightGBM.

Each score is an R² from row 1,000 on. Two or three concepts take turns in generated streams. In real
streams "with exchanged columns" two pairs of columns exchange their names and back; the other real
streams are as they are, and show what the pool costs where no concept is known to return. LightGBM is
refitted with all rows so far whenever 1,000 labels arrive. The constants of the pool were chosen on
permuted features of Friedman's function (seeds 1 and 2) and, for labels by 1,000, on bike, PM2.5, the
maximum temperature, CO2, light and the dew point; the other streams had no part in it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import hard_cases
from benchmarks.data_sets import DataSet
from benchmarks.tables import Answer, Bound, Table
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    RecurringRegressor,
)

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "hard_concepts.csv"
ROWS, QUICK_ROWS, BLOCK = 20_000, 3_000, 2_500
REAL_ROWS, REAL_BLOCK = 10_000, 2_000
SEEDS = (11, 12)
EXCHANGED = {
    "california": (("latitude", "longitude"), ("median_income", "total_rooms")),
    "diamonds": (("carat", "depth"), ("x", "table")),
    "puma8NH": (("theta1", "theta2"), ("tau1", "tau2")),
}
MODELS: dict[str, Callable[[], Any]] = {
    "tree": HoeffdingTreeRegressor,
    "adaptive": AdaptiveTreeRegressor,
    "forest": lambda: ForestRegressor(threads=1),
}


class Record(NamedTuple):
    """R² of a model on a stream, without and with a pool."""

    case: str
    stream: str
    labels: str
    model: str
    plain: float
    pool: float
    lightgbm: float | None
    returned: int
    alerts: int


def run(quick: bool = False) -> Answer:
    """Evaluate all models on all streams.

    Parameters
    ----------
    quick : bool
        Whether a few rows of generated streams are enough.
    """
    rows, seeds = (QUICK_ROWS, SEEDS[:1]) if quick else (ROWS, SEEDS)
    cases = [("recurring", data) for seed in seeds for data in _generated(rows, seed)]
    if not quick:
        for data in hard_cases._real(REAL_ROWS):
            if data.name in EXCHANGED:
                cases.append(("exchanged columns", _exchanged(data)))
            cases.append(("real", data))
    records = [record for case, data in cases for record in _records(case, data)]
    table = Table("Without and with retired models", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    gains = [
        each.pool - each.plain
        for each in records
        if each.labels == "at once" and each.case == "recurring"
    ]
    return Answer([table], table, [Bound("mean gain at once", float(np.mean(gains)), 0.0, True)])


def _records(case: str, data: DataSet) -> Iterator[Record]:
    """Yield the scores of all models on a stream."""
    other = None
    if case != "real":
        other = hard_cases._r2(hard_cases._of_lightgbm(data), data.y)
    for labels in ("at once", "by 1,000"):
        for name, make in MODELS.items():
            pool = RecurringRegressor(make())
            plain = hard_cases._predictions(make(), data, labels, is_open=False)
            now = hard_cases._predictions(pool, data, labels, is_open=False)
            returned = [event["event"] for event in pool.events].count("returned")
            yield Record(
                case,
                data.name,
                labels,
                name,
                hard_cases._r2(plain, data.y),
                hard_cases._r2(now, data.y),
                other if labels == "by 1,000" else None,
                returned,
                len(pool.events),
            )


# -- streams ---------------------------------------------------------------------------------------


def _generated(rows: int, seed: int) -> Iterator[DataSet]:
    """Yield streams whose concepts take turns."""
    rng = np.random.default_rng(seed)
    x, noise = rng.random((rows, 6)), rng.normal(size=rows)
    turn = np.arange(rows) // (BLOCK if rows == ROWS else rows // 6)
    columns = hard_cases._columns(x)
    waves = [np.sin(9 * x @ rng.normal(size=6) / 3) for _ in range(2)]
    products = [10 * x[:, a] * x[:, b] + 5 * np.abs(x[:, c] - 0.5) for a, b, c in _triples(rng)]
    levels = [np.floor(4 * x[:, a]) * np.where(x[:, b] > 0.5, 1, -1) for a, b, _ in _triples(rng)]
    for name, means, scale in (
        ("waves, two concepts", waves, 0.2),
        ("products, two concepts", products[:2], 0.5),
        ("products, three concepts", products, 0.5),
        ("steps, three concepts", levels, 0.5),
    ):
        y = np.array(means)[turn % len(means), np.arange(rows)] + scale * noise
        yield DataSet(f"{name}, seed {seed}", columns, y)


def _triples(rng: np.random.Generator) -> list[list[int]]:
    return [rng.permutation(6)[:3].tolist() for _ in range(3)]


def _exchanged(data: DataSet) -> DataSet:
    """Return a stream two pairs of whose columns exchange their values in every second block."""
    away = np.arange(len(data.y)) // REAL_BLOCK % 2 == 1
    columns = dict(data.columns)
    for a, b in EXCHANGED[data.name]:
        columns[a], columns[b] = (
            np.where(away, data.columns[b], data.columns[a]),
            np.where(away, data.columns[a], data.columns[b]),
        )
    return DataSet(f"{data.name}, exchanged columns", columns, data.y)
