"""The report of an evaluation of classes: one page that needs nothing else."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sapwood.drift import DriftEvent
from sapwood.evaluate.class_scores import CLASS_METRICS
from sapwood.evaluate.classes import ClassEvaluation
from sapwood.model import readable_part
from sapwood.plot.style import BLUE, MUTED, ORANGE
from sapwood.report.charts import chart
from sapwood.report.html import (
    ABSENT,
    Words,
    charts,
    count,
    left_out,
    measured,
    megabytes,
    scrolled,
    table,
    text,
    tiles,
)
from sapwood.report.page import whole_page
from sapwood.report.rules import render_class_rules
from sapwood.report.sections import importance_chart, settings_of
from sapwood.report.titles import file_name, model_name
from sapwood.storage.atomic import StrPath, write_atomically

__all__ = ["render_classes", "write_class_report"]

MOST_EVENTS = 50
MOST_CLASSES = 30  # of a confusion matrix
TITLES = {
    "result": "Result",
    "confusion": "Confusion matrix",
    "reliability": "Reliability",
    "accuracy": "Accuracy over the stream",
    "drift": "Drift events",
    "importances": "Feature importance",
    "rules": "Rules",
    "settings": "Settings",
}


def write_class_report(
    path: StrPath,
    evaluation: ClassEvaluation,
    model: Any = None,
    *,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Write the report of an evaluation of classes: one HTML file that needs nothing else.

    - `path`: where to write; an old file is replaced at once.
    """
    page = render_classes(evaluation, model, settings=settings)
    write_atomically(path, page.encode())


def render_classes(
    evaluation: ClassEvaluation, model: Any = None, *, settings: Mapping[str, str] | None = None
) -> str:
    """Return what `write_class_report` would write; the same for the same evaluation."""
    made = {
        "result": _result(evaluation),
        "confusion": _confusion(evaluation),
        "reliability": _reliability(evaluation),
        "accuracy": _accuracy(evaluation),
        "drift": None if evaluation.drift_events is None else _drift(evaluation.drift_events),
        "importances": _importances(model),
        "rules": render_class_rules(model),
        "settings": _settings(evaluation, model, settings or {}),
    }
    headline = f"{text(model_name(evaluation.model))} on {text(file_name(evaluation.stream))}"
    rows = evaluation.scores.rows
    words = (
        f"Classes of <b>{text(evaluation.target)}</b>. "
        f"{count(rows)} rows were predicted, then learned."
    )
    parts = [(name, title, made[name]) for name, title in TITLES.items()]
    return whole_page("evaluation", headline, words, parts)


def _result(evaluation: ClassEvaluation) -> str:
    metrics = evaluation.scores.metrics()
    values = [
        ("Accuracy", _share(metrics["accuracy"]), "share of rows that were right"),
        ("Kappa", _share(metrics["kappa"]), "1 is perfect, 0 is chance"),
        ("Log-loss", _share(metrics["log_loss"]), "of the probabilities"),
        ("Rows", count(evaluation.read), "read"),
        ("Rejected", count(evaluation.rejected), "of them"),
        ("Classes", count(len(evaluation.scores.labels)), "seen"),
        ("Leaves", count(evaluation.leaves), "at the end"),
        ("Memory", megabytes(evaluation.nbytes), "at the end"),
    ]
    rows = [(text(title), _share(metrics[name])) for name, title in CLASS_METRICS.items()]
    for level, own in evaluation.sets.items():
        rows.append((f"coverage of prediction sets, level {level}", _share(own["coverage"])))
        rows.append((f"classes in a set, level {level}", f"{own['size']:.2f}"))
    heads = (Words("metric"), "all rows")
    became = [
        ("read", count(evaluation.read)),
        ("scored", count(evaluation.scores.rows)),
        ("rejected", count(evaluation.rejected)),
        ("without a label", count(evaluation.unlabelled)),
        ("pending", count(evaluation.pending)),
    ]
    counts = scrolled((Words("rows"), "count"), became)
    return (
        f'{tiles(values)}\n<div class="side-by-side">'
        f'<div class="wide scroll">{table(heads, rows, caption="Metrics and baselines")}</div>'
        f"{counts}</div>"
    )


