"""Times as seconds since 1970 in UTC, from Arrow's types and from text; and their parts.

A time without a zone counts as UTC. The seconds are the double nearest to the time, whatever its
unit was. Text is ISO 8601 unless a format is given: "2026-11-15", "2026-11-15 14", "... 14:30",
"... 14:30:05", "... 14:30:05.25", with "T" in place of the blank, and after the time of day a zone
such as "Z", "+01" or "+01:00". Years are from 1 to 9999.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sapwood.rows.calendar import Calendar
from sapwood.rows.times import (
    DAY,
    FARTHEST,
    FIRST,
    WITH_ZONE,
    in_seconds,
    is_naive_text,
    iso_seconds,
    parts_of,
)
from sapwood.streams.arrow import as_numpy
from sapwood.streams.stream import FloatArray
from sapwood.streams.time_format import read_times, seconds_by_text

__all__ = ["CHOSEN", "is_iso", "parts_of", "seconds_of", "seconds_of_text", "telling_parts"]

CHOSEN = ("hour", "weekday", "season")
"""The default parts: with the time itself, which is there too, they
served three real streams best, among months, days of the year and of the month, and both
coordinates of the season."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ZONED = re.compile(rb"[Z+]|:.*-")
FINE = re.compile(rb"\.\d{7}")


def seconds_of(times: pa.Array, calendar: Calendar | None = None) -> FloatArray:
    """Return times, dates, times of day or durations in seconds, NaN where one is missing.

    With a calendar, times and dates without a zone are local.

    Examples
    --------
    >>> from datetime import datetime
    >>> seconds_of(pa.array([datetime(1970, 1, 1, 0, 1, 0, 500_000), None]))
    array([60.5,  nan])
    """
    kind = times.type
    if pa.types.is_date32(kind):
        whole, per_second = times.cast(pa.int32()), None
    else:
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        whole = times.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
        per_second = PER_SECOND[unit]
    counts = as_numpy(whole.fill_null(0))
    seconds = counts * float(DAY) if per_second is None else in_seconds(counts, per_second)
    if times.null_count:
        seconds[as_numpy(times.is_null())] = np.nan
    is_naive = pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)
    return calendar.absolute(seconds) if calendar is not None and is_naive else seconds


def seconds_of_text(
    text: pa.Array, format: str | None, calendar: Calendar | None = None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return times that are text in seconds, and which values are none.

    - `text`: trimmed; null where a time is missing.
    - `format`: the format as in `datetime.strptime`; ISO 8601 if not given.
    - `calendar`: in whose time zone times without a zone are local.

    Examples
    --------
    >>> text = pa.array(["1970-01-01 00:01", "1970-01-01T01:00:30.5+01:00", "1970-02-30", None])
    >>> seconds_of_text(text, None)
    (array([60. , 30.5,  nan,  nan]), array([False, False,  True, False]))
    >>> seconds_of_text(pa.array(["2.1.1970"]), "%d.%m.%Y")
    (array([86400.]), array([False]))
    """
    seconds = _fast_iso(text) if format is None else read_times(text, format)
    if seconds is None:
        seconds = seconds_by_text(text, iso_seconds)
    with np.errstate(invalid="ignore"):
        seconds = np.where(seconds >= FIRST, seconds, np.nan)
    if calendar is not None and calendar.timezone is not None:
        seconds = np.where(_are_naive(text, format), calendar.absolute(seconds), seconds)
    return seconds, np.isnan(seconds) & as_numpy(text.is_valid())


def _are_naive(text: pa.Array, format: str | None) -> NDArray[np.bool_]:
    """Return which times have a date and no zone."""
    if format is not None:
        return np.full(len(text), is_naive_text("", format))
    zoned = pc.match_substring_regex(text, WITH_ZONE.pattern)
    return ~as_numpy(zoned.fill_null(False))


def is_iso(text: str) -> bool:
    """Whether text is a time of ISO 8601, as read here.

    Examples
    --------
    >>> is_iso("2026-11-15T14:30Z"), is_iso("2026-11-31")
    (True, False)
    """
    seconds = iso_seconds(text)
    return seconds is not None and seconds >= FIRST


def telling_parts(seconds: FloatArray) -> tuple[str, ...]:
    """Return the parts that first rows do not show to be always the same.

    That takes rows over two cycles of a part: two days at one hour have no use for the hour, two
    months at one day of the month none for the weekday. Dates without a time of day have no hour,
    times of day have nothing else.

    Examples
    --------
    >>> hours = np.arange(1_349_168_400.0, 1_349_568_400.0, 3600.0)
    >>> telling_parts(hours), telling_parts(np.floor(hours / DAY) * DAY), telling_parts(hours % DAY)
    (('hour', 'weekday', 'season'), ('weekday', 'season'), ('hour',))
    """
    with np.errstate(invalid="ignore"):
        known = seconds[np.abs(seconds) < FARTHEST * DAY]
    if not len(known):
        return CHOSEN
    if known.min() >= 0.0 and known.max() < DAY:
        return ("hour",)
    span = float(np.ptp(known))
    found = parts_of(known, ("hour", "weekday", "yearday"))
    dates = np.floor(known / DAY).astype("datetime64[D]")
    month_days = (dates - dates.astype("datetime64[M]")).astype(np.float64)

    def varies(values: FloatArray, cycle_in_days: float) -> bool:
        return span < 2 * cycle_in_days * DAY or bool((values != values[0]).any())

    parts = []
    if (known % DAY).any() and varies(found["hour"], 1):
        parts.append("hour")
    if varies(found["weekday"], 7) and varies(month_days, 31):
        parts.append("weekday")
    if varies(found["yearday"], 366):
        parts.append("season")
    return tuple(parts)


def _fast_iso(text: pa.Array) -> FloatArray | None:
    """Return the seconds of text that is all of the shape of the first; None if it is not."""
    present = pc.index(text.is_valid(), True).as_py()
    first = b"" if present < 0 else text[present].as_buffer()
    zone = "UTC" if ZONED.search(first) else None
    for unit in ("ns", "us") if FINE.search(first) else ("us", "ns"):  # failing takes long
        if unit == "ns" and not _fits_nanoseconds(text):
            continue
        try:
            return seconds_of(text.cast(pa.timestamp(unit, zone)))
        except pa.ArrowInvalid:
            continue
    return None


def _fits_nanoseconds(text: pa.Array) -> bool:
    """Whether 64 bits of nanoseconds reach all years; some releases of pyarrow do not look."""
    ends = pc.min_max(text.cast(pa.binary())).as_py()
    return ends["min"] is not None and ends["min"] >= b"1678" and ends["max"] < b"2262"
