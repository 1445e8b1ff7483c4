"""Groups of rows by the values of one feature, such as the hour of the day."""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.intervals._bounds import MOST_GROUPS
from sapwood.schema import Schema
from sapwood.streams.memory import columns_of
from sapwood.validation import Label

__all__ = ["Groups", "hour_of"]

IntArray = NDArray[np.int32]

PART = "hour"


def hour_of(schema: Schema) -> Label | None:
    """Return the feature that is the hour of the day, None if the schema has none.

    Parameters
    ----------
    schema : Schema
        Of a model. Its own time comes first, then the first column of times with an hour.

    Examples
    --------
    >>> from sapwood.schema import Rule
    >>> hour_of(Schema((Rule("sold", "time", parts=("hour", "weekday")), Rule("area", "number"))))
    'sold.hour'
    """
    having = [rule.name for rule in schema.rules if PART in rule.parts]
    if not having:
        return None
    return f"{schema.time if schema.time in having else having[0]}.{PART}"


class Groups:
    """The groups of rows, each of one value of a feature, in the order of their first rows.

    Parameters
    ----------
    name : name of a feature, optional
        By which rows are grouped; without it all rows have the group 0.
    values : iterable
        Its known values, numbers and labels, at most 63: the group of the first is 1. Rows of
        other values, and those without a value, have the group 0.

    Examples
    --------
    >>> groups = Groups("shift")
    >>> rows = {"shift": np.array([2.0, 7.0, np.nan, 2.0])}
    >>> groups.of_rows(rows).tolist(), groups.of_rows(rows, learn=True).tolist()
    ([0, 0, 0, 0], [1, 2, 0, 1])
    >>> groups.of_row({"shift": 7}), groups.values
    (2, [2.0, 7.0])
    """

    def __init__(self, name: Label | None = None, values: Iterable[Any] = ()) -> None:
        self.name = name
        self._places: dict[Any, int] = {value: place for place, value in enumerate(values, 1)}
        self._sort()

    @property
    def values(self) -> list[Any]:
        """The known values, in the order of their groups."""
        return [*self._places]

    def __len__(self) -> int:
        """How many groups there are, without that of other rows."""
        return len(self._places)

    def copy(self) -> "Groups":
        """Return an independent copy."""
        return Groups(self.name, self.values)

    def of_row(self, x: Mapping[Any, Any], learn: bool = False) -> int:
        """Return the group of a row.

        Parameters
        ----------
        x : mapping
            The features.
        learn : bool
            Whether a new value becomes known.
        """
        if self.name is None:
            return 0
        value = x.get(self.name)
        try:
            found = self._places.get(value, 0)
        except TypeError:
            return 0
        return self._learned(value) if learn and not found else found

    def of_rows(self, X: Any, names: Sequence[Any] = (), learn: bool = False) -> IntArray | None:
        """Return the groups of rows, None if none has one.

        Parameters
        ----------
        X : mapping of columns, list of dicts, frame, or array
            The features.
        names : sequence
            Those of the columns of an array.
        learn : bool
            Whether new values become known.
        """
        if self.name is None:
            return None
        column = (X if isinstance(X, Mapping) else columns_of(X, names)).get(self.name)
        if column is None:
            return None
        if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
            return self._of_numbers(column.astype(np.float64, copy=False), learn)
        rows = ({self.name: value} for value in column)
        return np.fromiter((self.of_row(x, learn) for x in rows), np.int32)

    def _of_numbers(self, values: NDArray[np.float64], learn: bool) -> IntArray:
        found = self._places_of(values)
        if learn and len(self._places) + 1 < MOST_GROUPS:
            new = values[(found == 0) & np.isfinite(values)]
            if len(new):
                first = np.unique(new, return_index=True)[1]
                for value in new[np.sort(first)].tolist():
                    self._learned(value)
                found = self._places_of(values)
        return found

    def _places_of(self, values: NDArray[np.float64]) -> IntArray:
        if not len(self._sorted):
            return np.zeros(len(values), np.int32)
        at = np.minimum(np.searchsorted(self._sorted, values), len(self._sorted) - 1)
        return np.where(self._sorted[at] == values, self._numbers[at], np.int32(0))

    def _learned(self, value: Any) -> int:
        """Add a value, if it is allowed and there is space; return its group."""
        if isinstance(value, Real):
            value = float(value)
        elif isinstance(value, str):
            value = str(value)
        else:
            return 0
        if len(self._places) + 1 >= MOST_GROUPS or (
            type(value) is float and not math.isfinite(value)
        ):
            return 0
        place = self._places[value] = len(self._places) + 1
        self._sort()
        return place

    def _sort(self) -> None:
        """Sort the numbers among the values, by which arrays are looked up."""
        numbers = sorted((value, at) for value, at in self._places.items() if type(value) is float)
        self._sorted = np.array([value for value, _ in numbers], np.float64)
        self._numbers = np.array([at for _, at in numbers], np.int32)
