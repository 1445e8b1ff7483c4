"""Costs of `sapwood evaluate` on a CSV file, the whole process, compared with MOA.

Wall clock and peak resident memory of child processes: reading, predicting, learning, scoring, and
starting up. MOA reads its own format, ARFF, with the same numbers in it.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.moa_process import moa_command
from benchmarks.tables import Answer, Bound, Table
from sapwood import streams

__all__ = ["run"]

ROWS = 1_000_000
QUICK_ROWS = 100_000
TIMES_AS_MANY = 10
TIMES_AS_FAST = 10.0
MAY_GROW = 1.1
REPEATS = 3
DIGITS = 6


class Record(NamedTuple):
    """One process: what it did, the seconds that it took, and the bytes that it held at most."""

    program: str
    rows: int
    seconds: float
    peak_bytes: int


def run(quick: bool = False) -> Answer:
    """Evaluate a million rows of Friedman's function, ten million, and a million by MOA.

    Parameters
    ----------
    quick : bool
        A tenth of that.
    """
    rows = QUICK_ROWS if quick else ROWS
    bounds = []
    with TemporaryDirectory() as folder:
        few, many, arff = (Path(folder, name) for name in ("few.csv", "many.csv", "few.arff"))
        _write(few, rows, _csv_header)
        _write(arff, rows, _arff_header)
        ours = [_ours(few, rows) for _ in range(REPEATS)]
        best = min(ours, key=lambda record: record.seconds)
        records = [*ours]
        moa = _moa(arff, rows)
        if isinstance(moa, Record):
            records.append(moa)
            ratio = moa.seconds / best.seconds
            bounds.append(
                Bound("evaluate: MOA's seconds / ours", ratio, TIMES_AS_FAST, at_least=True)
            )
        few.unlink()
        arff.unlink()
        _write(many, rows * TIMES_AS_MANY, _csv_header)
        records.append(_ours(many, rows * TIMES_AS_MANY))
        bounds.append(
            Bound(
                f"evaluate: peak memory for {TIMES_AS_MANY} times as many rows",
                records[-1].peak_bytes / best.peak_bytes,
                MAY_GROW,
            )
        )
    shown = [
        (r.program, r.rows, r.seconds, r.rows / r.seconds, r.peak_bytes / 1e6) for r in records
    ]
    title = "The whole process, from a file of 10 features"
    if isinstance(moa, str):
        title += f" (no MOA: {moa})"
    columns = ("program", "rows", "seconds", "rows/s", "peak MB")
    return Answer([Table(title, columns, shown)], Table("", Record._fields, records), bounds)


def _csv_header(names: Sequence[str]) -> str:
    return ",".join(names) + "\n"


def _arff_header(names: Sequence[str]) -> str:
    attributes = "".join(f"@attribute {name} numeric\n" for name in names)
    return f"@relation friedman\n{attributes}@data\n"


def _write(path: Path, rows: int, header: Callable[[Sequence[str]], str]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    stream = streams.friedman(rows=rows)
    names = [*stream.features, "y"]
    with path.open("wb") as file:
        file.write(header(names).encode())
        for chunk in stream.chunks():
            assert chunk.y is not None
            table = pa.table(
                {
                    name: np.round(np.asarray(values), DIGITS)
                    for name, values in chunk.columns.items()
                }
                | {"y": chunk.y.round(DIGITS)}
            )
            csv.write_csv(table, file, csv.WriteOptions(include_header=False))


def _ours(path: Path, rows: int) -> Record:
    program = Path(sys.executable).with_name("sapwood")
    return _measure("sapwood evaluate", rows, [str(program), "evaluate", str(path), "-t", "y"])


def _moa(path: Path, rows: int) -> Record | str:
    task = f"EvaluatePrequentialRegression -l trees.FIMTDD -s (ArffFileStream -f {path}) -f {rows}"
    command = moa_command("moa.DoTask", task)
    return command if isinstance(command, str) else _measure("MOA FIMT-DD", rows, command)


# A process inherits the peak of the one that starts it: so a small one has to.
LAUNCHER = """
import os, subprocess, sys, time
start = time.perf_counter()
quiet = subprocess.DEVNULL
process = subprocess.Popen(sys.argv[1:], stdout=quiet, stderr=quiet)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def _measure(program: str, rows: int, command: Sequence[str]) -> Record:
    """Run a process to its end."""
    launched = [sys.executable, "-I", "-S", "-c", LAUNCHER, *command]
    output = subprocess.run(launched, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds, peak = output.split()
    return Record(program, rows, float(seconds), int(peak))
