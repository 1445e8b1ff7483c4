"""Rows of tables in columns: Parquet and Arrow files, one of them or a folder.

A folder and the folders within it are read file by file in the order of their names; numbers in
names are ordered by their values. Files and folders whose names begin with "." or "_" are skipped,
and so are files of other formats. A folder name such as "year=2026" does not become a column; links
to folders are not followed. Each file must have all columns that are read, with values of the same
kind; other columns are left out.

Only a few rows and pages of a Parquet file are in memory at a time, or one record batch of an Arrow
file. The files contain an index of their row groups or record batches, so that reading resumes at a
position without reading the rows before it. Arrow's streaming format has no index and is read up to
the position.
"""

import hashlib
import itertools
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
from pyarrow.fs import LocalFileSystem

from sapwood import validation
from sapwood.storage.atomic import StrPath
from sapwood.streams import bad_rows
from sapwood.streams.arrow import (
    as_array,
    check_type,
    is_number,
    is_readable,
    is_text,
    is_time,
    stored_type,
)
from sapwood.streams.convert import convert
from sapwood.streams.file_search import check_sign, find_files, sign_of
from sapwood.streams.first_rows import FirstRows
from sapwood.streams.schema import Found, ReadOptions, Schema
from sapwood.streams.stream import MOST_ROWS, BadRow, Chunk, Position, Stream, StreamError

__all__ = ["ColumnarStream", "files_of", "open_columnar"]

Format = Literal["parquet", "arrow"]
Batch = tuple[int, int, pa.RecordBatch]
"""The group and the row of it at which the batch ends, and the batch."""

