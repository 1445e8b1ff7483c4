"""The protocol of streams (rows in order, in chunks, each with its position), and bad rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows.labels import Labels
from sapwood.schema import Calendar, Rule, Schema
from sapwood.validation import Label

__all__ = [
    "BadRow",
    "BadRowError",
    "Chunk",
    "Column",
    "ColumnNote",
    "DerivedStream",
    "Kind",
    "Position",
    "Stream",
    "StreamError",
    "Unit",
    "message_number",
    "numbers_by_name",
    "place_in_words",
    "rows_of",
]

Kind = Literal["number", "category"]
Unit = Literal["line", "row", "offset"]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Column = FloatArray | list[Label | None] | Labels
"""Numbers, NaN where one is missing; or labels, None where one is missing."""
Position = dict[str, int]
"""Where a chunk starts, in terms of its stream; JSON can keep it."""

OFFSET_BITS = 48
"""The lower bits of the number of a message, which are its offset; above is its partition."""
MOST_ROWS = 8192
"""Rows of a chunk, unless fewer are requested."""


class StreamError(ValueError):
    """A stream cannot be read; the message names the place, the cause and the remedy."""


def message_number(partition: int, offset: int) -> int:
    """Return a number that identifies a message within its topic."""
    return partition << OFFSET_BITS | offset


def numbers_by_name(unit: Unit, numbers: IntArray) -> dict[str, IntArray]:
    """Return the numbers of rows as people count them, by what they count.

    Examples
    --------
    >>> numbers_by_name("line", np.array([7]))
    {'line': array([7])}
    >>> numbers_by_name("offset", np.array([message_number(3, 17)]))
    {'partition': array([3]), 'offset': array([17])}
    """
    if unit != "offset":
        return {unit: numbers}
    return {"partition": numbers >> OFFSET_BITS, unit: numbers & ((1 << OFFSET_BITS) - 1)}


def place_in_words(unit: Unit, number: int) -> str:
    """Return where a row is.

    Examples
    --------
    >>> place_in_words("line", 7), place_in_words("offset", message_number(3, 17))
    ('line 7', 'partition 3, offset 17')
    """
    by_name = numbers_by_name(unit, np.array([number]))
    return ", ".join(f"{name} {counted[0]}" for name, counted in by_name.items())


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be learned, and the reason.

    Parameters
    ----------
    source : str
        The file, or the topic.
    unit : {"line", "row", "offset"}
        What `number` counts: lines of a text, rows of a table, or messages of a topic.
    number : int
        The first line of the row, or the row; from 1. Or `message_number`.
    reason : str
        In a few words that are the same for all rows of one fault, to count by.
    column : str, optional
        The column at fault.
    value : str, optional
        What stands there.
    remedy : str
        What helps.
    text : bytes
        The row as it stands, without its line's end.
    after : int
        How many good rows of its chunk are before it.
    """

    source: str
    unit: Unit
    number: int
    reason: str
    column: str | None = None
    value: str | None = None
    remedy: str = "fix the row or leave it out"
    text: bytes = b""
    after: int = 0

    def __str__(self) -> str:
        place = f"{self.source}, {place_in_words(self.unit, self.number)}"
        if self.column is not None:
            place += f", column {validation.shown(self.column)}"
        value = "" if self.value is None else f" ({validation.shown(self.value)})"
        return f"{place}: {self.reason}{value}; {self.remedy}"


class BadRowError(StreamError):
    """A bad row has stopped a run."""

    def __init__(self, row: BadRow):
        super().__init__(str(row))
        self.row = row


