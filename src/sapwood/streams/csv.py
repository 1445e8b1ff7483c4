"""Rows of text with a delimiter between fields: CSV, TSV, and the data of ARFF.

A block of rows is parsed by pyarrow as what its columns are. Where that fails, and only there, the
rows of the block are looked at one by one, so that each bad one is found; the others become what
they would have become.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import csv

from sapwood.streams import bad_rows
from sapwood.streams.arrow import MISSING, texts_of
from sapwood.streams.blocks import BOM, Block, TextSource
from sapwood.streams.convert import Converted, arrow_type, convert
from sapwood.streams.first_rows import FirstRows
from sapwood.streams.header import read_header
from sapwood.streams.quotes import Quotes, line_ends
from sapwood.streams.schema import ReadOptions, Schema
from sapwood.streams.stream import Chunk, IntArray, Position
from sapwood.streams.text import Flaw, TextStream

__all__ = ["DelimitedStream", "TextRows", "open_delimited"]


FURTHER = 50
"""How many times more of a file is looked at to know whether days or months are first."""


@dataclass(frozen=True, slots=True)
class TextRows:
    """The rows of a block, without blank lines.

    - `flaws`: those that have not one field for each column, by their place.
    - `tidy`: each as pyarrow reads it, if it differs.
    """

    lines: IntArray
    raw: Sequence[bytes]
    flaws: dict[int, Flaw]
    tidy: Sequence[bytes] | None = None


class DelimitedStream(TextStream):
    """Rows of text, each with a field for each column.

    - `start`: where its first row is: "byte", and the number of the "line".
    """

    def __init__(self, source: TextSource, schema: Schema, quotes: Quotes, start: Position) -> None:
        super().__init__(source, schema, start)
        self._quotes = quotes

    def _use(self, schema: Schema) -> None:
        super()._use(schema)
        names = [rule.name for rule in schema.read]
        self._typed = csv.ConvertOptions(
            column_types={rule.name: arrow_type(rule) for rule in schema.read},
            include_columns=names,
            null_values=MISSING,
            strings_can_be_null=True,
        )
        self._as_text = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()), include_columns=names
        )

    def _blocks(self, start: Position, most_rows: int) -> Iterator[Block]:
        return self._source.blocks(
            start["byte"], start["line"], most_rows, self._quotes, start.get("end")
        )

    def read(self, block: Block) -> Chunk:
        """Return the rows of a block."""
        text = self._plain(block)
        converted = None if text is None else self._parsed(text, block.lines)
        if converted is None:
            return self._chunk_slowly(block)
        lines = np.arange(block.line, block.line + block.lines)
        return self._as_chunk(block, converted, lines, [])

    def _plain(self, block: Block) -> bytes | None:
        """Return what pyarrow shall parse; None if it would take it for other rows."""
        return None if block.unclosed or has_stray_return(block.data) else block.data

    def _parsed(self, text: bytes, rows: int) -> Converted | None:
        """Return rows of one line each, parsed as what they are; None if not all are good."""
        try:
            table = self._table(text, self._typed)
        except pa.ArrowInvalid:
            return None
        if table.num_rows != rows:
            return None
        columns = dict(zip(table.column_names, table.columns, strict=True))
        self._settle(lambda name: texts_of(columns[name]))
        converted = convert(self.schema, columns, rows)
        return None if converted.faults else converted

    def _table(self, text: bytes, options: csv.ConvertOptions) -> pa.Table:
        if text.startswith(BOM):
            text = b"\n" + text  # else pyarrow would skip what belongs to a field
        return csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(column_names=list(self.schema.columns), block_size=len(text) + 1),
            csv.ParseOptions(
                delimiter=self._quotes.delimiter.decode(), newlines_in_values=b'"' in text
            ),
            options,
        )

    def _chunk_slowly(self, block: Block) -> Chunk:
        rows = self._rows(block)
        flaws = dict(rows.flaws)
        places = [place for place in range(len(rows.raw)) if place not in flaws]
        texts = rows.raw if rows.tidy is None else rows.tidy
        table = self._table_of_text([texts[place] for place in places])
        self._settle(lambda name: texts_of(table[name]))
        converted = convert(self.schema, table, len(places))
        for fault in converted.faults:
            flaws[places[fault.row]] = Flaw(fault.reason, fault.column, fault.value)
        good = np.ones(len(rows.raw), np.bool_)
        good[list(flaws)] = False
        before = np.cumsum(good)
        bad = [
            self._bad_row(flaw, int(rows.lines[place]), rows.raw[place], int(before[place]))
            for place, flaw in sorted(flaws.items())
        ]
        return self._as_chunk(block, converted, rows.lines[good], bad)

    def _table_of_text(self, rows: Sequence[bytes]) -> dict[str, pa.Array | pa.ChunkedArray]:
        """Return the columns of rows as bytes."""
        if not rows:
            return {rule.name: pa.array([], pa.binary()) for rule in self.schema.read}
        table = self._table(b"\n".join(rows) + b"\n", self._as_text)
        return dict(zip(table.column_names, table.columns, strict=True))

    def _rows(self, block: Block) -> TextRows:
        text = block.data
        line_end = line_ends(text, ended=True)
        found = self._quotes.split(text, line_end, ended=True)
        starts = np.append(0, found.ends[:-1])
        raw = [
            text[start:end].rstrip(b"\r\n")
            for start, end in zip(starts.tolist(), found.ends.tolist(), strict=True)
        ]
        flaws = {place: self._flaw(raw[place]) for place in self._doubtful(text, found.ends)}
        flaws.update(dict.fromkeys(found.unclosed.tolist(), Flaw(bad_rows.UNCLOSED_QUOTE)))
        kept = [place for place, row in enumerate(raw) if row]
        lines = block.line + np.searchsorted(line_end, starts[kept], "right")
        return TextRows(
            lines,
            [raw[place] for place in kept],
            {new: flaw for new, place in enumerate(kept) if (flaw := flaws.get(place)) is not None},
        )

    def _doubtful(self, text: bytes, ends: IntArray) -> list[int]:
        """Return the rows that may not have one field for each column."""
        letters = np.frombuffer(text, np.uint8)

        def rows_with(letter: bytes) -> IntArray:
            return np.searchsorted(ends, np.flatnonzero(letters == ord(letter)), "right")

        separators = np.bincount(rows_with(self._quotes.delimiter), minlength=len(ends))
        doubtful = separators != len(self.schema.columns) - 1
        doubtful[rows_with(b'"')] = True
        if has_stray_return(text):
            doubtful[rows_with(b"\r")] = True
        return np.flatnonzero(doubtful).tolist()

    def _flaw(self, row: bytes) -> Flaw | None:
        """Return what is wrong with the fields of a row, if anything."""
        parts = self._quotes.parts(row)
        expected = len(self.schema.columns)
        if len(parts) != expected:
            return Flaw(bad_rows.ANOTHER_LENGTH, value=f"{len(parts)} instead of {expected}")
        stray = any(b"\r" in rest for _, rest in parts)
        return Flaw(bad_rows.STRAY_RETURN) if stray else None


def has_stray_return(text: bytes) -> bool:
    """Whether there is a carriage return that does not end a line; pyarrow ends one there."""
    return b"\r" in text and text.count(b"\r") > text.count(b"\r\n")


def open_delimited(
    path: str, read_options: ReadOptions, delimiter: bytes | None = None
) -> DelimitedStream:
    r"""Open a text whose first line names its columns.

    What a column is, is found from the first 1,000 lines, or the first 256 KiB: numbers if at least
    nine of ten values are, else "true" and "false", or times, or text. From a pipe to a
    model that is there already, rows come at once, and a column that the model knows as numbers is
    what its first value looks like that is a number, a boolean or a time.

    - `path`: a file, a named pipe, or "-" for the standard input.
    - `delimiter`: the byte between fields. If not given, the one of ``, ; | tab`` that the first
      line has most of.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"city;rent\nOslo;700\nBonn;cheap\n\nRome;900")
    ...     file.flush()
    ...     [chunk] = open_delimited(file.name, ReadOptions("rent")).chunks()
    >>> chunk.columns, chunk.y, chunk.numbers
    ({'city': ['Oslo', 'Rome']}, array([700., 900.]), array([2, 5]))
    >>> chunk.bad[0].number, chunk.bad[0].reason, chunk.bad[0].text
    (3, 'target is not a number', b'Bonn;cheap')
    """
    source = TextSource(path, read_options.encoding)
    soon = source.size is None and read_options.known is not None
    header = read_header(
        source, delimiter, soon, read_options.header, sample=read_options.sample_rows
    )
    first = FirstRows(
        source.name,
        header.sample,
        header.found,
        read_options,
        comma_between=header.quotes.delimiter == b",",
        look_further=None
        if source.size is None
        else lambda name: read_header(source, delimiter, soon, read_options.header, FURTHER).sample[
            name
        ],
    )
    stream = DelimitedStream(source, first.schema, header.quotes, header.start)
    stream.column_notes = first.notes
    return stream
