"""Fits in a thread of their own, each of which is used from a given row on."""

import threading
import time
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.hybrid.learners import BatchLearner, Fitted
from sapwood.hybrid.trees import FlatTrees
from sapwood.hybrid.window import Rows

__all__ = ["BatchModel", "Fit", "FitFailedWarning", "Refit"]

FloatArray = NDArray[np.float64]

LARGEST = 1e120  # prediction that counts as one


class FitFailedWarning(UserWarning):
    """A fit of the batch learner failed or took too long; predictions continue without it."""


class Refit(NamedTuple):
    """A completed fit of the batch learner.

    Attributes
    ----------
    row : int
        The number of rows learned when the fit started.
    rows : int
        The number of rows in the fit.
    used_from : int
        The number of rows from which its model is used.
    error : str
        The error message; empty if the fit succeeded.
    seconds : float
        The duration; NaN if the model has been loaded since.
    """

    row: int
    rows: int
    used_from: int
    error: str
    seconds: float


class BatchModel:
    """Fitted models of all targets, and what was known of the features when they were fitted.

    Parameters
    ----------
    models : list of Fitted or None
        One for each target; None of a target that had no label.
    labels : ndarray of float, shape (features,)
        How many labels each category had; infinite for numbers. Codes from there on were not seen
        by the fit, and count as missing, as do the values of later features.
    """

    def __init__(self, models: list[Fitted | None], labels: FloatArray) -> None:
        self.models, self.labels = models, labels
        self._all_numbers = bool(np.isinf(labels).all())
        self._complained = False

    @property
    def is_flat(self) -> bool:
        """Whether a file can hold the models."""
        return all(model is None or isinstance(model, FlatTrees) for model in self.models)

    @property
    def nbytes(self) -> int:
        """Bytes of the models, as far as they are trees."""
        return sum(model.nbytes for model in self.models if isinstance(model, FlatTrees))

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict rows; NaN where there is no model, or no finite prediction.

        Parameters
        ----------
        X : ndarray of float, shape (n, features)
            Encoded rows; there may be more features than the fit had.
        """
        width = len(self.labels)
        if X.shape[1] < width:
            wide = np.full((len(X), width), np.nan)
            wide[:, : X.shape[1]] = X
            X = wide
        elif X.shape[1] > width:
            X = np.ascontiguousarray(X[:, :width])
        if not self._all_numbers:
            X = np.where(self.labels <= X, np.nan, X)
        out = np.full((len(X), len(self.models)), np.nan)
        for place, model in enumerate(self.models):
            if model is not None:
                try:
                    out[:, place] = _one_each(model.predict(X), len(X))
                except Exception as error:  # whatever another library raises
                    self._complain(f"{type(error).__name__}: {error}")
        good = np.abs(out) <= LARGEST
        if not good.all():
            if any(
                model is not None and not good[:, at].all() for at, model in enumerate(self.models)
            ):
                self._complain("a prediction is not finite")
            out[~good] = np.nan
        return out

    def _complain(self, what: str) -> None:
        if not self._complained:
            self._complained = True
            warnings.warn(
                f"the batch model cannot predict ({what}): predictions continue without it",
                FitFailedWarning,
                stacklevel=5,
            )


def _one_each(found: FloatArray, rows: int) -> FloatArray:
    if len(found) != rows:
        raise ValueError(f"it predicts {len(found)} values for {rows} rows")
    return found


class _Reordered:
    """A fitted model whose columns are in another order."""

    def __init__(self, model: Fitted, order: NDArray[np.int64]) -> None:
        self._model, self._order = model, order

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict rows."""
        return self._model.predict(np.ascontiguousarray(X[:, self._order]))


class Fit:
    """A fit that was started, and will be used from a row on.

    Parameters
    ----------
    learner : BatchLearner
        Is fitted for each target.
    rows : Rows
        On which it is fitted.
    labels : ndarray of float
        As for `BatchModel`.
    order : ndarray of int
        The columns of X in the order in which the learner gets them: by name, so that a model does
        not depend on the order in which rows name their features.
    used_from : int
        From how many rows on the model is used.
    background : bool
        Whether it is fitted in a thread, from now on; else when it is needed.
    """

    def __init__(
        self,
        learner: BatchLearner,
        rows: Rows,
        labels: FloatArray,
        order: NDArray[np.int64],
        used_from: int,
        *,
        background: bool = True,
    ) -> None:
        self.rows, self.labels, self.used_from = rows, labels, used_from
        self._order = order
        self._learner = learner
        self._ended: tuple[BatchModel | None, str, float] | None = None
        self._thread: threading.Thread | None = None
        if background:
            self._thread = threading.Thread(target=self._run, name="sapwood-refit", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        start = time.perf_counter()
        try:
            models = [self._fitted(target) for target in range(self.rows.y.shape[1])]
            made, error = BatchModel(models, self.labels), ""
        except BaseException as raised:  # in a thread of its own nobody else would see it
            made, error = None, f"{type(raised).__name__}: {raised}"
            if self._thread is None and not isinstance(raised, Exception):
                raise
        self._ended = made, error, time.perf_counter() - start

    def _fitted(self, target: int) -> Fitted | None:
        y = self.rows.y[:, target]
        known = ~np.isnan(y)
        if not known.any():
            return None
        # Copies, as a learner may change them, and the rows are those of the window.
        X = self.rows.X[np.ix_(np.flatnonzero(known), self._order)]
        y, w = y[known], self.rows.w[known]
        made = self._learner.fit(X, y, None if (w == 1.0).all() else w)
        if isinstance(made, FlatTrees):
            return made.with_columns(self._order)
        return _Reordered(made, self._order)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, in its thread."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, timeout: float | None) -> None:
        """Wait for the end, so many seconds at most.

        Parameters
        ----------
        timeout : float, optional
            Seconds; without a limit if not given.
        """
        if self._thread is not None:
            self._thread.join(timeout)
        elif self._ended is None:
            self._run()

    def result(self, timeout: float | None) -> tuple[BatchModel | None, Refit]:
        """Wait for the end; return the model, None if there is none, and what is noted of the fit.

        Parameters
        ----------
        timeout : float, optional
            As for `wait`.
        """
        self.wait(timeout)
        rows = self.rows
        if self._ended is None:
            words = f"it takes longer than timeout = {timeout:g} seconds"
            made, error, seconds = None, words, float(timeout or 0.0)
        else:
            made, error, seconds = self._ended
        return made, Refit(rows.stop, len(rows.w), self.used_from, error, seconds)

    def warn(self, error: str) -> None:
        """Warn that it has failed.

        Parameters
        ----------
        error : str
            What went wrong.
        """
        warnings.warn(
            f"the fit of {self._learner.name} that started at row {self.rows.stop:,} failed "
            f"({error}): predictions continue without it",
            FitFailedWarning,
            stacklevel=5,
        )
