"""Names, numbers and tables as plain text."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = [
    "MOST_LETTERS",
    "aligned",
    "finite",
    "moment",
    "number",
    "plain",
    "r_squared",
    "table",
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_LETTERS = 40  # of a name that is shown in a line


def number(value: float, digits: int | None) -> str:
    """Return a number in significant digits, all of them if None, without an idle exponent."""
    value = float(value) + 0.0  # no -0
    text = repr(value) if digits is None else f"{value:.{digits}g}"
    if "e+" in text and abs(value) < 1e15:
        text = f"{value:.0f}"
    return text.removesuffix(".0")


def r_squared(value: float) -> str:
    """Return R² with four decimals; in short where it is far below 0.

    Examples
    --------
    >>> r_squared(0.98765), r_squared(-2.5), r_squared(-1.2345e50)
    ('0.9877', '-2.5000', '-1.23e+50')
    """
    return f"{value:.3g}" if value < -1000.0 else f"{value:.4f}"


def finite(value: Any) -> Any:
    """Return a value for JSON, which lacks NaN and infinity: None in their place, at any depth.

    Examples
    --------
    >>> finite({"mae": 0.5, "r2": [math.nan, 1.0]})
    {'mae': 0.5, 'r2': [None, 1.0]}
    """
    if isinstance(value, Mapping):
        return {name: finite(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def moment(seconds: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a time in UTC. `datetime.fromtimestamp` reads none before 1970 on Windows.

    Examples
    --------
    >>> moment(-1.5), moment(86_400.0, "%Y-%m-%d")
    ('1969-12-31 23:59', '1970-01-02')
    """
    return (EPOCH + timedelta(seconds=seconds)).strftime(form)


def aligned(values: Sequence[float], digits: int = 5) -> list[str]:
    """Return numbers that add up with their decimal points below each other."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    decimals = digits - 1 - math.floor(math.log10(largest)) if largest else 0
    if not -11 < decimals < 11:
        return [number(value, digits) for value in values]
    return [f"{round(value, max(decimals, 0)) + 0.0:.{max(decimals, 0)}f}" for value in values]


def plain(text: object, most: int | None = None) -> str:
    r"""Return a name in one line of printable letters, quoted where it would be misread.

    Examples
    --------
    >>> print(plain("wind"), plain("a\nb"), plain("Rome, Italy"), plain("x" * 9, most=4))
    wind a\nb 'Rome, Italy' xxx…
    """
    letters = str(text)
    found = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in (letters if most is None else letters[: most + 1])
    )
    if most is not None and len(found) > most:
        found = found[: most - 1] + "…"
    misread = not found or found != found.strip() or any(mark in found for mark in ",{}'")
    return f"'{found}'" if misread else found


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text: the first column to the left, the others to the right."""

    def cells(text: str) -> int:
        return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)

    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        line = first + " " * (widths[0] - cells(first))
        for text, width in zip(others, widths[1:], strict=True):
            line += "  " + " " * (width - cells(text)) + text
        lines.append(line.rstrip())
    return "\n".join(lines)
