"""What becomes of the rows of a run: counts, a record of each target, and pending rows."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import Monitor
from sapwood.drift.log import DriftLog
from sapwood.evaluate.delay import Delay, Late, Unlabelled
from sapwood.evaluate.learner import Learner
from sapwood.evaluate.record import Record
from sapwood.evaluate.recorder import LabelledRows, packed, saved_place, saved_seconds, unpacked
from sapwood.evaluate.result import Errors
from sapwood.evaluate.run import OnBadRow, Run, calendar_columns
from sapwood.evaluate.scores import Scores, mean_errors
from sapwood.streams.stream import Chunk, Column, FloatArray, IntArray, Stream, place_in_words

__all__ = ["COUNTS", "Predicted", "Tally"]

DELAY, UNLABELLED = "delay", "unlabelled"
COUNTS = (
    "rows_read",
    "rows_predicted",
    "rows_learned",
    "rows_without_target",
    "labels_joined",
)


class Predicted(NamedTuple):
    """Rows that were predicted, in order.

    Parameters
    ----------
    numbers : array of int
        Their lines or rows.
    y : array of float
        Their targets, NaN where there is none yet; of several, a column each.
    predictions : array of float
        What was predicted, of the shape of y.
    ids : dict of columns
        Their identifiers, if the stream has such columns.
    bounds : array of float, shape (rows, levels, 2), optional
        The prediction intervals, if the model has some; of several targets, of shape (rows,
        targets, levels, 2).
    """

    numbers: IntArray
    y: FloatArray
    predictions: FloatArray
    ids: Mapping[str, Column] = {}
    bounds: FloatArray | None = None


class Tally(Run):
    """What became of the rows of a run, and the records of its targets.

    - `stream`: the rows.
    - `learner`: the model.
    - `fade`, `window`: as for `Scores`.
    - `on_bad_row`: whether a row that cannot be used stops all.
    - `delay`: the rows whose labels are late.
    - `monitor`: what watches the rows that are scored.
    """

    counts = COUNTS
    records: list[Record]  # type: ignore[assignment]
    rows_predicted: int
    rows_learned: int
    rows_without_target: int
    labels_joined: int

    def __init__(
        self,
        stream: Stream,
        learner: Learner,
        *,
        fade: float,
        window: int,
        on_bad_row: OnBadRow,
        delay: Delay | None,
        monitor: Monitor | None = None,
    ) -> None:
        names = [str(name) for name in stream.targets]
        records = [Record(learner.levels, fade, window) for _ in names or (stream.target,)]
        drift = None if monitor is None else DriftLog(monitor, names, calendar_columns(stream))
        super().__init__(stream, stream.target, on_bad_row, records, drift)
        self.learner = learner
        self.delay = delay
        self.unlabelled = Unlabelled()
        self.first_unscored: str | None = None

    @property
    def scores(self) -> Scores:
        """The errors of the target; of several targets, of the target with the most rows."""
        return max((record.scores for record in self.records), key=lambda scores: scores.rows)

    @property
    def rows_scored(self) -> int:
        """The number of scored rows; of several targets, of the target with the most rows."""
        return self.scores.rows

    @property
    def total(self) -> Errors:
        """The errors of all rows so far; of several targets, means in units of their deviations."""
        return self._errors("total")

    @property
    def faded(self) -> Errors:
        """The same, exponentially weighted."""
        return self._errors("faded")

    def _errors(self, over: Literal["total", "faded"]) -> Errors:
        if not self.stream.targets:
            found: Errors = getattr(self.scores, over)
            return found
        return mean_errors([record.scores for record in self.records], over)

    @property
    def monitor(self) -> Monitor | None:
        """The drift monitor, if there is one; of several targets, the monitor of the first."""
        return None if self.drift is None else self.drift.monitors[0]

    @property
    def _is_unlabelled(self) -> bool:
        return 0 < self.rows_predicted == self.rows_without_target and self.rows_learned == 0

    # -- recording --------------------------------------------------------------------------------

    def _rows_until_look(self) -> int:
        """Return after how many labels recorders see the model."""
        return min(record.rows_until_look() for record in self.records)

    def _record(
        self, part: "Predicted", features: Mapping[Any, Column], chunk: Chunk, start: int
    ) -> None:
        """Record rows of a chunk that were predicted and learned."""
        times = self._times(chunk)
        times = None if times is None else times[start : start + len(part.y)]

        def where(place: int) -> str:
            return self._place(chunk.source, int(chunk.numbers[start + place]))

        rows = LabelledRows(part.predictions, part.y, times, part.bounds, features, where)
        if not self.stream.targets:
            self._update([rows])
            return
        found = []
        for place in range(len(self.records)):
            columns = part.predictions[:, place], part.y[:, place]
            bounds = None if part.bounds is None else part.bounds[:, place]
            found.append(LabelledRows(*columns, times, bounds, features, where))
        self._update([own.some(np.flatnonzero(~np.isnan(own.y))) for own in found], found)

    def _record_late(self, parts: Sequence[Late]) -> None:
        """Record rows whose labels have arrived, for each target."""
        every = [self._labelled(late, with_missing=True) for late in parts]
        self._update([self._labelled(late) for late in parts], every)

    def _labelled(self, late: Late, with_missing: bool = False) -> LabelledRows:
        """Return the rows of a target whose labels have arrived."""
        order = -1 - late.events[late.events < 0]
        order = order if with_missing else order[~np.isnan(late.y[order])]
        rows = [late.rows[place] for place in order]
        own = late.predictions[order], late.y[order], late.times[order], late.bounds[order]

        def where(place: int) -> str:
            return self._place(rows[place].source, rows[place].number)

        return LabelledRows(*own, [row.x for row in rows], where, late, late.events)

    def _update(
        self, targets: Sequence[LabelledRows], every: Sequence[LabelledRows] | None = None
    ) -> None:
        """Record rows of each target, after which the model is as it is now.

        Monitors watch `every`: the same rows of each target, with NaN where it is missing.
        """
        seconds = self.seconds + time.perf_counter() - self._resumed_at
        size = self._size()
        for rows, record in zip(targets, self.records, strict=True):
            if len(rows.y) or rows.late is not None:
                record.update(rows, self.learner.model, size, seconds)
            if self.first_unscored is None:
                self.first_unscored = record.first_unscored
        if self.drift is not None:
            parts = targets if every is None else every
            y = np.column_stack([part.y for part in parts])
            predictions = np.column_stack([part.predictions for part in parts])
            self.drift.update(parts[0].features, y, predictions, parts[0].times)

    def _times(self, chunk: Chunk) -> FloatArray | None:
        """Return the times of a chunk's rows, if they are known."""
        if chunk.times is not None:
            return chunk.times
        clock = self.stream.clock
        column = None if clock is None else chunk.columns.get(clock)
        return column if isinstance(column, np.ndarray) else None

    def _place(self, source: str, number: int) -> str:
        return f"{source}, {place_in_words(self.stream.unit, number)}"

    def _size(self) -> tuple[int, int]:
        leaves, nbytes = self.learner.leaves, self.learner.nbytes
        return -1 if leaves is None else leaves, -1 if nbytes is None else nbytes

    # -- saving and resuming ----------------------------------------------------------------------

    def _pending_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state of rows whose labels are pending: a part of the header, and arrays."""
        # As text in an array: headers are held short, and a queue may be long.
        arrays: dict[str, NDArray[Any]] = {UNLABELLED: packed(self.unlabelled.to_header())}
        if self.delay is not None:
            arrays[DELAY] = packed(self.delay.to_header())
        header = {"model_seconds": self.learner.seconds, "first_unscored": self.first_unscored}
        return header, arrays

    def _restored_pending(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> dict[str, Any]:
        """Return the attributes that `_pending_state` describes."""
        seconds = saved_seconds(header["model_seconds"])
        found = {
            "first_unscored": saved_place(header["first_unscored"]),
            "unlabelled": Unlabelled().restore(unpacked(arrays[UNLABELLED])),
        }
        if (self.delay is None) != (DELAY not in arrays):
            raise ValueError("labels were late in only one of the saved run and this one")
        if self.delay is not None:
            self.delay.restore(unpacked(arrays[DELAY]))
        self.learner.seconds = seconds
        return found
