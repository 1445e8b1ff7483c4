"""The exhaustive observers: a node for each different value, in a binary search tree."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.observers import packing
from sapwood.observers._merit import middles
from sapwood.observers._search_tree import SearchTreeStore
from sapwood.observers.base import MAX_TARGETS, TableObserver

__all__ = ["EBSTObserver", "TEBSTObserver"]

FloatArray = NDArray[np.float64]


class _SearchTreeObserver(TableObserver):
    """What E-BST and TE-BST share: the tree of nodes, and cuts midway between neighbours."""

    __slots__ = ()

    _store: SearchTreeStore

    def _thresholds(self, keys: FloatArray, table: FloatArray) -> FloatArray:
        return middles(keys)

    def _absorb(
        self, other: Self, store: SearchTreeStore, keys: FloatArray, table: FloatArray
    ) -> None:
        store.absorb(keys, table)

    def _restore(self, keys: FloatArray, table: FloatArray, more: FloatArray) -> None:
        packing.check(len(more) == 0, "there are more numbers than there should be")
        packing.check(np.isfinite(keys).all(), "a value is not finite")
        self._store.absorb(keys, table)


class EBSTObserver(_SearchTreeObserver):
    """The extended binary search tree: every observed value is a candidate split point.

    The reference that the quantizer is measured against: its splits are the best there are,
    its memory grows with the number of different values.

    Parameters
    ----------
    targets : int
        The number of targets.

    Notes
    -----
    This is the tree of the paper, with two differences that do not change candidates or merits. A
    node holds only the rows of its own value, so nothing is subtracted. The tree is balanced, so an
    ascending stream takes no longer than a shuffled one. For k values, an update takes O(log k) and
    a query O(k).

    References
    ----------
    E. Ikonomovska, J. Gama and S. Džeroski, "Learning model trees from evolving data streams",
    Data Mining and Knowledge Discovery 23, 2011.

    Examples
    --------
    >>> observer = EBSTObserver()
    >>> observer.update_many([1, 2, 3, 4, 5, 6], [10, 10, 10, 50, 50, 50])
    >>> observer.best_split().threshold
    3.5
    >>> len(observer)
    6
    """

    __slots__ = ()

    def __init__(self, targets: int = 1) -> None:
        super().__init__(SearchTreeStore(validation.whole(targets, "targets", 1, MAX_TARGETS)))

    def _parameters(self) -> dict[str, Any]:
        return {"targets": self.targets}


class TEBSTObserver(_SearchTreeObserver):
    """The truncated E-BST: values are rounded before they are stored.

    Parameters
    ----------
    digits : int
        The number of decimals that are kept, from 0 to 15. Halves are rounded to even.
    targets : int
        The number of targets.

    Examples
    --------
    >>> observer = TEBSTObserver(digits=1)
    >>> observer.update_many([0.11, 0.12, 0.31], [1, 1, 2])
    >>> len(observer)
    2
    """

    __slots__ = ("digits",)

    digits: int

    def __init__(self, digits: int = 3, targets: int = 1) -> None:
        targets = validation.whole(targets, "targets", 1, MAX_TARGETS)
        digits = validation.whole(digits, "digits", 0, 15)
        super().__init__(SearchTreeStore(targets, 10.0**digits))
        self.digits = digits

    def _parameters(self) -> dict[str, Any]:
        return {"digits": self.digits, "targets": self.targets}

    def _check_mergeable(self, other: Self) -> None:
        if self.digits != other.digits:
            raise ValueError(
                f"values of {self.digits} and of {other.digits} digits cannot be merged exactly"
            )
