"""Scores of prediction intervals: over all rows, of recent rows, and along the stream."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate._interval_scores import FIELDS, score_bounds
from sapwood.evaluate.recorder import LabelledRows, Moment, Recorder, saved_array
from sapwood.evaluate.result import BAND, Coverage, Intervals
from sapwood.evaluate.sampling import chosen

__all__ = ["IntervalScores"]

ROWS = 1024  # of the sample; half of them go when there are as many
RECENT = 300  # of the last rows
MEASURES = ("coverage", "faded_coverage", "width", "faded_width", "score", "faded_score")
STATE, POINTS, SAMPLE, LAST, EVERY = (
    f"interval_{name}" for name in ("scores", "points", "sample", "recent", "every")
)


class IntervalScores(Recorder):
    """The running scores of bounds; they cost the same however many rows there were.

    - `levels`: the shares of y that are to be within bounds.
    - `fade`: for the exponentially weighted scores, the weight of a row is multiplied by this at
      each later one.

    Examples
    --------
    >>> scores = IntervalScores([0.5], fade=0.999)
    >>> bounds = np.array([[[0.0, 2.0]], [[0.0, 4.0]], [[np.nan, np.nan]]])
    >>> predictions, y = np.array([1.0, 1.0, 1.0]), np.array([1.0, 5.0, 1.0])
    >>> scores.score(LabelledRows(predictions, y, bounds=bounds))
    >>> scores.finished().levels[0.5].total
    Coverage(coverage=0.5, width=3.0, score=5.0)
    """

    def __init__(self, levels: Sequence[float], fade: float) -> None:
        self.levels = np.array(levels, dtype=np.float64)
        self._fade = fade
        self._state = np.zeros((len(levels), len(FIELDS)))
        self._points = np.zeros((0, 1 + len(levels) * len(MEASURES)))
        self._sample = np.zeros(0, BAND)
        self._recent = np.zeros(0, BAND)
        self._every, self._seen = 1, 0

    def score(self, rows: LabelledRows) -> None:
        """Score the intervals of rows, in order; those that are NaN are left out."""
        if rows.bounds is not None:
            pairs = np.ascontiguousarray(rows.bounds).reshape(len(rows.y), 2 * len(self.levels))
            y = np.ascontiguousarray(rows.y)
            score_bounds(self._state, self.levels, pairs, y, self._fade)

    def record(self, rows: LabelledRows) -> None:
        """Keep some of the rows, and the last ones."""
        if rows.bounds is None:
            return
        count = len(rows.y)
        bands = np.zeros(count, BAND)
        bands["row"] = np.arange(self._seen + 1, self._seen + count + 1)
        bands["y"], bands["prediction"] = rows.y, rows.predictions
        bands["time"] = np.nan if rows.times is None else rows.times
        bands["lower"], bands["upper"] = rows.bounds[:, -1].T
        self._seen += count
        self._recent = np.concatenate([self._recent, bands[-RECENT:]])[-RECENT:]
        self._sample = np.concatenate([self._sample, self._thinned(bands)])
        while len(self._sample) >= ROWS:
            self._every *= 2
            self._sample = self._thinned(self._sample)

    def _thinned(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return one random row of each block of so many."""
        return rows[chosen(rows["row"] - 1, self._every.bit_length() - 1)]

    def mark(self, moment: Moment) -> None:
        """Add a point of the curve, and remove those that the learning curve has no more."""
        points = np.vstack([self._points, self._point(moment.scores.rows)])
        self._points = points[points[:, 0] % moment.interval == 0]

    def _point(self, rows: int) -> list[float]:
        levels = range(len(self.levels))
        return [rows, *(self._of(name, level) for level in levels for name in MEASURES)]

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the scores, with the end as a point of the curve."""
        return {"intervals": self.finished(end.scores.rows)}

    @staticmethod
    def merge(targets: Sequence[Any]) -> dict[str, Any]:
        """Return that several targets have no common intervals."""
        return {"intervals": None}

    def _of(self, name: str, level: int) -> float:
        state = self._state[level]
        return float(state[FIELDS.index(name)]) if state[0] else np.nan

    def finished(self, rows: int = 0) -> Intervals:
        """Return what was found; after so many rows, the curve has a point there too."""
        names = [f"{name}_{level:g}" for level in self.levels for name in MEASURES]
        record = np.dtype([("row", np.int64), *((name, np.float64) for name in names)])
        points = self._points
        if rows and (not len(points) or points[-1, 0] != rows):
            points = np.vstack([points, self._point(rows)])
        curve = np.zeros(len(points), record)
        for place, name in enumerate(("row", *names)):
            curve[name] = points[:, place]
        levels = {
            float(level): Intervals.Level(
                Coverage(*(self._of(name, place) for name in ("coverage", "width", "score"))),
                Coverage(
                    *(self._of(f"faded_{name}", place) for name in ("coverage", "width", "score"))
                ),
            )
            for place, level in enumerate(self.levels)
        }
        return Intervals(levels, curve, self._sample.copy(), self._every, self._recent.copy())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        return {
            STATE: self._state.copy(),
            POINTS: self._points.copy(),
            SAMPLE: self._sample.copy(),
            LAST: self._recent.copy(),
            EVERY: np.array([self._every, self._seen]),
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return scores in a state that `to_arrays` returned."""
        made = type(self)(self.levels.tolist(), self._fade)
        made._state = saved_array(arrays, STATE, np.float64, self._state.shape)
        made._points = saved_array(arrays, POINTS, np.float64, (None, self._points.shape[1]))
        made._sample = saved_array(arrays, SAMPLE, BAND, (None,))
        made._recent = saved_array(arrays, LAST, BAND, (None,))
        made._every, made._seen = saved_array(arrays, EVERY, np.int64, (2,)).tolist()
        if len(made._sample) >= ROWS or len(made._recent) > RECENT:
            raise ValueError("the saved samples of bounds are too long")
        if made._seen < 0 or made._every < 1 or made._every & (made._every - 1):
            raise ValueError(f"the saved distance of bounds is {made._every}")
        return made
