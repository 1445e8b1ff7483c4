"""The part of the report about bounds around predictions."""

import math
from functools import partial
from typing import Any

import numpy as np

from sapwood import plot
from sapwood.evaluate.result import Evaluation
from sapwood.formatting import number
from sapwood.inspect.view import Limits, TreePicture, condition
from sapwood.plot.clock import Along, along_of, places_of
from sapwood.plot.model import picture_of
from sapwood.report.charts import chart, rounded, zoom_chart
from sapwood.report.html import Column, count, measured, share, table, text, told_alike
from sapwood.tree.layout import NUMBER

__all__ = ["render_bounds"]

MOST_REGIONS = 8
LETTERS = 160


def render_bounds(evaluation: Evaluation, model: Any) -> str | None:
    """Return how good bounds were, over the stream and by region; None if the model tells none."""
    intervals = evaluation.intervals
    if intervals is None:
        return None
    along = along_of(evaluation)
    is_time = along == "time"
    level = f"{max(intervals.levels):g}"
    every = "every row" if intervals.interval == 1 else f"one row in {count(intervals.interval)}"
    charts = [
        zoom_chart(
            "bounds-all",
            f"Bounds of {level} over the whole stream, {every}",
            partial(plot.bounds, evaluation),
            _curves(evaluation, along),
            "drag across the picture to zoom in",
        ),
        chart(
            "band",
            f"The last {count(min(150, len(intervals.recent)))} rows, bounds of {level}",
            partial(plot.band, evaluation),
        ),
        chart(
            "coverage",
            "Share within bounds, lately",
            partial(plot.coverage, evaluation),
            is_time=is_time,
        ),
    ]
    charts.append(_levels(evaluation))
    regions = _regions(model, evaluation.target)
    return "\n".join([f'<div class="charts">{"".join(charts)}</div>', *regions])


def _curves(evaluation: Evaluation, along: Along) -> dict[str, Any]:
    """Return the curves in full, for the page to draw."""
    assert evaluation.intervals is not None
    rows = evaluation.intervals.sample
    places = places_of(rows["row"], rows["time"], along)
    lines = [("came", "y", "orange"), ("lower", "lower", "blue"), ("upper", "upper", "green")]
    return {
        "time": along == "time",
        "x": [round(place, 6) for place in places.tolist()],
        "rows": rows["row"].tolist(),
        "lines": [
            {
                "name": name,
                "colour": f"var(--{colour})",
                "values": [rounded(value) for value in rows[field].tolist()],
            }
            for name, field, colour in lines
        ],
    }


def _levels(evaluation: Evaluation) -> str:
    assert evaluation.intervals is not None
    found = evaluation.intervals.levels
    measures = [
        ("total", "coverage"),
        ("faded", "coverage"),
        ("total", "width"),
        ("total", "score"),
    ]
    columns = [
        [f"{level:g}" for level in found],
        *(
            told_alike([getattr(getattr(each, over), name) for each in found.values()])
            for over, name in measures
        ),
    ]
    heads = ["asked for", "within", "faded", "width", "score"]
    caption = (
        "Share within bounds, mean width, interval score"
        "<small>width, and 2 / (1 − level) times how far beyond a target was</small>"
    )
    made = table([Column(name) for name in heads], zip(*columns, strict=True), caption=caption)
    return f'<div class="scroll">{made}</div>'


def _regions(model: Any, target: str) -> list[str]:
    """Return a table of where bounds are narrowest and widest, if the model has regions."""
    if not hasattr(model, "widths") or not hasattr(model, "region_tree"):
        return []
    widths, picture = model.widths, picture_of(model.region_tree)
    if picture is None or len(widths) < 2 or not np.isfinite(widths["width"]).all():
        return []
    order = np.argsort(widths["width"], kind="stable")
    half = MOST_REGIONS // 2
    places = order if len(order) <= MOST_REGIONS else np.append(order[:half], order[-half:])
    rows = widths[places]
    whole = float(widths["rows"].sum())
    columns = [
        [text(_where(picture, int(node)), LETTERS) for node in rows["region"]],
        [text(share(float(each), whole)) for each in rows["rows"]],
        told_alike(rows["width"].tolist()),
    ]
    heads = [Column("where", numbers=False), Column("rows"), Column("width")]
    level = max(model.levels)
    words = "where bounds are narrowest and widest" if len(order) > MOST_REGIONS else "by leaf"
    caption = (
        f"Width of bounds of {level:g} in units of {text(target)}, {words}"
        f"<small>from {measured(float(widths['width'].min()), 3)} to "
        f"{measured(float(widths['width'].max()), 3)} in {count(len(widths))} leaves</small>"
    )
    return [
        f'<div class="scroll">{table(heads, zip(*columns, strict=True), caption=caption)}</div>'
    ]


def _where(picture: TreePicture, node: int) -> str:
    """Return the conditions that lead to a node, those on the same number as one."""
    columns = picture.columns
    ranges: dict[str, list[float]] = {}
    sets: dict[str, str] = {}
    while (parent := columns["parent"][node]) >= 0:
        name = picture.names[columns["feature"][parent]]
        left = picture.is_left(node)
        if columns["kind"][parent] == NUMBER:
            low, high = ranges.setdefault(name, [-math.inf, math.inf])
            cut = columns["threshold"][parent]
            ranges[name] = [low, min(high, cut)] if left else [max(low, cut), high]
        else:
            told = condition(picture, node, Limits(4)).removesuffix(", unseen or missing")
            sets.setdefault(name, told)
        node = parent
    numbers = [
        f"{f'{number(low, 4)} ≤ ' if low > -math.inf else ''}{name}"
        f"{f' < {number(high, 4)}' if high < math.inf else ''}"
        if high < math.inf
        else f"{name} ≥ {number(low, 4)}"
        for name, (low, high) in ranges.items()
    ]
    return ", ".join([*sets.values(), *numbers])
