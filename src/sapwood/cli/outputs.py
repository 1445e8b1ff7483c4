"""Output files of a run, which can be resumed at the position of a checkpoint."""

import contextlib
import csv
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from sapwood.cli.files import STDOUT, is_stdout
from sapwood.storage.atomic import write_atomically
from sapwood.streams.stream import numbers_by_name, place_in_words

if TYPE_CHECKING:
    from sapwood.evaluate.run import Step
    from sapwood.streams.stream import BadRow, Unit
    from sapwood.validation import Label

__all__ = [
    "BadRowFile",
    "ClassPredictionFile",
    "EventFile",
    "GrowingFile",
    "Output",
    "PredictionFile",
    "bound_columns",
    "bound_names",
    "csv_bytes",
    "named",
    "write_curves",
]


class GrowingFile:
    """A CSV file that is written row by row, to disk or to standard output.

    - `path`: the file, or "-" for standard output.
    """

    def __init__(self, path: Path, header: Sequence[str]) -> None:
        self.path = STDOUT if is_stdout(path) else str(path)
        self._header = header
        self._file: BinaryIO

    def open(self, length: int | None) -> Self:
        """Start an empty file, or resume after so many bytes of the present one."""
        if self.path == STDOUT:
            self._file = sys.stdout.buffer
        elif length is None:
            self._file = open(self.path, "wb")  # noqa: SIM115 - closed by `close`
        else:
            self._file = self._opened_at(length)
        if length is None and self._header:
            self.write_rows([self._header])
        return self

    def _opened_at(self, length: int) -> BinaryIO:
        if not os.path.exists(self.path) or os.path.getsize(self.path) < length:
            from sapwood.evaluate.checkpoint import CheckpointError

            raise CheckpointError(
                f"{self.path} has less than the {length} bytes that the checkpoint knows of: "
                "restore it, or remove the checkpoint to start over"
            )
        file = open(self.path, "r+b")  # noqa: SIM115 - closed by `close`
        file.truncate(length)
        file.seek(length)
        return file

    def write_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of fields."""
        self._write(csv_bytes(rows))

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write lines as they are."""
        self._write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))

    def _write(self, data: bytes) -> None:
        with self._named():
            self._file.write(data)

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
        """Add the name of the file to errors of the system."""
        try:
            yield
        except OSError as error:
            error.filename = "standard output" if self.path == STDOUT else self.path
            raise


class PredictionFile(GrowingFile):
    """The predictions of a run, with the ids and the place of each row, what was right, and bounds.

    - `levels`: levels of the prediction intervals of the model.
    """

    def __init__(
        self,
        path: Path,
        unit: "Unit",
        ids: Sequence[str] = (),
        levels: Sequence[float] = (),
        targets: "Sequence[Label]" = (),
    ) -> None:
        place = ("partition", unit) if unit == "offset" else (unit,)
        columns = [
            column
            for name in (targets or (None,))
            for column in (*named(["target", "prediction"], name), *bound_names(levels, name))
        ]
        super().__init__(path, [*ids, *place, *columns])
        self._unit = unit

    def write(self, step: "Step") -> None:
        """Write what a step has predicted."""
        for numbers, targets, predictions, ids, bounds in step.predicted:
            columns: list[list[Any]] = []
            for place, (y, predicted) in enumerate(
                zip(_columns(targets), _columns(predictions), strict=True)
            ):
                columns += [list(map(_or_empty, y)), predicted]
                if bounds is not None:
                    columns += bound_columns(bounds if targets.ndim == 1 else bounds[:, place])
            places = [each.tolist() for each in numbers_by_name(self._unit, numbers).values()]
            self.write_rows(zip(*ids.values(), *places, *columns, strict=True))


