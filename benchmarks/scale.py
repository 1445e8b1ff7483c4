"""Distributed training: accuracy compared with a serial tree, the parts of a round, engines.

*Accuracy*: a stream is learned serially, and by rounds of 1, 2, 8 and 32 workers that each learn a
part of each round's rows from a snapshot; R² is that on the next rows, each of which is predicted
before it is learned. One worker alone learns the first 2,000 rows only, so that all else is merged.

*Parts*: the same files by `sapwood train` in one process and by workers, in CPU seconds of each
part, as these do not depend on who else uses the machine; and in wall time, in turns. The time of k
workers is computed from the parts: the time of the driver, and a k-th of the time of workers.
"""

import math
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks.data_sets import DataSet, friedman, load
from benchmarks.peers.sets import generated
from benchmarks.tables import Answer, Bound, Cell, Table
from sapwood import HoeffdingTreeRegressor
from sapwood.evaluate.prequential import Prequential
from sapwood.merge import Delta, ShardLearner, take_snapshot
from sapwood.merge.applying import take_in
from sapwood.scale import RoundReport, train, worker
from sapwood.scale.rounds import FIRST, LATER, LATER_SHARE, LEAST, SHARE
from sapwood.streams import open_stream

__all__ = ["run"]

WORKERS = (1, 2, 8, 32)
MOST_BYTES = 12_000_000  # as `sapwood train` allows a tree of ten features
MAY_LOSE = 0.003
NEXT_ROWS, NEXT_SHARE = 100_000, 0.2
PARTS = (2, 8)  # how often a file is in a folder
WORKING = ("--workers", "2")
FILE_ROWS, QUICK_ROWS = 4_000_000, 100_000
LARGE_ROWS, ENDLESS_ROWS, HUGE_ROWS = 5_000_000, 100_000_000, 1_000_000_000
GROUP_ROWS = 65_536
CLUSTERS = (2, 8, 64, 512)


class Record(NamedTuple):
    """How well one number of workers did on one stream."""

    data: str
    rows: int
    workers: int
    r2: float
    leaves: int
    rounds: int


def run(quick: bool = False) -> Answer:
    """Compare workers with a serial tree, and measure what a round is made of.

    Parameters
    ----------
    quick : bool
        Take few rows, and promise nothing.
    """
    records = list(_accuracy(quick))
    tables = [_accuracy_table(records)]
    with tempfile.TemporaryDirectory() as folder:
        rows = QUICK_ROWS if quick else FILE_ROWS
        paths = _written(Path(folder), rows)
        for path in paths:
            tables += _parts(path, rows)
        # A token for its cluster alone; else Ray would leave one in the home of whoever asks.
        (Path(folder) / "token").write_text(secrets.token_hex(32))
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(Path(folder) / "token")
        tables.append(_engines(paths[0]))
        tables.append(_whole_commands(paths, rows))
    tables.append(_endless(2 * QUICK_ROWS if quick else ENDLESS_ROWS))
    bounds = [] if quick else list(_bounds(records))
    return Answer(tables, Table("scale", Record._fields, records), bounds)


# -- accuracy -------------------------------------------------------------------------------------


def _accuracy(quick: bool) -> Iterator[Record]:
    for data in _streams(quick):
        rows = max(len(data.y) - NEXT_ROWS, int((1 - NEXT_SHARE) * len(data.y)))
        tree = _tree()
        tree.predict_learn_many(*_cut(data, 0, rows))
        yield Record(data.name, rows, 0, _r2(tree, data, rows), tree.n_leaves, 0)
        for workers in WORKERS:
            tree, rounds = _by_rounds(data, rows, workers)
            yield Record(data.name, rows, workers, _r2(tree, data, rows), tree.n_leaves, rounds)


def _streams(quick: bool) -> Iterator[DataSet]:
    x, y = friedman(np.random.default_rng(5), QUICK_ROWS if quick else LARGE_ROWS + NEXT_ROWS)
    yield DataSet("friedman", {f"x{place}": column for place, column in enumerate(x.T)}, y)
    del x, y
    for name in ("metro", "diamonds"):
        data = load(name)
        if data is not None:
            yield data
    yield generated("demand", 50_000)


def _tree() -> HoeffdingTreeRegressor:
    return HoeffdingTreeRegressor(max_bytes=MOST_BYTES)


def _cut(data: DataSet, start: int, stop: int | None = None) -> tuple[dict[str, Any], Any]:
    return {name: column[start:stop] for name, column in data.columns.items()}, data.y[start:stop]


