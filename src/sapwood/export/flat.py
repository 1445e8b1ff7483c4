"""A tree as flat arrays, from which each export starts."""

import importlib
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.classify import Classifier, LaggedClassifier
from sapwood.corrector._layer import (
    FIRST_WINDOW,
    MOST_RECORDS,
    last_label_share,
    layer_parts,
)
from sapwood.ensemble._ensemble import EnsembleKernel
from sapwood.ensemble.ensemble import Ensemble
from sapwood.inspect import snapshot
from sapwood.inspect.view import TreePicture
from sapwood.model import Readable, readable_part
from sapwood.records import LARGEST
from sapwood.rows.column import OTHERS
from sapwood.tree._kernel import RANGE_MARGIN, TreeKernel
from sapwood.tree.layout import CATEGORY, LEAF, LISTED, NUMBER
from sapwood.validation import Label, shown

__all__ = [
    "CODES",
    "ExportError",
    "FlatTree",
    "LeafModels",
    "Tracking",
    "codes_in",
    "encode",
    "flatten",
    "leaf_models",
    "needed",
    "readable_in",
    "reject_classifier",
    "tracking_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CODES = 64  # of a category: OTHERS is the last


class ExportError(ValueError):
    """A tree cannot be expressed in another library; the message names the reason and a remedy."""


@dataclass(frozen=True)
class Tracking:
    """The error-correction layer at the time of the export, which corrects a prediction p.

    There is a candidate for each rate, ``level + slope * (p - weighted_mean)``, with the
    exponentially weighted mean of predictions. The last candidate is the transfer model: p, plus
    ``coefficients`` times ``known - p`` for each known value and times ``p - first``, clipped to
    its bounds. Each candidate adds its weight times its distance from p. The sum is clipped to the
    range of p and all candidates, and then to the range of y that was seen.
    """

    level: list[float]
    slope: list[float]
    weighted_mean: list[float]
    coefficients: list[float]
    known: list[float]
    first: float
    lowest: float
    highest: float
    weights: list[float]  # of each rate, and of the transfer model
    last_share: float  # of the last label, known[0]; 0 after the cold start
    least: float  # of the range; -inf where that side is open
    greatest: float

    def corrected(self, predictions: FloatArray) -> FloatArray:
        """Return predictions after the correction."""
        p = np.asarray(predictions, dtype=np.float64)
        rates = zip(self.level, self.slope, self.weighted_mean, strict=True)
        candidates = [level + slope * (p - mean) for level, slope, mean in rates]
        terms = [*(known - p for known in self.known), p - self.first]
        a, b, c, d = (k * term for k, term in zip(self.coefficients, terms, strict=True))
        transferred = (p + a + b) + (c + d)  # in the order of the kernel
        candidates.append(np.clip(transferred, self.lowest, self.highest))
        total = p
        for weight, candidate in zip(self.weights, candidates, strict=True):
            total = total + weight * (candidate - p)
        together = np.array([p, *candidates])
        total = np.clip(total, together.min(axis=0), together.max(axis=0))
        total = total + self.last_share * (self.known[0] - total)
        corrected: FloatArray = np.clip(total, self.least, self.greatest)
        return corrected


@dataclass(frozen=True, eq=False)
class LeafModels:
    """The experts of each leaf; all arrays have a row a leaf.

    With x a row that has the level of a category in place of its code, a leaf predicts ::

        z = (x - centres) * scales, 0 where that is NaN or beyond ±TERM_CREDIBLE, and else, with x
            held within least and greatest, held within ±TERM_REACH, both of the kernel
        base + sum over models of shares * held(intercepts + coefficients @ z, lowest, highest)
    """

    origins: FloatArray  # what the y are measured from, (leaves,)
    base: FloatArray  # what the y are measured from, and the mean's share in the prediction
    shares: FloatArray  # of each linear model, (leaves, models)
    intercepts: FloatArray  # (leaves, models)
    coefficients: FloatArray  # (leaves, models, features)
    centres: FloatArray  # (leaves, features)
    scales: FloatArray  # (leaves, features)
    least: FloatArray  # the range of each column, (features,)
    greatest: FloatArray
    lowest: FloatArray  # (leaves,)
    highest: FloatArray  # (leaves,)
    levels: FloatArray  # (features, CODES); NaN for a code without one


@dataclass(frozen=True, eq=False)
class FlatTree:
    """A tree as arrays with an entry a node: a node comes before its children, left before right.

    A row goes left if its value is below the threshold, if its code is in the subset, or if it is
    missing and `missing_left` is set.
    """

    names: list[Label]  # of the columns of `encode`
    labels: list[list[Label]]  # of the categories of each, in the order of their codes; none where
    # there are more than 63, as they are numbers then
    kind: IntArray  # LEAF, or the kind of feature that the node splits on: NUMBER or CATEGORY
    left: IntArray  # -1 for a leaf, as are the next two
    right: IntArray
    feature: IntArray
    threshold: FloatArray  # 0 where there is none
    subset: NDArray[np.uint64]  # bit k is set if code k goes left; 0 where there is none
    missing_left: NDArray[np.bool_]
    depth: IntArray
    weight: FloatArray  # of the rows in the leaves below
    gain: FloatArray  # of the split
    variance: FloatArray  # of y, in a leaf
    leaf: str  # how leaves predict: the tree's parameter
    values: FloatArray | None  # predictions, the mean of those below in inner nodes
    models: LeafModels | None  # if leaves predict by more than a value; a row a leaf, in order
    tracking: Tracking | None  # of what the models predict; in values it is contained

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        is_leaf: NDArray[np.bool_] = self.kind == LEAF
        return is_leaf

    def constants(self, format_name: str) -> FloatArray:
        """Return what each node predicts, or raise if leaves predict by linear models."""
        if self.values is None:
            raise ExportError(
                f"leaf={self.leaf!r}: the leaves of this tree are linear models, and those of "
                f"{format_name} are constants; train with leaf='mean', or use to_onnx"
            )
        return self.values

    def without_categories(self, format_name: str) -> "FlatTree":
        """Return the tree with cuts between codes in place of subsets, or raise if it has others.

        A subset is a cut if it has all known codes below some code, or all from there on; with
        two categories it always is.
        """
        nodes = np.flatnonzero(self.kind == CATEGORY)
        left, right, threshold = self.left.copy(), self.right.copy(), self.threshold.copy()
        missing_left = self.missing_left.copy()
        for node in nodes.tolist():
            feature = int(self.feature[node])
            count = len(self.labels[feature])
            known = range(CODES if count == OTHERS else count)
            goes_left = [bool(int(self.subset[node]) >> code & 1) for code in known]
            turns = [code for code in known[1:] if goes_left[code - 1] != goes_left[code]]
            if len(turns) > 1:
                raise ExportError(
                    f"the tree splits the categories of {shown(self.names[feature])} into subsets, "
                    f"which {format_name} cannot express; use to_treelite or to_onnx"
                )
            threshold[node] = (turns[0] if turns else len(known)) - 0.5
            if goes_left[:1] == [False]:
                left[node], right[node] = right[node], left[node]
                missing_left[node] = not missing_left[node]
        return replace(
            self,
            kind=np.where(self.kind == CATEGORY, NUMBER, self.kind),
            left=left,
            right=right,
            threshold=threshold,
            missing_left=missing_left,
        )


def flatten(model: Readable) -> FlatTree:
    """Return a tree as flat arrays, as it is at this moment.

    Examples
    --------
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor(leaf="mean", track=None)
    >>> tree.learn_many({"x": [0.0, 1.0] * 500}, [2.0, 5.0] * 500)
    >>> flat = flatten(tree)
    >>> flat.left.tolist(), flat.right.tolist(), flat.feature.tolist()
    ([1, -1, -1], [2, -1, -1], [0, -1, -1])
    >>> flat.values.round(9).tolist()
    [3.5, 2.0, 5.0]
    """
    reject_classifier(model)
    tree = readable_in(model)
    check_one_target(tree)
    if isinstance(tree, Ensemble):
        raise ExportError(
            f"tree = {shown(tree)}: it has several trees, of which one is expected; export "
            "model.member(0), or all of them by to_onnx"
        )
    flat: FlatTree = tree._kernel.read_locked(_flattened, tree)
    return flat


def _flattened(tree: Any) -> FlatTree:
    kernel, features = tree._kernel, tree._features
    if kernel.columns.split_encoded:
        raise ExportError(
            "its splits read a feature of more than 63 categories by an encoding of several targets, "
            "its linear models by one of their own, and exported trees know one encoding a feature; "
            "train a model of this target alone to export it"
        )
    if kernel.rows == 0 or not features.names:
        raise ExportError("the tree has learned no features yet; let it learn some rows first")
    picture = snapshot.picture(kernel, features)
    order = np.array([node for node, _ in picture.walk()])
    leaves = order[picture.nodes["kind"][order] == LEAF]
    rows = picture.nodes["child"][leaves]  # of the kernel's table of leaves
    tracking, models = tracking_of(kernel), None
    if kernel.linear:
        models = leaf_models(kernel, rows)
    else:
        values = kernel.leaf_table["origin"][rows] + kernel.leaf_table["mean"][rows]
        nodes = picture.nodes.copy()
        nodes["mean"][leaves] = values if tracking is None else tracking.corrected(values)
        picture = replace(picture, nodes=nodes)
    return _in_order(tree, picture, order, models, tracking)


def reject_classifier(model: Any) -> None:
    """Raise if a model is a classifier: its trees predict ratings, which are not calibrated."""
    if isinstance(model, Classifier | LaggedClassifier):
        raise ExportError(
            f"tree = {shown(model)}: its trees rate classes, and calibration makes probabilities of "
            "that; use to_onnx, or export the regressor inside (model.model), which predicts the "
            "rating of the second of two classes"
        )


def readable_in(model: Any) -> Any:
    """Return the tree, or the ensemble, that a model is or holds."""
    found = readable_part(model)
    if not hasattr(found, "_kernel"):
        raise ExportError(
            f"tree = {shown(model)}: a HoeffdingTreeRegressor, ForestRegressor or "
            "AdaptiveTreeRegressor is expected"
        )
    return found


def check_one_target(model: Any) -> None:
    """Raise ExportError if a tree or an ensemble has several targets."""
    if model.targets:
        raise ExportError(
            f"the model has {len(model.targets)} targets: export one of them, as "
            f"model.of_target({shown(model.targets[0])}), or all of them by to_onnx"
        )


def _in_order(
    tree: Any,
    picture: TreePicture,
    order: IntArray,
    models: LeafModels | None,
    tracking: Tracking | None,
) -> FlatTree:
    """Return the nodes of a picture in an order, in which the root is first."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    nodes = picture.nodes[order]
    inner = nodes["kind"] != LEAF
    number, category = nodes["kind"] == NUMBER, nodes["kind"] == CATEGORY
    child = np.where(inner, nodes["child"], 0)
    listed, tables = _listed(tree._kernel), tree._features.categories
    names = tree._features.names
    feature = np.where(inner, nodes["feature"], -1).astype(np.int64)
    by_code = category & np.isin(feature, listed)
    feature[by_code] = len(tables) + np.searchsorted(listed, feature[by_code])
    return FlatTree(
        names=[*names, *(f"code of {names[each]}" for each in listed)],
        labels=[list(table) if len(table) <= OTHERS else [] for table in tables]
        + [list(islice(tables[each], OTHERS)) for each in listed],
        kind=nodes["kind"].astype(np.int64),
        left=np.where(inner, place[child], -1),
        right=np.where(inner, place[np.where(inner, child + 1, 0)], -1),
        feature=feature,
        threshold=np.where(number, nodes["threshold"], 0.0),
        subset=np.where(category, nodes["subset"], np.uint64(0)),
        missing_left=inner & (nodes["missing_left"] != 0),
        depth=nodes["depth"].astype(np.int64),
        weight=np.array(picture.below.weight)[order],
        gain=np.where(inner, nodes["gain"], 0.0),
        variance=np.where(inner, 0.0, nodes["deviation"] ** 2),
        leaf=tree.parameters["leaf"],
        values=np.array(picture.below.mean)[order] if models is None else None,
        models=models,
        tracking=tracking,
    )


def _listed(kernel: TreeKernel) -> list[int]:
    """Return the features of many categories that were cut by their codes while these were few."""
    nodes = kernel.node_table[: kernel.node_count]
    return sorted(set(nodes["feature"][nodes["kind"] == LISTED].tolist()))


def tracking_of(kernel: TreeKernel | EnsembleKernel) -> Tracking | None:
    """Return the error-correction layer; None if there is none, or if it changes nothing.

    Means of y are within its range, so that nothing clips them to it.
    """
    layer = kernel.layer_table
    part = {name: layer[start : start + size].tolist() for name, start, size in layer_parts()}
    tree = kernel if isinstance(kernel, TreeKernel) else kernel.trees[0]
    if not len(layer) or not (any(part["theta"]) or tree.linear or last_label_share(layer)):
        return None
    (low,), (high,) = part["low"], part["high"]
    margin = RANGE_MARGIN * (high - low)
    return Tracking(
        level=part["level"],
        slope=part["slope"],
        weighted_mean=part["predicted"],
        coefficients=part["coefficient"],
        known=part["known"],
        first=part["first"][0],
        lowest=low - margin,
        highest=high + margin,
        weights=part["theta"],
        last_share=last_label_share(layer),
        least=-np.inf if _is_open(part, "low") else low,
        greatest=np.inf if _is_open(part, "high") else high,
    )


def _is_open(part: dict[str, list[float]], side: str) -> bool:
    """Return whether predictions may go beyond a side of the range of y, see `_range.pxd`."""
    records = max(part[f"{side}_records"][0], part[f"{side}_before"][0])
    return records >= MOST_RECORDS or part["window"][0] <= FIRST_WINDOW


def leaf_models(kernel: TreeKernel, rows: NDArray[Any]) -> LeafModels:
    """Return the experts of leaves, given by their rows in the kernel's table."""
    centres_at, scales_at, covariance_at, terms = kernel.page_parts()
    pages = np.array([kernel.model_page(leaf)[:covariance_at] for leaf in rows.tolist()])
    width = kernel.features
    coefficients = pages[:, :centres_at].reshape(len(rows), terms, -1)[:, : width + 1]
    table = kernel.leaf_table[rows]
    shares = snapshot.shares_of(kernel, table)
    margin = RANGE_MARGIN * (kernel.high - kernel.low)
    few = kernel.encoding_table[: width * CODES]
    level_weight, level = few.reshape(width, CODES, 2).transpose(2, 0, 1)
    centres = pages[:, centres_at:scales_at].copy()
    centres[:, kernel.columns.place_table >= 0] += kernel.first  # as `encode` does with levels
    facts = kernel.columns.known_facts
    codes = len(_listed(kernel))  # columns that are but for splits: their terms are 0
    return LeafModels(
        origins=table["origin"],
        base=table["origin"] + shares[:, 0] * table["mean"],
        shares=shares[:, 1:],
        intercepts=coefficients[:, 0],
        coefficients=np.pad(coefficients[:, 1:].transpose(0, 2, 1), ((0, 0), (0, 0), (0, codes))),
        centres=np.pad(centres, ((0, 0), (0, codes))),
        scales=np.pad(pages[:, scales_at:covariance_at], ((0, 0), (0, codes))),
        least=np.pad(facts["low"], (0, codes), constant_values=-LARGEST),
        greatest=np.pad(facts["high"], (0, codes), constant_values=LARGEST),
        lowest=kernel.low - margin - table["origin"],
        highest=kernel.high + margin - table["origin"],
        levels=np.pad(
            np.where(level_weight > 0.0, level, np.nan),
            ((0, codes), (0, 0)),
            constant_values=np.nan,
        ),
    )


def codes_in(subset: Any) -> list[int]:
    """Return the codes that a subset has.

    Examples
    --------
    >>> codes_in(0b1101)
    [0, 2, 3]
    """
    return [code for code in range(CODES) if int(subset) >> code & 1]


def encode(tree: Readable, X: Any) -> FloatArray:
    """Return rows as the numeric matrix that exported models expect.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor, ForestRegressor or AdaptiveTreeRegressor
        The model, as it was when it was exported.
    X : array_like, mapping of columns, or data frame
        The features, as for `tree.predict_many`.

    Returns
    -------
    ndarray of float64, shape (rows, features)
        The columns are `tree.features`, in the order in which the model first saw them, among
        them flags of missing values ("age is missing"), which it derives itself. A number is as it
        was, a category is its code (from 0 in the order in which they were learned), and NaN is a
        value that is missing, or a category that was never learned. Where a feature has more than
        63 categories, a category is a number, its target encoding: the mean y of its rows, shrunk to the
        mean of all; a category that was never learned has the latter. If the tree has split that
        feature by its codes before there were so many, these follow in a column of their own,
        behind all others: 63 is that of all from the 64th on. To an ensemble all categories are
        codes, as its trees have levels of their own.

    Examples
    --------
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor()
    >>> tree.learn_many({"temp": [3.5, 20.0], "city": ["Oslo", "Rome"]}, [1.0, 2.0])
    >>> encode(tree, {"city": ["Rome", "Lima"], "temp": [17, None]})
    array([[17.,  1.],
           [nan, nan]])
    """
    held = readable_in(tree)
    matrix: FloatArray = held._features.read(X, learn=False).matrix
    if isinstance(held, Ensemble):
        places = held._kernel.trees[0].columns.place_table
        return np.where(places >= 0, np.minimum(matrix, places), matrix)
    places = held._kernel.columns.place_table
    codes = np.minimum(matrix[:, _listed(held._kernel)], OTHERS)
    for feature in np.flatnonzero(places >= 0).tolist():
        matrix = matrix.copy()
        levels = np.append(held._kernel.encodings_of(feature), np.nan)
        rows = np.minimum(matrix[:, feature], places[feature])
        rows = np.where(np.isnan(rows), len(levels) - 1, rows)
        matrix[:, feature] = levels[rows.astype(np.intp)]
    return np.hstack([matrix, codes]) if codes.shape[1] else matrix


def needed(module: str, package: str, function: str) -> Any:
    """Import a module of another package; raise an error with the install command without it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{function} needs {package}, which is not installed: run `pip install {package}`"
        ) from error
