"""Snapshots: what a worker has to know of a tree to learn a shard of rows.

That is all but the slots, which begin from nothing in each worker; of them it has the
positions. Nor does it know of a split on trial, as only one who grows has any. So a snapshot is a quarter
of the tree's file.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.merge import _delta
from sapwood.merge.errors import MergeError
from sapwood.merge.leaf_sums import MOMENTS
from sapwood.merge.release import check_release, of_this_release
from sapwood.records import check
from sapwood.rows.features import OTHERS
from sapwood.schema import Schema
from sapwood.storage import container
from sapwood.storage.container import ModelFileError, damaged
from sapwood.tree import memory, restoring, tree_state
from sapwood.tree._column_tables import ENCODING_HEAD, GRID_DOUBLES
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.layout import no_trial
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.validation import Label

__all__ = [
    "LEAST_ROWS",
    "check_distinct_labels",
    "check_mergeable",
    "check_split_encodings",
    "digest_of",
    "shared_level",
    "take_snapshot",
    "tree_of_snapshot",
]

Array = NDArray[Any]

CODES = OTHERS + 1
KIND = "TreeSnapshot"
FORMAT = 1
LEAST_ROWS = 8
"""So many rows a tree must have learned: until then it may still move its origin."""
HEADER = {"round", "schema", "tree"}
OTHER_RELEASE = (
    "was made by sapwood {made} and this worker has {here}: install the same release on driver and "
    "workers"
)
OWN = ("grids",)
LEFT_OUT = (
    "watches",
    "observer_sizes",
    "observers",
    "trial",
    "trial_watches",
    "target_trial",
    *tree_state.PENDING_ARRAYS,
)


def check_mergeable(tree: Any) -> None:
    """Raise unless deltas can be taken of a tree.

    - Raises MergeError if it is of another class, has learned too little, or watches by observers.
    """
    if type(tree) is not HoeffdingTreeRegressor:
        raise MergeError(
            f"deltas are of a HoeffdingTreeRegressor, and this is {type(tree).__name__}"
        )
    kernel = tree._kernel
    rows = kernel.rows
    if kernel.targets > 1:
        rows = min(rows, kernel.target_records.streams["rows"].min())
    if rows < LEAST_ROWS:
        raise MergeError(
            f"the tree has learned {int(rows)} rows{' of a target' if tree.targets else ''}: let it "
            f"learn {LEAST_ROWS} at least before rows are shared out"
        )
    check_distinct_labels(tree)
    check_split_encodings(tree)
    if not tree._kernel.slots:
        raise MergeError(
            "the leaves of the tree watch by observers, whose elements do not add: use the "
            'default observer, or any QuantizerObserver of radius "auto"'
        )


def check_split_encodings(tree: HoeffdingTreeRegressor) -> None:
    """Raise if splits read categories by numbers that a tree chooses while it learns.

    - Raises MergeError, as each worker would choose other numbers.
    """
    if tree._kernel.columns.split_encoded:
        raise MergeError(
            "splits read a feature of more than 63 categories by an encoding of several targets, "
            "which each worker would choose for itself: leave the feature out, or learn in one "
            "process"
        )


def check_distinct_labels(tree: HoeffdingTreeRegressor) -> None:
    """Raise unless every category has a level of its own.

    - Raises MergeError if some share one, by their hash: workers could not distinguish them.
    """
    known, most = tree._features.known, tree._features.most_labels
    levels, start = tree._kernel.encoding_table, CODES * len(known.names)
    places = tree._kernel.columns.place_table.tolist()
    for name, count, own in zip(known.names, known.counts, places, strict=True):
        if own < 0:
            continue
        shared = levels[start + ENCODING_HEAD + count : start + ENCODING_HEAD + own, 0]
        if count >= most or shared.any():
            raise shared_level(name, most)
        start += ENCODING_HEAD + own


def shared_level(name: Label, most: int) -> MergeError:
    """Return an error about a feature of which some categories share a level."""
    return MergeError(
        f"{validation.shown(name)} has more categories than can be distinguished (up to {most:,}, and short "
        f"ones where memory is limited): leave it out, as by --drop {name}, allow more memory "
        "(max_bytes), or learn in one process"
    )


def take_snapshot(tree: HoeffdingTreeRegressor, round: int = 0) -> bytes:
    """Return a snapshot of a tree, from which workers learn their shards.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor
        Stays as it is; the deltas can be applied to it as long as nothing else changes it.
    round : int
        To which deltas will belong.

    Raises
    ------
    MergeError
        If deltas cannot be taken of it.
    """
    check_mergeable(tree)
    packed: bytes = tree._kernel.read_locked(_packed, tree, round)
    return packed


def _packed(tree: HoeffdingTreeRegressor, round: int) -> bytes:
    kernel = tree._kernel
    if kernel.undecided >= 0:
        raise MergeError(
            "the tree has yet to decide on a leaf, for which memory did not suffice: let it learn "
            "a row"
        )
    arrays = tree_state.kernel_arrays(kernel, watches=False)
    leaves, each = arrays["leaves"].copy(), arrays.get("target_leaves")
    each = None if each is None else each.copy()
    for records in (leaves,) if each is None else (leaves, each):
        for name in MOMENTS:
            records[name] = 0.0
    watching = np.flatnonzero(leaves["watching"])
    grids = _delta.grids_of(kernel)[watching]
    grids[grids[:, :, 2] == 0.0, 3] = 0.0  # no row is kept yet
    kept = {name: array for name, array in arrays.items() if name not in LEFT_OUT}
    header = of_this_release(FORMAT, {**_told_of(tree), "round": round})
    kept |= {"leaves": leaves, "grids": grids} | ({} if each is None else {"target_leaves": each})
    return container.pack(KIND, header, kept)


def _told_of(tree: HoeffdingTreeRegressor) -> dict[str, Any]:
    return {"tree": tree_state.header_of(tree), "schema": tree.schema.to_header()}


def digest_of(snapshot: bytes) -> str:
    """Return the checksum that identifies a snapshot."""
    return snapshot[-container.DIGEST :].hex()


def tree_of_snapshot(
    snapshot: bytes, source: str = "the snapshot"
) -> tuple[HoeffdingTreeRegressor, int]:
    """Return a tree that has seen nothing of its own rows, and the round.

    It learns without growing, whatever it may occupy.

    - Raises ModelFileError if the bytes are no snapshot.
    - Raises MergeError if another release has made it.
    """
    header, arrays = container.unpack(snapshot, KIND, source)
    try:
        check_release(header, HEADER, FORMAT, source, OTHER_RELEASE)
        tree = _filled(header["tree"], arrays)
        tree.schema = Schema.from_header(header["schema"])
        return tree, validation.whole(header["round"], "round", 0, 2**62)
    except (MergeError, ModelFileError):
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(source, str(error)) from None


def _filled(header: Any, arrays: dict[str, Array]) -> HoeffdingTreeRegressor:
    check(isinstance(header, dict), "its tree is no dict")
    tree = restoring.empty_tree(HoeffdingTreeRegressor, header)
    kernel, features, targets = tree._kernel, len(tree._features), len(tree.targets)
    expected = {*OWN, *tree_state.ARRAYS} - set(LEFT_OUT)
    expected |= set(tree_state.TARGET_ARRAYS if targets else ()) - set(LEFT_OUT)
    check(arrays.keys() == expected, f"its arrays are not {', '.join(sorted(expected))}")
    check(bool(kernel.slots), "it watches by observers")
    grids, leaves = arrays.pop("grids"), arrays["leaves"]
    watching = int(np.count_nonzero(leaves["watching"])) if leaves.dtype.names else 0
    good = grids.dtype == np.float64 and grids.shape == (watching, features, GRID_DOUBLES)
    check(good, "its grids are not those of its leaves")
    columns = memory.column_kinds(tree._features, tree._features.known)
    _, width, _ = kernel.sizes_for(*columns, max(1, targets))
    watches = np.zeros((watching, width))
    watches[:, : GRID_DOUBLES * features] = grids.reshape(watching, -1)
    empty: dict[str, Array] = {
        "observer_sizes": np.zeros(0, np.int64),
        "observers": np.zeros(0, np.uint8),
        "trial": no_trial(),
        "trial_watches": np.zeros((0, width)),
    }
    pending = kernel.pending
    if targets and kernel.tracking:
        pending = memory.new_pending(kernel.max_bytes, targets)
    filled = {**arrays, **tree_state.pending_arrays(pending), "watches": watches, **empty}
    restoring.fill_kernel(kernel, tree._features, filled)
    check(kernel.rows >= LEAST_ROWS, "its tree has learned too little")
    _stop_growing(kernel)
    return tree


def _stop_growing(kernel: TreeKernel) -> None:
    """Let no leaf ever be due, count no bytes, and stay in the units of the snapshot."""
    records = kernel.leaf_table[: kernel.leaf_count]
    records["due"] = records["review"] = np.inf
    kernel.stop_watching_units()
    _delta.lift_limit(kernel)
