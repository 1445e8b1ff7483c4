"""Rows as JSON objects, one a line.

The columns are the keys of the first 1,000 lines, or of those in the first 256 KiB. A column holds
numbers, booleans or times of ISO 8601 if nine of ten of its values are such; else text. A key that
is not there is a missing value, as null is and the text that is missing in other files. Where a
model is there already, keys that it does not know are passed over, and a pipe is waited for no
longer than for its first line: a column that the model knows as numbers is then what its first
value looks like that is a number, a boolean or a time.

Values are converted as in a CSV file: in a column of numbers, "1.5" is a number too. ``NaN`` is a
missing value, ``Infinity`` is not finite. In a column of times a number is a time only if it is one
by the column's format. Blank lines are passed over.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from sapwood import validation
from sapwood.streams import bad_rows
from sapwood.streams.arrow import BLANKS, MISSING, as_array, as_numpy, texts_of, unreadable
from sapwood.streams.blocks import BOM, HEAD, LONGEST_LINE, Block, TextSource
from sapwood.streams.convert import LARGEST_WHOLE, arrow_type, convert
from sapwood.streams.first_rows import FirstRows
from sapwood.streams.schema import PARTS, Found, ReadOptions, Role, Rule, Schema
from sapwood.streams.stream import (
    BadRow,
    Chunk,
    IntArray,
    StreamError,
)
from sapwood.streams.text import Flaw, TextStream
from sapwood.streams.text_kinds import ENOUGH
from sapwood.streams.times import is_iso

__all__ = ["JSONLinesStream"]

SAMPLE_ROWS = 1000
MOST_DIGITS = 4000
"""Digits from which on whole numbers are infinite; Python rejects some more."""
MANY = 16
"""Lines from which on it pays to have pyarrow parse them."""

WORDS = re.compile(rb"[:,\[]\s*-?(Inf|NaN)")
"""Numbers that are words."""
NUMBERS = {int, float, bool, type(None)}


class JSONLinesStream(TextStream):
    r"""The rows of a text with a JSON object in each line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b'{"city": "Oslo", "rent": 700}\n{"rent": "much"}\n{"rent": 900}')
    ...     file.flush()
    ...     [chunk] = JSONLinesStream(TextSource(file.name), ReadOptions("rent")).chunks()
    >>> chunk.columns, chunk.y, chunk.numbers
    ({'city': ['Oslo', None]}, array([700., 900.]), array([1, 3]))
    >>> str(chunk.bad[0])
    "/..., line 2, column 'rent': target is not a number ('much'); fix the value or leave ..."
    """

    def __init__(self, source: TextSource, read_options: ReadOptions) -> None:
        soon = source.size is None and read_options.known is not None
        columns = _columns(source, soon, read_options.sample_rows or SAMPLE_ROWS)
        sample = {} if soon else {name: _sample(values) for name, values in columns.items()}
        first = FirstRows(source.name, sample, _found(columns, read_options, soon), read_options)
        schema = first.schema
        _check_nested(source.name, schema, columns)
        super().__init__(source, schema, {"byte": 0, "line": 1})
        self.column_notes = first.notes
        self._keys = frozenset(schema.columns) if read_options.known is None else None
        self._labelled = [rule.name for rule in schema.read if rule.role == "category"]

    def _use(self, schema: Schema) -> None:
        super()._use(schema)
        types = [(rule.name, _json_type(rule)) for rule in schema.read]
        self._parse_options = pa.json.ParseOptions(pa.schema(types))

    def _parsed_at_once(self, block: Block) -> dict[str, pa.ChunkedArray] | None:
        """Return the columns of a block, parsed by pyarrow; None if Python's parser may differ.

        The two parsers differ in -0 and in the names of infinity that they accept, and Python's
        reports what is wrong.
        """
        if block.lines < MANY or not _has_objects_in_lines(block.data):
            return None
        if (b"Inf" in block.data or b"NaN" in block.data) and WORDS.search(block.data):
            return None
        options = pa.json.ReadOptions(use_threads=False, block_size=len(block.data) + 1)
        try:
            block.data.decode()
            table = pa.json.read_json(pa.BufferReader(block.data), options, self._parse_options)
        except (UnicodeDecodeError, pa.ArrowException):
            return None
        names = table.column_names
        if table.num_rows != block.lines or not self._knows(names):
            return None
        columns = dict(zip(names, table.columns, strict=True))
        numbers = (
            columns[rule.name] for rule in self.schema.read if _json_type(rule) == pa.float64()
        )
        keys = (columns[rule.name] for rule in self.schema.read if rule.exact)
        if any(map(_may_differ, numbers)) or any(map(_are_large, keys)):
            return None
        return columns

    def read(self, block: Block) -> Chunk:
        """Return the rows of a block."""
        flaws: dict[int, Flaw] = {}
        columns: Mapping[str, pa.Array | pa.ChunkedArray]
        at_once = self._parsed_at_once(block)
        if at_once is not None:
            places, columns = np.arange(block.lines), at_once
            self._settle(lambda name: texts_of(at_once[name]))
        else:
            rows, flaws = self._parsed_by_line(block)
            places = np.fromiter(rows, np.int64, len(rows))
            self._settle(lambda name: _texts(row.get(name) for row in rows.values()))
            columns = {
                rule.name: _array(rule, [row.get(rule.name) for row in rows.values()])
                for rule in self.schema.read
            }
        converted = convert(self.schema, columns, len(places))
        for fault in converted.faults:
            flaws[int(places[fault.row])] = Flaw(fault.reason, fault.column, fault.value)
        if converted.good is not None:
            places = places[converted.good]
        bad = self._bad_rows(block, flaws, places) if flaws else ()
        return self._as_chunk(block, converted, block.line + places, bad)

    def _parsed_by_line(self, block: Block) -> tuple[dict[int, dict[str, Any]], dict[int, Flaw]]:
        """Return the objects of a block and what is wrong with other lines, by their places."""
        rows: dict[int, dict[str, Any]] = {}
        flaws: dict[int, Flaw] = {}
        for place, line in enumerate(block.data.split(b"\n")):
            if not line or line.isspace():
                continue
            try:
                rows[place] = row = _parsed(line)
                self._check(row)
            except Flaw as flaw:
                rows.pop(place, None)
                flaws[place] = flaw
        return rows, flaws

    def _check(self, row: Mapping[str, Any]) -> None:
        """Raise `Flaw` if an object is not one that becomes a row."""
        if not self._knows(row):
            unknown = next(key for key in row if not self._knows([key]))
            raise Flaw(bad_rows.UNKNOWN_COLUMN, unknown, _text(row[unknown]))
        for name in self._labelled:
            if isinstance(row.get(name), list | dict):
                raise Flaw(bad_rows.NO_LABEL, name, _text(row[name]))

    def _knows(self, keys: Iterable[str]) -> bool:
        return self._keys is None or self._keys.issuperset(keys)

    def _bad_rows(self, block: Block, flaws: Mapping[int, Flaw], good: IntArray) -> list[BadRow]:
        lines = block.data.split(b"\n")
        return [
            self._bad_row(
                flaw,
                block.line + place,
                lines[place].rstrip(b"\r"),
                int(np.searchsorted(good, place)),
            )
            for place, flaw in sorted(flaws.items())
        ]


# Parsing


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise Flaw(bad_rows.MALFORMED_JSON, None, f"key {validation.shown(twice)} stands twice")
    return found


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < MOST_DIGITS else float(digits)


_decode = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole).decode


def _parsed(line: bytes) -> dict[str, Any]:
    """Return the object of a line; raise `Flaw` if it holds none, or more."""
    try:
        value = _decode(line.decode())
    except UnicodeDecodeError:
        spoilt = line.decode(errors="backslashreplace")
        raise Flaw(bad_rows.BAD_ENCODING, None, spoilt) from None
    except json.JSONDecodeError as error:
        complaint = f"{error.msg}: column {error.colno}"
        raise Flaw(bad_rows.MALFORMED_JSON, None, complaint) from None
    except RecursionError:
        raise Flaw(bad_rows.MALFORMED_JSON, None, "too many levels") from None
    if not isinstance(value, dict):
        raise Flaw(bad_rows.MALFORMED_JSON, None, f"no object: {_text(value)}")
    return value


def _has_objects_in_lines(text: bytes) -> bool:
    r"""Whether all lines begin with "{" and end with "}".

    If they do, and the text is valid, then there is an end of an object at each end of a line, as
    within a value "{" cannot follow "}" with nothing but blanks between.
    """
    text = text.removesuffix(b"\n").removesuffix(b"\r").replace(b"\r\n", b"\n")
    inner = text.count(b"\n")
    return text[:1] == b"{" and text[-1:] == b"}" and text.count(b"}\n{") == inner


def _may_differ(numbers: pa.ChunkedArray) -> bool:
    """Whether there are infinite numbers, or -0."""
    values = as_numpy(as_array(numbers).fill_null(0.0))
    return bool((np.isinf(values) | (np.signbit(values) & (values == 0.0))).any())


def _are_large(numbers: pa.ChunkedArray) -> bool:
    """Whether there are numbers that doubles may not hold."""
    values = as_numpy(as_array(numbers).fill_null(0.0))
    return bool((np.abs(values) > LARGEST_WHOLE).any())


def _json_type(rule: Rule) -> pa.DataType:
    """Return the type as which pyarrow parses a column."""
    return arrow_type(replace(rule, exact=False))


# Values


def _array(rule: Rule, values: Sequence[Any]) -> pa.Array:
    """Return the values of a column: as they are if they are all of its type, else as text."""
    types = set(map(type, values))
    if rule.role == "number" and types <= NUMBERS and not rule.exact:
        try:
            numbers = np.array(values, dtype=np.float64)
        except OverflowError:
            pass  # as text it is found to be infinite
        else:
            missing = [value is None for value in values] if type(None) in types else None
            return pa.array(numbers, mask=None if missing is None else np.array(missing))
    if rule.role == "boolean" and types <= {bool, type(None)}:
        return pa.array(values, pa.bool_())
    texts = [None if value is None else _text(value, rule.role) for value in values]
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:  # by half of a surrogate pair, which makes the row bad
        encoded = [None if text is None else text.encode(errors="surrogatepass") for text in texts]
        return pa.array(encoded, pa.binary())


def _text(value: Any, role: Role | None = None) -> str:
    """Return a value as a CSV file would have it."""
    if isinstance(value, bool):
        return str(int(value)) if role == "number" else str(value).lower()
    if role == "boolean" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, int | float) else validation.shown(value)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    return (_text(value) for value in values if value is not None)


def _sample(values: Sequence[Any]) -> pa.Array:
    """Return first values as text; lists and objects, and what has no encoding, are missing."""
    texts = [
        None if value is None or isinstance(value, list | dict) else _text(value)
        for value in values
    ]
    return pa.array([text if text and _is_text(text) else None for text in texts], pa.string())


# The beginning


def _columns(source: TextSource, soon: bool, sample: int) -> dict[str, list[Any]]:
    """Return the values of the first rows, in the order of the keys' appearance."""
    rows = _first_rows(source, soon, sample)
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            if _is_text(name):  # a row with another key is rejected later, for an unknown column
                columns.setdefault(name, []).append(value)
    for name in columns:
        if len(name) > validation.LONGEST:
            raise StreamError(
                f"{source.name}: the key {validation.shown(name)} has {len(name)} characters; use at "
                f"most {validation.LONGEST}"
            )
    return columns


