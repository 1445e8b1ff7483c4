"""A learner and a stream: R² and costs, up to each place that it comes to in its time."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.data_sets import DataSet
from benchmarks.ensembles.roster import AT_ONCE, CONTENDERS, OF_TEN
from benchmarks.peers.jobs import failure
from benchmarks.peers.records import Job, Record

__all__ = ["PLACES", "follow"]

PLACES = tuple(1_000 * place for place in (2, 3, 5, 7, 10, 15, 20, 30, 40, 50))
"""After so many rows R² is recorded; slow learners do not reach the last of them."""
NOT_SCORED = 1_000


def follow(job: Job, file: Path, budget: float) -> Iterator[Record]:
    """Let a learner follow a stream; yield R² and the costs up to each place that it comes to.

    Parameters
    ----------
    job : Job
        The stage is how labels come.
    file : Path
        A pickled data set.
    budget : float
        Seconds of CPU time, times the learner's patience, after which it stops, though not before
        the first place.
    """
    data: DataSet = pickle.loads(file.read_bytes())
    places = {*(place for place in PLACES if place < len(data.y)), len(data.y)}
    predictions, spent = np.empty(0), 0
    entry = {**CONTENDERS, **OF_TEN}[job.learner]
    try:
        learner = entry.make(data)
        step = learner.follow if job.stage == AT_ONCE else learner.follow_late
        for call in learner.calls(data):
            found, taken = step(call)
            predictions, spent = np.concatenate([predictions, found]), spent + taken
            rows = len(predictions)
            if rows in places:
                yield Record(*job, "", rows, "r2", _r2(data, predictions))
                yield Record(*job, "", rows, "microseconds", spent / 1e3 / rows)
            if spent > 1e9 * budget * entry.patience and rows >= PLACES[0]:
                return
    except Exception as error:  # whatever a learner of others may raise is a result
        yield failure(job, "", f"{type(error).__name__}: {error}")


def _r2(data: DataSet, predictions: np.ndarray) -> float:
    y, predicted = (values[NOT_SCORED : len(predictions)] for values in (data.y, predictions))
    with np.errstate(invalid="ignore", over="ignore"):
        return float(1 - np.mean((y - predicted) ** 2) / y.var())
