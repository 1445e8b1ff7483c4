"""The files of a service: the model, and next to it a folder with the checkpoint and the log.

``MODEL.serve/checkpoint`` holds the whole state after some operation, ``MODEL.serve/wal-*.log`` the
operations since. After each checkpoint, the model file itself is replaced, so that read-only
servers and other commands find the model there.
"""

import hashlib
import json
import logging
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.serve.class_host import host_from_bytes
from sapwood.serve.model_host import REJECTIONS
from sapwood.serve.operations import Operation
from sapwood.serve.replica import stamp
from sapwood.serve.state import MODEL, ServiceState
from sapwood.serve.wal import FsyncPolicy, LogError, WriteAheadLog
from sapwood.storage import container
from sapwood.storage.atomic import write_atomically
from sapwood.storage.lock import Held, hold

__all__ = ["Snapshot", "Store", "StoreError"]

KIND = "ServiceCheckpoint"
FORMAT = 1
FOLDER = ".serve"

logger = logging.getLogger("sapwood.serve")


class StoreError(ValueError):
    """The files of a service cannot be used; the message names the place and the remedy."""


class Snapshot:
    """The state at one moment, ready to be written."""

    def __init__(self, state: ServiceState) -> None:
        self.seq = state.seq
        header, arrays = state.to_state()
        self.arrays = {name: np.array(array) for name, array in arrays.items()}
        self.header = json.loads(json.dumps(header))

    @property
    def model(self) -> bytes:
        """The model as a file holds it."""
        return self.arrays[MODEL].tobytes()


