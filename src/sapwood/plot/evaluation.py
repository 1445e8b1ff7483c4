"""Pictures of an evaluation: errors, speed and size over the rows, and where rows were rejected."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from sapwood.evaluate.baselines import LastValue, RunningMean
from sapwood.evaluate.result import BASELINES, Evaluation
from sapwood.formatting import plain
from sapwood.plot.chart import EmptyChartError, chart
from sapwood.plot.clock import (
    Along,
    along_of,
    mark_changes,
    place_in_words,
    places_of,
    places_of_rows,
    start_axis,
)
from sapwood.plot.style import (
    BLUE,
    GREEN,
    MUTED,
    ORANGE,
    Look,
    axis,
    label_axes,
    legend,
    looks_of,
    note,
    right_axis,
    short,
)
from sapwood.streams.stream import MOST_ROWS
from sapwood.validation import shown

__all__ = ["Measure", "learning_curve", "leaves", "memory", "rejected", "size", "speed"]

Measure = Literal["mae", "rmse", "r2"]
MEASURES = ("mae", "rmse", "r2")
AS_MODELS = {"mean": repr(RunningMean()), "last": repr(LastValue())}
"""Baselines that are models, too: one that is evaluated is not drawn a second time."""

LARGEST = 1e200  # what an axis can still be scaled to
NEAR = 3.0  # a baseline whose error is so many times as large would hide the rest
PEAK = 8.0  # a point so many times the median is beyond the axis, where a note states it
HEADROOM = 1.12  # of an axis, for a note at its top
FAR, FAR_R2 = 3.0, 1.5  # times the least error, below the largest R²: no contender
LEAST_R2 = -1.0  # where the axis of R² ends at the latest


def learning_curve(
    evaluations: Evaluation | Mapping[str, Evaluation],
    measure: Measure = "mae",
    ax: Axes | None = None,
    along: Along = "rows",
    looks: Mapping[str, Look] | None = None,
) -> Axes:
    """Draw the error over time, exponentially weighted and over all rows.

    Parameters
    ----------
    evaluations : Evaluation, or mapping of names to evaluations
        What to draw; several are drawn together, to be compared.
    measure : {"mae", "rmse", "r2"}
        The error.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    along : {"rows", "time"}
        What the axis below is of; the time has to be known for all points.
    looks : mapping of names to `sapwood.plot.style.Look`, optional
        The colours and markers of several evaluations, if they are to be those of other charts.

    Returns
    -------
    matplotlib.axes.Axes
        The axis, with the best baseline if there is one evaluation and that is near. That of R²
        ends at -1, that of an error at 8 times its median: values beyond are noted as text.

    Examples
    --------
    >>> import sapwood
    >>> from sapwood import streams
    >>> from sapwood.evaluate import prequential
    >>> found = prequential(sapwood.HoeffdingTreeRegressor(), streams.friedman(rows=5000))
    >>> learning_curve(found, "rmse").get_ylabel()
    'RMSE (units of y)'
    """
    if measure not in MEASURES:
        raise ValueError(f"measure = {shown(measure)}: 'mae', 'rmse' or 'r2' is expected")
    named = _named(evaluations)
    ax = axis(ax)
    looks = looks_of(list(named)) if looks is None else looks
    alone = len(named) == 1
    weighted: list[Line2D] = []
    total: list[Line2D] = []
    rivals: list[Line2D] = []
    best = None
    for name, evaluation in named.items():
        colour, marker = looks[name]
        points = evaluation.curve
        values = points[f"faded_{measure}"]
        x = points["row"]
        if along == "time":
            x = places_of(points["row"], evaluation.further["time"], along)
        best = evaluation.best_baseline if alone and measure != "r2" else None
        best = None if best in AS_MODELS and AS_MODELS[best] == evaluation.model else best
        error = evaluation.further[f"{best}_faded_{measure}"] if best is not None else values
        if best is not None and _is_near(error, values):
            rival = {"color": GREEN, "linestyle": "-.", "linewidth": 1.2}
            rivals = _line(ax, x, error, label=f"{BASELINES[best]}, exp. weighted", **rival)
        look: dict[str, Any] = {"color": colour, "marker": "" if alone else marker}
        weighted += _line(ax, x, values, label="exponentially weighted", **look)
        look = {"color": ORANGE if alone else colour, "linestyle": "--", "linewidth": 1.2}
        total += _line(ax, x, points[measure], label="all rows", **look)
    targets = {evaluation.target for evaluation in named.values()}
    unit = f"units of {plain(targets.pop(), 18)}" if len(targets) == 1 else "units of y"
    label_axes(ax, "rows", "R²" if measure == "r2" else f"{measure.upper()} ({unit})")
    _limit(ax, [*weighted, *total, *rivals], measure == "r2", along)
    start_axis(ax, along)
    handles: list[Artist] = [*weighted, *total, *rivals]
    labels = ["exponentially weighted", "all rows", *(BASELINES[best] for _ in rivals if best)]
    if not alone:
        ways = [Line2D([], [], color=MUTED, linestyle=dash) for dash in ("-", "--")]
        handles, labels = [*weighted, *ways], [*(plain(name, 24) for name in named), *labels]
    if measure == "r2":
        handles.append(ax.axhline(0.0, color=MUTED, linestyle=":", linewidth=1.2))
        labels.append("mean alone")
    legend(ax, handles, labels)
    if alone:
        mark_changes(ax, evaluation, along)
    return ax


@chart
def speed(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the throughput: rows per second that were read, predicted, learned and scored.

    A stream is read in chunks, at which the time jumps: so each point is of the last two chunks
    or of a twentieth of all rows, whichever is more.
    """
    _check(evaluation)
    rows = np.append(0, evaluation.curve["row"])
    seconds = np.append(0.0, evaluation.speed[:, 0])
    span = max(2 * MOST_ROWS, int(rows[-1]) // 20)
    since = np.searchsorted(rows, np.maximum(rows[1:] - span, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = (rows[1:] - rows[since]) / (seconds[1:] - seconds[since])
    along = along_of(evaluation)
    x = places_of_rows(rows[1:], evaluation, along)
    lines = _line(ax, x, rates, label="rows per second", color=BLUE)
    label_axes(ax, "rows", "rows per second")
    _limit(ax, lines, along=along)
    start_axis(ax, along)
    if evaluation.rows_per_second > 0:
        mean = ax.axhline(evaluation.rows_per_second, color=MUTED, linestyle=":", linewidth=1.2)
        legend(ax, [*lines, mean], [f"last {short(float(f'{span:.2g}'))} rows", "all rows"])


@chart
def leaves(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the number of leaves of the model over the stream."""
    _check(evaluation)
    _draw_size(ax, evaluation, evaluation.curve["leaves"], "leaves", color=BLUE)


@chart
def memory(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the memory of the model over the stream."""
    _check(evaluation)
    curve = evaluation.curve
    megabytes = np.where(curve["bytes"] < 0, np.nan, curve["bytes"] / 1e6)
    _draw_size(ax, evaluation, megabytes, "memory (MB)", color=ORANGE, linestyle="--")


@chart
def size(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the leaves of the model, and its memory by an axis at the right."""
    leaves(evaluation, ax)
    curve = evaluation.curve
    if len(curve) and curve["bytes"][-1] >= 0:
        other = memory(evaluation, right_axis(ax))
        lines = [*ax.get_lines()[:1], *other.get_lines()[:1]]
        legend(ax, lines, ["leaves", "memory"][-len(lines) :])


@chart
def rejected(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the positions of rejected rows in the stream."""
    _check(evaluation)
    where = evaluation.rejected.where
    label_axes(ax, "rows read", "rows rejected")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    if evaluation.rejected.count == 0 or len(where) == 0:
        ax.set_ylim(bottom=0)
        raise EmptyChartError("no row was rejected")
    ax.stairs(where[:, 1], np.append(0, where[:, 0]), fill=True, color=ORANGE)
    ax.set_xlim(0, where[-1, 0])
    ax.set_ylim(bottom=0)


def _check(evaluation: Any) -> None:
    if not isinstance(evaluation, Evaluation):
        raise TypeError(f"evaluation = {shown(evaluation)}: an Evaluation is expected")


def _named(evaluations: Any) -> dict[str, Evaluation]:
    if isinstance(evaluations, Evaluation):
        return {evaluations.model: evaluations}
    if not isinstance(evaluations, Mapping) or not evaluations:
        raise TypeError(
            f"evaluations = {shown(evaluations)}: an Evaluation is expected, or a mapping of names "
            "to some"
        )
    for evaluation in evaluations.values():
        _check(evaluation)
    return {str(name): evaluation for name, evaluation in evaluations.items()}


def _is_near(rival: Any, values: Any) -> bool:
    """Whether two curves can be drawn on the same axis without hiding what happens on it."""
    known = np.isfinite(rival) & np.isfinite(values)
    return bool(known.any() and np.median(rival[known]) <= NEAR * np.median(values[known]))


def _line(ax: Axes, rows: Any, values: Any, **options: Any) -> list[Line2D]:
    """Draw a line through the points that can be drawn; one alone gets a marker."""
    drawn = np.where(np.abs(values) < LARGEST, values, np.nan)
    marker = options.pop("marker", "")
    if np.count_nonzero(np.isfinite(drawn)) == 1:
        marker = marker or "o"
    every = max(1, len(drawn) // 8)
    return ax.plot(
        rows, drawn, **{"linewidth": 1.7, **options}, marker=marker, markersize=4.5, markevery=every
    )


def _draw_size(ax: Axes, evaluation: Evaluation, values: Any, label: str, **look: Any) -> None:
    along = along_of(evaluation)
    label_axes(ax, "rows", label)
    if len(values) and values[-1] >= 0:
        x = places_of_rows(evaluation.curve["row"], evaluation, along)
        _line(ax, x, values, label=label, **look)
        start_axis(ax, along)
    else:
        note(ax, "the model does not report it")
    ax.set_ylim(bottom=0)
    mark_changes(ax, evaluation, along)


class _Extreme(NamedTuple):
    row: float
    value: float


def _limit(ax: Axes, lines: list[Line2D], share: bool = False, along: Along = "rows") -> None:
    """Scale an axis to the usual values of its contenders; note the farthest value beyond as text.

    The axis of an error starts at 0. That of a share (R²) ends at 1, and goes down only as far as
    it must.
    """
    shown = [points for line in lines if len(points := _drawn_points(line))]
    ax.set_xlim(left=0)
    if not shown:
        note(ax, "nothing was measured")
        ax.set_ylim(0, 1)
        return
    points, near = np.concatenate(shown), np.concatenate(_contenders(shown, share))
    lowest = _Extreme(*points[points[:, 1].argmin()])
    highest = _Extreme(*points[points[:, 1].argmax()])
    if share:
        bottom = min(0.0, max(float(near[:, 1].min()), LEAST_R2))
        ax.set_ylim(bottom - 0.03 * (1 - bottom), 1.02)
        beyond, arrow = (lowest, "↓") if lowest.value < ax.get_ylim()[0] else (None, "")
    else:
        most = float(near[:, 1].max())
        top = min(most, PEAK * float(np.median(near[:, 1])))
        ax.set_ylim(0, 1.06 * (top or most) or 1.0)
        beyond, arrow = (highest, "↑") if highest.value > ax.get_ylim()[1] else (None, "")
        if beyond is not None:
            ax.set_ylim(top=HEADROOM * ax.get_ylim()[1])
    if beyond is not None:
        ax.annotate(
            f"{arrow} {short(float(f'{beyond.value:.3g}'))} {place_in_words(beyond.row, along)}",
            (0.99, 0.04 if share else 0.96),
            xycoords="axes fraction",
            ha="right",
            va="bottom" if share else "top",
            color=MUTED,
            size="small",
        )


def _drawn_points(line: Line2D) -> Any:
    points = np.asarray(line.get_xydata())
    return points[np.isfinite(points[:, 1])]


def _contenders(lines: list[Any], share: bool) -> list[Any]:
    """Return those of several curves that an axis has to show: the others are far worse."""
    usual = [float(np.median(points[:, 1])) for points in lines]
    if share:
        return [each for each, own in zip(lines, usual, strict=True) if own >= max(usual) - FAR_R2]
    least = min(usual)
    return [each for each, own in zip(lines, usual, strict=True) if own <= FAR * least or not least]
