"""What has to hold for the tables of a tree that comes from a file.

Kernels use indices as they are, so that each is checked here to lie within its table. Numbers are
checked to be such as rows that passed the door can have made: then nothing overflows later. All
functions raise ValueError, with words that say what is wrong and where.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.blend._layer import LEVEL_RATES, layer_parts
from sapwood.observers.base import TableObserver
from sapwood.observers.packing import CELL, CELLS, WEIGHT
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._tables import (
    COARSEST_GRID,
    FINER_THAN_GRIDS,
    GRID_DOUBLES,
    LEVEL_HEAD,
    MOST_UNIT_CHANGES,
    SAMPLE_ROWS,
    SLOT_DOUBLES,
    UNREST_ROWS,
    most_kept_rows,
)
from sapwood.tree.layout import CATEGORY, LEAF, LEAF_RECORD, LISTED, NUMBER

__all__ = [
    "STREAM",
    "check",
    "check_layer_of",
    "check_layers",
    "check_leaves",
    "check_levels",
    "check_models",
    "check_nodes",
    "check_notes",
    "check_observers",
    "check_stream",
    "check_targets",
    "check_watches",
    "doubles",
]

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]

STREAM = ("rows", "weight", "first", "low", "high", "usual", "ranked_at", "measure_at", "bound")

# The door lets no y beyond 1e100 in, and weights add up to 1e50 at the most. Means and predictions
# stay as NEAR to 0; targets and residuals, which are differences of them, within FAR; and so
# nothing comes close to the largest double, squared and weighted.
MOST_WEIGHT, NEAR, FAR, SQUARE = 1e50, 4e100, 1e102, 1e205
CODES = 64  # of a category of few
MOST_ROWS = 2.0**53
# What rounding may add to a sum of weights.
ROUNDING = 1.001
# The reach of centres and scales (see `review` in _leaf.pyx), and more than coefficients come to.
MOST_SCALE, MOST_COEFFICIENT = 1e300, 1e150
# As CREDIBLE of the transfer model.
MOST_TRANSFERRED = 1e6
# What `rescale` in _leaf.pyx allows of variances: of coefficients, and of the constant. Rows only
# make them smaller: all rows that can be counted, at their largest, down to 1e-27.
LEAST_VARIANCE, MOST_VARIANCE, MOST_OF_CONSTANT = 1e-31, 1e3, 1e6
# A covariance is positive definite; in terms of correlations, rounding makes up for less than this.
DEFINITE = 1e-9
KEPT_ROW = SLOT_DOUBLES + 1  # doubles
MORE_ROWS = "slots have seen more rows than their leaf"
MOST_PATIENCE = 2.0**20  # as in _units.pxd


def check(condition: bool, complaint: str) -> None:
    """Raise ValueError with a complaint unless a condition holds."""
    if not condition:
        raise ValueError(complaint)


def _check_all(good: Array, complaint: str) -> None:
    """Raise unless all is good; "{}" in the complaint becomes the place of the first that is not.

    Where there are several axes it is the place along the first.
    """
    if not good.all():
        place = np.unravel_index(int(np.argmin(good)), good.shape)[0]
        raise ValueError(complaint.format(place))


def doubles(array: Array, shape: tuple[int, ...], what: str, missing: bool = False) -> Array:
    """Return an array if it has a shape and holds finite doubles, or NaN where that is allowed."""
    check(array.dtype == np.float64, f"{what} are {array.dtype}, not doubles")
    check(array.shape == shape, f"{what} have shape {array.shape}, not {shape}")
    good = np.isfinite(array) | (missing & np.isnan(array))
    check(bool(good.all()), f"{what} are not finite")
    return array


def check_stream(stream: Array, leaves: int) -> None:
    """Check the numbers of STREAM."""
    rows, weight, first, low, high, usual, ranked_at, measure_at, bound = stream.tolist()
    check(usual >= 0, "the usual error is negative")
    check(0 <= rows <= MOST_ROWS and rows == int(rows), f"{rows} is no number of rows")
    check(0 <= weight <= MOST_WEIGHT, f"{weight} is no weight of all rows")
    check((rows == 0) == (weight == 0), "there are rows without weight, or weight without rows")
    check(-NEAR <= low <= first <= high <= NEAR, "the range of y is wrong")
    check(rows > 0 or (low == high == 0 and leaves == 1), "a tree without rows has learned")
    check(0 <= ranked_at <= rows, f"leaves cannot have been ranked at row {ranked_at}")
    good = 0 <= measure_at <= 2 * MOST_ROWS and measure_at == int(measure_at)
    check(good, f"nothing can be measured at row {measure_at}")
    check(0 <= bound <= 2.0**63, f"{bound} is no bound of memory")


def check_nodes(
    nodes: Array,
    leaves: Array,
    stream: Array,
    kinds: tuple[BoolArray, BoolArray, BoolArray],
    max_depth: int,
) -> None:
    """Check that nodes are a tree whose leaves are the leaves, each of them once.

    Parameters
    ----------
    nodes, leaves, stream : arrays
        The tables.
    kinds : tuple of arrays
        Of each feature whether it is a category of few, whether it is not known what it is, and
        whether it is a category of many.
    max_depth : int
        How deep the tree may be.
    """
    count, number = len(nodes), np.arange(len(nodes))
    kind, child, parent, depth, feature = (
        nodes[name].astype(np.int64) for name in ("kind", "child", "parent", "depth", "feature")
    )
    inner = kind != LEAF
    _check_all(np.isin(kind, (LEAF, NUMBER, CATEGORY, LISTED)), "node {} is of no kind")
    check(parent[0] == -1 and depth[0] == 0, "the first node is not the root")
    _check_all(~inner | ((child > number) & (child < count - 1)), "the child of node {} is no node")
    children = np.sort(np.concatenate([child[inner], child[inner] + 1]))
    check(np.array_equal(children, number[1:]), "a node has two parents, or none")
    for side in (0, 1):
        own = child[inner] + side
        check(np.array_equal(parent[own], number[inner]), "the parent of a node is wrong")
        check(np.array_equal(depth[own], depth[inner] + 1), "the depth of a node is wrong")
    check(bool(depth.max() <= max_depth), f"there are nodes below the depth of {max_depth}")
    rows = child[~inner]
    check(np.array_equal(np.sort(rows), np.arange(len(leaves))), "nodes share a leaf, or have none")
    check(np.array_equal(leaves["node"][rows], number[~inner]), "a leaf belongs to another node")
    is_category, is_unknown, is_many = kinds
    among = (feature >= 0) & (feature < max(1, len(is_category)))
    _check_all(among, "node {} has a feature that there is not")
    own = feature[inner]
    check(len(is_category) > 0 or not len(own), "a node splits without a feature")
    check(
        np.array_equal(is_category[own], kind[inner] == CATEGORY)
        and not is_unknown[own].any()
        and bool((is_many[own] | (kind[inner] != LISTED)).all()),
        "a node splits on a feature of another kind",
    )
    _check_all(np.isin(nodes["missing_left"], (0, 1)), "node {} sends missing values nowhere")
    weight = ROUNDING * stream[STREAM.index("weight")]
    _check_between(nodes, "node", "weight", 0.0, weight)
    _check_between(nodes, "node", "deviation", 0.0, FAR)
    _check_between(nodes, "node", "gain", 0.0, weight * SQUARE)
    _check_between(nodes, "node", "mean", -FAR, FAR)
    _check_all(np.isfinite(nodes["threshold"]), "the threshold of node {} is not finite")


def check_leaves(leaves: Array, stream: Array) -> None:
    """Check what leaves know, and that one that does not watch is never decided on."""
    _check_all(np.isin(leaves["watching"], (0, 1)), "leaf {} neither watches nor does not")
    rows, total = stream[STREAM.index("rows")], ROUNDING * stream[STREAM.index("weight")]
    for name in LEAF_RECORD.names or ():
        if name == "rows":
            _check_between(leaves, "leaf", name, 0.0, rows)
        elif name in ("weight", "born"):
            _check_between(leaves, "leaf", name, 0.0, total)
        elif name in ("due", "review"):
            idle = leaves["watching"] == 0
            _check_all((leaves[name] == np.inf) == idle, f"the {name} of leaf {{}} is wrong")
            _check_between(leaves, "leaf", name, 0.0, np.inf)
        elif name not in ("node", "watching"):
            _check_between(leaves, "leaf", name, *_bounds_of_y(leaves, name, total))


def _bounds_of_y(leaves: Array, name: str, total: float) -> tuple[float, Any]:
    """Return between what a field lies that tells of y in leaves."""
    if name in ("origin", "mean", "target_mean"):
        return -NEAR, NEAR
    if name == "residual_mean":
        return -FAR, FAR
    if name in ("target_m2", "residual_m2"):
        return 0.0, leaves["weight"] * SQUARE
    if name == "mean_weight":
        return 0.0, 10.0 + total
    return 0.0, ROUNDING * MOST_WEIGHT * SQUARE  # faded squared errors


def _check_between(table: Array, what: str, name: str, low: Any, high: Any) -> None:
    values = table[name]
    _check_all((values >= low) & (values <= high), f"the {name} of {what} {{}} is wrong")


def check_layers(layers: Array, rows: list[float]) -> None:
    """Check the last layer of each target of a tree, or none, by how many rows it has learned."""
    if len(layers):
        for layer, own in zip(layers.reshape(len(rows), -1), rows, strict=True):
            check_layer_of(layer, own)


def check_targets(
    streams: Array, leaves: Array, nodes: Array, records: Array, stream: Array
) -> None:
    """Check what a tree of several targets knows of each.

    Parameters
    ----------
    streams, leaves, nodes : arrays
        Of TARGET_STREAM, TARGET_LEAF and TARGET_NODE.
    records : array
        The records of the leaves, all targets together.
    stream : array
        The numbers of STREAM.
    """
    rows, total = stream[STREAM.index("rows")], ROUNDING * stream[STREAM.index("weight")]
    for table, what in ((streams, "target"), (leaves, "target of a leaf"), (nodes, "target")):
        for name in table.dtype.names or ():
            _check_all(np.isfinite(table[name]), f"the {name} of {what} {{}} is not finite")
    _check_between(streams, "target", "rows", 0.0, rows)
    _check_all(streams["rows"] == np.floor(streams["rows"]), "target {} has no number of rows")
    _check_between(streams, "target", "weight", 0.0, total)
    known = streams["rows"] > 0
    _check_all(known == (streams["weight"] > 0), "target {} has rows without weight, or weight")
    good = (streams["low"] <= streams["first"]) & (streams["first"] <= streams["high"])
    _check_all(good, "the range of target {} is wrong")
    for name in ("low", "high"):
        _check_between(streams, "target", name, -NEAR, NEAR)
    _check_between(streams, "target", "usual", 0.0, SQUARE)
    _check_between(streams, "target", "mean", -FAR, FAR)
    _check_between(streams, "target", "m2", 0.0, total * SQUARE)
    own = np.repeat(records, len(streams))
    for name in leaves.dtype.names or ():
        if name in ("rows", "weight"):
            _check_between(leaves, "target", name, 0.0, ROUNDING * own[name])
        else:
            _check_between(leaves, "target", name, *_bounds_of_y(leaves, name, total))
    _check_between(nodes, "target of a node", "weight", 0.0, total)
    _check_between(nodes, "target of a node", "mean", -FAR, FAR)
    _check_between(nodes, "target of a node", "deviation", 0.0, FAR)
    # The share of a variance that is all but nothing may be any number.
    _check_between(nodes, "target of a node", "gain", 0.0, np.inf)


def check_layer_of(layer: Array, rows: float) -> None:
    """Check the last layer of a model that has learned so many rows."""
    most = ROUNDING * MOST_WEIGHT * SQUARE
    weight = ROUNDING * MOST_WEIGHT
    bounds = {
        **dict.fromkeys(("level", "outlook", "known", "low", "high", "first"), (-NEAR, NEAR)),
        **dict.fromkeys(("joint", "term_joint", "blend_joint"), (-most, most)),
        **dict.fromkeys(("term_products", "blend_products"), (-most, most)),
        **dict.fromkeys(("square", "term_square", "blend_square"), (0.0, most)),
        **dict.fromkeys(("term_weight", "blend_weight"), (0.0, weight)),
        **dict.fromkeys(("slope", "theta"), (0.0, 1.0)),
        **dict.fromkeys(("judged", "lateness", "waiting"), (0.0, rows)),
        "coefficient": (-MOST_TRANSFERRED, MOST_TRANSFERRED),
        "rate": (0.0, 1.0),
    }
    part = {name: layer[start : start + size] for name, start, size in layer_parts()}
    for name, values in part.items():
        low, high = bounds[name]
        good = bool(((values >= low) & (values <= high)).all())
        check(good, f"the {name} of the last layer is wrong")
    check(tuple(part["rate"]) == LEVEL_RATES, "the rates of the last layer are wrong")
    judged, waiting = float(part["judged"][0]), float(part["waiting"][0])
    good = judged == int(judged) and waiting == int(waiting) and waiting <= judged
    check(good, "the last layer cannot have judged so many rows")
    check(bool(part["low"] <= part["high"]), "the range of the last layer is wrong")
    for name in ("term_products", "blend_products"):
        squares = part[name][np.cumsum(np.arange(1, len(part[name]) + 1))[: _terms(part[name])] - 1]
        check(bool((squares >= 0).all()), f"the {name} of the last layer are wrong")


def _terms(triangle: Array) -> int:
    """Return of how many columns a triangle is half a matrix."""
    return int((np.sqrt(8 * len(triangle) + 1) - 1) / 2)


def check_notes(notes: Array, rows: float) -> None:
    """Check what was said about rows whose labels are to come."""
    known = notes[:, 0]  # labels, when it was said
    _check_all((known >= 1) & (known <= rows) & (known == np.floor(known)), "note {} is too old")
    _check_all(abs(notes[:, 1:]) <= FAR, "what note {} says is wrong")


def check_levels(
    levels: Array, stream: Array, is_category: BoolArray, places: NDArray[np.intp]
) -> None:
    """Check the weights and means of categories; other features have none.

    Parameters
    ----------
    levels, stream : arrays
        The tables.
    is_category : array
        Of each feature whether it is a category of few.
    places : array
        Those of a category of many; -1 for other features.
    """
    features = len(is_category)
    few = len(levels) - int((places[places >= 0] + LEVEL_HEAD).sum())
    table = levels[:few].reshape(features, few // max(1, features), 2)
    _check_all(is_category[:, None, None] | (table == 0), "feature {} is no category, but has one")
    weight = ROUNDING * stream[STREAM.index("weight")]
    good = (table[..., 0] >= 0) & (table[..., 0] <= weight)
    _check_all(good, "the weight of a category of feature {} is wrong")
    _check_all(abs(table[..., 1]) <= NEAR, "the mean of a category of feature {} is wrong")
    many = levels[few:]
    _check_all((many[:, 0] >= 0) & (many[:, 0] <= weight), "the weight of level {} is wrong")
    for feature in np.flatnonzero(places >= 0):
        end = LEVEL_HEAD + places[feature]
        squares, own = many[1:LEVEL_HEAD], many[LEVEL_HEAD:end]
        means = abs(np.append(own[:, 1], many[0, 1])) <= NEAR
        _check_all(means, f"the mean of a category of feature {feature} is wrong")
        good = (squares[:, 1] >= 0) & (squares[:, 1] <= SQUARE)
        _check_all(good, f"the squares of the categories of feature {feature} are wrong")
        many = many[end:]


def check_facts(facts: Array, stream: Array) -> None:
    """Check what is known of each feature."""
    rows, weight = stream[STREAM.index("rows")], stream[STREAM.index("weight")]
    decimals, rises = facts["decimals"], facts["rises"]
    good = (decimals == np.floor(decimals)) & (decimals >= COARSEST_GRID)
    _check_all(good & (decimals <= FINER_THAN_GRIDS), "feature {} is on a grid that there is not")
    _check_all((rises >= 0) & (rises <= rows + SAMPLE_ROWS), "feature {} has risen too often")
    _check_all(~np.isinf(facts["last"]), "the last sample of feature {} is infinite")
    for cost, weights in (("cost", "weight"), ("late_cost", "late_weight")):
        good = (facts[weights] >= 0) & (facts[weights] <= ROUNDING * weight)
        _check_all(good, "the weight of the cost of feature {} is wrong")
        good = abs(facts[cost]) <= SQUARE * facts[weights]
        _check_all(good, "the cost of feature {} is wrong")


def check_units(units: Array, is_number: BoolArray, rows: float, minding: bool) -> None:
    """Check what is known of the units of y, which come first, and of each feature.

    Parameters
    ----------
    units : array
        The records.
    is_number : array
        Of each feature whether it is a number.
    rows : float
        That the tree has learned.
    minding : bool
        Whether it follows changes of units at all.
    """
    check(len(units) == len(is_number) + 1, "its units are not those of its features")
    for name in units.dtype.names or ():
        _check_all(np.isfinite(units[name]), f"the {name} of units {{}} is not finite")
    has_none = ~np.append(True, is_number) if minding else np.ones(len(units), np.bool_)
    blank = units == np.zeros(1, units.dtype)
    _check_all(blank | ~has_none, "units {} are those of no number")
    for name in ("samples", "run", "still", "seen", "inside"):
        good = (units[name] >= 0) & (units[name] <= rows) & (units[name] == np.floor(units[name]))
        _check_all(good, f"the {name} of units {{}} is no number of rows")
    _check_all(units["low"] <= units["high"], "the range of units {} is wrong")
    for name in ("low", "high", "mean", "last", "step", "lately", "new_mean", "bottom", "top"):
        _check_all(abs(units[name]) <= NEAR, f"the {name} of units {{}} is too large")
    for name in ("variance", "new_m2"):
        _check_all(units[name] <= SQUARE, f"the {name} of units {{}} is too large")
    for name in ("variance", "step", "lately", "ties", "wait", "patience", "new_m2"):
        _check_all(units[name] >= 0, f"the {name} of units {{}} is negative")
    _check_all(units["patience"] <= MOST_PATIENCE, "the patience of units {} is too large")
    _check_all(units["wait"] <= rows + MOST_PATIENCE, "units {} wait too long")
    _check_all(np.isin(units["state"], (0, 1, 2)), "the state of units {} is none")


def check_unrest(unrest: Array, units: Array) -> None:
    """Check how far it is told whether units have changed."""
    check(len(unrest) == 1, "there is not one unrest")
    own = unrest[0]
    for name in unrest.dtype.names or ():
        check(bool(np.isfinite(own[name])), f"the {name} of the unrest is not finite")
        if name.startswith("gain"):
            check(abs(own[name]) <= UNREST_ROWS * FAR, f"the {name} of the unrest is too large")
        elif name != "level":
            good = 0 <= own[name] <= UNREST_ROWS * SQUARE
            check(good, f"the {name} of the unrest is negative or too large")
    check(abs(own["level"]) <= NEAR, "the level of the unrest is too large")
    check(own["phase"] in (0, 1, 2), "the phase of the unrest is none")
    check(own["rows"] < UNREST_ROWS, "the unrest is too long")
    suspects = bool((units["state"] > 0).any())
    check(suspects == (own["phase"] > 0), "there is unrest without a suspect, or none with one")


def check_changes(changes: Array, features: int, rows: float) -> None:
    """Check the changes of units that are remembered."""
    check(len(changes) == MOST_UNIT_CHANGES, "there are too many changes of units, or too few")
    for name in changes.dtype.names or ():
        _check_all(np.isfinite(changes[name]), f"the {name} of change {{}} is not finite")
    column, real = changes["column"], changes["row"] > 0
    _check_all((changes["row"] >= 0) & (changes["row"] <= rows), "change {} was never seen")
    good = (column >= -1) & (column < features) & (column == np.floor(column))
    _check_all(~real | good, "change {} is that of a column that there is not")
    _check_all(~real | (changes["scale"] > 0), "the scale of change {} is none")
    check(bool((real[:-1] >= real[1:]).all()), "the changes of units are not in order")


def check_samples(samples: Array, kinds: tuple[BoolArray, BoolArray, BoolArray]) -> None:
    """Check rows of the past: categories are codes, what is not known is missing.

    Parameters
    ----------
    samples : array
        The rows.
    kinds : tuple of arrays
        As for `check_nodes`.
    """
    is_category, is_unknown, is_many = kinds
    codes = samples[:, is_category | is_many]
    with np.errstate(invalid="ignore"):
        good = np.isnan(codes) | ((codes >= 0) & (codes == np.floor(codes)))
        _check_all(good, "sample {} has a category that is no code")
        good = ~(samples[:, is_category] >= CODES)
    _check_all(good, "sample {} has a category that there is not")
    _check_all(np.isnan(samples[:, is_unknown]), "sample {} has what was never seen")


def check_trial(
    trial: Array,
    pages: Array,
    leaves: Array,
    kinds: tuple[BoolArray, BoolArray, BoolArray],
    kernel: TreeKernel,
) -> None:
    """Check a split on trial, if there is one, and what its sides watch.

    Parameters
    ----------
    trial, pages : arrays
        The split, and a page for each side.
    leaves : array
        The records of all leaves.
    kinds : tuple of arrays
        As for `check_nodes`.
    kernel : TreeKernel
        That knows the layout.
    """
    check(len(trial) == 1, "there is not one trial")
    own = trial[0]
    if own["leaf"] < 0:
        return
    is_category, is_unknown, _ = kinds
    check(kernel.slots > 0, "there is a trial beside observers")
    check(own["leaf"] < len(leaves), "the trial is that of a leaf that there is not")
    leaf = leaves[own["leaf"]]
    check(bool(leaf["watching"]), "the trial is that of a leaf that does not watch")
    check(0 <= own["feature"] < len(is_category), "the trial has a feature that there is not")
    check(not is_unknown[own["feature"]], "the trial has a feature that was never seen")
    codes = CODES if is_category[own["feature"]] else kernel.slots
    check(0 <= own["place"] < codes, "the trial is at a place that there is not")
    check(own["missing_left"] in (0, 1), "the trial sends missing values nowhere")
    check(bool(np.isfinite(own["threshold"])), "the threshold of the trial is not finite")
    check(0 <= own["ends"] <= 2 * MOST_WEIGHT, "the trial never ends")
    for side in ("left", "right"):
        weight, mean, m2 = (own[f"{side}_{name}"] for name in ("weight", "mean", "m2"))
        good = weight >= 0 and abs(mean) <= FAR and 0 <= m2 <= SQUARE * weight
        check(good, "the sides of the trial are wrong")
    weight = own["left_weight"] + own["right_weight"]
    check(weight <= ROUNDING * leaf["weight"], "the trial has seen more than its leaf")
    features = len(is_category)
    grids = pages[:, : GRID_DOUBLES * features].reshape(2, features, GRID_DOUBLES)
    low, width, inverse, kept = np.moveaxis(grids, 2, 0)
    with np.errstate(divide="ignore"):
        good = (inverse == 1 / width) & (width > 0) | ((inverse == 0) & (width == 0) & (low == 0))
    good &= (kept == 0) | ((inverse > 0) & (kept == most_kept_rows(kernel.slots)))
    check(bool(good.all()), "a grid of the trial is wrong")
    fixed = (low == 0) & (width == 1)
    check(bool(fixed[:, is_category].all()), "the grid of a category is wrong in the trial")
    slots = pages[:, GRID_DOUBLES * features :].reshape(2, -1, SLOT_DOUBLES)
    good = (slots[..., 0] >= 0) & (abs(slots[..., 1]) <= FAR * slots[..., 0])
    check(bool(good.all()), "a slot of the trial is wrong")


def check_models(models: Array, kernel: TreeKernel) -> None:
    """Check the pages of linear models."""
    if not kernel.linear:
        return
    for target in range(kernel.targets):
        start, rest = kernel.model_place(target)
        own = models[:, start : start + kernel.page_parts()[0]]
        _check_all(abs(own) <= MOST_COEFFICIENT, "a coefficient of leaf {} is wrong")
        if start == rest:  # it has a page of its own, or shares that of the first
            _check_rest(models[:, rest : rest + kernel.page_size], kernel)


def _check_rest(models: Array, kernel: TreeKernel) -> None:
    """Check centres, scales and covariances."""
    centres, scales, covariance, terms = kernel.page_parts()
    _check_all(abs(models[:, centres:scales]) <= MOST_SCALE, "a centre of leaf {} is wrong")
    own = models[:, scales:covariance]
    _check_all((own >= 0) & (own <= ROUNDING * MOST_SCALE), "a scale of leaf {} is wrong")
    matrix = models[:, covariance:]
    variances = matrix if matrix.shape[1] == terms else matrix[:, :: terms + 1]
    most = np.full(terms, MOST_VARIANCE)
    most[0] = MOST_OF_CONSTANT
    good = (variances >= LEAST_VARIANCE) & (variances <= ROUNDING * most)
    _check_all(good, "a variance of leaf {} is wrong")
    if matrix.shape[1] != terms:
        square = matrix.reshape(-1, terms, terms)
        _check_all(square == square.transpose(0, 2, 1), "a covariance of leaf {} is not symmetric")
        _check_all(_are_definite(square), "the covariances of leaf {} contradict each other")


def _are_definite(covariances: Array) -> BoolArray:
    """Whether each has no direction of negative variance, but for rounding.

    For learning would enlarge it.
    """
    deviations = np.sqrt(np.einsum("ijj->ij", covariances))
    with np.errstate(over="ignore"):
        correlations = covariances / (deviations[:, :, None] * deviations[:, None, :])
    good: BoolArray = (abs(correlations) <= 1.0 + DEFINITE).all(axis=(1, 2))
    good[good] = _have_factors(correlations[good] + DEFINITE * np.eye(correlations.shape[1]))
    return good


def _have_factors(matrices: Array) -> Array:
    """Whether each has a Cholesky factor; one after the other only if not all have."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.zeros(1, np.bool_)
        return np.concatenate([_have_factors(half) for half in np.array_split(matrices, 2)])
    return np.ones(len(matrices), np.bool_)


