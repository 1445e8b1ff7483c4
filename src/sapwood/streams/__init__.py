"""Rows in: files, pipes and generators, in chunks, at constant memory."""

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
