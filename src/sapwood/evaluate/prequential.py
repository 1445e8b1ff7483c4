"""The prequential loop: each row is predicted, then learned, and the score is kept."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.drift import Monitor
from sapwood.evaluate.delay import Delay, Label, LateEvents, Waiting, is_missing
from sapwood.evaluate.learner import Learner
from sapwood.evaluate.record import Record
from sapwood.evaluate.recorder import Recorder
from sapwood.evaluate.result import Evaluation
from sapwood.evaluate.run import OnBadRow, Step
from sapwood.evaluate.scores import FADE, WINDOW
from sapwood.evaluate.tally import COUNTS, Predicted, Tally
from sapwood.evaluate.targets import TargetsLearner, without_lags
from sapwood.lags import LaggedModel, Lags
from sapwood.model import is_all_or_nothing
from sapwood.streams.labelled import Key, keys_of
from sapwood.streams.schema import nearest
from sapwood.streams.stream import (
    Chunk,
    Column,
    FloatArray,
    Stream,
    StreamError,
    rows_of,
)

__all__ = ["OnBadRow", "Predicted", "Prequential", "Step"]


class Prequential(Tally):
    """An evaluation in progress, by chunks; it can be saved and resumed between chunks.

    Rows without a target are predicted, but not learned. If the stream has ids, their labels may
    arrive later, in a row with the same id and a target; this row is not predicted. If some of
    several targets are missing, the row is learned for the others.

    Parameters are as for `prequential`; the stream has to be one of `sapwood.streams`. Whether
    `delay` is in seconds can be set by `delay_by_time`; by default it is if the stream has a time
    column.
    """

    def __init__(
        self,
        model: Any,
        stream: Stream,
        *,
        delay: float | None = None,
        delay_by_time: bool | None = None,
        fade: float = FADE,
        window: int = WINDOW,
        on_bad_row: OnBadRow = "error",
        monitor: Monitor | None = None,
    ) -> None:
        if stream.target is None:
            raise StreamError(f"{stream.name} has no target: name the column to predict")
        if not stream.targets and getattr(model, "several_targets", False) and model.targets:
            names = ", ".join(map(str, model.targets))
            raise ValueError(f"the targets of the model are {names}: name all of them")
        if on_bad_row not in ("error", "skip"):
            raise ValueError(f"on_bad_row = {on_bad_row!r}: 'error' or 'skip' is expected")
        inner = without_lags(model, stream.targets)
        by_time = stream.time is not None if delay_by_time is None else delay_by_time
        super().__init__(
            stream,
            TargetsLearner(inner, stream.targets)
            if stream.targets
            else Learner(inner, delay is not None),
            fade=fade,
            window=window,
            on_bad_row=on_bad_row,
            delay=None if delay is None else Delay(delay, by_time),
            monitor=monitor,
        )
        self._late, self._late_due = LateEvents(), 0
        self.model = model
        if self.lags is not None:
            _check_lags(self.lags, stream)

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return self.learner.model if self._lagged is None else self._lagged

    @model.setter
    def model(self, model: Any) -> None:
        # Lags are taken here, so that a row is learned with those that it was predicted with.
        self._lagged = model if isinstance(model, LaggedModel) else None
        self.learner.model = model.model if isinstance(model, LaggedModel) else model

    @property
    def lags(self) -> Lags | None:
        """The stored values of earlier rows, if the model has lags."""
        return None if self._lagged is None else self._lagged.lags

    def add_recorder(self, recorder: Recorder) -> None:
        """Add a recorder that scores rows. Call it before the first row."""
        for record in self.records:
            record.add(recorder.restored(recorder.to_arrays()))

    def learn_rest(self) -> Step:
        """Process all pending labels at the end of the stream."""
        step, delay = Step(self.stream.size or 0), self.delay
        if delay is None:
            return step
        self._resume()

        def take() -> Step:
            self._late_due = self._rows_until_look()
            self.learner.look()
            self._learn_arrived(delay.rest(), 0, step)
            self._score_arrived()
            self._note_rejected(step)
            return step

        return self._observed(take)

    def finish(self) -> Evaluation:
        """Process all pending labels, and return the result."""
        self.learn_rest()
        if not self.stream.targets:
            found = self._evaluation(self.records[0], self.stream.target or "")
            return replace(
                found, drift_events=None if self.drift is None else list(self.drift_events)
            )
        results = {
            str(name): replace(
                self._evaluation(record, str(name)),
                drift_events=None if self.drift is None else self.drift.of_target(str(name)),
                rows_learned=record.rows_learned,
                rows_without_target=self.rows_predicted - record.rows_learned,
            )
            for name, record in zip(self.stream.targets, self.records, strict=True)
        }
        scores = self.scores
        empty = Record((), scores.fade, scores.window_rows)
        return replace(
            self._evaluation(empty, self.stream.target or ""),
            **empty.merge(list(results.values())),
            drift_events=None if self.drift is None else list(self.drift_events),
            first_unscored=self.first_unscored,
            targets=results,
        )

    def _evaluation(self, record: Record, target: str) -> Evaluation:
        """Return what was found of a target."""
        leaves, nbytes = self._size()
        end = record.moment(self.learner.model, (leaves, nbytes), self.seconds)
        return Evaluation(
            stream=self.stream.name,
            target=target,
            model=repr(self.model),
            **{name: getattr(self, name) for name in COUNTS},
            rejected=self.rejections.finished(self.rows_read),
            label_delay=None if self.delay is None else self.delay.in_words,
            seconds=self.seconds,
            model_seconds=self.learner.seconds,
            leaves=None if leaves < 0 else leaves,
            model_bytes=None if nbytes < 0 else nbytes,
            columns=self.stream.column_notes,
            **record.results(end),
        )

    def _size(self) -> tuple[int, int]:
        leaves, nbytes = super()._size()
        return leaves, nbytes if self.lags is None or nbytes < 0 else nbytes + self.lags.nbytes

    # -- the rows of a chunk ----------------------------------------------------------------------

    def _take_rows(self, chunk: Chunk, stop: int, step: Step) -> None:
        """Predict and learn the first rows of a chunk."""
        keys = keys_of(chunk.ids) if chunk.ids else None
        self._late_due = self._rows_until_look()
        self.learner.look()
        try:
            if self.delay is None:
                self._take_at_once(chunk, stop, keys, step)
            else:
                self._take_one_by_one(chunk, stop, keys, self.delay, step)
        finally:
            self._score_arrived()

    def _take_at_once(self, chunk: Chunk, stop: int, keys: list[Key] | None, step: Step) -> None:
        """Predict rows, and learn those that have labels: as many together as can be."""
        y = np.empty(0) if chunk.y is None else chunk.y
        missing = np.isnan(y[:stop])
        is_labelled = np.asarray(~(missing if y.ndim == 1 else missing.all(axis=1)))
        if is_labelled.all() and not self.unlabelled.rows:
            self._learn_rows(chunk, 0, stop, step)
            return
        start = 0
        while start < stop:
            labelled = bool(is_labelled[start])
            if keys is None:
                others = np.flatnonzero(is_labelled[start:] != labelled)
                end = start + int(others[0]) if len(others) else stop
            else:
                end = start + 1
                while end < stop and self._is_alike(start, end, is_labelled, keys):
                    end += 1
            if not labelled:
                self._predict_rows(chunk, start, end, keys, step)
            elif keys is not None and keys[start] in self.unlabelled:
                self._join(keys[start], y[start].tolist(), start, step)
            else:
                self._learn_rows(chunk, start, end, step)
            start = end

    def _is_alike(
        self, first: int, other: int, is_labelled: np.ndarray[Any, Any], keys: list[Key]
    ) -> bool:
        """Whether a row can be taken together with one before it: neither is a label of another."""
        if is_labelled[first] != is_labelled[other]:
            return False
        return not (
            is_labelled[first]
            and (keys[first] in self.unlabelled or keys[other] in self.unlabelled)
        )

    def _learn_rows(self, chunk: Chunk, start: int, stop: int, step: Step) -> None:
        """Predict and learn rows that follow each other."""
        self._score_arrived()
        while start < stop:
            end = min(stop, start + self._rows_until_look())
            self._use(chunk, start, end, step)
            start = end

    def _predict_rows(
        self, chunk: Chunk, start: int, stop: int, keys: list[Key] | None, step: Step
    ) -> None:
        """Predict rows that have no labels, and remember those that may get them later."""
        if keys is None:
            self._use(chunk, start, stop, step, learn=False)
            return
        moments = self._moments(chunk)
        columns, _ = chunk.part(start, stop)
        for place, x in enumerate(rows_of(columns), start):
            row = self._predict_one(chunk, place, x, moments[place], step)
            if row is not None:
                self.rows_without_target += 1
                self.unlabelled.put(keys[place], row)
                one = slice(place, place + 1)
                ids = {name: column[one] for name, column in chunk.ids.items()}
                own = np.array([row.y]), np.array([row.prediction]), ids, self._bounds([row])
                step.predicted.append(Predicted(chunk.numbers[one], *own))

    def _use(self, chunk: Chunk, start: int, end: int, step: Step, *, learn: bool = True) -> None:
        """Predict some rows, and learn them; they end where a recorder has to see the model."""
        columns, y = chunk.part(start, end)
        plan = None
        try:
            plan = None if self.lags is None else self.lags.plan(columns, y)
            given: Mapping[Any, Column] = columns if plan is None else plan.features
            predict = self.learner.predict_learn if learn else self.learner.predict
            predictions = self.learner.held(predict(given, y))
        except (ValueError, OverflowError) as error:
            self._check_unchanged()
            if end - start == 1:
                if plan is not None:
                    plan.push()
                bad = self._rejected(chunk.source, int(chunk.numbers[start]), error, start)
                self._reject(bad, self._row_of(chunk, start), step)
                return
            middle = (start + end) // 2
            self._use(chunk, start, middle, step, learn=learn)
            self._use(chunk, middle, end, step, learn=learn)
            return
        if plan is not None:
            plan.push()
        ids = {name: column[start:end] for name, column in chunk.ids.items()}
        part = Predicted(chunk.numbers[start:end], y, predictions, ids, self.learner.bounds)
        step.predicted.append(part)
        self.rows_predicted += end - start
        if learn:
            self.rows_learned += end - start
            self._record(part, columns, chunk, start)
        else:
            self.rows_without_target += end - start

    def _check_unchanged(self) -> None:
        """Raise the current exception, unless rejected rows have changed nothing."""
        # Our models reject a batch before anything changes; others may have learned a part.
        if not is_all_or_nothing(self.learner.model):
            raise  # noqa: PLE0704 - it is called while an exception is handled

    # -- labels that come late --------------------------------------------------------------------

    def _take_one_by_one(
        self, chunk: Chunk, stop: int, keys: list[Key] | None, delay: Delay, step: Step
    ) -> None:
        """Predict rows one by one, and learn those whose labels have come meanwhile.

        Late by rows, a label comes when so many later rows were predicted; late by seconds, it
        is there before the first row that is so much later.
        """
        moments = self._moments(chunk)
        targets = np.empty(0) if chunk.y is None else chunk.y
        labels = targets.tolist()
        predictions, predicted = np.empty(targets[:stop].shape), list[Waiting]()
        is_predicted = np.zeros(len(chunk), dtype=np.bool_)
        for place, x in enumerate(itertools.islice(chunk.rows(), stop)):
            delay.advance(moments[place])
            if delay.by_time:
                self._learn_arrived(delay.arrived(), place, step)
            y = labels[place]
            if keys is not None and not is_missing(y) and keys[place] in self.unlabelled:
                self._join(keys[place], y, place, step)
                continue
            row = self._predict_one(chunk, place, x, moments[place], step)
            if row is None:
                continue
            predictions[place], is_predicted[place] = row.prediction, True
            predicted.append(row)
            if not is_missing(y):
                delay.put(row)
            else:
                delay.pass_by()
                self.rows_without_target += 1
                if keys is not None:
                    self.unlabelled.put(keys[place], row)
            if not delay.by_time:
                self._learn_arrived(delay.arrived(), place, step)
        ids = {
            name: [column[place] for place in np.flatnonzero(is_predicted).tolist()]
            for name, column in chunk.ids.items()
        }
        bounds = self._bounds(predicted)
        own = targets[is_predicted], predictions[is_predicted[:stop]], ids, bounds
        step.predicted.append(Predicted(chunk.numbers[is_predicted], *own))

    def _predict_one(
        self, chunk: Chunk, place: int, x: dict[str, Any], moment: float, step: Step
    ) -> Waiting | None:
        """Predict a row whose label arrives later; return None if the row is rejected."""
        ticket = None
        row = self._row_of(chunk, place) if chunk.bad else self.rows_read + place
        try:
            if self.lags is not None:
                x, ticket = self.lags.arrive(x)
            prediction = self.learner.held(self.learner.predict_one(x, row))
        except (ValueError, OverflowError) as error:
            self._check_unchanged()
            bad = self._rejected(chunk.source, int(chunk.numbers[place]), error, place)
            self._reject(bad, self._row_of(chunk, place), step)
            return None
        self.rows_predicted += 1
        y = math.nan if chunk.y is None else chunk.y[place].tolist()
        bounds = self.learner.bounds
        found = Waiting(
            x,
            y,
            prediction,
            chunk.source,
            int(chunk.numbers[place]),
            row,
            moment,
            [],
            ticket,
            bounds=[] if bounds is None else bounds.ravel().tolist(),
        )
        self._late.predicted(found)
        return found

    def _bounds(self, rows: list[Waiting]) -> FloatArray | None:
        """Return the issued prediction intervals of rows, if the model has some."""
        if not self.learner.levels:
            return None
        targets = (len(self.stream.targets),) if self.stream.targets else ()
        shape = (len(rows), *targets, len(self.learner.levels), 2)
        return np.array([row.bounds for row in rows]).reshape(shape)

    def _moments(self, chunk: Chunk) -> list[float]:
        """Return the time of each row, NaN where it is not known."""
        times = self._times(chunk)
        return [math.nan] * len(chunk) if times is None else times.tolist()

    def _join(self, key: Key, y: Label, after: int, step: Step) -> None:
        """Let a label come to the row of its id."""
        row = self.unlabelled.pop(key)
        row.y = y
        self.labels_joined += 1
        self._learn_late(row, after, step)

    def _learn_arrived(self, rows: Iterator[Waiting], after: int, step: Step) -> None:
        """Learn rows whose labels arrived after so many rows of a chunk."""
        for row in rows:
            self._learn_late(row, after, step)

    def _learn_late(self, row: Waiting, after: int, step: Step) -> None:
        """Learn a row whose label has come."""
        if self.lags is not None and row.ticket is not None:
            self.lags.label(row.ticket, row.y)
        try:
            self.learner.learn_one(row.x, row.y, row.row)
        except (ValueError, OverflowError) as error:
            self._check_unchanged()
            bad = self._rejected(row.source, row.number, error, after)
            self._reject(bad, row.row, step)
            return
        self.rows_learned += 1
        self._late.labelled(row)
        if self._late.labels >= self._late_due:
            self._score_arrived()

    def _score_arrived(self) -> None:
        """Score the rows whose labels have arrived since the last time."""
        late, self._late = self._late, LateEvents()
        if late:
            parts = late.by_target(max(1, len(self.stream.targets)))
            self._record_late(parts)
            late.keep_forecasts(parts)
        self._late_due = self._rows_until_look()


def _check_lags(lags: Lags, stream: Stream) -> None:
    """Reject lags of columns that a stream lacks; one in memory knows its features only later."""
    if not stream.features:
        return
    for name in lags.columns:
        if name not in stream.features:
            words = nearest(str(name), map(str, stream.features))
            raise StreamError(
                f"{stream.name} has no column {validation.shown(name)} for lags: {words}"
            )
        if name not in lags.by and stream.features[name] == "category":
            raise StreamError(
                f"{stream.name}: column {validation.shown(name)} holds categories, and lags are taken of "
                "numbers alone"
            )
    for name in lags.features:
        if name in stream.features:
            raise StreamError(
                f"{stream.name} has a column {validation.shown(name)} already: leave it out, or rename it"
            )
