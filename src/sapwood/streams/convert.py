"""Convert Arrow columns to numbers, times and labels, and report the values that cannot be.

The result depends on the role of the column, and not on the format of the file:

==========  ==========================================================================
number      A double. True is 1 and false 0, times and durations are seconds.
boolean     0 or 1. Text is true, false, 1 or 0, in any case; numbers are 0 or 1.
time        Seconds since 1970 in UTC; see `sapwood.streams.times`. A time of day is
            seconds since midnight, a duration its seconds. Numbers are seconds too,
            unless the column has another unit ("milliseconds"); but whole numbers are
            text if it has a format ("%Y%m%d").
undecided   A number, until a value shows that the column is of booleans or times.
category    A label. Text is itself; numbers, times and booleans are their text: 7 is
            "7", 7.0 "7.0", true "true". If the column was declared a category, what
            is a whole number of 64 bits is a label of its own: 7, 7.0, "7" and "7.0"
            are the label 7, while "07" and 7.5 stay text.
==========  ==========================================================================

Missing are null, NaN, and text that is one of `MISSING` but for blanks around it. Numbers in text
are written as for pyarrow's CSV reader: "-1.5e3", "+.5", not "1,5" or "0x10", unless the column has
a format of numbers; see `sapwood.streams.numbers`. Binary columns are text in UTF-8. Infinite
numbers are faults, and so is a missing time of a row; a missing target is NaN.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sapwood.rows.labels import Labels
from sapwood.streams import bad_rows, times
from sapwood.streams.arrow import (
    BLANKS,
    MISSING,
    NUMBER,
    as_array,
    as_numpy,
    check_type,
    is_time,
    tidy,
)
from sapwood.streams.categories import labels_of
from sapwood.streams.numbers import read_numbers
from sapwood.streams.schema import Role, Rule, Schema
from sapwood.streams.stream import BadRow, Chunk, Column, FloatArray, IntArray, Position
from sapwood.streams.time_format import UNITS

__all__ = ["BLANKS", "MISSING", "Converted", "Fault", "arrow_type", "convert", "read_column"]

Read = FloatArray | Labels
"""A column that was read: numbers, or labels."""
Bad = dict[int, str]
"""The reason of each row that has a fault."""

LARGEST_WHOLE = 2**53
"""Up to which doubles hold all whole numbers."""
WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)

ARROW_TYPES: dict[Role, pa.DataType] = {"number": pa.float64(), "boolean": pa.bool_()}


@dataclass(frozen=True, slots=True)
class Fault:
    """A value that makes its row bad; fields are as those of `BadRow`."""

    row: int
    reason: str
    column: str
    value: str | None
    remedy: str


@dataclass(frozen=True, slots=True)
class Converted:
    """Rows that have been converted: the good ones, and the faults of the others.

    - `columns`: the features in the schema's order. Arrays may be read-only.
    - `y`, `times`: the targets and times, if the schema has them.
    - `good`: which rows are good; None if all are.
    - `faults`: one for each bad row, in order: the first in the order of the file's columns.
    """

    columns: dict[str, Column]
    y: FloatArray | None
    times: FloatArray | None
    good: NDArray[np.bool_] | None
    faults: list[Fault]
    ids: dict[str, Column]

    def chunk(
        self, source: str, numbers: IntArray, behind: Position, done: int, bad: Sequence[BadRow]
    ) -> Chunk:
        """Return the good rows as a chunk of a stream."""
        return Chunk(self.columns, self.y, source, numbers, behind, done, bad, self.times, self.ids)


def convert(
    schema: Schema, table: Mapping[str, pa.Array | pa.ChunkedArray], rows: int
) -> Converted:
    """Convert the columns of a table according to a schema.

    - `table`: the column of each rule of `schema.read`, of any type.
    - Raises StreamError if a column is of a type that is neither numbers, times nor text.

    Examples
    --------
    >>> from sapwood.streams.schema import ReadOptions, decide
    >>> schema = decide("flats.csv", {"city": "text", "area": "number", "rent": "number"},
    ...                 ReadOptions("rent"))
    >>> converted = convert(schema, {
    ...     "city": pa.array(["Oslo", "Bonn", "?"]),
    ...     "area": pa.array([" 50", "x", ""]),
    ...     "rent": pa.array([700, 800, 900]),
    ... }, 3)
    >>> converted.columns, converted.y
    ({'city': ['Oslo', None], 'area': array([50., nan])}, array([700., 900.]))
    >>> converted.faults
    [Fault(row=1, reason='not a number', column='area', value='x', remedy=...)]
    """
    further = (*schema.ids, *filter(None, (schema.time, schema.target)))
    rules = dict.fromkeys((*schema.read, *schema.rules, *further))
    for rule in rules:
        check_type("the table", rule.name, table[rule.name].type)
    arrays = {rule.name: as_array(table[rule.name]) for rule in rules}
    done: dict[Rule, Read] = {}
    found: dict[str, Bad] = {}
    for rule in rules:
        done[rule], bad = read_column(rule, arrays[rule.name])
        found.setdefault(rule.name, {}).update(bad)
    y = _always(schema.target, done)
    if y is not None and schema.target is not None:
        _use_target_reasons(found[schema.target.name])
    seconds = _always(schema.time, done)
    if seconds is not None and schema.time is not None:
        for row in np.flatnonzero(np.isnan(seconds)).tolist():
            found[schema.time.name].setdefault(row, bad_rows.NO_TIME)
    faults = _faults(schema, found, arrays)
    good = None
    if faults:
        good = np.ones(rows, dtype=np.bool_)
        good[[fault.row for fault in faults]] = False
        done = {rule: column[good] for rule, column in done.items()}
        y, seconds = _always(schema.target, done), _always(schema.time, done)
    columns: dict[str, Column] = {}
    for rule in schema.rules:
        columns[rule.name] = column = done[rule]
        if rule.derived and isinstance(column, np.ndarray):
            columns.update(rule.derive(column))
    ids: dict[str, Column] = {rule.name: done[rule] for rule in schema.ids}
    return Converted(columns, y, seconds, good, faults, ids)


def arrow_type(rule: Rule) -> pa.DataType:
    """Return the type as which pyarrow parses a column of text: strings if it cannot do the rest.

    Examples
    --------
    >>> arrow_type(Rule("x", "number")), arrow_type(Rule("sold", "time", "%Y%m%d"))
    (DataType(double), DataType(string))
    """
    if rule.role == "time" and rule.time_format in UNITS:
        return pa.float64()
    if rule.number_format is not None or rule.exact:
        return pa.string()
    return ARROW_TYPES.get(rule.role, pa.string())


# Roles


def read_column(rule: Rule, array: pa.Array) -> tuple[Read, Bad]:
    """Return an array of `as_array` converted by a rule, and the reasons of bad rows."""
    if rule.role == "category":
        return labels_of(array, rule.declared)
    if rule.late:
        numbers, bad = read_column(replace(rule, late=False), array)
        others = {
            row: bad_rows.NO_NUMBER for row, reason in bad.items() if reason != bad_rows.NOT_FINITE
        }
        return numbers, {**bad, **others}
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if rule.role == "time":
        return _seconds(array, rule)
    if rule.role == "number" and rule.number_format and pa.types.is_string(array.type):
        return _written_numbers(array, rule.number_format)
    if rule.exact:
        return _exact_numbers(array)
    return _booleans(array) if rule.role == "boolean" else _numbers(array)


def _exact_numbers(array: pa.Array) -> tuple[Read, Bad]:
    """Return numbers that identify series: doubles, or exact ones if there are larger integers."""
    numbers, bad = _numbers(array)
    with np.errstate(invalid="ignore"):
        is_large = (np.abs(numbers) > LARGEST_WHOLE).any()
    if not is_large or pa.types.is_floating(array.type) or is_time(array.type):
        return numbers, bad
    texts = tidy(array if pa.types.is_string(array.type) else array.cast(pa.string()))
    doubles = numbers.tolist()
    exact = [
        None if text is None or row in bad else _whole_or(text, doubles[row])
        for row, text in enumerate(texts.to_pylist())
    ]
    return Labels(np.arange(len(exact)), exact), bad


def _whole_or(text: str, number: float) -> Any:
    """Return text as a whole number of 64 bits if it is one, else the double that it is."""
    found = int(text) if WHOLE.fullmatch(text) else None
    return number if found is None or not -(2**63) <= found < 2**64 else found


def _numbers(array: pa.Array) -> tuple[FloatArray, Bad]:
    kind, bad = array.type, np.empty(0, dtype=np.intp)
    if pa.types.is_string(kind):
        numbers, bad = _numbers_of_text(array)
    elif is_time(kind):
        numbers = times.seconds_of(array)
    elif pa.types.is_decimal(kind):  # by way of text, as the cast to doubles is not exact
        numbers = _doubles(array.cast(pa.string()))
    else:
        numbers = _doubles(array)
    faults = dict.fromkeys(bad.tolist(), bad_rows.NO_NUMBER)
    infinite = np.isinf(numbers)
    if infinite.any():
        faults.update(dict.fromkeys(np.flatnonzero(infinite).tolist(), bad_rows.NOT_FINITE))
    return numbers, faults


def _written_numbers(array: pa.Array, example: str) -> tuple[FloatArray, Bad]:
    """Return numbers that are not written plainly."""
    numbers, none = read_numbers(tidy(array), example)
    return numbers, dict.fromkeys(np.flatnonzero(none).tolist(), bad_rows.NO_NUMBER)


def _doubles(array: pa.Array) -> FloatArray:
    """Return an array as doubles, NaN where it is null; itself, if it can be."""
    doubles = array.cast(pa.float64(), safe=False)
    return as_numpy(doubles.fill_null(np.nan) if doubles.null_count else doubles)


def _numbers_of_text(text: pa.Array) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the numbers of text, and the rows where there is another text."""
    none = np.empty(0, dtype=np.intp)
    try:
        return _doubles(text), none  # as most text needs no tidying
    except pa.ArrowInvalid:
        text = tidy(text)
    try:
        return _doubles(text), none
    except pa.ArrowInvalid:
        pass
    fits = pc.match_substring_regex(text, NUMBER)
    numbers = _doubles(pc.if_else(fits, text, None))
    return numbers, _rows_of(pc.invert(fits))


