"""Rows on their way through stages: one, or many, with the keys of their ids."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.row_methods import RowsToLearn
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.rows.encoder import is_rows
from sapwood.rows.targets import Targets, named
from sapwood.streams.memory import columns_of

__all__ = ["GivenRow", "GivenRows", "plain", "rows_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
KeyArray = NDArray[np.uint64]


class GivenRow:
    """A row as a dict.

    Parameters
    ----------
    x : dict
        The features.
    key : int
        The key of its id; 0 without an id.
    """

    count = 1

    def __init__(self, x: Any, key: int = 0) -> None:
        self.x, self.key = x, key

    @property
    def ids(self) -> KeyArray | None:
        """The key of its id as an array, if it has one."""
        return np.array([self.key], np.uint64) if self.key else None

    @ids.setter
    def ids(self, keys: KeyArray | None) -> None:
        self.key = 0 if keys is None else int(keys[0])

    def place(self, model: Any, record: bool) -> tuple[FloatArray, int]:
        """Return the prediction of a model of one target, and its region."""
        found, region = model._place_one(self.x, self.key, record)
        return np.array([found]), region

    def learn(self, model: Any, y: Any, w: FloatArray) -> None:
        """Let a model learn the row; labels are of one target, or `Targets` of several."""
        is_named = isinstance(y, Targets)
        own: Any = named(y.names or (), y.values[0].tolist()) if is_named else float(y[0])
        model._learn_row(self.x, own, float(w[0]), self.key)

    def learn_into(
        self,
        model: Any,
        y: Any,
        w: FloatArray,
        before: FloatArray,
        regions: IntArray | None = None,
        *,
        delayed: bool = True,
    ) -> None:
        """Let a model learn the row; `before` gets what it predicts just before."""
        found = model._place_one(self.x, self.key, not delayed)[0]
        before[:] = found if type(found) is float else plain(found)
        self.learn(model, y, w)


class GivenRows:
    """Many rows, as the caller gave them or as columns.

    Parameters
    ----------
    X : array_like, mapping of columns, list of dicts, or data frame
        The features.
    ids : ndarray of uint64, optional
        The keys of their ids.
    """

    def __init__(self, X: Any, ids: KeyArray | None = None) -> None:
        self.X, self.ids = X, ids

    def place(self, model: Any, record: bool) -> tuple[FloatArray, IntArray | None]:
        """Return the predictions of a model, and the regions of rows."""
        found: tuple[FloatArray, IntArray | None] = model._place_many(self.X, self.ids, record)
        return found

    def learn(self, model: Any, y: Any, w: FloatArray) -> None:
        """Let a model learn the rows; labels are of one target, or `Targets` of several."""
        model._learn_many(RowsToLearn(self.X, y, w, self.ids, predicting=False))

    def learn_into(
        self,
        model: Any,
        y: Any,
        w: FloatArray,
        before: FloatArray,
        regions: IntArray | None = None,
        *,
        delayed: bool = True,
    ) -> None:
        """Let a model learn the rows; the arrays get predictions and regions of just before."""
        model._learn_into(self.X, y, w, before, regions, keys=self.ids, delayed=delayed)


def rows_of(X: Any, names: Any = ()) -> list[Any]:
    """Return rows as dicts; those that are dicts already stay as they are.

    Parameters
    ----------
    X : array_like, mapping of columns, list of dicts, or data frame
        The rows.
    names : sequence, optional
        Of the features, if X may be an array.
    """
    if is_rows(X):
        return list(X)
    columns = columns_of(X, names)
    lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values()]
    kind = EncodedRow if isinstance(X, EncodedColumns) else dict
    return [kind(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain(found: Any) -> Any:
    """Return what was found for a row; of several targets, as a list."""
    return [*found.values()] if isinstance(found, Mapping) else found
