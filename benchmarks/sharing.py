"""Threads: costs of readers and a learner that share one tree, and of separate trees.

All is measured in one run, and what is compared takes turns, as other work on the machine is likely
to change. Wall-clock times, the best of several: threads wait for each other, which costs no CPU.
"""

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter, process_time, thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import friedman
from benchmarks.tables import Answer, Bound, Table
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]

ROWS = 5_000_000
ROWS_OF_A_TREE = 1_000_000
ROWS_OF_EIGHT = 100_000
KNOWN = 1_000  # rows that a tree has learned before it is shared
READERS = 4
RATE = 6.0  # of the weights of eight trees
WAITED = 10e-6  # seconds; a prediction that took longer had to wait
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 100.0)


class Record(NamedTuple):
    """Something that was measured."""

    what: str
    value: float


class Shared(NamedTuple):
    """The measurements of readers during learning."""

    seconds: float
    cpu: float
    latencies: FloatArray
    errors: int
    wild: int


def run(quick: bool = False) -> Answer:
    """Let threads share a tree, and have trees of their own.

    Parameters
    ----------
    quick : bool
        Fewer rows and repetitions.
    """
    part = 5 if quick else 1
    repeats = 3 if quick else 5
    x, y = friedman(np.random.default_rng(1), ROWS // part)
    shared, shared_bounds = _shared(x, y, repeats)
    apart, apart_bounds = _apart(x[: ROWS_OF_A_TREE // part], y[: ROWS_OF_A_TREE // part], repeats)
    eight, eight_bounds = _eight(x[: ROWS_OF_EIGHT // part], y[: ROWS_OF_EIGHT // part], repeats)
    tables = [
        Table(
            f"{READERS} threads predict one by one, a fifth learns {len(y):,} rows in one call",
            ("what", "value"),
            shared,
        ),
        Table("A tree in each of two threads, or of two processes", ("what", "value"), apart),
        Table(
            f"Eight trees with weights of a Poisson distribution of {RATE:g}",
            ("what", "value"),
            eight,
        ),
    ]
    records = [Record(*each) for each in [*shared, *apart, *eight]]
    bounds = [*shared_bounds, *apart_bounds, *eight_bounds]
    return Answer(tables, Table("", Record._fields, records), bounds)


Figures = list[tuple[str, float]]


def _shared(x: FloatArray, y: FloatArray, repeats: int) -> tuple[Figures, list[Bound]]:
    """Let a tree learn alone, and with readers, in turns."""
    alone: list[tuple[float, float]] = []
    shared: list[Shared] = []
    for _ in range(repeats):
        alone.append(_learned(_planted(x, y), x, y))
        shared.append(_learned_with_readers(x, y))
    latencies = np.concatenate([each.latencies for each in shared])
    waited = latencies[latencies > WAITED]
    errors, wild = sum(each.errors for each in shared), sum(each.wild for each in shared)
    slower = min(each.seconds for each in shared) / min(seconds for seconds, _ in alone)
    figures = [
        ("learning alone, s", min(seconds for seconds, _ in alone)),
        ("learning with readers, s", min(each.seconds for each in shared)),
        ("the same, CPU of its thread, s, alone", min(cpu for _, cpu in alone)),
        ("the same, CPU of its thread, s, with readers", min(each.cpu for each in shared)),
        ("predictions", float(len(latencies))),
        ("of these, had to wait", float(len(waited))),
        ("errors", float(errors)),
        ("predictions that are NaN or beyond y", float(wild)),
    ]
    for name, times in (("all", latencies), ("those that had to wait", waited)):
        for share, value in zip(PERCENTILES, np.percentile(times, PERCENTILES), strict=True):
            figures.append((f"latency of {name}, ms, {share:g} %", 1e3 * float(value)))
    worst = 1e3 * min(
        float(np.percentile(each.latencies[each.latencies > WAITED], 99.0)) for each in shared
    )
    figures.append(("latency of those that had to wait, ms, 99 %, in the best run", worst))
    return figures, [
        Bound("errors of readers during learning", errors, 0.0),
        Bound("predictions that are NaN or beyond y", wild, 0.0),
        Bound("99 % of predictions that had to wait, ms, in the best run", worst, 2.0),
        Bound("learning with readers / alone", slower, 1.1),
    ]


def _planted(x: FloatArray, y: FloatArray) -> HoeffdingTreeRegressor:
    tree = HoeffdingTreeRegressor()
    tree.learn_many(x[:KNOWN], y[:KNOWN])
    return tree


def _learned(
    tree: HoeffdingTreeRegressor, x: FloatArray, y: FloatArray, w: FloatArray | None = None
) -> tuple[float, float]:
    """Let a tree learn; the seconds that it took, and those of the processor."""
    start, cpu = perf_counter(), thread_time()
    tree.learn_many(x, y, w)
    return perf_counter() - start, thread_time() - cpu


def _learned_with_readers(x: FloatArray, y: FloatArray) -> Shared:
    tree = _planted(x, y)
    rows = [dict(enumerate(values)) for values in x[:KNOWN].tolist()]
    reach = float(np.ptp(y))
    low, high = float(y.min()) - reach, float(y.max()) + reach
    done = threading.Event()
    latencies: list[list[float]] = [[] for _ in range(READERS)]
    errors, wild, found = [0] * READERS, [0] * READERS, []

    def read(reader: int) -> None:
        times, at = latencies[reader], 0
        while not done.is_set():
            start = perf_counter()
            try:
                prediction = tree.predict_one(rows[at])
            except Exception:
                errors[reader] += 1
            times.append(perf_counter() - start)
            wild[reader] += not low < prediction < high
            at = (at + 1) % KNOWN

    def learn() -> None:
        found.append(_learned(tree, x, y))
        done.set()

    _together([learn, *(partial(read, reader) for reader in range(READERS))])
    seconds, cpu = found[0]
    times = np.concatenate([np.array(each) for each in latencies])
    return Shared(seconds, cpu, times, sum(errors), sum(wild))


def _together(jobs: Sequence[Callable[[], Any]]) -> float:
    """Do jobs in a thread each; the seconds until all are done."""
    threads = [threading.Thread(target=job) for job in jobs]
    start = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return perf_counter() - start


def _apart(x: FloatArray, y: FloatArray, repeats: int) -> tuple[Figures, list[Bound]]:
    """Let one tree learn, two in threads, and two in processes, in turns."""
    one, threads, processes = [], [], []
    with multiprocessing.get_context("fork").Pool(2, _keep_rows, (x, y)) as pool:
        pool.map(_learn_kept, range(2), chunksize=1)
        for _ in range(repeats):
            one.append(_learned(_planted(x, y), x, y)[0])
            trees = [_planted(x, y) for _ in range(2)]
            threads.append(_together([partial(tree.learn_many, x, y) for tree in trees]))
            start = perf_counter()
            pool.map(_learn_kept, range(2), chunksize=1)
            processes.append(perf_counter() - start)
    by_threads, by_processes = 2 * min(one) / min(threads), 2 * min(one) / min(processes)
    figures = [
        ("one tree, rows a second", len(y) / min(one)),
        ("two threads, times that", by_threads),
        ("two processes, times that", by_processes),
        ("two threads / two processes", by_threads / by_processes),
    ]
    bound = Bound(
        "two trees in threads / in processes, of 2", 2 * by_threads / by_processes, 1.8, True
    )
    return figures, [bound]


kept: list[FloatArray] = []


def _keep_rows(*rows: FloatArray) -> None:
    kept[:] = rows


def _learn_kept(number: int) -> None:
    _planted(kept[0], kept[1]).learn_many(kept[0], kept[1])


def _eight(x: FloatArray, y: FloatArray, repeats: int) -> tuple[Figures, list[Bound]]:
    """Let eight trees with weights of their own learn, in two threads or in eight."""
    rng = np.random.default_rng(2)
    weights = [rng.poisson(RATE, len(y)).astype(float) for _ in range(8)]
    parts = [(x[w > 0], y[w > 0], w[w > 0]) for w in weights]

    def seconds(threads: int) -> tuple[float, float]:
        trees = [_planted(x, y) for _ in parts]

        def learn(first: int) -> None:
            for number in range(first, len(trees), threads):
                trees[number].learn_many(*parts[number])

        cpu = process_time()
        taken = _together([partial(learn, first) for first in range(threads)])
        return taken, process_time() - cpu

    found = np.array([(*seconds(2), *seconds(8)) for _ in range(repeats)])
    by_two, cpu_of_two, by_eight, cpu_of_eight = found.min(axis=0).tolist()
    rows = sum(len(w) for _, _, w in parts)
    figures = [
        ("two threads, rows a second", rows / by_two),
        ("eight threads, times that", by_two / by_eight),
        ("the same by the CPU time of all threads", cpu_of_two / cpu_of_eight),
    ]
    return figures, [Bound("eight threads / two threads", by_two / by_eight, 0.9, True)]
