"""What is seen while a stream is followed: a bar, and a table of the running error."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from sapwood.cli.failure import Terminal
from sapwood.evaluate.class_run import ClassRun
from sapwood.evaluate.prequential import Prequential
from sapwood.evaluate.result import UNSCORED
from sapwood.formatting import number, r_squared

__all__ = ["RunProgress"]

FIRST_LINE = 1000
DIGITS = 4
COLUMNS = ("rows", "MAE", "RMSE", "R²", "recent MAE", "recent R²", "leaves", "MB", "rows/s")
CLASS_COLUMNS = (
    "rows",
    "accuracy",
    "log-loss",
    "kappa",
    "recent acc.",
    "",
    "leaves",
    "MB",
    "rows/s",
)
WIDTHS = (12, 10, 10, 8, 11, 10, 7, 7, 11)


class RunProgress:
    """A bar with the rate and the remaining time, above which lines of errors are printed.

    A line comes when the rows have doubled since the last one, so that there are few of them
    however long the stream is. The bar is shown on a terminal only.

    - `title`: if given, there is a bar with this title, and no table.
    """

    def __init__(
        self, terminal: Terminal, run: Prequential | ClassRun, title: str | None = None
    ) -> None:
        self._terminal = terminal
        self._run = run
        self._in_table = title is None
        self._next = max(FIRST_LINE, 2 * run.rows_scored)
        self._shown = 0
        self._has_reported = self._first_unscored is not None
        self._began, self._rows_then = time.monotonic(), run.rows_read
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=terminal,
            transient=True,
            disable=terminal.silent or not terminal.is_terminal,
        )
        self._task = self._bar.add_task(title or run.stream.name, total=run.stream.size, rate="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._in_table and self._shown != self._run.rows_scored:
            self._print_line()
        self._bar.stop()

    def update(self, done: int) -> None:
        """Show how far the run is, and the first row that could not be scored."""
        if self._first_unscored is not None and not self._has_reported:
            self._has_reported = True
            self._terminal.say(
                f"sapwood: {self._first_unscored}: {UNSCORED}; such rows are learned and "
                "counted, but not scored"
            )
        rows = self._run.rows_scored
        if rows >= self._next and self._in_table:
            self._next = 2 * rows
            self._print_line()
        if not self._bar.disable:
            self._bar.update(self._task, completed=done, rate=f"{self._rate():,.0f} rows/s")

    def _rate(self) -> float:
        took = time.monotonic() - self._began
        return (self._run.rows_read - self._rows_then) / took if took > 0 else 0.0

    @property
    def _first_unscored(self) -> str | None:
        return None if isinstance(self._run, ClassRun) else self._run.first_unscored

    def _print_line(self) -> None:
        run = self._run
        if self._shown == 0:
            if not isinstance(run, ClassRun) and run.stream.targets:
                self._terminal.say("means over targets, in units of the deviation of each:")
            self._terminal.say(_line(CLASS_COLUMNS if isinstance(run, ClassRun) else COLUMNS))
        self._shown = run.rows_scored
        if isinstance(run, ClassRun):
            leaves, nbytes, scores = run.model.n_leaves, run.model.nbytes, _class_scores(run)
        else:
            leaves, nbytes, scores = run.learner.leaves, run.learner.nbytes, _errors(run)
        values = (
            f"{self._shown:,}",
            *scores,
            "-" if leaves is None else f"{leaves:,}",
            "-" if nbytes is None else f"{nbytes / 1e6:.2f}",
            f"{self._rate():,.0f}",
        )
        self._terminal.say(_line(values))


def _errors(run: Prequential) -> tuple[str, ...]:
    total, faded = run.total, run.faded
    return (
        number(total.mae, DIGITS),
        number(total.rmse, DIGITS),
        r_squared(total.r2),
        number(faded.mae, DIGITS),
        r_squared(faded.r2),
    )


def _class_scores(run: ClassRun) -> tuple[str, ...]:
    found = run.scores.metrics()
    names = ("accuracy", "log_loss", "kappa", "accuracy_window")
    return (*(f"{found[name]:.4f}" for name in names), "")


def _line(cells: Sequence[str]) -> str:
    """Return a line of the table; however wide a cell is, there is a blank before it.

    Examples
    --------
    >>> _line(["1,000", "1.5", "2.236", "-19.0000"])
    '       1,000        1.5      2.236 -19.0000'
    """
    return " ".join(map(str.rjust, cells, WIDTHS))
