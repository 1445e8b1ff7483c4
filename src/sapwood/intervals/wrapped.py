"""The model inside an interval stage: predictions, and the region of each row.

Regions are the leaves of a tree; of any other model, those of a small tree that learns the size of
its errors.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.row_methods import RowMethods
from sapwood.rows.targets import Targets
from sapwood.stages.any_model import hooks_of
from sapwood.stages.labels import plain_of
from sapwood.stages.order import takes_tokens
from sapwood.tree import HoeffdingTreeRegressor
from sapwood.validation import Label

__all__ = ["Before", "ModelWithErrorTree", "ModelWithLeaves", "wrapped"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

DEEPEST = 8  # of the tree of errors
LARGEST = 1e100  # error that it learns


class Before:
    """What was predicted for rows just before they were learned, and their regions.

    Parameters
    ----------
    predictions : array of float
        Gets the predictions; it has the shape of y.
    regions : array of int, optional
        Gets the regions.
    """

    def __init__(self, predictions: FloatArray, regions: IntArray | None = None) -> None:
        rows = len(predictions)
        self.predictions = predictions.reshape(rows, math.prod(predictions.shape[1:]))
        self.regions = np.zeros(rows, np.int32) if regions is None else regions


class ModelWithLeaves:
    """A model of ours that reports the leaf of each row.

    Of one row a prediction is a number, of several targets a dict; of many rows an array with a
    column for each target. `key` and `keys` are those of ids, 0 and None without ids. Labels of many
    rows have names if there are several targets, and a column for each.

    Attributes
    ----------
    by_rows : bool
        Whether the model knows rows without ids by their keys, as lags do.
    errors : HoeffdingTreeRegressor or None
        The tree that learns the size of errors, where there is one.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.by_rows = model, takes_tokens(model)
        self._inner = hooks_of(model)
        self.errors: Any = None
        self.predict_one = model._place_one if type(self) is ModelWithLeaves else self._predict_one

    def of_target(self, target: Label) -> "ModelWithLeaves":
        """Return a copy of the model for one of several targets; its regions are the same."""
        return ModelWithLeaves(self.model.of_target(target))

    @property
    def parents(self) -> IntArray:
        """The region that each one was split off from; -1 for the first."""
        parents: IntArray = self.model.region_parents
        return parents

    def _predict_one(self, x: dict[Any, Any], key: int, record: bool) -> tuple[Any, int]:
        """Return the prediction of a row, and its region."""
        found: tuple[Any, int] = self._inner._place_one(x, key, record)
        return found

    def predict_many(self, X: Any, keys: Any, record: bool) -> tuple[FloatArray, IntArray]:
        """Return the predictions of rows, and their regions."""
        predictions, regions = self._inner._place_many(X, keys, record)
        by_target = predictions if predictions.ndim == 2 else predictions[:, np.newaxis]
        return by_target, regions

    def learn_one(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Let the model learn a row."""
        self._inner._learn_row(x, y, w, key)

    def learn_many(
        self, X: Any, y: Targets, w: FloatArray, before: Before, *, keys: Any, delayed: bool
    ) -> None:
        """Let the model learn rows; `before` gets what was predicted just before each."""
        own = before.predictions if y.names else before.predictions[:, 0]
        regions = before.regions if self.errors is None else None
        self._inner._learn_into(X, plain_of(y), w, own, regions, keys=keys, delayed=delayed)

    def finish_one(self, x: dict[Any, Any], y: Any, prediction: Any, w: float) -> None:
        """Learn the error of a row that the model has learned, if it was not learned yet."""

    def finish_many(self, X: Any, y: Targets, w: FloatArray, before: Before) -> None:
        """Learn the errors of rows that the model has learned; `before` gets their regions."""


class ModelWithErrorTree(ModelWithLeaves):
    """Any other model; the leaves of a tree that learns the size of its errors are the regions.

    Parameters
    ----------
    model : object
        Anything that `AnyModel` takes.
    errors : HoeffdingTreeRegressor, optional
        The tree, if it has learned already. Rows that it cannot read belong to the first region.
    """

    def __init__(self, model: Any, errors: HoeffdingTreeRegressor | None = None) -> None:
        super().__init__(model)
        self.errors = errors or HoeffdingTreeRegressor(leaf="mean", track=None, max_depth=DEEPEST)
        self._learned = self.errors._kernel.rows  # before the rows that are being learned

    def of_target(self, target: Label) -> "ModelWithErrorTree":
        """Return a copy of the model, and of the tree, for one of several targets."""
        return ModelWithErrorTree(self.model.of_target(target), self.errors.of_target(target))

    @property
    def parents(self) -> IntArray:
        """The node that each node of the tree of errors was split off from."""
        parents: IntArray = self.errors.region_parents
        return parents

    def _predict_one(self, x: dict[Any, Any], key: int, record: bool) -> tuple[Any, int]:
        prediction, _ = super()._predict_one(x, key, record)
        try:
            return prediction, self.errors._place_one(x, 0, False)[1]
        except ValueError:
            return prediction, 0

    def predict_many(self, X: Any, keys: Any, record: bool) -> tuple[FloatArray, IntArray]:
        """Return the predictions of rows, and their leaves in the tree of errors."""
        predictions, _ = super().predict_many(X, keys, record)
        try:
            return predictions, self.errors._place_many(X, None, False)[1]
        except ValueError:
            return predictions, np.zeros(len(predictions), np.int32)

    def learn_one(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Let the model learn a row."""
        self._learned = self.errors._kernel.rows
        super().learn_one(x, y, w, key)

    def learn_many(
        self, X: Any, y: Targets, w: FloatArray, before: Before, *, keys: Any, delayed: bool
    ) -> None:
        """Let the model learn rows."""
        self._learned = self.errors._kernel.rows
        super().learn_many(X, y, w, before, keys=keys, delayed=delayed)

    def finish_one(self, x: dict[Any, Any], y: Any, prediction: Any, w: float) -> None:
        """Learn the error of a row, if it was not learned yet."""
        if self.errors._kernel.rows == self._learned:
            try:
                self.errors.learn_one(x, _size_one(y, prediction), w)
            except ValueError:
                return

    def finish_many(self, X: Any, y: Targets, w: FloatArray, before: Before) -> None:
        """Learn the errors of rows, if they were not learned yet."""
        if self.errors._kernel.rows == self._learned:
            sizes = plain_of(Targets(y.names, _size(y.values, before.predictions)))
            try:
                unused = np.empty(y.values.shape)
                self.errors._learn_into(X, sizes, w, unused, before.regions)
            except ValueError:
                before.regions[:] = 0


def wrapped(model: Any, errors: HoeffdingTreeRegressor | None = None) -> ModelWithLeaves:
    """Return a model with its regions; `errors` is the tree of its errors, if there was one."""
    is_ours = isinstance(model, RowMethods)
    if errors is None and is_ours and hasattr(model, "predict_learn_regions"):
        return ModelWithLeaves(model)
    return ModelWithErrorTree(model, errors)


def _size(y: FloatArray, prediction: FloatArray) -> FloatArray:
    """Return the sizes of errors; 0 where a prediction is too large or NaN; NaN without y."""
    with np.errstate(invalid="ignore", over="ignore"):
        size: FloatArray = np.abs(y - prediction)
    size = np.where(size <= LARGEST, size, 0.0)
    size[np.isnan(y)] = np.nan
    return size


def _size_one(y: Any, prediction: Any) -> Any:
    """Return the size of an error; of several targets, that of each."""
    if type(y) is float or not isinstance(y, Mapping):
        size = abs(y - prediction)
        return size if size <= LARGEST else 0.0
    predicted = prediction if isinstance(prediction, Mapping) else dict.fromkeys(y, prediction)
    return {
        name: own if own != own else _size_one(own, predicted[name])  # noqa: PLR0124
        for name, own in y.items()
    }
