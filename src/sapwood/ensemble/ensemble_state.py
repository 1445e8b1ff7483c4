"""An ensemble as a header and arrays, and back: every value is checked before it is used."""

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.blend.checking import check_layer_of
from sapwood.drift.detector import check_state
from sapwood.ensemble._members import TargetTables, fresh_errors
from sapwood.ensemble.layout import TARGET_RECORD, TREE_RECORD
from sapwood.ensemble.renewal import MOST_EVENTS
from sapwood.limits import FAR, MOST_ROWS, MOST_WEIGHT, NEAR, SQUARE
from sapwood.model import State, check_unchanged
from sapwood.records import check, doubles
from sapwood.rows.features import Features
from sapwood.tree import older_formats, tree_state
from sapwood.tree.tree_state import NOTES

if TYPE_CHECKING:
    from sapwood.ensemble.ensemble import Ensemble

__all__ = ["empty", "restored", "state_of"]

Array = NDArray[Any]
Kind = TypeVar("Kind", bound="Ensemble")

STREAM = (
    "rows",
    "weight",
    "low",
    "high",
    "usual",
    "looked_at",
    "lead",
    "lead_square",
    "gain",
    "gain_square",
    "begun",
    "changed",
    "calm",
    "stir",
)
OWN = ("trees", "stream", "blend", "layer", "detector", *NOTES)
OWN_OF_TARGETS = ("targets", "errors")  # of several targets alone
ENTRIES = {"parameters", "features", "pending", "lifetime", "events"}
EVENT = {"event": str, "rows": int, "member": int, "age": int, "error": float}


def state_of(model: "Ensemble") -> State:
    """Return all that an ensemble is."""
    kernel = model._kernel
    arrays = {
        "trees": kernel.tree_table,
        "stream": np.array([float(getattr(kernel, name)) for name in STREAM]),
        "blend": kernel.blend_table,
        "layer": kernel.layer_table,
        "detector": kernel.detector_table,
        **dict(zip(NOTES, tree_state.notes_state(kernel.notes), strict=True)),
    }
    if kernel.targets > 1:
        records = kernel.tables.record_table, kernel.tables.error_table
        arrays |= dict(zip(OWN_OF_TARGETS, records, strict=True))
    for place, tree in enumerate(kernel.trees):
        own = tree_state.kernel_arrays(tree)
        arrays |= {f"{place} {name}": array for name, array in own.items()}
    return State(_header(model), arrays)


def _header(model: "Ensemble") -> dict[str, Any]:
    return {
        "parameters": tree_state.parameters_header(model._parameters),
        "features": model._features.to_header(),
        "pending": [tree.pending for tree in model._kernel.trees],
        "lifetime": model._kernel.lifetime,
        "events": model.replacements,
    }


def restored(kind: type[Kind], state: State) -> Kind:
    """Return the ensemble of a header and arrays, of which nothing is trusted.

    Raises
    ------
    ValueError, TypeError, OverflowError
        If there is anything wrong with them.
    """
    header, arrays = state
    check(header.keys() == ENTRIES, "its header has other entries than it should")
    model = empty(kind, header)
    kernel = model._kernel
    places = range(len(kernel.trees))
    targets = max(1, len(model._features.known.targets))
    of_trees = (*tree_state.ARRAYS, *(tree_state.TARGET_ARRAYS if targets > 1 else ()))
    names = {*OWN, *(f"{place} {name}" for place in places for name in of_trees)}
    names |= set(OWN_OF_TARGETS if targets > 1 else ())
    later = {f"{place} {name}" for place in places for name in older_formats.LATER}
    good = names - later <= arrays.keys() <= names
    check(good, "its arrays are others than those of its trees")
    table = arrays["trees"]
    check(table.dtype == TREE_RECORD, "its trees are no records of trees")
    check(table.shape == (len(places),), f"there are {len(table)} trees, not {len(places)}")
    stream = doubles(arrays["stream"], (len(STREAM),), "the numbers of the stream")
    tables = _tables(model, arrays, targets, stream)
    detector = doubles(arrays["detector"], kernel.detector_table.shape, "the watch over errors")
    check_state(detector)
    _check_stream(stream)
    _check_table(model, table, stream)
    pending = header["pending"]
    check(isinstance(pending, list) and len(pending) == len(places), "pending is no list of trees")
    trees = []
    for place, record in enumerate(table):
        tree = model._new_tree_like(table, place)
        known = {name: f"{place} {name}" for name in of_trees}
        own = {name: arrays[saved] for name, saved in known.items() if saved in arrays}
        leaf = None if pending[place] == -1 else pending[place]
        name_bytes = model._target_bytes(targets)
        tree_state.fill_kernel(tree, model._features, own, leaf, name_bytes=name_bytes)
        check(tree.rows <= stream[0], f"tree {place} has learned more rows than there were")
        has_rows = bool(stream[0] > record["born"])
        check((tree.rows > 0) == has_rows, f"tree {place} has not learned its rows")
        if targets > 1:
            fewer = tree.target_stream_table["rows"] <= tables.record_table["rows"]
            check(bool(fewer.all()), f"tree {place} has learned more of a target than there was")
        trees.append(tree)
    renewal = kernel.renew
    longest = math.nextafter(renewal.longest, math.inf)  # which it may have reached
    lifetime = door.between(header["lifetime"], "lifetime", renewal.shortest, longest)
    events = _checked_events(header["events"])
    kernel.use_trees(trees, table, tables, detector, lifetime, events)
    kernel.set_stream(*stream.tolist())
    tree_state.restore_notes(kernel.notes, arrays, float(stream[0]))
    return model


