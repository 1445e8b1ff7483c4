"""The monitors of the targets of a stream, and their drift alerts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.drift.monitor import DriftEvent, Monitor
from sapwood.rows._dict_row import RowReader
from sapwood.rows.encoded_rows import EncodedRows
from sapwood.storage.lists import packed, unpacked

__all__ = ["ALARMS", "DriftLog"]

FloatArray = NDArray[np.float64]

MONITOR, ALARMS = "monitor", "alarms"
MOST_WAITING = 256  # rows


class Waiting(NamedTuple):
    """A row that waits to be watched, and those before it.

    Parameters
    ----------
    number : int
        How many rows wait.
    row : array of float
        The features.
    y, predictions : sequences of float
        The labels, and what was predicted.
    earlier : Waiting, optional
        The rows before it.
    """

    number: int
    row: FloatArray
    y: Sequence[float]
    predictions: Sequence[float]
    earlier: "Waiting | None"


class DriftLog:
    """The monitors of the targets of a stream, and their drift alerts.

    Features are watched once, with the first target. Of several targets, each has a monitor of its
    own for its values and its errors. They share the rate of false alarms of the given monitor.

    Parameters
    ----------
    monitor : Monitor
        Of one target, it watches the rows. Of several, those of the targets are made like it.
    targets : sequence of str
        The names of several targets; none for a single one.
    ignored : frozenset
        Features that are not watched, as they change with the calendar alone.

    Raises
    ------
    ValueError
        If there are several targets and the monitor has seen rows already.
    """

    def __init__(
        self, monitor: Monitor, targets: Sequence[str] = (), ignored: frozenset[Any] = frozenset()
    ) -> None:
        if targets and monitor.rows:
            raise ValueError(
                f"the monitor has seen {monitor.rows:,} rows: several targets need a new one, as "
                "each gets a monitor like it"
            )
        once_in = monitor.parameters["once_in"] * len(targets)
        self.monitors = [Monitor(once_in, name) for name in targets] or [monitor]
        self.drift_events: list[DriftEvent] = []
        self._targets, self._ignored = tuple(targets), ignored
        self._waiting: Waiting | None = None
        self._reader: RowReader | None = None

    def update(
        self, features: Any, y: FloatArray, predictions: FloatArray, times: Any = None
    ) -> None:
        """Let the monitors watch rows.

        Parameters
        ----------
        features : mapping of columns, or list of dicts
            The features.
        y, predictions : arrays of float, shape (rows, targets)
            The labels, NaN where one is missing, and what was predicted.
        times : array of float, optional
            The seconds since 1970 of each row, NaN where they are not known.
        """
        self._watch(self._watched(features), y, predictions, times)

    def _watch(
        self, features: Any, y: FloatArray, predictions: FloatArray, times: Any = None
    ) -> None:
        """Let the monitors watch rows, the first one with the features that are watched."""
        found = []
        for place, monitor in enumerate(self.monitors):
            watched = features if place == 0 else np.empty((len(y), 0))
            for alarm in _watch(monitor, watched, y[:, place], predictions[:, place], times):
                found.append(self._named(alarm, place))
        # In the order of rows, however many are taken in at once.
        self.drift_events += sorted(found, key=lambda alarm: alarm.row)

    def with_row(
        self, x: Mapping[Any, Any], y: Sequence[float], predictions: Sequence[float]
    ) -> Self:
        """Return a log that has one more row; this one is as it was.

        The row waits, so that the monitors watch many together. One that brings a feature or a label
        is watched at once.

        Parameters
        ----------
        x : dict
            The features.
        y, predictions : sequences of float
            For each target: the labels, NaN where one is missing, and what was predicted.

        Raises
        ------
        ValueError
            If a feature cannot be read.
        """
        if self._reader is None:
            self._reader = RowReader(self.monitors[0]._features)
        watched = self._without_ignored(x) if self._ignored else x
        if not self._reader.read(watched, True):
            made = self.settled().copy()
            made.update([x], np.array([y]), np.array([predictions]))
            return made
        made = self._like(self.monitors)
        number = 1 if self._waiting is None else self._waiting.number + 1
        row = self._reader.row.copy()
        made._waiting = Waiting(number, row, y, predictions, self._waiting)
        made._reader = self._reader
        return made if number < MOST_WAITING else made.settled()

    def settled(self) -> Self:
        """Return a log in which no row waits: this one, or another."""
        if self._waiting is None:
            return self
        waiting: list[tuple[FloatArray, Sequence[float], Sequence[float]]] = []
        last: Waiting | None = self._waiting
        while last is not None:
            waiting.append((last.row, last.y, last.predictions))
            last = last.earlier
        rows, y, predictions = map(np.array, zip(*reversed(waiting), strict=True))
        made = self.copy()
        made._waiting, features = None, made.monitors[0]._features
        made._watch(EncodedRows(features, features.known, rows), y, predictions)
        return made

    def copy(self) -> Self:
        """Return an independent copy."""
        made = self._like([monitor.copy() for monitor in self.monitors])
        made.drift_events = list(self.drift_events)
        return made

    def _like(self, monitors: list[Monitor]) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__ = {**self.__dict__, "monitors": monitors, "_reader": None}
        return made

    def of_target(self, name: str) -> list[DriftEvent]:
        """Return the alerts of one of several targets and its errors."""
        return [alarm for alarm in self.drift_events if alarm.target == name]

    def _named(self, alarm: DriftEvent, place: int) -> DriftEvent:
        """Return an alert that names the one of several targets that it is about."""
        if not self._targets or alarm.what == "feature":
            return alarm
        name = self._targets[place]
        words = alarm.words if alarm.what == "target" else f"{name}: {alarm.words}"
        return replace(alarm, words=words, target=name)

    def _watched(self, features: Any) -> Any:
        """Return the features of rows that are watched."""
        if isinstance(features, Mapping):
            return self._without_ignored(features)
        return [self._without_ignored(x) for x in features]

    def _without_ignored(self, features: Mapping[Any, Any]) -> dict[Any, Any]:
        return {name: own for name, own in features.items() if name not in self._ignored}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        monitors = {
            name: np.frombuffer(monitor.to_bytes(), np.uint8)
            for name, monitor in zip(self._names, self.monitors, strict=True)
        }
        return {**monitors, ALARMS: packed([alarm.to_dict() for alarm in self.drift_events])}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a log of the same settings in a state that `to_arrays` returned."""
        made = self._like(
            [Monitor.from_bytes(arrays[name].tobytes(), "the monitor") for name in self._names]
        )
        made.drift_events = [DriftEvent.from_dict(alarm) for alarm in unpacked(arrays[ALARMS])]
        return made

    @property
    def _names(self) -> list[str]:
        """The arrays of the monitors."""
        return [f"{MONITOR}.{place}" for place, _ in enumerate(self._targets)] or [MONITOR]


def _watch(
    monitor: Monitor, features: Any, y: FloatArray, predictions: FloatArray, times: Any
) -> list[DriftEvent]:
    """Let a monitor watch rows; return its alerts."""
    if isinstance(features, list):
        known = np.full(len(y), np.nan) if times is None else times
        columns = (y.tolist(), predictions.tolist(), known.tolist())
        every = zip(features, *columns, strict=True)
        return [alarm for row in every for alarm in monitor.update(*row)]
    return monitor.update_many(features, y, predictions, times)
