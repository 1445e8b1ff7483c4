"""River's trees as they are meant to be used: behind its scaler and, where need be, its imputer."""

from numbers import Number
from typing import Any

import numpy as np
from river import compose, preprocessing, stats
from river.linear_model import LinearRegression
from river.tree import HoeffdingAdaptiveTreeRegressor, HoeffdingTreeRegressor
from river.tree.splitter import QOSplitter

from benchmarks.data_sets import DataSet

__all__ = ["RIVERS_TREES", "quantizer_tree", "rivers_pipeline", "rivers_rows", "rivers_tree"]

RADIUS = 0.25
RIVERS_TREES: dict[str, tuple[type, dict[str, Any]]] = {
    "river": (HoeffdingTreeRegressor, {}),
    "river, QO 0.25": (HoeffdingTreeRegressor, {"splitter": QOSplitter(radius=RADIUS)}),
    "river, adaptive": (HoeffdingAdaptiveTreeRegressor, {"seed": 1}),
}


class NumbersOnly(LinearRegression):
    """River's linear model of a leaf, deaf to words.

    A pipeline of a selector and the model would not do: it takes no weights, so that the adaptive
    tree, which draws them, would repeat its steps instead, and become another learner.
    """

    def learn_one(self, x: dict[str, Any], y: float, w: float = 1.0) -> None:
        """Learn from the numbers of a row.

        Parameters
        ----------
        x : dict
            The row.
        y, w : float
            Its target and its weight.
        """
        super().learn_one(_numbers(x), y, w)

    def predict_one(self, x: dict[str, Any]) -> float:
        """Predict from the numbers of a row.

        Parameters
        ----------
        x : dict
            The row.
        """
        return super().predict_one(_numbers(x))


def _numbers(x: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in x.items() if isinstance(value, Number)}


def rivers_tree(name: str, data: DataSet) -> Any:
    """Return a pipeline of river's that ends in one of its trees.

    Parameters
    ----------
    name : str
        A key of `RIVERS_TREES`.
    data : DataSet
        What it will be given.
    """
    kind, options = RIVERS_TREES[name]
    return rivers_pipeline(kind, options, data)


def rivers_pipeline(
    kind: type, options: dict[str, Any], data: DataSet, linear: str = "leaf_model"
) -> Any:
    """Return a model of river's behind what it needs for some data.

    Numbers are scaled, missing ones replaced by the mean so far. Words go to a tree as they
    are, which takes them as nominal; but its linear leaves refuse them, and are given the numbers
    alone.

    Parameters
    ----------
    kind : type
        The class of the model.
    options : dict
        Its parameters.
    data : DataSet
        What it will be given.
    linear : str
        The parameter for the linear models inside it; empty for a model of numbers alone, for
        which each category becomes a 0 or 1.
    """
    words = [column for column, values in data.columns.items() if values.dtype == object]
    numbers = [column for column in data.columns if column not in words]
    scaled: Any = compose.Select(*numbers) | preprocessing.StandardScaler()
    if words:
        chosen: Any = compose.Select(*words)
        scaled += chosen if linear else chosen | preprocessing.OneHotEncoder()
        options = options | ({linear: NumbersOnly()} if linear else {})
    incomplete = [column for column in numbers if np.isnan(data.columns[column]).any()]
    if incomplete:
        scaled = preprocessing.StatImputer(*((c, stats.Mean()) for c in incomplete)) | scaled
    return scaled | kind(**options)


def rivers_rows(data: DataSet) -> list[dict[str, Any]]:
    """Return the rows for a pipeline of `rivers_tree`.

    Parameters
    ----------
    data : DataSet
        A missing word becomes the word "missing"; a missing number stays None.
    """
    words = [column for column, values in data.columns.items() if values.dtype == object]
    rows = data.dicts()
    for row in rows:
        for column in words:
            row[column] = row[column] or "missing"
    return rows


def quantizer_tree() -> Any:
    """Return river's tree with quantizer observers, alone."""
    return HoeffdingTreeRegressor(splitter=QOSplitter(radius=RADIUS))
