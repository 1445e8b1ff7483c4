"""Prequential evaluation of classifiers: each row is predicted, then its label is learned."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.classify.labels import is_missing, label_values
from sapwood.drift import Monitor
from sapwood.drift.log import DriftLog
from sapwood.evaluate.class_scores import ClassScores, SetScores
from sapwood.evaluate.classes import ClassEvaluation, PredictedRows
from sapwood.evaluate.record import Recorders
from sapwood.evaluate.recorder import Moment, packed, unpacked
from sapwood.evaluate.run import OnBadRow, Run, Step, calendar_columns
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.streams.memory import ArrayStream
from sapwood.streams.stream import Chunk, Stream, StreamError, rows_of
from sapwood.validation import Label

__all__ = ["ClassRun", "evaluate_classes"]

FloatArray = NDArray[np.float64]
WAITING = "waiting"


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


class ClassRun(Run):
    """An evaluation of a classifier in progress, by chunks; it can be saved and resumed.

    Parameters
    ----------
    model : Classifier
        It learns.
    stream : Stream
        Rows whose labels are the category `target` among their features. A row without a label is
        predicted, and not learned.
    target : str
        The column of labels.
    delay : int, optional
        The label delay, in rows.
    window : int
        Rows of the windowed accuracy.
    on_bad_row : {"error", "skip"}
        Whether the first row that cannot be read ends the run, or such rows are left out.
    monitor : Monitor, optional
        It watches the features, the classes and the log-loss of rows that have labels.
    levels : sequence of float
        Of prediction sets, whose coverage and size are scored.
    """

    counts = ("rows_read", "rows_unlabelled")
    task = "classes"
    reports_trees = False
    rows_unlabelled: int

    def __init__(
        self,
        model: Any,
        stream: Stream,
        target: str,
        *,
        delay: int | None = None,
        window: int = 1000,
        on_bad_row: OnBadRow = "error",
        monitor: Monitor | None = None,
        levels: Sequence[float] = (),
    ) -> None:
        record = Recorders([ClassScores(window), SetScores(levels)])
        drift = None if monitor is None else ClassDriftLog(monitor, target, stream)
        super().__init__(stream, target, on_bad_row, [record], drift)
        self.model, self.delay = model, delay
        self._waiting: deque[tuple[EncodedRow, Label, int]] = deque()

    @property
    def scores(self) -> ClassScores:
        """The scores of the classes and of their probabilities."""
        scores = self.records[0].recorders[0]
        assert isinstance(scores, ClassScores)
        return scores

    @property
    def sets(self) -> SetScores:
        """The scores of the prediction sets."""
        sets = self.records[0].recorders[1]
        assert isinstance(sets, SetScores)
        return sets

    @property
    def rows_scored(self) -> int:
        """Rows that scores are of."""
        return self.scores.rows

    def _take_rows(self, chunk: Chunk, stop: int, step: Step) -> None:
        """Predict and learn the first rows of a chunk."""
        labels = self._labels(chunk)[:stop]
        columns = {
            name: column[:stop] for name, column in chunk.columns.items() if name != self.target
        }
        sets: list[Any] = []
        try:
            if self.delay or self.sets.levels:
                p = self._one_by_one(columns, labels, sets)
            else:
                p = self.model.predict_proba_learn_many(EncodedColumns(columns), labels)
        except ValueError as error:
            raise StreamError(f"{self.stream.name}: {error}") from error
        chosen = self.model.decide(p).tolist()
        rows = PredictedRows(chunk, labels, self.model.classes, p, chosen, sets)
        self.records[0].record(rows)
        step.predicted.append(rows)
        if isinstance(self.drift, ClassDriftLog):
            self.drift.update_classes(columns, rows)
        self.rows_unlabelled += stop - len(rows.actual)

    def _labels(self, chunk: Chunk) -> list[Label | None]:
        """Return the labels of a chunk, None where there is none."""
        return list(chunk.columns[self.target])

    def _one_by_one(
        self, columns: dict[Any, Any], labels: list[Label | None], sets: list[Any]
    ) -> FloatArray:
        """Predict rows, and learn the labels of those that were predicted `delay` rows before."""
        issued: list[dict[Label, float]] = []
        rows = zip(rows_of(columns), labels, strict=True)
        for number, (x, label) in enumerate(rows, self.rows_read):
            row = EncodedRow(x)
            self._learn_until(number - (self.delay or 1))
            issued.append(self.model.predict_proba_one(row, id=number))
            if self.sets.levels:
                own = [
                    self.model.predict_set_one(row, level, id=number, record=False)
                    for level in self.sets.levels
                ]
                sets.append(own)
            if label is not None:
                self._waiting.append((row, label, number))
        if not self.delay:
            self._learn_until(self.rows_read + len(labels))
        classes = self.model.classes
        table = [[p.get(label, 0.0) for label in classes] for p in issued]
        return np.array(table).reshape(len(issued), len(classes))

    def _learn_until(self, last: int) -> None:
        """Learn the labels of rows that wait, up to the one of a number."""
        while self._waiting and self._waiting[0][2] <= last:
            known, its_label, id = self._waiting.popleft()
            self.model.learn_one(known, its_label, id=id)

    def finish(self) -> ClassEvaluation:
        """Return the result; labels that have not arrived at the end of the stream never do."""
        leaves, nbytes = self.model.n_leaves, self.model.nbytes
        end = Moment(self.scores, self.seconds, leaves, nbytes, model=self.model)
        return ClassEvaluation(
            self.stream.name,
            self.target,
            **self.records[0].results(end),
            read=self.rows_read,
            rejected=self.rows_rejected,
            unlabelled=self.rows_unlabelled,
            pending=len(self._waiting),
            model=self.model.kind,
            leaves=leaves,
            nbytes=nbytes,
            delay=self.delay,
            seconds=self.seconds,
            drift_events=None if self.drift is None else list(self.drift_events),
        )

    @property
    def _is_unlabelled(self) -> bool:
        return 0 < self.rows_read == self.rows_rejected + self.rows_unlabelled

    # -- saving and resuming ----------------------------------------------------------------------

    def _pending_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state of rows whose labels are pending: a part of the header, and arrays."""
        waiting = [[list(x.items()), label, number] for x, label, number in self._waiting]
        return {}, {WAITING: packed(waiting)}

    def _restored_pending(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> dict[str, Any]:
        """Return the attributes that `_pending_state` describes."""
        waiting = [
            (EncodedRow(map(tuple, x)), label, validation.whole(number, "row", 0, 2**53))
            for x, label, number in unpacked(arrays[WAITING])
        ]
        return {"_waiting": deque(waiting)}


def evaluate_classes(
    model: Any,
    X: Any,
    y: Any,
    *,
    delay: int | None = None,
    window: int = 1000,
    monitor: Monitor | None = None,
    levels: Sequence[float] = (),
) -> ClassEvaluation:
    """Evaluate a classifier on rows: predict each, then learn its label.

    Parameters
    ----------
    model : Classifier
        The evaluation trains it further; it need not be empty.
    X : array_like, mapping of columns, list of dicts, or data frame
        The features.
    y : array_like or series
        The labels; None if a label is unknown.
    delay : int, optional
        The label delay, in rows.
    window : int
        Rows of the windowed accuracy.
    monitor : Monitor, optional
        Detects drift of the features, the classes and the log-loss; `ClassEvaluation.drift_events` lists
        drift alerts.
    levels : sequence of float
        The levels of prediction sets; `ClassEvaluation.sets` has their coverage and mean size.

    Examples
    --------
    >>> import sapwood
    >>> x = np.random.default_rng(1).random(2000)
    >>> y = np.where(x < 0.5, "low", "high")
    >>> found = evaluate_classes(sapwood.HoeffdingTreeClassifier(), {"x": x}, y)
    >>> found.scores.metrics()["accuracy"] > 0.97
    True
    """
    stream = ArrayStream(X, np.zeros(len(y)), names=getattr(model, "features", ()))
    labels = [None if is_missing(label) else label for label in list(label_values(y))]
    how: dict[str, Any] = {"delay": delay, "window": window, "monitor": monitor, "levels": levels}
    run = _InMemory(model, stream, "y", **how)
    run.labels = labels
    for _ in run.steps():
        pass
    return run.finish()


class _InMemory(ClassRun):
    """A run over rows in memory, whose labels are given apart."""

    labels: list[Any]

    def _labels(self, chunk: Chunk) -> list[Label | None]:
        return [self.labels[number - 1] for number in chunk.numbers.tolist()]
