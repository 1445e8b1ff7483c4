"""How good the bounds around predictions are: over all rows, lately, and along the stream."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate._interval_scores import FIELDS, score_bounds
from sapwood.evaluate.result import BAND, Coverage, Intervals

__all__ = ["IntervalScores"]

FloatArray = NDArray[np.float64]

ROWS = 1024  # of the sample; half of them go when there are as many
RECENT = 300  # of the last rows
MEASURES = ("coverage", "faded_coverage", "width", "faded_width", "score", "faded_score")
STATE, POINTS, SAMPLE, LAST, EVERY = (
    f"interval_{name}" for name in ("scores", "points", "sample", "recent", "every")
)


class IntervalScores:
    """The running scores of bounds; they cost the same however many rows there were.

    Parameters
    ----------
    levels : sequence of float
        The shares of y that are to be within bounds.
    fade : float
        For the faded scores, the weight of a row is multiplied by this at each later one.

    Examples
    --------
    >>> scores = IntervalScores([0.5], fade=0.999)
    >>> bounds = np.array([[[0.0, 2.0]], [[0.0, 4.0]], [[np.nan, np.nan]]])
    >>> scores.take(np.array([1.0, 1.0, 1.0]), bounds, np.array([1.0, 5.0, 1.0]), None)
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

    def take(
        self, predictions: FloatArray, bounds: FloatArray, y: FloatArray, times: FloatArray | None
    ) -> None:
        """Take rows into account.

        Parameters
        ----------
        predictions, y : arrays of float
            What was predicted, and what came.
        bounds : array of float, shape (rows, levels, 2)
            What was said; NaN if nothing was.
        times : array of float, optional
            The seconds since 1970 of each row.
        """
        pairs = np.ascontiguousarray(bounds).reshape(len(y), -1)
        score_bounds(self._state, self.levels, pairs, np.ascontiguousarray(y), self._fade)
        first = -self._seen % self._every
        rows = np.zeros(len(y), BAND)
        rows["row"] = np.arange(self._seen + 1, self._seen + len(y) + 1)
        rows["y"], rows["prediction"] = y, predictions
        rows["time"] = np.nan if times is None else times
        rows["lower"], rows["upper"] = bounds[:, -1].T
        self._seen += len(y)
        self._recent = np.concatenate([self._recent, rows[-RECENT:]])[-RECENT:]
        self._sample = np.concatenate([self._sample, rows[first :: self._every]])
        while len(self._sample) >= ROWS:
            self._every *= 2
            self._sample = self._sample[(self._sample["row"] - 1) % self._every == 0]

    def add_point(self, rows: int, interval: int) -> None:
        """Add a point of the curve after so many rows; points are so many rows apart by now."""
        point = [rows, *(self._of(name, level) for level in range(len(self.levels))
                         for name in MEASURES)]  # fmt: skip
        points = np.vstack([self._points, point])
        self._points = points[points[:, 0] % interval == 0]

    def _of(self, name: str, level: int) -> float:
        state = self._state[level]
        return float(state[FIELDS.index(name)]) if state[0] else np.nan

    def finished(self, rows: int = 0) -> Intervals:
        """Return what was found; after so many rows, the curve has a point there too."""
        names = [f"{name}_{level:g}" for level in self.levels for name in MEASURES]
        record = np.dtype([("row", np.int64), *((name, np.float64) for name in names)])
        points = self._points
        if rows and (not len(points) or points[-1, 0] != rows):
            last = [self._of(name, level) for level in range(len(self.levels)) for name in MEASURES]
            points = np.vstack([points, [rows, *last]])
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

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], levels: Sequence[float], fade: float
    ) -> Self:
        """Go on from what `to_arrays` returned."""
        made = cls(levels, fade)
        for name, own in ((STATE, made._state), (POINTS, made._points)):
            saved = arrays[name]
            if saved.dtype != own.dtype or saved.ndim != 2 or saved.shape[1] != own.shape[1]:
                raise ValueError(f"the saved {name} are {saved.dtype} of shape {saved.shape}")
        if arrays[STATE].shape != made._state.shape:
            raise ValueError(f"the saved {STATE} are of other levels")
        sample, recent, every = arrays[SAMPLE], arrays[LAST], arrays[EVERY]
        if recent.dtype != BAND or recent.ndim != 1 or len(recent) > RECENT:
            raise ValueError("the saved last rows with bounds are none")
        if sample.dtype != BAND or sample.ndim != 1 or len(sample) >= ROWS:
            raise ValueError("the saved sample of bounds is none")
        if every.dtype != np.int64 or every.shape != (2,) or every[0] < 1 or every[1] < 0:
            raise ValueError(f"the saved distance of bounds is {every.tolist()}")
        made._state, made._points = arrays[STATE].copy(), arrays[POINTS].copy()
        made._sample, made._recent = sample.copy(), recent.copy()
        made._every, made._seen = every.tolist()
        return made
