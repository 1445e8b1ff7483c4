"""Pictures of predictions and residuals: over time, by prediction, by hour; and of change."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from sapwood.evaluate.error_tables import grouped
from sapwood.evaluate.result import Evaluation
from sapwood.evaluate.sampling import thinned
from sapwood.formatting import plain
from sapwood.plot.chart import EmptyChartError, chart
from sapwood.plot.clock import (
    DAY,
    along_of,
    along_of_rows,
    label_along,
    mark_changes,
    places_of,
    places_of_recent,
    places_of_rows,
    start_axis,
)
from sapwood.plot.style import BLUE, COLOURS, MUTED, ORANGE, fit, label_axes, legend, range_of
from sapwood.records import Records

__all__ = [
    "actual_vs_predicted",
    "bias",
    "changes",
    "errors_by_hour",
    "errors_by_prediction",
    "importances_over_time",
    "predictions",
    "recent",
    "residual_histogram",
]

FloatArray = NDArray[np.float64]

BINS = 12
LEAST_ROWS = 30  # of a sample, for a picture of its parts
FEATURES = 4
STEPS = 40
NOTHING = "no row was scored"


@chart
def predictions(evaluation: Evaluation, ax: Axes, most: int = 500) -> None:
    """Draw actual and predicted values, for a random sample of rows over the whole stream.

    Rows are along their time, if they have one.
    """
    label_axes(ax, "rows", plain(evaluation.target, 24))
    sample = evaluation.sample
    if sample is None or not len(sample.rows):
        raise EmptyChartError(NOTHING)
    along = along_of(evaluation)
    rows = sample.rows[thinned(len(sample.rows), most)]
    x = places_of(rows["row"], rows["time"], along)
    _draw_pair(ax, x, rows["y"], rows["prediction"])
    label_along(ax, along)
    mark_changes(ax, evaluation, along)


@chart
def recent(evaluation: Evaluation, ax: Axes, most: int = 300) -> None:
    """Draw actual and predicted values, for each of the last rows; along their times, if known."""
    label_axes(ax, "rows", plain(evaluation.target, 24))
    rows = evaluation.recent[-most:]
    if not len(rows):
        raise EmptyChartError(NOTHING)
    along = along_of_rows(rows)
    x = places_of_recent(rows, along)
    _draw_pair(ax, x, rows["y"], rows["prediction"])
    label_along(ax, along)


@chart
def actual_vs_predicted(evaluation: Evaluation, ax: Axes, most: int = 1000) -> None:
    """Draw actual against predicted values as points; right predictions are on the diagonal.

    The rows are a random sample. Both axes have the same range, which contains 99.8 % of the values.
    """
    target = plain(evaluation.target, 18)
    label_axes(ax, f"predicted {target}", f"actual {target}")
    sample = evaluation.sample
    if sample is None or len(sample.rows) < LEAST_ROWS:
        raise EmptyChartError("too few rows")
    rows = sample.rows[thinned(len(sample.rows), most)]
    ax.plot(
        rows["prediction"],
        rows["y"],
        color=BLUE,
        linestyle="",
        marker=".",
        markersize=3.5,
        markeredgewidth=0,
        alpha=0.45,
        label="_rows",
    )
    low, high = range_of(rows["y"], rows["prediction"])
    diagonal = ax.plot([low, high], [low, high], color=MUTED, linewidth=1.2, label="_diagonal")
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    handle = Line2D([], [], color=BLUE, linestyle="", marker=".", markersize=7)
    legend(ax, [handle, *diagonal], ["rows", "actual = predicted"])


@chart
def residual_histogram(evaluation: Evaluation, ax: Axes, bins: int = 40) -> None:
    """Draw the distribution of residuals: predicted minus actual values.

    The range contains 99 % of the residuals; those beyond are in the first and the last bar.
    """
    label_axes(ax, f"residual: prediction − {plain(evaluation.target, 18)}", "rows (%)")
    sample = evaluation.sample
    if sample is None or len(sample.rows) < LEAST_ROWS:
        raise EmptyChartError("too few rows")
    residuals = sample.rows["prediction"] - sample.rows["y"]
    low, high = np.percentile(residuals, [0.5, 99.5])
    if not low < high:
        raise EmptyChartError("all residuals are equal")
    counts, edges = np.histogram(np.clip(residuals, low, high), bins, (low, high))
    ax.stairs(100 * counts / len(residuals), edges, fill=True, color=BLUE, alpha=0.75)
    none = ax.axvline(0.0, color=MUTED, linestyle=":", linewidth=1.2)
    median = ax.axvline(float(np.median(residuals)), color=ORANGE, linewidth=1.2)
    ax.set_xlim(low, high)
    legend(ax, [none, median], ["no error", "median"])


def _draw_pair(ax: Axes, x: Any, right: FloatArray, predicted: FloatArray) -> None:
    marker = "o" if len(x) == 1 else ""
    truth = ax.plot(x, right, color=ORANGE, linewidth=1.1, label="actual", marker=marker)
    guess = ax.plot(x, predicted, color=BLUE, linewidth=1.1, label="predicted", marker=marker)
    fit(ax, right, predicted)
    legend(ax, [*truth, *guess], ["actual", "predicted"])


@chart
def bias(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the bias over the stream: the mean of predicted minus actual values."""
    points = evaluation.further
    label_axes(ax, "rows", f"prediction − {plain(evaluation.target, 18)}")
    if not len(points):
        raise EmptyChartError(NOTHING)
    along = along_of(evaluation)
    x = places_of(evaluation.curve["row"], points["time"], along)
    weighted = ax.plot(
        x, points["faded_bias"], color=BLUE, linewidth=1.7, label="exponentially weighted"
    )
    total = ax.plot(
        x, points["bias"], color=ORANGE, linestyle="--", linewidth=1.2, label="all rows"
    )
    none = ax.axhline(0.0, color=MUTED, linestyle=":", linewidth=1.2)
    far = float(np.nanpercentile(np.abs([points["faded_bias"], points["bias"]]), 98)) or 1.0
    ax.set_ylim(-1.25 * far, 1.25 * far)
    legend(ax, [*weighted, *total, none], ["exponentially weighted", "all rows", "none"])
    label_along(ax, along)
    mark_changes(ax, evaluation, along)


