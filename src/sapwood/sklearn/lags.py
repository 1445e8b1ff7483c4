"""Lags in scikit-learn's pipelines."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from sapwood.adapter_parameters import AdapterParameters
from sapwood.lags import Lags as Past
from sapwood.rows import frames
from sapwood.sklearn.checked_input import CheckedInput
from sapwood.validation import Label

__all__ = ["Lags"]


class Lags(AdapterParameters, TransformerMixin, CheckedInput):
    """`sapwood.lags.Lags` as a transformer of scikit-learn, with the same parameters.

    The order of rows matters: rows that are transformed after `fit` follow the rows of `fit`, and
    their targets are unknown. A lag of 24 is therefore known for the next 24 rows, and NaN
    afterwards. The model after this step must accept missing values, as Sapwood's models and
    `HistGradientBoostingRegressor` do. `partial_fit` adds rows whose targets have arrived.

    Attributes
    ----------
    past_ : sapwood.lags.Lags
        The lag features, with the values of earlier rows.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        Their names, if X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sapwood.sklearn import HoeffdingTreeRegressor, Lags
    >>> hours = np.arange(2000)
    >>> y = np.where(hours % 24 < 12, 10.0, 50.0)
    >>> tree = HoeffdingTreeRegressor(passes=1, shuffle=False)  # the order of the rows counts
    >>> model = make_pipeline(Lags([1, 24]), tree).fit(hours[:, None] * 0.0, y)
    >>> model.predict(np.zeros((3, 1))).round()
    array([10., 10., 10.])
    """

    past_: Past

    _model_class: ClassVar[type[Any]] = Past
    _own_parameters: ClassVar[dict[str, Any]] = {"lags": (1,)}

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Start over, and remember rows.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features, in the order of time.
        y : array_like of float, shape (n,)
            The targets.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **params: Any) -> Any:
        """Start over with these rows, and return them with their lag features.

        Parameters
        ----------
        X, y
            As for `fit`.
        **params
            None are known.
        """
        self.__dict__.pop("past_", None)
        return self._learned(X, y, first=True)

    def partial_fit(self, X: Any, y: ArrayLike) -> Self:
        """Remember more rows.

        Parameters
        ----------
        X, y
            As for `fit`.
        """
        self._learned(X, y, first=not hasattr(self, "past_"))
        return self

    def transform(self, X: Any) -> Any:
        """Return rows that follow the rows of `fit`, with their lag features.

        Parameters
        ----------
        X : array_like or data frame, shape (n, features)
            The features.
        """
        check_is_fitted(self, "past_")
        X = self._checked(X, False)
        return _joined(X, self.past_.plan(X).features, self.past_.features)

    def _learned(self, X: Any, y: ArrayLike | None, first: bool) -> Any:
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: lags are taken of it"
            )
        past = self._new_model() if first else self.past_
        X, y = self._checked(X, first, y)
        plan = past.plan(X, column_or_1d(y, warn=True))
        joined = _joined(X, plan.features, past.features)
        plan.push()
        self.past_ = past
        return joined

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns."""
        check_is_fitted(self, "past_")
        names = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            names = np.asarray(input_features, dtype=object)
        elif names is None:
            names = [f"x{place}" for place in range(self.n_features_in_)]
        return np.array([*names, *map(str, self.past_.features)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _joined(X: Any, features: Mapping[Any, Any], added: Sequence[Label]) -> Any:
    """Return X with columns added, of its own library."""
    frame = frames.frame_of(X)
    if frame is None:
        return np.column_stack([X, *(features[name] for name in added)])
    native = frame.to_native()
    if frame.implementation.is_pandas():
        return native.assign(**{str(name): features[name] for name in added})
    import narwhals.stable.v2 as narwhals

    new = [
        narwhals.new_series(str(name), features[name], backend=frame.implementation)
        for name in added
    ]
    return frame.with_columns(*new).to_native()
