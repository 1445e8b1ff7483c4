"""Errors of predictions: over all rows, exponentially weighted, and in a window."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.deprecation import deprecated
from sapwood.evaluate._scores import FIELDS, score
from sapwood.evaluate.recorder import LabelledRows, Moment, Recorder, saved_array
from sapwood.evaluate.result import ROW, Errors

__all__ = ["Scores", "mean_errors", "scorable"]

Over = Literal["total", "faded", "window"]
OVER: tuple[Over, ...] = ("total", "faded", "window")

FADE = 0.999
WINDOW = 1000
WIDEST = 10**7
MOST_ROWS = 2**53  # up to which doubles count
LARGEST = 1e140
"""Up to which the squares of so many rows have a sum."""


class Scores(Recorder):
    """The running errors of a model, in constant memory and constant time per row.

    A row whose prediction or target is NaN, infinite or beyond 1e140 is counted, but not scored.
    All errors are those of the other rows.

    Parameters
    ----------
    fade : float
        For exponentially weighted errors: each new row multiplies the weights of earlier rows by
        this factor. With 0.999, the half-life is 693 rows.
    window : int
        The number of latest rows in the window.

    Examples
    --------
    >>> scores = Scores(window=2)
    >>> scores.update_many([1.0, 2.0, 3.0], [1.0, 3.0, 5.0])
    >>> scores.total
    Errors(mae=1.0, rmse=1.2909944487358056, r2=0.375)
    >>> scores.window
    Errors(mae=1.5, rmse=1.5811388300841898, r2=-1.5)
    >>> scores.update(math.nan, 1.0)
    >>> scores.unscored, scores.rows, scores.total.mae
    (1, 3, 1.0)
    """

    def __init__(self, fade: float = FADE, window: int = WINDOW) -> None:
        self.fade = validation.between(fade, "fade", 0.0, 1.0)
        self._unscored = 0
        self._state = np.zeros(len(FIELDS))
        self._recent = np.zeros((validation.whole(window, "window", 1, WIDEST), 2))

    @property
    def rows(self) -> int:
        """The number of scored rows."""
        return int(self._state[0])

    @property
    def unscored(self) -> int:
        """The number of rows that could not be scored."""
        return self._unscored

    @property
    def window_rows(self) -> int:
        """The number of rows in the window."""
        return len(self._recent)

    def update(self, prediction: float, y: float) -> None:
        """Score one prediction."""
        plain = type(prediction) is float and type(y) is float
        if plain and abs(prediction) <= LARGEST and abs(y) <= LARGEST:  # a third of the time
            score(self._state, self._recent, np.array([prediction]), np.array([y]), self.fade)
        else:
            self.update_many([prediction], [y])

    def update_many(self, predictions: ArrayLike, y: ArrayLike) -> None:
        """Score predictions in the order of their rows: the same as one by one."""
        self.take(validation.column(predictions, "predictions"), validation.column(y, "y"))

    def score(self, rows: LabelledRows) -> None:
        """Score rows, in order."""
        self.take(rows.predictions, rows.y)

    def take(self, predicted: NDArray[np.float64], right: NDArray[np.float64]) -> None:
        """Score predictions that are known to be arrays of numbers."""
        if len(predicted) == len(right):
            kept = scorable(predicted, right)
            if not kept.all():
                self._unscored += int(np.count_nonzero(~kept))
                predicted, right = predicted[kept], right[kept]
        score(
            self._state,
            self._recent,
            np.ascontiguousarray(predicted),
            np.ascontiguousarray(right),
            self.fade,
        )

    @property
    def total(self) -> Errors:
        """The errors over all rows."""
        return _errors(*self._means("total"))

    @property
    def faded(self) -> Errors:
        """The errors with the weights of rows fading."""
        return _errors(*self._means("faded"))

    @property
    def window(self) -> Errors:
        """The errors of the last rows."""
        return _errors(*self._means("window"))

    def errors_of(self, over: Over, absolute: float, square: float) -> Errors:
        """Return the errors of other forecasts of the same rows.

        Parameters
        ----------
        over : {"total", "faded", "window"}
            Which rows.
        absolute, square : float
            The mean absolute and the mean squared error of those forecasts.
        """
        weight, _, _, spread = self._means(over)
        return _errors(weight, absolute, square, spread)

    def _means(self, over: Over) -> tuple[float, float, float, float]:
        """Return the weight of rows, the means of errors, and the squares of y around its mean."""
        if over != "window":
            weight, *means = self._state[[0, 1, 2, 4] if over == "total" else [5, 6, 7, 9]].tolist()
            return (weight, *means)
        known = self._recent[: min(self.rows, len(self._recent))]
        if not len(known):
            return (0.0, 0.0, 0.0, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            absolute, square = _mean(np.abs(known[:, 0])), _mean(np.square(known[:, 0]))
            y = known[:, 1] - known[0, 1]  # exactly 0 where y does not vary
            spread = _mean(np.square(y - _mean(y))) * len(y)
        return (float(len(known)), absolute, square, spread)

    @property
    def recent(self) -> NDArray[Any]:
        """The rows of the window in order, each of `sapwood.evaluate.result.ROW`."""
        window, count = len(self._recent), min(self.rows, len(self._recent))
        numbers = np.arange(self.rows - count, self.rows)
        known = self._recent[numbers % window]
        found = np.zeros(count, ROW)
        found["row"], found["time"] = numbers + 1, np.nan
        found["y"], found["prediction"] = known[:, 1], known[:, 1] - known[:, 0]
        return found

    @property
    def target_mean(self) -> float:
        """The mean of y over all rows."""
        return float(self._state[3])

    @property
    def target_deviation(self) -> float:
        """The standard deviation of y over all rows."""
        return math.sqrt(self._state[4] / self._state[0]) if self.rows else 0.0

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        return {
            "scores": self._state.copy(),
            "recent": self._recent.copy(),
            "unscored": np.array([self._unscored]),
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return scores in a state that `to_arrays` returned."""
        scores = type(self)(self.fade, self.window_rows)
        scores._state = saved_array(arrays, "scores", np.float64, self._state.shape)
        scores._recent = saved_array(arrays, "recent", np.float64, (None, 2))
        if len(scores._recent) != self.window_rows:
            raise ValueError(f"the saved window has {len(scores._recent)} rows")
        # The kernel finds a row's place in the window by the number of rows, and trusts it.
        rows = scores._state[0]
        if not (0 <= rows <= MOST_ROWS and rows == int(rows)):
            raise ValueError(f"the saved scores are of {rows} rows")
        if (scores._state[[1, 2, 4, 5, 6, 7, 9]] < 0).any():
            raise ValueError("the saved scores have a sum of squares below 0")
        scores._unscored = int(saved_array(arrays, "unscored", np.int64, (1,))[0])
        if scores._unscored < 0:
            raise ValueError(f"the saved count of rows not scored is {scores._unscored}")
        return scores

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], fade: float) -> Self:
        """Return scores in a state that `to_arrays` returned; deprecated, use `restored`."""
        deprecated("Scores.from_arrays(arrays, fade)", "Scores(fade, window).restored(arrays)")
        return cls(fade, len(arrays["recent"])).restored(arrays)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the errors, and the mean and standard deviation of the target."""
        names = (*OVER, "fade", "window_rows", "target_mean", "target_deviation", "unscored")
        return {name: getattr(self, name) for name in (*names, "recent")}

    @staticmethod
    def merge(targets: Sequence[Any]) -> dict[str, Any]:
        """Return the means over targets, in units of the deviation of each."""
        means: dict[str, Any] = {name: mean_errors(targets, name) for name in OVER}
        return {**means, "unscored": sum(each.unscored for each in targets)}


def mean_errors(targets: Sequence[Any], over: Over) -> Errors:
    """Return the means of errors over targets, in units of their deviations; NaN if one is."""
    errors = [getattr(each, over) for each in targets]
    shares = [
        1.0 / each.target_deviation if each.target_deviation > 0 else np.nan for each in targets
    ]
    return Errors(
        float(np.mean([each.mae * share for each, share in zip(errors, shares, strict=True)])),
        float(np.mean([each.rmse * share for each, share in zip(errors, shares, strict=True)])),
        float(np.mean([each.r2 for each in errors])),
    )


def scorable(predictions: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows can be scored: neither the prediction nor y is NaN, infinite, or too large.

    Examples
    --------
    >>> scorable(np.array([1.0, math.nan, 1e200, 2.0]), np.array([1.0, 1.0, 1.0, math.inf]))
    array([ True, False, False, False])
    """
    good: NDArray[np.bool_] = (np.abs(predictions) <= LARGEST) & (np.abs(y) <= LARGEST)
    return good


def _mean(values: NDArray[np.float64]) -> float:
    """Return what `values.mean()` does, in half the time."""
    return float(np.add.reduce(values) / len(values))


def _errors(weight: float, absolute: float, square: float, spread: float) -> Errors:
    """Return errors of their means and of the sum of squares of y around its mean."""
    if weight == 0:
        return Errors(math.nan, math.nan, math.nan)
    # Where a single row counts, its spread is no more than rounding.
    r2 = 1.0 - weight * square / spread if weight > 1 and spread > 0 else math.nan
    return Errors(absolute, math.sqrt(square), r2)
