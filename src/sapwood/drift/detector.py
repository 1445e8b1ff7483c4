"""A detector of change in a stream of numbers."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.drift._detector import FIELDS, LARGEST, watch
from sapwood.formatting import number
from sapwood.model import State, StoredModel, check_unchanged
from sapwood.records import check

__all__ = ["Change", "ChangeDetector", "Direction"]

Direction = Literal["both", "up", "down"]

SIDES: dict[str, tuple[int, int]] = {"both": (0, 6), "up": (0, 3), "down": (3, 6)}
MOST_ROWS = 2.0**53
ROWS, KNOWN, MEAN, VARIANCE, FIRST_SIDE = range(5)
SIDE = 5  # numbers of each side: evidence, likeliest, since, before, excess
LAST = ("row", "since", "before", "after")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the mean that was detected.

    Parameters
    ----------
    row : int
        The value at which it was detected, counted from 1.
    since : int
        The value at which it most likely began.
    before, after : float
        The mean until then, and the mean from then on.
    """

    row: int
    since: int
    before: float
    after: float

    def __str__(self) -> str:
        means = f"{number(self.before, 4)} → {number(self.after, 4)}"
        return f"mean {means} since row {self.since:,}, noticed at row {self.row:,}"


class ChangeDetector(StoredModel):
    """Detects changes of the mean of a stream of numbers.

    Values are compared with the mean and the deviation of about the last 2,000, and the evidence
    for a change is gathered after Shiryaev and Roberts for changes by 0.1, 0.2 and 0.4
    deviations at once. After a change was detected, the detector is reset.

    Parameters
    ----------
    once_in : float
        Expected number of values between false alarms.
    direction : {"both", "up", "down"}
        The direction of the changes to detect. For errors of a model, "up".

    Notes
    -----
    The rate of false alarms holds for independent values whose distribution does not change.
    Autocorrelated values have longer runs above the mean, and therefore more false alarms.
    The first 200 values, and the first 200 after each change, only estimate mean and deviation.

    References
    ----------
    M. Pollak, "Optimal detection of a change in distribution", The Annals of Statistics 13, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> detector = ChangeDetector(once_in=100_000)
    >>> values = np.concatenate([rng.normal(5.0, 1.0, 4000), rng.normal(6.0, 1.0, 1000)])
    >>> for change in detector.update_many(values):
    ...     print(change)
    mean 4.986 → 6.41 since row 4,001, noticed at row 4,025
    >>> detector.update(6.3), detector.last.since
    (False, 4001)
    """

    kind: ClassVar[str] = "ChangeDetector"
    format: ClassVar[int] = 1

    def __init__(self, once_in: float = 1_000_000, direction: Direction = "both") -> None:
        super().__init__()
        if not isinstance(direction, str) or direction not in SIDES:
            raise ValueError(
                f"direction = {validation.shown(direction)}: 'both', 'up' or 'down' is expected"
            )
        self._once_in = validation.between(once_in, "once_in", 100.0, math.inf)
        self._direction = direction
        # Both at once, so that nothing can come in between.
        self._seen: tuple[NDArray[np.float64], Change | None] = np.zeros(FIELDS), None

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a detector like this one that has seen nothing."""
        return {"once_in": self._once_in, "direction": self._direction}

    @property
    def rows(self) -> int:
        """The number of values so far."""
        return int(self._state[ROWS])

    @property
    def mean(self) -> float:
        """The mean of about the last 2,000 values, or of those since the last change."""
        return float(self._state[MEAN])

    @property
    def deviation(self) -> float:
        """The standard deviation of the same values; far ones count as four deviations."""
        return math.sqrt(self._state[VARIANCE])

    @property
    def evidence(self) -> float:
        """The evidence for a change, relative to the threshold: a change is reported at 1."""
        first, last = SIDES[self._direction]
        own = self._state[FIRST_SIDE:].reshape(-1, SIDE)[first:last, 0]
        return float(own.mean()) / self._once_in

    @property
    def last(self) -> Change | None:
        """The last change that was detected."""
        return self._seen[1]

    @property
    def _state(self) -> NDArray[np.float64]:
        return self._seen[0]

    def update(self, value: float) -> bool:
        """Update the detector with a value.

        Parameters
        ----------
        value : float
            A finite number, not beyond 1e140.

        Returns
        -------
        bool
            Whether a change was detected; see `last`.
        """
        return bool(self.update_many([validation.number(value, "value")]))

    def update_many(self, values: ArrayLike) -> list[Change]:
        """Update the detector with many values, as `update` in a loop, or with none of them.

        Parameters
        ----------
        values : array_like of float
            Finite numbers, not beyond 1e140.

        Returns
        -------
        list of Change
            The changes that were detected, in order.
        """
        array = np.array(validation.column(values, "values"), order="C")
        bad = np.flatnonzero(~(np.abs(array) <= LARGEST))
        if len(bad):
            place = int(bad[0])
            raise ValueError(
                f"values = {validation.shown(float(array[place]))} at position {place} must be a finite "
                f"number, not beyond {LARGEST:g}; leave it out or scale it down"
            )
        state, start = self._state.copy(), 0
        changes: list[Change] = []
        while start < len(array):
            taken, found = watch(state, array[start:], self._once_in, *SIDES[self._direction])
            start += taken
            if found is not None:
                since, before, after = found
                changes.append(Change(int(state[ROWS]), int(since), before, after))
        self._seen = state, changes[-1] if changes else self.last
        return changes

    @property
    def nbytes(self) -> int:
        """Bytes that all numbers of the detector occupy."""
        return int(self._state.nbytes) + 8 * (len(LAST) if self.last is not None else 0)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"<ChangeDetector({parameters}): {self.rows} values>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the detector is: a header for JSON, and arrays."""
        own = self.last
        last = [] if own is None else [float(getattr(own, name)) for name in LAST]
        return State(
            {"parameters": self.parameters}, {"state": self._state, "last": np.array(last)}
        )

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Return the detector that `to_state` described; nothing of it is trusted."""
        header, arrays = state
        check(header.keys() == {"parameters"}, "its header has other entries")
        check(arrays.keys() == {"state", "last"}, "its arrays are not state and last")
        made = cls(**header["parameters"])
        check_unchanged(made.to_state().header, header)
        seen = _state(arrays["state"])
        made._seen = seen, _last(arrays["last"], int(seen[ROWS]))
        return made


def check_state(state: NDArray[np.float64]) -> None:
    """Raise ValueError unless a state is one in which the kernel can be; all sums are bounded."""
    check(bool(np.isfinite(state).all()), "its state has a number that is not finite")
    rows, known = state[ROWS], state[KNOWN]
    whole = 0 <= known <= rows <= MOST_ROWS and rows == int(rows) and known == int(known)
    check(whole, f"it cannot have seen {rows:g} values, {known:g} of them since its last reset")
    check(abs(state[MEAN]) <= LARGEST and state[VARIANCE] >= 0, "its mean or variance is wrong")
    sides = state[FIRST_SIDE:].reshape(-1, SIDE)
    check(bool((sides[:, 0] >= 0).all()), "its evidence is negative")
    since = sides[:, 2]
    good = bool(((since >= 0) & (since <= rows) & (since == np.floor(since))).all())
    check(good, "a change cannot have begun then")
    check(bool((np.abs(sides[:, 3]) <= LARGEST).all()), "a mean before is wrong")


def _state(saved: NDArray[Any]) -> NDArray[np.float64]:
    good = saved.dtype == np.float64 and saved.shape == (FIELDS,)
    check(good, f"its state is {saved.dtype} of shape {saved.shape}")
    check_state(saved)
    return saved


def _last(saved: NDArray[Any], rows: int) -> Change | None:
    good = saved.dtype == np.float64 and saved.shape in ((0,), (len(LAST),))
    check(good, f"its last change is {saved.dtype} of shape {saved.shape}")
    if not len(saved):
        return None
    row, since, before, after = saved.tolist()
    check(1 <= since <= row <= rows, f"no change can have begun at row {since:g}")
    check(math.isfinite(before) and math.isfinite(after), "its last change is no number")
    return Change(int(row), int(since), before, after)
