"""Long lists of a header as arrays: labels, names, the keys of series.

JSON takes many times its size to be read, so that a header may not be large; arrays may. Lists of
plain values, and lists of equally long rows of them, are taken out of a header and put back.
"""

import copy
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NAMES", "packed", "put_back", "taken_out", "unpacked"]

Array = NDArray[Any]
Entry = list[Any]  # the path of a list in a header, how many entries it has, and of what length

NAMES = ("list kinds", "list numbers", "list text")
"""The arrays: the kind of each value; numbers, or the bytes that a text has; and all text."""

LONG = 64  # entries of a list that is taken out, or
WIDE = 1024  # characters of its first values
NULL, FALSE, TRUE, SIGNED, UNSIGNED, FLOAT, TEXT, DIGITS = range(8)
SINGLES = {NULL: None, FALSE: False, TRUE: True}
FLAT = 0  # the length of entries that are plain values


def taken_out(header: dict[str, Any]) -> tuple[dict[str, Any], list[Entry], dict[str, Array]]:
    """Return a header without its long lists, where they were, and what was in them.

    - `header`: in terms of JSON; it is not changed.
    Empty lists take the place of long ones. Without long lists, the header is returned itself, and
    there are no arrays for `put_back`.

    Examples
    --------
    >>> header, entries, arrays = taken_out({"labels": [[], [f"shop {i}" for i in range(99)]]})
    >>> header, entries
    ({'labels': [[], []]}, [[['labels', 1], 99, 0]])
    >>> put_back(header, entries, arrays)["labels"][1][:2]
    ['shop 0', 'shop 1']
    """
    found = list(_long_lists(header, []))
    if not found:
        return header, [], {}
    entries: list[Entry] = []
    values: list[Any] = []
    for path, owned, length in found:
        entries.append([path, len(owned), length])
        if length == FLAT:
            values += owned
        else:
            for row in owned:
                values += row
    rest = _without([path for path, _, _ in found], header)
    return rest, entries, dict(zip(NAMES, _packed(values), strict=True))


