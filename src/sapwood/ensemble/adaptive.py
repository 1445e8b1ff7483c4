"""The adaptive tree: one tree, and a younger one that takes over once it is plainly better."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.ensemble.ensemble import Ensemble, Role, checked_max_bytes
from sapwood.ensemble.renewal import Challenger
from sapwood.ensemble.rules import EnsembleRules
from sapwood.inspect import snapshot, view
from sapwood.inspect.tree_views import TreeViews
from sapwood.observers.base import TableObserver
from sapwood.rows import missing_flags
from sapwood.rows.features import Features, labels_within
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.bounds import SplitBoundName
from sapwood.tree.growth import SplitOn
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.tree.settings import Leaf, Track, TreeSettings
from sapwood.validation import Label

__all__ = ["AdaptiveTreeRegressor"]


class AdaptiveTreeRegressor(TreeViews, Ensemble):
    """An interpretable tree that adapts to concept drift, at twice the cost of one tree.

    A candidate tree that started later learns the same rows. Once it has learned 250 rows, the
    prediction is a weighted mean of both trees, with weights from their recent errors. The
    candidate replaces the main tree once its errors are significantly smaller. A candidate that
    has not replaced the main tree is reset after 8,000 rows, the next one after 16,000, and so on
    up to 64,000. An error-correction layer uses recent errors.

    Parameters
    ----------
    threads : int, optional
        The number of threads that learn a batch; by default two, if there are two cores.
    grace_period, delta, tau, min_share, max_depth, observer, leaf, split_on, split_bound
        Parameters of both trees, as for `sapwood.HoeffdingTreeRegressor`.
    track : {"auto", None}
        Whether there is an error-correction layer.
    max_bytes : int, optional
        The memory limit of both trees together.
    categorical : iterable of str or int
        Names of features that are categories although their values are numbers.
    no_splits : iterable of str or int
        Names of features that no leaf splits on; linear models still use them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((8000, 2))
    >>> y = np.where(X[:, 0] < 0.5, 10 * X[:, 1], -10 * X[:, 1])
    >>> y[4000:] *= -1  # all is different from here on
    >>> model = AdaptiveTreeRegressor()
    >>> predictions = model.predict_learn_many(X, y)
    >>> bool(np.mean(np.abs(predictions[-1000:] - y[-1000:])) < 0.5)
    True
    >>> print(model.to_text(max_depth=1))
    0 < 0.4...
    """

    kind: ClassVar[str] = "AdaptiveTreeRegressor"
    format: ClassVar[int] = 5

    def __init__(
        self,
        *,
        threads: int | None = None,
        grace_period: float = 200,
        delta: float = 1e-3,
        tau: float = 0.05,
        min_share: float = 0.02,
        max_depth: int | None = None,
        observer: TableObserver | None = None,
        leaf: Leaf = "adaptive",
        split_on: SplitOn = "best",
        track: Track = "auto",
        max_bytes: int | None = None,
        categorical: Iterable[Label] = (),
        no_splits: Iterable[Label] = (),
        split_bound: SplitBoundName = "hoeffding",
    ) -> None:
        plain = TreeSettings.checked(
            grace_period=grace_period,
            delta=delta,
            tau=tau,
            min_share=min_share,
            max_depth=max_depth,
            observer=observer,
            leaf=leaf,
            split_on=split_on,
            track=track,
            max_bytes=None,
            no_splits=no_splits,
            split_bound=split_bound,
        )
        limit = checked_max_bytes(max_bytes, 2)
        features = Features(categorical, labels_within(limit))
        features.flagging = missing_flags.are_allowed(leaf, limit, 2)
        parameters: dict[str, Any] = {
            "threads": None if threads is None else validation.whole(threads, "threads", 1, 1024),
            **plain.parameters,
            "observer": observer,
            "max_bytes": limit,
            "categorical": features.declared,
        }
        self._plain = Role("plain", TreeSettings.checked(**{**plain.parameters, "track": None}))
        rules = EnsembleRules(
            combine="duel",
            seed=0,
            interval=250,
            error_fade=0.995,
            fade=1.0,
            precision=1.0,
            centre=1.0,
            most=1.0,
            duel_age=250.0,
        )
        super().__init__(parameters, features, [self._plain] * 2, rules, Challenger)

    def merge(self, other: Any) -> Any:
        """Raise `MergeError`: an adaptive tree cannot be merged.

        It replaces its tree when the stream changes, which trees of other rows cannot take part
        in. Its tree by itself can be merged, as `model.tree.merge(other)`.

        Parameters
        ----------
        other : HoeffdingTreeRegressor or ForestRegressor
            Any model.

        Raises
        ------
        sapwood.merge.MergeError
            Always.
        """
        from sapwood.merge.union import merged

        return merged(self, other)

    def prune(self, node: int) -> NDArray[np.int32]:
        """Turn a node of the tree into a leaf again, as `HoeffdingTreeRegressor.prune` does.

        The candidate that may replace it keeps its nodes.

        Parameters
        ----------
        node : int
            Its number, as in `to_frame`; 0 is the root.

        Returns
        -------
        array of int
            The new number of each node; for removed nodes, the number of the new leaf.

        Raises
        ------
        ValueError
            If there is no such node, or if it is a leaf.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.random.default_rng(1).random(3000)
        >>> model = AdaptiveTreeRegressor(max_depth=1)
        >>> model.learn_many({"x": x}, np.where(x < 0.5, 1.0, 3.0))
        >>> model.prune(0)
        array([0, 0, 0], dtype=int32)
        >>> model.n_leaves
        1
        """
        return self._prune(node, 0)

    def _next_role(self, number: int) -> Role:
        return self._plain

    def _size(self) -> str:
        return f"{self.n_leaves} leaves"

    # -- the tree itself --------------------------------------------------------------------------

    @property
    def tree(self) -> HoeffdingTreeRegressor:
        """An independent copy of the main tree."""
        return self.member(0)

    def _tree_of(self, target: Label) -> HoeffdingTreeRegressor:
        return self.tree.of_target(target)

    def _one_tree(self) -> HoeffdingTreeRegressor:
        return self.tree

    def _scored_trees(self) -> Sequence[TreeKernel]:
        trees: Sequence[TreeKernel] = self._kernel.trees[:1]
        return trees

    def _picture(self) -> view.TreePicture:
        kernel = self._kernel
        picture: view.TreePicture = kernel.read_locked(
            snapshot.picture, kernel.trees[0], self._features
        )
        return picture
