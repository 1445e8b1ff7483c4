"""The learning curve: a few hundred points, however long the stream is."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.result import BESIDE, CURVE
from sapwood.evaluate.scores import Scores

__all__ = ["Curve"]

INTERVAL = 100
POINTS = 400
NOTHING = (np.nan,) * len(BESIDE.names or ())
"""What stands beside a point if nothing is known."""


class Curve:
    """Points at equal distances, which double whenever there are too many of them."""

    def __init__(self) -> None:
        self.interval = INTERVAL
        self._points = np.zeros(POINTS, CURVE)
        self._seconds = np.zeros(POINTS)
        self._beside = np.zeros(POINTS, BESIDE)
        self._count = 0

    def rows_until_due(self, rows: int) -> int:
        """Return how many rows after so many the next point is due."""
        return self.interval - rows % self.interval

    def add(
        self,
        scores: Scores,
        leaves: int,
        nbytes: int,
        seconds: float,
        beside: tuple[float, ...] = NOTHING,
    ) -> None:
        """Add a point if one is due, and what stands beside it."""
        if scores.rows % self.interval or scores.rows == 0:
            return
        self._points[self._count] = _point(scores, leaves, nbytes)
        self._seconds[self._count] = seconds
        self._beside[self._count] = beside
        self._count += 1
        if self._count == POINTS:
            self._count //= 2
            self.interval *= 2
            for table in (self._points, self._seconds, self._beside):
                table[: self._count] = table[1::2].copy()

    def finished(
        self,
        scores: Scores,
        leaves: int,
        nbytes: int,
        seconds: float,
        last_beside: tuple[float, ...] = NOTHING,
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
        """Return the points up to now, the seconds and speed at each, and what is beside them.

        The last point is the end of the stream, wherever that is.
        """
        points, times = self._points[: self._count], self._seconds[: self._count]
        beside = self._beside[: self._count]
        if scores.rows and (not len(points) or points["row"][-1] != scores.rows):
            points = np.append(points, np.array([_point(scores, leaves, nbytes)], CURVE))
            times = np.append(times, seconds)
            beside = np.append(beside, np.array([last_beside], BESIDE))
        rows = np.diff(points["row"], prepend=0)
        took = np.diff(times, prepend=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(took > 0, rows / took, np.nan)
        return points.copy(), np.column_stack([times, rate]), beside.copy()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        return {
            "curve": self._points[: self._count].copy(),
            "curve_seconds": self._seconds[: self._count].copy(),
            "curve_beside": self._beside[: self._count].copy(),
            "curve_interval": np.array([self.interval]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Go on from what `to_arrays` returned."""
        curve = cls()
        points, seconds, beside, interval = (
            arrays[name] for name in ("curve", "curve_seconds", "curve_beside", "curve_interval")
        )
        if points.dtype != CURVE or points.ndim != 1 or len(points) >= POINTS:
            raise ValueError("the saved curve is not one")
        if seconds.dtype != np.float64 or seconds.shape != points.shape:
            raise ValueError("the saved seconds are not those of the saved curve")
        if beside.dtype != BESIDE or beside.shape != points.shape:
            raise ValueError("what is saved beside the curve does not belong to it")
        if interval.dtype != np.int64 or interval.shape != (1,) or interval[0] < INTERVAL:
            raise ValueError(f"the saved interval of the curve is {interval.tolist()}")
        curve.interval = int(interval[0])
        if (points["row"] != curve.interval * np.arange(1, len(points) + 1)).any():
            raise ValueError(f"the saved points are not {curve.interval} rows apart")
        curve._count = len(points)
        curve._points[: len(points)] = points
        curve._seconds[: len(points)] = seconds
        curve._beside[: len(points)] = beside
        return curve


def _point(scores: Scores, leaves: int, nbytes: int) -> tuple[float, ...]:
    errors = (scores.total, scores.faded, scores.window)
    measured = [value for found in errors for value in (found.mae, found.rmse, found.r2)]
    return (scores.rows, *measured, leaves, nbytes)
