"""The drift alerts of an evaluation of classes: features, the frequency of classes, log-loss."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import DriftEvent, Monitor
from sapwood.drift.log import DriftLog
from sapwood.evaluate.class_scores import LEAST_PROBABILITY
from sapwood.evaluate.classes import PredictedRows
from sapwood.evaluate.tally import calendar_columns
from sapwood.streams.stream import Stream

__all__ = ["ClassDriftLog"]


class ClassDriftLog(DriftLog):
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
        super().__init__(monitor, (), calendar_columns(stream))
        self._target = target

    def update_classes(
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
            name: [column[row] for row in at] for name, column in self._watched(columns).items()
        }
        watched[self._target] = list(map(str, labels))
        losses = _losses(rows, at)
        found = []
        for alarm in self.monitors[0].update_many(watched, losses, np.zeros(len(at))):
            if alarm.what == "error":
                found.append(replace(alarm, name="log-loss", words=_of_loss(alarm.words)))
            elif alarm.what == "feature":
                is_class = alarm.name == self._target
                found.append(replace(alarm, what="target") if is_class else alarm)
        self.drift_events += found
        return found


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
