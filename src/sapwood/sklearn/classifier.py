"""Our classifiers as estimators of scikit-learn."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
)

from sapwood.classify import AdaptiveTreeClassifier as AdaptiveTree
from sapwood.classify import ForestClassifier as Forest
from sapwood.classify import HoeffdingTreeClassifier as Tree
from sapwood.classify.decisions import (
    BALANCED,
    cheapest,
    checked_costs,
    checked_weighting,
    cost_matrix,
)
from sapwood.sklearn.checked_input import HoldsModel

__all__ = ["AdaptiveTreeClassifier", "ForestClassifier", "HoeffdingTreeClassifier"]


class SklearnClassifier(ClassifierMixin, HoldsModel):
    """A classifier of Sapwood as an estimator of scikit-learn.

    The order of the rows matters: it is the order of the stream. The classes of `model_` are the
    numbers 0, 1, … in the order in which labels came; `classes_` are the labels, sorted.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted: the columns of `predict_proba`.
    """

    class_weight: Any
    cost: Any
    classes_: NDArray[Any]
    _labels: list[Any]

    def _new_model(self) -> Any:
        """Return an empty model; labels are known here, and codes are to it."""
        model = super()._new_model()
        weighting = model.parameters["class_weight"]
        own = {"class_weight": BALANCED if weighting == BALANCED else None, "cost": None}
        return type(model)(**{**model.parameters, **own})

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn all rows from the start, in their order.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features.
        y : array_like, shape (n,)
            The labels.
        sample_weight : array_like of float, shape (n,), optional
            The weight of each row; a row of weight 0 is left out.
        """
        self.__dict__.pop("model_", None)
        return self.partial_fit(X, y, sample_weight=sample_weight)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn more rows, in their order.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. The columns must be those of the first call.
        classes : array_like, optional
            Labels that `classes_` must contain. This is optional: labels in `y` are added at each
            call.
        """
        first = not hasattr(self, "model_")
        model = self._new_model() if first else self.model_
        labels = [] if first else list(self._labels)
        X, y = self._checked(X, first, y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        X, y, w = self._weighted(X, y, sample_weight)
        weighting = checked_weighting(self.class_weight)
        if isinstance(weighting, dict):
            own = np.array([weighting.get(label, 1.0) for label in np.asarray(y).tolist()])
            w = own if w is None else w * own
        places = {label: place for place, label in enumerate(labels)}
        for label in np.asarray(y).tolist():
            places.setdefault(label, len(places))
        codes = np.array([places[label] for label in np.asarray(y).tolist()], np.int64)
        own = np.unique(y) if classes is None else np.union1d(np.asarray(classes), y)
        named = own if first else np.union1d(self.classes_, own)
        model.learn_many(X, codes, w)
        self.model_, self._labels, self.classes_ = model, list(places), named
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each of `classes_` for each row.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features.
        """
        check_is_fitted(self, "model_")
        found = self.model_.predict_proba_many(self._checked(X, False), record=False)
        columns = {label: place for place, label in enumerate(self.classes_.tolist())}
        made = np.zeros((len(found), len(self.classes_)))
        for place, code in enumerate(self.model_.classes):
            made[:, columns[self._labels[code]]] = found[:, place]
        return made

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features.
        """
        found, costs = self.predict_proba(X), checked_costs(self.cost)
        if costs is None:
            return np.asarray(self.classes_[found.argmax(axis=1)])
        matrix = cost_matrix(costs, tuple(self.classes_.tolist()))
        return np.asarray(self.classes_[cheapest(found, matrix)])


class HoeffdingTreeClassifier(SklearnClassifier):
    """`sapwood.HoeffdingTreeClassifier` as an estimator of scikit-learn, with its parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sapwood.sklearn import HoeffdingTreeClassifier
    >>> from sklearn.utils import shuffle
    >>> X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    >>> HoeffdingTreeClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _model_class: ClassVar[type[Any]] = Tree


class AdaptiveTreeClassifier(SklearnClassifier):
    """`sapwood.AdaptiveTreeClassifier` as an estimator of scikit-learn, with its parameters."""

    _model_class: ClassVar[type[Any]] = AdaptiveTree


class ForestClassifier(SklearnClassifier):
    """`sapwood.ForestClassifier` as an estimator of scikit-learn, with its parameters."""

    _model_class: ClassVar[type[Any]] = Forest
