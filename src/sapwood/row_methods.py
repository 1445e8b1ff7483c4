"""The methods for rows that all models of numbers share, with their documentation.

A model defines how it predicts and learns by keys: `_learn_row`, `_place_one`, `_place_many` and
`_learn_many`. The public methods convert ids to keys, and predictions to the type of the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.corrector.tokens import key_of, keys_of
from sapwood.deprecation import deprecated
from sapwood.rows import frames, targets
from sapwood.validation import Label

__all__ = ["RegionMethods", "RowMethods", "RowsToLearn", "documented_by", "whole_batch"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


Method = TypeVar("Method", bound=Callable[..., Any])


def documented_by(other: Any) -> Callable[[Method], Method]:
    """Return a decorator that gives a method the documentation of another one.

    Parameters
    ----------
    other : callable
        What is documented.
    """

    def document(method: Method) -> Method:
        method.__doc__ = other.__doc__
        return method

    return document


class RowsToLearn(NamedTuple):
    """Rows with their labels.

    Parameters
    ----------
    X, y, w
        The rows, labels and weights, as the caller gave them, or as a stage makes them.
    keys : array of uint64, optional
        The keys of the ids of rows.
    delayed : bool
        Whether the rows were predicted before.
    predicting : bool, or array of float
        Whether it is wanted what is predicted just before each row; or the array for it.
    regions : array of int, optional
        Gets the regions of rows. Arrays are filled in the step that learns the rows, so that an
        interruption after it loses nothing.
    """

    X: Any
    y: Any
    w: ArrayLike | None = None
    keys: Any = None
    delayed: bool = True
    predicting: bool | FloatArray = True
    regions: IntArray | None = None

    def found(self, shape: tuple[int, ...]) -> FloatArray:
        """Return the array for the predictions: the given or a new one."""
        own = self.predicting
        return np.empty(shape) if isinstance(own, bool) else own.reshape(shape)


class RowMethods(ABC):
    """The methods for rows of a regressor, and of stages around one.

    The key of a row is that of its id; or of the row itself, as a stage passes it on; or 0.
    """

    @abstractmethod
    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn one row."""

    @abstractmethod
    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[Any, int]:
        """Return the prediction of a row and its region, -1 if the model has none."""

    @abstractmethod
    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        """Return the predictions of rows and their regions, None if the model has none."""

    @abstractmethod
    def _learn_many(self, batch: RowsToLearn) -> Any:
        """Learn rows; return what is predicted just before each, if that is wanted."""

    def _values_of(self, X: Any, keys: Any, record: bool) -> FloatArray:
        """Return the predictions of rows."""
        return self._place_many(X, keys, record)[0]

    def _names(self) -> tuple[Label, ...]:
        """Return the names of several targets; none if there is one."""
        return ()

    def _in_kind(self, X: Any, predictions: FloatArray) -> Any:
        """Return predictions in the type that users of X expect."""
        if predictions.ndim == 1:
            return frames.like(X, predictions)
        return targets.in_kind(X, predictions, self._names())

    def _learn_into(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None,
        predictions: FloatArray,
        regions: IntArray | None = None,
        *,
        keys: Any = None,
        delayed: bool = True,
    ) -> None:
        """Learn rows; the arrays get the predictions and regions of just before each row."""
        self._learn_many(RowsToLearn(X, y, w, keys, delayed, predictions, regions))

    # -- one row ----------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features: numbers, bools, strings; None, NaN or nothing where a value is missing.
        y : float, or dict of float
            The target: any finite number. Several targets are a dict. If a target is None, NaN or
            absent, the row is learned for the other targets.
        w : float
            The weight of the row: positive and finite. Two rows of weight 1 are as much evidence
            as one of weight 2.
        id : str, int, or tuple of such, optional
            The id that was passed to `predict_one`, if the label is delayed. Without an id, the
            prediction is found by the values of the row; among equal rows, in the order of
            predictions.

        Raises
        ------
        ValueError, OverflowError
            If a value is not valid; nothing is changed then.

        Examples
        --------
        >>> import sapwood
        >>> tree = sapwood.HoeffdingTreeRegressor()
        >>> tree.learn_one({"temp": 21.5, "city": "Oslo"}, 310)
        >>> tree.predict_one({"temp": 21.5})
        310.0
        >>> tree.learn_one({"temp": "warm"}, 300)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: x['temp'] = 'warm' must be a number, as the values of this feature before ...
        """
        self._learn_row(x, y, w, 0 if id is None else key_of(id))

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        """Predict one row; the prediction is kept until its label arrives.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`. Unknown features are ignored, with a warning if all
            features are unknown. Unknown categories count as missing.
        id : str, int, or tuple of such, optional
            An id by which `learn_one` finds the prediction when the label arrives.
        record : bool
            Whether the prediction is stored until its label arrives, and then scored.

        Returns
        -------
        float, or dict of float
            The prediction; 0.0 before a row was learned. For several targets, a dict.

        Examples
        --------
        >>> import sapwood
        >>> tree = sapwood.HoeffdingTreeRegressor()
        >>> for hour in range(48):  # labels are 3 rows late
        ...     _ = tree.predict_one({"weekend": 0}, id=hour)
        ...     if hour >= 3:
        ...         tree.learn_one({"weekend": 0}, hour - 3.0, id=hour - 3)
        """
        return self._place_one(x, 0 if id is None else key_of(id), record)[0]

    # -- many rows --------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features. The columns of an array are the features in the order in which they first
            appeared; in an empty model, they are named 0, 1, … Data frames of pandas, polars and
            pyarrow, and Arrow streams, are accepted.
        y : array_like or series of float, shape (n,); or several targets
            The targets, matched by position; an index is ignored. Several targets are an array of
            shape (n, targets), a mapping of columns, a list of dicts or a data frame; single values
            may be missing (NaN, None, absent). The first row fixes the number of targets of a
            model.
        w : array_like or series of float, shape (n,), optional
            The weights; 1 by default.
        ids : sequence, optional
            The id of each row, as for `learn_one`.
        """
        self._learn_many(RowsToLearn(X, y, w, _keys(ids), predicting=False))

    def predict_many(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Predict many rows: the same as `predict_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for `learn_many`.
        ids : sequence, optional
            The id of each row, as for `predict_one`.
        record : bool
            As for `predict_one`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            The predictions: for a frame of pandas or polars a series of that library named
            "prediction", with the index of the frame; for one of pyarrow an array of pyarrow. Of
            several targets: for a frame one with a column for each, for a mapping a dict of
            columns, for all else an array of shape (n, targets).
        """
        return self._in_kind(X, self._values_of(X, _keys(ids), record))

    def predict_learn_many(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None = None,
        *,
        delayed: bool = False,
        ids: Any = None,
    ) -> Any:
        """Predict each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        delayed : bool
            Whether the rows were predicted before: then the model is scored by the predictions
            that were issued, not by those that are returned.
        ids : sequence, optional
            The id of each row, as for `learn_many`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            What `predict_one` would have returned for each row just before `learn_one`; of the
            type that `predict_many` returns.
        """
        return self._in_kind(X, self._learn_many(RowsToLearn(X, y, w, _keys(ids), delayed)))


class RegionMethods(RowMethods):
    """The methods for rows of a model that has regions, such as the leaves of a tree."""

    def predict_region_one(
        self,
        x: dict[Any, Any],
        record: bool = True,
        *,
        id: Any = None,
        asked: bool | None = None,
    ) -> tuple[Any, int]:
        """Predict one row as `predict_one` does, and return the region of the model it is in.

        Parameters
        ----------
        x : dict
            The features, as for `predict_one`.
        record : bool
            Whether the model is scored by this prediction when the row is learned.
        id : str, int, or tuple of such, optional
            As for `predict_one`.
        asked : bool, optional
            The former name of `record`.

        Returns
        -------
        prediction : float, or dict of float
            As `predict_one` returns it.
        region : int
            The node of the row's leaf. A node keeps its number until the tree is pruned, and its
            place in `region_parents` is the node it was split off from.
        """
        if asked is not None:
            deprecated("predict_region_one(x, asked=...)", "predict_region_one(x, record=...)")
            record = asked
        return self._place_one(x, 0 if id is None else key_of(id), record)

    def predict_regions(
        self, X: Any, *, ids: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        """Return what `predict_region_one` does for many rows, as two arrays.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features, as for `learn_many`.
        ids, record
            As for `predict_many`.
        """
        return self._place_many(X, _keys(ids), record)

    def predict_learn_regions(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None = None,
        asked: bool | None = None,
        *,
        delayed: bool = False,
        ids: Any = None,
    ) -> tuple[FloatArray, IntArray]:
        """Return what `predict_region_one` would have for each row just before `learn_one`.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        asked : bool, optional
            The opposite of `delayed`: its former name.
        delayed : bool
            As for `predict_learn_many`.
        ids : sequence, optional
            The id of each row, as for `learn_many`.
        """
        if asked is not None:
            deprecated("predict_learn_regions(asked=...)", "predict_learn_regions(delayed=...)")
            delayed = not asked
        read = targets.read(y)
        regions = np.empty(len(read.values), np.int32)
        batch = RowsToLearn(X, read, w, _keys(ids), delayed, regions=regions)
        return self._learn_many(batch), regions


def whole_batch(learn: Callable[[int], None], rows_done: Callable[[], int]) -> None:
    """Learn a batch in several steps; what is raised between them is raised after the last one.

    Stages around a model rely on a batch being learned as a whole, or not at all. Only a second
    interruption, as by Ctrl-C, ends it in between.

    Parameters
    ----------
    learn : callable
        Learns all rows but the first ones, of which it gets the number.
    rows_done : callable
        Returns how many rows were learned.
    """
    try:
        learn(0)
    except BaseException:
        if done := rows_done():
            learn(done)
        raise


def _keys(ids: Any) -> Any:
    return None if ids is None else keys_of(ids)
