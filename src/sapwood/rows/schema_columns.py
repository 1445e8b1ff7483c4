"""Columns of rows in any form, as a schema encodes them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sapwood import validation
from sapwood.rows import frames
from sapwood.rows.column import Coded, Column, Values
from sapwood.rows.times import UNITS, in_seconds, seconds_of_array
from sapwood.validation import FloatArray, Label

if TYPE_CHECKING:
    from sapwood.schema import Rule, Schema

__all__ = ["applied", "encoded", "named"]

Items = Iterable[tuple[Any, Any]]
Convert = Callable[[Column, Any], tuple[Values, bool]]
MANY = 1000  # distinct texts from which on pyarrow is worth its import


def named(X: Any, names: Sequence[Label]) -> Any:
    """Return an array that has a column for each of some names as a mapping; all else as it is.

    Examples
    --------
    >>> named(np.array([[1.0, 2.0]]), ["a", "b"])
    {'a': array([1.]), 'b': array([2.])}
    """
    if isinstance(X, np.ndarray):
        fits = X.ndim == 2 and X.shape[1] == len(names)
        return dict(zip(names, X.T, strict=True)) if fits else X
    if not (isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple)):
        return X
    if any(len(row) != len(names) for row in X):
        return X
    return {name: [row[place] for row in X] for place, name in enumerate(names)}


def applied(schema: Schema, items: Items, convert: Convert) -> tuple[Items, Convert]:
    """Return the columns of rows as a schema encodes them, and what reads these.

    - `convert`: returns the values of a column as it is given, and whether it is a categorical.
    """
    given = list(items)
    made = _numbers_made(schema, given)

    def read(column: Column, content: Any) -> tuple[Values, bool]:
        if column.name in made:
            return made[column.name], False
        values, categorical = convert(column, content)
        rule = schema.converting.get(column.name)
        if rule is None:
            return values, categorical
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            values = _listed(content)  # whole numbers, of which one is missing
        return _labels(rule, values), categorical

    names = {name for name, _ in given}
    return [*given, *((name, own) for name, own in made.items() if name not in names)], read


def encoded(schema: Schema, items: Items, columns: dict[Any, Any]) -> dict[Any, Any]:
    """Return columns as features.

    - `columns`: the same as arrays and labels, without the schema.
    """
    given = list(items)
    labels = {
        name: _labels(schema.converting[name], _listed(content))
        for name, content in given
        if _role(schema, name) == "category"
    }
    return {**columns, **labels, **_numbers_made(schema, given)}


def _role(schema: Schema, name: Any) -> str | None:
    rule = schema.converting.get(name) if isinstance(name, str | int) else None
    return None if rule is None else rule.role


def _numbers_made(schema: Schema, items: Items) -> dict[Any, FloatArray]:
    """Return the columns of numbers and times, and parts that are not there yet."""
    given = dict(items)
    made: dict[Any, FloatArray] = {}
    for name, content in given.items():
        if _role(schema, name) in (None, "category"):
            continue
        rule = schema.converting[name]
        if rule.derived.keys() & given.keys() and rule.time_format in UNITS:
            rule = replace(rule, time_format=None)  # it was encoded before: numbers are seconds
        made[name] = numbers = _numbers(rule, content)
        made.update({key: own for key, own in rule.derive(numbers).items() if key not in given})
    return made


def _numbers(rule: Rule, content: Any) -> FloatArray:
    """Return a column of numbers, booleans or times as doubles, NaN where one is missing."""
    seconds, is_naive = _of_times(content)
    if seconds is not None:
        local = is_naive and rule.role == "time" and rule.calendar is not None
        return rule.calendar.absolute(seconds) if local and rule.calendar else seconds
    array = content if isinstance(content, np.ndarray) else None
    if array is None or array.dtype.kind not in "biuf" or isinstance(array, np.ma.MaskedArray):
        return _of_values(rule, _listed(content))
    per_second = UNITS.get(rule.time_format or "", 1) if rule.role == "time" else 1
    if array.dtype.kind in "iu" and array.dtype != np.uint64:
        if rule.role == "time" and rule.time_format not in (None, *UNITS):
            return _of_values(rule, array.tolist())  # dates of digits alone
        return in_seconds(array.astype(np.int64), per_second)
    numbers: FloatArray = array.astype(np.float64)
    return numbers / per_second


def _of_times(content: Any) -> tuple[FloatArray | None, bool]:
    """Return the seconds of a column whose type is one of times, and whether it has no zone.

    The seconds are None if it is of another type.
    """
    none = None, False
    if isinstance(content, np.ndarray):
        is_plain = content.dtype.kind in "mM" and not isinstance(content, np.ma.MaskedArray)
        return (seconds_of_array(content), content.dtype.kind == "M") if is_plain else none
    if isinstance(content, list | tuple) or not hasattr(content, "dtype"):
        return none
    if isinstance(content.dtype, np.dtype):
        kind = content.dtype.kind
        return (seconds_of_array(np.asarray(content)), kind == "M") if kind in "mM" else none
    try:
        narwhals: Any = importlib.import_module("narwhals.stable.v2")
    except ImportError:
        return none
    series = narwhals.from_native(content, series_only=True, pass_through=True)
    if not isinstance(series, narwhals.Series) or not series.dtype.is_temporal():
        return none
    name = type(series.dtype).__name__
    is_naive = name in frames.MOMENTS and getattr(series.dtype, "time_zone", None) is None
    return none if name == "Time" else (frames.seconds_of(series), is_naive)


def _listed(content: Any) -> list[Any]:
    """Return the values of a column as a list."""
    if isinstance(content, np.ma.MaskedArray):
        return list(content)
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(content, name):
            values: list[Any] = getattr(content, name)()
            return values
    return list(content)


def _of_values(rule: Rule, values: Sequence[Any]) -> FloatArray:
    """Return values one by one, each text once; raise ValueError at the first that is unfit."""
    texts = {value: np.nan for value in values if type(value) is str}
    if rule.role == "time" and len(texts) > MANY:
        texts = _all_at_once(texts, rule) or texts
    numbers = np.empty(len(values))
    known: dict[str, float] = {}
    for row, value in enumerate(values):
        if type(value) is str and (value in known or not np.isnan(texts[value])):
            numbers[row] = known.get(value, texts[value])
            continue
        try:
            found = rule.value(value)
            validation.check_number(found)
        except validation.Unfit as broken:
            sentence = validation.feature_sentence(rule.name, value, row, str(broken))
            raise ValueError(sentence) from None
        numbers[row] = np.nan if found is None else found
        if type(value) is str:
            known[value] = numbers[row]
    return numbers


def _all_at_once(texts: Mapping[str, float], rule: Rule) -> dict[str, float] | None:
    """Return the seconds of many texts, NaN of what is none; None without pyarrow."""
    try:
        pa: Any = importlib.import_module("pyarrow")
    except ImportError:
        return None
    if rule.time_format in UNITS:
        return None
    arrow: Any = importlib.import_module("sapwood.streams.arrow")
    times: Any = importlib.import_module("sapwood.streams.times")
    text = arrow.tidy(pa.array(list(texts), pa.string()))
    found, _ = times.seconds_of_text(text, rule.time_format, rule.calendar)
    return dict(zip(texts, found.tolist(), strict=True))


def _labels(rule: Rule, values: Values) -> Values:
    """Return labels as files have them; what can be none stays, for the model to reject."""

    def label(value: Any) -> Any:
        try:
            return rule.value(value)
        except (validation.Unfit, TypeError):
            return value

    if isinstance(values, Coded):
        return values.mapped(label)
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    texts = {value: label(value) for value in {each for each in listed if type(each) is str}}
    return [texts[value] if type(value) is str else label(value) for value in listed]
