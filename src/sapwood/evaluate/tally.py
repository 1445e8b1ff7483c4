"""What becomes of the rows of a run: their errors, points of curves, refusals, and their state."""

import json
import math
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.drift import Alarm, Monitor
from sapwood.evaluate.baseline_scores import BaselineScores
from sapwood.evaluate.curve import Curve
from sapwood.evaluate.delay import Delay, Waiting
from sapwood.evaluate.history import History, ImportanceLog
from sapwood.evaluate.interval_scores import IntervalScores
from sapwood.evaluate.learner import Learner
from sapwood.evaluate.member_log import MemberLog
from sapwood.evaluate.refusals import RefusalLog
from sapwood.evaluate.result import Errors
from sapwood.evaluate.scores import Scores, scorable
from sapwood.evaluate.unlabelled import Unlabelled
from sapwood.streams.stream import (
    BadRow,
    BadRowError,
    Chunk,
    Column,
    FloatArray,
    IntArray,
    Position,
    Stream,
    place_in_words,
)

__all__ = [
    "COUNTS",
    "SAMPLE",
    "OnBadRow",
    "Predicted",
    "Step",
    "Tally",
    "position_of",
    "sample_arrays",
]

OnBadRow = Literal["error", "skip"]
REFUSED = "refused by the model"
DELAY, UNLABELLED, MONITOR, ALARMS = "delay", "unlabelled", "monitor", "alarms"
SAMPLE = "sample"
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
        What tells them apart, if the stream has such columns.
    bounds : array of float, shape (rows, levels, 2), optional
        The bounds around predictions, if the model tells some; of several targets, of shape (rows,
        targets, levels, 2).
    """

    numbers: IntArray
    y: FloatArray
    predictions: FloatArray
    ids: Mapping[str, Column] = {}
    bounds: FloatArray | None = None


@dataclass(slots=True)
class Step:
    """What one chunk of the stream has led to.

    Parameters
    ----------
    done : int
        How much of the stream's size is behind.
    predicted : list of Predicted
        Rows in order.
    bad : list of BadRow
        The rows that were refused.
    alarms : list of Alarm
        What a monitor has found to be changed.
    events : list of dict
        What has happened to the trees of a model, if that tells.
    """

    done: int
    predicted: list[Predicted] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


class Tally:
    """The score of a run, and what became of its rows.

    Parameters
    ----------
    stream : Stream
        The rows.
    learner : Learner
        The model.
    fade, window : float, int
        As for `Scores`.
    on_bad_row : {"error", "skip"}
        Whether a row that cannot be used stops all.
    delay : Delay, optional
        The rows whose labels are late.
    monitor : Monitor, optional
        What watches the rows that are scored.
    """

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
        self.stream = stream
        self.learner = learner
        self.on_bad_row = on_bad_row
        self.delay = delay
        self.monitor = monitor
        self.alarms: list[Alarm] = []
        self.scores = Scores(fade, window)
        self.baselines = BaselineScores(self.scores.fade, self.scores.window_rows)
        levels = learner.levels
        self.intervals = IntervalScores(levels, self.scores.fade) if levels else None
        self.curve = Curve()
        self.history = History()
        self.importances = ImportanceLog()
        self.members = MemberLog()
        self.unlabelled = Unlabelled()
        self.time = math.nan  # of the last row that was scored
        self.refusals = RefusalLog()
        self.position: Position | None = None
        self.rows_read = self.rows_predicted = self.rows_learned = 0
        self.rows_without_target = self.labels_joined = 0
        self.first_unscored: str | None = None
        self.first_refused: str | None = None
        self.seconds = 0.0
        self._inside_a_step = False
        self._resumed_at = time.perf_counter()

    @property
    def rows_scored(self) -> int:
        """Rows that errors are of."""
        return self.scores.rows

    @property
    def total(self) -> Errors:
        """The errors of all rows so far."""
        return self.scores.total

    @property
    def faded(self) -> Errors:
        """The same, faded."""
        return self.scores.faded

    # -- scoring ----------------------------------------------------------------------------------

    def _score(self, part: Predicted, chunk: Chunk, start: int, end: int) -> None:
        """Score rows that follow each other in a chunk."""
        predictions, y = part.predictions, part.y
        before = self.scores.rows
        times = self._times(chunk)
        self.scores.take(predictions, y)
        here = None if times is None else times[start:end]
        self.baselines.take_many(predictions, y, here)
        if self.intervals is not None and part.bounds is not None:
            self.intervals.take(predictions, part.bounds, y, here)
        if self.monitor is not None:
            columns, _ = chunk.part(start, end)
            self.alarms += self.monitor.update_many(columns, y, predictions)
        if self.scores.unscored and self.first_unscored is None:
            first = start + int(np.argmin(scorable(predictions, y)))
            self.first_unscored = self._place(chunk.source, int(chunk.numbers[first]))
        if times is not None:
            self.time = float(times[end - 1])
        self._add_point(before)

    def _score_late(self, row: Waiting) -> None:
        """Score a row whose label has come."""
        assert isinstance(row.y, float)
        assert isinstance(row.prediction, float)
        before = self.scores.rows
        self.scores.update(row.prediction, row.y)
        self.baselines.take_one(row.told, row.prediction, row.y, row.time)
        if self.intervals is not None:
            said = np.array(row.bounds).reshape(1, -1, 2)
            one = (np.array([row.prediction]), said, np.array([row.y]), np.array([row.time]))
            self.intervals.take(*one)
        if self.monitor is not None:
            self.alarms += self.monitor.update(row.x, row.y, row.prediction)
        if self.scores.rows > before:
            self.time = row.time
            self._keep_one(before, row)
        elif self.first_unscored is None:
            self.first_unscored = self._place(row.source, row.number)
        self._add_point(before)

    def _keep(self, before: int, chunk: Chunk, parts: Sequence[Predicted]) -> None:
        """Keep some of the rows that were scored, for pictures; before them were so many others."""
        numbers = np.concatenate([part.numbers for part in parts])
        y = np.concatenate([part.y for part in parts])
        predictions = np.concatenate([part.predictions for part in parts])
        kept = scorable(predictions, y)
        places = np.flatnonzero(np.isin(chunk.numbers, numbers)) if len(y) < len(chunk) else None
        if not kept.all():
            y, predictions = y[kept], predictions[kept]
            places = np.flatnonzero(kept) if places is None else places[kept]
        times, columns = self._times(chunk), chunk.columns
        if places is not None:
            times = None if times is None else times[places]
            columns = {
                name: [column[place] for place in places.tolist()]
                for name, column in columns.items()
                if not isinstance(column, np.ndarray)
            }
        self.history.take(before, predictions, y, times, columns)

    def _keep_one(self, before: int, row: Waiting) -> None:
        """Keep a row for pictures, if it is its turn."""
        if not before % self.history.interval:
            labels: dict[str, Column] = {
                name: [label] for name, label in row.x.items() if isinstance(label, str | int)
            }
            prediction, y, time = map(np.array, ([row.prediction], [row.y], [row.time]))
            self.history.take(before, prediction, y, time, labels)

    def _times(self, chunk: Chunk) -> FloatArray | None:
        """Return the times of a chunk's rows, if they are known."""
        if chunk.times is not None:
            return chunk.times
        clock = self.stream.clock
        column = None if clock is None else chunk.columns.get(clock)
        return column if isinstance(column, np.ndarray) else None

    def _add_point(self, before: int) -> None:
        """Add a point to the curve if one is due since so many rows were scored."""
        if before < self.scores.rows and not self.scores.rows % self.curve.interval:
            elapsed = self.seconds + time.perf_counter() - self._resumed_at
            beside = self.baselines.point(self.time)
            self.curve.add(self.scores, *self._size(), elapsed, beside)
            self.importances.add(self.scores.rows, self.learner.model)
            self.members.add(self.scores.rows, self.learner.model)
            if self.intervals is not None:
                self.intervals.add_point(self.scores.rows, self.curve.interval)

    def _place(self, source: str, number: int) -> str:
        return f"{source}, {place_in_words(self.stream.unit, number)}"

    def _size(self) -> tuple[int, int]:
        leaves, nbytes = self.learner.leaves, self.learner.nbytes
        return -1 if leaves is None else leaves, -1 if nbytes is None else nbytes

    # -- rows that cannot be used -----------------------------------------------------------------

    def _row_of(self, chunk: Chunk, place: int) -> int:
        """Return how many rows of the stream are before a good one of a chunk."""
        return self.rows_read + place + bisect_right(chunk.bad, place, key=lambda bad: bad.after)

    def _refused(self, source: str, number: int, error: Exception, after: int) -> BadRow:
        """Return what tells of a row that the model has refused."""
        unit = self.stream.unit
        return BadRow(source, unit, number, REFUSED, remedy=str(error), after=after)

    def _refuse(self, bad: BadRow, row: int, step: Step) -> None:
        """Count a bad row, before which so many were read; or let it stop all."""
        if self.on_bad_row == "error":
            raise BadRowError(bad)
        self.refusals.add(bad.reason, row)
        step.bad.append(bad)

    def _note_refused(self, step: Step) -> None:
        """Remember the first row that was refused."""
        if self.first_refused is None and step.bad:
            self.first_refused = str(step.bad[0])

    # -- saving and going on ----------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what `restore` needs, but for the model: a header for JSON, and arrays."""
        self._check_between_steps()
        header = {
            "position": self.position,
            **{name: getattr(self, name) for name in COUNTS},
            "seconds": self.seconds,
            "model_seconds": self.learner.seconds,
            "refusals": self.refusals.to_header(),
            "first_unscored": self.first_unscored,
            "first_refused": self.first_refused,
            "time": None if math.isnan(self.time) else self.time,
        }
        parts = (
            *(self.scores, self.baselines, self.curve),
            *(self.history, self.importances, self.members),
        )
        arrays = {name: array for part in parts for name, array in part.to_arrays().items()}
        if self.intervals is not None:
            arrays |= self.intervals.to_arrays()
        if self.monitor is not None:
            arrays[MONITOR] = np.frombuffer(self.monitor.to_bytes(), np.uint8)
            arrays[ALARMS] = _as_text([alarm.to_dict() for alarm in self.alarms])
        # As text in an array: headers are held short, and a queue may be long.
        arrays[UNLABELLED] = _as_text(self.unlabelled.to_header())
        if self.delay is not None:
            arrays[DELAY] = _as_text(self.delay.to_header())
        return header, {**arrays, **sample_arrays(self.stream)}

    def restore(self, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `to_state` returned; the model has to be that of then.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the state is not one that `to_state` returned.
        """
        scores, curve = Scores.from_arrays(arrays, self.scores.fade), Curve.from_arrays(arrays)
        if scores.window_rows != self.scores.window_rows:
            raise ValueError(f"the saved window has {scores.window_rows} rows")
        baselines = BaselineScores.from_arrays(arrays, scores.fade, scores.window_rows)
        history, importances = History.from_arrays(arrays), ImportanceLog.from_arrays(arrays)
        members = MemberLog.from_arrays(arrays)
        intervals = self.intervals
        if intervals is not None:
            intervals = IntervalScores.from_arrays(arrays, self.learner.levels, scores.fade)
        monitor, alarms = self.monitor, self.alarms
        if (monitor is None) != (MONITOR not in arrays):
            raise ValueError("only one of the saved run and this one had a monitor")
        if monitor is not None:
            monitor = Monitor.from_bytes(arrays[MONITOR].tobytes(), "the monitor")
            alarms = [Alarm.from_dict(told) for told in json.loads(arrays[ALARMS].tobytes())]
        refusals = RefusalLog.from_header(header["refusals"])
        position = position_of(header["position"])
        counts = {name: door.whole(header[name], name, 0, 2**53) for name in COUNTS}
        seconds, model_seconds = (_seconds(header[name]) for name in ("seconds", "model_seconds"))
        first_unscored, first_refused = header["first_unscored"], header.get("first_refused")
        for first in (first_unscored, first_refused):
            if not isinstance(first, str | None):
                raise TypeError(f"the first row not scored or refused is {door.shown(first)}")
        moment = header["time"]
        if moment is not None and type(moment) is not float:
            raise TypeError(f"the time of the last row is {door.shown(moment)}")
        unlabelled = Unlabelled().restore(json.loads(arrays[UNLABELLED].tobytes()))
        if (self.delay is None) != (DELAY not in arrays):
            raise ValueError("labels were late in only one of the saved run and this one")
        if self.delay is not None:
            self.delay.restore(json.loads(arrays[DELAY].tobytes()))
        self.scores, self.curve, self.refusals, self.position = scores, curve, refusals, position
        self.baselines, self.history = baselines, history
        self.importances, self.members = importances, members
        self.unlabelled, self.intervals = unlabelled, intervals
        self.monitor, self.alarms = monitor, alarms
        self.time = math.nan if moment is None else moment
        for name, count in counts.items():
            setattr(self, name, count)
        self.first_unscored, self.first_refused = first_unscored, first_refused
        self.seconds, self.learner.seconds = seconds, model_seconds
        self._inside_a_step = False

    def _check_between_steps(self) -> None:
        if self._inside_a_step:
            raise RuntimeError(
                "the run was stopped inside of a step, whose rows the model would learn twice: go "
                "on from what was saved before it"
            )


def _as_text(header: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


def sample_arrays(stream: Stream) -> dict[str, NDArray[Any]]:
    """Return the first rows of a stream for a checkpoint, if it has to keep them."""
    if stream.sample is None:
        return {}
    return {SAMPLE: np.frombuffer(stream.sample, np.uint8)}


def position_of(saved: Any) -> Position | None:
    """Return a position that was saved, once it is known to be one."""
    if saved is None:
        return None
    if not isinstance(saved, dict) or any(type(place) is not int for place in saved.values()):
        raise TypeError(f"position = {door.shown(saved)}: whole numbers by name are expected")
    return saved


def _seconds(saved: Any) -> float:
    if type(saved) not in (int, float) or not 0 <= saved < math.inf:
        raise ValueError(f"{door.shown(saved)} seconds are saved")
    return float(saved)
