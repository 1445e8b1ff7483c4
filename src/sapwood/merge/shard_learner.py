"""What a worker does: learn the rows of a shard from a snapshot, and return what they have added."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.merge import _delta, correction_layer
from sapwood.merge.alignment import aligned, are_few, united
from sapwood.merge.column_facts import facts_added
from sapwood.merge.delta import MOST_SHARDS, Delta, joined_scores, scores_of
from sapwood.merge.label_sums import LabelSums, levels_added
from sapwood.merge.snapshot import check_distinct_labels, digest_of, tree_of_snapshot
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
        self._scores = np.zeros(5)
        kernel = self.tree._kernel
        leaves = kernel.leaf_table[: kernel.leaf_count]
        leaves["rows"] += shard % SAMPLE
        self._leaves = leaves.copy()
        self._grids = _delta.grids_of(kernel)
        self._before = tree_state.kernel_arrays(kernel, watches=False)
        self._before["levels"] = kernel.encoding_table.copy()
        facts = kernel.columns.known_facts
        facts["late_cost"] = facts["late_weight"] = 0.0  # of its own rows alone
        self._facts = facts.copy()
        self._rows, self._usual = kernel.rows, kernel.stream["usual"]
        self._labels = LabelSums(self.tree)

    def predict_learn_many(
        self, X: Any, y: ArrayLike, w: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predict rows, then learn them, as a tree does; parameters are as for the tree."""
        self._labels.begin()
        X = self.tree._encoded(X)
        predictions = np.asarray(self.tree.predict_learn_many(X, y, w), dtype=np.float64)
        self._labels.add(X, y, w)
        own = scores_of(np.asarray(y, dtype=np.float64), predictions)
        self._scores = joined_scores(self._scores, own)
        return predictions

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
        if features.known is not known:
            before = self._with_new_features()
        header = features.to_header()
        few = are_few(header)
        laid = np.repeat(few[None, :].astype(np.uint8), kernel.leaf_count, axis=0)
        same = few[: len(known.names)] == self._few  # else the grid was reset
        laid[:, : len(known.names)] |= (self._grids[:, :, 2] > 0.0) & same
        parts = _delta.extract(kernel, self._leaves, before["models"], laid)
        levels = levels_added(kernel.encoding_table, before["levels"], len(features))
        rows = kernel.rows - self._rows
        usual, mass = _delta.faded_usual(self._usual, kernel.stream["usual"], rows)
        counts = [len(labels) for labels in known.categories]
        names = ("sums", "models", "places", "slots", "parts_at", "parts")
        arrays = {
            **dict(zip(names, parts, strict=True)),
            "levels": levels,
            "label_sums": self._labels.all_of(header),
            "facts": facts_added(kernel, self._facts),
            "stream": np.array([rows, kernel.low, kernel.high, mass, usual]),
            "layer": correction_layer.layer_of(kernel),
            "scores": self._scores,
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
        return tree_state.kernel_arrays(tree._kernel, watches=False)