def _booleans(array: pa.Array) -> tuple[FloatArray, Bad]:
    if pa.types.is_string(array.type):
        lower = pc.ascii_lower(tidy(array))
        true = pc.is_in(lower, value_set=pa.array(["true", "1"]))
        other = pc.invert(pc.is_in(lower, value_set=pa.array(["true", "1", "false", "0"])))
        numbers = _doubles(pc.if_else(lower.is_valid(), true, None))
        bad = _rows_of(pc.and_(other, lower.is_valid()))
    else:
        numbers, _ = _numbers(array)
        bad = np.flatnonzero(~np.isnan(numbers) & (numbers != 0.0) & (numbers != 1.0))
    return numbers, dict.fromkeys(bad.tolist(), bad_rows.NO_BOOLEAN)


def _seconds(array: pa.Array, rule: Rule) -> tuple[FloatArray, Bad]:
    kind, time_format = array.type, rule.time_format
    if time_format in UNITS and not is_time(kind):
        counts, reasons = _numbers(array)
        others = {
            row: bad_rows.NO_TIME for row, why in reasons.items() if why != bad_rows.NOT_FINITE
        }
        return counts / UNITS[time_format], {**reasons, **others}
    if pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and time_format is not None):
        array = array.cast(pa.string())
    if is_time(array.type):
        return times.seconds_of(array, rule.calendar), {}
    if not pa.types.is_string(array.type):
        return _numbers(array)
    seconds, bad = times.seconds_of_text(tidy(array), time_format, rule.calendar)
    return seconds, dict.fromkeys(np.flatnonzero(bad).tolist(), bad_rows.NO_TIME)


