"""Rows whose targets are in another file, joined by ids."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

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
"""The identifier of a row: a value for each column of ids."""


def labels_of(stream: Stream, on_bad_row: str = "error") -> dict[Key, Any]:
    """Return the targets of a stream by its ids; of several rows of an id the last one counts.

    Of several targets each is that of the last row that has it, and they are a list.

    - `stream`: opened with ids and a target; rows without one are passed over. All are held in
      memory.
    - `on_bad_row`: whether a row that cannot be read stops all by `BadRowError`, or is left out.
    """
    labels: dict[Key, Any] = {}
    for chunk in stream.chunks():
        if chunk.bad and on_bad_row == "error":
            raise BadRowError(chunk.bad[0])
        targets = np.empty(0) if chunk.y is None else chunk.y
        for key, y in zip(keys_of(chunk.ids), targets.tolist(), strict=True):
            if not isinstance(y, list):
                if not np.isnan(y):
                    labels[key] = y
            elif not np.isnan(y).all():
                known = labels.get(key, y)
                labels[key] = np.where(np.isnan(y), known, y).tolist()
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

    - `stream`: the rows, with ids; with or without a target of their own.
    - `labels`: the targets, as `labels_of` returns them.
    """

    def __init__(
        self,
        stream: Stream,
        labels: Mapping[Key, Any],
        target: str,
        targets: tuple[str, ...] = (),
    ) -> None:
        if not stream.ids:
            raise StreamError(f"{stream.name} has no ids, by which targets could be found")
        super().__init__(stream, target=target, targets=targets)
        self._labels = labels
        self._missing = [np.nan] * len(targets) if targets else np.nan

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on."""
        for chunk in self._stream.chunks(start, most_rows):
            keys = keys_of(chunk.ids)
            found = np.array([self._labels.get(key, self._missing) for key in keys])
            if self.targets:
                found = found.reshape(len(keys), len(self.targets))
            y = found if chunk.y is None else np.where(np.isnan(chunk.y), found, chunk.y)
            yield replace(chunk, y=y)
