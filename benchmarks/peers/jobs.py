"""The measurements of a learner: accuracy, costs, and the growth of costs.

A job runs in a process of its own; times are CPU times of the thread that learns, so that other
work on the machine disturbs them little. A failure is a result like any other.
"""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import row_costs
from benchmarks.data_sets import DataSet, friedman_set
from benchmarks.peers.learners import TimedLearner
from benchmarks.peers.records import FAILURE, Job, Record
from benchmarks.peers.roster import DEFAULT, Peer, peer

__all__ = ["COST_STREAM", "Plan", "failure", "run_job", "scores"]

FloatArray = NDArray[np.float64]

COST_STREAM = "friedman"
WORST_SHARE = 0.01
MOST_LETTERS = 300
CHUNK = 10_000
STEPS = (1, 2, 5)
LONG_PASS = 5_000_000_000
"""Nanoseconds from which on a learner is passed over the rows but once."""


class Plan(NamedTuple):
    """How much is done.

    Attributes
    ----------
    name : str
        Of the plan.
    generated, real : tuple of str
        The streams.
    rows : int
        How many of each stream, at most.
    warm_up : int
        The first rows are learned but not scored, as LightGBM has nothing to predict them by.
    grid_rows : int
        How many rows of the real streams the settings of the grid are tried on.
    cost_rows, passes : int
        What speed, memory and the worst call are measured on, and how often: the best counts.
    growth_rows : int
        Up to how many rows costs are followed.
    budget : float
        The seconds of CPU time after which a learner need not go on with that.
    patience : float
        The seconds after which a job is stopped.
    """

    name: str
    generated: tuple[str, ...]
    real: tuple[str, ...]
    rows: int
    warm_up: int
    grid_rows: int
    cost_rows: int
    passes: int
    growth_rows: int
    budget: float
    patience: float


def run_job(job: Job, plan: Plan, data: Path | None, has_grid: bool) -> Iterator[Record]:
    """Yield what a job finds.

    Parameters
    ----------
    job : Job
        What to measure.
    plan : Plan
        How much to do.
    data : Path, optional
        A pickled data set, if the job needs one.
    has_grid : bool
        Whether to try the settings of the grid too.
    """
    who = peer(job.learner)
    if data is None:
        measure = {"cost": _cost, "growth": _growth, "parts": _parts}[job.stage]
        yield from _tried(measure(job, who, plan), job, DEFAULT)
        return
    stream: DataSet = pickle.loads(data.read_bytes())
    yield from _tried(_accuracy(job, who, DEFAULT, stream, plan), job, DEFAULT)
    if has_grid:
        head = stream.head(plan.grid_rows)
        for setting in who.grid:
            if setting != DEFAULT:
                yield from _tried(_accuracy(job, who, setting, head, plan), job, setting)


def failure(job: Job, setting: str, why: str) -> Record:
    """Return the record of a failure.

    Parameters
    ----------
    job : Job
        What has failed.
    setting : str
        With which setting.
    why : str
        In one line.
    """
    line = " ".join(why.split())[:MOST_LETTERS]
    return Record(*job, setting, 0, FAILURE, 1.0, line)


def _tried(measured: Iterator[Record], job: Job, setting: str) -> Iterator[Record]:
    """Yield what could be measured, and why no more could."""
    try:
        yield from measured
    except Exception as error:  # whatever a learner of others may raise is a result
        yield failure(job, setting, f"{type(error).__name__}: {error}")


# -- how well it predicts -------------------------------------------------------------------------


def _accuracy(job: Job, who: Peer, setting: str, data: DataSet, plan: Plan) -> Iterator[Record]:
    learner = who.make(data, who.grid[setting])
    predictions, taken = learner.follow(learner.calls(data))
    rows = len(data.y)
    yield Record(*job, setting, rows, "microseconds", taken / 1e3 / rows)
    spoiled = int(np.sum(~np.isfinite(predictions)))
    if spoiled:
        yield failure(job, setting, f"{spoiled} of {rows} predictions are not finite")
    # The default's score of the rows that the grid is tried on is that of its first rows.
    for stop in sorted({rows, min(rows, plan.grid_rows)}):
        scored = slice(plan.warm_up, stop)
        for measure, value in scores(data.y[scored], predictions[scored]).items():
            yield Record(*job, setting, stop, measure, value)


