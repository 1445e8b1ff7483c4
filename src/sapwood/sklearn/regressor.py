"""Our models as estimators of scikit-learn."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
)

from sapwood import validation
from sapwood.adapter_parameters import new_copy
from sapwood.ensemble.adaptive import AdaptiveTreeRegressor as AdaptiveTree
from sapwood.ensemble.forest import ForestRegressor as Forest
from sapwood.hybrid.adapting import new_hybrid
from sapwood.hybrid.regressor import HybridRegressor as Hybrid
from sapwood.sklearn.checked_input import HoldsModel
from sapwood.tree import HoeffdingTreeRegressor as Tree

__all__ = [
    "AdaptiveTreeRegressor",
    "ForestRegressor",
    "HoeffdingTreeRegressor",
    "HybridRegressor",
    "ModelRegressor",
]


class SklearnRegressor(RegressorMixin, HoldsModel):
    """A model of Sapwood as an estimator of scikit-learn."""

    _own_parameters: ClassVar[dict[str, Any]] = {"passes": 2, "shuffle": True, "random_state": 0}

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train a new model on all rows: `passes` times, each time in another random order.

        With ``shuffle=False``, rows are learned in their order, as `partial_fit` does.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features.
        y : array_like of float, shape (n,) or (n, targets), or a frame
            The targets. Single values of several targets may be missing (NaN).
        sample_weight : array_like of float, shape (n,), optional
            The weight of each row; a row with weight 0 is left out.
        """
        self.__dict__.pop("model_", None)  # if X is rejected, no old model stays with new names
        model = self._new_model()
        X, y, w, names = self._rows(X, y, sample_weight, first=True)
        random = check_random_state(getattr(self, "random_state", None))
        for _ in range(validation.whole(getattr(self, "passes", 1), "passes", 1, 1000)):
            order = random.permutation(len(y)) if getattr(self, "shuffle", False) else None
            self._learn(model, X, y, w, names=names, order=order)
        return self._with(model)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows once, in their order; parameters count as they were at the first.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. The columns must be those of the first call.
        """
        first = not hasattr(self, "model_")
        model = self._new_model() if first else self.model_
        X, y, w, names = self._rows(X, y, sample_weight, first)
        self._learn(model, X, y, w, names=names)
        return self._with(model)

    def _rows(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Any, Any, Any, Any]:
        """Return rows after scikit-learn's checks, their weights, and the names of targets."""
        several = _has_columns(y)
        names = [str(name) for name in y.columns] if several and hasattr(y, "columns") else None
        X, y = self._checked(X, first, y, several)
        y = y if several else column_or_1d(y, warn=True)
        X, y, w = self._weighted(X, y, sample_weight)
        return X, y, w, names

    @staticmethod
    def _learn(model: Any, X: Any, y: Any, w: Any, *, names: Any, order: Any = None) -> None:
        """Let a model learn rows, in an order of their own if there is one."""
        if order is not None:
            X, y = _safe_indexing(X, order), y[order]
            w = None if w is None else w[order]
        model.learn_many(X, y if names is None else dict(zip(names, y.T, strict=True)), w)

    def _with(self, model: Any) -> Self:
        self.model_ = model
        self.n_outputs_ = max(1, len(getattr(model, "targets", ())))
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict rows, each on its own.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features.
        """
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.predict_many(self._checked(X, False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        observer = getattr(self, "observer", None)
        by_slots = observer is None or getattr(observer, "adaptive", False)
        tags.target_tags.multi_output = by_slots
        return tags


class HoeffdingTreeRegressor(SklearnRegressor):
    """`sapwood.HoeffdingTreeRegressor` as an estimator of scikit-learn, with the same parameters.

    `fit` makes two passes over shuffled rows; `partial_fit` makes one, in the order of the rows,
    as on a stream. If the order carries information, as in a time series, use
    ``passes=1, shuffle=False`` or `partial_fit`. X may be an array of numbers, or
    a data frame whose columns have strings for names; there, columns of strings and of
    categories are categories, as they are. Missing values (NaN, None, NA) are legal everywhere.

    Parameters
    ----------
    passes : int, default 2
        The number of passes of `fit` over the rows.
    shuffle : bool, default True
        Whether the rows are shuffled before each pass of `fit`.
    random_state : int, RandomState or None, default 0
        Of the orders.

    Attributes
    ----------
    tree_ : sapwood.HoeffdingTreeRegressor
        The model of Sapwood, for example to inspect or save it.
    n_outputs_ : int
        The number of targets.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        Their names, if X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood.sklearn import HoeffdingTreeRegressor
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((5000, 3))
    >>> y = np.where(X[:, 0] < 0.5, 10 * X[:, 1], -10 * X[:, 1])
    >>> HoeffdingTreeRegressor().fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]) > 0.9
    True
    """

    _model_class: ClassVar[type[Any]] = Tree

    @property
    def tree_(self) -> Tree:
        """The tree itself."""
        tree: Tree = self.model_
        return tree


class AdaptiveTreeRegressor(SklearnRegressor):
    """`sapwood.AdaptiveTreeRegressor` as an estimator of scikit-learn, with the same parameters.

    Like `HoeffdingTreeRegressor` of this module it takes `passes`, `shuffle` and `random_state`.
    """

    _model_class: ClassVar[type[Any]] = AdaptiveTree


class ForestRegressor(SklearnRegressor):
    """`sapwood.ForestRegressor` as an estimator of scikit-learn, with the same parameters.

    Like `HoeffdingTreeRegressor` of this module it takes `passes`, `shuffle` and `random_state`.
    """

    _model_class: ClassVar[type[Any]] = Forest


class HybridRegressor(SklearnRegressor):
    """`sapwood.HybridRegressor` as an estimator of scikit-learn, with the same parameters.

    `fit` learns all rows and fits the batch learner on the latest of them; `partial_fit` learns
    more rows, and refits by the schedule. `online` is an estimator of this module, or a model of
    Sapwood whose parameters count alone.
    """

    _model_class: ClassVar[type[Any]] = Hybrid
    _own_parameters: ClassVar[dict[str, Any]] = {}  # the batch learner makes the further passes

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn all rows from the start, in their order, and fit the batch learner.

        Parameters
        ----------
        X, y, sample_weight
            As for other estimators of this module.
        """
        super().fit(X, y, sample_weight)
        known = self.model_.parameters
        if known["refit"] is not None and self.model_.rows >= known["min_rows"]:
            self.model_.refit_now()
        return self

    def _new_model(self) -> Any:
        return new_hybrid(self)


