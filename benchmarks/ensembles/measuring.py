"""Lets learners follow streams, each in a process of its own and for a while at most.

Results of other libraries' learners are kept in a CSV file, so that a run that was stopped resumes;
Sapwood's own models are fast, and measured again in each run.
"""

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.apart import records_apart
from benchmarks.ensembles.following import follow
from benchmarks.ensembles.learners import BATCH
from benchmarks.ensembles.roster import AT_ONCE, CONTENDERS, LATE, OF_TEN, OURS
from benchmarks.peers import sets
from benchmarks.peers.jobs import failure
from benchmarks.peers.records import Job, Record, ResultsFile

__all__ = ["COST_STREAM", "Effort", "measure"]

COST_STREAM = "friedman"
WORKERS = 2
PATIENCE = 3_600.0  # seconds, as other work may take most of the machine


class Effort(NamedTuple):
    """How much is done.

    Attributes
    ----------
    streams : tuple of str
        The real ones first.
    rows : int
        How many of each stream, at most.
    budget : float
        The seconds of CPU time after which a learner need not go on with a stream.
    """

    streams: tuple[str, ...]
    rows: int
    budget: float


def measure(effort: Effort, kept: Path, report: Callable[[str], object] = print) -> list[Record]:
    """Return the results of this run and of earlier ones, Sapwood's own models last.

    Parameters
    ----------
    effort : Effort
        How much to do.
    kept : Path
        The file with results of other libraries; delete it to measure them again.
    report : callable
        Called with a line about each measurement.
    """
    results = ResultsFile(kept)
    with TemporaryDirectory() as folder:
        files = dict(_files(effort, Path(folder)))
        theirs = _jobs(files)
        left = [job for job in theirs if job not in results.done]
        start = time.monotonic()
        for place, (job, found) in enumerate(_each(left, files, effort.budget), 1):
            results.add(job, found)
            report(f"{time.monotonic() - start:6.0f} s  {place}/{len(left)}  {' | '.join(job)}")
        ours = [
            record
            for stream, file in files.items()
            for labels in (AT_ONCE, LATE)
            for name in OURS
            for record in follow(Job(labels, stream, name), file, effort.budget)
        ]
    wanted = set(theirs)
    return [*(record for record in results.records if record.job in wanted), *ours]


def _files(effort: Effort, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each stream that is there, in a file for the processes of the jobs."""
    for number, name in enumerate(effort.streams):
        data = sets.real(name) if name in sets.REAL else sets.generated(name, effort.rows)
        if data is not None:
            file = folder / str(number)
            # The last batch is whole, so that all learners note the same places.
            rows = min(len(data.y), effort.rows) // BATCH * BATCH
            file.write_bytes(pickle.dumps(data.head(rows)))
            yield name, file


def _jobs(streams: Iterable[str]) -> list[Job]:
    """Return what is to be done with other learners: real streams and strong learners first."""
    there = {n: e for n, e in {**CONTENDERS, **OF_TEN}.items() if n not in OURS and not e.missing()}
    jobs = [
        Job(labels, stream, name)
        for stream in streams
        for name, entry in there.items()
        for labels in (entry.labels if name in CONTENDERS else (AT_ONCE,))
        if name in CONTENDERS or stream == COST_STREAM
    ]

    def order(job: Job) -> tuple[bool, float, int, bool]:
        entry = there[job.learner]
        return job.stream not in sets.REAL, -entry.patience, len(entry.labels), job.stage == LATE

    return sorted(jobs, key=order)


def _each(
    jobs: Sequence[Job], files: dict[str, Path], budget: float
) -> Iterator[tuple[Job, list[Record]]]:
    """Yield each job with what it found, as soon as it is done."""

    def one(job: Job) -> tuple[Job, list[Record]]:
        arguments = (job, files[job.stream], budget)
        found, why = records_apart(follow, arguments, PATIENCE)
        return job, found if why is None else [*found, failure(job, "", why)]

    pool = ThreadPoolExecutor(WORKERS)
    try:
        for future in as_completed([pool.submit(one, job) for job in jobs]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
