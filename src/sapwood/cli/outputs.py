"""Files that grow along with a run, and can go on where a checkpoint says."""

import contextlib
import csv
import io
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from sapwood.cli.files import STDOUT, is_stdout
from sapwood.storage.atomic import write_atomically

if TYPE_CHECKING:
    import numpy as np

    from sapwood.evaluate.prequential import Step
    from sapwood.streams.stream import BadRow

__all__ = ["BadRowFile", "GrowingFile", "PredictionFile", "write_curve"]


class GrowingFile:
    """A CSV file that is written row by row, to disk or to standard output.

    Parameters
    ----------
    path : Path
        The file, or "-" for standard output.
    header : sequence of str
        The names of the columns.
    """

    def __init__(self, path: Path, header: Sequence[str]) -> None:
        self.path = STDOUT if is_stdout(path) else str(path)
        self._header = header
        self._file: BinaryIO

    def open(self, length: int | None) -> Self:
        """Start anew, or go on after so many bytes of what is there."""
        if self.path == STDOUT:
            self._file = sys.stdout.buffer
        elif length is None:
            self._file = open(self.path, "wb")  # noqa: SIM115 - closed by `close`
        else:
            self._file = self._opened_at(length)
        if length is None:
            self.write_rows([self._header])
        return self

    def _opened_at(self, length: int) -> BinaryIO:
        if not os.path.exists(self.path) or os.path.getsize(self.path) < length:
            from sapwood.evaluate.checkpoint import CheckpointError

            raise CheckpointError(
                f"{self.path} has less than the {length} bytes that the checkpoint knows of: "
                "restore it, or remove the checkpoint to start anew"
            )
        file = open(self.path, "r+b")  # noqa: SIM115 - closed by `close`
        file.truncate(length)
        file.seek(length)
        return file

    def write_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of fields."""
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._write_text(text.getvalue())

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write lines as they are."""
        self._write_text("".join(f"{line}\n" for line in lines))

    def _write_text(self, text: str) -> None:
        with self._named():
            self._file.write(text.encode("utf-8", "surrogateescape"))

    def flush(self) -> None:
        """Hand over what was written."""
        with self._named():
            self._file.flush()

    def secure(self) -> int:
        """Bring all to the disk, and return how long the file is."""
        with self._named():
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._file.tell()

    def close(self) -> None:
        """Close the file; standard output stays open."""
        with self._named():
            if self.path == STDOUT:
                self._file.flush()
            else:
                self._file.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Let errors of the system tell the file."""
        try:
            yield
        except OSError as error:
            error.filename = "standard output" if self.path == STDOUT else self.path
            raise


class PredictionFile(GrowingFile):
    """The predictions of a run, with the ids and the place of each row, and what was right."""

    def __init__(self, path: Path, unit: str, ids: Sequence[str] = ()) -> None:
        super().__init__(path, [*ids, unit, "target", "prediction"])

    def write(self, step: "Step") -> None:
        """Write what a step has predicted."""
        for numbers, targets, predictions, ids in step.predicted:
            known = ["" if math.isnan(target) else target for target in targets.tolist()]
            columns = (*ids.values(), numbers.tolist(), known, predictions.tolist())
            self.write_rows(zip(*columns, strict=True))


class BadRowFile(GrowingFile):
    """The rows that were left out."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ["file", "place", "reason", "column", "value", "text"])

    def write(self, step: "Step") -> None:
        """Write what a step has left out."""
        self.write_bad(step.bad)

    def write_bad(self, rows: "Iterable[BadRow]") -> None:
        """Write rows."""
        self.write_rows(
            [
                bad.source,
                f"{bad.unit} {bad.number}",
                bad.reason,
                _encodable(bad.column),
                _encodable(bad.value),
                bad.text.decode("utf-8", "surrogateescape"),
            ]
            for bad in rows
        )


def _encodable(text: str | None) -> str | None:
    """Return text without halves of surrogate pairs, which JSON may have and UTF-8 has not."""
    return text and text.encode(errors="backslashreplace").decode()


def write_curve(path: Path, *tables: "np.ndarray[Any, Any]") -> None:
    """Write a learning curve, and what stands beside its points, as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name for table in tables for name in table.dtype.names or ()])
    for points in zip(*(table.tolist() for table in tables), strict=True):
        writer.writerow([value for point in points for value in point])
    write_atomically(path, text.getvalue().encode())
