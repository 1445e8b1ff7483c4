"""What workers read: files and their parts, without anyone having read them before.

A source is a list of files in order. Of a Parquet file any rows can be read, of a text that is
neither compressed nor in another encoding any bytes, of other files all or nothing. A *piece* is
such a part of a file; the rows of a round are cut into as many lists of pieces as there are
workers, one after the other.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sapwood.schema import Calendar, Schema
from sapwood.streams.opening import found_files, open_stream
from sapwood.streams.stream import Stream, StreamError
from sapwood.streams.targets import SeveralTargets
from sapwood.streams.text import TextStream

__all__ = ["Cursor", "Piece", "Source", "SourceFile", "open_file", "survey"]

ROWS, BYTES, WHOLE = "rows", "bytes", "whole"
NEAR_BORDER = 0.25
"""A piece ends where a row group does, if that is so near, as a share of the piece."""
SAMPLE_ROWS = 1000
GENERATED = "generator"


@dataclass(frozen=True)
class SourceFile:
    """A file, or a stream that is computed.

    - `size`: how much there is of that; 1 of what cannot be cut.
    - `per_row`: how much of it a row takes; an estimate for bytes, and for what is whole.
    """

    path: str
    unit: str
    size: int
    per_row: float
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A part of a file, from `start` up to `end` in its unit.

    - `exact`: whether a row is known to begin at the start.
    """

    file: int
    start: int
    end: int
    exact: bool = False


@dataclass
class Cursor:
    """How far a source was read: the file, where in it, and at which line of a text."""

    file: int = 0
    at: int = 0
    line: int = 0


@dataclass(frozen=True)
class Source:
    """Files in order, and how they are read.

    - `reading`: the arguments by which `open_stream` reads each of them as it reads the first.
    - `schema`: how rows are read, for the model that learns them.
    """

    name: str
    files: tuple[SourceFile, ...]
    reading: dict[str, Any]
    features: dict[str, str]
    schema: Schema = field(default_factory=Schema)

    def to_header(self) -> dict[str, Any]:
        """Return all of it in terms of JSON."""
        header = asdict(self)
        del header["schema"]  # which follows from the rest
        header["files"] = [{**asdict(each), "groups": list(each.groups)} for each in self.files]
        return header

    def cut(self, cursor: Cursor, rows: int, parts: int) -> tuple[list[list[Piece]], Cursor]:
        """Return the pieces of the next rows, for each worker, and where they end.

        - `cursor`: where to begin; stays as it is.
        - `parts`: for how many workers. The last ones may get nothing.
        """
        place = Cursor(cursor.file, cursor.at)
        exact = True
        lists: list[list[Piece]] = []
        for _ in range(parts):
            pieces: list[Piece] = []
            share = needed = max(1.0, rows / parts)
            while needed > NEAR_BORDER * share and place.file < len(self.files):
                file = self.files[place.file]
                end = _end_of_piece(file, place.at, needed)
                pieces.append(Piece(place.file, place.at, end, exact))
                needed -= (end - place.at) / file.per_row
                exact = end >= file.size
                place = Cursor(place.file + 1) if end >= file.size else Cursor(place.file, end)
            if pieces:
                lists.append(pieces)
        return lists, place

    def rows_behind(self, cursor: Cursor) -> int:
        """Return how many rows are left behind a cursor, about."""
        left = sum(file.size / file.per_row for file in self.files[cursor.file :])
        if cursor.file < len(self.files):
            left -= cursor.at / self.files[cursor.file].per_row
        return round(left)

    def is_read(self, cursor: Cursor) -> bool:
        """Whether nothing is left behind a cursor."""
        return cursor.file >= len(self.files)


def _end_of_piece(file: SourceFile, start: int, rows: float) -> int:
    """Return where a piece of so many rows ends: at the border of a row group if one is near."""
    length = max(1, round(rows * file.per_row))
    end = min(file.size, start + length)
    border = 0
    for group in file.groups:
        border += group
        if border > start and abs(border - end) <= NEAR_BORDER * length:
            return border
    # What is left would be a very small piece.
    return file.size if file.size - end < NEAR_BORDER * length else end


