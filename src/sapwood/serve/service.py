"""The parts of a service together: files, writer, replica, metrics."""

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sapwood.serve.class_host import host_from_bytes
from sapwood.serve.gate import Bucket
from sapwood.serve.logs import log_event
from sapwood.serve.metrics import Metrics
from sapwood.serve.operations import Operation, Outcome
from sapwood.serve.replica import Follower, Replica
from sapwood.serve.settings import Settings
from sapwood.serve.state import ServiceState
from sapwood.serve.store import Store
from sapwood.serve.writer import Writer
from sapwood.system import system

__all__ = ["Published", "Service"]

SCORES = {"numbers": ("mae", "rmse", "r2"), "classes": ("accuracy", "log_loss")}
"""The scores of a task; the first one is compared with baselines."""
PUBLISHING = 0.1
"""Seconds between two updates of what the page and metrics show."""


@dataclass(frozen=True)
class Published:
    """What the page and metrics show: a copy that nobody changes."""

    version: int = 0
    rows: int = 0
    pending: int = 0
    scores: dict[str, Any] = field(default_factory=dict)
    points: list[list[Any]] = field(default_factory=list)
    curve: list[list[Any]] = field(default_factory=list)
    drifts: list[dict[str, Any]] = field(default_factory=list)


class Service:
    """A model that is served.

    - Raises StoreError, LogError, ModelFileError, OSError, TypeError if the model cannot be served.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.writer: Writer | None = None
        self.follower: Follower | None = None
        self.topic: Any = None  # the TopicFollower, if messages of a topic are learned
        self.stopping = False
        self.streams = 0  # pages that are open
        self.learn_bucket = Bucket(settings.max_learn_rate)
        self.metrics = Metrics(self.facts)
        self.published = Published()
        self._published_at, self._published_seq = 0.0, -1
        if settings.read_only:
            self._open_to_read(settings.path)
        else:
            self._open_to_write(settings)

    def _open_to_read(self, path: Path) -> None:
        host = host_from_bytes(path.read_bytes(), str(path))
        self.replica = Replica(host, host.learned_rows)
        self.follower = Follower(path, self.replica, self._note_bad_reload)

    def _open_to_write(self, settings: Settings) -> None:
        store = Store(settings.path, settings.fsync, settings.max_pending, settings.monitor)
        state = store.open()
        if store.replayed:
            log_event("replayed", operations=store.replayed, rows=state.rows)
        self.replica = Replica(state.host.copy(), state.rows)
        self.writer = Writer(store, state, self.replica, settings.writer)
        self.writer.on_outcome = self._note
        self.writer.on_idle = self._publish
        self._publish(state, force=True)

    # -- running ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads."""
        if self.writer is not None:
            self.writer.start()
        if self.follower is not None:
            self.follower.start()

    def stop(self) -> None:
        """Complete queued operations, write a checkpoint, and stop the threads."""
        self.stopping = True
        if self.writer is not None:
            self.writer.stop()
        if self.follower is not None:
            self.follower.stop()

    @property
    def rows(self) -> int:
        """Rows that the model has learned; the replica may lag behind."""
        return self.replica.rows if self.writer is None else self.writer.state.rows

    @property
    def failure(self) -> str | None:
        """Why the process has to be restarted, None if it need not be."""
        return None if self.writer is None else self.writer.failure

    @property
    def unready(self) -> str | None:
        """Why no requests should be sent, None if they may be."""
        if self.failure is not None or self.stopping:
            return self.failure or "the server is stopping"
        failure: str | None = None if self.topic is None else self.topic.failure
        return failure

    def _note_bad_reload(self, error: Exception) -> None:
        message = getattr(error, "strerror", None) or str(error)
        log_event("reload_failed", logging.ERROR, message=message)

    # -- for the writer's thread ------------------------------------------------------------------

    def _note(self, operation: Operation, outcome: Outcome) -> None:
        rows = self.metrics.rows
        rows.labels(operation.kind).inc(outcome.learned + outcome.predicted)
        if outcome.duplicates:
            rows.labels("duplicate").inc(outcome.duplicates)
        if outcome.rejected:
            self.metrics.rejected_rows.labels("bad_row").inc(outcome.rejected)
        if outcome.evicted:
            self.metrics.evicted.inc(outcome.evicted)
        for event in outcome.drifts:
            fields = {name: value for name, value in event.items() if name != "time"}
            log_event("drift", logging.WARNING, **fields)

    def _publish(self, state: ServiceState, force: bool = False) -> None:
        """Copy what others may read, at most a few times a second."""
        now = time.monotonic()
        is_new = state.seq != self._published_seq and now - self._published_at >= PUBLISHING
        if not (force or is_new):
            return
        self._published_at, self._published_seq = now, state.seq
        board = state.scores
        self.published = Published(
            self.published.version + 1,
            state.rows,
            len(state.pending),
            board.summary(),
            list(board.points),
            list(board.curve),
            list(board.drifts),
        )

    # -- metrics ----------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """Return the values of gauges."""
        now = self.published
        scores = now.scores or {"errors": {}, "baselines": {}, "coverage": {}, "drifts": 0}
        errors = {
            f"sapwood_{name}": [
                ({"target": target}, found[name])
                for target, found in scores["errors"].items()
                if name in found
            ]
            for name in SCORES[self.replica.host.task]
        }
        coverage = [
            ({"target": target, "level": level}, share)
            for target, found in scores["coverage"].items()
            for level, share in found.items()
        ]
        main = SCORES[self.replica.host.task][0]
        baselines = [
            ({"target": target, "baseline": name}, errors_of[main])
            for target, found in scores["baselines"].items()
            for name, errors_of in found.items()
        ]
        return {
            **errors,
            f"sapwood_baseline_{main}": baselines,
            "sapwood_coverage": coverage,
            "sapwood_pending_labels": [({}, now.pending)],
            "sapwood_streams": [({}, self.streams)],
            "sapwood_model_bytes": [({}, self.replica.host.nbytes)],
            "sapwood_model_rows": [({}, self.rows)],
            "sapwood_process_resident_bytes": [({}, system.resident_bytes)],
            "sapwood_checkpoint_age_seconds": [({}, self.checkpoint_age)],
            "sapwood_drift_events": [({}, scores["drifts"])],
            **self._storage_facts(),
        }

    def _storage_facts(self) -> dict[str, Any]:
        writer, follower, topic = self.writer, self.follower, self.topic
        if writer is None:
            return {"sapwood_checkpoints": [({}, follower.reloads if follower else 0)]}
        following: dict[str, Any] = {}
        if topic is not None:
            following["sapwood_following"] = [({}, int(topic.failure is None))]
            following["sapwood_follow_errors"] = [({}, topic.errors)]
        return {
            **following,
            "sapwood_replaced_models": [({}, writer.store.replaced)],
            "sapwood_checkpoints": [({}, writer.checkpoints)],
            "sapwood_queue_operations": [({}, writer.waiting)],
            "sapwood_log_bytes": [({}, writer.store.log.nbytes)],
            "sapwood_storage_errors": [({}, writer.log_errors + writer.checkpoint_errors)],
        }

    @property
    def checkpoint_age(self) -> float:
        """Seconds since the last checkpoint, or since a read-only server has loaded its model."""
        if self.writer is not None:
            return time.monotonic() - self.writer.store.checkpoint_at
        assert self.follower is not None
        return time.monotonic() - self.follower.loaded_at