def _rows_of(mask: pa.Array) -> NDArray[np.intp]:
    return np.flatnonzero(as_numpy(mask.fill_null(False)))


# Faults


def _always(rule: Rule | None, done: Mapping[Rule, Read]) -> FloatArray | None:
    """Return the numbers of a rule, if there is one."""
    numbers = None if rule is None else done[rule]
    return numbers if isinstance(numbers, np.ndarray) else None


def _use_target_reasons(bad: Bad) -> None:
    """Replace the reasons of bad rows by those for targets; targets may be missing."""
    for row, reason in bad.items():
        if reason != bad_rows.NOT_FINITE:
            bad[row] = bad_rows.TARGET_NO_NUMBER


def _faults(
    schema: Schema, found: Mapping[str, Bad], arrays: Mapping[str, pa.Array]
) -> list[Fault]:
    first: dict[int, tuple[str, str]] = {}
    for name in schema.columns:
        for row, reason in found.get(name, {}).items():
            first.setdefault(row, (name, reason))
    faults = []
    for row, (name, reason) in sorted(first.items()):
        value, flaw = _as_it_stood(arrays[name][row])
        cause = flaw or reason
        faults.append(Fault(row, cause, name, value, bad_rows.REMEDIES[cause]))
    return faults


def _as_it_stood(value: pa.Scalar) -> tuple[str | None, str | None]:
    """Return a value as text, and why it is no text, if it is none."""
    if isinstance(value, pa.DictionaryScalar):
        value = value.value
    try:
        return (None if not value.is_valid else str(value)), None
    except UnicodeDecodeError:
        own = value.cast(pa.binary()).as_py()
    try:
        halves = own.decode(errors="surrogatepass").encode(errors="backslashreplace")
        return halves.decode(), bad_rows.LONE_SURROGATE
    except UnicodeDecodeError:
        return own.decode(errors="backslashreplace"), bad_rows.BAD_ENCODING
