"""Model files: a header in JSON and named arrays in one checked file.

::

    magic (8 bytes) | version, length of the header (two uint32) | size of the file (uint64)
    header: {"kind", "header", "arrays"} in JSON, filled up with spaces
    arrays: little-endian, each filled up with zeros
    BLAKE2b of all that is before (16 bytes)

In version 2 the long lists of the header are in three more arrays, which come last, and the JSON
has an entry "lists" with their places (`sapwood.storage.lists`). A header without long lists is
written as version 1. An entry "written_by" holds the release that has written the file; it is for
people and is not used when the file is read.

All parts start at a multiple of 8. Every version of the format has the same first 24 and last 16
bytes, which distinguishes a newer file from a damaged one. A CRC-32 always detects one flipped byte,
but misses one in 2**32 of larger damages. BLAKE2b misses one in 2**128 of any damages, which is
practically none, and is as fast as the disk.

Reading runs no code and trusts nothing: each length is checked against the bytes that are really
there before it is used. What the arrays mean is for the caller to check.
"""

import errno
import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Mapping
from functools import cache
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.storage import lists
from sapwood.storage.atomic import StrPath, write_atomically

__all__ = [
    "ModelFileError",
    "damaged",
    "pack",
    "read",
    "read_bytes",
    "unpack",
    "unpack_any",
    "write",
]

Array = NDArray[Any]

MAGIC = b"\x89Sapwood"
VERSION = 2
WITHOUT_LISTS = 1  # the version of files whose header has no long lists
PREFIX = struct.Struct("<8sIIQ")
DIGEST = 16
LISTS = "lists"
WRITTEN_BY = "written_by"  # the release; files of 0.1.0 have no such entry
DEEPEST = 32  # levels of the JSON
LONGEST = 1 << 26  # bytes of the JSON, which takes many times as many when it is read
LARGEST = int(np.iinfo(np.intp).max)  # bytes of an array
PLAIN = ("|b1", "|i1", "|u1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<i8", "<u8", "<f8")


class ModelFileError(ValueError):
    """A file is not a model that can be loaded; the message names the cause and the remedy."""


def damaged(source: str, complaint: str) -> ModelFileError:
    """Return the error for content that no release has written.

    Examples
    --------
    >>> damaged("my.model", "node 3 is its own child")
    ModelFileError('my.model is damaged: node 3 is its own child; restore it from a copy')
    """
    return ModelFileError(f"{source} is damaged: {complaint}; restore it from a copy")


@cache
def release() -> str:
    """Return the version of the package."""
    from sapwood import __version__

    return str(__version__)


def write(path: StrPath, kind: str, header: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a model file: it is there as a whole, or the old one still is.

    Parameters are as for `pack` and `write_atomically`, and so are the errors.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "my.model")
    ...     write(path, "stump", {"depth": 1}, {"means": np.array([0.5, 2.0])})
    ...     read(path, "stump")
    ({'depth': 1}, {'means': array([0.5, 2. ])})
    """
    write_atomically(path, pack(kind, header, arrays))


def read(path: StrPath, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a model file; see `write` for an example.

    Parameters and errors are as for `unpack`; an OSError is raised if the file cannot be read.
    """
    data, source = read_bytes(path)
    return unpack(data, kind, source)


def read_bytes(path: StrPath) -> tuple[bytes, str]:
    """Return the bytes of a file that looks like a model file, and its name for messages."""
    source = os.fsdecode(path)
    found = os.stat(path).st_mode
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), source)
    if not stat.S_ISREG(found):
        raise ModelFileError(f"{source} is not a regular file: copy its content to one")
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        _check_start(stream.read(PREFIX.size), size, source)
        stream.seek(0)
        return stream.read(size), source


