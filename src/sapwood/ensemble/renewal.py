"""Who is replaced: the rules by which a tree that waits takes the place of another.

Both are asked by the kernel after every so many rows. They build what is new aside; then the
kernel takes it over in one step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.ensemble._ensemble import EnsembleKernel
from sapwood.ensemble.rules import ROLES
from sapwood.tree._kernel import TreeKernel

__all__ = ["Challenger", "Renewal", "Reserve", "mean_square"]

Renewed = tuple[TreeKernel, Any]
"""A fresh tree that knows the features, and what is known of it."""

LEAF = ROLES.index("leaf")


def mean_square(table: NDArray[Any]) -> NDArray[np.float64]:
    """Return the faded mean squared error of each tree; infinite if it has none yet."""
    known = table["weight"] > 0
    return np.where(known, table["square"] / np.where(known, table["weight"], 1.0), np.inf)


@dataclass
class Renewal:
    """What both rules share.

    Parameters
    ----------
    fresh : callable
        Makes a tree that knows the features, given the ensemble and the number of the tree.
    after : callable
        Is called after each look, with the ensemble and the place of a tree that was replaced, or
        None.
    lifetime : float
        The rows after which the tree that waits starts anew.
    """

    fresh: Callable[[EnsembleKernel, int], Renewed]
    after: Callable[[EnsembleKernel, int | None], None]
    lifetime: float = 0.0

    def __post_init__(self) -> None:
        self.lifetime = self.lifetime or self.shortest

    shortest = 0.0
    longest = 0.0

    def __call__(self, kernel: EnsembleKernel) -> None:
        """Look who should be replaced."""
        waiting = kernel.tree_table[kernel.members]
        age = kernel.rows - float(waiting["born"])
        place = self.beaten(kernel, age)
        if place is not None or age >= self.lifetime:
            number = int(kernel.tree_table["number"].max()) + 1
            tree, record = self.fresh(kernel, number)
            kernel.replace(kernel.members if place is None else place, tree, record)
            self.lifetime = (
                min(2.0 * self.lifetime, self.longest) if place is None else self.shortest
            )
        self.after(kernel, place)

    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the member whose place the tree that waits has earned, if there is one."""
        raise NotImplementedError


class Reserve(Renewal):
    """Of a forest: a young tree that errs less than the worst member takes its place."""

    shortest, longest, youngest = 2_000.0, 16_000.0, 1_000.0

    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the worst member, if the reserve is old enough and errs less."""
        if age < self.youngest:
            return None
        errors = mean_square(kernel.tree_table)
        errors[:-1][kernel.tree_table["role"][:-1] == LEAF] = -np.inf
        worst = int(np.argmax(errors[:-1]))
        return worst if errors[-1] < errors[worst] else None


class Challenger(Renewal):
    """Of an adaptive tree: a younger tree takes over once it is plainly better."""

    shortest, longest, youngest = 8_000.0, 64_000.0, 500.0
    SURE = 3.0

    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the place of the tree, if its challenger has been better for long enough."""
        if age < self.youngest:
            return None
        return 0 if kernel.lead > self.SURE * np.sqrt(kernel.lead_square) else None
