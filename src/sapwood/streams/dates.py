"""Which text and which whole numbers are times, and in which format.

Times of ISO 8601 need no format. Others are known by their shape: a date with its year first
(2012/10/2), with its day or its month first (2/10/12, 10-2-2012), with the name of the month
(2 Oct 2012, October 2, 2012), of digits alone (20121002, 201210020900), or of a month (2012-10,
Oct 2012); and a time of day (9:00, 09:00:15.25, 9:00 PM), with a zone or without, behind a date or
alone. All values have to be of one shape, but for one in ten.

A part above 12 shows whether the day or the month comes first. If there is none, the order is used
by which the values ascend; if they ascend by both, the one by which they are closer together; and
if there is no difference, the day is first. In all of these cases `Recognised.doubt` is set.

Whole numbers are times only where something else speaks for it. Dates of digits alone are those of
which every value is a date between 1900 and 2100: of other numbers of 8 digits one in 28 would be.
Seconds since 1970, and milliseconds and so on, are numbers that lie between 1980 and 2100 in a
column that is named after a time, or between 2000 and 2040 in one that never falls.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sapwood.streams.stream import FloatArray
from sapwood.streams.time_format import FIXED, UNITS
from sapwood.streams.times import is_iso, seconds_of_text

__all__ = ["ENOUGH", "Recognised", "recognise_numbers", "recognise_text"]

ENOUGH = 0.9
"""The share of the values that decides: a few broken ones do not make text of times."""
GLANCE = 20
"""Distinct values of which at least half must be times for all others to be looked at."""

TWO = r"[0-3]?\d"
MONTH = f"(?P<b>{FIXED['b']})"
WEEKDAY = f"(?:(?P<a>{FIXED['a']})[,.]? )?"
YEAR = r"(?:(?P<Y>\d{4})|(?P<y>\d\d))"
CLOCK = (
    r"(?P<H>[0-2]?\d):(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d)(?:[.,](?P<f>\d{1,6}))?)?(?: ?(?P<p>[AP]M))?"
)
ZONE = r"(?: ?(?:(?P<z>[+-]\d\d:?[0-5]\d|Z)|UTC|GMT))?"
DATES = {
    "year first": rf"(?P<Y>\d{{4}})(?P<sep>[-/. ])(?P<m>{TWO})(?P=sep)(?P<d>{TWO})",
    "day first": rf"(?P<d>{TWO})(?P<sep>[-/. ])(?P<m>[01]?\d)(?P=sep){YEAR}",
    "month first": rf"(?P<m>[01]?\d)(?P<sep>[-/])(?P<d>{TWO})(?P=sep){YEAR}",
    "day and name": rf"(?P<d>{TWO})[-/. ]{{0,2}}{MONTH}[-/., ]{{0,2}}{YEAR}",
    "name and day": rf"{MONTH}[. ]{{1,2}}(?P<d>{TWO}),? (?P<Y>\d{{4}})",
    "year and name": rf"(?P<Y>\d{{4}})[-/. ]?{MONTH}[-/. ]?(?P<d>{TWO})",
}
MONTHLY = {
    "month": r"(?P<Y>\d{4})[-/.](?P<m>[01]\d)",
    "month and year": r"(?P<m>[01]?\d)[-/.](?P<Y>\d{4})",
    "name and year": rf"{MONTH}[-/., ]{{0,2}}(?P<Y>\d{{4}})",
}
SHAPES = {
    **{
        name: re.compile(f"{WEEKDAY}{date}(?:(?:T|:|, ?| ){CLOCK}{ZONE})?", re.IGNORECASE)
        for name, date in DATES.items()
    },
    **{name: re.compile(date, re.IGNORECASE) for name, date in MONTHLY.items()},
    "as of C": re.compile(rf"{WEEKDAY}{MONTH} +(?P<d>{TWO}) {CLOCK} (?P<Y>\d{{4}})", re.IGNORECASE),
    "time of day": re.compile(f"{CLOCK}{ZONE}", re.IGNORECASE),
    "digits": re.compile(
        r"(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)[T ]?(?P<H>\d\d)(?P<M>\d\d)(?P<S>\d\d)?"
    ),
    "short year first": re.compile(rf"(?P<y>\d\d)(?P<sep>[-/.])(?P<m>[01]?\d)(?P=sep)(?P<d>{TWO})"),
}
"""The shapes of times in text; of two that fit all values the earlier is meant."""
ORDERS = ("day first", "month first", "short year first")
"""Shapes that the same values may have."""

COMPACT = {8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Dates of so many digits."""
ABOUT_A_TIME = re.compile(r"time|date|epoch|(^|[^a-z])(ts|when|day)([^a-z]|$)", re.IGNORECASE)
WHOLE = re.compile(r"\d{8,19}(?:\.0*)?", re.ASCII)
SECONDS = re.compile(r"\d{9,10}\.\d{1,9}", re.ASCII)
SECONDS_OF_A_YEAR = 31_556_952.0
YEARS_OF_DIGITS = (1900, 2100)
YEARS_IF_NAMED = (1980, 2100)
YEARS_IF_RISING = (2000, 2040)


