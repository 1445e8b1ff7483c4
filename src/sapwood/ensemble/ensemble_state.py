"""An ensemble as a header and arrays, and back: every value is checked before it is used."""

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector.checking import check_layers
from sapwood.drift.detector import check_state
from sapwood.ensemble._members import TargetTables, fresh_errors
from sapwood.ensemble.layout import (
    MOST_SQUARES,
    STREAM_NUMBERS,
    TARGET_RECORD,
    TARGETS,
    TREE_RECORD,
    TREES,
)
from sapwood.ensemble.renewal import MOST_EVENTS
from sapwood.limits import MOST_WEIGHT
from sapwood.model import State, check_unchanged
from sapwood.records import check, check_all, doubles
from sapwood.rows import missing_flags
from sapwood.rows.features import Features
from sapwood.tree import older_formats, restoring, tree_state
from sapwood.tree.tree_state import PENDING_ARRAYS

if TYPE_CHECKING:
    from sapwood.ensemble.ensemble import Ensemble

__all__ = ["empty", "restored", "state_of"]

Array = NDArray[Any]
Kind = TypeVar("Kind", bound="Ensemble")

STREAM = STREAM_NUMBERS.dtype.names or ()
OWN = ("trees", "stream", "blend", "layer", "detector", *PENDING_ARRAYS)
OWN_OF_TARGETS = ("targets", "errors")  # of several targets alone
NAMES_APART = 2  # the last format whose trees do not count the names of features
WITHOUT_RECORDS = 3  # the last format whose error-correction layers do not count records of y
RECORD_BYTES = 72  # that each of several targets takes more in a tree since then, at the most
ENTRIES = {"parameters", "features", "pending", "lifetime", "events"}
EVENT = {"event": str, "rows": int, "member": int, "age": int, "error": float}


def state_of(model: "Ensemble") -> State:
    """Return all that an ensemble is."""
    kernel = model._kernel
    arrays = {
        "trees": kernel.tree_table,
        "stream": np.array([float(getattr(kernel, name)) for name in STREAM]),
        "blend": kernel.stack_table,
        "layer": kernel.layer_table,
        "detector": kernel.detector_table,
        **tree_state.pending_arrays(kernel.pending),
    }
    if kernel.targets > 1:
        records = kernel.tables.record_table, kernel.tables.error_table
        arrays |= dict(zip(OWN_OF_TARGETS, records, strict=True))
    for place, tree in enumerate(kernel.trees):
        own = tree_state.kernel_arrays(tree)
        arrays |= {f"{place} {name}": array for name, array in own.items()}
    return State(_header(model), arrays)


def _header(model: "Ensemble") -> dict[str, Any]:
    gaps = missing_flags.gaps_header(model._features)
    return ({tree_state.GAPS: gaps} if gaps else {}) | {
        "parameters": tree_state.parameters_header(model._parameters),
        "features": model._features.to_header(),
        "pending": [tree.undecided for tree in model._kernel.trees],
        "lifetime": model._kernel.lifetime,
        "events": model.replacements,
    }


def restored(kind: type[Kind], state: State, format: int, *, is_own: bool = False) -> Kind:
    """Return the ensemble of a header and arrays of some format, of which nothing is trusted.

    Of a state that was made in this process (`is_own`), the numbers are not checked.

    Raises
    ------
    ValueError, TypeError, OverflowError
        If there is anything wrong with them.
    """
    header, arrays = state
    check(
        header.keys() - {tree_state.GAPS} == ENTRIES, "its header has other entries than it should"
    )
    model = empty(kind, header)
    kernel = model._kernel
    places = range(len(kernel.trees))
    targets = max(1, len(model._features.known.targets))
    of_trees = (
        *tree_state.ARRAYS,
        *(tree_state.TARGET_ARRAYS if targets > 1 else ()),
        *tree_state.ENCODINGS,
    )
    names = {*OWN, *(f"{place} {name}" for place in places for name in of_trees)}
    names |= set(OWN_OF_TARGETS if targets > 1 else ())
    optional = (*older_formats.LATER, *tree_state.ENCODINGS)
    later = {f"{place} {name}" for place in places for name in optional}
    good = names - later <= arrays.keys() <= names
    check(good, "its arrays are others than those of its trees")
    table = arrays["trees"].copy()
    check(table.dtype == TREE_RECORD, "its trees are no records of trees")
    check(table.shape == (len(places),), f"there are {len(table)} trees, not {len(places)}")
    stream = doubles(arrays["stream"], (len(STREAM),), "the numbers of the stream")
    tables = _tables(model, arrays, targets)
    detector = doubles(arrays["detector"], kernel.detector_table.shape, "the watch over errors")
    if not is_own:
        _check_numbers(model, table, tables, stream, detector)
    pending = header["pending"]
    check(isinstance(pending, list) and len(pending) == len(places), "pending is no list of trees")
    trees = []
    name_bytes = model._bytes_for_each(model._features, model._features.known)
    if format <= NAMES_APART and model._parameters["max_bytes"]:
        table["max_bytes"] += name_bytes
    if format <= WITHOUT_RECORDS and model._parameters["max_bytes"] and targets > 1:
        table["max_bytes"] += RECORD_BYTES * targets
    for place, record in enumerate(table):
        tree = model._new_tree_like(table, place)
        known = {name: f"{place} {name}" for name in of_trees}
        own = {name: arrays[saved] for name, saved in known.items() if saved in arrays}
        leaf = None if pending[place] == -1 else pending[place]
        restoring.fill_kernel(tree, model._features, own, leaf, name_bytes, is_own=is_own)
        check(tree.rows <= stream[0], f"tree {place} has learned more rows than there were")
        has_rows = bool(stream[0] > record["born"])
        check((tree.rows > 0) == has_rows, f"tree {place} has not learned its rows")
        if targets > 1:
            fewer = tree.target_records.streams["rows"] <= tables.record_table["rows"]
            check(bool(fewer.all()), f"tree {place} has learned more of a target than there was")
        trees.append(tree)
    renewal = kernel.renew
    longest = math.nextafter(renewal.longest, math.inf)  # which it may have reached
    lifetime = validation.between(header["lifetime"], "lifetime", renewal.shortest, longest)
    events = _checked_events(header["events"])
    kernel.use_trees(trees, table, tables, detector, lifetime, events)
    kernel.set_stream(*stream.tolist())
    restoring.restore_pending(kernel.pending, arrays, float(stream[0]), len(model._features.names))
    return model


