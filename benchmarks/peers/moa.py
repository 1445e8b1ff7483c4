"""MOA's FIMT-DD: in a Java process of its own, and through CapyMOA's bridge.

Numbers as they are, words as nominal attributes, which FIMT-DD ignores. It stops at missing values,
so that they are replaced by the mean so far, as a filter of MOA's would; this is not timed.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet
from benchmarks.moa_process import MoaProcess
from benchmarks.peers.learners import Options, TimedLearner, category_codes, matrix

__all__ = ["CapyMoa", "Imputer", "MoaInJava", "moas_options"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK = 10_000
TARGET = "what is to be predicted"


class MoaInJava(TimedLearner):
    """FIMT-DD without any bridge: Java is given blocks of rows, and times itself.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    options : mapping
        The option "cli" are MOA's own, as on its command line.
    """

    def __init__(self, data: DataSet, options: Options) -> None:
        self.codes = category_codes(data)
        self.imputer = Imputer()
        self.java = _java(tuple(len(self.codes.get(name, ())) for name in data.columns))
        self.java.start(options.get("cli", ""))
        self.sizes: tuple[int, int] | None = None

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return blocks of rows, the target last."""
        rows = np.column_stack([self.imputer.filled(matrix(data, self.codes)), data.y])
        return [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]

    def predict_learn(self, call: Any) -> Any:
        """Predict and learn a block."""
        return self.java.follow(call)[0]

    def follow(self, calls: Sequence[Any]) -> tuple[FloatArray, int]:
        """Predict and learn rows by Java's clock."""
        self.sizes = None
        found = [self.java.follow(call) for call in calls]
        return np.concatenate([own for own, _ in found]), sum(taken for _, taken in found)

    def follow_singly(self, calls: Sequence[Any]) -> IntArray:
        """Predict and learn rows, each by Java's clock."""
        return np.concatenate([self.java.follow_singly(call)[1] for call in calls])

    def file_bytes(self) -> int:
        """Return the size of the serialized learner."""
        size = self._sizes()[1]
        if size < 0:
            raise RuntimeError("the model is too deep or too large for Java to write it")
        return size

    def model_bytes(self) -> int | None:
        """Return what a copy of the learner takes of Java's heap."""
        size = self._sizes()[0]
        return None if size < 0 else size

    def _sizes(self) -> tuple[int, int]:
        """Measure once for both, since it takes Java long."""
        if self.sizes is None:
            self.sizes = self.java.measure()
        return self.sizes

    def process_bytes(self) -> int | None:
        """Return None, as the learner lives in another process."""
        return None


class CapyMoa(TimedLearner):
    """FIMT-DD through CapyMOA, which is given arrays of a row each.

    Parameters
    ----------
    data : DataSet
        What it will be given.
    options : mapping
        Those of CapyMOA's class.
    """

    def __init__(self, data: DataSet, options: Options) -> None:
        self.codes = category_codes(data)
        self.imputer = Imputer()
        schemas = import_module("capymoa.stream").Schema
        self.instance: Any = import_module("capymoa.core").RegressionInstance.from_array
        self.java: Any = import_module("jpype").JClass
        self.schema = schemas.from_custom(
            features=[*data.columns, TARGET],
            target=TARGET,
            categories={name: [f"c{i}" for i in own.values()] for name, own in self.codes.items()},
        )
        self.model: Any = import_module("capymoa.regressor").FIMTDD(self.schema, **options)

    def calls(self, data: DataSet) -> Sequence[Any]:
        """Return pairs of an array and a target."""
        rows = self.imputer.filled(matrix(data, self.codes))
        return list(zip(rows, data.y.tolist(), strict=True))

    def predict_learn(self, call: Any) -> Any:
        """Make an instance of Java, predict and learn it."""
        row = self.instance(self.schema, *call)
        prediction = self.model.predict(row)
        self.model.train(row)
        return prediction

    def file_bytes(self) -> int:
        """Return the size of the serialized learner."""
        buffer = self.java("java.io.ByteArrayOutputStream")()
        self.java("java.io.ObjectOutputStream")(buffer).writeObject(self.model.moa_learner)
        return int(buffer.size())

    def model_bytes(self) -> int | None:
        """Return what a copy of the learner takes of Java's heap."""
        before = self._heap()
        copy = self.model.moa_learner.copy()
        size = self._heap() - before
        del copy
        return size

    def _heap(self) -> int:
        self.java("java.lang.System").gc()
        runtime = self.java("java.lang.Runtime").getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())


def _java(kinds: tuple[int, ...]) -> MoaProcess:
    """Return a Java process for such rows: that of the last learner, as it is warm."""
    found = _processes.get(kinds)
    if found is None or not found.running:
        found = _processes[kinds] = MoaProcess(kinds)
    return found


_processes: dict[tuple[int, ...], MoaProcess] = {}


class Imputer:
    """Replaces missing numbers by the mean of those before; 0 if there was none yet."""

    def __init__(self) -> None:
        self.totals: FloatArray | None = None
        self.counts: FloatArray | None = None

    def filled(self, rows: FloatArray) -> FloatArray:
        """Return rows without gaps, and remember the means.

        Parameters
        ----------
        rows : array of float
            NaN where a number is missing.
        """
        if self.totals is None or self.counts is None:
            self.totals, self.counts = np.zeros((2, rows.shape[1]))
        is_there = ~np.isnan(rows)
        totals = self.totals + np.cumsum(np.where(is_there, rows, 0.0), axis=0)
        counts = self.counts + np.cumsum(is_there, axis=0)
        self.totals, self.counts = totals[-1], counts[-1]
        return np.where(is_there, rows, totals / np.maximum(counts, 1.0))


def moas_options(grace_period: int, split_confidence: float, regression_tree: bool) -> str:
    """Return options of MOA's command line.

    Parameters
    ----------
    grace_period, split_confidence, regression_tree
        As CapyMOA calls them.
    """
    return f"-g {grace_period} -c {split_confidence:g}{' -e' if regression_tree else ''}"
