"""One column of rows: its values become doubles, its labels codes."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows._dict_row import shared_place
from sapwood.validation import FloatArray, Label, Plain

__all__ = [
    "CATEGORY",
    "IDENTIFIER",
    "IDS",
    "MISSING",
    "MOST_LABELS",
    "NUMBER",
    "OTHERS",
    "UNKNOWN",
    "Coded",
    "Column",
    "Rejected",
    "as_doubles",
    "ids_at",
    "places_of",
]

NUMBER: str = "number"
CATEGORY: str = "category"
UNKNOWN: str = "unknown"
IDENTIFIER: str = (
    "identifier"  # a category whose labels hardly ever repeat: it is treated as missing
)
MISSING: str = "missing"  # a flag: whether another column is missing, see missing_flags.py
OTHERS = 63  # labels of a category of few; with one more it becomes one of many
MOST_LABELS = 2**16  # that have a code of their own, if memory is not limited
IDS = 2**14  # with so many labels it is looked whether they ever come twice
LEAST_IDS = 2**10  # or with as many as have codes of their own, if these are not fewer
LONG_LABEL = 64  # characters; where memory is limited, longer ones of many share codes
SHARED = 4  # labels without a code of their own share so many times fewer

PLAIN_TYPES = frozenset({str, bool, int, float, type(None)})


class Rejected(Exception):  # noqa: N818 - it is made a ValueError before anybody sees it
    """The row of a value that breaks a rule, and that rule."""

    def __init__(self, row: int, rule: str):
        self.row, self.rule = row, rule


class Coded:
    """A column whose rows have the same value where they have the same code.

    - `codes`: the code of each row; -1 where the value is missing.
    - `values_at`: returns the values in some rows, as a list.
    - `first_rows`: the rows in which a value occurs for the first time, in their order.

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
        first[self._codes[::-1]] = np.arange(len(codes))[::-1]  # the last one stays: the first row
        first[-1] = len(codes)  # it was that of -1
        self.first_rows = np.sort(first[first < len(codes)])

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, row: int) -> Any:
        return self._values_at(np.array([row]))[0]

    def distinct(self) -> list[Any]:
        """Return the values in `first_rows`."""
        return self._values_at(self.first_rows)

    def mapped(self, function: Callable[[Any], Any]) -> "Coded":
        """Return a column in which each value is what a function makes of it."""
        values_at = self._values_at
        return Coded(self._codes, lambda rows: [function(value) for value in values_at(rows)])

    def spread(self, numbers: FloatArray) -> FloatArray:
        """Return the number of each row, given those of `first_rows`; NaN where one is missing."""
        codes = self._codes[self.first_rows]
        table = np.full(codes.max(initial=-1) + 2, np.nan)
        table[codes] = numbers
        return table[self._codes]


Values = NDArray[Any] | list[Any] | Coded  # a column: of numbers if it is an array


