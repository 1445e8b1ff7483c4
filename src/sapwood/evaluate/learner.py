"""Any model that predicts and learns, behind one face."""

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.regressor import Regressor
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.schema import Schema
from sapwood.stages import Stage
from sapwood.streams.stream import Column, FloatArray, rows_of

__all__ = ["Learner", "checked_limits"]

WAYS = (
    ("predict_learn_many",),
    ("predict_one", "learn_one"),
    ("predict_many", "learn_many"),
)

OF_INTERVALS = (
    "levels",
    "predict_intervals_one",
    "predict_intervals_many",
    "predict_learn_intervals",
)
"""The methods of a model with prediction intervals."""


def checked_limits(minimum: float | None, maximum: float | None) -> tuple[float, float] | None:
    """Return the range that predictions are held within, None if there is none.

    Raises
    ------
    ValueError
        If a limit is no number, or the range is empty.

    Examples
    --------
    >>> checked_limits(0, None), checked_limits(None, None)
    ((0.0, inf), None)
    """
    if minimum is None and maximum is None:
        return None
    low = -math.inf if minimum is None else validation.number(minimum, "minimum")
    high = math.inf if maximum is None else validation.number(maximum, "maximum")
    if not low <= high:
        raise ValueError(f"minimum = {low:g}: it must not be above maximum = {high:g}")
    return low, high


class Learner:
    """A model, the time that it took, and its size.

    - `model`: with `predict_learn_many`, as our trees; or else `predict_one` and `learn_one`, as
      river's models; or else `predict_many` and `learn_many`, which are then called for each row,
      as every prediction has to be made before its row is learned.
    - `late`: whether rows are learned later than they are predicted: then the first way is none.

    - `limits`: the least and the largest prediction; see `held`.
    """

    limits: tuple[float, float] | None = None

    def __init__(self, model: Any, late: bool = False):
        usable = WAYS[1:] if late else WAYS
        ways = [way for way in usable if all(hasattr(model, name) for name in way)]
        if not ways:
            raise ValueError(
                f"{type(model).__name__} is no model that can be evaluated: it needs "
                "predict_one and learn_one, or predict_many and learn_many"
            )
        self.model = model
        self._looked_at: Any = None  # the model that the following is known of
        self._levels: tuple[float, ...] = ()
        self._takes_ids = self._encodes = False
        self.seconds = 0.0
        self.bounds: FloatArray | None = None  # around what was predicted last
        self._in_batches = ways[0] == WAYS[0]
        self._by_rows = WAYS[1] in ways

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the prediction intervals of the model; empty if it has none."""
        if self._looked_at is not self.model:
            self.look()
        return self._levels

    def look(self) -> None:
        """See what the model can do; before each chunk, as evaluation may exchange it."""
        has_intervals = all(hasattr(self.model, name) for name in OF_INTERVALS)
        self._levels = tuple(self.model.levels) if has_intervals else ()
        self._takes_ids = isinstance(self.model, Regressor | Stage)
        self._encodes = _encodes(self.model)
        self._looked_at = self.model

    def predict_learn(self, columns: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Return the prediction of each row, made before it was learned."""
        start = time.perf_counter()
        columns = self._marked(columns)
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
        columns = self._marked(columns)
        try:
            if self.levels:
                predictions, self.bounds = self.model.predict_intervals_many(columns)
                return np.asarray(predictions, dtype=np.float64)
            if hasattr(self.model, "predict_many"):
                return np.asarray(self.model.predict_many(columns), dtype=np.float64)
            return np.array([self._predict(x) for x in rows_of(columns)], dtype=np.float64)
        finally:
            self.seconds += time.perf_counter() - start

    def predict_one(self, x: dict[str, Any], id: int) -> float:
        """Return the prediction of one row, whose label will come under an id."""
        start = time.perf_counter()
        prediction = self._predict(x, id if self._takes_ids else None)
        self.seconds += time.perf_counter() - start
        return prediction

    def learn_one(self, x: dict[str, Any], y: Any, id: int) -> None:
        """Learn one row, which was predicted under an id."""
        start = time.perf_counter()
        self._learn(x, y, id if self._takes_ids else None)
        self.seconds += time.perf_counter() - start

    def held(self, predictions: Any) -> Any:
        """Return predictions held within `limits`; so are the bounds around them.

        - `predictions`: as the model has predicted. It learns as if they had been issued as they
          are.
        """
        if self.limits is None:
            return predictions
        if self.bounds is not None:
            self.bounds = np.clip(self.bounds, *self.limits)
        held = np.clip(predictions, *self.limits)
        return held if isinstance(predictions, np.ndarray) else held.tolist()

    def _marked(self, columns: Mapping[str, Column]) -> Mapping[str, Column]:
        """Return columns of a stream as what they are for a model with a schema: encoded."""
        return EncodedColumns(columns) if self._encodes else columns

    def _predict(self, x: dict[str, Any], id: int | None = None) -> float:
        """Return the prediction of a row; models that keep pending predictions do it by an id."""
        x = EncodedRow(x) if self._encodes else x
        if self._levels:
            own = {} if id is None else {"id": id}
            prediction, self.bounds = self.model.predict_intervals_one(x, **own)
            return float(prediction)
        if not self._by_rows:
            return float(self.model.predict_many(_of_one(x))[0])
        return float(self.model.predict_one(x) if id is None else self.model.predict_one(x, id=id))

    def _learn(self, x: dict[str, Any], y: Any, id: int | None = None) -> None:
        """Learn a row, under the id by which it was predicted."""
        x = EncodedRow(x) if self._encodes else x
        if not self._by_rows:
            self.model.learn_many(_of_one(x), np.array([y]))
        elif id is None:
            self.model.learn_one(x, y)
        else:
            self.model.learn_one(x, y, id=id)

    @property
    def leaves(self) -> int | None:
        """How many leaves the model has, if that is known."""
        return _count(self.model, "n_leaves")

    @property
    def nbytes(self) -> int | None:
        """How many bytes the model occupies, if that is known."""
        return _count(self.model, "nbytes")


def _of_one(x: dict[str, Any]) -> dict[str, list[Any]]:
    columns = {name: [value] for name, value in x.items()}
    return EncodedColumns(columns) if isinstance(x, EncodedRow) else columns


def _encodes(model: Any) -> bool:
    """Whether a model encodes rows by a schema of its own."""
    schema = getattr(model, "schema", None)
    return isinstance(schema, Schema) and bool(schema.converting)


def _count(model: Any, name: str) -> int | None:
    value = getattr(model, name, None)
    return int(value) if isinstance(value, int | np.integer) else None
