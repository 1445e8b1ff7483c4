"""The model inside an interval stage: predictions, and the region of each row.

Regions are the leaves of a tree; of any other model, those of a small tree that learns the size of
its errors.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sapwood.lags.model import LaggedModel
from sapwood.row_methods import RowMethods, array_for
from sapwood.rows import frames, targets
from sapwood.rows.targets import Targets
from sapwood.tree import HoeffdingTreeRegressor
from sapwood.validation import Label

__all__ = ["AnyModel", "ModelWithErrorTree", "ModelWithLeaves", "Wrapped", "wrapped"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

WAYS = (("predict_one", "learn_one"), ("predict_many", "learn_many"), ("predict", "partial_fit"))
DEEPEST = 8  # of the tree of errors
LARGEST = 1e100  # error that it learns


class Wrapped(Protocol):
    """A model that predicts and learns, with the region of each row.

    Of one row a prediction is a number, of several targets a dict; of many rows an array with a
    column for each target. `key` and `keys` are those of ids, 0 and None without ids.
    """

    model: Any
    by_rows: bool
    """Whether the model knows rows without ids by their keys, as lags do."""

    @property
    def errors(self) -> HoeffdingTreeRegressor | None:
        """The tree that learns the size of errors, where there is one."""

    def of_target(self, target: Label) -> "Wrapped":
        """Return a copy of the model for one of several targets."""

    @property
    def parents(self) -> IntArray:
        """The region that each one was split off from; -1 for the first."""

    def predict_one(self, x: dict[Any, Any], key: int, record: bool) -> tuple[Any, int]:
        """Return the prediction of a row, and its region."""

    def predict_many(self, X: Any, keys: Any, record: bool) -> tuple[FloatArray, IntArray]:
        """Return the predictions of rows, and their regions."""

    def learn_one(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Let the model learn a row."""

    def learn_many(
        self, X: Any, y: Targets, w: FloatArray, before: "Before", *, keys: Any, delayed: bool
    ) -> None:
        """Let the model learn rows; `before` gets what was predicted just before each.

        y has names if there are several targets, and a column for each.
        """

    def finish_one(self, x: dict[Any, Any], y: Any, prediction: Any, w: float) -> None:
        """Learn the error of a row that the model has learned, if it was not learned yet."""

    def finish_many(self, X: Any, y: Targets, w: FloatArray, before: "Before") -> None:
        """Learn the errors of rows that the model has learned; `before` gets their regions."""


class Before:
    """What was predicted for rows just before they were learned, and their regions.

    Parameters
    ----------
    shape : tuple
        Of y: rows, or rows and targets.
    predicting, regions : arrays, optional
        Of the caller, that are filled; see `RowMethods._learn_many`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        predicting: bool | FloatArray = True,
        regions: IntArray | None = None,
    ) -> None:
        rows, targets = shape[0], math.prod(shape[1:])
        self.predictions = array_for(predicting, shape).reshape(rows, targets)
        self.regions = np.zeros(shape[0], np.int32) if regions is None else regions


def is_ours(model: Any) -> bool:
    """Whether a model keeps its own predictions until their labels come."""
    if isinstance(model, LaggedModel):
        return is_ours(model.model)
    return isinstance(model, RowMethods)


def wrapped(model: Any, errors: HoeffdingTreeRegressor | None = None) -> Wrapped:
    """Return a model behind the face; `errors` is the tree of its errors, if there was one."""
    if errors is None and is_ours(model) and hasattr(model, "predict_learn_regions"):
        return ModelWithLeaves(model)
    return ModelWithErrorTree(model, errors)


class ModelWithLeaves:
    """A model of ours that reports the leaf of each row."""

    errors: HoeffdingTreeRegressor | None = None

    def __init__(self, model: Any) -> None:
        self.model, self.by_rows = model, isinstance(model, LaggedModel)
        self.predict_one = model._place_one

    def of_target(self, target: Label) -> "ModelWithLeaves":
        """Return a copy of the model for one of several targets; its leaves are the same."""
        return ModelWithLeaves(self.model.of_target(target))

    @property
    def parents(self) -> IntArray:
        """The node that each node was split off from."""
        parents: IntArray = self.model.region_parents
        return parents

    def predict_many(self, X: Any, keys: Any, record: bool) -> tuple[FloatArray, IntArray]:
        """Return the predictions of rows, and the nodes of their leaves."""
        predictions, regions = self.model._place_many(X, keys, record)
        return _by_target(predictions), regions

    def learn_one(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Let the model learn a row."""
        self.model._learn_row(x, y, w, key)

    def learn_many(
        self, X: Any, y: Targets, w: FloatArray, before: Before, *, keys: Any, delayed: bool
    ) -> None:
        """Let the model learn rows."""
        self.model._learn_into(
            X, _plain(y), w, before.predictions, before.regions, keys=keys, delayed=delayed
        )

    def finish_one(self, x: dict[Any, Any], y: Any, prediction: Any, w: float) -> None:
        """Do nothing: regions are the model's own."""

    def finish_many(self, X: Any, y: Targets, w: FloatArray, before: Before) -> None:
        """Do nothing."""


