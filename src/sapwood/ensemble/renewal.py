"""The rules by which a candidate tree replaces another.

The kernel calls both at fixed numbers of rows. They build new trees aside; then the kernel takes
over all of them in one step. What was interrupted before this step is repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, NamedTuple

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


def mean_square(kernel: EnsembleKernel, compared: bool = False) -> NDArray[np.float64]:
    """Return the exponentially weighted mean squared error of each tree; infinite without rows.

    Of several targets, it is the mean over them of the squared error as a share of the variance.

    Parameters
    ----------
    kernel : EnsembleKernel
        Of the ensemble.
    compared : bool
        Whether trees are to be compared with the candidate: then only the targets count that it has
        learned.
    """
    shares = kernel.error_shares()
    if compared:
        shares = shares[:, ~np.isnan(shares[-1])]
    known = ~np.isnan(shares)
    count = known.sum(axis=1)
    total = np.where(known, shares, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def _with(events: list[Event], event: Event) -> list[Event]:
    return [*events[1 - MOST_EVENTS :], event]


class _Cast(NamedTuple):
    """All trees of an ensemble as they are to be, and what is known of them."""

    trees: list[TreeKernel]
    table: NDArray[Any]
    errors: NDArray[np.float64]  # of several targets; none of one

    @classmethod
    def of(cls, kernel: EnsembleKernel) -> "_Cast":
        """Return those that there are, to be changed."""
        return cls(list(kernel.trees), kernel.tree_table.copy(), kernel.tables.error_table.copy())

    def let_last_take(self, place: int) -> None:
        """Let the candidate replace another tree."""
        self.trees[place], self.table[place] = self.trees[-1], self.table[-1]
        if len(self.errors):
            self.errors[place] = self.errors[-1]

    def put(self, place: int, fresh: Renewed) -> None:
        """Put a fresh tree in a place."""
        self.trees[place], self.table[place] = fresh
        if len(self.errors):
            self.errors[place] = 0.0


@dataclass
class Renewal(ABC):
    """What both rules share.

    Parameters
    ----------
    fresh : callable
        Makes a tree that knows the features, given the ensemble, its number and its place.
    share_memory : callable
        Is called with the ensemble, to let each tree have a part of the memory.
    tell : callable
        Called with each event.
    may_take_over : callable
        Whether the candidate of the ensemble may replace a member.
    """

    fresh: Callable[[EnsembleKernel, int, int], Renewed]
    share_memory: Callable[[EnsembleKernel], None]
    tell: Callable[[Event], None]
    may_take_over: Callable[[EnsembleKernel], bool]

    shortest: ClassVar[float]
    longest: ClassVar[float]
    stirred: ClassVar[float] = 100.0
    much_larger: ClassVar[float] = 2.0
    youngest_anew: ClassVar[float] = 500.0
    sure_anew: ClassVar[float] = 4.0
    sure_worse: ClassVar[float] = 2.0

    def __call__(self, kernel: EnsembleKernel) -> None:
        """Look who should be replaced."""
        self.share_memory(kernel)
        self._tell_splits(kernel)
        born = float(kernel.tree_table["born"][kernel.members])
        age = kernel.rows - born
        may_take_over = self.may_take_over(kernel)
        if may_take_over and self._is_all_lost(kernel, age):
            self._begin_anew(kernel, age)
            return
        place = self.beaten(kernel, age) if may_take_over else None
        if place is not None:
            self._replace(kernel, place, age)
        elif kernel.changed > born and self._is_changed(kernel):
            self._restart(kernel, age, self.shortest)
        elif age >= kernel.lifetime:
            self._restart(kernel, age, min(2.0 * kernel.lifetime, self.longest))
        else:
            kernel.end_look(kernel.lifetime, kernel.events)

    def _tell_splits(self, kernel: EnsembleKernel) -> None:
        """Report which trees have grown since the last check."""
        leaves = np.array([tree.leaf_count for tree in kernel.trees])
        grown = np.flatnonzero(leaves != kernel.tree_table["leaves"])
        kernel.tree_table["leaves"] = leaves
        for place in grown.tolist():
            age = kernel.rows - float(kernel.tree_table["born"][place])
            self.tell({**self._event("split", kernel, place, age), "leaves": int(leaves[place])})

    def _is_changed(self, kernel: EnsembleKernel) -> bool:
        """Return whether errors have been much larger since a change, and for long enough."""
        since = kernel.rows - kernel.changed
        larger = self.much_larger / sqrt(kernel.worth)
        return since >= self.stirred and kernel.stir > larger * since * kernel.calm

    def _is_all_lost(self, kernel: EnsembleKernel, age: float) -> bool:
        """Return whether what was learned before is worth less than the tree that waits alone.

        That is so if its errors are plainly smaller than those of the predictions; or if they are
        not plainly larger, and those of most members are far larger since a change.
        """
        if age < self.youngest_anew or kernel.gain_square == 0.0:
            return False
        gain = kernel.gain / sqrt(kernel.gain_square)
        if gain * sqrt(kernel.worth) > self.sure_anew:
            return True
        return gain > -self.sure_worse and self._is_changed(kernel) and self.are_lost(kernel)

    def _replace(self, kernel: EnsembleKernel, place: int, age: float) -> None:
        """Let the tree that waits take the place of a member."""
        event = self._event("replaced", kernel, place, age)
        cast = _Cast.of(kernel)
        cast.let_last_take(place)
        cast.put(kernel.members, self.fresh(kernel, self._number(kernel), kernel.members))
        kernel.end_look(self.shortest, _with(kernel.events, event), *cast)
        self.tell(event)

    def _restart(self, kernel: EnsembleKernel, age: float, lifetime: float) -> None:
        """Start another candidate."""
        event = self._event("restarted", kernel, kernel.members, age)
        cast = _Cast.of(kernel)
        cast.put(kernel.members, self.fresh(kernel, self._number(kernel), kernel.members))
        kernel.end_look(lifetime, kernel.events, *cast)
        self.tell(event)

    def _begin_anew(self, kernel: EnsembleKernel, age: float) -> None:
        """Let the candidate be the first member, and replace all others by empty trees."""
        event = self._event("reset", kernel, 0, age)
        cast = _Cast.of(kernel)
        cast.let_last_take(0)
        number = self._number(kernel)
        for place in range(1, len(cast.trees)):
            cast.put(place, self.fresh(kernel, number + place, place))
        kernel.end_look(self.shortest, _with(kernel.events, event), *cast, anew=True)
        self.share_memory(kernel)
        self.tell(event)

    def _number(self, kernel: EnsembleKernel) -> int:
        """Return the number of the next tree."""
        return int(kernel.tree_table["number"].max()) + 1

    def _event(self, name: str, kernel: EnsembleKernel, place: int, age: float) -> Event:
        """Return what has happened, with the error of the tree that waited or has split."""
        whose = place if name == "split" else kernel.members
        error = float(np.sqrt(mean_square(kernel)[whose]))
        return {
            "event": name,
            "rows": int(kernel.rows),
            "member": place,
            "age": int(age),
            "error": error,
        }

    @abstractmethod
    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the member whose place the tree that waits has earned, if there is one."""

    def are_lost(self, kernel: EnsembleKernel) -> bool:
        """Return whether most members err far more than the tree that waits."""
        return False


