"""A forest in parts, each with some of its members, which learn the same rows side by side."""

import numpy as np

from sapwood.ensemble.forest import FEWEST, ForestRegressor
from sapwood.merge.assembly import Part, assembled
from sapwood.merge.errors import MergeError

__all__ = ["check_parts", "most_parts", "parted", "rejoined"]

APART = 2**32
"""The numbers of trees that wait in different parts are so far from each other: they draw other
weights than all trees of other parts."""


def most_parts(forest: ForestRegressor) -> int:
    """Return into how many parts a forest can be cut."""
    return max(1, forest._kernel.members // FEWEST)


def parted(forest: ForestRegressor, count: int) -> list[ForestRegressor]:
    """Return forests that have the members of one, each some of them; it stays as it is.

    What a member makes of rows does not depend on the part in which it learns them. Each part
    has its own candidate tree, an error-correction layer, and an equal share of the memory.

    - `forest`: all of whose members have learned something.
    - `count`: how many parts; there may be fewer, so that each has two members.
    """
    whole = Part.of(forest)
    members = len(whole.kernels)
    if members < forest._kernel.members:
        raise MergeError("the forest has members that have learned nothing: let it learn a row")
    count = min(count, most_parts(forest))
    limit = whole.parameters["max_bytes"]
    layer = forest._kernel.layer_table.copy() if forest._kernel.tracking else None
    parts = []
    for number in range(count):
        places = range(number, members, count)
        share = None if limit is None else limit * (len(places) + 1) // (members + count)
        own = whole.only(places, threads=1, max_bytes=share)
        corrector = None if layer is None else layer.copy()
        part = assembled([own], [1.0], _stream(whole), whole.targets.copy(), corrector)
        part._kernel.tree_table["number"][-1] += (number + 1) * APART
        parts.append(part)
    return parts


def check_parts(parts: list[ForestRegressor]) -> None:
    """Raise unless parts can become one forest.

    - Raises MergeError if they have learned other rows, or more labels of a feature than there are
      codes for.
    """
    first = parts[0]
    for part in parts:
        same = (part._kernel.rows, part._kernel.weight) == (
            first._kernel.rows,
            first._kernel.weight,
        )
        if not same or first._features != part._features:
            raise MergeError("the members of the forest have learned other rows in one worker")
        for name, count in zip(part._features.names, part._features.known.counts, strict=True):
            if count >= part._features.most_labels:
                raise MergeError(
                    f"{name!r} has {count:,} categories or more, which is as many as each worker "
                    "can distinguish: leave it out, allow more memory (max_bytes), or learn in one "
                    "process"
                )


def rejoined(parts: list[ForestRegressor], forest: ForestRegressor) -> ForestRegressor:
    """Return the forest of some parts, once they have learned the same rows.

    - `parts`: what became of those that `parted` returned.
    """
    check_parts(parts)
    wanted = forest._parameters
    wholes = []
    for number, part in enumerate(parts):
        limit = wanted["max_bytes"] if number == 0 or wanted["max_bytes"] is None else 0
        own = Part.of(part)
        wholes.append(own.only(range(len(own.kernels)), threads=wanted["threads"], max_bytes=limit))
    shares = np.array([len(whole.kernels) for whole in wholes], float)
    first = parts[0]._kernel
    layer = first.layer_table.copy() if first.tracking else None
    return assembled(wholes, shares.tolist(), _stream(wholes[0]), wholes[0].targets, layer)


def _stream(part: Part) -> dict[str, float]:
    return {**part.stream, "looked_at": part.stream["rows"]}
