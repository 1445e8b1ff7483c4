"""Make the pictures of the pages: all but that of the packages from real runs.

``python docs/make_pictures.py`` writes them to docs/pictures, or to the folder that it is given.
The same release of matplotlib makes the same bytes.
"""

import csv
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from numpy.typing import NDArray

from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
    IntervalRegressor,
    QuantizerObserver,
    plot,
    streams,
)
from sapwood.drift import ChangeDetector
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags
from sapwood.merge import ShardLearner, apply, take_snapshot
from sapwood.plot.style import COLOURS, INK, MUTED, RULE, short
from sapwood.report.fan import Fan, fan_svg
from sapwood.tree import _search
from sapwood.tree._column_tables import SLOT_DOUBLES
from sapwood.tree.regressor import Leaf, Track

FloatArray = NDArray[np.float64]

BLUE, ORANGE, GREEN = COLOURS[:3]

FOLDER = Path(__file__).parent / "pictures"
WIDTH = 7.5  # inches, which are 720 pixels

LOOK: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "svg.fonttype": "path",  # letters look the same wherever the page is read
    "svg.hashsalt": "sapwood",
}
DOT: dict[str, Any] = {"color": "#9a9a9a", "s": 5, "linewidths": 0}
CUT: dict[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 1.2}

DEFAULTS = HoeffdingTreeRegressor().parameters


def main(folder: Path = FOLDER) -> None:
    """Make all pictures."""
    folder.mkdir(exist_ok=True)
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever the reader's own settings are
        mpl.rcParams.update(LOOK)
        for name, draw in PICTURES.items():
            draw().savefig(folder / f"{name}.svg", metadata={"Date": None})
    (folder / "forecast.svg").write_text(forecast(), encoding="utf-8")


def panels(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, Any]:
    """Return a figure of the usual width, and its axes."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def label(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Say what an axis shows."""
    ax.set(xlabel=x, ylabel=y, title=title)


def above(ax: Axes, columns: int) -> None:
    """Put the legend above the axis, where no line is."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=columns)


# -- the loop -------------------------------------------------------------------------------------


def loop() -> Figure:
    """Draw the error of a tree on the embedded stream, and the tree in the end."""
    stream = streams.demand(rows=40_000)
    model = HoeffdingTreeRegressor()
    evaluation = prequential(model, stream)
    figure, (curve, top) = panels(2, 1, 5.6, height_ratios=[1, 1])
    plot.learning_curve(evaluation, "mae", curve)
    for change, what in zip(
        stream.parameters["changes"], ("new tariff", "Oslo grows"), strict=True
    ):
        curve.axvline(change, color=MUTED, linestyle=":", linewidth=1.2)
        curve.annotate(f" {what}", (change, curve.get_ylim()[1]), va="top", size=8.5, color=INK)
    plot.tree(model, top, max_depth=2)
    return figure


# -- an observer ----------------------------------------------------------------------------------


def observer() -> Figure:
    """Draw the rows of a feature, the slots' means, the means beside each cut, and its merit."""
    rng = np.random.default_rng(1)
    temperature = rng.normal(10.0, 8.0, 5_000)
    demand = 300.0 + 9.0 * np.maximum(15.0 - temperature, 0.0) + rng.normal(0.0, 20.0, 5_000)
    watched = QuantizerObserver(slots=64)
    watched.update_many(temperature, demand)
    thresholds, _ = watched.candidates()
    best = watched.best_split()
    assert best is not None
    slot = np.searchsorted(thresholds, temperature, side="right")
    weight = np.bincount(slot)
    total = np.bincount(slot, demand)
    left = np.cumsum(total)[:-1] / np.cumsum(weight)[:-1]
    right = (np.cumsum(total[::-1]) / np.cumsum(weight[::-1]))[::-1][1:]

    figure, (rows, merit) = panels(2, 1, 6.0, sharex=True)
    rows.scatter(temperature[:500], demand[:500], **DOT, label="some of the rows")
    edges = [temperature.min(), *thresholds, temperature.max()]
    means = total / weight
    rows.stairs(means, edges, baseline=None, color=INK, linewidth=1.4, label="mean of a bin")
    rows.plot(thresholds, left, color=BLUE, label="mean left of a split point")
    rows.plot(thresholds, right, color=GREEN, linestyle="-.", label="mean right of it")
    rows.axvline(best.threshold, **CUT)
    label(rows, "", "demand (kWh)")
    above(rows, 4)
    plot.observer(watched, merit)
    merit.set_xlabel("temperature (°C)")
    return figure


