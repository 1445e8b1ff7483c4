"""A model with bounds as a header and arrays, and back: every value is checked before its use."""

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import model
from sapwood.intervals import _bounds
from sapwood.intervals.said import Said
from sapwood.intervals.wrapped import wrapped
from sapwood.model import State, can_be_saved, check_unchanged
from sapwood.tree import HoeffdingTreeRegressor

if TYPE_CHECKING:
    from sapwood.intervals.regressor import IntervalRegressor

__all__ = ["fill", "parts_of", "restore", "state_of"]

Array = NDArray[Any]
Bounded = TypeVar("Bounded", bound="IntervalRegressor")

TABLE, OVERALL, MODEL, ERRORS = "regions", "overall", "model", "errors"
SAID = ("said_keys", "said_lengths", "said_records")
ROWS, TOTAL, WEIGHT, LATELY, LOWEST, LOWEST_SEEN, HIGHEST, HIGHEST_SEEN = range(8)
MOST_ROWS = 2.0**53
FARTHEST = 1e6


def parts_of(own: Bounded, inner: Any) -> tuple[type[Bounded], Any, dict[str, Any], dict[str, Any]]:
    """Return the class, a model in place of the one that is wrapped, and all beside it."""
    own._meet_targets()
    errors, bounds = own._wrapped.errors, own._bounds
    table = bounds.of_regions(len(own._wrapped.parents))
    arrays = {
        TABLE: table.reshape(-1, table.shape[2]).copy(),  # those of one target after another's
        OVERALL: bounds.overall.reshape(-1).copy(),
        ERRORS: _bytes(b"" if errors is None else errors.to_bytes()),
        **own._said.to_arrays(),
    }
    header = {"levels": list(own.levels), "column_formats": dict(own.column_formats)}
    return type(own), inner, header, arrays


def state_of(own: "IntervalRegressor") -> State:
    """Return all that a model with bounds is."""
    inner = own.model
    if not can_be_saved(inner):
        raise TypeError(
            f"{type(inner).__name__} cannot be saved, as it has no to_bytes and from_bytes: pickle "
            "the whole instead, if you trust where it goes"
        )
    _, _, header, arrays = parts_of(own, inner)
    return State({"levels": header["levels"]}, {**arrays, MODEL: _bytes(inner.to_bytes())})


def restore(kind: type[Bounded], state: State) -> Bounded:
    """Return the model of a header and arrays, of which nothing is trusted."""
    header, arrays = state
    _check(header.keys() == {"levels"}, "its header has other entries than levels")
    expected = {TABLE, OVERALL, MODEL, ERRORS, *SAID}
    _check(arrays.keys() == expected, f"its arrays are not {', '.join(sorted(expected))}")
    made = kind(model.from_bytes(_data(arrays[MODEL], MODEL), "the model inside"), header["levels"])
    check_unchanged({"levels": list(made.levels)}, header)
    fill(made, header, arrays)
    return made


def fill(own: "IntervalRegressor", header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Give a model that nobody has seen yet what is known beside the one that is wrapped."""
    errors = _data(arrays[ERRORS], ERRORS)
    inner = own.model
    if errors:
        tree = HoeffdingTreeRegressor.from_bytes(errors, "the tree of errors")
        own._wrapped = wrapped(inner, tree)
    _check(bool(errors) == (own._wrapped.errors is not None), "it lacks, or has, a tree of errors")
    bounds, regions = own._bounds, len(own._wrapped.parents)
    shape = bounds.targets, regions, bounds.table.shape[2]
    table = _shaped(arrays[TABLE], shape, 2, "its table of regions is")
    overall = _shaped(arrays[OVERALL], bounds.overall.shape, 1, "its numbers of all regions are")
    for place in range(bounds.targets):
        _check_table(table[place])
        _check_overall(overall[place])
    said = {name: arrays[name] for name in SAID}
    own._said = Said.from_arrays(said, bounds.targets * bounds.record, bounds.record)
    bounds.fill(table, overall)
    own.column_formats = dict(header.get("column_formats", {}))


def _shaped(array: Array, shape: tuple[int, ...], dimensions: int, words: str) -> Array:
    """Return numbers of each target, which a file has with the first dimensions as one."""
    joined = (
        math.prod(shape[: len(shape) - dimensions + 1]),
        *shape[len(shape) - dimensions + 1 :],
    )
    good = array.dtype == np.float64 and array.shape == joined
    _check(good, f"{words} {array.dtype} of shape {array.shape}")
    return array.reshape(shape)


def _check_table(table: Array) -> None:
    met = table[:, 1] != _bounds.NOT_MET
    _check(bool(met[0]), "its first region was never met")
    _check(bool((table[~met] == _bounds.NOT_MET).all()), "a region is half met")
    known = table[met]
    _check(bool(np.isfinite(known).all()), "a number of a region is not finite")
    _check(bool((known[:, : _bounds.FIRST_QUANTILE] >= 0).all()), "a sum of a region is below 0")
    quantiles = known[:, _bounds.FIRST_QUANTILE :]
    _check(bool((np.abs(quantiles) <= FARTHEST).all()), "a quantile of a region is too far away")
    _check(bool((quantiles[:, 0::2] < quantiles[:, 1::2]).all()), "quantiles are in a wrong order")


def _check_overall(overall: Array) -> None:
    rows, seen = overall[ROWS], overall[[LOWEST_SEEN, HIGHEST_SEEN]]
    _check(0 <= rows <= MOST_ROWS and rows == int(rows), f"it cannot have seen {rows:g} rows")
    _check(bool(((seen >= 0) & (seen <= rows)).all()), "y were seen more often than rows")
    sums = overall[[TOTAL, WEIGHT, LATELY]]
    _check(bool(((sums >= 0) & (sums < np.inf)).all()), "a sum of all regions is wrong")
    _check(rows == 0 or overall[WEIGHT] > 0, "its rows have no weight")
    lowest, highest = overall[LOWEST], overall[HIGHEST]
    ordered = lowest <= highest if rows else (lowest, highest) == (np.inf, -np.inf)
    within = rows == 0 or bool((np.abs([lowest, highest]) <= _bounds.LARGEST).all())
    _check(bool(ordered) and within, "its least and largest y are wrong")
    factors = overall[_bounds.FIRST_LEVEL :]
    good = bool(((factors >= 0.99 / FARTHEST) & (factors <= FARTHEST)).all())
    _check(good, "a factor of a level is wrong")


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def _data(array: Array, name: str) -> bytes:
    _check(array.dtype == np.uint8 and array.ndim == 1, f"{name} is no bytes")
    return array.tobytes()


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(complaint)
