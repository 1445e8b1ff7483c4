"""Models of several views of the same rows: without some columns, or with crosses of columns."""

from sapwood.views.regressor import MultiViewRegressor

__all__ = ["MultiViewRegressor"]
