"""Times as seconds since 1970 in UTC, from values of Python and NumPy; and their parts.

A time without a zone counts as UTC. The seconds are the double nearest to the time, whatever unit
it has. `sapwood.streams` reads whole columns by the same rules with pyarrow; here a value is read
at a time, and NumPy suffices.
"""

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.validation import FloatArray

__all__ = [
    "FIRST",
    "FIXED",
    "PARTS",
    "UNITS",
    "in_seconds",
    "is_naive",
    "is_naive_text",
    "parts_of",
    "parts_of_one",
    "seconds_of_array",
    "seconds_of_time",
    "seconds_of_word",
]

IntArray = NDArray[np.int64]

PARTS = ("hour", "weekday", "month", "yearday", "season")
"""What a time can be taken apart into: hour 0 to 23, weekday 0 (Monday) to 6, month 1 to 12, day of
the year 1 to 366, and season: the cosine of the day of the year, 1 in winter and -1 in summer of
the north, so that the end of a year is as near to its beginning as it should be."""
UNITS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
"""Formats of times that are numbers, and how many of each a second has."""

DAY = 86_400
FIRST = -62_135_596_800  # seconds of the year 1
FARTHEST = 1e12  # days; NumPy's calendar reaches no farther
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_DATE = datetime(1900, 1, 1, tzinfo=UTC)
"""The day that `strptime` gives to a time of day."""
MICROSECOND = timedelta(microseconds=1)

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
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
"""Directives of a date."""
ISO = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d(?::\d\d)?)?)?)"
    r"(?:(?<=:\d\d:\d\d)\.(\d{1,18}))?"
    r"(?:(?<!^.{10})(Z|([+-])(\d\d)(?::?(\d\d))?))?",
    re.ASCII,
)
WITH_ZONE = re.compile(r"^.{13,}(?:Z|[+-]\d\d(?::?\d\d)?)$")
"""Of a time of ISO 8601 that has a zone; with pyarrow and without."""


# -- seconds ---------------------------------------------------------------------------------------


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


def seconds_of_array(times: NDArray[Any]) -> FloatArray:
    """Return NumPy's times as seconds since 1970, durations as seconds; NaN where one is missing.

    Examples
    --------
    >>> seconds_of_array(np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"))
    array([86400.,    nan])
    """
    unit, _ = np.datetime_data(times.dtype)
    unit = unit if unit in ("ms", "us", "ns") else "s" if unit not in ("ps", "fs", "as") else "ns"
    kind = "datetime64" if times.dtype.kind == "M" else "timedelta64"
    counts = times.astype(f"{kind}[{unit}]").astype(np.int64)
    missing = np.isnat(times)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return np.where(missing, np.nan, in_seconds(np.where(missing, 0, counts), per_second))