def _tables(model: "Ensemble", arrays: dict[str, Array], targets: int) -> TargetTables:
    """Return what an ensemble knows of its targets, in tables of the right shapes."""
    kernel = model._kernel
    trees = len(kernel.trees)
    fresh = kernel.fresh_targets(targets)
    blend = doubles(arrays["blend"], fresh.stack_table.shape, "the weights of trees")
    layers = older_formats.layers_with_records(arrays["layer"], targets)
    layer = doubles(layers, fresh.layer_table.shape, "the corrector")
    records, errors = fresh.record_table, fresh_errors(trees, targets)
    if targets > 1:
        records, errors = arrays["targets"], arrays["errors"]
        check(records.dtype == TARGET_RECORD, "its targets are no records of targets")
        check(records.shape == (targets,), f"there are {len(records)} targets, not {targets}")
        doubles(errors, (trees, targets, 2), "the errors of trees")
    return TargetTables(trees, records.copy(), blend.copy(), layer.copy(), errors.copy())


def _check_numbers(
    model: "Ensemble", table: Array, tables: TargetTables, stream: Array, detector: Array
) -> None:
    """Check what an ensemble knows of its trees, of its targets, and of all rows."""
    kernel, rows = model._kernel, [float(stream[0])]
    check_state(detector)
    _check_stream(stream)
    _check_table(model, table, stream)
    if tables.targets > 1:
        _check_targets(tables.record_table, tables.error_table, stream)
        rows = tables.record_table["rows"].tolist()
    for own in np.split(tables.stack_table, tables.targets):
        _check_blend(own, kernel.members)
    if kernel.tracking:
        check_layers(tables.layer_table, rows)


def empty(kind: type[Kind], header: dict[str, Any]) -> Kind:
    """Return an ensemble that has learned nothing, and knows the features of a header."""
    parameters = header["parameters"]
    check(isinstance(parameters, dict), "its parameters are no dict")
    observer = tree_state.observer_of(parameters.get("observer"))
    model = kind(**{**parameters, "observer": observer})
    features = Features.from_header(header["features"], model._features.most_labels)
    same = features.categorical == model._features.categorical
    check(same, "its parameters and its features differ in what is categorical")
    model._features.known = features.known
    restoring.restore_gaps(model._features, header)
    kept = ("pending", "lifetime", "events")
    made = {name: entry for name, entry in _header(model).items() if name not in kept}
    check_unchanged(made, {name: entry for name, entry in header.items() if name not in kept})
    return model


def _checked_events(events: Any) -> list[dict[str, Any]]:
    check(isinstance(events, list) and len(events) <= MOST_EVENTS, "its events are no short list")
    check(all(map(_is_event, events)), "its events are none")
    older = "began "  # how the name of a reset begins in files of formats before
    return [
        {**each, "event": "reset"} if each["event"].startswith(older) else each for each in events
    ]


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and {name: type(e) for name, e in event.items()} == EVENT


def _check_stream(stream: Array) -> None:
    numbers = stream.view(STREAM_NUMBERS.dtype)
    rows, weight, low, high = stream[:4].tolist()
    STREAM_NUMBERS.check(numbers, rows)
    check((weight > 0) == (rows > 0), f"{weight} is no weight of rows")
    check(low <= high, "the range of y is none")


def _check_targets(records: Array, errors: Array, stream: Array) -> None:
    TARGETS.check(records, float(stream[0]))
    fewer = records["begun"] <= records["rows"]
    check(bool(fewer.all()), "a target cannot have so many rows")
    check(bool((records["low"] <= records["high"]).all()), "the range of a target is none")
    good = (errors >= 0) & (errors <= np.array([MOST_SQUARES, MOST_WEIGHT]))
    check(bool(good.all()), "a tree has no error of a target")


def _check_table(model: "Ensemble", table: Array, stream: Array) -> None:
    for place in range(len(table)):
        model._role_of(table, place)
    TREES.check(table, float(stream[0]))
    check(len(set(table["number"].tolist())) == len(table), "two trees have the same number")
    limited = bool(model._parameters["max_bytes"])
    check_all((table["max_bytes"] > 0) == limited, "tree {} has a wrong limit")


def _check_blend(blend: Array, members: int) -> None:
    square, weight = blend[:2]
    weights, products = blend[2 : 2 + members], blend[2 + 2 * members :]
    ends = np.cumsum(np.arange(1, members + 1)) - 1
    check(square >= 0 and 0 <= weight <= MOST_WEIGHT, "the error of the trees is negative")
    check(bool(((weights >= 0) & (weights <= 1)).all()), "the weight of a tree is none")
    check(bool((products[ends] >= 0).all()), "a sum of squares is negative")
    check(bool((np.abs(blend) <= MOST_SQUARES).all()), "the sums of the trees are too large")
