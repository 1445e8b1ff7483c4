"""Models of other libraries inside stages."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.model import can_be_saved
from sapwood.row_methods import RowMethods, RowsToLearn
from sapwood.rows import frames, targets
from sapwood.rows.encoder import columns_of_rows, is_rows

__all__ = ["AnyModel", "bytes_of", "hooks_of"]

FloatArray = NDArray[np.float64]

WAYS = (("predict_one", "learn_one"), ("predict_many", "learn_many"), ("predict", "partial_fit"))


def hooks_of(model: Any) -> Any:
    """Return what has the methods by which a stage calls a model: the model itself, if it is ours."""
    return model if isinstance(model, RowMethods) else AnyModel(model)


def bytes_of(model: Any) -> NDArray[np.uint8]:
    """Return the file of the model inside as an array.

    Raises
    ------
    TypeError
        If it cannot be saved.
    """
    if not can_be_saved(model):
        raise TypeError(
            f"{type(model).__name__} cannot be saved, as it has no to_bytes and from_bytes: pickle "
            "the whole instead, if you trust where it goes"
        )
    return np.frombuffer(model.to_bytes(), np.uint8)


class AnyModel:
    """A model of another library, called by the methods that it has.

    It has the methods that a stage calls (`sapwood.row_methods.RowMethods`). Keys are ignored, as the
    model keeps no pending predictions.

    Parameters
    ----------
    model : object
        With `predict_one` and `learn_one`, as river's; or `predict_many` and `learn_many`; or
        `predict` and `partial_fit`, as scikit-learn's.

    Examples
    --------
    >>> from sapwood.evaluate.baselines import LastValue
    >>> last = AnyModel(LastValue())
    >>> last._learn_many(RowsToLearn([[0.0], [0.0]], np.array([3.0, 5.0])))
    array([0., 3.])
    >>> last._place_one({0: 0.0})
    (5.0, -1)
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

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[Any, int]:
        """Return the prediction of a row, 0.0 where the model has none; and that it has no region."""
        if self._way == 0:
            return _or_zero(self._model.predict_one(x)), -1
        return float(self._predict_batch({name: [value] for name, value in x.items()})[0]), -1

    def _place_many(self, X: Any, keys: Any = None, record: bool = True) -> tuple[FloatArray, None]:
        """Return the predictions of rows."""
        if self._in_batches and hasattr(self._model, "predict_many"):
            return _numbers(self._model.predict_many(X)), None
        if self._way == 0:
            found = [_or_zero(self._model.predict_one(x)) for x in _rows(X)]
            return np.array(found, np.float64), None
        return self._predict_batch(X), None

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn a row; the weight is left out if it is 1."""
        if self._way == 0:
            self._model.learn_one(x, y, **({} if w == 1.0 else {"w": w}))
            return
        X = {name: [value] for name, value in x.items()}
        more: dict[str, Any] = {} if w == 1.0 else {"w": [w]}
        if self._way == 1:
            self._model.learn_many(X, np.array([y]), **more)
        else:
            more = {"sample_weight" if name == "w" else name: own for name, own in more.items()}
            self._model.partial_fit(_matrix(X), np.array([y]), **more)

    def _learn_many(self, batch: RowsToLearn) -> FloatArray:
        """Learn rows; return what was predicted just before each."""
        X, y, w, *_ = batch
        names, values = targets.read(y)
        weights = None if w is None or (np.asarray(w) == 1.0).all() else np.asarray(w)
        found = batch.found(values.shape)
        if self._in_batches:
            labels = dict(zip(names, values.T, strict=True)) if names else values
            more = {} if weights is None else {"w": weights}
            found[...] = _numbers(self._model.predict_learn_many(X, labels, **more))
            return found
        for place, x in enumerate(_rows(X)):
            found[place] = self._place_one(x)[0]
            self._learn_row(x, float(values[place]), 1.0 if weights is None else weights[place], 0)
        return found

    _learn_into = RowMethods._learn_into

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
    if is_rows(X):
        return dict(columns_of_rows(X))
    if isinstance(X, Mapping):
        return dict(X)
    frame = frames.frame_of(X)
    if frame is not None:
        return {series.name: series.to_list() for series in frame.iter_columns()}
    return dict(enumerate(np.asarray(X).T))


def _rows(X: Any) -> Iterator[dict[Any, Any]]:
    if is_rows(X):
        return iter(X)
    columns = _columns(X)
    lists = [c.tolist() if isinstance(c, np.ndarray) else c for c in columns.values()]
    return (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))


def _matrix(X: Any) -> NDArray[Any]:
    """Return rows as an array of numbers, with features in the order of their appearance."""
    if not (isinstance(X, Mapping) or is_rows(X)) and frames.frame_of(X) is None:
        return np.asarray(X)
    return np.column_stack([np.asarray(column, np.float64) for column in _columns(X).values()])
