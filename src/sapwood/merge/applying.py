"""What becomes of a tree once the rows of all shards are there: it takes them in, and grows."""

from typing import Any

import numpy as np

from sapwood.merge import _delta, correction_layer
from sapwood.merge.alignment import aligned, united
from sapwood.merge.checking import check_fits
from sapwood.merge.column_facts import take_facts
from sapwood.merge.delta import Delta
from sapwood.merge.errors import MergeError
from sapwood.merge.label_sums import add_labels, levels_of_few
from sapwood.merge.leaf_sums import add_to_leaves
from sapwood.merge.recoding import check_labels
from sapwood.merge.snapshot import digest_of, take_snapshot
from sapwood.merge.stream_sums import add_to_streams
from sapwood.rows.features import Features
from sapwood.tree import memory
from sapwood.tree._schema_migration import SchemaMigration
from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["apply", "take_in"]


def apply(tree: HoeffdingTreeRegressor, delta: Delta) -> None:
    """Add the changes of a delta to a tree, and split the leaves that meet the conditions.

    The sums of slots and moments are those that one worker would have that had learned all shards
    without growing; linear models are combined by their information.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor
        The tree of which the snapshot was taken, unchanged since. On an error, the tree does not
        change.
    delta : Delta
        The sum of the deltas of all shards.

    Raises
    ------
    MergeError
        If the delta is of another tree, or the tree has changed.
    """
    if digest_of(take_snapshot(tree, delta.round)) != delta.base:
        raise MergeError(
            f"the delta of round {delta.round} belongs to another snapshot: apply it to the tree "
            "that the snapshot was taken of, before that learns anything else"
        )
    changed = tree.copy()
    take_in(changed, delta)
    # One call, within which no interrupt comes.
    vars(tree).update({name: vars(changed)[name] for name in ("_kernel", "_features", "_reader")})


def take_in(tree: HoeffdingTreeRegressor, delta: Delta) -> None:
    """Do as `apply`, for a tree that nobody else sees and that is known to fit.

    It is of no use any more if this raises.
    """
    kernel = tree._kernel
    features = united(tree._features.to_header(), delta.features, delta.known)
    arrays = aligned(delta.arrays, delta.features, features, kernel.slots)
    check_labels(features, tree._features.most_labels)
    if features["names"] != tree._features.names or features != tree._features.to_header():
        known = Features.from_header(features, tree._features.most_labels).known
        relay = memory.relay(kernel, tree._features, known)
        SchemaMigration(tree._features, known, [relay]).commit_now()
    try:
        check_fits(arrays, kernel)
        correction_layer.check_fits(arrays["layer"], kernel)
    except ValueError as error:
        raise MergeError(f"the delta is of another tree: {error}") from None
    if not delta.rows:
        return
    add_to_streams(kernel, arrays)
    add_to_leaves(kernel, arrays)
    _add_levels(levels_of_few(kernel), arrays["levels"])
    add_labels(kernel, features, arrays["label_sums"], kernel.weight / kernel.rows)
    correction_layer.set_layer(kernel, arrays["layer"])
    take_facts(kernel, arrays["facts"])
    _delta.grow(kernel)


def _add_levels(levels: Any, added: Any) -> None:
    """Add weights and sums of y to the weights and means of categories."""
    some = added[..., 0] > 0.0
    before, own = levels[some], added[some]
    weight = before[:, 0] + own[:, 0]
    levels[some] = np.stack([weight, (before.prod(axis=1) + own[:, 1]) / weight], axis=1)
