"""Tables of scikit-learn's users, checked as scikit-learn does."""

from typing import Any, ClassVar

import narwhals.stable.v2 as narwhals
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from sapwood.adapter_parameters import AdapterParameters

__all__ = ["CheckedInput", "HoldsModel"]


class CheckedInput(BaseEstimator):
    """An estimator that takes arrays of numbers and frames, with missing values and categories."""

    def _checked(self, X: Any, reset: bool, y: Any = "no_validation", several: bool = False) -> Any:
        """Return X, and y if there is one, after scikit-learn's checks of names and shapes.

        Of several targets, values may be missing.

        A frame stays one where columns are known by their names, so that models distinguish
        categories from numbers. All else becomes an array, or is rejected.
        """
        if several:
            y = check_array(y, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
            X = self._checked(X, reset)
            check_consistent_length(X, y)
            return X, y
        stays_frame = (reset or hasattr(self, "feature_names_in_")) and _is_named_frame(X)
        return validate_data(
            self,
            X,
            y,
            reset=reset,
            skip_check_array=stays_frame,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


class HoldsModel(AdapterParameters, CheckedInput):
    """An estimator that holds a model of Sapwood.

    Attributes
    ----------
    model_ : Regressor or Classifier
        The model of Sapwood, for example to inspect or save it.
    """

    _model_class: ClassVar[type[Any]]
    model_: Any

    @staticmethod
    def _weighted(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Return rows and their weights, without rows of weight 0."""
        if sample_weight is None:
            return X, y, None
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if w.all():
            return X, y, w
        check_consistent_length(X, y)
        kept = np.flatnonzero(w)
        return _safe_indexing(X, kept), _safe_indexing(y, kept), w[kept]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Permutation importance of the columns in recent rows.

        They sum to 1; without a split, all are 0.
        """
        check_is_fitted(self, "model_")
        return np.array(list(self.model_.feature_importances.values()))


def _is_named_frame(X: Any) -> bool:
    """Whether X is a frame with rows, and columns that all have strings for names."""
    if not narwhals.dependencies.is_into_dataframe(X):
        return False
    frame = narwhals.from_native(X, eager_only=True)
    return min(frame.shape) > 0 and all(isinstance(name, str) for name in frame.columns)
