"""The pictures of the page: SVG that takes its colours from it."""

import io
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.peers.contents import r2_text
from benchmarks.peers.findings import Findings
from benchmarks.peers.roster import OURS
from sapwood.evaluate.ranking import Ranking
from sapwood.plot.ranks import ranks
from sapwood.plot.style import BLUE, COLOURS, LETTERS, MUTED, ORANGE, axis, short
from sapwood.report.charts import inline
from sapwood.report.html import megabytes

__all__ = ["Picture", "pictures"]

SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "sapwood"}
LEAST_SHOWN = -0.25

FAMILIES = {
    OURS: BLUE,
    "river": ORANGE,
    "MOA": COLOURS[2],
    "LightGBM": COLOURS[3],
    "SGD": MUTED,
}
MARKERS = ("o", "s", "^", "D")


class Picture(NamedTuple):
    """A picture: what is above it, its SVG, and whether small screens have to scroll it."""

    title: str
    svg: str
    broad: bool = False


def pictures(found: Findings) -> dict[str, Picture]:
    """Return all pictures that the findings allow, by name.

    Parameters
    ----------
    found : Findings
        What was measured.
    """
    looks = _looks([who.name for who in found.entries])
    colours = {name: colour for name, (colour, _) in looks.items()}
    made = {
        "scatter": _picture(
            "scatter",
            "Speed and accuracy: the upper left corner is best",
            lambda ax: _scatter(ax, found, looks),
            4.6,
            4.0,
        ),
        "dots": _picture(
            "dots",
            "R² on all streams",
            lambda ax: _dots(ax, found, looks),
            7.0,
            1.1 + 0.24 * len(found.run.sizes),
        ),
        "growth-microseconds": _picture(
            "growth-microseconds",
            "µs a row after so many rows",
            lambda ax: _growth(ax, found, looks, "microseconds"),
            4.6,
            3.9,
        ),
        "growth-model_bytes": _picture(
            "growth-model_bytes",
            "What the model occupies after so many rows",
            lambda ax: _growth(ax, found, looks, "model_bytes"),
            4.6,
            3.9,
        ),
    }
    if found.real:
        made |= _rank_pictures(found, colours)
    return made


def _looks(names: list[str]) -> dict[str, tuple[str, str]]:
    """Give each learner the colour of its family, and a marker of its own within it."""
    looks: dict[str, tuple[str, str]] = {}
    used: dict[str, int] = {}
    for name in names:
        family = name.split(",")[0].split(" ")[0]
        place = used.get(family, 0)
        used[family] = place + 1
        looks[name] = (FAMILIES[family], MARKERS[place])
    return looks


def _picture(
    name: str, title: str, draw: Callable[[Axes], object], width: float, height: float
) -> Picture:
    with style.context(["default", SETTINGS]):
        ax = axis(None, width, height)
        draw(ax)
        buffer = io.BytesIO()
        figure = cast(Figure, ax.figure)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return Picture(title, inline(buffer.getvalue().decode(), name, title), broad=width > 5)


def _rank_pictures(found: Findings, colours: dict[str, str]) -> dict[str, Picture]:
    trees, compared = found.trees, found.compared
    rankings = {
        "ranks-trees": (
            "Average rank in R² among single online trees, defaults",
            found.ranking(found.scores(found.real, trees, "r2"), trees),
        ),
        "ranks-all": (
            "Average rank in R² among all learners, defaults",
            found.ranking(found.scores(found.real, compared, "r2"), compared),
        ),
        "ranks-grid": (
            "Average rank in R² among all learners, each with its best settings",
            found.ranking(found.grid_scores(compared), compared),
        ),
    }
    return {
        name: _picture(name, title, _ranks(ranking, colours), 7.0, 1.1 + 0.24 * len(ranking.models))
        for name, (title, ranking) in rankings.items()
        if ranking.tests is not None
    }


def _ranks(ranking: Ranking, colours: dict[str, str]) -> Callable[[Axes], object]:
    return lambda ax: ranks(ranking, ax, title="", colours=colours)


def _scatter(ax: Axes, found: Findings, looks: dict[str, tuple[str, str]]) -> None:
    """Draw the median R² over the real streams against the cost of a row."""
    for who in found.entries:
        name = who.same_as or who.name
        scores = [found.score(stream, name) for stream in found.real or found.generated]
        colour, marker = looks[who.name]
        ax.plot(
            found.cost(who.name, "microseconds"),
            float(np.median(np.nan_to_num(scores, nan=-math.inf))),
            linestyle="",
            color=colour,
            marker=marker,
            markersize=8,
            label=who.name,
        )
    ax.set_xscale("log")
    ax.set_xlabel("µs a row, predicted and learned")
    ax.set_ylabel("median R² of the real streams" if found.real else "median R²")
    _short_numbers(ax)
    _legend(ax)


def _dots(ax: Axes, found: Findings, looks: dict[str, tuple[str, str]]) -> None:
    """Draw a dot for each learner and stream; what is far below 0 is at the edge."""
    streams = list(found.run.sizes)
    for who in reversed(found.compared):
        scores = [found.score(stream, who.name) for stream in streams]
        shown = np.maximum(np.nan_to_num(scores, nan=LEAST_SHOWN), LEAST_SHOWN)
        colour, marker = looks[who.name]
        ours = who.name == OURS
        ax.plot(
            shown,
            range(len(streams)),
            linestyle="",
            color=colour,
            marker=marker,
            markersize=8 if ours else 5.5,
            alpha=1.0 if ours else 0.75,
            label=who.name,
        )
    ax.set_yticks(range(len(streams)), streams)
    ax.set_ylim(len(streams) - 0.5, -0.5)
    ax.set_xlim(LEAST_SHOWN - 0.03, 1.02)
    ax.set_xlabel(f"R² (what is below {r2_text(LEAST_SHOWN)} is drawn there)")
    _legend(ax, columns=4, reverse=True)


def _growth(ax: Axes, found: Findings, looks: dict[str, tuple[str, str]], measure: str) -> None:
    for who in found.entries:
        points = found.growth(who.name, measure)
        # A learner is as large by whatever entry its rows come.
        if points and not (measure == "model_bytes" and who.same_as):
            colour, marker = looks[who.name]
            ax.plot(
                *zip(*points, strict=True),
                color=colour,
                marker=marker,
                markersize=4.5,
                linewidth=1.3,
                label=who.name,
            )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rows")
    ax.set_ylabel("µs a row" if measure == "microseconds" else "bytes")
    _short_numbers(ax)
    if measure == "model_bytes":
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: megabytes(int(value))))
    _legend(ax)


def _short_numbers(ax: Axes) -> None:
    for along in (ax.xaxis, ax.yaxis):
        along.set_major_formatter(FuncFormatter(lambda value, _: short(round(value, 9))))
        along.set_minor_formatter(NullFormatter())


def _legend(ax: Axes, columns: int = 2, reverse: bool = False) -> None:
    handles, labels = ax.get_legend_handles_labels()
    if reverse:
        handles, labels = handles[::-1], labels[::-1]
    ax.legend(
        handles,
        labels,
        ncols=columns,
        frameon=False,
        fontsize=LETTERS - 0.5,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
        columnspacing=1.2,
    )
