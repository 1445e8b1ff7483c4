"""What the page consists of, whatever it is written in: words, tables, and names of pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ABSENT", "Cell", "Section", "Table", "number_cells", "plain", "r2_text"]

ABSENT = "\N{EN DASH}"
FAR_BELOW = -10.0


@dataclass(frozen=True)
class Cell:
    """An entry of a table.

    Parameters
    ----------
    text : str
        Its text.
    best : bool
        Whether it is the best of its row or column.
    shade : float, optional
        How strongly it is coloured, from 0 to 1.
    """

    text: str
    best: bool = False
    shade: float | None = None


@dataclass(frozen=True)
class Table:
    """A table; the first column names the rows.

    Parameters
    ----------
    caption : str
        What it shows.
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences of Cell
        The entries.
    words : tuple of int
        The columns of text, in addition to the first.
    folded : bool
        Whether the page shows it only on demand.
    in_short : bool
        Whether it belongs to the short form.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: tuple[int, ...] = ()
    folded: bool = False
    in_short: bool = True


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    name, title : str
        Where links go, and what is above it.
    texts : sequence of str
        The paragraphs.
    tables : sequence of Table
        In order.
    pictures : sequence of str
        Names of pictures, which are above the tables.
    """

    name: str
    title: str
    texts: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[str] = ()


def plain(*texts: str) -> list[Cell]:
    """Return cells that are nothing but text.

    Parameters
    ----------
    *texts : str
        One each.
    """
    return [Cell(text) for text in texts]


def number_cells(
    values: Sequence[float], texts: Sequence[str], *, lower: bool, shaded: bool = False
) -> list[Cell]:
    """Return cells of numbers that compete, the best of them marked.

    Parameters
    ----------
    values : sequence of float
        NaN where there is none.
    texts : sequence of str
        As they are shown; those that are shown alike are equally good.
    lower : bool
        Whether small values are good.
    shaded : bool
        Whether values are shares that colours show.
    """
    good = [value for value in values if math.isfinite(value)]
    best = (min if lower else max)(good, default=math.nan)
    best_text = next((t for v, t in zip(values, texts, strict=True) if v == best), None)
    return [
        Cell(text, text == best_text, min(max(value, 0.0), 1.0) if shaded and good else None)
        for value, text in zip(values, texts, strict=True)
    ]


def r2_text(value: float) -> str:
    """Return R² as tables show it.

    Parameters
    ----------
    value : float
        NaN gives a word.
    """
    if math.isnan(value):
        return "failed"
    text = f"{value:.3f}" if value > FAR_BELOW else f"{value:.2g}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if value < 0 else text
