"""Sapwood in river: its models, lags as a transformer, observers as splitters of river's trees.

``python -m sapwood.river`` runs river's own checks of the models and prints the result of each.
"""

from sapwood.river.classifier import (
    AdaptiveTreeClassifier,
    ForestClassifier,
    HoeffdingTreeClassifier,
)
from sapwood.river.lags import Lags
from sapwood.river.regressor import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
    ModelRegressor,
    MultiTargetAdaptiveTreeRegressor,
    MultiTargetForestRegressor,
    MultiTargetTreeRegressor,
)
from sapwood.river.splitters import EBSTSplitter, QuantizerSplitter, TEBSTSplitter

__all__ = [
    "AdaptiveTreeClassifier",
    "AdaptiveTreeRegressor",
    "EBSTSplitter",
    "ForestClassifier",
    "ForestRegressor",
    "HoeffdingTreeClassifier",
    "HoeffdingTreeRegressor",
    "HybridRegressor",
    "Lags",
    "ModelRegressor",
    "MultiTargetAdaptiveTreeRegressor",
    "MultiTargetForestRegressor",
    "MultiTargetTreeRegressor",
    "QuantizerSplitter",
    "TEBSTSplitter",
]
