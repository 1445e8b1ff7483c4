"""What is measured on one cell: splits and sizes exactly, times as the clock allows."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa

from sapwood.moments import Moments
from sapwood.observers import Split
from sapwood.paper.errors import StudyError
from sapwood.paper.observers import EXHAUSTIVE, Contender, Factory
from sapwood.paper.protocol import Cell, FloatArray, sample

__all__ = ["measure_splits", "measure_times"]

ROUNDS = 5
"""How often each observer has its turn at most; the best turn counts."""

SHORTEST_TURN = 200_000
"""Nanoseconds: what is shorter is repeated within the turn, so that the clock is not measured."""

LONG_ENOUGH = 10_000_000
"""Nanoseconds: an observer that was measured for so long has no further turn."""

MAX_REPEATS = 1_000


class SplitRow(NamedTuple):
    """What an observer found in one run."""

    run: int
    observer: str
    merit: float
    threshold: float
    split_difference: float
    elements: int
    bytes: int


class TimeRow(NamedTuple):
    """How long an observer took in one run, in seconds of the thread's own time."""

    run: int
    observer: str
    observe_seconds: float
    query_seconds: float


def measure_splits(cell: Cell, runs: int, factories: Sequence[Factory]) -> pa.Table:
    """Let every observer watch every run of a cell and propose a split; E-BST has to be among them.

    - Returns a row for each run and observer: the merit (equation 1 of the paper, with n − 1), the
      threshold and its difference from E-BST's, the elements and bytes. The same to the last bit
      each time.
    """
    rows: list[SplitRow] = []
    for run in range(runs):
        x, y = sample(cell, run)
        sd, total = _standard_deviation(x), _moments(y)
        found: dict[str, SplitRow] = {}
        for factory in factories:
            with _naming(factory, cell, run):
                observer = factory.make(sd)
                observer.update_many(x, y)
                split = observer.best_split()
                found[factory.name] = SplitRow(
                    run,
                    factory.name,
                    variance_reduction(total, split),
                    split.threshold if split else math.nan,
                    math.nan,
                    len(observer),
                    observer.nbytes,
                )
        reference = found[EXHAUSTIVE].threshold
        rows += [row._replace(split_difference=row.threshold - reference) for row in found.values()]
    return _table(rows, SplitRow._fields)


def variance_reduction(total: Moments, split: Split | None) -> float:
    """Return the paper's merit of a split: equation 1, its signs put right.

    - `split`: None has the merit 0.
    """
    if split is None:
        return 0.0
    left, right = split.left, split.right
    if not (isinstance(left, Moments) and isinstance(right, Moments)):
        raise TypeError("a split has the Moments of its two sides")
    within = sum(side.n * side.variance() for side in (left, right) if side.n > 1)
    return total.variance() - within / total.n


def measure_times(cell: Cell, runs: int, factories: Sequence[Factory]) -> pa.Table:
    """Time how every observer watches every run of a cell, and how it proposes a split.

    - Returns a row for each run and observer.

    Notes
    -----
    What is timed is one call of the compiled loop over all rows, and one query. The observers
    take turns, so that a machine that slows down slows all of them; the best of
    `ROUNDS` turns counts.
    """
    rows = [row for run in range(runs) for row in _time_run(cell, run, factories)]
    return _table(rows, TimeRow._fields)


def _time_run(cell: Cell, run: int, factories: Sequence[Factory]) -> list[TimeRow]:
    x, y = sample(cell, run)
    sd = _standard_deviation(x)
    stopwatches = [_Stopwatches(factory, sd) for factory in factories]
    for turn in range(ROUNDS):
        for factory, own in zip(factories, stopwatches, strict=True):
            with _naming(factory, cell, run):
                own.observe.take_turn(turn, own.empty, lambda empty: empty.update_many(x, y))
    for turn in range(ROUNDS):
        for factory, own in zip(factories, stopwatches, strict=True):
            with _naming(factory, cell, run):
                own.query.take_turn(turn, own.filled, lambda filled: filled.best_split())
    return [
        TimeRow(run, factory.name, own.observe.seconds, own.query.seconds)
        for factory, own in zip(factories, stopwatches, strict=True)
    ]


class _Stopwatch:
    """The best time of one kind of call, from several turns."""

    def __init__(self) -> None:
        self._repeats = 1
        self._spent = 0
        self._best = math.inf

    def take_turn(
        self,
        turn: int,
        subjects: Callable[[int], Iterable[Contender]],
        call: Callable[[Contender], object],
    ) -> None:
        """Measure once more, unless enough was measured.

        - `turn`: the first one, 0, goes on until it is known how many calls make a turn.
        - `subjects`: makes the given number of observers, before the timer starts.
        - `call`: the function to time; it is called with an observer.
        """
        if self._spent >= LONG_ENOUGH:
            return
        spent = self._time(subjects, call)
        while turn == 0 and spent < SHORTEST_TURN and self._repeats < MAX_REPEATS:
            enough = math.ceil(1.2 * SHORTEST_TURN / max(spent, 1) * self._repeats)
            self._repeats = min(MAX_REPEATS, max(enough, self._repeats + 1))
            spent = self._time(subjects, call)
        self._spent += spent
        self._best = min(self._best, spent / self._repeats)

    def _time(
        self,
        subjects: Callable[[int], Iterable[Contender]],
        call: Callable[[Contender], object],
    ) -> int:
        made = subjects(self._repeats)
        start = time.thread_time_ns()
        for subject in made:
            call(subject)
        return time.thread_time_ns() - start

    @property
    def seconds(self) -> float:
        """The best time of one call."""
        return self._best * 1e-9


class _Stopwatches:
    """Both stopwatches of one observer, and what they time.

    Nothing here refers back to it: workers that measure times have no garbage collector.
    """

    def __init__(self, factory: Factory, sd: float) -> None:
        self._factory = factory
        self._sd = sd
        self._filled = factory.make(sd)
        self.observe = _Stopwatch()
        self.query = _Stopwatch()

    def empty(self, repeats: int) -> list[Contender]:
        """Return new observers; the last one is queried when it has watched."""
        made = [self._factory.make(self._sd) for _ in range(repeats)]
        self._filled = made[-1]
        return made

    def filled(self, repeats: int) -> list[Contender]:
        """Return an observer that has watched, as often as it shall be queried."""
        return [self._filled] * repeats


@contextmanager
def _naming(factory: Factory, cell: Cell, run: int) -> Iterator[None]:
    """Turn any error of an observer into a message that names the observer and the data."""
    try:
        yield
    except Exception as error:
        where = f"observer {factory.name} failed on {cell}, run {run}"
        raise StudyError(f"{where}: {error!r}") from error


def _standard_deviation(x: FloatArray) -> float:
    return math.sqrt(_moments(x).variance())


def _moments(values: FloatArray) -> Moments:
    """Return the moments of an array, by arithmetic that is the same on every machine."""
    moments = Moments()
    moments.update_many(values)
    return moments


def _table(rows: Sequence[NamedTuple], fields: Sequence[str]) -> pa.Table:
    return pa.table({field: [getattr(row, field) for row in rows] for field in fields})
