"""The one thread that changes the model: it logs operations, applies them, and answers.

Queued operations are logged together, with one call of fsync. Rejected
operations stay in the log: they are rejected again when it is replayed.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import ClassVar

from sapwood.serve.model_host import REJECTIONS
from sapwood.serve.operations import Operation, Outcome
from sapwood.serve.replica import Replica
from sapwood.serve.rows import Batch
from sapwood.serve.state import ServiceState
from sapwood.serve.store import Snapshot, Store

__all__ = ["BusyError", "StorageError", "UnavailableError", "Writer", "WriterLimits"]

GROUP = 256
"""Operations that are logged together."""
IDLE = 0.2
"""Seconds after which the writer looks whether something is due, if nothing comes."""

logger = logging.getLogger("sapwood.serve")


class UnavailableError(RuntimeError):
    """An operation cannot be done now."""

    status: ClassVar[int] = 503
    headers: ClassVar[dict[str, str]] = {"retry-after": "1"}


class BusyError(UnavailableError):
    """Too many operations wait."""


class StorageError(UnavailableError):
    """The log cannot be written."""


@dataclass(frozen=True)
class WriterLimits:
    """When checkpoints are due, and how much may wait.

    - `checkpoint_seconds`: seconds between two checkpoints.
    - `checkpoint_bytes`: bytes of the log after which a checkpoint is due.
    - `queue`: operations that may wait.
    - `queue_bytes`: bytes of their bodies.
    """

    checkpoint_seconds: float = 60.0
    checkpoint_bytes: int = 64 * 2**20
    queue: int = 1_000
    queue_bytes: int = 256 * 2**20


@dataclass
class Job:
    """A queued operation."""

    operation: Operation
    batch: Batch
    result: "Future[Outcome]" = field(default_factory=Future)


class Writer:
    """The thread, and the queue of what is to be done.

    - `state`: what is changed; it belongs to the writer from now on.
    - `replica`: what predictions are read from; it is refreshed after learning.
    - `limits`: when checkpoints are due, and how much may wait.
    """

    def __init__(
        self, store: Store, state: ServiceState, replica: Replica, limits: WriterLimits
    ) -> None:
        self.store, self.state, self.replica, self._limits = store, state, replica, limits
        self._queue: queue.Queue[Job | None] = queue.Queue(limits.queue)
        self._waiting_bytes = 0
        self._count = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._stopping = False
        self._retry_checkpoint_at = 0.0
        self._saving: threading.Thread | None = None
        self.failure: str | None = None
        self.checkpoints = 0
        self.checkpoint_errors = 0
        self.log_errors = 0
        self.on_outcome: Callable[[Operation, Outcome], None] = lambda operation, outcome: None
        self.on_idle: Callable[[ServiceState], None] = lambda state: None

    # -- for other threads ------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, operation: Operation, batch: Batch) -> "Future[Outcome]":
        """Let an operation be done; return a future of what it has done.

        - Raises BusyError if too many operations wait.
        - Raises StorageError if nothing can be logged until the server is restarted.
        """
        if self.failure is not None:
            raise StorageError(self.failure)
        if self._stopping:
            raise BusyError("the server is stopping")
        job = Job(operation, batch)
        size = len(operation.body)
        with self._count:
            if self._waiting_bytes + size > self._limits.queue_bytes and self._waiting_bytes:
                raise BusyError("too many bytes wait to be learned; try again later")
            self._waiting_bytes += size
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            with self._count:
                self._waiting_bytes -= size
            raise BusyError("too many requests wait to be learned; try again later") from None
        return job.result

    def stop(self) -> None:
        """Do what still waits, write a checkpoint, and end the thread."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """The queued operations."""
        return self._queue.qsize()

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._step():
                pass
            self._finish()
        except BaseException as error:
            self.failure = "the writer has stopped; restart the server"
            logger.critical("the writer has stopped: %r", error)
            self._fail_rest()
        finally:
            self.store.close()

    def _step(self) -> bool:
        """Complete queued operations; return False to stop the thread."""
        jobs, go_on = self._next_jobs()
        if jobs:
            self._do(jobs)
        log = self.store.log
        log.sync_if_due()
        if log.failed is not None and self.failure is None:
            self._fail(log.failed)
        if self.replica.rows != self.state.rows and self.replica.is_due:
            self.replica.refresh(self.state.host, self.state.rows)
        if self._checkpoint_is_due():
            self._checkpoint()
        self.on_idle(self.state)
        return go_on

    def _next_jobs(self) -> tuple[list[Job], bool]:
        wait = IDLE
        if self.replica.rows != self.state.rows:
            wait = min(wait, self.replica.wait)
        jobs: list[Job] = []
        try:
            found = self._queue.get(timeout=max(wait, 0.001))
            while found is not None:
                jobs.append(found)
                if len(jobs) >= GROUP:
                    return jobs, True
                found = self._queue.get_nowait()
        except queue.Empty:
            return jobs, True
        return jobs, False

    def _do(self, jobs: list[Job]) -> None:
        moment = time.time()
        with self._count:
            self._waiting_bytes -= sum(len(job.operation.body) for job in jobs)
        must_sync = any(job.operation.kind != "predict" for job in jobs)
        try:
            payloads = [job.operation.to_bytes() for job in jobs]
            records = self.store.log.append(payloads, moment, must_sync)
        except OSError as error:
            self.log_errors += 1
            logger.error("the log cannot be written: %s", error.strerror)
            if self.store.log.failed is not None:
                self._fail(self.store.log.failed)
            for job in jobs:
                _answer(job, StorageError(f"the log cannot be written ({error.strerror})"))
            return
        done: list[tuple[Job, Outcome | BaseException]] = []
        try:
            for job, record in zip(jobs, records, strict=True):
                done.append((job, self._apply(job, record.time)))
                self.state.seq = record.seq
            if self.replica.rows != self.state.rows and self.replica.is_due:
                # Before the answer, so that a client that has learned a row predicts with it.
                self.replica.refresh(self.state.host, self.state.rows)
        finally:
            for job, result in done:
                _answer(job, result)
            for job in jobs[len(done) :]:
                _answer(job, StorageError("the writer has stopped; restart the server"))

    def _apply(self, job: Job, moment: float) -> Outcome | BaseException:
        try:
            outcome = self.state.apply(job.operation, moment, job.batch)
        except REJECTIONS as error:
            return error
        except MemoryError:
            raise
        except Exception as error:
            logger.exception("an operation has failed")
            return error
        self.on_outcome(job.operation, outcome)
        return outcome

    def _fail(self, reason: str) -> None:
        self.failure = reason
        logger.critical("no more rows are learned: %s", reason)

    def _fail_rest(self) -> None:
        while True:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return
            if job is not None:
                _answer(job, StorageError("the writer has stopped; restart the server"))

    # -- checkpoints ------------------------------------------------------------------------------

    def _checkpoint_is_due(self) -> bool:
        if self._saving is not None:
            if self._saving.is_alive():
                return False
            self._saving = None
        now, store = time.monotonic(), self.store
        if store.checkpoint_seq == self.state.seq or now < self._retry_checkpoint_at:
            return False
        by_time = now - store.checkpoint_at >= self._limits.checkpoint_seconds
        return by_time or store.log.nbytes >= self._limits.checkpoint_bytes

    def _checkpoint(self) -> None:
        """Take a snapshot, and let another thread write it while this one continues."""
        try:
            self.store.log.rotate()
        except OSError as error:
            self._note_failed_checkpoint(error)
            return
        snapshot = Snapshot(self.state)
        self._saving = threading.Thread(target=self._save, args=(snapshot,), name="checkpoint")
        self._saving.start()

    def _save(self, snapshot: Snapshot) -> None:
        try:
            start = time.monotonic()
            self.store.write(snapshot)
            self.checkpoints += 1
            spent = time.monotonic() - start
            logger.info("checkpoint of %d rows in %.3f s", snapshot.header["rows"], spent)
        except OSError as error:
            self._note_failed_checkpoint(error)

    def _note_failed_checkpoint(self, error: OSError) -> None:
        self.checkpoint_errors += 1
        self._retry_checkpoint_at = time.monotonic() + 5.0
        logger.error("no checkpoint could be written: %s; the log keeps all rows", error.strerror)

    def _finish(self) -> None:
        if self._saving is not None:
            self._saving.join()
        if self.failure is None and self.store.checkpoint_seq != self.state.seq:
            try:
                self.store.log.rotate()
                self._save(Snapshot(self.state))
            except OSError as error:
                self._note_failed_checkpoint(error)


def _answer(job: Job, result: Outcome | BaseException) -> None:
    if job.result.set_running_or_notify_cancel():
        if isinstance(result, BaseException):
            job.result.set_exception(result)
        else:
            job.result.set_result(result)
