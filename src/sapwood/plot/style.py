"""Style of the plots: colours that are distinguishable in print and for all eyes, plain axes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

__all__ = [
    "BLUE",
    "COLOURS",
    "GREEN",
    "INK",
    "LETTERS",
    "MUTED",
    "ORANGE",
    "PURPLE",
    "RULE",
    "SKY",
    "YELLOW",
    "Look",
    "axis",
    "fit",
    "label_axes",
    "legend",
    "looks_of",
    "note",
    "range_of",
    "right_axis",
    "short",
]

INK, MUTED, RULE = "#222222", "#767676", "#dddddd"

# Okabe and Ito's palette; a line also has a marker of its own.
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
PURPLE, YELLOW, SKY = "#cc79a7", "#e69f00", "#56b4e9"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY, INK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

LETTERS = 9.0  # points
HANDLE, SPACING = 2.0, 1.2  # of a legend, in letters
MARGIN = 50.0  # points at the left of a figure, for the numbers of an axis


class Look(NamedTuple):
    """How one of several things is drawn."""

    colour: str
    marker: str


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """Give every name a look of its own; from the eighth on, the marker alone differs.

    Examples
    --------
    >>> looks = looks_of([f"model {number}" for number in range(14)])
    >>> len(set(looks.values()))
    14
    """
    count = len(COLOURS)
    return {
        name: Look(COLOURS[place % count], MARKERS[(place + place // count) % count])
        for place, name in enumerate(names)
    }


def axis(ax: Axes | None, width: float = 4.6, height: float = 2.9) -> Axes:
    """Return an axis, or one of a new figure that is so many inches wide and high."""
    if ax is not None:
        return ax
    made: Axes = Figure(figsize=(width, height), layout="constrained").subplots()
    made.spines[["top", "right"]].set_visible(False)
    made.spines[["left", "bottom"]].set_color(MUTED)
    made.tick_params(colors=MUTED, labelsize=LETTERS - 0.5, labelcolor=INK)
    made.grid(color=RULE, linewidth=0.6)
    made.set_axisbelow(True)
    for label in (made.xaxis.label, made.yaxis.label):
        label.set(size=LETTERS, color=INK)
    return made


def right_axis(ax: Axes) -> Axes:
    """Return a second axis at the right, which looks like the first."""
    made = ax.twinx()
    made.spines["top"].set_visible(ax.spines["top"].get_visible())
    for side in ("left", "bottom", "right"):
        made.spines[side].set_color(ax.spines["left"].get_edgecolor())
    tick, label = ax.yaxis.get_major_ticks()[0], ax.yaxis.label
    made.tick_params(
        color=tick.tick1line.get_color(),
        labelsize=tick.label1.get_fontsize(),
        labelcolor=tick.label1.get_color(),
    )
    made.yaxis.label.set(size=label.get_fontsize(), color=label.get_color())
    made.grid(False)
    return made


def label_axes(ax: Axes, x: str, y: str) -> None:
    """Label the axes, with whole and short numbers at their ticks."""
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    for along in (ax.xaxis, ax.yaxis):
        along.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        along.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))


def range_of(*values: NDArray[np.float64], beyond: float = 0.1) -> tuple[float, float]:
    """Return the range of an axis that shows all values but a percentage at each end."""
    low, high = np.nanpercentile(np.concatenate(values), [beyond, 100 - beyond])
    spread = float(high - low) or abs(float(high)) or 1.0
    return float(low - 0.08 * spread), float(high + 0.08 * spread)


def fit(ax: Axes, *values: NDArray[np.float64], beyond: float = 0.1) -> None:
    """Let an axis show nearly all values, and begin and end with the curves."""
    ax.margins(x=0)
    ax.set_ylim(*range_of(*values, beyond=beyond))


def short(value: float) -> str:
    """Return a number as it stands at an axis.

    Examples
    --------
    >>> short(250), short(12500), short(-2e6), short(0.05), short(3e15)
    ('250', '12.5k', '−2M', '0.05', '3e+15')
    """
    sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    size, letter = next((pair for pair in sizes if pair[0] <= abs(value) < 1e12), (1.0, ""))
    return ("−" if value < 0 else "") + f"{abs(value) / size:.6g}{letter}"


def legend(ax: Axes, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Put a legend above the axis, in as many columns as the figure is wide enough for."""
    made = ax.legend(
        list(handles),
        list(labels),
        ncols=_columns(ax, labels),
        frameon=False,
        fontsize=LETTERS - 0.5,
        handlelength=HANDLE,
        columnspacing=SPACING,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
    )
    for text in made.get_texts():
        text.set_parse_math(False)


def _columns(ax: Axes, labels: Sequence[str]) -> int:
    """Return how many columns of a legend fit: a wider one would leave no place for the axis."""
    font = FontProperties(size=LETTERS - 0.5)
    widths = [text_to_path.get_text_width_height_descent(each, font, False)[0] for each in labels]
    figure = ax.get_figure(root=True)
    space = 72 * (4.6 if figure is None else figure.get_figwidth()) - MARGIN
    for columns in (2, 1) if len(labels) == 4 else (3, 2, 1):
        lines = -(-len(labels) // columns)
        parts = [widths[start : start + lines] for start in range(0, len(widths), lines)]
        own = (LETTERS - 0.5) * (HANDLE + 0.8)
        spaces = (LETTERS - 0.5) * SPACING * (len(parts) - 1)
        if sum(max(part) + own for part in parts) + spaces <= space:
            return columns
    return 1


def note(ax: Axes, words: str) -> None:
    """Write in the middle of an axis why it is empty."""
    ax.text(
        0.5,
        0.5,
        words,
        transform=ax.transAxes,
        ha="center",
        va="center",
        color=MUTED,
        size=LETTERS,
        parse_math=False,
    )