# -- when to split --------------------------------------------------------------------------------


def bound() -> Figure:
    """Draw how the bound shrinks until it is below the lead of the best feature, or below tau."""
    rng = np.random.default_rng(1)
    X = rng.random((2_000, 3))
    noise = rng.normal(0.0, 3.0, 2_000)
    unlike = np.where(X[:, 0] < 0.5, 0.0, 10.0) + np.where(X[:, 1] < 0.1, 0.0, 16.8) + noise
    twins = X[:, [0, 0, 2]]
    alike = np.where(X[:, 0] < 0.5, 0.0, 10.0) + noise
    figure, axes = panels(1, 2, 3.3, sharey=True)
    for ax, rows, y, title in zip(
        axes, (X, twins), (unlike, alike), ("two good features", "two copies of one"), strict=True
    ):
        after = draw_attempts(ax, rows, y)
        label(ax, "rows of the leaf", "", f"{title}: splits after {after:,.0f} rows")
    axes[0].set_ylabel("lead, and Hoeffding bound")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=5)
    return figure


def draw_attempts(ax: Axes, X: FloatArray, y: FloatArray) -> float:
    """Draw the lead in a leaf that may not split, and the attempts of one that may.

    Returns after how many rows it did.
    """
    weights, leads = zip(*leads_of(X, y), strict=True)
    attempts = attempts_of(X, y)
    n = np.linspace(20, weights[-1], 500)
    ax.plot(weights, leads, color=BLUE, label="lead: 1 − second / best")
    ax.plot(n, bound_of(n), color=ORANGE, linestyle="--", label="Hoeffding bound ε")
    ax.axhline(DEFAULTS["tau"], color=MUTED, linestyle=":", linewidth=1.2, label="tau")
    height = bound_of(attempts)
    ax.plot(attempts[:-1], height[:-1], "o", color=INK, fillstyle="none", label="failed attempt")
    ax.plot(attempts[-1], height[-1], "D", color=INK, linestyle="none", label="splits")
    ax.set(xlim=(0, None), ylim=(0, 0.32))
    ax.xaxis.set_major_formatter(lambda value, _: short(value))
    return float(attempts[-1])


def bound_of(n: FloatArray) -> FloatArray:
    """Return the Hoeffding bound after n rows."""
    return np.sqrt(math.log(1 / DEFAULTS["delta"]) / (2 * n))


def leads_of(X: FloatArray, y: FloatArray) -> Iterator[tuple[int, float]]:
    """Yield the rows of a leaf so far, and by how much its best feature leads."""
    tree = HoeffdingTreeRegressor(leaf="mean", max_depth=0)
    for end in range(20, len(y) + 1, 20):
        tree.learn_many(X[end - 20 : end], y[end - 20 : end])
        if end > 20:
            best, second, *_ = _search.best_cuts(tree._kernel, 0, DEFAULTS["min_share"])[0]
            yield end, 1.0 - second / best


