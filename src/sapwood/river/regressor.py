"""Our models as models of river."""

import sys
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from river import base
from river.utils import dataframe

from sapwood import validation
from sapwood.adapter_parameters import AdapterParameters, new_copy
from sapwood.ensemble.adaptive import AdaptiveTreeRegressor as AdaptiveTree
from sapwood.ensemble.forest import ForestRegressor as Forest
from sapwood.hybrid.adapting import new_hybrid
from sapwood.hybrid.regressor import HybridRegressor as Hybrid
from sapwood.tree import HoeffdingTreeRegressor as Tree

__all__ = [
    "AdaptiveTreeRegressor",
    "ForestRegressor",
    "HoeffdingTreeRegressor",
    "HybridRegressor",
    "ModelRegressor",
    "MultiTargetAdaptiveTreeRegressor",
    "MultiTargetForestRegressor",
    "MultiTargetTreeRegressor",
]

PLAIN_NAMES = frozenset({str, int})


class HoldsModel(AdapterParameters):
    """What holds a model of Sapwood.

    Attributes
    ----------
    model : Regressor
        The model of Sapwood, for example to inspect or save it.
    """

    _model_class: ClassVar[type[Any]]

    def _prepare(self) -> None:
        self.model = self._new_model()
        # A list, as river takes a tuple for a class with its parameters, and fails at an empty one.
        self.categorical: Iterable[Any] = list(self.categorical)
        self.no_splits: Iterable[Any] = list(self.no_splits)

    @property
    def _raw_memory_usage(self) -> int:
        """The bytes of the model and of this object; river's own walk counts arrays twice."""
        return sys.getsizeof(self) + sys.getsizeof(self.__dict__) + self.model.nbytes


