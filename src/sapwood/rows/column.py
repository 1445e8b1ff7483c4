"""One column of rows: its values become doubles, its labels codes."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.door import FloatArray, Label, Plain

__all__ = ["CATEGORY", "NUMBER", "OTHERS", "UNKNOWN", "Coded", "Column", "Refused", "as_doubles"]

NUMBER, CATEGORY, UNKNOWN = "number", "category", "unknown"
OTHERS = 63  # labels with a code of their own, and the code that all later ones share

PLAIN_TYPES = frozenset({str, bool, int, float, type(None)})


class Refused(Exception):  # noqa: N818 - it is made a ValueError before anybody sees it
    """The row of a value that breaks a rule, and that rule."""

    def __init__(self, row: int, rule: str):
        self.row, self.rule = row, rule


class Coded:
    """A column whose rows have the same value where they have the same code.

    Parameters
    ----------
    codes : ndarray of int
        The code of each row; -1 where the value is missing.
    values_at : callable
        Returns the values in some rows, as a list.

    Attributes
    ----------
    first_rows : ndarray of int
        The rows in which a value occurs for the first time, in their order.

    Examples
    --------
    >>> colours = ["red", None, "blue", "red"]
    >>> coded = Coded(np.array([7, -1, 2, 7]), lambda rows: [colours[row] for row in rows])
    >>> coded.first_rows, coded.distinct()
    (array([0, 2]), ['red', 'blue'])
    >>> coded.spread(np.array([0.5, 1.5]))
    array([0.5, nan, 1.5, 0.5])
    """

    __slots__ = ("_codes", "_values_at", "first_rows")

    def __init__(self, codes: NDArray[Any], values_at: Callable[[NDArray[np.intp]], list[Any]]):
        self._values_at = values_at
        self._codes = codes.astype(np.intp, copy=False)
        if self._codes.max(initial=-1) >= len(codes):  # tables would be longer than the column
            distinct, places = np.unique(self._codes, return_inverse=True)
            self._codes = places - int(distinct[0] < 0)
        first = np.full(self._codes.max(initial=-1) + 2, len(codes))
        np.minimum.at(first, self._codes, np.arange(len(codes)))
        first[-1] = len(codes)  # it was that of -1
        self.first_rows = np.sort(first[first < len(codes)])

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, row: int) -> Any:
        return self._values_at(np.array([row]))[0]

    def distinct(self) -> list[Any]:
        """Return the values in `first_rows`."""
        return self._values_at(self.first_rows)

    def spread(self, numbers: FloatArray) -> FloatArray:
        """Return the number of each row, given those of `first_rows`; NaN where one is missing."""
        codes = self._codes[self.first_rows]
        table = np.full(codes.max(initial=-1) + 2, np.nan)
        table[codes] = numbers
        return table[self._codes]


Values = NDArray[Any] | list[Any] | Coded  # a column: of numbers if it is an array


class Column:
    """One feature while rows are read: what is known of it, and what they add.

    Parameters
    ----------
    name : str or int
        The feature.
    kind : {"number", "category", "unknown"}
        What its values are.
    known : dict
        The codes of its labels.
    declared : bool
        Whether it was declared to be a category: then whole floats are labels too.
    learn : bool
        Whether new labels get codes.
    """

    __slots__ = ("declared", "fresh", "kind", "known", "learn", "name")

    def __init__(
        self, name: Label, kind: str, known: Mapping[Label, int], declared: bool, learn: bool
    ):
        self.name, self.kind, self.known = name, kind, known
        self.declared, self.learn = declared, learn
        self.fresh: dict[Label, int] = {}

    def read(self, values: Values, categorical: bool = False) -> FloatArray:
        """Return the values as doubles, NaN where missing; raise `Refused` at a bad one."""
        if isinstance(values, Coded):
            return self._of_coded(values, categorical)
        if self.kind == UNKNOWN and not self.learn:
            return self._never_learned(values)
        if categorical and self.kind == UNKNOWN:
            self.kind = CATEGORY
        if isinstance(values, np.ndarray) and self.kind != CATEGORY:
            return self._of_array(values)
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        return self._of_list(listed, self.declared or categorical)

    def read_value(self, value: Any) -> float:
        """Return one value as a double, NaN if missing; raise `Unfit` for a bad one."""
        never_learned = self.kind == UNKNOWN and not self.learn
        value = door.plain(value)
        if self.kind == UNKNOWN:
            self.kind = _kind_of((value,))
        if self.kind == CATEGORY:
            label = door.label(value, self.declared)
            number = np.nan if label is None else self._code(label)
        else:
            door.check_number(value)
            number = np.nan if value is None else float(value)
        return np.nan if never_learned else number

    def _of_coded(self, values: Coded, categorical: bool) -> FloatArray:
        """Read each value once; their order is that in which all rows would bring them."""
        try:
            return values.spread(self.read(values.distinct(), categorical))
        except Refused as error:
            raise Refused(int(values.first_rows[error.row]), error.rule) from None

    def _never_learned(self, values: NDArray[Any] | list[Any]) -> FloatArray:
        """Return NaN for all values: each may be of any kind, but must be of one."""
        for row, value in enumerate(values):
            self.kind = UNKNOWN
            try:
                self.read_value(value)
            except door.Unfit as rule:
                raise Refused(row, str(rule)) from None
        return np.full(len(values), np.nan)

    def _of_array(self, values: NDArray[Any]) -> FloatArray:
        numbers = as_doubles(values)
        bad = np.flatnonzero(np.isinf(numbers))
        if len(bad):
            raise Refused(int(bad[0]), door.FEATURE_FINITE)
        if self.kind == UNKNOWN and not (
            np.isnan(numbers[:1]).all() and np.isnan(numbers).all()  # mostly the first will do
        ):
            self.kind = NUMBER
        return numbers

    def _of_list(self, values: Sequence[Any], whole: bool) -> FloatArray:
        """Read values of any type up to the first that is unfit, and then raise for that one."""
        refused = None
        types = set(map(type, values))
        if not types <= PLAIN_TYPES:
            values, refused = _plain(values)
            types = set(map(type, values))
        if self.kind == UNKNOWN:
            self.kind = _kind_of(values)
        if self.kind != CATEGORY:
            numbers = _numbers(values, str in types)
        else:
            if float in types and not whole:  # it may equal a label, but it is none
                values, refused = _up_to_a_float(values, refused)
            numbers = self._codes(values, whole)
        if refused is not None:
            raise refused
        return numbers

    def _codes(self, values: Sequence[Plain], whole: bool) -> FloatArray:
        codes: dict[Plain, float] = {}
        for value in dict.fromkeys(values):
            try:
                label = door.label(value, whole)
                codes[value] = np.nan if label is None else self._code(label)
            except door.Unfit as rule:
                raise Refused(values.index(value), str(rule)) from None
        return np.fromiter(map(codes.__getitem__, values), np.float64, len(values))

    def _code(self, label: Label) -> float:
        code = self.known.get(label, self.fresh.get(label))
        if code is not None:
            return code
        count = len(self.known) + len(self.fresh)
        if count >= OTHERS:
            return OTHERS
        if not self.learn:
            return np.nan
        door.check_text(label)
        self.fresh[label] = count
        return count


def _plain(values: Sequence[Any]) -> tuple[list[Plain], Refused | None]:
    """Return values of Python's own types, up to the first that is neither number nor text."""
    plain: list[Plain] = []
    for row, value in enumerate(values):
        try:
            plain.append(door.plain(value))
        except door.Unfit as rule:
            return plain, Refused(row, str(rule))
    return plain, None


