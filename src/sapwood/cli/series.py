"""Errors by series: the option, the table and the file."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sapwood.cli.failure import Terminal, UsageError, table_of
from sapwood.cli.outputs import csv_bytes
from sapwood.formatting import number, r_squared
from sapwood.storage.atomic import write_atomically

if TYPE_CHECKING:
    from sapwood.evaluate.prequential import Prequential
    from sapwood.evaluate.result import Evaluation

__all__ = ["check_series", "print_series", "score_series", "write_series"]

SHOWN = 10
FIELDS = ("rows", "mae", "rmse", "r2", "mase", "first", "last")


def check_series(path: Path | None, by: Sequence[str]) -> None:
    """Complain of a file for errors by series without the columns that identify series."""
    if path is not None and not by:
        raise UsageError(
            f"--series-errors {path} needs --series, the column that identifies series"
        )


def score_series(run: "Prequential", by: Sequence[str], season: int | str | None) -> None:
    """Let a run score each series, if columns that identify them were named."""
    if not by:
        return
    from sapwood.evaluate.series import SeriesScores

    for name in by:
        if name not in run.stream.features:
            raise UsageError(f"--series {name}: {run.stream.name} has no such feature")
    run.add_recorder(SeriesScores(by, 1 if season is None else season))


def print_series(found: "Evaluation", to_stderr: bool = False) -> None:
    """Print the series with the largest sums of errors, if errors by series were requested."""
    if found.series is None:
        return
    terminal = Terminal(stderr=to_stderr, highlight=False)
    by = list(map(str, found.series.by))
    titles = (*by, "rows", "MAE", "R²", "MASE", "first", "last")
    table = table_of(*titles, words=len(by), pad_edge=False)
    for own in found.series.worst(SHOWN):
        key = ["" if part is None else str(part) for part in own.key]
        scores = number(own.mae, 5), r_squared(own.r2), _finite(own.mase)
        table.add_row(*key, f"{own.rows:,}", *scores, *map(_day, (own.first, own.last)))
    terminal.print(table)
    count, others = len(found.series.series), found.series.others
    words = f"{count:,} series; those with the largest sums of absolute errors are shown"
    if others is not None:
        words += f"; {others.rows:,} rows of further series are not among them"
    terminal.say(words)


def write_series(path: Path, found: "Evaluation") -> None:
    """Write the errors of all series as CSV; times are seconds since 1970."""
    table = found.series
    assert table is not None
    rows: list[list[object]] = [[*map(str, table.by), *FIELDS]]
    for own in table.series:
        fields = own.to_dict()
        rows.append([*own.key, *(fields[name] for name in FIELDS)])
    write_atomically(path, csv_bytes(rows))


def _finite(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else ""


def _day(seconds: float) -> str:
    from sapwood.report.series import day_of

    return day_of(seconds)
