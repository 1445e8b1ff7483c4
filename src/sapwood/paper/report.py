"""Writes the report: a page that needs nothing else, and the same as Markdown."""

from collections.abc import Sequence
from html import escape

from sapwood.paper.contents import Picture, Section, Table
from sapwood.paper.style import to_data_uri

__all__ = ["render_html", "render_markdown"]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.3rem; margin-top: 2.5rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
figure { margin: 1.5rem 0; } img { width: 100%; height: auto; }
figcaption, caption { color: #555; font-size: 0.9rem; text-align: left; }
.scroll { overflow-x: auto; margin: 1.2rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; border-bottom: 1px solid #ddd; text-align: left;
         vertical-align: top; font-variant-numeric: tabular-nums; }
td.no { font-weight: bold; background: #fbe3d6; padding-left: 0.4rem; }
@media print { nav { display: none; } h2, figure, table { break-inside: avoid; } }
"""


def render_html(title: str, sections: Sequence[Section]) -> str:
    """Return the report as one page of HTML, its pictures within."""
    links = " ".join(
        f'<a href="#part-{place}">{escape(section.title)}</a>'
        for place, section in enumerate(sections)
    )
    body = "".join(_html_section(place, section) for place, section in enumerate(sections))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><nav>{links}</nav>{body}</body></html>\n"
    )


def _html_section(place: int, section: Section) -> str:
    texts = "".join(f"<p>{escape(text)}</p>\n" for text in section.texts)
    pictures = "".join(map(_html_picture, section.pictures))
    tables = "".join(map(_html_table, section.tables))
    title = escape(section.title)
    return f'<section id="part-{place}"><h2>{title}</h2>\n{texts}{pictures}{tables}</section>\n'


def _html_picture(picture: Picture) -> str:
    caption = escape(picture.caption)
    return (
        f'<figure id="{picture.name}"><img src="{to_data_uri(picture.svg)}" alt="{caption}">'
        f"<figcaption>{caption}</figcaption></figure>\n"
    )


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join(f"<tr>{''.join(map(_html_entry, row))}</tr>\n" for row in table.rows)
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n"
    )


def _html_entry(entry: str) -> str:
    mark = ' class="no"' if entry == "no" else ""
    return f"<td{mark}>{escape(entry)}</td>"


def render_markdown(title: str, sections: Sequence[Section]) -> str:
    """Return the report as Markdown, with links to picture files in the same folder."""
    return f"# {title}\n\n" + "\n\n".join(map(_markdown_section, sections)) + "\n"


def _markdown_section(section: Section) -> str:
    pictures = [f"![{each.caption}](figures/{each.name}.png)" for each in section.pictures]
    tables = [_markdown_table(table) for table in section.tables]
    return "\n\n".join([f"## {section.title}", *section.texts, *pictures, *tables])


def _markdown_table(table: Table) -> str:
    rows = [table.header, ("---",) * len(table.header), *table.rows]
    lines = ["| " + " | ".join(entry.replace("|", "\\|") for entry in row) + " |" for row in rows]
    caption = [f"{table.caption}:\n"] if table.caption else []
    return "\n".join([*caption, *lines])
