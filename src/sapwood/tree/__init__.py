"""The tree: how it grows, what its leaves predict, and what shows it."""

from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["HoeffdingTreeRegressor"]