def _share(value: float) -> str:
    """Return a score with four decimals, as the command line prints it."""
    return f"{value:.4f}" if math.isfinite(value) else ABSENT


def _drift(events: Sequence[DriftEvent]) -> str:
    """Return the last drift events, of features, of the frequency of classes and of the log-loss."""
    if not events:
        return "<p>The monitor detected no drift.</p>"
    heads = ("since row", "detected at", Words("severity"), Words("event"))
    rows = [
        (count(event.since), count(event.row), event.severity, text(event.words, 200))
        for event in events[-MOST_EVENTS:]
    ]
    hidden = f" The last {MOST_EVENTS} are listed." if len(events) > MOST_EVENTS else ""
    return f"<p>Drift events: {count(len(events))}.{hidden}</p>\n{table(heads, rows)}"


def _confusion(evaluation: ClassEvaluation) -> str:
    labels, matrix = evaluation.scores.labels, evaluation.scores.confusion
    if len(labels) > MOST_CLASSES:
        return left_out(f"there are {len(labels)} classes, and at most {MOST_CLASSES} are shown")
    heads = [Words("actual"), *(text(label) for label in labels)]
    totals = matrix.sum(axis=1)
    hits = np.diag(matrix) / np.maximum(totals, 1)
    rows = [
        (text(label), *(count(each) for each in own), _share(recall) if total else ABSENT)
        for label, own, recall, total in zip(labels, matrix.tolist(), hits, totals, strict=True)
    ]
    return scrolled([*heads, "recall"], rows, caption="Rows by actual and predicted class")


def _reliability(evaluation: ClassEvaluation) -> str:
    bins = evaluation.scores.bins
    known = bins[bins[:, 0] > 0]
    if not len(known):
        return left_out("no prediction was scored")
    confidence, right = known[:, 1] / known[:, 0], known[:, 2] / known[:, 0]

    def draw(ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1)
        ax.plot(confidence, right, color=BLUE, marker="o", markersize=4)
        ax.set_xlabel("probability of the predicted class")
        ax.set_ylabel("share that was right")

    rows = [
        (measured(c, 3), measured(r, 3), count(n))
        for c, r, n in zip(confidence, right, known[:, 0], strict=True)
    ]
    heads = ("probability", "share that was right", "rows")
    drawn = chart("reliability-curve", "Reliability diagram", draw)
    error = measured(evaluation.scores.metrics()["calibration_error"], 3)
    return (
        f"<p>Calibration error: {error}. Points on the diagonal are calibrated.</p>"
        f"{charts(drawn, scrolled(heads, rows))}"
    )


def _accuracy(evaluation: ClassEvaluation) -> str:
    curve = evaluation.scores.curve
    if len(curve) < 2:
        return left_out("there are too few rows for a curve")

    def draw(names: tuple[str, ...], ax: Axes) -> None:
        for name, colour in zip(names, (BLUE, ORANGE), strict=False):
            label = "last rows" if name == "accuracy_window" else "all rows"
            ax.plot(curve["row"], curve[name], color=colour, label=label)
        ax.set_xlabel("rows")
        if len(names) > 1:
            ax.legend(frameon=False)

    accuracy = partial(draw, ("accuracy", "accuracy_window"))
    return charts(
        chart("accuracy-curve", "Accuracy", accuracy),
        chart("log-loss-curve", "Log-loss", draw, ("log_loss",)),
    )


def _importances(model: Any) -> str:
    inside = readable_part(model)
    if inside is None or not inside.feature_importances:
        return left_out("no model was given")
    return importance_chart(inside.feature_importances)


def _settings(evaluation: ClassEvaluation, model: Any, settings: Mapping[str, str]) -> str:
    parameters = {} if model is None else model.parameters
    delay = "none" if evaluation.delay is None else f"{count(evaluation.delay)} rows"
    return settings_of(evaluation, parameters, {"delay": delay, **settings})
