"""Which series each row of a batch belongs to, and which series are forgotten for new ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.lags._history import History

__all__ = ["Key", "Plan", "empty", "from_state", "planned", "to_state"]

Key = tuple[str | int | float | None, ...]
"""What tells a series from others: a value for each column that series are told apart by."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LEAST_ROOM = 4
LARGEST = 2**53
NONE = np.zeros(1, np.int64)
"""The places of a row that is alone."""


def empty(columns: int, depth: int) -> History:
    """Return a history of nothing."""
    return History({}, np.empty((0, columns * depth)), *(np.empty(0, np.int64),) * 3, 0, depth)


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the rows of a batch go in a history, which does not know them yet.

    Parameters
    ----------
    history : History
        The history as it was when this was planned.
    groups, ordinals, order, offsets : arrays of int
        As for `History.features`.
    slots : array of int
        Where each series goes.
    is_new : array of uint8
        Whether each series starts with this batch.
    places : dict
        The row of each series, with those of the batch, and without those forgotten for them.
    clock : int
        How many rows the history had when this was planned.
    """

    history: History
    groups: IntArray
    ordinals: IntArray
    order: IntArray
    offsets: IntArray
    slots: IntArray
    is_new: NDArray[np.uint8]
    places: dict[Key, int]
    clock: int

    def features(self, rows: FloatArray, wanted: IntArray) -> FloatArray:
        """Return what is known of the rows before each, a row of the result for each feature."""
        out = np.empty((len(wanted), len(rows)))
        past = np.where(self.is_new == 1, -1, self.slots)
        self.history.features(
            self.groups, self.ordinals, self.order, self.offsets, past, rows, wanted, out
        )
        return out

    def push(self, rows: FloatArray) -> int:
        """Let the rows become past, and return the number of the last one in its series."""
        room, needed = len(self.history.counts), len(self.places)
        tables = None if needed <= room else _grown(self.history, max(needed, 2 * room, LEAST_ROOM))
        return self.history.push(
            self.groups, self.ordinals, self.slots, self.is_new, rows, self.places, tables
        )


def planned(history: History, keys: Sequence[Key] | None, rows: int, most: int) -> Plan:
    """Plan where rows go.

    Parameters
    ----------
    history : History
        What came before.
    keys : sequence of keys, optional
        The series of each row; None if there is but one.
    rows : int
        How many rows there are.
    most : int
        How many series are remembered at most: for a new one beyond these, the one is forgotten
        that has had no row for the longest time.
    """
    if keys is None:
        keys = [()] * min(rows, 1)
    series = _Series(history, most)
    if rows == 1:
        series.group_of(keys[0], 0)
        return _made(history, series, (NONE, NONE, NONE, NONE))
    groups = np.zeros(rows, np.int64)
    if len(keys) == rows:
        groups[:] = [series.group_of(key, row) for row, key in enumerate(keys)]
    else:
        series.group_of(keys[0], 0)
    order = np.argsort(groups, kind="stable")
    offsets = np.searchsorted(groups[order], np.arange(len(series.slots)))
    ordinals = np.empty(rows, np.int64)
    ordinals[order] = np.arange(rows) - offsets[groups[order]] if rows else 0
    in_order = order.astype(np.int64, copy=False), offsets.astype(np.int64, copy=False)
    return _made(history, series, (groups, ordinals, *in_order))


def _made(
    history: History, series: "_Series", places: tuple[IntArray, IntArray, IntArray, IntArray]
) -> Plan:
    return Plan(
        history,
        *places,
        np.array(series.slots, dtype=np.int64),
        np.array(series.is_new, dtype=np.uint8),
        series.places,
        history.clock,
    )


class _Series:
    """The series of a batch, in the order of its rows; those of the history stay as they are."""

    def __init__(self, history: History, most: int) -> None:
        self._history, self._most = history, most
        self._groups: dict[Key, int] = {}
        self._rows: list[int] = []  # of each row up to now, its series' place
        self._used: IntArray | None = None
        self.places = history.places
        self.slots: list[int] = []
        self.is_new: list[bool] = []

    def group_of(self, key: Key, row: int) -> int:
        """Return the series of a row, by its number in the batch."""
        group = self._groups.get(key)
        if group is None:
            slot = self.places.get(key)
            self.is_new.append(slot is None)
            self.slots.append(self._make_room(key, row) if slot is None else slot)
            group = self._groups[key] = len(self.slots) - 1
        if self._used is not None:
            self._used[self.slots[group]] = self._history.clock + row
        self._rows.append(self.slots[group])
        return group

    def _make_room(self, key: Key, row: int) -> int:
        """Return the place of a new series, if need be that of another one, forgotten for it."""
        if self.places is self._history.places:
            self.places = dict(self.places)
        slot = len(self.places)
        if slot >= self._most:
            slot = int(np.argmin(self._latest(row)))
            forgotten = next(each for each, place in self.places.items() if place == slot)
            del self.places[forgotten]
            self._groups.pop(forgotten, None)
        self.places[key] = slot
        return slot

    def _latest(self, row: int) -> IntArray:
        """Return when each place was last used, up to a row of the batch."""
        if self._used is None:
            self._used = np.zeros(self._most, np.int64)
            known = min(self._most, len(self._history.used))
            self._used[:known] = self._history.used[:known]
            self._used[self._rows] = self._history.clock + np.arange(row)
        return self._used


def _grown(history: History, room: int) -> tuple[FloatArray, IntArray, IntArray, IntArray]:
    """Return tables like those of a history, with more room."""
    values = np.full((room, history.values.shape[1]), np.nan)
    values[: len(history.values)] = history.values
    counters = [np.zeros(room, np.int64) for _ in range(3)]
    for counter, old in zip(counters, (history.starts, history.counts, history.used), strict=True):
        counter[: len(old)] = old
    return values, counters[0], counters[1], counters[2]


# -- saving and loading ----------------------------------------------------------------------------


def to_state(history: History) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return all that a history is: a header for JSON, and arrays."""
    series = len(history.places)
    in_order = sorted(history.places, key=history.places.__getitem__)
    arrays: dict[str, NDArray[Any]] = {
        "values": history.values[:series],
        "starts": history.starts[:series],
        "counts": history.counts[:series],
        "used": history.used[:series],
    }
    return {"series": [list(key) for key in in_order], "clock": history.clock}, arrays


