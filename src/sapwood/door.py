"""The one door for input: what is refused, with which words, before any state changes."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _door

__all__ = ["check_values", "column", "rows", "weights"]

FloatArray = NDArray[np.float64]

FINITE = "must be a finite number; drop the row or mend the value"
WEIGHT = "must be a positive finite number; leave out a row that should not count"
SPREAD = (
    "is too far from the other values: its squared distance to the first value, or the weighted "
    "sum of all of them, comes too near to the largest double; scale y down or drop the row"
)
TOTAL_WEIGHT = "takes the total weight too near to the largest double; scale the weights down"

SPREAD_OF_BOTH = (
    "the y of both observers are too far apart: their squares exceed the largest double"
)
WEIGHT_OF_BOTH = "the weights of both together would exceed the largest double"


def column(values: ArrayLike, name: str) -> FloatArray:
    """Return values as a one-dimensional float64 array, or say why they cannot be."""
    array = _as_floats(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: one dimension is expected")
    return array


def weights(values: ArrayLike | None, count: int) -> FloatArray:
    """Return count weights; ones, taking no memory, if none are given."""
    if values is None:
        return np.broadcast_to(np.float64(1.0), count)
    array = column(values, "w")
    if len(array) != count:
        raise ValueError(f"w has {len(array)} values and y has {count}: the lengths must agree")
    return np.ascontiguousarray(array)


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
        y = _as_floats(y, "y")
        if y.ndim != 2 or y.shape[1] != targets:
            raise ValueError(f"y has shape {y.shape}: (rows, {targets}) is expected")
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} values and y has {len(y)}: the lengths must agree")
    return np.ascontiguousarray(x), np.ascontiguousarray(y), weights(w, len(x))


def check_values(y: FloatArray, w: FloatArray) -> None:
    """Raise ValueError at the first y that is not finite or w that is not positive and finite."""
    row = _door.first_bad_value(y, w)
    if row >= 0:
        refuse_value(y[row], w[row], row)


def refuse_value(y: float, w: float, row: int | None = None) -> NoReturn:
    """Raise the ValueError for a pair of which at least one is bad."""
    if not np.isfinite(y):
        raise ValueError(_sentence("y", y, row, FINITE))
    raise ValueError(_sentence("w", w, row, WEIGHT))


def refuse_row(x: float, y: FloatArray, w: float, row: int | None = None) -> NoReturn:
    """Raise the error for an observation that `sapwood._door` found to be bad."""
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


def refuse_kind(name: str, value: Any, row: int | None = None) -> NoReturn:
    """Raise the ValueError for what is no number."""
    raise ValueError(_sentence(name, value, row, "must be a number"))


def positive(value: Any, name: str) -> float:
    """Return value as a positive finite float, or raise ValueError."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if isinstance(value, str) or not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} = {value!r}: a positive finite number is expected")
    return number


def whole(value: Any, name: str, low: int, high: int) -> int:
    """Return value as an integer from low to high, or raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} = {value!r}: a whole number is expected")
    if not low <= value <= high:
        raise ValueError(f"{name} = {value}: a number from {low} to {high} is expected")
    return int(value)


def _as_floats(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.float64)
    if array.dtype.kind not in "biufO":
        raise ValueError(
            f"{name} holds {array.dtype}, e.g. {array.flat[0]!r}: numbers are expected"
        )
    if array.dtype.kind == "O":
        for place, value in np.ndenumerate(array):
            if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
                part = f"{name}[{place[1]}]" if len(place) > 1 else name
                refuse_kind(part, value, place[0] if place else None)
    array = array.astype(np.float64, copy=False)
    if isinstance(values, np.ma.MaskedArray):
        array = np.where(np.ma.getmaskarray(values), np.nan, array)
    return array


def _sentence(name: str, value: Any, row: int | None, rule: str) -> str:
    place = "" if row is None else f" at position {row}"
    shown = float(value) if isinstance(value, np.floating) else value
    return f"{name} = {shown!r}{place} {rule}"


def _target_name(y: FloatArray, target: int) -> str:
    return "y" if len(y) == 1 else f"y[{target}]"
