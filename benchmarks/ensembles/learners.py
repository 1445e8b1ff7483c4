"""One wrapper a learner: it is given batches in its own form, and keeps the time.

Rows are brought into that form before the clock starts: words as each learner takes them, missing
numbers replaced by the mean so far where it takes none. All have their defaults; random ones have
the seed 1.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from time import thread_time_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet
from benchmarks.moa_process import MoaProcess
from benchmarks.peers.learners import batches, category_codes, matrix
from benchmarks.peers.moa import Imputer

__all__ = ["BATCH", "Contender", "LightGbm", "Moa", "River", "Sapwood", "VowpalWabbit", "XgBoost"]

FloatArray = NDArray[np.float64]
Followed = tuple[FloatArray, int]

BATCH = 1_000
BOOSTED_TREES = 5  # that a batch adds


class Contender(ABC):
    """A learner that is given batches, and returns its predictions and times.

    Parameters
    ----------
    data : DataSet
        All that it will be given, so that it can know kinds and categories.
    """

    @abstractmethod
    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return rows as the learner takes them, `BATCH` of them a call.

        Parameters
        ----------
        data : DataSet
            The rows.
        """

    @abstractmethod
    def follow(self, call: Any) -> Followed:
        """Predict each row and learn it before the next one is predicted.

        Parameters
        ----------
        call : any
            An element of `calls`.

        Returns
        -------
        predictions : array of float
            Each from before its row was learned.
        nanoseconds : int
            Of CPU time.
        """

    @abstractmethod
    def follow_late(self, call: Any) -> Followed:
        """Predict all rows, and then learn them; as `follow`.

        Parameters
        ----------
        call : any
            An element of `calls`.
        """


class TimedContender(Contender):
    """A learner of this process, by the clock of its thread."""

    def follow(self, call: Any) -> Followed:
        """Predict and learn row by row."""
        return timed(lambda: self.predict_learn(call))

    def follow_late(self, call: Any) -> Followed:
        """Predict all rows, and then learn them."""

        def action() -> Any:
            predictions = self.predict(call)
            self.learn(call)
            return predictions

        return timed(action)

    def predict_learn(self, call: Any) -> Any:
        """Predict and learn row by row."""
        raise TypeError(f"{type(self).__name__} learns batches: it cannot have labels at once")

    @abstractmethod
    def predict(self, call: Any) -> Any:
        """Predict rows."""

    @abstractmethod
    def learn(self, call: Any) -> None:
        """Learn rows."""


def timed(action: Callable[[], Any]) -> Followed:
    """Return what an action returns, and its nanoseconds of CPU time.

    Parameters
    ----------
    action : callable
        Returns numbers.
    """
    start = thread_time_ns()
    found = action()
    taken = thread_time_ns() - start
    return np.asarray(found, np.float64), taken


def in_batches(rows: Any) -> list[Any]:
    """Return parts of `BATCH` rows.

    Parameters
    ----------
    rows : list or array
        All of them.
    """
    return [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]


class Sapwood(TimedContender):
    """A model of Sapwood's.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    name : str
        The class.
    options : mapping
        Its parameters.
    """

    def __init__(self, data: DataSet, name: str, **options: Any) -> None:
        self.model: Any = getattr(import_module("sapwood"), name)(**options)

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return columns and targets."""
        return list(batches(data.columns, data.y, BATCH))

    def predict_learn(self, call: Any) -> Any:
        """Predict and learn row by row."""
        return self.model.predict_learn_many(*call)

    def predict(self, call: Any) -> Any:
        """Predict rows."""
        return self.model.predict_many(call[0])

    def learn(self, call: Any) -> None:
        """Learn rows."""
        self.model.learn_many(*call)


class RowContender(TimedContender):
    """A learner that knows but single rows: pairs of something and a target."""

    @abstractmethod
    def predict_one(self, x: Any) -> float:
        """Predict a row."""

    @abstractmethod
    def learn_one(self, x: Any, y: float) -> None:
        """Learn a row."""

    def predict_learn(self, call: Any) -> Any:
        """Predict and learn row by row."""
        predictions = []
        for x, y in call:
            predictions.append(self.predict_one(x))
            self.learn_one(x, y)
        return predictions

    def predict(self, call: Any) -> Any:
        """Predict rows."""
        return [self.predict_one(x) for x, _ in call]

    def learn(self, call: Any) -> None:
        """Learn rows."""
        for x, y in call:
            self.learn_one(x, y)


class River(RowContender):
    """A model of river's behind its scaler and imputer.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    name : str
        The class, as "forest.ARFRegressor".
    linear : str
        The parameter for the linear models inside, which are given the numbers alone where there
        are words; empty if there are none, so that categories become a 0 or 1 each.
    options : mapping
        Its parameters.
    """

    def __init__(self, data: DataSet, name: str, linear: str = "", **options: Any) -> None:
        from benchmarks.river_trees import rivers_pipeline

        module, kind = name.split(".")
        made = getattr(import_module(f"river.{module}"), kind)
        self.model: Any = rivers_pipeline(made, options, data, linear)

    def predict_one(self, x: Any) -> float:
        """Predict a row."""
        return self.model.predict_one(x)

    def learn_one(self, x: Any, y: float) -> None:
        """Learn a row."""
        self.model.learn_one(x, y)

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return pairs of a dict and a target."""
        from benchmarks.river_trees import rivers_rows

        return in_batches(list(zip(rivers_rows(data), data.y.tolist(), strict=True)))