SUFFIXES: dict[Format, tuple[str, ...]] = {
    "parquet": (".parquet", ".parq", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
}
PARQUET, ARROW, FEATHER_1 = b"PAR1", b"ARROW1", b"FEA1"
SAMPLE_ROWS = 1000
REMEDIES = {bad_rows.BAD_ENCODING: "write the file again with text in UTF-8, or drop the column"}
"""What helps with faults for which it is something else in a text."""
PAGE_BUFFER = 1 << 16  # bytes of each column that are read ahead of its pages


def open_columnar(
    path: StrPath | Sequence[str], read_options: ReadOptions, format: Format | None = None
) -> Stream:
    """Open a Parquet or Arrow file, or a folder of such files, as a stream.

    - `path`: the file, the folder, or the files in order.
    - `format`: what the files are. If not given, a file is known by its first bytes, and those of a
      folder by the ends of their names.
    - Raises StreamError if there is no such file in a folder, one is damaged or differs from the
      others, or the read_options cannot be met.
    - Raises OSError if a file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = pa.table({"city": ["Oslo", "Bonn"], "rent": [700, 800]})
    ...     pyarrow.parquet.write_table(rows, os.path.join(folder, "flats.parquet"))
    ...     stream = open_columnar(folder, ReadOptions("rent"))
    ...     chunk = next(stream.chunks())
    >>> stream.features, stream.length, chunk.columns, chunk.y
    ({'city': 'category'}, 2, {'city': ['Oslo', 'Bonn']}, array([700., 800.]))
    """
    if not isinstance(path, str | bytes | os.PathLike):
        parents = {os.path.dirname(os.path.abspath(name)) for name in path}
        return ColumnarStream(
            os.path.commonpath(parents), [_open_file(name, format) for name in path], read_options
        )
    root = os.fsdecode(path)
    names = files_of(root, format) if os.path.isdir(root) else [root]
    files = [_open_file(name, format) for name in names]
    return ColumnarStream(root, files, read_options)


class ColumnarStream(Stream):
    """The rows of some files in columns, one file after the other.

    Reading resumes at a position: the "file", the "group" in it (a row group, or a record batch) and
    the "row" of that group. It also has how many rows of the file are "done", how many are in files
    "before", and a "sign" of the file's name.
    """

    def __init__(self, name: str, files: Sequence["_File"], read_options: ReadOptions) -> None:
        looks = _looks(files)
        first = FirstRows(name, _sample(files, looks), looks, read_options)
        self._schema = first.schema
        _check_files(files, self._schema, looks)
        self._files = files
        self._names = [rule.name for rule in self._schema.read]
        counts = [file.rows for file in files if file.rows is not None]
        rows = sum(counts) if len(counts) == len(files) else None
        found = first.schema.stream_fields
        super().__init__(name, size=rows, length=rows, column_notes=first.notes, **found)

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on; see `Stream.chunks`."""
        position = self._position(0, 0) if start is None else start
        names = [os.path.relpath(file.path, self.name) for file in self._files]
        check_sign(self.name, names, position["file"], position["sign"])
        for place in range(position["file"], len(self._files)):
            file = self._files[place]
            if place > position["file"]:
                position = self._position(place, position["before"] + position["done"])
            for group, row, batch in file.batches(self._names, position, most_rows):
                done = position["done"] + batch.num_rows
                position = {**position, "group": group, "row": row, "done": done}
                with _readable(file.path):
                    chunk = self._chunk(file.path, batch, position)
                yield chunk
            if file.rows not in (None, position["done"]):
                raise StreamError(
                    f"{file.path} ends after row {position['done']} of {file.rows}: it is damaged; "
                    "write it again or leave it out"
                )

    def at_row(self, row: int) -> Position:
        """Return the position of a row of the first file, counted from 0."""
        return {**self._position(0, 0), "done": row}

    @property
    def row_groups(self) -> tuple[int, ...] | None:
        """The rows of each row group of the first file; None if it is no Parquet file."""
        first = self._files[0]
        return first.counts if isinstance(first, _ParquetFile) else None

    @property
    def clock(self) -> str | None:
        """The feature that is the time of rows; see `Stream.clock`."""
        return self._schema.clock

    @property
    def fingerprint(self) -> str:
        """A digest of the columns, the first row, and the name of a folder's first file."""
        first = self._files[0]
        digest = hashlib.blake2b(digest_size=16)
        digest.update(os.fsencode(os.path.relpath(first.path, self.name)) + b"\n")
        digest.update(first.schema.remove_metadata().to_string().encode() + b"\n")
        for _, _, batch in first.batches(self._names, self._position(0, 0), 1):
            digest.update(_as_json(batch, 0))
            break
        return digest.hexdigest()

    def _position(self, place: int, before: int) -> Position:
        sign = sign_of(os.path.relpath(self._files[place].path, self.name))
        return {"file": place, "group": 0, "row": 0, "done": 0, "before": before, "sign": sign}

    def _chunk(self, path: str, batch: pa.RecordBatch, behind: Position) -> Chunk:
        table = dict(zip(batch.schema.names, batch.columns, strict=True))
        converted = convert(self._schema, table, batch.num_rows)
        numbers = np.arange(behind["done"] - batch.num_rows, behind["done"], dtype=np.int64) + 1
        bad = [
            BadRow(
                path,
                "row",
                int(numbers[fault.row]),
                fault.reason,
                fault.column,
                fault.value,
                REMEDIES.get(fault.reason, fault.remedy),
                _as_json(batch, fault.row),
                fault.row - earlier,
            )
            for earlier, fault in enumerate(converted.faults)
        ]
        if converted.good is not None:
            numbers = numbers[converted.good]
        done = behind["before"] + behind["done"]
        return converted.chunk(path, numbers, behind, done, bad)


def _as_json(batch: pa.RecordBatch, row: int) -> bytes:
    """Return what was read of a row as a JSON object."""
    values = {name: _plain(batch[name][row]) for name in batch.schema.names}
    return json.dumps(values, ensure_ascii=False).encode(errors="backslashreplace")


def _plain(value: pa.Scalar) -> Any:
    """Return a value as JSON can keep it."""
    if isinstance(value, pa.DictionaryScalar):
        return _plain(value.value)
    if is_text(value.type) and value.is_valid:
        return bytes(value.as_buffer()).decode(errors="backslashreplace")
    if is_time(value.type) or pa.types.is_decimal(value.type):
        return value.cast(pa.string()).as_py()
    if pa.types.is_float16(value.type):
        return value.cast(pa.float32()).as_py()
    return value.as_py()


# Files


@dataclass(frozen=True)
class _File(ABC):
    """A file of rows in groups.

    - `rows`: how many there are, None if the file does not contain their number.
    """

    path: str
    schema: pa.Schema
    rows: int | None

    @abstractmethod
    def batches(self, names: Sequence[str], start: Position, most_rows: int) -> Iterator[Batch]:
        """Yield some columns, from a position on."""


@dataclass(frozen=True)
class _ParquetFile(_File):
    counts: tuple[int, ...]
    """The rows of each row group."""

    def batches(self, names: Sequence[str], start: Position, most_rows: int) -> Iterator[Batch]:
        group, skip = self._place(0, start["done"])  # even if it was written in other groups since
        with _readable(self.path), _parquet(self.path) as file:
            if _counts(file.metadata) != self.counts:
                raise StreamError(f"{self.path} has changed since it was opened; start again")
            if group == len(self.counts):
                return
            later = range(group, len(self.counts))
            row = 0
            for batch in file.iter_batches(most_rows, row_groups=later, columns=list(names)):
                _check_bounds(batch)
                group, row = self._place(group, row + batch.num_rows)
                skipped = min(skip, batch.num_rows)
                skip -= skipped
                if skipped < batch.num_rows:
                    yield group, row, batch.slice(skipped)

    def _place(self, group: int, row: int) -> tuple[int, int]:
        """Return the group of a row that is counted from the beginning of a group before it."""
        while group < len(self.counts) and row >= self.counts[group]:
            row -= self.counts[group]
            group += 1
        return group, row


@dataclass(frozen=True)
class _ArrowFile(_File):
    streamed: bool
    """Whether it is of the streaming format, which has no index of its batches."""

    def batches(self, names: Sequence[str], start: Position, most_rows: int) -> Iterator[Batch]:
        row = start["row"]
        for place, batch in self._whole_batches(names, start["group"]):
            for first in range(row, batch.num_rows, most_rows):
                part = batch.slice(first, most_rows)
                end = first + part.num_rows
                yield (place + 1, 0, part) if end == batch.num_rows else (place, end, part)
            row = 0

    def _whole_batches(
        self, names: Sequence[str], group: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        places = [place for place, name in enumerate(self.schema.names) if name in names]
        options = pa.ipc.IpcReadOptions(included_fields=places)
        with _readable(self.path), pa.OSFile(self.path) as source:
            if self.streamed:
                stream = pa.ipc.open_stream(source, options=options)
                batches: Iterator[Any] = itertools.islice(enumerate(stream), group, None)
            else:
                file = pa.ipc.open_file(source, options=options)
                later = range(group, file.num_record_batches)
                batches = ((place, file.get_batch(place)) for place in later)
            for place, batch in batches:
                _check_bounds(batch)
                yield place, batch


def _check_bounds(batch: pa.RecordBatch) -> None:
    """Raise ArrowException if the rows of a damaged file would be read beyond their memory."""
    for column in batch.columns:
        _check_column(column)


def _check_column(column: pa.Array) -> None:
    column.validate()
    if pa.types.is_dictionary(column.type):
        _check_column(column.dictionary)
        pa.DictionaryArray.from_arrays(column.indices, column.dictionary)
    elif pa.types.is_string(column.type):  # as bytes, for bad UTF-8 is the fault of single rows
        column.view(pa.binary()).validate(full=True)
    elif pa.types.is_large_string(column.type):
        column.view(pa.large_binary()).validate(full=True)
    elif pa.types.is_string_view(column.type):
        column.view(pa.binary_view()).validate(full=True)
    elif is_text(column.type):
        column.validate(full=True)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raise errors of pyarrow about a file that it cannot read as StreamError."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        complaint = str(error).strip().partition("\n")[0]
        raise StreamError(
            f"{path} cannot be read: {complaint}; if it is damaged or not finished, write it again "
            "or leave it out"
        ) from error


@contextmanager
def _parquet(path: str) -> Iterator[pa.parquet.ParquetFile]:
    """Open a Parquet file such that its pages are read as they are needed."""
    with pa.OSFile(path) as source:
        yield pa.parquet.ParquetFile(
            source, buffer_size=PAGE_BUFFER, pre_buffer=False, page_checksum_verification=True
        )


def _counts(metadata: pa.parquet.FileMetaData) -> tuple[int, ...]:
    return tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))


