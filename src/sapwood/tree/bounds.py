"""Split bounds: how much evidence a leaf needs that one feature is better than another.

A bound is a class with a `code`, by which kernels know it (`sapwood/tree/_bounds.pxd`), and a name
in `SPLIT_BOUNDS`.
"""

from dataclasses import dataclass
from math import e, log
from typing import ClassVar, Literal, Protocol

__all__ = [
    "SPLIT_BOUNDS",
    "AnytimeBound",
    "HoeffdingBound",
    "MeritBound",
    "NoBound",
    "SplitBound",
    "SplitBoundName",
]

SplitBoundName = Literal["hoeffding", "anytime"]
ROUNDS = 6
"""How often the weight that the anytime bound needs is improved, as in `_bounds.pxd`."""


class SplitBound(Protocol):
    """What kernels and rules of growth read of a split bound."""

    code: ClassVar[int]

    @property
    def delta(self) -> float:
        """The accepted probability of an error."""

    @property
    def confidence(self) -> float:
        """What the kernel computes with."""

    def weight_needed(self, lead: float) -> float:
        """Return the weight from which on a lead, as a share of the best merit, is no accident."""


@dataclass(frozen=True, slots=True)
class HoeffdingBound:
    """Hoeffding's bound: the mean of n values in [0, 1] is off by at most sqrt(-ln(delta) / 2n).

    It holds for one n that was fixed before. A leaf tests again and again until it splits, so
    that it is wrong more often than `delta`.

    Parameters
    ----------
    delta : float
        The probability that the mean is off by more.

    Examples
    --------
    >>> HoeffdingBound(delta=0.001).weight_needed(lead=0.1)
    345.38...
    """

    delta: float

    code: ClassVar[int] = 0

    @property
    def confidence(self) -> float:
        """What the kernel computes with: -ln(delta)."""
        return -log(self.delta)

    def weight_needed(self, lead: float) -> float:
        """Return the weight from which on a lead, as a share of the best merit, is no accident."""
        return self.confidence / (2.0 * lead * lead)


@dataclass(frozen=True, slots=True)
class AnytimeBound:
    """A bound that holds for all n at once, however often a leaf tests.

    With probability 1 - `delta` no mean of n values in [0, 1], for n = 1, 2, ..., is ever off by
    more than 0.85 sqrt((ln ln 2n + 0.72 ln(5.2 / delta)) / n): the stitched boundary of a
    sub-Gaussian confidence sequence.

    Parameters
    ----------
    delta : float
        The probability that any of these means is off by more.

    References
    ----------
    S. R. Howard, A. Ramdas, J. McAuliffe and J. Sekhon, "Time-uniform, nonparametric,
    nonasymptotic confidence sequences", Annals of Statistics 49, 2021.

    Examples
    --------
    >>> AnytimeBound(delta=0.001).weight_needed(lead=0.1)
    586.3...
    """

    delta: float

    code: ClassVar[int] = 1

    @property
    def confidence(self) -> float:
        """What the kernel computes with: 0.72 ln(5.2 / delta)."""
        return 0.72 * log(5.2 / self.delta)

    def weight_needed(self, lead: float) -> float:
        """Return the weight from which on a lead, as a share of the best merit, is no accident."""
        weight = e
        for _ in range(ROUNDS):
            weight = 0.85**2 * (log(log(max(2.0 * weight, e))) + self.confidence) / (lead * lead)
        return weight


@dataclass(frozen=True, slots=True)
class NoBound:
    """No bound: a split needs evidence that it explains something, not that it is the best.

    The rule of trees for three and more classes, see `sapwood.classify.growth`.

    Parameters
    ----------
    delta : float
        Not used.
    """

    delta: float

    code: ClassVar[int] = 2

    @property
    def confidence(self) -> float:
        """What the kernel computes with: nothing."""
        return 0.0

    def weight_needed(self, lead: float) -> float:
        """Return 0: every lead is large enough."""
        return 0.0


@dataclass(frozen=True, slots=True)
class MeritBound:
    """Hoeffding's bound for merits in [0, `range`], as VFDT applies it to their difference.

    Parameters
    ----------
    delta : float
        The probability that the mean of such merits is off by more.
    range : float
        The largest merit: log2 of the number of classes for the information gain, 1 for Gini's.

    References
    ----------
    P. Domingos and G. Hulten, "Mining high-speed data streams", KDD 2000.

    Examples
    --------
    >>> MeritBound(delta=1e-7, range=1.0).weight_needed(lead=0.05)
    3223.6...
    """

    delta: float
    range: float

    code: ClassVar[int] = 3

    @property
    def confidence(self) -> float:
        """What the kernel computes with: -range² ln(delta)."""
        return -self.range * self.range * log(self.delta)

    def weight_needed(self, lead: float) -> float:
        """Return the weight from which on a lead, in the unit of merits, is no accident."""
        return self.confidence / (2.0 * lead * lead)


SPLIT_BOUNDS: dict[SplitBoundName, type[HoeffdingBound] | type[AnytimeBound]] = {
    "hoeffding": HoeffdingBound,
    "anytime": AnytimeBound,
}
"""The split bounds by the names that the parameter `split_bound` takes."""
