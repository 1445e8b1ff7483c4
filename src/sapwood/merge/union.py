"""Two finished models as one: a forest that has the trees of both.

Trees that have grown apart have other leaves, and no sum of what these know is what one tree would
know. The sum of their predictions is known, though: so their trees become the members of one forest,
each with a weight by the rows that its model has learned, and all of them go on learning.
"""

from typing import Any

import numpy as np

from sapwood import validation
from sapwood.ensemble.adaptive import AdaptiveTreeRegressor
from sapwood.ensemble.forest import MOST, ForestRegressor
from sapwood.merge.assembly import SHAPING, Part, assembled
from sapwood.merge.errors import MergeError
from sapwood.merge.same_rows import have_same_rows
from sapwood.merge.target_records import joined_targets
from sapwood.tree import tree_state
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.validation import Label

__all__ = ["merged"]


def merged(one: Any, other: Any) -> ForestRegressor:
    """Return a forest of the trees of two models; both stay as they are.

    - `one`, `other`: that have learned different rows of the same targets, with the same
      parameters.
    - Raises MergeError if they cannot be one model; the message names the reason.
    """
    _check_models(one, other)
    parts = [Part.of(one), Part.of(other)]
    _check_apart(*parts)
    count = sum(len(part.kernels) for part in parts)
    if count > MOST:
        raise MergeError(
            f"there are {count} trees in both together, and a forest has at most {MOST}: take "
            "fewer members in each"
        )
    rows = [part.stream["rows"] - part.stream["begun"] for part in parts]
    targets = joined_targets([part.targets for part in parts])
    return assembled(parts, rows if any(rows) else [1.0, 1.0], _stream(parts), targets)


def _stream(parts: list[Part]) -> dict[str, float]:
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


# -- what is rejected ------------------------------------------------------------------------------


def _check_models(one: Any, other: Any) -> None:
    for model in (one, other):
        if type(model) is AdaptiveTreeRegressor:
            raise MergeError(
                "an AdaptiveTreeRegressor cannot be merged, as it replaces its tree when the stream "
                "changes: merge its tree by itself, as model.tree"
            )
        if type(model) not in (HoeffdingTreeRegressor, ForestRegressor):
            raise MergeError(
                f"a {type(model).__name__} cannot be merged: trees (HoeffdingTreeRegressor) and "
                "forests (ForestRegressor) can be"
            )
        trees = getattr(model._kernel, "trees", [model._kernel])
        if any(tree.columns.split_encoded for tree in trees):
            raise MergeError(
                "a model whose splits read a feature of more than 63 categories by an encoding of "
                "several targets cannot be merged: the encodings of two models differ; merge models "
                "that were trained with one target"
            )
        if not model._kernel.rows:
            raise MergeError("a model has learned nothing yet: there is nothing to merge")
    if one is other:
        raise MergeError("a model cannot be merged with itself: its rows would count twice")
    if one._origin is other._origin:
        raise MergeError(
            "both models are copies or parts of one that had learned rows, which would count "
            "twice: merge models of different rows"
        )
    mine, theirs = one.targets, other.targets
    if mine != theirs:
        raise MergeError(
            f"{_named(mine)} in one model and {_named(theirs)} in the other: models of the same "
            "targets in the same order can be merged, or those of one target, as "
            "model.of_target(name)"
        )


def _named(targets: list[Label]) -> str:
    """Return words for the targets of a model."""
    names = ", ".join(map(validation.shown, targets))
    return f"the targets are {names}" if targets else "there is one target"


def _check_apart(one: Part, other: Part) -> None:
    """Raise unless two models have learned other rows, by the same parameters."""
    known = {_fingerprint(kernel) for kernel in one.kernels}
    readers = one.reader, other.reader
    if any(_fingerprint(kernel) in known for kernel in other.kernels) or any(
        have_same_rows(mine, theirs, readers) for mine in one.kernels for theirs in other.kernels
    ):
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


def _fingerprint(kernel: TreeKernel) -> tuple[float, ...]:
    """Return numbers that only a tree that has learned the same rows has."""
    names = ("first", "low", "high", "usual")
    if kernel.targets > 1:
        streams = kernel.target_records.streams
        own = np.concatenate([streams[name] for name in names]).tolist()
    else:
        own = [kernel.stream[name] for name in names]
    return kernel.rows, kernel.weight, *own
