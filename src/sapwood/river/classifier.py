"""Our classifiers as models of river."""

from typing import Any, ClassVar

from river import base

from sapwood.classify import AdaptiveTreeClassifier as AdaptiveTree
from sapwood.classify import ForestClassifier as Forest
from sapwood.classify import HoeffdingTreeClassifier as Tree
from sapwood.river.regressor import HoldsModel, _renamed

__all__ = ["AdaptiveTreeClassifier", "ForestClassifier", "HoeffdingTreeClassifier"]


class RiverClassifier(HoldsModel, base.Classifier):
    """A classifier of Sapwood as one of river."""

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features.
        y : str, int or bool
            The label of its class; None if it is not known.
        w : float
            The weight of the row.
        """
        row = _renamed(x)
        if not self.model.features:  # sums do not depend on the order of the first row
            row = {name: row[name] for name in sorted(row, key=_in_order)}
        self.model.learn_one(row, y, w)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each class for one row; nothing before the first label.

        Parameters
        ----------
        x : dict
            The features.
        **kwargs
            Not used.
        """
        found: dict[Any, float] = self.model.predict_proba_one(_renamed(x))
        return found

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Predict the class of one row; None before the first label.

        Parameters
        ----------
        x : dict
            The features.
        **kwargs
            Not used.
        """
        return self.model.predict_one(_renamed(x))

    @property
    def _multiclass(self) -> bool:
        return True


def _in_order(name: Any) -> tuple[bool, Any]:
    """Return the key by which names of features are sorted: whole numbers first."""
    return isinstance(name, str), name


class HoeffdingTreeClassifier(RiverClassifier):
    """`sapwood.HoeffdingTreeClassifier` as a model of river, with the same parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sapwood.river import HoeffdingTreeClassifier
    >>> model = HoeffdingTreeClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89...%
    """

    _model_class: ClassVar[type[Any]] = Tree


class AdaptiveTreeClassifier(RiverClassifier):
    """`sapwood.AdaptiveTreeClassifier` as a model of river, with the same parameters."""

    _model_class: ClassVar[type[Any]] = AdaptiveTree


class ForestClassifier(RiverClassifier):
    """`sapwood.ForestClassifier` as a model of river, with the same parameters."""

    _model_class: ClassVar[type[Any]] = Forest
