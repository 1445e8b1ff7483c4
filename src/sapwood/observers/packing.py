"""Observers as bytes: a header in JSON, numbers as little-endian doubles, a checksum.

::

    magic (8 bytes) | version, length of the header (two uint32) | header | doubles | CRC-32

Loading runs no code and trusts nothing: each length is checked against the buffer before it is
used, and the numbers are checked to be a state that watching could have made.
"""

import json
import struct
import sys
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.observers._store import LAYOUT

__all__ = ["check_state", "pack", "unpack"]

FloatArray = NDArray[np.float64]

MAGIC = b"SAPWOOD\n"
VERSION = 1
PREFIX = struct.Struct("<8sII")
CHECKSUM = struct.Struct("<I")

LIMIT = sys.float_info.max / 4  # as in sapwood/_validation.pxd
WEIGHT, PROTOTYPE, CELLS, CELL = LAYOUT


def pack(header: dict[str, Any], numbers: list[FloatArray]) -> bytes:
    """Return a header and arrays as one checked buffer."""
    text = json.dumps(header, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(part, dtype="<f8").tobytes() for part in numbers)
    buffer = PREFIX.pack(MAGIC, VERSION, len(text)) + text + body
    return buffer + CHECKSUM.pack(zlib.crc32(buffer))


def unpack(data: bytes) -> tuple[dict[str, Any], FloatArray]:
    """Return the header and all numbers of a buffer, or raise ValueError."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ValueError(f"bytes are expected, not {type(data).__name__}")
    data = bytes(data)
    if len(data) < PREFIX.size + CHECKSUM.size:
        raise ValueError(f"{len(data)} bytes are too few for a saved observer")
    magic, version, length = PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("this is not a saved observer: it does not start as one")
    if version != VERSION:
        raise ValueError(f"format version {version} is not known; this release reads {VERSION}")
    body, checksum = data[: -CHECKSUM.size], data[-CHECKSUM.size :]
    if CHECKSUM.unpack(checksum)[0] != zlib.crc32(body):
        raise ValueError("the saved observer is damaged: its checksum does not match")
    text, numbers = body[PREFIX.size : PREFIX.size + length], body[PREFIX.size + length :]
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the header of the saved observer cannot be read: {error}") from None
    if not isinstance(header, dict) or len(numbers) % 8:
        raise ValueError("the saved observer is malformed")
    return header, np.frombuffer(numbers, dtype="<f8").astype(np.float64)


def check_state(keys: FloatArray, table: FloatArray, weight: float, reach: FloatArray) -> None:
    """Raise ValueError unless elements and validation could have come from watching rows."""
    check(np.all(keys[:-1] < keys[1:]) and not np.isnan(keys).any(), "keys do not ascend")
    check(np.isfinite(table).all(), "a statistic is not finite")
    weights = table[:, WEIGHT]
    check((weights > 0).all(), "an element has no weight")
    check(0 <= weight <= LIMIT, "the total weight is wrong")
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    check(abs(total - weight) <= 1e-6 * weight, "the weights do not add up")
    check(np.isfinite(reach).all(), "the reach of y is not finite")
    for target, (first, spread) in enumerate(reach.tolist()):
        pivot, shift, m2 = table[:, CELLS + CELL * target : CELLS + CELL * (target + 1)].T
        check((m2 >= 0).all(), "a sum of squares is negative")
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.square((pivot - first) + shift)
            check((np.square(pivot - first) <= LIMIT).all(), "y is spread too far")
            check((squares <= LIMIT).all(), "y is spread too far")
            total = float(m2.sum()) + float(weights @ squares)
        # It may exceed the sum that validation has counted: a mean is as exact as the distances it
        # was computed from, however large, and the square of its error counts with its weight.
        check(total <= LIMIT * (1 + 1e-6), "y is spread too far")
        check(0 <= spread <= LIMIT, "y is spread too far")


def check(condition: object, complaint: str) -> None:
    """Raise ValueError with a complaint about a saved observer unless the condition holds."""
    if not condition:
        raise ValueError(f"the saved observer is not valid: {complaint}")