@chart
def errors_by_prediction(evaluation: Evaluation, ax: Axes) -> None:
    """Draw residuals by predicted value: their mean, and the range of 80 % of them.

    The line is the mean over a twelfth of all rows; the band contains 80 % of them, as far as the
    sample shows.
    """
    target = plain(evaluation.target, 18)
    label_axes(ax, f"predicted {target}", f"prediction − {target}")
    sample, errors = evaluation.sample, evaluation.errors_by
    if sample is None or errors is None or len(sample.rows) < LEAST_ROWS:
        raise EmptyChartError("too few rows")
    parts = grouped(errors.predictions, BINS)
    order = np.argsort(sample.rows["prediction"], kind="stable")
    shares = np.cumsum(parts["rows"]) / parts["rows"].sum()
    ends = np.round(shares[:-1] * len(order)).astype(np.intp)
    rows = [sample.rows[part] for part in np.split(order, ends)]
    _draw_band(ax, parts["prediction"], parts["bias"], rows)


@chart
def errors_by_hour(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the errors of rows by the hour of the day.

    The line is the mean over all rows; the band contains 80 % of them, as far as the sample shows.
    """
    label_axes(ax, "hour of the day (UTC)", f"prediction − {plain(evaluation.target, 18)}")
    sample, errors = evaluation.sample, evaluation.errors_by
    if not has_hours(evaluation) or sample is None or errors is None:
        raise EmptyChartError("the stream has no times of day")
    known = np.flatnonzero(errors.hours["rows"])
    times = sample.rows["time"]
    finite = np.isfinite(times)
    hours = np.where(finite, np.where(finite, times, 0.0) % DAY // 3600, -1)
    rows = [sample.rows[hours == hour] for hour in known]
    _draw_band(ax, known.astype(float), errors.hours["bias"][known], rows)
    ax.set_xlim(known[0], known[-1])
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 3, 6]))


def has_hours(evaluation: Evaluation) -> bool:
    """Whether rows have times of more than one hour of the day."""
    errors = evaluation.errors_by
    if errors is None:
        return False
    rows = errors.hours["rows"]
    return bool(np.count_nonzero(rows) > 1 and rows.sum() >= LEAST_ROWS)


def _draw_band(ax: Axes, x: FloatArray, means: FloatArray, parts: list[Records]) -> None:
    """Draw the mean error of each part, and the range of 80 % of the errors of its sample."""
    nothing = np.full(2, np.nan)
    errors = [part["prediction"] - part["y"] for part in parts]
    bands = [np.percentile(each, [10, 90]) if len(each) else nothing for each in errors]
    low, high = np.array(bands).T
    band = ax.fill_between(x, low, high, color=BLUE, alpha=0.18, linewidth=0)
    line = ax.plot(x, means, color=BLUE, linewidth=1.7, label="mean error")
    none = ax.axhline(0.0, color=MUTED, linestyle=":", linewidth=1.2)
    legend(ax, [*line, band, none], ["mean", "80 % of rows", "no error"])


@chart
def importances_over_time(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the importance of features over the stream, for the most important ones at its end.

    The model has to be a tree.
    """
    label_axes(ax, "rows", "share (%)")
    moments = evaluation.importances
    if not moments or not any(moments[-1][1].values()):
        raise EmptyChartError(
            "the tree has not split yet" if moments else "the model does not report it"
        )
    last = moments[-1][1]
    names = sorted(last, key=lambda name: -last[name])[:FEATURES]
    along = along_of(evaluation)
    rows = places_of_rows(np.array([row for row, _ in moments]), evaluation, along)
    lines = []
    for name, colour in zip(names, COLOURS, strict=False):
        shares = [100 * shares.get(name, 0.0) for _, shares in moments]
        marker = "o" if len(rows) == 1 else ""
        lines += ax.plot(
            rows, shares, color=colour, linewidth=1.7, label=plain(name, 16), marker=marker
        )
    legend(ax, lines, [plain(name, 20) for name in names])
    start_axis(ax, along)
    ax.set_ylim(bottom=0)


@chart
def changes(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the number of leaves that the model gained and lost over the stream."""
    label_axes(ax, "rows", "leaves gained, lost")
    curve = evaluation.curve
    if len(curve) < 2 or curve["leaves"][-1] < 0:
        raise EmptyChartError("the model does not report it")
    steps = np.diff(curve["leaves"], prepend=1)
    edges = np.unique(np.linspace(0, curve["row"][-1], STEPS + 1).astype(np.int64))
    place = np.clip(np.searchsorted(edges, curve["row"]) - 1, 0, len(edges) - 2)
    gained = np.bincount(place, np.maximum(steps, 0), len(edges) - 1)
    lost = np.bincount(place, np.minimum(steps, 0), len(edges) - 1)
    along = along_of(evaluation)
    x = places_of_rows(edges, evaluation, along)
    ax.stairs(gained, x, fill=True, color=BLUE)
    if lost.any():
        ax.stairs(lost, x, fill=True, color=ORANGE)
    ax.axhline(0.0, color=MUTED, linewidth=0.8)
    ax.set_xlim(x[0], x[-1])
    label_along(ax, along)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
