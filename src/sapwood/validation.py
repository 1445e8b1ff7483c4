"""Validation of all input, with its error messages, before any state changes."""

import math
import sys
from collections.abc import Sequence, Sized
from reprlib import Repr
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _validation

__all__ = [
    "Unfit",
    "check_ids",
    "check_labels",
    "check_number",
    "check_values",
    "column",
    "feature_name",
    "feature_sentence",
    "floats",
    "label",
    "plain",
    "rows",
    "shown",
    "weights",
]

FloatArray = NDArray[np.float64]
Label = str | int  # of a category; a bool is an int
Plain = str | bool | int | float | None  # what the value of a feature comes down to

FINITE = "must be a finite number; drop the row or fix the value"
WEIGHT = "must be a positive finite number; leave out a row that should not count"
SPREAD = (
    "is too far from the other values: its squared distance to the first value, or the weighted "
    "sum of all of them, comes too near to the largest double; scale y down or drop the row"
)
TOTAL_WEIGHT = "takes the total weight too near to the largest double; scale the weights down"

ONE = np.float64(1.0).tobytes()

LONGEST = 1000  # characters of a feature's name or a label
FEATURE = "must be a number or a string; use NaN or None for a missing value"
FEATURE_FINITE = "must be finite; use NaN or None for a missing value"
FEATURE_RANGE = "is beyond the largest double; scale it down"
BEYOND = "is beyond the largest double, 1.8e308; scale it down or drop the row"
FEATURE_NUMBER = (
    "must be a number, as the values of this feature before it; turn text into numbers, or give it "
    "a feature of its own"
)
FEATURE_LABEL = (
    "must be a string or a whole number, as the values of this feature are categories; give "
    "numbers a feature of their own"
)
LABEL_LENGTH = f"must have at most {LONGEST} characters, as a category; shorten or hash it"
LABEL_RANGE = "must be from -2**63 to 2**64 - 1, as a category; make a string of it"
LABEL_TEXT = (
    "is no text, as it has half of a surrogate pair, so no file could hold it; fix it where it is "
    "made, as by value.encode('utf-8', 'replace').decode()"
)
DATES = "turn dates and times into numbers, such as seconds since a fixed day"
LARGE = "must not be beyond {largest:g}; scale y down or drop the row"

SPREAD_OF_BOTH = (
    "the y of both observers are too far apart: their squares exceed the largest double"
)
WEIGHT_OF_BOTH = "the weights of both together would exceed the largest double"


