"""Files that grow along with a run, and can go on where a checkpoint says."""

import csv
import io
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from sapwood.atomic import write_atomically
from sapwood.cli.failure import UsageError
from sapwood.evaluate.checkpoint import CheckpointError
from sapwood.evaluate.prequential import Step
from sapwood.streams.stream import BadRow

__all__ = ["BadRowFile", "GrowingFile", "PredictionFile", "check_writable"]

STDOUT = "-"


def check_writable(*paths: Path | None) -> None:
    """Raise OSError if a file cannot be written later: before hours of work, not after."""
    for path in paths:
        if path is None or str(path) == STDOUT:
            continue
        folder = path.parent
        if not folder.is_dir():
            raise FileNotFoundError(2, "there is no such folder", str(folder))
        if path.is_dir():
            raise IsADirectoryError(21, "is a directory", str(path))
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise PermissionError(13, "permission denied", str(path))


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
        self.path = str(path)
        self._header = header
        self._file: BinaryIO

    def open(self, length: int | None) -> Self:
        """Start anew, or go on after so many bytes of what is there."""
        if self.path == STDOUT:
            if length is not None:
                raise UsageError("standard output cannot be resumed: write to a file instead")
            self._file = sys.stdout.buffer
            self._write_rows([self._header])
            return self
        if length is None:
            self._file = open(self.path, "wb")  # noqa: SIM115 - closed by `close`
            self._write_rows([self._header])
            return self
        if not os.path.exists(self.path) or os.path.getsize(self.path) < length:
            raise CheckpointError(
                f"{self.path} has less than the {length} bytes that the checkpoint knows of: "
                "restore it, or remove the checkpoint to start anew"
            )
        self._file = open(self.path, "r+b")  # noqa: SIM115 - closed by `close`
        self._file.truncate(length)
        self._file.seek(length)
        return self

    def _write_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode("utf-8", "surrogateescape"))

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write lines as they are."""
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def flush(self) -> None:
        """Hand over what was written."""
        self._file.flush()

    def secure(self) -> int:
        """Bring all to the disk, and return how long the file is."""
        self._file.flush()
        if self.path == STDOUT:
            return 0
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Close the file; standard output stays open."""
        self._file.flush()
        if self.path != STDOUT:
            self._file.close()


class PredictionFile(GrowingFile):
    """The predictions of a run, with the place of each row and what was right."""

    def __init__(self, path: Path, unit: str) -> None:
        super().__init__(path, [unit, "target", "prediction"])

    def write(self, step: Step) -> None:
        """Write what a step has predicted."""
        for numbers, targets, predictions in step.predicted:
            columns = (numbers.tolist(), targets.tolist(), predictions.tolist())
            self._write_rows(zip(*columns, strict=True))


class BadRowFile(GrowingFile):
    """The rows that were left out."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ["file", "place", "reason", "column", "value", "text"])

    def write(self, step: Step) -> None:
        """Write what a step has left out."""
        self.write_bad(step.bad)

    def write_bad(self, rows: Iterable[BadRow]) -> None:
        """Write rows."""
        self._write_rows(
            [
                bad.source,
                f"{bad.unit} {bad.number}",
                bad.reason,
                bad.column,
                bad.value,
                bad.text.decode("utf-8", "surrogateescape"),
            ]
            for bad in rows
        )


def write_curve(path: Path, curve: np.ndarray) -> None:
    """Write a learning curve as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(curve.dtype.names or ())
    writer.writerows(curve.tolist())
    write_atomically(path, text.getvalue().encode())