def files_of(folder: str, format: Format | None = None) -> list[str]:
    """Return the files of a folder that are of a format, in order."""
    found = find_files(folder, _suffixes(format))
    if not found:
        raise StreamError(
            f"{folder} is a folder without Parquet or Arrow files: their names end in "
            f"{', '.join(_suffixes(format))}"
        )
    return found


def _suffixes(format: Format | None) -> tuple[str, ...]:
    return tuple(itertools.chain(*SUFFIXES.values())) if format is None else SUFFIXES[format]


def _open_file(path: str, format: Format | None) -> _File:
    with open(path, "rb") as file:
        start = file.read(len(ARROW))
    if not start:
        raise StreamError(f"{path} is empty: write it again or leave it out")
    if start.startswith(FEATHER_1):
        raise StreamError(f"{path} is a Feather file of version 1: write it again as version 2")
    if start.startswith(ARROW):
        return _open_arrow(path)
    name = path.lower()
    if start.startswith(PARQUET) or format == "parquet" or name.endswith(SUFFIXES["parquet"]):
        with _readable(path), _parquet(path) as parquet:
            counts = _counts(parquet.metadata)
            return _ParquetFile(path, _named(path, parquet.schema_arrow), sum(counts), counts)
    if format == "arrow" or name.endswith(SUFFIXES["arrow"]):
        with _readable(path), pa.OSFile(path) as source:
            schema = _named(path, pa.ipc.open_stream(source).schema)
            return _ArrowFile(path, schema, None, streamed=True)
    raise StreamError(f"{path} is neither a Parquet nor an Arrow file: give its format")