def put_back(header: dict[str, Any], entries: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return a header with its long lists; nothing of the arguments is trusted.

    - Raises ValueError if they are not what `taken_out` returned.
    """
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise ValueError("its lists have no place")
    values = _unpacked(*(arrays[name] for name in NAMES))
    start = 0
    for path, count, length in entries:
        end = start + count * max(length, 1)
        if end > len(values):
            break
        own = values[start:end]
        if length != FLAT:
            own = [own[row : row + length] for row in range(0, len(own), length)]
        _owner(header, path)[path[-1]] = own
        start = end
    else:
        if start == len(values):
            return header
    raise ValueError(f"its lists do not have the {len(values)} values that are there")


def _long_lists(value: Any, path: list[Any]) -> Iterator[tuple[list[Any], list[Any], int]]:
    """Yield the path of each list to take out, the list, and the length of its entries."""
    if isinstance(value, dict):
        for key, own in value.items():
            yield from _long_lists(own, [*path, key])
    elif isinstance(value, list):
        length = _length(value)
        if length is not None:
            yield path, value, length
        elif value and not _is_plain(value[0]):
            for place, own in enumerate(value):
                yield from _long_lists(own, [*path, place])


def _length(values: list[Any]) -> int | None:
    """Return the length of the entries of a list to take out; None if it stays."""
    if len(values) < LONG and _characters(values) < WIDE:
        return None
    if all(map(_is_plain, values)):
        return FLAT
    first = values[0]
    if not isinstance(first, list) or not first:
        return None
    length = len(first)
    same = all(
        type(row) is list and len(row) == length and all(map(_is_plain, row)) for row in values
    )
    return length if same else None


def _characters(values: list[Any]) -> int:
    return sum(len(value) for value in values if type(value) is str)


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (str, int, float, bool)


def _without(paths: list[list[Any]], header: dict[str, Any]) -> dict[str, Any]:
    """Return a header with empty lists at some paths, sharing what is elsewhere."""
    rest = copy.copy(header)
    copied: set[tuple[Any, ...]] = {()}
    for path in paths:
        owner: Any = rest
        for depth, key in enumerate(path[:-1]):
            if tuple(path[: depth + 1]) not in copied:
                owner[key] = copy.copy(owner[key])
                copied.add(tuple(path[: depth + 1]))
            owner = owner[key]
        owner[path[-1]] = []
    return rest


def _packed(values: list[Any]) -> tuple[Array, Array, Array]:
    kinds = np.fromiter(map(_kind, values), np.uint8, len(values))
    numbers = np.zeros(len(values), np.int64)
    for kind, dtype in ((SIGNED, np.int64), (UNSIGNED, np.uint64), (FLOAT, np.float64)):
        places = np.flatnonzero(kinds == kind)
        own = np.array([values[place] for place in places], dtype)
        if not np.isfinite(own).all():
            raise ValueError("a number is not finite")
        numbers[places] = own.view(np.int64)
    texts: list[bytes] = []
    places = np.flatnonzero(kinds >= TEXT)
    for place in places.tolist():
        texts.append(str(values[place]).encode("utf-8", "surrogatepass"))
        numbers[place] = len(texts[-1])
    return kinds, numbers, np.frombuffer(b"".join(texts), np.uint8)


def _kind(value: Any) -> int:
    if type(value) is str:
        return TEXT
    if value is None:
        return NULL
    if type(value) is bool:
        return TRUE if value else FALSE
    if type(value) is float:
        return FLOAT
    if -(2**63) <= value < 2**63:
        return SIGNED
    return UNSIGNED if 0 <= value < 2**64 else DIGITS


def _unpacked(kinds: Array, numbers: Array, text: Array) -> list[Any]:
    """Return the values of the arrays of lists; nothing of them is trusted."""
    types = [array.dtype.str for array in (kinds, numbers, text)]
    if types != [np.dtype(each).str for each in (np.uint8, np.int64, np.uint8)]:
        raise ValueError("its lists are arrays of other types")
    if not (kinds.ndim == numbers.ndim == text.ndim == 1 and len(kinds) == len(numbers)):
        raise ValueError("its lists are arrays of other shapes")
    if kinds.max(initial=0) > DIGITS:
        raise ValueError("a value of its lists is of no kind")
    lengths = numbers[kinds >= TEXT]
    fits = bool(((lengths >= 0) & (lengths <= len(text))).all())
    if not fits or sum(lengths.tolist()) != len(text):
        raise ValueError("its lists have another length of text")
    if not np.isfinite(numbers.view(np.float64)[kinds == FLOAT]).all():
        raise ValueError("a number of its lists is not finite")
    if numbers[kinds < SIGNED].any():
        raise ValueError("a value of its lists is none, and a number")
    return list(_values(kinds.tolist(), numbers, text.tobytes()))


def _values(kinds: list[int], numbers: Array, text: bytes) -> Iterator[Any]:
    floats, words = numbers.view(np.float64).tolist(), numbers.view(np.uint64).tolist()
    start = 0
    for kind, number, real, word in zip(kinds, numbers.tolist(), floats, words, strict=True):
        if kind >= TEXT:
            end = start + number
            found = text[start:end].decode("utf-8", "surrogatepass")
            yield found if kind == TEXT else _whole(found)
            start = end
        elif kind == SIGNED:
            yield number
        elif kind in SINGLES:
            yield SINGLES[kind]
        else:
            yield real if kind == FLOAT else word


def _whole(digits: str) -> int:
    """Return an integer beyond 64 bits, if it is written as such."""
    most = sys.get_int_max_str_digits() or len(digits)
    if len(digits) > most or not digits.removeprefix("-").isdecimal() or not digits.isascii():
        raise ValueError("a value of its lists is no integer")
    return int(digits)


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 3
        and isinstance(entry[0], list)
        and bool(entry[0])
        and all(type(size) is int and 0 <= size < 2**53 for size in entry[1:])
    )


def _owner(header: Any, path: list[Any]) -> Any:
    """Return the dict or list that a path leads to an empty list of; or raise ValueError."""
    owner = header
    for key in path[:-1]:
        owner = _at(owner, key)
    if _at(owner, path[-1]) != []:
        raise ValueError("a list has no place in the header")
    return owner


def _at(owner: Any, key: Any) -> Any:
    if type(owner) is dict and type(key) is str and key in owner:
        return owner[key]
    if type(owner) is list and type(key) is int and 0 <= key < len(owner):
        return owner[key]
    raise ValueError("a list has no place in the header")


def packed(value: Any) -> NDArray[np.uint8]:
    """Return JSON as an array, as headers of files are held short."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def unpacked(array: Array) -> Any:
    """Return the value of an array that `packed` returned."""
    return json.loads(array.tobytes())
