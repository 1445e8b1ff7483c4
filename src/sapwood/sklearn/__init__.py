"""Sapwood in scikit-learn: its models as estimators, lags as a transformer.

``python -m sapwood.sklearn`` runs scikit-learn's own checks of them and prints the result of each.
"""

from sapwood.sklearn.classifier import (
    AdaptiveTreeClassifier,
    ForestClassifier,
    HoeffdingTreeClassifier,
)
from sapwood.sklearn.lags import Lags
from sapwood.sklearn.regressor import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
    ModelRegressor,
)

__all__ = [
    "AdaptiveTreeClassifier",
    "AdaptiveTreeRegressor",
    "ForestClassifier",
    "ForestRegressor",
    "HoeffdingTreeClassifier",
    "HoeffdingTreeRegressor",
    "HybridRegressor",
    "Lags",
    "ModelRegressor",
]
