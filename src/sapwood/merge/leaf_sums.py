"""What rows have added to leaves and their targets, the same for any number of targets.

Moments began from nothing in each worker, and add. An exponentially weighted sum s becomes f^n s + c
after n rows, with the c of these rows alone and their mass 1 - f^n; c and mass add, and the sum of all
c is scaled to the mass that all rows would have had one after the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.merge import _delta
from sapwood.merge.layout import LEAF_DELTA, TARGET_DELTA, WEIGHTED_ERRORS
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.tree_state import by_target, leaves_by_target

__all__ = [
    "MOMENTS",
    "add_to_leaves",
    "added_to_leaves",
    "joined_leaves",
    "joined_moments",
    "joined_slots",
]

Array = NDArray[Any]

FADE = 0.99  # the factor of an exponentially weighted error of a leaf per row
MEANS = ("target", "residual")
MOMENTS = ("weight", *(f"{name}_{part}" for name in MEANS for part in ("mean", "m2")))


def joined_moments(one: Sequence[Any], other: Sequence[Any]) -> tuple[Any, Any]:
    """Return the mean and the sum of squares around it of two sets, given weight, mean and M2."""
    (weight, mean, m2), (added, other_mean, other_m2) = one, other
    total = weight + added
    share = np.divide(added, total, out=np.zeros(np.shape(total)), where=total > 0.0)
    apart = other_mean - mean
    return mean + apart * share, m2 + other_m2 + apart * apart * (weight * share)


def _join_moments(one: Array, other: Array) -> None:
    """Add weights and moments to those of records."""
    for name in MEANS:
        of = f"{name}_mean", f"{name}_m2"
        sets = [[each[part] for part in ("weight", *of)] for each in (one, other)]
        for part, joined in zip(of, joined_moments(*sets), strict=True):
            one[part] = joined
    one["weight"] += other["weight"]


def added_to_leaves(
    kernel: TreeKernel, before: dict[str, Array], laid: NDArray[np.uint8]
) -> dict[str, Array]:
    """Return what a tree has learned since it began to learn a shard.

    - `before`: leaves, target_leaves and models, as they were.
    - `laid`, shape (leaves, features): which grids there were.
    """
    leaves = kernel.leaf_table[: kernel.leaf_count]
    touched = np.flatnonzero(leaves["rows"] > before["leaves"]["rows"])
    old = by_target(before["leaves"], before.get("target_leaves"))[touched]
    new = leaves_by_target(kernel)[touched]
    sums, of_targets = np.zeros(len(touched), LEAF_DELTA), np.zeros(new.shape, TARGET_DELTA)
    for name in MOMENTS:
        of_targets[name] = new[name]
    of_targets["rows"] = new["rows"] - old["rows"]
    left = FADE ** of_targets["rows"]
    of_targets["mass"] = 1.0 - left
    for name in WEIGHTED_ERRORS:
        of_targets[name] = np.maximum(0.0, new[name] - left * old[name])
    counts, places, slots, parts_at, parts = _delta.extract_slots(kernel, touched, laid)
    sums["leaf"], sums["slots"] = touched, counts
    sums["rows"] = leaves["rows"][touched] - before["leaves"]["rows"][touched]
    sums["weight"] = leaves["weight"][touched]
    rows = np.ascontiguousarray(of_targets["rows"])
    return {
        "sums": sums,
        "target_sums": of_targets,
        "models": _delta.extract_models(kernel, touched, rows, before["models"]),
        "places": places,
        "slots": slots,
        "parts_at": parts_at,
        "parts": parts,
    }


def joined_leaves(one: dict[str, Array], other: dict[str, Array]) -> dict[str, Array]:
    """Return the sums of leaves, their targets, models and slots of two shards."""
    pairs = one, other
    both = np.concatenate([each["sums"]["leaf"] for each in pairs])
    leaves, inverse = np.unique(both, return_inverse=True)
    moved = np.split(inverse, [len(one["sums"])])
    sums = np.zeros(len(leaves), LEAF_DELTA)
    models = np.zeros((len(leaves), one["models"].shape[1]))
    of_targets = np.zeros((len(leaves), one["target_sums"].shape[1]), TARGET_DELTA)
    sums["leaf"] = leaves
    for each, places in zip(pairs, moved, strict=True):
        for name in ("rows", "weight"):
            sums[name][places] += each["sums"][name]
        models[places] += each["models"]
        joined = of_targets[places]
        _join_moments(joined, each["target_sums"])
        for name in ("rows", "mass", *WEIGHTED_ERRORS):
            joined[name] += each["target_sums"][name]
        of_targets[places] = joined
    leaf = [
        np.repeat(places, each["sums"]["slots"]) for each, places in zip(pairs, moved, strict=True)
    ]
    places, slots = (np.concatenate([each[name] for each in pairs]) for name in ("places", "slots"))
    found, sums["slots"] = joined_slots(np.concatenate(leaf), places, slots, len(leaves))
    return {"sums": sums, "target_sums": of_targets, "models": models, **found}


def joined_slots(
    leaf: Array, places: Array, slots: Array, leaves: int
) -> tuple[dict[str, Array], Array]:
    """Return the places and sums of slots, each once in ascending order, and how many a leaf has.

    - `leaf`, `places`, `slots`: of each slot its leaf, its place in there, and its sums.
    """
    width = int(places.max(initial=0)) + 1
    key, inverse = np.unique(leaf * width + places.astype(np.int64), return_inverse=True)
    sums = np.zeros((len(key), slots.shape[1]))
    for column in range(slots.shape[1]):
        sums[:, column] = np.bincount(inverse, slots[:, column], len(key))
    counts = np.bincount(key // width, minlength=leaves)
    return {"places": (key % width).astype(np.uint32), "slots": sums}, counts


def add_to_leaves(kernel: TreeKernel, arrays: dict[str, Array]) -> None:
    """Add a delta, which was checked, to the leaves of a tree that has its features."""
    sums, added = arrays["sums"], arrays["target_sums"]
    leaves, touched = kernel.leaf_table[: kernel.leaf_count], sums["leaf"]
    table = leaves_by_target(kernel)
    own = table[touched]
    some = added["rows"] > 0.0
    share = np.divide(
        added["weight"], own["mean_weight"] + added["weight"], out=np.zeros(own.shape), where=some
    )
    own["mean"] += (added["target_mean"] - own["mean"]) * share
    own["mean_weight"] += added["weight"]
    _join_moments(own, added)
    own["rows"] += added["rows"]
    left = FADE ** added["rows"]
    scale = np.divide(1.0 - left, added["mass"], out=np.zeros(own.shape), where=some)
    for name in WEIGHTED_ERRORS:
        own[name] = left * own[name] + scale * added[name]
    table[touched] = own
    if kernel.targets > 1:
        for name in ("rows", "weight"):
            leaves[name][touched] += sums[name]
    rows = np.ascontiguousarray(added["rows"])
    _delta.add_models(kernel, touched, rows, arrays["models"])
    _delta.add_slots(kernel, touched, sums["slots"], arrays["places"], arrays["slots"])
    _delta.lay_parts(kernel, arrays["parts_at"], arrays["parts"])
