"""Findings from the measurements: scores, ranks, costs, and where Sapwood loses."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import row_costs
from benchmarks.peers import sets
from benchmarks.peers.jobs import COST_STREAM
from benchmarks.peers.records import FAILURE, Record
from benchmarks.peers.roster import DEFAULT, OURS, PEERS, Peer
from benchmarks.peers.run import Run
from sapwood.evaluate.ranking import Ranking, rank

__all__ = ["LIGHTGBM", "LOWER_IS_BETTER", "Duplicate", "Findings", "Loss"]

FloatArray = NDArray[np.float64]

LIGHTGBM = "LightGBM"
LOWER_IS_BETTER = {"r2": False, "r2_without_worst": False, "mae": True, "rmse": True}
COSTS = ("microseconds", "worst_milliseconds", "model_bytes", "file_bytes")


class Loss(NamedTuple):
    """Where another learner is better than Sapwood: the best of them, and how many there are."""

    stream: str
    measure: str
    ours: float
    best: str
    theirs: float
    better: int


class Duplicate(NamedTuple):
    """On how many streams an entry gives the same predictions as another entry of its learner."""

    name: str
    of: str
    streams: int
    equal: int


class Findings:
    """The measurements of a run, by what they are asked for.

    Parameters
    ----------
    run : Run
        What was found. Streams and learners that were not there are left out of everything.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.entries = [who for who in PEERS if who.name not in run.absent]
        self.compared = [who for who in self.entries if not who.same_as]
        self.real = [name for name in run.sizes if name in sets.REAL]
        self.generated = [name for name in run.sizes if name not in sets.REAL]
        self._values = {
            (r.stage, r.stream, r.learner, r.setting, r.measure, r.rows): r.value
            for r in run.records
        }

    # -- how well they predict --------------------------------------------------------------------

    def score(
        self,
        stream: str,
        learner: str,
        measure: str = "r2",
        setting: str = DEFAULT,
        rows: int | None = None,
    ) -> float:
        """Return a score; NaN if there is none, or if a prediction was not finite.

        Parameters
        ----------
        stream, learner, measure, setting : str
            Which one.
        rows : int, optional
            Over the first so many rows; over all if not given.
        """
        size = self.run.sizes[stream] if rows is None else rows
        return self._values.get(("accuracy", stream, learner, setting, measure, size), math.nan)

    def scores(self, streams: Sequence[str], who: Sequence[Peer], measure: str) -> FloatArray:
        """Return the scores of learners with their defaults.

        Parameters
        ----------
        streams : sequence of str
            The rows of the table.
        who : sequence of Peer
            Its columns.
        measure : str
            Of `LOWER_IS_BETTER`.
        """
        found = [[self.score(stream, each.name, measure) for each in who] for stream in streams]
        return np.array(found).reshape(len(streams), len(who))

    def grid_rows(self, stream: str) -> int:
        """Return how many rows of a stream the settings of the grid were tried on.

        Parameters
        ----------
        stream : str
            A real one.
        """
        return min(self.run.sizes[stream], self.run.plan.grid_rows)

    def best_of_grid(self, stream: str, who: Peer) -> tuple[float, str]:
        """Return the best R² of a learner's settings, and which one it is.

        Parameters
        ----------
        stream : str
            A real one.
        who : Peer
            The learner.
        """
        rows = self.grid_rows(stream)
        found = [(self.score(stream, who.name, "r2", each, rows), each) for each in who.grid]
        good = [pair for pair in found if math.isfinite(pair[0])]
        return max(good, default=(math.nan, DEFAULT))

    def grid_scores(self, who: Sequence[Peer]) -> FloatArray:
        """Return the best R² of each learner's settings on each real stream.

        Parameters
        ----------
        who : sequence of Peer
            The columns of the table.
        """
        found = [[self.best_of_grid(stream, each)[0] for each in who] for stream in self.real]
        return np.array(found).reshape(len(self.real), len(who))

    # -- who is better ----------------------------------------------------------------------------

    @property
    def trees(self) -> list[Peer]:
        """The single trees that learn row by row."""
        return [who for who in self.compared if who.tree]

    def ranking(self, values: FloatArray, who: Sequence[Peer]) -> Ranking:
        """Rank learners by R²; one without a score is the last.

        Parameters
        ----------
        values : array of float, shape (streams, learners)
            What `scores` or `grid_scores` returned.
        who : sequence of Peer
            The learners.
        """
        return rank(values, [each.name for each in who], larger_is_better=True)

    def wins(self, against: str, streams: Sequence[str], measure: str = "r2") -> list[str]:
        """Return the streams on which Sapwood is better than another learner.

        Parameters
        ----------
        against : str
            The other.
        streams : sequence of str
            Of these.
        measure : str
            By what.
        """
        return [
            stream
            for stream in streams
            if _is_better(
                self.score(stream, OURS, measure), self.score(stream, against, measure), measure
            )
        ]

    def losses(self) -> list[Loss]:
        """Return every stream and score in which some other learner is better than Sapwood."""
        found = []
        for stream in [*self.real, *self.generated]:
            for measure, lower in LOWER_IS_BETTER.items():
                ours = self.score(stream, OURS, measure)
                better = {
                    who.name: value
                    for who in self.compared
                    if who.name != OURS
                    and _is_better(value := self.score(stream, who.name, measure), ours, measure)
                }
                if better:
                    best = (min if lower else max)(better, key=lambda name: better[name])
                    found.append(Loss(stream, measure, ours, best, better[best], len(better)))
        return found

    def grid_losses(self) -> list[Loss]:
        """Return the real streams on which another learner's best setting beats Sapwood's best."""
        found = []
        for stream in self.real:
            values = {who.name: self.best_of_grid(stream, who)[0] for who in self.compared}
            ours = values.pop(OURS)
            better = {
                name: value for name, value in values.items() if _is_better(value, ours, "r2")
            }
            if better:
                best = max(better, key=lambda name: better[name])
                found.append(Loss(stream, "r2", ours, best, better[best], len(better)))
        return found

    # -- what they cost ---------------------------------------------------------------------------

    def cost(self, learner: str, measure: str) -> float:
        """Return what a learner costs, measured alone; NaN if that is not known.

        Parameters
        ----------
        learner, measure : str
            Such as "microseconds" a row.
        """
        rows = self.run.plan.cost_rows
        return self._values.get(("cost", COST_STREAM, learner, DEFAULT, measure, rows), math.nan)

    def part(self, name: str) -> float:
        """Return the nanoseconds that a part of a row takes; NaN if that is not known.

        Parameters
        ----------
        name : str
            As `row_costs` has it.
        """
        key = ("parts", COST_STREAM, OURS, DEFAULT, name, row_costs.ROWS)
        return self._values.get(key, math.nan)

    def growth(self, learner: str, measure: str) -> list[tuple[int, float]]:
        """Return what a learner costs after more and more rows.

        Parameters
        ----------
        learner, measure : str
            Such as "microseconds" a row, since the place before.
        """
        return [
            (r.rows, r.value)
            for r in self.run.records
            if (r.stage, r.learner, r.measure) == ("growth", learner, measure)
        ]

    def cost_losses(self) -> list[Loss]:
        """Return the costs in which others are below Sapwood, by either of its entries."""
        found = []
        for ours in (who for who in self.entries if OURS in (who.name, who.same_as)):
            for measure in COSTS:
                own = self.cost(ours.name, measure)
                better = {
                    who.name: value
                    for who in self.entries
                    if OURS not in (who.name, who.same_as)
                    and (value := self.cost(who.name, measure)) < own
                }
                if better:
                    best = min(better, key=lambda name: better[name])
                    found.append(Loss(ours.name, measure, own, best, better[best], len(better)))
        return found

    def growth_losses(self) -> list[Loss]:
        """Return whose cost a row grows less than Sapwood's, up to where both went."""
        found = []
        ours = [who.name for who in self.entries if OURS in (who.name, who.same_as)]
        for own in ours:
            mine = dict(self.growth(own, "microseconds"))
            for other in (who.name for who in self.entries if who.name not in ours):
                theirs = dict(self.growth(other, "microseconds"))
                common = sorted(mine.keys() & theirs.keys())
                if len(common) > 1:
                    first, last = common[0], common[-1]
                    one, two = mine[last] / mine[first], theirs[last] / theirs[first]
                    if two < one:
                        found.append(Loss(own, f"{last:,}", one, other, two, 1))
        return found

    # -- what is to be known of them --------------------------------------------------------------

    def failures(self) -> list[Record]:
        """Return what has failed."""
        return [record for record in self.run.records if record.measure == FAILURE]

    def duplicates(self) -> list[Duplicate]:
        """Return whether entries that have to give equal predictions do."""
        found = []
        for who in self.entries:
            if who.exact:
                one, other = (
                    np.array([self.score(stream, name, "rmse") for stream in self.run.sizes])
                    for name in (who.name, who.same_as)
                )
                equal = int(np.sum((one == other) | (np.isnan(one) & np.isnan(other))))
                found.append(Duplicate(who.name, who.same_as, len(one), equal))
        return found


def _is_better(one: float, other: float, measure: str) -> bool:
    """Return whether a score is better than another; a missing one never is."""
    if math.isnan(one):
        return False
    if math.isnan(other):
        return True
    return one < other if LOWER_IS_BETTER[measure] else one > other
