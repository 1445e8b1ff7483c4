"""How the tables of a tree change: the first leaf, a split, another set of features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.observers.base import TableObserver
from sapwood.tree import _children, _leaf
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._tables import GRID_DOUBLES, SLOT_DOUBLES
from sapwood.tree.growth import FIRST_REVIEW, Cut
from sapwood.tree.observing import Observing
from sapwood.tree.tables import CATEGORY, LEAF_RECORD, NODE_RECORD, NUMBER

__all__ = ["plant", "relay", "split", "table_room", "unwatch", "watch"]

FloatArray = NDArray[np.float64]

# Of a side: its weight, and the sums of y and of the residual.
TARGET_SUM, RESIDUAL_SUM = 1, 2
ALL_CATEGORIES = (1 << 64) - 1


def plant(kernel: TreeKernel, observing: Observing) -> None:
    """Make a tree of one leaf that knows nothing."""
    kernel.set_tables(np.zeros(table_room(1), NODE_RECORD), np.zeros(table_room(1), LEAF_RECORD))
    kernel.set_counts(1, 1)
    kernel.node_table[0]["parent"] = -1
    kernel.set_pages(0, _children.fresh_model(kernel) if kernel.linear else None, None)
    watch(kernel, observing, 0)


def watch(kernel: TreeKernel, observing: Observing, leaf: int) -> None:
    """Let a leaf watch its features, from nothing."""
    observers = observing.fresh(kernel.features) if observing.by_observers else None
    kernel.set_pages(leaf, kernel.model_pages[leaf], _children.fresh_watch(kernel), observers)
    kernel.restart(leaf, FIRST_REVIEW)


def unwatch(kernel: TreeKernel, leaf: int) -> None:
    """Let a leaf forget what it watched, and no longer watch."""
    kernel.set_pages(leaf, kernel.model_pages[leaf], None)
    kernel.set_due(leaf, np.inf, np.inf)


def table_room(rows: int) -> int:
    """Return how many rows a table should have room for that needs so many."""
    return max(16, rows + rows // 2)


def split(kernel: TreeKernel, observing: Observing, leaf: int, cut: Cut, grace: float) -> None:
    """Turn a leaf into a node with two leaves, which start from what the split knows."""
    is_category = bool(observing.is_category[cut.feature])
    threshold = observing.threshold(kernel, leaf, cut.feature, cut.place)
    sides, seen = _leaf.sides_of(kernel, leaf, cut.feature, cut.place, cut.subset)
    missing_left = _missing_goes_left(sides, TARGET_SUM if cut.of_target else RESIDUAL_SUM)
    subset = cut.subset
    if is_category and missing_left:
        subset |= ALL_CATEGORIES & ~seen
    observers = _child_observers(kernel, observing, leaf)
    if not kernel.has_room:
        _make_room(kernel)
    _children.divide(
        kernel,
        leaf,
        CATEGORY if is_category else NUMBER,
        cut.feature,
        cut.place,
        threshold,
        subset,
        missing_left,
        cut.merit,
        sides,
        grace,
    )
    if observers is not None:
        for child, watching in zip((leaf, kernel.leaf_count - 1), observers, strict=True):
            kernel.set_pages(child, kernel.model_pages[child], kernel.watch_pages[child], watching)


def _child_observers(
    kernel: TreeKernel, observing: Observing, leaf: int
) -> list[list[TableObserver]] | None:
    """Return the observers of both children, by the deviations of the features in the leaf."""
    if not observing.by_observers:
        return None
    deviations = [_leaf.deviation_of(kernel, leaf, f) for f in range(kernel.features)]
    return [observing.fresh(kernel.features, deviations) for _ in range(2)]


def _missing_goes_left(sides: list[tuple[float, float, float]], total: int) -> bool:
    """Send missing values where y (or the residual) is nearer to theirs; else to the heavier side.

    Sides are the left one, the right one and the rows without a value; `total` says which of
    their sums counts.
    """
    left, right, missing = sides
    if missing[0] == 0.0:
        return left[0] >= right[0]
    mean = missing[total] / missing[0]
    return abs(left[total] / left[0] - mean) <= abs(right[total] / right[0] - mean)


def _make_room(kernel: TreeKernel) -> None:
    """Let the tables have room for one more split."""
    kernel.set_tables(
        _with_room(kernel.node_table, kernel.node_count + 2),
        _with_room(kernel.leaf_table, kernel.leaf_count + 1),
    )


def _with_room(table: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return a table, or a longer copy if it has fewer rows than are needed."""
    if rows <= len(table):
        return table
    longer = np.zeros(table_room(rows), table.dtype)
    longer.view(np.uint8)[: table.nbytes] = table.view(np.uint8)
    return longer


