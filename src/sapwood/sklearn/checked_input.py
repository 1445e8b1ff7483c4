"""Tables of scikit-learn's users, checked as scikit-learn does."""

from typing import Any

import narwhals.stable.v2 as narwhals
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

__all__ = ["CheckedInput"]


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


def _is_named_frame(X: Any) -> bool:
    """Whether X is a frame with rows, and columns that all have strings for names."""
    if not narwhals.dependencies.is_into_dataframe(X):
        return False
    frame = narwhals.from_native(X, eager_only=True)
    return min(frame.shape) > 0 and all(isinstance(name, str) for name in frame.columns)
