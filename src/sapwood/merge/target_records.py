"""What a merged model knows of each of several targets; of one target, these tables are empty."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.ensemble.layout import TARGET_RECORD
from sapwood.tree._kernel import TreeKernel

__all__ = ["errors_of_tree", "joined_targets", "no_targets", "targets_of_tree"]

Array = NDArray[Any]

COMMON = ("rows", "low", "high", "usual", "weight", "first", "mean", "m2")


def no_targets() -> Array:
    """Return the table of a model of one target."""
    return np.zeros(0, TARGET_RECORD)


def targets_of_tree(kernel: TreeKernel) -> Array:
    """Return what a tree knows of its targets, as a forest that has it as a member."""
    if kernel.targets == 1:
        return no_targets()
    streams = kernel.target_records.streams
    found = np.zeros(len(streams), TARGET_RECORD)
    for name in COMMON:
        found[name] = streams[name]
    return found


def errors_of_tree(kernel: TreeKernel, most_rows: float) -> Array:
    """Return squared errors and weights of a tree for each target, shape (1, targets, 2)."""
    if kernel.targets == 1:
        return np.zeros((1, 0, 2))
    streams = kernel.target_records.streams
    known = np.minimum(streams["rows"], most_rows)
    return np.stack([streams["usual"] * known, known], axis=1)[None]


def joined_targets(tables: Sequence[Array]) -> Array:
    """Return what is known of each target, of the rows of several models.

    - `tables`: what each model knows, of the same targets.
    """
    found = tables[0].copy()
    for table in tables[1:]:
        for place, other in enumerate(table):
            found[place] = _joined(found[place], other)
    return found


def _joined(one: Any, other: Any) -> Any:
    """Return what is known of a target of the rows of two models."""
    if one["rows"] == 0 or other["rows"] == 0:
        return (other if one["rows"] == 0 else one).copy()
    both, rows = one.copy(), one["rows"] + other["rows"]
    both["usual"] = (one["usual"] * one["rows"] + other["usual"] * other["rows"]) / rows
    both["rows"], both["begun"] = rows, one["begun"] + other["begun"]
    both["low"], both["high"] = min(one["low"], other["low"]), max(one["high"], other["high"])
    weight = both["weight"] = one["weight"] + other["weight"]
    if weight > 0:
        share = other["weight"] / weight
        delta = (other["first"] - one["first"]) + (other["mean"] - one["mean"])
        both["mean"] = one["mean"] + share * delta
        both["m2"] = one["m2"] + other["m2"] + one["weight"] * share * delta**2
    return both
