"""The part of the report about prediction intervals."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sapwood import plot
from sapwood.evaluate.result import Evaluation, Intervals
from sapwood.formatting import number
from sapwood.inspect.view import Limits, TreePicture, condition
from sapwood.plot.clock import along_of
from sapwood.plot.model import picture_of
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
from sapwood.tree.layout import NUMBER

__all__ = ["render_intervals", "render_target_intervals"]

MOST_REGIONS = 8
MOST_TARGETS = 16  # whose intervals are drawn
MOST_WIDTHS = 6  # targets whose widths are listed by region
LETTERS = 160


def render_intervals(evaluation: Evaluation, model: Any) -> str | None:
    """Return charts and scores of prediction intervals; None if the model has none."""
    intervals = evaluation.intervals
    if intervals is None:
        return None
    every = (
        "every row" if intervals.interval == 1 else f"one random row in {count(intervals.interval)}"
    )
    lines = [("actual", "y", "orange"), ("lower", "lower", "blue"), ("upper", "upper", "blue")]
    curves = curves_in_full(intervals.sample, along_of(evaluation), lines)
    whole = zoom_chart(
        "intervals-all",
        f"{_level(intervals)} prediction intervals over the whole stream, {every}",
        partial(plot.prediction_intervals, evaluation),
        {**curves, "band": [1, 2], "dots": [0]},
        "drag across the chart to zoom in",
    )
    last = chart("band", f"The last {_last(intervals)} rows", plot.band, evaluation)
    title = "Coverage, exponentially weighted"
    drawn = whole, last, chart("coverage", title, plot.coverage, evaluation)
    widths = getattr(model, "widths", None)
    regions = [] if widths is None else _regions(model, {evaluation.target: widths})
    return "\n".join([charts(*drawn, _levels({"": evaluation})), *regions])


def render_target_intervals(evaluation: Evaluation, model: Any) -> str | None:
    """Return the same of several targets; None if the model has no prediction intervals."""
    known = {name: own for name, own in evaluation.targets.items() if own.intervals is not None}
    if not known:
        return None
    drawn = []
    for place, (name, own) in enumerate([*known.items()][:MOST_TARGETS]):
        assert own.intervals is not None
        shown, level = text(name, 40), _level(own.intervals)
        title = f"{shown}: the last {_last(own.intervals)} rows, {level} prediction intervals"
        drawn.append(chart(f"band-of-target-{place}", title, plot.band, own))
        title = f"{shown}: coverage, exponentially weighted"
        drawn.append(chart(f"coverage-of-target-{place}", title, plot.coverage, own))
    rest = len(known) - MOST_TARGETS
    more = [f'<p class="quiet">And {rest} more targets.</p>'] if rest > 0 else []
    widths = {str(name): own for name, own in getattr(model, "widths", {}).items()}
    first = [name for name in known if name in widths][:MOST_WIDTHS]
    regions = _regions(model, {name: widths[name] for name in first})
    return "\n".join([_levels(known), charts(*drawn), *more, *regions])


def _level(intervals: Intervals) -> str:
    return f"{100 * max(intervals.levels):g} %"


def _last(intervals: Intervals) -> str:
    return count(min(150, len(intervals.recent)))


def _levels(evaluations: Mapping[str, Evaluation]) -> str:
    """Return a table of levels; by target, if they have names."""
    found = [
        (name, level, each)
        for name, own in evaluations.items()
        for level, each in ({} if own.intervals is None else own.intervals.levels).items()
    ]
    measures = [
        ("total", "coverage"),
        ("faded", "coverage"),
        ("total", "width"),
        ("total", "score"),
    ]
    columns = [
        [f"{level:g}" for _, level, _ in found],
        *(
            aligned_column([getattr(getattr(each, over), measure) for _, _, each in found])
            if "" in evaluations or measure == "coverage"
            else [measured(getattr(getattr(each, over), measure)) for _, _, each in found]
            for over, measure in measures
        ),
    ]
    heads = ["nominal level", "coverage", "exp. weighted", "width", "score"]
    if "" not in evaluations:
        columns.insert(0, [text(name, 40) for name, _, _ in found])
        heads.insert(0, Words("target"))
    caption = (
        "Coverage, mean width, interval score"
        "<small>score: width, plus 2 / (1 − level) times the distance of actual values outside</small>"
    )
    return scrolled(heads, zip(*columns, strict=True), caption=caption)


def _regions(model: Any, widths: Mapping[str, Any]) -> list[str]:
    """Return a table of where intervals are narrowest and widest, by target, if there are regions."""
    picture = picture_of(getattr(model, "region_tree", None))
    known = {name: own for name, own in widths.items() if np.isfinite(own["width"]).all()}
    if picture is None or not known:
        return []
    first = next(iter(known.values()))
    if len(first) < 2:
        return []
    order = np.argsort(first["width"], kind="stable")
    half = MOST_REGIONS // 2
    places = order if len(order) <= MOST_REGIONS else np.append(order[:half], order[-half:])
    columns = [
        [text(_where(picture, int(node)), LETTERS) for node in first["region"][places]],
        [text(share(float(each), float(first["rows"].sum()))) for each in first["rows"][places]],
        *(aligned_column(own["width"][places].tolist()) for own in known.values()),
    ]
    several = len(widths) > 1
    heads = [Words("region"), "rows"]
    heads += [f"width of {name}" if several else "width" for name in known]
    words = "the narrowest and the widest" if len(order) > MOST_REGIONS else "by leaf"
    if several:
        words += f", in the order of {text(next(iter(known)), 40)}"
    units = "each target" if several else text(next(iter(known)))
    spread = "; ".join(
        f"{f'{text(name, 40)} ' if several else ''}from "
        f"{measured(float(own['width'].min()), 3)} to {measured(float(own['width'].max()), 3)}"
        for name, own in known.items()
    )
    caption = (
        f"Mean width of {100 * max(model.levels):g} % prediction intervals in units of {units}, {words}"
        f"<small>{spread} in {count(len(first))} leaves</small>"
    )
    return [scrolled(heads, zip(*columns, strict=True), caption=caption)]


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
            threshold = columns["threshold"][parent]
            ranges[name] = [low, min(high, threshold)] if left else [max(low, threshold), high]
        else:
            words = condition(picture, node, Limits(4)).removesuffix(", unseen or missing")
            sets.setdefault(name, words)
        node = parent
    numbers = [
        f"{f'{number(low, 4)} ≤ ' if low > -math.inf else ''}{name}"
        f"{f' < {number(high, 4)}' if high < math.inf else ''}"
        if high < math.inf
        else f"{name} ≥ {number(low, 4)}"
        for name, (low, high) in ranges.items()
    ]
    return ", ".join([*sets.values(), *numbers])
