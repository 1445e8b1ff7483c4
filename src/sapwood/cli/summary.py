"""The result of a run, in the terminal."""

from collections.abc import Sequence

from rich.table import Table

from sapwood.cli.failure import Terminal, table_of
from sapwood.drift import DriftEvent
from sapwood.evaluate.result import BASELINES, UNSCORED, Evaluation
from sapwood.formatting import number, plain, r_squared

__all__ = ["print_counts", "print_drift", "print_result"]

MOST_CHANGES = 10
LONGEST_NAME = 40
BOUNDS = {
    "coverage": "coverage at level",
    "width": "mean width at level",
    "score": "interval score at",
}


def print_result(found: Evaluation, to_stderr: bool = False) -> None:
    """Print the errors, and what became of all rows."""
    terminal = Terminal(stderr=to_stderr, highlight=False)
    terminal.say(f"{found.stream}: errors in predicting {found.target}")
    if found.targets:
        _print_targets(found, terminal)
        print_drift(found.drift_events, terminal)
        print_counts(found, terminal)
        return
    table = table_of("", "all rows", "exp. weighted", f"last {found.window_rows:,}")
    errors = (found.total, found.faded, found.window)
    table.add_row("MAE", *(number(error.mae, 5) for error in errors))
    table.add_row("RMSE", *(number(error.rmse, 5) for error in errors))
    table.add_row("R²", *(r_squared(error.r2) for error in errors))
    table.add_section()
    for name, rival in found.baselines.items():
        rivals = (rival.total, rival.faded, rival.window)
        table.add_row(f"RMSE of {BASELINES[name]}", *(number(each.rmse, 5) for each in rivals))
    if found.intervals is not None:
        table.add_section()
        for level, bounds in found.intervals.levels.items():
            for name, title in BOUNDS.items():
                values = (getattr(bounds.total, name), getattr(bounds.faded, name))
                cells = [f"{v:.4f}" if name == "coverage" else number(v, 5) for v in values]
                table.add_row(f"{title} {level:g}", *cells, "")
    terminal.print(table)
    terminal.say(found.headline)
    print_drift(found.drift_events, terminal)
    print_counts(found, terminal)


def print_drift(found: Sequence[DriftEvent] | None, terminal: Terminal, of: str = "") -> None:
    """Print the last drift alerts, if there was a monitor.

    - `of`: what comes before each line, such as "horizon 24h: ".
    """
    events = found or ()
    for event in events[-MOST_CHANGES:]:
        terminal.say(f"{of}drift: {event}")
    if len(events) > MOST_CHANGES:
        terminal.say(f"{of}and {len(events) - MOST_CHANGES:,} earlier drift events")
    if found is not None and not events:
        terminal.say(f"{of}drift: none detected")


def _print_targets(found: Evaluation, terminal: Terminal) -> None:
    """Print a line of errors for each target, and their mean."""
    last = f"R² last {found.window_rows:,}"
    titles = ("target", "rows", "MAE", "RMSE", "R²", "R² weighted", last, "best baseline")
    table = _of_targets(*titles)
    for name, own in found.targets.items():
        best = own.best_baseline
        table.add_row(
            plain(name, LONGEST_NAME),
            f"{own.rows_scored:,}",
            number(own.total.mae, 4),
            number(own.total.rmse, 4),
            *(r_squared(each.r2) for each in (own.total, own.faded, own.window)),
            "" if best is None else number(own.baselines[best].total.rmse, 4),
        )
    table.add_section()
    means = [r_squared(each.r2) for each in (found.total, found.faded, found.window)]
    table.add_row("mean", "", "", "", *means, "")
    terminal.print(table)
    if any(own.intervals is not None for own in found.targets.values()):
        terminal.print(_target_bounds(found))
    terminal.say(found.headline)


def _of_targets(*titles: str) -> Table:
    """Return a table whose first column has names of targets, however long."""
    table = table_of(*titles, pad_edge=False)
    table.columns[0].overflow, table.columns[0].min_width = "fold", 9
    return table


def _target_bounds(found: Evaluation) -> Table:
    """Return a line for each level of each target's bounds."""
    titles = ("intervals of", "level", "coverage", "exp. weighted", "mean width", "interval score")
    table = _of_targets(*titles)
    for name, own in found.targets.items():
        for level, bounds in ({} if own.intervals is None else own.intervals.levels).items():
            table.add_row(
                plain(name, LONGEST_NAME),
                f"{level:g}",
                f"{bounds.total.coverage:.4f}",
                f"{bounds.faded.coverage:.4f}",
                number(bounds.total.width, 5),
                number(bounds.total.score, 5),
            )
    return table


def print_counts(found: Evaluation, terminal: Terminal) -> None:
    """Print what became of all rows, how long it took, and how large the model is."""
    for line in _lines(found):
        terminal.say(line)


def _lines(found: Evaluation) -> list[str]:
    lines = [
        f"rows: {found.rows_read:,} read, {found.rows_predicted:,} predicted, "
        f"{found.rows_learned:,} learned, {found.rejected.count:,} rejected"
    ]
    if found.rows_without_target:
        later = f"; {found.labels_joined:,} had theirs later" if found.labels_joined else ""
        lines.append(
            f"  {found.rows_without_target:,} had no {found.target}: predicted, not learned{later}"
        )
    lines += [f"  {count:,}: {reason}" for reason, count in found.rejected.reasons.items()]
    if found.unscored:
        lines.append(
            f"NOT SCORED: {found.unscored:,} of {found.rows_learned:,} rows, whose {UNSCORED}, the "
            f"first at {found.first_unscored}: the errors are those of the others"
        )
    lines.append(
        f"time: {found.seconds:.2f} s, {found.rows_per_second:,.0f} rows/s "
        f"(the model's part: {found.model_seconds:.2f} s)"
    )
    if found.leaves is not None and found.model_bytes is not None:
        leaves = "1 leaf" if found.leaves == 1 else f"{found.leaves:,} leaves"
        lines.append(f"model: {leaves}, {found.model_bytes / 1e6:.2f} MB")
    return lines
