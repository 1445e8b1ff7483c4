"""Sapwood in river: the tree as a river model, the observers as splitters of river's trees.

``python -m sapwood.river`` runs river's own checks of the model and tells how each went.
"""

from sapwood.river.regressor import HoeffdingTreeRegressor
from sapwood.river.splitters import EBSTSplitter, QuantizerSplitter, TEBSTSplitter

__all__ = ["EBSTSplitter", "HoeffdingTreeRegressor", "QuantizerSplitter", "TEBSTSplitter"]
