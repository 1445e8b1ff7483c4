"""A tree as a header and arrays. `sapwood.tree.restoring` is the way back."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.model import State
from sapwood.observers import EBSTObserver, QuantizerObserver, TEBSTObserver
from sapwood.observers.base import TableObserver
from sapwood.records import check
from sapwood.rows import missing_flags
from sapwood.rows.features import labels_within
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.layout import (
    STREAM,
)

if TYPE_CHECKING:
    from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = [
    "ARRAYS",
    "ENCODINGS",
    "PENDING_ARRAYS",
    "TARGET_ARRAYS",
    "UNITS",
    "by_target",
    "header_of",
    "kernel_arrays",
    "leaves_by_target",
    "observer_bytes",
    "observer_header",
    "observer_of",
    "parameters_header",
    "pending_arrays",
    "state_of",
]

Array = NDArray[Any]

NO_SPLITS, SPLIT_BOUND = "no_splits", "split_bound"  # parameters
GAPS = "gaps"  # rows in which columns were missing, and present since
UNDECIDED = "pending"  # a leaf that is yet to be decided on
MOST_LABELS = "most_labels"  # of a feature, if they are not those of max_bytes
OBSERVERS: dict[str, type[TableObserver]] = {
    kind.__name__: kind for kind in (QuantizerObserver, EBSTObserver, TEBSTObserver)
}
PENDING_ARRAYS = ("note_sizes", "note_keys", "note_ages", "notes")
UNITS = ("units", "unrest", "changes")
ARRAYS = (
    "nodes",
    "leaves",
    "stream",
    "layer",
    *PENDING_ARRAYS,
    "levels",
    "facts",
    "samples",
    *UNITS,
    "models",
    "watches",
    "observer_sizes",
    "observers",
    "trial",
    "trial_watches",
)

# of several targets alone
TARGET_ARRAYS = (
    "target_streams",
    "target_leaves",
    "target_nodes",
    "target_costs",
    "target_trial",  # saved while a split is on trial
)

# of high-cardinality categories that splits read by other numbers than the levels of a target
ENCODINGS = ("split_encodings", "encoding_weights")

NO_PENDING: tuple[Array, ...] = (
    np.zeros(0),
    np.zeros(0, np.uint64),
    np.zeros(0, np.int64),
    np.zeros((0, 0)),
)
"""The arrays of a model without pending predictions."""


def state_of(tree: "HoeffdingTreeRegressor") -> State:
    """Return all that a tree is."""
    return State(header_of(tree), kernel_arrays(tree._kernel))


def kernel_arrays(kernel: TreeKernel, watches: bool = True) -> dict[str, Array]:
    """Return all that the kernel of a tree remembers, but for a decision that is outstanding.

    Parameters
    ----------
    kernel : TreeKernel
        Of the tree.
    watches : bool
        Whether what its leaves watch by is among it.
    """
    arrays = (
        kernel.node_table[: kernel.node_count],
        kernel.leaf_table[: kernel.leaf_count],
        np.array([kernel.stream[name] for name in STREAM]),
        kernel.layer_table,
        *pending_arrays(kernel.pending).values(),
        kernel.encoding_table,
        kernel.columns.known_facts,
        kernel.columns.known_samples,
        kernel.columns.unit_table,
        kernel.unit_detection_table,
        kernel.change_table,
        _stacked(kernel.model_pages, kernel.model_doubles),
    )
    found = dict(zip(ARRAYS, (*arrays, *(_watched(kernel) if watches else ())), strict=watches))
    if kernel.targets > 1:
        records = (
            kernel.target_records.streams,
            kernel.target_records.leaves[: kernel.targets * kernel.leaf_count],
            kernel.target_records.nodes[: kernel.targets * kernel.node_count],
            kernel.columns.known_costs,
            *((kernel.target_records.trials,) if kernel.has_trial else ()),
        )
        found |= dict(zip(TARGET_ARRAYS, records, strict=False))
    if kernel.columns.split_encoded:
        own = kernel.columns.split_encoding_table, kernel.columns.encoding_weight_table
        found |= dict(zip(ENCODINGS, own, strict=True))
    return found


def by_target(records: Array, of_targets: Array | None) -> Array:
    """Return the records of what nodes or leaves know of each target, shape (records, targets).

    - `records`, `of_targets`: of nodes or leaves, and of each of several targets in them.
    """
    return records[:, None] if of_targets is None else of_targets.reshape(len(records), -1)


def leaves_by_target(kernel: TreeKernel) -> Array:
    """Return the records of what the leaves of a tree know of each target; they can be changed."""
    leaves, records = kernel.leaf_table[: kernel.leaf_count], kernel.target_records
    own = None if records is None else records.leaves[: kernel.targets * len(leaves)]
    return by_target(leaves, own)


def _watched(kernel: TreeKernel) -> tuple[Array, ...]:
    """Return the last arrays of ARRAYS: by what leaves watch."""
    watches = [page for page in kernel.watch_pages if page is not None]
    blobs = [observer_bytes(each) for own in kernel.observers for each in own or ()]
    return (
        _stacked(watches, kernel.watch_doubles),
        np.array([len(blob) for blob in blobs], dtype=np.int64),
        np.frombuffer(b"".join(blobs), dtype=np.uint8),
        *kernel.trial_table,
    )


def header_of(tree: "HoeffdingTreeRegressor") -> dict[str, Any]:
    """Return all of a tree that is no array: parameters, features, an outstanding decision."""
    header: dict[str, Any] = {
        "parameters": parameters_header(tree._parameters),
        "features": tree._features.to_header(),
    }
    most = tree._features.most_labels
    if most != labels_within(tree._parameters["max_bytes"]):
        header[MOST_LABELS] = most
    if gaps := missing_flags.gaps_header(tree._features):
        header[GAPS] = gaps
    if tree._kernel.undecided >= 0:
        header[UNDECIDED] = tree._kernel.undecided
    return header


def parameters_header(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters in terms of JSON; later ones only if given, as older files lack them."""
    header = {
        **parameters,
        "observer": observer_header(parameters["observer"]),
        "categorical": list(parameters["categorical"]),
        NO_SPLITS: list(parameters[NO_SPLITS]),
    }
    if not header[NO_SPLITS]:
        del header[NO_SPLITS]
    if header[SPLIT_BOUND] == "hoeffding":
        del header[SPLIT_BOUND]
    return header


