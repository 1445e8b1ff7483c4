"""Models of sparse rows: dicts that have a few of very many names, such as bags of words."""

from sapwood.sparse.regressor import SparseRegressor

__all__ = ["SparseRegressor"]
