"""What is typed becomes what is meant: settings, sizes, durations."""

import ast
import re
import warnings
from collections.abc import Iterable
from typing import Any

from sapwood import validation
from sapwood.cli.failure import UsageError

__all__ = [
    "Amount",
    "amount",
    "byte_count",
    "literal",
    "settings",
    "split_models",
    "split_spec",
    "whole_numbers",
]

SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
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
    found = re.fullmatch(r"(\d+(?:[_,]\d{3})*(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if found:
        number, unit = float(re.sub("[_,]", "", found[1])), found[2]
        if unit in SECONDS and 0 < number < MOST:
            return number * SECONDS[unit], True
        if unit == "" and number.is_integer() and 1 <= number < MOST:
            return int(number), False
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


def whole_numbers(text: str, option: str) -> list[int]:
    """Read whole numbers that are joined by commas.

    Examples
    --------
    >>> whole_numbers("1, 24,168", "--lags")
    [1, 24, 168]
    >>> whole_numbers("a day", "--lags")
    Traceback (most recent call last):
    sapwood.cli.failure.UsageError: --lags a day: whole numbers are expected, such as 1,24,168
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise UsageError(f"{option} {text}: whole numbers are expected, such as 1,24,168")
    return list(map(int, parts))


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
    """Take names of models apart that are joined by commas; settings stay with their model.

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
    """Take a name apart from the settings that may follow it after a colon.

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
