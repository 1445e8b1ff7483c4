"""One target of a tree of several, as a tree by itself."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.model import State
from sapwood.observers.base import TableObserver
from sapwood.observers.packing import CELL, CELLS, PROTOTYPE, WEIGHT
from sapwood.records import Records
from sapwood.rows.features import TARGETS
from sapwood.tree import memory, tree_state
from sapwood.tree._column_tables import GRID_DOUBLES, SLOT_DOUBLES
from sapwood.tree.layout import STREAM, no_trial
from sapwood.tree.leaf_observers import columns_for

if TYPE_CHECKING:
    from sapwood.tree._kernel import TreeKernel
    from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["arrays_of_target", "state_of_target"]

Array = NDArray[Any]
KEPT_ROW = SLOT_DOUBLES + 1  # doubles


def state_of_target(tree: "HoeffdingTreeRegressor", place: int) -> State:
    """Return the state of a tree of one target that predicts as a tree of several does for it.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor
        Of several targets, which nobody changes meanwhile.
    place : int
        Of the target, which was seen at least once.
    """
    header, kernel = tree_state.header_of(tree), tree._kernel
    features = {name: entry for name, entry in header["features"].items() if name != TARGETS}
    found = arrays_of_target(kernel, place)
    rest = {name: entry for name, entry in header.items() if name != tree_state.UNDECIDED}
    return State({**rest, "features": features}, found)


def arrays_of_target(kernel: "TreeKernel", place: int) -> dict[str, Array]:
    """Return what the kernel of a tree remembers of one of several targets, as one of that target.

    Parameters
    ----------
    kernel : TreeKernel
        Of the tree, which nobody changes meanwhile.
    place : int
        Of the target, which was seen at least once.
    """
    arrays: dict[str, Records] = tree_state.kernel_arrays(kernel)
    targets = kernel.targets
    nodes, leaves = arrays["nodes"].copy(), arrays["leaves"].copy()
    for table, of_targets in ((nodes, "target_nodes"), (leaves, "target_leaves")):
        own = arrays[of_targets].reshape(-1, targets)[:, place]
        for name in own.dtype.names or ():
            table[name] = own[name]
    stream = dict(zip(STREAM, arrays["stream"].tolist(), strict=True))
    known = arrays["target_streams"][place]
    stream |= {name: float(known[name]) for name in STREAM if name in (known.dtype.names or ())}
    stream["ranked_at"] = min(stream["ranked_at"], stream["rows"])
    leaves["born"] = np.minimum(leaves["born"], stream["weight"])
    watched = leaves["weight"][leaves["watching"] != 0]
    found = {
        **{name: arrays[name] for name in tree_state.ARRAYS},
        "nodes": nodes,
        "leaves": leaves,
        "stream": np.array([stream[name] for name in STREAM]),
        "layer": np.array_split(arrays["layer"], targets)[place].copy(),
        "levels": arrays["levels"].reshape(targets, -1, 2)[place].copy(),
        "facts": _facts(arrays, targets, place),
        **_units(arrays, place),
        "models": _models(arrays["models"], kernel, place),
        "watches": _watches(arrays["watches"], kernel, place, watched),
        **_observers(kernel, place, leaves["weight"]),
    }
    if kernel.columns.split_encoded:
        # Its splits go on by the numbers that they were made by.
        found |= {
            "split_encodings": arrays["split_encodings"].copy(),
            "encoding_weights": np.zeros((kernel.features, 1)),
        }
    found |= {"trial": no_trial(), "trial_watches": np.zeros((0, found["watches"].shape[1]))}
    pending = memory.new_pending(kernel.max_bytes, 1) if kernel.tracking else None
    return found | tree_state.pending_arrays(pending)


def _facts(arrays: dict[str, Records], targets: int, place: int) -> Records:
    """Return what is known of features, with what it costs a target to get them wrong."""
    facts = arrays["facts"].copy()
    own = arrays["target_costs"].reshape(-1, targets)[:, place]
    for name in own.dtype.names or ():
        facts[name] = own[name]
    # Samples are of all rows, of which the target may have seen few.
    facts["rises"] = np.minimum(facts["rises"], arrays["target_streams"][place]["rows"])
    return facts


def _units(arrays: dict[str, Records], place: int) -> dict[str, Array]:
    """Return what is known of units, which is of all rows, of which the target may have seen few.

    Errors are in units of the target's deviation there.
    """
    known = arrays["target_streams"][place]
    rows, variance = known["rows"], known["m2"] / max(known["weight"], 1.0)
    units, detection, changes = (arrays[name].copy() for name in ("units", "unrest", "changes"))
    for name in ("samples", "run", "still", "seen", "inside"):
        units[name] = np.minimum(units[name], rows)
    units["wait"] = np.maximum(0.0, rows + units["wait"] - arrays["stream"][STREAM.index("rows")])
    for name in detection.dtype.names or ():
        if name in ("error", "as_is", "in_force") or name.startswith(("weighed_", "square_")):
            detection[name] *= variance
        elif name.startswith("gain_"):
            detection[name] *= np.sqrt(variance)
    changes["row"] = np.minimum(changes["row"], rows)
    return {"units": units, "unrest": detection, "changes": changes}


def _models(pages: Array, kernel: "TreeKernel", place: int) -> Array:
    if not kernel.linear:
        return pages
    start, rest = kernel.model_place(place)
    coefficients = kernel.page_parts()[0]
    own = pages[:, rest : rest + kernel.page_size].copy()
    own[:, :coefficients] = pages[:, start : start + coefficients]
    return own


def _watches(pages: Array, kernel: "TreeKernel", place: int, weights: Array) -> Array:
    """Return what leaves watch, by the rows of the given weights in which a target is present."""
    grids = GRID_DOUBLES * kernel.features
    parts = [pages[:, :grids].copy()]
    for feature in range(kernel.features):
        slots = pages[:, kernel.slot_start(feature) : kernel.slot_start(feature + 1)]
        gaps = pages[:, kernel.gap_start(feature) : kernel.gap_start(feature + 1)]
        own = np.zeros((len(pages), gaps.shape[1] // kernel.targets * SLOT_DOUBLES))
        for page in range(len(pages)):
            grid = parts[0][page, GRID_DOUBLES * feature : GRID_DOUBLES * (feature + 1)]
            missing = gaps[page].reshape(-1, kernel.targets)[:, place]
            own[page] = _slots(slots[page], missing, grid, place, weights[page])
        parts.append(own)
    return np.ascontiguousarray(np.hstack(parts))


def _observers(kernel: "TreeKernel", place: int, weights: Array) -> dict[str, Array]:
    """Return the observers of leaves, by the rows of the given weights that have a target."""
    blobs = [
        tree_state.observer_bytes(_observer(each, kernel.targets, place, float(weights[leaf])))
        for leaf, own in enumerate(kernel.observers)
        for each in own or ()
    ]
    return {
        "observer_sizes": np.array([len(blob) for blob in blobs], dtype=np.int64),
        "observers": np.frombuffer(b"".join(blobs), dtype=np.uint8),
    }


def _observer(observer: TableObserver, targets: int, place: int, most: float) -> TableObserver:
    """Return an observer of one target; its elements weigh no more than their leaf."""
    keys, table = observer._elements()
    cells = table[:, CELLS:].reshape(len(table), observer.targets, CELL)
    known = 1.0 - cells[:, 2 * targets + place, :2].sum(axis=1)
    weight = table[:, WEIGHT] * known
    kept = weight > 0.0
    weight, known = weight[kept] * min(1.0, most / max(weight.sum(), 1e-300)), known[kept]
    parts = [weight, table[kept, PROTOTYPE]]
    for own in (cells[kept, 2 * place], cells[kept, 2 * place + 1]):
        # Rows without the target have counted as zeros.
        means = own[:, :2].sum(axis=1) / known
        squares = own[:, 2] - table[kept, WEIGHT] * known * (1.0 - known) * means**2
        parts += [means, np.zeros(len(means)), np.maximum(squares, 0.0)]
    found = type(observer)(**{**observer._parameters(), "targets": columns_for(1)})
    found._restore(keys[kept], np.column_stack(parts), np.zeros(0))
    return found


def _slots(slots: Array, missing: Array, grid: Array, place: int, most: float) -> Array:
    """Return the slots of one target, of several; rows that are kept are counted again."""
    size = len(slots) // len(missing)
    table = slots.reshape(-1, size)
    if grid[2] > 0.0:
        return _sums(table, missing, place, most).reshape(-1)
    own = np.zeros(len(missing) * SLOT_DOUBLES)
    count = int(grid[3])
    rows = slots[: count * (size + 1)].reshape(count, size + 1)
    sums = np.column_stack([_sums(rows, missing[:count], place, most), rows[:, size]])
    sums = sums[sums[:, 0] > 0.0]
    grid[3] = len(sums)
    own[: sums.size] = sums.reshape(-1)
    own[-SLOT_DOUBLES:] = _sums(table[-1:], missing[-1:], place, most)[0]
    return own


def _sums(slots: Array, missing: Array, place: int, most: float) -> Array:
    """Return the weight and the sums of a target; together they weigh no more than their leaf.

    For what is left of weights where most is missing is inexact.
    """
    weight = np.maximum(slots[:, 0] - missing, 0.0)
    total = weight.sum()
    if total > most:
        weight *= most / total
    sums = np.column_stack([weight, slots[:, 1 + 2 * place], slots[:, 2 + 2 * place]])
    sums[weight == 0.0] = 0.0
    return sums
