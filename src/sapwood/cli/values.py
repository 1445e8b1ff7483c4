"""What is typed becomes what is meant: settings, sizes, durations."""

import ast
import re
import warnings
from collections.abc import Iterable
from typing import Any

from sapwood import validation
from sapwood.cli.failure import UsageError
from sapwood.durations import number_and_unit, seconds_of_duration

__all__ = [
    "Amount",
    "amount",
    "byte_count",
    "literal",
    "longer",
    "settings",
    "size_of",
    "spans",
    "split_models",
    "split_spec",
]

BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
MOST = 2.0**53
"""Up to which doubles count."""

Amount = tuple[float, bool]
"""How much, and whether that is seconds."""


def amount(text: str, option: str) -> Amount:
    """Read a number of rows or a duration.

    Examples
    --------
    >>> amount("5000", "--every"), amount("1.5h", "--every")
    ((5000, False), (5400.0, True))
    >>> amount("soon", "--every")
    Traceback (most recent call last):
    sapwood.cli.failure.UsageError: --every soon: rows (5000) or a duration (30s, 5m, 2h, 1d) ...
    """
    seconds = seconds_of_duration(text)
    if seconds is not None:
        return seconds, True
    found = number_and_unit(text)
    if found is not None and found[1] == "" and found[0].is_integer() and 1 <= found[0] < MOST:
        return int(found[0]), False
    raise UsageError(f"{option} {text}: rows (5000) or a duration (30s, 5m, 2h, 1d) are expected")


def byte_count(text: str) -> int:
    """Read a number of bytes.

    Examples
    --------
    >>> byte_count("16MB"), byte_count("500_000")
    (16000000, 500000)
    """
    found = re.fullmatch(r"(\d[\d_]*(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if found and found[2] in BYTES:
        count = float(found[1].replace("_", "")) * BYTES[found[2]]
        if count < MOST:
            return int(count)
    raise ValueError(f"{validation.shown(text)}: bytes are expected, like 500000, 64MB or 2GB")


def literal(text: str) -> Any:
    """Read a number, True, False, None or a string.

    Examples
    --------
    >>> literal("1e-5"), literal("none"), literal("auto")
    (1e-05, None, 'auto')
    """
    spelled = {"none": None, "true": True, "false": False}
    if text.lower() in spelled:
        return spelled[text.lower()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of text that is not meant as Python
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def spans(text: str, option: str) -> list[int | str]:
    """Read numbers of rows or durations that are joined by commas.

    Examples
    --------
    >>> spans("1, 24,168", "--lags"), spans("24h,7d", "--lags")
    ([1, 24, 168], ['24h', '7d'])
    >>> spans("a day", "--lags")
    Traceback (most recent call last):
    sapwood.cli.failure.UsageError: --lags a day: rows are expected, such as 1,24,168, or ...
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    found: list[int | str] = []
    for part in parts:
        if part.isascii() and part.isdigit() and len(part) < 10:
            found.append(int(part))
        elif seconds_of_duration(part) is not None:
            found.append(part)
        else:
            raise UsageError(
                f"{option} {text}: rows are expected, such as 1,24,168, or durations, such as "
                "24h,7d"
            )
    return found


def size_of(span: int | str) -> float:
    """Return rows as they are, and a duration in seconds."""
    return float(seconds_of_duration(span) or 0.0) if isinstance(span, str) else float(span)


def longer(given: Iterable[int | str], least: int | str) -> list[int | str]:
    """Return the spans that are at least as long as another; those of another unit stay.

    Examples
    --------
    >>> longer(["1h", "1d", "7d"], "24h"), longer([1, 24], 2)
    (['1d', '7d'], [24])
    """
    return [
        each for each in given if type(each) is not type(least) or size_of(each) >= size_of(least)
    ]


def settings(texts: Iterable[str], option: str) -> dict[str, str]:
    """Read ``name=value`` pairs.

    Examples
    --------
    >>> settings(["delta=1e-5", "leaf=mean"], "--set")
    {'delta': '1e-5', 'leaf': 'mean'}
    """
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise UsageError(f"{option} {text}: name=value is expected")
        pairs[name.strip()] = value.strip()
    return pairs


def split_models(texts: Iterable[str]) -> list[str]:
    """Split names of models that are joined by commas; settings stay with their model.

    Examples
    --------
    >>> split_models(["tree,tree:leaf=mean,delta=1e-5,last", "river:ARFRegressor"])
    ['tree', 'tree:leaf=mean,delta=1e-5', 'last', 'river:ARFRegressor']
    """
    found: list[str] = []
    for text in texts:
        for place, part in enumerate(text.split(",")):
            if place and re.match(r"\s*\w+\s*=", part):
                found[-1] += f",{part}"
            else:
                found.append(part.strip())
    return found


def split_spec(text: str) -> tuple[str, dict[str, str]]:
    """Split a name from the settings that may follow it after a colon.

    Examples
    --------
    >>> split_spec("tree:leaf=mean,delta=1e-5")
    ('tree', {'leaf': 'mean', 'delta': '1e-5'})
    >>> split_spec("river.tree:HoeffdingTreeRegressor")
    ('river.tree:HoeffdingTreeRegressor', {})
    >>> split_spec("tree:observer=qo:0.1")
    ('tree', {'observer': 'qo:0.1'})
    """
    found = re.fullmatch(r"(.+?):(\s*\w+\s*=.*)", text, re.DOTALL)
    return (found[1], settings(found[2].split(","), text)) if found else (text, {})
