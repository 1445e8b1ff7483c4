"""Rows whose targets stand in another file, told by ids."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sapwood.door import Label
from sapwood.streams.stream import (
    MOST_ROWS,
    BadRowError,
    Chunk,
    Column,
    DerivedStream,
    Position,
    Stream,
    StreamError,
)

__all__ = ["Key", "LabelledStream", "keys_of", "labels_of"]

Key = tuple[str | int | float | None, ...]
"""What tells a row from others: a value for each column of ids."""


def labels_of(stream: Stream, on_bad_row: str = "error") -> dict[Key, float]:
    """Return the targets of a stream by its ids; of several the last one counts.

    Parameters
    ----------
    stream : Stream
        Opened with ids and a target; rows without one are passed over. All are held in memory.
    on_bad_row : {"error", "skip"}
        Whether a row that cannot be read stops all by `BadRowError`, or is left out.
    """
    labels: dict[Key, float] = {}
    for chunk in stream.chunks():
        if chunk.bad and on_bad_row == "error":
            raise BadRowError(chunk.bad[0])
        targets = np.empty(0) if chunk.y is None else chunk.y
        for key, y in zip(keys_of(chunk.ids), targets.tolist(), strict=True):
            if not np.isnan(y):
                labels[key] = y
    return labels


def keys_of(ids: Mapping[str, Column]) -> list[Key]:
    """Return the id of each row.

    Examples
    --------
    >>> keys_of({"day": ["Mon", "Tue"], "shop": ["A", None]})
    [('Mon', 'A'), ('Tue', None)]
    """
    columns = [c.tolist() if isinstance(c, np.ndarray) else c for c in ids.values()]
    return list(zip(*columns, strict=True))


class LabelledStream(DerivedStream):
    """A stream whose missing targets are looked up by ids.

    Parameters
    ----------
    stream : Stream
        The rows, with ids; with or without a target of their own.
    labels : mapping of keys to float
        The targets, as `labels_of` returns them.
    target : str
        The name of the target.
    """

    def __init__(self, stream: Stream, labels: Mapping[Key, float], target: str) -> None:
        if not stream.ids:
            raise StreamError(f"{stream.name} has no ids, by which targets could be found")
        super().__init__(stream, target=target, targets=())
        self._labels = labels

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on."""
        for chunk in self._stream.chunks(start, most_rows):
            found = np.array([self._labels.get(key, np.nan) for key in keys_of(chunk.ids)])
            y = found if chunk.y is None else np.where(np.isnan(chunk.y), found, chunk.y)
            yield replace(chunk, y=y)

    @property
    def clock(self) -> Label | None:
        """That of the rows."""
        return self._stream.clock

    @property
    def fingerprint(self) -> str:
        """That of the rows."""
        return self._stream.fingerprint