def pack(kind: str, header: dict[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of a model file; the same input gives the same bytes.

    - `header`: what JSON keeps as it is: dicts with strings as keys, lists, strings, finite
      numbers, booleans and None, at most 30 levels deep. The order of keys is kept. Lists of
      strings and numbers may be of any length, as they are kept in arrays; all else may have 64
      MiB.
    - `arrays`: of booleans, integers and floats of up to 64 bits, or of records of them without
      gaps; up to four dimensions.
    - Raises ValueError if the header or an array is of a kind that cannot be kept.

    Examples
    --------
    >>> data = pack("stump", {"depth": 1}, {"means": np.array([0.5, 2.0])})
    >>> len(data) % 8, unpack(data, "stump")
    (0, ({'depth': 1}, {'means': array([0.5, 2. ])}))
    """
    directory: list[dict[str, Any]] = []
    body: list[bytes | memoryview] = []
    offset = 0
    rest, entries, own = _taken_out(header)
    for name in own.keys() & arrays.keys():
        raise ValueError(f"array {name!r} has the name of one that holds lists of the header")
    for name, array in [*arrays.items(), *own.items()]:
        described, stored = _stored(name, array)
        entry = {"name": name, "dtype": described, "shape": list(stored.shape), "offset": offset}
        content = stored.reshape(-1).view(np.uint8)
        directory.append(entry)
        body += [content.data, bytes(-content.size % 8)]
        offset += content.size + -content.size % 8
    document: dict[str, Any] = {"kind": kind, "header": rest, "arrays": directory}
    document |= {LISTS: entries} if entries else {}
    text = _header_text(document | {WRITTEN_BY: release()})
    size = PREFIX.size + len(text) + offset + DIGEST
    version = VERSION if entries else WITHOUT_LISTS
    parts = [PREFIX.pack(MAGIC, version, len(text), size), text, *body]
    digest = hashlib.blake2b(digest_size=DIGEST)
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def unpack(
    data: bytes | bytearray | memoryview, kind: str, source: str = "the buffer"
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays that `pack` was given.

    - `data`: what `pack` returned.
    - Returns new, writable, contiguous arrays of the machine's byte order.
    - Raises ModelFileError if the bytes are damaged, of another kind, of a newer release, or not a
      model file.

    Examples
    --------
    >>> unpack(pack("stump", {}, {})[:-1], "stump")
    Traceback (most recent call last):
    sapwood.storage.container.ModelFileError: the buffer is damaged: ...; restore it from a copy
    """
    held, header, arrays = unpack_any(data, source)
    if held != kind:
        raise ModelFileError(f"{source} holds {short(held)}, not {kind!r}: load it as what it is")
    return header, arrays


def unpack_any(
    data: bytes | bytearray | memoryview, source: str
) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Return what bytes hold, and its header and arrays; otherwise as `unpack`."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ModelFileError(f"{source} is {type(data).__name__}: bytes are expected")
    data = bytes(data)
    _check_start(data[: PREFIX.size], len(data), source)
    content = memoryview(data)[:-DIGEST]
    digest = hashlib.blake2b(content, digest_size=DIGEST).digest()
    _require(digest == data[-DIGEST:], source, "its checksum does not match")
    _, version, length, _ = PREFIX.unpack_from(data)
    if version not in (WITHOUT_LISTS, VERSION):
        newer = "it was written by a newer release: upgrade sapwood"
        remedy = newer if version > VERSION else "no release wrote it: restore it from a copy"
        known = f"this release reads up to {VERSION}"
        raise ModelFileError(f"{source} has format version {version} and {known}; {remedy}")
    content = content[PREFIX.size :]
    fits = length <= min(len(content), LONGEST) and length % 8 == 0
    _require(fits, source, f"its header cannot have {length} bytes")
    try:
        document = _parse(str(content[:length], "ascii"))
    except ValueError as error:
        raise damaged(source, f"its header cannot be read ({error})") from None
    expected = {"kind", "header", "arrays", *([] if version == WITHOUT_LISTS else [LISTS])}
    complete = isinstance(document, dict) and document.keys() - {WRITTEN_BY} == expected
    _require(complete, source, "its header has other entries than kind, header and arrays")
    held, header, directory = document["kind"], document["header"], document["arrays"]
    typed = isinstance(held, str) and isinstance(header, dict) and isinstance(directory, list)
    typed = typed and isinstance(document.get(WRITTEN_BY, ""), str)
    _require(typed, source, "its header has an entry of the wrong type")
    arrays = _arrays(content[length:], directory, source)
    if version != WITHOUT_LISTS:
        _require(tuple(arrays)[-3:] == lists.NAMES, source, "the arrays of its lists are not there")
        try:
            header = lists.put_back(header, document[LISTS], arrays)
        except ValueError as error:
            raise damaged(source, str(error)) from None
        arrays = {name: array for name, array in arrays.items() if name not in lists.NAMES}
    return held, header, arrays


def _require(condition: bool, source: str, complaint: str) -> None:
    if not condition:
        raise damaged(source, complaint)


def _check_start(start: bytes, size: int, source: str) -> None:
    """Raise unless the first bytes are those of a model file of a size."""
    if not start:
        raise ModelFileError(f"{source} is empty: restore it from a copy")
    if start[: len(MAGIC)] != MAGIC[: len(start)]:
        complaint = "is not a model file of sapwood, as it does not start as one: check the path"
        raise ModelFileError(f"{source} {complaint}")
    enough = len(start) == PREFIX.size and size >= PREFIX.size + DIGEST
    _require(enough, source, f"{size} bytes are too few")
    claimed = PREFIX.unpack(start)[3]
    _require(claimed <= size, source, f"{size} bytes are there of {claimed}")
    _require(claimed >= size, source, f"{size - claimed} bytes follow its end")


def _taken_out(header: Any) -> tuple[Any, list[lists.Entry], dict[str, Array]]:
    """Return a header without its long lists, where they were, and arrays of what was in them."""
    if not isinstance(header, dict):
        return header, [], {}
    try:
        return lists.taken_out(header)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the header cannot be kept in JSON: {error}") from None


def _header_text(document: dict[str, Any]) -> bytes:
    """Return a document as JSON, filled up to a multiple of 8, or raise if it would change."""
    try:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False)
        kept = _parse(text) == document
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the header cannot be kept in JSON: {error}") from None
    if not (kept and isinstance(document["kind"], str) and isinstance(document["header"], dict)):
        plain = "dicts with strings as keys, lists, strings, numbers, booleans and None"
        raise ValueError(f"the header would be changed by JSON: use {plain} alone")
    if len(text) > LONGEST - 8:
        raise ValueError(f"the header has {len(text)} bytes: keep what is large in arrays")
    return text.encode().ljust(len(text) + -len(text) % 8)


def _parse(text: str) -> Any:
    """Return the value of a JSON text; raise ValueError if it is ambiguous or nested deeply."""
    try:
        document = json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_finite, parse_float=_finite
        )
        levels = _levels(document)
    except RecursionError:
        levels = DEEPEST + 1
    if levels > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    return document


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError(f"a key is there twice, among {short(list(entries))}")
    return entries


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{short(digits)} is not a finite number")
    return number


