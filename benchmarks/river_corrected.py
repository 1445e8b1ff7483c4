"""River's QOSplitter without its two faults: what it would cost if it answered rightly."""

import copy
from typing import Any

from river.stats import Var
from river.tree.split_criterion import VarianceReductionSplitCriterion
from river.tree.splitter import QOSplitter
from river.tree.utils import BranchFactory

__all__ = ["CorrectedQOSplitter", "check_corrected", "river_query"]


class CorrectedQOSplitter(QOSplitter):
    """River's quantizer observer, its query corrected.

    As shipped, the cut between two slots is scored with the upper slot on the left side, and
    the left statistics that are returned go on growing after the best cut was found. Here the
    sides are parted at the cut, and the best left side is kept as a copy; all else is river's.
    """

    def best_evaluated_split_suggestion(
        self, criterion: Any, pre_split_dist: Any, att_idx: Any, binary_only: bool = True
    ) -> Any:
        """Return the best binary split.

        Parameters
        ----------
        criterion : river split criterion
            Gives the merit.
        pre_split_dist : river.stats.Var
            Of all y.
        att_idx : hashable
            Name of the feature.
        binary_only : bool
            Taken as true.
        """
        best = BranchFactory()
        left, low = Var(), None
        for key in sorted(self._quantizer.hash):
            slot: Any = self._quantizer.hash[key]
            x = slot.x_stats.get()
            if low is not None:
                sides = [left, pre_split_dist - left]
                merit = criterion.merit_of_split(pre_split_dist, sides)
                if merit > best.merit:
                    sides[0] = copy.deepcopy(left)
                    best = BranchFactory(merit, att_idx, (low + x) / 2.0, sides)
            left += slot.y_stats
            low = x
        return best


def river_query(splitter: Any, y: list[float]) -> Any:
    """Return a function that asks a river splitter for its best split, as river's trees do.

    Parameters
    ----------
    splitter : river Splitter
        That has watched some rows.
    y : list of float
        The targets of those rows.
    """
    criterion, before = VarianceReductionSplitCriterion(min_samples_split=5), Var()
    for value in y:
        before.update(value)
    return lambda: splitter.best_evaluated_split_suggestion(criterion, before, "x")


def check_corrected() -> None:
    """Raise RuntimeError unless a perfect split of two slots has the whole variance as merit.

    As shipped, river gives it no merit at all.
    """
    x, y = [0.5] * 100 + [1.5] * 100, [0.0] * 100 + [1.0] * 100
    splitter: Any = CorrectedQOSplitter(radius=1.0)
    before = Var()
    for value, target in zip(x, y, strict=True):
        splitter.update(value, target, 1.0)
        before.update(target)
    best = river_query(splitter, y)()
    if best.merit != before.get() or [side.n for side in best.children_stats] != [100, 100]:
        raise RuntimeError("the corrected river observer is not correct")
