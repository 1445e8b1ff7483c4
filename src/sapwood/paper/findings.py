"""Findings of the study as tables and sentences, all of them computed from the results."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from sapwood.paper.contents import Table
from sapwood.paper.observers import AUTO, EXHAUSTIVE, PAPERS
from sapwood.paper.published import CELLS, CRITICAL_DIFFERENCE, RANKS, differ_in_paper
from sapwood.paper.statistics import Comparison

__all__ = [
    "check_study",
    "describe_differences",
    "describe_metrics",
    "describe_ranks",
    "describe_regret",
    "describe_verdict",
    "difference_table",
    "paper_table",
    "rank_table",
    "regret_table",
    "verdict_table",
]

TREES = ("E-BST", "TE-BST")
QUANTIZERS = ("QO 0.01", "QO σ/3", "QO σ/2")
LARGE_SAMPLE = 1_000


class Check(NamedTuple):
    """A claim, whether it holds, and the figures that support or refute it."""

    claim: str
    holds: bool
    evidence: str


def paper_table(comparison: Comparison) -> Table:
    """Compare the paper's average ranks with ours."""
    rows = []
    for name, published in RANKS[comparison.metric.column].items():
        ours = float(comparison.ranks[name])
        within = abs(ours - published) <= CRITICAL_DIFFERENCE
        row = (name, f"{published:.3f}", f"{ours:.3f}", f"{ours - published:+.3f}", _yes(within))
        rows.append(row)
    header = ("observer", "paper", "ours", "difference", "within one CD?")
    return Table(header, rows, f"{comparison.metric.label}: average ranks, 1 is the best")


def rank_table(comparisons: Sequence[Comparison], observers: Sequence[str]) -> Table:
    """Show the average ranks of all observers by all metrics."""
    rows = [
        (each.metric.label, *(f"{each.ranks[name]:.3f}" for name in observers))
        for each in comparisons
    ]
    return Table(("metric", *observers), rows, "Average ranks of all observers, 1 is the best")


def describe_ranks(comparison: Comparison) -> str:
    """Describe the order of the observers, and whether it is the order in the paper."""
    label = comparison.metric.label
    sentences = [
        f"{label}: {_order(comparison)} in {comparison.cells} cells "
        f"(Friedman's p {_p_value(comparison.tests.friedman_p)}, CD = "
        f"{comparison.tests.critical_difference:.3f})."
    ]
    alike = [" and ".join(pair) for pair in comparison.like_pairs()]
    sentences.append(
        f"Not significantly different: {'; '.join(alike)}."
        if alike
        else "Every pair differs significantly."
    )
    if set(comparison.ranks.index) == set(PAPERS):
        same = list(comparison.ranks.index) == _papers_order(comparison)
        sentences.append(
            "The order is the paper's."
            if same
            else f"The paper's order is {' < '.join(_papers_order(comparison))}."
        )
    return " ".join(sentences)


def describe_metrics(averages: pd.DataFrame, observers: Sequence[str]) -> str:
    """Describe the costs and the merits of the observers at the largest sample size."""
    n = averages["n"].max()
    means = averages[averages["n"] == n].groupby("observer").mean(numeric_only=True)
    best = means.loc[EXHAUSTIVE]
    sentences = [
        f"At n = {n:,} {EXHAUSTIVE} keeps {best['elements']:,.0f} elements, takes "
        f"{_time(best['observe_seconds'])} to watch them and {_time(best['query_seconds'])} to "
        "find a split."
    ]
    for name in observers:
        if name == EXHAUSTIVE:
            continue
        row = means.loc[name]
        sentences.append(
            f"{name} keeps {row['elements']:,.0f} elements, watches "
            f"{best['observe_seconds'] / row['observe_seconds']:.3g} times and answers "
            f"{best['query_seconds'] / row['query_seconds']:.3g} times as fast, and its average "
            f"merit is {row['merit'] / best['merit']:.3%} of {EXHAUSTIVE}'s."
        )
    return " ".join(sentences)


def difference_table(averages: pd.DataFrame, observers: Sequence[str]) -> Table:
    """Show how far the split points lie from E-BST's."""
    rows = []
    for name in observers:
        if name != EXHAUSTIVE:
            far = averages.loc[averages["observer"] == name, "split_difference"]
            quartiles = far.quantile([0.25, 0.5, 0.75])
            figures = (*quartiles, far.abs().mean(), far.abs().max())
            rows.append((name, *(f"{figure:.2g}" for figure in figures)))
    header = ("observer", "lower quartile", "median", "upper quartile", "mean |·|", "max |·|")
    return Table(header, rows, "Split point less that of E-BST, over all cells")


def describe_differences(averages: pd.DataFrame) -> str:
    """Describe which observers' split points are nearest to those of E-BST."""
    others = averages[averages["observer"] != EXHAUSTIVE]
    distance = others.groupby("observer")["split_difference"].agg(lambda far: far.abs().mean())
    nearest = ", ".join(f"{name} ({far:.2g})" for name, far in distance.sort_values().items())
    radii = distance[list(QUANTIZERS)]
    holds = "does" if radii.is_monotonic_increasing else "does not"
    return (
        f"Mean distance from the split point of {EXHAUSTIVE}, nearest first: {nearest}. That the "
        f"distance shrinks with the radius of the quantizer, as the paper has it, {holds} hold "
        "here."
    )


