"""What a report consists of, whatever it is written in."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Picture", "Section", "Table"]


class Table(NamedTuple):
    """A table of text; the first column names the rows."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str = ""


class Picture(NamedTuple):
    """A figure that was written under a name."""

    name: str
    caption: str
    svg: bytes


class Section(NamedTuple):
    """A part of the report: a title, paragraphs, pictures and tables."""

    title: str
    texts: list[str]
    pictures: list[Picture]
    tables: list[Table]
