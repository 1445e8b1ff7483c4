"""Prequential evaluation of classifiers: each row is predicted, then its label is learned."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.class_scores import ClassScores
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.streams.stream import BadRowError, Chunk, Stream, rows_of
from sapwood.validation import Label

__all__ = ["ClassEvaluation", "PredictedRows", "evaluate_classes"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PredictedRows:
    """Rows of a chunk that have a label, as they were predicted."""

    chunk: Chunk
    labels: list[Label | None]
    classes: list[Label]
    probabilities: FloatArray
    chosen: list[int]

    def predicted(self) -> list[Label | None]:
        """Return the predicted class of each row; None before any class was known."""
        known = [any(row) for row in self.probabilities.tolist()]
        return [
            self.classes[place] if is_known else None
            for place, is_known in zip(self.chosen, known, strict=True)
        ]


@dataclass
class ClassEvaluation:
    """What came of an evaluation."""

    stream: str
    target: str
    scores: ClassScores
    read: int = 0
    rejected: int = 0
    unlabelled: int = 0
    pending: int = 0
    model: str = ""
    leaves: int = 0
    nbytes: int = 0
    delay: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in terms of JSON."""
        return {
            "stream": self.stream,
            "target": self.target,
            "task": "classes",
            "model": self.model,
            "rows_read": self.read,
            "rows_rejected": self.rejected,
            "rows_unlabelled": self.unlabelled,
            "rows_pending": self.pending,
            "delay": self.delay,
            "leaves": self.leaves,
            "bytes": self.nbytes,
            **self.scores.to_dict(),
        }


def evaluate_classes(
    model: Any,
    stream: Stream,
    target: str,
    *,
    delay: int | None = None,
    window: int = 1000,
    skips_bad_rows: bool = False,
) -> Iterator[tuple[PredictedRows, ClassEvaluation]]:
    """Predict each row of a stream, learn its label, and score the prediction.

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
        By how many rows labels come late.
    window : int
        Rows of the windowed accuracy.
    skips_bad_rows : bool
        Whether rows that cannot be read are left out; otherwise the first of them ends the run.

    Yields
    ------
    rows : PredictedRows
        Those of a chunk.
    result : ClassEvaluation
        Of all rows so far.
    """
    found = ClassEvaluation(stream.name, target, ClassScores(window), delay=delay)
    waiting: deque[tuple[EncodedRow, Label, int]] = deque()
    for chunk in stream.chunks():
        stopped = chunk.bad[0] if chunk.bad and not skips_bad_rows else None
        rows = len(chunk) if stopped is None else stopped.after
        labels = list(chunk.columns[target])[:rows]
        columns = {name: column[:rows] for name, column in chunk.columns.items() if name != target}
        if delay:
            p = _late(model, columns, labels, waiting, delay, found.read)
        else:
            p = _at_once(model, columns, labels)
        own = PredictedRows(chunk, labels, model.classes, p, model.decide(p).tolist())
        has_label = [label is not None for label in labels]
        found.scores.update(
            own.classes,
            [label for label in labels if label is not None],
            p[has_label],
            [place for place, known in zip(own.chosen, has_label, strict=True) if known],
        )
        found.read += rows + len(chunk.bad)
        found.rejected += len(chunk.bad)
        found.unlabelled += rows - sum(has_label)
        found.pending = len(waiting)
        found.model, found.leaves, found.nbytes = model.kind, model.n_leaves, model.nbytes
        yield own, found
        if stopped is not None:
            raise BadRowError(stopped)


def _at_once(model: Any, columns: dict[Any, Any], labels: list[Label | None]) -> FloatArray:
    """Predict rows, and learn the label of each before the next one."""
    if None not in labels:
        found: FloatArray = model.predict_proba_learn_many(EncodedColumns(columns), labels)
        return found
    told: list[dict[Label, float]] = []
    for x, label in zip(rows_of(columns), labels, strict=True):
        told.append(model.predict_proba_one(EncodedRow(x), record=label is not None))
        if label is not None:
            model.learn_one(EncodedRow(x), label)
    return _stacked(told, model.classes)


def _late(  # noqa: PLR0917 - as its caller has them
    model: Any,
    columns: dict[Any, Any],
    labels: list[Label | None],
    waiting: deque[tuple[EncodedRow, Label, int]],
    delay: int,
    start: int,
) -> FloatArray:
    """Predict rows, and learn the labels of those that were predicted `delay` rows before."""
    told: list[dict[Label, float]] = []
    for number, (x, label) in enumerate(zip(rows_of(columns), labels, strict=True), start):
        row = EncodedRow(x)
        while waiting and waiting[0][2] <= number - delay:
            known, its_label, id = waiting.popleft()
            model.learn_one(known, its_label, id=id)
        told.append(model.predict_proba_one(row, id=number))
        if label is not None:
            waiting.append((row, label, number))
    return _stacked(told, model.classes)


def _stacked(told: list[dict[Label, float]], classes: list[Label]) -> FloatArray:
    return np.array([[p.get(label, 0.0) for label in classes] for p in told]).reshape(
        len(told), len(classes)
    )
