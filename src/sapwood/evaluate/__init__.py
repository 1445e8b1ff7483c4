"""Predict each row, then learn it, and keep the score."""

from sapwood.evaluate.prequential import Prequential
from sapwood.evaluate.result import Baseline, Errors, Evaluation, Sample
from sapwood.evaluate.scores import Scores
from sapwood.evaluate.whole_run import prequential

__all__ = [
    "Baseline",
    "Errors",
    "Evaluation",
    "Prequential",
    "Sample",
    "Scores",
    "prequential",
]
