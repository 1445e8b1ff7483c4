"""What any model has to beat: the mean of all targets so far, and the last one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LastValue", "RunningMean"]


class RunningMean:
    """Predicts the mean of all targets so far; 0 before the first.

    Examples
    --------
    >>> RunningMean().predict_learn_many({}, np.array([1.0, 3.0, 8.0]))
    array([0., 1., 2.])
    """

    def __init__(self) -> None:
        self.mean = 0.0
        self.rows = 0

    def predict_learn_many(self, X: Any, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predict each row before it is learned."""
        predictions = np.empty(len(y))
        for place, target in enumerate(y.tolist()):
            predictions[place] = self.mean
            self.learn_one(None, target)
        return predictions

    def predict_one(self, x: Any) -> float:
        """Predict a row."""
        return self.mean

    def learn_one(self, x: Any, y: float) -> None:
        """Learn a row."""
        self.rows += 1
        self.mean += (y - self.mean) / self.rows

    def __repr__(self) -> str:
        return "<the mean of all targets so far>"


class LastValue:
    """Predicts the last target; 0 before the first.

    Examples
    --------
    >>> LastValue().predict_learn_many({}, np.array([1.0, 3.0, 8.0]))
    array([0., 1., 3.])
    """

    def __init__(self) -> None:
        self.last = 0.0

    def predict_learn_many(self, X: Any, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predict each row before it is learned."""
        predictions = np.append(self.last, y)[: len(y)]
        self.last = float(y[-1]) if len(y) else self.last
        return predictions

    def predict_one(self, x: Any) -> float:
        """Predict a row."""
        return self.last

    def learn_one(self, x: Any, y: float) -> None:
        """Learn a row."""
        self.last = y

    def __repr__(self) -> str:
        return "<the last target>"