class VowpalWabbit(RowContender):
    """Vowpal Wabbit, given examples in its own format: numbers by name, words as they are.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    """

    def __init__(self, data: DataSet) -> None:
        self.model: Any = import_module("vowpalwabbit").Workspace("--quiet --random_seed 1")
        self.codes = category_codes(data)

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return pairs of two texts, without the target and with it."""
        table, pairs = matrix(data, self.codes), []
        words = [name in self.codes for name in data.columns]
        for row, y in zip(table.tolist(), data.y.tolist(), strict=True):
            parts = [
                f"x{place}_{value:.0f}" if word else f"x{place}:{value!r}"
                for place, (value, word) in enumerate(zip(row, words, strict=True))
                if word or not math.isnan(value)  # what is missing is left out
            ]
            text = f"| {' '.join(parts)}"
            pairs.append((text, f"{y!r} {text}"))
        return in_batches(pairs)

    def predict_one(self, x: Any) -> float:
        """Predict a row."""
        return self.model.predict(x)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn a row from the text with its target."""
        self.model.learn(y)


class Moa(Contender):
    """A learner of MOA's in pure Java, by Java's clock.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    name : str
        The class, without the package of ensembles.
    options : str
        On MOA's command line: what CapyMOA gives by default.
    """

    def __init__(self, data: DataSet, name: str, options: str) -> None:
        self.codes, self.imputer = category_codes(data), Imputer()
        kinds = [len(self.codes.get(column, ())) for column in data.columns]
        self.java = MoaProcess(kinds, f"moa.classifiers.meta.{name}")
        self.java.start(options)

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return blocks of rows, the target last."""
        return in_batches(np.column_stack([self.imputer.filled(matrix(data, self.codes)), data.y]))

    def follow(self, call: Any) -> Followed:
        """Predict and learn row by row, in Java."""
        return self.java.follow(call)

    def follow_late(self, call: Any) -> Followed:
        """Predict all rows and then learn them, in Java."""
        return self.java.follow_late(call)


class LightGbm(TimedContender):
    """LightGBM that goes on with its own model: some more trees for every batch, on one thread.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    """

    def __init__(self, data: DataSet) -> None:
        self.library: Any = import_module("lightgbm")
        self.codes = category_codes(data)
        self.words = [place for place, name in enumerate(data.columns) if name in self.codes]
        self.booster: Any = None

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return arrays and targets, words as codes."""
        return list(zip(in_batches(matrix(data, self.codes)), in_batches(data.y), strict=True))

    def predict(self, call: Any) -> Any:
        """Predict rows by the trees so far."""
        x, y = call
        return np.zeros(len(y)) if self.booster is None else self.booster.predict(x, num_threads=1)

    def learn(self, call: Any) -> None:
        """Add some trees."""
        self.booster = self.library.train(
            {"num_threads": 1, "verbosity": -1},
            self.library.Dataset(*call, categorical_feature=self.words),
            num_boost_round=BOOSTED_TREES,
            init_model=self.booster,
        )


class XgBoost(LightGbm):
    """XGBoost that goes on with its own model: some more trees for every batch, on one thread.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    """

    def __init__(self, data: DataSet) -> None:
        super().__init__(data)
        self.library = import_module("xgboost")
        self.kinds = ["c" if name in self.codes else "q" for name in data.columns]

    def predict(self, call: Any) -> Any:
        """Predict rows by the trees so far."""
        x, y = call
        return np.zeros(len(y)) if self.booster is None else self.booster.predict(self._table(x))

    def learn(self, call: Any) -> None:
        """Add some trees."""
        self.booster = self.library.train(
            {"nthread": 1, "verbosity": 0},
            self._table(*call),
            num_boost_round=BOOSTED_TREES,
            xgb_model=self.booster,
        )

    def _table(self, x: FloatArray, y: FloatArray | None = None) -> Any:
        return self.library.DMatrix(
            x, y, feature_types=self.kinds, enable_categorical=True, nthread=1
        )
