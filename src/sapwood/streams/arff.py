r"""ARFF files, as of Weka and MOA.

Attributes are numbers (numeric, real, integer), text (nominal, string) or times (date). Each row is
a line; fields are separated by commas or tabs, with blanks around them, and may be in single or
double quotes, where ``\'`` and the like stand for what follows the backslash. Lines that start with
% are comments. Missing values are ?, and what CSV knows.
"""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa

from sapwood import validation
from sapwood.streams import bad_rows
from sapwood.streams.blocks import BOM, HEAD, LONGEST_LINE, Block, TextSource
from sapwood.streams.csv import DelimitedStream, TextRows
from sapwood.streams.first_rows import FirstRows
from sapwood.streams.header import SAMPLE_LINES, check_names, decoded, first_values
from sapwood.streams.quotes import Quotes
from sapwood.streams.schema import Found, ReadOptions
from sapwood.streams.stream import Position, StreamError
from sapwood.streams.text import Flaw, TextStream

__all__ = ["ArffStream", "open_arff"]

DATA = re.compile(rb"^[ \t]*@data\b[^\n]*(\n|\Z)", re.IGNORECASE | re.MULTILINE)
ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s{]+))\s*(.*)""", re.IGNORECASE
)
LOOKS: dict[str, Found] = {
    **dict.fromkeys(("numeric", "real", "integer"), "number"),
    "string": "text",
    "date": "time",
}
STRPTIME = {
    **{"yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%m"},
    **{"dd": "%d", "d": "%d", "HH": "%H", "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M"},
    **{"ss": "%S", "s": "%S", "SSS": "%f", "a": "%p", "EEEE": "%A", "EEE": "%a"},
    **{"Z": "%z", "X": "%z", "XX": "%z", "XXX": "%z"},
}
"""Letters of Java's SimpleDateFormat, as `datetime.strptime` knows them."""
ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")

ODD = (b"'", b'"', b"\t")
"""What plain fields between commas have none of."""
BLANKS = {b", ": b",", b" ,": b",", b" \n": b"\n", b"\n ": b"\n", b" \r": b"\r"}
FIELD = re.compile(
    rb"""[ \t]*(?:'((?>(?:[^'\\]|\\.)*))'|"((?>(?:[^"\\]|\\.)*))"|((?!['"])[^,\t]*+))"""
    rb"""[ ]*([,\t]|\Z)"""
)
ESCAPE = re.compile(rb"\\(.)")
ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class ArffStream(DelimitedStream):
    """Rows of an ARFF file; parameters are as for `DelimitedStream`."""

    _blocks = TextStream._blocks  # a row is a line, quotes or not

    def _plain(self, block: Block) -> bytes | None:
        text = super()._plain(block)
        if text is None or any(letter in text for letter in ODD):
            return None
        text = _without_blanks(text)
        odd = any(text.startswith(sign) or b"\n" + sign in text for sign in (b"%", b"{"))
        return None if odd else text

    def _rows(self, block: Block) -> TextRows:
        numbers: list[int] = []
        raw: list[bytes] = []
        tidy: list[bytes] = []
        flaws: dict[int, Flaw] = {}
        for number, line in enumerate(block.data.split(b"\n"), block.line):
            row = line.strip(b" \t\r")
            if not row or row.startswith(b"%"):
                continue
            if row.startswith(b"{"):
                raise StreamError(
                    f"{self.name}, line {number}: sparse rows are not read; save the file with "
                    "all values, as by Weka's SparseToNonSparse"
                )
            as_csv = _as_csv(row)
            flaw = Flaw(bad_rows.UNCLOSED_QUOTE) if as_csv is None else self._flaw(as_csv)
            if flaw is not None:
                flaws[len(raw)] = flaw
            numbers.append(number)
            raw.append(line.rstrip(b"\r"))
            tidy.append(as_csv or b"")
        return TextRows(np.array(numbers, np.int64), raw, flaws, tidy)


def _without_blanks(text: bytes) -> bytes:
    """Return rows without blanks around their fields; there are no quotes."""
    for blank, without in BLANKS.items():
        while blank in text:
            text = text.replace(blank, without)
    return text.strip(b" ")


def _as_csv(row: bytes) -> bytes | None:
    """Return a row as one of CSV; None if a quote is not closed, or closed within a field."""
    if not any(letter in row for letter in ODD):
        return b",".join([field.strip(b" ") for field in row.split(b",")])
    fields = []
    end, separator = 0, b","
    while separator:
        found = FIELD.match(row, end)
        if found is None:
            return None
        single, double, plain, separator = found.groups()
        if plain is None:
            value = ESCAPE.sub(_unescaped, double if single is None else single)
        else:
            value = plain.rstrip(b" ")
        if plain is None or b'"' in value:
            value = b'"' + value.replace(b'"', b'""') + b'"'
        fields.append(value)
        end = found.end()
    return b",".join(fields)


def _unescaped(found: re.Match[bytes]) -> bytes:
    return ESCAPED.get(found[1], found[1])


