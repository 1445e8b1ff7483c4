"""What it brings that categories stay codes: a Parquet file of three, read and learned.

The same chunks are learned once as they come, with labels by codes, and once with a list of labels
for each column, as streams gave them before.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.tables import Answer, Bound, Table
from benchmarks.timing import nanoseconds
from sapwood import HoeffdingTreeRegressor
from sapwood.rows.labels import Labels
from sapwood.streams import open_stream

__all__ = ["run"]

ROWS, QUICK_ROWS = 1_000_000, 100_000
CATEGORIES = {"carrier": 12, "plane": 40, "airport": 300}
REPEATS = 5
LEAST = 1.3  # times as many rows a second


class Record(NamedTuple):
    """One way to hand labels over."""

    stored: str
    labels: str
    rows: int
    rows_per_second: float


def run(quick: bool = False) -> Answer:
    """Learn a file whose categories are dictionaries, and one in which they are text.

    Parameters
    ----------
    quick : bool
        Fewer rows, and nothing is promised.
    """
    rows = QUICK_ROWS if quick else ROWS
    records, bounds = [], []
    with TemporaryDirectory() as folder:
        for stored in ("dictionary", "text"):
            path = Path(folder, f"{stored}.parquet")
            pa.parquet.write_table(_table(rows, stored == "dictionary"), path)
            taken = {"codes": [0] * REPEATS, "lists": [0] * REPEATS}
            for repeat in range(REPEATS):
                for labels, times in taken.items():
                    times[repeat] = nanoseconds(partial(_learn, path, labels == "codes"))
            records += [
                Record(stored, labels, rows, rows / min(times) * 1e9)
                for labels, times in taken.items()
            ]
            ratio = min(taken["lists"]) / min(taken["codes"])
            bounds.append(Bound(f"{stored}: codes / lists", ratio, LEAST, at_least=True))
    table = Table("Rows a second, read and learned by one thread", Record._fields, records)
    return Answer([table], Table("labels", Record._fields, records), [] if quick else bounds)


def _table(rows: int, coded: bool) -> pa.Table:
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    columns: dict[str, Any] = {"x": x}
    for name, count in CATEGORIES.items():
        codes = pa.array(rng.integers(0, count, rows, dtype=np.int32))
        known = pa.array([f"{name} {number:04d}" for number in range(count)])
        column = pa.DictionaryArray.from_arrays(codes, known)
        columns[name] = column if coded else column.dictionary_decode()
    return pa.table({**columns, "y": x + rng.normal(size=rows)})


def _learn(path: Path, by_codes: bool) -> None:
    tree = HoeffdingTreeRegressor()
    for chunk in open_stream(path, target="y").chunks():
        columns = chunk.columns
        if not by_codes:
            columns = {
                name: column.tolist() if isinstance(column, Labels) else column
                for name, column in columns.items()
            }
        tree.predict_learn_many(columns, chunk.y)
