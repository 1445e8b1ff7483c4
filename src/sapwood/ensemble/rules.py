"""The rules of ensembles, as data: their trees, how these are combined, and which are replaced.

`sapwood/ensemble/_members.pyx` applies the first two, `sapwood.ensemble.renewal` the last.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood.ensemble.layout import RULES

__all__ = ["COMBINE", "ROLES", "EnsembleRules", "poisson_thresholds"]

Combine = Literal["stack", "duel"]

COMBINE: tuple[Combine, ...] = ("stack", "duel")
ROLES = ("bagged", "plain", "leaf")
"""Trees of random weights; those for which rows count as they do; those that never split."""

MOST_COPIES = 48  # as in _draws.pxd


@dataclass(frozen=True, slots=True)
class EnsembleRules:
    """How predictions of trees are combined, and when replacements are considered.

    Parameters
    ----------
    combine : {"stack", "duel"}
        The members by weights, around their mean; or a tree and its challenger by their errors.
    seed : int
        Of the draws of weights.
    interval : int
        Rows between two looks at who should be replaced.
    error_fade : float
        What is left of a tree's squared error a row later.
    fade, precision, centre, most : float
        Of the stack: what is left of its sums a row later; one over the squared deviation by which
        a weight may differ from the centre before anything is known; and the most that it may be.
    duel_age : float
        Rows after which a challenger has a share.
    """

    combine: Combine
    seed: int
    interval: int
    error_fade: float
    fade: float
    precision: float
    centre: float
    most: float
    duel_age: float

    def to_record(self) -> Any:
        """Return the rules as the kernel reads them."""
        values = [getattr(self, name) for name in RULES.names or ()]
        values[0] = COMBINE.index(self.combine)
        return np.array(tuple(values), dtype=RULES)


def poisson_thresholds(mean: float) -> NDArray[np.uint64]:
    """Return by which thresholds 64 random bits become a Poisson variable: how many they reach.

    Examples
    --------
    >>> below = poisson_thresholds(1.0) / 2.0**64
    >>> np.round(below[:3], 4).tolist()  # of 0, of at most 1, of at most 2
    [0.3679, 0.7358, 0.9197]
    """
    share, total, thresholds = math.exp(-mean), 0.0, []
    for copies in range(MOST_COPIES):
        total += share
        share *= mean / (copies + 1)
        thresholds.append(min(int(total * 2.0**64), 2**64 - 1))
    return np.array(thresholds, dtype=np.uint64)
