"""A tree without what is below one of its nodes, which becomes a leaf again.

Nodes and leaves that stay move up, in their order, so that tables have no gaps. Their pages stay
where they are: `sapwood/tree/_pruning.pyx` puts the new tables in place between two rows. The new
leaf knows what the leaves below knew together: `sapwood.tree.joining`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.records import Records
from sapwood.rows.features import Features
from sapwood.tree import _memory, memory
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._pruning import OtherSplits, remove_leaves
from sapwood.tree._target_records import TargetRecords
from sapwood.tree.joining import Joined, joined_models, joined_records, mean_of, shares_of
from sapwood.tree.layout import LEAF
from sapwood.tree.memory import MemoryRules, bytes_of_names
from sapwood.tree.tree_state import by_target, leaves_by_target
from sapwood.validation import Label

__all__ = ["other_splits", "prune"]

Array = NDArray[Any]
IntArray = NDArray[np.int32]


class Cut(NamedTuple):
    """Which nodes and leaves there are without those below a node.

    Attributes
    ----------
    node : int
        That becomes a leaf.
    kept_nodes, kept_leaves : arrays of bool
        Those that stay; of the leaves below, the first, whose record becomes that of the node.
    nodes, leaves : arrays of int
        Their new numbers.
    below : array of int
        The leaves that become one.
    """

    node: int
    kept_nodes: NDArray[np.bool_]
    kept_leaves: NDArray[np.bool_]
    nodes: NDArray[np.intp]
    leaves: NDArray[np.intp]
    below: NDArray[np.intp]

    @classmethod
    def at(cls, nodes: Records, node: int) -> "Cut":
        """Return what stays of a tree, given its table of nodes."""
        is_gone = np.zeros(len(nodes), dtype=np.bool_)
        lefts = nodes["child"][[node]]
        while len(lefts):
            children = np.concatenate([lefts, lefts + 1])
            is_gone[children] = True
            lefts = nodes["child"][children[nodes["kind"][children] != LEAF]]
        below = np.sort(nodes["child"][is_gone & (nodes["kind"] == LEAF)]).astype(np.intp)
        kept_leaves = np.ones(len(nodes) // 2 + 1, dtype=np.bool_)
        kept_leaves[below[1:]] = False
        numbers, leaves = np.cumsum(~is_gone) - 1, np.cumsum(kept_leaves) - 1
        return cls(node, ~is_gone, kept_leaves, numbers, leaves, below)

    @property
    def leaf(self) -> int:
        """The number of the new leaf."""
        return int(self.leaves[self.below[0]])

    @property
    def places(self) -> IntArray:
        """The new number of each node; of those that are gone, that of the node they were below."""
        found = np.where(self.kept_nodes, self.nodes, self.nodes[self.node])
        return found.astype(np.int32)


def prune(kernel: TreeKernel, node: int) -> IntArray:
    """Turn a node of a tree into a leaf again; return the new numbers of nodes.

    Parameters
    ----------
    kernel : TreeKernel
        Of the tree, which nobody else changes meanwhile.
    node : int
        Its number.

    Raises
    ------
    ValueError
        If there is no such node, or nothing below it.
    """
    nodes = kernel.node_table[: kernel.node_count]
    place = validation.whole(node, "node", 0, len(nodes) - 1)
    if nodes["kind"][place] == LEAF:
        raise ValueError(f"node = {place} is a leaf: there is nothing below it to be pruned")
    cut = Cut.at(nodes, place)
    watching = bool(kernel.leaf_table["watching"][cut.below].any())
    known = _know_together(kernel, cut)
    tables = _tables_that_stay(kernel, cut)
    _put_leaf(kernel, cut, tables, known, watching)
    records = None
    if kernel.targets > 1:
        records = TargetRecords(
            kernel.target_records.streams,
            tables.of_leaves.reshape(-1),
            tables.of_nodes.reshape(-1),
            kernel.target_records.trials,
        )
    remove_leaves(
        kernel,
        tables.nodes,
        tables.leaves,
        int(cut.kept_nodes.sum()),
        cut.kept_leaves,
        cut.below,
        cut.leaves,
        known.page,
        watching,
        records,
    )
    return cut.places


def other_splits(
    kernel: TreeKernel, features: Features, no_splits: tuple[Label, ...], rules: MemoryRules
) -> OtherSplits:
    """Return a change by which leaves of a tree split on all features but some.

    Parameters
    ----------
    kernel : TreeKernel
        Of the tree, which nobody else changes until it is committed.
    features : Features
        By which its rows are read.
    no_splits : tuple of str or int
        The names of features.
    rules : MemoryRules
        Of a tree with these names.

    Raises
    ------
    ValueError
        If `max_bytes` has no room for the names.
    """
    limit, size = kernel.max_bytes, _memory.nbytes(kernel)
    more = bytes_of_names(no_splits) - bytes_of_names(kernel.no_splits)
    if limit and size + more > limit:
        raise ValueError(
            f"max_bytes = {limit}: there is no room for the names in no_splits (the tree would "
            f"occupy {size + more}); name fewer features, or shorter ones"
        )
    measure_at, bound = kernel.stream["measure_at"], kernel.stream["bound"]
    if limit and kernel.slots == 0 and measure_at > kernel.rows:
        # Observers are measured again before the next row.
        measure_at, bound = kernel.rows, bound + more
    trial = kernel.trial_table[0][0]
    return OtherSplits(
        kernel,
        no_splits,
        memory.may_split(no_splits, features.known),
        rules.to_record(),
        measure_at,
        bound,
        bool(trial["leaf"] >= 0) and features.names[trial["feature"]] in no_splits,
    )


# -- the new leaf ---------------------------------------------------------------------------------


class Knowledge(NamedTuple):
    """What the new leaf knows: of each target, and its model page."""

    targets: list[Joined]
    page: Array | None


def _know_together(kernel: TreeKernel, cut: Cut) -> Knowledge:
    """Return what the leaves below a node know, as one leaf would."""
    rows, weights, records = np.array([kernel.rows]), np.array([kernel.weight]), None
    if kernel.targets > 1:
        streams, records = kernel.target_records.streams, kernel.target_records.nodes
        rows, weights = streams["rows"], streams["weight"]
    leaves, nodes = leaves_by_target(kernel)[cut.below].T, by_target(kernel.node_table, records)
    inherited = nodes[kernel.leaf_table[cut.below]["node"]].T["weight"]
    pairs = list(zip(inherited, leaves, strict=True))
    shares = np.array([shares_of(*pair) for pair in pairs])
    origins = np.array(
        [own["origin"] - mean_of(share, own) for share, own in zip(shares, leaves, strict=True)]
    )
    pages = [kernel.model_page(leaf) for leaf in cut.below.tolist()]
    models = np.array(pages) if kernel.linear else np.zeros((len(pages), 0))
    page, apart = joined_models(models, kernel, origins, shares)
    row_weights = (weights / np.maximum(rows, 1.0)).tolist()
    joined = [
        joined_records(*pair, row_weight, far)
        for pair, row_weight, far in zip(pairs, row_weights, apart, strict=True)
    ]
    return Knowledge(joined, page if kernel.linear else None)


class Tables(NamedTuple):
    """The records of nodes and leaves, as long as those of the tree; and those of each target."""

    nodes: Records
    leaves: Records
    of_nodes: Array
    of_leaves: Array


def _tables_that_stay(kernel: TreeKernel, cut: Cut) -> Tables:
    """Return the tables of the nodes and leaves that stay."""
    nodes = _moved_up(kernel.node_table, cut.kept_nodes)
    leaves = _moved_up(kernel.leaf_table, cut.kept_leaves)
    of_nodes, of_leaves = nodes[:, None], leaves[:, None]
    if kernel.targets > 1:
        records = kernel.target_records
        of_nodes = _moved_up(records.nodes.reshape(len(nodes), -1), cut.kept_nodes)
        of_leaves = _moved_up(records.leaves.reshape(len(leaves), -1), cut.kept_leaves)
    own = nodes[: cut.kept_nodes.sum()]
    inner, is_leaf = own["kind"] != LEAF, own["kind"] == LEAF
    inner[cut.nodes[cut.node]] = False
    own["child"][inner] = cut.nodes[own["child"][inner]]
    own["child"][is_leaf] = cut.leaves[own["child"][is_leaf]]
    own["parent"][1:] = cut.nodes[own["parent"][1:]]
    own_leaves = leaves[: cut.kept_leaves.sum()]
    own_leaves["node"] = cut.nodes[own_leaves["node"]]
    return Tables(nodes, leaves, of_nodes, of_leaves)


def _moved_up(table: Records, kept: NDArray[np.bool_]) -> Records:
    """Return a table as long as another, of those of its first rows that stay."""
    found = np.zeros_like(table)
    found[: kept.sum()] = table[: len(kept)][kept]
    return found


def _put_leaf(
    kernel: TreeKernel, cut: Cut, tables: Tables, known: Knowledge, watching: bool
) -> None:
    """Write the records of the new leaf over those of its node and its first leaf."""
    nodes, leaves, at = tables.nodes, tables.leaves, cut.nodes[cut.node]
    parent, depth = nodes[at]["parent"], nodes[at]["depth"]
    nodes[at] = np.zeros((), nodes.dtype)
    nodes["kind"][at], nodes["child"][at] = LEAF, cut.leaf
    nodes["parent"][at], nodes["depth"][at] = parent, depth
    rows, weight = _rows_below(cut, kernel)
    nodes["weight"][at] = weight
    review = kernel.first_review * kernel.weight / kernel.rows if watching else np.inf
    own = leaves[cut.leaf : cut.leaf + 1]
    own[:] = np.zeros((), leaves.dtype)
    own["node"], own["watching"], own["rows"] = at, watching, rows
    own["due"] = own["review"] = review
    own["born"] = kernel.weight
    for target, joined in enumerate(known.targets):
        place = slice(target, target + 1)
        _write(tables.of_nodes[at, place], tables.of_leaves[cut.leaf, place], joined)


def _write(node: Array, leaf: Array, joined: Joined) -> None:
    """Write what is known of a target to the records of a leaf and its node."""
    for name in ("mean", "gain"):
        node[name] = 0.0
    node["weight"], node["deviation"] = joined.weight, joined.deviation
    for name in ("weight", "mean", "target_mean", "target_m2", "residual_mean", "residual_m2"):
        leaf[name] = 0.0
    for name, value in joined.leaf.items():
        leaf[name] = value


def _rows_below(cut: Cut, kernel: TreeKernel) -> tuple[float, float]:
    """Return the rows that the leaves have learned, and the weight that they have seen."""
    leaves = kernel.leaf_table[cut.below]
    inherited = kernel.node_table["weight"][leaves["node"]]
    return float(leaves["rows"].sum()), float((inherited + leaves["weight"]).sum())
