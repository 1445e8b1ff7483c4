"""What it costs that two sites learn apart: their models merged, beside one of all rows.

The rows of a stream go to two sites in turn, by the toss of a coin: half and half, or one in ten to
the first. R² is that on the next fifth of the rows, which are predicted before they are learned.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet, friedman, load
from benchmarks.peers.sets import generated
from benchmarks.tables import Answer, Cell, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor

__all__ = ["run"]

ROWS, QUICK_ROWS = 120_000, 5_000
NEXT_SHARE = 0.2
SHARES = (0.5, 0.1)
SEED = 3
MODELS: dict[str, Callable[[], Any]] = {"tree": HoeffdingTreeRegressor, "forest": ForestRegressor}


class Record(NamedTuple):
    """How well models did on one stream."""

    data: str
    model: str
    share: float
    all_rows: float
    first: float
    second: float
    merged: float


def run(quick: bool = False) -> Answer:
    """Compare the models of two sites, merged, with one of all rows.

    Parameters
    ----------
    quick : bool
        Take few rows.
    """
    records = [
        _measured(data, name, share)
        for data in _streams(quick)
        for name in MODELS
        for share in SHARES
    ]
    rows: list[list[Cell]] = [
        [record.data, record.model, record.share, *(f"{score:.4f}" for score in record[3:])]
        for record in records
    ]
    columns = ("stream", "model", "first's share", "all rows", "first", "second", "merged")
    return Answer([Table("R² on the next rows", columns, rows)], Table("sites", columns, records))


def _streams(quick: bool) -> Iterator[DataSet]:
    x, y = friedman(np.random.default_rng(5), QUICK_ROWS if quick else ROWS)
    yield DataSet("friedman", {f"x{place}": column for place, column in enumerate(x.T)}, y)
    for name in ("metro", "diamonds"):
        data = load(name)
        if data is not None:
            yield _of(data, slice(0, QUICK_ROWS)) if quick else data
    yield generated("demand", QUICK_ROWS if quick else 50_000)


def _of(data: DataSet, rows: Any) -> DataSet:
    columns = {name: np.asarray(column)[rows] for name, column in data.columns.items()}
    return DataSet(data.name, columns, data.y[rows])


def _measured(data: DataSet, name: str, share: float) -> Record:
    learned = int((1 - NEXT_SHARE) * len(data.y))
    at_first: NDArray[np.bool_] = np.random.default_rng(SEED).random(learned) < share
    sites = [np.flatnonzero(at_first), np.flatnonzero(~at_first)]
    models = [_taught(name, _of(data, rows)) for rows in (slice(0, learned), *sites)]
    models.append(models[1].merge(models[2]))
    rest = _of(data, slice(learned, None))
    return Record(data.name, name, share, *(_r2(model, rest) for model in models))


def _taught(name: str, data: DataSet) -> Any:
    model = MODELS[name]()
    model.learn_many(data.columns, data.y)
    return model


def _r2(model: Any, data: DataSet) -> float:
    said = model.copy().predict_learn_many(data.columns, data.y)
    return float(1 - np.mean((data.y - said) ** 2) / data.y.var())
