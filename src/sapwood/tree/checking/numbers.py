"""What has to hold for the numbers of a tree that comes from a file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector.checking import check_layers
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.checking.columns import (
    check_changes,
    check_levels,
    check_samples,
    check_unit_detection,
    check_units,
)
from sapwood.tree.checking.pages import check_models, check_watches
from sapwood.tree.checking.structure import check_leaves, check_nodes, check_stream
from sapwood.tree.checking.targets import check_target_trials, check_targets
from sapwood.tree.layout import FACTS, STREAM, TARGET_COSTS, Limits

__all__ = ["check_numbers"]

Array = NDArray[Any]
Kinds = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


def check_numbers(
    kernel: TreeKernel,
    arrays: dict[str, Array],
    columns: tuple[Kinds, NDArray[np.intp]],
    limits: Limits,
) -> None:
    """Check the numbers of a tree, whose arrays have the right shapes and types.

    Parameters
    ----------
    kernel : TreeKernel
        Which has the tables of these arrays.
    arrays : dict
        What `kernel_arrays` of the tree returned.
    columns : tuple
        Of each feature, what it is, as for `check_nodes`; and the places of a high-cardinality
        category.
    limits : Limits
        What bounds their numbers.

    Raises
    ------
    ValueError
        If one of them is wrong.
    """
    nodes, leaves, stream = arrays["nodes"], arrays["leaves"], arrays["stream"]
    targets, rows, own = kernel.targets, [float(stream[STREAM.index("rows")])], None
    kinds, places = columns
    watching = np.flatnonzero(leaves["watching"])
    FACTS.check(arrays["facts"], limits)
    check_samples(arrays["samples"], kinds)
    watched = np.append(kernel.tracking and targets == 1, ~(kinds[0] | kinds[2]))
    check_units(arrays["units"], watched & kernel.watching_units, limits)
    check_unit_detection(arrays["unrest"], arrays["units"])
    check_changes(arrays["changes"], limits)
    if targets > 1:
        streams, of_leaves = arrays["target_streams"], arrays["target_leaves"]
        check_targets(streams, of_leaves, arrays["target_nodes"], leaves, limits)
        check_target_trials(arrays["target_trial"], arrays["trial"], limits)
        TARGET_COSTS.check(arrays["target_costs"], limits)
        own, rows = of_leaves.reshape(-1, targets)[watching], streams["rows"].tolist()
    check_stream(stream, len(leaves))
    check_nodes(nodes, leaves, limits, kinds, kernel.max_depth)
    check_leaves(leaves, limits)
    check_layers(arrays["layer"], rows)
    for levels in arrays["levels"].reshape(targets, -1, 2):
        check_levels(levels, limits, kinds[0], places)
    check_models(arrays["models"], kernel)
    check_watches(arrays["watches"], leaves[watching], kinds[:2], kernel, own)
