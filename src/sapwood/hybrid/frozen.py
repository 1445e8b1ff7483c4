"""A fitted model of the user's, which reads rows by the names that it was fitted with."""

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.hybrid.learners import reject_classifier
from sapwood.hybrid.members import StreamRows
from sapwood.hybrid.refits import LARGEST, FitFailedWarning
from sapwood.hybrid.trees import FlatTrees, flattened
from sapwood.validation import Label

__all__ = ["FrozenModel"]

FloatArray = NDArray[np.float64]

MOST_COMPLAINTS = 10  # of different kinds
ORDER = "order of features"


class FrozenModel:
    """A fitted model that is not fitted again.

    Parameters
    ----------
    model : object
        With `predict`: an estimator of scikit-learn or LightGBM, a booster of LightGBM, or trees.
    names : list of str, optional
        The features that it was fitted on, in their order. By default those that it reports; if it
        reports none, the features of rows in the order of their first appearance, with a warning
        where these have names.

    Notes
    -----
    LightGBM's trees of numbers become arrays, which predict the same to the last bit and are saved
    with the hybrid. Other models get a matrix of numbers or, if rows have texts, a frame of pandas.
    """

    def __init__(self, model: Any, names: list[str] | None = None) -> None:
        reject_classifier(model)
        if not callable(getattr(model, "predict", None)):
            raise TypeError(
                f"batch = {validation.shown(model)}: a fitted model with predict is expected"
            )
        self.model = model
        self.names = _names_of(model) if names is None else names
        self.trees = model if isinstance(model, FlatTrees) else _trees_of(model)
        self._complained: set[str] = set()

    def predict(self, rows: StreamRows, matrix: FloatArray, targets: int) -> FloatArray:
        """Predict rows; NaN where there is no finite prediction.

        Parameters
        ----------
        rows : StreamRows
            The rows as they were received.
        matrix : ndarray of float
            The same, encoded.
        targets : int
            How many targets there are.
        """
        if self.names is None:
            self._warn_of_order(rows)
        try:
            found = np.asarray(self._predict(rows, matrix), np.float64)
            found = found.reshape(rows.count, -1 if found.size else targets)
            if found.shape[1] != targets:
                raise ValueError(f"it predicts {found.shape[1]} targets of {targets}")
        except Exception as error:  # whatever another library raises
            return self._complain(f"{type(error).__name__}: {error}", rows.count, targets)
        good = np.abs(found) <= LARGEST
        if not good.all():
            self._complain("a prediction is not finite", 0, targets)
            found = np.where(good, found, np.nan)
        return found

    def _predict(self, rows: StreamRows, matrix: FloatArray) -> Any:
        names: Sequence[Label] | None = self.names
        if names is None:
            names = None if matrix.shape[1] else rows.names()  # before the first learned row
        if names is None:
            X = matrix
            if self.trees is not None and X.shape[1] < self.trees.width:
                X = np.full((rows.count, self.trees.width), np.nan)
                X[:, : matrix.shape[1]] = matrix
        else:
            columns = {name: _column(rows, name) for name in names}
            if self.trees is None and _has_texts(columns):
                return self.model.predict(_frame(columns, rows.count))
            X = np.full((rows.count, len(names)), np.nan)
            for place, column in enumerate(columns.values()):
                if column is not None:
                    X[:, place] = np.asarray(column, np.float64)
        if self.trees is not None:
            return self.trees.predict(X)
        with warnings.catch_warnings():  # that X has no names, which are in their order here
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return self.model.predict(X)

    def _warn_of_order(self, rows: StreamRows) -> None:
        """Warn once if rows name features, of which the model does not know the names."""
        names = [name for name in rows.names() if isinstance(name, str)]
        if names and ORDER not in self._complained:
            self._complained.add(ORDER)
            warnings.warn(
                "the fitted model does not report the names of its features: those of rows are "
                f"used in the order of their first appearance, {', '.join(names[:5])}"
                f"{', ...' if len(names) > 5 else ''}. If it was fitted on another order, fit it "
                "on named columns, or set its feature_names_in_",
                UserWarning,
                stacklevel=5,
            )

    def _complain(self, what: str, rows: int, targets: int) -> FloatArray:
        if what not in self._complained and len(self._complained) < MOST_COMPLAINTS:
            self._complained.add(what)
            warnings.warn(
                f"the batch model cannot predict ({what}): predictions continue without it",
                FitFailedWarning,
                stacklevel=5,
            )
        return np.full((rows, targets), np.nan)


def _trees_of(model: Any) -> FlatTrees | None:
    if getattr(getattr(model, "booster_", model), "pandas_categorical", None):
        return None
    return flattened(model)


def _names_of(model: Any) -> list[str] | None:
    """Return the features that a model was fitted on; None if it reports none."""
    known = getattr(model, "feature_names_in_", None)
    if known is None:
        booster = getattr(model, "booster_", model)
        reported = getattr(booster, "feature_name", None)
        known = reported() if callable(reported) else None
    names = None if known is None else [str(name) for name in known]
    is_named = names != [f"Column_{place}" for place in range(len(names or ()))]  # by LightGBM
    return names if is_named else None


def _column(rows: StreamRows, name: Label) -> Any:
    """Return the values of a feature; LightGBM has an underline for each blank of its name."""
    found = rows.column(name)
    if found is None and isinstance(name, str) and "_" in name:
        return rows.column(name.replace("_", " "))
    return found


def _has_texts(columns: dict[Label, Any]) -> bool:
    return any(
        isinstance(value, str)
        for column in columns.values()
        if column is not None and not isinstance(column, np.ndarray)
        for value in column
    )


def _frame(columns: dict[Label, Any], count: int) -> Any:
    """Return columns as a frame of pandas, texts as categories."""
    pandas = import_module("pandas")
    made = {
        name: [None] * count if column is None else list(column) for name, column in columns.items()
    }
    frame = pandas.DataFrame(made)
    texts = [name for name in frame if not pandas.api.types.is_numeric_dtype(frame[name].dtype)]
    return frame.astype(dict.fromkeys(texts, "category"))
