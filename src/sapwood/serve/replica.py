"""Copies of the model that predictions are read from, while the model itself learns."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sapwood.serve.class_host import host_from_bytes
from sapwood.serve.model_host import ModelHost

__all__ = ["Follower", "Replica"]

Found = TypeVar("Found")

SHARE = 0.03
"""The share of the time that may be spent on copying the model."""


class Replica:
    """The copy that is read, and when it has to be replaced.

    Predictions change nothing here that matters: what a model remembers of them is dropped with
    the copy.

    - `host`: the first copy. It belongs to the replica.
    - `rows`: how many rows it has learned.
    """

    def __init__(self, host: ModelHost, rows: int = 0) -> None:
        self._host = host
        self.names = frozenset(host.feature_kinds)
        self._lock = threading.Lock()
        self.rows = rows
        self.version = 0
        self._importances: tuple[int, dict[str, float]] = -1, {}
        self._due = 0.0

    @property
    def host(self) -> ModelHost:
        """The copy, for facts that do not change it."""
        return self._host

    def read(self, function: Callable[[ModelHost], Found]) -> Found:
        """Call a function with the copy, while no other thread uses it."""
        with self._lock:
            return function(self._host)

    def try_read(self, function: Callable[[ModelHost], Found]) -> tuple[bool, Found | None]:
        """Call a function if no other thread uses the copy; return whether that was so."""
        if not self._lock.acquire(blocking=False):
            return False, None
        try:
            return True, function(self._host)
        finally:
            self._lock.release()

    def importances(self) -> dict[str, float]:
        """Return the importances of features; they are computed once for each copy."""
        version, found = self._importances
        if version != self.version:
            version = self.version
            found = self.read(lambda host: host.importances())
            self._importances = version, found
        return found

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last copy."""
        return time.monotonic() >= self._due

    @property
    def wait(self) -> float:
        """Seconds until the next copy may be made."""
        return max(0.0, self._due - time.monotonic())

    def refresh(self, live: ModelHost, rows: int) -> None:
        """Replace the copy by one of the model as it is now.

        - `live`: the model; nobody else may change it meanwhile.
        - `rows`: how many rows it has learned.
        """
        start = time.monotonic()
        self.replace(live.copy(), rows)
        spent = time.monotonic() - start
        self._due = time.monotonic() + spent * (1.0 / SHARE - 1.0)

    def replace(self, host: ModelHost, rows: int) -> None:
        """Let another model be read from now on."""
        with self._lock:
            self._host, self.rows = host, rows
            self.names = frozenset(host.feature_kinds)
            self.version += 1


class Follower:
    """Reloads the model of a read-only server when its file changes.

    - `on_error`: called with an exception if the file cannot be loaded; the model before is kept.
    - `every`: seconds between two looks at the file.
    """

    def __init__(
        self,
        path: Path,
        replica: Replica,
        on_error: Callable[[Exception], Any],
        every: float = 1.0,
    ) -> None:
        self._path, self._replica, self._on_error = path, replica, on_error
        self._every = every
        self._seen = stamp(path)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
        self.loaded_at = time.monotonic()
        self.reloads = 0

    def start(self) -> None:
        """Start to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to look."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self.look()

    def look(self) -> bool:
        """Reload the model if its file has changed; return whether it was reloaded."""
        try:
            now = stamp(self._path)
            if now == self._seen:
                return False
            self._seen = now
            host = host_from_bytes(self._path.read_bytes(), self._path.name)
        except (OSError, ValueError, TypeError) as error:
            self._on_error(error)
            return False
        self._replica.replace(host, host.learned_rows)
        self.loaded_at = time.monotonic()
        self.reloads += 1
        return True


def stamp(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is replaced; clocks are not relied on."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns
