"""A model with bounds as a header and arrays, and back: every value is checked before its use."""

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import model, validation
from sapwood.corrector.pending_state import PENDING, pending_arrays, restore_pending
from sapwood.intervals import _bounds
from sapwood.intervals.bound_table import BoundTable
from sapwood.intervals.groups import Groups
from sapwood.intervals.wrapped import wrapped
from sapwood.model import State, check_unchanged
from sapwood.stages.any_model import bytes_of
from sapwood.tree import HoeffdingTreeRegressor

if TYPE_CHECKING:
    from sapwood.intervals.regressor import IntervalRegressor

__all__ = ["fill", "parts_of", "restore", "state_of"]

Array = NDArray[Any]
Bounded = TypeVar("Bounded", bound="IntervalRegressor")

TABLE, OVERALL, MODEL, ERRORS, FACTORS = "regions", "overall", "model", "errors", "groups"
HEADER = ("levels", "labels", "by", "grouped_by", "group_values")
OLDER_PENDING = ("said_keys", "said_lengths", "said_records")  # instead, in older formats
ROWS, TOTAL, WEIGHT, RECENT, LOWEST, LOWEST_SEEN, HIGHEST, HIGHEST_SEEN, LATENESS = range(9)
MOST_ROWS = 2.0**53
WITHOUT_IDS, WITHOUT_GROUPS = 2, 3  # the last such formats
FARTHEST = 1e6


def parts_of(own: Bounded, inner: Any) -> tuple[type[Bounded], Any, dict[str, Any], dict[str, Any]]:
    """Return the class, a model in place of the wrapped one, and the state of the intervals."""
    own._meet_targets()
    own._follow_pruning()
    errors, bounds = own._wrapped.errors, own._bounds
    table = bounds.of_regions(len(own._wrapped.parents))
    arrays = {
        TABLE: table.reshape(-1, table.shape[2]).copy(),  # those of one target after another's
        OVERALL: bounds.overall.reshape(-1).copy(),
        ERRORS: _bytes(b"" if errors is None else errors.to_bytes()),
        FACTORS: bounds.factors[:, 1 : 1 + len(own._groups.values)].reshape(-1).copy(),
        **pending_arrays(bounds.pending),
    }
    header = {
        "levels": list(own.levels),
        "labels": int(bounds.labels[0]),
        "by": own._by,
        "grouped_by": own._groups.name,
        "group_values": own._groups.values,
        "schema": own._schema,
    }
    return type(own), inner, header, arrays


def state_of(own: "IntervalRegressor") -> State:
    """Return all that a model with bounds is."""
    inner = own.model
    file = bytes_of(inner)
    _, _, header, arrays = parts_of(own, inner)
    own_header = {name: header[name] for name in HEADER}
    return State(own_header, {**arrays, MODEL: file})


def restore(kind: type[Bounded], state: State, format: int) -> Bounded:
    """Return the model of a header and arrays, of which nothing is trusted."""
    if format <= WITHOUT_IDS:
        state = _with_ids(state)
    header, arrays = state if format > WITHOUT_GROUPS else _with_groups(state)
    _check(header.keys() == {*HEADER}, "its header has other entries than it should")
    expected = {TABLE, OVERALL, MODEL, ERRORS, FACTORS, *PENDING}
    _check(arrays.keys() == expected, f"its arrays are not {', '.join(sorted(expected))}")
    inner = model.from_bytes(_data(arrays[MODEL], MODEL), "the model inside")
    _check(isinstance(inner, model.Model), f"a {type(inner).__name__} does not learn")
    made = kind(inner, header["levels"], header["by"])
    check_unchanged({**header, "levels": list(made.levels)}, header)
    fill(made, header, arrays)
    return made


