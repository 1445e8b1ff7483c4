"""Durations as text: "30s", "15min", "24h", "7d", "1w"."""

import re
from datetime import timedelta
from typing import Any

from sapwood import validation

__all__ = [
    "EXAMPLES",
    "duration_in_seconds",
    "duration_text",
    "in_words",
    "number_and_unit",
    "seconds_of_duration",
]

SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
UNITS = ((604_800.0, "week"), (86_400.0, "day"), (3600.0, "hour"), (60.0, "minute"))
"""Lengths of units of time in seconds, from the longest on."""
LONGEST = 2.0**53
"""Up to which doubles count."""
EXAMPLES = "30s, 15min, 24h, 7d or 1w"
PATTERN = re.compile(r"(\d+(?:[_,]\d{3})*(?:\.\d+)?)\s*([a-z]*)", re.ASCII)


def number_and_unit(text: str) -> tuple[float, str] | None:
    """Return the number and the unit of a text, which may have none; None if it is no number.

    Examples
    --------
    >>> number_and_unit("1.5 H"), number_and_unit("5_000"), number_and_unit("soon")
    ((1.5, 'h'), (5000.0, ''), None)
    """
    found = PATTERN.fullmatch(text.strip().lower())
    return None if found is None else (float(re.sub("[_,]", "", found[1])), found[2])


def seconds_of_duration(text: str) -> float | None:
    """Return the seconds of a duration; None if the text is none.

    Examples
    --------
    >>> seconds_of_duration("24h"), seconds_of_duration("90 min"), seconds_of_duration("24")
    (86400.0, 5400.0, None)
    """
    found = number_and_unit(text)
    if found is None or found[1] not in SECONDS or not 0 < found[0] < LONGEST:
        return None
    seconds = found[0] * SECONDS[found[1]]
    return seconds if seconds < LONGEST else None


def duration_in_seconds(given: Any, name: str) -> float:
    """Return the seconds of a duration that is text or a `timedelta`.

    - `name`: the parameter, for the message.
    - Raises ValueError if it is none, or not above 0.

    Examples
    --------
    >>> duration_in_seconds("2h", "horizon"), duration_in_seconds(timedelta(days=1), "horizon")
    (7200.0, 86400.0)
    >>> duration_in_seconds("soon", "horizon")
    Traceback (most recent call last):
    ValueError: horizon = 'soon': a duration is expected, such as 30s, 15min, 24h, 7d or 1w
    """
    seconds = None
    if isinstance(given, timedelta):
        seconds = given.total_seconds()
    elif isinstance(given, str):
        seconds = seconds_of_duration(given)
    if seconds is None or not 0 < seconds < LONGEST:
        raise ValueError(
            f"{name} = {validation.shown(given)}: a duration is expected, such as {EXAMPLES}"
        )
    return seconds


def duration_text(seconds: float) -> str:
    """Return a duration of at least a microsecond as text that `duration_in_seconds` reads.

    Examples
    --------
    >>> duration_text(0.5), duration_text(2_592_000.0)
    ('0.5s', '2592000s')
    """
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def in_words(seconds: float) -> str:
    """Return a duration for readers, in the longest unit that divides it.

    Examples
    --------
    >>> in_words(7200.0), in_words(604_800.0), in_words(90.0)
    ('2 hours', '1 week', '90 seconds')
    """
    size, unit = next((each for each in UNITS if seconds % each[0] == 0), (1.0, "second"))
    amount = seconds / size
    return f"{amount:,.6g} {unit}{'' if amount == 1 else 's'}"
