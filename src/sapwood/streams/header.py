"""The beginning of a CSV file: its delimiter, the names of its columns, and how they look."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sapwood import validation
from sapwood.streams.arrow import as_array, texts_of
from sapwood.streams.blocks import BOM, HEAD, LONGEST_LINE, TextSource
from sapwood.streams.quotes import Quotes, Rows, line_ends
from sapwood.streams.schema import Found
from sapwood.streams.stream import Position, StreamError
from sapwood.streams.text_kinds import is_number, looks_of
from sapwood.streams.times import is_iso

__all__ = ["SAMPLE_LINES", "Header", "check_names", "decoded", "first_values", "read_header"]

DELIMITERS = (b",", b";", b"\t", b"|")
LEAST_LINES = 2  # by which blanks are known as a delimiter
SAMPLE_LINES = 1000
"""Lines that are looked at to find what columns are; fewer if they have more than 256 KiB."""


@dataclass(frozen=True, slots=True)
class Header:
    """The properties of a CSV file that its beginning shows.

    - `found`: the columns; None for each if its values were not waited for.
    - `sample`: the first values of each; none if they were not waited for.
    - `start`: where the first row is: "byte", and the number of the "line".
    """

    found: dict[str, Found | None]
    sample: dict[str, pa.Array]
    quotes: Quotes
    start: Position


def read_header(
    source: TextSource,
    delimiter: bytes | None,
    soon: bool,
    named: bool | None = None,
    times: int = 1,
    *,
    sample: int | None = None,
) -> Header:
    """Read the names of the columns, and look at the first rows if there is time.

    - `delimiter`: the byte between fields; if not given, the one that the first line has most of.
    - `soon`: whether a pipe shall not be waited for longer than for the first row. What columns are
      is then not found at all: it must not depend on how much has come in already.
    - `named`: whether the first line has the names of the columns; else they are called c1, c2 and
      so on. If not given it has, and a first line that looks like a row is rejected.
    - `times`: how many times more lines and bytes than usual are looked at.
    - `sample`: how many rows are usually looked at, `SAMPLE_LINES` with the header if not given.
    - Raises StreamError if there are no names, or not one for each column.
    """
    looked_at = times * (SAMPLE_LINES if sample is None else sample + (named is not False))
    source.find_encoding(2 if soon else min(looked_at, SAMPLE_LINES))
    text, ended = source.head(2, LONGEST_LINE)
    if not (soon and text.count(b'"') % 2 == 0):
        text, ended = source.head(looked_at, max(times * HEAD, len(text)))
    text, start, line = _without_blank_lines(source.name, text)
    quotes = Quotes(_sniffed(source.name, text) if delimiter is None else delimiter)
    ends = line_ends(text, ended)
    rows = quotes.split(text, ends, ended)
    if len(rows.ends) == 0 or 0 in rows.unclosed:
        raise StreamError(
            f"{source.name}, line {line}: the header has no end; close its quotes, and check that "
            "it is text with a row in each line"
        )
    end = int(rows.ends[0])
    place = f"{source.name}, line {line}"
    fields = quotes.fields(text[:end].rstrip(b"\r\n"))
    if named is False:
        names = [f"c{column}" for column in range(1, len(fields) + 1)]
    else:
        names = _names(place, fields, sure=named is not None)
    found: dict[str, Found | None] = dict.fromkeys(names)
    columns: dict[str, pa.Array] = {}
    if not soon:
        most = min(times * HEAD, int(ends[:looked_at][-1]))
        seen = _first_rows(text, rows, most)[named is not False :]
        columns = first_values(names, [quotes.fields(row) for row in seen])
        found.update({name: looks_of(texts_of(values)) for name, values in columns.items()})
    if named is False:
        return Header(found, columns, quotes, {"byte": start, "line": line})
    lines = int(np.searchsorted(ends, end)) + 1
    return Header(found, columns, quotes, {"byte": start + end, "line": line + lines})


def _without_blank_lines(source: str, text: bytes) -> tuple[bytes, int, int]:
    """Return a text from its first line that is not blank, the byte and the number of that line."""
    start = len(BOM) * text.startswith(BOM)
    line = 1
    while text[start : start + 2].startswith((b"\n", b"\r\n")):
        start = text.index(b"\n", start) + 1
        line += 1
    text = text[start:]
    if not text:
        raise StreamError(
            f"{source} has no header: all of its lines are blank; name the columns in the first line"
        )
    if b"\n" not in text and b"\r" in text.rstrip(b"\r"):
        raise StreamError(
            f"{source}: lines end by carriage returns alone, as on old Macintoshes; end them "
            "by newlines, as by `tr '\\r' '\\n'`"
        )
    return text, start, line


def _first_rows(text: bytes, rows: Rows, most: int) -> list[bytes]:
    """Return the first rows: two of them, and those that end within so many bytes."""
    spans = itertools.pairwise([0, *rows.ends.tolist()])
    return [
        text[first:last].rstrip(b"\r\n")
        for place, (first, last) in enumerate(spans)
        if (place < 2 or last <= most) and place not in rows.unclosed
    ]


def _sniffed(source: str, text: bytes) -> bytes:
    """Return the delimiter that the first line has most of, outside of quotes.

    If it has none of the usual ones, blanks are the delimiter if all complete lines have as many
    of them; else it is a comma.

    - Raises StreamError if columns are aligned by several blanks.
    """
    lines = text.split(b"\n")
    lines = [_outside(line) for line in (lines[:-1] or lines)[:SAMPLE_LINES] if line.strip()]
    found = max(DELIMITERS, key=lines[0].count)
    if found in lines[0] or len(lines) < LEAST_LINES:
        return found
    if len({len(line.split()) for line in lines}) > 1 or len(lines[0].split()) == 1:
        return found
    if len({line.count(b" ") for line in lines}) > 1 or any(b"  " in line for line in lines):
        raise StreamError(
            f"{source}: its columns are separated by several blanks; leave one of them, as by "
            "`sed 's/^ *//; s/ *$//' FILE | tr -s ' '`"
        )
    return b" "


def _outside(line: bytes) -> bytes:
    """Return the part of a line outside of quotes."""
    return b"".join(line.rstrip(b"\r").split(b'"')[::2])


def _names(place: str, fields: Sequence[bytes], sure: bool) -> list[str]:
    """Return the names of columns; raise StreamError if they are not valid."""
    names = [decoded(place, field).strip() for field in fields]
    if not sure:
        values = [name for name in names if _is_value(name)]
        if values and not _may_be_names(values, all_of_them=len(values) == len(names)):
            last = f"c{len(names)}"
            raise StreamError(
                f"{place}: it looks like a row and not like the names of columns, as "
                f"{validation.shown(values[0])} is a value; with --no-header columns are called c1 to "
                f"{last}, as in --target {last}; with --header the line is taken as it is"
            )
    check_names(place, names)
    return names


def _is_value(name: str) -> bool:
    return any(map(str.isdigit, name)) and (is_number(name) or is_iso(name))


def _may_be_names(values: Sequence[str], all_of_them: bool) -> bool:
    """Whether whole numbers are names, such as years, or those of pandas for columns without any.

    They rise; and if there are no other names, each is one more than the one before it.
    """
    if not all(map(str.isdecimal, values)):
        return False
    steps = np.diff(list(map(int, values)))
    return bool((steps == 1).all() if all_of_them else (steps > 0).all())


def decoded(place: str, text: bytes) -> str:
    """Return bytes of a header as text, or raise StreamError."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise StreamError(
            f"{place}: the header is not UTF-8; name the encoding, such as --encoding cp1252"
        ) from None


