"""Tasks: the properties of a prediction problem that trees depend on.

A tree learns columns of numbers. The task defines their meaning: it states how y becomes columns,
in which unit the variances of columns are added up to the merit of a split, and whether a split
waits for the split bound of the parameters. Kernels read the code of the unit and the bound from the
rules of growth (`sapwood.tree.growth`), and depend on nothing else of a task. Another task is passed
to them by these rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLASSES", "ENTROPY", "GINI", "SQUARED_ERROR", "MeritUnit", "Task"]

FloatArray = NDArray[np.float64]


class MeritUnit(IntEnum):
    """In which unit the variance of one of several columns counts; the codes are those of kernels."""

    VARIANCE = 0  # that of the column over all rows
    ONE = 1
    GINI = 2  # merits are the reduction of Gini's impurity of classes,
    ENTROPY = 3  # or of their entropy in bits: the information gain


@dataclass(frozen=True, slots=True)
class Task:
    """What is predicted.

    - `name`: of the task.
    - `merit_unit`: in which unit the variances that a split explains of several columns are added
      up.
    - `waits_for_bound`: whether a split of several columns waits until the split bound of the
      parameters holds.
    - `columns`: returns the columns that trees learn, given y as numbers or codes and how many
      values it may have.
    """

    name: str
    merit_unit: MeritUnit
    waits_for_bound: bool
    columns: Callable[[NDArray[Any], int], FloatArray]


def _as_they_are(y: NDArray[Any], values: int) -> FloatArray:
    return np.asarray(y, dtype=np.float64)


def _indicators(codes: NDArray[Any], values: int) -> FloatArray:
    """Return a column for each class, 1 in its rows; of two classes that of the second alone."""
    if values < 3:
        return codes.astype(np.float64)
    found = np.zeros((len(codes), values))
    found[np.arange(len(codes)), codes] = 1.0
    return found


SQUARED_ERROR = Task("squared error", MeritUnit.VARIANCE, True, _as_they_are)
"""Numbers: targets count alike, whatever their units."""

CLASSES = Task("classes", MeritUnit.ONE, False, _indicators)
"""Classes: the variance explained over all indicators is the reduction of the Gini impurity."""

GINI = Task("classes by Gini's impurity", MeritUnit.GINI, True, _indicators)
ENTROPY = Task("classes by information gain", MeritUnit.ENTROPY, True, _indicators)
"""Classes whose trees grow as VFDT does."""
