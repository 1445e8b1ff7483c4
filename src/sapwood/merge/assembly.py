"""A forest that is assembled from the trees of several models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector._layer import ErrorCorrectionLayer, layer_parts
from sapwood.ensemble.ensemble import KERNEL_BYTES
from sapwood.ensemble.ensemble_state import OWN
from sapwood.ensemble.ensemble_state import STREAM as STREAM_OF_FOREST
from sapwood.ensemble.forest import ForestRegressor
from sapwood.ensemble.layout import TREE_RECORD
from sapwood.ensemble.rules import ROLES
from sapwood.merge import _delta
from sapwood.merge.errors import MergeError
from sapwood.merge.recoding import Order, check_labels, known_by_both, listed_labels, recoded
from sapwood.merge.target_records import errors_of_tree, no_targets, targets_of_tree
from sapwood.model import State
from sapwood.records import Records
from sapwood.rows.features import OTHERS, Features, labels_within
from sapwood.schema import Schema
from sapwood.tree import _memory, memory, tree_state
from sapwood.tree._column_tables import ENCODING_HEAD
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._schema_migration import SchemaMigration
from sapwood.tree.layout import (
    CHANGE_RECORD,
    MOST_UNIT_CHANGES,
    STREAM,
    UNIT_DETECTION_RECORD,
    UNITS_RECORD,
    no_trial,
)
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.tree.settings import TreeSettings
from sapwood.validation import Label

__all__ = ["SHAPING", "Part", "assembled"]

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
    "no_splits",
    "split_bound",
)
"""Parameters that all trees of a forest share, but for what it adds to them."""
ERROR_ROWS = 500.0
"""So many rows count in the exponentially weighted error of a tree, at most."""


@dataclass
class Part:
    """A model that is merged: a copy, so that it can be changed.

    - `pending`: the outstanding decision of each, -1 for none.
    - `weights`, shape (targets, trees): what each of them counts in the model, for each target.
    - `targets`: what the model knows of each of several targets; empty of one.
    - `errors`, shape (trees, targets, 2): the errors of its trees for each of several targets.
    """

    parameters: dict[str, Any]
    reader: Features
    kernels: list[TreeKernel]
    pending: list[int]
    records: Records
    weights: Array
    stream: dict[str, float]
    schema: Schema
    targets: Array
    errors: Array

    def __post_init__(self) -> None:
        self.known = self.reader.known
        self.features = self.reader.to_header()

    @classmethod
    def of(cls, model: Any) -> "Part":
        """Return what a copy of a model brings."""
        copied = model.copy()
        return (
            cls._of_tree(copied) if isinstance(copied, HoeffdingTreeRegressor) else cls._of(copied)
        )

    @classmethod
    def _of_tree(cls, tree: HoeffdingTreeRegressor) -> "Part":
        kernel = tree._kernel
        known = min(kernel.rows, ERROR_ROWS)
        record = np.zeros(1, TREE_RECORD)
        own = (kernel.stream["usual"] * known, known) if kernel.targets == 1 else (0.0, 0.0)
        record[0] = (0, ROLES.index("plain"), 0.0, 0.0, *own, 0, 1)
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
        stream = {name: float(kernel.stream[name]) for name in names}
        return cls(
            parameters,
            tree._features,
            [kernel],
            [kernel.undecided],
            record,
            np.ones((kernel.targets, 1)),
            {**stream, "begun": 0.0},
            tree.schema,
            targets_of_tree(kernel),
            errors_of_tree(kernel, ERROR_ROWS),
        )

    @classmethod
    def _of(cls, forest: ForestRegressor) -> "Part":
        kernel = forest._kernel
        learned = [place for place in range(kernel.members) if kernel.trees[place].rows > 0]
        each = [kernel.weights(place) for place in range(kernel.targets)]
        weights = np.maximum(np.array(each)[:, learned], 0.0)
        several = kernel.targets > 1
        names = ("rows", "weight", "low", "high", "usual", "begun")
        return cls(
            {name: forest._parameters[name] for name in (*SHAPING, "max_bytes", "seed", "threads")},
            forest._features,
            [kernel.trees[place] for place in learned],
            [kernel.trees[place].undecided for place in learned],
            kernel.tree_table[learned],
            _shares(weights),
            {name: float(getattr(kernel, name)) for name in names},
            forest.schema,
            kernel.tables.record_table.copy() if several else no_targets(),
            kernel.tables.error_table[learned] if several else np.zeros((len(learned), 0, 2)),
        )

    def only(self, places: Sequence[int], **parameters: Any) -> "Part":
        """Return a part with some of the trees, and other parameters."""
        return replace(
            self,
            parameters={**self.parameters, **parameters},
            kernels=[self.kernels[place] for place in places],
            pending=[self.pending[place] for place in places],
            records=self.records[[*places]],
            weights=_shares(self.weights[:, [*places]]),
            errors=self.errors[[*places]],
        )


def _shares(weights: Array) -> Array:
    """Return weights of trees that sum up to 1 for each target; equal ones if all are 0."""
    totals = weights.sum(axis=1, keepdims=True)
    equal = np.full(weights.shape, 1 / weights.shape[1])
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), equal)


def _own(tree: HoeffdingTreeRegressor) -> dict[str, Any]:
    return {name: tree._parameters[name] for name in (*SHAPING, "max_bytes")}


def assembled(
    parts: Sequence[Part],
    shares: Sequence[float],
    stream: dict[str, float],
    targets: Array,
    layer: Array | None = None,
) -> ForestRegressor:
    """Return a forest of the trees of some models, which are used up.

    - `parts`: what each of them brings; the parameters are those of the first, with the limits of
      all.
    - `targets`: the same of each of several targets; empty of one.
    - `layer`: the error-correction layer; a new one by default.
    - Raises MergeError if their features or categories cannot be those of one model.
    """
    parameters = _parameters(parts)
    limit = parameters["max_bytes"]
    most = labels_within(limit)
    features, listed = parts[0].features, _listed(parts)
    for part in parts[1:]:
        features = known_by_both(features, part.features, listed)
    check_labels(features, most)
    trees, used = [], 0
    for part in parts:
        for kernel, pending in zip(part.kernels, part.pending, strict=True):
            used += max(_with_all_features(part, kernel, features, most), memory.LEAST_BYTES)
            order = Order.between(part.reader, features)
            arrays = recoded(kernel, order, features["names"])
            arrays |= _unlike_a_member(kernel)
            if not order.is_that_of_before:
                arrays |= _no_trial(kernel, arrays)
            trees.append((arrays, pending))
            part.reader.known = part.known  # as the next tree is read by it
    if limit is not None:
        limit = max(limit, _least_limit(parameters, features, used, len(trees)))
    parameters |= {
        "members": len(trees),
        "max_bytes": limit,
        "categorical": features["categorical"],
    }
    weights = [share * part.weights for share, part in zip(shares, parts, strict=True)]
    state = _state(
        parameters,
        features,
        parts,
        trees,
        weights=_shares(np.concatenate(weights, axis=1)),
        stream=stream,
        targets=targets,
        layer=layer,
    )
    forest = ForestRegressor.from_state(state, ForestRegressor.format)
    forest.schema = _schema(parts)
    return forest


def _schema(parts: Sequence[Part]) -> Schema:
    try:
        return reduce(Schema.joined, (part.schema for part in parts))
    except ValueError as error:
        raise MergeError(str(error)) from None


# -- trees -----------------------------------------------------------------------------------------


def _listed(parts: Sequence[Part]) -> dict[Label, list[Label]]:
    """Return the labels of each feature that splits of any tree distinguish."""
    found: dict[Label, list[Label]] = {}
    for part in parts:
        for kernel in part.kernels:
            for name, labels in listed_labels(kernel, part.reader).items():
                found[name] = found.get(name, []) + labels
    return found


def _with_all_features(part: Part, kernel: TreeKernel, features: dict[str, Any], most: int) -> int:
    """Let a tree know all features and labels, behind its own; return what it occupies then."""
    _check_own_codes(part, kernel)
    _delta.lift_limit(kernel)
    part.reader.most_labels = most
    known = _behind(part.features, features, most).known
    relay = memory.relay(kernel, part.reader, known, 0)
    SchemaMigration(part.reader, known, [relay]).commit_now()
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


def _check_own_codes(part: Part, kernel: TreeKernel) -> None:
    """Raise if labels share codes by their hash: such codes have no meaning among other labels."""
    places, start = kernel.columns.place_table.tolist(), CODES * kernel.features
    for name, count, own in zip(part.known.names, part.known.counts, places, strict=True):
        if own < 0:
            continue
        shared = kernel.encoding_table[
            start + ENCODING_HEAD + count : start + ENCODING_HEAD + own, 0
        ]
        if shared.any():
            raise MergeError(
                f"{validation.shown(name)} has more categories than can be distinguished, so that "
                "some share an encoding: leave it out in both models"
            )
        start += ENCODING_HEAD + own


def _unlike_a_member(kernel: TreeKernel) -> dict[str, Array]:
    """Return the arrays of what a member does not have, as its forest has it; empty ones."""
    stream = {name: float(kernel.stream[name]) for name in STREAM}
    stream["measure_at"] = stream["bound"] = 0.0
    found = {
        "stream": np.array([stream[name] for name in STREAM]),
        "layer": np.zeros(0),
        **tree_state.pending_arrays(),
    }
    if kernel.tracking:  # a tree by itself follows the units of y as well
        found["units"] = np.zeros(kernel.features + 1, UNITS_RECORD)
        found["unrest"] = np.zeros(1, UNIT_DETECTION_RECORD)
        found["changes"] = np.zeros(MOST_UNIT_CHANGES, CHANGE_RECORD)
    return found


def _no_trial(kernel: TreeKernel, arrays: dict[str, Array]) -> dict[str, Array]:
    found = {"trial": no_trial(), "trial_watches": np.zeros((0, kernel.watch_doubles))}
    if "target_trial" in arrays:
        found["target_trial"] = np.zeros_like(arrays["target_trial"])
    return found


# -- the forest ------------------------------------------------------------------------------------


def _parameters(parts: Sequence[Part]) -> dict[str, Any]:
    limits = [part.parameters["max_bytes"] for part in parts]
    limit = None if None in limits else sum(limits)
    return {**parts[0].parameters, "max_bytes": limit}


def _least_limit(
    parameters: dict[str, Any], features: dict[str, Any], used: int, trees: int
) -> int:
    """Return what a forest needs at least, of trees that occupy so much, and of one that waits."""
    forest = ForestRegressor(**{**parameters, "members": trees, "max_bytes": None})
    most = labels_within(parameters["max_bytes"])
    known = Features.from_header(features, most)
    waiting = forest._kernel.trees[-1]
    SchemaMigration(known, known.known, [memory.relay(waiting, known, known.known, 0)]).commit_now()
    used += max(int(_memory.nbytes(waiting)), memory.LEAST_BYTES)
    return int((used + KERNEL_BYTES + known.nbytes) / (1 - memory.SHARE)) + 4096


def _state(
    parameters: dict[str, Any],
    features: dict[str, Any],
    parts: Sequence[Part],
    trees: list[tuple[dict[str, Array], int]],
    *,
    weights: Array,
    stream: dict[str, float],
    targets: Array,
    layer: Array | None,
) -> State:
    """Return the state of a forest of some trees, and of one that begins to wait."""
    forest = ForestRegressor(**parameters)
    kernel = forest._kernel
    known = Features.from_header(features, forest._features.most_labels).known
    waiting = kernel.trees[-1]
    relay = memory.relay(waiting, forest._features, known, 0)
    SchemaMigration(forest._features, known, [relay]).commit_now()
    header, arrays = forest.to_state()
    found = {name: array for name, array in arrays.items() if name in OWN}
    found |= {
        "trees": _records(parts, kernel.tree_table, stream["rows"]),
        "stream": np.array([stream.get(name, 0.0) for name in STREAM_OF_FOREST]),
        "blend": np.concatenate([_blend(arrays["blend"], own) for own in weights]),
        "layer": np.tile(arrays["layer"], len(weights)),
    }
    if len(targets):
        waits = np.zeros((1, len(targets), 2))
        errors = [*(part.errors for part in parts), waits]
        found |= {"targets": targets, "errors": np.concatenate(errors)}
        if kernel.tracking:
            found |= tree_state.pending_arrays(forest._new_pending(len(targets)))
    if kernel.tracking:
        found["layer"] = _fresh_layers(stream, targets, arrays["layer"])
        found["layer"] = found["layer"] if layer is None else layer
    if parameters["max_bytes"] is not None:
        _share_memory(found["trees"], parts, waiting, parameters["max_bytes"], forest)
    for place, (own, _) in enumerate([*trees, (tree_state.kernel_arrays(waiting), -1)]):
        found |= {f"{place} {name}": array for name, array in own.items()}
    header["pending"] = [*(pending for _, pending in trees), -1]
    return State(header, found)


def _records(parts: Sequence[Part], fresh: Records, rows: float) -> Records:
    """Return what is known of each tree, counted by the rows of all models; one waits.

    Trees of one model keep their numbers, and so the weights that are drawn for them.
    """
    table = fresh.copy()
    own = np.concatenate([part.records for part in parts])
    if len(parts) == 1:
        table["number"] = [*own["number"], own["number"].max() + 1]
    ages = np.concatenate([part.stream["rows"] - part.records["born"] for part in parts])
    for name in ("role", "rate", "square", "weight"):
        table[name][:-1] = own[name]
    table["leaves"][:-1] = [kernel.leaf_count for part in parts for kernel in part.kernels]
    table["born"][:-1] = rows - ages
    table["born"][-1] = rows
    return table


def _blend(fresh: Array, weights: Array) -> Array:
    """Return weights of trees that hold until labels arrive."""
    blend = fresh.copy()
    blend[2 : 2 + len(weights)] = weights
    return blend


def _fresh_layers(stream: dict[str, float], targets: Array, unseen: Array) -> Array:
    """Return the last layers of all targets; of one without rows, that of a new model."""
    if not len(targets):
        return _fresh_layer(stream)
    ranges = [{"low": float(own["low"]), "high": float(own["high"])} for own in targets]
    known = targets["rows"] > 0
    layers = [
        _fresh_layer(own) if has_rows else unseen
        for own, has_rows in zip(ranges, known.tolist(), strict=True)
    ]
    return np.concatenate(layers)


def _fresh_layer(stream: dict[str, float]) -> Array:
    """Return an error-correction layer that has seen no row: those of the models followed other streams."""
    low, high = stream["low"], stream["high"]
    layer = ErrorCorrectionLayer()
    middle = np.array([low / 2 + high / 2])
    layer.learn(middle, middle)
    found: Array = layer.state
    for name, start, _ in layer_parts():
        if name in ("low", "high"):
            found[start] = stream[name]
    return found


def _share_memory(
    table: Array, parts: Sequence[Part], waiting: TreeKernel, limit: int, forest: ForestRegressor
) -> None:
    """Let each tree have what it occupies, and an equal part of what is free."""
    kernels = [*(kernel for part in parts for kernel in part.kernels), waiting]
    names = forest._bytes_for_each(forest._features, forest._features.known)
    used = np.array([names + _memory.nbytes(kernel) for kernel in kernels])
    free = limit - forest._own_bytes(len(kernels)) - int(used.sum())
    table["max_bytes"] = np.maximum(used + max(free, 0) // len(kernels), memory.LEAST_BYTES)
