"""The protocol of observers."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.moments import Moments

__all__ = ["Candidates", "Observer", "Split"]


class Split(NamedTuple):
    """A split point of a feature: rows with ``x < threshold`` go left, the others right.

    Attributes
    ----------
    threshold : float
        The split point.
    merit : float
        Reduction of the variance (population form) by the split. With several targets,
        the mean over the targets of the reduction divided by the target's variance.
    left, right : Moments, or a list of Moments with several targets
        The statistics of y on either side.
    """

    threshold: float
    merit: float
    left: Moments | list[Moments]
    right: Moments | list[Moments]


class Candidates(NamedTuple):
    """The candidate split points of an observer, in ascending order."""

    thresholds: NDArray[np.float64]
    merits: NDArray[np.float64]


@runtime_checkable
class Observer(Protocol):
    """Summarises one feature and the target, and proposes split points."""

    def update(self, x: float, y: float | Sequence[float], w: float = 1.0) -> None:
        """Add one observation."""

    def update_many(self, x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None) -> None:
        """Add many observations: equals `update` in a loop."""

    def best_split(self) -> Split | None:
        """Return the split point of the largest merit, or None if there is none."""

    def candidates(self) -> Candidates:
        """Return all split points and their merits."""

    def merge(self, other: Self) -> None:
        """Become what watching both streams would have made."""

    def __add__(self, other: Self) -> Self:
        """Return the merge of both; neither is changed."""

    def __len__(self) -> int:
        """Count the elements that are stored."""

    @property
    def nbytes(self) -> int:
        """Bytes that the observer occupies."""

    @property
    def total(self) -> Moments | list[Moments]:
        """The statistics of all y."""

    def to_bytes(self) -> bytes:
        """Return the state, for `from_bytes`."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Restore an observer, or raise ValueError."""
