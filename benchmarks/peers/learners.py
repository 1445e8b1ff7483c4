"""One wrapper a learner: the form of rows that it takes, a call, its file, and the clock.

Rows are brought into that form before the clock starts. What a learner needs in order to use them,
such as scaling, belongs to its own pipeline and is timed.
"""

import gc
import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet

__all__ = [
    "LightGbm",
    "River",
    "SapwoodBatches",
    "SapwoodRows",
    "Sgd",
    "TimedLearner",
    "category_codes",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Options = Mapping[str, Any]

SAPWOOD_BATCH = 1_000
LIGHTGBM_BATCH = 1_000
LIGHTGBM_TREES = 5
MISSING = "missing"


class TimedLearner(ABC):
    """A learner that keeps the time.

    Parameters
    ----------
    data : DataSet
        What it will be given, so that it can know kinds and categories.
    options : mapping
        What departs from its defaults.
    """

    @abstractmethod
    def __init__(self, data: DataSet, options: Options) -> None: ...

    @abstractmethod
    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return rows as the learner takes them, a call each.

        Parameters
        ----------
        data : DataSet
            The rows.
        """

    @abstractmethod
    def predict_learn(self, call: Any) -> Any:
        """Predict the rows of a call, then learn them.

        Parameters
        ----------
        call : any
            An element of `calls`.
        """

    def follow(self, calls: Sequence[Any]) -> tuple[FloatArray, int]:
        """Predict and learn rows; return the predictions, and nanoseconds of CPU time.

        Parameters
        ----------
        calls : sequence
            What `calls` returned.
        """
        predict_learn = self.predict_learn
        start = thread_time_ns()
        found = [predict_learn(call) for call in calls]
        taken = thread_time_ns() - start
        return np.hstack(found).astype(np.float64), taken

    def follow_singly(self, calls: Sequence[Any]) -> IntArray:
        """Predict and learn rows; return the nanoseconds of each call.

        Parameters
        ----------
        calls : sequence
            What `calls` returned.
        """
        predict_learn, taken = self.predict_learn, []
        for call in calls:
            start = thread_time_ns()
            predict_learn(call)
            taken.append(thread_time_ns() - start)
        return np.array(taken)

    @abstractmethod
    def file_bytes(self) -> int:
        """Return the size of the model's file, in the form that its users would write."""

    def model_bytes(self) -> int | None:
        """Return the bytes that the model reports to occupy; None if it reports none."""
        return None

    def process_bytes(self) -> int | None:
        """Return the bytes that this process occupies; None if the model lives elsewhere."""
        gc.collect()
        status = Path("/proc/self/statm")
        if not status.exists():
            return None
        return int(status.read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


class SapwoodBatches(TimedLearner):
    """Sapwood's tree, given columns of rows."""

    def __init__(self, data: DataSet, options: Options) -> None:
        from sapwood import HoeffdingTreeRegressor

        self.tree = HoeffdingTreeRegressor(**options)

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return columns and targets, some rows at a time."""
        return list(batches(data.columns, data.y, SAPWOOD_BATCH))

    def predict_learn(self, call: Any) -> Any:
        """Predict and learn a batch."""
        return self.tree.predict_learn_many(*call)

    def file_bytes(self) -> int:
        """Return the size in Sapwood's own format."""
        return len(self.tree.to_bytes())

    def model_bytes(self) -> int | None:
        """Return what the tree's tables occupy."""
        return self.tree.nbytes


class SapwoodRows(SapwoodBatches):
    """Sapwood's tree, given dicts one by one."""

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return pairs of a dict and a target."""
        return list(zip(data.dicts(), data.y.tolist(), strict=True))

    def predict_learn(self, call: Any) -> Any:
        """Predict and learn a row."""
        x, y = call
        prediction = self.tree.predict_one(x)
        self.tree.learn_one(x, y)
        return prediction


class River(TimedLearner):
    """A tree of river's, behind its scaler and imputer.

    Parameters
    ----------
    data, options
        As for all learners; the option "kind" is the class of the tree.
    """

    def __init__(self, data: DataSet, options: Options) -> None:
        from benchmarks.river_trees import rivers_pipeline

        rest = {name: value for name, value in options.items() if name != "kind"}
        self.model = rivers_pipeline(options["kind"], rest, data)

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return pairs of a dict and a target."""
        from benchmarks.river_trees import rivers_rows

        return list(zip(rivers_rows(data), data.y.tolist(), strict=True))

    def predict_learn(self, call: Any) -> Any:
        """Predict and learn a row."""
        x, y = call
        prediction = self.model.predict_one(x)
        self.model.learn_one(x, y)
        return prediction

    def file_bytes(self) -> int:
        """Return the size of the pickled pipeline."""
        return len(pickle.dumps(self.model))

    def model_bytes(self) -> int | None:
        """Return what river counts by a walk over its objects."""
        return int(self.model._raw_memory_usage)


class LightGbm(TimedLearner):
    """LightGBM that goes on with its own model: some more trees for every batch, on one thread.

    Parameters
    ----------
    data, options
        As for all learners; the option "trees" is how many each batch adds.
    """

    def __init__(self, data: DataSet, options: Options) -> None:
        self.lightgbm: Any = import_module("lightgbm")
        rest = {name: value for name, value in options.items() if name != "trees"}
        self.trees = options.get("trees", LIGHTGBM_TREES)
        self.parameters = {"num_threads": 1, "verbosity": -1, **rest}
        self.codes = category_codes(data)
        self.categorical = [i for i, name in enumerate(data.columns) if name in self.codes]
        self.booster: Any = None

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return arrays and targets, words as codes."""
        table = matrix(data, self.codes)
        return [
            (table[start : start + LIGHTGBM_BATCH], data.y[start : start + LIGHTGBM_BATCH])
            for start in range(0, len(data.y), LIGHTGBM_BATCH)
        ]

    def predict_learn(self, call: Any) -> Any:
        """Predict a batch by the trees so far, then add some."""
        x, y = call
        predictions = (
            np.zeros(len(y)) if self.booster is None else self.booster.predict(x, num_threads=1)
        )
        rows = self.lightgbm.Dataset(x, y, categorical_feature=self.categorical)
        self.booster = self.lightgbm.train(
            self.parameters, rows, num_boost_round=self.trees, init_model=self.booster
        )
        return predictions

    def file_bytes(self) -> int:
        """Return the size in LightGBM's own format."""
        return len(self.booster.model_to_string())


class Sgd(TimedLearner):
    """Scikit-learn's linear model by stochastic gradient descent, its numbers scaled.

    The scaler learns the numbers of a batch before they are predicted. Missing ones become the
    mean; categories are 0 or 1 each, laid out before the clock starts.

    Parameters
    ----------
    data, options
        As for all learners; the option "batch" is how many rows it is given at a time.
    """

    def __init__(self, data: DataSet, options: Options) -> None:
        from sklearn.linear_model import SGDRegressor
        from sklearn.preprocessing import StandardScaler

        rest = {name: value for name, value in options.items() if name != "batch"}
        self.batch = options["batch"]
        self.codes = category_codes(data)
        self.scaler = StandardScaler()
        self.model = SGDRegressor(random_state=1, **rest)
        self.fitted = False

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return numbers, categories and targets, some rows at a time."""
        numbers = np.column_stack([c for n, c in data.columns.items() if n not in self.codes])
        dummies = [
            np.equal.outer(_labels(data.columns[name]), list(codes)).astype(np.float64)
            for name, codes in self.codes.items()
        ]
        categories = np.hstack(dummies) if dummies else np.empty((len(numbers), 0))
        return [
            tuple(part[start : start + self.batch] for part in (numbers, categories, data.y))
            for start in range(0, len(data.y), self.batch)
        ]

    def predict_learn(self, call: Any) -> Any:
        """Scale, predict and learn a batch."""
        numbers, categories, y = call
        with np.errstate(invalid="ignore"):  # of columns of which nothing was seen yet
            self.scaler.partial_fit(numbers)
        scaled = np.nan_to_num(self.scaler.transform(numbers), copy=False)
        x = np.hstack([scaled, categories])
        predictions = self.model.predict(x) if self.fitted else np.zeros(len(y))
        self.model.partial_fit(x, y)
        self.fitted = True
        return predictions

    def file_bytes(self) -> int:
        """Return the size of the pickled scaler and model."""
        return len(pickle.dumps((self.scaler, self.model)))

    def model_bytes(self) -> int | None:
        """Return the size of the few arrays that it has."""
        return self.file_bytes()


def category_codes(data: DataSet) -> dict[str, dict[str, int]]:
    """Return the categories of each column of words, numbered.

    Parameters
    ----------
    data : DataSet
        A missing word counts as one more category.
    """
    return {
        name: {label: code for code, label in enumerate(sorted(set(_labels(column))))}
        for name, column in data.columns.items()
        if column.dtype == object
    }


def matrix(data: DataSet, codes: Mapping[str, Mapping[str, int]]) -> FloatArray:
    """Return all columns side by side, words as the numbers of their categories.

    Parameters
    ----------
    data : DataSet
        The rows.
    codes : mapping
        What `category_codes` returned.
    """
    columns = []
    for name, column in data.columns.items():
        own = codes.get(name)
        columns.append(column if own is None else [float(own[x]) for x in _labels(column)])
    return np.column_stack(columns).astype(np.float64)


def batches(
    columns: Mapping[str, NDArray[Any]], y: FloatArray, size: int
) -> Iterator[tuple[dict[str, NDArray[Any]], FloatArray]]:
    """Yield columns and targets in parts.

    Parameters
    ----------
    columns : mapping of arrays
        The features.
    y : array
        The targets.
    size : int
        How many rows at most.
    """
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        yield {name: column[part] for name, column in columns.items()}, y[part]


def _labels(column: NDArray[Any]) -> list[str]:
    return [MISSING if label is None else str(label) for label in column]


Make = Callable[[DataSet, Options], TimedLearner]
