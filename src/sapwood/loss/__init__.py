"""Models that minimise another loss than the squared error."""

from sapwood.loss.losses import HuberLoss, Loss, PoissonLoss, WinsorizedLoss
from sapwood.loss.regressor import LossRegressor

__all__ = ["HuberLoss", "Loss", "LossRegressor", "PoissonLoss", "WinsorizedLoss"]
