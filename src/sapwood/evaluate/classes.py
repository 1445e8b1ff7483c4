"""What an evaluation of a classifier found."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import DriftEvent
from sapwood.evaluate.class_scores import ClassScores
from sapwood.streams.stream import Chunk
from sapwood.validation import Label

__all__ = ["ClassEvaluation", "PredictedRows", "Sets"]

FloatArray = NDArray[np.float64]
Sets = list[list[list[Label]]]
"""The prediction set of each level of each row."""


@dataclass(frozen=True)
class PredictedRows:
    """Rows of a chunk that have a label, as they were predicted."""

    chunk: Chunk
    labels: list[Label | None]
    classes: list[Label]
    probabilities: FloatArray
    chosen: list[int]
    sets: Sets = field(default_factory=list)  # of each row and level, if there are levels

    def predicted(self) -> list[Label | None]:
        """Return the predicted class of each row; None before any class was known."""
        known = [any(row) for row in self.probabilities.tolist()]
        return [
            self.classes[place] if is_known else None
            for place, is_known in zip(self.chosen, known, strict=True)
        ]


@dataclass
class ClassEvaluation:
    """The result of an evaluation of a classifier."""

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
    seconds: float = 0.0
    sets: dict[str, dict[str, float]] = field(default_factory=dict)
    drift_events: list[DriftEvent] | None = None
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
            "seconds": self.seconds,
            **self.scores.to_dict(),
            **({"prediction_sets": self.sets} if self.sets else {}),
            **(
                {}
                if self.drift_events is None
                else {"drift": [each.to_dict() for each in self.drift_events]}
            ),
        }