def check_watches(
    watches: Array,
    leaves: Array,
    kinds: tuple[BoolArray, BoolArray],
    kernel: TreeKernel,
    of_targets: Array | None = None,
) -> None:
    """Check the pages of what leaves watch by.

    Parameters
    ----------
    watches : array
        The pages.
    leaves : array
        The records of their leaves.
    kinds : tuple of arrays
        Of each feature whether it is a category, and whether it is not known what it is.
    kernel : TreeKernel
        That knows the layout.
    of_targets : array, optional
        Of a tree of several targets, the record of each target of each leaf.
    """
    is_category, is_unknown = kinds
    features = len(is_category)
    grids = watches[:, : GRID_DOUBLES * features].reshape(len(watches), features, GRID_DOUBLES)
    low, width, inverse, kept = np.moveaxis(grids, 2, 0)
    fixed = (low == 0) & (width == 1) & (inverse == 1) & (kept == 0)
    _check_all(fixed[:, is_category], "the grid of a category is wrong in page {}")
    never = is_unknown if kernel.slots else ~is_category
    _check_all(grids[:, never] == 0, "there is a grid for what was never seen in page {}")
    laid = inverse > 0
    with np.errstate(divide="ignore", over="ignore"):
        good = np.where(laid, (width > 0) & (inverse == 1 / width), (inverse == 0) & (width == 0))
    _check_all(good, "the width of a grid is wrong in page {}")
    most = most_kept_rows(kernel.slots)
    good = (kept >= 0) & (kept == np.floor(kept)) & (kept <= most) & (laid | (kept < max(most, 1)))
    _check_all(good, "the number of rows that are kept is wrong in page {}")
    for feature in range(features):
        start, end = kernel.slot_start(feature), kernel.slot_start(feature + 1)
        page = watches[:, start:end]
        gaps = watches[:, kernel.gap_start(feature) : kernel.gap_start(feature + 1)]
        raw = ~laid[:, feature] & (kernel.slots > 0)
        if of_targets is None:
            _check_slots(page, leaves, raw, kept[:, feature])
            continue
        size = kernel.slot_doubles
        for target in range(kernel.targets):
            own = _of_target(page, gaps, raw, kept[:, feature], target)
            _check_slots(own, of_targets[:, target], raw, kept[:, feature], weightless=True)
        slots = page[~raw].reshape(np.count_nonzero(~raw), page.shape[1] // size, size)
        weight = slots[..., 0]
        _check_all(weight.sum(axis=1) <= ROUNDING * leaves["weight"][~raw] + 1e-300, MORE_ROWS)


def _of_target(page: Array, gaps: Array, raw: BoolArray, kept: Array, target: int) -> Array:
    """Return the slots of several targets as those of one of them."""
    pages = len(page)
    # A slot has 1 + 2 q doubles, and q are missing beside it.
    slots_of_page = page.shape[1] - 2 * gaps.shape[1]
    targets, size = gaps.shape[1] // slots_of_page, page.shape[1] // slots_of_page
    missing = gaps.reshape(pages, slots_of_page, targets)
    found = np.zeros((pages, missing.shape[1] * SLOT_DOUBLES))
    for at in range(pages):
        own = found[at].reshape(-1, SLOT_DOUBLES)
        slots = page[at].reshape(-1, size)
        count = len(slots)
        if raw[at]:
            count = int(kept[at])
            rows = page[at, : count * (size + 1)].reshape(count, size + 1)
            kept_rows = found[at, : count * KEPT_ROW].reshape(count, KEPT_ROW)
            kept_rows[:, :3] = _sums(rows, missing[at, :count], target)
            kept_rows[:, 3] = rows[:, size]
            check(bool((rows[:, 0] > 0).all()), "a row that is kept has no weight")
            own[-1] = _sums(slots[-1:], missing[at, -1:], target)
        else:
            own[:] = _sums(slots, missing[at], target)
    return found


def _sums(slots: Array, missing: Array, target: int) -> Array:
    """Return weight and sums of a target in slots; rounding alone may make the weight negative."""
    gap = missing[:, target]
    _check_all((gap >= 0) & (gap <= ROUNDING * slots[:, 0]), "a slot lacks more than it has")
    weight = np.maximum(slots[:, 0] - gap, 1e-9 * slots[:, 0])
    return np.column_stack([weight, slots[:, 1 + 2 * target], slots[:, 2 + 2 * target]])


def _check_slots(
    page: Array, leaves: Array, raw: BoolArray, kept: Array, *, weightless: bool = False
) -> None:
    """Check the slots of a feature in all pages, or the rows that are kept in their place."""
    size = SLOT_DOUBLES
    slots = page.reshape(len(page), page.shape[1] // size, size)
    _check_sums(slots[~raw], leaves[~raw], weightless)
    _check_sums(slots[raw, -1:], leaves[raw], weightless)
    for at in np.flatnonzero(raw):
        own, count = page[at, :-size], KEPT_ROW * int(kept[at])
        rows = own[:count].reshape(1, -1, KEPT_ROW)
        check(weightless or bool((rows[..., 0] > 0).all()), "a row that is kept has no weight")
        _check_sums(rows, leaves[at : at + 1], weightless)


def _check_sums(slots: Array, leaves: Array, weightless: bool = False) -> None:
    """Check weights and sums of slots, and that they are not of more rows than a leaf has seen.

    Of several targets the weight that is there is told by that which is missing, and is no more
    exact than that: where it is `weightless`, it is not compared.
    """
    weight, target, residual = slots[..., 0], slots[..., 1], slots[..., 2]
    _check_all(weight >= 0, "the weight of a slot is negative")
    good = weight.sum(axis=1) <= ROUNDING * leaves["weight"] + 1e-300
    _check_all(good | weightless, MORE_ROWS)
    # The mean of some of them becomes the origin of a child.
    from_origin = abs(target + leaves["origin"][:, None] * weight)
    _check_all(from_origin <= NEAR * weight, "the sum of y of a slot is wrong")
    _check_all(abs(residual) <= FAR * weight, "the sum of residuals of a slot is wrong")


def check_observers(
    observers: list[TableObserver], model: TableObserver, leaf: Array, watched: BoolArray
) -> None:
    """Check the observers of a leaf.

    Parameters
    ----------
    observers : list of observers
        One a feature, each valid by itself.
    model : observer
        What they have to be like.
    leaf : record
        Of the leaf.
    watched : array
        Of each feature whether it is a number that was seen.
    """
    expected = {**model._parameters(), "targets": 2}
    any_radius = getattr(model, "divisor", None) is not None
    for feature, observer in enumerate(observers):
        own = observer._parameters()
        if any_radius and isinstance(own.get("radius"), float):
            own["radius"] = expected["radius"]
        check(own == expected, f"the observer of feature {feature} is of another kind")
        check(bool(watched[feature]) or not len(observer), f"feature {feature} was never observed")
        _, table = observer._elements()
        total = float(table[:, WEIGHT].sum())
        good = total <= ROUNDING * leaf["weight"] + 1e-300
        check(bool(good), "observers have seen more rows than their leaf")
        for cell, origin, most in ((CELLS, leaf["origin"], NEAR), (CELLS + CELL, 0.0, FAR)):
            means = table[:, cell] + table[:, cell + 1] + origin
            check(bool((abs(means) <= most).all()), f"the y of feature {feature} are too far away")