def fill(own: "IntervalRegressor", header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Fill a newly made model with the state of its intervals."""
    errors = _data(arrays[ERRORS], ERRORS)
    inner = own.model
    if errors:
        tree = HoeffdingTreeRegressor.from_bytes(errors, "the tree of errors")
        _check(not isinstance(inner, HoeffdingTreeRegressor), "a tree has no tree of errors")
        own._wrapped = wrapped(inner, tree)
    _check(bool(errors) == (own._wrapped.errors is not None), "it lacks, or has, a tree of errors")
    bounds, regions = own._bounds, len(own._wrapped.parents)
    shape = bounds.targets, regions, bounds.table.shape[2]
    table = _shaped(arrays[TABLE], shape, 2, "its table of regions is")
    overall = _shaped(arrays[OVERALL], bounds.overall.shape, 1, "its numbers of all regions are")
    for place in range(bounds.targets):
        _check_table(table[place])
        _check_overall(overall[place])
    labels = validation.whole(header["labels"], "labels", 0, 2**53)
    _restore_pending(bounds, [arrays[name] for name in PENDING], labels)
    bounds.labels[0] = labels
    bounds.fill(table, overall)
    own._groups = _groups(header)
    size = bounds.targets, len(own._groups.values), len(bounds.levels)
    factors = _shaped(arrays[FACTORS], size, 1, "its factors of groups are")
    good = (factors >= 0.99 / _bounds.WIDEST) & (factors <= 1.01 * _bounds.WIDEST)
    _check(bool(good.all()), "a factor of a group is wrong")
    bounds.factors[:, 1 : 1 + size[1]] = factors
    own._schema = header.get("schema")


def _groups(header: dict[str, Any]) -> Groups:
    """Return the groups of a header, of which nothing is trusted."""
    name, values = header["grouped_by"], header["group_values"]
    _check(header["by"] is None or header["by"] == name, "its groups are of another feature")
    name = None if name is None else validation.feature_name(name)
    good = type(values) is list and all(
        type(value) is str or (type(value) is float and math.isfinite(value)) for value in values
    )
    _check(good and len(set(values)) == len(values), "the values of its groups are wrong")
    _check(len(values) < _bounds.MOST_GROUPS, f"there cannot be {len(values)} groups")
    _check(name is not None or not values, "its groups are of no feature")
    return Groups(name, values)


def _with_groups(state: State) -> State:
    """Return the state of a format that had no groups."""
    header, arrays = state
    _check(header.keys() == {"levels", "labels"}, "its header has other entries than it should")
    _check(FACTORS not in arrays, "it has factors of groups")
    none: dict[str, Any] = {"by": None, "grouped_by": None, "group_values": []}
    return State({**header, **none}, {**arrays, FACTORS: np.zeros(0)})


def _with_ids(state: State) -> State:
    """Return the state of a format that had no ids: what was pending is not known by its keys.

    Nothing was known of how late labels are.
    """
    header, arrays = state
    _check(header.keys() == {"levels"}, "its header has other entries than levels")
    expected = {TABLE, OVERALL, MODEL, ERRORS, *OLDER_PENDING}
    _check(arrays.keys() == expected, f"its arrays are not {', '.join(sorted(expected))}")
    levels = header["levels"]
    count = len(levels) if isinstance(levels, list) else 0
    own, overall = LATENESS + count, arrays[OVERALL]
    _check(count > 0 and overall.ndim == 1 and len(overall) % own == 0, "its numbers do not fit")
    _check(overall.dtype == np.float64, "its numbers are no doubles")
    wide = np.insert(overall.reshape(-1, own), LATENESS, 0.0, axis=1)
    rows = wide[:, ROWS].max() if len(wide) else 0.0
    _check(0 <= rows <= MOST_ROWS, f"it cannot have seen {rows:g} rows")
    bounds = BoundTable(np.sort(np.array(levels, np.float64)), max(1, len(wide)))
    kept = {name: array for name, array in arrays.items() if name not in OLDER_PENDING}
    pending = pending_arrays(bounds.pending)
    return State(
        {"levels": levels, "labels": int(rows)}, {**kept, OVERALL: wide.reshape(-1), **pending}
    )


def _restore_pending(bounds: BoundTable, saved: list[Array], labels: int) -> None:
    """Restore pending predictions, if they are valid."""
    restore_pending(bounds.pending, dict(zip(PENDING, saved, strict=True)), labels)
    known, predictions = saved[3][:, 0], saved[3][:, 1 :: bounds.record]
    _check(bool((known == np.floor(known)).all()), "pending predictions are of another time")
    _check(bool(np.isfinite(predictions).all()), "a pending prediction is not finite")


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
    sums = overall[[TOTAL, WEIGHT, RECENT]]
    _check(bool(((sums >= 0) & (sums < np.inf)).all()), "a sum of all regions is wrong")
    _check(rows == 0 or overall[WEIGHT] > 0, "its rows have no weight")
    late = overall[LATENESS]
    _check(0 <= late <= MOST_ROWS, f"labels cannot be {late:g} labels late")
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