def _open_arrow(path: str) -> _ArrowFile:
    with _readable(path):
        with pa.OSFile(path) as source:
            schema = _named(path, pa.ipc.open_file(source).schema)
        fragment = pyarrow.dataset.IpcFileFormat().make_fragment(path, LocalFileSystem())
        return _ArrowFile(path, schema, fragment.count_rows(), streamed=False)


def _named(path: str, schema: pa.Schema) -> pa.Schema:
    """Return a schema; raise UnicodeDecodeError or StreamError if its names cannot be used."""
    names = Counter(schema.names)
    for name, count in names.items():
        if count > 1:
            raise StreamError(
                f"{path} has {count} columns {validation.shown(name)}: rename all but one"
            )
    return schema


# Columns


def _look(kind: pa.DataType) -> Found | None:
    """Return what values of a type look like; None if there are none."""
    kind = stored_type(kind)
    if pa.types.is_null(kind):
        return None
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_time(kind):
        return "time"
    return "number" if is_number(kind) else "text"


def _looks(files: Sequence[_File]) -> dict[str, Found]:
    """Return the columns of the first file, and how the values look in the first that has any."""
    first = files[0]
    looks: dict[str, Found] = {}
    for name in first.schema.names:
        kinds = (file.schema.field(name).type for file in files if name in file.schema.names)
        looks[name] = next(filter(None, map(_look, kinds)), "number")
    return looks


def _sample(files: Sequence[_File], looks: Mapping[str, Found]) -> dict[str, pa.Array]:
    """Return the first values of columns that can be read, from the first file that has rows."""
    start = {"file": 0, "group": 0, "row": 0, "done": 0}
    for file in files:
        kinds = {name: file.schema.field(name).type for name in looks if name in file.schema.names}
        names = [name for name, kind in kinds.items() if is_readable(kind)]
        for _, _, batch in file.batches(names, start, SAMPLE_ROWS) if names else ():
            with _readable(file.path):
                return {name: as_array(batch[name]) for name in names}
    return {}


def _check_files(files: Sequence[_File], schema: Schema, looks: Mapping[str, Found]) -> None:
    """Raise StreamError if a file has not the columns that are read, as the others have."""
    for file, rule in itertools.product(files, schema.read):
        if rule.name not in file.schema.names:
            raise StreamError(
                f"{file.path} has no column {validation.shown(rule.name)}, unlike {files[0].path}; fix "
                f"the file, or leave out the column, as by --drop {rule.name}"
            )
        kind = file.schema.field(rule.name).type
        check_type(file.path, rule.name, kind, rule == schema.target)
        if _look(kind) not in (None, looks[rule.name]):
            raise StreamError(
                f"{file.path}: column {validation.shown(rule.name)} holds {kind}, while it looks "
                f"like {looks[rule.name]} in another file; fix the file, or leave out the column, "
                f"as by --drop {rule.name}"
            )
