"""How many bins a leaf needs for each feature: R², leaves and memory with 8, 16, 32 and 64.

Trees have 32 by default, most members of a forest 16. Labels arrive at once.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import data_sets
from benchmarks.tables import Answer, Bound, Table
from benchmarks.transforms import follow
from sapwood import ForestRegressor, HoeffdingTreeRegressor, QuantizerObserver

__all__ = ["FILE", "run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "bins.csv"
ROWS, QUICK_ROWS, SKIPPED = 10_000, 2_000, 1_000
BINS = (8, 16, 32, 64)
STREAMS = ("bike", "metro", "Beijing PM2.5", "california", "diamonds", "puma8NH")
SEEDS = 3


class Record(NamedTuple):
    """The accuracy and size of a model on a stream; of a forest, the mean over seeds."""

    stream: str
    model: str
    bins: int
    r2: float
    leaves: float
    megabytes: float


def run(quick: bool = False) -> Answer:
    """Evaluate trees and forests of all sizes.

    Parameters
    ----------
    quick : bool
        Whether a few rows of Friedman's function are enough.
    """
    rows = QUICK_ROWS if quick else ROWS
    streams = [data_sets.friedman_set(rows)]
    if not quick:
        streams += [data.head(rows) for data in map(data_sets.load, STREAMS) if data is not None]
    records = [
        _record(data, name, bins, 1 if quick or name == "tree" else SEEDS)
        for data in streams
        for name in ("tree", "forest")
        for bins in BINS
    ]
    table = Table("Bins", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    rows_of_means = [
        (
            name,
            bins,
            *(np.mean([r[3:] for r in records if r[1:3] == (name, bins)], axis=0).tolist()),
        )
        for name in ("tree", "forest")
        for bins in BINS
    ]
    means = Table("Means", ("model", "bins", "R²", "leaves", "MB"), rows_of_means)
    r2 = {row[:2]: row[2] for row in rows_of_means}
    gap = max(r2["tree", bins] for bins in BINS) - r2["tree", 32]
    return Answer([means], table, [Bound("what trees lose by 32 bins", gap, 0.01)])


def _record(data: data_sets.DataSet, name: str, bins: int, seeds: int) -> Record:
    found = []
    for seed in range(seeds):
        observer = QuantizerObserver(slots=bins)
        model: Any = (
            HoeffdingTreeRegressor(observer=observer)
            if name == "tree"
            else ForestRegressor(observer=observer, seed=seed, threads=1)
        )
        y, p = data.y[SKIPPED:], follow(model, data, "at once")[SKIPPED:]
        r2 = 1.0 - np.sum((y - p) ** 2) / np.sum((y - y.mean()) ** 2)
        found.append((float(r2), model.n_leaves, model.nbytes / 1e6))
    r2, leaves, size = np.mean(found, axis=0).tolist()
    return Record(data.name, name, bins, r2, leaves, size)