def relay(kernel: TreeKernel, observing: Observing, is_category: NDArray[np.bool_]) -> None:
    """Give all pages the layout for another set of features: more of them, or of other kinds."""
    old, old_kinds = _Layout(kernel), observing.is_category
    models, watches, observers = kernel.model_pages[:], kernel.watch_pages[:], kernel.observers[:]
    kernel.set_features(is_category)
    observing.is_category = is_category
    new = _Layout(kernel)
    same = [f for f in range(old.features) if old_kinds[f] == is_category[f]]
    for leaf in range(kernel.leaf_count):
        model = watching = stores = None
        if kernel.linear:
            model = _children.fresh_model(kernel)
            _copy_model(models[leaf], old, model, new)
        if watches[leaf] is not None:
            watching = _children.fresh_watch(kernel)
            _copy_watch(watches[leaf], old, watching, new, same)
        if observers[leaf] is not None:
            stores = observing.fresh(kernel.features)
            stores[: old.features] = observers[leaf]
        kernel.set_pages(leaf, model, watching, stores)
        models[leaf] = watches[leaf] = observers[leaf] = None  # both layouts need not exist at once


class _Layout:
    """Where the parts of pages are, for a set of features."""

    def __init__(self, kernel: TreeKernel) -> None:
        self.features = kernel.features
        self.centres, self.scales, self.covariance, self.terms = kernel.page_parts()
        self.slots = [kernel.slot_start(feature) for feature in range(kernel.features + 1)]


def _copy_model(source: FloatArray, old: _Layout, target: FloatArray, new: _Layout) -> None:
    rates = old.centres // old.terms
    known = old.features + 1
    target[: rates * known] = source[: rates * known]
    target[new.centres : new.centres + old.features] = source[old.centres : old.scales]
    target[new.scales : new.scales + old.features] = source[old.scales : old.covariance]
    before, after = source[old.covariance :], target[new.covariance :]
    if len(after) == new.terms:
        diagonal = before if len(before) == old.terms else before[:: old.terms + 1]
        after[:known] = diagonal[:known]
    elif len(before) == old.terms:
        after[: (new.terms + 1) * known : new.terms + 1] = before[:known]
    else:
        square = after.reshape(new.terms, new.terms)
        square[:known, :known] = before.reshape(old.terms, old.terms)[:known, :known]


def _copy_watch(
    source: FloatArray, old: _Layout, target: FloatArray, new: _Layout, same: list[int]
) -> None:
    for feature in same:
        grid = slice(GRID_DOUBLES * feature, GRID_DOUBLES * (feature + 1))
        target[grid] = source[grid]
        target[new.slots[feature] : new.slots[feature + 1]] = source[
            old.slots[feature] : old.slots[feature + 1]
        ]
    for feature in set(range(old.features)) - set(same):
        # It was missing in all rows so far.
        target[new.slots[feature + 1] - SLOT_DOUBLES : new.slots[feature + 1]] = source[
            old.slots[feature + 1] - SLOT_DOUBLES : old.slots[feature + 1]
        ]
