"""Models for recurring concepts: a pool of retired models that are tried after a drift alert."""

from sapwood.recurring.regressor import RecurringRegressor

__all__ = ["RecurringRegressor"]
