"""Rows in: files, pipes and generators, in chunks, at constant memory.

What is imported from here is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood.streams.generators import (
        GENERATORS,
        demand,
        friedman,
        friedman_drift,
        generator,
        hyperplane,
        mv,
        planes2d,
    )
    from sapwood.streams.opening import open_stream
    from sapwood.streams.stream import BadRow, BadRowError, Chunk, ColumnNote, Stream, StreamError

__all__ = [
    "GENERATORS",
    "BadRow",
    "BadRowError",
    "Chunk",
    "ColumnNote",
    "Stream",
    "StreamError",
    "demand",
    "friedman",
    "friedman_drift",
    "generator",
    "hyperplane",
    "mv",
    "open_stream",
    "planes2d",
]

_PLACES = {
    "open_stream": "opening",
    **dict.fromkeys(
        ("BadRow", "BadRowError", "Chunk", "ColumnNote", "Stream", "StreamError"), "stream"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sapwood.streams' has no attribute {name!r}")
    place = _PLACES.get(name, "generators")
    found = getattr(import_module(f"sapwood.streams.{place}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__})
