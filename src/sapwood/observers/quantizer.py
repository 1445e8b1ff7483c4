"""The Quantizer Observer: a slot of statistics for each stretch of the feature."""

import sys
from math import frexp
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.observers import packing
from sapwood.observers._grid import GridStore, are_slots, roundest_between
from sapwood.observers._merit import middles
from sapwood.observers._slots import SlotStore, coarser_keys, slot_keys, upper_borders
from sapwood.observers.base import MAX_TARGETS, TableObserver

__all__ = ["QuantizerObserver"]

FloatArray = NDArray[np.float64]

Cut = Literal["border", "prototype"]

MAX_SLOTS = 2**24
COLD_START = 0.01  # the paper's radius where the deviation is not known
MAX = sys.float_info.max


class QuantizerObserver(TableObserver):
    """The Quantizer Observer of Mastelini and de Carvalho: counts a feature in slots.

    Parameters
    ----------
    radius : float, "auto" or "std/k"
        The width of a slot: x is counted in slot ``floor(x / radius)``. With "auto", the observer
        starts with a slot for each value. When it would need more than `slots`, it merges the slots
        that are least likely to contain the best split point. About half of the slots then cover
        the feature evenly, with a radius that doubles when necessary; the others lie where the
        merit is close to its maximum. With "std/2", "std/3" or another divisor, the radius is this
        part of the feature's standard deviation if it is known, as in leaves that come from a
        split, and otherwise 0.01.
    slots : int
        With ``radius="auto"``, the largest number of slots, at least 2.
    cut : "border" or "prototype"
        The position of thresholds. "border": the upper border of a slot (with "auto", the number
        with the fewest binary digits between two slots); the reported merit is then exact for the
        observed rows. "prototype": midway between the mean x of two neighbouring slots, as in the
        paper; some rows are then on the other side.
    targets : int
        The number of targets.

    Notes
    -----
    An update takes O(1), or O(log slots) with "auto". A query takes O(k log k) for k slots of a
    fixed radius, and O(slots) with "auto". Two observers can be merged exactly if the quotient of
    their radii is a power of two, which is always true with "auto".

    References
    ----------
    S. M. Mastelini and A. C. P. L. F. de Carvalho, "Using dynamical quantization to perform
    split attempts in online tree regressors", Pattern Recognition Letters 145, 2021.

    Examples
    --------
    >>> observer = QuantizerObserver()
    >>> observer.update_many([1, 2, 3, 4, 5, 6], [10, 10, 10, 50, 50, 50])
    >>> split = observer.best_split()
    >>> split.threshold, split.merit
    (4.0, 400.0)
    >>> split.left
    Moments(n=3.0, mean=10.0, m2=0.0)
    >>> QuantizerObserver(radius=0.25).best_split() is None
    True
    """

    __slots__ = ("cut", "divisor")

    cut: Cut
    divisor: float | None
    _store: SlotStore | GridStore

    def __init__(
        self,
        radius: float | str = "auto",
        slots: int = 128,
        cut: Cut = "border",
        targets: int = 1,
    ) -> None:
        targets = validation.whole(targets, "targets", 1, MAX_TARGETS)
        slots = validation.whole(slots, "slots", 2, MAX_SLOTS)
        if cut not in ("border", "prototype"):
            raise ValueError(f"cut = {cut!r}: 'border' or 'prototype' is expected")
        self.divisor = None
        if radius == "auto":
            super().__init__(GridStore(targets, slots))
        elif isinstance(radius, str):
            self.divisor = _divisor(radius)
            super().__init__(SlotStore(targets, COLD_START))
        else:
            super().__init__(SlotStore(targets, validation.positive(radius, "radius")))
        self.cut = cut

    @property
    def radius(self) -> float:
        """The current width of a slot; with "auto", an upper limit of it."""
        return self._store.radius

    @property
    def adaptive(self) -> bool:
        """Whether the radius was left to the observer."""
        return isinstance(self._store, GridStore)

    def _parameters(self) -> dict[str, Any]:
        store = self._store
        if isinstance(store, GridStore):
            own: dict[str, Any] = {"radius": "auto", "slots": store.slots}
        elif self.divisor is not None:
            own = {"radius": f"std/{self.divisor!r}"}
        else:
            own = {"radius": store.radius}
        return {**own, "cut": self.cut, "targets": self.targets}

    def _thresholds(self, keys: FloatArray, table: FloatArray) -> FloatArray:
        if self.cut == "prototype":
            return middles(table[:, packing.PROTOTYPE])
        if isinstance(self._store, GridStore):
            return roundest_between(keys)
        return upper_borders(keys[:-1], self._store.radius)

    def _check_mergeable(self, other: Self) -> None:
        if self.adaptive != other.adaptive:
            raise ValueError("a radius of 'auto' and a fixed one cannot be merged exactly")
        if self.adaptive:
            return
        if not _is_power_of_two(self.radius / other.radius):
            raise ValueError(
                f"radii of {self.radius} and {other.radius} cannot be merged exactly: their "
                "quotient has to be a power of two"
            )
        for observer in (self, other):
            if self.radius != other.radius and not np.isfinite(observer._elements()[0]).all():
                raise ValueError(
                    f"x / {observer.radius} exceeded the largest double: such slots cannot be "
                    "merged with those of another radius"
                )

    def _absorb(
        self, other: Self, store: SlotStore | GridStore, keys: FloatArray, table: FloatArray
    ) -> None:
        if isinstance(store, GridStore) and isinstance(other._store, GridStore):
            ends = other._store.upper_borders(keys)
            store.absorb(other._store.level, keys, ends, table)
        elif isinstance(store, SlotStore):
            if other.radius > store.radius:
                store.coarsen(other.radius)
            store.absorb(coarser_keys(keys, store.radius / other.radius), table)

    def _more_numbers(self) -> list[FloatArray]:
        if isinstance(self._store, GridStore):
            borders = self._store.upper_borders(self._elements()[0])
            return [np.array([self._store.level], dtype=np.float64), borders]
        return []

    def _restore(self, keys: FloatArray, table: FloatArray, more: FloatArray) -> None:
        if isinstance(self._store, SlotStore):
            packing.check(len(more) == 0, "there are more numbers than there should be")
            packing.check(np.all(keys == np.floor(keys)), "a key is not whole")
            lowest, highest = slot_keys(np.array([-MAX, MAX]), self.radius)
            packing.check(np.all((lowest <= keys) & (keys <= highest)), "no x has such a key")
            self._store.absorb(keys, table)
            return
        packing.check(len(more) == 1 + len(keys), "the number of borders is wrong")
        level, ends = more[0], more[1:]
        packing.check(-1074 <= level <= 1024 and level == int(level), "the level is wrong")
        packing.check(len(keys) <= self._store.slots, "there are too many slots")
        packing.check(are_slots(int(level), keys, ends), "a slot's borders are wrong")
        self._store.absorb(int(level), keys, ends, table)


def _is_power_of_two(quotient: float) -> bool:
    return frexp(quotient)[0] == 0.5


def _divisor(radius: str) -> float:
    """Return the k of "std/k", or raise ValueError."""
    if radius.startswith("std/"):
        try:
            return validation.positive(float(radius[4:]), "radius")
        except ValueError:
            pass
    raise ValueError(f"radius = {radius!r}: a positive number, 'auto' or 'std/k' is expected")
