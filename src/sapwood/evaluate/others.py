"""Models of other libraries that can be compared with ours by short names.

LightGBM and scikit-learn learn in batches: rows wait until there are enough, and all rows meanwhile
are predicted by the model as it is. How rows are handed over makes no difference.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows.labels import Labels
from sapwood.streams.schema import nearest
from sapwood.streams.stream import Column

__all__ = ["OTHERS", "BatchModel", "LightGbm", "River", "Sgd"]

FloatArray = NDArray[np.float64]

RIVER = ("tree", "forest", "linear_model", "neighbors", "rules", "dummy")
SCALED = ("linear_model", "neighbors")
HASHED = 256  # columns that categories of a linear model share
LARGEST = 1e100


class BatchModel(ABC):
    """A model that learns some rows at a time.

    - `batch`: how many rows.
    """

    def __init__(self, batch: int) -> None:
        self.batch = validation.whole(batch, "batch", 1, 10**7)
        self.features: list[str] = []
        self._codes: dict[str, dict[Any, int]] = {}
        self._rows: list[FloatArray] = []
        self._targets: list[float] = []

    def predict_learn_many(self, X: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Predict each row before it is learned."""
        matrix = self._encoded(X, len(y))
        predictions = np.empty(len(y))
        start = 0
        while start < len(y):
            stop = min(len(y), start + self.batch - len(self._targets))
            predictions[start:stop] = self._predict(matrix[start:stop])
            self._rows.append(matrix[start:stop])
            self._targets += y[start:stop].tolist()
            self._learn_batch()
            start = stop
        return predictions

    def predict_one(self, x: Mapping[str, Any]) -> float:
        """Predict a row."""
        return float(self._predict(self._encoded(_as_columns(x), 1))[0])

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        """Learn a row, once its batch is full."""
        self._rows.append(self._encoded(_as_columns(x), 1))
        self._targets.append(y)
        self._learn_batch()

    def _learn_batch(self) -> None:
        if len(self._targets) == self.batch:
            rows = [row for part in self._rows for row in part]
            self._fit(np.array(rows), np.array(self._targets))
            self._rows, self._targets = [], []

    def _encoded(self, X: Mapping[str, Column], rows: int) -> FloatArray:
        """Return rows as a matrix, NaN where a value is missing, categories by their numbers."""
        if not self.features:
            self.features = list(X)
            self._codes = {
                name: {} for name, column in X.items() if not isinstance(column, np.ndarray)
            }
        if unknown := [name for name in X if name not in self.features]:
            raise ValueError(
                f"feature {validation.shown(unknown[0])} is new: the first rows lack it"
            )
        matrix = np.full((rows, len(self.features)), np.nan)
        for place, name in enumerate(self.features):
            column = X.get(name)
            codes = self._codes.get(name)
            if column is not None and codes is None:
                matrix[:, place] = column
            elif isinstance(column, list | Labels) and codes is not None:
                matrix[:, place] = [
                    np.nan if label is None else codes.setdefault(label, len(codes))
                    for label in column
                ]
        return matrix

    @abstractmethod
    def _predict(self, matrix: FloatArray) -> FloatArray:
        """Predict rows."""

    @abstractmethod
    def _fit(self, matrix: FloatArray, y: FloatArray) -> None:
        """Learn a batch."""


class LightGbm(BatchModel):
    """LightGBM that goes on with its own model: some more trees for every batch.

    - `trees`: how many each batch adds.
    - `batch`: how many rows a batch has.
    - `**parameters`: of LightGBM.
    """

    def __init__(self, trees: int = 5, batch: int = 1000, **parameters: Any) -> None:
        super().__init__(batch)
        self._library: Any = import_module("lightgbm")
        self.trees = validation.whole(trees, "trees", 1, 10**6)
        self.parameters = {"num_threads": 1, "verbosity": -1, **parameters}
        self._booster: Any = None

    def _predict(self, matrix: FloatArray) -> FloatArray:
        if self._booster is None:
            return np.zeros(len(matrix))
        return np.asarray(self._booster.predict(matrix, num_threads=1), dtype=np.float64)

    def _fit(self, matrix: FloatArray, y: FloatArray) -> None:
        categories = [place for place, name in enumerate(self.features) if name in self._codes]
        rows = self._library.Dataset(matrix, y, categorical_feature=categories)
        self._booster = self._library.train(
            self.parameters, rows, num_boost_round=self.trees, init_model=self._booster
        )

    def __repr__(self) -> str:
        return f"<LightGBM, {self.trees} trees for each {self.batch} rows>"


