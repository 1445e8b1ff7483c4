"""How the columns of a stream are read, in the terminal."""

from collections.abc import Sequence

from sapwood.cli.failure import Terminal
from sapwood.lags import Lags
from sapwood.streams.stream import ColumnNote, Stream

__all__ = ["column_lines", "show_columns"]

TITLES = ("column", "read as", "example", "missing", "distinct")
WIDEST = (28, 60, 24, 9, 9)
MOST = 40
"""Columns that are shown, and those with warnings."""


def show_columns(terminal: Terminal, stream: Stream, lags: Lags | None = None) -> None:
    """Print how each column is read, and what lags are added; nothing of columns without a file."""
    if stream.encoding != "utf-8" and stream.column_notes:
        terminal.say(
            f"{stream.name}: read as {stream.encoding}; if letters are wrong, name the "
            "encoding, such as --encoding latin-1"
        )
    for line in column_lines(stream.name, stream.column_notes):
        terminal.say(line)
    if lags is not None:
        by = f", for each {' and '.join(map(str, lags.by))}" if lags.by else ""
        terminal.say(f"also lag features{by}: {', '.join(map(str, lags.features))}")


def column_lines(name: str, notes: Sequence[ColumnNote]) -> list[str]:
    """Return the lines of a table.

    Examples
    --------
    >>> sold = ColumnNote("sold", "time", parts=("hour",), example="2026-11-15 14:30", distinct=9)
    >>> owner = ColumnNote("owner", "category", example="a1", rows=9, warnings=("an id?",))
    >>> for line in column_lines("flats.csv", [sold, owner]):
    ...     print(line)
    flats.csv: how columns are read, by the first 9 rows
    column  read as              example           missing  distinct
    sold    time; also its hour  2026-11-15 14:30        0         9
    owner   category             a1                      0         0
      owner: an id?
    """
    if not notes:
        return []
    rows = max(note.rows for note in notes)
    shown = [note for place, note in enumerate(notes) if place < MOST or note.warnings]
    table = [TITLES, *map(_cells, shown)]
    widths = [max(len(row[place]) for row in table) for place in range(len(TITLES))]
    lines = [f"{name}: how columns are read, by the first {rows:,} rows"]
    for place, row in enumerate(table):
        cells = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=False)]
        counts = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        lines.append("  ".join([*cells, *counts]).rstrip())
        if place > 0:
            note = shown[place - 1]
            lines += [f"  {note.name}: {warning}" for warning in note.warnings]
    if len(shown) < len(notes):
        lines.append(f"and {len(notes) - len(shown):,} more columns without remarks")
    return lines


def _cells(note: ColumnNote) -> tuple[str, ...]:
    cells = (
        note.name,
        note.read_as,
        note.example or "",
        f"{note.missing:,}",
        f"{note.distinct:,}",
    )
    return tuple(
        cell if len(cell) <= most else cell[: most - 1] + "…"
        for cell, most in zip(cells, WIDEST, strict=True)
    )
