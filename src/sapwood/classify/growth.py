"""How trees of classes grow.

Each class is a target that is 1 in its rows and 0 in all others, so that the variance explained
over all classes is the reduction of the Gini impurity. A mean over many classes has little noise:
evidence that a single target would need is far too much for it. So three and more classes have
rules of their own.
"""

from dataclasses import dataclass, replace
from math import log2, sqrt

from sapwood.classify.leaves import Merit
from sapwood.tasks import CLASSES, ENTROPY, GINI
from sapwood.tree.bounds import MeritBound, NoBound
from sapwood.tree.growth import GrowthRules

__all__ = ["ClassGrowth", "least_evidence"]

LEAST = 1.5
TREE_DEVIATIONS = 5.0
MEMBER_DEVIATIONS = 9.0  # as members count rows several times
SOONER = 0.5  # the grace period, as a share of that of one target
# Eager members of forests split early and without evidence. They find what no single split shows,
# as in a chessboard; the weights of members keep them from harm where there is nothing to find.
EAGER_GRACE, EAGER_EVIDENCE = 0.3, 1.0
EAGER = (1, 2)  # the numbers of eager members, modulo 4: half of all members of random weights
NEVER = 1e300  # grace periods


def least_evidence(classes: int, deviations: float) -> float:
    """Return how many times the variance of noise a split of so many classes has to explain.

    Noise explains chi-squared with d = classes - 1 degrees of freedom, divided by d; this is the
    quantile of that distribution which is so many standard deviations out, by the approximation of
    Wilson and Hilferty.

    Parameters
    ----------
    classes : int
        At least 3.
    deviations : float
        How far out.

    Examples
    --------
    >>> [round(least_evidence(classes, 5.0), 2) for classes in (3, 7, 26, 1000)]
    [16.69, 7.14, 3.13, 1.5]
    """
    spread = 2.0 / (9.0 * (classes - 1))
    return max(LEAST, (1.0 - spread + deviations * sqrt(spread)) ** 3)


@dataclass(frozen=True, slots=True)
class ClassGrowth:
    """The rules of growth of a model of so many classes.

    Parameters
    ----------
    classes : int
        That were seen so far.
    sooner : bool
        Whether the grace period is shorter with three classes and more.
    merit : {"gini", "information_gain"}, optional
        By which leaves split as those of VFDT do, if it is given: when the merit of a feature is
        ahead of that of the second-best one by Hoeffding's bound. Every feature is a rival, leaves
        are tried after each grace period, and no split is tried without a merit.
    """

    classes: int
    sooner: bool = True
    merit: Merit | None = None

    def of(self, classes: int) -> "ClassGrowth":
        """Return the rules for another number of classes."""
        return replace(self, classes=classes)

    def __call__(self, growth: GrowthRules, rate: float, number: int) -> GrowthRules:
        """Return the rules of a tree.

        Parameters
        ----------
        growth : GrowthRules
            Those of its parameters.
        rate : float
            The mean of the random weights of its rows; 0 if rows count as they do.
        number : int
            That of the tree in its ensemble.
        """
        if self.merit is not None:
            by_entropy = self.merit == "information_gain"
            largest = log2(max(2, self.classes)) if by_entropy else 1.0
            return replace(
                growth,
                bound=MeritBound(growth.bound.delta, largest),
                least_evidence=0.0,
                optimism=0.0,
                patience=NEVER,
                same_merit=2.0,
                task=ENTROPY if by_entropy else GINI,
            )
        is_eager = rate > 0.0 and number % 4 in EAGER
        if self.classes < 3 and not is_eager:
            return growth
        if is_eager:
            sooner, evidence = EAGER_GRACE, EAGER_EVIDENCE
        else:
            sooner = SOONER if self.sooner else 1.0
            deviations = MEMBER_DEVIATIONS if rate > 0.0 else TREE_DEVIATIONS
            evidence = least_evidence(self.classes, deviations)
        return replace(
            growth,
            bound=growth.bound if CLASSES.waits_for_bound else NoBound(growth.bound.delta),
            grace_period=growth.grace_period * sooner,
            least_evidence=evidence,
            task=growth.task if self.classes < 3 else CLASSES,
        )
