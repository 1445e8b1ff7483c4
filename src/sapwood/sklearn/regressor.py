"""Our models as estimators of scikit-learn."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from sapwood.adapter_parameters import AdapterParameters
from sapwood.ensemble.adaptive import AdaptiveTreeRegressor as AdaptiveTree
from sapwood.ensemble.forest import ForestRegressor as Forest
from sapwood.sklearn.checked_input import CheckedInput
from sapwood.tree import HoeffdingTreeRegressor as Tree

__all__ = [
    "AdaptiveTreeRegressor",
    "ForestRegressor",
    "HoeffdingTreeRegressor",
]


class SklearnRegressor(AdapterParameters, RegressorMixin, CheckedInput):
    """A model of Sapwood as an estimator of scikit-learn.

    Attributes
    ----------
    model_ : Regressor
        The model itself, to look into or to save.
    """

    _model_class: ClassVar[type[Any]]
    model_: Any

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Start anew and learn all rows, in their order.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features.
        y : array_like of float, shape (n,) or (n, targets), or a frame
            The targets. Of several each may be missing (NaN) for itself.
        sample_weight : array_like of float, shape (n,), optional
            How much each row counts; a row of weight 0 is left out.
        """
        self.__dict__.pop("model_", None)  # if X is refused, no old model stands beside new names
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows, in their order; parameters count as they were at the first.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. Columns have to be those of the first call.
        """
        first = not hasattr(self, "model_")
        model = self._new_model() if first else self.model_
        several = _has_columns(y)
        names = [str(name) for name in y.columns] if several and hasattr(y, "columns") else None
        X, y = self._checked(X, first, y, several)
        y = y if several else column_or_1d(y, warn=True)
        w = None
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not w.all():
                check_consistent_length(X, y)
                kept = np.flatnonzero(w)
                X, y, w = (_safe_indexing(part, kept) for part in (X, y, w))
        if names is not None:
            y = dict(zip(names, y.T, strict=True))
        model.learn_many(X, y, w)
        self.model_ = model
        self.n_outputs_ = max(1, len(model.targets))
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

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """What it lately costs to get a column wrong, as a share of what all cost.

        They sum to 1; without a split, all are 0.
        """
        check_is_fitted(self, "model_")
        return np.array(list(self.model_.feature_importances.values()))


class HoeffdingTreeRegressor(SklearnRegressor):
    """`sapwood.HoeffdingTreeRegressor` as an estimator of scikit-learn, with the same parameters.

    The order of the rows matters: it is the order of the stream. X may be an array of numbers, or
    a data frame whose columns have strings for names; there, columns of strings and of
    categories are categories, as they are. Missing values (NaN, None, NA) are legal everywhere.

    Attributes
    ----------
    tree_ : sapwood.HoeffdingTreeRegressor
        The tree itself, to look into or to save.
    n_outputs_ : int
        How many targets y has.
    n_features_in_ : int
        How many columns X had.
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

    Attributes
    ----------
    model_ : sapwood.AdaptiveTreeRegressor
        The model itself, to look into or to save.
    """

    _model_class: ClassVar[type[Any]] = AdaptiveTree


class ForestRegressor(SklearnRegressor):
    """`sapwood.ForestRegressor` as an estimator of scikit-learn, with the same parameters.

    Attributes
    ----------
    model_ : sapwood.ForestRegressor
        The model itself, to look into or to save.
    """

    _model_class: ClassVar[type[Any]] = Forest


def _has_columns(y: Any) -> bool:
    """Whether y has several columns."""
    shape: tuple[Any, ...] = getattr(y, "shape", ())
    if isinstance(y, list | tuple):
        shape = np.shape(y)
    return len(shape) == 2 and shape[1] > 1
