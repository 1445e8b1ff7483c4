"""Learning from a Kafka topic next to HTTP: every message is learned exactly once.

The position after the rows is a part of the operation that learns them, so it is logged and saved
together with the model. A topic that cannot be read is tried again, and the service is not ready
meanwhile.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from sapwood.serve.logs import log_event
from sapwood.serve.operations import Operation
from sapwood.serve.rows import TargetError, check_classes
from sapwood.serve.service import Service
from sapwood.serve.store import StoreError
from sapwood.serve.writer import BusyError, StorageError
from sapwood.streams.stream import Chunk, Stream

__all__ = ["TopicFollower"]

ROWS = 1_000
"""Rows that are learned at once."""
PAUSE = 0.2
"""Seconds before another attempt, if too many operations wait."""
FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""Seconds before another attempt to read the topic; twice as many after each that has failed."""
RECOVERED = 30.0
"""Seconds after which an attempt counts as successful although no message has arrived."""


class TopicFollower:
    """A thread that reads a topic and hands its rows to the writer.

    - `service`: what learns.
    - `open_stream`: returns the stream, given the model and the first rows of an earlier run.
    - `label`: of a classifier, the column of the stream that holds the labels.
    - `errors`: how often reading has failed.
    """

    def __init__(
        self,
        service: Service,
        open_stream: Callable[[Any, bytes | None], Stream],
        label: str | None = None,
    ) -> None:
        assert service.writer is not None
        self._service, self._writer, self._label = service, service.writer, label
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
        self._failed = False
        self._attempt_at = time.monotonic()
        self.errors = 0
        service.topic = self

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; a thread that is blocked by the broker ends with the process."""
        self._stopping.set()

    @property
    def failure(self) -> str | None:
        """Why no messages are learned, None if they are; without what a client may not see."""
        if self._failed and time.monotonic() - self._attempt_at < RECOVERED:
            return "the topic cannot be read; the server tries again, and its log has the reason"
        return None

    def _run(self) -> None:
        wait = FIRST_RETRY
        while not self._stopping.is_set():
            log_event("following", topic=self._stream.name, position=self._position)
            self._attempt_at = time.monotonic()
            try:
                for chunk in self._stream.chunks(self._position, ROWS):
                    if self._stopping.is_set() or not self._take(chunk):
                        return
                    self._failed, wait = False, FIRST_RETRY
                return
            except Exception as error:
                self._failed, self._attempt_at = True, math.inf
                self.errors += 1
                log_event("follow_failed", logging.ERROR, message=str(error), retry_in_seconds=wait)
            if self._stopping.wait(wait):
                return
            wait = min(2.0 * wait, LAST_RETRY)

    def _take(self, chunk: Chunk) -> bool:
        """Learn the rows of a chunk; return whether the next one is to be read."""
        if chunk.bad:
            self._note_bad(chunk)
        rows = [
            {"x": {str(name): value for name, value in row.items()}, "y": y}
            for row, y in self._labelled(chunk)
        ]
        if not rows:
            return True
        params: dict[str, Any] = {"position": chunk.next, "stream": self._stream.fingerprint}
        if self._stream.sample is not None and self._position is None:
            params["sample"] = self._stream.sample.decode("utf-8", "surrogateescape")
        operation = Operation("follow", json.dumps({"rows": rows}).encode(), params=params)
        batch = operation.read(task=self._service.replica.host.task)
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

    def _note_bad(self, chunk: Chunk) -> None:
        """Count and log rows that cannot be read; no value, as rows may be confidential."""
        self._service.metrics.rejected_rows.labels("bad_row").inc(len(chunk.bad))
        first = chunk.bad[0]
        place = {"place": f"{first.unit} {first.number}", "column": first.column}
        log_event("bad_rows", logging.WARNING, rows=len(chunk.bad), reason=first.reason, **place)

    def _labelled(self, chunk: Chunk) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield the rows of a chunk that have a target: a number, several by name, or a label."""
        if self._label is not None:
            for row in chunk.rows():
                label = row.pop(self._label, None)
                if label is not None and self._is_known(label):
                    yield row, label
            return
        names = [str(name) for name in self._stream.targets]
        targets = [] if chunk.y is None else chunk.y.tolist()
        for row, y in zip(chunk.rows(), targets, strict=False):
            if not names:
                if not math.isnan(y):
                    yield row, y
                continue
            several = {
                name: None if math.isnan(value) else value
                for name, value in zip(names, y, strict=True)
            }
            if any(value is not None for value in several.values()):
                yield row, several

    def _is_known(self, label: Any) -> bool:
        """Whether a label is that of a known class; others are rejected unless they are allowed."""
        known = self._service.replica.host.classes
        if not known or self._service.settings.new_classes:
            return True
        try:
            check_classes([label], known)
        except TargetError as error:
            self._service.metrics.rejected_rows.labels(error.reason).inc()
            return False
        return True
