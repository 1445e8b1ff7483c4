"""The paper's statistics: averages over the runs, average ranks, Friedman's and Nemenyi's tests."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from sapwood.evaluate.ranking import ALPHA, Ranking, Tests, rank
from sapwood.paper.observers import EXHAUSTIVE

__all__ = [
    "FACTORS",
    "METRICS",
    "Comparison",
    "Metric",
    "average_over_runs",
    "compare",
    "regrets",
]

FACTORS = ["n", "distribution", "target", "noisy"]

SIGNIFICANT_DIGITS = 12
"""Averages that agree in so many digits differ by rounding only, and share a rank."""


class Metric(NamedTuple):
    """What observers are ranked by: a column of the results, and how to speak of it."""

    column: str
    label: str
    axis: str
    larger_is_better: bool = False


METRICS = (
    Metric("merit", "Merit", "merit (VR)", larger_is_better=True),
    Metric("elements", "Elements", "elements"),
    Metric("observe_seconds", "Observation time", "observation (s)"),
    Metric("query_seconds", "Query time", "query (s)"),
)


class Comparison(NamedTuple):
    """How some observers rank by one metric.

    - `cells`: how many cells the ranks are averaged over.
    - `ranking`: their average ranks, and whether they differ.
    """

    metric: Metric
    cells: int
    ranking: Ranking

    @property
    def tests(self) -> Tests:
        """Whether the observers differ."""
        assert self.ranking.tests is not None, "a study has more cells than tests need"
        return self.ranking.tests

    @property
    def ranks(self) -> pd.Series:
        """The average rank of each observer, ascending; 1 is the best."""
        return pd.Series(self.ranking.ranks, index=list(self.ranking.models))

    def differ(self, first: str, second: str) -> bool:
        """Return whether two observers differ significantly."""
        places = [self.ranking.models.index(name) for name in (first, second)]
        return bool(self.tests.pair_p[*places] < ALPHA)

    def ahead(self, first: str, second: str) -> bool:
        """Return whether one observer is significantly better than another."""
        return self.differ(first, second) and bool(self.ranks[first] < self.ranks[second])

    def like_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs that do not differ significantly."""
        return [pair for pair in combinations(self.ranking.models, 2) if not self.differ(*pair)]


def average_over_runs(results: pd.DataFrame) -> pd.DataFrame:
    """Average every metric over the runs of a cell.

    - Returns a row for each cell and observer.
    """
    grouped = results.drop(columns="run").groupby([*FACTORS, "observer"], sort=False)
    averages: pd.DataFrame = grouped.mean().reset_index()
    return averages


def compare(averages: pd.DataFrame, metric: Metric, observers: Sequence[str]) -> Comparison:
    """Rank observers within each cell, and test whether they differ.

    - `observers`: which ones; three at least.
    """
    table = averages.pivot(index=FACTORS, columns="observer", values=metric.column)
    values = _without_rounding(table[list(observers)])
    signed = -values if metric.larger_is_better else values
    return Comparison(metric, len(values), rank(signed.to_numpy(), observers))


def regrets(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results with the column ``regret``: the share of E-BST's merit that is lost."""
    keys = [*FACTORS, "run"]
    best = results.loc[results["observer"] == EXHAUSTIVE, [*keys, "merit"]]
    joined = results.merge(best, on=keys, suffixes=("", "_best"))
    regret = 1 - joined["merit"] / joined["merit_best"]
    return joined.drop(columns="merit_best").assign(regret=regret)


def _without_rounding(values: pd.DataFrame) -> pd.DataFrame:
    with np.errstate(divide="ignore"):
        magnitude = np.floor(np.log10(values.abs()))
    unit = 10.0 ** (magnitude.where(np.isfinite(magnitude), 0.0) - SIGNIFICANT_DIGITS + 1)
    rounded: pd.DataFrame = (values / unit).round() * unit
    return rounded
