"""Pictures of models: feature importance, the contents of an observer, and the top of a tree."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Patch
from numpy.typing import NDArray

from sapwood.formatting import number, plain
from sapwood.inspect import draw
from sapwood.inspect.view import TreePicture, check_limits
from sapwood.inspect.view import feature_importances as importances_of
from sapwood.model import Readable, readable_part
from sapwood.observers import _merit, packing
from sapwood.observers.base import TableObserver
from sapwood.observers.protocol import Observer
from sapwood.plot.style import (
    BLUE,
    INK,
    LETTERS,
    MUTED,
    ORANGE,
    axis,
    label_axes,
    legend,
    note,
    right_axis,
)
from sapwood.validation import shown

__all__ = ["importances", "observer", "picture_of", "tree"]

FloatArray = NDArray[np.float64]

MOST_BARS = 12  # features that get a bar of their own
MOST_SLOTS = 160  # of an observer; more are drawn together


def importances(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the permutation feature importance of a model: each feature's share of the whole.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, or mapping of names to shares
        A tree, or importances of any other origin.
    ax : matplotlib.axes.Axes, optional
        Where to draw. The most important features get a bar each, the others one together.

    Examples
    --------
    >>> ax = importances({"temp": 0.75, "city": 0.25})
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['temp', 'city']
    """
    shares = _shares(model)
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    names = [plain(name, 24) for name, _ in ranked[:MOST_BARS]]
    values = [share for _, share in ranked[:MOST_BARS]]
    if rest := ranked[MOST_BARS:]:
        names.append(f"{len(rest)} others")
        values.append(sum(share for _, share in rest))
    ax = axis(ax, height=max(1.6, 0.6 + 0.22 * len(names)))
    ax.set_xlabel("permutation importance, share (%)")
    if not any(values):
        note(ax, "the tree has not split yet")
        ax.set_yticks([])
        return ax
    places = range(len(names))
    percents = [100 * value for value in values]
    ax.barh(places, percents, color=BLUE, height=0.66)
    for place, percent in zip(places, percents, strict=True):
        ax.annotate(
            f"{percent:.1f}",
            (percent, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center_baseline",
            color=INK,
            size=LETTERS - 0.5,
        )
    ax.set_yticks(places, names, parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(0, 1.12 * max(percents))
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    return ax


def _shares(model: Any) -> dict[str, float]:
    picture = picture_of(model)
    if picture is not None:
        return importances_of(picture)
    if not isinstance(model, Mapping):
        raise TypeError(
            f"model = {shown(model)}: a HoeffdingTreeRegressor is expected, or a mapping of names "
            "of features to shares"
        )
    for name, share in model.items():
        if not (isinstance(share, Real) and 0 <= float(share) < math.inf):
            raise ValueError(f"share of {name!r} = {shown(share)}: a number from 0 on is expected")
    return {str(name): float(share) for name, share in model.items()}


def picture_of(model: Any) -> TreePicture | None:
    """Return the inside of a tree, and None of any other model."""
    if isinstance(model, TreePicture):
        return model
    found = getattr(readable_part(model), "_picture", None)
    return None if found is None else found()


def observer(watched: Observer, ax: Axes | None = None) -> Axes:
    """Draw an observer: its slots, and the merit of each split point between them.

    Parameters
    ----------
    watched : observer
        Any; of those that are not Sapwood's, only the merit is drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw. A bar is a slot, as high as the weight of its rows and as dark as their mean
        y is large; an axis at the right is for the merit.

    Examples
    --------
    >>> from sapwood import QuantizerObserver
    >>> seen = QuantizerObserver()
    >>> seen.update_many([1, 2, 3, 4, 5, 6], [10, 10, 10, 50, 50, 50])
    >>> observer(seen).get_xlabel()
    'x'
    """
    if not isinstance(watched, Observer):
        raise TypeError(f"watched = {shown(watched)}: an observer is expected")
    ax = axis(ax)
    label_axes(ax, "x", "weight of a slot's rows")
    thresholds, merits = watched.candidates()
    handles: list[Artist] = []
    labels: list[str] = []
    if isinstance(watched, TableObserver) and len(watched):
        handles, labels = _draw_slots(ax, watched, thresholds)
    ax.set_ylim(bottom=0)
    best = watched.best_split()
    if best is None:
        note(ax, "nothing to split yet")
        return ax
    right = right_axis(ax)
    label_axes(right, "", "merit (variance removed)")
    marker = "." if len(thresholds) <= 60 else ""
    handles += right.plot(thresholds, merits, color=ORANGE, linewidth=1.6, marker=marker)
    handles.append(right.axvline(best.threshold, color=INK, linestyle="--", linewidth=1.2))
    right.plot([best.threshold], [best.merit], color=INK, marker="D", markersize=5)
    right.set_ylim(0, 1.08 * best.merit or 1.0)
    labels += ["merit of a split point", f"best: {number(best.threshold, 5)}"]
    legend(ax, handles, labels)
    return ax


def _draw_slots(
    ax: Axes, watched: TableObserver, thresholds: FloatArray
) -> tuple[list[Artist], list[str]]:
    """Draw the slots as bars, shaded by the mean of y if there is one y."""
    _, table, order = watched._tables()
    x = table[order, packing.PROTOTYPE]
    edges = _edges(x, thresholds)
    starts = np.arange(len(order))
    if len(order) > MOST_SLOTS:
        edges = np.linspace(edges[0], edges[-1], MOST_SLOTS + 1)
        starts = np.searchsorted(x, edges[:-1])
    parts = np.split(order, starts[1:])
    moments = [_merit.totals(table, part)[0] if len(part) else None for part in parts]
    weights = [0.0 if each is None else each.n for each in moments]
    bars = ax.bar(
        edges[:-1],
        weights,
        np.diff(edges),
        align="edge",
        color="#cccccc",
        edgecolor=MUTED,
        linewidth=0.4,
    )
    if watched.targets > 1:
        return [Patch(facecolor="#cccccc", edgecolor=MUTED)], ["slot"]
    means = [each.mean for each in moments if each is not None]
    low, high = min(means), max(means)
    for bar, each in zip(bars, moments, strict=True):
        bar.set_facecolor("none" if each is None else draw.colour(each.mean, low, high))
    ends = [(low, draw.colour(low, low, high))]
    if low < high:
        ends.append((high, draw.colour(high, low, high)))
    swatches: list[Artist] = [Patch(facecolor=fill, edgecolor=MUTED) for _, fill in ends]
    return swatches, [f"slot, mean y {number(mean, 3)}" for mean, _ in ends]


def _edges(x: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Return where slots begin and end; of the first and the last, only the inner border is known.

    They are drawn as wide as the others usually are.
    """
    if len(x) == 1:
        return np.array([x[0] - 0.5, x[0] + 0.5])
    usual = float(np.median(np.diff(thresholds))) if len(thresholds) > 1 else x[1] - x[0]
    first, last = min(x[0], thresholds[0] - usual), max(x[-1], thresholds[-1] + usual)
    return np.concatenate([[first], thresholds, [last]])


def tree(
    model: Readable | TreePicture,
    ax: Axes | None = None,
    max_depth: int = 3,
    *,
    digits: int = 4,
) -> Axes:
    """Draw the top of a tree.

    Parameters
    ----------
    model : HoeffdingTreeRegressor
        The tree.
    ax : matplotlib.axes.Axes, optional
        Where to draw; the letters are made to fit it as it is now.
    max_depth : int
        Nodes at this depth are shown without the nodes below them; the root has depth 0. For a
        whole tree, `HoeffdingTreeRegressor.draw` is better.
    digits : int
        Significant digits of a number. Thresholds get two more.
    """
    picture = picture_of(model)
    if picture is None:
        raise TypeError(f"model = {shown(model)}: a HoeffdingTreeRegressor is expected")
    check_limits(max_depth, digits)
    boxes = draw.boxes_of(picture, max_depth, digits)
    layout = draw.layout_of(boxes, down=True)
    width, height = layout.width + 2 * draw.MARGIN, layout.height + 2 * draw.MARGIN
    ax = axis(ax, width / 96, height / 96)
    ax.set_axis_off()
    ax.set(xlim=(-draw.MARGIN, width - draw.MARGIN), ylim=(height - draw.MARGIN, -draw.MARGIN))
    ax.set_aspect("equal")
    space = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    scale = min(space.width / width, space.height / height) * 72
    below = picture.below
    means = [below.mean[box.node] for box in boxes if box.look != "split"]
    finite = list(filter(math.isfinite, means))
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    for place, box in enumerate(boxes):
        x, y, wide = layout.frames[place]
        if place:
            from_x, from_y, from_wide = layout.frames[box.parent]
            start = (from_x + from_wide / 2, from_y + draw.HEIGHT)
            thick = draw.thickness(picture, box.node)
            _connect(ax, start, (x + wide / 2, y), thick, scale)
        colour = draw.colour(below.mean[box.node], low, high)
        _draw_box(ax, box, (x, y, wide), "#ffffff" if box.look == "split" else colour, scale)
    return ax


def _draw_box(
    ax: Axes, box: draw.Box, frame: tuple[float, float, float], fill: str, scale: float
) -> None:
    """Draw a node with its two lines of text."""
    x, y, wide = frame
    ax.add_patch(
        FancyBboxPatch(
            (x, y),
            wide,
            draw.HEIGHT,
            boxstyle=f"round,pad=0,rounding_size={10 if box.look == 'split' else 2}",
            facecolor=fill,
            edgecolor=MUTED,
            linewidth=scale,
            linestyle="--" if box.look == "folded" else "-",
        )
    )
    for text, at, letters in ((box.title, 14, draw.LARGE), (box.detail, 30, draw.SMALL)):
        ax.text(
            x + wide / 2,
            y + at,
            text,
            ha="center",
            va="center",
            size=letters * scale * 0.9,  # matplotlib's own letters are wider
            color=draw.ink_on(fill),
            parse_math=False,
        )


def _connect(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], thick: float, scale: float
) -> None:
    """Draw the line from a box's parent to it, and its answer on the outer side."""
    ax.plot(
        *zip(start, end, strict=True),
        color="#9b9b9b",
        linewidth=thick * scale,
        solid_capstyle="butt",
        zorder=0,
    )
    left = end[0] < start[0]
    ax.text(
        end[0] + (-1 if left else 1) * (thick / 2 + 5),
        end[1] - 9,
        "yes" if left else "no",
        ha="right" if left else "left",
        va="center",
        size=draw.SMALL * scale * 0.9,
        color=MUTED,
    )
