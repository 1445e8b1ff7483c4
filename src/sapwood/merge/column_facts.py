"""What shards have found out about columns, and how it is joined.

Of each column a delta contains the grid that its values lie on, what rows have added to its cost
and to the weight of that (see `sapwood/tree/_facts.pxd`), the same exponentially weighted in the
worker, and the range of its values. Grids join to the finest, sums add, ranges join to the widest;
the weighted sums of all workers together take the place of what the tree had.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import ROUNDING, SQUARE
from sapwood.records import LARGEST, check, doubles
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.layout import COARSEST_GRID, FINER_THAN_GRIDS

__all__ = ["aligned_facts", "check_facts", "facts_added", "joined_facts", "take_facts"]

Array = NDArray[Any]

NAMES = ("decimals", "cost", "weight", "late_cost", "late_weight", "low", "high")


def facts_added(kernel: TreeKernel, before: Array) -> Array:
    """Return what a worker's rows have added to the facts of `before`, a row for each feature."""
    facts = kernel.columns.known_facts
    added = np.column_stack([facts[name] for name in NAMES])
    for place, name in ((1, "cost"), (2, "weight")):
        added[: len(before), place] -= before[name]
    added[:, 2] = np.maximum(added[:, 2], 0.0)
    return added


def aligned_facts(added: Array, features: Array, count: int) -> Array:
    """Return facts for so many features, of which these are known."""
    result = np.zeros((count, len(NAMES)))
    result[:, 0], result[:, 5], result[:, 6] = COARSEST_GRID, LARGEST, -LARGEST
    result[features] = added
    return result


def joined_facts(one: Array, two: Array) -> Array:
    """Return the facts of the rows of both deltas."""
    return np.column_stack(
        [
            np.maximum(one[:, 0], two[:, 0]),
            one[:, 1:5] + two[:, 1:5],
            np.minimum(one[:, 5], two[:, 5]),
            np.maximum(one[:, 6], two[:, 6]),
        ]
    )


def take_facts(kernel: TreeKernel, added: Array) -> None:
    """Let a tree know what all shards have found out."""
    facts = kernel.columns.known_facts
    decimals, cost, weight, late_cost, late_weight, low, high = added.T
    facts["low"] = np.minimum(facts["low"], low)
    facts["high"] = np.maximum(facts["high"], high)
    facts["decimals"] = np.maximum(facts["decimals"], decimals)
    facts["cost"] += cost
    facts["weight"] += weight
    known = late_weight > 0.0
    # What fades weighs no more than all rows do.
    share = np.minimum(1.0, kernel.weight / np.where(known, late_weight, 1.0))
    facts["late_cost"] = np.where(known, share * late_cost, facts["late_cost"])
    facts["late_weight"] = np.where(known, share * late_weight, facts["late_weight"])


def check_facts(added: Array, features: int, weight: float) -> None:
    """Raise ValueError unless this is what rows of some weight can have added."""
    doubles(added, (features, len(NAMES)), "its facts of columns")
    decimals, cost, own, late_cost, late, _, _ = added.T
    good = (decimals == np.floor(decimals)) & (decimals >= COARSEST_GRID)
    check(bool((good & (decimals <= FINER_THAN_GRIDS)).all()), "there is no such grid of a column")
    good_weight = (own >= 0) & (own <= 8 * ROUNDING * weight)  # a row counts for up to 8
    check(bool(good_weight.all()), "the weight of a cost is wrong")
    check(bool((late >= 0).all()), "the weight of an exponentially weighted cost is wrong")
    good = (abs(cost) <= 4 * SQUARE * (own + 1)) & (abs(late_cost) <= SQUARE * late)
    check(bool(good.all()), "the cost of a column is wrong")
