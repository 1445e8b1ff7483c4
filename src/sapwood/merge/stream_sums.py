"""What rows have added to what a tree knows of each target over all rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.merge.leaf_sums import joined_moments
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.layout import STREAM
from sapwood.tree.tree_state import leaves_by_target

__all__ = ["add_to_streams", "records_of_streams", "stream_added"]

Array = NDArray[Any]

USUAL_FADE = 1.0 - 1.0 / 1000.0  # the factor of the usual error per row


def records_of_streams(kernel: TreeKernel) -> Array:
    """Return what a tree knows of each target: of one, a copy of what it knows of all rows."""
    if kernel.targets > 1:
        found: Array = kernel.target_records.streams
        return found
    own = np.zeros(1, [(name, np.float64) for name in STREAM])
    for name in STREAM:
        own[name] = kernel.stream[name]
    return own


def stream_added(kernel: TreeKernel, before: Array) -> Array:
    """Return what rows have added, as STREAM of each target.

    - `before`: what `records_of_streams` had returned.
    """
    now = records_of_streams(kernel)
    rows = now["rows"] - before["rows"]
    left = USUAL_FADE**rows
    usual = np.maximum(0.0, now["usual"] - left * before["usual"])
    return np.column_stack([rows, now["low"], now["high"], 1.0 - left, usual])


def add_to_streams(kernel: TreeKernel, arrays: dict[str, Array]) -> None:
    """Let a tree know of the rows of a delta, before its leaves do."""
    own, sums = records_of_streams(kernel), arrays["sums"]
    rows, low, high, mass, usual = arrays["stream"].T
    if kernel.targets > 1:
        _add_moments(kernel, arrays)
    left = USUAL_FADE**rows
    share = np.divide(1.0 - left, mass, out=np.zeros(len(rows)), where=mass > 0.0)
    own["usual"] = left * own["usual"] + share * usual
    own["rows"] += rows
    own["low"], own["high"] = np.minimum(own["low"], low), np.maximum(own["high"], high)
    stream = {name: float(kernel.stream[name]) for name in STREAM}
    if kernel.targets == 1:
        stream = {name: float(own[name][0]) for name in STREAM}
    stream["rows"] = kernel.rows + float(sums["rows"].sum())
    stream["weight"] = kernel.weight + float(sums["weight"].sum())
    kernel.set_stream(**stream)


def _add_moments(kernel: TreeKernel, arrays: dict[str, Array]) -> None:
    """Add the moments of all leaves, which are measured from the origin of each, to those of y."""
    streams, added = kernel.target_records.streams, arrays["target_sums"]
    origins = leaves_by_target(kernel)["origin"][arrays["sums"]["leaf"]]
    for leaf, origin in zip(added, origins, strict=True):
        own = streams["weight"], streams["mean"], streams["m2"]
        means = origin - streams["first"] + leaf["target_mean"]
        joined = joined_moments(own, (leaf["weight"], means, leaf["target_m2"]))
        streams["mean"], streams["m2"] = joined
        streams["weight"] += leaf["weight"]
