"""The parameters of a tree as attributes, for its faces in other libraries."""

import inspect
from collections.abc import Iterable, Iterator

from sapwood import door
from sapwood.door import Label
from sapwood.observers.base import TableObserver
from sapwood.tree.growth import SplitOn
from sapwood.tree.regressor import HoeffdingTreeRegressor, Leaf, Track

__all__ = ["TreeParameters"]

NAMES = tuple(inspect.signature(HoeffdingTreeRegressor).parameters)


class TreeParameters:
    """Keeps what it is given under the names that `sapwood.HoeffdingTreeRegressor` takes.

    Both river and scikit-learn find the parameters of an estimator in the signature of its
    `__init__` and their values in attributes of the same names. Nothing is checked before a
    tree is made of them.

    Examples
    --------
    >>> TreeParameters(max_depth=3)._new_tree()
    <HoeffdingTreeRegressor(max_depth=3): 1 leaves, 0 rows learned>
    """

    def __init__(
        self,
        *,
        grace_period: float = 200,
        delta: float = 1e-3,
        tau: float = 0.05,
        min_share: float = 0.02,
        max_depth: int | None = None,
        observer: TableObserver | None = None,
        leaf: Leaf = "adaptive",
        split_on: SplitOn = "best",
        track: Track = "auto",
        max_bytes: int | None = None,
        categorical: Iterable[Label] = (),
    ) -> None:
        self.grace_period = grace_period
        self.delta = delta
        self.tau = tau
        self.min_share = min_share
        self.max_depth = max_depth
        self.observer = observer
        self.leaf = leaf
        self.split_on = split_on
        self.track = track
        self.max_bytes = max_bytes
        self.categorical = categorical

    def _new_tree(self) -> HoeffdingTreeRegressor:
        """Return an empty tree of these parameters, or raise ValueError for a bad one."""
        if isinstance(self.categorical, Iterator):
            raise ValueError(
                f"categorical = {door.shown(self.categorical)} can be read but once, and is needed "
                "for every new tree; make it a list"
            )
        return HoeffdingTreeRegressor(**{name: getattr(self, name) for name in NAMES})
