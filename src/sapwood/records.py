"""Records that are declared once: names, types, bounds, and since which format a field exists.

The declaration defines the dtype of a table, the checks of a table that was read from a file, and
the conversion of tables of older formats. Kernels declare the same memory as structs;
`tests/test_records.py` compares their names, types and places with the declarations.

>>> import numpy as np
>>> lengths = Record(
...     Field("count", 0, 10, np.int64, complaint="there are {value} in {place}"),
...     Field("length", 0.0, Times("count", 10.0)),
...     Field("usual", 0.0, since=2, before="length"),
...     complaint="the {name} of {place} is wrong",
... )
>>> lengths.of_format(1).names
('count', 'length')
>>> table = lengths.upgraded(np.array([(1, 2.0), (3, 40.0)], lengths.of_format(1)))
>>> table["usual"]
array([ 2., 40.])
>>> lengths.check(table)
Traceback (most recent call last):
ValueError: the length of 1 is wrong
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["LARGEST", "Field", "Record", "Records", "Times", "check", "check_all", "doubles"]

Array = NDArray[Any]

Records = Any
"""A structured array. For an expression of its fields, a type checker would try all overloads of all
operators on arrays of any type, which takes seconds a line."""

LARGEST = float(np.finfo(np.float64).max)
"""What any finite number is within."""


def check(condition: bool, complaint: str) -> None:
    """Raise ValueError with a complaint unless a condition holds."""
    if not condition:
        raise ValueError(complaint)


def check_all(good: Array, complaint: str) -> None:
    """Raise unless all is good; "{}" in the complaint becomes the place of the first that is not.

    Where there are several axes it is the place along the first.
    """
    if not good.all():
        raise ValueError(complaint.format(_first_bad(good)))


def _first_bad(good: Array) -> int:
    return int(np.unravel_index(int(np.argmin(good)), good.shape)[0])


def doubles(array: Array, shape: tuple[int, ...], what: str, missing: bool = False) -> Array:
    """Return an array if it has a shape and holds finite doubles, or NaN where that is allowed."""
    check(array.dtype == np.float64, f"{what} are {array.dtype}, not doubles")
    check(array.shape == shape, f"{what} have shape {array.shape}, not {shape}")
    good = np.isfinite(array) | (missing & np.isnan(array))
    check(bool(good.all()), f"{what} are not finite")
    return array


class Times(NamedTuple):
    """A bound: some times the value of another field in the same row."""

    field: str
    factor: float


Bound = float | Times | Callable[[Any], Any]


class Field(NamedTuple):
    """One field of a record.

    - `name`: its name.
    - `low`, `high`: its bounds, both included; a function is called with the `limits` of
      `Record.check`. By default, any number but NaN.
    - `type`: a double by default.
    - `whole`: whether it is a whole number, whatever its type.
    - `missing`: whether it may be NaN.
    - `complaint`: what is wrong where it is not, with {name}, {place} and {value}; that of the
      record by default.
    - `below`: the same for values that are too small, if they have a message of their own.
    - `since`: the format of files since which it exists.
    - `before`: the field, of those before it, whose value it starts with in tables of older
      formats; it is 0 there by default.
    - `element_of`: the array of the kernels' struct that holds it, one after the other with its
      neighbours.
    """

    name: str
    low: Bound = -np.inf
    high: Bound = np.inf
    type: DTypeLike = np.float64
    whole: bool = False
    missing: bool = False
    complaint: str = ""
    below: str = ""
    since: int = 1
    before: str = ""
    element_of: str = ""


class Record:
    """What the rows of a table are.

    - `*fields`: in the order of memory, in which there are no gaps.
    - `complaint`: what is wrong with a value out of bounds, with {name}, {place} and {value}.
    - `finite`: what is wrong with a value that is not finite, if none may be, whatever its bounds.
    """

    def __init__(self, *fields: Field, complaint: str, finite: str = "") -> None:
        self.fields = fields
        self._complaint, self._finite = complaint, finite
        self.dtype = _dtype(fields)

    def of_format(self, format: int) -> np.dtype[Any]:
        """Return the dtype that tables had in files of a format."""
        return _dtype([field for field in self.fields if field.since <= format])

    def upgraded(self, table: Array) -> Array:
        """Return a table of any format as one of the newest; what is none of them, as it is."""
        formats = {field.since for field in self.fields}
        if table.dtype == self.dtype or table.dtype not in map(self.of_format, formats):
            return table
        new = np.zeros(table.shape, self.dtype)
        for field in self.fields:
            if field.name in (table.dtype.names or ()):
                new[field.name] = table[field.name]
            elif field.before:
                new[field.name] = new[field.before]
        return new

    def check(self, table: Array, limits: Any = None) -> None:
        """Raise ValueError unless every value of a table lies within its bounds.

        - `table`: of this dtype.
        - `limits`: the argument of bounds that are functions.
        """
        if self._finite:
            for field in self.fields:
                _refuse_unless(np.isfinite(table[field.name]), table, field, self._finite)
        for field in sorted(self.fields, key=_depends):
            self._check_field(table, field, limits)

    def _check_field(self, table: Array, field: Field, limits: Any) -> None:
        values = table[field.name]
        low, high = (_bound(bound, table, limits) for bound in (field.low, field.high))
        complaint = field.complaint or self._complaint
        missing = np.isnan(values) if field.missing else np.zeros(values.shape, np.bool_)
        _refuse_unless(missing | (values >= low), table, field, field.below or complaint)
        good = values <= high
        if field.whole:
            good &= values == np.floor(values)
        _refuse_unless(missing | good, table, field, complaint)


def _depends(field: Field) -> bool:
    """Whether the bounds of a field are other fields, which are checked first."""
    return isinstance(field.low, Times) or isinstance(field.high, Times)


def _bound(bound: Bound, table: Array, limits: Any) -> Any:
    if isinstance(bound, Times):
        return bound.factor * table[bound.field]
    return bound(limits) if callable(bound) else bound


def _refuse_unless(good: Array, table: Array, field: Field, complaint: str) -> None:
    if not good.all():
        place = _first_bad(good)
        value = table[field.name].reshape(-1)[int(np.argmin(good))].item()
        raise ValueError(complaint.format(name=field.name, place=place, value=value))


def _dtype(fields: Sequence[Field]) -> np.dtype[Any]:
    return np.dtype([(field.name, field.type) for field in fields])
