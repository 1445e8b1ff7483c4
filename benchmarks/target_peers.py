"""Trees of others for several targets: river's and MOA's iSOUP trees, as they are by default.

Both are given rows in which nothing is missing, one by one: river's tree fails where a target or a
feature that it knows is absent, and MOA's where a target is, while a missing number spoils the
perceptrons of its leaves. Before river's stands river's scaler, and a word is a feature of 0 or 1
for each category; MOA's scales numbers itself, and takes words as nominal attributes.
"""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet
from benchmarks.moa_process import BLOCK, MoaProcess, moa_command
from benchmarks.peers.learners import category_codes, matrix
from benchmarks.target_streams import Stream
from benchmarks.timing import nanoseconds

__all__ = ["moas_isoup", "rivers_isoup"]

FloatArray = NDArray[np.float64]
Followed = tuple[dict[str, FloatArray], float]

ISOUP = "moa.classifiers.multilabel.trees.ISOUPTree"


def rivers_isoup(stream: Stream) -> Followed | None:
    """Let river's tree predict and then learn each row.

    Parameters
    ----------
    stream : Stream
        Rows in which nothing is missing.

    Returns
    -------
    tuple
        The predictions of each target, and the microseconds for a row; None without river.
    """
    try:
        trees, preprocessing = import_module("river.tree"), import_module("river.preprocessing")
    except ImportError:
        return None
    rows = [_marked(row) for row in _dicts(stream.columns)]
    targets = _dicts(stream.targets)
    model = preprocessing.StandardScaler() | trees.ISOUPTreeRegressor()
    predicted: list[dict[str, float]] = []

    def follow() -> None:
        for x, y in zip(rows, targets, strict=True):
            predicted.append(model.predict_one(x))
            model.learn_one(x, y)

    microseconds = nanoseconds(follow) / 1e3 / stream.rows
    found = {
        name: np.array([each.get(name, 0.0) for each in predicted], dtype=np.float64)
        for name in stream.targets
    }
    return found, microseconds


def _dicts(columns: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    lists = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _marked(row: dict[str, Any]) -> dict[str, float]:
    """Return a row with a feature of 1 in place of each word."""
    return {
        f"{name}={value}" if isinstance(value, str) else name: 1.0
        if isinstance(value, str)
        else value
        for name, value in row.items()
    }


def moas_isoup(stream: Stream, passes: int) -> Followed | None:
    """Let MOA's tree predict and then learn each row, in Java and by its clock.

    Parameters
    ----------
    stream : Stream
        Rows in which nothing is missing.
    passes : int
        How often, each time with a fresh tree: the first ones warm Java's compiler up, and the
        quickest counts.

    Returns
    -------
    tuple
        The predictions of each target, and the microseconds for a row; None without Java or MOA.
    """
    if isinstance(moa_command(), str):
        return None
    data = DataSet(stream.name, stream.columns, next(iter(stream.targets.values())))
    codes = category_codes(data)
    rows = np.column_stack([matrix(data, codes), *stream.targets.values()])
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    taken = []
    kinds = [len(codes.get(name, ())) for name in stream.columns]
    with MoaProcess(kinds, ISOUP, len(stream.targets)) as learner:
        for _ in range(passes):
            learner.start()
            found = [learner.follow(block) for block in blocks]
            taken.append(sum(each for _, each in found))
    predicted = np.concatenate([own for own, _ in found])
    return dict(zip(stream.targets, predicted.T, strict=True)), min(taken) / 1e3 / stream.rows
