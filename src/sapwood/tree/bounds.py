"""The bound of a split: how sure a leaf has to be that one feature is better than another."""

from dataclasses import dataclass
from math import log

__all__ = ["HoeffdingBound"]


@dataclass(frozen=True, slots=True)
class HoeffdingBound:
    """The bound of Hoeffding: what n rows say of a mean is off by at most sqrt(-ln(delta) / 2n).

    Parameters
    ----------
    delta : float
        The probability that it is off by more.

    Examples
    --------
    >>> HoeffdingBound(delta=0.001).weight_needed(lead=0.1)
    345.38...
    """

    delta: float

    code = 0  # by which kernels know it

    @property
    def confidence(self) -> float:
        """What the kernel computes with: -ln(delta)."""
        return -log(self.delta)

    def weight_needed(self, lead: float) -> float:
        """Return the weight from which on a lead, as a share of the best merit, is no accident."""
        return self.confidence / (2.0 * lead * lead)
