"""What goes through stages: rows that were read once, and predictions with their tokens."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import keys_of_columns, keys_of_ids
from sapwood.streams.memory import columns_of
from sapwood.validation import Label

__all__ = ["EncodedBatch", "Prediction"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
KeyArray = NDArray[np.uint64]


class Prediction(NamedTuple):
    """What a stage predicts for the rows of a batch.

    Parameters
    ----------
    values : array of float, shape (rows,) or (rows, targets)
        The predictions.
    token : array of uint64, shape (rows,)
        Hand it back with the labels: every stage finds its pending predictions by it.
    region : array of int, optional
        The part of the model that each row was predicted by, such as a leaf.
    interval : array of float, shape (rows, levels, 2) or (rows, targets, levels, 2), optional
        The lower and the upper bound of each level.
    """

    values: FloatArray
    token: KeyArray
    region: IntArray | None = None
    interval: FloatArray | None = None


class EncodedBatch(NamedTuple):
    """Rows that the outermost stage has encoded, with their tokens.

    Parameters
    ----------
    columns : dict of columns
        By name: numbers as arrays, categories as labels.
    token : array of uint64, shape (rows,)
        Keys by which stages find the rows when their labels arrive: keys of the ids of the caller
        or, without ids, of the raw rows.

    Examples
    --------
    >>> batch = EncodedBatch.of([{"x": 1.0, "c": "a"}, {"x": 2.0}], ids=[17, 18])
    >>> batch.columns
    {'x': array([1., 2.]), 'c': ['a', None]}
    >>> len(batch), len(batch.token)
    (2, 2)
    """

    columns: dict[Label, Any]
    token: KeyArray

    @classmethod
    def of(cls, X: Any, ids: Any = None, names: Any = ()) -> Self:
        """Read rows; `names` are those of the columns of an array.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features.
        ids : sequence, optional
            The id of each row: a text, a number, or a tuple of such.
        names : sequence, optional
            Of the features, if X may be an array.
        """
        columns = columns_of(X, names)
        rows = len(next(iter(columns.values()), ()))
        token = keys_of_columns(columns, rows) if ids is None else keys_of_ids(ids)
        return cls(columns, token)

    def __len__(self) -> int:
        return len(self.token)

    def with_columns(self, columns: Mapping[Label, Any]) -> Self:
        """Return the same rows with other columns, as a stage hands them to the one inside."""
        return type(self)(dict(columns), self.token)  # as `_replace` would count rows
