"""Sapwood in river: its models, lags as a transformer, observers as splitters of river's trees.

``python -m sapwood.river`` runs river's own checks of the models and tells how each went.
"""

from sapwood.river.lags import Lags
from sapwood.river.regressor import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    MultiTargetAdaptiveTreeRegressor,
    MultiTargetForestRegressor,
    MultiTargetTreeRegressor,
)
from sapwood.river.splitters import EBSTSplitter, QuantizerSplitter, TEBSTSplitter

__all__ = [
    "AdaptiveTreeRegressor",
    "EBSTSplitter",
    "ForestRegressor",
    "HoeffdingTreeRegressor",
    "Lags",
    "MultiTargetAdaptiveTreeRegressor",
    "MultiTargetForestRegressor",
    "MultiTargetTreeRegressor",
    "QuantizerSplitter",
    "TEBSTSplitter",
]
