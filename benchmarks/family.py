"""The systems that the paper names, compared with the tree: rules, revision, options, gradients.

Streams with concept drift (generated) and real ones, labels at once, 10,000 rows at most. Rules: the
adaptive model rules of river and MOA, and a tree of four rules at most. Revision: an adaptive tree;
the tree, whose subtrees are pruned where a tree of one leaf predicted a block of rows better; river's
Hoeffding adaptive tree.
Options: forests of two and three members; MOA's ORTO. Gradients: the stochastic gradient trees of
river and MOA. Peers get categories as numbers and the median of earlier rows where a value is
missing. The cost of a row is CPU time, of MOA that of its own thread in Java.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.data_sets import DataSet
from benchmarks.moa_process import MoaProcess, moa_command
from benchmarks.peers import sets
from benchmarks.peers.learners import category_codes, matrix
from benchmarks.peers.moa import Imputer
from benchmarks.tables import Answer, Bound, Table
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor

__all__ = ["FILE", "PruningTree", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "family.csv"
ROWS, QUICK_ROWS, SKIPPED, BLOCK = 10_000, 1_500, 1_000, 500
LONGEST = 10**9  # nanoseconds of a row
LEAST_ROWS = 100  # of a block, by which a subtree is pruned
DRIFTING = ("friedman-gra", "friedman-lea", "friedman-gsg", "hyperplane")
REAL = ("bike", "metro", "california", "diamonds")
MOA = {
    "MOA FIMT-DD": "moa.classifiers.trees.FIMTDD",
    "MOA AMRules": "moa.classifiers.rules.AMRulesRegressor",
    "MOA ORTO": "moa.classifiers.trees.ORTO",
    "MOA SGT": "moa.classifiers.trees.StochasticGradientTree",
}


class Record(NamedTuple):
    """The accuracy and the cost of a learner on a stream; NaN, and why, where it failed."""

    stream: str
    learner: str
    r2: float
    microseconds: float
    megabytes: float | None
    rules: int | None
    failure: str


class PruningTree:
    """A tree whose subtrees are pruned where they predict worse than a tree of one leaf.

    It stands for split revision: what is below a node is given up once it does harm. The tree of one
    leaf stands for what the node would predict, which no longer learns once it has split.
    """

    def __init__(self) -> None:
        self.tree, self.pruned = HoeffdingTreeRegressor(), 0
        self._rival = HoeffdingTreeRegressor(max_depth=0)

    @property
    def nbytes(self) -> int:
        """Bytes of the trees."""
        return self.tree.nbytes + self._rival.nbytes

    @property
    def n_leaves(self) -> int:
        """Leaves of the tree."""
        return self.tree.n_leaves

    def predict_learn_many(self, X: Any, y: FloatArray) -> FloatArray:
        """Predict and learn rows in blocks, and prune after each.

        Parameters
        ----------
        X : mapping of columns
            The features.
        y : array
            The targets.
        """
        found = np.empty(len(y))
        for start in range(0, len(y), BLOCK):
            part = slice(start, start + BLOCK)
            columns = {name: column[part] for name, column in X.items()}
            found[part], regions = self.tree.predict_learn_regions(columns, y[part])
            rival = self._rival.predict_learn_many(columns, y[part])
            self._prune(np.asarray(regions), (y[part] - found[part]) ** 2, (y[part] - rival) ** 2)
        return found

    def _prune(self, regions: NDArray[Any], errors: FloatArray, others: FloatArray) -> None:
        """Prune the highest node whose rows the rival predicted better, given squared errors."""
        parents = np.asarray(self.tree.region_parents)
        sums = np.zeros((len(parents), 3))  # rows, squared errors, those of the rival
        values = np.column_stack([np.ones_like(errors), errors, others])
        at = regions.astype(np.int64)
        reached = np.ones(len(errors), np.bool_)
        while reached.any():
            np.add.at(sums, at[reached], values[reached])
            at = np.where(reached, parents[np.maximum(at, 0)], at)
            reached &= at >= 0
        inner = np.isin(np.arange(len(parents)), parents)
        worse = np.flatnonzero(inner & (sums[:, 0] >= LEAST_ROWS) & (sums[:, 1] > sums[:, 2]))
        if len(worse):
            self.tree.prune(int(worse[0]))  # a parent's number is below its children's
            self.pruned += 1


OURS: dict[str, Callable[[], Any]] = {
    "tree": HoeffdingTreeRegressor,
    "tree of depth 2": lambda: HoeffdingTreeRegressor(max_depth=2),
    "adaptive tree": lambda: AdaptiveTreeRegressor(threads=1),
    "pruning tree": PruningTree,
    "forest of 2": lambda: ForestRegressor(members=2, threads=1),
    "forest of 3": lambda: ForestRegressor(members=3, threads=1),
    "forest of 10": lambda: ForestRegressor(threads=1),
}


def run(quick: bool = False) -> Answer:
    """Evaluate all learners.

    Parameters
    ----------
    quick : bool
        Whether a few rows of one stream, and the trees of Sapwood, are enough.
    """
    rows = QUICK_ROWS if quick else ROWS
    streams = [sets.generated(name, rows) for name in (DRIFTING[:1] if quick else DRIFTING)]
    if not quick:
        streams += [data.head(rows) for data in map(data_sets.load, REAL) if data is not None]
    records = [record for data in streams for record in _records(data, quick)]
    table = Table("The family of the paper", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    means = {
        name: float(np.mean([r.r2 for r in records if r.learner == name]))
        for name in dict.fromkeys(r.learner for r in records)
    }
    shown = Table("Mean R²", ("learner", "R²"), list(means.items()))
    drifting = {
        name: np.mean([r.r2 for r in records if r.learner == name and r.stream in DRIFTING])
        for name in ("adaptive tree", "pruning tree")
    }
    lead = float(drifting["adaptive tree"] - drifting["pruning tree"])
    bounds = [Bound("lead of the adaptive tree over pruning, drifting streams", lead, 0.0, True)]
    return Answer([shown], table, bounds)


def _records(data: DataSet, quick: bool) -> Iterator[Record]:
    for name, make in OURS.items():
        model = make()
        start = process_time()
        predictions = np.asarray(model.predict_learn_many(data.columns, data.y))
        seconds = process_time() - start
        leaves = model.n_leaves if "forest" not in name else None
        yield _scored(data, name, predictions, seconds, size=model.nbytes / 1e6, rules=leaves)
    if quick:
        return
    for name, make in _rivers().items():
        yield _followed(data, name, make)
    if not isinstance(moa_command(), str):
        for name, learner in MOA.items():
            yield _in_java(data, name, learner)


def _rivers() -> dict[str, Callable[[], Any]]:
    try:
        from river import preprocessing, rules, tree
    except ImportError:
        return {}
    numbers = preprocessing.StandardScaler
    return {
        "river HAT": lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=1),
        "river AMRules": lambda: numbers() | rules.AMRules(),
        "river SGT": lambda: numbers() | tree.SGTRegressor(),
    }


def _followed(data: DataSet, name: str, make: Callable[[], Any]) -> Record:
    """Evaluate a learner of river's."""
    model, predictions = make(), np.zeros(len(data.y))
    start = process_time()
    try:
        for place, (x, y) in enumerate(zip(_rows(data), data.y.tolist(), strict=True)):
            predictions[place] = model.predict_one(x)
            model.learn_one(x, y)
    except Exception as error:  # whatever it is, it is the result
        return _failed(data, name, error)
    seconds = process_time() - start
    rules = 1 + len(model["AMRules"]._rules) if "AMRules" in name else None
    return _scored(data, name, predictions, seconds, rules=rules)


