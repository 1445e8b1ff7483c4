"""A tree without what is below one of its nodes, which becomes a leaf again.

The state of the tree is rewritten, compact, with other numbers for nodes and leaves. The tree
that is made of it is checked as every tree that is loaded, and `sapwood/tree/_exchange.pyx` swaps
its tables in. The new leaf knows what the leaves below knew together: `sapwood.tree.joining`.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.model import State
from sapwood.tree import tree_state
from sapwood.tree._column_tables import GRID_DOUBLES
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.joining import Joined, joined_models, joined_records, mean_of, shares_of
from sapwood.tree.layout import LEAF, STREAM, no_trial
from sapwood.tree.memory import bytes_of_names

if TYPE_CHECKING:
    from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["pruned", "with_no_splits"]

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
    def at(cls, nodes: Array, node: int) -> "Cut":
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


def pruned(tree: "HoeffdingTreeRegressor", node: int) -> tuple[State, IntArray]:
    """Return the state of a tree in which a node is a leaf again, and the new numbers of nodes.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor
        Which nobody changes meanwhile.
    node : int
        Its number.

    Raises
    ------
    ValueError
        If there is no such node, or nothing below it.
    """
    header, arrays = tree_state.state_of(tree)
    kernel, nodes = tree._kernel, arrays["nodes"]
    place = validation.whole(node, "node", 0, len(nodes) - 1)
    if nodes["kind"][place] == LEAF:
        raise ValueError(f"node = {place} is a leaf: there is nothing below it to be pruned")
    cut = Cut.at(nodes, place)
    page = _know_together(arrays, cut, kernel)
    found = {**arrays, **_renumbered(arrays, cut, kernel)}
    _put_leaf(found, page, cut, kernel)
    found |= _watches(arrays, cut, kernel) | _trial(arrays, cut)
    header = {name: entry for name, entry in header.items() if name != tree_state.PENDING}
    pending = kernel.pending
    if pending >= 0 and pending not in cut.below:
        header[tree_state.PENDING] = int(cut.leaves[pending])
    return State(header, found), cut.places


def with_no_splits(tree: "HoeffdingTreeRegressor", no_splits: tuple[Any, ...]) -> State:
    """Return the state of a tree whose leaves may split on other features from now on.

    Raises
    ------
    ValueError
        If `max_bytes` has no room for their names.
    """
    header, arrays = tree_state.state_of(tree)
    arrays = {**arrays, "stream": _stream_with_names(arrays["stream"], tree, no_splits)}
    parameters = tree_state.parameters_header({**tree._parameters, "no_splits": no_splits})
    trial = arrays["trial"][0]
    if trial["leaf"] >= 0 and tree._features.names[trial["feature"]] in no_splits:
        arrays = {**arrays, **_no_trial(arrays)}
    return State({**header, "parameters": parameters}, arrays)


def _stream_with_names(
    stream: Array, tree: "HoeffdingTreeRegressor", no_splits: tuple[Any, ...]
) -> Array:
    """Return the numbers of a stream; observers are measured again before the next row."""
    kernel, limit = tree._kernel, tree._kernel.max_bytes
    more = bytes_of_names(no_splits) - bytes_of_names(kernel.no_splits)
    if limit and tree.nbytes + more > limit:
        raise ValueError(
            f"max_bytes = {limit}: there is no room for the names in no_splits (the tree would "
            f"occupy {tree.nbytes + more}); name fewer features, or shorter ones"
        )
    found = stream.copy()
    if limit and kernel.slots == 0 and kernel.measure_at > kernel.rows:
        found[STREAM.index("measure_at")] = kernel.rows
        found[STREAM.index("bound")] = kernel.bound + more
    return found


# -- the new leaf ---------------------------------------------------------------------------------


class Knowledge(NamedTuple):
    """What the new leaf knows: of each target, and its model page."""

    targets: list[Joined]
    page: Array


def _know_together(arrays: dict[str, Array], cut: Cut, kernel: TreeKernel) -> Knowledge:
    """Return what the leaves below a node know, as one leaf would."""
    targets, at = kernel.targets, arrays["leaves"]["node"][cut.below]
    if targets > 1:
        leaves = arrays["target_leaves"].reshape(-1, targets)[cut.below].T
        inherited = arrays["target_nodes"].reshape(-1, targets)[at].T["weight"]
        streams = arrays["target_streams"]
        rows, weights = streams["rows"], streams["weight"]
    else:
        leaves, inherited = arrays["leaves"][cut.below][None], arrays["nodes"][at][None]["weight"]
        stream = dict(zip(STREAM, arrays["stream"].tolist(), strict=True))
        rows, weights = np.array([stream["rows"]]), np.array([stream["weight"]])
    pairs = list(zip(inherited, leaves, strict=True))
    shares = np.array([shares_of(*pair) for pair in pairs])
    origins = np.array(
        [own["origin"] - mean_of(share, own) for share, own in zip(shares, leaves, strict=True)]
    )
    page, apart = joined_models(arrays["models"][cut.below], kernel, origins, shares)
    row_weights = (weights / np.maximum(rows, 1.0)).tolist()
    joined = [
        joined_records(*pair, row_weight, far)
        for pair, row_weight, far in zip(pairs, row_weights, apart, strict=True)
    ]
    return Knowledge(joined, page)


def _put_leaf(found: dict[str, Array], known: Knowledge, cut: Cut, kernel: TreeKernel) -> None:
    """Write the records and the model of the new leaf over those of its node and its first leaf."""
    nodes, leaves, targets = found["nodes"], found["leaves"], kernel.targets
    at = cut.nodes[cut.node]
    parent, depth = nodes[at]["parent"], nodes[at]["depth"]
    nodes[at] = np.zeros((), nodes.dtype)
    nodes["kind"][at], nodes["child"][at] = LEAF, cut.leaf
    nodes["parent"][at], nodes["depth"][at] = parent, depth
    rows, weight = _rows_below(cut, kernel)
    watching = bool(kernel.leaf_table["watching"][cut.below].any())
    nodes["weight"][at] = weight
    review = kernel.first_review * kernel.weight / kernel.rows if watching else np.inf
    own = leaves[cut.leaf : cut.leaf + 1]
    own[:] = np.zeros((), leaves.dtype)
    own["node"], own["watching"], own["rows"] = at, watching, rows
    own["due"] = own["review"] = review
    own["born"] = kernel.weight
    if targets == 1:
        _write(nodes[at : at + 1], own, known.targets[0])
    else:
        of_nodes = found["target_nodes"].reshape(-1, targets)
        of_leaves = found["target_leaves"].reshape(-1, targets)
        for target, joined in enumerate(known.targets):
            _write(
                of_nodes[at, target : target + 1], of_leaves[cut.leaf, target : target + 1], joined
            )
    if kernel.linear:
        found["models"][cut.leaf] = known.page


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


# -- the other ones -------------------------------------------------------------------------------


def _renumbered(arrays: dict[str, Array], cut: Cut, kernel: TreeKernel) -> dict[str, Array]:
    """Return the tables of the nodes and leaves that stay."""
    nodes, leaves = arrays["nodes"][cut.kept_nodes], arrays["leaves"][cut.kept_leaves]
    inner = nodes["kind"] != LEAF
    inner[cut.nodes[cut.node]] = False
    is_leaf = nodes["kind"] == LEAF
    nodes["child"][inner] = cut.nodes[nodes["child"][inner]]
    nodes["child"][is_leaf] = cut.leaves[nodes["child"][is_leaf]]
    nodes["parent"][1:] = cut.nodes[nodes["parent"][1:]]
    leaves["node"] = cut.nodes[leaves["node"]]
    found = {"nodes": nodes, "leaves": leaves, "models": arrays["models"][cut.kept_leaves]}
    if kernel.targets > 1:
        for name, kept in (("target_nodes", cut.kept_nodes), ("target_leaves", cut.kept_leaves)):
            found[name] = arrays[name].reshape(-1, kernel.targets)[kept].reshape(-1)
    return found


def _watches(arrays: dict[str, Array], cut: Cut, kernel: TreeKernel) -> dict[str, Array]:
    """Return what the leaves that stay watch; the new one does so from nothing, if others did."""
    watching = np.flatnonzero(arrays["leaves"]["watching"])
    begins = bool(np.isin(watching, cut.below).any())
    fresh = np.zeros(kernel.watch_doubles)
    grids = fresh[: GRID_DOUBLES * kernel.features].reshape(-1, GRID_DOUBLES)
    grids[kernel.columns.is_category] = 0.0, 1.0, 1.0, 0.0
    sizes = arrays["observer_sizes"]
    blobs = np.split(arrays["observers"], np.cumsum(sizes)[:-1]) if len(sizes) else []
    pages, kept_blobs = [], []
    places = {int(leaf): place for place, leaf in enumerate(watching)}
    for leaf in np.flatnonzero(cut.kept_leaves).tolist():
        if leaf == cut.below[0]:
            if begins:
                pages.append(fresh)
                new = kernel.fresh_observers() or ()
                kept_blobs += [
                    np.frombuffer(tree_state.observer_bytes(each), np.uint8) for each in new
                ]
        elif leaf in places:
            place = places[leaf]
            pages.append(arrays["watches"][place])
            kept_blobs += blobs[place * kernel.features : (place + 1) * kernel.features]
    return {
        "watches": np.array(pages).reshape(len(pages), kernel.watch_doubles),
        "observer_sizes": np.array([len(blob) for blob in kept_blobs], dtype=np.int64),
        "observers": np.concatenate(kept_blobs) if kept_blobs else arrays["observers"][:0],
    }


def _trial(arrays: dict[str, Array], cut: Cut) -> dict[str, Array]:
    """Return the split on trial, unless it is one of a leaf that is gone."""
    leaf = int(arrays["trial"]["leaf"][0])
    if leaf < 0:
        return {}
    if leaf in cut.below:
        return _no_trial(arrays)
    trial = arrays["trial"].copy()
    trial["leaf"] = cut.leaves[leaf]
    return {"trial": trial}


def _no_trial(arrays: dict[str, Array]) -> dict[str, Array]:
    """Return the arrays of a split on trial, as they are while there is none."""
    found = {"trial": no_trial(), "trial_watches": arrays["trial_watches"][:0]}
    if "target_trial" in arrays:
        found["target_trial"] = np.zeros_like(arrays["target_trial"])
    return found
