"""Writes the findings: a page that needs nothing else, and the short form as Markdown."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from benchmarks.peers.contents import Cell, Section, Table
from benchmarks.peers.findings import Findings
from benchmarks.peers.pictures import Picture, pictures
from benchmarks.peers.sections import sections
from sapwood.storage.atomic import write_atomically

__all__ = ["render_html", "render_markdown", "write_page"]

TITLE = "Single trees compared with other learners"
WHICH_MODEL = (
    "This page compares the single tree. [Forests and concept drift]"
    "(../explanation/forests-and-drift.md) helps to choose a model; [tables](tables.md) compares the "
    "forest with other ensembles."
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
section > ul { padding-left: 1.1rem; margin: 0 0 1rem; max-width: 54rem; font-size: 1.0625rem; }
section > ul li { margin-bottom: 0.4rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr));
  gap: 1.5rem 2.5rem; margin: 1.25rem 0 1.5rem; align-items: start; }
.pictures .chart { max-width: 34rem; }
.pictures .broad { max-width: 46rem; }
.broad .scroll svg { min-width: 36rem; }
.pictures svg text { white-space: pre; }
.results { margin: 1.25rem 0; }
.results table { width: auto; min-width: min(100%, 44rem); }
.results td.words { white-space: nowrap; }
.results td.words:last-child { white-space: normal; min-width: 15rem; max-width: 34rem; }
.results tbody tr > :first-child { position: sticky; left: 0; background: var(--paper);
  white-space: nowrap; }
.results td, .results th { padding: 0.3rem 0.6rem; }
.results tr > :first-child { padding-left: 0; }
.results td.number { background: color-mix(in srgb, var(--blue) var(--shade, 0%), transparent); }
.results td b { color: var(--ink); font-weight: 700; }
"""


def write_page(found: Findings, folder: Path) -> list[Path]:
    """Write ``index.html`` and ``benchmark.md``; return where they are.

    Parameters
    ----------
    found : Findings
        What was measured.
    folder : Path
        Where to.
    """
    parts = sections(found)
    texts = {
        "index.html": render_html(found, parts, pictures(found)),
        "benchmark.md": render_markdown(found, parts),
    }
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    return [folder / name for name in texts]


def _summary(found: Findings) -> str:
    """Return a line about the run."""
    machine = found.run.machine
    return (
        f"{len(found.real)} real and {len(found.generated)} generated streams, "
        f"{len(found.compared)} learners, the {found.run.plan.name} form. "
        f"Sapwood {machine['sapwood']}, river {machine['river']}, CapyMOA {machine['capymoa']}, "
        f"LightGBM {machine['lightgbm']}, scikit-learn {machine['scikit-learn']}, "
        f"Java {machine['Java']}, Python {machine['Python']}; {machine['processor']}, "
        f"{machine['cores']} cores."
    )


# -- HTML -----------------------------------------------------------------------------------------


def render_html(found: Findings, parts: Sequence[Section], drawn: Mapping[str, Picture]) -> str:
    """Return the page.

    Parameters
    ----------
    found : Findings
        What was measured.
    parts : sequence of Section
        The sections of the page.
    drawn : mapping of str to Picture
        The pictures that sections name.
    """
    css = resources.files("sapwood.report").joinpath("page.css").read_text(encoding="utf-8")
    links = " ".join(f'<a href="#{part.name}">{escape(part.title)}</a>' for part in parts)
    main = "".join(_html_section(part, drawn) for part in parts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{TITLE}</title>
<style>
{css}{STYLE}</style>
</head>
<body>
<header>
<p class="kind">Sapwood · benchmark</p>
<h1>{TITLE}</h1>
<p>{escape(_summary(found))}</p>
<nav aria-label="Parts">{links}</nav>
</header>
<main>
{main}</main>
</body>
</html>
"""


def _html_section(part: Section, drawn: Mapping[str, Picture]) -> str:
    if part.name == "verdict":
        items = "".join(f"<li>{_marked(text)}</li>" for text in part.texts)
        texts = f"<ul>{items}</ul>"
    else:
        texts = "\n".join(f"<p>{_marked(text)}</p>" for text in part.texts)
    charts = "\n".join(_html_picture(drawn[name]) for name in part.pictures if name in drawn)
    charts = f'<div class="pictures">{charts}</div>\n' if charts else ""
    tables = "\n".join(map(_html_table, part.tables))
    title = escape(part.title)
    return f'<section id="{part.name}">\n<h2>{title}</h2>\n{texts}\n{charts}{tables}\n</section>\n'


def _marked(text: str) -> str:
    """Return text for the page; what stands in backticks is code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def _html_picture(picture: Picture) -> str:
    kind = "chart broad" if picture.broad else "chart"
    return (
        f'<figure class="{kind}"><figcaption><b>{escape(picture.title)}</b></figcaption>'
        f'<div class="scroll">{picture.svg}</div></figure>'
    )


def _html_table(table: Table) -> str:
    words = {0, *table.words}
    sides = ["" if i in words else ' class="number"' for i in range(len(table.header))]
    head = "".join(
        f'<th scope="col"{side}>{escape(name)}</th>'
        for side, name in zip(sides, table.header, strict=True)
    )
    body = "\n".join(_html_row(row, words) for row in table.rows)
    caption = "" if table.folded else f"<caption>{escape(table.caption)}</caption>"
    made = (
        f'<div class="scroll results"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )
    if not table.folded:
        return made
    return f'<details class="more"><summary>{escape(table.caption)}</summary>{made}</details>'


def _html_row(row: Sequence[Cell], words: set[int]) -> str:
    first, *rest = row
    cells = "".join(_html_cell(cell, i in words) for i, cell in enumerate(rest, 1))
    return f'<tr><th scope="row">{escape(first.text)}</th>{cells}</tr>'


def _html_cell(cell: Cell, is_words: bool) -> str:
    text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    shade = "" if cell.shade is None else f' style="--shade: {30 * cell.shade:.0f}%"'
    return f'<td class="{"words" if is_words else "number"}"{shade}>{text}</td>'


# -- Markdown -------------------------------------------------------------------------------------


def render_markdown(found: Findings, parts: Sequence[Section]) -> str:
    """Return the short form.

    Parameters
    ----------
    found : Findings
        What was measured.
    parts : sequence of Section
        The sections of the page.
    """
    made = "\n\n".join(_markdown_section(part) for part in parts)
    return f"# {TITLE}\n\n{WHICH_MODEL}\n\n{_summary(found)}\n\n{made}\n"


def _markdown_section(part: Section) -> str:
    texts = part.texts
    if part.name == "verdict":
        texts = ["\n".join(f"- {text}" for text in part.texts)]
    tables = [_markdown_table(table) for table in part.tables if table.in_short]
    return "\n\n".join([f"## {part.title}", *texts, *tables])


def _markdown_table(table: Table) -> str:
    words = {0, *table.words}
    rule = ["---" if i in words else "--:" for i in range(len(table.header))]
    rows = [[f"**{c.text}**" if c.best else c.text for c in row] for row in table.rows]
    lines = [
        "| " + " | ".join(entry.replace("|", "\\|") for entry in row) + " |"
        for row in [list(table.header), rule, *rows]
    ]
    return "\n".join([f"{table.caption}:", "", *lines])
