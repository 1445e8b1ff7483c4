"""Restore a tree from a header and arrays: every value is checked before it is used."""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector._pending import PendingPredictions
from sapwood.corrector.checking import check_pending
from sapwood.limits import ROUNDING
from sapwood.model import State, check_unchanged
from sapwood.observers.base import TableObserver
from sapwood.records import check, doubles
from sapwood.rows import missing_flags
from sapwood.rows.features import UNKNOWN, Features, labels_within
from sapwood.tree import _memory, memory, older_formats
from sapwood.tree._column_tables import Columns
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._leaves import lengthened, table_room
from sapwood.tree._target_records import TargetRecords
from sapwood.tree.checking.columns import checked_encodings
from sapwood.tree.checking.numbers import check_numbers
from sapwood.tree.checking.pages import check_observers
from sapwood.tree.checking.trial import check_trial
from sapwood.tree.layout import (
    CHANGE_RECORD,
    FACTS_RECORD,
    LEAF_RECORD,
    MOST_UNIT_CHANGES,
    NODE_RECORD,
    SAMPLE_ROWS,
    STREAM,
    TARGET_COST,
    TARGET_LEAF,
    TARGET_NODE,
    TARGET_STREAM,
    TARGET_TRIAL,
    TRIAL_RECORD,
    UNIT_DETECTION_RECORD,
    UNITS_RECORD,
    Limits,
)
from sapwood.tree.tree_state import (
    ARRAYS,
    ENCODINGS,
    GAPS,
    MOST_LABELS,
    PENDING_ARRAYS,
    TARGET_ARRAYS,
    UNDECIDED,
    header_of,
    observer_of,
)

if TYPE_CHECKING:
    from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["empty_tree", "fill_kernel", "restore_gaps", "restore_pending", "restored"]

Array = NDArray[Any]
Kinds = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
Tree = TypeVar("Tree", bound="HoeffdingTreeRegressor")


def restored(kind: type[Tree], state: State, format: int, *, is_own: bool = False) -> Tree:
    """Return the tree of a header and arrays, of which nothing is trusted.

    Parameters
    ----------
    kind : type
        Of the tree.
    state : State
        What `state_of` returned.
    format : int
        That of the release which did.
    is_own : bool
        Whether the state was made in this process from that of a model: then it has the right
        shapes, and its numbers are not checked.

    Raises
    ------
    ValueError, TypeError, OverflowError
        If there is anything wrong with them.
    """
    header, arrays = state
    tree = empty_tree(kind, header)
    fill_kernel(tree._kernel, tree._features, arrays, header.get(UNDECIDED), is_own=is_own)
    return tree


def empty_tree(kind: type[Tree], header: dict[str, Any]) -> Tree:
    """Return a tree with the parameters and features of a header."""
    known = header.keys() - {UNDECIDED, MOST_LABELS, GAPS} == {"parameters", "features"}
    check(known, "its header has other entries than it should")
    parameters = header["parameters"]
    check(isinstance(parameters, dict), "its parameters are no dict")
    observer = observer_of(parameters.get("observer"))
    check(observer is not None, "its observer is no name and parameters")
    tree = kind(**{**parameters, "observer": observer})
    if MOST_LABELS in header:
        least, most = labels_within(1), labels_within(None)
        tree._features.most_labels = validation.whole(header[MOST_LABELS], MOST_LABELS, least, most)
    features = Features.from_header(header["features"], tree._features.most_labels)
    same = features.categorical == tree._features.categorical
    check(same, "its parameters and its features differ in what is categorical")
    tree._features.known = features.known
    restore_gaps(tree._features, header)
    kept = {name: value for name, value in header.items() if name != UNDECIDED}
    check_unchanged(header_of(tree), kept)
    return tree


def restore_gaps(features: Features, header: dict[str, Any]) -> None:
    """Set how often columns were missing, of a header of which nothing is trusted."""
    counts = missing_flags.checked_gaps(header.get(GAPS, []), features)
    features.set_gaps(counts, missing_flags.are_due(counts))