def _by_rounds(data: DataSet, rows: int, workers: int) -> tuple[HoeffdingTreeRegressor, int]:
    tree, done, rounds = _tree(), LEAST, 0
    tree.predict_learn_many(*_cut(data, 0, done))
    while done < rows:
        share = SHARE * (LATER_SHARE if done >= LATER else 1.0)
        end = min(rows, done + max(LEAST, int(share * done)))
        edges = np.linspace(done, end, workers + 1).astype(int)
        snapshot, total = take_snapshot(tree, rounds), None
        for shard in range(workers):
            learner = ShardLearner(snapshot, shard)
            learner.predict_learn_many(*_cut(data, edges[shard], edges[shard + 1]))
            delta: Delta = learner.delta()
            total = delta if total is None else total + delta
        assert total is not None
        take_in(tree, total)
        done, rounds = end, rounds + 1
    return tree, rounds


def _r2(tree: HoeffdingTreeRegressor, data: DataSet, rows: int) -> float:
    columns, y = _cut(data, rows)
    predicted = tree.copy().predict_learn_many(columns, y)
    return float(1 - np.mean((y - predicted) ** 2) / y.var())


def _accuracy_table(records: Sequence[Record]) -> Table:
    rows: list[Sequence[Cell]] = []
    for serial in (record for record in records if record.workers == 0):
        others = {r.workers: r for r in records if r.data == serial.data and r.workers}
        scores = [f"{others[workers].r2:.4f}" for workers in WORKERS]
        rows.append(
            (serial.data, serial.rows, f"{serial.r2:.4f}", *scores, others[WORKERS[-1]].rounds)
        )
    names = [f"{workers} workers" for workers in WORKERS]
    return Table("R² on the next rows", ("stream", "rows", "serial", *names, "rounds"), rows)


def _bounds(records: Sequence[Record]) -> Iterator[Bound]:
    serial = {record.data: record.r2 for record in records if record.workers == 0}
    for record in records:
        if record.workers in (8, 32):
            lost = serial[record.data] - record.r2
            yield Bound(f"R² lost on {record.data}, {record.workers} workers", lost, MAY_LOSE)


# -- the parts of a round -------------------------------------------------------------------------


def _written(folder: Path, rows: int) -> list[Path]:
    """Write the same rows as Parquet and as CSV."""
    x, y = friedman(np.random.default_rng(6), rows)
    columns = {f"x{place}": np.round(column, 6) for place, column in enumerate(x.T)}
    table = pa.table({**columns, "y": np.round(y, 4)})
    paths = [folder / "rows.parquet", folder / "rows.csv"]
    pa.parquet.write_table(table, paths[0], row_group_size=GROUP_ROWS)
    pa.csv.write_csv(table, paths[1])
    return paths


class _AtOnce(Executor):
    """Calls functions when they are submitted, and knows how much CPU time each kind took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Call a function."""
        future: Future[Any] = Future()
        begun = time.process_time()
        future.set_result(function(*arguments, **named))
        self.seconds[function.__name__] += time.process_time() - begun
        return future


def _serial_seconds(path: Path) -> float:
    """Return the CPU seconds of one process that learns a file."""
    begun = time.process_time()
    run = Prequential(_tree(), open_stream(path, target="y"))
    for _ in run.steps():
        pass
    run.finish()
    return time.process_time() - begun


class _Parts(NamedTuple):
    """CPU seconds of a job."""

    workers: int
    rounds: int
    alone: float  # what one worker does before rows are shared out
    rows: float  # reading and learning, all workers together
    loads: float  # snapshots and deltas, all workers together
    driver: float
    bytes_out: int  # of the last round but one, to one worker, and from one
    bytes_in: int


def _parts(path: Path, rows: int) -> Iterator[Table]:
    serial = min(_serial_seconds(path) for _ in range(2))
    clock: Any = worker
    kept, clock.time.perf_counter = clock.time.perf_counter, time.process_time
    try:
        found = [_job(path, workers, rows) for workers in (2, 8)]
    finally:
        clock.time.perf_counter = kept
    seconds = ("alone", "rows", "loads", "driver")
    columns = ("workers", "rounds", *seconds, "bytes to one", "bytes from one")
    yield Table(f"CPU seconds, {path.name}; one process: {serial:.2f}", columns, found)
    for foreseen in (rows, HUGE_ROWS):
        yield _projected(path, foreseen, *found, serial=serial, measured=rows)


