"""Bounds around the predictions of any model."""

from sapwood.intervals.regressor import Interval, IntervalRegressor

__all__ = ["Interval", "IntervalRegressor"]