class RiverRegressor(HoldsModel, base.MiniBatchRegressor):
    """A model of Sapwood as one of river."""

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features.
        y : float
            The target.
        w : float
            The weight of the row.
        """
        self.model.learn_one(_renamed(x), y, w)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict one row; 0.0 before anything was learned.

        Parameters
        ----------
        x : dict
            The features.
        """
        return self.model.predict_one(_renamed(x))

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn the rows of a frame: the same as `learn_one` in a loop, or nothing at all.

        Parameters
        ----------
        X : data frame of pandas, polars or pyarrow
            The features.
        y : series
            The targets, by position: an index is ignored.
        w : float or series
            The weight of the rows, or of each row.
        """
        weights = np.full(len(y), w) if np.ndim(w) == 0 else w
        self.model.learn_many(_renamed_columns(dataframe.into_frame(X)), y, weights)

    def predict_many(self, X: Any) -> Any:
        """Predict the rows of a frame.

        Parameters
        ----------
        X : data frame of pandas, polars or pyarrow
            The features.

        Returns
        -------
        series
            Of the same library as X, and with its index.
        """
        frame = dataframe.into_frame(X)
        predictions = self.model.predict_many(_renamed_columns(frame))
        return dataframe.to_native_series(predictions, name=None, like=frame)

    def debug_one(self, x: dict[Any, Any]) -> str:
        """Explain the prediction for a row as text.

        Parameters
        ----------
        x : dict
            The features.
        """
        return str(self.model.explain(_renamed(x)))


class HoeffdingTreeRegressor(RiverRegressor):
    """`sapwood.HoeffdingTreeRegressor` as a model of river, with the same parameters.

    It needs no scaler. Missing values are accepted. An infinite value, a y that is not finite, or a
    weight that is not positive raises an error before the model changes.

    Names of features are strings or whole numbers. A tuple of these, such as an n-gram of river's
    `BagOfWords`, is known to the tree by its `repr`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sapwood.river import HoeffdingTreeRegressor
    >>> model = HoeffdingTreeRegressor(grace_period=100)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.19...
    """

    _model_class: ClassVar[type[Any]] = Tree

    @property
    def tree(self) -> Tree:
        """The tree itself."""
        tree: Tree = self.model
        return tree


class RiverTargetsRegressor(HoldsModel, base.MultiTargetRegressor):
    """A model of Sapwood as one of river for several targets."""

    def learn_one(self, x: dict[Any, Any], y: dict[Any, Any], w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x, y : dict
            The features, and the targets.
        w : float
            The weight of the row.
        """
        self.model.learn_one(_renamed(x), y, w)

    def predict_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Predict one row; nothing before anything was learned.

        Parameters
        ----------
        x : dict
            The features.
        """
        return self.model.predict_one(_renamed(x)) if self.model.targets else {}


class MultiTargetTreeRegressor(RiverTargetsRegressor):
    """`sapwood.HoeffdingTreeRegressor` as a model of river for several targets.

    The parameters are those of the tree. The first row names all targets. If a target is missing in
    a later row (None, NaN or absent), the row is learned for the others.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sapwood.river import MultiTargetTreeRegressor
    >>> model = MultiTargetTreeRegressor()
    >>> metric = metrics.multioutput.MicroAverage(metrics.MAE())
    >>> evaluate.progressive_val_score(datasets.SolarFlare(), model, metric)
    MicroAverage(MAE): 0.18...
    """

    _model_class: ClassVar[type[Any]] = Tree

    tree = HoeffdingTreeRegressor.tree


class MultiTargetAdaptiveTreeRegressor(RiverTargetsRegressor):
    """`sapwood.AdaptiveTreeRegressor` as a model of river for several targets."""

    _model_class: ClassVar[type[Any]] = AdaptiveTree


class MultiTargetForestRegressor(RiverTargetsRegressor):
    """`sapwood.ForestRegressor` as a model of river for several targets."""

    _model_class: ClassVar[type[Any]] = Forest


class AdaptiveTreeRegressor(RiverRegressor):
    """`sapwood.AdaptiveTreeRegressor` as a model of river, with the same parameters."""

    _model_class: ClassVar[type[Any]] = AdaptiveTree


class ForestRegressor(RiverRegressor):
    """`sapwood.ForestRegressor` as a model of river, with the same parameters."""

    _model_class: ClassVar[type[Any]] = Forest


class HybridRegressor(RiverRegressor):
    """`sapwood.HybridRegressor` as a model of river, with the same parameters.

    `online` is a model of this module, or one of Sapwood whose parameters count alone.
    """

    _model_class: ClassVar[type[Any]] = Hybrid

    def _prepare(self) -> None:
        self.model = new_hybrid(self)

    def debug_one(self, x: dict[Any, Any]) -> str:
        """Explain the prediction of the online model, with the weights of the hybrid.

        Parameters
        ----------
        x : dict
            The features.
        """
        return f"{self.model.model.explain(_renamed(x))}\nweights: {self.model.weights}"


class ModelRegressor(RiverRegressor):
    """Any regression model of Sapwood as a model of river.

    It is for models around other models, such as `sapwood.SparseRegressor`,
    `sapwood.ScreenedRegressor`, `sapwood.MultiViewRegressor` and `sapwood.RecurringRegressor`.

    Parameters
    ----------
    prototype : model of Sapwood
        A model that has learned nothing yet. A copy of it learns.

    Examples
    --------
    >>> import sapwood
    >>> from river import datasets, evaluate, metrics
    >>> from sapwood.river import ModelRegressor
    >>> model = ModelRegressor(sapwood.RecurringRegressor(sapwood.ForestRegressor()))
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.1...
    """

    def __init__(self, prototype: Any) -> None:
        self.prototype, self.model = prototype, new_copy(prototype)


def _renamed(x: dict[Any, Any]) -> dict[Any, Any]:
    """Return a row under the names by which the tree knows its features."""
    if tuple not in map(type, x):
        return x
    row = {repr(name) if _is_compound(name) else name: value for name, value in x.items()}
    if len(row) < len(x):
        raise ValueError(
            f"the names {validation.shown(list(x))} have a tuple and the string that is its repr among "
            "them: rename one of the two"
        )
    return row


def _renamed_columns(frame: Any) -> Any:
    """Return a frame of narwhals under the names by which the tree knows its features."""
    names = {name: repr(name) for name in frame.columns if _is_compound(name)}
    return frame.rename(names) if names else frame


def _is_compound(name: Any) -> bool:
    """Whether a name is a tuple of names."""
    return type(name) is tuple and PLAIN_NAMES.issuperset(map(type, name))
