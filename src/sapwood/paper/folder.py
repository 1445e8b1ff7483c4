"""The folder of a study: one small file for each cell that is done, so that it can be resumed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sapwood
from sapwood.paper.errors import StudyError
from sapwood.paper.machine import describe_machine
from sapwood.paper.protocol import DISTRIBUTIONS, Cell, Plan
from sapwood.storage.atomic import write_atomically

__all__ = ["StudyFolder"]

SETTINGS = "study.json"


class StudyFolder(NamedTuple):
    """Where a study is kept."""

    path: Path

    def open(self, plan: Plan, observers: Sequence[str]) -> None:
        """Make the folder, or check that it holds the same study.

        - Raises StudyError if the folder cannot be written, or belongs to another study.
        """
        settings = {
            "sample sizes": list(plan.sizes),
            "runs": plan.runs,
            "observers": list(observers),
            "version of sapwood": sapwood.__version__,
            "version of numpy": np.__version__,
        }
        file = self.path / SETTINGS
        if not file.exists():
            self.write_text(SETTINGS, json.dumps({**settings, "machine": describe_machine()}))
            return
        begun = self._settings()
        for name, value in settings.items():
            if begun.get(name) != value:
                raise StudyError(
                    f"{self.path} holds a study with other {name}: choose another folder, or "
                    "delete that one"
                )

    def machine(self) -> dict[str, str]:
        """Return the machine and the versions that the study was begun with."""
        machine: dict[str, str] = self._settings()["machine"]
        return machine

    def _settings(self) -> dict[str, Any]:
        file = self.path / SETTINGS
        try:
            settings = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(settings, dict) or "machine" not in settings:
                raise ValueError("it is not a study's settings")
        except (OSError, ValueError) as error:
            raise StudyError(
                f"{file} is damaged ({_one_line(error)}): delete the folder {self.path}, "
                "or choose another"
            ) from error
        return settings

    def has_part(self, kind: str, cell: Cell) -> bool:
        """Return whether a cell is done."""
        return (self.path / _part_name(kind, cell)).exists()

    def write_part(self, kind: str, cell: Cell, table: pa.Table) -> None:
        """Keep the rows of a cell: all of them or, if interrupted, none."""
        self.write_table(_part_name(kind, cell), table)

    def read_part(self, kind: str, cell: Cell, rows: int) -> pa.Table:
        """Return the rows of a cell.

        - Raises StudyError if the file is damaged.
        """
        file = self.path / _part_name(kind, cell)
        try:
            table = pq.read_table(file, page_checksum_verification=True, partitioning=None)
            if table.num_rows != rows:
                raise ValueError(f"{table.num_rows} rows instead of {rows}")
        except (OSError, ValueError) as error:
            raise StudyError(
                f"{file} is damaged ({_one_line(error)}): delete it and run the command again, "
                "which runs that cell alone"
            ) from error
        return table

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a Parquet file atomically."""
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, write_page_checksum=True)
        self.write_bytes(name, buffer.getvalue().to_pybytes())

    def write_text(self, name: str, text: str) -> None:
        """Write a text file atomically."""
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file atomically: readers find it complete or not at all.

        - Raises StudyError if it cannot be written.
        """
        file = self.path / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, data)
        except OSError as error:
            raise StudyError(f"{file} cannot be written: {error.strerror}") from error


def _part_name(kind: str, cell: Cell) -> str:
    distribution = list(DISTRIBUTIONS).index(cell.distribution)
    noise = "noisy" if cell.noisy else "clean"
    return f"parts/{kind}/{cell.n}-{distribution}-{cell.target}-{noise}.parquet"


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
