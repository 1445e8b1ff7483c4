"""The latest encoded rows that a batch learner is fitted on."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "Window"]

FloatArray = NDArray[np.float64]

LEAST_ROWS = 100
FIRST_PLACES = 256
NAMES = ("X", "y", "w")


class Rows(NamedTuple):
    """Encoded rows; whoever has them may read them at any time, as they never change.

    Attributes
    ----------
    X : ndarray of float, shape (n, features)
        NaN where a value is missing.
    y : ndarray of float, shape (n, targets)
        NaN where a target is missing.
    w : ndarray of float, shape (n,)
        Weights.
    first : int
        The number of the first row in the stream.
    """

    X: FloatArray
    y: FloatArray
    w: FloatArray
    first: int

    @property
    def stop(self) -> int:
        """The number of the row after the last."""
        return self.first + len(self.w)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self.X.nbytes + self.y.nbytes + self.w.nbytes

    def to_arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return all of it to be saved, by names that begin with a prefix."""
        arrays: dict[str, NDArray[Any]] = {
            f"{prefix}{name}": np.ascontiguousarray(array)
            for name, array in zip(NAMES, self[:3], strict=True)
        }
        return {**arrays, f"{prefix}first": np.array([self.first], np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str) -> Self:
        """Restore what `to_arrays` returned; nothing of it is trusted.

        Raises
        ------
        ValueError
            If the arrays are not rows.
        """
        absent = np.empty((0, 0, 0))
        X, y, w, first = (arrays.get(f"{prefix}{name}", absent) for name in (*NAMES, "first"))
        for array, dimensions in ((X, 2), (y, 2), (w, 1)):
            if array.dtype != np.float64 or array.ndim != dimensions:
                raise ValueError("the saved rows are of another type")
        if first.dtype != np.int64 or first.shape != (1,) or first[0] < 0:
            raise ValueError("the number of the first saved row is wrong")
        if not len(X) == len(y) == len(w):
            raise ValueError("the saved rows have different lengths")
        if np.isinf(X).any() or np.isinf(y).any() or not (np.isfinite(w) & (w > 0)).all():
            raise ValueError("a saved row holds a number that no row can have")
        return cls(np.array(X), np.array(y), np.array(w), int(first[0]))


class Window:
    """The latest rows of a stream, at most so many and so many bytes.

    A window never changes: `appended` returns another one. Both share arrays, in which rows are
    written once, one after the other, and moved to new arrays when these are full. Therefore only
    one of the windows that were made from the same one can be appended to.

    Parameters
    ----------
    rows : int
        How many rows at most.
    max_bytes : int
        How many bytes the rows occupy at most.
    targets : int
        How many targets a row has.

    Examples
    --------
    >>> window = Window(rows=1000, max_bytes=10**6, targets=1)
    >>> window = window.appended(np.ones((700, 2)), np.ones((700, 1)), np.ones(700))
    >>> window = window.appended(np.ones((700, 3)), np.ones((700, 1)), np.ones(700))
    >>> latest = window.latest()
    >>> latest.X.shape, latest.first
    ((1000, 3), 400)
    """

    def __init__(self, rows: int, max_bytes: int, targets: int) -> None:
        self._most, self._max_bytes, self._targets = rows, max_bytes, targets
        self._X, self._y, self._w = np.empty((0, 0)), np.empty((0, targets)), np.empty(0)
        self._start = self._end = self._first = 0  # places in the arrays; the number of the row

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def nbytes(self) -> int:
        """Bytes of the rows; the arrays have space for at most twice as many."""
        return self.latest().nbytes

    def most_rows(self, width: int) -> int:
        """Return how many rows of so many features there may be."""
        # The arrays have space for twice as many, so that each row is moved once.
        within = self._max_bytes // (2 * 8 * (width + self._targets + 1))
        return max(LEAST_ROWS, min(self._most, within))

    def appended(self, X: FloatArray, y: FloatArray, w: FloatArray) -> Self:
        """Return the window with further rows, without the oldest ones where there are too many.

        Parameters
        ----------
        X, y, w
            As those of `Rows`. Features may be more than before: those of earlier rows are missing.
        """
        width = max(X.shape[1], self._X.shape[1])
        most = self.most_rows(width)
        dropped = max(0, len(X) - most)
        X, y, w = X[dropped:], y[dropped:], w[dropped:]
        kept = min(len(self), most - len(X))
        gone = len(self) - kept
        made = self._from(self._start + gone, self._first + dropped + gone)
        if width > self._X.shape[1] or self._end + len(X) > len(self._w):
            made._move(width, kept + len(X), most)
        start, end = made._end, made._end + len(X)
        made._X[start:end, : X.shape[1]] = X
        made._X[start:end, X.shape[1] :] = np.nan
        made._y[start:end], made._w[start:end] = y, w
        made._end = end
        return made

    def _from(self, start: int, first: int) -> Self:
        made = type(self)(self._most, self._max_bytes, self._targets)
        made._X, made._y, made._w = self._X, self._y, self._w
        made._start, made._end, made._first = start, self._end, first
        return made

    def _move(self, width: int, needed: int, most: int) -> None:
        """Move the rows to new arrays with space for more."""
        places = min(2 * most, max(FIRST_PLACES, 2 * needed))
        kept = slice(self._start, self._end)
        X, y = np.full((places, width), np.nan), np.empty((places, self._targets))
        w = np.empty(places)
        count = len(self)
        X[:count, : self._X.shape[1]] = self._X[kept]
        y[:count], w[:count] = self._y[kept], self._w[kept]
        self._X, self._y, self._w, self._start, self._end = X, y, w, 0, count

    def latest(self) -> Rows:
        """Return all rows."""
        kept = slice(self._start, self._end)
        return Rows(self._X[kept], self._y[kept], self._w[kept], self._first)

    def filled(self, rows: Rows) -> Self:
        """Return a window of saved rows."""
        made = type(self)(self._most, self._max_bytes, self._targets)
        made._X, made._y, made._w = rows[:3]
        made._end, made._first = len(rows.w), rows.first
        return made
