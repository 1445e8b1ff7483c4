"""Whether a forest with a memory limit stays as fast and as small after ten million rows.

Rows of Friedman's function, predicted and learned in batches of 1,000 by one thread; CPU time of
the rows before each place, and the memory that the model reports compared with that of its process.
"""

import resource
import time
from typing import NamedTuple

import numpy as np

from benchmarks.data_sets import friedman
from benchmarks.tables import Answer, Bound, Table
from sapwood import ForestRegressor

__all__ = ["run"]

MILLION, BATCH, CHUNK = 1_000_000, 1_000, 100_000
PLACES, QUICK_PLACES = (MILLION, 10 * MILLION), (CHUNK, 3 * CHUNK)
MOST_BYTES, QUICK_BYTES = 200_000_000, 20_000_000
MEASURED = 500_000  # rows before a place
MOST_TIMES = 2.0


class Record(NamedTuple):
    """The cost of a row before a place, and the memory of the model there."""

    rows: int
    microseconds: float
    model_megabytes: float
    process_megabytes: float
    leaves: int
    r2: float


def run(quick: bool = False) -> Answer:
    """Let a forest learn for long.

    Parameters
    ----------
    quick : bool
        300,000 rows and a tenth of the memory instead, and nothing promised.
    """
    places, most = (QUICK_PLACES, QUICK_BYTES) if quick else (PLACES, MOST_BYTES)
    forest = ForestRegressor(threads=1, max_bytes=most)
    records: list[Record] = []
    times: list[float] = []
    errors: list[float] = []
    for start in range(0, places[-1], CHUNK):
        x, y = friedman(np.random.default_rng(start + 1), CHUNK)
        begun, total = time.thread_time(), 0.0
        for first in range(0, CHUNK, BATCH):
            part = slice(first, first + BATCH)
            predicted = forest.predict_learn_many(x[part], y[part])
            total += float(np.sum((y[part] - predicted) ** 2))
        times.append(time.thread_time() - begun)
        errors.append(total / CHUNK / y.var())
        if start + CHUNK in places:
            last = MEASURED // CHUNK
            records.append(
                Record(
                    start + CHUNK,
                    1e6 * float(np.mean(times[-last:])) / CHUNK,
                    forest.nbytes / 1e6,
                    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
                    forest.n_leaves,
                    1 - float(np.mean(errors[-last:])),
                )
            )
    table = Table(f"A forest of ten within {most / 1e6:.0f} MB", Record._fields, records)
    first_record, last_record = records
    bounds = [
        Bound(
            "µs a row, the last rows against the first million",
            last_record.microseconds / first_record.microseconds,
            MOST_TIMES,
        ),
        Bound("megabytes of the forest", last_record.model_megabytes, most / 1e6),
    ]
    return Answer([table], table, [] if quick else bounds)
