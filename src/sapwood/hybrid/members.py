"""Rows on their way to the online models: one as a dict, or many as columns."""

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import key_of_row, keys_of_columns
from sapwood.regressor import Regressor
from sapwood.rows import frames
from sapwood.rows._dict_row import RowReader
from sapwood.rows.encoded import marked_like
from sapwood.rows.encoder import EncodedRows, is_rows
from sapwood.stages.labels import row_of
from sapwood.stages.rows import GivenRow, GivenRows
from sapwood.streams.memory import columns_of
from sapwood.validation import Label

__all__ = ["FEATURE", "ManyRows", "OneRow", "StreamRows", "feature_names", "many_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
KeyArray = NDArray[np.uint64]

FEATURE = "batch.prediction"


def feature_names(names: tuple[Label, ...]) -> tuple[str, ...]:
    """Return how the corrector calls the predictions of the batch model, given several targets."""
    return tuple(f"{FEATURE}.{name}" for name in names) if names else (FEATURE,)


class OneRow(GivenRow):
    """A row as a dict."""

    def part(self, start: int, stop: int) -> "OneRow":
        """Return the row."""
        return self

    def thinned(self, start: int, step: int) -> "OneRow":
        """Return the row."""
        return self

    def names(self) -> list[Label]:
        """Return the names of the features, in the order of the row."""
        return list(self.x)

    def first_rows(self) -> list[int]:
        """Return the rows with which features come, those of the first one not counted."""
        return []

    def plan(self, reader: RowReader, learn: bool) -> EncodedRows:
        """Return the row as numbers, and what it adds to the features of a reader."""
        features = reader.features
        if reader.read(self.x, learn):
            return EncodedRows(features, features.known, reader.row[np.newaxis].copy())
        return features.read_one(self.x, learn)

    def column(self, name: Label) -> Any:
        """Return the values of a feature; None if the row does not have it."""
        return [self.x[name]] if name in self.x else None

    def keys(self) -> KeyArray:
        """Return by what pending predictions are found."""
        return np.array([self.key or key_of_row(self.x)], np.uint64)

    def with_features(self, names: Sequence[str], values: FloatArray) -> "OneRow":
        """Return the row with further features."""
        more = zip(names, values[0].tolist(), strict=True)
        own = {**self.x, **{name: None if math.isnan(v) else v for name, v in more}}
        return OneRow(marked_like(self.x, own), self.key)

    def predict(self, model: Regressor, record: bool) -> FloatArray:
        """Return the prediction, with a column for each target."""
        return row_of(model._place_one(self.x, self.key, record)[0], 1)


class ManyRows(GivenRows):
    """Rows as columns.

    Parameters
    ----------
    columns : mapping
        Columns of the same length, by names of features.
    count : int
        How many rows.
    ids : ndarray of uint64, optional
        The keys of their ids.
    first_rows : mapping, optional
        The first row that has a feature, by names; of other features it is the first of all.
    """

    def __init__(
        self,
        columns: Mapping[Label, Any],
        count: int,
        ids: KeyArray | None = None,
        first_rows: Mapping[Label, int] | None = None,
    ) -> None:
        # Columns alone do not state how many rows there are if none has a feature.
        super().__init__(columns if columns or not count else [{}] * count, ids)
        self.columns, self.count = columns, count
        self._first_rows = first_rows or {}

    def part(self, start: int, stop: int) -> "ManyRows":
        """Return some of the rows, with the features that they or earlier ones have."""
        if (start, stop) == (0, self.count):
            return self
        later = {name for name, row in self._first_rows.items() if row >= stop}
        return self._sliced(slice(start, stop), later)

    def thinned(self, start: int, step: int) -> "ManyRows":
        """Return one in `step` of the rows, from `start` on."""
        return self._sliced(slice(start, self.count, step))

    def _sliced(self, places: slice, left_out: Container[Label] = ()) -> "ManyRows":
        columns = {
            name: column[places] for name, column in self.columns.items() if name not in left_out
        }
        ids = None if self.ids is None else np.ascontiguousarray(self.ids[places])
        count = len(range(self.count)[places])
        return ManyRows(marked_like(self.columns, columns), count, ids)

    def names(self) -> list[Label]:
        """Return the names of the features, in the order of the columns."""
        return list(self.columns)

    def first_rows(self) -> list[int]:
        """Return the rows with which features come, those of the first one not counted."""
        return sorted({row for row in self._first_rows.values() if row > 0})

    def plan(self, reader: RowReader, learn: bool) -> EncodedRows:
        """Return the rows as numbers, and what they add to the features of a reader."""
        return reader.features.read(self.X, learn)

    def column(self, name: Label) -> Any:
        """Return the values of a feature; None if the rows do not have it."""
        return self.columns.get(name)

    def keys(self) -> KeyArray:
        """Return by what pending predictions are found."""
        return keys_of_columns(self.columns, self.count) if self.ids is None else self.ids

    def with_features(self, names: Sequence[str], values: FloatArray) -> "ManyRows":
        """Return the rows with further features."""
        columns = dict(self.columns)
        for name, own in zip(names, values.T, strict=True):
            columns[name] = np.ascontiguousarray(own)
        return ManyRows(marked_like(self.columns, columns), self.count, self.ids)

    def predict(self, model: Regressor, record: bool) -> FloatArray:
        """Return predictions, with a column for each target."""
        found = model._place_many(self.X, self.ids, record)[0]
        return found.reshape(self.count, max(1, len(model.targets)))


StreamRows = OneRow | ManyRows
"""Rows that models predict and learn."""


def many_rows(X: Any, keys: KeyArray | None, names: Sequence[Label]) -> ManyRows:
    """Return many rows as columns.

    Parameters
    ----------
    X : array_like, mapping of columns, list of dicts, or data frame
        The features.
    keys : ndarray of uint64, optional
        The keys of their ids.
    names : sequence
        Of the features, if X may be an array.
    """
    X = frames.lasting(X)
    count = len(X) if is_rows(X) else 0
    first_rows = first_rows_of(X) if isinstance(X, list | tuple) else None
    if not isinstance(X, Mapping) or any(not isinstance(c, np.ndarray) for c in X.values()):
        is_table = not isinstance(X, Mapping) and frames.frame_of(X) is None
        X = columns_of(X, names if is_table else ())
    count = len(next(iter(X.values()))) if X else count
    return ManyRows(X, count, keys, first_rows)


def first_rows_of(rows: Sequence[Any]) -> dict[Label, int]:
    """Return the first row that has a feature, by its name, of rows that are dicts.

    Examples
    --------
    >>> first_rows_of([{"temp": 21.5}, {"city": "Oslo", "temp": 3.0}])
    {'temp': 0, 'city': 1}
    """
    found: dict[Label, int] = {}
    for place, row in enumerate(rows):
        for name in row if isinstance(row, Mapping) else ():
            found.setdefault(name, place)
    return found
