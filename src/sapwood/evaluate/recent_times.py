"""The times of the last rows that were scored, for charts of these rows."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.recorder import LabelledRows, Moment, Recorder, saved_array

__all__ = ["MOST", "RecentTimes"]

MOST = 1000
"""Rows whose times are kept."""
TIMES = "recent_times"


class RecentTimes(Recorder):
    """Keeps the times of the last rows, and adds them to the rows of the window."""

    def __init__(self) -> None:
        self._times = np.zeros(0)

    def record(self, rows: LabelledRows) -> None:
        """Keep the times of rows that can be scored; NaN if they have none."""
        places = np.flatnonzero(rows.is_scored)[-MOST:]
        times = np.full(len(places), np.nan) if rows.times is None else rows.times[places]
        self._times = np.concatenate([self._times, times])[-MOST:]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the times, to be saved."""
        return {TIMES: self._times.copy()}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return one in a state that `to_arrays` returned; checkpoints of release 0.2 lack it."""
        made = type(self)()
        if TIMES in arrays:
            made._times = saved_array(arrays, TIMES, np.float64, (None,))
            if len(made._times) > MOST:
                raise ValueError(f"the saved times are of {len(made._times)} rows")
        return made

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the rows of the window with their times."""
        rows = end.scores.recent
        count = min(len(rows), len(self._times))
        if count:
            rows["time"][-count:] = self._times[-count:]
        return {"recent": rows}