class Reserve(Renewal):
    """Of a forest: a younger tree with a smaller error replaces the worst member."""

    shortest, longest = 2_000.0, 16_000.0
    youngest: ClassVar[float] = 1_000.0
    far_more: ClassVar[float] = 2.0

    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the worst member, if the candidate is old enough and its error is smaller."""
        if age < self.youngest:
            return None
        errors = mean_square(kernel, compared=True)
        errors[:-1][kernel.tree_table["role"][:-1] == LEAF] = -np.inf
        worst = int(np.argmax(errors[:-1]))
        return worst if errors[-1] < errors[worst] else None

    def are_lost(self, kernel: EnsembleKernel) -> bool:
        """Return whether most members err far more; the later labels come, the more it takes."""
        grow = kernel.tree_table["role"][:-1] != LEAF
        errors = mean_square(kernel, compared=True)
        are_worse = errors[:-1][grow] > self.far_more / kernel.worth * errors[-1]
        return bool(2 * are_worse.sum() > len(are_worse))


class Challenger(Renewal):
    """Of an adaptive tree: a younger tree takes over once it is plainly better."""

    shortest, longest = 8_000.0, 64_000.0
    youngest: ClassVar[float] = 500.0
    sure: ClassVar[float] = 3.0

    def beaten(self, kernel: EnsembleKernel, age: float) -> int | None:
        """Return the place of the tree, if its challenger has been better for long enough."""
        if age < self.youngest:
            return None
        return 0 if kernel.lead > self.sure * sqrt(kernel.lead_square) else None
