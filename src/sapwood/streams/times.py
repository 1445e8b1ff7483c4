"""Times as seconds since 1970 in UTC, from Arrow's types and from text; and their parts.

A time without a zone counts as UTC. The seconds are the double nearest to the time, whatever unit
it came in. Text is ISO 8601 unless a format is given: "2026-11-15", "2026-11-15 14", "... 14:30",
"... 14:30:05", "... 14:30:05.25", with "T" in place of the blank, and after the time of day a zone
such as "Z", "+01" or "+01:00". Years are from 1 to 9999.
"""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sapwood import door
from sapwood.streams.arrow import as_numpy
from sapwood.streams.stream import FloatArray, IntArray, StreamError

__all__ = ["is_iso", "parts_of", "seconds_of", "seconds_of_text"]

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY = 86_400
FIRST = -62_135_596_800  # seconds of the year 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FARTHEST = 1e12  # days; NumPy's calendar reaches no farther

ISO = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d(?::\d\d)?)?)?)"
    r"(?:(?<=:\d\d:\d\d)\.(\d{1,18}))?"
    r"(?:(?<!^.{10})(Z|([+-])(\d\d)(?::?(\d\d))?))?",
    re.ASCII,
)
ZONED = re.compile(rb"[Z+]|:.*-")
FINE = re.compile(rb"\.\d{7}")
WIDTHS = {"Y": r"\d{4}", "f": r"\d{1,6}", **dict.fromkeys("mdHMS", r"\d\d")}


def seconds_of(times: pa.Array) -> FloatArray:
    """Return times, dates, times of day or durations in seconds, NaN where one is missing.

    Examples
    --------
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
    seconds = counts * float(DAY) if per_second is None else _in_seconds(counts, per_second)
    if times.null_count:
        seconds[as_numpy(times.is_null())] = np.nan
    return seconds


def _in_seconds(counts: IntArray, per_second: int) -> FloatArray:
    """Return the nearest doubles to counts / per_second."""
    exact = (counts > -(2**53)) & (counts < 2**53)
    if per_second == 1 or exact.all():
        return counts / float(per_second)
    # Of larger counts the division would round twice; here the whole seconds are exact, and the
    # error of the rest is too small to carry the sum across a half of its last place.
    seconds, rest = np.divmod(counts, per_second)
    return np.where(exact, counts / float(per_second), seconds + rest / float(per_second))


def seconds_of_text(text: pa.Array, format: str | None) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return times that are text in seconds, and which values are none.

    Parameters
    ----------
    text : array of strings
        Trimmed; null where a time is missing.
    format : str, optional
        The format as in `datetime.strptime`; ISO 8601 if not given.

    Examples
    --------
    >>> text = pa.array(["1970-01-01 00:01", "1970-01-01T01:00:30.5+01:00", "1970-02-30", None])
    >>> seconds_of_text(text, None)
    (array([60. , 30.5,  nan,  nan]), array([False, False,  True, False]))
    >>> seconds_of_text(pa.array(["2.1.1970"]), "%d.%m.%Y")
    (array([86400.]), array([False]))
    """
    seconds = _fast_iso(text) if format is None else _fast_format(text, format)
    if seconds is None:
        parse = _iso_seconds if format is None else partial(_format_seconds, format=format)
        seconds = _one_by_one(text, parse)
    with np.errstate(invalid="ignore"):
        seconds = np.where(seconds >= FIRST, seconds, np.nan)
    return seconds, np.isnan(seconds) & as_numpy(text.is_valid())


def is_iso(text: str) -> bool:
    """Whether text is a time of ISO 8601, as read here.

    Examples
    --------
    >>> is_iso("2026-11-15T14:30Z"), is_iso("2026-11-31")
    (True, False)
    """
    seconds = _iso_seconds(text)
    return seconds is not None and seconds >= FIRST


