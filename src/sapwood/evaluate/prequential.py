"""The prequential loop: each row is predicted, then learned, and the score is kept."""

import itertools
import json
import math
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.evaluate.baseline_scores import BaselineScores
from sapwood.evaluate.curve import Curve
from sapwood.evaluate.delay import Delay, Waiting
from sapwood.evaluate.history import History, ImportanceLog
from sapwood.evaluate.learner import Learner
from sapwood.evaluate.refusals import RefusalLog
from sapwood.evaluate.result import Evaluation
from sapwood.evaluate.scores import FADE, WINDOW, Scores, scorable
from sapwood.model import is_all_or_nothing
from sapwood.streams.stream import (
    MOST_ROWS,
    BadRow,
    BadRowError,
    Chunk,
    Column,
    FloatArray,
    IntArray,
    Position,
    Stream,
    StreamError,
)

__all__ = ["OnBadRow", "Prequential", "Step"]

OnBadRow = Literal["error", "skip"]
REFUSED = "refused by the model"
DELAY = "delay"


@dataclass(slots=True)
class Step:
    """What one chunk of the stream has led to.

    Parameters
    ----------
    done : int
        How much of the stream's size is behind.
    predicted : list of tuples of arrays
        Of rows in order: their lines or rows, their targets, and what was predicted.
    bad : list of BadRow
        The rows that were refused.
    """

    done: int
    predicted: list[tuple[IntArray, FloatArray, FloatArray]] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


