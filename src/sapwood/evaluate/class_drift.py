"""The drift alerts of an evaluation of classes: features, the frequency of classes, log-loss."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import DriftEvent, Monitor
from sapwood.evaluate.class_scores import LEAST_PROBABILITY
from sapwood.evaluate.classes import PredictedRows
from sapwood.evaluate.recorder import packed, unpacked
from sapwood.evaluate.tally import calendar_columns
from sapwood.streams.stream import Stream

__all__ = ["ClassDriftLog"]

MONITOR, ALARMS = "monitor", "alarms"


class ClassDriftLog:
    """A monitor of the rows of a classifier, and its drift alerts.

    The monitor watches the log-loss of each row as the size of its error, and the class as one more
    category among the features.

    Parameters
    ----------
    monitor : Monitor
        It watches rows that have labels.
    target : str
        The column of labels.
    stream : Stream
        The rows; columns that change with the calendar alone are not watched.
    """

    def __init__(self, monitor: Monitor, target: str, stream: Stream) -> None:
        self.monitor, self._target = monitor, target
        self._ignored = calendar_columns(stream)
        self.drift_events: list[DriftEvent] = []

    def update(
        self, columns: Mapping[Any, Any], rows: PredictedRows, has_label: NDArray[np.bool_]
    ) -> list[DriftEvent]:
        """Watch the rows that have labels; return the alerts.

        Parameters
        ----------
        columns : mapping
            The features.
        rows : PredictedRows
            What was predicted.
        has_label : array of bool
            Which rows have a label.
        """
        at = np.flatnonzero(has_label).tolist()
        labels = [rows.labels[row] for row in at]
        watched = {
            name: [column[row] for row in at]
            for name, column in columns.items()
            if name not in self._ignored
        }
        watched[self._target] = list(map(str, labels))
        losses = _losses(rows, at)
        found = []
        for alarm in self.monitor.update_many(watched, losses, np.zeros(len(at))):
            if alarm.what == "error":
                found.append(replace(alarm, name="log-loss", words=_of_loss(alarm.words)))
            elif alarm.what == "feature":
                is_class = alarm.name == self._target
                found.append(replace(alarm, what="target") if is_class else alarm)
        self.drift_events += found
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        return {
            MONITOR: np.frombuffer(self.monitor.to_bytes(), np.uint8),
            ALARMS: packed([alarm.to_dict() for alarm in self.drift_events]),
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a log of the same settings in a state that `to_arrays` returned."""
        made = type(self).__new__(type(self))
        made._target, made._ignored = self._target, self._ignored
        made.monitor = Monitor.from_bytes(arrays[MONITOR].tobytes(), "the monitor")
        made.drift_events = [DriftEvent.from_dict(alarm) for alarm in unpacked(arrays[ALARMS])]
        return made


def _losses(rows: PredictedRows, at: list[int]) -> NDArray[np.float64]:
    """Return the log-loss of rows; NaN where no class was known."""
    places: dict[Any, int] = {label: place for place, label in enumerate(rows.classes)}
    found = np.full(len(at), np.nan)
    for number, row in enumerate(at):
        told = rows.probabilities[row]
        if told.any():
            own = told[places[rows.labels[row]]] if rows.labels[row] in places else 0.0
            found[number] = -np.log(max(float(own), LEAST_PROBABILITY))
    return found


def _of_loss(words: str) -> str:
    return words.replace("error: mean size", "log-loss: mean").replace(
        "error doubled, mean size", "log-loss doubled, mean"
    )
