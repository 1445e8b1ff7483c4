"""Times in text by a format of `datetime.strptime`, a column at a time.

A format's pattern is matched against all values at once. Values that do not match are parsed by
`strptime` itself, one by one, so that the result is always that of `strptime`, with two exceptions.
Names of months and days are English in every locale, and may be short or long for both "%b" and
"%B"; and a format without a date, such as "%H:%M", gives seconds since midnight.

Instead of a format, the name of a unit may be given: "seconds", "milliseconds", "microseconds" or
"nanoseconds" since 1970.
"""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows.times import (
    DATED,
    DAY,
    EPOCH,
    FIXED,
    MONTHS,
    NO_DATE,
    UNITS,
    directives,
    in_seconds,
    pattern_of,
    seconds_by_strptime,
)
from sapwood.streams.arrow import as_numpy
from sapwood.streams.stream import FloatArray, IntArray, StreamError

__all__ = ["FIXED", "UNITS", "check_format", "read_times", "seconds_by_text"]

MONTH_LENGTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@lru_cache
def check_format(format: str) -> None:
    """Raise StreamError if a format is neither a unit nor one that `datetime.strptime` knows.

    Examples
    --------
    >>> check_format("%Q")
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: '%Q' is no format of times: 'Q' is a bad directive in ...
    """
    if format in UNITS:
        return
    if "%" not in format:
        raise StreamError(
            f"{validation.shown(format)} is no format of times: give directives, as in '%d.%m.%Y %H:%M', "
            f"or one of {', '.join(UNITS)}"
        )
    try:
        datetime.strptime("", format)
    except ValueError as error:
        if "does not match format" not in str(error):
            raise StreamError(
                f"{validation.shown(format)} is no format of times: {error}"
            ) from None


def read_times(text: pa.Array, format: str) -> FloatArray:
    """Return times in seconds since 1970, NaN where text is none or is missing.

    - `text`: trimmed; null where a time is missing.
    - `format`: as for `datetime.strptime`.

    Examples
    --------
    >>> read_times(pa.array(["2/1/70 9:30", "30/2/70 9:30", None]), "%d/%m/%y %H:%M")
    array([120600.,     nan,     nan])
    >>> read_times(pa.array(["9:30 PM"]), "%I:%M %p")
    array([77400.])
    """
    check_format(format)
    dated = bool(DATED & set(directives(format)))

    def parse(value: str) -> float | None:
        return seconds_by_strptime(value, format, EPOCH if dated else NO_DATE)

    pattern = pattern_of(format)
    if pattern is None:
        return seconds_by_text(text, parse)
    found = pc.extract_regex(text, pattern)
    fields = dict(zip((field.name for field in found.type), found.flatten(), strict=True))
    fits = as_numpy(found.is_valid())
    seconds = np.where(fits, _seconds(fields, dated), np.nan)
    if found.null_count > text.null_count:
        others = pc.if_else(found.is_valid(), None, text)
        seconds = np.where(fits, seconds, seconds_by_text(others, parse))
    return seconds


def seconds_by_text(text: pa.Array, parse: Callable[[str], float | None]) -> FloatArray:
    """Return the seconds of text that `parse` reads, NaN where it cannot; each text once."""
    encoded = text.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
    seconds = [_parsed(value, parse) for value in distinct]
    codes = as_numpy(encoded.indices.fill_null(len(distinct)))
    column: FloatArray = np.array([*seconds, None], dtype=np.float64)[codes]
    return column


def _seconds(fields: dict[str, pa.Array], dated: bool) -> FloatArray:
    """Return the times of fields, NaN where they are none; any number where they are null."""
    rows = len(next(iter(fields.values())))

    def whole(directive: str, default: int) -> IntArray:
        if directive not in fields:
            return np.full(rows, default, np.int64)
        return as_numpy(fields[directive].cast(pa.int64()).fill_null(default)).astype(np.int64)

    year = whole("Y", 1900)
    if "y" in fields:
        short = whole("y", 0)
        year = short + np.where(short < 69, 2000, 1900)
    month, day = _month(fields, whole("m", 1)), whole("d", 1)
    hour, minute, second = whole("H", 0), whole("M", 0), whole("S", 0)
    valid = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (minute < 60) & (second < 60)
    if "I" in fields:
        clock = whole("I", 12)
        valid &= (clock >= 1) & (clock <= 12)
        hour = clock % 12 + (12 * _is(fields, "p", "pm") if "p" in fields else 0)
    valid &= hour < 24
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    length = MONTH_LENGTHS[np.clip(month, 0, 12)] + (is_leap & (month == 2))
    valid &= day <= length
    days = _days(year, month, day) if dated else np.zeros(rows, np.int64)
    micros = (days * DAY + hour * 3600 + minute * 60 + second) * 10**6
    if "f" in fields:
        micros += whole_micros(fields["f"])
    if "z" in fields:
        offset, possible = _offset(fields["z"])
        micros -= offset * 10**6
        valid &= possible
    return np.where(valid, in_seconds(micros, 10**6), np.nan)


def _month(fields: dict[str, pa.Array], numbered: IntArray) -> IntArray:
    for directive in "bB":
        if directive in fields:
            short = pc.utf8_slice_codeunits(pc.ascii_lower(fields[directive]), 0, 3)
            places = pc.index_in(short, value_set=pa.array([name[:3] for name in MONTHS]))
            return as_numpy(places.fill_null(0)).astype(np.int64) + 1
    return numbered


def _is(fields: dict[str, pa.Array], directive: str, value: str) -> NDArray[np.bool_]:
    return as_numpy(pc.equal(pc.ascii_lower(fields[directive]), value).fill_null(False))


def _days(year: IntArray, month: IntArray, day: IntArray) -> IntArray:
    """Return the days since 1970 of dates, counted in years that begin in March."""
    year = year - (month <= 2)
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days: IntArray = year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468
    return days


def whole_micros(fractions: pa.Array) -> IntArray:
    """Return the microseconds of fractions of a second that are digits.

    Examples
    --------
    >>> whole_micros(pa.array(["5", "000250"]))
    array([500000,    250])
    """
    filled = pc.ascii_rpad(fractions, 6, "0").cast(pa.int64())
    return as_numpy(filled.fill_null(0)).astype(np.int64)


def _offset(zones: pa.Array) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the seconds by which zones are ahead of UTC, and which are possible."""
    utc = pc.ascii_upper(zones)
    digits = pc.replace_substring(utc, ":", "")
    numbers = pc.if_else(pc.equal(utc, "Z"), "0", pc.replace_substring(digits, "+", ""))
    signed = as_numpy(numbers.cast(pa.int64()).fill_null(0))
    size = np.abs(signed)
    seconds: IntArray = np.sign(signed) * (size // 100 * 3600 + size % 100 * 60)
    return seconds, size < 2400


def _parsed(value: bytes, parse: Callable[[str], float | None]) -> float | None:
    try:
        return parse(value.decode())
    except UnicodeDecodeError:
        return None