class ClassPredictionFile(GrowingFile):
    """The predicted class of each row with its ids, its probability, and the actual class."""

    def __init__(
        self, path: Path, unit: "Unit", levels: Sequence[float] = (), ids: Sequence[str] = ()
    ) -> None:
        names = list(numbers_by_name(unit, np.zeros(0, np.int64)))
        sets = [f"set_{level:g}" for level in levels]
        super().__init__(path, [*ids, *names, "actual", "prediction", "probability", *sets])
        self._unit = unit

    def write(self, step: "Step") -> None:
        """Write what a step has predicted."""
        for rows in step.predicted:
            count = len(rows.labels)
            numbers = numbers_by_name(self._unit, rows.chunk.numbers[:count]).values()
            known = len(rows.classes)
            highest = rows.probabilities.max(axis=1).tolist() if known else [0.0] * count
            ids = (column[:count] for column in rows.chunk.ids.values())
            sets = zip(*rows.sets, strict=True)
            written = zip(
                *(each.tolist() if isinstance(each, np.ndarray) else each for each in ids),
                *(each.tolist() for each in numbers),
                rows.labels,
                rows.predicted(),
                map(repr, highest),
                *([" | ".join(map(str, own)) for own in each] for each in sets),
                strict=True,
            )
            self.write_rows(["" if each is None else each for each in row] for row in written)


def _columns(values: "np.ndarray[Any, Any]") -> list[list[float]]:
    """Return values as columns: one, or one for each target."""
    columns: list[list[float]] = values.reshape(len(values), -1).T.tolist()
    return columns


def _or_empty(value: float) -> float | str:
    return "" if math.isnan(value) else value


def named(columns: Sequence[str], target: "Label | None") -> list[str]:
    """Return the names of columns, with that of a target if there are several."""
    return [column if target is None else f"{column}_{target}" for column in columns]


def bound_names(levels: Sequence[float], target: "Label | None" = None) -> list[str]:
    """Return the names of columns for bounds: lower and upper, with the level if there are several.

    Examples
    --------
    >>> bound_names([0.9]), bound_names([0.5, 0.9])
    (['lower', 'upper'], ['lower_0.5', 'upper_0.5', 'lower_0.9', 'upper_0.9'])
    >>> bound_names([0.9], "power")
    ['lower_power', 'upper_power']
    """
    ends = [f"_{level:g}" if len(levels) > 1 else "" for level in levels]
    return [f"{side}{end}" for end in ends for side in named(("lower", "upper"), target)]


def bound_columns(bounds: "np.ndarray[Any, Any]") -> list[list[float | str]]:
    """Return bounds of shape (rows, levels, 2) as columns, empty texts where they are not known."""
    columns = bounds.reshape(len(bounds), -1).T.tolist()
    return [list(map(_or_empty, column)) for column in columns]


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
                place_in_words(bad.unit, bad.number),
                bad.reason,
                _encodable(bad.column),
                _encodable(bad.value),
                bad.text.decode("utf-8", "surrogateescape"),
            ]
            for bad in rows
        )


class EventFile(GrowingFile):
    """What a monitor has found to be changed, and what trees did, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, [])

    def write(self, step: "Step") -> None:
        """Write what has changed in a step."""
        events = [*(alarm.to_dict() for alarm in step.drift_events), *step.events]
        lines = [json.dumps(each, ensure_ascii=False) for each in events]
        self.write_lines([_encodable(line) or "" for line in lines])


Output = PredictionFile | ClassPredictionFile | BadRowFile | EventFile
"""A file that grows along with a run."""


def _encodable(text: str | None) -> str | None:
    """Return text without halves of surrogate pairs, which JSON may have and UTF-8 has not."""
    return text and text.encode(errors="backslashreplace").decode()


def csv_bytes(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows of fields as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def write_curves(path: Path, curves: "Mapping[str, Sequence[np.ndarray[Any, Any]]]") -> None:
    """Write the learning curve of a target, or those of several below each other, as CSV.

    - `curves`: for each target its curve, and its additional columns. One without a name has no
      column of names.
    """
    first = [] if "" in curves else ["target"]
    names = [name for table in next(iter(curves.values())) for name in table.dtype.names or ()]
    rows: list[list[Any]] = [[*first, *(name.replace("faded_", "weighted_") for name in names)]]
    for target, own in curves.items():
        for points in zip(*(table.tolist() for table in own), strict=True):
            values = [value for point in points for value in point]
            rows.append([target, *values] if first else values)
    write_atomically(path, csv_bytes(rows))
