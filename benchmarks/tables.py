"""What a question answers: tables to read, records to keep, and the bounds that were promised."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Answer", "Bound", "Cell", "Table", "percent"]

Cell = str | float | int | bool | None


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Parameters
    ----------
    title : str
        What the table shows.
    columns : sequence of str
        Their names.
    rows : sequence of sequences
        As many cells each as there are columns.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __str__(self) -> str:
        texts = [list(self.columns), *([_text(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        words = [all(isinstance(row[i], str) for row in self.rows) for i in range(len(widths))]
        lines = [
            "  ".join(
                text.ljust(width) if word else text.rjust(width)
                for text, width, word in zip(row, widths, words, strict=True)
            ).rstrip()
            for row in texts
        ]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self.title, "", lines[0], rule, *lines[1:]])

    def write_csv(self, path: Path) -> None:
        """Write the rows, at full precision.

        Parameters
        ----------
        path : Path
            File to write; its folder is made if need be.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)


@dataclass(frozen=True)
class Bound:
    """A promise, and what was measured.

    Parameters
    ----------
    name : str
        What was promised.
    value, limit : float
        The measured value, and its limit.
    at_least : bool
        Whether the limit is a lower one; it is an upper one otherwise.
    """

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def row(self) -> tuple[Cell, ...]:
        """Return the bound as cells of a table: name, value, limit, whether it is met."""
        sign = ">=" if self.at_least else "<="
        return self.name, self.value, f"{sign} {self.limit:.5g}", "yes" if self.met else "NO"


@dataclass(frozen=True)
class Answer:
    """The results of a benchmark.

    Parameters
    ----------
    tables : list of Table
        To be printed.
    records : Table
        Every single measurement, to be kept as CSV.
    bounds : list of Bound
        Promises that the measurements keep or break.
    """

    tables: list[Table]
    records: Table
    bounds: list[Bound] = field(default_factory=list)


def percent(share: float | None) -> str:
    """Return a share as text with the precision that regrets need.

    Parameters
    ----------
    share : float or None
        None gives a dash.
    """
    return "-" if share is None else f"{100 * share:.4f} %"


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.4g}" if isinstance(cell, float) else cell
