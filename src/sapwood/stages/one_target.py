"""A stage of one target: the ways in for rows and out for predictions, which stages share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.corrector.tokens import key_of, keys_of
from sapwood.regressor import Regressor
from sapwood.rows import frames, targets
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.rows.encoder import is_rows
from sapwood.stages.stage import Stage, passed_on
from sapwood.streams.memory import columns_of
from sapwood.validation import Label

__all__ = ["OneTargetStage", "checked_model", "labels_of"]

FloatArray = NDArray[np.float64]


class OneTargetStage(Stage):
    """A stage around a model of one target that learns and predicts by a few methods of its own."""

    @abstractmethod
    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn one row, given the key of its id, or 0."""

    @abstractmethod
    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        """Return the prediction of a row and its region, -1 if the model has none."""

    @abstractmethod
    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, NDArray[np.int32] | None]:
        """Return the predictions of rows and their regions, None if the model has none."""

    @abstractmethod
    def _learn_many(
        self, X: Any, y: Any, w: ArrayLike | None, keys: Any, *, delayed: bool, regions: Any = None
    ) -> FloatArray:
        """Learn rows, and return what is predicted just before each."""

    # -- one row ----------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features.
        y : float
            The target.
        w : float
            The weight of the row.
        id : str, int, or tuple of such, optional
            The id by which the row was predicted.
        """
        self._learn_row(x, y, w, 0 if id is None else key_of(id))

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> float:
        """Predict one row.

        Parameters
        ----------
        x : dict
            The features.
        id : str, int, or tuple of such, optional
            By which `learn_one` will find the prediction when the label comes.
        record : bool
            Whether the prediction is kept until then.
        """
        return self._place_one(x, 0 if id is None else key_of(id), record)[0]

    # -- many rows --------------------------------------------------------------------------------

    def learn_many(
        self, X: Any, y: ArrayLike, w: ArrayLike | None = None, *, ids: Any = None
    ) -> None:
        """Learn many rows: the same as `learn_one` in a loop, or nothing at all.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features.
        y, w : array_like of float, shape (n,)
            The targets, and the weights of rows.
        ids : sequence, optional
            The id of each row, as for `learn_one`.
        """
        self._learn_many(X, y, w, None if ids is None else keys_of(ids), delayed=True)

    def predict_many(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Predict many rows.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features.
        ids : sequence, optional
            The id of each row, as for `predict_one`.
        record : bool
            Whether the predictions are kept until labels come.
        """
        keys = None if ids is None else keys_of(ids)
        return frames.like(X, self._place_many(X, keys, record)[0])

    def predict_learn_many(
        self,
        X: Any,
        y: ArrayLike,
        w: ArrayLike | None = None,
        *,
        delayed: bool = False,
        ids: Any = None,
    ) -> Any:
        """Predict each row before it is learned.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        delayed : bool
            Whether the rows were predicted before: then their labels count for those predictions.
        ids : sequence, optional
            The id of each row, as for `learn_one`.
        """
        keys = None if ids is None else keys_of(ids)
        return frames.like(X, self._learn_many(X, y, w, keys, delayed=delayed))

    def _learn_into(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None,
        predictions: FloatArray,
        regions: NDArray[np.int32] | None = None,
        *,
        keys: Any = None,
        delayed: bool = True,
    ) -> None:
        """Learn rows; the arrays get the predictions and regions of just before each row."""
        found = self._learn_many(X, y, w, keys, delayed=delayed, regions=regions)
        predictions[...] = found.reshape(predictions.shape)

    def _rows(self, X: Any, names: Sequence[Label] = ()) -> list[Any]:
        """Return rows as encoded dicts; names are those of the columns of an array."""
        if is_rows(X):
            return [self._encoded_one(x) for x in X]
        encoded = self._encoded(frames.lasting(X))
        columns = columns_of(encoded, names)
        lists = [
            column.tolist() if isinstance(column, np.ndarray) else list(column)
            for column in columns.values()
        ]
        kind = EncodedRow if isinstance(encoded, EncodedColumns) else dict
        return [kind(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]

    # -- looking inside ---------------------------------------------------------------------------

    parameters = passed_on("The arguments that make an empty model like the one inside.")
    features = passed_on("The names of the features, in the order of their first appearance.")
    feature_kinds = passed_on("What each feature is.")
    feature_importances = passed_on("The share of each feature; sums to 1.")
    n_leaves = passed_on("How many leaves the model has.")


def checked_model(model: Any, outside: str) -> Regressor:
    """Return a model that such a stage can be put around.

    Parameters
    ----------
    model : object
        What was given.
    outside : str
        What lags and prediction intervals are to be put around instead.

    Raises
    ------
    ValueError
        If it is no tree or forest.
    """
    if not isinstance(model, Regressor):
        raise ValueError(
            f"model = {type(model).__name__}: a tree or forest of Sapwood is expected; put lags "
            f"and prediction intervals around {outside}"
        )
    return model


def labels_of(y: Any, reason: str) -> FloatArray:
    """Return the labels of one target.

    Parameters
    ----------
    y : array_like of float
        What was given.
    reason : str
        Why there is only one, and what to do.

    Raises
    ------
    ValueError
        If there are several targets.
    """
    read = targets.read(y)
    if read.values.ndim > 1 and read.values.shape[1] > 1:
        raise ValueError(f"y has several targets: {reason}")
    return np.array(read.values, np.float64).reshape(-1)
