"""Rows that were left out: how many, why, and where."""

from collections import Counter
from typing import Any, Self

import numpy as np

from sapwood import validation
from sapwood.evaluate.result import Rejections

__all__ = ["RejectionLog"]

BINS = 64
WIDTH = 64


class RejectionLog:
    """Counts of rejected rows by reason, and by place in bins that widen with the stream."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self._width = WIDTH
        self._bins = [0] * BINS

    @property
    def count(self) -> int:
        """How many rows were rejected."""
        return self.reasons.total()

    def add(self, reason: str, row: int) -> None:
        """Count a row: the number of rows read before it is its place."""
        self._widen(row + 1)
        self._bins[row // self._width] += 1
        self.reasons[reason] += 1

    def _widen(self, rows: int) -> None:
        """Let the bins be wide enough for so many rows."""
        while rows > self._width * BINS:
            merged = [sum(self._bins[place : place + 2]) for place in range(0, BINS, 2)]
            self._bins = merged + [0] * (BINS // 2)
            self._width *= 2

    def finished(self, rows_read: int) -> Rejections:
        """Return what is known after so many rows."""
        self._widen(rows_read)
        used = -(-rows_read // self._width)
        ends = np.minimum(self._width * np.arange(1, used + 1), rows_read)
        where = np.column_stack([ends, np.array(self._bins[:used], dtype=np.int64)])
        # Reasons that are equally frequent are in the same order however the stream was read.
        reasons = sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        return Rejections(self.count, dict(reasons), where)

    def to_header(self) -> dict[str, Any]:
        """Return all that is known in terms of JSON."""
        return {"reasons": dict(self.reasons), "width": self._width, "bins": list(self._bins)}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Go on from what `to_header` returned."""
        log = cls()
        reasons, width, bins = header["reasons"], header["width"], header["bins"]
        if not (isinstance(reasons, dict) and isinstance(bins, list) and len(bins) == BINS):
            raise TypeError("the saved rejections are no counts by reason and by place")
        if not all(type(count) is int and count >= 0 for count in (*reasons.values(), *bins)):
            raise ValueError("a count of the saved rejections is not one")
        if type(width) is not int or not WIDTH <= width < 2**53:
            raise ValueError(f"the bins of the saved rejections are {validation.shown(width)} wide")
        if sum(bins) != sum(reasons.values()):
            raise ValueError("the saved rejections contradict each other")
        log.reasons.update(reasons)
        log._width, log._bins = width, list(bins)
        return log
