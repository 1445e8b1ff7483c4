"""Pictures of prediction intervals: shaded bands with actual values, and coverage over time."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from sapwood.evaluate.result import Evaluation, Intervals
from sapwood.evaluate.sampling import thinned
from sapwood.formatting import plain
from sapwood.plot.chart import EmptyChartError, chart
from sapwood.plot.clock import (
    along_of,
    along_of_rows,
    label_along,
    mark_changes,
    places_of,
    places_of_recent,
)
from sapwood.plot.style import BLUE, MUTED, ORANGE, fit, label_axes, legend, looks_of
from sapwood.records import Records

__all__ = ["band", "coverage", "prediction_intervals"]

FloatArray = NDArray[np.float64]

SHADE = 0.3
BAND_ID = "zoomed-band"
"""The id of the shaded area and of actual values, which a report draws again when it is zoomed."""
NOTHING = "the model has no prediction intervals"


@chart
def band(evaluation: Evaluation, ax: Axes, most: int = 150) -> None:
    """Draw the last rows: actual values, predictions, and prediction intervals of the widest level.

    Rows are along their time, if they have one. Actual values outside of the interval have a cross.
    """
    label_axes(ax, "rows", plain(evaluation.target, 24))
    intervals = evaluation.intervals
    if intervals is None or len(intervals.recent) < 2:
        raise EmptyChartError(NOTHING)
    rows = intervals.recent[-most:]
    along = along_of_rows(rows)
    x = places_of_recent(rows, along)
    _shade(ax, x, rows)
    line = ax.plot(x, rows["prediction"], color=BLUE, linewidth=1.1, label="predicted")
    _draw_actual(ax, x, rows, 3.0)
    fit(ax, rows["y"], rows["lower"], rows["upper"], beyond=0.2)
    handles = [*line, *_handles()]
    legend(ax, handles, ["predicted", _name(intervals), "actual", "actual, outside"])
    label_along(ax, along)


@chart
def prediction_intervals(evaluation: Evaluation, ax: Axes, most: int = 500) -> None:
    """Draw actual values and prediction intervals of the widest level, over the whole stream.

    The rows are a random sample, along their time if they have one. The interval is a shaded band;
    actual values outside of it have a cross.
    """
    label_axes(ax, "rows", plain(evaluation.target, 24))
    intervals = evaluation.intervals
    if intervals is None or len(intervals.sample) < 2:
        raise EmptyChartError(NOTHING)
    rows = intervals.sample[thinned(len(intervals.sample), most)]
    along = along_of(evaluation)
    x = places_of(rows["row"], rows["time"], along)
    _shade(ax, x, rows)
    _draw_actual(ax, x, rows, 2.5)
    fit(ax, rows["y"], rows["lower"], rows["upper"], beyond=0.2)
    legend(ax, _handles(), [_name(intervals), "actual", "actual, outside"])
    label_along(ax, along)
    mark_changes(ax, evaluation, along)


def _shade(ax: Axes, x: FloatArray, rows: Records) -> None:
    """Shade the prediction intervals of rows."""
    shaded = ax.fill_between(x, rows["lower"], rows["upper"], color=BLUE, alpha=SHADE, linewidth=0)
    shaded.set_gid(BAND_ID)


def _draw_actual(ax: Axes, x: FloatArray, rows: Records, size: float) -> None:
    """Draw actual values as dots, and as crosses outside of their intervals."""
    known = np.isfinite(rows["lower"])
    out = known & ((rows["y"] < rows["lower"]) | (rows["upper"] < rows["y"]))
    look: dict[str, Any] = {"color": ORANGE, "linestyle": "", "gid": BAND_ID}
    ax.plot(x[~out], rows["y"][~out], **look, marker=".", markersize=size, label="_actual")
    ax.plot(x[out], rows["y"][out], **look, marker="x", markersize=size + 1.5, label="_outside")


def _handles() -> list[Any]:
    """Return what stands for the interval, and for values in and outside of it, in a legend."""
    look: dict[str, Any] = {"color": ORANGE, "linestyle": ""}
    return [
        Patch(color=BLUE, alpha=SHADE, linewidth=0),
        Line2D([], [], **look, marker="."),
        Line2D([], [], **look, marker="x", markersize=5),
    ]


def _name(intervals: Intervals) -> str:
    return f"{100 * max(intervals.levels):g} % prediction interval"


@chart
def coverage(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the exponentially weighted coverage of the prediction intervals, for each level.

    Dotted lines are the nominal levels.
    """
    label_axes(ax, "rows", "coverage, exp. weighted")
    intervals = evaluation.intervals
    if intervals is None or not len(intervals.curve):
        raise EmptyChartError(NOTHING)
    along = along_of(evaluation)
    x = places_of(intervals.curve["row"], evaluation.further["time"], along)
    names = [f"{level:g}" for level in intervals.levels]
    titles = [f"{100 * level:g} % level" for level in intervals.levels]
    handles: list[Any] = []
    for (name, look), title in zip(looks_of(names).items(), titles, strict=True):
        values = intervals.curve[f"faded_coverage_{name}"]
        handles += ax.plot(x, values, color=look.colour, linewidth=1.7, label=title)
        ax.axhline(float(name), color=MUTED, linestyle=":", linewidth=1.2)
    handles.append(Line2D([], [], color=MUTED, linestyle=":", linewidth=1.2))
    shown = np.array([intervals.curve[f"faded_coverage_{name}"] for name in names])
    lowest = float(np.min(shown, initial=0.45, where=np.isfinite(shown)))
    ax.set_ylim(max(0.0, min(lowest, *intervals.levels) - 0.05), 1.0)
    if along == "rows":
        ax.set_xlim(left=0)
    legend(ax, handles, [*titles, "nominal level"])
    label_along(ax, along)
    mark_changes(ax, evaluation, along)
