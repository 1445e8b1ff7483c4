"""Charts of a hybrid: the weights and errors of its members over time."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sapwood.plot.style import BLUE, GREEN, MUTED, ORANGE, axis, label_axes, legend, note

__all__ = ["hybrid_errors", "hybrid_weights"]

COLOURS = {"online": BLUE, "corrector": GREEN, "batch": ORANGE}


def hybrid_weights(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the weights of the online model, the corrector and the batch model over time.

    Parameters
    ----------
    model : HybridRegressor
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    """
    ax = axis(ax)
    label_axes(ax, "rows", "weight")
    history = model.weight_history
    if not len(history["row"]):
        note(ax, "fewer than 200 rows")
        return ax
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
    return ax


def hybrid_errors(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the recent errors of the online model, the batch model and the hybrid over time.

    Parameters
    ----------
    model : HybridRegressor
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    """
    ax = axis(ax)
    label_axes(ax, "rows", "recent RMSE")
    history = model.weight_history
    lines = {
        "online_rmse": ("online", BLUE),
        "batch_rmse": ("batch", ORANGE),
        "rmse": ("hybrid", GREEN),
    }
    known = np.isfinite(history["rmse"])
    if not known.any():
        note(ax, "no prediction was scored yet")
        return ax
    handles, names = [], []
    for column, (name, colour) in lines.items():
        handles += ax.plot(
            history["row"][known], history[column][known], color=colour, linewidth=1.4
        )
        names.append(name)
    legend(ax, handles, names)
    return ax
