"""Charts of a hybrid: the weights and errors of its members over time."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sapwood.plot.chart import EmptyChartError, chart
from sapwood.plot.style import BLUE, GREEN, MUTED, ORANGE, label_axes, legend

__all__ = ["hybrid_errors", "hybrid_weights"]

COLOURS = {"online": BLUE, "corrector": GREEN, "batch": ORANGE}


@chart
def hybrid_weights(model: Any, ax: Axes) -> None:
    """Draw the weights of the online model, the corrector and the batch model over time."""
    label_axes(ax, "rows", "weight")
    history = model.weight_history
    if not len(history["row"]):
        raise EmptyChartError("fewer than 200 rows")
    handles = []
    for name, colour in COLOURS.items():
        handles += ax.plot(history["row"], history[name], color=colour, linewidth=1.4, label=name)
    marks = None
    for refit in model.refits:
        marks = ax.axvline(refit.used_from, color=MUTED, linewidth=0.4, alpha=0.6, zorder=0)
    names = [*COLOURS]
    if marks is not None:
        handles, names = [*handles, marks], [*names, "refit used"]
    ax.set_ylim(-0.02, 1.02)
    legend(ax, handles, names)


@chart
def hybrid_errors(model: Any, ax: Axes) -> None:
    """Draw the recent errors of the online model, the batch model and the hybrid over time."""
    label_axes(ax, "rows", "recent RMSE")
    history = model.weight_history
    lines = {"online_rmse": BLUE, "batch_rmse": ORANGE, "rmse": GREEN}
    known = np.isfinite(history["rmse"])
    if not known.any():
        raise EmptyChartError("no prediction was scored yet")
    rows, handles = history["row"][known], []
    for column, colour in lines.items():
        handles += ax.plot(rows, history[column][known], color=colour, linewidth=1.4)
    legend(ax, handles, ["online", "batch", "hybrid"])
