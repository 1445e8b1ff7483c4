"""What a worker does: learn the rows of a shard from a snapshot, and return what they have added."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.merge import _delta, correction_layer
from sapwood.merge.alignment import aligned, are_few, united
from sapwood.merge.column_facts import facts_added, records_of_costs
from sapwood.merge.delta import MOST_SHARDS, Delta, joined_scores, learned_and_scored
from sapwood.merge.label_sums import LabelSums, levels_added, levels_of_few
from sapwood.merge.layout import SCORES
from sapwood.merge.leaf_sums import added_to_leaves
from sapwood.merge.snapshot import check_distinct_labels, digest_of, tree_of_snapshot
from sapwood.merge.stream_sums import records_of_streams, stream_added
from sapwood.rows import targets
from sapwood.tree import memory, tree_state
from sapwood.tree._schema_migration import SchemaMigration

__all__ = ["ShardLearner"]

Array = NDArray[Any]

SAMPLE = 8
"""A leaf updates its covariance by every such row; shards begin at different ones."""


class ShardLearner:
    """Learns rows like a tree, but without splitting leaves.

    Parameters
    ----------
    snapshot : bytes
        Of the tree, from `take_snapshot`; all is checked.
    shard : int
        The number of the shard, in the order of rows; from 0 on.

    Raises
    ------
    ModelFileError, MergeError
        If the snapshot is damaged, or of another release.
    ValueError
        If `shard` is no such number.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> from sapwood.merge import ShardLearner, apply, take_snapshot
    >>> X = np.random.default_rng(1).random((4000, 3))
    >>> y = X @ [1.0, 2.0, 3.0]
    >>> tree = sapwood.HoeffdingTreeRegressor()
    >>> tree.learn_many(X[:1000], y[:1000])
    >>> snapshot, deltas = take_snapshot(tree), []
    >>> for shard in range(3):
    ...     worker, own = ShardLearner(snapshot, shard), slice(1000 + shard, None, 3)
    ...     _ = worker.predict_learn_many(X[own], y[own])
    ...     deltas.append(worker.delta())
    >>> apply(tree, deltas[2] + deltas[0] + deltas[1])
    >>> tree
    <HoeffdingTreeRegressor(): ... leaves, 4000 rows learned>
    """

    def __init__(self, snapshot: bytes, shard: int = 0) -> None:
        self._snapshot = snapshot
        self.shard = validation.whole(shard, "shard", 0, MOST_SHARDS)
        self.tree, self.round = tree_of_snapshot(snapshot)
        self._known = self.tree._features.known
        self._few = are_few(self.tree._features.to_header())
        self._scores = np.zeros(len(SCORES))
        kernel = self.tree._kernel
        arrays = tree_state.kernel_arrays(kernel, watches=False)
        for name in ("leaves", *(("target_leaves",) if kernel.targets > 1 else ())):
            arrays[name]["rows"] += shard % SAMPLE
        self._grids = _delta.grids_of(kernel)
        self._before = {name: array.copy() for name, array in arrays.items()}
        self._levels = levels_of_few(kernel).copy()
        costs = records_of_costs(kernel)
        costs["late_cost"] = costs["late_weight"] = 0.0  # of its own rows alone
        self._costs = costs.copy()
        self._streams = records_of_streams(kernel).copy()
        self._labels = LabelSums(self.tree)

    def predict_learn_many(
        self, X: Any, y: ArrayLike, w: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predict rows, then learn them, as a tree does; parameters are as for the tree."""
        self._labels.begin()
        X, read = self.tree._encoded(X), targets.read(y)
        values, scores = learned_and_scored(self.tree, X, read, w)
        self._labels.add(X, read.values, w)
        self._scores = joined_scores(self._scores, scores)
        return values

    def delta(self) -> Delta:
        """Return what the rows so far have added to the tree.

        Raises
        ------
        MergeError
            If a feature has more categories by now than can be distinguished.
        """
        kernel, features = self.tree._kernel, self.tree._features
        before = self._before
        known = self._known
        check_distinct_labels(self.tree)
        levels = self._levels
        if features.known is not known:
            new = self._with_new_features()
            before, levels = before | {"models": new["models"]}, new["levels"]
        header = features.to_header()
        few = are_few(header)
        laid = np.repeat(few[None, :].astype(np.uint8), kernel.leaf_count, axis=0)
        same = few[: len(known.names)] == self._few  # else the grid was reset
        laid[:, : len(known.names)] |= (self._grids[:, :, 2] > 0.0) & same
        counts = [len(labels) for labels in known.categories]
        arrays = {
            **added_to_leaves(kernel, before, laid),
            "levels": levels_added(levels_of_few(kernel), levels),
            "label_sums": self._labels.all_of(header),
            "facts": facts_added(kernel, self._costs),
            "stream": stream_added(kernel, self._streams),
            "layer": correction_layer.layer_of(kernel),
            "scores": np.broadcast_to(self._scores, (kernel.targets, len(SCORES))).copy(),
        }
        canonical = united(header, header, counts)
        arrays = aligned(arrays, header, canonical, kernel.slots)
        digest = digest_of(self._snapshot)
        return Delta(digest, self.round, (self.shard,), canonical, counts, arrays)

    def _with_new_features(self) -> dict[str, Array]:
        """Return what there was before, as if the new features had been known then."""
        tree, _ = tree_of_snapshot(self._snapshot)
        known = self.tree._features.known
        relay = memory.relay(tree._kernel, tree._features, known)
        SchemaMigration(tree._features, known, [relay]).commit_now()
        found = tree_state.kernel_arrays(tree._kernel, watches=False)
        return {"models": found["models"], "levels": levels_of_few(tree._kernel)}