def _levels(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_levels, value), default=0) if isinstance(value, list) else 0


def _dtype(described: Any) -> np.dtype[Any] | None:
    """Return the dtype that a directory describes, None if that is not allowed."""
    if isinstance(described, str):
        return np.dtype(described) if described in PLAIN else None
    if not isinstance(described, list):
        return None
    for field in described:
        if not (isinstance(field, list) and len(field) == 2 and field[1] in PLAIN):
            return None
    names = [name for name, _ in described if isinstance(name, str) and name]
    if not described or len(set(names)) < len(described):
        return None
    return np.dtype([(name, plain) for name, plain in described])


def _stored(name: Any, array: Any) -> tuple[Any, Array]:
    """Return how a directory describes the dtype of an array, and the array as it is stored."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is the name of an array: a string is expected")
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise ValueError(f"array {name!r} is {type(array).__name__}: a plain array is expected")
    if array.ndim > 4:
        raise ValueError(f"array {name!r} has {array.ndim} dimensions: at most 4 can be kept")
    little = array.dtype.newbyteorder("<")
    described: Any = [[field, little[field].str] for field in little.names or ()] or little.str
    dtype = _dtype(described)
    if dtype is None or dtype != little:
        kinds = "booleans, integers and floats of up to 64 bits, or records of them without gaps,"
        raise ValueError(f"array {name!r} has dtype {array.dtype}: only {kinds} can be kept")
    stored = np.asarray(array, dtype=dtype, order="C")
    if _has_odd_bool(stored):
        raise ValueError(f"array {name!r} has a boolean that is neither 0 nor 1")
    return described, stored


def _has_odd_bool(array: Array) -> bool:
    """Whether a boolean is neither 0 nor 1; NumPy treats such a byte inconsistently."""
    if array.dtype.names is not None:
        return any(_has_odd_bool(array[field]) for field in array.dtype.names)
    return array.dtype == np.bool_ and bool((array.view(np.uint8) > 1).any())


def _arrays(body: memoryview, directory: list[Any], source: str) -> dict[str, Array]:
    """Return the arrays of a directory, each of which has to start where the last one ended."""
    arrays: dict[str, Array] = {}
    start = 0
    for place, entry in enumerate(directory):
        known = isinstance(entry, dict) and entry.keys() == {"name", "dtype", "shape", "offset"}
        _require(known, source, f"entry {place} of its directory is not one of an array")
        name, shape, offset = entry["name"], entry["shape"], entry["offset"]
        array = f"array {short(name)}"
        _require(isinstance(name, str), source, f"the name of {array} is not a string")
        _require(name not in arrays, source, f"{array} is there twice")
        dtype = _dtype(entry["dtype"])
        if dtype is None:
            raise damaged(source, f"{array} has dtype {short(entry['dtype'])}, not an allowed one")
        size = _size(shape, dtype.itemsize)
        if size is None:
            raise damaged(source, f"{array} has shape {short(shape)}, which no array can have")
        inside = type(offset) is int and 0 <= offset <= len(body)
        _require(inside, source, f"{array} starts at {short(offset)}, outside of the file")
        _require(offset >= start, source, f"{array} overlaps the one before")
        _require(offset <= start, source, f"{array} leaves a gap before it")
        end, start = start + size, start + size + -size % 8
        _require(start <= len(body), source, f"{array} of {size} bytes reaches past the end")
        _require(not any(body[end:start]), source, f"{array} is not followed by zeros")
        packed = np.frombuffer(body[offset:end], dtype).reshape(shape)
        odd = _has_odd_bool(packed)
        _require(not odd, source, f"{array} has a boolean that is neither 0 nor 1")
        arrays[name] = np.array(packed, dtype=dtype.newbyteorder("="), order="C")
    _require(start == len(body), source, f"{len(body) - start} bytes follow its last array")
    return arrays


def _size(shape: Any, itemsize: int) -> int | None:
    """Return the bytes of an array, None if there is none of that shape."""
    if not isinstance(shape, list) or len(shape) > 4:
        return None
    if not all(type(length) is int and 0 <= length <= LARGEST for length in shape):
        return None
    if math.prod(length or 1 for length in shape) * itemsize > LARGEST:
        return None
    return math.prod(shape) * itemsize