@dataclass(frozen=True, slots=True)
class Chunk:
    """Successive rows of a stream.

    Parameters
    ----------
    columns : dict of columns
        The features, by name, in the stream's order; those of an array are called 0, 1, …
    y : array of float, optional
        The targets: finite, or NaN where a row has none. None if the stream has no target; of
        several, a column each.
    source : str
        The file that the rows are from, or the name of the stream.
    numbers : array of int
        The line or row of each good row, from 1; or its `message_number`.
    next : dict
        The position after the chunk, at which reading resumes.
    done : int
        How much of `Stream.size` is behind once the chunk is.
    bad : sequence of BadRow
        The rows left out, in order.
    times : array of float, optional
        The time of each row in seconds, if the stream has a time column.
    ids : dict of lists
        The columns of row identifiers, by name, as text; None where one is missing.
    """

    columns: dict[Any, Column]
    y: FloatArray | None
    source: str
    numbers: IntArray
    next: Position
    done: int
    bad: Sequence[BadRow] = ()
    times: FloatArray | None = None
    ids: Mapping[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, start: int, stop: int) -> tuple[dict[Any, Column], FloatArray]:
        """Return the features and targets of some of the rows."""
        if start == 0 and stop >= len(self):
            columns = self.columns
        else:
            columns = {name: column[start:stop] for name, column in self.columns.items()}
        return columns, np.empty(0) if self.y is None else self.y[start:stop]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the features of each row as a dict, None where a value is missing."""
        return rows_of(self.columns)


def rows_of(columns: Mapping[Any, Column]) -> Iterator[dict[str, Any]]:
    """Yield the rows of columns as dicts, None where a value is missing.

    Examples
    --------
    >>> list(rows_of({"age": np.array([31.0, np.nan]), "city": ["Oslo", None]}))
    [{'age': 31.0, 'city': 'Oslo'}, {'age': None, 'city': None}]
    """
    names = list(columns)
    for values in zip(*map(_plain, columns.values()), strict=True):
        yield dict(zip(names, values, strict=True))


def _plain(column: Column) -> Sequence[Any]:
    if not isinstance(column, np.ndarray):
        return column
    values: list[Any] = column.tolist()
    for place in np.flatnonzero(np.isnan(column)):
        values[place] = None
    return values


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """The inferred type and format of a column of a file.

    Parameters
    ----------
    name : str
        The column.
    kind : {"number", "category", "time", "true or false", "id", "left out"}
        What its values become.
    is_target : bool
        Whether it is predicted.
    format : str, optional
        The format of times, or of numbers that are not written plainly.
    parts : tuple of str
        What is added for a time.
    example : str, optional
        Its first value that is not missing.
    missing, distinct, rows : int
        How many of the first rows have no value, how many different ones there are, and how many
        rows were looked at.
    warnings : tuple of str
        Possible mistakes, and their remedies.
    """

    name: str
    kind: str
    is_target: bool = False
    format: str | None = None
    parts: tuple[str, ...] = ()
    example: str | None = None
    missing: int = 0
    distinct: int = 0
    rows: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def read_as(self) -> str:
        """What its values become, in words.

        Examples
        --------
        >>> ColumnNote("sold", "time", format="%d.%m.%Y", parts=("weekday",)).read_as
        'time as %d.%m.%Y; also its weekday'
        """
        words = "target" if self.is_target else self.kind
        if self.format is not None:
            words += f" as {self.format}" if self.kind == "time" else f" like {self.format}"
        if self.parts:
            words += f"; also its {', '.join(self.parts)}"
        return words


@dataclass(eq=False)
class Stream(ABC):
    """Rows in order that can be read from any position, in chunks, in constant memory.

    Parameters
    ----------
    name : str
        What messages and reports call it.
    features : mapping of names to {"number", "category"}
        The features, in order.
    target : str, optional
        The name of the target; None if there is none.
    size : int, optional
        What `Chunk.done` counts up to (bytes, rows), None if that is not known.
    length : int, optional
        How many rows there are, None if that is not known.
    declared : tuple of str
        The features that were declared to be categories: their labels may be whole numbers.
    time : str, optional
        The column of times, if `Chunk.times` are there.
    time_formats : tuple of pairs of str
        The columns of times or numbers that are read by a format, with that format: one of
        `datetime.strptime`, a unit such as "milliseconds", or the number 1234.5 as it is written.
    column_notes : tuple of ColumnNote
        How each column of a file is read, found by its first rows; for people.
    encoding : str
        The encoding of a text, as it was given or found.
    ids : tuple of str
        The columns of row identifiers, if `Chunk.ids` are there.
    sample : bytes, optional
        The first rows, by which columns were found, if they may not be there when reading resumes
        later; None if they are.
    targets : tuple of names
        Those of several targets, of which `Chunk.y` has a column each, and `target` is a text that
        names all; none if there is one.
    rules : tuple of Rule
        How the columns of a file become features; none if the rows are no file's.
    """

    unit: ClassVar[Unit] = "row"
    """What `Chunk.numbers` count."""

    name: str
    features: Mapping[Any, Kind]
    target: str | None = None
    size: int | None = None
    length: int | None = None
    declared: tuple[str, ...] = ()
    time: str | None = None
    time_formats: tuple[tuple[str, str], ...] = ()
    column_notes: tuple[ColumnNote, ...] = ()
    encoding: str = "utf-8"
    ids: tuple[str, ...] = ()
    sample: bytes | None = None
    targets: tuple[Label, ...] = ()
    rules: tuple[Rule, ...] = ()

    @property
    def model_schema(self) -> Schema:
        """How rows like these are read, for a model that learns them."""
        named = (self.target,) if self.target is not None else ()
        features = set(self.features)
        rules = tuple(rule for rule in self.rules if {rule.name, *rule.derived} & features)
        return Schema(rules, self.targets or named, self.time, self.ids)

    @abstractmethod
    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on.

        Parameters
        ----------
        start : dict, optional
            `Chunk.next` of an earlier chunk; the beginning if not given.
        most_rows : int
            No chunk has more rows, the bad ones included. How rows are grouped into chunks has
            no other meaning.

        Raises
        ------
        StreamError
            If no more rows can be read, whatever is done with bad ones.
        """

    @property
    def calendar(self) -> Calendar | None:
        """The time zone and the special days of the times of rows; None if they have none."""
        own: Mapping[Any, Calendar] = self.model_schema.calendars
        name = self.time if self.time in own else self.clock
        return own.get(name) if name is not None else None

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What distinguishes this stream from others, and stays the same when rows are appended."""

    @property
    def clock(self) -> Label | None:
        """The feature that is the time of rows, in seconds since 1970; None if there is none."""
        return None

    def __iter__(self) -> Iterator[tuple[dict[str, Any], float]]:
        """Yield pairs of a dict of features and a target, NaN if a row has none.

        A bad row stops all by BadRowError.
        """
        for chunk in self.chunks():
            good = chunk.bad[0].after if chunk.bad else len(chunk)
            targets = [float("nan")] * len(chunk) if chunk.y is None else chunk.y.tolist()
            yield from zip(chunk.rows(), targets[:good], strict=False)
            if chunk.bad:
                raise BadRowError(chunk.bad[0])


class DerivedStream(Stream):
    """A stream that changes what another one yields, and is as that in all else."""

    def __init__(self, stream: Stream, *, unit: Unit | None = None, **changed: Any) -> None:
        self.unit = unit or stream.unit  # type: ignore[misc]
        own = {each.name: getattr(stream, each.name) for each in fields(Stream)}
        super().__init__(**{**own, **changed})
        self._stream = stream

    @property
    def clock(self) -> Label | None:
        """That of the other stream."""
        return self._stream.clock

    @property
    def fingerprint(self) -> str:
        """That of the other stream."""
        return self._stream.fingerprint
