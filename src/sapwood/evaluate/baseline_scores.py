"""How well simple forecasts would have done on the same rows; and whether a model is biased.

No forecast knows more than a model does: a label that comes late is late for all of them.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate import _baselines
from sapwood.evaluate.result import BASELINES, MEASURES, Baseline
from sapwood.evaluate.scores import MOST_ROWS, Scores

__all__ = ["BaselineScores"]

FloatArray = NDArray[np.float64]
WEEKLY = "week"
HALF = 0.5
"""The share of rows from which on the same hour of a week before is worth telling."""
MEANS = len(MEASURES)


class _Tables(NamedTuple):
    """What `_baselines` remembers; it says what is where."""

    known: FloatArray
    week: FloatArray
    counts: FloatArray
    means: FloatArray
    recent: FloatArray


class BaselineScores:
    """The running errors of the forecasts that need no model.

    They are the last label that was known, the mean of all that were known, their faded mean, and
    the mean over the same hour of the last week that was known; before there is one, the last takes
    its place, and 0 before any label is known. Rows that a model has no error for are left out.

    Parameters
    ----------
    fade : float
        What the weight of a row is multiplied by at each later one.
    window : int
        How many of the last rows the errors of the window are of.

    Examples
    --------
    >>> baselines, scores = BaselineScores(0.999, 1000), Scores()
    >>> predictions, y = np.array([0.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    >>> baselines.take_many(predictions, y, None)
    >>> scores.update_many(predictions, y)
    >>> baselines.finished(scores)["last"].total.rmse  # 0, then 1, then 2 were told
    1.4142135623730951
    >>> baselines.bias
    -0.6666666666666666
    """

    def __init__(self, fade: float, window: int) -> None:
        self.fade = fade
        count = len(BASELINES)
        self._tables = _Tables(
            known=np.zeros(_baselines.KNOWN),
            week=np.zeros((_baselines.HOURS, MEANS)),
            counts=np.zeros(3),
            means=np.zeros((count + 1, MEANS)),
            recent=np.zeros((window, count)),
        )
        self._tables.week[:, -1] = np.nan

    def take_many(self, predictions: FloatArray, y: FloatArray, times: FloatArray | None) -> None:
        """Take rows whose labels come at once, in order.

        Parameters
        ----------
        predictions, y : arrays of float
            What a model predicted, and what was right.
        times : array of float, optional
            The seconds since 1970 of each row, NaN where they are not known.
        """
        clock = None if times is None else np.ascontiguousarray(times)
        rows = np.ascontiguousarray(predictions), np.ascontiguousarray(y)
        _baselines.follow(*self._tables, *rows, clock, self.fade)

    def forecast(self, time: float) -> list[float]:
        """Return what is told of a row whose label comes later, for `take_one` then."""
        told = np.empty(_baselines.FORECASTS)
        _baselines.forecast(self._tables.known, self._tables.week, time, told)
        values: list[float] = told.tolist()
        return values

    def take_one(self, told: list[float], prediction: float, y: float, time: float) -> None:
        """Take a row whose label has come."""
        row = np.array(told), prediction, y, time
        _baselines.learn_and_score(*self._tables, *row, self.fade)

    @property
    def bias(self) -> float:
        """How much the model predicts too much, on average; NaN before any row."""
        return self._bias(0)

    @property
    def faded_bias(self) -> float:
        """The same of recent rows."""
        return self._bias(2)

    def _bias(self, place: int) -> float:
        return float(self._tables.means[-1, place]) if self._tables.counts[0] else math.nan

    @property
    def names(self) -> list[str]:
        """The baselines worth telling: the weekly one only if it had half of the rows."""
        rows, _, by_week = self._tables.counts.tolist()
        weekly = rows > 0 and by_week >= HALF * rows
        return [name for name in BASELINES if weekly or name != WEEKLY]

    def finished(self, scores: Scores) -> dict[str, Baseline]:
        """Return the errors so far.

        Parameters
        ----------
        scores : Scores
            Those of the model, for the same rows: they know how much the target varies.
        """
        found = {}
        rows = int(self._tables.counts[0])
        recent = self._tables.recent[: min(rows, len(self._tables.recent))]
        for place, name in enumerate(BASELINES):
            means = self._tables.means[place].tolist() if rows else [math.nan] * MEANS
            error = recent[:, place]
            of_window = [math.nan] * 2
            if rows:
                of_window = [float(np.abs(error).mean()), float(np.square(error).mean())]
            if name in self.names:
                found[name] = Baseline(
                    scores.errors_of("total", *means[:2]),
                    scores.errors_of("faded", *means[2:]),
                    scores.errors_of("window", *of_window),
                )
        return found

    def point(self, time: float) -> tuple[float, ...]:
        """Return what stands beside a point of the learning curve, as `BESIDE` says."""
        *lines, own = self._tables.means.tolist()
        told = [time, own[0], own[2]]
        for mae, square, faded_mae, faded_square in lines:
            told += (mae, math.sqrt(square), faded_mae, math.sqrt(faded_square))
        if not self._tables.counts[2]:  # the last of them, the week, was never known
            told[-MEANS:] = [math.nan] * MEANS
        return tuple(told)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        return {f"baselines_{name}": table.copy() for name, table in self._tables._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], fade: float, window: int) -> Self:
        """Go on from what `to_arrays` returned."""
        made = cls(fade, window)
        for name, own in made._tables._asdict().items():
            saved = arrays[f"baselines_{name}"]
            if saved.shape != own.shape or saved.dtype != own.dtype:
                found = f"{saved.dtype} of shape {saved.shape}"
                raise ValueError(f"the saved {name} of the baselines are {found}")
            own[...] = saved
        # The kernel finds a row's place in the window by the number of rows, and trusts it.
        rows, weight, by_week = made._tables.counts.tolist()
        if not (0 <= rows <= MOST_ROWS and rows == int(rows) and 0 <= by_week <= rows):
            raise ValueError(f"the saved baselines are of {rows} rows, {by_week} by the week")
        sums = (made._tables.means[:-1], made._tables.known[[0, 2]], np.array([weight]))
        if any((table < 0).any() for table in sums):
            raise ValueError("the saved baselines have a sum of squares or a weight below 0")
        return made
