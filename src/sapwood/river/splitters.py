"""The observers as splitters of river's own regression trees."""

import math
from itertools import accumulate
from typing import Any

from river.stats import Mean, Var
from river.tree.splitter import Splitter
from river.tree.utils import BranchFactory

from sapwood.moments import Moments, restore
from sapwood.observers import EBSTObserver, QuantizerObserver, TEBSTObserver
from sapwood.observers.base import TableObserver
from sapwood.observers.packing import CELLS, WEIGHT

__all__ = ["EBSTSplitter", "QuantizerSplitter", "TEBSTSplitter"]


class ObserverSplitter(Splitter):
    """Base class of the splitters: an observer with the interface of river.

    None is left out. NaN counts as larger than all numbers, because river's branches send it to
    the right. All else that is no finite number raises ValueError, as does a bad y or weight.

    The merit of a split point is the value of the criterion for the rows that were observed, times
    their share in all that the leaf has seen, so that a feature that is often absent counts less.
    """

    def __init__(self, observer: TableObserver) -> None:
        super().__init__()
        self._observer = observer
        self._nan = Moments()

    def update(self, att_val: Any, target_val: Any, w: float) -> None:
        """Add one observation.

        Parameters
        ----------
        att_val : float or None
            The value of the feature.
        target_val : float
            The target.
        w : float
            The weight of the row.
        """
        if att_val is None:
            return
        if att_val != att_val:  # noqa: PLR0124 - NaN of any type
            self._nan.update(target_val, w)
        else:
            self._observer.update(att_val, target_val, w)

    def cond_proba(self, att_val: Any, target_val: Any) -> float:
        """Raise NotImplementedError: there are no classes in regression."""
        raise NotImplementedError

    def best_evaluated_split_suggestion(
        self, criterion: Any, pre_split_dist: Any, att_idx: Any, binary_only: bool = True
    ) -> Any:
        """Return the best split by the criterion; the first of several equal ones.

        Parameters
        ----------
        criterion : river.tree.split_criterion.SplitCriterion
            Gives the merit.
        pre_split_dist : river.stats.Var
            Of all y in the leaf.
        att_idx : hashable
            The name of the feature.
        binary_only : bool
            Of no effect: all splits are binary.

        Returns
        -------
        river.tree.utils.BranchFactory
            With independent statistics of both sides; without a feature if there is no split.
        """
        best = BranchFactory()
        cuts = self._cuts()
        if not cuts:
            return best
        _, left, right = cuts[0]
        whole = _var(left + right)
        share = whole.n / max(whole.n, pre_split_dist.mean.n)
        for threshold, left, right in cuts:
            sides = [_var(left), _var(right)]
            merit = share * criterion.merit_of_split(whole, sides)
            if merit > best.merit:
                best = BranchFactory(merit, att_idx, threshold, sides)
        return best

    def _cuts(self) -> list[tuple[float, Moments, Moments]]:
        """Return all cuts, ascending: x <= threshold goes left; and the moments of both sides."""
        keys, table = self._observer._elements()
        elements = [_moments(row) for row in table.tolist()]
        # An observer's own thresholds send x < threshold to the left.
        thresholds = [math.nextafter(t, -math.inf) for t in self._observer._thresholds(keys, table)]
        if self._nan.n > 0 and elements:
            elements.append(self._nan)
            thresholds.append(math.inf)
        lefts = list(accumulate(elements[:-1]))
        rights = list(accumulate(reversed(elements[1:])))
        return list(zip(thresholds, lefts, reversed(rights), strict=True))

    @property
    def is_target_class(self) -> bool:
        """False: the target is a number."""
        return False

    def __sizeof__(self) -> int:
        """Return the bytes of this object and its observer, which river cannot see into."""
        return super().__sizeof__() + self._observer.nbytes


class QuantizerSplitter(ObserverSplitter):
    """`sapwood.QuantizerObserver` as a splitter: river's `QOSplitter` with no radius to choose.

    Parameters
    ----------
    radius : float or "auto"
        Width of a slot; with "auto" the observer finds it.
    slots : int
        With ``radius="auto"``, the largest number of slots, at least 2.

    Examples
    --------
    >>> from river import tree
    >>> from sapwood.river import QuantizerSplitter
    >>> model = tree.HoeffdingTreeRegressor(splitter=QuantizerSplitter())
    """

    def __init__(self, radius: float | str = "auto", slots: int = 64) -> None:
        if isinstance(radius, str) and radius != "auto":
            raise ValueError(f"radius = {radius!r}: a positive number or 'auto' is expected")
        super().__init__(QuantizerObserver(radius, slots))
        self.radius = radius
        self.slots = slots


class EBSTSplitter(ObserverSplitter):
    """`sapwood.EBSTObserver` as a splitter: every value is a candidate."""

    def __init__(self) -> None:
        super().__init__(EBSTObserver())


class TEBSTSplitter(ObserverSplitter):
    """`sapwood.TEBSTObserver` as a splitter: every value, rounded, is a candidate.

    Parameters
    ----------
    digits : int
        Decimals that are kept, from 0 to 15.
    """

    def __init__(self, digits: int = 3) -> None:
        super().__init__(TEBSTObserver(digits))
        self.digits = digits


def _moments(row: list[float]) -> Moments:
    """Return the statistics of y in an element of an observer, to the last bit."""
    pivot, shift, m2 = row[CELLS:]
    return restore(row[WEIGHT], pivot, shift, 0.0, m2, 0.0)


def _var(moments: Moments) -> Var:
    """Return moments as river has them.

    River's own way to make them, from a variance, loses M2 where the weight is not above 1.
    """
    var = Var()
    var.mean = Mean._from_state(moments.n, moments.mean)
    var._S = moments.m2
    return var
