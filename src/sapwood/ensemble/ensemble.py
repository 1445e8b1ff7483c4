"""What the forest and the adaptive tree share: trees behind one encoder of rows."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector._pending import PendingPredictions, pending_bytes
from sapwood.ensemble import ensemble_state, one_target
from sapwood.ensemble._ensemble import EnsembleKernel
from sapwood.ensemble._members import bytes_of_a_target, pending_doubles
from sapwood.ensemble.layout import TREE_RECORD
from sapwood.ensemble.renewal import Event, Renewal, mean_square
from sapwood.ensemble.rules import MOST_COPIES, ROLES, EnsembleRules, poisson_thresholds
from sapwood.ensemble.view import EnsembleExplanation, EnsembleSummary, Member
from sapwood.inspect import snapshot, view
from sapwood.inspect.ensemble_importances import permutation_importances
from sapwood.inspect.explanation import Explanation
from sapwood.model import State
from sapwood.regressor import GrowthOf, Regressor
from sapwood.rows._dict_row import RowReader
from sapwood.rows.encoder import EncodedRows
from sapwood.rows.features import Features, KnownFeatures, checked_names
from sapwood.system import system
from sapwood.tree import _memory, memory, pruning, restoring, tree_state
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._pruning import commit_splits
from sapwood.tree._schema_migration import SchemaMigration, TreeMigration
from sapwood.tree.memory import LEAST_BYTES
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.tree.settings import TreeSettings
from sapwood.validation import FloatArray, Label

__all__ = ["Ensemble", "Role", "checked_max_bytes"]

KERNEL_BYTES = 16_384  # of an ensemble without its trees and the names of features

Listener = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Role:
    """What a tree of an ensemble is.

    Parameters
    ----------
    name : {"bagged", "plain", "leaf"}
        What it is called.
    settings : TreeSettings
        Of an empty tree.
    rate : float
        The mean of the Poisson variable that the weights of its rows are multiplied by; 0 for none.
    """

    name: str
    settings: TreeSettings
    rate: float = 0.0


class Ensemble(Regressor):
    """Trees that learn the same rows, each in its own way.

    Parameters
    ----------
    parameters : dict
        The arguments that make an empty model like this one.
    features : Features
        By which rows are read, once for all trees.
    roles : list of Role
        Of the trees at first: the members, and last the one that waits to replace one of them.
    rules : EnsembleRules
        How they are combined.
    renewal : type of Renewal
        Who is replaced, and when.
    """

    _kernel: EnsembleKernel

    def __init__(
        self,
        parameters: dict[str, Any],
        features: Features,
        roles: list[Role],
        rules: EnsembleRules,
        renewal: type[Renewal],
    ) -> None:
        self._roles = {(role.name, role.rate): role for role in (*roles, *self._later_roles())}
        self._first_roles = roles
        self._listeners: list[Listener] = []
        self._max_bytes = parameters["max_bytes"] or 0
        threads = min(parameters["threads"] or system.cores, len(roles))
        share = self._equal_share(len(roles))
        names = self._bytes_for_each(features, features.known)
        table = np.zeros(len(roles), TREE_RECORD)
        for number, role in enumerate(roles):
            table[number] = (number, ROLES.index(role.name), role.rate, 0.0, 0.0, 0.0, share, 1)
        rates = {role.rate for role in self._roles.values() if role.rate}
        kernel = EnsembleKernel(
            rules.to_record(),
            [_new_tree(role, features, share, names) for role in roles],
            table,
            {rate: poisson_thresholds(rate) for rate in rates},
            parameters["track"] == "auto",
            self._new_pending,
            renewal(self._fresh, self._share_memory, self._tell, self._may_take_over),
            renewal.shortest,
            threads,
        )
        super().__init__(parameters, features, kernel)

    # -- trees --------------------------------------------------------------------------------

    def _later_roles(self) -> tuple[Role, ...]:
        """Return what trees may be that are not there at first."""
        return ()

    @abstractmethod
    def _next_role(self, number: int) -> Role:
        """Return what the tree of some number is to be, that waits to replace another."""

    def _role_of(self, table: NDArray[Any], place: int) -> Role:
        """Return what a tree is, of which something is known.

        Raises
        ------
        ValueError
            If no tree is so.
        """
        role, rate = table["role"].item(place), table["rate"].item(place)
        found = self._roles.get((ROLES[role] if 0 <= role < len(ROLES) else "", rate))
        if found is None:
            raise ValueError(f"tree {place} has a role that it cannot have")
        return found

    def _new_tree_like(self, table: NDArray[Any], place: int) -> TreeKernel:
        """Return an empty tree for one of which something is known."""
        settings = self._settings_of(table, place, table["max_bytes"].item(place))
        return settings.new_kernel(self._features, name_bytes=0)

    def _settings_of(self, table: NDArray[Any], place: int, max_bytes: int) -> TreeSettings:
        """Return the settings of a tree, of which something is known."""
        return self._settings(self._role_of(table, place), max_bytes, table["number"].item(place))

    def _settings(self, role: Role, max_bytes: int, number: int) -> TreeSettings:
        """Return the settings of a tree of some role, as the parameters and rules are now.

        `number` is that of the tree; all trees of an ensemble have different ones.
        """
        settings, no_splits = role.settings, self._parameters["no_splits"]
        if settings.parameters["no_splits"] != no_splits:
            settings = settings.without_splits_on(no_splits)
        if self._growth_of is not None:
            growth = self._growth_of(settings.growth, role.rate, number)
            settings = replace(settings, growth=growth)
        return settings.limited(max_bytes) if max_bytes else settings

    def _fresh(self, kernel: EnsembleKernel, number: int, place: int) -> tuple[TreeKernel, Any]:
        """Return a new tree for a place that knows the features, and what is known of it."""
        waits = place == kernel.members
        role = self._next_role(number) if waits else self._first_roles[place]
        known = self._features.known
        limit = int(kernel.tree_table["max_bytes"][-1])
        tree = self._settings(role, limit, number).new_kernel(self._features, name_bytes=0)
        own = self._bytes_for_each(self._features, known)
        relay = memory.relay(tree, self._features, known, own)
        SchemaMigration(self._features, known, [relay]).commit_now()
        record = np.zeros((), TREE_RECORD)
        what = (number, ROLES.index(role.name), role.rate)
        record[()] = (*what, kernel.rows, 0.0, 0.0, limit, 1)
        return tree, record

    def _registration(self, plan: EncodedRows, names: tuple[Label, ...]) -> SchemaMigration | None:
        known = plan.known(self._kernel.rows, names)
        gaps = self._gaps(plan, known)
        if known is self._features.known:
            return None if gaps is None else SchemaMigration(self._features, known, [], gaps)
        own = self._bytes_for_each(self._features, known)
        columns = memory.column_kinds(self._features, known)
        trees = self._kernel.trees
        relays = [self._schema_migration(tree, known, own, columns) for tree in trees]
        return SchemaMigration(self._features, known, relays, gaps)

    def _schema_migration(
        self, tree: TreeKernel, known: KnownFeatures, own: int, columns: memory.ColumnKinds
    ) -> TreeMigration:
        """Return what a tree becomes once more is known of the features, or raise ValueError."""
        try:
            return memory.relay(tree, self._features, known, own, columns)
        except ValueError as error:
            limit = f"max_bytes = {tree.max_bytes}"
            if not self._max_bytes or not str(error).startswith(limit):
                raise
            rest = str(error).removeprefix(limit)
            raise ValueError(
                f"max_bytes = {self._max_bytes}, of which a tree has {tree.max_bytes}{rest}, or put "
                "sapwood.SparseRegressor around the model, which takes any number of names"
            ) from None

    def _settle(self) -> None:
        none = np.empty(0)
        self._kernel.learn(np.empty((0, 0)), none, none)  # finishes an interrupted block of rows

    def _has_room(self, plan: EncodedRows, names: tuple[Label, ...], weights: FloatArray) -> bool:
        known = plan.known(targets=names)
        own = self._bytes_for_each(self._features, known)
        rate = max(role.rate for role in self._roles.values())
        weight = _most_weight(weights, rate)
        for tree in self._kernel.trees:
            # Trees share what is free, so that each counts on half of its own.
            splits = 2 * memory.most_splits(tree, len(weights), weight)
            if not memory.has_room(tree, self._features, known, splits, own):
                return False
        return True

    # -- several targets ----------------------------------------------------------------------

    def of_target(self, target: Label) -> Self:
        """Return a copy for one of several targets, as an ensemble of one target.

        Its predictions for this target equal those of this model, bit for bit, and so do the
        importances. It can be explained and exported like any ensemble of one target. If it learns
        further rows, only this target decides about replacements of members; the drift detector of
        errors starts over.

        Parameters
        ----------
        target : str or int
            Its name.

        Raises
        ------
        ValueError
            If a member has not learned a y of it yet, or an adaptive tree hardly any.

        Examples
        --------
        >>> import numpy as np, sapwood
        >>> x = np.random.default_rng(1).random(3000)
        >>> forest = sapwood.ForestRegressor(members=3)
        >>> forest.learn_many({"x": x}, {"up": x, "down": np.where(x < 0.5, -x, 0.0)})
        >>> down = forest.of_target("down")
        >>> down.predict_one({"x": 0.25}) == forest.predict_one({"x": 0.25})["down"]
        True
        """
        place = self._place_of(target)
        made: Self = self._kernel.read_locked(one_target.ensemble_of_target, self, place)
        return made

    # -- memory -------------------------------------------------------------------------------

    def _new_pending(self, targets: int) -> PendingPredictions:
        """Return a store of pending predictions, with the same bound for any number of targets."""
        trees = len(self._first_roles)
        doubles, limit = pending_doubles(trees, targets), self._max_bytes
        most = memory.most_pending(limit, doubles)
        while limit and most > 1 and most * pending_bytes(doubles) > self._notes_bytes(trees):
            most //= 2
        return PendingPredictions(doubles, most)

    def _notes_bytes(self, trees: int) -> int:
        """Return the largest size of the memory of pending predictions."""
        doubles = pending_doubles(trees)
        return memory.most_pending(self._max_bytes, doubles) * pending_bytes(doubles)

    def _bytes_for_each(self, features: Features, known: KnownFeatures) -> int:
        """Return what counts for each tree of what the ensemble keeps for all of them.

        That is the names of features, categories and targets, and what it knows of several targets.
        """
        trees, targets = len(self._first_roles), len(known.targets)
        own = targets * bytes_of_a_target(trees) if targets > 1 else 0
        return -(-(memory.name_bytes(features, known) + own) // trees)

    def _equal_share(self, trees: int) -> int:
        if not self._max_bytes:
            return 0
        return (self._max_bytes - self._own_bytes(trees)) // trees

    def _own_bytes(self, trees: int) -> int:
        """Return what an ensemble of so many trees may come to occupy beside them."""
        return KERNEL_BYTES + self._notes_bytes(trees)

    def _may_take_over(self, kernel: EnsembleKernel) -> bool:
        """Return whether the candidate may replace a member: not if all its rows are of one class."""
        if self._growth_of is None:
            return True
        candidate = kernel.trees[-1]
        if kernel.targets == 1:
            return bool(candidate.low < candidate.high)
        streams = candidate.target_records.streams
        return bool((streams["low"] < streams["high"]).any())

    def _share_memory(self, kernel: EnsembleKernel) -> None:
        """Let each tree have what it occupies, and an equal part of what is free."""
        if not self._max_bytes:
            return
        used = np.array([_memory.nbytes(tree) for tree in kernel.trees])
        total = self._max_bytes - self._own_bytes(len(used))
        free = max(total - int(used.sum()), 0) // len(used)
        limits = np.maximum(used + free, LEAST_BYTES)
        for place, (tree, limit) in enumerate(zip(kernel.trees, limits.tolist(), strict=True)):
            self._set_rules(tree, kernel.tree_table, place, limit)
        kernel.tree_table["max_bytes"] = limits

    def _set_rules(self, tree: TreeKernel, table: NDArray[Any], place: int, max_bytes: int) -> None:
        settings = self._settings_of(table, place, max_bytes)
        tree.set_rules(settings.growth.to_record(), settings.memory.to_record())

    def _use_growth(self, growth_of: GrowthOf) -> None:
        self._growth_of = growth_of
        table = self._kernel.tree_table
        for place, tree in enumerate(self._kernel.trees):
            self._set_rules(tree, table, place, table["max_bytes"].item(place))

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    # -- what happens -------------------------------------------------------------------------

    @property
    def replacements(self) -> list[dict[str, Any]]:
        """The latest replacements of trees: the row, the member, the age and RMSE of the new tree.

        The event "reset" means that empty trees replaced all other members at the same time.
        """
        return [dict(event) for event in self._kernel.events]

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with a dict for each event of the trees from now on.

        Its entry "event" is "split" if a tree has grown since the last check, "replaced" if the
        candidate tree has replaced a member, "restarted" if an empty tree has replaced the
        candidate, and "reset" if the candidate is the first member and empty trees have replaced
        all others. The other entries are the rows so far, the member, and the age and recent RMSE
        of the new tree or of the candidate; for splits, the number of leaves. Listeners are
        neither saved nor copied.

        Parameters
        ----------
        listener : callable
            Gets the dict.

        Returns
        -------
        callable
            Ends it.
        """
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    def _prune(self, node: int, member: int) -> NDArray[np.int32]:
        """Turn a node of a member into a leaf again; return the new numbers of its nodes."""
        place = validation.whole(member, "member", 0, self._kernel.members - 1)
        places: NDArray[np.int32] = self._kernel.change_locked(self._prune_tree, node, place)
        return places

    def _prune_tree(self, node: int, place: int) -> NDArray[np.int32]:
        tree = self._kernel.trees[place]
        places: NDArray[np.int32] = tree.write_locked(pruning.prune, tree, node)
        # Listeners get this count.
        self._kernel.tree_table["leaves"][place] = tree.leaf_count
        return places

    # -- looking inside -------------------------------------------------------------------------

    @property
    def no_splits(self) -> tuple[Label, ...]:
        """The names of features that no leaf of a tree splits on; others can be assigned.

        Splits that there are stay: see `prune`.
        """
        return self._kernel.trees[0].no_splits

    @no_splits.setter
    def no_splits(self, names: Iterable[Label]) -> None:
        found = checked_names(names, "no_splits")
        self._kernel.change_locked(self._change_no_splits, found)

    def _change_no_splits(self, names: tuple[Label, ...]) -> None:
        kernel, changes = self._kernel, []
        for place, tree in enumerate(kernel.trees):
            settings = self._settings_of(kernel.tree_table, place, tree.max_bytes)
            rules = settings.without_splits_on(names).memory
            changes.append(pruning.other_splits(tree, self._features, names, rules))
        commit_splits(changes, names, self._parameters)

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all members together."""
        return sum(tree.leaf_count for tree in self._kernel.trees[: self._kernel.members])

    @property
    def nbytes(self) -> int:
        """Bytes that all trees, including the candidate, and the names of features occupy.

        Each tree counts an equal part of the names.
        """
        return int(self._kernel.read_locked(self._nbytes))

    def _nbytes(self) -> int:
        trees = sum(_memory.nbytes(tree) for tree in self._kernel.trees)
        pending = 0 if self._kernel.pending is None else self._kernel.pending.nbytes
        return KERNEL_BYTES + pending + trees

    def _scored_trees(self) -> Sequence[TreeKernel]:
        trees: Sequence[TreeKernel] = self._kernel.trees[: self._kernel.members]
        return trees

    def member(self, place: int) -> HoeffdingTreeRegressor:
        """Return an independent copy of a member, for example to inspect or export it.

        Parameters
        ----------
        place : int
            Which one, from 0.
        """
        place = validation.whole(place, "place", 0, self._kernel.members - 1)
        tree: HoeffdingTreeRegressor = self._of_same_rows(
            self._kernel.read_locked(self._as_tree, place)
        )
        return tree

    def _as_tree(self, place: int) -> HoeffdingTreeRegressor:
        kernel = self._kernel.trees[place]
        settings = self._settings_of(self._kernel.tree_table, place, 0)
        tree = HoeffdingTreeRegressor(
            **{**settings.parameters, "categorical": self._parameters["categorical"]}
        )
        tree._features = self._features.copy()
        tree._reader = RowReader(tree._features)
        arrays = tree_state.kernel_arrays(kernel)
        copies = {name: array.copy() for name, array in arrays.items()}
        pending = kernel.undecided if kernel.undecided >= 0 else None
        restoring.fill_kernel(tree._kernel, tree._features, copies, pending)
        return tree

    @property
    def feature_importances(self) -> dict[str, float]:
        """The permutation feature importances of the combined prediction; they sum to 1.

        Of several members, they are computed when they are read, from recent rows that the trees
        keep as samples: the mean squared change of the prediction if the values of a feature are
        permuted among these rows. Those of an adaptive tree are those of its tree.
        """
        if self._kernel.members > 1:
            found: dict[str, float] = self._kernel.read_locked(self._permutation_importances)
            if found:
                return found
        return self._mean_importances(lately=True)

    def _permutation_importances(self) -> dict[str, float]:
        """Return the importances for the combined prediction; none before they are known."""
        changes = permutation_importances(self._kernel, self._features)
        if not changes.any():
            return {}
        picture = snapshot.picture(self._kernel.trees[0], self._features)
        return view.of_columns(picture, changes / changes.sum())

    @property
    def overall_importances(self) -> dict[str, float]:
        """The mean of the members' permutation importances, over all rows so far."""
        return self._mean_importances(lately=False)

    def _mean_importances(self, lately: bool) -> dict[str, float]:
        kernel = self._kernel
        pictures = [
            kernel.read_locked(snapshot.picture, tree, self._features)
            for tree in kernel.trees[: kernel.members]
        ]
        found = [view.feature_importances(picture, lately) for picture in pictures]
        total = sum(sum(shares.values()) for shares in found) or 1.0
        return {name: sum(shares[name] for shares in found) / total for name in found[0]}

    @property
    def summary(self) -> EnsembleSummary:
        """The trees in a few numbers each; `print` it to read it."""
        found: EnsembleSummary = self._kernel.read_locked(self._summary)
        return found

    def _summary(self) -> EnsembleSummary:
        kernel = self._kernel
        errors = np.sqrt(mean_square(kernel)).tolist()
        weights = np.mean([kernel.weights(place) for place in range(kernel.targets)], axis=0)
        members = [
            Member(
                ROLES[int(record["role"])],
                int(kernel.rows - record["born"]),
                tree.leaf_count,
                _memory.nbytes(tree),
                error,
                weight,
            )
            for record, tree, error, weight in zip(
                kernel.tree_table, kernel.trees, errors, weights.tolist(), strict=True
            )
        ]
        return EnsembleSummary(
            members, int(kernel.rows), self._nbytes(), len(kernel.events), kernel.targets
        )

    def to_text(self, max_depth: int | None = None, digits: int = 4) -> str:
        """Return the members as indented text, one after the other.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth are shown without the nodes below them.
        digits : int
            Significant digits of a number.
        """
        kernel, parts = self._kernel, []
        for place, tree in enumerate(kernel.trees[: kernel.members]):
            picture = kernel.read_locked(snapshot.picture, tree, self._features)
            parts.append(f"member {place}\n{view.to_text(picture, max_depth, digits)}")
        return "\n\n".join(parts)

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
        EnsembleExplanation, or dict of them
            For several targets, a dict, unless one is named.
        """
        if target is not None:
            return self._kernel.read_locked(self._explained, x, self._place_of(target))
        if self._features.known.targets:
            return {name: self.explain(x, name) for name in self.targets}
        return self._kernel.read_locked(self._explained, x, 0)

    def _explained(self, x: dict[Any, Any], target: int) -> EnsembleExplanation:
        row = self._features.read_one(x, learn=False).matrix[0]
        kernel = self._kernel
        predicted, weights, _, together, prediction = kernel.explain_row(row, target)
        # A tree that has not learned the target yet predicts the mean of the others.
        has_seen_target = kernel.has_seen_target(target)
        heaviest = int(np.argmax(np.where(has_seen_target, weights, -1.0)))
        path = None
        if has_seen_target[heaviest]:
            path = self._path(x, row, heaviest, target)
        names = [f"{place}, {ROLES[role]}" for place, role in enumerate(kernel.tree_table["role"])]
        kept = [entry for entry in zip(names, predicted, weights, strict=True) if entry[2]]
        return EnsembleExplanation(kept, heaviest, path, together, prediction)

    def _path(
        self, x: dict[Any, Any], row: NDArray[np.float64], place: int, target: int
    ) -> Explanation:
        """Return how a tree comes to its prediction of a target."""
        names = self._features.known.targets
        if names:
            found: Explanation = self._as_tree(place).explain(x, names[target])
            return found
        return snapshot.explain(self._kernel.trees[place], self._features, x, row)

    # -- its state ----------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the model is, as between two rows."""
        state: State = self._kernel.read_locked(ensemble_state.state_of, self)
        return state

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted."""
        return ensemble_state.restored(cls, state, format)


def _new_tree(role: Role, features: Features, max_bytes: int, name_bytes: int) -> TreeKernel:
    settings = role.settings.limited(max_bytes) if max_bytes else role.settings
    return settings.new_kernel(features, name_bytes=name_bytes)


def _most_weight(weights: FloatArray, rate: float) -> float:
    """Return what rows weigh at most in a tree that counts each as often as a Poisson variable.

    That is the mean of their sum, and 40 times its standard deviation.
    """
    if not rate or not len(weights):
        return float(weights.sum())
    likely = rate * weights.sum() + 40.0 * np.sqrt(rate * (weights**2).sum())
    return float(min(likely + MOST_COPIES * weights.max(), MOST_COPIES * weights.sum()))


def checked_max_bytes(max_bytes: int | None, trees: int) -> int | None:
    """Return a limit of memory for so many trees, if it is one that can be held."""
    if max_bytes is None:
        return None
    limit = validation.whole(max_bytes, "max_bytes", 1, 2**62)
    least = KERNEL_BYTES + 4096 + trees * LEAST_BYTES * 9 // 8
    if limit < least:
        raise ValueError(
            f"max_bytes = {limit}: at least {least} are expected, as {trees} trees need them "
            "before they have learned anything"
        )
    return limit
