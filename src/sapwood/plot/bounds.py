"""Pictures of bounds around predictions: the band with what came in it, and how often it did."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from sapwood.evaluate.result import Evaluation
from sapwood.evaluate.sampling import thinned
from sapwood.formatting import plain
from sapwood.plot.clock import along_of, label_along, mark_changes, places_of
from sapwood.plot.style import BLUE, GREEN, MUTED, ORANGE, axis, label_axes, legend, looks_of, say

__all__ = ["band", "bounds", "coverage"]

FloatArray = NDArray[np.float64]

NOTHING = "the model has no prediction intervals"


def band(evaluation: Evaluation, ax: Axes | None = None, most: int = 150) -> Axes:
    """Draw the last rows: what came, and the bounds of the widest level around what was predicted.

    Parameters
    ----------
    evaluation : Evaluation
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw. What came outside of the bounds has a cross.
    most : int
        How many rows are drawn at the most.
    """
    ax = axis(ax)
    label_axes(ax, "rows", plain(evaluation.target, 24))
    intervals = evaluation.intervals
    if intervals is None or len(intervals.recent) < 2:
        say(ax, NOTHING)
        return ax
    rows = intervals.recent[-most:]
    x = rows["row"]
    ax.fill_between(x, rows["lower"], rows["upper"], color=BLUE, alpha=0.22, linewidth=0)
    ax.plot(x, rows["prediction"], color=BLUE, linewidth=1.1, label="predicted")
    inside = (rows["lower"] <= rows["y"]) & (rows["y"] <= rows["upper"])
    ax.plot(x, rows["y"], color=ORANGE, linestyle="", marker=".", markersize=3, label="_actual")
    out = ~inside & np.isfinite(rows["lower"])
    ax.plot(x[out], rows["y"][out], color=ORANGE, linestyle="", marker="x", label="_outside")
    _fit(ax, np.concatenate([rows["y"], rows["lower"], rows["upper"]]))
    level = max(intervals.levels)
    handles: list[Any] = [
        Line2D([], [], color=BLUE, linewidth=1.1),
        Patch(color=BLUE, alpha=0.22, linewidth=0),
        Line2D([], [], color=ORANGE, linestyle="", marker="."),
        Line2D([], [], color=ORANGE, linestyle="", marker="x"),
    ]
    legend(
        ax, handles, ["predicted", f"{level:g} prediction interval", "actual", "actual, outside"]
    )
    return ax


def bounds(evaluation: Evaluation, ax: Axes | None = None, most: int = 500) -> Axes:
    """Draw what came and the bounds of the widest level, for a sample of rows over the stream.

    Parameters
    ----------
    evaluation : Evaluation
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw; along the time of rows, if they have one.
    most : int
        How many rows of the sample are drawn at the most.
    """
    ax = axis(ax)
    label_axes(ax, "rows", plain(evaluation.target, 24))
    intervals = evaluation.intervals
    if intervals is None or len(intervals.sample) < 2:
        say(ax, NOTHING)
        return ax
    rows = intervals.sample[thinned(len(intervals.sample), most)]
    along = along_of(evaluation)
    x = places_of(rows["row"], rows["time"], along)
    lines = [
        *ax.plot(x, rows["y"], color=ORANGE, linewidth=1.1, label="actual"),
        *ax.plot(x, rows["lower"], color=BLUE, linewidth=0.9, label="lower"),
        *ax.plot(x, rows["upper"], color=GREEN, linewidth=0.9, label="upper"),
    ]
    _fit(ax, np.concatenate([rows["y"], rows["lower"], rows["upper"]]))
    legend(ax, lines, ["actual", "lower", "upper"])
    label_along(ax, along)
    mark_changes(ax, evaluation, along)
    return ax


def _fit(ax: Axes, values: FloatArray) -> None:
    """Let an axis show nearly all values."""
    ax.margins(x=0)
    low, high = np.nanpercentile(values, [0.2, 99.8])
    spread = float(high - low) or abs(float(high)) or 1.0
    ax.set_ylim(low - 0.08 * spread, high + 0.08 * spread)


def coverage(evaluation: Evaluation, ax: Axes | None = None) -> Axes:
    """Draw the exponentially weighted coverage of the prediction intervals, for each level.

    Parameters
    ----------
    evaluation : Evaluation
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Dotted lines are the nominal levels.
    """
    ax = axis(ax)
    label_axes(ax, "rows", "coverage, exp. weighted")
    intervals = evaluation.intervals
    if intervals is None or not len(intervals.curve):
        say(ax, NOTHING)
        return ax
    along = along_of(evaluation)
    x = places_of(intervals.curve["row"], evaluation.beside["time"], along)
    names = [f"{level:g}" for level in intervals.levels]
    handles: list[Any] = []
    for name, look in looks_of(names).items():
        values = intervals.curve[f"faded_coverage_{name}"]
        handles += ax.plot(x, values, color=look.colour, linewidth=1.7, label=name)
        ax.axhline(float(name), color=MUTED, linestyle=":", linewidth=1.2)
    handles.append(Line2D([], [], color=MUTED, linestyle=":", linewidth=1.2))
    lowest = min(0.45, float(np.nanmin([intervals.curve[f"faded_coverage_{n}"] for n in names])))
    ax.set_ylim(max(0.0, min(lowest, *intervals.levels) - 0.05), 1.0)
    if along == "rows":
        ax.set_xlim(left=0)
    legend(ax, handles, [*names, "nominal level"])
    label_along(ax, along)
    mark_changes(ax, evaluation, along)
    return ax
