"""What has to hold for a split on trial."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import FAR, ROUNDING
from sapwood.records import check
from sapwood.tree._column_tables import GRID_DOUBLES
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._tables import most_kept_rows
from sapwood.tree.layout import CODES, TRIAL, Limits

__all__ = ["check_trial"]

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]


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
        That knows the layout, and all rows.
    """
    check(len(trial) == 1, "there is not one trial")
    own = trial[0]
    if own["leaf"] < 0:
        return
    is_category, is_unknown, _ = kinds
    check(kernel.slots > 0, "there is a trial split in a tree with observers")
    check(own["leaf"] < len(leaves), "the trial is that of a leaf that there is not")
    leaf = leaves[own["leaf"]]
    check(bool(leaf["watching"]), "the trial is that of a leaf that does not watch")
    TRIAL.check(trial, Limits(kernel.rows, kernel.weight, kernel.features))
    check(not is_unknown[own["feature"]], "the trial has a feature that was never seen")
    codes = CODES if is_category[own["feature"]] else kernel.slots
    check(0 <= own["place"] < codes, "the trial is at a place that there is not")
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
    start, end = kernel.slot_start(0), kernel.slot_start(features)
    slots = pages[:, start:end].reshape(2, -1, kernel.slot_doubles)
    weight = slots[..., :1]
    good = (weight >= 0) & (abs(slots[..., 1::2]) <= FAR * weight)
    check(bool(good.all()), "a slot of the trial is wrong")
    gaps = pages[:, end:].reshape(2, slots.shape[1], -1)
    good = (gaps >= 0) & (gaps <= ROUNDING * weight)
    check(bool(good.all()), "a slot of the trial lacks more than it has")
