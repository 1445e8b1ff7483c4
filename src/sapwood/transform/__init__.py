"""Models that learn a transformed target, such as its logarithm."""

from sapwood.transform.regressor import TransformedRegressor

__all__ = ["TransformedRegressor"]
