"""Which series each row of a batch belongs to, and which series are forgotten for new ones."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.lags._history import History
from sapwood.lags._timed import DEEPEST, LEAST_DEPTH, TimedHistory

__all__ = ["ByTime", "Key", "SeriesPlaces", "empty", "from_state", "planned", "to_state"]

Key = tuple[str | int | float | None, ...]
"""The key of a series: its value of each column that identifies series."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Tables = tuple[FloatArray, IntArray, IntArray, IntArray]
LEAST_ROOM = 4
LARGEST = 2**53
FARTHEST = 1e15  # seconds of a time
NONE = np.zeros(1, np.int64)
"""The places of a row that is alone."""


@dataclass(frozen=True, slots=True)
class ByTime:
    """What lags by time look for, in seconds.

    Parameters
    ----------
    spans, tolerances : list of float
        Of each feature.
    horizon : float
        Seconds before a row within which no value is used.
    """

    spans: list[float]
    tolerances: list[float]
    horizon: float = 0.0


def empty(columns: int, depth: int, by_time: ByTime | None = None) -> History:
    """Return a history of nothing; by time, its rings become as deep as need be."""
    counters = (np.empty(0, np.int64),) * 3
    if by_time is not None:
        columns, depth = columns + 1, LEAST_DEPTH
    return _history({}, (np.empty((0, columns * depth)), *counters), 0, depth, by_time)


def _history(
    places: dict[Key, int],
    tables: Tables,
    clock: int,
    depth: int,
    by_time: ByTime | None,
) -> History:
    if by_time is None:
        return History(places, *tables, clock, depth)
    own = by_time.spans, by_time.tolerances, by_time.horizon
    return TimedHistory(places, *tables, clock, depth, *own)


