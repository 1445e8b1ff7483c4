"""Axes along the rows of a stream, or along its time."""

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import UTC, AutoDateLocator, ConciseDateFormatter
from numpy.typing import NDArray

from sapwood.evaluate.result import Evaluation
from sapwood.plot.style import MUTED

__all__ = ["DAY", "Along", "along_of", "are_in_order", "label_along", "mark_changes", "places_of"]

Along = Literal["rows", "time"]
DAY = 86_400.0
FARTHEST = 2.5e11  # seconds; dates end near the year 9999
EARLIEST = -6.2e10
MOST_MARKS = 20


def are_in_order(times: NDArray[np.float64]) -> bool:
    """Whether times are known for all rows, and go on from row to row.

    Examples
    --------
    >>> are_in_order(np.array([0.0, 60.0])), are_in_order(np.array([60.0, 0.0, np.nan]))
    (True, False)
    """
    if len(times) < 2 or not np.isfinite(times).all():
        return False
    inside = EARLIEST < times[0] < times[-1] < FARTHEST
    return bool(inside and (np.diff(times) >= 0).all())


def along_of(evaluation: Evaluation) -> Along:
    """Return what pictures of an evaluation go along: its time, if it has one; else its rows."""
    known = are_in_order(evaluation.beside["time"])
    sample = evaluation.sample
    if known and sample is not None and len(sample.rows) > 1:
        known = are_in_order(sample.rows["time"])
    return "time" if known else "rows"


def places_of(rows: NDArray[Any], times: NDArray[Any], along: Along) -> NDArray[np.float64]:
    """Return where points are on such an axis: days since 1970, or rows."""
    return np.asarray(times if along == "time" else rows, dtype=np.float64) / (
        DAY if along == "time" else 1.0
    )


def mark_changes(ax: Axes, evaluation: Evaluation, along: Along) -> None:
    """Draw a line where something has changed, as a monitor has found; the last ones, if many."""
    curve, alarms = evaluation.curve, (evaluation.alarms or ())[-MOST_MARKS:]
    if not len(curve):
        return
    for alarm in alarms:
        x = float(alarm.since)
        if along == "time":
            x = float(np.interp(x, curve["row"], evaluation.beside["time"])) / DAY
        ax.axvline(x, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), label="_change")


def label_along(ax: Axes, along: Along) -> None:
    """Let the axis below tell dates, if it goes along time."""
    if along == "time":
        locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        formatter = ConciseDateFormatter(locator, UTC, show_offset=False)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_formatter(formatter)
        ax.set_xlabel("time (UTC)")
