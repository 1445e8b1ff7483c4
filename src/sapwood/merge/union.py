"""Two finished models as one: a forest that has the trees of both.

Trees that have grown apart have other leaves, and no sum of what these know is what one tree would
know. What both say together is known, though: so their trees become the members of one forest,
each with a weight by the rows that its model has learned, and all of them go on learning.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.blend._layer import LastLayer, layer_parts
from sapwood.door import Label
from sapwood.ensemble.ensemble_state import OWN
from sapwood.ensemble.ensemble_state import STREAM as STREAM_OF_FOREST
from sapwood.ensemble.forest import MOST, ForestRegressor
from sapwood.ensemble.layout import TREE_RECORD
from sapwood.ensemble.rules import ROLES
from sapwood.merge import _delta
from sapwood.merge.errors import MergeError
from sapwood.merge.recoding import Order, known_by_both, listed_labels, recoded
from sapwood.model import State
from sapwood.rows.features import OTHERS, Features, labels_within
from sapwood.tree import _memory, memory, tree_state
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._relay import Registration
from sapwood.tree._tables import LEVEL_HEAD
from sapwood.tree.layout import (
    CHANGE_RECORD,
    MOST_UNIT_CHANGES,
    STREAM,
    UNITS_RECORD,
    UNREST_RECORD,
    no_trial,
)
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.tree.settings import TreeSettings

__all__ = ["merged"]

Array = NDArray[Any]

CODES = OTHERS + 1
SHAPING = (
    "grace_period",
    "delta",
    "tau",
    "min_share",
    "max_depth",
    "observer",
    "leaf",
    "split_on",
    "track",
)
"""Parameters in which both models have to agree, as one forest has one of each."""
ERROR_ROWS = 500.0
"""So many rows weigh in the faded error of a tree, at the most."""
ROOM, FOREST_BYTES = 1.25, 262_144
"""A limit of memory is at least so many times what all trees occupy, and what a forest and a tree
that waits need."""


def merged(one: Any, other: Any) -> ForestRegressor:
    """Return a forest of the trees of two models; both stay as they are.

    Parameters
    ----------
    one, other : HoeffdingTreeRegressor or ForestRegressor
        That have learned different rows of the same target, with the same parameters.

    Raises
    ------
    MergeError
        If they cannot be one model; the message says why.
    """
    _check_models(one, other)
    parts = [_Part.of(one), _Part.of(other)]
    _check_apart(*parts)
    count = sum(len(part.kernels) for part in parts)
    if count > MOST:
        raise MergeError(
            f"there are {count} trees in both together, and a forest has at most {MOST}: take "
            "fewer members in each"
        )
    parameters = _parameters(parts)
    limit = parameters["max_bytes"]
    most = labels_within(limit)
    features = known_by_both(parts[0].features, parts[1].features, most, _listed(parts))
    trees, used = [], 0
    for part in parts:
        for kernel, pending in zip(part.kernels, part.pending, strict=True):
            used += _relaid(part, kernel, features, most)
            order = Order.between(part.reader, features)
            arrays = _as_member(recoded(kernel, order, features["names"]), kernel)
            trees.append((arrays, pending))
            part.reader.known = part.known  # as the next tree is read by it
    if limit is not None:
        limit = max(limit, int(ROOM * used) + FOREST_BYTES)
    parameters |= {"members": count, "max_bytes": limit, "categorical": features["categorical"]}
    state = _state(parameters, features, parts, trees)
    forest = ForestRegressor.from_state(state, ForestRegressor.format)
    forest.column_formats = _formats(one, other)
    return forest


# -- what a model brings ---------------------------------------------------------------------------


@dataclass
class _Part:
    """A model that is merged: a copy, so that it can be changed.

    Parameters
    ----------
    parameters : dict
        Of a forest that has such trees.
    reader : Features
        By which its rows were read.
    kernels : list of TreeKernel
        The trees that have learned something.
    pending : list of int
        The outstanding decision of each, -1 for none.
    records : array of TREE_RECORD
        What is known of each of them.
    weights : array
        What each of them counts in the model.
    stream : dict of str to float
        What the model knows of all of its rows.
    """

    parameters: dict[str, Any]
    reader: Features
    kernels: list[TreeKernel]
    pending: list[int]
    records: Array
    weights: Array
    stream: dict[str, float]

    def __post_init__(self) -> None:
        self.known = self.reader.known
        self.features = self.reader.to_header()

    @classmethod
    def of(cls, model: Any) -> "_Part":
        """Return what a copy of a model brings."""
        twin = model.copy()
        return cls._of_tree(twin) if isinstance(twin, HoeffdingTreeRegressor) else cls._of(twin)

    @classmethod
    def _of_tree(cls, tree: HoeffdingTreeRegressor) -> "_Part":
        kernel = tree._kernel
        known = min(kernel.rows, ERROR_ROWS)
        record = np.zeros(1, TREE_RECORD)
        record[0] = (0, ROLES.index("plain"), 0.0, 0.0, kernel.usual * known, known, 0, 1)
        default = TreeSettings.checked(**{**_own(tree), "observer": None}).parameters["observer"]
        observer = tree._parameters["observer"]
        is_default = tree_state.observer_header(observer) == tree_state.observer_header(default)
        parameters = {
            **{name: tree._parameters[name] for name in (*SHAPING, "max_bytes")},
            "observer": None if is_default else observer,
            "seed": 1,
            "threads": None,
        }
        names = ("rows", "weight", "low", "high", "usual")
        stream = {name: float(getattr(kernel, name)) for name in names}
        return cls(
            parameters,
            tree._features,
            [kernel],
            [kernel.pending],
            record,
            np.ones(1),
            {**stream, "begun": 0.0},
        )

    @classmethod
    def _of(cls, forest: ForestRegressor) -> "_Part":
        kernel = forest._kernel
        learned = [place for place in range(kernel.members) if kernel.trees[place].rows > 0]
        weights = np.maximum(np.array(kernel.weights())[learned], 0.0)
        names = ("rows", "weight", "low", "high", "usual", "begun")
        return cls(
            {name: forest._parameters[name] for name in (*SHAPING, "max_bytes", "seed", "threads")},
            forest._features,
            [kernel.trees[place] for place in learned],
            [kernel.trees[place].pending for place in learned],
            kernel.tree_table[learned],
            weights / weights.sum()
            if weights.sum() > 0
            else np.full(len(learned), 1 / len(learned)),
            {name: float(getattr(kernel, name)) for name in names},
        )


def _own(tree: HoeffdingTreeRegressor) -> dict[str, Any]:
    return {name: tree._parameters[name] for name in (*SHAPING, "max_bytes")}


# -- what is refused -------------------------------------------------------------------------------


def _check_models(one: Any, other: Any) -> None:
    for model in (one, other):
        if type(model) not in (HoeffdingTreeRegressor, ForestRegressor):
            raise MergeError(
                f"a {type(model).__name__} cannot be merged: trees (HoeffdingTreeRegressor) and "
                "forests (ForestRegressor) can be"
            )
        if model._features.known.targets:
            raise MergeError(
                f"a model of {len(model._features.known.targets)} targets cannot be merged: merge "
                "those of one target each, as tree.of_target(name)"
            )
        if not model._kernel.rows:
            raise MergeError("a model has learned nothing yet: there is nothing to merge")
    if one is other:
        raise MergeError("a model cannot be merged with itself: its rows would count twice")


def _check_apart(one: _Part, other: _Part) -> None:
    """Raise unless two models have learned other rows, by the same parameters."""
    known = {_fingerprint(kernel) for kernel in one.kernels}
    if any(_fingerprint(kernel) in known for kernel in other.kernels):
        raise MergeError(
            "both models have a tree that has learned the same rows, which would count twice: "
            "merge models of different rows"
        )
    for name in SHAPING:
        mine, theirs = (part.parameters[name] for part in (one, other))
        if name == "observer":
            mine, theirs = map(tree_state.observer_header, (mine, theirs))
        if mine != theirs:
            raise MergeError(
                f"{name} is {mine!r} in one model and {theirs!r} in the other: a forest has one "
                "for all of its trees; train both with the same"
            )
    if (one.parameters["max_bytes"] is None) != (other.parameters["max_bytes"] is None):
        raise MergeError(
            "max_bytes is given in one model only: what all trees may occupy is the sum of both; "
            "train both with it, or without"
        )


def _fingerprint(kernel: TreeKernel) -> tuple[float, ...]:
    """Return numbers that only a tree that has learned the same rows has."""
    return kernel.rows, kernel.weight, kernel.first, kernel.low, kernel.high, kernel.usual


def _formats(one: Any, other: Any) -> dict[str, str]:
    for name, text in one.column_formats.items():
        if other.column_formats.get(name, text) != text:
            raise MergeError(
                f"{door.shown(name)} was read by the format {text!r} for one model and by "
                f"{other.column_formats[name]!r} for the other: its numbers may mean other things"
            )
    return {**one.column_formats, **other.column_formats}


# -- trees -----------------------------------------------------------------------------------------


def _listed(parts: list[_Part]) -> dict[Label, list[Label]]:
    """Return the labels of each feature that splits of any tree tell apart."""
    found: dict[Label, list[Label]] = {}
    for part in parts:
        for kernel in part.kernels:
            for name, labels in listed_labels(kernel, part.reader).items():
                found[name] = found.get(name, []) + labels
    return found


def _relaid(part: _Part, kernel: TreeKernel, features: dict[str, Any], most: int) -> int:
    """Let a tree know all features and labels, behind its own; return what it occupies then."""
    _check_own_codes(part, kernel)
    _delta.lift_limit(kernel)
    part.reader.most_labels = most
    known = _behind(part.features, features, most).known
    relay = memory.relay(kernel, part.reader, known, 0)
    Registration(part.reader, known, [relay]).commit_now()
    return int(_memory.nbytes(kernel))


def _behind(own: dict[str, Any], features: dict[str, Any], most: int) -> Features:
    """Return all features and labels, those of a part first."""
    place = {name: at for at, name in enumerate(features["names"])}
    names = [*own["names"], *(name for name in features["names"] if name not in {*own["names"]})]
    before = dict(zip(own["names"], own["labels"], strict=True))
    labels = []
    for name in names:
        known, all_labels = before.get(name, []), features["labels"][place[name]]
        known = known if all_labels else []  # those of an identifier are forgotten
        have = {*known}
        labels.append([*known, *(label for label in all_labels if label not in have)])
    kinds = [features["kinds"][place[name]] for name in names]
    return Features.from_header(
        {**features, "names": names, "kinds": kinds, "labels": labels}, most
    )


def _check_own_codes(part: _Part, kernel: TreeKernel) -> None:
    """Raise if labels share codes by their hash: these mean nothing beside other labels."""
    places, start = kernel.columns.place_table.tolist(), CODES * kernel.features
    for name, count, own in zip(part.known.names, part.known.counts, places, strict=True):
        if own < 0:
            continue
        shared = kernel.level_table[start + LEVEL_HEAD + count : start + LEVEL_HEAD + own, 0]
        if shared.any():
            raise MergeError(
                f"{door.shown(name)} has more categories than can be told apart, so that some "
                "share a level: leave it out in both models"
            )
        start += LEVEL_HEAD + own


def _as_member(arrays: dict[str, Array], kernel: TreeKernel) -> dict[str, Array]:
    """Return the arrays of a tree without what a member does not have: the forest has it."""
    stream = dict(zip(STREAM, arrays["stream"].tolist(), strict=True))
    stream["measure_at"] = stream["bound"] = 0.0
    return {
        **arrays,
        "stream": np.array([stream[name] for name in STREAM]),
        "layer": np.zeros(0),
        **dict(zip(tree_state.NOTES, tree_state.NO_NOTES, strict=True)),
        "units": np.zeros(kernel.features + 1, UNITS_RECORD),
        "unrest": np.zeros(1, UNREST_RECORD),
        "changes": np.zeros(MOST_UNIT_CHANGES, CHANGE_RECORD),
        "trial": no_trial(),
        "trial_watches": np.zeros((0, kernel.watch_doubles)),
    }


# -- the forest ------------------------------------------------------------------------------------


def _parameters(parts: list[_Part]) -> dict[str, Any]:
    limits = [part.parameters["max_bytes"] for part in parts]
    limit = None if limits[0] is None else sum(limits)
    return {**parts[0].parameters, "max_bytes": limit}


def _state(
    parameters: dict[str, Any],
    features: dict[str, Any],
    parts: list[_Part],
    trees: list[tuple[dict[str, Array], int]],
) -> State:
    """Return the state of a forest of some trees, and of one that begins to wait."""
    forest = ForestRegressor(**parameters)
    kernel = forest._kernel
    known = Features.from_header(features, forest._features.most_labels).known
    waiting = kernel.trees[-1]
    relay = memory.relay(waiting, forest._features, known, 0)
    Registration(forest._features, known, [relay]).commit_now()
    stream = _stream(parts)
    header, arrays = forest.to_state()
    found = {name: array for name, array in arrays.items() if name in OWN}
    found |= {
        "trees": _records(parts, kernel.tree_table, stream["rows"]),
        "stream": np.array([stream.get(name, 0.0) for name in STREAM_OF_FOREST]),
        "blend": _blend(parts, arrays["blend"]),
    }
    if kernel.tracking:
        found["layer"] = _layer(stream)
    if parameters["max_bytes"] is not None:
        _share_memory(found["trees"], parts, waiting, parameters["max_bytes"], forest)
    for place, (own, _) in enumerate([*trees, (tree_state.kernel_arrays(waiting), -1)]):
        found |= {f"{place} {name}": array for name, array in own.items()}
    header["pending"] = [*(pending for _, pending in trees), -1]
    return State(header, found)


def _stream(parts: list[_Part]) -> dict[str, float]:
    """Return what is known of the rows of both models."""
    streams = [part.stream for part in parts]
    rows = sum(each["rows"] for each in streams)
    return {
        "rows": rows,
        "weight": sum(each["weight"] for each in streams),
        "low": min(each["low"] for each in streams),
        "high": max(each["high"] for each in streams),
        "usual": sum(each["usual"] * each["rows"] for each in streams) / rows,
        "looked_at": rows,
        "begun": sum(each["begun"] for each in streams),
    }


def _records(parts: list[_Part], fresh: Array, rows: float) -> Array:
    """Return what is known of each tree, counted by the rows of both models; one waits."""
    table = fresh.copy()
    own = np.concatenate([part.records for part in parts])
    ages = np.concatenate([part.stream["rows"] - part.records["born"] for part in parts])
    for name in ("role", "rate", "square", "weight"):
        table[name][:-1] = own[name]
    table["leaves"][:-1] = [kernel.leaf_count for part in parts for kernel in part.kernels]
    table["born"][:-1] = rows - ages
    table["born"][-1] = rows
    return table


def _blend(parts: list[_Part], fresh: Array) -> Array:
    """Return the weights of trees: by rows, until labels tell more."""
    rows = np.array([part.stream["rows"] - part.stream["begun"] for part in parts])
    shares = rows / rows.sum() if rows.sum() else np.full(2, 0.5)
    weights = [share * part.weights for share, part in zip(shares, parts, strict=True)]
    blend = fresh.copy()
    theta = np.concatenate(weights)
    blend[2 : 2 + len(theta)] = theta / theta.sum()
    return blend


def _layer(stream: dict[str, float]) -> Array:
    """Return a last layer that has seen no row: those of the models followed other streams."""
    low, high = stream["low"], stream["high"]
    layer = LastLayer()
    middle = np.array([low / 2 + high / 2])
    layer.learn(middle, middle)
    found: Array = layer.state
    for name, start, _ in layer_parts():
        if name in ("low", "high"):
            found[start] = stream[name]
    return found


def _share_memory(
    table: Array, parts: list[_Part], waiting: TreeKernel, limit: int, forest: ForestRegressor
) -> None:
    """Let each tree have what it occupies, and an equal part of what is free."""
    kernels = [*(kernel for part in parts for kernel in part.kernels), waiting]
    used = np.array([_memory.nbytes(kernel) for kernel in kernels])
    free = limit - forest._own_bytes(forest._features, len(kernels)) - int(used.sum())
    table["max_bytes"] = np.maximum(used + max(free, 0) // len(kernels), memory.LEAST_BYTES)
