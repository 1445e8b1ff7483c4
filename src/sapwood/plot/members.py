"""Pictures of the trees of an ensemble over a stream."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from sapwood.evaluate.result import Evaluation, MemberHistory
from sapwood.plot.chart import EmptyChartError, chart
from sapwood.plot.clock import along_of, places_of_rows, start_axis
from sapwood.plot.style import BLUE, GREEN, MUTED, ORANGE, label_axes, legend

__all__ = ["member_ages", "member_errors"]


@chart
def member_errors(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the errors of the members of an ensemble, and of their combined prediction.

    The model has to be a forest or an adaptive tree. Errors of several targets are in units of their
    standard deviations; there is no curve of the ensemble then.
    """
    curve = evaluation.curve  # of one target
    label_axes(ax, "rows", "recent RMSE" if len(curve) else "recent RMSE, standardized")
    history = evaluation.members
    if history is None:
        raise EmptyChartError("the model has no members")
    along = along_of(evaluation)
    x = places_of_rows(history.rows, evaluation, along)
    errors = np.where(np.isfinite(history.errors), history.errors, np.nan)
    each = ax.plot(x, errors[:, :-1], color=MUTED, linewidth=0.7, alpha=0.7, label="_")
    lines = ax.plot(x, errors[:, -1], color=ORANGE, linewidth=1.2, label="candidate")
    names, together = ["members", "candidate"], np.zeros(0)
    if len(curve):
        together = np.interp(history.rows, curve["row"], curve["faded_rmse"])
        lines += ax.plot(x, together, color=BLUE, linewidth=1.7, label="ensemble")
        names.append("ensemble")
    rows, places = _replaced(history)
    marks = ax.plot(
        x[rows],
        errors[rows, places],
        color=GREEN,
        linestyle="none",
        marker="v",
        markersize=4,
        label="_",
    )
    handles = [each[0], *lines]
    if len(rows):
        handles, names = [*handles, marks[0]], [*names, "replacement"]
    legend(ax, handles, names)
    start_axis(ax, along)
    # The first errors, of trees that have learned little, would hide the others.
    known = np.concatenate([errors[len(errors) // 10 :].ravel(), together[len(together) // 10 :]])
    known = known[np.isfinite(known)]
    ax.set_ylim(0, 1.1 * float(known.max()) if len(known) and known.max() > 0 else None)


@chart
def member_ages(evaluation: Evaluation, ax: Axes) -> None:
    """Draw the ages of the members of an ensemble; a line falls to 0 at a replacement."""
    label_axes(ax, "rows", "age in rows")
    history = evaluation.members
    if history is None:
        raise EmptyChartError("the model has no members")
    along = along_of(evaluation)
    x = places_of_rows(history.rows, evaluation, along)
    lines = ax.plot(x, history.ages[:, :-1], color=MUTED, linewidth=0.9, label="_")
    candidate = ax.plot(x, history.ages[:, -1], color=ORANGE, linewidth=1.2, label="candidate")
    legend(ax, [lines[0], *candidate], ["members", "candidate"])
    start_axis(ax, along)
    ax.set_ylim(bottom=0)


def _replaced(history: MemberHistory) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return at which moments another tree is in which place than at the moment before."""
    rows, places = np.nonzero(np.diff(history.born[:, :-1], axis=0))
    return rows + 1, places