class ModelRegressor(SklearnRegressor):
    """Any regression model of Sapwood as an estimator of scikit-learn.

    It is for models around other models, such as `sapwood.ScreenedRegressor`,
    `sapwood.MultiViewRegressor`, `sapwood.RecurringRegressor` and `sapwood.TransformedRegressor`.

    Parameters
    ----------
    model : model of Sapwood
        A model that has learned nothing yet. `fit` trains a copy of it.
    passes, shuffle, random_state
        As for `HoeffdingTreeRegressor` of this module.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> from sapwood.sklearn import ModelRegressor
    >>> X = np.random.default_rng(1).normal(size=(3_000, 200))
    >>> y = 3 * X[:, 7] + X[:, 8]
    >>> screened = sapwood.ScreenedRegressor(sapwood.HoeffdingTreeRegressor())
    >>> ModelRegressor(screened).fit(X[:2_000], y[:2_000]).score(X[2_000:], y[2_000:]) > 0.9
    True
    """

    def __init__(
        self, model: Any, *, passes: int = 2, shuffle: bool = True, random_state: Any = 0
    ) -> None:
        self.model, self.passes, self.shuffle = model, passes, shuffle
        self.random_state = random_state

    def _new_model(self) -> Any:
        return new_copy(self.model)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = bool(getattr(self.model, "several_targets", False))
        return tags


def _has_columns(y: Any) -> bool:
    """Whether y has several columns."""
    shape: tuple[Any, ...] = getattr(y, "shape", ())
    if isinstance(y, list | tuple):
        shape = np.shape(y)
    return len(shape) == 2 and shape[1] > 1
