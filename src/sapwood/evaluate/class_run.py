"""Prequential evaluation of classifiers: each row is predicted, then its label is learned."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.classify.labels import is_missing, label_values
from sapwood.drift import DriftEvent, Monitor
from sapwood.evaluate.class_drift import ClassDriftLog
from sapwood.evaluate.class_scores import ClassScores
from sapwood.evaluate.classes import ClassEvaluation, PredictedRows, Sets
from sapwood.evaluate.recorder import packed, unpacked
from sapwood.evaluate.run import Run
from sapwood.evaluate.set_scores import SetScores
from sapwood.evaluate.tally import OnBadRow, sample_arrays
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.streams.memory import ArrayStream
from sapwood.streams.stream import (
    BadRow,
    BadRowError,
    Chunk,
    Stream,
    StreamError,
    rows_of,
)
from sapwood.validation import Label

__all__ = ["ClassRun", "ClassStep", "evaluate_classes"]

FloatArray = NDArray[np.float64]
SCORES, WAITING, SETS = "scores", "waiting", "sets"


@dataclass(slots=True)
class ClassStep:
    """What one chunk of the stream has led to."""

    done: int
    rows: PredictedRows | None = None
    bad: list[BadRow] = field(default_factory=list)
    drift_events: list[DriftEvent] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


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

    counts = ("rows_read", "rows_rejected", "rows_unlabelled")
    hears_trees = False
    rows_rejected: int
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
        super().__init__(stream, target, on_bad_row)
        self.model, self.delay = model, delay
        self.scores = ClassScores(window)
        self.drift = None if monitor is None else ClassDriftLog(monitor, target, stream)
        self.sets = SetScores(levels)
        self._waiting: deque[tuple[EncodedRow, Label, int]] = deque()

    @property
    def rows_scored(self) -> int:
        """Rows that scores are of."""
        return self.scores.rows

    def _take(self, chunk: Chunk) -> ClassStep:
        """Predict and learn the rows of a chunk, up to a bad one if that is to stop all."""
        stopped = chunk.bad[0] if chunk.bad and self.on_bad_row == "error" else None
        rows = len(chunk) if stopped is None else stopped.after
        labels = self._labels(chunk)[:rows]
        columns = {
            name: column[:rows] for name, column in chunk.columns.items() if name != self.target
        }
        sets: Sets = []
        try:
            if self.delay or self.sets.levels:
                p = self._one_by_one(columns, labels, sets)
            else:
                p = self.model.predict_proba_learn_many(EncodedColumns(columns), labels)
        except ValueError as error:
            raise StreamError(f"{self.stream.name}: {error}") from error
        chosen = self.model.decide(p).tolist()
        own = PredictedRows(chunk, labels, self.model.classes, p, chosen, sets)
        has_label = np.array([label is not None for label in labels], np.bool_)
        known = [label for label in labels if label is not None]
        chosen = [each for each, is_known in zip(own.chosen, has_label, strict=True) if is_known]
        self.scores.update(own.classes, known, p[has_label], chosen)
        step = ClassStep(chunk.done, own, list(chunk.bad))
        if self.drift is not None:
            self.drift.update_classes(columns, own, has_label)
        if stopped is not None:
            raise BadRowError(stopped)
        if self.first_refused is None and chunk.bad:
            self.first_refused = str(chunk.bad[0])
        self.rows_read += rows + len(chunk.bad)
        self.rows_rejected += len(chunk.bad)
        self.rows_unlabelled += rows - len(known)
        self.position = chunk.next
        return step

    def _labels(self, chunk: Chunk) -> list[Label | None]:
        """Return the labels of a chunk, None where there is none."""
        return list(chunk.columns[self.target])

    def _one_by_one(
        self, columns: dict[Any, Any], labels: list[Label | None], sets: Sets
    ) -> FloatArray:
        """Predict rows, and learn the labels of those that were predicted `delay` rows before."""
        told: list[dict[Label, float]] = []
        rows = zip(rows_of(columns), labels, strict=True)
        for number, (x, label) in enumerate(rows, self.rows_read):
            row = EncodedRow(x)
            self._learn_until(number - (self.delay or 1))
            told.append(self.model.predict_proba_one(row, id=number))
            if self.sets.levels:
                own = [
                    self.model.predict_set_one(row, level, id=number, record=False)
                    for level in self.sets.levels
                ]
                sets.append(own)
                if label is not None and told[-1]:
                    self.sets.update(own, label)
            if label is not None:
                self._waiting.append((row, label, number))
        if not self.delay:
            self._learn_until(self.rows_read + len(labels))
        classes = self.model.classes
        table = [[p.get(label, 0.0) for label in classes] for p in told]
        return np.array(table).reshape(len(told), len(classes))

    def _learn_until(self, last: int) -> None:
        """Learn the labels of rows that wait, up to the one of a number."""
        while self._waiting and self._waiting[0][2] <= last:
            known, its_label, id = self._waiting.popleft()
            self.model.learn_one(known, its_label, id=id)

    def learn_rest(self) -> ClassStep:
        """Return an empty step: labels that have not arrived at the end of the stream never do."""
        return ClassStep(self.stream.size or 0)

    def finish(self) -> ClassEvaluation:
        """Return the result."""
        return ClassEvaluation(
            self.stream.name,
            self.target,
            self.scores,
            read=self.rows_read,
            rejected=self.rows_rejected,
            unlabelled=self.rows_unlabelled,
            pending=len(self._waiting),
            model=self.model.kind,
            leaves=self.model.n_leaves,
            nbytes=self.model.nbytes,
            delay=self.delay,
            seconds=self.seconds,
            sets=self.sets.to_dict(),
            drift_events=None if self.drift is None else list(self.drift_events),
        )

    @property
    def _rows_rejected(self) -> int:
        return self.rows_rejected

    @property
    def _is_unlabelled(self) -> bool:
        return 0 < self.rows_read == self.rows_rejected + self.rows_unlabelled

    # -- saving and resuming ----------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what `restore` needs, but for the model: a header for JSON, and arrays."""
        header: dict[str, Any] = {"task": "classes", **self._header()}
        waiting = [[list(x.items()), label, number] for x, label, number in self._waiting]
        arrays = {
            SCORES: packed(self.scores.to_state()),
            WAITING: packed(waiting),
            SETS: packed(self.sets.to_state()),
        }
        if self.drift is not None:
            arrays |= self.drift.to_arrays()
        return header, {**arrays, **sample_arrays(self.stream)}

    def restore(self, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Resume from a state that `to_state` returned, with the model of that time.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the state is not one that `to_state` returned; nothing is changed then.
        """
        if header["task"] != "classes":
            raise ValueError("it is no run of a classifier")
        resumed = self._resumed(header)
        scores = ClassScores.from_state(unpacked(arrays[SCORES]))
        waiting = deque(
            (
                EncodedRow((name, value) for name, value in x),
                label,
                validation.whole(n, "row", 0, 2**53),
            )
            for x, label, n in unpacked(arrays[WAITING])
        )
        sets = self.sets.restored(unpacked(arrays[SETS]))
        drift = None if self.drift is None else self.drift.restored(arrays)
        self.sets = sets
        self.scores, self._waiting, self.drift = scores, waiting, drift
        for name, value in resumed.items():
            setattr(self, name, value)


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
