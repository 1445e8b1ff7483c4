"""Other ways to bounds around predictions: plain ones, conformal ones, river's and MOA's.

All but MOA's are put around predictions that are given, so that the model is the same for all.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from shutil import which
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet
from benchmarks.peers.learners import category_codes, matrix

__all__ = ["AROUND", "aci", "global_normal", "jackknife", "moas_bounds", "pid"]

FloatArray = NDArray[np.float64]
Bounds = tuple[FloatArray, FloatArray]

WINDOW = 500
ACI_RATE = 0.01
PID_RATE = 0.02
PID_SATURATION = 5.0


def global_normal(predictions: FloatArray, y: FloatArray, level: float) -> Bounds:
    """Return the bounds of a normal distribution with the deviation of all errors so far."""
    squares = np.cumsum((y - predictions) ** 2)
    deviation = np.sqrt(np.append(np.nan, squares[:-1] / np.arange(1, len(y))))
    reach = NormalDist().inv_cdf((1 + level) / 2) * deviation
    return predictions - reach, predictions + reach


def aci(predictions: FloatArray, y: FloatArray, level: float) -> Bounds:
    """Return adaptive conformal bounds: a window of 500 errors, its level moved by each miss.

    After I. Gibbs and E. Candès, "Adaptive conformal inference under distribution shift", 2021.
    """
    sizes = np.abs(y - predictions).tolist()
    recent: deque[float] = deque()
    ordered: list[float] = []
    reaches, miss = np.full(len(y), np.nan), 1 - level
    for row, size in enumerate(sizes):
        if ordered:
            place = math.ceil((1 - min(max(miss, 0.0), 1.0)) * (len(ordered) + 1)) - 1
            reaches[row] = ordered[min(max(place, 0), len(ordered) - 1)]
            miss += ACI_RATE * ((1 - level) - (size > reaches[row]))
        recent.append(size)
        insort(ordered, size)
        if len(recent) > WINDOW:
            del ordered[bisect_left(ordered, recent.popleft())]
    return predictions - reaches, predictions + reaches


def pid(predictions: FloatArray, y: FloatArray, level: float) -> Bounds:
    """Return the bounds of conformal PID control: a tracked quantile, and an integrator.

    After A. Angelopoulos, E. Candès and R. Tibshirani, "Conformal PID control for time series
    prediction", 2023; without a forecaster of errors.
    """
    sizes = np.abs(y - predictions).tolist()
    recent: deque[float] = deque(maxlen=WINDOW)
    reaches = np.full(len(y), np.nan)
    quantile = missed = largest = 0.0
    for row, size in enumerate(sizes):
        if row % 50 == 1:
            largest = max(recent)
        angle = missed * math.log(row + 2) / ((row + 2) * PID_SATURATION)
        integral = largest * math.tan(min(max(angle, -1.5), 1.5))
        reaches[row] = max(quantile + integral, 0.0)
        miss = size > reaches[row]
        quantile += PID_RATE * largest * (miss - (1 - level))
        missed += miss - (1 - level)
        recent.append(size)
    return predictions - reaches, predictions + reaches


def jackknife(predictions: FloatArray, y: FloatArray, level: float) -> Bounds:
    """Return the bounds of river's RegressionJackknife with its defaults."""
    conf: Any = import_module("river.conf")
    base: Any = import_module("river.base")

    class Replay(base.Regressor):
        """Predicts what was predicted."""

        def predict_one(self, x: dict[str, int]) -> float:
            """Return the prediction of a row."""
            return float(predictions[x["row"]])

        def learn_one(self, x: dict[str, int], y: float) -> None:
            """Learn nothing."""

    model = conf.RegressionJackknife(Replay(), confidence_level=level)
    lower, upper = np.empty(len(y)), np.empty(len(y))
    for row, target in enumerate(y.tolist()):
        found = model.predict_one({"row": row}, with_interval=True)
        lower[row], upper[row] = found.lower, found.upper
        model.learn_one({"row": row}, target)
    return lower, upper


AROUND: dict[str, Callable[[FloatArray, FloatArray, float], Bounds]] = {
    "normal": global_normal,
    "ACI": aci,
    "PID": pid,
    "jackknife": jackknife,
}
"""Ways to put bounds around predictions, by name."""


def moas_bounds(kind: str, data: DataSet, level: float) -> Bounds | str:
    """Return the bounds of MOA's AdaPI or MVE, around its adaptive random forest.

    Parameters
    ----------
    kind : {"AdaPI", "MVE"}
        Which.
    data : DataSet
        The rows.
    level : float
        The level.

    Returns
    -------
    tuple of arrays, or str
        Why not, in words.
    """
    if find_spec("capymoa") is None or find_spec("jpype") is None or which("java") is None:
        return "capymoa or Java is not installed"
    codes = category_codes(data)
    schema = import_module("capymoa.stream").Schema.from_custom(
        features=[*data.columns, "y"],
        target="y",
        categories={name: [f"c{i}" for i in own.values()] for name, own in codes.items()},
    )
    make: Any = getattr(import_module("capymoa.uncertainty"), kind)
    model = make(schema, confidence_level=level)
    instance: Any = import_module("capymoa.core").RegressionInstance.from_array
    rows = matrix(data, codes)
    means = np.nan_to_num(np.nanmean(rows, axis=0))
    rows = np.where(np.isnan(rows), means, rows)
    lower, upper = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for place, (row, target) in enumerate(zip(rows, data.y.tolist(), strict=True)):
        example = instance(schema, row, target)
        found = model.predict(example)
        if found is not None and len(found) == 3:
            lower[place], upper[place] = min(found), max(found)
        model.train(example)
    return lower, upper