def survey(name: Any, read_options: dict[str, Any]) -> Source:
    """Find the files, the types of their columns, and the units by which they can be divided.

    This is done by a worker, as only workers read.

    - `name`: as for `open_stream`; or a stream that is computed, such as "friedman:rows=1000000".
    - `read_options`: further arguments of `open_stream`.
    """
    if isinstance(name, Sequence) and not isinstance(name, str) and len(name) == 1:
        name = name[0]
    targets, read_options = _targets(read_options)
    generated = _generated(name)
    if generated is not None:
        if generated.length is None:
            raise StreamError(
                f"{name} never ends: set the number of rows, as in {name}:rows=1000000"
            )
        file = SourceFile(str(name), ROWS, generated.length, 1.0)
        reading: dict[str, Any] = {"format": GENERATED, "target": generated.target}
        return _source(generated, targets, (file,), reading)
    stream = open_stream(name, **read_options)
    names = [name] if isinstance(name, str | os.PathLike) else list(name)
    reading = {
        "target": stream.target,
        "categorical": list(stream.declared),
        "known": _kinds(stream),
        "known_formats": dict(stream.time_formats),
        "known_calendars": {
            name: own.to_header() for name, own in stream.model_schema.calendars.items()
        },
        "encoding": stream.encoding if getattr(stream, "unit", "row") == "line" else None,
        **{key: read_options.get(key) for key in ("decimal", "thousands", "header", "format")},
    }
    paths = _all_files([os.fspath(each) for each in names], read_options.get("format"))
    files = tuple(_surveyed(path, reading) for path in paths)
    return _source(stream, targets, files, reading)


def _targets(read_options: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of several targets, and the options by which a stream of the first is read."""
    options = dict(read_options)
    targets = list(options.pop("targets", ()))
    if targets:
        options["target"] = targets[0]
    return targets if len(targets) > 1 else [], options


def _source(
    stream: Stream, targets: list[str], files: tuple[SourceFile, ...], reading: dict[str, Any]
) -> Source:
    reading["targets"] = targets
    whole = SeveralTargets(stream, targets) if targets else stream
    return Source(stream.name, files, reading, _kinds(whole), whole.model_schema)


def _kinds(stream: Stream) -> dict[str, str]:
    return {str(name): str(kind) for name, kind in stream.features.items()}


def _generated(name: Any) -> Stream | None:
    from sapwood.streams.generators import GENERATORS, generator

    if not isinstance(name, str) or os.path.exists(name):
        return None
    return generator(name) if name.partition(":")[0] in GENERATORS else None


def _all_files(names: Sequence[str], format: str | None) -> list[str]:
    from sapwood.streams.columnar import files_of

    paths = []
    for name in names:
        if name == "-":
            raise StreamError("the standard input cannot be shared out: save it to a file")
        for path in found_files(name, format):
            tables = format if format in ("parquet", "arrow") else None
            paths += files_of(path, tables) if os.path.isdir(path) else [path]  # type: ignore[arg-type]
    return paths


def _surveyed(path: str, reading: dict[str, Any]) -> SourceFile:
    stream = open_file(path, reading)
    groups = getattr(stream, "row_groups", None)
    if groups is not None:
        return SourceFile(path, ROWS, sum(groups), 1.0, groups)
    size = os.path.getsize(path)
    if stream.length is not None:
        return SourceFile(path, WHOLE, 1, 1.0 / max(1, stream.length))
    bytes_a_row = _bytes_a_row(stream) or size
    if isinstance(stream, TextStream) and stream.can_be_cut:
        return SourceFile(path, BYTES, size, bytes_a_row)
    return SourceFile(path, WHOLE, 1, min(1.0, bytes_a_row / max(1, size)))


def _bytes_a_row(stream: Stream) -> float:
    """Return how many bytes the first rows take each, as they are on disk."""
    for chunk in stream.chunks(most_rows=SAMPLE_ROWS):
        rows = len(chunk) + len(chunk.bad)
        before: int = getattr(stream, "_start", {}).get("byte", 0)
        return max(1.0, (chunk.done - before) / max(1, rows))
    return 0.0


def open_file(path: str, reading: dict[str, Any]) -> Any:
    """Open a file of a source as a stream."""
    if reading["format"] == GENERATED:
        from sapwood.streams.generators import generator

        return generator(path)
    calendars = {
        name: Calendar.from_header(own) for name, own in reading.get("known_calendars", {}).items()
    }
    own = {name: value for name, value in reading.items() if name != "targets"}
    return open_stream(path, **{**own, "known_calendars": calendars})