@dataclass(frozen=True, slots=True)
class SeriesPlaces:
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
    added : dict
        The row of each series that starts with this batch and is not evicted within it.
    clock : int
        How many rows the history had when this was planned.
    keys : sequence of keys, optional
        As for `planned`.
    most : int
        As for `planned`.
    """

    history: History
    groups: IntArray
    ordinals: IntArray
    order: IntArray
    offsets: IntArray
    slots: IntArray
    is_new: NDArray[np.uint8]
    added: dict[Key, int]
    clock: int
    keys: Sequence[Key] | None
    most: int

    @property
    def past(self) -> IntArray:
        """Where the past of each series is, -1 if it has none."""
        return np.where(self.is_new == 1, -1, self.slots)

    def features(self, rows: FloatArray, wanted: IntArray) -> FloatArray:
        """Return what is known of the rows before each, a row of the result for each feature.

        The rows may be changed, to what will be kept of them.
        """
        out = np.empty((len(wanted), len(rows)))
        self.history.settle(self, rows)
        self.history.features(
            self.groups, self.ordinals, self.order, self.offsets, self.past, rows, wanted, out
        )
        return out

    def push(self, rows: FloatArray) -> int:
        """Let the rows become past, and return the number of the last one in its series.

        Where other rows became past since this was planned, it is planned again.
        """
        room, needed = len(self.history.counts), 1 + int(self.slots.max(initial=-1))
        depth, tables = self.history.settle(self, rows), None
        if needed > room or depth > self.history.depth:
            tables = _grown(self.history, max(room, room_for(needed)), depth)
        number = self.history.push(
            self.groups,
            self.ordinals,
            self.slots,
            self.is_new,
            rows,
            self.added,
            self.clock,
            tables,
        )
        if number < 0 < len(rows):
            return planned(self.history, self.keys, len(rows), self.most).push(rows)
        return number


def room_for(series: int) -> int:
    """Return for how many series tables have room that hold some: it depends on nothing else."""
    return max(LEAST_ROOM, 1 << (series - 1).bit_length()) if series else 0


def planned(history: History, keys: Sequence[Key] | None, rows: int, most: int) -> SeriesPlaces:
    """Plan where rows go.

    Parameters
    ----------
    history : History
        The values of earlier rows.
    keys : sequence of keys, optional
        The series of each row; None if there is but one.
    rows : int
        How many rows there are.
    most : int
        How many series are remembered at most: for a new one beyond these, the one is forgotten
        that has had no row for the longest time.
    """
    given = keys
    if keys is None:
        keys = [()] * min(rows, 1)
    series = _Series(history, most)
    if rows == 1:
        series.group_of(keys[0], 0)
        return _made(series, (NONE, NONE, NONE, NONE), given)
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
    return _made(series, (groups, ordinals, *in_order), given)


def _made(
    series: "_Series",
    places: tuple[IntArray, IntArray, IntArray, IntArray],
    keys: Sequence[Key] | None,
) -> SeriesPlaces:
    return SeriesPlaces(
        series.history,
        *places,
        np.array(series.slots, dtype=np.int64),
        np.array(series.is_new, dtype=np.uint8),
        series.added,
        series.clock,
        keys,
        series.most,
    )


class _Series:
    """The series of a batch, in the order of its rows; those of the history stay as they are.

    Parameters
    ----------
    history : History
        The values of earlier rows.
    most : int
        How many series are remembered at most.

    Attributes
    ----------
    added : dict
        The place of each series that is new and not evicted within the batch.
    slots, is_new : list
        The place of each series of the batch, and whether it starts there.
    """

    def __init__(self, history: History, most: int) -> None:
        self.history, self.most, self.clock = history, most, history.clock
        self.added: dict[Key, int] = {}
        self.slots: list[int] = []
        self.is_new: list[bool] = []
        self._groups: dict[Key, int] = {}
        self._owners: dict[int, Key] = {}  # of places that have another series than before
        self._evicted: set[Key] = set()
        self._next = len(history.keys)  # a place that no series has
        self._rows: list[int] = []  # the place of each row's series, until one is evicted
        self._latest: dict[int, None] | None = None  # from then on these places, the latest last
        self._passed = 0  # places of `Oldest` that were looked at

    def group_of(self, key: Key, row: int) -> int:
        """Return the series of a row, by its number in the batch."""
        group = self._groups.get(key)
        if group is None:
            slot = None if key in self._evicted else self.history.places.get(key)
            self.is_new.append(slot is None)
            self.slots.append(self._make_room(key) if slot is None else slot)
            group = self._groups[key] = len(self.slots) - 1
        if self._latest is None:
            self._rows.append(self.slots[group])
        else:
            self._latest.pop(self.slots[group], None)
            self._latest[self.slots[group]] = None
        return group

    def _make_room(self, key: Key) -> int:
        """Return the place of a new series, if need be that of another one, evicted for it."""
        slot = self._next
        if slot < self.most:
            self._next += 1
        else:
            slot = self._least_recent()
            evicted = self._owners[slot] if slot in self._owners else self.history.keys[slot]
            self.added.pop(evicted, None)
            self._groups.pop(evicted, None)
            self._evicted.add(evicted)
        self.added[key] = slot
        self._owners[slot] = key
        return slot

    def _least_recent(self) -> int:
        """Return the place of the series that has had no row for the longest time."""
        if self._latest is None:
            self._latest = dict.fromkeys(reversed(dict.fromkeys(reversed(self._rows))))
        oldest = self.history.oldest
        while True:
            if oldest is None:
                oldest = self.history.oldest = Oldest.of(self.history)
                self._passed = 0
            slot, self._passed = oldest.after(self._passed, self.history.used, self._latest)
            if slot >= 0:
                return slot
            if oldest.clock == self.history.clock:
                return next(iter(self._latest))  # as each series has a row in this batch
            oldest = None


class Oldest:
    """The places of a history by their latest rows at some time, the oldest first.

    A place that has had a row since then is passed over, so that the order need not be kept up. It
    is made again when all of its places are passed.

    Parameters
    ----------
    order : array of int
        The places.
    clock : int
        How many rows there were at that time.
    """

    def __init__(self, order: IntArray, clock: int) -> None:
        self._order, self.clock, self._start = order, clock, 0

    @classmethod
    def of(cls, history: History) -> "Oldest":
        """Return the order of now."""
        used = history.used[: len(history.keys)]
        return cls(np.argsort(used, kind="stable"), history.clock)

    def after(self, passed: int, used: IntArray, others: Container[int]) -> tuple[int, int]:
        """Return the oldest place that is not among others, and how many were passed.

        It is -1 if there is none from that number on.
        """
        for number in range(max(passed, self._start), len(self._order)):
            slot = int(self._order[number])
            is_later = used[slot] >= self.clock
            if is_later and number == self._start:
                self._start += 1
            if not is_later and slot not in others:
                return slot, number + 1
        return -1, len(self._order)


def _grown(
    history: History, room: int, depth: int
) -> tuple[FloatArray, IntArray, IntArray, IntArray, int]:
    """Return tables like those of a history, with more room or deeper rings, and the depth."""
    values, starts = history.values, history.starts
    if depth > history.depth:
        values = _deepened(history, depth)
        starts = np.maximum(starts, history.counts - history.depth)  # rows before are overwritten
    return (*_padded(room, values, starts, history.counts, history.used), depth)


def _deepened(history: History, depth: int) -> FloatArray:
    """Return the values of a history in deeper rings."""
    columns = history.values.shape[1] // history.depth
    rings = history.values.reshape(len(history.values), columns, history.depth)
    deeper = np.full((*rings.shape[:2], depth), np.nan)
    first = np.maximum(history.starts, history.counts - history.depth)
    for back in range(history.depth):
        numbers = history.counts - 1 - back
        slots = np.flatnonzero(numbers >= first)
        kept = numbers[slots]
        deeper[slots, :, kept % depth] = rings[slots, :, kept % history.depth]
    return deeper.reshape(len(rings), columns * depth)


def _padded(room: int, values: FloatArray, *counters: IntArray) -> Tables:
    """Return values and counters with more room."""
    roomy = np.full((room, values.shape[1]), np.nan)
    roomy[: len(values)] = values
    starts, counts, used = (np.zeros(room, np.int64) for _ in range(3))
    for counter, old in zip((starts, counts, used), counters, strict=True):
        counter[: len(old)] = old
    return roomy, starts, counts, used


def latest_times(history: History) -> dict[Key, tuple[float, float]]:
    """Return the latest time and the median step of each series of a history by time."""
    found, depth = {}, history.depth
    for key, slot in history.places.items():
        count = int(history.counts[slot])
        numbers = np.arange(max(int(history.starts[slot]), count - depth), count)
        times = history.values[slot, -depth:][numbers % depth]
        steps = np.diff(times[np.isfinite(times)])
        steps = steps[steps > 0]
        if len(steps):
            found[key] = float(times[-1]), float(np.median(steps))
    return found


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
    header = {"series": [list(key) for key in in_order], "clock": history.clock}
    if isinstance(history, TimedHistory):
        header["depth"] = history.depth
        arrays["values"], arrays["starts"] = _within_reach(history, series)
    return header, arrays


def _within_reach(history: TimedHistory, series: int) -> tuple[FloatArray, IntArray]:
    """Return values and starts of rows that later ones can reach: the same in whatever batches."""
    depth = history.depth
    rings = history.values[:series].reshape(series, history.values.shape[1] // depth, depth)
    kept = np.full(rings.shape, np.nan)
    starts = history.starts[:series].copy()
    for slot, count in enumerate(history.counts[:series].tolist()):
        numbers = np.arange(max(int(starts[slot]), count - depth), count)
        times = rings[slot, -1, numbers % depth]
        least = max(times[-1] - history.reach, -FARTHEST)  # rows before the first time are not
        numbers = numbers[min(np.searchsorted(times, least), len(times) - 1) :]
        starts[slot] = numbers[0]
        kept[slot][:, numbers % depth] = rings[slot][:, numbers % depth]
    return kept.reshape(series, history.values.shape[1]), starts


def from_state(
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    columns: int,
    depth: int,
    key_length: int,
    *,
    by_time: ByTime | None = None,
) -> History:
    """Restore what `to_state` returned; nothing of it is trusted.

    Raises
    ------
    ValueError
        If there is anything wrong with it.
    """
    expected = {"series", "clock"} if by_time is None else {"series", "clock", "depth"}
    if header.keys() != expected or arrays.keys() != {"values", "starts", "counts", "used"}:
        raise ValueError("the history of lags has other entries than it should")
    if by_time is not None:
        columns, depth = columns + 1, _checked_depth(header["depth"])
    clock, keys = header["clock"], header["series"]
    if type(clock) is not int or not 0 <= clock <= LARGEST:
        raise ValueError(f"the history of lags has seen {clock!r:.40} rows")
    if not isinstance(keys, list) or not all(_is_key(key, key_length) for key in keys):
        raise ValueError("the history of lags has a series of a wrong name")
    places = {tuple(key): place for place, key in enumerate(keys)}
    values = np.array(arrays["values"])
    counters = [np.array(arrays[name]) for name in ("starts", "counts", "used")]
    shape = (len(keys), columns * depth)
    if len(places) < len(keys) or values.dtype != np.float64 or values.shape != shape:
        raise ValueError("the history of lags has not one row for each series")
    if any(array.dtype != np.int64 or array.shape != (len(keys),) for array in counters):
        raise ValueError("the history of lags has not one count for each series")
    starts, counts, used = counters
    write_locked = (starts >= 0) & (starts < counts) & (counts - 1 <= used) & (used < clock)
    infinite = np.isinf(values if by_time is None else values[:, : (columns - 1) * depth])
    if not write_locked.all() or len(np.unique(used)) < len(used) or infinite.any():
        raise ValueError("the history of lags has counts or values that cannot be")
    if by_time is not None:
        _check_times(values[:, (columns - 1) * depth :], starts, counts, depth)
    tables = _padded(room_for(len(keys)), values, *counters)
    return _history(places, tables, clock, depth, by_time)


def _checked_depth(depth: Any) -> int:
    if type(depth) is not int or not LEAST_DEPTH <= depth <= DEEPEST or depth & (depth - 1):
        raise ValueError(f"the history of lags has rings of {depth!r:.40} rows")
    return depth


def _check_times(times: FloatArray, starts: IntArray, counts: IntArray, depth: int) -> None:
    """Raise ValueError if the times in a ring go down, or are none."""
    for ring, start, count in zip(times, starts.tolist(), counts.tolist(), strict=True):
        known = ring[np.arange(max(start, count - depth), count) % depth]
        is_time = (np.abs(known) < FARTHEST) | np.isneginf(known)
        if not is_time.all() or (known[1:] < known[:-1]).any():
            raise ValueError("the history of lags has times that cannot be")


def _is_key(key: Any, length: int) -> bool:
    return (
        isinstance(key, list)
        and len(key) == length
        and all(type(part) in (str, int, float, type(None)) for part in key)
        and not any(isinstance(part, float) and not np.isfinite(part) for part in key)
    )
