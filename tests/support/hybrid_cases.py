"""Streams and learners for the tests of hybrids."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sapwood import ForestRegressor, HybridRegressor
from sapwood.hybrid import LightGBM

ROUNDS = 10


def stream(rows: int, seed: int = 1, drift: int | None = None) -> tuple[Any, Any]:
    """Return rows that a batch learner predicts better than a forest; they may drift at a row."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4))
    y = np.sin(6 * X[:, 0] * X[:, 1]) + X[:, 2] + rng.normal(0, 0.1, rows)
    if drift is not None:
        y[drift:] = -2 * y[drift:]
    return X, y


def timed(rows: int, timing: str) -> Iterator[tuple[str, int, int]]:
    """Yield what happens: ("predict" | "learn", first row, end)."""
    if timing == "at once":
        for row in range(rows):
            yield "predict", row, row + 1
            yield "learn", row, row + 1
    elif timing == "by 100":
        for start in range(0, rows, 100):
            yield "predict", start, start + 100
            yield "learn", start, start + 100
    elif timing == "24 late":
        for row in range(rows):
            yield "predict", row, row + 1
            if row >= 24:
                yield "learn", row - 24, row - 23
    else:
        yield "learn", 0, rows - 200
        yield "predict", rows - 200, rows


def small(**options: Any) -> HybridRegressor:
    """Return a hybrid that is quick to fit."""
    given: dict[str, Any] = {"batch": LightGBM(rounds=ROUNDS), "min_rows": 100, **options}
    online = given.pop("online", None) or ForestRegressor(members=3, threads=1)
    return HybridRegressor(online, **given)


class MeanEstimator:
    """An estimator that predicts the mean of y, and of which no file knows."""

    def __init__(self, fail_at: int = 10**9, value: float | None = None) -> None:
        self.fail_at, self.value, self.fits = fail_at, value, 0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"fail_at": self.fail_at, "value": self.value}

    def set_params(self, **parameters: Any) -> "MeanEstimator":
        self.__dict__.update(parameters)
        return self

    def fit(self, X: Any, y: Any) -> "MeanEstimator":
        if len(y) >= self.fail_at:
            raise RuntimeError("no fit today")
        self.mean_ = float(np.mean(y)) if self.value is None else self.value
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)