def from_state(
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    columns: int,
    depth: int,
    key_length: int,
) -> History:
    """Restore what `to_state` returned; nothing of it is trusted.

    Raises
    ------
    ValueError
        If there is anything wrong with it.
    """
    if header.keys() != {"series", "clock"} or arrays.keys() != {
        "values",
        "starts",
        "counts",
        "used",
    }:
        raise ValueError("the history of lags has other entries than it should")
    clock, keys = header["clock"], header["series"]
    if type(clock) is not int or not 0 <= clock <= LARGEST:
        raise ValueError(f"the history of lags has seen {clock!r:.40} rows")
    if not isinstance(keys, list) or not all(_is_key(key, key_length) for key in keys):
        raise ValueError("the history of lags has a series of a wrong name")
    places = {tuple(key): place for place, key in enumerate(keys)}
    values = np.array(arrays["values"])
    counters = [np.array(arrays[name]) for name in ("starts", "counts", "used")]
    expected = (len(keys), columns * depth)
    if len(places) < len(keys) or values.dtype != np.float64 or values.shape != expected:
        raise ValueError("the history of lags has not one row for each series")
    if any(array.dtype != np.int64 or array.shape != (len(keys),) for array in counters):
        raise ValueError("the history of lags has not one count for each series")
    starts, counts, used = counters
    in_turn = (starts >= 0) & (starts < counts) & (counts - 1 <= used) & (used < clock)
    if not in_turn.all() or len(np.unique(used)) < len(used) or np.isinf(values).any():
        raise ValueError("the history of lags has counts or values that cannot be")
    return History(places, values, starts, counts, used, clock, depth)


def _is_key(key: Any, length: int) -> bool:
    return (
        isinstance(key, list)
        and len(key) == length
        and all(type(part) in (str, int, float, type(None)) for part in key)
        and not any(isinstance(part, float) and not np.isfinite(part) for part in key)
    )
