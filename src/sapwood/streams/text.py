"""Streams of lines: what all formats of text share."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from sapwood.streams.blocks import Block, TextSource
from sapwood.streams.schema import Schema
from sapwood.streams.stream import MOST_ROWS, Chunk, Position, Stream, Unit

__all__ = ["TextStream"]


class TextStream(Stream):
    """Rows of text, read block by block.

    Parameters
    ----------
    source : TextSource
        The text.
    schema : Schema
        How to read its columns.
    start : dict
        Where its first row is: "byte", and the number of the "line".
    """

    unit: ClassVar[Unit] = "line"

    def __init__(self, source: TextSource, schema: Schema, start: Position) -> None:
        super().__init__(
            name=source.name,
            features=schema.features,
            target=None if schema.target is None else schema.target.name,
            size=source.size,
            declared=schema.declared,
            time=None if schema.time is None else schema.time.name,
        )
        self.schema = schema
        self._source = source
        self._start = start

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on, as `Stream.chunks` says."""
        for block in self._blocks(self._start if start is None else start, most_rows):
            chunk = self._chunk(block)
            if len(chunk) or chunk.bad:
                yield chunk

    def _blocks(self, start: Position, most_rows: int) -> Iterator[Block]:
        """Yield blocks of whole rows, each of which is one line."""
        return self._source.blocks(start["byte"], start["line"], most_rows)

    @abstractmethod
    def _chunk(self, block: Block) -> Chunk:
        """Return the rows of a block."""

    @property
    def fingerprint(self) -> str:
        """A digest of the text up to its first row."""
        return self._source.fingerprint(self._start["line"])
