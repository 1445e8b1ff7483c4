"""Streams of lines: what all formats of text share."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sapwood.streams import bad_rows
from sapwood.streams.blocks import Block, TextSource
from sapwood.streams.convert import Converted
from sapwood.streams.schema import DECIDABLE, Found, Schema
from sapwood.streams.stream import MOST_ROWS, BadRow, Chunk, IntArray, Position, Stream, Unit
from sapwood.streams.text_kinds import first_look

__all__ = ["Flaw", "TextStream"]


@dataclass
class Flaw(Exception):  # noqa: N818 - it is made a bad row before anybody sees it
    """What makes a row bad; fields are as those of `BadRow`."""

    reason: str
    column: str | None = None
    value: str | None = None


class TextStream(Stream):
    """Rows of text, read block by block.

    The first value of an undecided column that is a number, a boolean or a time decides the type of
    the column. Positions contain that type, so that it is the same when reading resumes.

    - `start`: where its first row is: "byte", and the number of the "line".
    """

    unit: ClassVar[Unit] = "line"

    def __init__(self, source: TextSource, schema: Schema, start: Position) -> None:
        super().__init__(
            source.name, size=source.size, encoding=source.encoding, **schema.stream_fields
        )
        self._source = source
        self._start = start
        self._decided: dict[str, Found] = {}
        self._use(schema)

    def _use(self, schema: Schema) -> None:
        """Read columns by a schema."""
        self.schema, self.rules = schema, schema.rules

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on; see `Stream.chunks`."""
        start = self._start if start is None else start
        self.recall(start)
        for block in self._blocks(start, most_rows):
            chunk = self.read(block)
            if len(chunk) or chunk.bad:
                yield chunk

    def recall(self, position: Position) -> None:
        """Read columns as it was decided before a position."""
        decided = {name: _decided_at(position, name) for name in self.schema.undecided}
        self._decide({name: looks for name, looks in decided.items() if looks is not None})

    def decided(self) -> Position:
        """Return the entries of a position for the columns that were decided."""
        return {_key(name, looks): 1 for name, looks in sorted(self._decided.items())}

    def _blocks(self, start: Position, most_rows: int) -> Iterator[Block]:
        """Yield blocks of whole rows, each of which is one line."""
        return self._source.blocks(
            start["byte"], start["line"], most_rows, end_byte=start.get("end")
        )

    @abstractmethod
    def read(self, block: Block) -> Chunk:
        """Return the rows of a block."""

    def _settle(self, values: Callable[[str], Iterable[str]]) -> None:
        """Decide what can be by the values of a block, which are given for a column in order."""
        undecided = self.schema.undecided
        looks = {name: first_look(values(name), possible) for name, possible in undecided.items()}
        self._decide({name: found for name, found in looks.items() if found is not None})

    def _decide(self, looks: Mapping[str, Found]) -> None:
        if looks:
            self._decided.update(looks)
            self._use(self.schema.decided(looks))

    def _as_chunk(
        self, block: Block, converted: Converted, lines: IntArray, bad: Sequence[BadRow]
    ) -> Chunk:
        behind = {"byte": block.end, "line": block.line + block.lines, **self.decided()}
        return converted.chunk(self.name, lines, behind, block.read, bad)

    def _bad_row(self, flaw: Flaw, line: int, text: bytes, after: int) -> BadRow:
        remedy = bad_rows.REMEDIES[flaw.reason]
        at_fault = flaw.reason, flaw.column, flaw.value
        return BadRow(self.name, "line", line, *at_fault, remedy, text, after)

    @property
    def can_be_cut(self) -> bool:
        """Whether reading can start anywhere in the file."""
        return self._source.is_plain

    def between(self, first: int, end: int, exact: bool = False) -> Position:
        """Return the position from which `chunks` yields the rows that begin between two bytes.

        Where rows have several lines, a row need not begin there. The last `Chunk.next` of the part
        before is where the next row begins.

        - `first`, `end`: the first byte, and the one behind the last. Lines are counted from 1 if
          the first is beyond the beginning.
        - `exact`: whether the first byte is known to begin a row.
        """
        size = self.size or 0
        start = dict(self._start)
        if first > start["byte"]:
            start = {"byte": first if exact else self._source.line_start(first), "line": 1}
        if end < size:
            start["end"] = max(self._source.line_start(end), start["byte"])
        return start

    @property
    def clock(self) -> str | None:
        """The feature that is the time of rows; see `Stream.clock`."""
        return self.schema.clock

    @property
    def fingerprint(self) -> str:
        """A digest of the text up to its first row."""
        return self._source.fingerprint(self._start["line"])


def _key(name: str, looks: Found) -> str:
    """Return the key of a position for the type of a column that was decided."""
    return f"{looks}: {name}"


def _decided_at(position: Position, name: str) -> Found | None:
    return next((looks for looks in DECIDABLE if _key(name, looks) in position), None)
