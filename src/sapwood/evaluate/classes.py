"""What an evaluation of a classifier found."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import DriftEvent
from sapwood.streams.stream import Chunk
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.evaluate.class_scores import ClassScores

__all__ = ["LEAST_PROBABILITY", "ClassEvaluation", "PredictedRows"]

FloatArray = NDArray[np.float64]
LEAST_PROBABILITY = 1e-6  # that counts in the log-loss


@dataclass(frozen=True)
class PredictedRows:
    """Rows of a chunk, as they were predicted.

    Parameters
    ----------
    chunk : Chunk
        The chunk, which may have more rows.
    labels : list
        The labels; None where there is none.
    classes : list
        The labels that the columns of `probabilities` are of.
    probabilities : array of float, shape (rows, classes)
        All 0 for a row that was predicted before any class was known.
    chosen : list of int
        The column of the predicted class.
    sets : list
        The prediction set of each level of each row, if there are levels.
    """

    chunk: Chunk
    labels: list[Label | None]
    classes: list[Label]
    probabilities: FloatArray
    chosen: list[int]
    sets: list[list[list[Label]]] = field(default_factory=list)

    @cached_property
    def has_label(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
        return np.array([label is not None for label in self.labels], np.bool_)

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Which rows were predicted when some class was known."""
        return np.asarray(self.probabilities.any(axis=1))

    @property
    def actual(self) -> list[Label]:
        """The labels of the rows that have one."""
        return [label for label in self.labels if label is not None]

    @property
    def log_losses(self) -> FloatArray:
        """The log-loss of each row that has a label; NaN where no class was known."""
        places: dict[Any, int] = {label: place for place, label in enumerate(self.classes)}
        found = []
        for label, p in zip(self.labels, self.probabilities, strict=True):
            if label is not None:
                own = float(p[places[label]]) if label in places else 0.0
                found.append(-np.log(max(own, LEAST_PROBABILITY)) if p.any() else np.nan)
        return np.array(found, np.float64)

    def predicted(self) -> list[Label | None]:
        """Return the predicted class of each row; None before any class was known."""
        return [
            self.classes[place] if is_known else None
            for place, is_known in zip(self.chosen, self.is_known, strict=True)
        ]


@dataclass
class ClassEvaluation:
    """The result of an evaluation of a classifier."""

    stream: str
    target: str
    scores: "ClassScores"
    read: int = 0
    rejected: int = 0
    unlabelled: int = 0
    pending: int = 0
    model: str = ""
    leaves: int = 0
    nbytes: int = 0
    delay: int | None = None
    seconds: float = 0.0
    sets: dict[str, dict[str, float]] = field(default_factory=dict)
    drift_events: list[DriftEvent] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in terms of JSON."""
        drift = {}
        if self.drift_events is not None:
            drift["drift"] = [each.to_dict() for each in self.drift_events]
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
            "seconds": self.seconds,
            **self.scores.to_dict(),
            **({"prediction_sets": self.sets} if self.sets else {}),
            **drift,
        }