@dataclass(frozen=True, slots=True)
class Recognised:
    """How times are written.

    - `format`: as for `--time-format`; None for ISO 8601.
    - `doubt`: another possible meaning, and how to choose it; empty if there is none.
    """

    format: str | None
    doubt: str = ""


def recognise_text(name: str, values: Sequence[str]) -> Recognised | None:
    """Return how the times of a column are written; None if it holds none.

    - `values`: its first values, trimmed; without missing ones.

    Examples
    --------
    >>> recognise_text("sold", ["10/2/12 9:00", "10/13/12 10:00"])
    Recognised(format='%m/%d/%y %H:%M', doubt='')
    >>> recognise_text("sold", ["2 Oct 2012", "11 Oct 2012"]).format
    '%d %b %Y'
    >>> print(recognise_text("sold", ["01/02/2012", "02/02/2012"]).doubt)
    01/02/2012 is taken for day first, ...; if not, pass --time-format 'sold=%m/%d/%Y'
    """
    counts = Counter(values)
    glance = [value for value in counts if any(map(str.isdigit, value))][:GLANCE]
    if sum(is_iso(value) or bool(_formats(value)) for value in glance) < max(len(glance) / 2, 1):
        return None
    enough = ENOUGH * len(values)
    if sum(count for value, count in counts.items() if is_iso(value)) >= enough:
        return Recognised(None)
    shares: Counter[tuple[str, str]] = Counter()
    for value, count in counts.items():
        for shape, format in _formats(value).items():
            shares[shape, format] += count
    most = {key: share for key, share in shares.items() if share >= enough}
    valid = {key: _valid(values, key[1]) for key in most}
    best = max(valid.values(), default=0)
    fitting = {shape: format for (shape, format), share in valid.items() if share == best}
    if best < enough or not fitting:
        return None
    orders = {shape: fitting[shape] for shape in ORDERS if shape in fitting}
    if len(orders) > 1:
        return _decide_order(name, values, orders)
    return Recognised(next(fitting[shape] for shape in SHAPES if shape in fitting))


def _formats(value: str) -> dict[str, str]:
    """Return the formats that a value may be written in, by the names of their shapes.

    Examples
    --------
    >>> _formats("10/13/12")
    {'month first': '%m/%d/%y'}
    """
    formats = {}
    for shape, pattern in SHAPES.items():
        found = pattern.fullmatch(value)
        if found is not None and _is_possible(found.groupdict()):
            formats[shape] = _format(found)
    return formats


def _is_possible(fields: Mapping[str, str | None]) -> bool:
    month, day, hour = (fields.get(part) for part in "mdH")
    highest = 12 if fields.get("p") else 23
    return (
        (month is None or 1 <= int(month) <= 12)
        and (day is None or 1 <= int(day) <= 31)
        and (hour is None or int(hour) <= highest)
    )


