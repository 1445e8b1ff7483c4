"""The drift alerts of an evaluation of classes: features, the frequency of classes, log-loss."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sapwood.drift import Monitor
from sapwood.drift.log import DriftLog
from sapwood.evaluate.classes import PredictedRows
from sapwood.evaluate.run import calendar_columns
from sapwood.streams.stream import Stream

__all__ = ["ClassDriftLog"]


class ClassDriftLog(DriftLog):
    """A monitor of the rows of a classifier, and its drift alerts.

    The monitor watches the log-loss of each row as the size of its error, and the class as one more
    category among the features.

    - `monitor`: it watches rows that have labels.
    - `target`: the column of labels.
    - `stream`: the rows; columns that change with the calendar alone are not watched.
    """

    def __init__(self, monitor: Monitor, target: str, stream: Stream) -> None:
        super().__init__(monitor, (), calendar_columns(stream))
        self._target = target

    def update_classes(self, columns: Mapping[Any, Any], rows: PredictedRows) -> None:
        """Watch the rows that have labels.

        - `columns`: the features.
        - `rows`: what was predicted.
        """
        at = np.flatnonzero(rows.has_label).tolist()
        watched = {
            name: [column[row] for row in at] for name, column in self._watched(columns).items()
        }
        watched[self._target] = list(map(str, rows.actual))
        for event in self.monitors[0].update_many(watched, rows.log_losses, np.zeros(len(at))):
            if event.what == "error":
                words = event.words.replace("error: mean size", "log-loss: mean")
                words = words.replace("error doubled, mean size", "log-loss doubled, mean")
                self.drift_events.append(replace(event, name="log-loss", words=words))
            elif event.what == "feature":
                is_class = event.name == self._target
                self.drift_events.append(replace(event, what="target") if is_class else event)