def _tables(
    model: "Ensemble", arrays: dict[str, Array], targets: int, stream: Array
) -> TargetTables:
    """Return what an ensemble knows of its targets, if it is good."""
    kernel = model._kernel
    trees = len(kernel.trees)
    fresh = kernel.fresh_targets(targets)
    blend = doubles(arrays["blend"], fresh.blend_table.shape, "the weights of trees")
    layer = doubles(arrays["layer"], fresh.layer_table.shape, "the last layer")
    records, errors = fresh.record_table, fresh_errors(trees, targets)
    rows = [float(stream[0])]
    if targets > 1:
        records, errors = arrays["targets"], arrays["errors"]
        check(records.dtype == TARGET_RECORD, "its targets are no records of targets")
        check(records.shape == (targets,), f"there are {len(records)} targets, not {targets}")
        doubles(errors, (trees, targets, 2), "the errors of trees")
        _check_targets(records, errors, stream)
        rows = records["rows"].tolist()
    for own in np.split(blend, targets):
        _check_blend(own, kernel.members)
    if kernel.tracking:
        for own, learned in zip(np.split(layer, targets), rows, strict=True):
            check_layer_of(own, learned)
    return TargetTables(trees, records.copy(), blend.copy(), layer.copy(), errors.copy())


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
    kept = ("pending", "lifetime", "events")
    made = {name: entry for name, entry in _header(model).items() if name not in kept}
    check_unchanged(made, {name: entry for name, entry in header.items() if name not in kept})
    return model


def _checked_events(events: Any) -> list[dict[str, Any]]:
    check(isinstance(events, list) and len(events) <= MOST_EVENTS, "its events are no short list")
    check(all(map(_is_event, events)), "its events are none")
    return list(events)


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and {name: type(e) for name, e in event.items()} == EVENT


def _check_stream(stream: Array) -> None:
    rows, weight, low, high, usual, looked_at, lead, lead_square = stream[:8].tolist()
    gain, gain_square, begun, changed, calm, stir = stream[8:].tolist()
    check(0 <= rows <= MOST_ROWS and rows == int(rows), f"{rows} is no number of rows")
    check(0 <= looked_at <= rows, "it was looked at trees after the last row")
    check((weight > 0) == (rows > 0) and weight <= MOST_WEIGHT, f"{weight} is no weight of rows")
    check(-NEAR <= low <= high <= NEAR, "the range of y is none")
    squares = min(lead_square, gain_square)
    check(0 <= usual <= SQUARE and squares >= 0, "an error is negative")
    largest = max(abs(lead), abs(gain))
    check(largest <= SQUARE * MOST_WEIGHT, "the lead of a tree is too large")
    check(0 <= begun <= rows and begun == int(begun), "it cannot have begun anew then")
    check(0 <= changed <= rows and changed == int(changed), "no change can have been then")
    check(min(calm, stir) >= 0, "an error is negative")


def _check_targets(records: Array, errors: Array, stream: Array) -> None:
    for name in TARGET_RECORD.names or ():
        check(bool(np.isfinite(records[name]).all()), f"the {name} of a target is not finite")
    rows, begun = records["rows"], records["begun"]
    good = (begun >= 0) & (begun <= rows) & (rows <= stream[0])
    good &= (rows == np.floor(rows)) & (begun == np.floor(begun))
    check(bool(good.all()), "a target cannot have so many rows")
    good = (records["low"] >= -NEAR) & (records["low"] <= records["high"])
    check(bool((good & (records["high"] <= NEAR)).all()), "the range of a target is none")
    good = (records["usual"] >= 0) & (records["usual"] <= SQUARE)
    check(bool(good.all()), "the error of a target is negative")
    good = (records["weight"] >= 0) & (records["weight"] <= MOST_WEIGHT)
    good &= (records["m2"] >= 0) & (records["m2"] <= MOST_WEIGHT * SQUARE)
    check(bool(good.all()), "the variance of a target is none")
    good = (np.abs(records["first"]) <= NEAR) & (np.abs(records["mean"]) <= FAR)
    check(bool(good.all()), "the mean of a target is wrong")
    good = (errors >= 0) & (errors <= np.array([1e300, MOST_WEIGHT]))
    check(bool(good.all()), "a tree has no error of a target")


def _check_table(model: "Ensemble", table: Array, stream: Array) -> None:
    check(bool((table["number"] >= 0).all()), "the number of a tree is negative")
    check(len(set(table["number"].tolist())) == len(table), "two trees have the same number")
    for place, record in enumerate(table):
        model._role_of(table, place)
        born, square, weight = (float(record[name]) for name in ("born", "square", "weight"))
        check(0 <= born <= stream[0] and born == int(born), f"tree {place} was never born")
        check(0 <= square <= 1e300 and 0 <= weight <= MOST_WEIGHT, f"tree {place} has no error")
        limited = bool(model._parameters["max_bytes"])
        check((int(record["max_bytes"]) > 0) == limited, f"tree {place} has a wrong limit")
        check(int(record["leaves"]) >= 1, f"tree {place} had no leaves")


def _check_blend(blend: Array, members: int) -> None:
    square, weight = blend[:2]
    weights, products = blend[2 : 2 + members], blend[2 + 2 * members :]
    ends = np.cumsum(np.arange(1, members + 1)) - 1
    check(square >= 0 and 0 <= weight <= MOST_WEIGHT, "the error of the trees is negative")
    check(bool(((weights >= 0) & (weights <= 1)).all()), "the weight of a tree is none")
    check(bool((products[ends] >= 0).all()), "a sum of squares is negative")
    check(bool((np.abs(blend) <= 1e300).all()), "the sums of the trees are too large")