class Column:
    """One feature while rows are read: what is known of it, and what they add.

    - `most`: how many labels may have a code of their own. If that is OTHERS, the feature stays a
      category of few, and all further labels have the code OTHERS.
    - `fresh_rows`: the row that brings each of them, ascending; none where a single row is read.
    - `value_row`: the row that brings its first value, if its kind was unknown.
    """

    __slots__ = (
        "count",
        "first_row",
        "fresh",
        "fresh_rows",
        "kind",
        "known",
        "learn",
        "most",
        "name",
        "value_row",
    )

    def __init__(
        self,
        name: Label,
        kind: str,
        *,
        known: Mapping[Label, int],
        count: int,
        learn: bool,
        most: int,
    ):
        self.name, self.kind, self.known, self.count = name, kind, known, count
        self.learn, self.most = learn, most
        self.fresh: dict[Label, int] = {}
        self.fresh_rows: list[int] = []
        self.first_row = self.value_row = 0

    @property
    def turns(self) -> list[int]:
        """The rows whose labels make another feature of a category.

        The number of labels becomes one more than OTHERS, or so large that it is tested whether
        they are ids.
        """
        decisive = (OTHERS + 1, ids_at(self.most))
        rows = enumerate(self.fresh_rows, self.count + 1)
        return [row for count, row in rows if count in decisive]

    def fresh_before(self, row: int | None, count: int) -> dict[Label, int]:
        """Return the labels from a code on that come before a row; up to the last if it is None."""
        end = None if row is None else bisect_left(self.fresh_rows, row)
        start = max(0, count - self.count)
        if not start and end is None:
            return self.fresh
        return dict(islice(self.fresh.items(), start, end))

    def kind_before(self, row: int | None) -> str:
        """Return the kind of the feature before a row; that after all rows if it is None."""
        return UNKNOWN if row is not None and self.value_row >= row else self.kind

    def read(self, values: Values, categorical: bool = False) -> FloatArray:
        """Return the values as doubles, NaN where missing; raise `Rejected` at a bad one."""
        was_unknown = self.learn and self.kind == UNKNOWN
        numbers = self._read(values, categorical)
        if was_unknown and len(numbers):
            self.value_row = int(np.argmin(np.isnan(numbers)))
        return numbers

    def _read(self, values: Values, categorical: bool) -> FloatArray:
        if isinstance(values, Coded):
            return self._of_coded(values, categorical)
        if self.kind == UNKNOWN and not self.learn:
            return self._never_learned(values)
        if categorical and self.kind == UNKNOWN:
            self.kind = CATEGORY
        if isinstance(values, np.ndarray) and self.kind not in (CATEGORY, IDENTIFIER):
            return self._of_array(values)
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        return self._of_list(listed)

    def read_value(self, value: Any) -> float:
        """Return one value as a double, NaN if missing; raise `Unfit` for a bad one."""
        never_learned = self.kind == UNKNOWN and not self.learn
        value = validation.plain(value)
        if self.kind == UNKNOWN:
            self.kind = _kind_of((value,))
        if self.kind in (CATEGORY, IDENTIFIER):
            label = validation.label(value)
            number = np.nan if label is None else self._code(label)
        else:
            validation.check_number(value)
            number = np.nan if value is None else float(value)
        return np.nan if never_learned else number

    def _of_coded(self, values: Coded, categorical: bool) -> FloatArray:
        """Read each value once; their order is that in which all rows would bring them."""
        try:
            codes = self.read(values.distinct(), categorical)
        except Rejected as error:
            raise Rejected(int(values.first_rows[error.row]), error.rule) from None
        self.fresh_rows = values.first_rows[self.fresh_rows].tolist()
        return values.spread(codes)

    def _never_learned(self, values: NDArray[Any] | list[Any]) -> FloatArray:
        """Return NaN for all values: each may be of any kind, but must be of one."""
        for row, value in enumerate(values):
            self.kind = UNKNOWN
            try:
                self.read_value(value)
            except validation.Unfit as rule:
                raise Rejected(row, str(rule)) from None
        return np.full(len(values), np.nan)

    def _of_array(self, values: NDArray[Any]) -> FloatArray:
        numbers = as_doubles(values)
        bad = np.flatnonzero(np.isinf(numbers))
        if len(bad):
            raise Rejected(int(bad[0]), validation.FEATURE_FINITE)
        if self.kind == UNKNOWN and not (
            np.isnan(numbers[:1]).all() and np.isnan(numbers).all()  # mostly the first will do
        ):
            self.kind = NUMBER
        return numbers

    def _of_list(self, values: Sequence[Any]) -> FloatArray:
        """Read values of any type up to the first that is unfit, and then raise for that one."""
        rejected = None
        types = set(map(type, values))
        if not types <= PLAIN_TYPES:
            values, rejected = _plain(values)
            types = set(map(type, values))
        if self.kind == UNKNOWN:
            self.kind = _kind_of(values)
        if self.kind not in (CATEGORY, IDENTIFIER):
            numbers = _numbers(values, str in types)
        elif self.kind == IDENTIFIER and _are_short_texts(values, types):
            numbers = np.full(len(values), np.nan)
        else:
            numbers = self._codes(values)
        if rejected is not None:
            raise rejected
        return numbers

    def _codes(self, values: Sequence[Plain]) -> FloatArray:
        codes: dict[Plain, float] = {}
        news: list[Plain] = []
        for value in dict.fromkeys(values):
            before = len(self.fresh)
            try:
                label = validation.label(value)
                codes[value] = np.nan if label is None else self._code(label)
            except validation.Unfit as rule:
                raise Rejected(values.index(value), str(rule)) from None
            if len(self.fresh) > before:
                news.append(value)
        if news:
            first = dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))
            self.fresh_rows = [first[value] for value in news]
        return np.fromiter(map(codes.__getitem__, values), np.float64, len(values))

    def _code(self, label: Label) -> float:
        """Return the code of a label, which gets one if it is new and to be learned."""
        code = self.known.get(label, self.most)
        code = code if code < self.count else self.fresh.get(label, self.most)
        if code < self.most:
            return code
        count = self.count + len(self.fresh)
        if count >= self.most <= OTHERS:
            return OTHERS
        if count > OTHERS and (count >= self.most or self._is_long(label)):
            return self.most + shared_place(label, self.most // SHARED)
        if self.learn and self.kind != IDENTIFIER:
            validation.check_text(label)
            self.fresh[label] = count
            return count
        if count < OTHERS:  # as it is where labels are ids
            return np.nan
        return OTHERS if count == OTHERS else self.most + self.most // SHARED

    def _is_long(self, label: Label) -> bool:
        return self.most < MOST_LABELS and isinstance(label, str) and len(label) > LONG_LABEL


def ids_at(most: int) -> int:
    """Return with how many labels it is looked whether they are ids; 0 if it is not.

    - `most`: how many labels may have a code of their own.

    Examples
    --------
    >>> ids_at(65536), ids_at(2929), ids_at(64)
    (16384, 2929, 0)
    """
    return min(IDS, most) if most >= LEAST_IDS else 0


def places_of(kind: str, count: int, most: int) -> int:
    """Return how many codes a category of many needs places for; -1 for other features.

    - `count`, `most`: how many labels it has, and may have.

    Examples
    --------
    >>> places_of("number", 0, 65536), places_of("category", 63, 65536)
    (-1, -1)
    >>> places_of("category", 64, 65536), places_of("category", 300, 65536)  # with some to spare
    (128, 512)
    >>> places_of("category", 65536, 65536)  # with those that all others share
    81920
    >>> places_of("category", 64, 4096)  # all at once where memory is limited
    5120
    >>> places_of("identifier", 0, 65536)
    0
    """
    if kind == IDENTIFIER:
        return 0
    if kind != CATEGORY or count <= OTHERS:
        return -1
    if count >= most or most < MOST_LABELS:
        return most + most // SHARED
    return min(most, 1 << count.bit_length())


def _are_short_texts(values: Sequence[Plain], types: set[type]) -> bool:
    """Whether all values are None or strings that may be labels, without looking at each."""
    return (
        types <= {str, type(None)}
        and max(map(len, filter(None, values)), default=0) <= validation.LONGEST  # type: ignore[arg-type]
    )


def _plain(values: Sequence[Any]) -> tuple[list[Plain], Rejected | None]:
    """Return values of Python's own types, up to the first that is neither number nor text."""
    plain: list[Plain] = []
    for row, value in enumerate(values):
        try:
            plain.append(validation.plain(value))
        except validation.Unfit as rule:
            return plain, Rejected(row, str(rule))
    return plain, None


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
            validation.check_number(value)
        except validation.Unfit as rule:
            raise Rejected(row, str(rule)) from None
    raise AssertionError("a value is bad, but none is found")


def as_doubles(array: NDArray[Any]) -> FloatArray:
    """Return an array of numbers as float64, itself where it is that already."""
    if array.dtype == np.float64:
        return array
    with np.errstate(over="ignore"):  # a long double becomes infinite, and is rejected
        return array.astype(np.float64, copy=False)
