"""Who is replaced: the rules by which a tree that waits takes the place of another.

Both are asked by the kernel after every so many rows. They build what is new aside; then the
kernel takes all of it over in one step. Whatever breaks off before that is done again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood.ensemble._ensemble import EnsembleKernel
from sapwood.ensemble.rules import ROLES
from sapwood.tree._kernel import TreeKernel

__all__ = ["Challenger", "Event", "Renewal", "Reserve", "mean_square"]

Renewed = tuple[TreeKernel, Any]
"""A fresh tree that knows the features, and what is known of it."""

Event = dict[str, Any]
"""What has happened: a word, the rows by then, the member, and the age and RMSE of the new one."""

LEAF = ROLES.index("leaf")
MOST_EVENTS = 100  # that are remembered


def mean_square(table: NDArray[Any]) -> NDArray[np.float64]:
    """Return the faded mean squared error of each tree; infinite if it has none yet."""
    known = table["weight"] > 0
    return np.where(known, table["square"] / np.where(known, table["weight"], 1.0), np.inf)


@dataclass
class Renewal(ABC):
    """What both rules share.

    Parameters
    ----------
    fresh : callable
        Makes a tree that knows the features, given the ensemble and the number of the tree.
    share_memory : callable
        Is called with the ensemble, to let each tree have a part of the memory.
    tell : callable
        Is told what has happened.
    """

    fresh: Callable[[EnsembleKernel, int], Renewed]
    share_memory: Callable[[EnsembleKernel], None]
    tell: Callable[[Event], None]

    shortest: ClassVar[float]
    longest: ClassVar[float]

    def __call__(self, kernel: EnsembleKernel) -> None:
        """Look who should be replaced."""
        self.share_memory(kernel)
        age = kernel.rows - float(kernel.tree_table["born"][kernel.members])
        place = self.beaten(kernel, age)
        if place is None and age < kernel.lifetime:
            kernel.end_look(kernel.lifetime, kernel.events)
            return
        number = int(kernel.tree_table["number"].max()) + 1
        tree, record = self.fresh(kernel, number)
        if place is None:
            lifetime = min(2.0 * kernel.lifetime, self.longest)
            kernel.end_look(lifetime, kernel.events, kernel.members, tree, record)
            return
        event: Event = {
            "event": "replaced",
            "rows": int(kernel.rows),
            "member": place,
            "age": int(age),
            "error": float(np.sqrt(mean_square(kernel.tree_table)[kernel.members])),
        }
        events = [*kernel.events[1 - MOST_EVENTS :], event]
        kernel.end_look(self.shortest, events, place, tree, record)
        self.tell(event)

    @abstractmethod
    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the member whose place the tree that waits has earned, if there is one."""


class Reserve(Renewal):
    """Of a forest: a young tree that errs less than the worst member takes its place."""

    shortest, longest = 2_000.0, 16_000.0
    youngest: ClassVar[float] = 1_000.0

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

    shortest, longest = 8_000.0, 64_000.0
    youngest: ClassVar[float] = 500.0
    sure: ClassVar[float] = 3.0

    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the place of the tree, if its challenger has been better for long enough."""
        if age < self.youngest:
            return None
        return 0 if kernel.lead > self.sure * np.sqrt(kernel.lead_square) else None