class ModelWithErrorTree:
    """Any other model; the leaves of a tree that learns the size of its errors are the regions.

    Parameters
    ----------
    model : object
        Anything that `AnyModel` takes.
    errors : HoeffdingTreeRegressor, optional
        The tree, if it has learned already. Rows that it cannot read belong to the first region.
    """

    def __init__(self, model: Any, errors: HoeffdingTreeRegressor | None = None) -> None:
        self.model, self.by_rows = model, isinstance(model, LaggedModel)
        self._face = None if is_ours(model) else AnyModel(model)
        self.errors = errors or HoeffdingTreeRegressor(leaf="mean", track=None, max_depth=DEEPEST)
        self._learned = self.errors._kernel.rows  # before the rows that are being learned

    def of_target(self, target: Label) -> "ModelWithErrorTree":
        """Return a copy of the model for one of several targets; its regions are the same."""
        return ModelWithErrorTree(self.model.of_target(target), self.errors.of_target(target))

    @property
    def parents(self) -> IntArray:
        """The node that each node of the tree of errors was split off from."""
        return self.errors.region_parents

    def predict_one(self, x: dict[Any, Any], key: int, record: bool) -> tuple[Any, int]:
        """Return the prediction of a row, and its region."""
        if self._face is None:
            prediction, _ = self.model._place_one(x, key, record)
        else:
            prediction = self._face.predict_one(x)
        try:
            return prediction, self.errors._place_one(x, 0, False)[1]
        except ValueError:
            return prediction, 0

    def predict_many(self, X: Any, keys: Any, record: bool) -> tuple[FloatArray, IntArray]:
        """Return the predictions of rows, and their regions."""
        if self._face is None:
            predictions, _ = self.model._place_many(X, keys, record)
        else:
            predictions = self._face.predict_many(X)
        try:
            return _by_target(predictions), self.errors._place_many(X, None, False)[1]
        except ValueError:
            return _by_target(predictions), np.zeros(len(predictions), np.int32)

    def learn_one(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Let the model learn a row."""
        self._learned = self.errors._kernel.rows
        if self._face is None:
            self.model._learn_row(x, y, w, key)
        else:
            self._face.learn_one(x, y, None if w == 1.0 else w)

    def learn_many(
        self, X: Any, y: Targets, w: FloatArray, before: Before, *, keys: Any, delayed: bool
    ) -> None:
        """Let the model learn rows."""
        self._learned = self.errors._kernel.rows
        if self._face is None:
            self.model._learn_into(X, _plain(y), w, before.predictions, keys=keys, delayed=delayed)
        else:
            before.predictions[:] = _by_target(self._face.predict_learn(X, _plain(y), w))

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
            sizes = _plain(Targets(y.names, _size(y.values, before.predictions)))
            try:
                unused = np.empty(y.values.shape)
                self.errors._learn_into(X, sizes, w, unused, before.regions)
            except ValueError:
                before.regions[:] = 0


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


def _plain(y: Targets) -> Any:
    """Return y as models take it: of one target, as a column without a name."""
    return y if y.names else np.ascontiguousarray(y.values[:, 0])


def _by_target(predictions: FloatArray) -> FloatArray:
    """Return predictions with a column for each target."""
    return predictions if predictions.ndim == 2 else predictions[:, np.newaxis]


class AnyModel:
    """A model of another library, called by the methods that it has.

    Parameters
    ----------
    model : object
        With `predict_one` and `learn_one`, as river's; or `predict_many` and `learn_many`; or
        `predict` and `partial_fit`, as scikit-learn's.

    Examples
    --------
    >>> from sapwood.evaluate.baselines import LastValue
    >>> last = AnyModel(LastValue())
    >>> last.predict_learn([[0.0], [0.0]], np.array([3.0, 5.0]), np.ones(2))
    array([0., 3.])
    >>> last.predict_one({0: 0.0})
    5.0
    """

    def __init__(self, model: Any) -> None:
        ways = [way for way in WAYS if all(callable(getattr(model, name, None)) for name in way)]
        if not ways:
            raise TypeError(
                f"{type(model).__name__} is no model: it needs predict_one and learn_one, "
                "predict_many and learn_many, or predict and partial_fit"
            )
        self._model = model
        self._way = WAYS.index(ways[0])
        # Others have a predict_many too, but for frames alone.
        self._in_batches = callable(getattr(model, "predict_learn_many", None))

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """Return the prediction of a row; 0.0 where the model has none."""
        if self._way == 0:
            return _or_zero(self._model.predict_one(x))
        return float(self._predict_batch({name: [value] for name, value in x.items()})[0])

    def predict_many(self, X: Any) -> FloatArray:
        """Return the predictions of rows."""
        if self._in_batches and hasattr(self._model, "predict_many"):
            return _numbers(self._model.predict_many(X))
        if self._way == 0:
            return np.array([_or_zero(self._model.predict_one(x)) for x in _rows(X)], np.float64)
        return self._predict_batch(X)

    def predict_learn(self, X: Any, y: Any, w: FloatArray) -> FloatArray:
        """Learn rows; return what was predicted just before each."""
        weights = None if (w == 1.0).all() else w
        if self._in_batches:
            more = {} if weights is None else {"w": weights}
            return _numbers(self._model.predict_learn_many(X, y, **more))
        predictions = np.empty(len(y))
        for place, x in enumerate(_rows(X)):
            predictions[place] = self.predict_one(x)
            self.learn_one(x, float(y[place]), None if weights is None else float(w[place]))
        return predictions

    def learn_one(self, x: dict[Any, Any], y: Any, w: float | None = None) -> None:
        """Learn a row, of a weight if that is not 1."""
        if self._way == 0:
            self._model.learn_one(x, y, **({} if w is None else {"w": w}))
            return
        X, more = {name: [value] for name, value in x.items()}, {} if w is None else {"w": [w]}
        if self._way == 1:
            self._model.learn_many(X, np.array([y]), **more)
        else:
            more = {"sample_weight" if name == "w" else name: own for name, own in more.items()}
            self._model.partial_fit(_matrix(X), np.array([y]), **more)

    def _predict_batch(self, X: Any) -> FloatArray:
        if self._way == 1:
            return np.asarray(self._model.predict_many(X), np.float64)
        matrix = _matrix(X)
        try:
            return np.asarray(self._model.predict(matrix), np.float64)
        except Exception as error:  # which scikit-learn raises before anything was learned
            if type(error).__name__ != "NotFittedError":
                raise
            return np.zeros(len(matrix))


def _or_zero(prediction: Any) -> Any:
    if isinstance(prediction, Mapping):
        return prediction
    return 0.0 if prediction is None else float(prediction)


def _numbers(predictions: Any) -> FloatArray:
    """Return predictions of many rows as an array; of several targets, with a column for each."""
    if targets.is_several(predictions):
        return targets.read(predictions).values
    return np.asarray(predictions, np.float64)


def _columns(X: Any) -> dict[Any, Any]:
    """Return rows as columns by name; those of an array are called by number."""
    if isinstance(X, Mapping):
        return dict(X)
    frame = frames.frame_of(X)
    if frame is not None:
        return {series.name: series.to_list() for series in frame.iter_columns()}
    return dict(enumerate(np.asarray(X).T))


def _rows(X: Any) -> Iterator[dict[Any, Any]]:
    columns = _columns(X)
    lists = [c.tolist() if isinstance(c, np.ndarray) else c for c in columns.values()]
    return (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))


def _matrix(X: Any) -> NDArray[Any]:
    """Return rows as an array of numbers, with features in the order of their appearance."""
    if not isinstance(X, Mapping) and frames.frame_of(X) is None:
        return np.asarray(X)
    return np.column_stack([np.asarray(column, np.float64) for column in _columns(X).values()])