def check_names(place: str, names: Sequence[str]) -> None:
    """Raise StreamError unless each column has a name of its own.

    Examples
    --------
    >>> check_names("a.csv, line 1", ["x", "y", "x"])
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: a.csv, line 1: columns 1 and 3 are both named 'x'; rename...
    """
    seen: dict[str, int] = {}
    for column, name in enumerate(names, 1):
        if not name:
            raise StreamError(
                f"{place}: column {column} has no name; give it one (pandas writes a column "
                "without a name unless index=False)"
            )
        if len(name) > validation.LONGEST:
            raise StreamError(
                f"{place}: the name of column {column} has {len(name)} characters; check that the "
                f"line names the columns, and use at most {validation.LONGEST}"
            )
        if name in seen:
            raise StreamError(
                f"{place}: columns {seen[name]} and {column} are both named {validation.shown(name)}; "
                "rename one"
            )
        seen[name] = column


def first_values(names: Sequence[str], rows: Sequence[Sequence[bytes]]) -> dict[str, pa.Array]:
    """Return the columns of rows as text, without rows of another length."""
    whole = [row for row in rows if len(row) == len(names)]
    columns = zip(*whole, strict=True) if whole else [()] * len(names)
    return {
        name: as_array(pa.array(column, pa.binary()))
        for name, column in zip(names, columns, strict=True)
    }