class Sgd(BatchModel):
    """Scikit-learn's linear model by stochastic gradient descent, of scaled numbers.

    A missing number counts as the mean; categories are hashed into 256 columns of 0 and 1.

    - `batch`: how many rows are learned at a time.
    - `**parameters`: of `sklearn.linear_model.SGDRegressor`.
    """

    def __init__(self, batch: int = 100, **parameters: Any) -> None:
        super().__init__(batch)
        module: Any = import_module("sklearn.linear_model")
        self._model = module.SGDRegressor(**{"random_state": 1, **parameters})
        self._is_fitted = False
        self._count = self._mean = self._squares = np.zeros(0)

    def _predict(self, matrix: FloatArray) -> FloatArray:
        if not self._is_fitted:
            return np.zeros(len(matrix))
        found = self._model.predict(self._scaled(matrix))
        return np.asarray(np.clip(np.nan_to_num(found), -LARGEST, LARGEST), dtype=np.float64)

    def _fit(self, matrix: FloatArray, y: FloatArray) -> None:
        self._learn_scale(matrix)
        self._model.partial_fit(self._scaled(matrix), y)
        self._is_fitted = True

    def _learn_scale(self, matrix: FloatArray) -> None:
        if not len(self._count):
            self._count, self._mean, self._squares = np.zeros((3, matrix.shape[1]))
        for row in matrix:
            known = ~np.isnan(row)
            self._count += known
            shift = np.where(known, row - self._mean, 0.0)
            self._mean = self._mean + shift / np.maximum(self._count, 1)
            self._squares = self._squares + shift * np.where(known, row - self._mean, 0.0)

    def _scaled(self, matrix: FloatArray) -> FloatArray:
        deviation = np.sqrt(self._squares / np.maximum(self._count, 1))
        scaled = np.nan_to_num((matrix - self._mean) / np.where(deviation > 0, deviation, 1.0))
        hashed = np.zeros((len(matrix), HASHED if self._codes else 0))
        for name, codes in self._codes.items():
            place = self.features.index(name)
            scaled[:, place] = 0.0
            columns = [crc32(f"{name}={label}".encode()) % HASHED for label in codes]
            for row in np.flatnonzero(~np.isnan(matrix[:, place])):
                hashed[row, columns[int(matrix[row, place])]] = 1.0
        return np.hstack([scaled, hashed])

    def __repr__(self) -> str:
        return f"<SGD, {self.batch} rows at a time>"


class River:
    """A model of river's; before linear models and neighbours there is a scaler.

    - `name`: the class, whatever its letters' case, such as "HoeffdingTreeRegressor".
    - `**parameters`: of that class.
    """

    def __init__(self, name: str, **parameters: Any) -> None:
        module, kind = _find_in_river(name)
        self._name = kind.__name__
        self.model = kind(**parameters)
        if module in SCALED:
            compose: Any = import_module("river.compose")
            preprocessing: Any = import_module("river.preprocessing")
            numbers = compose.SelectType(int, float) | preprocessing.StandardScaler()
            labels = compose.SelectType(str) | preprocessing.OneHotEncoder()
            self.model = compose.TransformerUnion(numbers, labels) | self.model

    def predict_one(self, x: Mapping[str, Any]) -> float:
        """Predict a row; 0 where the model does not."""
        found = self.model.predict_one(_without_missing(x))
        return 0.0 if found is None else float(found)

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        """Learn a row."""
        self.model.learn_one(_without_missing(x), y)

    def __repr__(self) -> str:
        return f"<{self._name} of river>"


def _find_in_river(name: str) -> tuple[str, Callable[..., Any]]:
    found: dict[str, tuple[str, Callable[..., Any]]] = {}
    for part in RIVER:
        module: Any = import_module(f"river.{part}")
        for each in module.__all__:
            found.setdefault(each.casefold(), (part, getattr(module, each)))
    if name.casefold() not in found:
        known = [kind.__name__ for _, kind in found.values()]
        raise ValueError(f"river has no {validation.shown(name)}: {nearest(name, known)}")
    return found[name.casefold()]


def _without_missing(x: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in x.items() if value is not None}


def _as_columns(x: Mapping[str, Any]) -> dict[str, Column]:
    return {
        name: [value]
        if isinstance(value, str)
        else np.array([np.nan if value is None else value], dtype=np.float64)
        for name, value in x.items()
    }


OTHERS: dict[str, Callable[..., Any]] = {"lightgbm": LightGbm, "sgd": Sgd, "river": River}
"""Models by their short names; river's are followed by that of the class."""
