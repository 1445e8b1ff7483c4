"""Predict each row, then learn it, and keep the score."""

from sapwood.evaluate.class_run import ClassRun, evaluate_classes
from sapwood.evaluate.classes import ClassEvaluation
from sapwood.evaluate.prequential import Prequential
from sapwood.evaluate.result import Baseline, Coverage, Errors, Evaluation, Intervals, Sample
from sapwood.evaluate.scores import Scores
from sapwood.evaluate.whole_run import prequential

__all__ = [
    "Baseline",
    "ClassEvaluation",
    "ClassRun",
    "Coverage",
    "Errors",
    "Evaluation",
    "Intervals",
    "Prequential",
    "Sample",
    "Scores",
    "evaluate_classes",
    "prequential",
]