def _is_text(name: str) -> bool:
    """Whether a key has no half of a surrogate pair, which no encoding knows."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _check_nested(source: str, schema: Schema, columns: Mapping[str, Sequence[Any]]) -> None:
    """Raise StreamError if a column that is read holds lists or objects in most rows."""
    rows = max(map(len, columns.values()), default=0)
    for rule in schema.read:
        nested = sum(isinstance(value, list | dict) for value in columns.get(rule.name, ()))
        if nested > rows / 2:
            holds = "lists or objects, which are"
            raise unreadable(source, rule.name, holds, rule == schema.target)


def _first_rows(source: TextSource, soon: bool, sample: int) -> list[dict[str, Any]]:
    """Return the objects of the first lines; of the first one, if there is no time for more."""
    source.find_encoding(1 if soon else min(sample, SAMPLE_ROWS))
    text, ended = source.head(1, LONGEST_LINE)
    most = max(HEAD, text.find(b"\n") + 1 or len(text))
    if not soon:
        text, ended = source.head(sample, most)
    *lines, last = text[:most].removeprefix(BOM).split(b"\n")
    if ended and len(text) <= most:
        lines.append(last)
    lines = [line for line in lines if line.strip()]
    rows, complaint = [], "there are blank lines only"
    for line in lines[: 1 if soon else sample]:
        try:
            rows.append(_parsed(line))
        except Flaw as flaw:
            complaint = f"{flaw.reason} ({flaw.value})"
    is_array = bool(lines) and lines[0].lstrip().startswith(b"[")
    if is_array and (len(lines) == 1 or not lines[0].rstrip().endswith(b"]")):
        raise StreamError(
            f"{source.name} is one JSON array: write one object a line, as by `jq -c '.[]'`"
        )
    if not (rows or soon):
        raise StreamError(
            f"{source.name} has no JSON object in its first lines: {complaint}; write one object "
            "a line, as by `jq -c .`"
        )
    return rows


def _looks(values: Sequence[Any]) -> Found | None:
    """Return what most values look like, nine of ten at least; None if all are missing."""
    counts: Counter[str] = Counter()
    for value in values:
        if isinstance(value, str) and value.strip(BLANKS) not in MISSING:
            counts["time" if is_iso(value.strip(BLANKS)) else "text"] += 1
        elif isinstance(value, bool):
            counts["boolean"] += 1
        elif isinstance(value, int) or (isinstance(value, float) and not math.isnan(value)):
            counts["number"] += 1
        elif isinstance(value, list | dict):
            counts["text"] += 1
    enough = ENOUGH * counts.total()
    if not counts:
        return None
    if counts["boolean"] >= enough:
        return "boolean"
    if counts["boolean"] + counts["number"] >= enough:
        return "number"
    return "time" if counts["time"] >= enough else "text"


def _found(
    columns: Mapping[str, Sequence[Any]], read_options: ReadOptions, soon: bool
) -> dict[str, Found | None]:
    """Return the types of all columns, None for those that are decided by later rows.

    The columns that a model knows are included, although the first rows may lack them. If there was
    no row at all, all other columns that the options name are included too.
    """
    looks = {name: None if soon else _looks(values) for name, values in columns.items()}
    absent: Found | None = None if soon else "number"
    expected: dict[str, Found | None] = {}
    for name, kind in (read_options.known or {}).items():
        column, _, part = name.rpartition(".")
        days = (
            read_options.known_calendars[column].names
            if column in read_options.known_calendars
            else ()
        )
        if column and (part in PARTS or part in days) and name not in looks:
            expected[column] = "time"
        else:
            expected.setdefault(name, "text" if kind == "category" else absent)
    named = [name for name in (read_options.target, read_options.time) if name is not None]
    wished = (
        ()
        if columns or read_options.known is None
        else (*named, *read_options.drop, *read_options.time_formats)
    )
    names = dict.fromkeys((*looks, *expected, *wished))
    return {name: looks.get(name) or expected.get(name, absent) for name in names}
