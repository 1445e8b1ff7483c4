"""The forest: members that differ by the weights of rows, and a reserve that replaces the worst."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.ensemble.ensemble import Ensemble, Role, checked_max_bytes
from sapwood.ensemble.renewal import Reserve
from sapwood.ensemble.rules import EnsembleRules
from sapwood.observers.base import TableObserver
from sapwood.observers.quantizer import QuantizerObserver
from sapwood.rows import missing_flags
from sapwood.rows.features import Features, labels_within
from sapwood.tree.bounds import SplitBoundName
from sapwood.tree.growth import SplitOn
from sapwood.tree.settings import Leaf, Track, TreeSettings
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.inspect.rules import RuleSet
    from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["ForestRegressor"]

FEWEST, MOST = 2, 32  # members
FEW_SLOTS = 16  # of a bagged member, of which there are many
# The weights of a bagged member's rows are Poisson variables of such a mean. One of 6 sees as much
# evidence in a row as in six, and grows the sooner; its grace period is longer than a plain tree's
# by PATIENCE, as a leaf of fewer than some 70 rows has little to split on.
HEAVY, LIGHT = 6.0, 2.0
PATIENCE = 2.0
# Unlimited forests gain nothing beyond this on streams of up to 100 features, and grow without end.
USUAL_BYTES = 64 << 20


class ForestRegressor(Ensemble):
    """A forest for regression: more accurate than a tree, and adapts to concept drift.

    Most members learn each row with a random weight from a Poisson distribution with mean 6. One
    member learns each row with weight 1, and one never splits. The prediction is a weighted mean of
    the members; the weights are learned from their errors. A candidate tree learns without
    predicting, and replaces the member with the largest recent error as soon as its own error is
    smaller. The forest therefore adapts to concept drift. An error-correction layer corrects
    predictions with recent errors.

    Parameters
    ----------
    members : int
        The number of members, from 2 to 32.
    seed : int
        The seed of the random weights. The same seed gives the same forest, bit for bit, whatever
        the number of threads and the sizes of batches.
    threads : int, optional
        The number of threads that learn a batch; by default the number of cores.
    grace_period, delta, tau, min_share, max_depth, leaf, split_on, split_bound
        Parameters of the members, as for `sapwood.HoeffdingTreeRegressor`. The grace period of
        members with random weights is twice as long.
    observer : observer, optional
        As for the tree. By default, members with random weights have 16 bins for each numeric
        feature, and the other members have 32.
    track : {"auto", None}
        Whether there is an error-correction layer.
    max_bytes : int, optional
        The memory limit of all trees together, including the candidate: 64 MiB by default, which is
        enough for about 2,400 features. None means no limit.
    categorical : iterable of str or int
        Names of features that are categories although their values are numbers.
    no_splits : iterable of str or int
        Names of features that no leaf splits on; linear models still use them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((5000, 5))
    >>> y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    >>> forest = ForestRegressor()
    >>> predictions = forest.predict_learn_many(X, y)
    >>> bool(np.mean(np.abs(predictions[-1000:] - y[-1000:])) < 0.6)
    True
    >>> forest
    <ForestRegressor(): 10 members, ... leaves, 5000 rows learned>
    """

    kind: ClassVar[str] = "ForestRegressor"
    format: ClassVar[int] = 5

    def __init__(
        self,
        *,
        members: int = 10,
        seed: int = 1,
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
        max_bytes: int | None = USUAL_BYTES,
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
        count = validation.whole(members, "members", FEWEST, MOST)
        limit = checked_max_bytes(max_bytes, count + 1)
        features = Features(categorical, labels_within(limit))
        features.flagging = missing_flags.are_allowed(leaf, limit, count + 1)
        parameters: dict[str, Any] = {
            "members": count,
            "seed": validation.whole(seed, "seed", 0, 2**64 - 1),
            "threads": None if threads is None else validation.whole(threads, "threads", 1, 1024),
            **plain.parameters,
            "observer": observer,
            "max_bytes": limit,
            "categorical": features.declared,
        }
        alone = {**plain.parameters, "track": None}
        bagged = TreeSettings.checked(
            **{
                **alone,
                "grace_period": PATIENCE * alone["grace_period"],
                "observer": QuantizerObserver(slots=FEW_SLOTS) if observer is None else observer,
            }
        )
        single = TreeSettings.checked(**{**alone, "max_depth": 0})
        self._heavy, self._light = (Role("bagged", bagged, rate) for rate in (HEAVY, LIGHT))
        roles = [self._heavy] * (count - 2)
        roles += [Role("plain", TreeSettings.checked(**alone)), Role("leaf", single), self._heavy]
        rules = EnsembleRules(
            combine="stack",
            seed=parameters["seed"],
            interval=500,
            error_fade=0.998,
            fade=0.9995,
            precision=1 / 0.2**2,
            centre=1 / count,
            most=1.0,
            duel_age=0.0,
        )
        super().__init__(parameters, features, roles, rules, Reserve)

    def to_rules(self, target: Label | None = None) -> "RuleSet":
        """Return the rules of the member that has the smallest error of late.

        Parameters
        ----------
        target : str or int, optional
            The target whose predictions the rules describe, if there are several.

        Returns
        -------
        RuleSet
            As for `HoeffdingTreeRegressor.to_rules`.
        """
        return self._one_tree().to_rules(target)

    def _one_tree(self) -> "HoeffdingTreeRegressor":
        """Return the member that has the smallest error of late, of those that split."""
        members = self.summary.members[: self._kernel.members]
        grown = [place for place, each in enumerate(members) if each.role != "leaf"]
        return self.member(min(grown, key=lambda place: members[place].error))

    def merge(self, other: "HoeffdingTreeRegressor | ForestRegressor") -> "ForestRegressor":
        """Return a forest that has the members of two models which have learned different rows.

        At first, the weights of members are proportional to the rows that their model has
        learned; labels then change the weights. All members continue to learn. The candidate trees
        are dropped, and error correction is reset. Both models stay as they are.

        Parameters
        ----------
        other : HoeffdingTreeRegressor or ForestRegressor
            With the same parameters; seed, threads and the number of members may be others. There
            may be at most 32 members in both together. The limits of memory add; there is none if
            one of the models has none.

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
        >>> north, south = ForestRegressor(members=3), ForestRegressor(members=3)
        >>> north.learn_many(X[:2000], y[:2000])
        >>> south.learn_many(X[2000:], y[2000:])
        >>> north.merge(south)
        <ForestRegressor(members=6, max_bytes=...): 6 members, ... leaves, 4000 rows learned>
        """
        from sapwood.merge.union import merged

        return merged(self, other)

    def prune(self, node: int, member: int) -> NDArray[np.int32]:
        """Turn a node of a member into a leaf again, as `HoeffdingTreeRegressor.prune` does.

        The weight of the member in predictions changes with its errors from then on.

        Parameters
        ----------
        node : int
            Its number, as in ``forest.member(member).to_frame()``; 0 is the root.
        member : int
            Which member, from 0.

        Returns
        -------
        array of int
            The new number of each node; for removed nodes, the number of the new leaf.

        Raises
        ------
        ValueError
            If there is no such member or node, or if the node is a leaf.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.random.default_rng(1).random(3000)
        >>> forest = ForestRegressor(members=3, max_depth=1)
        >>> forest.learn_many({"x": x}, np.where(x < 0.5, 1.0, 3.0))
        >>> forest.prune(0, member=1)
        array([0, 0, 0], dtype=int32)
        >>> [forest.member(place).n_leaves for place in range(3)]
        [2, 1, 1]
        """
        return self._prune(node, member)

    def _later_roles(self) -> tuple[Role, ...]:
        return (self._light,)

    def _next_role(self, number: int) -> Role:
        return self._light if number % 2 else self._heavy

    def _size(self) -> str:
        return f"{self._kernel.members} members, {self.n_leaves} leaves"
