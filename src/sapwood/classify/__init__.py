"""Classification: trees and forests that predict classes and their probabilities."""

from sapwood.classify.classifier import Classifier
from sapwood.classify.lagged import LaggedClassifier
from sapwood.classify.models import (
    AdaptiveTreeClassifier,
    ForestClassifier,
    HoeffdingTreeClassifier,
)

__all__ = [
    "AdaptiveTreeClassifier",
    "Classifier",
    "ForestClassifier",
    "HoeffdingTreeClassifier",
    "LaggedClassifier",
]
