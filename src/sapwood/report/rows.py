"""Parts of the report about rows: actual and predicted values, residuals, and columns as read."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from sapwood import plot
from sapwood.evaluate.result import ErrorsBy, Evaluation, Sample
from sapwood.formatting import plain
from sapwood.plot.clock import along_of
from sapwood.plot.residuals import has_hours
from sapwood.report.charts import chart, curves_in_full, zoom_chart
from sapwood.report.html import (
    Words,
    aligned_column,
    charts,
    count,
    measured,
    scrolled,
    share,
    text,
)
from sapwood.streams.stream import ColumnNote

__all__ = ["render_columns", "render_predictions", "render_residuals"]

LABELS = 8  # of a category that its table shows
LEAST_LABELS = 2
LEAST_ROWS = 5  # of a label
MOST_COLUMNS = 60


def render_predictions(evaluation: Evaluation) -> str | None:
    """Return charts of actual and predicted values; None if no rows were kept."""
    sample = evaluation.sample
    if sample is None or len(sample.rows) < 2:
        return None
    lines = [("actual", "y", "orange"), ("predicted", "prediction", "blue")]
    every = "every row" if sample.interval == 1 else f"one random row in {count(sample.interval)}"
    whole = zoom_chart(
        "predictions-all",
        f"Over the whole stream, {every}",
        partial(plot.predictions, evaluation),
        curves_in_full(sample.rows, along_of(evaluation), lines),
        "drag across the chart to zoom in",
    )
    last = chart(
        "predictions-last",
        f"The last {count(min(300, len(evaluation.recent)))} rows",
        plot.recent,
        evaluation,
    )
    scatter = chart(
        "actual-vs-predicted", "Actual against predicted", plot.actual_vs_predicted, evaluation
    )
    return charts(whole, last, scatter)


def render_residuals(evaluation: Evaluation) -> str | None:
    """Return how far off predictions were, and for which rows; None if none was scored."""
    if not len(evaluation.further) or not math.isfinite(evaluation.bias):
        return None
    drawn = [
        chart("bias", "Bias over time: mean of prediction − actual", plot.bias, evaluation),
        chart("histogram", "Distribution of residuals", plot.residual_histogram, evaluation),
        chart("by-prediction", "Residuals by prediction", plot.errors_by_prediction, evaluation),
    ]
    if has_hours(evaluation):
        drawn.append(
            chart("by-hour", "Residuals by hour of the day", plot.errors_by_hour, evaluation)
        )
    found = evaluation.errors_by
    tables = "" if found is None else "".join(_by_label(found, name) for name in found.groups)
    errors = f"<p>{_bias_in_words(evaluation)} {_sampled(evaluation.sample)}</p>"
    labels = f'<div class="side-by-side groups">{tables}</div>' if tables else ""
    return f"{errors}\n{charts(*drawn)}\n{labels}"


def _bias_in_words(evaluation: Evaluation) -> str:
    bias, error = evaluation.bias, evaluation.total.mae
    if error > 0 and abs(bias) < 0.02 * error:
        return f"There is next to no bias: predictions are {_sized(bias)} on average."
    return f"On average predictions are {_sized(bias)}."


def _sized(bias: float) -> str:
    return f"{measured(abs(bias), 3)} too {'high' if bias > 0 else 'low'}" if bias else "right"


def _sampled(sample: Sample | None) -> str:
    """Return which numbers are of all rows, and which of a sample."""
    if sample is None or sample.interval == 1:
        return ""
    return (
        "Means by prediction, hour and category are over all rows; bands and the histogram are from a "
        f"random sample of {count(len(sample.rows))} rows."
    )


def _by_label(errors: ErrorsBy, name: str) -> str:
    """Return a table of the errors for the most frequent labels of a category."""
    labels, parts = errors.groups[name]
    rows = parts["rows"]
    order = np.argsort(-rows, kind="stable")[:LABELS]
    order = order[rows[order] >= LEAST_ROWS]
    if len(order) < LEAST_LABELS:
        return ""
    every = int(errors.predictions["rows"].sum())
    columns = [
        [text(plain(labels[place], 24)) for place in order],
        [text(share(int(rows[place]), every)) for place in order],
        aligned_column(parts["mae"][order].tolist()),
        aligned_column(parts["bias"][order].tolist()),
    ]
    named = Words(text(plain(name, 24)))
    heads = [named, "rows", "MAE", "bias"]
    rest = len(np.flatnonzero(rows)) - len(order)
    more = f"<small>and {count(rest)} more</small>" if rest else ""
    caption = f"Errors by {text(plain(name, 24))}{more}"
    return scrolled(heads, zip(*columns, strict=True), caption=caption)


def render_columns(notes: Sequence[ColumnNote]) -> str:
    """Return how the columns of a stream were read."""
    heads = [
        Words("column"),
        Words("read as"),
        Words("example"),
        "missing",
        "distinct",
        Words("warnings"),
    ]
    shown = [note for place, note in enumerate(notes) if place < MOST_COLUMNS or note.warnings]
    rows = [
        (
            text(note.name),
            text(note.read_as),
            text("" if note.example is None else note.example, 60),
            count(note.missing),
            count(note.distinct),
            text("; ".join(note.warnings), 300),
        )
        for note in shown
    ]
    looked_at = max(note.rows for note in notes)
    hidden = len(notes) - len(shown)
    more = f" {count(hidden)} more are not shown." if hidden else ""
    return (
        f"<p>Types are inferred from the first {count(looked_at)} rows.{more}</p>\n"
        f"{scrolled(heads, rows, kind='columns')}"
    )
