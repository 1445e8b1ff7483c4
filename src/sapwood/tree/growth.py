"""When a leaf splits, and where."""

from dataclasses import dataclass
from math import inf, log
from typing import Literal, NamedTuple

from sapwood.tree import _leaf
from sapwood.tree._kernel import TreeKernel

__all__ = ["SPLIT_ON", "Cut", "Growth", "SplitOn"]

SplitOn = Literal["best", "residual", "target"]

SPLIT_ON: tuple[SplitOn, ...] = ("best", "residual", "target")

# A split has to explain so many times the variance that one row's worth of noise would.
LEAST_EVIDENCE = 15.0
LEAST_LEAD = 1e-100
# After an attempt in vain the next one waits until it should succeed, or a little less long.
OPTIMISM = 0.8
# A cut sets parts of y apart if it explains at least this share of its variance, so many times the
# share of the residual's variance that any cut explains, and leaves not much more than that does.
APART = 0.4
CLEARER = 4.0
MOST_LEFT = 4.0
# So many grace periods a leaf waits for its residual to show something.
PATIENCE = 10.0
# A leaf that knows nothing is reviewed early, as its scales are yet to be found.
FIRST_REVIEW = 8.0


# The merit, the best merit of another feature, the feature, the place, the subset.
BestCut = tuple[float, float, int, int, int]


class Cut(NamedTuple):
    """A split that was decided on."""

    feature: int
    place: int  # the slot or element after which a number is cut
    subset: int  # the categories that go left, as bits
    merit: float  # reduction of the variance of y or of the residual
    of_target: bool  # whether it is that of y


@dataclass(frozen=True, slots=True)
class Growth:
    """The rules of growth: what the parameters of the tree say."""

    grace_period: float
    delta: float
    tau: float
    min_share: float
    max_depth: int
    split_on: SplitOn

    @property
    def patience(self) -> float:
        """The weight at which a leaf no longer waits for its residual to show something."""
        return PATIENCE * self.grace_period

    def attempt(self, kernel: TreeKernel, leaf: int) -> Cut | None:
        """Decide on a leaf that is due, and set when it will be due again.

        Parameters
        ----------
        kernel : TreeKernel
            The tables of the tree.
        leaf : int
            A leaf that watches.

        Returns
        -------
        Cut or None
            The split that the leaf has earned, if any.
        """
        weight, depth, review, target_m2, residual_m2 = kernel.leaf_state(leaf)
        if weight >= review:
            _leaf.review(kernel, leaf)
            review = 2.0 * weight
        if weight < self.grace_period:
            kernel.set_due(leaf, min(review, self.grace_period), review)
            return None
        if depth >= self.max_depth:
            kernel.set_due(leaf, review, review)
            return None
        cuts = _leaf.best_cuts(kernel, leaf, self.min_share)
        cut, needed = self.decide(cuts, weight, target_m2 / weight, residual_m2 / weight)
        if cut is None:
            due = min(max(weight + self.grace_period, needed), 2.0 * weight)
            kernel.set_due(leaf, due, review)
        return cut

    def postpone(self, kernel: TreeKernel, leaf: int) -> None:
        """Let a leaf that could not be split wait."""
        weight, _, review, _, _ = kernel.leaf_state(leaf)
        kernel.set_due(leaf, 2.0 * weight, review)

    def decide(
        self,
        cuts: list[BestCut],
        weight: float,
        target_variance: float,
        residual_variance: float,
    ) -> tuple[Cut | None, float]:
        """Take of the best cuts, of y and of its residual by step or line, that of the least error.

        It has to explain more than noise would, and to be better than the best cut of any other
        feature by the Hoeffding bound, unless the two are so near that it does not matter. What
        two features do together shows in the residual neither as a step nor as a bend: where a cut
        sets parts of y far apart, or the residual has long shown nothing, y decides.

        Returns
        -------
        cut : Cut or None
            The split, if it was earned.
        needed : float
            Otherwise, the weight at which it will be, if merits stay as they are.
        """
        target, step, line = cuts
        target_left = target_variance - target[0]
        if self.split_on == "target":
            return self.judge(target, weight, target_left, True)
        residual = line if line[0] > step[0] else step
        residual_left = residual_variance - residual[0]
        if self.split_on == "residual":
            return self.judge(residual, weight, residual_left, False)
        if target_left <= residual_left or (
            target_left <= MOST_LEFT * residual_left
            and _is_apart(target[0] / target_variance, residual[0] / residual_variance)
        ):
            return self.judge(target, weight, target_left, True)
        cut, needed = self.judge(residual, weight, residual_left, False)
        if cut is None and weight >= self.patience:
            return self.judge(target, weight, target_left, True)
        return cut, needed

    def judge(
        self, cut: BestCut, weight: float, left_over: float, of_target: bool
    ) -> tuple[Cut | None, float]:
        """Decide whether a cut was earned that leaves so much variance; returns as `decide`."""
        merit, second, feature, place, subset = cut
        if feature < 0:
            return None, inf
        enough = LEAST_EVIDENCE * max(left_over, 0.0)
        if weight * merit <= enough:
            return None, OPTIMISM * enough / merit
        lead = max(1.0 - second / merit, self.tau)
        needed = -log(self.delta) / (2.0 * lead * lead) if lead > LEAST_LEAD else inf
        if weight <= needed:
            return None, OPTIMISM * needed
        return Cut(feature, place, subset, merit, of_target), weight


def _is_apart(target_share: float, residual_share: float) -> bool:
    """Whether a cut sets parts of y apart, as no cut does with the residual."""
    return target_share >= APART and target_share >= CLEARER * residual_share
