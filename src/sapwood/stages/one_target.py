"""A stage of one target, around a model of Sapwood of one target."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.regressor import Regressor
from sapwood.rows import targets
from sapwood.stages.stage import RowStage, passed_on

__all__ = ["OneTargetStage", "checked_model", "labels_of"]

FloatArray = NDArray[np.float64]


class OneTargetStage(RowStage):
    """A stage around a model of one target."""

    parameters = passed_on("The arguments that make an empty model like the one inside.")
    features = passed_on("The names of the features, in the order of their first appearance.")
    feature_kinds = passed_on("What each feature is.")
    feature_importances = passed_on("The share of each feature; sums to 1.")
    n_leaves = passed_on("The number of leaves of the model.")


def checked_model(model: Any, outside: str) -> Regressor:
    """Return a model that such a stage can be put around.

    Parameters
    ----------
    model : object
        What was given.
    outside : str
        What lags and prediction intervals are to be put around instead.

    Raises
    ------
    ValueError
        If it is no tree or forest.
    """
    if not isinstance(model, Regressor):
        raise ValueError(
            f"model = {type(model).__name__}: a tree or forest of Sapwood is expected; put lags "
            f"and prediction intervals around {outside}"
        )
    return model


def labels_of(y: Any, reason: str) -> FloatArray:
    """Return the labels of one target.

    Parameters
    ----------
    y : array_like of float
        What was given.
    reason : str
        Why there is only one, and what to do.

    Raises
    ------
    ValueError
        If there are several targets.
    """
    read = targets.read(y)
    if read.values.ndim > 1 and read.values.shape[1] > 1:
        raise ValueError(f"y has several targets: {reason}")
    return np.array(read.values, np.float64).reshape(-1)
