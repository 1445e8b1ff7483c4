"""Predict each row, then learn it, and keep the score."""

from sapwood.evaluate.prequential import Prequential, prequential
from sapwood.evaluate.result import Errors, Evaluation
from sapwood.evaluate.scores import Scores

__all__ = ["Errors", "Evaluation", "Prequential", "Scores", "prequential"]
