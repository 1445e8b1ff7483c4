"""The result of a run, in the terminal."""

from rich.console import Console
from rich.table import Table

from sapwood.evaluate.result import Evaluation
from sapwood.tree.words import number

__all__ = ["print_counts", "print_result"]


def print_result(found: Evaluation, to_stderr: bool = False) -> None:
    """Print the errors, and what became of all rows."""
    console = Console(stderr=to_stderr, highlight=False)
    title = f"{found.stream}: errors in predicting {found.target}"
    console.print(title, markup=False, emoji=False, soft_wrap=True)
    table = Table()
    table.add_column("")
    for title in ("all rows", "recent", f"last {found.window_rows:,}"):
        table.add_column(title, justify="right")
    errors = (found.total, found.faded, found.window)
    table.add_row("MAE", *(number(error.mae, 5) for error in errors))
    table.add_row("RMSE", *(number(error.rmse, 5) for error in errors))
    table.add_row("R²", *(f"{error.r2:.4f}" for error in errors))
    console.print(table)
    print_counts(found, console)


def print_counts(found: Evaluation, console: Console) -> None:
    """Print what became of all rows, how long it took, and how large the model is."""
    for line in _lines(found):
        console.print(line, markup=False, emoji=False, highlight=False, soft_wrap=True)


def _lines(found: Evaluation) -> list[str]:
    lines = [
        f"rows: {found.rows_read:,} read, {found.rows_predicted:,} predicted, "
        f"{found.rows_learned:,} learned, {found.refused.count:,} refused"
    ]
    lines += [f"  {count:,}: {reason}" for reason, count in found.refused.reasons.items()]
    lines.append(
        f"time: {found.seconds:.2f} s, {found.rows_per_second:,.0f} rows/s "
        f"(the model's part: {found.model_seconds:.2f} s)"
    )
    if found.leaves is not None and found.model_bytes is not None:
        lines.append(f"model: {found.leaves:,} leaves, {found.model_bytes / 1e6:.2f} MB")
    return lines