def _numbers(data: DataSet) -> FloatArray:
    """Return rows of numbers without missing values."""
    return Imputer().filled(matrix(data, category_codes(data)))


def _rows(data: DataSet) -> list[dict[str, Any]]:
    return [dict(zip(data.columns, row, strict=True)) for row in _numbers(data).tolist()]


def _in_java(data: DataSet, name: str, learner: str) -> Record:
    """Evaluate a learner of MOA's."""
    rows = np.column_stack([_numbers(data), data.y])
    try:
        with MoaProcess([0] * len(data.columns), learner) as java:
            java.start()
            predictions, nanoseconds = java.follow(rows)
    except (RuntimeError, OSError) as error:
        return _failed(data, name, error)
    if nanoseconds > LONGEST * len(rows):  # as it has printed among its predictions
        return _failed(data, name, RuntimeError("MOA prints among its results"))
    return _scored(data, name, predictions, nanoseconds / 1e9)


def _scored(
    data: DataSet,
    name: str,
    predictions: FloatArray,
    seconds: float,
    *,
    size: float | None = None,
    rules: int | None = None,
) -> Record:
    y, p = data.y[SKIPPED:], predictions[SKIPPED:]
    with np.errstate(over="ignore", invalid="ignore"):
        r2 = float(1.0 - np.sum((y - p) ** 2) / np.sum((y - y.mean()) ** 2))
    failure = "" if math.isfinite(r2) else "predictions that are no numbers"
    return Record(data.name, name, r2, 1e6 * seconds / len(data.y), size, rules, failure)


def _failed(data: DataSet, name: str, error: Exception) -> Record:
    words = f"{type(error).__name__}: {error}".splitlines()[0][:80]
    return Record(data.name, name, math.nan, math.nan, None, None, words)
