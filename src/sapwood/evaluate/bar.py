"""A bar on standard error that shows how far an evaluation is."""

import sys
import time
from typing import TYPE_CHECKING

from sapwood.formatting import number

if TYPE_CHECKING:
    from sapwood.evaluate.prequential import Prequential

__all__ = ["Bar"]

WIDTH = 24
SECONDS = 0.2  # between two changes


class Bar:
    """A line that is rewritten, on a terminal or below a notebook's cell.

    - `run`: what is under way.
    """

    def __init__(self, run: "Prequential") -> None:
        self._run = run
        self._shown_at = -SECONDS
        self._width = 0

    def update(self, done: int) -> None:
        """Show how far the run is, unless that was shown just now."""
        now = time.monotonic()
        if now - self._shown_at >= SECONDS:
            self._shown_at = now
            self._write(self._line(done))

    def close(self) -> None:
        """Show the end, and leave the line as it is."""
        self._write(f"{self._line(self._run.stream.size or 0)}\n")

    def _line(self, done: int) -> str:
        run, size = self._run, self._run.stream.size
        rate = run.rows_read / run.seconds if run.seconds > 0 else 0.0
        words = f"{run.rows_read:,} rows, {rate:,.0f} rows/s, RMSE {number(run.faded.rmse, 4)}"
        if not size:
            return words
        full = round(WIDTH * min(1.0, done / size))
        return f"[{'#' * full}{'.' * (WIDTH - full)}] {100 * min(1.0, done / size):3.0f} %  {words}"

    def _write(self, line: str) -> None:
        body = line.rstrip("\n")
        sys.stderr.write(f"\r{line.replace(body, body.ljust(self._width), 1)}")
        sys.stderr.flush()
        self._width = len(body)