def column(values: ArrayLike, name: str) -> FloatArray:
    """Return values as a one-dimensional float64 array; raise ValueError if that is impossible."""
    array = floats(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: one dimension is expected")
    return array


def weights(values: ArrayLike | None, count: int) -> FloatArray:
    """Return a copy of count weights; ones, taking no memory, if none are given."""
    if values is None:
        return np.ndarray(count, np.float64, buffer=ONE, strides=(0,))
    array = column(values, "w")
    if len(array) != count:
        raise ValueError(f"w has {len(array)} values and y has {count}: the lengths must agree")
    return np.array(array, order="C")


def check_labels(rows: int, labels: int) -> None:
    """Raise ValueError unless there are as many labels as rows."""
    if rows != labels:
        raise ValueError(f"X has {rows} rows and y has {labels} values: the lengths must agree")


def check_ids(ids: Sized | None, rows: int) -> None:
    """Raise ValueError unless there are as many ids as rows, or none at all."""
    if ids is not None and len(ids) != rows:
        raise ValueError(f"ids has {len(ids)} values and X has {rows} rows: the lengths must agree")


def rows(
    x: ArrayLike, y: ArrayLike, w: ArrayLike | None, targets: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return x (n,), y (n, targets) and w (n,) as float64, of one length; values unchecked.

    All are contiguous, but for weights that are not given.
    """
    x = column(x, "x")
    if targets == 1:
        y = column(y, "y").reshape(-1, 1)
    else:
        y = floats(y, "y")
        if y.ndim != 2 or y.shape[1] != targets:
            raise ValueError(f"y has shape {y.shape}: (rows, {targets}) is expected")
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} values and y has {len(y)}: the lengths must agree")
    return np.ascontiguousarray(x), np.ascontiguousarray(y), weights(w, len(x))


def check_values(y: FloatArray, w: FloatArray) -> None:
    """Raise ValueError at the first y that is not finite or w that is not positive and finite."""
    row = _validation.first_bad_value(y, w)
    if row >= 0:
        refuse_value(y[row], w[row], row)


def refuse_value(y: float, w: float, row: int | None = None, name: str = "y") -> NoReturn:
    """Raise the ValueError for a pair of which at least one is bad."""
    if not np.isfinite(y):
        raise ValueError(_sentence(name, y, row, FINITE))
    raise ValueError(_sentence("w", w, row, WEIGHT))


def refuse_row(x: float, y: FloatArray, w: float, row: int | None = None) -> NoReturn:
    """Raise the error for an observation that `sapwood._validation` found to be bad."""
    if not np.isfinite(x):
        raise ValueError(_sentence("x", x, row, FINITE))
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise ValueError(_sentence(_target_name(y, bad[0]), y[bad[0]], row, FINITE))
    if not (np.isfinite(w) and w > 0):
        raise ValueError(_sentence("w", w, row, WEIGHT))
    widest = int(np.argmax(np.abs(y)))
    if w > 1e300:
        raise OverflowError(_sentence("w", w, row, TOTAL_WEIGHT))
    raise OverflowError(_sentence(_target_name(y, widest), y[widest], row, SPREAD))


def refuse_large_row(
    y: float, w: float, largest: float, row: int | None = None, name: str = "y"
) -> NoReturn:
    """Raise the error for a row that a tree may not learn; `name` is what its y is called."""
    if not (np.isfinite(y) and np.isfinite(w) and w > 0):
        refuse_value(y, w, row, name)
    if not abs(y) <= largest:
        raise OverflowError(_sentence(name, y, row, LARGE.format(largest=largest)))
    raise OverflowError(_sentence("w", w, row, TOTAL_WEIGHT))


def refuse_kind(name: str, value: Any, row: int | None = None) -> NoReturn:
    """Raise the ValueError for what is no number, or one that no double reaches."""
    place = "" if row is None else f" at position {row}"
    rule = BEYOND if is_beyond(value) else "must be a number"
    raise ValueError(f"{name} = {shown(value)}{place} {rule}")


def number(value: Any, name: str) -> float:
    """Return a number as a float; raise ValueError for what is none, or too large for one.

    Examples
    --------
    >>> number(10**400, "y")
    Traceback (most recent call last):
    ValueError: y = 1000...000 is beyond the largest double, 1.8e308; scale it down or drop the row
    """
    if not _has_float(value):
        refuse_kind(name, value)
    return float(value)


def is_beyond(value: Any) -> bool:
    """Whether a value is a finite number that is too large for a double.

    Examples
    --------
    >>> from decimal import Decimal
    >>> is_beyond(-(10**400)), is_beyond(Decimal("1e400")), is_beyond(float("inf")), is_beyond("a")
    (True, True, False, False)
    """
    if type(value) is float or isinstance(value, str | bytes):
        return False
    try:
        number = float(value)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return math.isinf(number) and bool(value != number)


def positive(value: Any, name: str) -> float:
    """Return value as a positive finite float, or raise ValueError."""
    number = _float_or_nan(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} = {shown(value)}: a positive finite number is expected")
    return number


def between(value: Any, name: str, low: float, high: float) -> float:
    """Return value as a float above or at low and below high, or raise ValueError."""
    number = _float_or_nan(value)
    if not low <= number < high:
        raise ValueError(
            f"{name} = {shown(value)}: a number from {low:g} to below {high:g} is expected"
        )
    return number


def _float_or_nan(value: Any) -> float:
    """Return a number as a float, and NaN for what is none."""
    if isinstance(value, str):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def whole(value: Any, name: str, low: int, high: int) -> int:
    """Return value as an integer from low to high, or raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} = {shown(value)}: a whole number is expected")
    if not low <= value <= high:
        raise ValueError(f"{name} = {shown(value)}: a number from {low} to {high} is expected")
    return int(value)


def floats(values: ArrayLike, name: str) -> FloatArray:
    """Return values as a float64 array of their own shape; raise ValueError if impossible."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.float64)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # as numbers mixed with text became text
    if array.dtype.kind not in "biufO":
        raise ValueError(
            f"{name} holds {array.dtype}, e.g. {array.flat[0]!r}: numbers are expected"
        )
    if array.dtype.kind == "O":
        for place, value in np.ndenumerate(array):
            if not _has_float(value):
                refuse_kind(_part(name, place), value, place[0] if place else None)
    with np.errstate(over="ignore"):
        floats = array.astype(np.float64, copy=False)
    if array.dtype.itemsize > floats.dtype.itemsize:
        for beyond in np.argwhere(np.isinf(floats) & np.isfinite(array)).tolist()[:1]:
            refuse_kind(_part(name, beyond), array[tuple(beyond)], beyond[0] if beyond else None)
    array = floats
    if isinstance(values, np.ma.MaskedArray):
        array = np.where(np.ma.getmaskarray(values), np.nan, array)
    return array


def _part(name: str, place: Sequence[int]) -> str:
    return f"{name}[{place[1]}]" if len(place) > 1 else name


def _has_float(value: Any) -> bool:
    """Whether a value is a number that the doubles reach, NaN or infinite ones included."""
    if type(value) is float:
        return True
    if isinstance(value, str | bytes):
        return False
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not math.isinf(number) or bool(value == number)


def _sentence(name: str, value: Any, row: int | None, rule: str) -> str:
    place = "" if row is None else f" at position {row}"
    shown = float(value) if isinstance(value, np.floating) else value
    return f"{name} = {shown!r}{place} {rule}"


def _target_name(y: FloatArray, target: int) -> str:
    return "y" if len(y) == 1 else f"y[{target}]"


# The values of features: numbers, categories, or missing.


class Unfit(ValueError):  # noqa: N818 - it is made a sentence before anybody sees it
    """The rule that a value breaks; `feature_sentence` makes a message of it with the place."""


def plain(value: Any) -> Plain:
    """Return the value of a feature as a str, bool, int or float of Python; None if missing.

    Raises `Unfit` for what is neither number nor text. NaN stays NaN.

    Examples
    --------
    >>> plain(np.float32(0.5)), plain(np.str_("red")), plain(np.ma.masked)
    (0.5, 'red', None)
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | np.bool):
        return bool(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if value is None or value is np.ma.masked or _is_missing_in_pandas(value):
        return None
    return _other_number(value)


def check_number(value: Plain) -> None:
    """Raise `Unfit` if a plain value is not a number that a feature may have; missing is legal."""
    if isinstance(value, str):
        raise Unfit(FEATURE_NUMBER)
    if isinstance(value, float) and math.isinf(value):
        raise Unfit(FEATURE_FINITE)
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            raise Unfit(FEATURE_RANGE) from None


def label(value: Plain) -> Label | None:
    """Return a plain value as the label of a category, None if missing; else raise `Unfit`.

    A whole float is a label too, as JSON does not distinguish 3.0 from 3.

    - `value`: what `plain` returned.

    Examples
    --------
    >>> label("red"), label(3.0)
    ('red', 3)
    """
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise Unfit(FEATURE_FINITE)
        if not value.is_integer():
            raise Unfit(FEATURE_LABEL)
        value = int(value)
    if isinstance(value, str) and len(value) > LONGEST:
        raise Unfit(LABEL_LENGTH)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise Unfit(LABEL_RANGE)
    return value


def feature_name(key: Any) -> Label:
    """Return the name of a feature as a str or int of Python, or raise ValueError."""
    if isinstance(key, str | int | np.integer) and not isinstance(key, bool | np.timedelta64):
        name = plain(key)
        if isinstance(name, str) and len(name) <= LONGEST:
            return name
        if isinstance(name, int) and -(2**63) <= name < 2**63:
            return name
    raise ValueError(
        f"{shown(key)} is the name of a feature: a string of at most {LONGEST} characters or a "
        "whole number of 64 bits is expected; rename it"
    )


def check_text(text: Label) -> None:
    """Raise `Unfit` for a new name or label that is a string, but no text."""
    if isinstance(text, str) and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Unfit(LABEL_TEXT) from None


def feature_sentence(name: Label, value: Any, row: int | None, rule: str) -> str:
    """Return the message for a feature's value that breaks a rule.

    Examples
    --------
    >>> feature_sentence("age", float("inf"), 3, FEATURE_FINITE)
    "x['age'] = inf at position 3 must be finite; use NaN or None for a missing value"
    """
    place = "" if row is None else f" at position {row}"
    return f"x[{shown(name)}] = {shown(value)}{place} {rule}"


def shown(value: Any) -> str:
    """Return how a message shows any value: like repr, but short, and it never fails."""
    if isinstance(value, np.floating) and not is_beyond(value):
        value = float(value)
    try:
        if isinstance(value, int):
            repr(value)  # of too many digits raises an error, which Python 3.14 shortens to words
        return _SHORT.repr(value)
    except Exception:  # of a hostile value, or an int of too many digits
        return f"<{type(value).__name__}>"


def _other_number(value: Any) -> int | float:
    """Return what is no number of Python, but can be made one."""
    if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
        return int(value)
    if (
        not hasattr(type(value), "__float__")
        or (isinstance(value, np.generic) and not isinstance(value, np.floating))
        or getattr(value, "ndim", 0) != 0
    ):
        raise Unfit(FEATURE)
    if is_beyond(value):
        raise Unfit(FEATURE_RANGE)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Unfit(FEATURE) from None


def _is_missing_in_pandas(value: Any) -> bool:
    """Whether a value is pandas' NA or NaT; pandas is not imported for it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and any(
        value is getattr(pandas, name, pandas) for name in ("NA", "NaT")
    )


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
