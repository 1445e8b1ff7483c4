"""Times in text by a format of `datetime.strptime`, a column at a time.

A format's pattern is matched against all values at once. What it does not fit is left to `strptime`
itself, value by value, so that the result is always the one that `strptime` gives; but for two
things. Names of months and days are English whatever the locale is, and may be short or long
whether the format says "%b" or "%B"; and a format without a date, such as "%H:%M", gives seconds
since midnight.

Beside such formats there are the names of units: "seconds", "milliseconds", "microseconds" and
"nanoseconds" since 1970.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sapwood import door
from sapwood.streams.arrow import as_numpy
from sapwood.streams.stream import FloatArray, IntArray, StreamError

__all__ = ["FIXED", "UNITS", "check_format", "in_seconds", "read_times", "seconds_by_text"]

UNITS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
"""Formats of times that are numbers, and how many of each a second has."""
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NO_DATE = datetime(1900, 1, 1, tzinfo=UTC)
"""The day that `strptime` gives to a time of day."""
DAY = 86_400
MONTH_LENGTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])

ONE_OR_TWO = "mdHIMS"
"""Directives of up to two digits; next to other digits they need both."""
FIXED = {
    "Y": r"\d{4}",
    "y": r"\d\d",
    "f": r"\d{1,6}",
    "p": "[ap]m",
    "z": r"Z|[+-]\d\d:?[0-5]\d",
    **dict.fromkeys("bB", "|".join((*MONTHS, "sept", *(name[:3] for name in MONTHS)))),
    **dict.fromkeys("aA", "|".join((*DAYS, *(name[:3] for name in DAYS)))),
}
RIVALS = ("Yy", "HI", "mbB", "aA")
"""Directives for the same thing: what two of them mean is left to `strptime`."""
DATED = frozenset("YymbBdjUWGVucxD")
"""Directives that tell something of a date."""


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
            f"{door.shown(format)} is no format of times: give directives, as in '%d.%m.%Y %H:%M', "
            f"or one of {', '.join(UNITS)}"
        )
    try:
        datetime.strptime("", format)
    except ValueError as error:
        if "does not match format" not in str(error):
            raise StreamError(f"{door.shown(format)} is no format of times: {error}") from None


def read_times(text: pa.Array, format: str) -> FloatArray:
    """Return times in seconds since 1970, NaN where text is none or is missing.

    Parameters
    ----------
    text : array of strings
        Trimmed; null where a time is missing.
    format : str
        As for `datetime.strptime`.

    Examples
    --------
    >>> read_times(pa.array(["2/1/70 9:30", "30/2/70 9:30", None]), "%d/%m/%y %H:%M")
    array([120600.,     nan,     nan])
    >>> read_times(pa.array(["9:30 PM"]), "%I:%M %p")
    array([77400.])
    """
    check_format(format)
    dated = bool(DATED & set(_directives(format)))

    def parse(value: str) -> float | None:
        return _by_strptime(value, format, EPOCH if dated else NO_DATE)

    pattern = _pattern(format)
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


def in_seconds(counts: IntArray, per_second: int) -> FloatArray:
    """Return the nearest doubles to counts / per_second.

    Examples
    --------
    >>> in_seconds(np.array([1_500, 2**53 + 1]), 1000)
    array([1.50000000e+00, 9.00719925e+12])
    """
    exact = (counts > -(2**53)) & (counts < 2**53)
    if per_second == 1 or exact.all():
        return counts / float(per_second)
    # Of larger counts the division would round twice; here the whole seconds are exact, and the
    # error of the rest is too small to carry the sum across a half of its last place.
    seconds, rest = np.divmod(counts, per_second)
    return np.where(exact, counts / float(per_second), seconds + rest / float(per_second))


def _directives(format: str) -> list[str]:
    return re.findall(r"%(.)", format, re.DOTALL)


@lru_cache
def _pattern(format: str) -> str | None:
    """Return a pattern whose groups are the directives of a format; None if `strptime` must do it.

    What fits the pattern, and is a time, is the same time by `strptime`: where digits meet digits
    full widths are asked for, which it prefers too.
    """
    tokens = re.findall(r"%(.)|(\s+)|([^%\s])", format, re.DOTALL)
    directives = [directive for directive, _, _ in tokens if directive]
    if len(set(directives)) < len(directives) or "%" in directives:
        return None
    if any(sum(rival in directives for rival in rivals) > 1 for rivals in RIVALS):
        return None
    pattern = ""
    for place, (directive, blank, literal) in enumerate(tokens):
        if blank or literal:
            pattern += r"\s+" if blank else re.escape(literal)
        elif directive in ONE_OR_TWO:
            beside = (*tokens[max(place - 1, 0) : place], *tokens[place + 1 : place + 2])
            tight = any(other[0] or other[2].isdigit() for other in beside)
            pattern += rf"(?P<{directive}>\d\d)" if tight else rf"(?P<{directive}>\d{{1,2}})"
        elif directive in FIXED:
            pattern += f"(?P<{directive}>{FIXED[directive]})"
        else:
            return None
    return f"(?i)^(?:{pattern})$"


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


def _by_strptime(text: str, format: str, start: datetime) -> float | None:
    """Return the seconds from a start to a time in a format; None if it is none."""
    try:
        time = datetime.strptime(text, format)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return ((time - start) // MICROSECOND) / 10**6
