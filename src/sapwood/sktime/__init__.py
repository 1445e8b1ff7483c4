"""Sapwood in sktime: a forecaster that learns new rows as they come.

``python -m sapwood.sktime`` runs sktime's own checks of it and prints the result of each.
"""

from sapwood.sktime.forecaster import OnlineForecaster

__all__ = ["OnlineForecaster"]
