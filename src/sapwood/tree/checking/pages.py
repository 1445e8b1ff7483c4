"""What has to hold for the pages of leaves, and for their observers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import FAR, NEAR, ROUNDING
from sapwood.observers.base import TableObserver
from sapwood.observers.packing import CELL, CELLS, WEIGHT
from sapwood.records import check, check_all
from sapwood.tree._column_tables import GRID_DOUBLES, SLOT_DOUBLES
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._tables import most_kept_rows
from sapwood.tree.leaf_observers import columns_for

__all__ = ["check_models", "check_observers", "check_watches"]

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]

# The reach of centres and scales (see `review` in _review.pyx), and more than coefficients come to.
MOST_SCALE, MOST_COEFFICIENT = 1e300, 1e150
# What `rescale` in _review.pyx allows of variances: of coefficients, and of the constant. Rows only
# make them smaller: all rows that can be counted, at their largest, down to 1e-27.
LEAST_VARIANCE, MOST_VARIANCE, MOST_OF_CONSTANT = 1e-31, 1e3, 1e6
# A covariance is positive definite; in terms of correlations, rounding makes up for less than this.
DEFINITE = 1e-9
INEXACT = 1e-8  # share of a leaf's weight by which that of one of its targets may be off
KEPT_ROW = SLOT_DOUBLES + 1  # doubles
MORE_ROWS = "slots have seen more rows than their leaf"


def check_models(models: Array, kernel: TreeKernel) -> None:
    """Check the pages of linear models."""
    if not kernel.linear:
        return
    for target in range(kernel.targets):
        start, rest = kernel.model_place(target)
        own = models[:, start : start + kernel.page_parts()[0]]
        check_all(abs(own) <= MOST_COEFFICIENT, "a coefficient of leaf {} is wrong")
        if start == rest:  # it has a page of its own, or shares that of the first
            _check_rest(models[:, rest : rest + kernel.page_size], kernel)


def _check_rest(models: Array, kernel: TreeKernel) -> None:
    """Check centres, scales and covariances."""
    centres, scales, covariance, terms = kernel.page_parts()
    check_all(abs(models[:, centres:scales]) <= MOST_SCALE, "a centre of leaf {} is wrong")
    own = models[:, scales:covariance]
    check_all((own >= 0) & (own <= ROUNDING * MOST_SCALE), "a scale of leaf {} is wrong")
    matrix = models[:, covariance:]
    variances = matrix if matrix.shape[1] == terms else matrix[:, :: terms + 1]
    most = np.full(terms, MOST_VARIANCE)
    most[0] = MOST_OF_CONSTANT
    good = (variances >= LEAST_VARIANCE) & (variances <= ROUNDING * most)
    check_all(good, "a variance of leaf {} is wrong")
    if matrix.shape[1] != terms:
        square = matrix.reshape(-1, terms, terms)
        check_all(square == square.transpose(0, 2, 1), "a covariance of leaf {} is not symmetric")
        check_all(_are_definite(square), "the covariances of leaf {} contradict each other")


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
    check_all(fixed[:, is_category], "the grid of a category is wrong in page {}")
    never = is_unknown if kernel.slots else ~is_category
    check_all(grids[:, never] == 0, "there is a grid for what was never seen in page {}")
    laid = inverse > 0
    with np.errstate(divide="ignore", over="ignore"):
        good = np.where(laid, (width > 0) & (inverse == 1 / width), (inverse == 0) & (width == 0))
    check_all(good, "the width of a grid is wrong in page {}")
    most = most_kept_rows(kernel.slots)
    good = (kept >= 0) & (kept == np.floor(kept)) & (kept <= most) & (laid | (kept < max(most, 1)))
    check_all(good, "the number of rows that are kept is wrong in page {}")
    for feature in range(features):
        start, end = kernel.slot_start(feature), kernel.slot_start(feature + 1)
        page = watches[:, start:end]
        gaps = watches[:, kernel.gap_start(feature) : kernel.gap_start(feature + 1)]
        raw = ~laid[:, feature] & (kernel.slots > 0)
        if of_targets is None:
            _check_slots(page, leaves, raw, kept[:, feature])
            continue
        _check_targets(page, gaps, raw, kept[:, feature], (leaves, of_targets))


def _check_targets(
    page: Array, gaps: Array, raw: BoolArray, kept: Array, records: tuple[Array, Array]
) -> None:
    """Check the slots of a feature of several targets in all pages, or the rows in their place.

    Parameters
    ----------
    page, gaps : array
        The slots, of 1 + 2 q doubles each, and the weight that each lacks of q targets.
    raw : array of bool
        Whether rows are kept in the place of slots.
    kept : array
        How many.
    records : tuple of arrays
        The record of each leaf, and those of its targets.
    """
    leaves, of_targets = records
    pages, count = len(page), page.shape[1] - 2 * gaps.shape[1]
    if not pages * count:
        return
    slots, missing = page.reshape(pages, count, -1), gaps.reshape(pages, count, -1)
    slack = INEXACT * leaves["weight"]

    def check_part(own: Array, lacking: Array, where: BoolArray) -> None:
        weight, gap = own[..., :1], lacking
        check_all((gap >= 0) & (gap <= ROUNDING * weight), "a slot lacks more than it has")
        # Rounding alone may make the weight of a target negative.
        known = np.maximum(weight - gap, 0.1 * INEXACT * weight)
        width = 1 + 2 * gap.shape[2]
        sums = known, own[..., 1:width:2], own[..., 2:width:2]
        _check_sums(sums, of_targets[where], slack[where, None])

    check_part(slots[~raw], missing[~raw], ~raw)
    weight = slots[~raw, :, 0]
    check_all(weight.sum(axis=1) <= ROUNDING * leaves["weight"][~raw] + 1e-300, MORE_ROWS)
    check_part(slots[raw, -1:], missing[raw, -1:], raw)
    counts = kept[raw].astype(np.int64)
    most, size = int(counts.max(initial=0)), slots.shape[2] + 1
    rows = page[raw, : most * size].reshape(len(counts), most, size).copy()
    is_row = np.arange(most) < counts[:, None]
    check_all((rows[..., 0] > 0) | ~is_row, "a row that is kept has no weight")
    rows[~is_row] = 0.0
    check_part(rows, np.where(is_row[..., None], missing[raw, :most], 0.0), raw)


def _check_slots(page: Array, leaves: Array, raw: BoolArray, kept: Array) -> None:
    """Check the slots of a feature in all pages, or the rows that are kept in their place."""
    size = SLOT_DOUBLES
    slots = page.reshape(len(page), page.shape[1] // size, size)
    _check_sums(np.moveaxis(slots[~raw], 2, 0), leaves[~raw], 0.0)
    _check_sums(np.moveaxis(slots[raw, -1:], 2, 0), leaves[raw], 0.0)
    for at in np.flatnonzero(raw):
        own, count = page[at, :-size], KEPT_ROW * int(kept[at])
        rows = own[:count].reshape(1, -1, KEPT_ROW)
        check(bool((rows[..., 0] > 0).all()), "a row that is kept has no weight")
        _check_sums(np.moveaxis(rows, 2, 0)[:size], leaves[at : at + 1], 0.0)


def _check_sums(sums: Any, leaves: Array, slack: Any) -> None:
    """Check weights and sums of slots, and that they are not of more rows than a leaf has seen.

    Parameters
    ----------
    sums : sequence of arrays, shape (pages, slots) or (pages, slots, targets)
        Weight, sum of y and sum of residuals.
    leaves : array of records, shape (pages,) or (pages, targets)
        Of the leaves.
    slack : float or array
        By how much weights may be off: of several targets the weight that is there is known by
        that which is missing, and is no more exact than that.
    """
    weight, target, residual = sums
    check_all(weight >= 0, "the weight of a slot is negative")
    good = weight.sum(axis=1) <= ROUNDING * leaves["weight"] + slack + 1e-300
    check_all(good, MORE_ROWS)
    # The mean of some of them becomes the origin of a child.
    from_origin = abs(target + leaves["origin"][:, None] * weight)
    check_all(from_origin <= NEAR * weight, "the sum of y of a slot is wrong")
    check_all(abs(residual) <= FAR * weight, "the sum of residuals of a slot is wrong")


def check_observers(
    observers: list[TableObserver],
    model: TableObserver,
    leaf: Array,
    origins: Array,
    watched: BoolArray,
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
    origins : array
        From where it measures the y of each target.
    watched : array
        Of each feature whether it is a number that was seen.
    """
    expected = {**model._parameters(), "targets": columns_for(len(origins))}
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
        cells = table[:, CELLS:].reshape(len(table), observer.targets, CELL)
        means, both = cells[..., 0] + cells[..., 1], 2 * len(origins)
        near = (abs(means[:, :both:2] + origins) <= NEAR) & (abs(means[:, 1:both:2]) <= FAR)
        check(bool(near.all()), f"the y of feature {feature} are too far away")
        lacking = means[:, both:]
        some = (lacking >= 0) & (lacking <= ROUNDING)
        check(bool(some.all()), f"feature {feature} lacks more rows than it has")
