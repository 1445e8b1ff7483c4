"""Which of several models is best over several streams: ranks, and whether they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
import scikit_posthocs
from numpy.typing import NDArray
from scipy import stats

__all__ = ["ALPHA", "ENOUGH", "Ranking", "Tests", "critical_difference", "rank"]

FloatArray = NDArray[np.float64]

ALPHA = 0.05
ENOUGH = 5
"""From so many streams on, with three models or more, differences are tested."""


@dataclass(frozen=True)
class Tests:
    """Whether models differ.

    - `friedman_p`: of Friedman's test: the probability of such ranks if all models were alike.
    - `pair_p`: of Nemenyi's test: likewise, for each pair.
    - `critical_difference`: from what difference of average ranks on a pair differs significantly.
    """

    friedman_p: float
    pair_p: FloatArray
    critical_difference: float


@dataclass(frozen=True)
class Ranking:
    """How models rank.

    - `models`: the models, best first.
    - `ranks`: their average ranks; 1 is the best.
    - `tests`: in the same order; None if there are too few streams or models for tests.
    """

    models: tuple[str, ...]
    ranks: tuple[float, ...]
    tests: Tests | None

    def groups(self) -> list[tuple[str, ...]]:
        """Return the largest groups of models that do not differ significantly.

        Without tests, all are one group.
        """
        groups: list[tuple[int, int]] = []
        for first in range(len(self.models)):
            last = first
            while last + 1 < len(self.models) and not self._differ(first, last + 1):
                last += 1
            if last > first and (not groups or last > groups[-1][1]):
                groups.append((first, last))
        return [self.models[first : last + 1] for first, last in groups]

    def _differ(self, first: int, second: int) -> bool:
        return self.tests is not None and bool(self.tests.pair_p[first, second] < ALPHA)


def rank(values: FloatArray, models: Sequence[str], larger_is_better: bool = False) -> Ranking:
    """Rank models within each stream, and test whether they differ.

    - `values`: what they are ranked by; a NaN is the worst of all.
    - `models`: their names.
    - `larger_is_better`: whether large values are good.

    Examples
    --------
    >>> found = rank(np.array([[3.0, 1.0], [2.0, 1.0], [5.0, 5.0]]), ["ours", "theirs"])
    >>> found.models, [round(value, 2) for value in found.ranks]
    (('theirs', 'ours'), [1.17, 1.83])
    """
    signed = np.where(np.isnan(values), np.inf, -values if larger_is_better else values)
    within = stats.rankdata(signed, axis=1)
    averages = within.mean(axis=0)
    order = np.argsort(averages, kind="stable")
    tests = None
    if len(values) >= ENOUGH and len(models) >= 3:
        all_tie = bool((within == within[:1, :1]).all())
        tests = Tests(
            1.0 if all_tie else float(stats.friedmanchisquare(*within.T).pvalue),
            scikit_posthocs.posthoc_nemenyi_friedman(within).to_numpy()[np.ix_(order, order)],
            critical_difference(len(models), len(values)),
        )
    names = tuple(models[place] for place in order)
    return Ranking(names, tuple(averages[order].tolist()), tests)


def critical_difference(models: int, streams: int) -> float:
    """Return Nemenyi's critical difference of average ranks.

    Examples
    --------
    >>> round(critical_difference(5, 684), 4)
    0.2332
    """
    quantile = float(stats.studentized_range.ppf(1 - ALPHA, models, inf)) / sqrt(2)
    return quantile * sqrt(models * (models + 1) / (6 * streams))
