"""How well simple forecasts would have done on the same rows; and whether a model is biased.

No forecast knows more than a model does: a label that comes late is late for all of them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate import _baselines
from sapwood.evaluate.recorder import LabelledRows, Moment, Recorder, saved_array
from sapwood.evaluate.result import BASELINES, MEASURES, Baseline
from sapwood.evaluate.scores import MOST_ROWS, Scores

__all__ = ["BaselineScores"]

FloatArray = NDArray[np.float64]
WEEKLY = "week"
HALF = 0.5
"""The share of rows from which on the value of a week before is reported."""
MOST_IN_WEEK = 1 << 20
"""The rows of a week that are remembered; if a week has more, there is no weekly baseline."""
LEAST_IN_WEEK = 1 << 8
IN_RING = (7, 8)  # of what is known: the first row of the ring, and how many rows it holds
MEANS = len(MEASURES)


class _Tables(NamedTuple):
    """The state of `_baselines`, which documents its layout."""

    known: FloatArray
    week: FloatArray
    counts: FloatArray
    means: FloatArray
    recent: FloatArray


class BaselineScores(Recorder):
    """The running errors of the forecasts that need no model.

    They are the last label that was known, the mean of all that were known, their exponentially
    weighted mean, and the label of one week before; before there is one, the last takes its place,
    and 0 before any label is known. Rows that a model has no error for are left out.

    - `fade`: each new row multiplies the weights of earlier rows by this factor.
    - `window`: the number of latest rows in the window.

    Examples
    --------
    >>> baselines, scores = BaselineScores(0.999, 1000), Scores()
    >>> predictions, y = np.array([0.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    >>> baselines.score(LabelledRows(predictions, y))
    >>> scores.update_many(predictions, y)
    >>> baselines.finished(scores)["last"].total.rmse  # 0, then 1, then 2 were forecast
    1.4142135623730951
    >>> baselines.bias
    -0.6666666666666666
    """

    def __init__(self, fade: float, window: int) -> None:
        self.fade = fade
        count = len(BASELINES)
        self._tables = _Tables(
            known=np.zeros(_baselines.KNOWN),
            week=np.zeros((LEAST_IN_WEEK, _baselines.WEEK_COLUMNS)),
            counts=np.zeros(3),
            means=np.zeros((count + 1, MEANS)),
            recent=np.zeros((window, count)),
        )
        self._tables.known[5] = np.nan  # the time of the last row

    def score(self, rows: LabelledRows) -> None:
        """Forecast rows, score the forecasts, and learn the labels, in the order of events."""
        if rows.late is None or rows.events is None:
            times = None if rows.times is None else np.ascontiguousarray(rows.times)
            self._make_room(0 if times is None else len(times))
            own = np.ascontiguousarray(rows.predictions), np.ascontiguousarray(rows.y)
            _baselines.follow(*self._tables, *own, times, self.fade)
        else:
            self._make_room(len(rows.events))
            late, own = rows.late, (rows.late.predictions, rows.late.y)
            _baselines.follow_late(
                *self._tables, rows.events, late.forecasts, *own, late.times, self.fade
            )

    def forecast(self, time: float) -> list[float]:
        """Return the forecasts of a row at a time, as `_baselines.follow_late` takes them."""
        found = np.empty(_baselines.FORECASTS)
        _baselines.forecast(self._tables.known, self._tables.week, time, found)
        values: list[float] = found.tolist()
        return values

    def _make_room(self, rows: int) -> None:
        """Let the ring of a week have room for more rows, unless there are too many of them."""
        first, count = (int(self._tables.known[place]) for place in IN_RING)
        week = self._tables.week
        needed = min(count + rows, MOST_IN_WEEK)
        if needed > len(week):
            larger = np.zeros((1 << (needed - 1).bit_length(), week.shape[1]))
            larger[:count] = np.roll(week, -first, axis=0)[:count]
            self._tables = self._tables._replace(week=larger)
            self._tables.known[IN_RING[0]] = 0.0

    @property
    def bias(self) -> float:
        """How much the model predicts too much, on average; NaN before any row."""
        return float(self._tables.means[-1, 0]) if self._tables.counts[0] else math.nan

    @property
    def names(self) -> list[str]:
        """The baselines worth reporting: the weekly one only if it had half of the rows."""
        rows, _, by_week = self._tables.counts.tolist()
        weekly = rows > 0 and by_week >= HALF * rows
        return [name for name in BASELINES if weekly or name != WEEKLY]

    def finished(self, scores: Scores) -> dict[str, Baseline]:
        """Return the errors so far.

        - `scores`: those of the model, for the same rows: they know how much the target varies.
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
        """Return further values of a point of the learning curve: see `FURTHER`."""
        *lines, own = self._tables.means.tolist()
        found = [time, own[0], own[2]]
        for mae, square, faded_mae, faded_square in lines:
            found += (mae, math.sqrt(square), faded_mae, math.sqrt(faded_square))
        if not self._tables.counts[2]:  # the last of them, the week, was never known
            found[-MEANS:] = [math.nan] * MEANS
        return tuple(found)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        tables = {f"baselines_{name}": own.copy() for name, own in self._tables._asdict().items()}
        first, count = (int(self._tables.known[place]) for place in IN_RING)
        tables["baselines_week"] = np.roll(self._tables.week, -first, axis=0)[:count].copy()
        tables["baselines_known"][IN_RING[0]] = 0.0
        return tables

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the bias of the model, and the errors of baselines."""
        return {"bias": self.bias, "baselines": self.finished(end.scores)}

    @staticmethod
    def merge(targets: Sequence[Any]) -> dict[str, Any]:
        """Return that several targets have no common baselines."""
        return {"baselines": {}}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return baselines in a state that `to_arrays` returned."""
        made = type(self)(self.fade, len(self._tables.recent))
        for name, own in made._tables._asdict().items():
            shape = (None if name == "week" else len(own), *own.shape[1:])
            saved = saved_array(arrays, f"baselines_{name}", np.float64, shape)
            if name != "week":
                own[...] = saved
        made._restore_week(arrays["baselines_week"])
        # The kernel finds a row's place in the window by the number of rows, and trusts it.
        rows, weight, by_week = made._tables.counts.tolist()
        if not (0 <= rows <= MOST_ROWS and rows == int(rows) and 0 <= by_week <= rows):
            raise ValueError(f"the saved baselines are of {rows} rows, {by_week} by the week")
        sums = (made._tables.means[:-1], made._tables.known[[0, 2]], np.array([weight]))
        if any((table < 0).any() for table in sums):
            raise ValueError("the saved baselines have a sum of squares or a weight below 0")
        return made

    def _restore_week(self, saved: FloatArray) -> None:
        first, count = (float(self._tables.known[place]) for place in IN_RING)
        ordered = len(saved) < 2 or bool((np.diff(saved[:, 0]) >= 0).all())
        if first != 0 or count != len(saved) or len(saved) > MOST_IN_WEEK or not ordered:
            raise ValueError(f"the saved week of the baselines has {count} rows")
        if not np.isfinite(saved).all():
            raise ValueError("the saved week of the baselines has a value that is not finite")
        ordinal = float(self._tables.known[6])
        if not (0 <= ordinal <= MOST_ROWS and ordinal == int(ordinal)):
            raise ValueError(f"the saved baselines have forecast {ordinal} rows of one time")
        self._tables.known[IN_RING[1]] = 0.0
        self._make_room(len(saved))
        self._tables.week[: len(saved)] = saved
        self._tables.known[IN_RING[1]] = len(saved)
