"""What all of Sapwood's observers do alike, whatever they keep their elements in."""

from abc import abstractmethod
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.moments import Moments
from sapwood.observers import _merit, packing
from sapwood.observers._watch import Watch
from sapwood.observers.protocol import Candidates, Split
from sapwood.storage.copying import CopiedByBytes

__all__ = ["TableObserver"]

FloatArray = NDArray[np.float64]

MAX_TARGETS = 2**16


class TableObserver(CopiedByBytes, Watch):
    """An observer whose elements are rows of a table: see `sapwood.Observer` for its methods."""

    __slots__ = ()

    @abstractmethod
    def _thresholds(self, keys: FloatArray, table: FloatArray) -> FloatArray:
        """Return the split point after each of some neighbouring elements but the last."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """Return the arguments that make an empty observer like this one."""

    @abstractmethod
    def _absorb(self, other: Self, store: Any, keys: FloatArray, table: FloatArray) -> None:
        """Merge keys and rows of another observer of the same kind into a copy of the store."""

    def best_split(self) -> Split | None:
        """Return the split point of the largest merit, the first of equals.

        Returns
        -------
        Split or None
            None if there are fewer than two elements.
        """
        keys, table, order = self._tables()
        if len(order) < 2:
            return None
        best, merit, left, right = _merit.best_cut(table, order)
        pair = order[best : best + 2]
        threshold = self._thresholds(keys[pair], table[pair])[0]
        return Split(float(threshold), merit, self._one(left), self._one(right))

    def candidates(self) -> Candidates:
        """Return the thresholds and merits of all split points, ascending in the threshold.

        Returns
        -------
        Candidates
            Two arrays, each one shorter than the number of elements.
        """
        keys, table, order = self._tables()
        return Candidates(self._thresholds(keys[order], table[order]), _merit.merits(table, order))

    @property
    def total(self) -> Moments | list[Moments]:
        """The moments of all y; with several targets, a list of them."""
        _, table, order = self._tables()
        return self._one(_merit.totals(table, order))

    def merge(self, other: Self) -> None:
        """Become what watching both streams would have made; `other` is not changed.

        Parameters
        ----------
        other : observer of the same kind
            With as many targets.

        Raises
        ------
        ValueError
            If the two cannot be merged exactly; nothing is changed then.
        """
        if type(other) is not type(self):
            raise ValueError(f"a {type(self).__name__} cannot be merged with {other!r}")
        if other.targets != self.targets:
            raise ValueError(
                f"an observer of {self.targets} targets cannot be merged with one of "
                f"{other.targets}"
            )
        self._check_mergeable(other)
        self._take_in(other, partial(self._absorb, other))

    def _check_mergeable(self, other: Self) -> None:
        """Raise ValueError if another observer of the same kind has unlike parameters."""

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, TableObserver):
            return NotImplemented
        result = self.copy()
        result.merge(other)
        return result

    def to_bytes(self) -> bytes:
        """Return the whole state as bytes, for `from_bytes`."""
        keys, table = self._elements()
        header = {
            "kind": type(self).__name__,
            "parameters": self._parameters(),
            "elements": len(keys),
            "weight": self._weight,
        }
        return packing.pack(header, [self._reach, keys, table, *self._more_numbers()])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Restore what `to_bytes` made.

        Parameters
        ----------
        data : bytes
            The data may be untrusted: no code is run, and everything is checked.

        Raises
        ------
        ValueError
            If the bytes are damaged, malformed, or of another kind of observer.
        """
        header, numbers = packing.unpack(data)
        packing.check(header.get("kind") == cls.__name__, f"it is no {cls.__name__}")
        try:
            observer = cls(**header["parameters"])
            elements = validation.whole(header["elements"], "elements", 0, len(numbers))
            weight = float(header["weight"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the saved observer is not valid: {error}") from None
        width = packing.CELLS + packing.CELL * observer.targets
        sizes = [2 * observer.targets, elements, elements * width]
        packing.check(sum(sizes) <= len(numbers), "numbers are missing")
        reach, keys, table, more = np.split(numbers, np.cumsum(sizes))
        reach, table = reach.reshape(-1, 2), table.reshape(elements, width)
        packing.check_state(keys, table, weight, reach)
        observer._restore(keys, table, more)
        observer._set_reach(weight, reach)
        return observer

    def _more_numbers(self) -> list[FloatArray]:
        """Return arrays that belong to the state in addition to keys and table."""
        return []

    @abstractmethod
    def _restore(self, keys: FloatArray, table: FloatArray, more: FloatArray) -> None:
        """Fill an empty observer; `more` is what `_more_numbers` gave, joined."""

    def _one(self, moments: list[Moments]) -> Moments | list[Moments]:
        return moments[0] if self.targets == 1 else moments

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"<{type(self).__name__}({arguments}) with {len(self)} elements>"
