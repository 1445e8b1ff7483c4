"""Loss of accuracy if two sites learn separately, or if workers share a forest.

*Sites*: the rows of a stream go to two sites by the toss of a coin: half and half, or one in ten to
the first. Their models are merged, and compared with a model of all rows.

*Workers*: a forest whose members are divided among workers, so that each worker learns all rows
with some of them, and weighs them by the last rows, as `sapwood train -m forest --workers` does. It
is compared with forests of shards, blocks of rows in turn, that are merged in the end: with as many
members together, and with the largest number of members.

R² is that on the next fifth of the rows, which are predicted before they are learned.
"""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet, friedman, load
from benchmarks.peers.sets import generated
from benchmarks.tables import Answer, Cell, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor
from sapwood.merge.members import parted, rejoined
from sapwood.scale.rounds import FIRST_OF_FORESTS, LAST_OF_FORESTS

__all__ = ["run"]

ROWS, QUICK_ROWS = 120_000, 5_000
NEXT_SHARE = 0.2
SHARES = (0.5, 0.1)
SEED = 3
WORKERS, MOST_MEMBERS, SHARD_ROWS = (2, 8), 32, 500
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
    tables = [Table("R² of two sites on the next rows", columns, rows), _workers_table(quick)]
    return Answer(tables, Table("sites", columns, records))


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
    predicted = model.copy().predict_learn_many(data.columns, data.y)
    return float(1 - np.mean((data.y - predicted) ** 2) / data.y.var())


# -- workers --------------------------------------------------------------------------------------


def _workers_table(quick: bool) -> Table:
    rows: list[list[Cell]] = []
    for data in _streams(quick):
        learned = int((1 - NEXT_SHARE) * len(data.y))
        known, rest = _of(data, slice(0, learned)), _of(data, slice(learned, None))
        serial = _taught("forest", known)
        found: list[Cell] = [data.name, f"{_r2(serial, rest):.4f}"]
        for workers in WORKERS:
            members = serial._kernel.members
            models = [
                _by_members(known, workers),
                _by_shards(known, workers, max(2, members // workers)),
                _by_shards(known, workers, min(members, MOST_MEMBERS // workers)),
            ]
            found += [f"{_r2(model, rest):.4f}" for model in models]
        rows.append(found)
    kinds = ("members", "shards", "larger shards")
    columns = ("stream", "serial", *(f"{each}, {kind}" for each in WORKERS for kind in kinds))
    return Table("R² of forests by workers on the next rows", columns, rows)


def _by_members(data: DataSet, workers: int) -> ForestRegressor:
    first, last = FIRST_OF_FORESTS, len(data.y) - LAST_OF_FORESTS
    if last <= first:
        first, last = len(data.y) // 4, 3 * len(data.y) // 4
    forest = _taught("forest", _of(data, slice(0, first)))
    parts = parted(forest, workers)
    shared, rest = _of(data, slice(first, last)), _of(data, slice(last, None))
    for part in parts:
        part.learn_many(shared.columns, shared.y)
    whole = rejoined(parts, forest)
    whole.learn_many(rest.columns, rest.y)
    return whole


def _by_shards(data: DataSet, workers: int, members: int) -> ForestRegressor:
    whose = np.arange(len(data.y)) // SHARD_ROWS % workers
    forests = []
    for worker in range(workers):
        own = _of(data, np.flatnonzero(whose == worker))
        forest = ForestRegressor(members=members, seed=1 + worker)
        forest.learn_many(own.columns, own.y)
        forests.append(forest)
    return reduce(lambda one, other: one.merge(other), forests)
