"""How often a split bound is exceeded by noise, and what bounds do for accuracy.

Means: the share of sequences of fair coins whose mean exceeds its expectation by more than the bound
at any look, one each 200 rows. It is what bounds are made for.

False splits: five uniform features and a target of pure noise. Ties (`tau`) and trial splits are
off; with the guard against noise (`least_evidence`) off, too, the bound decides alone. The rate is
the share of seeds in which the tree has split by then.

McDiarmid's inequality allows for the fact that the merit of a split is no mean: one row changes the
difference of two variance reductions of values in [0, 1] by at most 4 / n, so that it needs 16 times
Hoeffding's weight.

Accuracy: the mean R² over real streams and Friedman's function, labels at once, with the guard.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.tables import Answer, Bound, Table
from benchmarks.transforms import follow
from sapwood import HoeffdingTreeRegressor
from sapwood.tree.bounds import AnytimeBound, HoeffdingBound, NoBound
from sapwood.tree.growth import GrowthRules

__all__ = ["FILE", "run"]

FloatArray = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "bounds.csv"
ROWS, QUICK_ROWS, SKIPPED = 10_000, 3_000, 1_000
FEATURES, BLOCK = 5, 10_000
STOPS = (10_000, 100_000, 1_000_000)
SEEDS, COINS, LOOK = 20, 1_000, 200
STREAMS = ("bike", "metro", "Beijing PM2.5", "california", "diamonds", "puma8NH")


@dataclass(frozen=True, slots=True)
class McDiarmidBound:
    """Hoeffding's bound of a function that one row changes by 4 / n instead of 1 / n.

    Parameters
    ----------
    delta : float
        The probability that it is off by more.
    """

    delta: float

    code: ClassVar[int] = HoeffdingBound.code

    @property
    def confidence(self) -> float:
        """What the kernel computes with."""
        return 16.0 * HoeffdingBound(self.delta).confidence

    def weight_needed(self, lead: float) -> float:
        """Return the weight from which on a lead is no accident.

        Parameters
        ----------
        lead : float
            As a share of the best merit.
        """
        return self.confidence / (2.0 * lead * lead)


BOUNDS: dict[str, Callable[[float], Any]] = {
    "hoeffding": HoeffdingBound,
    "anytime": AnytimeBound,
    "mcdiarmid": McDiarmidBound,
}


class Record(NamedTuple):
    """A rate of false splits, or the accuracy of trees; `least_evidence` is 0 where it is off."""

    question: str
    bound: str
    delta: float | None
    least_evidence: float
    rows: int
    value: float
    leaves: float


def run(quick: bool = False) -> Answer:
    """Measure false splits and accuracy.

    Parameters
    ----------
    quick : bool
        Fewer rows and seeds.
    """
    stops, seeds = (STOPS[:1], 3) if quick else (STOPS, SEEDS)
    false = [
        record
        for name in BOUNDS
        for delta, evidence in ((0.05, 0.0), (1e-3, 0.0), (1e-3, 15.0), (1e-3, 30.0))
        for record in _false_splits(name, delta, evidence, stops, seeds)
    ]
    means = list(_means(stops, 50 if quick else COINS))
    accuracy = list(_accuracies(QUICK_ROWS if quick else ROWS))
    records = [*means, *false, *accuracy]
    table = Table("Split bounds", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    guarded = max(r.value for r in false if r.least_evidence and r.rows == stops[0])
    anytime = max(r.value - (r.delta or 0.0) for r in means if r.bound == "anytime")
    bounds = [
        Bound("false splits with the guard against noise, 10,000 rows", guarded, 0.05),
        Bound("means beyond the anytime bound, above its level", anytime, 0.0),
    ]
    return Answer([table], table, bounds)


def _means(stops: tuple[int, ...], sequences: int) -> Iterator[Record]:
    """Yield how often means of fair coins have exceeded bounds at any look so far."""
    rng = np.random.default_rng(0)
    looks = np.arange(1, stops[-1] // LOOK + 1) * LOOK
    heads = rng.binomial(LOOK, 0.5, (sequences, len(looks))).cumsum(axis=1)
    excess = heads / looks - 0.5
    for delta in (0.05, 1e-3):
        for name, make in BOUNDS.items():
            beyond = excess > _widths(make(delta), looks)
            for stop in stops:
                rate = float(beyond[:, looks <= stop].any(axis=1).mean())
                yield Record("means", name, delta, 0.0, stop, rate, 0.0)


def _widths(bound: Any, rows: NDArray[Any]) -> FloatArray:
    """Return by how much a mean of so many rows may be off."""
    if isinstance(bound, AnytimeBound):
        return 0.85 * np.sqrt((np.log(np.log(2.0 * rows)) + bound.confidence) / rows)
    return np.sqrt(bound.confidence / (2.0 * rows))


def _false_splits(
    name: str, delta: float, evidence: float, stops: tuple[int, ...], seeds: int
) -> list[Record]:
    leaves: dict[int, list[int]] = {stop: [] for stop in stops}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        tree = HoeffdingTreeRegressor(track=None, leaf="mean")
        tree._use_growth(lambda rules, *_: _for_null(rules, BOUNDS[name](delta), evidence))
        rows = 0
        for stop in stops if seed < seeds // 2 else stops[:2]:  # the longest runs are half as many
            while rows < stop and tree.n_leaves == 1:
                tree.learn_many(rng.random((BLOCK, FEATURES)), rng.normal(size=BLOCK))
                rows += BLOCK
            leaves[stop].append(tree.n_leaves)
    return [
        Record("false splits", name, delta, evidence, stop, _share_split(own), float(np.mean(own)))
        for stop, own in leaves.items()
    ]


def _share_split(leaves: list[int]) -> float:
    return float(np.mean([each > 1 for each in leaves]))


def _for_null(rules: GrowthRules, bound: Any, evidence: float) -> GrowthRules:
    return replace(rules, bound=bound, tau=0.0, least_evidence=evidence, patience=1e300)


def _with_bound(
    bound: Any, evidence: float, rules: GrowthRules, _rate: float, _number: int
) -> GrowthRules:
    return replace(rules, bound=bound, least_evidence=evidence)


def _accuracies(rows: int) -> Iterator[Record]:
    streams = [data_sets.friedman_set(rows)]
    streams += [data.head(rows) for data in map(data_sets.load, STREAMS) if data is not None]
    variants: list[tuple[str, float | None, float, Any]] = [
        ("hoeffding", delta, 15.0, HoeffdingBound(delta)) for delta in (0.05, 1e-3, 1e-7, 1e-20)
    ]
    variants += [
        ("anytime", 1e-3, 15.0, AnytimeBound(1e-3)),
        ("mcdiarmid", 1e-3, 15.0, McDiarmidBound(1e-3)),
        ("none", None, 15.0, NoBound(1e-3)),
        ("hoeffding", 1e-3, 0.0, HoeffdingBound(1e-3)),
        ("hoeffding", 1e-3, 30.0, HoeffdingBound(1e-3)),
    ]
    for name, delta, evidence, bound in variants:
        found = []
        for data in streams:
            tree = HoeffdingTreeRegressor()
            tree._use_growth(partial(_with_bound, bound, evidence))
            y, p = data.y[SKIPPED:], follow(tree, data, "at once")[SKIPPED:]
            r2 = 1.0 - np.sum((y - p) ** 2) / np.sum((y - y.mean()) ** 2)
            found.append((float(r2), tree.n_leaves))
        r2, leaves = np.mean(found, axis=0).tolist()
        yield Record("accuracy", name, delta, evidence, rows, r2, leaves)
