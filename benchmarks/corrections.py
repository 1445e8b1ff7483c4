"""What the error-correction layer brings around models that have none: R² with and without it.

Models: a tree with ``track=None``, a linear model by stochastic gradient descent, a hybrid of a tree
and a histogram gradient boosting that is refitted, and gradient boosting that is fitted once, on the
first rows, and never again. Labels arrive at once, or by 1,000. The constants of the layer were not
chosen on these models; bike and Beijing PM2.5 are among the streams that chose them for trees.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.data_sets import DataSet
from benchmarks.tables import Answer, Bound, Table
from benchmarks.transforms import follow
from sapwood import CorrectedRegressor, HoeffdingTreeRegressor, HybridRegressor
from sapwood.hybrid import HistGradientBoosting

__all__ = ["FILE", "run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "corrections.csv"
ROWS, QUICK_ROWS, FIRST = 4_000, 1_500, 1_000
REAL = ("bike", "metro", "Beijing PM2.5")
MAY_LOSE = 0.005


class Record(NamedTuple):
    """R² of a model on a stream, without and with the layer."""

    stream: str
    labels: str
    model: str
    r2: float
    corrected: float


class Linear:
    """Linear regression of the numbers of rows, by normalised gradient steps."""

    def __init__(self) -> None:
        self._weights = self._scales = np.zeros(0)

    def _terms(self, X: Any) -> NDArray[np.float64]:
        columns = [np.asarray(own) for own in X.values() if np.asarray(own).dtype == np.float64]
        matrix = np.nan_to_num(np.column_stack([np.ones(len(columns[0])), *columns]))
        if not len(self._weights):
            self._weights, self._scales = np.zeros((2, matrix.shape[1]))
        return matrix

    def predict_many(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions of rows."""
        return self._terms(X) / np.maximum(self._scales, 1e-9) @ self._weights

    def predict_learn_many(self, X: Any, y: Any, w: Any = None) -> NDArray[np.float64]:
        """Return the prediction of each row, before a step towards its label."""
        matrix, found = self._terms(X), np.empty(len(y))
        for place, (row, label) in enumerate(zip(matrix, y, strict=True)):
            self._scales = np.maximum(self._scales, np.abs(row))
            terms = row / np.maximum(self._scales, 1e-9)
            found[place] = terms @ self._weights
            self._weights = self._weights + 0.1 * (label - found[place]) * terms / (terms @ terms)
        return found

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn rows."""
        self.predict_learn_many(X, y)


class Frozen:
    """Gradient boosting of the numbers of rows that is fitted once, on the first rows."""

    def __init__(self, data: DataSet) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        self._names = [name for name, own in data.columns.items() if own.dtype == np.float64]
        first = data.head(FIRST)
        self._model = HistGradientBoostingRegressor(random_state=0)
        self._model.fit(self._matrix(first.columns), first.y)

    def _matrix(self, columns: Any) -> NDArray[np.float64]:
        return np.column_stack([columns[name] for name in self._names])

    def predict_many(self, X: Any) -> Any:
        """Return the predictions of rows."""
        return self._model.predict(self._matrix(X))

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn nothing."""

    def predict_learn_many(self, X: Any, y: Any, w: Any = None) -> Any:
        """Return the predictions of rows, of which nothing is learned."""
        return self.predict_many(X)


MODELS: dict[str, Callable[[DataSet], Any]] = {
    "tree, track=None": lambda _: HoeffdingTreeRegressor(track=None),
    "linear": lambda _: Linear(),
    "hybrid": lambda _: HybridRegressor(
        HoeffdingTreeRegressor(track=None),
        HistGradientBoosting(max_iter=30),
        refit=1.0,
        background=False,
    ),
    "fitted once": Frozen,
}


def run(quick: bool = False) -> Answer:
    """Evaluate all models with and without the layer.

    Parameters
    ----------
    quick : bool
        Whether a few rows of one stream are enough.
    """
    found = map(data_sets.load, REAL[:1] if quick else REAL)
    streams = [data.head(QUICK_ROWS if quick else ROWS) for data in found if data is not None]
    records = [
        Record(
            data.name,
            by,
            name,
            _r2(make(data), data, by),
            _r2(CorrectedRegressor(make(data)), data, by),
        )
        for data in streams
        for by in ("at once", "by 1,000")
        for name, make in MODELS.items()
    ]
    table = Table("Error correction around models", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    gains = [each.corrected - each.r2 for each in records]
    bounds = [
        Bound("least difference in R² with and without the layer", min(gains), -MAY_LOSE, True),
        Bound("mean difference in R²", float(np.mean(gains)), 0.02, True),
    ]
    return Answer([table], table, bounds)


def _r2(model: Any, data: DataSet, by: str) -> float:
    y, predictions = data.y[FIRST:], follow(model, data, by)[FIRST:]
    return float(1.0 - np.sum((y - predictions) ** 2) / np.sum((y - y.mean()) ** 2))
