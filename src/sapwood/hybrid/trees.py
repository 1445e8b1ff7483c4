"""Boosted trees of other libraries as flat arrays that are predicted from and saved here.

The trees of LightGBM are read from its own text format, those of scikit-learn's
HistGradientBoosting from its node tables. What is made of them predicts the same to the last bit,
which is tried on rows around their thresholds; where it does not, or where trees split on
categories, the model of the library is used itself.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.hybrid import _trees
from sapwood.hybrid._trees import DEFAULT_LEFT, LEAF, MISSING_NAN, MISSING_ZERO

__all__ = ["FlatTrees", "flattened"]

FloatArray = NDArray[np.float64]
Nodes = list[tuple[int, float, int, int]]  # feature, number, right child, flags
Node = tuple[int, float, int, int, int]  # feature, threshold, flags, left child, right child

MOST_NODES = 2**28
MOST_FEATURES = 2**20
TRIED = 64  # rows on which the arrays are compared with the model that they were made of
LEFT_BIT, MISSING_BITS = 2, 2  # of LightGBM's decision_type
KNOWN_OBJECTIVES = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")
FLAGS_OF_MISSING = (0, MISSING_ZERO, MISSING_NAN)  # none, zero, NaN: as LightGBM numbers them
ALMOST_ZERO = float(np.float32(1e-35))  # values up to here count as zero in LightGBM


class FlatTrees(NamedTuple):
    """The sum of regression trees.

    Attributes
    ----------
    roots, feature, number, right, flags, base
        As `sapwood.hybrid._trees.predict` takes them.
    width : int
        How many features rows have.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    number: FloatArray
    right: NDArray[np.int32]
    flags: NDArray[np.uint8]
    base: float
    width: int

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict rows.

        Parameters
        ----------
        X : ndarray of float, shape (n, features)
            In C order; NaN where a value is missing.
        """
        if X.shape[1] < self.width:
            raise ValueError(f"X has {X.shape[1]} columns: {self.width} are expected")
        out = np.empty(len(X))
        _trees.predict(X, *self[:6], out)
        return out

    def with_columns(self, columns: NDArray[np.int64]) -> "FlatTrees":
        """Return the trees for rows in which each feature is in another column.

        Parameters
        ----------
        columns : ndarray of int
            The column of each feature.
        """
        inner = self.feature != LEAF
        feature = np.full_like(self.feature, LEAF)
        feature[inner] = columns[self.feature[inner]]
        return self._replace(feature=feature, width=int(columns.max(initial=-1)) + 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self[:5])

    def to_arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays to be saved, by names that begin with a prefix."""
        arrays: dict[str, NDArray[Any]] = {}
        for name in self._fields[:5]:
            arrays[f"{prefix}{name}"] = getattr(self, name)
        return {**arrays, f"{prefix}base": np.array([self.base, float(self.width)])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str) -> Self:
        """Restore what `to_arrays` returned; nothing of it is trusted.

        Raises
        ------
        ValueError
            If the arrays are not trees: a row might else be compared for ever, or beyond them.
        """
        types = (np.int32, np.int32, np.float64, np.int32, np.uint8, np.float64)
        found = [arrays.get(f"{prefix}{name}") for name in cls._fields[:6]]
        for array, dtype in zip(found, types, strict=True):
            if array is None or array.dtype != dtype or array.ndim != 1:
                raise ValueError("the saved trees of the batch model are of another type")
        roots, feature, number, right, flags, base = (np.array(each) for each in found)
        if base.shape != (2,) or not np.isfinite(base).all() or not 0 <= base[1] <= MOST_FEATURES:
            raise ValueError("the saved base of the batch model is wrong")
        made = cls(roots, feature, number, right, flags, float(base[0]), int(base[1]))
        made._check()
        return made

    def _check(self) -> None:
        roots, feature, number, right, flags, _, width = self
        nodes = len(feature)
        good = len(number) == len(right) == len(flags) == nodes <= MOST_NODES
        # A threshold may be infinite: all values but missing ones are on its left.
        usable = np.where(feature == LEAF, np.isfinite(number), ~np.isnan(number)) if good else None
        good = good and bool((flags < 2 * MISSING_NAN).all() and np.all(usable))
        if good and len(roots):
            starts = np.append(roots, nodes)
            inner = np.flatnonzero(feature != LEAF)
            # The end of the tree that a node belongs to: children stay within it, and go forward.
            good = bool(roots[0] == 0 and (np.diff(starts) > 0).all())
            ends = np.repeat(starts[1:], np.diff(starts)) if good else np.empty(0)
            good = good and bool(
                (feature[inner] >= 0).all()
                and (feature[inner] < width).all()
                and (right[inner] > inner + 1).all()
                and (right[inner] < ends[inner]).all()
            )
        elif nodes:
            good = False
        if not good:
            raise ValueError("the saved trees of the batch model are none")


