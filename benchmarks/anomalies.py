"""How well anomaly scores find injected anomalies: ROC AUC, compared with half-space trees.

One per cent of the rows after the first 500 are anomalies: half of their features are those of
another row ("mixed"), a quarter of them is shifted by 3 to 6 standard deviations ("shifted"), or all
of them are uniform within their range ("uniform"). Each row is scored before it is learned. The
formula of the score was chosen on bike rentals and traffic, which count as "chosen".
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.moa_process import MoaProcess, moa_command
from benchmarks.tables import Answer, Bound, Table
from sapwood import ForestRegressor, HoeffdingTreeRegressor

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "anomalies.csv"
ROWS, QUICK_ROWS, SKIPPED, BLOCK, SEEDS = 5_000, 1_500, 500, 100, 3
SHARE = 0.01
CHOSEN = ("bike", "metro")
HELD_OUT = ("california", "diamonds", "Beijing PM2.5")
HS_TREES = "moa.classifiers.oneclass.HSTrees"
KINDS = ("mixed", "shifted", "uniform")


class Record(NamedTuple):
    """The ROC AUC of a score on a stream with one kind of anomalies."""

    stream: str
    constants: str
    anomalies: str
    seed: int
    score: str
    auc: float


def run(quick: bool = False) -> Answer:
    """Score all streams by all models.

    Parameters
    ----------
    quick : bool
        Whether a few rows of a generated stream are enough.
    """
    rows, seeds = (QUICK_ROWS, 1) if quick else (ROWS, SEEDS)
    streams = {"sensors": (_sensors(rows), "held out")}
    for name in () if quick else (*CHOSEN, *HELD_OUT):
        data = data_sets.load(name)
        if data is not None:
            use = "chosen" if name in CHOSEN else "held out"
            streams[name] = _numbers(data.head(rows)), use
    records = [
        Record(name, use, kind, seed, score, _auc(found, bad))
        for name, ((X, y), use) in streams.items()
        for kind in KINDS
        for seed in range(seeds)
        for changed, bad in [_with_anomalies(X, kind, seed)]
        for score, found in _scores(changed, y, seed)
    ]
    table = Table("ROC AUC of anomaly scores", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    means = {
        (use, score): float(np.mean([r.auc for r in records if (r.constants, r.score) == key]))
        for use, score in dict.fromkeys((r.constants, r.score) for r in records)
        for key in [(use, score)]
    }
    bounds = [
        Bound("mean AUC of the forest on held-out streams", means["held out", "forest"], 0.8, True)
    ]
    shown = Table(
        "Means", ("constants", "score", "AUC"), [(*key, auc) for key, auc in means.items()]
    )
    return Answer([shown], table, bounds)


def _numbers(data: data_sets.DataSet) -> tuple[FloatArray, FloatArray]:
    """Return the columns of numbers, with the median where a value is missing."""
    columns = [column for column in data.columns.values() if column.dtype != object]
    X = np.column_stack(columns).astype(np.float64)
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), data.y


def _sensors(rows: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(5)
    hidden = rng.normal(size=(rows, 2))
    X = hidden @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(rows, 6))
    return X, np.where(hidden[:, 0] > 0.0, 3.0 * hidden[:, 1], 5.0) + rng.normal(size=rows)


def _with_anomalies(X: FloatArray, kind: str, seed: int) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    (rows, width), changed = X.shape, X.copy()
    bad: BoolArray = np.less(rng.random(rows), SHARE)
    bad[:SKIPPED] = False
    low, high, deviation = X.min(axis=0), X.max(axis=0), X.std(axis=0)
    for row in np.flatnonzero(bad):
        taken: NDArray[Any]
        if kind == "mixed":
            taken = np.less(rng.random(width), 0.5)
            taken[rng.integers(width)] = True
            changed[row, taken] = X[rng.integers(rows), taken]
        elif kind == "shifted":
            taken = rng.choice(width, max(1, width // 4), replace=False)
            far = rng.choice([-1.0, 1.0], len(taken)) * rng.uniform(3.0, 6.0, len(taken))
            changed[row, taken] += far * deviation[taken]
        else:
            changed[row] = rng.uniform(low, high)
    return np.ascontiguousarray(changed), bad


def _scores(X: FloatArray, y: FloatArray, seed: int) -> list[tuple[str, FloatArray]]:
    models: dict[str, Callable[[], Any]] = {
        "tree": HoeffdingTreeRegressor,
        "forest": lambda: ForestRegressor(threads=1, seed=seed),
    }
    found = []
    for name, make in models.items():
        model, scores = make(), []
        for start in range(0, len(X), BLOCK):
            part = slice(start, start + BLOCK)
            scores.append(model.anomaly_score_many(X[part]))
            model.learn_many(X[part], y[part])
        found.append((name, np.concatenate(scores)))
    if (peers := _half_space_trees(X, seed)) is not None:
        found.append(("river HalfSpaceTrees", peers))
    if not isinstance(moa_command(), str):
        found.append(("MOA HSTrees", _moas(X)))
    return found


def _half_space_trees(X: FloatArray, seed: int) -> FloatArray | None:
    try:
        from river import anomaly, preprocessing
    except ImportError:
        return None
    model, scaler = anomaly.HalfSpaceTrees(seed=seed), preprocessing.MinMaxScaler()
    found = np.empty(len(X))
    for place, row in enumerate(X.tolist()):
        x = dict(enumerate(row))
        scaler.learn_one(x)
        x = scaler.transform_one(x)
        found[place] = model.score_one(x)
        model.learn_one(x)
    return found


def _moas(X: FloatArray) -> FloatArray:
    """Return the scores of MOA's trees, of values that are scaled by the range so far."""
    low, high = np.minimum.accumulate(X), np.maximum.accumulate(X)
    scaled = (X - low) / np.where(high > low, high - low, 1.0)
    with MoaProcess([0] * X.shape[1], HS_TREES) as java:
        java.start()
        usual, _ = java.follow(np.column_stack([scaled, np.zeros(len(X))]))
    return -usual


def _auc(scores: FloatArray, bad: BoolArray) -> float:
    """Return the chance that an anomaly scores higher than another row; ties count half."""
    bad, scores = bad[SKIPPED:], scores[SKIPPED:]
    order = np.sort(scores[~bad])
    below = np.searchsorted(order, scores[bad], "left") + np.searchsorted(
        order, scores[bad], "right"
    )
    return float(np.mean(below) / (2 * len(order)))