def seconds_of_time(value: Any) -> float | None:
    """Return the seconds of a date, a time, a time of day or a duration; None if it is none.

    Examples
    --------
    >>> seconds_of_time(datetime(1970, 1, 1, 0, 1, 0, 500_000)), seconds_of_time(time(9, 30))
    (60.5, 34200.0)
    >>> seconds_of_time(np.datetime64("NaT", "s")), seconds_of_time("1970-01-01")
    (nan, None)
    """
    seconds: float | None = None
    if isinstance(value, np.datetime64 | np.timedelta64):
        seconds = float(seconds_of_array(np.asarray(value)))
    elif type(value).__name__ == "NaTType":  # of pandas
        seconds = math.nan
    elif isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        seconds = _in_nanoseconds((moment - EPOCH) // MICROSECOND, value) / 10**9
    elif isinstance(value, date):
        seconds = float((value - EPOCH.date()).days * DAY)
    elif isinstance(value, time):
        whole = (value.hour * 60 + value.minute) * 60 + value.second
        seconds = (whole * 10**6 + value.microsecond) / 10**6
    elif isinstance(value, timedelta):
        seconds = _in_nanoseconds(value // MICROSECOND, value) / 10**9
    return seconds


def _in_nanoseconds(micros: int, value: Any) -> int:
    """Return microseconds as nanoseconds, with those that a value of pandas has beyond them."""
    if isinstance(value, timedelta):
        return int(micros) * 1000 + getattr(value, "nanoseconds", 0)
    return int(micros) * 1000 + getattr(value, "nanosecond", 0)


def is_naive(value: Any) -> bool:
    """Whether a value is a date, or a time with a date and without a zone.

    Examples
    --------
    >>> is_naive(date(1970, 1, 1)), is_naive(EPOCH), is_naive(time(9, 30)), is_naive(0.0)
    (True, False, False, False)
    """
    if isinstance(value, datetime):
        return value.tzinfo is None
    return isinstance(value, date | np.datetime64)


# -- text ------------------------------------------------------------------------------------------


def seconds_of_word(text: str, format: str | None) -> float | None:
    """Return the seconds of a time that is text; None if it is none.

    - `format`: as for `datetime.strptime`; ISO 8601 if not given. Names of months and days are
      English, whatever the locale, and may be short or long; a format without a date gives seconds
      since midnight.

    Examples
    --------
    >>> seconds_of_word("2/1/70 9:30", "%d/%m/%y %H:%M"), seconds_of_word("30/2/70", "%d/%m/%y")
    (120600.0, None)
    >>> seconds_of_word("1970-01-01T01:00:30.5+01:00", None), seconds_of_word("9:30 PM", "%I:%M %p")
    (30.5, 77400.0)
    """
    if format is None:
        seconds = iso_seconds(text)
    else:
        dated = bool(DATED & set(directives(format)))
        start = EPOCH if dated else NO_DATE
        pattern = compiled(format)
        found = None if pattern is None else pattern.fullmatch(text)
        if found is None:
            seconds = seconds_by_strptime(text, format, start)
        else:
            seconds = _by_fields(found.groupdict(), start)
    return None if seconds is None or seconds < FIRST else seconds


def _by_fields(fields: dict[str, str], start: datetime) -> float | None:
    """Return the seconds from a start to a time, of which all directives were found."""
    year = int(fields.get("Y", 1900))
    if "y" in fields:
        short = int(fields["y"])
        year = short + (2000 if short < 69 else 1900)
    month = int(fields.get("m", 1))
    for directive in "bB":
        if directive in fields:
            month = 1 + [name[:3] for name in MONTHS].index(fields[directive][:3].lower())
    hour = int(fields.get("H", 0))
    if "I" in fields:
        clock = int(fields["I"])
        if not 1 <= clock <= 12:
            return None
        hour = clock % 12 + (12 if fields.get("p", "").lower() == "pm" else 0)
    micros, ahead = int(fields.get("f", "").ljust(6, "0")), 0
    zone = fields.get("z", "Z").upper().replace(":", "")
    if zone != "Z":
        if int(zone[1:3]) > 23:
            return None
        ahead = (int(zone[1:3]) * 60 + int(zone[3:5])) * (-60 if zone[0] == "-" else 60)
    try:
        moment = datetime(
            year,
            month,
            int(fields.get("d", 1)),
            hour,
            int(fields.get("M", 0)),
            int(fields.get("S", 0)),
            micros,
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return ((moment - start) // MICROSECOND - ahead * 10**6) / 10**6


def is_naive_text(text: str, format: str | None) -> bool:
    """Whether a time that is text has a date and no zone.

    Examples
    --------
    >>> is_naive_text("1970-01-01 01:00", None), is_naive_text("1970-01-01T01:00Z", None)
    (True, False)
    >>> is_naive_text("9:30", "%H:%M"), is_naive_text("2/1/70", "%d/%m/%y")
    (False, True)
    """
    if format is None:
        return WITH_ZONE.search(text) is None
    return (
        format not in UNITS and bool(DATED & set(found := directives(format))) and "z" not in found
    )


def directives(format: str) -> list[str]:
    """Return the directives of a format, without "%"."""
    return re.findall(r"%(.)", format, re.DOTALL)


@lru_cache
def pattern_of(format: str) -> str | None:
    """Return a pattern whose groups are the directives of a format; None if `strptime` must do it.

    What fits the pattern, and is a time, is the same time by `strptime`: where digits meet digits
    full widths are required, which it prefers too.
    """
    tokens = re.findall(r"%(.)|(\s+)|([^%\s])", format, re.DOTALL)
    found = [directive for directive, _, _ in tokens if directive]
    if len(set(found)) < len(found) or "%" in found:
        return None
    if any(sum(rival in found for rival in rivals) > 1 for rivals in RIVALS):
        return None
    pattern = ""
    for place, (directive, blank, literal) in enumerate(tokens):
        if blank or literal:
            pattern += r"\s+" if blank else re.escape(literal)
        elif directive in ONE_OR_TWO:
            around = (*tokens[max(place - 1, 0) : place], *tokens[place + 1 : place + 2])
            tight = any(other[0] or other[2].isdigit() for other in around)
            pattern += rf"(?P<{directive}>\d\d)" if tight else rf"(?P<{directive}>\d{{1,2}})"
        elif directive in FIXED:
            pattern += f"(?P<{directive}>{FIXED[directive]})"
        else:
            return None
    return f"(?i)^(?:{pattern})$"


@lru_cache
def compiled(format: str) -> re.Pattern[str] | None:
    """Return `pattern_of` a format for Python's own matching."""
    pattern = pattern_of(format)
    return None if pattern is None else re.compile(pattern.removesuffix("$"), re.ASCII)


def seconds_by_strptime(text: str, format: str, start: datetime) -> float | None:
    """Return the seconds from a start to a time in a format; None if it is none."""
    try:
        moment = datetime.strptime(text, format)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return ((moment - start) // MICROSECOND) / 10**6


def iso_seconds(text: str) -> float | None:
    """Return the seconds of a time of ISO 8601; None if it is none."""
    found = ISO.fullmatch(text)
    if found is None:
        return None
    moment, fraction, zone, sign, hours, minutes = found.groups()
    if moment[11:13] == "24":  # which Python 3.14 takes for midnight, and pyarrow does not
        return None
    try:
        whole = (datetime.fromisoformat(moment).replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
    except ValueError:
        return None
    if zone is not None and zone != "Z":
        if int(hours) > 23 or int(minutes or 0) > 59:
            return None
        offset = 3600 * int(hours) + 60 * int(minutes or 0)
        whole -= offset if sign == "+" else -offset
    scale: int = 10 ** len(fraction or "")
    return (whole * scale + int(fraction or 0)) / scale


# -- parts -----------------------------------------------------------------------------------------


def parts_of(seconds: FloatArray, parts: Iterable[str]) -> dict[str, FloatArray]:
    """Return parts of times, in UTC; see `PARTS`.

    Examples
    --------
    >>> parts_of(np.array([0.0, np.nan]), ["hour", "weekday", "month"])
    {'hour': array([ 0., nan]), 'weekday': array([ 3., nan]), 'month': array([ 1., nan])}
    """
    days = np.floor(seconds / DAY)
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(days) < FARTHEST)
    days = np.where(far, 0.0, days)
    dates = days.astype("datetime64[D]")
    taken: dict[str, FloatArray] = {}
    for part in parts:
        values: FloatArray
        if part == "hour":
            values = np.floor(np.where(far, 0.0, seconds) / 3600.0) - days * 24.0
        elif part == "weekday":
            values = (days + 3.0) % 7.0  # 1970 began on a Thursday
        elif part == "month":
            values = dates.astype("datetime64[M]").astype(np.float64) % 12.0 + 1.0
        else:
            values = (dates - dates.astype("datetime64[Y]")).astype(np.float64) + 1.0
            if part == "season":
                values = np.cos(2.0 * np.pi / 365.25 * (values - 1.0))
        taken[part] = np.where(far, np.nan, values)
    return taken


def parts_of_one(seconds: float, parts: Iterable[str]) -> dict[str, float]:
    """Return what `parts_of` does, of one time.

    Examples
    --------
    >>> parts_of_one(3600.0, ["hour", "weekday"])
    {'hour': 1.0, 'weekday': 3.0}
    """
    day = math.floor(seconds / DAY) if abs(seconds / DAY) < FARTHEST else None
    if day is None:
        return dict.fromkeys(parts, math.nan)
    taken = _parts_of_day(day)
    hour = math.floor(seconds / 3600.0) - day * 24.0
    return {part: hour if part == "hour" else taken[part] for part in parts}


@lru_cache(maxsize=1024)
def _parts_of_day(day: int) -> dict[str, float]:
    """Return the parts of a day, but for the hour."""
    taken = parts_of(np.array([float(day * DAY)]), PARTS[1:])
    return {part: float(values[0]) for part, values in taken.items()}
