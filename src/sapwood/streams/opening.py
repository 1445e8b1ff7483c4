"""One way to open all files: the format is found by the name, or told."""

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Literal

from sapwood import door
from sapwood.atomic import StrPath
from sapwood.streams.schema import Wishes
from sapwood.streams.stream import Kind, Stream, StreamError

__all__ = ["FORMATS", "open_stream"]

FORMATS = {
    "csv": ("csv", "txt"),
    "tsv": ("tsv", "tab"),
    "arff": ("arff",),
    "jsonl": ("jsonl", "ndjson", "json"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc", "arrows"),
}
"""The formats, and how names of such files end."""
TEXTS = ("csv", "tsv", "arff", "jsonl")
"""Formats that can come from a pipe, or in gzip."""
FOLDER = "folder"
TABLES: dict[str, Literal["parquet", "arrow"] | None] = {
    "parquet": "parquet",
    "arrow": "arrow",
    FOLDER: None,
}


def open_stream(
    source: StrPath,
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
    format: str | None = None,
) -> Stream:
    r"""Open a file, a folder of Parquet files, or the standard input as a stream of rows.

    Parameters
    ----------
    source : path or "-"
        What to read; "-" is the standard input. Texts may be in gzip.
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
        Features to add for each column of times, named like "sold.hour"; () for none. If not
        given, those of hour, weekday and season (the day of the year as a position on a circle)
        that the first rows do not show to be always the same.
    time : str, optional
        The column by which rows are in time.
    known : mapping of names to kinds, optional
        The features of a model that is there already; other columns are left out.
    known_formats : mapping of str to str, optional
        The formats by which that model's times and numbers were read; `time_formats` go before.
    decimal : {".", ","}, optional
        What stands before decimals; found by the data if not given.
    thousands : {".", ",", " ", "'"}, optional
        What stands between thousands; found by the data if not given.
    format : {"csv", "tsv", "arff", "jsonl", "parquet", "arrow"}, optional
        What the file is; found by the end of its name if not given, CSV for the standard input.

    Raises
    ------
    StreamError
        If the file cannot be read as what it is asked to be.
    OSError
        If it is not there, or may not be read.
    ModuleNotFoundError
        If pyarrow is not installed.

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
    path = os.fspath(source)
    format = _format_of(path) if format is None else format.lower()
    wishes = Wishes(
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
    )
    if decimal is not None and decimal == thousands:
        raise StreamError(f"decimal and thousands are both {door.shown(decimal)}: change one")
    if format in ("csv", "tsv"):
        from sapwood.streams.delimited import open_delimited

        return open_delimited(path, wishes, b"\t" if format == "tsv" else None)
    if format == "arff":
        from sapwood.streams.arff import open_arff

        return open_arff(path, wishes)
    if format == "jsonl":
        from sapwood.streams.blocks import TextSource
        from sapwood.streams.jsonlines import JSONLinesStream

        return JSONLinesStream(TextSource(path), wishes)
    if format in TABLES:
        from sapwood.streams.columnar import open_columnar

        if path == "-":
            raise StreamError(
                f"the standard input cannot be read as {format}: save it to a file, or give it as "
                f"one of {', '.join(TEXTS)}"
            )
        return open_columnar(path, wishes, TABLES[format])
    raise StreamError(f"{door.shown(format)} is no format: one of {', '.join(FORMATS)} is expected")


def _format_of(path: str) -> str:
    """Return the format that the name of a file tells."""
    if path == "-":
        return "csv"
    if stat.S_ISDIR(os.stat(path).st_mode):
        return FOLDER
    name = os.path.basename(path).lower()
    suffix = name.removesuffix(".gz").rpartition(".")[2]
    for format, suffixes in FORMATS.items():
        if suffix in suffixes:
            if name.endswith(".gz") and format not in TEXTS:
                raise StreamError(f"{path} is compressed as a whole: unpack it, as by gunzip")
            return format
    known = ", ".join(f".{suffix}" for suffixes in FORMATS.values() for suffix in suffixes)
    raise StreamError(
        f"{path}: the name does not tell the format; end it by one of {known} (texts also by .gz), "
        f"or give the format, as by --format csv"
    )


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise StreamError(f"{what} = {door.shown(names)}: a list of names is expected")
    return tuple(names)


def _mark(what: str, mark: str | None, marks: str) -> str | None:
    if mark is not None and (len(mark) != 1 or mark not in marks):
        expected = " or ".join(map(door.shown, marks))
        raise StreamError(f"{what} = {door.shown(mark)}: {expected} is expected")
    return mark
