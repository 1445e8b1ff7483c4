"""`sapwood paper`: the paper's study, reproduced."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from sapwood.cli.failure import INTERRUPTED, Terminal, failing_in_one_line
from sapwood.factories import see_current_folder

if TYPE_CHECKING:
    from sapwood.paper.study import Outcome

__all__ = ["paper"]

SPEED_PERIOD = 300.0
"""Seconds that the remaining time is reckoned from: a large cell alone takes a dozen."""


def paper(
    output: Annotated[
        Path, typer.Option(help="Folder for everything; an interrupted study in it is resumed.")
    ] = Path("paper-study"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small samples and 2 runs: under a minute.")
    ] = False,
    observer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:FACTORY",
            help="Rank another observer, too; may be repeated. A factory with a required "
            "argument is given the standard deviation of x.",
        ),
    ] = None,
) -> None:
    """Reproduce the study of the Quantizer Observer's paper.

    Runs its five observers and ours on its 684 kinds of samples, and writes a report.
    """
    console = Terminal(stderr=True)
    start = time.monotonic()
    with failing_in_one_line(console, extra="paper"):
        try:
            outcome = _reproduce(console, output, quick, observer or [])
        except KeyboardInterrupt:
            console.print("interrupted: the same command goes on where it stopped")
            raise typer.Exit(INTERRUPTED) from None
    _print_checks(console, outcome)
    console.print(f"{time.monotonic() - start:,.0f} s")
    print(outcome.report)


def _reproduce(console: Console, output: Path, quick: bool, observers: Sequence[str]) -> "Outcome":
    from sapwood.paper import protocol, run
    from sapwood.paper.study import reproduce

    see_current_folder()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=console,
        speed_estimate_period=SPEED_PERIOD,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("starting", total=None)

        def show(progress: run.Progress) -> None:
            bar.update(
                task, description=progress.doing, completed=progress.done, total=progress.total
            )

        plan = protocol.QUICK if quick else protocol.FULL
        return reproduce(output, plan, observers, show)


def _print_checks(console: Console, outcome: "Outcome") -> None:
    table = Table("claim", "measured", "holds?")
    for check in outcome.checks:
        table.add_row(check.claim, check.evidence, "yes" if check.holds else "[bold red]no[/]")
    console.print(table)
