"""Runs all jobs, each in a process of its own, and keeps what they find as they go."""

import json
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.apart import records_apart
from benchmarks.data_sets import DataSet
from benchmarks.peers import sets
from benchmarks.peers.about import describe
from benchmarks.peers.jobs import COST_STREAM, Plan, failure, run_job
from benchmarks.peers.records import Job, Record, ResultsFile
from benchmarks.peers.roster import DEFAULT, OURS, PEERS

__all__ = ["FULL", "QUICK", "Run", "run"]

QUICK = Plan(
    name="quick",
    generated=("friedman", "friedman-gra", "mv"),
    real=("diamonds", "txhousing", "flights", "weather", "randhie", "fair"),
    rows=5_000,
    warm_up=1_000,
    grid_rows=2_500,
    cost_rows=5_000,
    passes=2,
    growth_rows=10**6,
    budget=2.0,
    patience=120.0,
)
FULL = Plan(
    name="full",
    generated=tuple(sets.GENERATED),
    real=tuple(sets.REAL),
    rows=50_000,
    warm_up=1_000,
    grid_rows=10_000,
    cost_rows=20_000,
    passes=3,
    growth_rows=10**7,
    budget=40.0,
    patience=900.0,
)

WORKERS = 2
REST = "the rest"
# The clock is that of the thread that learns: nothing may be done by others meanwhile.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Run(NamedTuple):
    """All that is known of a run.

    Attributes
    ----------
    plan : Plan
        What was to be done.
    machine : dict of str to str
        Where, and with which versions.
    sizes : dict of str to int
        The streams that were there, and how many rows of them were used.
    shapes : dict of str to str
        Of each stream in words: how many features, and of what kind.
    absent : dict of str to str
        The streams and learners that were not there, and why.
    records : list of Record
        What was found.
    """

    plan: Plan
    machine: dict[str, str]
    sizes: dict[str, int]
    shapes: dict[str, str]
    absent: dict[str, str]
    records: list[Record]


def run(plan: Plan, folder: Path, report: Callable[[str], object] = print) -> Run:
    """Do all parts of a plan that are not done yet.

    Parameters
    ----------
    plan : Plan
        What to do.
    folder : Path
        Where ``results.csv`` is or will be.
    report : callable
        Called with a line about each measurement.

    Raises
    ------
    ValueError
        If the folder has results of another plan, machine or version.
    """
    machine = describe()
    _check_same_run(folder / "run.json", {"plan": plan._asdict(), "machine": machine})
    results = ResultsFile(folder / "results.csv")
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    with TemporaryDirectory() as place:
        streams = _Streams(Path(place))
        streams.prepare(plan, report)
        absent = dict(streams.absent)
        there = []
        for who in PEERS:
            if missing := who.missing():
                absent[who.name] = f"without {', '.join(missing)}"
            else:
                there.append(who)
        compared = [who.name for who in there if who.exact or not who.same_as]
        accuracy = [Job("accuracy", *pair) for pair in product(streams.sizes, compared)]
        # Costs are measured one at a time, so that no other job slows a learner down.
        names = [who.name for who in there]
        costs = [Job(stage, COST_STREAM, name) for stage in ("cost", "growth") for name in names]
        if lacking := [name for name in ("Cython", "setuptools") if find_spec(name) is None]:
            absent["the parts of a row"] = f"without {', '.join(lacking)}"
        else:
            costs.append(Job("parts", COST_STREAM, OURS))
        start = time.monotonic()
        for jobs, workers in ((accuracy, WORKERS), (costs, 1)):
            left = [job for job in jobs if job not in results.done]
            for place_in_line, (job, found) in enumerate(_each(left, plan, streams, workers), 1):
                results.add(job, found)
                seconds = time.monotonic() - start
                report(f"{seconds:6.0f} s  {place_in_line}/{len(left)}  {' | '.join(job)}")
    return Run(plan, machine, streams.sizes, streams.shapes, absent, results.records)


def _check_same_run(path: Path, about: dict[str, Any]) -> None:
    """Remember what the run is; refuse to mix it with another one."""
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise ValueError(
            f"{path.parent} has results of another plan, machine or version: name another folder "
            "by --page, or forget them by --fresh"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class _Streams:
    """The streams of a plan, each in a file for the processes of the jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sizes: dict[str, int] = {}
        self.shapes: dict[str, str] = {}
        self.absent: dict[str, str] = {}

    def prepare(self, plan: Plan, report: Callable[[str], object]) -> None:
        for name in plan.real:
            data = sets.real(name)
            if data is None:
                source = sets.REAL[name].package or "a file of the folder SAPWOOD_DATA"
                self.absent[name] = f"without {source}"
                report(f"{name} is left out: {source} is not there")
            else:
                self._keep(data.head(plan.rows))
        for name in plan.generated:
            self._keep(sets.generated(name, plan.rows))

    def _keep(self, data: DataSet) -> None:
        self.path(data.name).write_bytes(pickle.dumps(data))
        self.sizes[data.name] = len(data.y)
        words = sum(column.dtype == object for column in data.columns.values())
        self.shapes[data.name] = f"{len(data.columns) - words} + {words}"

    def path(self, name: str) -> Path:
        return self.folder / name.replace(" ", "_")


def _each(
    jobs: Iterable[Job], plan: Plan, streams: _Streams, workers: int
) -> Iterator[tuple[Job, list[Record]]]:
    """Yield each job with what it found, as soon as it is done."""

    def one(job: Job) -> tuple[Job, list[Record]]:
        data = streams.path(job.stream) if job.stage == "accuracy" else None
        return job, _apart(job, plan, data, job.stream in sets.REAL and not _is_duplicate(job))

    pool = ThreadPoolExecutor(workers)
    try:
        for future in as_completed([pool.submit(one, job) for job in jobs]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _is_duplicate(job: Job) -> bool:
    return any(who.same_as for who in PEERS if who.name == job.learner)


def _apart(job: Job, plan: Plan, data: Path | None, has_grid: bool) -> list[Record]:
    """Do a job in a new process; if that dies or takes too long, this is what was found."""
    found, why = records_apart(run_job, (job, plan, data, has_grid), plan.patience)
    return found if why is None else [*found, failure(job, REST if found else DEFAULT, why)]
