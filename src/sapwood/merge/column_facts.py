"""What shards have found out about columns, and how it is joined.

Of each column a delta contains the grid that its values lie on, their range, and for each target what
rows have added to its cost and to the weight of that (see `sapwood/tree/_facts.pxd`), and the same
exponentially weighted in the worker. Grids join to the finest, sums add, ranges join to the widest;
the weighted sums of all workers together take the place of what the tree had.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import ROUNDING, SQUARE
from sapwood.records import LARGEST, check, doubles
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.layout import COARSEST_GRID, FINER_THAN_GRIDS

__all__ = [
    "aligned_facts",
    "check_facts",
    "facts_added",
    "joined_facts",
    "records_of_costs",
    "take_facts",
]

Array = NDArray[Any]

OF_COLUMN = ("decimals", "low", "high")
OF_TARGET = ("cost", "weight", "late_cost", "late_weight")


def records_of_costs(kernel: TreeKernel) -> Array:
    """Return the records that hold what columns cost each target, shape (columns, targets)."""
    columns, targets = kernel.columns, kernel.targets
    found: Array = columns.known_facts if targets == 1 else columns.known_costs
    return found.reshape(kernel.features, targets)


def facts_added(kernel: TreeKernel, before: Array) -> Array:
    """Return what a worker's rows have added, a row for each feature.

    - `before`: the costs that `records_of_costs` has returned, of the features known then.
    """
    facts, costs = kernel.columns.known_facts, records_of_costs(kernel)
    own = np.stack([costs[name] for name in OF_TARGET], axis=2)
    for place, name in enumerate(("cost", "weight")):
        own[: len(before), :, place] -= before[name]
    own[..., 1] = np.maximum(own[..., 1], 0.0)
    return np.column_stack([*(facts[name] for name in OF_COLUMN), own.reshape(len(own), -1)])


def aligned_facts(added: Array, features: Array, count: int) -> Array:
    """Return facts for so many features, of which these are known."""
    result = np.zeros((count, added.shape[1]))
    result[:, :3] = COARSEST_GRID, LARGEST, -LARGEST
    result[features] = added
    return result


def joined_facts(one: Array, two: Array) -> Array:
    """Return the facts of the rows of both deltas."""
    joins = np.maximum, np.minimum, np.maximum
    ranges = [join(one[:, place], two[:, place]) for place, join in enumerate(joins)]
    return np.column_stack([*ranges, one[:, 3:] + two[:, 3:]])


def take_facts(kernel: TreeKernel, added: Array) -> None:
    """Let a tree know what all shards have found out."""
    facts, costs = kernel.columns.known_facts, records_of_costs(kernel)
    decimals, low, high = added[:, :3].T
    facts["low"] = np.minimum(facts["low"], low)
    facts["high"] = np.maximum(facts["high"], high)
    facts["decimals"] = np.maximum(facts["decimals"], decimals)
    cost, weight, late_cost, late_weight = np.moveaxis(added[:, 3:].reshape(*costs.shape, 4), 2, 0)
    costs["cost"] += cost
    costs["weight"] += weight
    known = late_weight > 0.0
    # An exponentially weighted sum weighs no more than all rows do.
    share = np.minimum(1.0, kernel.weight / np.where(known, late_weight, 1.0))
    costs["late_cost"] = np.where(known, share * late_cost, costs["late_cost"])
    costs["late_weight"] = np.where(known, share * late_weight, costs["late_weight"])


def check_facts(added: Array, shape: tuple[int, int], weight: float) -> None:
    """Raise ValueError unless this is what rows of some weight can have added.

    - `shape`: the numbers of features and of targets.
    """
    doubles(added, (shape[0], 3 + 4 * shape[1]), "its facts of columns")
    decimals = added[:, 0]
    good = (decimals == np.floor(decimals)) & (decimals >= COARSEST_GRID)
    check(bool((good & (decimals <= FINER_THAN_GRIDS)).all()), "there is no such grid of a column")
    cost, own, late_cost, late = np.moveaxis(added[:, 3:].reshape(*shape, 4), 2, 0)
    good_weight = (own >= 0) & (own <= 8 * ROUNDING * weight)  # a row counts for up to 8
    check(bool(good_weight.all()), "the weight of a cost is wrong")
    check(bool((late >= 0).all()), "the weight of an exponentially weighted cost is wrong")
    good = (abs(cost) <= 4 * SQUARE * (own + 1)) & (abs(late_cost) <= SQUARE * late)
    check(bool(good.all()), "the cost of a column is wrong")
