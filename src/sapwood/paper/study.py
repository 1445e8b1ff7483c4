"""The whole study in one folder: runs, comparisons, figures and the report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from sapwood.paper import figures, findings
from sapwood.paper.contents import Picture, Section, Table
from sapwood.paper.folder import StudyFolder
from sapwood.paper.numerics import describe_numerics, draw_numerics, measure_numerics
from sapwood.paper.observers import OURS, PAPERS
from sapwood.paper.protocol import Plan
from sapwood.paper.report import render_html, render_markdown
from sapwood.paper.run import Progress, run_study
from sapwood.paper.statistics import METRICS, Comparison, average_over_runs, compare, regrets
from sapwood.paper.style import save

__all__ = ["REPORT", "SUMMARY", "Outcome", "reproduce"]

TITLE = "The Quantizer Observer's paper, reproduced"
REPORT = "report.html"
SUMMARY = "summary.md"


class Outcome(NamedTuple):
    """What became of the study: the claims that were checked, and where the report is."""

    checks: list[findings.Check]
    report: Path


def reproduce(
    path: Path,
    plan: Plan,
    more_observers: Sequence[str],
    report_progress: Callable[[Progress], None],
) -> Outcome:
    """Run the paper's study, or what is missing of it, and write everything into a folder.

    - `path`: the folder. An interrupted study in it is resumed.
    - `plan`: `protocol.FULL` or `protocol.QUICK`.
    - `more_observers`: observers in addition to the paper's five and ours, as ``module:factory``.
    - `report_progress`: called with the progress of the study.
    - Raises StudyError with a message of one line.
    """
    folder = StudyFolder(path)
    observers = list(dict.fromkeys([*PAPERS, *OURS, *more_observers]))
    results = run_study(folder, plan, observers, report_progress)
    averages = average_over_runs(results)
    papers = [compare(averages, metric, list(PAPERS)) for metric in METRICS]
    everyone = [compare(averages, metric, observers) for metric in METRICS]
    checks = findings.check_study(papers, everyone, averages)
    sections = [
        _verdict_section(checks, papers[0].cells),
        _metrics_section(folder, averages, observers),
        _ranks_section(folder, papers, observers),
        _everyone_section(folder, everyone, observers),
        _differences_section(folder, averages, observers),
        _regret_section(folder, regrets(results), observers),
        _numerics_section(folder),
        _circumstances_section(folder, plan, observers),
    ]
    folder.write_text(SUMMARY, render_markdown(TITLE, sections))
    folder.write_text(REPORT, render_html(TITLE, sections))
    return Outcome(checks, path / REPORT)


def _verdict_section(checks: Sequence[findings.Check], cells: int) -> Section:
    text = findings.describe_verdict(checks, cells)
    return Section("What holds", [text], [], [findings.verdict_table(checks)])


def _metrics_section(
    folder: StudyFolder, averages: pd.DataFrame, observers: Sequence[str]
) -> Section:
    svg = save(folder, "metrics", figures.draw_metrics(averages, observers))
    caption = (
        "Averages by sample size: merit, elements, observation time and query time, for the "
        "linear and the cubic target (the paper's figure 1)."
    )
    text = findings.describe_metrics(averages, observers)
    return Section("Average results", [text], [Picture("metrics", caption, svg)], [])


def _ranks_section(
    folder: StudyFolder, papers: Sequence[Comparison], observers: Sequence[str]
) -> Section:
    svg = save(folder, "ranks", figures.draw_ranks(papers, observers))
    caption = (
        "Critical-difference diagrams of the paper's observers (its figures 2, 4, 5 and 6). Bars "
        "join observers that do not differ significantly; rings are the paper's ranks."
    )
    return Section(
        "The paper's ranks and ours",
        [findings.describe_ranks(each) for each in papers],
        [Picture("ranks", caption, svg)],
        [findings.paper_table(each) for each in papers],
    )


def _everyone_section(
    folder: StudyFolder, everyone: Sequence[Comparison], observers: Sequence[str]
) -> Section:
    svg = save(folder, "ranks-all", figures.draw_ranks(everyone, observers))
    caption = "The same diagrams with the observers that the paper does not have."
    return Section(
        "All observers ranked",
        [findings.describe_ranks(each) for each in everyone],
        [Picture("ranks-all", caption, svg)],
        [findings.rank_table(everyone, observers)],
    )


def _differences_section(
    folder: StudyFolder, averages: pd.DataFrame, observers: Sequence[str]
) -> Section:
    svg = save(folder, "differences", figures.draw_differences(averages, observers))
    caption = (
        "How far split points lie from E-BST's (the paper's figure 3); the axis is logarithmic "
        "beyond ±0.001."
    )
    return Section(
        "Split points",
        [findings.describe_differences(averages)],
        [Picture("differences", caption, svg)],
        [findings.difference_table(averages, observers)],
    )


def _regret_section(
    folder: StudyFolder, with_regret: pd.DataFrame, observers: Sequence[str]
) -> Section:
    svg = save(folder, "regret", figures.draw_regret(with_regret, observers))
    caption = "The share of E-BST's merit that is lost, against the bytes that an observer takes."
    return Section(
        "Regret against bytes",
        [findings.describe_regret(with_regret)],
        [Picture("regret", caption, svg)],
        [findings.regret_table(with_regret, observers)],
    )


def _numerics_section(folder: StudyFolder) -> Section:
    measured = measure_numerics()
    folder.write_table("numerics.parquet", pa.Table.from_pandas(measured, preserve_index=False))
    svg = save(folder, "numerics", draw_numerics(measured))
    caption = "The error of a variance and the regret of the cut chosen by it (section 3)."
    picture = Picture("numerics", caption, svg)
    return Section("Robust variances", [describe_numerics(measured)], [picture], [])


def _circumstances_section(folder: StudyFolder, plan: Plan, observers: Sequence[str]) -> Section:
    sizes = ", ".join(f"{n:,}" for n in plan.sizes)
    rows = [
        ("sample sizes", sizes),
        ("runs of each cell", str(plan.runs)),
        ("observers", ", ".join(observers)),
        *folder.machine().items(),
    ]
    return Section("What was run, and on what", [], [], [Table(("what", "which"), rows)])
