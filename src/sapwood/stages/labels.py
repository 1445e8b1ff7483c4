"""Labels and predictions on their way through stages, with a column for each target."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.rows import targets
from sapwood.rows.targets import Targets
from sapwood.validation import Label

__all__ = ["checked_labels", "named", "plain_of", "row_of"]

FloatArray = NDArray[np.float64]


def checked_labels(
    y: Targets,
    w: ArrayLike | None,
    model: Any,
    *,
    several: bool,
    largest: float,
    heaviest: float,
) -> tuple[Targets, FloatArray]:
    """Return y, with names if there are several targets and a column for each, and weights.

    Parameters
    ----------
    y : Targets
        What was read.
    w : array_like, optional
        The weights; 1 by default.
    model : object
        The model inside.
    several : bool
        Whether it is known to have several targets.
    largest, heaviest : float
        The largest label and weight of a model of one target; several are checked by the model.

    Raises
    ------
    ValueError, OverflowError
        If the model cannot learn them.
    """
    can_learn_several = getattr(model, "several_targets", False)
    kind, values = type(model).__name__, y.values
    if values.ndim == 2 and not can_learn_several:
        raise ValueError(
            f"y has {values.shape[1]} columns and a {kind} learns one target: give one column, or a "
            "model of Sapwood"
        )
    names: tuple[Label, ...] = ()
    if values.ndim == 2 or several:
        known = tuple(model.targets)
        if not known and (lags := getattr(model, "lags", None)) is not None:
            known = tuple(lags.target)  # whose order is that of an array without names
        names, values = targets.fitting(y, known, False, kind)
    weights = validation.weights(w, len(values))
    if names:
        return Targets(names, values), weights
    good = (np.abs(values) <= largest) & (weights > 0) & (weights <= heaviest)
    if not good.all():
        bad = int(np.argmin(good))
        validation.refuse_large_row(values[bad], weights[bad], largest, bad)
    return Targets(None, values.reshape(-1, 1)), weights


def plain_of(y: Targets) -> Any:
    """Return labels as models take them: of one target, as a column without a name."""
    return y if y.names else np.ascontiguousarray(y.values[:, 0])


def named(names: tuple[Label, ...], results: Any) -> Any:
    """Return the results of targets by name; of one target, its result alone."""
    return dict(zip(names, results, strict=True)) if names else results[0]


def row_of(prediction: Any, targets: int) -> FloatArray:
    """Return the predictions of a row for each target; before the first row there is but one."""
    if isinstance(prediction, dict):
        return np.array([[*prediction.values()]])
    return np.array([[prediction] * targets], dtype=np.float64)
