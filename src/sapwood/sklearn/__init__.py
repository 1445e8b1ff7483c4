"""Sapwood in scikit-learn: the tree as an estimator.

``python -m sapwood.sklearn`` runs scikit-learn's own checks of it and tells how each went.
"""

from sapwood.sklearn.regressor import HoeffdingTreeRegressor

__all__ = ["HoeffdingTreeRegressor"]
