"""Open files of all formats; the format is given or found by the name."""

import os
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from sapwood import validation
from sapwood.schema import Calendar
from sapwood.storage.atomic import StrPath
from sapwood.streams.file_search import find_files, would_find
from sapwood.streams.kafka_address import Address, address_of, is_kafka
from sapwood.streams.kafka_config import config_of
from sapwood.streams.schema import ReadOptions
from sapwood.streams.stream import Kind, Stream, StreamError

if TYPE_CHECKING:
    from sapwood.streams.text import TextStream

__all__ = ["FORMATS", "found_files", "is_read_once", "open_stream", "would_be_read"]

FORMATS = {
    "csv": ("csv", "txt"),
    "tsv": ("tsv", "tab"),
    "arff": ("arff",),
    "jsonl": ("jsonl", "ndjson", "json"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc", "arrows"),
}
"""The formats, and how names of such files end."""
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
"""How names of compressed files end."""
WORKBOOKS = ("xls", "xlsx", "xlsm", "ods")
TEXTS = ("csv", "tsv", "arff", "jsonl")
"""Formats that can come from a pipe, or compressed."""
FORMATS_IN_FOLDERS = {"csv": ("csv",), "tsv": ("tsv",), "jsonl": ("jsonl", "ndjson")}
"""How names of texts end that are taken from a folder: others may be there by chance."""
SUFFIXES_OF_TABLES = tuple(f".{suffix}" for suffix in FORMATS["parquet"] + FORMATS["arrow"])
FOLDER = "folder"
TABLES: dict[str, Literal["parquet", "arrow"] | None] = {
    "parquet": "parquet",
    "arrow": "arrow",
    FOLDER: None,
}
OPTIONS = {
    "header": ("CSV files", ("csv", "tsv")),
    "encoding": ("files of text", TEXTS),
    "sample_rows": ("csv, tsv, jsonl", ("csv", "tsv", "jsonl")),
}
"""Options that not all sources have: in words, and the formats."""


def _check_options(read_options: ReadOptions, name: str, kind: str) -> None:
    """Complain of an option that a kind of source does not have."""
    for option, (words, formats) in OPTIONS.items():
        if getattr(read_options, option) is not None and kind not in formats:
            raise StreamError(f"{option} is for {words}, and {name} is {kind}: leave it out")


def open_stream(
    source: StrPath | Sequence[StrPath],
    *,
    target: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    time_formats: Mapping[str, str] | None = None,
    time_parts: Sequence[str] | None = None,
    time: str | None = None,
    known: Mapping[str, Kind] | None = None,
    known_formats: Mapping[str, str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    ids: Sequence[str] = (),
    keys: Sequence[str] = (),
    format: str | None = None,
    until_end: bool = False,
    sample: bytes | None = None,
    sample_rows: int | None = None,
    kafka_config: StrPath | Mapping[str, str] | None = None,
    calendar: Calendar | None = None,
    known_calendars: Mapping[str, Calendar] | None = None,
) -> Stream:
    r"""Open files, a folder, standard input or a Kafka topic as a stream of rows.

    Parameters
    ----------
    source : path, "-", or sequence of paths
        What to read; "-" is the standard input. Files of a folder, and those that a pattern such
        as ``days/*.csv`` fits, are read in the order of their names, in which numbers count by their
        values; those of a sequence as they stand. Texts may be compressed by gzip, bzip2, xz, zstd
        or zip. "kafka://HOST:PORT/TOPIC" is a topic of Kafka; see `sapwood.streams.kafka`.
    target : str, optional
        The column to predict.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns that are categories although they look like numbers.
    time_formats : mapping of str to str, optional
        Columns that hold times, with their formats as in `datetime.strptime`, the unit of those
        that are numbers ("seconds", "milliseconds", "microseconds", "nanoseconds" since 1970), or
        "none" for a column that looks like times and holds none. Most formats are found without;
        see `sapwood.streams.dates`.
    time_parts : sequence of {"hour", "weekday", "month", "yearday", "season"}, optional
        Features to add for each column of times, named like "sold.hour"; () for none. If not given,
        hour, weekday and season (the day of the year as a position on a circle), without those that
        are the same in all of the first rows.
    time : str, optional
        The column by which rows are in time.
    known : mapping of names to kinds, optional
        The features of a model that exists already; other columns are left out.
    known_formats : mapping of str to str, optional
        The formats by which that model's times and numbers were read; `time_formats` take
        precedence.
    decimal : {".", ","}, optional
        What stands before decimals; found by the data if not given.
    thousands : {".", ",", " ", "'"}, optional
        What stands between thousands; found by the data if not given.
    encoding : str, optional
        The encoding of a text, such as "cp1252"; found by its first rows if not given.
    header : bool, optional
        Whether the first line of a CSV file names its columns; if not, they are c1, c2 and so on.
        If not given it does, and a line that looks like a row is rejected.
    ids : sequence of str
        Columns of row identifiers: they are not features; `Chunk.ids` has them as text.
    keys : sequence of str
        Columns that identify series, as for lags: whole numbers in them stay exact where no double
        can hold them, and are never taken for times.
    format : {"csv", "tsv", "arff", "jsonl", "parquet", "arrow"}, optional
        The format of the file; taken from the end of its name if not given, CSV for the standard
        input.
    until_end : bool
        Whether a topic is read up to where it ends when it is opened, and not followed for ever.
    sample : bytes, optional
        `Stream.sample` of a topic at whose positions reading continues.
    sample_rows : int, optional
        How many rows of a CSV file or of JSON lines are looked at to find what columns are; 1,000
        if not given. Rows of a pipe are processed as soon as this number has arrived.
    kafka_config : path or mapping, optional
        Further settings of the client of a topic, such as "security.protocol": a file of lines
        "name=value", or a mapping. They are used for nothing else.
    calendar : Calendar, optional
        The time zone and the special days of `time`, or of the first column of times if that is not
        given: `Calendar.of("Europe/Berlin", "DE", ["school.csv"])`.
    known_calendars : mapping of str to Calendar
        Those by which the times of a model that exists already were read.

    Raises
    ------
    StreamError
        If the file cannot be read in the requested format.
    OSError
        If it is not there, or may not be read.
    ModuleNotFoundError
        If pyarrow is not installed, or confluent-kafka for a topic.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "flats.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("city,area,rent\nOslo,50,700\nBonn,,800\n")
    ...     stream = open_stream(path, target="rent")
    ...     stream.features, list(stream)
    ({'city': 'category', 'area': 'number'},
     [({'city': 'Oslo', 'area': 50.0}, 700.0), ({'city': 'Bonn', 'area': None}, 800.0)])
    """
    read_options = ReadOptions(
        target,
        _names("drop", drop),
        _names("categorical", categorical),
        dict(time_formats or {}),
        None if time_parts is None else _names("time_parts", time_parts),
        time,
        known,
        dict(known_formats or {}),
        _mark("decimal", decimal, ".,"),
        _mark("thousands", thousands, "., '"),
        encoding,
        header,
        _names("ids", ids),
        _names("keys", keys),
        None if sample_rows is None else validation.whole(sample_rows, "sample_rows", 1, 10**6),
        calendar,
        dict(known_calendars or {}),
    )
    if decimal is not None and decimal == thousands:
        raise StreamError(f"decimal and thousands are both {validation.shown(decimal)}: change one")
    if is_kafka(source):
        _check_options(read_options, str(source), "a topic")
        address = address_of(str(source), config_of(kafka_config))
        return _open_topic(address, read_options, format, until_end, sample)
    name, paths = _files_of(source, format)
    for option, given in (("until_end", until_end), ("kafka_config", kafka_config is not None)):
        if given:
            raise StreamError(f"{option} is for topics of Kafka, and {name} is none: leave it out")
    return _open_files(name, paths, read_options, format)


def _open_files(
    name: str, paths: list[str], read_options: ReadOptions, format: str | None
) -> Stream:
    """Open files of one format, which is found by their names if it is not given."""
    format = _common_format(paths) if format is None else format.lower()
    if format in FORMATS or format == FOLDER:
        _check_options(read_options, name, format)
    if format in TABLES:
        from sapwood.streams.columnar import open_columnar

        once = next(filter(is_read_once, paths), None)
        if once is not None:
            pipe = "the standard input" if once == "-" else f"{once}, which can be read but once,"
            raise StreamError(
                f"{pipe} cannot be read as {format}: save it to a file, or give it as one of "
                f"{', '.join(TEXTS)}"
            )
        return open_columnar(paths if len(paths) > 1 else paths[0], read_options, TABLES[format])
    if format not in TEXTS:
        raise StreamError(
            f"{validation.shown(format)} is no format: one of {', '.join(FORMATS)} is expected"
        )
    if paths == [name]:
        return _open_text(format, name, read_options)
    from sapwood.streams.chained import open_chained

    return open_chained(name, paths, read_options, partial(_open_text, format), format != "jsonl")


def _open_topic(
    address: Address,
    read_options: ReadOptions,
    format: str | None,
    until_end: bool,
    sample: bytes | None,
) -> Stream:
    """Open a topic of Kafka, whose client is loaded only now."""
    if format not in (None, "jsonl"):
        raise StreamError(f"{address} cannot be read as {format}: messages of a topic are JSON")
    from sapwood.streams.kafka import KafkaStream

    return KafkaStream(address, read_options, until_end, sample)


def _open_text(format: str, path: str, read_options: ReadOptions) -> "TextStream":
    """Open one file of text."""
    if format == "arff":
        from sapwood.streams.arff import open_arff

        return open_arff(path, read_options)
    if format == "jsonl":
        from sapwood.streams.blocks import TextSource
        from sapwood.streams.jsonlines import JSONLinesStream

        return JSONLinesStream(TextSource(path, read_options.encoding), read_options)
    from sapwood.streams.csv import open_delimited

    return open_delimited(path, read_options, b"\t" if format == "tsv" else None)


def _files_of(source: StrPath | Sequence[StrPath], format: str | None) -> tuple[str, list[str]]:
    """Return what messages call a source, and its files in order."""
    sources = [source] if isinstance(source, str | os.PathLike) else source
    names = [os.fspath(each) for each in sources]
    if not names:
        raise StreamError("there are no files: name one at least")
    if any(map(is_kafka, names)):
        raise StreamError("a topic cannot be one of several files: name it alone")
    if "-" in names and len(names) > 1:
        raise StreamError("the standard input cannot be one of several files: name it alone")
    paths = [path for name in names for path in found_files(name, format)]
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}", paths


def found_files(name: str, format: str | None) -> list[str]:
    """Return the files that a name means; a folder of Parquet or Arrow files is one of them.

    - Raises StreamError if there are none.
    """
    if name == "-":
        return [name]
    formats = _formats_in_folders(format)
    found = find_files(name, _suffixes_of_texts(formats))
    if found is None or (format not in TEXTS and os.path.isdir(name) and _has_tables(name)):
        return [name]
    if not found:
        raise StreamError(
            f"{name} is a folder without files of {', '.join(formats)}; name the files, or give "
            "their format, as by --format csv"
        )
    return found


def is_read_once(name: str) -> bool:
    """Whether a source gives its rows once only: the standard input, a topic, a pipe or a device."""
    is_file = os.path.isfile(name) or os.path.isdir(name) or not os.path.exists(name)
    return name == "-" or is_kafka(name) or not is_file


def would_be_read(path: str, name: str, format: str | None) -> bool:
    """Whether a file, be it there yet or not, is one of those that a folder or a pattern means."""
    suffixes = SUFFIXES_OF_TABLES
    if os.path.isdir(name) and (format in TEXTS or not _has_tables(name)):
        suffixes += _suffixes_of_texts(_formats_in_folders(format))
    return would_find(path, name, suffixes)


def _formats_in_folders(format: str | None) -> dict[str, tuple[str, ...]]:
    """Return the formats of texts that are looked for in a folder, and how their names end."""
    if format is None:
        return FORMATS_IN_FOLDERS
    return {format: FORMATS_IN_FOLDERS.get(format, FORMATS.get(format, ()))}


def _suffixes_of_texts(formats: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        f".{suffix}{packed}"
        for format, endings in formats.items()
        if format in TEXTS
        for suffix in endings
        for packed in ("", *PACKED)
    )


def _has_tables(folder: str) -> bool:
    return bool(find_files(folder, SUFFIXES_OF_TABLES))


def _common_format(paths: Sequence[str]) -> str:
    """Return the format of files by their names."""
    formats = {path: _format_of(path) for path in paths}
    first = formats[paths[0]]
    for path, format in formats.items():
        if format != first:
            raise StreamError(
                f"{path} is {format}, while {paths[0]} is {first}: read them one format at a time"
            )
    return first


def _format_of(path: str) -> str:
    """Return the format of a file by its name."""
    if path == "-":
        return "csv"
    if stat.S_ISDIR(os.stat(path).st_mode):
        return FOLDER
    packed, name = _unpacked_name(path)
    suffix = name.rpartition(".")[2]
    for format, suffixes in FORMATS.items():
        if suffix in suffixes:
            if packed and format not in TEXTS:
                raise StreamError(f"{path} is compressed as a whole: unpack it")
            return format
    if suffix in WORKBOOKS:
        raise StreamError(f"{path} is a workbook, not text: save its sheet as CSV")
    known = ", ".join(f".{suffix}" for suffixes in FORMATS.values() for suffix in suffixes)
    raise StreamError(
        f"{path}: the name does not show the format; end it by one of {known} (texts also by "
        f"{', '.join(PACKED)}), or give the format, as by --format csv"
    )


def _unpacked_name(path: str) -> tuple[bool, str]:
    """Return whether a file is compressed by its suffix, and its name without that suffix."""
    name = os.path.basename(path).lower()
    packed = next((suffix for suffix in PACKED if name.endswith(suffix)), None)
    if packed is None:
        return False, name
    name = name.removesuffix(packed)
    if packed == ".zip" and "." not in name:
        from sapwood.streams.compression import member_of

        name = member_of(path).lower()
    return True, name


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise StreamError(f"{what} = {validation.shown(names)}: a list of names is expected")
    return tuple(names)


def _mark(what: str, mark: str | None, marks: str) -> str | None:
    if mark is not None and (len(mark) != 1 or mark not in marks):
        expected = " or ".join(map(validation.shown, marks))
        raise StreamError(f"{what} = {validation.shown(mark)}: {expected} is expected")
    return mark
