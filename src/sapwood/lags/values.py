"""What lags remember of rows: numbers, times, and the keys of series, each checked."""

import contextlib
import math
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.lags.spans import SpanTable
from sapwood.schema import Rule
from sapwood.streams.stream import Column, FloatArray
from sapwood.validation import Label

__all__ = [
    "all_finite",
    "all_seconds",
    "finite",
    "known_or_none",
    "names_of",
    "number_of",
    "numbers_of",
    "part_of_key",
    "parts_of_keys",
    "seconds_of",
    "time_rule",
]


def known_or_none(values: list[float]) -> list[float | None]:
    """Return values with None for NaN."""
    return [value if value == value else None for value in values]  # noqa: PLR0124


def names_of(target: Any) -> str | tuple[Label, ...]:
    """Return the name of a target, or those of several."""
    if isinstance(target, str):
        return target
    good = isinstance(target, list | tuple) and all(type(name) in (str, int) for name in target)
    if not good or len(set(target)) < len(target) or len(target) < 2:
        raise ValueError(
            f"target = {validation.shown(target)}: a name is expected, or a list of several"
        )
    return tuple(target)


def time_rule(time: Any, table: SpanTable) -> Rule | None:
    """Return how the time of rows is read; None if rows are counted."""
    if table.by_time and time is None:
        span = next(iter(table.wanted))
        raise ValueError(f"{span}: lags by time need the column of times: name it, as time='at'")
    if not table.by_time and time is not None:
        raise ValueError(
            f"time = {validation.shown(time)}: spans count rows; give durations, such as '24h', or "
            "leave time out"
        )
    return None if time is None else Rule(validation.feature_name(time), "time")  # type: ignore[arg-type]


def seconds_of(given: Any, rule: Rule) -> float:
    """Return the seconds of a time, NaN if it is missing."""
    try:
        seconds = rule.value(given)
    except validation.Unfit as broken:
        sentence = validation.feature_sentence(rule.name, given, None, str(broken))
        raise ValueError(sentence) from None
    return math.nan if seconds is None else float(seconds)


def all_seconds(column: Column | None, rule: Rule) -> FloatArray | float:
    """Return the times of rows in seconds, NaN where one is missing."""
    if column is None:
        return np.nan
    if isinstance(column, np.ndarray):
        return column
    return np.array([seconds_of(value, rule) for value in column])


def number_of(value: Any, name: Label) -> float:
    """Return a value of a column that lags are taken of."""
    what = f"x[{validation.shown(name)}]"
    with contextlib.suppress(validation.Unfit):
        value = validation.plain(value)
    return np.nan if value is None else finite(validation.number(value, what), what, None)


def numbers_of(column: Column | None, name: Label) -> FloatArray | float:
    """Return the values of a column that lags are taken of, NaN where one is missing."""
    if column is None:
        return np.nan
    what = f"x[{validation.shown(name)}]"
    if not isinstance(column, np.ndarray):
        text = next((value for value in column if isinstance(value, str)), None)
        if text is not None:
            raise ValueError(f"{what} = {validation.shown(text)}: lags are taken of numbers alone")
        return all_finite(np.array([number_of(value, name) for value in column]), what)
    return all_finite(np.array(column, np.float64), what)


def all_finite(values: FloatArray, what: str) -> FloatArray:
    """Return values, none of which is infinite."""
    for row in np.flatnonzero(np.isinf(values)).tolist()[:1]:
        finite(float(values[row]), what, row)
    return values


def finite(value: float, what: str, row: int | None) -> float:
    """Return a value that is not infinite."""
    if np.isinf(value):
        place = "" if row is None else f" at position {row}"
        raise ValueError(f"{what} = {value}{place} {validation.FEATURE_FINITE}")
    return value


def part_of_key(value: Any) -> str | int | float | None:
    """Return a part of the key of a series; whole numbers are themselves, whatever their type."""
    try:
        plain = validation.plain(value)
        if isinstance(plain, float):
            if np.isinf(plain):
                raise validation.Unfit(validation.FEATURE_FINITE)
            return None if np.isnan(plain) else plain
        if plain is not None:
            validation.check_text(plain)
            plain = validation.label(plain)
    except validation.Unfit as rule:
        raise ValueError(f"{validation.shown(value)}, which identifies a series, {rule}") from None
    return int(plain) if isinstance(plain, bool) else plain


def parts_of_keys(column: Column | None, rows: int) -> list[Any]:
    """Return by what the series of rows are known, as `part_of_key` of each."""
    if column is None:
        return [None] * rows
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return list(map(part_of_key, values))