def _up_to_a_float(
    values: Sequence[Plain], refused: Refused | None
) -> tuple[Sequence[Plain], Refused | None]:
    """Return the values before the first float that is not NaN, and the refusal of that one."""
    for row, value in enumerate(values):
        if isinstance(value, float) and not math.isnan(value):
            rule = door.FEATURE_FINITE if math.isinf(value) else door.FEATURE_LABEL
            return values[:row], Refused(row, rule)
    return values, refused


def _kind_of(values: Sequence[Plain]) -> str:
    """Return the kind that the first value decides that is not missing."""
    for value in values:
        if isinstance(value, str):
            return CATEGORY
        if value is not None and not (isinstance(value, float) and math.isnan(value)):
            return NUMBER
    return UNKNOWN


def _numbers(values: Sequence[Plain], has_text: bool) -> FloatArray:
    if not has_text:
        try:
            numbers = np.array(values, dtype=np.float64)
        except OverflowError:
            pass  # by an int that will be found below
        else:
            if not np.isinf(numbers).any():
                return numbers
    for row, value in enumerate(values):
        try:
            door.check_number(value)
        except door.Unfit as rule:
            raise Refused(row, str(rule)) from None
    raise AssertionError("a value is bad, but none is found")


def as_doubles(array: NDArray[Any]) -> FloatArray:
    """Return an array of numbers as float64, itself where it is that already."""
    with np.errstate(over="ignore"):  # a long double becomes infinite, and is refused
        return array.astype(np.float64, copy=False)