def fill_kernel(
    kernel: TreeKernel,
    features: Features,
    arrays: dict[str, Array],
    pending: Any = None,
    name_bytes: int | None = None,
    *,
    is_own: bool = False,
) -> None:
    """Give an empty kernel, which nobody has seen yet, its tables, if they are good.

    Parameters
    ----------
    kernel : TreeKernel
        With the rules of the tree.
    features : Features
        By which its rows are read, with all that is known of them.
    arrays : dict
        What `kernel_arrays` returned; nothing of it is trusted.
    pending : int, optional
        A leaf whose decision is outstanding.
    name_bytes : int, optional
        What counts for names; what they occupy by default.
    is_own : bool
        As of `restored`.

    Raises
    ------
    ValueError
        If there is anything wrong with the arrays.
    """
    is_older = older_formats.is_older(arrays)
    arrays = older_formats.upgraded(arrays, kernel.tracking, len(features.names))
    targets = max(1, len(features.known.targets))
    is_category, places = memory.column_kinds(features, features.known)
    is_encoded = bool((places >= 0).any()) and (targets > 1 or ENCODINGS[0] in arrays)
    expected = (
        *ARRAYS,
        *(TARGET_ARRAYS if targets > 1 else ()),
        *(ENCODINGS if is_encoded else ()),
    )
    check(arrays.keys() == set(expected), f"its arrays are not {', '.join(expected)}")
    is_unknown = np.array([each == UNKNOWN for each in features.kinds], dtype=np.bool_)
    kinds = is_category, is_unknown, places >= 0
    nodes = _records(arrays["nodes"], NODE_RECORD, "nodes")
    leaves = _records(arrays["leaves"], LEAF_RECORD, "leaves")
    watching = np.flatnonzero(leaves["watching"])
    check(
        0 < len(nodes) == 2 * len(leaves) - 1 < 2**31,
        f"there cannot be {len(nodes)} nodes and {len(leaves)} leaves",
    )
    model, watch, level = kernel.sizes_for(is_category, places, targets)
    stream = doubles(arrays["stream"], (len(STREAM),), "the numbers of the stream")
    limits = Limits(float(stream[0]), ROUNDING * float(stream[1]), len(is_category))
    shape = (targets * len(kernel.layer_table),)
    layer = doubles(arrays["layer"], shape, "the numbers of the corrector")
    levels = doubles(arrays["levels"], (level // 2, 2), "the levels")
    facts, samples = _facts(arrays, len(is_category))
    units, detection, changes = _units(arrays, len(is_category))
    models, watches = _pages(arrays, (len(leaves), model), (len(watching), watch), is_own)
    roomy_nodes, roomy_leaves = _roomy(nodes, step=2), _roomy(leaves, step=1)
    records = _target_records(arrays, targets, (len(roomy_nodes), len(roomy_leaves)))
    is_noting = records is not None and kernel.tracking
    store = memory.new_pending(kernel.max_bytes, targets) if is_noting else kernel.pending
    columns = Columns(
        is_category,
        kernel.slots,
        places,
        levels,
        facts,
        samples,
        units,
        targets,
        memory.may_split(kernel.no_splits, features.known),
        checked_encodings(arrays, targets, places) if is_encoded else None,
    )
    kernel.set_tables(
        _with_costs(columns, arrays, len(is_category)),
        roomy_nodes,
        roomy_leaves,
        len(nodes),
        len(leaves),
        records,
        store,
    )

    if not is_own:
        check_numbers(kernel, arrays, (kinds, places), limits)
    of_targets = None if records is None else records.leaves.reshape(-1, targets)[watching]
    watched = ~is_category & ~is_unknown
    observers = _observers(kernel, arrays, leaves[watching], of_targets, watched)

    kernel.set_stream(*stream.tolist())
    kernel.set_layer(layer)
    kernel.set_unit_detection(detection.copy(), changes.copy())
    restore_pending(kernel.pending, arrays, float(stream[0]), len(features.names))
    occupied = memory.name_bytes(features, features.known)
    kernel.set_name_bytes(occupied if name_bytes is None else name_bytes)
    _restore_leaves(kernel, models, watching, watches, observers)
    _restore_trial(kernel, arrays, leaves, kinds, is_own=is_own)
    _fit_memory(kernel, has_grown=is_older or is_own)
    if pending is not None:
        _restore_undecided(kernel, pending)


def _pages(
    arrays: dict[str, Array], of_models: tuple[int, int], of_watches: tuple[int, int], is_own: bool
) -> tuple[Array, Array]:
    """Return the pages of leaves, if they have the right shapes and are finite."""
    models, watches = arrays["models"], arrays["watches"]
    if not is_own:
        doubles(models, of_models, "the models")
        doubles(watches, of_watches, "the pages of what is watched")
    return models, watches


def _fit_memory(kernel: TreeKernel, has_grown: bool) -> None:
    """Raise if a kernel occupies more than it may.

    One that has grown, as its file is older or as it has one class more, may need less first.
    """
    if has_grown and kernel.max_bytes and _memory.nbytes(kernel) > kernel.max_bytes:
        _memory.rank_now(kernel, 0)
    _memory.check_bound(kernel)


def _restore_undecided(kernel: TreeKernel, pending: Any) -> None:
    """Let a decision be outstanding, if it can be."""
    leaf = validation.whole(pending, UNDECIDED, 0, kernel.leaf_count - 1)
    check(bool(kernel.leaf_table["watching"][leaf]), "a leaf cannot be pending")
    kernel.set_undecided(leaf)


def _restore_leaves(
    kernel: TreeKernel,
    models: Array,
    watching: Array,
    watches: Array,
    observers: list[list[TableObserver]] | None,
) -> None:
    """Give all leaves their pages, and those that watch, what they watch by."""
    place = {int(leaf): number for number, leaf in enumerate(watching)}
    for leaf in range(len(models)):
        number = place.get(leaf)
        kernel.set_leaf(
            leaf,
            models[leaf] if kernel.linear else None,
            None if number is None else watches[number],
            None if number is None or observers is None else observers[number],
        )


def _facts(arrays: dict[str, Array], features: int) -> tuple[Array, Array]:
    """Return what is known of each feature, and rows of the past, if they have the right shapes."""
    facts = _records(arrays["facts"], FACTS_RECORD, "facts")
    check(len(facts) == features, "its facts are not those of its features")
    samples = doubles(arrays["samples"], (SAMPLE_ROWS, len(facts)), "the samples", missing=True)
    return facts, samples


def _with_costs(columns: Columns, arrays: dict[str, Array], features: int) -> Columns:
    """Let columns have what it costs each of several targets to get them wrong."""
    if columns.targets > 1:
        costs = _records(arrays["target_costs"], TARGET_COST, "target costs")
        good = len(costs) == columns.targets * features
        check(good, "there is not a cost for each target of each feature")
        columns.set_costs(costs)
    return columns


def _units(arrays: dict[str, Array], features: int) -> tuple[Array, Array, Array]:
    """Return what is known of the units of columns, if it has the right shapes."""
    units = _records(arrays["units"], UNITS_RECORD, "units")
    detection = _records(arrays["unrest"], UNIT_DETECTION_RECORD, "unrest")
    changes = _records(arrays["changes"], CHANGE_RECORD, "changes of units")
    check(len(units) == features + 1, "its units are not those of its features")
    check(len(detection) == 1, "there is not one record of unit changes")
    good = len(changes) == MOST_UNIT_CHANGES
    check(good, "there are too many changes of units, or too few")
    return units, detection, changes


def _restore_trial(
    kernel: TreeKernel, arrays: dict[str, Array], leaves: Array, kinds: Kinds, *, is_own: bool
) -> None:
    """Let a kernel go on with its split on trial, if there is one, and it is good."""
    trial = _records(arrays["trial"], TRIAL_RECORD, "trial")
    shape = 2 * int((trial["leaf"] >= 0).sum()), kernel.watch_doubles
    pages = doubles(arrays["trial_watches"], shape, "the pages of the trial")
    if not is_own:
        check_trial(trial, pages, leaves, kinds, kernel)
    kernel.set_trial(trial, pages)


def _target_records(
    arrays: dict[str, Array],
    targets: int,
    room: tuple[int, int],
) -> TargetRecords | None:
    """Return what a tree of several targets knows of them, if it is good; None for one target.

    There is to be room for so many nodes and leaves.
    """
    if targets == 1:
        return None
    nodes, leaves = arrays["nodes"], arrays["leaves"]
    names = ("target_streams", "target_leaves", "target_nodes", "target_trial")
    streams, own_leaves, own_nodes, trials = (
        _records(arrays[name], record, f"{name.replace('_', ' ')}")
        for name, record in zip(
            names, (TARGET_STREAM, TARGET_LEAF, TARGET_NODE, TARGET_TRIAL), strict=True
        )
    )
    good = (len(streams), len(own_leaves), len(own_nodes), len(trials)) == tuple(
        targets * count for count in (1, len(leaves), len(nodes), 1)
    )
    check(good, "there is not a record for each target of each leaf and node")
    return TargetRecords(
        streams.copy(),
        lengthened(own_leaves, targets * room[1]),
        lengthened(own_nodes, targets * room[0]),
        trials.copy(),
    )


def restore_pending(
    memory: PendingPredictions | None, arrays: dict[str, Array], rows: float, features: int
) -> None:
    """Restore pending predictions of a model that has learned so many rows, if they are valid."""
    saved = tuple(arrays[name] for name in PENDING_ARRAYS)
    if memory is None:
        is_empty = not any(len(each) for each in saved)
        check(is_empty, "it has pending predictions without an error-correction layer")
        return
    sizes, keys, ages, pending = saved
    # Earlier releases had two counts less; those of what has appeared are seldom needed.
    good = sizes.ndim == 1 and (len(sizes) in (5, 7) or len(sizes) % 3 == 2)
    check(good and sizes.dtype == np.float64, "the sizes of its pending predictions are no numbers")
    check(bool(np.isfinite(sizes).all()), "the sizes of its pending predictions are not finite")
    good = keys.dtype == np.uint64 and ages.dtype == np.int64 and keys.ndim == ages.ndim == 1
    check(good, "the keys and ages of its pending predictions are no whole numbers")
    check_pending(doubles(pending, (len(keys), memory.width), "its pending predictions"), rows)
    memory.restore(sizes, keys, ages, pending)
    memory.check_features(features)


def _records(array: Array, record: np.dtype[Any], what: str) -> Array:
    check(array.dtype == record, f"its {what} have other columns than this release knows")
    check(array.ndim == 1, f"its {what} have shape {array.shape}, not a row each")
    return array


def _roomy(table: Array, step: int) -> Array:
    """Return a table with as much room as if its rows had come one split after the other.

    For the limit of memory counts it, and a tree that was loaded is to go on like the saved one.
    """
    room = table_room(1)
    while room < len(table):
        room = table_room(room + 1 + (room % 2 if step == 2 else 0))
    roomy = np.zeros(room, table.dtype)
    roomy[: len(table)] = table
    return roomy


def _observers(
    kernel: TreeKernel,
    arrays: dict[str, Array],
    watching: Array,
    of_targets: Array | None,
    watched: Array,
) -> list[list[TableObserver]] | None:
    """Return the observers of each leaf that watches; None if it watches by slots.

    - `watching`, `of_targets`: the records of these leaves, and of several targets in them.
    """
    sizes, data = arrays["observer_sizes"], arrays["observers"]
    good = sizes.dtype == np.int64 and data.dtype == np.uint8 and sizes.ndim == data.ndim == 1
    check(good, "its observers are no bytes")
    features, observing = kernel.features, kernel.observing
    expected = len(watching) * features if observing.by_observers else 0
    check(len(sizes) == expected, f"there are {len(sizes)} observers, not {expected}")
    good = bool(((sizes >= 0) & (sizes <= len(data))).all()) and sum(sizes.tolist()) == len(data)
    check(good, "the sizes of its observers are wrong")
    if not observing.by_observers:
        return None
    model, ends = observing.model, np.cumsum(sizes).tolist()
    loaded = [
        type(model).from_bytes(data[start:end].tobytes())
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    leaves = [loaded[leaf * features : (leaf + 1) * features] for leaf in range(len(watching))]
    origins = watching["origin"][:, None] if of_targets is None else of_targets["origin"]
    for own, leaf, each in zip(leaves, watching, origins, strict=True):
        check_observers(own, model, leaf, each, watched)
    return leaves
