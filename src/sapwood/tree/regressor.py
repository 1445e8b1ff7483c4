"""The tree: an online regressor."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.inspect import snapshot, view
from sapwood.inspect.explanation import Explanation
from sapwood.inspect.tree_views import TreeViews
from sapwood.model import State
from sapwood.observers.base import TableObserver
from sapwood.regressor import GrowthOf, Regressor
from sapwood.row_learning import recorded
from sapwood.row_methods import RegionMethods
from sapwood.rows import frames, missing_flags, targets
from sapwood.rows.encoder import EncodedRows
from sapwood.rows.features import Features, checked_names, labels_within
from sapwood.tree import _memory, memory, one_target, pruning, restoring, tree_state
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._pruning import commit_splits
from sapwood.tree._schema_migration import SchemaMigration
from sapwood.tree.bounds import SplitBoundName
from sapwood.tree.growth import SplitOn
from sapwood.tree.settings import Leaf, Track, TreeSettings
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.ensemble.forest import ForestRegressor

__all__ = ["HoeffdingTreeRegressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


class HoeffdingTreeRegressor(RegionMethods, TreeViews, Regressor):
    """A regression tree that learns from a stream, row by row, in bounded time and memory.

    Leaves observe their features. A leaf splits when the split bound shows that one feature has a
    better split point than all others. A leaf predicts by its mean, by linear models, or by both,
    weighted by their recent errors. An error-correction layer uses the recent errors of the tree.

    Parameters
    ----------
    grace_period : float
        The weight of the rows that a leaf sees before it may split.
    delta : float
        The accepted probability that a leaf splits on a feature that is not the best one.
    tau : float
        A leaf also splits once the bound is below this value, although the two best features have
        similar merits.
    min_share : float
        The smallest share of the rows of a leaf on each side of a split.
    max_depth : int, optional
        The largest depth of the tree; with 0, it never splits.
    observer : observer, optional
        An empty observer: each leaf gets a copy of it for each numeric feature. By default, and
        for a `QuantizerObserver` of radius "auto", a leaf has bins of equal width over the range of
        the values, as many as the observer has slots (32 by default).
    leaf : {"adaptive", "linear", "mean"}
        How a leaf predicts: by its mean; by linear models, which forget at different rates; or by
        all of them, each with a weight from its own exponentially weighted error.
    split_on : {"best", "residual", "target"}
        What splits explain: "target" is y; "residual" is the residual of the leaf's linear model,
        by a step or a change of slope; "best" is the split with the smaller remaining error, or a
        split of y if its parts are far apart. With ``leaf="mean"`` it is y.
    track : {"auto", None}
        Whether an error-correction layer combines predictions with forecasts from recent labels.
        Their weights are learned from issued predictions. Labels may arrive at once, in batches,
        late, or never.
    max_bytes : int, optional
        What the tree may occupy. At the limit, the least promising leaves drop their bins, which
        they need for splits, and get bins again when there is room.
    categorical : iterable of str or int
        Names of features that are categories although their values are numbers. Features whose
        values are strings, or a pandas categorical, are so anyway.
    no_splits : iterable of str or int
        Names of features that no leaf splits on, such as a running number or the time: linear
        models still use them. They may come later, or never.
    split_bound : {"hoeffding", "anytime"}
        The bound by which one feature must be better than all others. Hoeffding's holds for a
        single test with probability 1 - `delta`; a leaf tests many times. The anytime bound holds
        for all tests together. It needs about 1.7 times as many rows for a split.

    Attributes
    ----------
    schema : sapwood.schema.Schema
        How the columns of rows become features, if the command line has found that out: it is
        saved with the tree, and applied to all rows that the tree is given.

    Notes
    -----
    Missing values (NaN, None, an absent key) are legal in all features. A split sends them to the
    side whose rows are more similar to those in which the value was missing, or to the heavier side
    if there were none. Unknown categories are treated in the same way. In linear models the mean
    replaces a missing value. Numbers that are infinite, y that are not finite, and weights that are
    not positive are rejected, before anything is changed.

    Splits distinguish up to 63 categories of a feature. From the 64th category on, the feature
    uses target encoding: the mean y of the earlier rows of a category, shrunk towards the mean of
    all rows, represents the category. A new category has the mean of all rows. Up to 65,536
    categories of a feature have their own encoding (with `max_bytes` one for each 4,096 bytes, and
    at least 64); all others share a quarter as many, by a hash. If the first 16,384 categories
    hardly ever repeat, they are identifiers: the feature is treated as missing from then on, which
    `feature_kinds` and `summary` report.

    With an error-correction layer (`track`), the tree detects that a feature or y arrives in other
    units from some row on: another scale, or another zero. If rescaled values have smaller errors,
    the tree converts its thresholds and coefficients to the new units. `unit_changes` lists such
    changes. With an `observer` other than the default one, the tree does not detect them.

    References
    ----------
    E. Ikonomovska, J. Gama and S. Džeroski, "Learning model trees from evolving data streams",
    Data Mining and Knowledge Discovery 23, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((5000, 3))
    >>> y = np.where(X[:, 0] < 0.5, 10 * X[:, 1], -10 * X[:, 1])
    >>> tree = HoeffdingTreeRegressor()
    >>> predictions = tree.predict_learn_many(X, y)
    >>> bool(np.mean(np.abs(predictions[-1000:] - y[-1000:])) < 0.5)
    True
    >>> tree.learn_one({0: 0.2, 1: 0.5, 2: None}, 5.0)
    >>> round(tree.predict_one({0: 0.2, 1: 0.5, 2: None}))
    5
    """

    _renumbered: tuple[IntArray, ...] = ()  # the new numbers of nodes, for each pruning
    kind: ClassVar[str] = "HoeffdingTreeRegressor"
    format: ClassVar[int] = 6
    _kernel: TreeKernel

    def __init__(
        self,
        *,
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
        settings = TreeSettings.checked(
            grace_period=grace_period,
            delta=delta,
            tau=tau,
            min_share=min_share,
            max_depth=max_depth,
            observer=observer,
            leaf=leaf,
            split_on=split_on,
            track=track,
            max_bytes=max_bytes,
            no_splits=no_splits,
            split_bound=split_bound,
        )
        limit = settings.parameters["max_bytes"]
        features = Features(categorical, labels_within(limit))
        features.flagging = missing_flags.are_allowed(leaf, limit, 1)
        parameters = {**settings.parameters, "categorical": features.declared}
        super().__init__(parameters, features, settings.new_kernel(features))

    def _use_growth(self, growth_of: GrowthOf) -> None:
        own = {name: each for name, each in self._parameters.items() if name != "categorical"}
        settings = TreeSettings.checked(**own)
        growth = growth_of(settings.growth, 0.0, 0)
        self._kernel.set_rules(growth.to_record(), settings.memory.to_record())
        self._growth_of = growth_of

    # -- where rows belong ----------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[Any, int]:
        if self._features.encoding is not None:
            x = self._features.encoding.encode_one(x)
        found = self._kernel.place_one(self._reader, x, record, key)
        if found is not None:
            return found
        regions = np.empty(1, np.int32)
        read = partial(self._features.read_one, x, learn=False)
        plan, predictions = self._predict_read(read, regions=regions, **recorded(key, record))
        prediction = predictions[0].tolist()
        if plan.targets:
            prediction = targets.named(plan.targets, prediction)
        return prediction, int(regions[0])

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray]:
        read = partial(self._features.read, frames.lasting(X), learn=False)
        plan = read()
        regions = np.empty(len(plan.matrix), np.int32)
        own: dict[str, Any] = {"regions": regions, "ids": keys, "asked": record}
        predictions = self._predict_plan(plan, **own)
        if predictions is None:
            _, predictions = self._predict_read(read, **own)
        return predictions, regions

    @property
    def region_parents(self) -> IntArray:
        """The node that each node was split off from; -1 for the root."""
        return self._kernel.read_locked(_parents, self._kernel)

    def _registration(self, plan: EncodedRows, names: tuple[Label, ...]) -> SchemaMigration | None:
        """Return what rows bring that is new, once nobody else may change the tree."""
        known = plan.known(self._kernel.rows, names)
        gaps = self._gaps(plan, known)
        if known is self._features.known:
            return None if gaps is None else SchemaMigration(self._features, known, [], gaps)
        relay = memory.relay(self._kernel, self._features, known)
        return SchemaMigration(self._features, known, [relay], gaps)

    def _has_room(self, plan: EncodedRows, names: tuple[Label, ...], weights: FloatArray) -> bool:
        known, kernel = plan.known(targets=names), self._kernel
        splits = memory.most_splits(kernel, len(weights), float(weights.sum()))
        return memory.has_room(kernel, self._features, known, splits)

    # -- several targets ------------------------------------------------------------------------

    def of_target(self, target: Label) -> "HoeffdingTreeRegressor":
        """Return a copy of the tree for one of several targets, as a tree of one target.

        It predicts as the tree does for that target, bit for bit, has its importances, and can be
        explained, drawn and exported as every tree of one target.

        Parameters
        ----------
        target : str or int
            Its name.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.random.default_rng(1).random(3000)
        >>> tree = HoeffdingTreeRegressor()
        >>> tree.learn_many({"x": x}, {"up": x, "down": np.where(x < 0.5, -x, 0.0)})
        >>> down = tree.of_target("down")
        >>> down.predict_one({"x": 0.25}) == tree.predict_one({"x": 0.25})["down"]
        True
        """
        place = self._place_of(target)
        state: State = self._kernel.read_locked(one_target.state_of_target, self, place)
        tree: HoeffdingTreeRegressor = self._of_same_rows(
            HoeffdingTreeRegressor.from_state(state, self.format)
        )
        tree.schema = self.schema.of_target(target)
        return tree

    def _place_of(self, target: Label) -> int:
        place = super()._place_of(target)
        if self._kernel.target_records.streams[place]["rows"] == 0:
            raise ValueError(f"target = {validation.shown(target)}: no y of it was learned yet")
        return place

    # -- what it may split on, and what it should not have split on --------------------------------

    @property
    def no_splits(self) -> tuple[Label, ...]:
        """The names of features that no leaf splits on; others can be assigned at any time.

        Splits that there are stay: see `prune`.
        """
        return self._kernel.no_splits

    @no_splits.setter
    def no_splits(self, names: Iterable[Label]) -> None:
        self._kernel.write_locked(self._change_no_splits, checked_names(names, "no_splits"))

    def _change_no_splits(self, names: tuple[Label, ...]) -> None:
        own = {name: each for name, each in self._parameters.items() if name != "categorical"}
        rules = TreeSettings.checked(**own).without_splits_on(names).memory
        change = pruning.other_splits(self._kernel, self._features, names, rules)
        commit_splits([change], names, self._parameters)

    def prune(self, node: int) -> IntArray:
        """Turn a node into a leaf again, and remove the nodes below it.

        Use it for a wrong split, such as one on a running number or on a broken sensor. Name the
        feature in `no_splits` first, so that the split is not made again.

        The new leaf summarises the leaves below the node. Its weight and its mean are those of all
        of their rows. Its linear models are weighted means of their models; the weights are the
        inverses of the covariances of coefficients, so the result is close to least squares over
        all of these rows. The bins of the leaf are empty, as the leaves below covered other ranges,
        and it splits again after enough rows. All other leaves predict as before, bit for bit.

        An `IntervalRegressor` around the tree follows: the region of the leaf has the errors of
        those below.

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
        >>> rng = np.random.default_rng(1)
        >>> number, x = rng.permutation(4000), rng.random(4000)
        >>> tree = HoeffdingTreeRegressor(max_depth=1)
        >>> tree.learn_many({"number": number, "x": x}, 5.0 * (number < 2000) + x)
        >>> print(tree.to_text(digits=1))
        number <= 2015  (missing: no)
        ├─ yes: 5  (weight 2016, linear)
        └─ no:  0.5  (weight 1984, linear)
        >>> tree.no_splits = ["number"]
        >>> tree.prune(0)
        array([0, 0, 0], dtype=int32)
        >>> print(tree.to_text(digits=1))
        3  (weight 4000, linear)
        """
        places: IntArray = self._kernel.write_locked(self._prune, node)
        return places

    def _prune(self, node: int) -> IntArray:
        places = pruning.prune(self._kernel, node)
        self._renumbered = (*self._renumbered, places)
        return places

    # -- another site's tree --------------------------------------------------------------------

    def merge(self, other: "HoeffdingTreeRegressor | ForestRegressor") -> "ForestRegressor":
        """Return a forest of this tree and the trees of a model that has learned other rows.

        Trees with different splits cannot become one tree, so they become members of a forest. At
        first, the weight of a member is proportional to the rows that it has learned; labels then
        change the weights. All members continue to learn. The error-correction layer is reset. Both
        models stay as they are. Workers that start from one tree can merge exactly: see
        `sapwood.merge`.

        Parameters
        ----------
        other : HoeffdingTreeRegressor or ForestRegressor
            With the same parameters.

        Raises
        ------
        sapwood.merge.MergeError
            If they cannot be one model: of other parameters, of features that are numbers here and
            labels there, of other targets, or of the same rows.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(1).random((4000, 3))
        >>> y = X @ [1.0, 2.0, 3.0]
        >>> north, south = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
        >>> north.learn_many(X[:2000], y[:2000])
        >>> south.learn_many(X[2000:], y[2000:])
        >>> north.merge(south)
        <ForestRegressor(members=2, max_bytes=None): 2 members, ... leaves, 4000 rows learned>
        """
        from sapwood.merge.union import merged

        return merged(self, other)

    # -- looking inside -----------------------------------------------------------------------

    @property
    def n_leaves(self) -> int:
        """The number of leaves of the tree."""
        return self._kernel.leaf_count

    @property
    def nbytes(self) -> int:
        """Bytes that the tree occupies: all tables, and the names of features and categories."""
        return self._kernel.read_locked(_memory.nbytes, self._kernel)

    @property
    def feature_importances(self) -> dict[str, float]:
        """The permutation feature importances of recent rows; they sum to 1.

        They are estimated while the tree learns. Before the first estimate, the importance of a
        feature is its share in the squared error that splits have removed.

        With several targets, they are means over the targets, where the squared error of a target
        is divided by its variance. ``tree.of_target(name).feature_importances`` are those of one
        target.
        """
        return view.feature_importances(self._picture())

    @property
    def overall_importances(self) -> dict[str, float]:
        """The same as `feature_importances`, over all rows so far."""
        return view.feature_importances(self._picture(), lately=False)

    @property
    def unit_changes(self) -> list[view.UnitChange]:
        """The detected changes of units, of features or of y (column None).

        At most the last 16, the oldest first.
        """
        return self._kernel.read_locked(snapshot.unit_changes, self._kernel, self._features)

    @property
    def summary(self) -> view.Summary:
        """The tree in a few numbers; `print` it to read it."""
        return self._kernel.read_locked(self._summary)

    def _summary(self) -> view.Summary:
        return view.summary(
            self._picture(),
            rows=int(self._kernel.rows),
            weight=self._kernel.weight,
            nbytes=self.nbytes,
            targets=self._kernel.targets,
            unit_changes=self.unit_changes,
        )

    def explain(self, x: dict[Any, Any], target: Label | None = None) -> Any:
        """Explain the prediction for a row; `print` the result to read it.

        Parameters
        ----------
        x : dict
            The features, as for `predict_one`.
        target : str or int, optional
            Which of several targets is explained.

        Returns
        -------
        Explanation, or dict of them
            For several targets, a dict, unless one is named.
        """
        if target is not None:
            return self.of_target(target).explain(x)
        if self._features.known.targets:
            return {name: self.of_target(name).explain(x) for name in self.targets}
        return self._kernel.read_locked(self._explain, x)

    def _explain(self, x: dict[Any, Any]) -> Explanation:
        row = self._features.read_one(x, learn=False).matrix[0]
        return snapshot.explain(self._kernel, self._features, x, row)

    def _tree_of(self, target: Label) -> "HoeffdingTreeRegressor":
        return self.of_target(target)

    def _one_tree(self) -> "HoeffdingTreeRegressor":
        return self

    def _picture(self) -> view.TreePicture:
        return self._kernel.read_locked(snapshot.picture, self._kernel, self._features)

    def _size(self) -> str:
        return f"{self.n_leaves} leaves"

    # -- its state ----------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the tree is, as between two rows."""
        return self._kernel.read_locked(tree_state.state_of, self)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted."""
        return restoring.restored(cls, state, format)


def _parents(kernel: TreeKernel) -> IntArray:
    found: IntArray = kernel.node_table["parent"][: kernel.node_count].copy()
    return found
