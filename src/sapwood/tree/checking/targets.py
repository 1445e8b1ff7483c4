"""What has to hold for what a tree of several targets knows of each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.records import check_all
from sapwood.tree.layout import TARGET_LEAVES, TARGET_NODES, TARGET_STREAMS, Limits

__all__ = ["check_targets"]

Array = NDArray[Any]


def check_targets(
    streams: Array, leaves: Array, nodes: Array, records: Array, limits: Limits
) -> None:
    """Check what a tree of several targets knows of each.

    Parameters
    ----------
    streams, leaves, nodes : arrays
        Of TARGET_STREAM, TARGET_LEAF and TARGET_NODE.
    records : array
        The records of the leaves, all targets together.
    limits : Limits
        What bounds their numbers.
    """
    TARGET_STREAMS.check(streams, limits)
    check_all(streams["rows"] == np.floor(streams["rows"]), "target {} has no number of rows")
    known = streams["rows"] > 0
    check_all(known == (streams["weight"] > 0), "target {} has rows without weight, or weight")
    good = (streams["low"] <= streams["first"]) & (streams["first"] <= streams["high"])
    check_all(good, "the range of target {} is wrong")
    TARGET_LEAVES.check(leaves, limits._replace(leaves=np.repeat(records, len(streams))))
    TARGET_NODES.check(nodes, limits)
