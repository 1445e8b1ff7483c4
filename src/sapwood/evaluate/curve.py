"""The learning curve: a few hundred points, however long the stream is."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.recorder import Moment, Recorder, saved_array
from sapwood.evaluate.result import CURVE, FURTHER

__all__ = ["Curve"]

INTERVAL = 100
POINTS = 400
NOTHING = (np.nan,) * len(FURTHER.names or ())
"""The further values of a point if nothing is known."""


class Curve(Recorder):
    """Points at equal distances, which double whenever there are too many of them."""

    def __init__(self) -> None:
        self.interval = INTERVAL
        self._points = np.zeros(POINTS, CURVE)
        self._seconds = np.zeros(POINTS)
        self._further = np.zeros(POINTS, FURTHER)
        self._count = 0

    def mark(self, moment: Moment) -> None:
        """Add a point if one is due; between two looks at the model its size is that of the last one."""
        rows = moment.scores.rows
        if rows % self.interval or rows == 0:
            return
        if self._count and moment.model is None:
            leaves, nbytes = self._points[["leaves", "bytes"]][self._count - 1].tolist()
            moment = moment._replace(leaves=leaves, nbytes=nbytes)
        self._points[self._count] = _point(moment)
        self._seconds[self._count] = moment.seconds
        self._further[self._count] = moment.further or NOTHING
        self._count += 1
        if self._count == POINTS:
            self._count //= 2
            self.interval *= 2
            for table in (self._points, self._seconds, self._further):
                table[: self._count] = table[1::2].copy()

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the points, the seconds and speed at each, and their further values.

        The last point is the end of the stream, wherever that is.
        """
        points, times = self._points[: self._count], self._seconds[: self._count]
        further = self._further[: self._count]
        if end.scores.rows and (not len(points) or points["row"][-1] != end.scores.rows):
            points = np.append(points, np.array([_point(end)], CURVE))
            times = np.append(times, end.seconds)
            further = np.append(further, np.array([end.further or NOTHING], FURTHER))
        elif len(points):
            points = points.copy()
            points["leaves"][-1], points["bytes"][-1] = end.leaves, end.nbytes
        rows = np.diff(points["row"], prepend=0)
        took = np.diff(times, prepend=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(took > 0, rows / took, np.nan)
        speed = np.column_stack([times, rate])
        return {"curve": points.copy(), "speed": speed, "further": further.copy()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        return {
            "curve": self._points[: self._count].copy(),
            "curve_seconds": self._seconds[: self._count].copy(),
            "curve_beside": self._further[: self._count].copy(),
            "curve_interval": np.array([self.interval]),
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a curve in a state that `to_arrays` returned."""
        curve = type(self)()
        points = saved_array(arrays, "curve", CURVE, (None,))
        curve._count = len(points)
        if len(points) >= POINTS:
            raise ValueError(f"the saved curve has {len(points)} points")
        curve._points[: len(points)] = points
        seconds = saved_array(arrays, "curve_seconds", np.float64, points.shape)
        curve._seconds[: len(points)] = seconds
        curve._further[: len(points)] = saved_array(arrays, "curve_beside", FURTHER, points.shape)
        curve.interval = int(saved_array(arrays, "curve_interval", np.int64, (1,))[0])
        rows = curve.interval * np.arange(1, len(points) + 1)
        if curve.interval < INTERVAL or (points["row"] != rows).any():
            raise ValueError(f"the saved points are not {curve.interval} rows apart")
        return curve


def _point(moment: Moment) -> tuple[float, ...]:
    scores = moment.scores
    errors = (scores.total, scores.faded, scores.window)
    measured = [value for found in errors for value in (found.mae, found.rmse, found.r2)]
    return (scores.rows, *measured, moment.leaves, moment.nbytes)