class Prequential:
    """An evaluation under way, chunk by chunk, that can be saved and resumed in between.

    Parameters are as for `prequential`; the stream has to be one of `sapwood.streams`.
    """

    def __init__(
        self,
        model: Any,
        stream: Stream,
        *,
        delay: float | None = None,
        fade: float = FADE,
        window: int = WINDOW,
        on_bad_row: OnBadRow = "error",
    ) -> None:
        if stream.target is None:
            raise StreamError(f"{stream.name} has no target: name the column to predict")
        if on_bad_row not in ("error", "skip"):
            raise ValueError(f"on_bad_row = {on_bad_row!r}: 'error' or 'skip' is expected")
        self.stream = stream
        self.on_bad_row = on_bad_row
        self.learner = Learner(model, late=delay is not None)
        self.scores = Scores(fade, window)
        self.baselines = BaselineScores(self.scores.fade, self.scores.window_rows)
        self.curve = Curve()
        self.history = History()
        self.importances = ImportanceLog()
        self.time = math.nan  # of the last row that was scored
        self.refusals = RefusalLog()
        self.delay = None if delay is None else Delay(delay, stream.time is not None)
        self.position: Position | None = None
        self.rows_read = self.rows_predicted = self.rows_learned = 0
        self.first_unscored: str | None = None
        self.first_refused: str | None = None
        self.seconds = 0.0
        self.waiting = False  # for rows: the only time at which an exception does no harm
        self._inside_a_step = False
        self._resumed_at = time.perf_counter()

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return self.learner.model

    def steps(self, most_rows: int = MOST_ROWS) -> Iterator[Step]:
        """Go on to the end of the stream; between any two steps the work can be saved."""
        self._check_between_steps()
        self._resumed_at = time.perf_counter()
        chunks = self.stream.chunks(self.position, most_rows)
        while True:
            self.waiting = True
            chunk = next(chunks, None)
            self.waiting = False
            if chunk is None:
                return
            self._inside_a_step = True
            step = self._take(chunk)
            self._inside_a_step = False
            self.seconds += time.perf_counter() - self._resumed_at
            yield step
            self._resumed_at = time.perf_counter()

    def learn_rest(self) -> Step:
        """Let the labels that are still to come arrive, once the stream is at its end."""
        step = Step(self.stream.size or 0)
        if self.delay is not None:
            self._resumed_at = time.perf_counter()
            self._learn_arrived(self.delay.rest(), 0, step)
            self._note_refused(step)
            self.seconds += time.perf_counter() - self._resumed_at
        return step

    def finish(self) -> Evaluation:
        """Return what was found, with the labels that are still to come."""
        self.learn_rest()
        learner = self.learner
        curve, speed, beside = self.curve.finished(
            self.scores, *self._size(), self.seconds, self.baselines.point(self.time)
        )
        return Evaluation(
            stream=self.stream.name,
            target=self.stream.target or "",
            model=repr(self.model),
            rows_read=self.rows_read,
            rows_predicted=self.rows_predicted,
            rows_learned=self.rows_learned,
            refused=self.refusals.finished(self.rows_read),
            total=self.scores.total,
            faded=self.scores.faded,
            window=self.scores.window,
            fade=self.scores.fade,
            window_rows=self.scores.window_rows,
            curve=curve,
            speed=speed,
            seconds=self.seconds,
            model_seconds=learner.seconds,
            leaves=learner.leaves,
            model_bytes=learner.nbytes,
            target_mean=self.scores.target_mean,
            target_deviation=self.scores.target_deviation,
            unscored=self.scores.unscored,
            first_unscored=self.first_unscored,
            bias=self.baselines.bias,
            baselines=self.baselines.finished(self.scores),
            beside=beside,
            sample=self.history.finished(),
            recent=self.scores.recent,
            columns=self.stream.column_notes,
            importances=self.importances.finished(self.scores.rows, self.model),
        )

    @property
    def nothing_used(self) -> bool:
        """Whether rows were read, and each of them refused."""
        return 0 < self.rows_read == self.refusals.count

    def check_used(self) -> None:
        """Raise StreamError if rows were read, and each of them refused.

        A score of nothing, or a model of nothing, would mislead.
        """
        if self.nothing_used:
            rows = f"all {self.rows_read:,} rows were" if self.rows_read > 1 else "its only row was"
            raise StreamError(
                f"{self.stream.name}: {rows} refused, so nothing was learned; the first is "
                f"{self.first_refused}"
            )

    # -- the rows of a chunk ----------------------------------------------------------------------

    def _take(self, chunk: Chunk) -> Step:
        """Predict and learn the rows of a chunk, up to a bad one if that is to stop all."""
        step = Step(chunk.done)
        stopped = chunk.bad[0] if chunk.bad and self.on_bad_row == "error" else None
        stop = len(chunk) if stopped is None else stopped.after
        if self.delay is None:
            before, start = self.scores.rows, 0
            while start < stop:
                end = min(stop, start + self.curve.rows_until_due(self.scores.rows))
                self._predict_learn(chunk, start, end, step)
                start = end
            if step.predicted:
                self._keep(before, chunk, step)
        else:
            self._predict_and_wait(chunk, stop, self.delay, step)
        for earlier, bad in enumerate(chunk.bad):
            self._refuse(bad, self.rows_read + bad.after + earlier, step)
        # In the order of the stream, however it is cut into chunks.
        step.bad.sort(key=lambda bad: (bad.after, bad.reason == REFUSED))
        self._note_refused(step)
        self.rows_read += len(chunk) + len(chunk.bad)
        self.position = chunk.next
        return step

    def _predict_learn(self, chunk: Chunk, start: int, end: int, step: Step) -> None:
        """Predict and learn some rows that end at the next point of the curve at the latest."""
        columns, y = chunk.part(start, end)
        try:
            predictions = self.learner.predict_learn(columns, y)
        except (ValueError, OverflowError) as error:
            # Ours refuse a batch before anything is changed; others may have learned a part.
            if not is_all_or_nothing(self.model):
                raise
            if end - start == 1:
                bad = self._refused(chunk.source, int(chunk.numbers[start]), error, start)
                self._refuse(bad, self._row_of(chunk, start), step)
                return
            middle = (start + end) // 2
            self._predict_learn(chunk, start, middle, step)
            self._predict_learn(chunk, middle, end, step)
            return
        step.predicted.append((chunk.numbers[start:end], y, predictions))
        self.rows_predicted += end - start
        self.rows_learned += end - start
        self._score(predictions, y, chunk, start, end)

    def _score(
        self, predictions: FloatArray, y: FloatArray, chunk: Chunk, start: int, end: int
    ) -> None:
        """Score rows that follow each other in a chunk."""
        before = self.scores.rows
        times = self._times(chunk)
        self.scores.take(predictions, y)
        self.baselines.take_many(predictions, y, None if times is None else times[start:end])
        if self.scores.unscored and self.first_unscored is None:
            first = start + int(np.argmin(scorable(predictions, y)))
            self.first_unscored = self._place(chunk.source, int(chunk.numbers[first]))
        if times is not None:
            self.time = float(times[end - 1])
        self._add_point(before)

    def _keep(self, before: int, chunk: Chunk, step: Step) -> None:
        """Keep some of the rows that were scored, for pictures; before them were so many others."""
        numbers, y, predictions = map(np.concatenate, zip(*step.predicted, strict=True))
        kept = scorable(predictions, y)
        places = np.flatnonzero(np.isin(chunk.numbers, numbers)) if len(y) < len(chunk) else None
        if not kept.all():
            y, predictions = y[kept], predictions[kept]
            places = np.flatnonzero(kept) if places is None else places[kept]
        times, columns = self._times(chunk), chunk.columns
        if places is not None:
            times = None if times is None else times[places]
            columns = {
                name: [column[place] for place in places]
                for name, column in columns.items()
                if not isinstance(column, np.ndarray)
            }
        self.history.take(before, predictions, y, times, columns)

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
            self.importances.add(self.scores.rows, self.model)

    def _place(self, source: str, number: int) -> str:
        return f"{source}, {self.stream.unit} {number}"

    def _size(self) -> tuple[int, int]:
        leaves, nbytes = self.learner.leaves, self.learner.nbytes
        return -1 if leaves is None else leaves, -1 if nbytes is None else nbytes

    # -- labels that come late --------------------------------------------------------------------

    def _predict_and_wait(self, chunk: Chunk, stop: int, delay: Delay, step: Step) -> None:
        """Predict rows one by one, and learn those whose labels have come meanwhile.

        Late by rows, a label comes when so many later rows were predicted; late by seconds, it
        is there before the first row that is so much later.
        """
        known = self._times(chunk)
        moments = [math.nan] * len(chunk) if known is None else known.tolist()
        times = [None] * len(chunk) if chunk.times is None else chunk.times.tolist()
        targets = np.empty(0) if chunk.y is None else chunk.y
        predictions = np.empty(stop)
        is_predicted = np.zeros(len(chunk), dtype=np.bool_)
        rows = zip(chunk.rows(), targets.tolist(), chunk.numbers.tolist(), times, strict=True)
        for place, (x, y, number, moment) in enumerate(itertools.islice(rows, stop)):
            delay.advance(moment)
            if delay.by_time:
                self._learn_arrived(delay.arrived(), place, step)
            row = self._row_of(chunk, place)
            try:
                predictions[place] = self.learner.predict_one(x)
            except (ValueError, OverflowError) as error:
                if not is_all_or_nothing(self.model):
                    raise
                self._refuse(self._refused(chunk.source, number, error, place), row, step)
                continue
            is_predicted[place] = True
            told = self.baselines.forecast(moments[place])
            prediction = float(predictions[place])
            at = (chunk.source, number, row, moments[place])
            delay.put(Waiting(x, y, prediction, *at, told))
            if not delay.by_time:
                self._learn_arrived(delay.arrived(), place, step)
        self.rows_predicted += int(is_predicted.sum())
        step.predicted.append(
            (chunk.numbers[is_predicted], targets[is_predicted], predictions[is_predicted[:stop]])
        )

    def _learn_arrived(self, rows: Iterator[Waiting], after: int, step: Step) -> None:
        """Learn rows whose labels came after so many rows of a chunk."""
        for row in rows:
            try:
                self.learner.learn_one(row.x, row.y)
            except (ValueError, OverflowError) as error:
                if not is_all_or_nothing(self.model):
                    raise
                bad = self._refused(row.source, row.number, error, after)
                self._refuse(bad, row.row, step)
                continue
            self.rows_learned += 1
            before = self.scores.rows
            self.scores.update(row.prediction, row.y)
            self.baselines.take_one(row.told, row.prediction, row.y, row.time)
            if self.scores.rows > before:
                self.time = row.time
                self._keep_one(before, row)
            elif self.first_unscored is None:
                self.first_unscored = self._place(row.source, row.number)
            self._add_point(before)

    def _keep_one(self, before: int, row: Waiting) -> None:
        """Keep a row for pictures, if it is its turn."""
        if not before % self.history.interval:
            labels: dict[str, Column] = {
                name: [label] for name, label in row.x.items() if isinstance(label, str | int)
            }
            prediction, y, time = map(np.array, ([row.prediction], [row.y], [row.time]))
            self.history.take(before, prediction, y, time, labels)

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
            "rows_read": self.rows_read,
            "rows_predicted": self.rows_predicted,
            "rows_learned": self.rows_learned,
            "seconds": self.seconds,
            "model_seconds": self.learner.seconds,
            "refusals": self.refusals.to_header(),
            "first_unscored": self.first_unscored,
            "first_refused": self.first_refused,
            "time": None if math.isnan(self.time) else self.time,
        }
        parts = (self.scores, self.baselines, self.curve, self.history, self.importances)
        arrays = {name: array for part in parts for name, array in part.to_arrays().items()}
        if self.delay is not None:
            # As text in an array: headers are held short, and a queue may be long.
            text = json.dumps(self.delay.to_header()).encode()
            arrays[DELAY] = np.frombuffer(text, np.uint8)
        return header, arrays

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
        refusals = RefusalLog.from_header(header["refusals"])
        position = _position(header["position"])
        names = ("rows_read", "rows_predicted", "rows_learned")
        read, predicted, learned = (door.whole(header[name], name, 0, 2**53) for name in names)
        seconds, model_seconds = (_seconds(header[name]) for name in ("seconds", "model_seconds"))
        first_unscored, first_refused = header["first_unscored"], header.get("first_refused")
        for first in (first_unscored, first_refused):
            if not isinstance(first, str | None):
                raise TypeError(f"the first row not scored or refused is {door.shown(first)}")
        moment = header["time"]
        if moment is not None and type(moment) is not float:
            raise TypeError(f"the time of the last row is {door.shown(moment)}")
        if (self.delay is None) != (DELAY not in arrays):
            raise ValueError("labels were late in only one of the saved run and this one")
        if self.delay is not None:
            self.delay.restore(json.loads(arrays[DELAY].tobytes()))
        self.scores, self.curve, self.refusals, self.position = scores, curve, refusals, position
        self.baselines, self.history, self.importances = baselines, history, importances
        self.time = math.nan if moment is None else moment
        self.rows_read, self.rows_predicted, self.rows_learned = read, predicted, learned
        self.first_unscored, self.first_refused = first_unscored, first_refused
        self.seconds, self.learner.seconds = seconds, model_seconds
        self._inside_a_step = False

    def _check_between_steps(self) -> None:
        if self._inside_a_step:
            raise RuntimeError(
                "the run was stopped inside of a step, whose rows the model would learn twice: go "
                "on from what was saved before it"
            )


def _position(saved: Any) -> Position | None:
    if saved is None:
        return None
    if not isinstance(saved, dict) or any(type(place) is not int for place in saved.values()):
        raise TypeError(f"position = {door.shown(saved)}: whole numbers by name are expected")
    return saved


def _seconds(saved: Any) -> float:
    if type(saved) not in (int, float) or not 0 <= saved < math.inf:
        raise ValueError(f"{door.shown(saved)} seconds are saved")
    return float(saved)