def attempts_of(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return after which rows a leaf tried to split; the last time it did."""
    tree = HoeffdingTreeRegressor(leaf="mean")
    attempts = []
    for row, target in enumerate(y.tolist()):
        due = tree._kernel.leaf_table["due"][0]
        tree.learn_one(dict(enumerate(X[row].tolist())), target)
        if row + 1 >= max(due, DEFAULTS["grace_period"]):
            attempts.append(row + 1)
        if tree.n_leaves > 1:
            break
    return np.array(attempts, dtype=np.float64)


# -- what splits explain --------------------------------------------------------------------------


def residual() -> Figure:
    """Draw a leaf whose line fits y but for a bend, its residual, and what cuts leave of both."""
    rng = np.random.default_rng(1)
    x = rng.random(1_000)
    y = 10.0 * x - 8.0 * np.maximum(x - 0.6, 0.0) + rng.normal(0.0, 0.5, 1_000)
    leaf = HoeffdingTreeRegressor(max_depth=0, track=None)
    leaf.learn_many({"x": x}, y)
    edges, (weight, target, left_over) = slots_of(leaf)
    record = leaf._kernel.leaf_table[0]
    n, target_m2, residual_m2 = (record[name] for name in ("weight", "target_m2", "residual_m2"))
    variances = np.array([target_m2, residual_m2, residual_m2]) / n
    remains = variances - cuts_of(weight, target, left_over)
    cut, _ = np.unravel_index(np.nanargmin(remains), remains.shape)

    figure, (top, middle, bottom) = panels(3, 1, 6.6, sharex=True, height_ratios=[4, 3, 4])
    top.scatter(x[:500], y[:500], **DOT, label="some of the rows")
    ends = np.array([0.0, 1.0])
    top.plot(ends, leaf.predict_many({"x": ends}), color=BLUE, label="the leaf's line")
    label(top, "", "y")
    above(top, 2)
    seen = weight > 0
    middle.bar(
        (edges[:-1] + np.diff(edges) / 2)[seen],
        left_over[seen] / weight[seen],
        0.9 * np.diff(edges)[seen],
        color=BLUE,
    )
    middle.axhline(0.0, color=INK, linewidth=0.8)
    label(middle, "", "mean residual\nof a bin")
    looks = (("target", ORANGE, "-"), ("step", GREEN, "--"), ("line", BLUE, "-."))
    for (name, colour, dash), heights in zip(looks, remains.T, strict=True):
        best = np.nanargmin(heights)
        bottom.plot(edges[1:-1], heights, color=colour, linestyle=dash, label=name)
        bottom.plot(edges[1 + best], heights[best], "D", color=colour, markersize=5)
    for ax in (top, middle, bottom):
        ax.axvline(edges[1 + cut], **CUT)
    bottom.set(yscale="log", yticks=[0.3, 1, 3], yticklabels=["0.3", "1", "3"], xlim=(-0.03, 1.03))
    bottom.minorticks_off()
    label(bottom, "x, and split point", "variance left\n(squared units of y)")
    above(bottom, 3)
    return figure


def slots_of(tree: HoeffdingTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Return the borders of the slots of a tree's only leaf and feature, and their sums.

    These are the weight, the sum of y and the sum of the residual.
    """
    kernel = tree._kernel
    page = kernel.watch_pages[0]
    low, width = page[:2]  # of the grid of the first feature
    start = kernel.slot_start(0)
    slots = page[start : start + SLOT_DOUBLES * kernel.slots].reshape(-1, SLOT_DOUBLES)
    return low + width * np.arange(kernel.slots + 1), slots.T


def cuts_of(weight: FloatArray, target: FloatArray, residual: FloatArray) -> FloatArray:
    """Return the merit of each cut between slots by each measure; NaN where it is none."""
    place = np.arange(len(weight))
    n = weight.sum()

    def difference(sums: FloatArray, left: slice, right: slice) -> float:
        means = [sums[side].sum() / weight[side].sum() for side in (left, right)]
        return float(weight[left].sum() * weight[right].sum() / n**2 * (means[0] - means[1]) ** 2)

    def slope(side: slice) -> float:
        w, p, r = weight[side], place[side], residual[side]
        mean = (w @ p) / w.sum()
        spread = w @ (p - mean) ** 2
        return float((r @ (p - mean)) ** 2 / spread) if spread > 0 else 0.0

    merits = np.full((len(weight) - 1, 3), np.nan)
    for cut in range(1, len(weight)):
        left, right = slice(0, cut), slice(cut, None)
        least = min(weight[left].sum(), weight[right].sum())
        if least < DEFAULTS["min_share"] * n or not weight[cut - 1]:
            continue
        step = difference(residual, left, right)
        bend = (slope(left) + slope(right) - slope(slice(None))) / n
        merits[cut - 1] = difference(target, left, right), step, step + bend
    return merits


# -- leaves, tracking, memory ---------------------------------------------------------------------


def leaves() -> Figure:
    """Draw what trees of both kinds of leaves predict of a function of one feature."""
    rng = np.random.default_rng(1)
    x = rng.random(10_000)
    y = np.sin(6.0 * x) + rng.normal(0.0, 0.2, 10_000)
    grid = np.linspace(0.0, 1.0, 1_001)
    looks: dict[Leaf, tuple[str, str]] = {"mean": (ORANGE, "-"), "adaptive": (BLUE, "--")}
    figure, axes = panels(1, 2, 3.4, sharey=True)
    for ax, rows in zip(axes, (1_000, 10_000), strict=True):
        ax.scatter(x[:300], y[:300], **DOT)
        ax.plot(grid, np.sin(6.0 * grid), color=INK, linestyle=":", linewidth=1.6, label="truth")
        for leaf, (colour, dash) in looks.items():
            tree = HoeffdingTreeRegressor(leaf=leaf, track=None)
            tree.learn_many({"x": x[:rows]}, y[:rows])
            name = f'"{leaf}", {tree.n_leaves} leaves'
            ax.plot(grid, tree.predict_many({"x": grid}), dash, color=colour, label=name)
        label(ax, "x", "", f"after {rows:,} rows")
        ax.legend(loc="lower left")
    axes[0].set_ylabel("y")
    return figure


def tracking() -> Figure:
    """Draw the error around a shift of the level, with tracking and without."""
    shift, rows, window = 8_000, 10_000, 25
    (X, y), shown = friedman(rows), slice(shift - 300, shift + 1_200)
    y += np.where(np.arange(rows) < shift, 0.0, 8.0)
    figure, (level, error) = panels(2, 1, 4.8, sharex=True, height_ratios=[2, 3])
    place = np.arange(rows)
    level.scatter(place[shown][::3], y[shown][::3], **DOT)
    label(level, "", "y")
    looks: dict[Track, tuple[str, str]] = {None: (ORANGE, "--"), "auto": (BLUE, "-")}
    for track, (colour, dash) in looks.items():
        tree = HoeffdingTreeRegressor(track=track)
        errors = np.abs(tree.predict_learn_many(X, y) - y)
        recent = np.convolve(errors, np.full(window, 1 / window))[:rows]
        error.plot(place[shown], recent[shown], dash, color=colour, label=f"track={track!r}")
    label(error, "row", f"mean absolute error\nof the last {window} rows")
    error.set_ylim(0, None)
    error.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    error.legend()
    return figure


def late() -> Figure:
    """Draw R² by how late labels are."""
    delays, rows = (1, 3, 8, 24, 72, 168, 500), 20_000
    figure, axes = panels(1, 1, 3.1, squeeze=False)
    ax = axes[0, 0]
    looks: dict[Track, tuple[str, str]] = {None: (ORANGE, "--"), "auto": (BLUE, "-")}
    for track, (colour, dash) in looks.items():
        found = [
            prequential(
                HoeffdingTreeRegressor(track=track), streams.demand(rows=rows), delay=delay
            ).total.r2
            for delay in delays
        ]
        ax.plot(delays, found, dash, marker="o", color=colour, label=f"track={track!r}")
    label(ax, "delay of labels (rows)", "R²")
    ax.set_xscale("log")
    ax.set_xticks(delays, map(str, delays))
    ax.minorticks_off()
    ax.legend()
    return figure


def following() -> Figure:
    """Draw the errors of all models around an abrupt change, and of a forest that begins there."""
    change, rows, window = 12_000, 20_000, 300
    still, y = friedman(rows)
    others = [*list(still)[5:], *list(still)[:5]]
    X = {
        name: np.concatenate([still[name][:change], still[other][change:]])
        for name, other in zip(still, others, strict=True)
    }
    figure, axes = panels(1, 1, 3.4, squeeze=False)
    ax, place, shown = axes[0, 0], np.arange(rows), slice(change - 2_000, rows, 20)
    later = {name: values[change:] for name, values in X.items()}
    looks: dict[str, tuple[Any, str, str]] = {
        "tree": (HoeffdingTreeRegressor(), ORANGE, "--"),
        "adaptive tree": (AdaptiveTreeRegressor(), GREEN, "-."),
        "forest": (ForestRegressor(), BLUE, "-"),
    }
    for name, (model, colour, dash) in looks.items():
        errors = np.abs(model.predict_learn_many(X, y) - y)
        recent = np.convolve(errors, np.full(window, 1 / window))[:rows]
        ax.plot(place[shown], recent[shown], dash, color=colour, label=name)
    errors = np.abs(ForestRegressor().predict_learn_many(later, y[change:]) - y[change:])
    recent = np.convolve(errors, np.full(window, 1 / window))[window : len(errors) : 20]
    begun = change + window + 20 * np.arange(len(recent))
    ax.plot(begun, recent, ":", color=INK, label="a forest that starts at the change")
    label(ax, "row", f"mean absolute error\nof the last {window} rows")
    ax.set_ylim(0, None)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.legend()
    return figure


def members() -> Figure:
    """Draw how the members of a forest go on over a stream that changes twice."""
    found = prequential(ForestRegressor(), streams.generator("friedman-gra:rows=20000"))
    figure, axes = panels(1, 2, 3.0)
    plot.member_errors(found, axes[0])
    plot.member_ages(found, axes[1])
    return figure


def friedman(rows: int) -> tuple[dict[str, Any], FloatArray]:
    """Return the columns and targets of the stream of that name."""
    chunks = list(streams.friedman(rows=rows).chunks(most_rows=rows))
    names = chunks[0].columns
    X = {name: np.concatenate([chunk.columns[name] for chunk in chunks]) for name in names}
    return X, np.concatenate([chunk.y for chunk in chunks if chunk.y is not None])


def memory() -> Figure:
    """Draw leaves and memory of a tree that may grow as it likes, and of one that may not."""
    figure, axes = panels(1, 2, 3.1)
    looks = ((None, ORANGE, "--"), (400_000, BLUE, "-"))
    for limit, colour, dash in looks:
        evaluation = prequential(HoeffdingTreeRegressor(max_bytes=limit), streams.friedman())
        told = "None" if limit is None else f"{limit:_}"
        name = f"max_bytes={told}, R² {evaluation.total.r2:.3f}"
        for ax, draw in zip(axes, (plot.leaves, plot.memory), strict=True):
            draw(evaluation, ax).get_lines()[-1].set(color=colour, linestyle=dash, label=name)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


PACKAGES: dict[str, tuple[float, float, str]] = {
    "cli, serve, river, sklearn": (0, 4, "interfaces for people and programs"),
    "streams": (0, 3, "files, pipes, generators: chunks of rows"),
    "evaluate": (1, 3, "prequential evaluation; scores; checkpoints"),
    "report, plot": (2, 3, "HTML reports and charts"),
    "model, regressor": (1, 2, "the model protocol; entry points"),
    "rows": (0, 2, "the encoder: names, kinds, categories"),
    "storage": (2, 2, "model files; atomic writes"),
    "ensemble": (0, 1, "forest, adaptive tree: several kernels"),
    "tree": (1, 1, "kernel, growth, memory: flat tables"),
    "inspect, export": (2, 1, "text, SVG, explanation; ONNX"),
    "corrector": (0, 0, "error correction; pending predictions"),
    "observers, moments": (1, 0, "split points; weight, mean, M2"),
    "intervals, drift, lags": (1, 4, "stages around any model"),
}
WAYS = (
    ("cli, serve, river, sklearn", "streams"),
    ("streams", "evaluate"),
    ("evaluate", "report, plot"),
    ("evaluate", "model, regressor"),
    ("intervals, drift, lags", "evaluate"),
    ("model, regressor", "rows"),
    ("model, regressor", "storage"),
    ("model, regressor", "tree"),
    ("rows", "ensemble"),
    ("ensemble", "tree"),
    ("tree", "inspect, export"),
    ("tree", "observers, moments"),
    ("ensemble", "corrector"),
)


def packages() -> Figure:
    """Draw the packages, and which calls which."""
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set(xlim=(-0.5, 2.5), ylim=(-0.45, 4.45))
    for start, end in WAYS:
        (x0, y0, _), (x1, y1, _) = PACKAGES[start], PACKAGES[end]
        sideways = 0.44 * np.sign(x1 - x0)
        down = 0.24 * np.sign(y1 - y0)
        arrow = {"arrowstyle": "->", "color": MUTED, "linewidth": 1.0}
        ax.annotate("", (x1 - sideways, y1 - down), (x0 + sideways, y0 + down), arrowprops=arrow)
    for name, (x, y, what) in PACKAGES.items():
        box = FancyBboxPatch(
            (x - 0.44, y - 0.22), 0.88, 0.44, "round,pad=0,rounding_size=0.05", mutation_aspect=1.0
        )
        box.set(facecolor="white", edgecolor=BLUE, linewidth=1.0)
        ax.add_patch(box)
        ax.text(x, y + 0.06, name, ha="center", va="center", color=INK, weight="bold")
        ax.text(x, y - 0.1, what, ha="center", va="center", color=MUTED, size=7.0)
    return figure


# -- bounds and changes ---------------------------------------------------------------------------


def bounds() -> Figure:
    """Draw bounds where noise differs, and how often they hold when it grows."""
    rng, rows, shift = np.random.default_rng(1), 20_000, 10_000
    x = rng.random(rows)
    y = np.sin(6.0 * x) + rng.normal(0.0, 0.1 + 0.5 * (x > 0.6), rows)
    model = IntervalRegressor(HoeffdingTreeRegressor(track=None), levels=(0.5, 0.9))
    model.learn_many({"x": x}, y)
    grid = np.linspace(0.0, 1.0, 501)
    figure, (where, when) = panels(1, 2, 3.2)
    where.scatter(x[:400], y[:400], **DOT)
    where.plot(grid, model.predict_many({"x": grid}), color=BLUE)
    for level, alpha in ((0.9, 0.18), (0.5, 0.25)):
        low, high = model.predict_interval_many({"x": grid}, level).T
        where.fill_between(grid, low, high, color=BLUE, alpha=alpha, linewidth=0, label=f"{level}")
    label(where, "x", "y", "intervals where noise differs")
    where.legend(loc="lower left")
    y[shift:] += rng.normal(0.0, 0.8, rows - shift)
    model = IntervalRegressor(HoeffdingTreeRegressor(track=None), levels=(0.9,))
    predictions, told = model.predict_learn_intervals({"x": x}, y)
    squares = np.cumsum((y - predictions) ** 2)
    reach = 1.645 * np.sqrt(np.append(np.nan, squares[:-1] / np.arange(1, rows)))
    held = {
        "Sapwood": ((told[:, 0, 0] <= y) & (y <= told[:, 0, 1]), BLUE, "-"),
        "normal, all errors so far": (np.abs(y - predictions) <= reach, ORANGE, "--"),
    }
    for name, (inside, colour, dash) in held.items():
        share = np.convolve(inside[20:], np.full(500, 1 / 500), "valid")
        when.plot(np.arange(len(share)) + 520, share, dash, color=colour, label=name)
    when.axhline(0.9, color=MUTED, linestyle=":")
    label(when, "row", "coverage of 500 rows\nat nominal level 0.9", "noise grows at row 10,000")
    when.xaxis.set_major_formatter(lambda value, _: short(value))
    when.legend(loc="lower left")
    return figure


def evidence() -> Figure:
    """Draw errors that grow, and the evidence for it, up to the alarm."""
    shift, rows, shown = 8_000, 9_000, slice(7_700, 8_400)
    rng = np.random.default_rng(3)
    sizes = np.abs(rng.normal(size=rows) * np.where(np.arange(rows) < shift, 1.0, 1.5))
    detector, told = ChangeDetector(1_000_000, "up"), np.empty(rows)
    for row, size in enumerate(sizes.tolist()):
        told[row] = 1.0 if detector.update(size) else detector.evidence
    figure, (size_axis, evidence_axis) = panels(2, 1, 4.2, sharex=True, height_ratios=[2, 3])
    place = np.arange(1, rows + 1)
    size_axis.scatter(place[shown], sizes[shown], **DOT)
    label(size_axis, "", "size of\nthe error")
    evidence_axis.semilogy(place[shown], told[shown], color=BLUE)
    evidence_axis.axhline(1.0, color=MUTED, linestyle=":")
    change = detector.last
    assert change is not None
    for ax in (size_axis, evidence_axis):
        ax.axvline(shift + 1, color=INK, linestyle=":", linewidth=1.2)
        ax.axvline(change.since, color=ORANGE, linestyle="--", linewidth=1.2)
    evidence_axis.text(change.since + 6, 2e-6, f"alert: since row {change.since:,}", color=ORANGE)
    label(evidence_axis, "row", "statistic; 1 is an alert")
    evidence_axis.set_ylim(1e-7, 4.0)
    evidence_axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


# -- a round ---------------------------------------------------------------------------------------


STEPS = {
    "snapshot": (0.0, 0.5, "the tree without\nits bins"),
    "shard 0": (1.0, 1.0, "learns its rows,\ndoes not grow"),
    "shard 1": (1.0, 0.5, "learns its rows,\ndoes not grow"),
    "shard k": (1.0, 0.0, "learns its rows,\ndoes not grow"),
    "sum of deltas": (2.0, 0.5, "in any order\nand grouping"),
    "tree": (3.0, 0.5, "takes them in;\nleaves due split"),
}
"""What happens in a round: where it is drawn, and what it does."""


def hybrid() -> Figure:
    """Draw a fitted LightGBM model that meets a drift: alone, refitted, and corrected online."""
    import lightgbm

    day, history, rows = 500, 4000, 12_000
    (columns, y), names = friedman(history + rows), [f"x{place}" for place in range(10)]
    X = np.column_stack([columns[name] for name in names])
    turned = X.copy()
    turned[history + rows // 2 :, :5] = X[history + rows // 2 :, 5:]  # other features matter
    turned[history + rows // 2 :, 5:] = X[history + rows // 2 :, :5]
    own = {"verbose": -1, "num_threads": 1, "deterministic": True, "force_row_wise": True}

    def fitted(stop: int) -> Any:
        data = lightgbm.Dataset(turned[:stop], y[:stop], params=own, feature_name=names)
        return lightgbm.train(own, data, 100)

    frozen, found = fitted(history), dict[str, FloatArray]()
    stream, labels = turned[history:], y[history:]
    found["fitted once"] = frozen.predict(stream)
    found["refitted daily"] = np.concatenate(
        [fitted(history + s).predict(stream[s : s + day]) for s in range(0, rows, day)]
    )
    named = dict(zip(names, stream.T.copy(), strict=True))
    corrected = HybridRegressor(ForestRegressor(threads=1), frozen, refit=None)
    found["fitted once, corrected online"] = corrected.predict_learn_many(named, labels)
    refitted = HybridRegressor(ForestRegressor(threads=1))
    refitted.learn_many(dict(zip(names, turned[:history].T.copy(), strict=True)), y[:history])
    found["hybrid, refitted"] = refitted.predict_learn_many(named, labels)
    figure, (ax, right) = panels(1, 2, 2.9)
    for (name, predictions), colour in zip(
        found.items(), (MUTED, ORANGE, GREEN, BLUE), strict=True
    ):
        squares = np.cumsum((predictions - labels) ** 2)
        rmse = np.sqrt((squares[day:] - squares[:-day]) / day)
        ax.plot(
            np.arange(day, rows)[::25] / day, rmse[::25], color=colour, label=name, linewidth=1.3
        )
    label(ax, "days of 500 rows", "RMSE of the last 500 rows")
    ax.set_ylim(0)
    above(ax, 2)
    known = corrected.weight_history
    for name, colour in (("batch", MUTED), ("corrector", GREEN), ("online", BLUE)):
        shown = {"batch": "fitted model", "online": "forest"}.get(name, name)
        right.plot(known["row"] / day, known[name], color=colour, label=shown, linewidth=1.3)
    label(right, "days of 500 rows", "weight when corrected online")
    right.set_ylim(-0.02, 1.02)
    above(right, 3)
    return figure


def turn() -> Figure:
    """Draw a round, and how the trees of rounds do beside a serial one."""
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    top, below = figure.subplots(2, 1, height_ratios=[3, 4])
    top.set(xlim=(-0.5, 3.5), ylim=(-0.3, 1.3))
    top.axis("off")
    shards = [name for name in STEPS if name.startswith("shard")]
    ways = [("snapshot", each) for each in shards] + [(each, "sum of deltas") for each in shards]
    for start, end in [*ways, ("sum of deltas", "tree")]:
        (x0, y0, _), (x1, y1, _) = STEPS[start], STEPS[end]
        arrow = {"arrowstyle": "->", "color": MUTED, "linewidth": 1.0}
        top.annotate("", (x1 - 0.37, y1), (x0 + 0.37, y0), arrowprops=arrow)
    for name, (x, y, what) in STEPS.items():
        top.text(x, y + 0.1, name, ha="center", va="center", color=INK, weight="bold")
        top.text(x, y - 0.07, what, ha="center", va="center", color=MUTED, size=7.5)
    rows, serial, merged = by_rounds(80_000, workers=8)
    below.plot(rows, serial, "o-", color=BLUE, markersize=3, label="one process")
    below.plot(rows, merged, "s--", color=ORANGE, markersize=3, label="rounds of 8 workers")
    label(below, "rows learned, at the end of each round", "R² on 5,000 later rows")
    below.xaxis.set_major_formatter(lambda value, _: short(value))
    below.legend(loc="lower right")
    below.spines[["top", "right"]].set_visible(False)
    return figure


def by_rounds(rows: int, workers: int) -> tuple[list[int], list[float], list[float]]:
    """Return the rows after each round, and R² of a serial tree and of one that merges."""
    columns, y = friedman(rows + 5_000)
    later = {name: values[rows:] for name, values in columns.items()}
    serial, merged = (HoeffdingTreeRegressor(track=None) for _ in range(2))
    ends, scores = [20_000], list[list[float]]()
    while True:
        start, end = ([0, *ends])[-2:]
        part = {name: values[start:end] for name, values in columns.items()}
        serial.learn_many(part, y[start:end])
        if start == 0:
            merged.learn_many(part, y[:end])
        else:
            edges = np.linspace(0, end - start, workers + 1).astype(int)
            snapshot, deltas = take_snapshot(merged), []
            for shard in range(workers):
                own = slice(edges[shard], edges[shard + 1])
                learner = ShardLearner(snapshot, shard)
                cut = {name: values[own] for name, values in part.items()}
                learner.predict_learn_many(cut, y[start:end][own])
                deltas.append(learner.delta())
            apply(merged, functools.reduce(operator.add, deltas))
        errors = [y[rows:] - tree.predict_many(later) for tree in (serial, merged)]
        scores.append([1.0 - float(np.mean(e**2) / y[rows:].var()) for e in errors])
        if end >= rows:
            return ends, [one for one, _ in scores], [other for _, other in scores]
        ends.append(min(rows, end + max(2_000, end // 10)))


# -- bins -----------------------------------------------------------------------------------------


def bins() -> Figure:
    """Draw what more bins bring: `python -m benchmarks bins` has measured it."""
    with (FOLDER.parent / "benchmarks" / "results" / "bins.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "tree"]
    figure, (left, right) = panels(1, 2, 2.6)
    for name in dict.fromkeys(row["stream"] for row in rows):
        own = [row for row in rows if row["stream"] == name]
        sizes = [int(row["bins"]) for row in own]
        usual = next(row for row in own if row["bins"] == "32")
        gains = [float(row["r2"]) - float(usual["r2"]) for row in own]
        left.plot(sizes, gains, marker="o", markersize=3, linewidth=1, label=name)
        costs = [float(row["megabytes"]) / float(usual["megabytes"]) for row in own]
        right.plot(sizes, costs, marker="o", markersize=3, linewidth=1)
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_xticks([8, 16, 32, 64], ["8", "16", "32", "64"])
    label(left, "bins of a feature in a leaf", "R², minus that of 32 bins")
    label(right, "bins of a feature in a leaf", "relative memory")
    figure.legend(loc="outside upper left", ncols=4)
    return figure


# -- forecasts ------------------------------------------------------------------------------------


def forecast() -> str:
    """Draw the next two days of a series, as ``sapwood forecast --picture`` does."""
    rng = np.random.default_rng(1)
    hours = np.arange(120.0 * 24)
    weekend = hours // 24 % 7 >= 5
    y = 50 + np.where(weekend, 15, 40) * np.sin(hours * np.pi / 12) + rng.normal(0, 3, len(hours))
    times = np.datetime64("2026-03-02T00") + hours.astype("timedelta64[h]")
    inner = IntervalRegressor(ForestRegressor(members=3, threads=1), [0.9])
    model = LaggedModel(inner, Lags(["24h", "168h"], time="at", horizon="24h"))
    run = prequential(model, ({"at": times, "hour": hours % 24}, y), delay=24)
    ahead = times[-1] + np.arange(1, 49).astype("timedelta64[h]")
    path = model.forecast_path({"at": ahead, "hour": (hours[-1] + 1 + np.arange(48)) % 24}, True)
    labels = [str(at).replace("T", " ") for at in ahead]
    return fan_svg([Fan(f"Forecast of {run.target}", labels, path.predictions, path.bounds)], [0.9])


PICTURES: dict[str, Callable[[], Figure]] = {
    "packages": packages,
    "loop": loop,
    "observer": observer,
    "bound": bound,
    "residual": residual,
    "leaves": leaves,
    "tracking": tracking,
    "late": late,
    "following": following,
    "members": members,
    "memory": memory,
    "bounds": bounds,
    "evidence": evidence,
    "hybrid": hybrid,
    "round": turn,
    "bins": bins,
}

if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