def _format(found: re.Match[str]) -> str:
    """Return the format of a time: its fields become directives, all between them stays."""
    half = found.groupdict().get("p") is not None
    format, end = "", 0
    fields = [
        (found.span(part), part)
        for part, text in found.groupdict().items()
        if part != "sep" and text is not None
    ]
    for (start, stop), part in sorted(fields):
        format += found.string[end:start].replace("%", "%%")
        format += "%" + ("I" if part == "H" and half else part)
        end = stop
    return re.sub(r"\s+", " ", format + found.string[end:])


def _valid(values: Sequence[str], format: str) -> int:
    """Return how many values are times by a format, and not only of its shape."""
    return int(np.isfinite(_seconds(values, format)).sum())


def _seconds(values: Iterable[str], format: str) -> FloatArray:
    return seconds_of_text(pa.array(list(values), pa.string()), format)[0]


def _decide_order(name: str, values: Sequence[str], formats: Mapping[str, str]) -> Recognised:
    """Decide what comes first in a date of which each value can be read in several ways."""
    times = {shape: _seconds(values, format) for shape, format in formats.items()}
    known = {shape: seconds[np.isfinite(seconds)] for shape, seconds in times.items()}
    falls = {shape: int((np.diff(seconds) < 0).sum()) for shape, seconds in known.items()}
    spans = {shape: float(np.ptp(seconds)) for shape, seconds in known.items()}
    in_order = [shape for shape in formats if falls[shape] == 0]
    possible = in_order or list(formats)
    if len(in_order) == 1:
        why = "for then the rows are in order"
    elif len({spans[shape] for shape in possible}) > 1:
        why = "for then the times are closer together"
    else:
        why = "and it is ambiguous"
    chosen = min(possible, key=lambda shape: (spans[shape], ORDERS.index(shape)))
    other = next(shape for shape in ORDERS if shape in formats and shape != chosen)
    doubt = (
        f"{values[0]} is taken for {chosen}, {why}; if not, pass "
        f"--time-format '{name}={formats[other]}'"
    )
    return Recognised(formats[chosen], doubt)


def recognise_numbers(name: str, values: Sequence[str]) -> Recognised | None:
    """Return how times that are numbers are written; None if the numbers are something else.

    Parameters are as for `recognise_text`.

    Examples
    --------
    >>> recognise_numbers("day", ["20121002", "20121003"])
    Recognised(format='%Y%m%d', doubt='')
    >>> recognise_numbers("ts", ["1349168400000", "1349172000000"]).format
    'milliseconds'
    >>> recognise_numbers("order", ["1349168400", "1149172000"])
    """
    named = ABOUT_A_TIME.search(name) is not None
    if not values or not any(pattern.fullmatch(values[0]) for pattern in (WHOLE, SECONDS)):
        return None
    lengths = {len(value) for value in values}
    format = COMPACT.get(lengths.pop()) if len(lengths) == 1 else None
    if format is not None and (named or len(set(values)) > 1):
        years = 1970 + _seconds(values, format) / SECONDS_OF_A_YEAR
        if bool(((years >= YEARS_OF_DIGITS[0]) & (years < YEARS_OF_DIGITS[1])).all()):
            return Recognised(format)
    return _since_1970(name, values, named)


def _since_1970(name: str, values: Sequence[str], named: bool) -> Recognised | None:
    if not all(WHOLE.fullmatch(value) or SECONDS.fullmatch(value) for value in values):
        return None
    counts = np.array(values, dtype=np.float64)
    rising = len(set(values)) > 2 and bool((np.diff(counts) >= 0).all())
    for unit, per_second in UNITS.items():
        years = 1970 + counts / per_second / SECONDS_OF_A_YEAR
        for given, (first, last) in ((named, YEARS_IF_NAMED), (rising, YEARS_IF_RISING)):
            if given and bool(((years >= first) & (years < last)).all()):
                doubt = (
                    ""
                    if named
                    else f"taken for {unit} since 1970, as it never falls and lies between "
                    f"{first} and {last}; if not, pass --time-format {name}=none"
                )
                return Recognised(unit, doubt)
    return None
