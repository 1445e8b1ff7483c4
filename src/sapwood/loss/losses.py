"""Losses of a raw prediction: their value, first and second derivative, and link."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import ClassVar, Protocol, Self, runtime_checkable

__all__ = ["LOSSES", "HuberLoss", "Loss", "NamedLoss", "PoissonLoss", "WinsorizedLoss"]

LONGEST_STEP = 3.0  # of the logarithm of a mean, by one row
ABOVE = 1.0  # by which a logarithm may exceed that of the largest y
HIGHEST = 700.0  # whose exponential is a number
ZERO = 0.5  # whose logarithm stands for that of 0
FIRST_ROWS = 50  # of which all errors count
REACH = 8.0  # median absolute errors, beyond which an error counts no more
FAST, SLOW = 0.25, 0.025  # steps of the logarithm of the median, for the first rows and later
USUAL_ROWS = 32  # of which the usual range of labels is known
BEYOND = 3.0  # usual ranges beyond which a label is an outlier
TAIL = 0.02  # share of labels on each side of the usual range
WIDER = 3.0  # interquartile ranges that the first usual range has beyond the quartiles at most
LEAST_STEP = 1e-3  # of the ends of the range, as a share of STEP ranges
STEP = 3.0


@runtime_checkable
class Loss(Protocol):
    """A loss that `LossRegressor` can minimise: functions of a label and a raw prediction.

    The model inside predicts the raw value; `inverse` makes a prediction of y of it. Give an object
    with these methods for a loss of your own. It must not change while it is used.
    """

    def value(self, y: float, raw: float) -> float:
        """Return the loss of a raw prediction."""

    def gradient(self, y: float, raw: float) -> float:
        """Return its derivative by the raw prediction."""

    def hessian(self, y: float, raw: float) -> float:
        """Return its second derivative, or an upper bound of it; above 0."""

    def link(self, y: float) -> float:
        """Return the raw prediction to start from, given the first label."""

    def inverse(self, raw: float) -> float:
        """Return the prediction of y, given the raw one."""


class NamedLoss(ABC):
    """A loss that has a name, so that models with it can be saved; it may learn a few numbers."""

    name: ClassVar[str]
    numbers: ClassVar[tuple[str, ...]] = ()
    """The attributes that it learns."""

    def copy(self) -> Self:
        """Return an independent copy."""
        return copy(self)

    def problem(self, y: float) -> str | None:
        """Return what is wrong with a label; None if nothing is."""
        return None

    @abstractmethod
    def update(self, y: float, raw: float, rows: float) -> None:
        """Learn from a label, its raw prediction, and the number of rows before."""

    def to_numbers(self) -> list[float]:
        """Return all that it has learned."""
        return [getattr(self, name) for name in self.numbers]

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> Self:
        """Restore what `to_numbers` returned.

        Raises
        ------
        ValueError
            If they cannot be such numbers.
        """
        made = cls()
        if len(numbers) != len(cls.numbers) or any(map(math.isnan, numbers)):
            raise ValueError("the numbers of its loss are not as they were saved")
        for name, number in zip(cls.numbers, numbers, strict=True):
            setattr(made, name, float(number))
        if not made.is_possible:
            raise ValueError("the numbers of its loss cannot be")
        return made

    @property
    def is_possible(self) -> bool:
        """Whether its numbers are such as it can have learned."""
        return True


class PoissonLoss(NamedLoss):
    """The Poisson deviance, for counts: the raw prediction is the logarithm of the mean.

    Examples
    --------
    >>> loss = PoissonLoss()
    >>> loss.update(7.0, 0.0, 0)
    >>> round(loss.inverse(2.0), 3), round(loss.gradient(7.0, 2.0), 3)
    (7.389, 0.389)
    """

    name: ClassVar[str] = "poisson"
    numbers: ClassVar[tuple[str, ...]] = ("largest",)

    def __init__(self) -> None:
        self.largest = -math.inf  # link of a label

    def problem(self, y: float) -> str | None:
        """Return what is wrong with a label."""
        return None if y >= 0.0 else "the loss 'poisson' needs y of at least 0"

    def link(self, y: float) -> float:
        """Return the logarithm of a count; one of 0 counts as a half."""
        return math.log(y) if y > ZERO else math.log(ZERO)

    def inverse(self, raw: float) -> float:
        """Return the mean; 0 before the first label."""
        return math.exp(min(raw, self.largest + ABOVE, HIGHEST))

    def value(self, y: float, raw: float) -> float:
        """Return the deviance."""
        mean = self.inverse(raw)
        return 2.0 * ((y * math.log(y / mean) if y > 0.0 else 0.0) - (y - mean))

    def gradient(self, y: float, raw: float) -> float:
        """Return half the derivative of the deviance; a row moves a mean 20-fold at most."""
        mean = self.inverse(raw)
        return max(mean - y, -LONGEST_STEP * mean)

    def hessian(self, y: float, raw: float) -> float:
        """Return the mean."""
        return self.inverse(raw)

    @property
    def is_possible(self) -> bool:
        """Whether its number is such as it can have learned."""
        return self.largest < math.inf

    def update(self, y: float, raw: float, rows: float) -> None:
        """Learn the largest label."""
        self.largest = max(self.largest, self.link(y))


class HuberLoss(NamedLoss):
    """The Huber loss, for targets with outliers: large errors count in proportion to their size.

    An error is large beyond eight times the median absolute error of the stream, which is learned.

    Examples
    --------
    >>> loss = HuberLoss()
    >>> for row in range(100):
    ...     loss.update(1.0, 0.0, row)
    >>> 0.8 < loss.scale < 1.25
    True
    >>> loss.gradient(1e6, 0.0) == -8.0 * loss.scale
    True
    """

    name: ClassVar[str] = "huber"
    numbers: ClassVar[tuple[str, ...]] = ("scale", "limit")

    def __init__(self) -> None:
        self.scale = 0.0  # the median absolute error, 0 before there is one
        self.limit = math.inf  # of errors that count in full

    def link(self, y: float) -> float:
        """Return the label itself."""
        return y

    def inverse(self, raw: float) -> float:
        """Return the raw prediction itself."""
        return raw

    def value(self, y: float, raw: float) -> float:
        """Return half the squared error, or its tangent where the error is large."""
        error = abs(y - raw)
        return 0.5 * error**2 if error <= self.limit else self.limit * (error - 0.5 * self.limit)

    def gradient(self, y: float, raw: float) -> float:
        """Return the error, held within the limit."""
        return max(-self.limit, min(self.limit, raw - y))

    def hessian(self, y: float, raw: float) -> float:
        """Return 1, an upper bound."""
        return 1.0

    @property
    def is_possible(self) -> bool:
        """Whether its numbers are such as it can have learned."""
        return 0.0 <= self.scale < math.inf and self.limit > 0.0

    def update(self, y: float, raw: float, rows: float) -> None:
        """Move the median towards the error."""
        error = abs(y - raw)
        if self.scale == 0.0:
            self.scale = error
        elif error != self.scale:
            step = FAST if rows < FIRST_ROWS else SLOW
            self.scale *= math.exp(step if error > self.scale else -step)
        if rows >= FIRST_ROWS and self.scale > 0.0:
            self.limit = REACH * self.scale


class WinsorizedLoss(NamedLoss):
    """The squared error of labels that are no isolated outliers.

    The usual range is that between the 2 % and 98 % quantiles of labels, which are learned. A label
    is an outlier if it is farther beyond this range than three times its width. It is replaced by the
    end of the range, unless the label before it was an outlier on the same side: of a change of
    level, only the first label is replaced.

    Examples
    --------
    >>> loss = WinsorizedLoss()
    >>> for row in range(100):
    ...     loss.update(float(row % 10), 0.0, row)
    >>> loss.held(12.0), loss.held(1000.0) < 10.0
    (12.0, True)
    >>> loss.update(1000.0, 0.0, 100)
    >>> loss.held(1000.0)
    1000.0
    """

    name: ClassVar[str] = "winsorized"

    def __init__(self) -> None:
        self.low = self.high = 0.0  # the usual range
        self.side = 0.0  # on which the last label was an outlier: -1, 1, or 0 if it was none
        self.rows = 0.0
        self.first: tuple[float, ...] = ()  # labels, until the usual range is known

    def _side_of(self, y: float) -> float:
        """Return on which side a label is an outlier; 0 if it is none."""
        reach = BEYOND * (self.high - self.low)
        if self.rows < USUAL_ROWS or not reach > 0.0:
            return 0.0
        return 1.0 if y > self.high + reach else -1.0 if y < self.low - reach else 0.0

    def held(self, y: float) -> float:
        """Return a label as it is learned."""
        side = self._side_of(y)
        if side in (0.0, self.side):
            return y
        return self.high if side > 0.0 else self.low

    def link(self, y: float) -> float:
        """Return the label itself."""
        return y

    def inverse(self, raw: float) -> float:
        """Return the raw prediction itself."""
        return raw

    def value(self, y: float, raw: float) -> float:
        """Return half the squared error of the label as it is learned."""
        return 0.5 * (self.held(y) - raw) ** 2

    def gradient(self, y: float, raw: float) -> float:
        """Return the error of the label as it is learned."""
        return raw - self.held(y)

    def hessian(self, y: float, raw: float) -> float:
        """Return 1."""
        return 1.0

    def update(self, y: float, raw: float, rows: float) -> None:
        """Move the ends of the usual range."""
        self.side = self._side_of(y)
        self.rows += 1.0
        if self.rows <= USUAL_ROWS:
            self.first = (*self.first, y)
            if self.rows == USUAL_ROWS:
                self._start()
            return
        width = self.high - self.low
        if width <= 0.0:
            self.low, self.high = min(self.low, y), max(self.high, y)
            return
        step = max(1.0 / self.rows, LEAST_STEP) * STEP * width
        self.high += step * (1.0 - TAIL) if y > self.high else -step * TAIL
        self.low -= step * (1.0 - TAIL) if y < self.low else -step * TAIL
        if self.high < self.low:
            self.low = self.high = 0.5 * (self.low + self.high)

    def _start(self) -> None:
        """Take the range of the first labels, without those far from their quartiles."""
        labels, quarter = sorted(self.first), USUAL_ROWS // 4
        lower, upper = labels[quarter], labels[-1 - quarter]
        reach = WIDER * (upper - lower)
        self.low, self.high = max(labels[0], lower - reach), min(labels[-1], upper + reach)
        self.first = ()

    def to_numbers(self) -> list[float]:
        """Return all that it has learned."""
        return [self.low, self.high, self.side, self.rows, *self.first]

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> Self:
        """Restore what `to_numbers` returned.

        Raises
        ------
        ValueError
            If they cannot be such numbers.
        """
        if len(numbers) < 4 or not all(map(math.isfinite, numbers)):
            raise ValueError("the numbers of its loss are not as they were saved")
        made = cls()
        made.low, made.high, made.side, made.rows = map(float, numbers[:4])
        made.first = tuple(map(float, numbers[4:]))
        count = made.rows if made.rows < USUAL_ROWS else 0.0
        is_possible = made.rows >= 0.0 and made.rows.is_integer() and made.low <= made.high
        if not is_possible or len(made.first) != count or made.side not in (-1.0, 0.0, 1.0):
            raise ValueError("the numbers of its loss cannot be")
        return made


LOSSES: dict[str, type[NamedLoss]] = {
    each.name: each for each in (PoissonLoss, HuberLoss, WinsorizedLoss)
}