def regret_table(with_regret: pd.DataFrame, observers: Sequence[str]) -> Table:
    """Show the regret and the memory of each observer."""
    rows = []
    for name in observers:
        own = with_regret[with_regret["observer"] == name]
        rows.append(
            (
                name,
                f"{own['regret'].mean():.4%}",
                f"{own['regret'].quantile(0.95):.4%}",
                f"{own['regret'].max():.3%}",
                f"{own['elements'].mean():,.0f}",
                f"{own['bytes'].mean():,.0f}",
                f"{own['bytes'].max():,}",
            )
        )
    header = ("observer", "mean regret", "95 %", "largest", "elements", "bytes", "most bytes")
    return Table(header, rows, "Regret: the share of E-BST's merit that is lost in a run")


def describe_regret(with_regret: pd.DataFrame) -> str:
    """Compare the regret and the memory of the quantizer with automatic radius with the others."""
    means = with_regret.groupby("observer")[["regret", "bytes"]].mean()
    auto, fixed, best = means.loc[AUTO], means.loc["QO 0.01"], means.loc[EXHAUSTIVE]
    fewer = with_regret[with_regret["regret"] < 0].groupby("observer").size()
    text = (
        f"{AUTO} loses {auto['regret']:.4%} of {EXHAUSTIVE}'s merit on average in "
        f"{auto['bytes']:,.0f} bytes; QO 0.01 loses {fixed['regret']:.4%} in "
        f"{fixed['bytes']:,.0f}, and {EXHAUSTIVE} takes {best['bytes']:,.0f}."
    )
    if not fewer.empty:
        text += (
            f" In {fewer.sum():,} of {len(with_regret):,} rows the regret is below 0: candidates "
            "are compared by variances with the divisor n, and the paper's merit has n − 1."
        )
    return text


def check_study(
    papers: Sequence[Comparison], everyone: Sequence[Comparison], averages: pd.DataFrame
) -> list[Check]:
    """Hold the results against what a faithful reproduction has to show.

    - `papers`, `everyone`: of the paper's observers and of all, one for each metric.
    """
    checks = []
    for each in papers:
        if each.metric.column == "observe_seconds":
            checks.append(_check_quantizers_ahead(each))
        else:
            checks += _check_like_paper(each)
    return [*checks, *_check_auto(everyone, averages)]


def describe_verdict(checks: Sequence[Check], cells: int) -> str:
    """State how many of the claims hold, and whether this is the study that they are about."""
    text = f"{sum(check.holds for check in checks)} of {len(checks)} claims hold."
    if cells != CELLS:
        text += (
            f" They are claims about the full study of {CELLS} cells; with {cells} cells and fewer "
            "runs the ranks are others."
        )
    return text


def verdict_table(checks: Sequence[Check]) -> Table:
    """Show which claims hold."""
    rows = [(check.claim, check.evidence, _yes(check.holds)) for check in checks]
    return Table(("claim", "measured", "holds?"), rows)


def _check_like_paper(comparison: Comparison) -> list[Check]:
    label, column = comparison.metric.label, comparison.metric.column
    lost = [
        f"{first} and {second}"
        for first, second in comparison.like_pairs()
        if differ_in_paper(column, first, second)
    ]
    farthest = max(abs(comparison.ranks[name] - rank) for name, rank in RANKS[column].items())
    return [
        Check(
            f"{label}: the observers come in the paper's order",
            list(comparison.ranks.index) == _papers_order(comparison),
            _order(comparison),
        ),
        Check(
            f"{label}: every pair that differs significantly in the paper does here",
            not lost,
            "; ".join(lost) + " do not" if lost else "all do",
        ),
        Check(
            f"{label}: each average rank is within one CD ({CRITICAL_DIFFERENCE}) of the paper's",
            bool(farthest <= CRITICAL_DIFFERENCE),
            f"the farthest is {farthest:.3f} away",
        ),
    ]


def _check_quantizers_ahead(comparison: Comparison) -> Check:
    behind = [
        f"{quantizer} of {tree}"
        for quantizer in QUANTIZERS
        for tree in TREES
        if not comparison.ahead(quantizer, tree)
    ]
    return Check(
        f"{comparison.metric.label}: every QO is significantly ahead of both trees",
        not behind,
        "not " + "; ".join(behind) if behind else _order(comparison),
    )


def _check_auto(everyone: Sequence[Comparison], averages: pd.DataFrame) -> list[Check]:
    merit = next(each for each in everyone if each.metric.column == "merit")
    ahead = Check(
        f"{AUTO} ranks ahead of QO 0.01 in merit",
        bool(merit.ranks[AUTO] < merit.ranks["QO 0.01"]),
        f"{merit.ranks[AUTO]:.3f} and {merit.ranks['QO 0.01']:.3f}",
    )
    large = averages[averages["n"] >= LARGE_SAMPLE]
    if large.empty:
        return [ahead]
    elements = large.groupby("observer")["elements"].mean()
    fewer = Check(
        f"{AUTO} keeps fewer elements than QO 0.01 at n ≥ {LARGE_SAMPLE:,}",
        bool(elements[AUTO] < elements["QO 0.01"]),
        f"{elements[AUTO]:,.0f} and {elements['QO 0.01']:,.0f} on average",
    )
    return [ahead, fewer]


def _papers_order(comparison: Comparison) -> list[str]:
    ranks = RANKS[comparison.metric.column]
    return sorted(ranks, key=ranks.__getitem__)


def _order(comparison: Comparison) -> str:
    return " < ".join(f"{name} {rank:.2f}" for name, rank in comparison.ranks.items())


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _p_value(p: float) -> str:
    return "< 1e-300" if p < 1e-300 else f"= {p:.2g}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
