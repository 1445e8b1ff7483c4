"""What Arrow's types hold: numbers, times, booleans or text; and which text is missing."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows.words import BLANKS, MISSING
from sapwood.streams.stream import StreamError

__all__ = [
    "BLANKS",
    "MISSING",
    "NUMBER",
    "as_array",
    "as_numpy",
    "check_type",
    "first_texts",
    "is_number",
    "is_readable",
    "is_text",
    "is_time",
    "stored_type",
    "texts_of",
    "tidy",
    "unreadable",
]

NUMBER = r"(?i)^[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf|infinity|nan(\([a-z0-9_]*\))?)$"
"""How numbers are written in text."""


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind dictionaries, run ends and extensions.

    Examples
    --------
    >>> stored_type(pa.dictionary(pa.int8(), pa.date32()))
    DataType(date32[day])
    """
    if isinstance(kind, pa.BaseExtensionType):
        return stored_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return stored_type(kind.value_type)
    return kind


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is of numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_time(kind: pa.DataType) -> bool:
    """Whether a type is of times, dates, times of day or durations."""
    return bool(pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is of text, or of bytes that may be some."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def as_numpy(array: pa.Array) -> NDArray[Any]:
    """Return numbers or booleans without nulls, numbers as they are in memory.

    Arrow's own `to_numpy` imports pandas, which takes longer than many a file.

    Examples
    --------
    >>> as_numpy(pa.array([1.5, 2.5, 3.5])[1:]), as_numpy(pa.array([True, False]))
    (array([2.5, 3.5]), array([ True, False]))
    """
    if pa.types.is_boolean(array.type):
        return as_numpy(array.cast(pa.uint8())).view(np.bool_)
    letter = "f" if pa.types.is_floating(array.type) else "i"
    letter = "u" if pa.types.is_unsigned_integer(array.type) else letter
    kind = np.dtype(f"{letter}{array.type.bit_width // 8}")
    content = array.buffers()[1]
    if content is None or not len(array):
        return np.empty(0, dtype=kind)
    return np.frombuffer(content, kind, len(array), array.offset * kind.itemsize)


def is_readable(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers, times, booleans or text."""
    known = (is_number, is_time, is_text, pa.types.is_boolean, pa.types.is_null)
    return any(belongs(stored_type(kind)) for belongs in known)


def check_type(source: str, name: str, kind: pa.DataType, is_target: bool = False) -> None:
    """Raise StreamError if no value of a type is a number, a time or text.

    Examples
    --------
    >>> check_type("a.parquet", "tags", pa.list_(pa.string()))
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: a.parquet: column 'tags' holds list<item: string>, which ...
    """
    if not is_readable(kind):
        raise unreadable(source, name, f"{kind}, which is", is_target)


def unreadable(source: str, name: str, holds: str, is_target: bool) -> StreamError:
    """Return the error for a column whose values can be no feature, and no target."""
    remedy = "name another column to predict" if is_target else f"leave it out, as by --drop {name}"
    return StreamError(
        f"{source}: column {validation.shown(name)} holds {holds} neither numbers, times nor text; "
        f"{remedy}"
    )


def as_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array of a plain type, or a dictionary of one; text as strings.

    The strings may be no UTF-8, as those of a Parquet file may.

    Examples
    --------
    >>> as_array(pa.chunked_array([[b"a"], [b"b"]])).to_pylist()
    ['a', 'b']
    """
    if isinstance(column, pa.ChunkedArray):
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        return as_array(column.storage)
    if pa.types.is_run_end_encoded(column.type):
        return as_array(pc.run_end_decode(column))
    if pa.types.is_dictionary(column.type):
        entries = as_array(column.dictionary)
        return pa.DictionaryArray.from_arrays(column.indices, entries)
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())  # which all of pyarrow knows
    if not is_text(column.type) or pa.types.is_string(column.type):
        return column
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    return column.cast(pa.string(), safe=False)  # unsafe: bytes that are no UTF-8 are kept


def tidy(text: pa.Array) -> pa.Array:
    """Return text without blanks around it, null where it stands for a missing value.

    Examples
    --------
    >>> tidy(pa.array([" 7", "?", "NA "])).to_pylist()
    ['7', None, None]
    """
    trimmed = pc.ascii_trim(text, characters=BLANKS)
    missing = pc.is_in(trimmed, value_set=pa.array(MISSING, text.type))
    return pc.if_else(missing, None, trimmed) if pc.any(missing).as_py() else trimmed


def texts_of(column: pa.Array | pa.ChunkedArray) -> Iterator[str]:
    """Yield the values of a column of text that are not null, whatever their encoding.

    Examples
    --------
    >>> list(texts_of(pa.chunked_array([["a", None], ["b"]])))
    ['a', 'b']
    """
    for value in column.drop_null():
        yield value.as_buffer().to_pybytes().decode(errors="replace")


def first_texts(values: pa.Array) -> Iterator[str]:
    """Yield the values of a sample that are not missing as trimmed text.

    Examples
    --------
    >>> list(first_texts(pa.array([" 7", "?", None]))), list(first_texts(pa.array([7, None])))
    (['7'], ['7'])
    """
    array = as_array(values)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_duration(array.type):
        array = array.cast(pa.int64())
    if not pa.types.is_string(array.type):
        array = array.cast(pa.string())
    for value in tidy(array).drop_null():
        yield value.as_buffer().to_pybytes().decode(errors="replace")