def flattened(model: Any) -> FlatTrees | None:
    """Return the trees of a fitted model as arrays; None if they cannot be.

    Parameters
    ----------
    model : object
        A booster or an estimator of LightGBM, a HistGradientBoostingRegressor, or anything else.
    """
    try:
        booster = getattr(model, "booster_", model)
        if callable(getattr(booster, "model_to_string", None)):
            made = _of_lightgbm(booster.model_to_string(num_iteration=_best(booster)))
            predict: Any = lambda X: booster.predict(X, num_threads=1)  # noqa: E731
        elif type(model).__name__ == "HistGradientBoostingRegressor":
            made, predict = _of_hist(model), model.predict
        else:
            return None
        rows = _rows_around(made)
        expected = np.asarray(predict(rows), np.float64)
    except Exception:  # a newer library, or one that stores trees otherwise: its own model serves
        return None
    return made if np.array_equal(made.predict(rows), expected) else None


def _best(booster: Any) -> int | None:
    """Return how many rounds LightGBM predicts with: those up to the best, if it stopped early."""
    best = getattr(booster, "best_iteration", None)
    return best if best and best > 0 else None


def _rows_around(trees: FlatTrees) -> FloatArray:
    """Return rows whose values lie around the thresholds, at zero, or are missing."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(TRIED, max(1, trees.width)))
    inner = np.flatnonzero(trees.feature != LEAF)
    if len(inner):
        for row in rows:
            for node in rng.choice(inner, min(len(inner), 4 * trees.width)):
                place, threshold = trees.feature[node], trees.number[node]
                row[place] = threshold if rng.random() < 0.5 else np.nextafter(threshold, np.inf)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[rng.random(rows.shape) < 0.05] = 0.0
    return rows


# -- LightGBM -------------------------------------------------------------------------------------


def _of_lightgbm(text: str) -> FlatTrees:
    head, *trees = text.split("\nTree=")
    known = _entries(head)
    words = known.get("objective", "").split()
    if not words or words[0] not in KNOWN_OBJECTIVES or "sqrt" in words[1:]:
        raise ValueError("predictions of this objective are not the sum of trees")
    if "average_output" in head or known.get("num_tree_per_iteration", "1") != "1":
        raise ValueError("predictions are not the sum of trees")
    nodes: Nodes = []
    roots = []
    for tree in trees:
        roots.append(len(nodes))
        _add_lightgbm(_entries(tree), nodes)
        time.sleep(0)  # threads that predict meanwhile come in between
    return _made(roots, nodes, 0.0, int(known["max_feature_idx"]) + 1)


def _entries(text: str) -> dict[str, str]:
    lines = (line.partition("=") for line in text.partition("\n\n")[0].splitlines())
    return {name: value for name, sign, value in lines if sign}


def _add_lightgbm(entries: dict[str, str], nodes: Nodes) -> None:
    """Add a tree; in its text, children below zero are leaves."""
    if int(entries["num_cat"]) or int(entries.get("is_linear", "0")):
        raise ValueError("a tree splits on categories or has linear models")
    values = _numbers(entries["leaf_value"])
    if int(entries["num_leaves"]) == 1:
        nodes.append((LEAF, values[0], 0, 0))
        return
    features = _whole(entries["split_feature"])
    thresholds = [*map(_next_to_zero, _numbers(entries["threshold"]))]
    types = _whole(entries["decision_type"])
    left, right = _whole(entries["left_child"]), _whole(entries["right_child"])

    def node(place: int) -> Node | float:
        if place < 0:
            return values[~place]
        flags = DEFAULT_LEFT if types[place] & LEFT_BIT else 0
        flags |= FLAGS_OF_MISSING[types[place] >> MISSING_BITS & 3]
        return features[place], thresholds[place], flags, left[place], right[place]

    _add_tree(node, nodes)


def _next_to_zero(threshold: float) -> float:
    """Return a threshold that has all values that count as zero on the side on which zero is."""
    if abs(threshold) > ALMOST_ZERO:
        return threshold
    return math.nextafter(-ALMOST_ZERO, -math.inf) if threshold < 0.0 else ALMOST_ZERO


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def _whole(text: str) -> list[int]:
    return [int(word) for word in text.split()]


# -- HistGradientBoosting -------------------------------------------------------------------------


def _of_hist(model: Any) -> FlatTrees:
    nodes: Nodes = []
    roots = []
    for (predictor,) in model._predictors:
        roots.append(len(nodes))
        _add_hist(predictor.nodes, nodes)
        time.sleep(0)
    if type(model._loss.link).__name__ != "IdentityLink":
        raise ValueError("predictions of this loss are not the sum of trees")
    base = float(np.ravel(model._baseline_prediction)[0])
    return _made(roots, nodes, base, int(model.n_features_in_))


def _add_hist(table: NDArray[Any], nodes: Nodes) -> None:
    if table["is_categorical"].any():
        raise ValueError("a tree splits on categories")
    columns = ("feature_idx", "num_threshold", "missing_go_to_left", "left", "right")
    feature, threshold, to_left, left, right = (table[name].tolist() for name in columns)
    values, leaves = table["value"].tolist(), table["is_leaf"].tolist()

    def node(place: int) -> Node | float:
        if leaves[place]:
            return float(values[place])
        flags = MISSING_NAN | (DEFAULT_LEFT if to_left[place] else 0)
        return feature[place], threshold[place], flags, left[place], right[place]

    _add_tree(node, nodes)


# -- both -----------------------------------------------------------------------------------------


def _add_tree(node: Callable[[int], Node | float], nodes: Nodes) -> None:
    """Add a tree in preorder, so that the left child of a node follows it.

    Parameters
    ----------
    node : callable
        Returns the value of a leaf, or the feature, the threshold, the flags and both children of
        another node, given its place; that of the root is 0.
    nodes : list
        Gets them.
    """
    waiting: list[tuple[int, int]] = [(0, -1)]  # a node, and the one whose right child it is
    while waiting:
        place, parent = waiting.pop()
        if parent >= 0:
            feature, number, _, flags = nodes[parent]
            nodes[parent] = feature, number, len(nodes), flags
        found = node(place)
        if isinstance(found, float):
            nodes.append((LEAF, found, 0, 0))
            continue
        feature, number, flags, left, right = found
        waiting += [(right, len(nodes)), (left, -1)]
        nodes.append((feature, number, 0, flags))


def _made(roots: list[int], nodes: Nodes, base: float, width: int) -> FlatTrees:
    feature, number, right, flags = zip(*nodes, strict=True) if nodes else ((), (), (), ())
    made = FlatTrees(
        np.array(roots, np.int32),
        np.array(feature, np.int32),
        np.array(number, np.float64),
        np.array(right, np.int32),
        np.array(flags, np.uint8),
        base,
        width,
    )
    made._check()
    return made
