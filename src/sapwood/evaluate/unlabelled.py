"""Rows that arrived without their labels, which may arrive later with the same id."""

from collections.abc import Sequence
from typing import Any, Self

from sapwood import validation
from sapwood.evaluate.delay import Waiting
from sapwood.streams.labelled import Key

__all__ = ["MOST_WAITING", "Unlabelled"]

MOST_WAITING = 100_000
"""Rows without labels that are remembered: for a new one, the oldest is forgotten."""


class Unlabelled:
    """Rows that were predicted, by their ids, until their labels come.

    - `most`: no more rows are remembered: for a new one, the oldest is forgotten.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.most = most
        self.rows: dict[Key, Waiting] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self.rows

    def put(self, key: Key, row: Waiting) -> None:
        """Remember a row; an earlier one of the same id is forgotten."""
        self.rows.pop(key, None)
        if len(self.rows) >= self.most:
            del self.rows[next(iter(self.rows))]
        self.rows[key] = row

    def pop(self, key: Key) -> Waiting:
        """Return a row whose label has come, and forget it."""
        return self.rows.pop(key)

    def to_header(self) -> list[Any]:
        """Return all that is known in terms of JSON."""
        return [[list(key), row.to_header()] for key, row in self.rows.items()]

    def restore(self, header: Sequence[Any]) -> Self:
        """Go on from what `to_header` returned, or raise KeyError, TypeError or ValueError."""
        rows = {tuple(key): Waiting.from_header(row) for key, row in header}
        if len(rows) > self.most:
            raise ValueError(f"{len(rows)} rows are pending, at most {validation.shown(self.most)}")
        self.rows = rows
        return self
