"""A tree or an ensemble as SHAP's TreeExplainer reads it."""

from typing import Any

import numpy as np

from sapwood.export.flat import FlatTree, FloatArray
from sapwood.export.flat_model import flatten_model
from sapwood.model import Readable

__all__ = ["to_shap"]

NAME = "SHAP's tree"
NEAR = 1e-6  # how far a float32 may be from a threshold, as a share of it, to stand for it


def to_shap(tree: Readable) -> dict[str, Any]:
    """Return the trees of a model in the format of `shap.TreeExplainer`.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor, or an ensemble
        With ``leaf="mean"``. What recent errors add (`track`) is contained in the leaves of a tree;
        an ensemble is to have ``track=None``, and no member of a weight below 0.

    Returns
    -------
    dict
        Call ``shap.TreeExplainer(to_shap(tree)).shap_values(encode(tree, X))``. Rows of this, and
        the `expected_value` of the explainer, sum up to ``tree.predict_many(X)``.

    Raises
    ------
    ExportError
        If leaves are linear models, a split on categories is not one between their codes, or
        the prediction of an ensemble is not the sum of its trees' predictions.

    Notes
    -----
    With background data (``feature_perturbation="interventional"``) SHAP compares and sums in
    float32, and can number no more than 32,767 nodes. So that values on a threshold go the right
    way there too, thresholds are the float32 below ours. Values that a float32 can hold go as in
    the tree; another may pass a threshold that lies nearer than its rounding.

    Examples
    --------
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor(leaf="mean", track=None)
    >>> tree.learn_many({"x": [0.0, 1.0] * 500}, [2.0, 5.0] * 500)
    >>> (model,) = to_shap(tree)["trees"]
    >>> model["children_left"].tolist(), model["children_right"].tolist()
    ([1, -1, -1], [2, -1, -1])
    """
    trees = flatten_model(tree).summands(NAME)
    return {
        "trees": [_as_dict(each.without_categories(NAME)) for each in trees],
        "input_dtype": np.float64,
        "internal_dtype": np.float64,
        "objective": "squared_error",
        "tree_output": "raw_value",
    }


def _as_dict(flat: FlatTree) -> dict[str, Any]:
    return {
        "children_left": flat.left,
        "children_right": flat.right,
        "children_default": np.where(flat.missing_left, flat.left, flat.right),
        "features": flat.feature,
        "thresholds": _just_below(flat.threshold),
        "values": flat.constants(NAME)[:, None],
        "node_sample_weight": flat.weight,
    }


def _just_below(thresholds: FloatArray) -> FloatArray:
    """Return t' such that SHAP's test x <= t' is equivalent to x < t, also in float32.

    That is the largest float32 below t, or the largest double where t is too large or too small
    for a float32.
    """
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
    below = np.where(near < thresholds, near, np.nextafter(near, np.float32(-np.inf)))
    below = below.astype(np.float64)
    fits = (np.abs(below - thresholds) <= NEAR * np.abs(thresholds)) | (thresholds == 0.0)
    return np.where(fits, below, np.nextafter(thresholds, -np.inf))
