"""Any model that predicts and learns, behind one face."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood.streams.stream import Column, FloatArray, rows_of

__all__ = ["Learner"]

WAYS = (
    ("predict_learn_many",),
    ("predict_one", "learn_one"),
    ("predict_many", "learn_many"),
)

TELLING = (
    "levels",
    "predict_intervals_one",
    "predict_intervals_many",
    "predict_learn_intervals",
)
"""What a model has that tells bounds."""


class Learner:
    """A model, the time that it took, and what it tells of itself.

    Parameters
    ----------
    model : object
        With `predict_learn_many`, as our trees; or else `predict_one` and `learn_one`, as
        river's models; or else `predict_many` and `learn_many`, which are then called for each
        row, as every prediction has to be made before its row is learned.
    late : bool
        Whether rows are learned later than they are predicted: then the first way is none.
    """

    def __init__(self, model: Any, late: bool = False):
        usable = WAYS[1:] if late else WAYS
        ways = [way for way in usable if all(hasattr(model, name) for name in way)]
        if not ways:
            raise ValueError(
                f"{type(model).__name__} is no model that can be evaluated: it needs "
                "predict_one and learn_one, or predict_many and learn_many"
            )
        self.model = model
        self.seconds = 0.0
        self.bounds: FloatArray | None = None  # around what was predicted last
        self._in_batches = ways[0] == WAYS[0]
        self._by_rows = WAYS[1] in ways

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the bounds that the model tells; none if it tells none."""
        tells = all(hasattr(self.model, name) for name in TELLING)
        return tuple(self.model.levels) if tells else ()

    def predict_learn(self, columns: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Return the prediction of each row, made before it was learned."""
        start = time.perf_counter()
        try:
            if self._in_batches and self.levels:
                predictions, self.bounds = self.model.predict_learn_intervals(columns, y)
                return np.asarray(predictions, dtype=np.float64)
            if self._in_batches:
                return np.asarray(self.model.predict_learn_many(columns, y), dtype=np.float64)
            predictions = np.empty(len(y))
            for place, (x, target) in enumerate(zip(rows_of(columns), y.tolist(), strict=True)):
                predictions[place] = self._predict(x)
                self._learn(x, target)
            return predictions
        finally:
            self.seconds += time.perf_counter() - start

    def predict(self, columns: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Return the prediction of each row, of which none is learned; y is not looked at."""
        start = time.perf_counter()
        try:
            if self.levels:
                predictions, self.bounds = self.model.predict_intervals_many(columns)
                return np.asarray(predictions, dtype=np.float64)
            if hasattr(self.model, "predict_many"):
                return np.asarray(self.model.predict_many(columns), dtype=np.float64)
            return np.array([self._predict(x) for x in rows_of(columns)], dtype=np.float64)
        finally:
            self.seconds += time.perf_counter() - start

    def predict_one(self, x: dict[str, Any]) -> float:
        """Return the prediction of one row."""
        start = time.perf_counter()
        prediction = self._predict(x)
        self.seconds += time.perf_counter() - start
        return prediction

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        """Learn one row."""
        start = time.perf_counter()
        self._learn(x, y)
        self.seconds += time.perf_counter() - start

    def _predict(self, x: dict[str, Any]) -> float:
        if self.levels:
            prediction, self.bounds = self.model.predict_intervals_one(x)
            return float(prediction)
        if self._by_rows:
            return float(self.model.predict_one(x))
        return float(self.model.predict_many(_of_one(x))[0])

    def _learn(self, x: dict[str, Any], y: float) -> None:
        if self._by_rows:
            self.model.learn_one(x, y)
        else:
            self.model.learn_many(_of_one(x), np.array([y]))

    @property
    def leaves(self) -> int | None:
        """How many leaves the model has, if it tells."""
        return _count(self.model, "n_leaves")

    @property
    def nbytes(self) -> int | None:
        """How many bytes the model occupies, if it tells."""
        return _count(self.model, "nbytes")


def _of_one(x: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [value] for name, value in x.items()}


def _count(model: Any, name: str) -> int | None:
    value = getattr(model, name, None)
    return int(value) if isinstance(value, int | np.integer) else None
