"""Several files as one stream, one after the other, as files of single days are."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sapwood import validation
from sapwood.streams.file_search import check_sign, sign_of
from sapwood.streams.schema import ReadOptions
from sapwood.streams.stream import MOST_ROWS, Chunk, DerivedStream, Position, StreamError
from sapwood.streams.text import TextStream

__all__ = ["ChainedStream", "open_chained"]


def open_chained(
    name: str,
    paths: Sequence[str],
    read_options: ReadOptions,
    open_one: Callable[[str, ReadOptions], TextStream],
    same_columns: bool,
) -> "ChainedStream":
    """Open texts as one stream; all are read as the first one is.

    - `name`: what messages and reports call them together.
    - `same_columns`: whether each must have all columns that are read; else those that one lacks
      are missing.
    - Raises StreamError if one lacks a column, or cannot be read.
    """
    first = open_one(paths[0], read_options)
    read_options = replace(
        read_options,
        drop=(),
        time_formats={},
        time_parts=None,
        known=dict(first.features),
        known_formats=dict(first.time_formats),
        known_calendars=first.model_schema.calendars,
    )
    streams = [first]
    for path in paths[1:]:
        stream = open_one(path, read_options)
        needed = first.schema.read if same_columns else ()
        for rule in needed:
            if rule.name not in stream.schema.columns:
                raise StreamError(
                    f"{path} has no column {validation.shown(rule.name)}, unlike {paths[0]}; fix the "
                    f"file, leave it out, or leave out the column, as by --drop {rule.name}"
                )
        streams.append(stream)
    return ChainedStream(name, streams)


class ChainedStream(DerivedStream):
    """The rows of several streams of files, one after the other.

    A position is that of the file that was being read, with its place as "file" and a "sign" of
    its name.

    - `streams`: the files, in order; they have the same features.
    """

    def __init__(self, name: str, streams: Sequence[TextStream]) -> None:
        super().__init__(streams[0], name=name, size=sum(stream.size or 0 for stream in streams))
        self._streams = streams

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on; see `Stream.chunks`."""
        inner = None if start is None else dict(start)
        first = 0 if inner is None else inner.pop("file")
        names = [os.path.basename(stream.name) for stream in self._streams]
        if inner is not None:
            check_sign(self.name, names, first, inner.pop("sign"))
        done = sum(stream.size or 0 for stream in self._streams[:first])
        for place in range(first, len(self._streams)):
            stream = self._streams[place]
            for chunk in stream.chunks(inner if place == first else None, most_rows):
                behind = {"file": place, "sign": sign_of(names[place]), **chunk.next}
                columns = {name: chunk.columns[name] for name in self.features}
                yield replace(chunk, columns=columns, next=behind, done=done + chunk.done)
            done += stream.size or 0

    @property
    def fingerprint(self) -> str:
        """That of the first file, but not the same: places in a file alone are other positions."""
        return f"files: {self._streams[0].fingerprint}"
