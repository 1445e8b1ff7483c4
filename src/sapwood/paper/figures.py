"""The paper's figures in its arrangement, and the one that it lacks: regret against bytes."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sapwood.paper.observers import EXHAUSTIVE
from sapwood.paper.published import RANKS
from sapwood.paper.statistics import METRICS, Comparison, Metric
from sapwood.paper.style import SETTINGS, Look, figure, looks_of
from sapwood.plot.ranks import ranks

__all__ = ["draw_differences", "draw_metrics", "draw_ranks", "draw_regret"]

TARGET_NAMES = {"lin": "linear target", "cub": "cubic target"}

SMALLEST_REGRET = 1e-6
"""Below it the axis is linear, so that a regret of 0 has its place."""


def draw_metrics(averages: pd.DataFrame, observers: Sequence[str]) -> Figure:
    """Draw the paper's figure of average results: each metric by sample size, for each target."""
    looks = looks_of(observers)
    with mpl.rc_context(SETTINGS):
        drawn = figure(9.0, 11.0)
        panels = drawn.subplots(len(METRICS), len(TARGET_NAMES), sharex=True, squeeze=False)
        for row, metric in zip(panels, METRICS, strict=True):
            for axes, (target, title) in zip(row, TARGET_NAMES.items(), strict=True):
                chosen = averages[averages["target"] == target]
                means = chosen.groupby(["n", "observer"])[metric.column].mean().unstack()
                _draw_lines(axes, metric, means[list(observers)], looks)
                axes.set_title(f"{metric.label}, {title}", fontsize=10)
        for axes in panels[-1]:
            axes.set_xlabel("sample size")
        handles, labels = panels[0][0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=len(observers))
    return drawn


def _draw_lines(axes: Axes, metric: Metric, means: pd.DataFrame, looks: dict[str, Look]) -> None:
    """Draw a line for each observer; where lines coincide their markers alternate."""
    for place, (name, look) in enumerate(looks.items()):
        axes.plot(
            means.index,
            means[name],
            label=name,
            color=look.colour,
            linestyle=look.dash,
            marker=look.marker,
            markersize=5,
            markevery=(place % 3, 3) if metric.column == "merit" and len(means) > 9 else None,
            linewidth=1.4,
        )
    axes.set_xscale("log")
    axes.set_ylabel(metric.axis)
    if metric.column == "merit":
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")


def draw_differences(averages: pd.DataFrame, observers: Sequence[str]) -> Figure:
    """Draw the box plots of how far split points lie from E-BST's, cell by cell."""
    looks = looks_of(observers)
    shown = [name for name in observers if name != EXHAUSTIVE]
    with mpl.rc_context(SETTINGS):
        drawn = figure(9.0, 0.45 * len(shown) + 1.6)
        panels = drawn.subplots(1, len(TARGET_NAMES), sharey=True)
        for axes, (target, title) in zip(panels, TARGET_NAMES.items(), strict=True):
            chosen = averages[averages["target"] == target]
            groups = [
                chosen.loc[chosen["observer"] == name, "split_difference"].dropna().to_numpy()
                for name in shown
            ]
            boxes = axes.boxplot(
                groups,
                orientation="horizontal",
                patch_artist=True,
                manage_ticks=False,
                widths=0.6,
                medianprops={"color": "black", "linewidth": 1.6},
                flierprops={"marker": ".", "markersize": 3, "alpha": 0.5},
            )
            for box, name in zip(boxes["boxes"], shown, strict=True):
                box.set(facecolor=looks[name].colour, alpha=0.6, hatch=looks[name].hatch)
            axes.set_xscale("symlog", linthresh=1e-3, linscale=0.6)
            axes.set_xticks([-1, -1e-1, -1e-2, -1e-3, 0, 1e-3, 1e-2, 1e-1, 1])
            axes.set_xticklabels(["−1", "−.1", "−.01", "−.001", "0", ".001", ".01", ".1", "1"])
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("split point − that of E-BST, average over the runs")
        panels[0].set_yticks(range(1, len(shown) + 1), shown)
        panels[0].invert_yaxis()
    return drawn


def draw_ranks(comparisons: Sequence[Comparison], observers: Sequence[str]) -> Figure:
    """Draw a critical-difference diagram for each metric, with the paper's ranks and ours."""
    looks = looks_of(observers)
    with mpl.rc_context({**SETTINGS, "axes.grid": False, "axes.spines.top": True}):
        drawn = figure(9.0, 6.4)
        panels = drawn.subplots(2, 2).ravel()
        for axes, comparison in zip(panels, comparisons, strict=True):
            _draw_diagram(axes, comparison, looks)
    return drawn


def _draw_diagram(axes: Axes, comparison: Comparison, looks: dict[str, Look]) -> None:
    names = list(comparison.ranks.index)
    colours = {name: looks[name].colour for name in names}
    ranks(comparison.ranking, axes, title=comparison.metric.label, colours=colours)
    published = RANKS[comparison.metric.column]
    if set(names) == set(published):
        axes.scatter(
            list(published.values()),
            [0.0] * len(published),
            marker="o",
            s=42,
            facecolors="none",
            edgecolors="#555555",
            zorder=5,
            clip_on=False,
            label="the paper's ranks",
        )
        axes.legend(loc="lower center", fontsize=8, bbox_to_anchor=(0.5, -0.12))


def draw_regret(with_regret: pd.DataFrame, observers: Sequence[str]) -> Figure:
    """Draw the share of E-BST's merit that is lost against the bytes that it takes."""
    looks = looks_of(observers)
    with mpl.rc_context(SETTINGS):
        drawn = figure(9.0, 4.8)
        axes = drawn.subplots()
        grouped = with_regret.groupby(["observer", "n"])[["bytes", "regret"]].mean()
        for name, look in looks.items():
            points = grouped.loc[name]
            axes.plot(
                points["bytes"],
                points["regret"],
                color=look.colour,
                linestyle=look.dash,
                linewidth=0.9,
                marker=look.marker,
                markersize=5,
                alpha=0.7,
                label=name,
            )
            largest = points.iloc[-1]
            axes.scatter(
                largest["bytes"],
                largest["regret"],
                s=110,
                marker=look.marker,
                color=look.colour,
                edgecolors="black",
                zorder=4,
            )
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=SMALLEST_REGRET)
        axes.set_yticks([0, *10.0 ** np.arange(-6, 0)])
        axes.set_yticklabels(["0", "0.0001 %", "0.001 %", "0.01 %", "0.1 %", "1 %", "10 %"])
        axes.set_ylim(bottom=-SMALLEST_REGRET)
        axes.set_xlabel("bytes, a point for each sample size; the largest has the large mark")
        axes.set_ylabel("regret of the merit, mean over the cells")
        axes.legend(loc="upper right", ncols=2)
    return drawn
