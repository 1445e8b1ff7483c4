"""The statistics against slow and obvious twins."""

from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sapwood.evaluate.ranking import critical_difference
from sapwood.moments import Moments
from sapwood.observers import EBSTObserver
from sapwood.paper.measure import variance_reduction
from sapwood.paper.observers import OURS, PAPERS
from sapwood.paper.protocol import all_cells
from sapwood.paper.published import CELLS, CRITICAL_DIFFERENCE, RANKS, differ_in_paper
from sapwood.paper.statistics import (
    METRICS,
    average_over_runs,
    compare,
    regrets,
)

MERIT, ELEMENTS = METRICS[:2]


def made_up_results(runs: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        {
            **cell._asdict(),
            "run": run,
            "observer": name,
            "merit": float(rng.integers(1, 6)),
            "elements": float(place + rng.integers(0, 2)),
        }
        for cell in all_cells([50, 100])
        for run in range(runs)
        for place, name in enumerate([*PAPERS, *OURS])
    ]
    return pd.DataFrame(rows)


def naive_average_ranks(results: pd.DataFrame, column: str, larger_is_better: bool) -> dict:
    names = list(PAPERS)
    sums = dict.fromkeys(names, 0.0)
    cells = results.groupby(["n", "distribution", "target", "noisy"])
    for _, cell in cells:
        mean = {name: cell.loc[cell["observer"] == name, column].mean() for name in names}
        for name in names:
            others = [mean[other] for other in names if other != name]
            better = [o > mean[name] if larger_is_better else o < mean[name] for o in others]
            ties = [o == mean[name] for o in others]
            sums[name] += 1 + sum(better) + sum(ties) / 2
    return {name: total / len(cells) for name, total in sums.items()}


@pytest.mark.parametrize("metric", [MERIT, ELEMENTS], ids=lambda metric: metric.column)
def test_ranks_are_those_of_the_twin(metric) -> None:
    results = made_up_results()
    compared = compare(average_over_runs(results), metric, list(PAPERS))
    expected = naive_average_ranks(results, metric.column, metric.larger_is_better)
    assert compared.ranks.to_dict() == pytest.approx(expected)
    assert compared.ranks.is_monotonic_increasing
    assert compared.ranks.sum() == pytest.approx(15)
    assert compared.cells == 72


def test_what_differs_by_rounding_only_is_a_tie() -> None:
    results = made_up_results(runs=1)
    results["merit"] = 0.1
    results.loc[results["observer"] == "E-BST", "merit"] = 0.3
    results.loc[results["observer"] == "TE-BST", "merit"] = 0.1 + 0.2
    ranks = compare(average_over_runs(results), MERIT, list(PAPERS)).ranks
    assert list(ranks) == [1.5, 1.5, 4.0, 4.0, 4.0]


def test_the_critical_difference_is_the_papers() -> None:
    assert critical_difference(5, CELLS) == pytest.approx(CRITICAL_DIFFERENCE, abs=5e-5)
    assert critical_difference(5, CELLS) == pytest.approx(2.728 * sqrt(30 / (6 * 684)), rel=1e-3)


def test_nemenyi_agrees_with_the_critical_difference() -> None:
    compared = compare(average_over_runs(made_up_results()), MERIT, [*PAPERS, *OURS])
    for first in compared.ranks.index:
        for second in compared.ranks.index:
            gap = abs(compared.ranks[first] - compared.ranks[second])
            assert compared.differ(first, second) == (gap > compared.tests.critical_difference)


def test_friedman_is_scipys() -> None:
    averages = average_over_runs(made_up_results())
    columns = [averages.loc[averages["observer"] == name, "elements"] for name in PAPERS]
    expected = stats.friedmanchisquare(*columns).pvalue
    assert compare(averages, ELEMENTS, list(PAPERS)).tests.friedman_p == pytest.approx(expected)


def test_the_papers_ranks_are_ranks() -> None:
    for metric, ranks in RANKS.items():
        assert sum(ranks.values()) == pytest.approx(15, abs=5e-4), metric
    alike = [
        {first, second}
        for first in PAPERS
        for second in PAPERS
        if first < second and not differ_in_paper("observe_seconds", first, second)
    ]
    assert {"E-BST", "TE-BST"} in alike
    assert len(alike) == 4


def test_merit_is_the_papers_variance_reduction() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=60), rng.normal(size=60)
    observer, total = EBSTObserver(), Moments()
    observer.update_many(x, y)
    total.update_many(y)
    split = observer.best_split()
    assert split is not None
    left, right = y[x < split.threshold], y[x >= split.threshold]
    within = [len(side) / len(y) * side.var(ddof=1) for side in (left, right) if len(side) > 1]
    assert variance_reduction(total, split) == pytest.approx(y.var(ddof=1) - sum(within))
    assert variance_reduction(total, None) == 0.0


def test_regret_is_what_is_lost_of_ebsts_merit() -> None:
    results = made_up_results(runs=1)
    row = regrets(results).query("observer == 'TE-BST'").iloc[0]
    factors = ["n", "distribution", "target", "noisy"]
    same_cell = results[(results[factors] == row[factors]).all(axis=1)]
    best = same_cell.loc[same_cell["observer"] == "E-BST", "merit"].item()
    assert row["regret"] == pytest.approx(1 - row["merit"] / best)