def _alone(rows: int) -> int:
    """Return how many rows of a file one worker learns first."""
    return min(FIRST, rows // 4)


def _job(path: Path, workers: int, rows: int) -> _Parts:
    reports: list[RoundReport] = []
    executor = _AtOnce()
    begun = time.process_time()
    trained = train(
        _tree(),
        str(path),
        workers=workers,
        engine=executor,
        read_options={"target": "y"},
        first=_alone(rows),
        listener=reports.append,
    )
    total = time.process_time() - begun
    own: Counter[str] = Counter()
    for report in reports:
        own.update(report.worker_seconds)
    return _Parts(
        workers,
        trained.rounds,
        executor.seconds["survey"] + executor.seconds["learn_first"],
        own["read"] + own["learn"],
        own["load"] + own["delta"],
        total - sum(executor.seconds.values()),
        reports[-2].bytes_out // workers,
        reports[-2].bytes_in // workers,
    )


def _projected(
    path: Path, rows: int, two: _Parts, eight: _Parts, *, serial: float, measured: int
) -> Table:
    """Return the projected time of workers with a core each, from the measurements.

    The overhead of a round is its measured mean. The time of the driver grows with the number of
    deltas, up to eight of them, as others are summed by workers, level by level.
    """
    lines: list[Sequence[Cell]] = []
    rounds = two.rounds + math.log(rows / measured) / math.log(1 + LATER_SHARE * SHARE)
    load = two.loads / (two.rounds * two.workers)
    by_eight, by_two = eight.driver / eight.rounds, two.driver / two.rounds
    a_delta = (by_eight - by_two) / 6
    for workers in CLUSTERS:
        levels = max(0, math.ceil(math.log(workers, 8)) - 1)
        driver = rounds * (by_two + a_delta * (min(workers, 8) - 2))
        shared = (rows - _alone(rows)) / (measured - _alone(measured))
        working = two.rows * shared / workers
        waiting = rounds * (load + levels * by_eight)
        seconds = two.alone + driver + working + waiting
        share = driver / seconds
        lines.append((workers, working, waiting, driver, share, serial * rows / measured / seconds))
    columns = ("workers", "rows", "loads and sums", "driver", "driver's share", "times one process")
    return Table(f"Projected seconds for {rows:,} rows, {path.name}", columns, lines)


# -- engines, and endless streams -----------------------------------------------------------------


def _engines(path: Path) -> Table:
    """Learn the same file on each engine that is installed, by two workers."""
    rows: list[Sequence[Cell]] = []
    first = b""
    modules = {"threads": "threading", "processes": "os", "dask": "distributed", "ray": "ray"}
    for engine, module in modules.items():
        if find_spec(module) is None:
            continue
        begun = time.perf_counter()
        trained = train(_tree(), str(path), workers=2, engine=engine, read_options={"target": "y"})
        whole = time.perf_counter() - begun
        data = trained.model.to_bytes()
        first = first or data
        rows.append((engine, whole, trained.seconds, data == first))
    begun = time.perf_counter()
    _serial_seconds(path)
    rows.append(("one process", time.perf_counter() - begun, None, None))
    columns = ("engine", "wall seconds", "without its start", "same model")
    return Table(f"Engines, two workers, {path.name}", columns, rows)


def _whole_commands(paths: Sequence[Path], rows: int) -> Table:
    """Time `sapwood train` from start to end, on folders in which a file is there several times."""
    lines: list[Sequence[Cell]] = []
    for path in paths:
        for times in PARTS:
            folder = path.parent / f"{times} times {path.suffix[1:]}"
            folder.mkdir()
            for place in range(times):
                (folder / f"{place:03}{path.suffix}").hardlink_to(path)
            seconds = [_seconds_of(folder, path.suffix, options) for options in ((), WORKING)]
            name = f"{times * rows:,}, {path.suffix[1:]}"
            lines.append((name, *seconds, seconds[0] / seconds[1]))
    columns = ("rows", "one process", " ".join(WORKING), "times")
    return Table("Wall seconds of `sapwood train`", columns, lines)


def _seconds_of(folder: Path, suffix: str, options: Sequence[str]) -> float:
    arguments = ["train", f"{folder}/*{suffix}", "-t", "y", "--save", f"{folder}/model", "--quiet"]
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "sapwood", *arguments, *options], check=True)
    return time.perf_counter() - begun


def _endless(rows: int) -> Table:
    """Learn a generator, and watch memory and the cost of a row."""
    lines: list[Sequence[Cell]] = []
    marks = [rows // 100, rows // 10, rows // 3, rows]
    begun, seen = time.perf_counter(), 0

    def watch(report: RoundReport) -> None:
        nonlocal begun, seen
        if report.total_rows >= marks[len(lines)]:
            now = time.perf_counter()
            spent = (now - begun) / max(1, report.total_rows - seen)
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            row = (report.total_rows, report.leaves, 1e6 * spent, own, report.bytes_in / 1e6)
            lines.append(row)
            begun, seen = now, report.total_rows

    train(_tree(), f"friedman:rows={rows},seed=7", workers=2, engine="processes", listener=watch)
    columns = ("rows", "leaves", "wall µs a row since", "driver MB at most", "MB in, last round")
    return Table("An endless stream, two processes", columns, lines)
