"""A tree, or the trees of an ensemble, as flat arrays, and how their predictions become one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sapwood.ensemble.ensemble import Ensemble
from sapwood.export.flat import (
    ExportError,
    FlatTree,
    FloatArray,
    Tracking,
    check_one_target,
    flatten,
    readable_in,
    reject_classifier,
    tracking_of,
)
from sapwood.model import Readable
from sapwood.validation import Label, shown

__all__ = ["FlatModel", "flatten_model"]


@dataclass(frozen=True, eq=False)
class FlatModel:
    """Trees, and how their predictions are combined.

    Predictions are averaged by their shares, the mean is clipped to the range of the predictions,
    and the error-correction layer of an ensemble corrects the result. The layer of a single tree is
    part of that tree.
    """

    names: list[Label]  # of the columns of `encode`
    labels: list[list[Label]]  # of the categories of each, in the order of their codes
    trees: list[FlatTree]
    shares: list[float]  # of each tree; they sum up to 1
    # For each tree and each feature that is a code to the ensemble and a number to the tree: the
    # level of each code; the last is the level of missing values.
    levels: list[dict[int, FloatArray]]
    tracking: Tracking | None

    def summands(self, format_name: str) -> list[FlatTree]:
        """Return trees of constant leaves whose sum is what is predicted, or raise.

        - `format_name`: what the format is called, for the message.
        """
        values = [tree.constants(format_name) for tree in self.trees]
        alone = "use to_onnx, or export one tree, as model.member(0)"
        if self.tracking is not None:
            raise ExportError(
                "what recent errors add (track) depends on the predictions of all trees, which "
                f"{format_name} cannot express; train with track=None, {alone}"
            )
        for feature in self.levels[0]:
            raise ExportError(
                f"each tree has levels of its own for the more than 63 categories of "
                f"{shown(self.names[feature])}, which {format_name} cannot express; {alone}"
            )
        if min(self.shares) < 0:
            raise ExportError(
                f"one of the members has a weight below 0 at this moment, and the prediction "
                f"of the ensemble is clipped to those of its members, which {format_name} cannot "
                f"express; {alone}"
            )
        return [
            replace(tree, values=share * own)
            for tree, share, own in zip(self.trees, self.shares, values, strict=True)
        ]


def flatten_model(model: Readable) -> FlatModel:
    """Return a model as it is at this moment.

    Examples
    --------
    >>> from sapwood import AdaptiveTreeRegressor
    >>> model = AdaptiveTreeRegressor(leaf="mean", track=None)
    >>> model.learn_many({"x": [0.0, 1.0] * 500}, [2.0, 5.0] * 500)
    >>> flat = flatten_model(model)
    >>> [len(tree.kind) for tree in flat.trees], sum(flat.shares)
    ([3, 3], 1.0)
    """
    reject_classifier(model)
    found = readable_in(model)
    check_one_target(found)
    if isinstance(found, Ensemble):
        flat: FlatModel = found._kernel.read_locked(_flattened, found)
        return flat
    tree = flatten(found)
    return FlatModel(tree.names, tree.labels, [tree], [1.0], [{}], None)


def _flattened(ensemble: Any) -> FlatModel:
    kernel, features = ensemble._kernel, ensemble._features
    if kernel.rows == 0 or not features.names:
        raise ExportError("the model has learned no features yet; let it learn some rows first")
    shares, tracking = kernel.weights(), tracking_of(kernel)
    if kernel.rows == kernel.begun:  # the first tree alone is not new
        shares, tracking = [1.0], None
    if shares[-1] == 0.0:  # the candidate tree has no weight
        shares = shares[:-1]
    trees = [ensemble._as_tree(place) for place in range(len(shares))]
    many = np.flatnonzero(trees[0]._kernel.columns.place_table >= 0).tolist()
    return FlatModel(
        names=list(ensemble._features.names),
        labels=[list(table) for table in features.categories],
        trees=[flatten(tree) for tree in trees],
        shares=shares,
        levels=[
            {each: np.append(tree._kernel.encodings_of(each), np.nan) for each in many}
            for tree in trees
        ],
        tracking=tracking,
    )