def parts_of(seconds: FloatArray, parts: Iterable[str]) -> dict[str, FloatArray]:
    """Return the hour (0 to 23), weekday (0 is Monday) or month (1 to 12) of times, in UTC.

    Examples
    --------
    >>> parts_of(np.array([0.0, np.nan]), ["hour", "weekday", "month"])
    {'hour': array([ 0., nan]), 'weekday': array([ 3., nan]), 'month': array([ 1., nan])}
    """
    days = np.floor(seconds / DAY)
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(days) < FARTHEST)
    days = np.where(far, 0.0, days)
    taken: dict[str, FloatArray] = {}
    for part in parts:
        values: FloatArray
        if part == "hour":
            values = np.floor(np.where(far, 0.0, seconds) / 3600.0) - days * 24.0
        elif part == "weekday":
            values = (days + 3.0) % 7.0  # 1970 began on a Thursday
        else:
            dates = days.astype("datetime64[D]")
            values = dates.astype("datetime64[M]").astype(np.float64) % 12.0 + 1.0
        taken[part] = np.where(far, np.nan, values)
    return taken


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


@lru_cache
def _pattern(format: str) -> str | None:
    """Return a pattern for text of full width in a format; None if that does not tell all.

    What fits the pattern, and is a time, is the same time by `datetime.strptime`, which prefers
    full widths too. Other directives, and fewer digits, are left to it.
    """
    pattern, seen = "", ""
    for directive, literal in re.findall(r"%(.)|([^%])", format, re.DOTALL):
        if literal:
            pattern += re.escape(literal)
        elif directive in WIDTHS and directive not in seen:
            pattern += f"(?P<{directive}>{WIDTHS[directive]})"
            seen += directive
        else:
            return None
    return f"^{pattern}$" if {*"Ymd"} <= {*seen} else None


def _fast_format(text: pa.Array, format: str) -> FloatArray | None:
    """Return the seconds of text of full width in a format; None if some of it is other."""
    check_format(format)
    pattern = _pattern(format)
    if pattern is None:
        return None
    found = pc.extract_regex(text, pattern)
    if found.null_count > text.null_count:
        return None
    fields = {field.name: found.field(place) for place, field in enumerate(found.type)}
    day = pc.binary_join_element_wise(fields["Y"], fields["m"], fields["d"], "-")
    clock = pc.binary_join_element_wise(*(fields.get(part, "00") for part in "HMS"), ":")
    iso = pc.binary_join_element_wise(day, clock, " ")
    if "f" in fields:
        iso = pc.binary_join_element_wise(iso, fields["f"], ".")
    return _fast_iso(pc.if_else(text.is_valid(), iso, None))


@lru_cache
def check_format(format: str) -> None:
    """Raise StreamError if `datetime.strptime` does not know a format.

    Examples
    --------
    >>> check_format("%Q")
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: '%Q' is no format of times: 'Q' is a bad directive in ...
    """
    try:
        datetime.strptime("", format)
    except ValueError as error:
        if "does not match format" not in str(error):
            raise StreamError(f"{door.shown(format)} is no format of times: {error}") from None


def _one_by_one(text: pa.Array, parse: Callable[[str], float | None]) -> FloatArray:
    """Return the seconds of text that `parse` reads, NaN where it cannot; each text once."""
    encoded = text.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
    seconds = [_parsed(value, parse) for value in distinct]
    codes = as_numpy(encoded.indices.fill_null(len(distinct)))
    column: FloatArray = np.array([*seconds, None], dtype=np.float64)[codes]
    return column


def _parsed(value: bytes, parse: Callable[[str], float | None]) -> float | None:
    try:
        return parse(value.decode())
    except UnicodeDecodeError:
        return None


def _iso_seconds(text: str) -> float | None:
    """Return the seconds of a time of ISO 8601; None if it is none."""
    found = ISO.fullmatch(text)
    if found is None:
        return None
    moment, fraction, zone, sign, hours, minutes = found.groups()
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


def _format_seconds(text: str, format: str) -> float | None:
    """Return the seconds of a time in a format; None if it is none."""
    try:
        time = datetime.strptime(text, format)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return ((time - EPOCH) // MICROSECOND) / 10**6
