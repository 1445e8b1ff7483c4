"""Parts of the report: error over time, model size, throughput, importance, rejected rows, settings."""

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from sapwood import plot
from sapwood.evaluate.result import Evaluation
from sapwood.formatting import number
from sapwood.model import readable_part
from sapwood.plot.clock import along_of
from sapwood.plot.model import MOST_BARS
from sapwood.report.charts import chart
from sapwood.report.html import (
    ABSENT,
    Words,
    aligned_column,
    charts,
    count,
    listed,
    measured,
    megabytes,
    rate,
    scrolled,
    share,
    text,
)
from sapwood.report.result import half_life
from sapwood.report.titles import model_name

__all__ = [
    "importance_chart",
    "render_error",
    "render_importances",
    "render_rejected",
    "render_settings",
    "render_size",
    "render_speed",
    "settings_of",
]

MOST_POINTS = 20  # of the curve that a table shows
LEAST_ROWS = 16_000
"""Rows of a stream from which on its throughput is drawn: two chunks, of which a point is."""


def render_error(evaluation: Evaluation) -> str:
    """Return the learning curves as charts and in numbers."""
    names: dict[plot.Measure, str] = {
        "mae": "Mean absolute error (MAE)",
        "rmse": "Root mean squared error (RMSE)",
        "r2": "R²: 0 is the error of the mean",
    }
    along = along_of(evaluation)
    drawn = "\n".join(
        chart(name, title, plot.learning_curve, evaluation, name, along=along)
        for name, title in names.items()
    )
    return f"{charts(drawn)}\n{_curve_table(evaluation)}"


def _curve_table(evaluation: Evaluation) -> str:
    """Return some points of the curves in numbers."""
    curve = evaluation.curve
    if not len(curve):
        return ""
    places = np.unique(np.linspace(0, len(curve) - 1, MOST_POINTS).round().astype(int))
    fields = ["mae", "faded_mae", "rmse", "faded_rmse", "r2", "faded_r2"]
    heads = [
        "rows",
        "MAE",
        "weighted",
        "RMSE",
        "weighted",
        "R²",
        "weighted",
        "leaves",
        "MB",
        "rows/s",
    ]
    points = curve[places]
    columns = [
        [count(row) for row in points["row"].tolist()],
        *(aligned_column(points[name].tolist()) for name in fields),
        [ABSENT if leaves < 0 else count(leaves) for leaves in points["leaves"].tolist()],
        aligned_column(np.where(points["bytes"] < 0, np.nan, points["bytes"] / 1e6).tolist()),
        [rate(each) for each in evaluation.speed[places, 1].tolist()],
    ]
    made = scrolled(heads, zip(*columns, strict=True))
    return f'<details class="more"><summary>The curves in numbers</summary>{made}</details>'


def render_speed(evaluation: Evaluation) -> str | None:
    """Return the throughput over the stream; None if there are too few rows to measure it."""
    if not evaluation.seconds > 0 or evaluation.rows_read < LEAST_ROWS:
        return None
    took = f"{measured(evaluation.seconds, 3)} s"
    part = share(evaluation.model_seconds, evaluation.seconds)
    words = f"{took} in all; the model took {part} of it."
    drawn = chart("speed", "Rows per second", plot.speed, evaluation)
    return f"<p>{text(words)}</p>\n{drawn}"


def render_size(evaluation: Evaluation) -> str | None:
    """Return the size of the model over the stream; None if it does not report it."""
    if evaluation.leaves is None and evaluation.model_bytes is None:
        return None
    sizes, drawn = [], []
    if evaluation.leaves is not None:
        sizes.append(f"{count(evaluation.leaves)} leaves")
        drawn.append(chart("leaves", "Leaves", plot.leaves, evaluation))
        if len(evaluation.curve) > 1:
            drawn.append(chart("changes", "Leaves gained and lost", plot.changes, evaluation))
    if evaluation.model_bytes is not None:
        sizes.append(megabytes(evaluation.model_bytes))
        drawn.append(chart("memory", "Memory", plot.memory, evaluation))
    return f"<p>At the end: {' and '.join(sizes)}.</p>\n{charts(*drawn)}"


def render_importances(evaluation: Evaluation, model: Any) -> str | None:
    """Return the permutation feature importance; None of a model that does not report it."""
    inner = readable_part(model)
    if inner is None:
        return None
    made = importance_chart(inner.feature_importances)
    if len(evaluation.importances) > 1:
        title = "Over the stream"
        made += chart("importances-over-time", title, plot.importances_over_time, evaluation)
    return (
        "<p>How much the squared error of recent rows would grow if the values of one feature were "
        f"permuted{'; the mean over targets' if evaluation.targets else ''}.</p>\n"
        f"{charts(made)}"
    )


def importance_chart(shares: Mapping[str, float]) -> str:
    """Return the chart of the importance of features."""
    height = max(1.3, 0.55 + 0.2 * min(len(shares), MOST_BARS + 1))
    title = "Permutation feature importance"
    return chart("importances", title, plot.importances, shares, height=height)


def render_rejected(evaluation: Evaluation) -> str | None:
    """Return which rows were rejected, and why; None if there are none."""
    rejected = evaluation.rejected
    if rejected.count == 0:
        return None
    rows = [
        (text(reason), count(rows), text(share(rows, rejected.count)))
        for reason, rows in rejected.reasons.items()
    ]
    heads = [Words("reason"), "rows", "share"]
    part = text(share(rejected.count, evaluation.rows_read))
    drawn = chart("rejected-rows", "Where in the stream", plot.rejected, evaluation)
    return (
        f"<p>{count(rejected.count)} of {count(evaluation.rows_read)} rows ({part}) were left out "
        f"and not learned.</p>\n{charts(drawn, scrolled(heads, rows))}"
    )


def render_settings(evaluation: Evaluation, model: Any, settings: Mapping[str, str]) -> str:
    """Return the parameters of the model and of the evaluation, and versions."""
    tree = readable_part(model)
    parameters = {} if tree is None else tree.parameters
    own = {
        "weights": f"{number(evaluation.fade, None)} to the power of age, {half_life(evaluation.fade)}",
        "window": f"{count(evaluation.window_rows)} rows",
        **{name: value for name, value in settings.items() if name not in parameters},
    }
    return settings_of(evaluation, parameters, own)


def settings_of(evaluation: Any, parameters: Mapping[Any, Any], settings: Mapping[str, str]) -> str:
    """Return the parameters of a model, of numbers or of classes, those of a run, and versions."""
    versions = {name: metadata.version(name) for name in ("sapwood", "numpy", "matplotlib")}
    groups: dict[str, Mapping[Any, Any]] = {
        "Model": {
            "kind": model_name(evaluation.model),
            **{k: repr(v) for k, v in parameters.items()},
        },
        "Evaluation": {"stream": evaluation.stream, "target": evaluation.target, **settings},
        "Versions": {**versions, "Python": platform.python_version()},
    }
    return listed(groups)
