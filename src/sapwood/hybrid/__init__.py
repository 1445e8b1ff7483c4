"""An online model and a batch learner that is refitted, combined."""

from sapwood.hybrid.learners import HistGradientBoosting, LightGBM
from sapwood.hybrid.refits import FitFailedWarning, Refit
from sapwood.hybrid.regressor import HybridRegressor

__all__ = ["FitFailedWarning", "HistGradientBoosting", "HybridRegressor", "LightGBM", "Refit"]
