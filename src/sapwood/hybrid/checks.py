"""What a hybrid rejects."""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.hybrid.members import FEATURE, StreamRows
from sapwood.regressor import Regressor
from sapwood.rows import targets
from sapwood.stages import Stage
from sapwood.tree._kernel import LARGEST_Y
from sapwood.validation import Label

__all__ = ["check_online", "check_rows", "checked_flag"]

FloatArray = NDArray[np.float64]

HEAVIEST = 1e50  # weight of a row


def check_online(online: Any) -> None:
    """Raise TypeError for an online model that a hybrid cannot have."""
    shown = f"online = {validation.shown(online)}"
    if hasattr(online, "predict_proba_one"):
        raise TypeError(
            f"{shown}: a hybrid predicts numbers, and this model predicts classes; give a regressor "
            "such as ForestRegressor(), or use the classifier without a hybrid"
        )
    if isinstance(online, Stage):
        raise TypeError(
            f"{shown}: the batch learner would not see what a {type(online).__name__} adds; put it "
            "around the hybrid"
        )
    if not isinstance(online, Regressor):
        raise TypeError(f"{shown}: a model of Sapwood is expected, such as ForestRegressor()")


def check_rows(
    rows: StreamRows, names: tuple[Label, ...], y: FloatArray, w: FloatArray, *, correct: bool
) -> None:
    """Raise ValueError for rows of which one may not be learned."""
    good = (np.abs(y) <= LARGEST_Y) | (np.isnan(y) if names else False)
    good = good.all(axis=1) & ~np.isnan(y).all(axis=1) & (w > 0) & (w <= HEAVIEST)
    if not good.all():
        bad = int(np.argmin(good))
        row = bad if rows.count > 1 else None
        _reject(names, y[bad].tolist(), float(w[bad]), row)
    if correct and rows.column(FEATURE) is not None:
        raise ValueError(f"the rows have a feature {FEATURE!r} already: rename it")


def _reject(names: tuple[Label, ...], y: list[float], w: float, row: int | None) -> NoReturn:
    """Raise the error for a row that may not be learned."""
    for name, value in zip(names, y, strict=False):
        if not (math.isnan(value) or abs(value) <= LARGEST_Y):
            validation.refuse_large_row(value, w, LARGEST_Y, row, targets.target_name(name))
    known = [value for value in y if not (names and math.isnan(value))]
    if not known:
        place = "" if row is None else f" at position {row}"
        raise ValueError(f"y{place} has no target that is not missing: {targets.MISSING}")
    validation.refuse_large_row(known[0], w, LARGEST_Y, row)


def checked_flag(value: Any, name: str) -> bool:
    """Return an argument that is True or False, or raise ValueError."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} = {validation.shown(value)}: True or False is expected")
    return bool(value)
