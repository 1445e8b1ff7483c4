"""The paper's statistics: averages over the runs, average ranks, Friedman's and Nemenyi's tests."""

from collections.abc import Sequence
from itertools import combinations
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
import scikit_posthocs
from scipy import stats

from sapwood.paper.observers import EXHAUSTIVE
from sapwood.paper.published import ALPHA

__all__ = [
    "FACTORS",
    "METRICS",
    "Comparison",
    "Metric",
    "average_over_runs",
    "compare",
    "critical_difference",
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

    Attributes
    ----------
    metric : Metric
        What they are ranked by.
    cells : int
        How many cells the ranks are averaged over.
    ranks : pandas.Series
        The average rank of each observer, ascending; 1 is the best.
    friedman_p : float
        Of Friedman's test: whether there is any difference.
    pair_p : pandas.DataFrame
        Of Nemenyi's test, for each pair.
    critical_difference : float
        From what difference of average ranks on a pair differs significantly.
    """

    metric: Metric
    cells: int
    ranks: pd.Series
    friedman_p: float
    pair_p: pd.DataFrame
    critical_difference: float

    def differ(self, first: str, second: str) -> bool:
        """Say whether two observers differ significantly.

        Parameters
        ----------
        first, second : str
            Their names.
        """
        return bool(self.pair_p.loc[first, second] < ALPHA)

    def ahead(self, first: str, second: str) -> bool:
        """Say whether one observer is significantly better than another.

        Parameters
        ----------
        first, second : str
            Their names.
        """
        return self.differ(first, second) and bool(self.ranks[first] < self.ranks[second])

    def like_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs that do not differ significantly."""
        return [pair for pair in combinations(self.ranks.index, 2) if not self.differ(*pair)]


def average_over_runs(results: pd.DataFrame) -> pd.DataFrame:
    """Average every metric over the runs of a cell.

    Parameters
    ----------
    results : pandas.DataFrame
        What `run_study` returns.

    Returns
    -------
    pandas.DataFrame
        A row for each cell and observer.
    """
    grouped = results.drop(columns="run").groupby([*FACTORS, "observer"], sort=False)
    averages: pd.DataFrame = grouped.mean().reset_index()
    return averages


def compare(averages: pd.DataFrame, metric: Metric, observers: Sequence[str]) -> Comparison:
    """Rank observers within each cell, and test whether they differ.

    Parameters
    ----------
    averages : pandas.DataFrame
        What `average_over_runs` returns.
    metric : Metric
        What to rank by.
    observers : sequence of str
        Which ones; three at least.
    """
    table = averages.pivot(index=FACTORS, columns="observer", values=metric.column)
    values = _without_rounding(table[list(observers)])
    signed = -values if metric.larger_is_better else values
    ranks = stats.rankdata(signed.to_numpy(), axis=1)
    pair_p = scikit_posthocs.posthoc_nemenyi_friedman(signed.to_numpy())
    pair_p = pd.DataFrame(pair_p.to_numpy(), index=list(observers), columns=list(observers))
    return Comparison(
        metric,
        len(values),
        pd.Series(ranks.mean(axis=0), index=list(observers)).sort_values(kind="stable"),
        float(stats.friedmanchisquare(*signed.to_numpy().T).pvalue),
        pair_p,
        critical_difference(len(observers), len(values)),
    )


def critical_difference(observers: int, cells: int) -> float:
    """Return Nemenyi's critical difference of average ranks.

    Parameters
    ----------
    observers : int
        How many are compared.
    cells : int
        In how many cells.

    Examples
    --------
    >>> round(critical_difference(5, 684), 4)
    0.2332
    """
    quantile = float(stats.studentized_range.ppf(1 - ALPHA, observers, inf)) / sqrt(2)
    return quantile * sqrt(observers * (observers + 1) / (6 * cells))


def regrets(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results with the column ``regret``: the share of E-BST's merit that is lost.

    Parameters
    ----------
    results : pandas.DataFrame
        What `run_study` returns.
    """
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