def open_arff(path: str, read_options: ReadOptions) -> ArffStream:
    r"""Open an ARFF file.

    - `path`: a file, a named pipe, or "-" for the standard input.
    - `read_options`: how to read it. Formats of times that the file declares are used unless others
      are given.
    - Raises StreamError if the header cannot be read, or a row is sparse.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"@relation r\n@attribute 'the city' {Oslo, Bonn}\n"
    ...                    b"@attribute rent real\n@data\n'Oslo', 700\n?, 800\n")
    ...     file.flush()
    ...     [chunk] = open_arff(file.name, ReadOptions("rent")).chunks()
    >>> chunk.columns, chunk.y, chunk.numbers
    ({'the city': ['Oslo', None]}, array([700., 800.]), array([5, 6]))
    """
    source = TextSource(path, read_options.encoding)
    source.find_encoding(1 if source.size is None else SAMPLE_LINES)
    header, start = _header(source)
    found: dict[str, Found] = {}
    formats: dict[str, str | None] = {}
    names = []
    for number, text in enumerate(header.split(b"\n"), 1):
        place = f"{source.name}, line {number}"
        line = decoded(place, text).strip()
        if line.lower().startswith("@attribute"):
            name, kind = _attribute(place, line)
            names.append(name)
            word, _, rest = kind.partition(" ")
            found[name] = _looks(place, name, word)
            if found[name] == "time" and name not in (
                *read_options.time_formats,
                *read_options.categorical,
            ):
                formats[name] = _time_format(place, rest)
        elif line and not line.lower().startswith(("%", "@relation")):
            raise StreamError(f"{place}: {validation.shown(line)} is neither @attribute nor @data")
    check_names(source.name, names)
    declared = {name: written for name, written in formats.items() if written is not None}
    others = {
        name: kept for name, kept in read_options.known_formats.items() if name not in formats
    }
    read_options = replace(
        read_options, time_formats={**declared, **read_options.time_formats}, known_formats=others
    )
    # A pipe is not waited for, as the file declares the types of its columns.
    sample = {} if source.size is None else _sample(source, names, start)
    first = FirstRows(source.name, sample, found, read_options, declared=True)
    stream = ArffStream(source, first.schema, Quotes(b","), start)
    stream.column_notes = first.notes
    return stream


def _header(source: TextSource) -> tuple[bytes, Position]:
    """Return all that is before the line of @data, and where the first row is."""
    lines = 1
    while True:
        text, ended = source.head(lines, LONGEST_LINE)
        found = DATA.search(text)
        if found is not None and (ended or found[1]):
            break
        if ended or len(text) >= LONGEST_LINE:
            raise StreamError(f"{source.name} has no line @data: check that it is an ARFF file")
        # A pipe may have no more lines until a row arrives; a file is read again each time.
        lines = text.count(b"\n") + (1 if source.size is None else 10_000)
    start = {"byte": found.end(), "line": text.count(b"\n", 0, found.start()) + 2}
    return text[: found.start()].removeprefix(BOM), start


def _sample(source: TextSource, names: list[str], start: Position) -> dict[str, pa.Array]:
    """Return the first values of each attribute."""
    text, ended = source.head(start["line"] + SAMPLE_LINES, start["byte"] + HEAD)
    *lines, last = text[start["byte"] :].split(b"\n")
    if ended:
        lines.append(last)
    stripped = (line.strip(b" \t\r") for line in lines[:SAMPLE_LINES])
    rows = (_as_csv(row) for row in stripped if row and not row.startswith((b"%", b"{")))
    quotes = Quotes(b",")
    return first_values(names, [quotes.fields(row) for row in rows if row is not None])


def _attribute(place: str, line: str) -> tuple[str, str]:
    """Return the name of an attribute, and the declaration of its type."""
    found = ATTRIBUTE.fullmatch(line)
    if found is None:
        raise StreamError(f"{place}: {validation.shown(line)} is not @attribute, a name and a type")
    single, double, plain, kind = found.groups()
    return plain or re.sub(r"\\(.)", r"\1", double if single is None else single), kind


def _looks(place: str, name: str, word: str) -> Found:
    looks = "text" if word.startswith("{") else LOOKS.get(word.lower())
    if looks is None:
        raise StreamError(
            f"{place}: attribute {validation.shown(name)} is of type {validation.shown(word)}; numeric, "
            "nominal, string and date attributes are read"
        )
    return looks


def _time_format(place: str, text: str) -> str | None:
    """Return a format of Java as one of `datetime.strptime`; None for ISO 8601, the default."""
    quoted = re.fullmatch(r"""\s*(["']?)(.*)\1\s*""", text)
    pattern = text if quoted is None else quoted[2]
    written = ""
    for part in re.finditer(r"'([^']*)'|([a-zA-Z])\2*|[^a-zA-Z']", pattern):
        if part[2] is None:
            literal = part[0] if part[1] is None else part[1] or "'"
            written += literal.replace("%", "%%")
        elif part[0] in STRPTIME:
            written += STRPTIME[part[0]]
        else:
            raise StreamError(
                f"{place}: {validation.shown(part[0])} in the format of times {validation.shown(pattern)} is "
                "not known; give the format in other words, as by --time-format"
            )
    return None if written in ("", *ISO) else written