class Store:
    """The files of one service, held by one process.

    - `fsync`: as for `WriteAheadLog`.
    - `max_pending`, `monitor`: as for `ServiceState`.
    """

    def __init__(
        self,
        path: Path,
        fsync: FsyncPolicy = "always",
        max_pending: int = 100_000,
        monitor: bool = True,
    ) -> None:
        self.path = path
        self.folder = path.with_name(path.name + FOLDER)
        self._max_pending, self._monitor = max_pending, monitor
        self._held = ExitStack()
        self.log = WriteAheadLog(self.folder, fsync)
        self.checkpoint_at = time.monotonic()
        self.checkpoint_seq = 0
        self.replayed = 0
        self._exported: list[str] = []  # digests of models that may be in the file
        self._in_file: str | None = None  # the digest of the model that is in the file
        self._stamp: tuple[int, int, int] | None = None
        self.replaced = 0

    @property
    def checkpoint_path(self) -> Path:
        """The file of the checkpoint."""
        return self.folder / "checkpoint"

    # -- opening ----------------------------------------------------------------------------------

    def open(self) -> ServiceState:
        """Lock the files, and return the state after the last operation that was logged.

        - Raises StoreError, LogError, ModelFileError, OSError if another process serves the model,
          or files are damaged or missing.
        """
        self.folder.mkdir(mode=0o750, exist_ok=True)
        try:
            self._held.enter_context(hold(str(self.folder / "lock")))
        except Held as error:
            by = "" if error.process is None else f" (process {error.process})"
            raise StoreError(
                f"{self.path} is served by another process{by}; stop that one, or serve the model "
                "with --read-only"
            ) from None
        try:
            state = self._restored()
            self._replay(state)
        except BaseException:
            self._held.close()
            raise
        return state

    def _restored(self) -> ServiceState:
        """Return the state of the checkpoint, or that of the model if there is none."""
        data = self.path.read_bytes() if self.path.exists() else None
        self._in_file = None if data is None else digest(data)
        if not self.checkpoint_path.exists():
            if data is None:
                raise FileNotFoundError(2, "No such file or directory", str(self.path))
            host = host_from_bytes(data, str(self.path))
            state = ServiceState(host, self._max_pending, self._monitor)
            self.write(Snapshot(state))  # so that the log belongs to this very model
            return state
        header, arrays = container.read(self.checkpoint_path, KIND)
        try:
            if header["format"] != FORMAT:
                raise StoreError(
                    f"{self.checkpoint_path} is of format {header['format']} and this release "
                    f"reads format {FORMAT}: upgrade sapwood"
                )
            self._exported = list(header["exported"])
            state = ServiceState.from_state(
                header["state"], arrays, self._max_pending, self._monitor
            )
        except (KeyError, IndexError, *REJECTIONS) as error:
            if isinstance(error, StoreError):
                raise
            raise container.damaged(str(self.checkpoint_path), str(error)) from None
        self._check_model()
        self.checkpoint_seq = state.seq
        return state

    def _check_model(self) -> None:
        """Raise StoreError if somebody else has replaced the model since the last checkpoint."""
        if self._in_file is not None and self._in_file not in self._exported:
            raise StoreError(
                f"{self.path} is not the model that the last checkpoint in {self.folder} has "
                f"written. To serve the new model, move {self.folder} away; to continue with the "
                f"old one, move {self.path} away"
            )

    def _replay(self, state: ServiceState) -> None:
        for record in self.log.open(state.seq):
            try:
                operation = Operation.from_bytes(record.payload)
            except (KeyError, IndexError, ValueError) as error:
                raise LogError(
                    f"record {record.seq} in {self.folder} cannot be read: {error}; it was written "
                    "by another release: start that one, and stop it with SIGTERM"
                ) from None
            try:
                state.apply(operation, record.time)
            except MemoryError:
                raise
            except Exception as error:  # as it did when the record was written
                logger.debug("record %d is rejected: %s", record.seq, error)
            state.seq = record.seq
            self.replayed += 1
        state.seq = self.log.seq
        if self.log.dropped:
            logger.warning(
                "the end of the log was dropped: %d bytes were cut short or damaged; a copy is in "
                "the same folder",
                self.log.dropped,
            )

    # -- checkpoints ------------------------------------------------------------------------------

    def write(self, snapshot: Snapshot) -> None:
        """Write a checkpoint, then the model, then remove the log before it.

        - Raises OSError if it cannot be written; the checkpoint before is then still valid.
        """
        model = snapshot.model
        # Processes that were killed before they replaced the model leave an older one in the file.
        exported = [digest(model), *self._exported[:1]]
        if self._in_file is not None and self._in_file not in exported:
            exported.append(self._in_file)
        header = {"format": FORMAT, "state": snapshot.header, "exported": exported}
        arrays: dict[str, NDArray[Any]] = snapshot.arrays
        container.write(self.checkpoint_path, KIND, header, arrays)
        self._exported = exported
        self.checkpoint_seq = snapshot.seq
        self.checkpoint_at = time.monotonic()
        self._keep_foreign()
        write_atomically(self.path, model)
        self._in_file, self._stamp = exported[0], self._stamp_now()
        self.log.remove_before(snapshot.seq)

    def _stamp_now(self) -> tuple[int, int, int] | None:
        """Return what changes when the model file is replaced, None if there is none."""
        try:
            return stamp(self.path)
        except FileNotFoundError:
            return None

    def _keep_foreign(self) -> None:
        """Keep a copy of a model that another process has put in the place of the served one.

        Both have learned rows that the other one has not, so none of them may be lost.
        """
        stamp = self._stamp_now()
        if stamp is None or stamp == self._stamp:
            return
        data = self.path.read_bytes()
        if digest(data) in (self._in_file, *self._exported):
            return
        kept = free_name(self.path)
        write_atomically(kept, data)
        self.replaced += 1
        logger.error(
            "%s was replaced by another process while it is served; that model is kept as %s, and "
            "the served one is written in its place. To serve the other one, stop this server, move "
            "the file back and move %s away",
            *(self.path.name, kept.name, self.folder.name),
        )

    def close(self) -> None:
        """Close the log, and let other processes serve the model."""
        self.log.close()
        self._held.close()


def free_name(path: Path) -> Path:
    """Return a name that no file has yet, for a model that was put in the place of `path`."""
    names = (path.with_name(f"{path.name}.replaced-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def digest(data: bytes) -> str:
    """Return what identifies a model file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
