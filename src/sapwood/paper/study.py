"""The whole study in one folder: runs, comparisons, figures and the report."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

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
CAPTIONS = {
    "metrics": "Averages by sample size: merit, elements, observation time and query time, for the "
    "linear and the cubic target (the paper's figure 1).",
    "ranks": "Critical-difference diagrams of the paper's observers (its figures 2, 4, 5 and 6). "
    "Bars join observers that do not differ significantly; rings are the paper's ranks.",
    "ranks-all": "The same diagrams with the observers that the paper does not have.",
    "differences": "How far split points lie from E-BST's (the paper's figure 3); the axis is "
    "logarithmic beyond ±0.001.",
    "regret": "The share of E-BST's merit that is lost, against the bytes that an observer takes.",
    "numerics": "The error of a variance and the regret of the cut chosen by it (section 3).",
}


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
        Section(
            "What holds",
            [findings.describe_verdict(checks, papers[0].cells)],
            [],
            [findings.verdict_table(checks)],
        ),
        *_illustrated_sections(
            folder, averages, observers, papers=papers, everyone=everyone, regret=regrets(results)
        ),
        _circumstances_section(folder, plan, observers),
    ]
    folder.write_text(SUMMARY, render_markdown(TITLE, sections))
    folder.write_text(REPORT, render_html(TITLE, sections))
    return Outcome(checks, path / REPORT)


def _illustrated_sections(
    folder: StudyFolder,
    averages: pd.DataFrame,
    observers: Sequence[str],
    *,
    papers: Sequence[Comparison],
    everyone: Sequence[Comparison],
    regret: pd.DataFrame,
) -> list[Section]:
    """Return the sections with a figure each, which are written into the folder."""
    numerics = measure_numerics()
    folder.write_table("numerics.parquet", pa.Table.from_pandas(numerics, preserve_index=False))

    def illustrated(
        title: str, name: str, drawn: Figure, texts: Iterable[str], *tables: Table
    ) -> Section:
        picture = Picture(name, CAPTIONS[name], save(folder, name, drawn))
        return Section(title, [*texts], [picture], [*tables])

    return [
        illustrated(
            "Average results",
            "metrics",
            figures.draw_metrics(averages, observers),
            [findings.describe_metrics(averages, observers)],
        ),
        illustrated(
            "The paper's ranks and ours",
            "ranks",
            figures.draw_ranks(papers, observers),
            map(findings.describe_ranks, papers),
            *map(findings.paper_table, papers),
        ),
        illustrated(
            "All observers ranked",
            "ranks-all",
            figures.draw_ranks(everyone, observers),
            map(findings.describe_ranks, everyone),
            findings.rank_table(everyone, observers),
        ),
        illustrated(
            "Split points",
            "differences",
            figures.draw_differences(averages, observers),
            [findings.describe_differences(averages)],
            findings.difference_table(averages, observers),
        ),
        illustrated(
            "Regret against bytes",
            "regret",
            figures.draw_regret(regret, observers),
            [findings.describe_regret(regret)],
            findings.regret_table(regret, observers),
        ),
        illustrated(
            "Robust variances", "numerics", draw_numerics(numerics), [describe_numerics(numerics)]
        ),
    ]


def _circumstances_section(folder: StudyFolder, plan: Plan, observers: Sequence[str]) -> Section:
    sizes = ", ".join(f"{n:,}" for n in plan.sizes)
    rows = [
        ("sample sizes", sizes),
        ("runs of each cell", str(plan.runs)),
        ("observers", ", ".join(observers)),
        *folder.machine().items(),
    ]
    return Section("What was run, and on what", [], [], [Table(("what", "which"), rows)])
