"""What has to hold for the nodes and leaves of a tree, and for what it knows of all rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.records import check, check_all
from sapwood.tree.layout import CATEGORY, LEAF, LEAVES, LISTED, NODES, STREAM_NUMBERS, Limits

__all__ = ["check_leaves", "check_nodes", "check_stream"]

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]


def check_stream(stream: Array, leaves: int) -> None:
    """Check the numbers of STREAM in a tree of so many leaves."""
    numbers = stream.view(STREAM_NUMBERS.dtype)
    rows, weight, first, low, high = stream[:5].tolist()
    STREAM_NUMBERS.check(numbers, Limits(rows, weight, 0))
    check((rows == 0) == (weight == 0), "there are rows without weight, or weight without rows")
    check(low <= first <= high, "the range of y is wrong")
    check(rows > 0 or (low == high == 0 and leaves == 1), "a tree without rows has learned")


def check_nodes(
    nodes: Array,
    leaves: Array,
    limits: Limits,
    kinds: tuple[BoolArray, BoolArray, BoolArray],
    max_depth: int,
) -> None:
    """Check that nodes are a tree whose leaves are the leaves, each of them once.

    Parameters
    ----------
    nodes, leaves : arrays
        The tables.
    limits : Limits
        What bounds their numbers.
    kinds : tuple of arrays
        Of each feature whether it is a low-cardinality category, whether it is not known what it
        is, and whether it is a high-cardinality category.
    max_depth : int
        How deep the tree may be.
    """
    NODES.check(nodes, limits)
    count, number = len(nodes), np.arange(len(nodes))
    kind, child, parent, depth, feature = (
        nodes[name].astype(np.int64) for name in ("kind", "child", "parent", "depth", "feature")
    )
    inner = kind != LEAF
    check(parent[0] == -1 and depth[0] == 0, "the first node is not the root")
    check_all(~inner | ((child > number) & (child < count - 1)), "the child of node {} is no node")
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
    own = feature[inner]
    check(len(is_category) > 0 or not len(own), "a node splits without a feature")
    check(
        np.array_equal(is_category[own], kind[inner] == CATEGORY)
        and not is_unknown[own].any()
        and bool((is_many[own] | (kind[inner] != LISTED)).all()),
        "a node splits on a feature of another kind",
    )


def check_leaves(leaves: Array, limits: Limits) -> None:
    """Check what leaves know, and that one that does not watch is never decided on."""
    LEAVES.check(leaves, limits)
    for name in ("due", "review"):
        never = leaves[name] == np.inf
        check_all(never == (leaves["watching"] == 0), f"the {name} of leaf {{}} is wrong")
