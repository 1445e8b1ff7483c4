"""Learning from a Kafka topic next to HTTP: every message is learned exactly once.

The position after the rows is a part of the operation that learns them, so it is logged and saved
together with the model.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from sapwood.serve.logs import log_event
from sapwood.serve.operations import Operation
from sapwood.serve.service import Service
from sapwood.serve.store import StoreError
from sapwood.serve.writer import BusyError, StorageError
from sapwood.streams.stream import Chunk, Stream

__all__ = ["TopicFollower"]

ROWS = 1_000
"""Rows that are learned at once."""
PAUSE = 0.2
"""Seconds before another attempt, if too many operations wait."""


class TopicFollower:
    """A thread that reads a topic and hands its rows to the writer.

    Parameters
    ----------
    service : Service
        What learns.
    open_stream : callable
        Returns the stream, given the model and the first rows of an earlier run.
    """

    def __init__(
        self, service: Service, open_stream: Callable[[Any, bytes | None], Stream]
    ) -> None:
        assert service.writer is not None
        self._service, self._writer = service, service.writer
        saved = self._writer.state.position or {}
        sample = saved.get("sample")
        known = None if sample is None else sample.encode("utf-8", "surrogateescape")
        model = service.replica.host.model
        self._stream = open_stream(model, known)
        if saved and saved.get("stream") != self._stream.fingerprint:
            raise StoreError(
                f"the model has followed {saved.get('stream')} so far, and not "
                f"{self._stream.fingerprint}; follow the same topic, or serve another model"
            )
        self._position = saved.get("position")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to read; a thread that waits for messages ends with the process."""
        self._stopping.set()

    def _run(self) -> None:
        log_event("following", topic=self._stream.name, position=self._position)
        try:
            for chunk in self._stream.chunks(self._position, ROWS):
                if self._stopping.is_set() or not self._take(chunk):
                    return
        except Exception as error:
            log_event("follow_failed", logging.ERROR, message=str(error))

    def _take(self, chunk: Chunk) -> bool:
        """Learn the rows of a chunk; return whether there is use in going on."""
        if chunk.bad:
            rejected = self._service.metrics.rejected_rows.labels("bad_row")
            rejected.inc(len(chunk.bad))
            first = chunk.bad[
                0
            ]  # its place and the kind of fault; no value, as rows may be confidential
            place = {"place": f"{first.unit} {first.number}", "column": first.column}
            log_event(
                "bad_rows", logging.WARNING, rows=len(chunk.bad), reason=first.reason, **place
            )
        targets = [] if chunk.y is None else chunk.y.tolist()
        rows = [
            {"x": {str(name): value for name, value in row.items()}, "y": y}
            for row, y in zip(chunk.rows(), targets, strict=False)
            if not math.isnan(y)
        ]
        if not rows:
            return True
        params: dict[str, Any] = {"position": chunk.next, "stream": self._stream.fingerprint}
        if self._stream.sample is not None and self._position is None:
            params["sample"] = self._stream.sample.decode("utf-8", "surrogateescape")
        operation = Operation("follow", json.dumps({"rows": rows}).encode(), params=params)
        batch = operation.read()
        while not self._stopping.is_set():
            try:
                self._writer.submit(operation, batch).result()
                self._position = chunk.next
                return True
            except BusyError:
                time.sleep(PAUSE)
            except StorageError as error:
                if self._writer.failure is not None:
                    raise
                log_event("follow_waits", logging.WARNING, message=str(error))
                time.sleep(1.0)
        return False
