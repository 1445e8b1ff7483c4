"""How the model inside rates classes, and which class is predicted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["chosen", "highest", "ratings_of", "ratings_of_one"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def ratings_of(predictions: FloatArray, known: int) -> FloatArray:
    """Return the ratings of classes, given the predictions of the model inside."""
    if predictions.ndim == 2:
        return np.ascontiguousarray(predictions)
    if known > 2:  # of a model that has learned nothing
        return np.zeros((len(predictions), known))
    second = np.clip(predictions, 0.0, 1.0)
    return np.column_stack([1.0 - second, second])


def ratings_of_one(prediction: Any, known: int) -> list[float]:
    """Return what `ratings_of` does for one row, of as many classes as there are."""
    if isinstance(prediction, dict):
        return list(prediction.values())
    if known > 2:
        return [0.0] * known
    second = min(max(prediction, 0.0), 1.0)
    return [1.0 - second, second][:known]


def highest(ratings: list[float]) -> int:
    """Return the first class of the highest rating; ratings beyond 0 and 1 are as these."""
    held = [min(max(rating, 0.0), 1.0) for rating in ratings]
    return held.index(max(held))


def chosen(ratings: FloatArray, known: int) -> IntArray:
    """Return what `highest` does for many rows; -1 before any class is known."""
    if not known:
        return np.full(len(ratings), -1, np.int64)
    found: IntArray = np.clip(ratings[:, :known], 0.0, 1.0).argmax(axis=1)
    return found
