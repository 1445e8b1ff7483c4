"""Pieces of a page: all text that goes into it is escaped here."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from sapwood.formatting import aligned, number

__all__ = [
    "ABSENT",
    "Words",
    "aligned_column",
    "charts",
    "count",
    "grouped_table",
    "left_out",
    "listed",
    "measured",
    "megabytes",
    "rate",
    "scrolled",
    "section",
    "share",
    "table",
    "text",
    "tiles",
]

MOST_LETTERS = 200  # of a name or value
ABSENT = "\N{EN DASH}"


def text(value: object, most: int = MOST_LETTERS) -> str:
    r"""Return any text for a page: printable, not too long, and never markup.

    Examples
    --------
    >>> text("a < b\n"), text("x" * 9, most=4)
    ('a &lt; b\\n', 'xxx…')
    """
    letters = str(value)[: most + 1]
    found = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in letters
    )
    return escape(found if len(found) <= most else found[: most - 1] + "…")


def count(value: float) -> str:
    """Return a whole number with its thousands set apart.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,.0f}"


def share(part: float, whole: float) -> str:
    """Return a part in per cent of the whole.

    Examples
    --------
    >>> share(1, 8), share(999, 1000), share(1, 10**6), share(1, 0)
    ('12.5 %', '99.9 %', '< 0.1 %', '–')
    """
    if not whole > 0:
        return ABSENT
    percent = 100 * part / whole
    return "< 0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"


def measured(value: float, digits: int = 4) -> str:
    """Return a number in significant digits; a dash where there is none.

    Examples
    --------
    >>> measured(31.41592), measured(-0.00123456), measured(1234567.8), measured(float("nan"))
    ('31.42', '−0.001235', '1,234,568', '–')
    """
    if not math.isfinite(value):
        return ABSENT
    found = f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else number(value, digits)
    return found.replace("-", "−", 1) if value < 0 else found


def aligned_column(values: Sequence[float]) -> list[str]:
    """Return numbers that stand below each other; a dash where there is none.

    Examples
    --------
    >>> aligned_column([31.41592, -2.5, float("nan")])
    ['31.42', '−2.50', '–']
    """
    return [
        shown.replace("-", "−", 1) if math.isfinite(value) else ABSENT
        for value, shown in zip(values, aligned(values, 4), strict=True)
    ]


def rate(value: float) -> str:
    """Return a number of rows per second in three digits; a dash where there is none.

    Examples
    --------
    >>> rate(123456.0), rate(float("nan"))
    ('123,000', '–')
    """
    return count(float(f"{value:.3g}")) if math.isfinite(value) else ABSENT


def megabytes(nbytes: int) -> str:
    """Return a size in the unit that suits it.

    Examples
    --------
    >>> megabytes(5_240_000), megabytes(81_920)
    ('5.24 MB', '81.9 kB')
    """
    if nbytes >= 10**6:
        return f"{nbytes / 1e6:,.2f} MB"
    return f"{nbytes / 1e3:.1f} kB"


def section(name: str, title: str, *parts: str) -> str:
    """Return a part of the page; its name is where links go."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{name}">\n<h2>{title}</h2>\n{body}\n</section>\n'


def left_out(why: str) -> str:
    """Return what stands in place of a part that is left out."""
    return f'<p class="quiet">Left out: {why}.</p>'


class Words(str):
    """The head of a column of a table that has words; others have numbers."""

    __slots__ = ()


def tiles(values: Iterable[tuple[str, str, str]]) -> str:
    """Return tiles with a name, a value and what it is of."""
    cards = "\n".join(
        f"<div><dt>{name}</dt><dd>{value}</dd><dd>{words}</dd></div>"
        for name, value, words in values
    )
    return f'<dl class="tiles">{cards}</dl>'


def listed(groups: Mapping[str, Mapping[Any, Any]]) -> str:
    """Return a table of names and values for each group, next to each other."""
    heads = (Words(), Words())
    tables = (
        f"<div>{table(heads, [(text(k), text(v)) for k, v in rows.items()], caption=name)}</div>"
        for name, rows in groups.items()
    )
    return f'<div class="side-by-side">{"".join(tables)}</div>'


def charts(*parts: str) -> str:
    """Return charts, and other parts of a page, next to each other."""
    return f'<div class="charts">{"".join(parts)}</div>'


def scrolled(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    kind: str = "",
) -> str:
    """Return a table that scrolls where it is wider than the page.

    - `kind`: a further class of the element around it.
    """
    made = table(heads, rows, caption=caption)
    return f'<div class="{f"scroll {kind}".strip()}">{made}</div>'


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "", kind: str = ""
) -> str:
    """Return a table. Its cells are pieces of the page already; the first of a row is its head."""
    return grouped_table(heads, {"": rows}, caption=caption, kind=kind)


def grouped_table(
    heads: Sequence[str],
    groups: Mapping[str, Iterable[Sequence[str]]],
    *,
    caption: str = "",
    kind: str = "",
) -> str:
    """Return a table whose rows are in groups, each with its title above unless that is empty."""
    sides = ["" if isinstance(head, Words) else ' class="number"' for head in heads]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(sides, cells, strict=True)
        rest = "".join(f"<td{side}>{cell}</td>" for side, cell in others)
        return f'<tr><th scope="row"{first[0]}>{first[1]}</th>{rest}</tr>'

    def body(title: str, rows: Iterable[Sequence[str]]) -> str:
        span = f'<th scope="rowgroup" colspan="{len(heads)}">{title}</th>'
        head = f'<tr class="group">{span}</tr>\n' if title else ""
        lines = "\n".join(map(line, rows))
        return f"<tbody>\n{head}{lines}\n</tbody>"

    titles = zip(sides, heads, strict=True)
    row = "".join(f'<th scope="col"{side}>{head}</th>' for side, head in titles)
    top = f"<thead><tr>{row}</tr></thead>" if any(heads) else ""
    above = f"<caption>{caption}</caption>" if caption else ""
    kinds = f' class="{kind}"' if kind else ""
    return f"<table{kinds}>{above}{top}{''.join(body(*each) for each in groups.items())}</table>"
