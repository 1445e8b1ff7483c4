"""A tree as one of scikit-learn's."""

from typing import Any

import numpy as np

from sapwood.export.flat import FlatTree, FloatArray, flatten, needed
from sapwood.model import Readable

__all__ = ["to_sklearn"]

NAME = "scikit-learn's tree"
MOST_SAMPLES = 2.0**53


def to_sklearn(tree: Readable) -> Any:
    """Return a fitted `sklearn.tree.DecisionTreeRegressor` that predicts as a tree does now.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor
        With ``leaf="mean"``. What recent errors add (`track`) is contained in the leaves.

    Returns
    -------
    sklearn.tree.DecisionTreeRegressor
        It reads what `encode` returns, missing values among it. Its importances are
        what splits have gained, as scikit-learn has it.

    Raises
    ------
    ExportError
        If leaves are linear models, or a split on categories is not one between their codes.

    Notes
    -----
    scikit-learn rounds X to float32. For values that a float32 can hold predictions are equal to
    the last bit; another may pass a threshold that lies nearer than its rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor(leaf="mean")
    >>> x = np.arange(2000.0)[:, None] % 100
    >>> tree.learn_many(x, np.where(x[:, 0] < 30, 1.0, 4.0))
    >>> exported = to_sklearn(tree)
    >>> np.array_equal(exported.predict(x), tree.predict_many(x))
    True
    """
    flat = flatten(tree)
    values = flat.constants(NAME)
    flat = flat.without_categories(NAME)
    sklearn_tree = needed("sklearn.tree", "scikit-learn", "to_sklearn")
    internals = needed("sklearn.tree._tree", "scikit-learn", "to_sklearn")
    nodes = np.zeros(len(values), internals.NODE_DTYPE)
    nodes["left_child"] = flat.left
    nodes["right_child"] = flat.right
    nodes["feature"] = np.where(flat.is_leaf, internals.TREE_UNDEFINED, flat.feature)
    # Ours is x < threshold, theirs x <= threshold.
    below = np.nextafter(flat.threshold, -np.inf)
    nodes["threshold"] = np.where(flat.is_leaf, internals.TREE_UNDEFINED, below)
    nodes["missing_go_to_left"] = flat.missing_left
    nodes["impurity"] = _impurity(flat)
    nodes["n_node_samples"] = np.rint(np.clip(flat.weight, 1.0, MOST_SAMPLES))
    nodes["weighted_n_node_samples"] = flat.weight
    width = len(flat.names)
    state = internals.Tree(width, np.array([1], dtype=np.intp), 1)
    state.__setstate__(
        {
            "max_depth": int(flat.depth.max()),
            "node_count": len(nodes),
            "nodes": nodes,
            "values": values.reshape(-1, 1, 1).copy(),
        }
    )
    # A fit of one row sets all else that a fitted estimator has.
    estimator = sklearn_tree.DecisionTreeRegressor().fit(np.zeros((1, width)), np.zeros(1))
    estimator.tree_ = state
    return estimator


def _impurity(flat: FlatTree) -> FloatArray:
    """Return the variance in each node: that in its children, and what the split has gained."""
    left, right, weight = flat.left.tolist(), flat.right.tolist(), flat.weight.tolist()
    gain, impurity = flat.gain.tolist(), flat.variance.tolist()
    for node in reversed(range(len(weight))):
        if left[node] >= 0:
            total = sum(weight[child] * impurity[child] for child in (left[node], right[node]))
            impurity[node] = (total + gain[node]) / weight[node]
    return np.array(impurity)