def observer_header(observer: TableObserver | None) -> list[Any] | None:
    """Return an observer that is a parameter in terms of JSON."""
    return None if observer is None else [type(observer).__name__, observer._parameters()]


def observer_of(header: Any) -> TableObserver | None:
    """Return the observer that `observer_header` described; nothing of it is trusted."""
    if header is None:
        return None
    good = isinstance(header, list) and len(header) == 2 and isinstance(header[1], dict)
    check(good, "its observer is no name and parameters")
    name, own = header
    check(isinstance(name, str) and name in OBSERVERS, f"{name!r:.60} is no observer")
    return OBSERVERS[name](**own)


def _stacked(pages: list[Array | None], width: int) -> Array:
    if not pages or not width:
        return np.zeros((len(pages), width))
    return np.array(pages)


def observer_bytes(observer: TableObserver) -> bytes:
    """Return the bytes of an observer; the range it has seen is derived from its elements."""
    _, table = observer._elements()
    reach = np.zeros((observer.targets, 2))
    if len(table):
        for target in range(observer.targets):
            pivot, shift, m2 = table[:, 2 + 3 * target : 5 + 3 * target].T
            reach[target, 0] = pivot[0]
            spread = m2 + table[:, 0] * np.square((pivot - pivot[0]) + shift)
            reach[target, 1] = spread.sum() * (1 + 1e-9)
    observer._set_reach(float(table[:, 0].sum()), reach)
    return observer.to_bytes()


def pending_arrays(pending: PendingPredictions | None = None) -> dict[str, Array]:
    """Return the arrays of pending predictions, or of none, by the names that files have."""
    saved = NO_PENDING if pending is None else pending.state()
    return dict(zip(PENDING_ARRAYS, saved, strict=True))
