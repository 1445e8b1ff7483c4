"""One target of an ensemble of several, as an ensemble by itself."""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.ensemble import ensemble_state
from sapwood.ensemble.ensemble_state import STREAM
from sapwood.model import State
from sapwood.rows.features import TARGETS
from sapwood.tree import tree_state
from sapwood.tree.one_target import arrays_of_target

if TYPE_CHECKING:
    from sapwood.ensemble._ensemble import EnsembleKernel
    from sapwood.ensemble.ensemble import Ensemble

__all__ = ["ensemble_of_target"]

Array = NDArray[Any]
Kind = TypeVar("Kind", bound="Ensemble")
SUMS = {"lead": 1, "lead_square": 2, "gain": 1, "gain_square": 2, "calm": 0.5, "stir": 0.5}
"""What is kept in units of a target's variance, to such a power."""


def ensemble_of_target(model: Kind, place: int) -> Kind:
    """Return an ensemble of one target that predicts as one of several does for it.

    Parameters
    ----------
    model : Ensemble
        Of several targets, which nobody changes meanwhile.
    place : int
        Of the target.

    Raises
    ------
    ValueError
        If a tree that has to predict has not learned a y of it yet, or the challenger of an
        adaptive tree is old enough to predict and the target is not.
    """
    made = type(model).from_state(_state_of_target(model, place), model.format)
    made.schema = model.schema.of_target(model.targets[place])
    if made._kernel.weights() != model._kernel.weights(place):
        raise ValueError(
            f"target = {validation.shown(model.targets[place])}: it has fewer rows than its challenger "
            "is old: wait for more of them"
        )
    return made


def _state_of_target(model: "Ensemble", place: int) -> State:
    header, arrays = ensemble_state.state_of(model)
    kernel = model._kernel
    record, has_seen_target = kernel.tables.record_table[place], kernel.has_seen_target(place)
    target = validation.shown(model.targets[place])
    if record["rows"] == 0:
        raise ValueError(f"target = {target}: no y of it was learned yet")
    # All trees predict once there were rows since the reset, before that only the first.
    asked = kernel.members if record["rows"] > record["begun"] else 1
    if not all(has_seen_target[:asked]):
        silent = has_seen_target.index(False)
        raise ValueError(
            f"target = {target}: member {silent} has not learned a y of it yet: wait for rows"
        )
    features = {name: entry for name, entry in header["features"].items() if name != TARGETS}
    header = {**header, "features": features, "pending": [-1] * len(kernel.trees)}
    one = ensemble_state.empty(type(model), header)
    table = arrays["trees"].copy()
    errors = kernel.tables.error_table[:, place]
    table["square"], table["weight"] = errors[:, 0], errors[:, 1]
    age = kernel.rows - table["born"]
    table["born"] = np.where(has_seen_target, np.maximum(record["rows"] - age, 0.0), record["rows"])
    found = {
        "trees": table,
        "stream": _stream(kernel, arrays["stream"], place),
        "blend": np.split(arrays["blend"], kernel.targets)[place],
        "layer": np.split(arrays["layer"], kernel.targets)[place],
        "detector": np.zeros_like(arrays["detector"]),
        **tree_state.pending_arrays(one._kernel.pending),
    }
    for at, tree in enumerate(kernel.trees):
        if has_seen_target[at]:
            own = arrays_of_target(tree, place)
        else:
            table["leaves"][at] = 1
            number = int(table["number"][at])
            own = tree_state.kernel_arrays(one._fresh(one._kernel, number, at)[0])
        found |= {f"{at} {name}": array for name, array in own.items()}
    return State(header, found)


def _stream(kernel: "EnsembleKernel", stream: Array, place: int) -> Array:
    """Return the numbers of the stream as far as rows have a target."""
    known = dict(zip(STREAM, stream.tolist(), strict=True))
    record = kernel.tables.record_table[place]
    rows = float(record["rows"])
    for name in ("looked_at", "changed"):
        known[name] = max(0.0, rows - (known["rows"] - known[name]))
    unit = float(record["m2"] / record["weight"]) if record["weight"] > 0 else 0.0
    for name, power in SUMS.items():
        known[name] *= unit**power
    known |= {name: float(record[name]) for name in ("rows", "begun", "low", "high", "usual")}
    return np.array([known[name] for name in STREAM])