def scores(y: FloatArray, predictions: FloatArray) -> dict[str, float]:
    """Return the errors of predictions.

    Parameters
    ----------
    y, predictions : array of float
        The actual values, and the predictions.

    Returns
    -------
    dict of str to float
        MAE, RMSE, R², and R² without the worst 1 % of the predictions.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(y - predictions)
        kept = np.argsort(errors)[: len(y) - int(WORST_SHARE * len(y))]
        return {
            "mae": float(errors.mean()),
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "r2": float(1 - np.mean(errors**2) / y.var()),
            "r2_without_worst": float(1 - np.mean(errors[kept] ** 2) / y[kept].var()),
        }


# -- what it costs --------------------------------------------------------------------------------


def _cost(job: Job, who: Peer, plan: Plan) -> Iterator[Record]:
    data, options, rows = friedman_set(plan.cost_rows), who.grid[DEFAULT], plan.cost_rows
    learner = who.make(data, options)
    calls = learner.calls(data)
    before = learner.process_bytes()
    predictions, taken = learner.follow(calls)
    yield Record(*job, DEFAULT, rows, "r2", scores(data.y, predictions)["r2"])
    yield from _sizes(job, learner, rows, before)
    # A learner does the same work for a call in each pass; additional time is that of others.
    passes = range(plan.passes if taken < LONG_PASS else 1)
    times = [taken, *(who.make(data, options).follow(calls)[1] for _ in passes[1:])]
    yield Record(*job, DEFAULT, rows, "microseconds", min(times) / 1e3 / rows)
    singles = [who.make(data, options).follow_singly(calls) for _ in passes]
    worst = float(np.min(singles, axis=0).max()) / 1e6
    yield Record(*job, DEFAULT, rows, "worst_milliseconds", worst)


def _growth(job: Job, who: Peer, plan: Plan) -> Iterator[Record]:
    seed, rows, last, sized, spent, since = 1, 0, 0, 0, 0, 0
    data = friedman_set(CHUNK, seed)
    learner = who.make(data, who.grid[DEFAULT])
    calls = learner.calls(data)
    before = learner.process_bytes()
    places = _places(plan.growth_rows)
    while rows < places[-1] and spent < 1e9 * plan.budget:
        taken = learner.follow(calls)[1]
        spent, since = spent + taken, since + taken
        rows, seed = rows + CHUNK, seed + 1
        calls = learner.calls(friedman_set(CHUNK, seed))
        is_last = spent >= 1e9 * plan.budget
        if rows in places or is_last:
            yield Record(*job, DEFAULT, rows, "microseconds", since / 1e3 / (rows - last))
            last, since = rows, 0
        # Measuring sizes may take longer than learning, and is not done as often.
        if rows in places[:: len(STEPS)] or (is_last and rows >= 2 * sized):
            yield from _sizes(job, learner, rows, before)
            sized = rows


def _parts(job: Job, who: Peer, plan: Plan) -> Iterator[Record]:
    for part, value in row_costs.measure(quick=plan.name != "full").items():
        yield Record(*job, DEFAULT, row_costs.ROWS, part, value)


def _places(most: int) -> list[int]:
    """Return 10,000, 20,000, 50,000, 100,000 and so on, up to the last row."""
    places = [CHUNK * step * 10**power for power in range(9) for step in STEPS]
    return [place for place in places if place <= most]


def _sizes(job: Job, learner: TimedLearner, rows: int, before: int | None) -> Iterator[Record]:
    """Yield what a learner occupies, and its file."""
    now = learner.process_bytes()
    if now is not None and before is not None:
        yield Record(*job, DEFAULT, rows, "process_bytes", max(now - before, 0))
    for measure in ("model_bytes", "file_bytes"):
        try:
            value = getattr(learner, measure)()
        except Exception as error:  # as others may raise whatever they like, Java's errors too
            why = f"no {measure} after {rows:,} rows: {type(error).__name__}: {error}"
            yield failure(job, DEFAULT, why)
        else:
            if value is not None:
                yield Record(*job, DEFAULT, rows, measure, value)
