"""What leaves of classes predict, and by which merit they split: the settings of VFDT."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood.classify._bayes import LeafBayes
from sapwood.tree.layout import LEAF
from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = [
    "NAIVE_BAYES",
    "Merit",
    "check_leaf",
    "inner_leaf",
    "label_counts",
    "leaf_bayes",
    "leaves_of",
    "values_of",
]

Merit = Literal["gini", "information_gain"]

MAJORITY = "majority"
NAIVE_BAYES = ("naive_bayes", "naive_bayes_adaptive")
"""Leaves of naive Bayes; those of the second predict the most frequent class where it is better."""
MERITS = ("gini", "information_gain")


def inner_leaf(leaf: str) -> str:
    """Return the leaves of the model inside."""
    return "mean" if leaf == MAJORITY or leaf in NAIVE_BAYES else leaf  # of 0 and 1: their shares


def check_leaf(parameters: dict[str, Any], regressor: type) -> None:
    """Raise ValueError if leaves or merit do not go with the other parameters."""
    leaf, merit = parameters["leaf"], parameters.get("merit")
    if merit is not None and merit not in MERITS:
        raise ValueError(f"merit = {merit!r}: 'gini' or 'information_gain' is expected, or None")
    if merit is not None and inner_leaf(leaf) != "mean":
        raise ValueError(
            f"merit = {merit!r}: leaves that split as those of VFDT have no linear models; pass "
            f"leaf='majority', 'naive_bayes' or 'naive_bayes_adaptive' instead of {leaf!r}"
        )
    if merit is not None and parameters["split_bound"] != "hoeffding":
        raise ValueError(
            f"split_bound = {parameters['split_bound']!r}: with a merit, leaves split by Hoeffding's "
            "bound, as those of VFDT: leave one of both out"
        )
    if leaf not in NAIVE_BAYES:
        return
    if regressor is not HoeffdingTreeRegressor:
        raise ValueError(f"leaf = {leaf!r} is one of HoeffdingTreeClassifier alone")
    if parameters["max_bytes"] is not None:
        raise ValueError(f"leaf = {leaf!r} has tables without a limit: leave max_bytes out")


def leaf_bayes(leaf: str) -> LeafBayes | None:
    """Return empty tables of naive Bayes, or None if leaves do not use it."""
    return LeafBayes(leaf == NAIVE_BAYES[1], 2) if leaf in NAIVE_BAYES else None


def leaves_of(model: Any) -> set[int]:
    """Return the nodes of a tree that are leaves."""
    kernel = model._kernel
    nodes = kernel.node_table[: kernel.node_count]
    return set(np.flatnonzero(nodes["kind"] == LEAF).tolist())


def label_counts(model: Any) -> list[int]:
    """Return the number of categories of each feature that a model knows."""
    counts: list[int] = model._features.known.counts
    return counts


def values_of(
    model: Any, X: Any, one: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return rows as a matrix of the features that a model knows, and which are categories.

    Parameters
    ----------
    model : HoeffdingTreeRegressor
        By whose features they are read.
    X : array_like, mapping of columns, list of dicts, or data frame
        The rows.
    one : bool
        Whether it is a dict of one row.
    """
    features = model._features
    known = features.known
    plan = features.read_one(X, learn=False) if one else features.read(X, learn=False)
    matrix = np.array(plan.matrix, np.float64)[:, : len(known.kinds)]
    matrix[:, list(known.flags)] = np.nan  # features that are derived of others
    kinds = np.array([kind == "category" for kind in known.kinds], np.int8)
    return np.ascontiguousarray(matrix), kinds
