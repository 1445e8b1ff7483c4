"""The metrics of a service, in the format of Prometheus."""

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
REJECTED = (
    *("malformed", "bad_row", "conflict", "too_large", "rate_limit", "busy", "unauthorized"),
    *("forbidden", "media_type", "timeout", "other"),
)
ROW_REASONS = (
    *("bad_row", "bad_target", "bad_weight", "bad_id", "unknown_feature", "conflict"),
    *("too_large", "rate_limit", "busy"),
)
HELP = {
    "sapwood_mae": "Exponentially weighted mean absolute error (half-life 693 rows).",
    "sapwood_rmse": "Exponentially weighted root mean squared error (half-life 693 rows).",
    "sapwood_r2": "Exponentially weighted R squared (half-life 693 rows).",
    "sapwood_accuracy": "Exponentially weighted accuracy (half-life 693 rows).",
    "sapwood_log_loss": "Exponentially weighted log-loss (half-life 693 rows).",
    "sapwood_baseline_accuracy": "The same of a baseline: the majority class, or the last one.",
    "sapwood_baseline_mae": "The same of a baseline: the mean of all targets, or the last one.",
    "sapwood_coverage": "Exponentially weighted coverage of the prediction intervals.",
    "sapwood_pending_labels": "Pending predictions, which have no label yet.",
    "sapwood_streams": "Live pages that are open now.",
    "sapwood_model_bytes": "Bytes that the model occupies.",
    "sapwood_model_rows": "Rows that the model has learned.",
    "sapwood_process_resident_bytes": "Resident memory of the process.",
    "sapwood_checkpoint_age_seconds": "Seconds since the last checkpoint, or the last reload.",
    "sapwood_queue_operations": "Pending operations, which are not learned yet.",
    "sapwood_log_bytes": "Bytes of the log since the last checkpoint.",
    "sapwood_drift_events": "Drift events since the model is served.",
    "sapwood_checkpoints": "Checkpoints written, or models reloaded by a read-only server.",
    "sapwood_following": "Whether the messages of the topic are learned: 1, or 0 if reading fails.",
    "sapwood_follow_errors": "Times that the topic could not be read.",
    "sapwood_replaced_models": "Times that another process has replaced the served model file.",
    "sapwood_storage_errors": "Times that the log or a checkpoint could not be written.",
}
COUNTERS = frozenset(
    f"sapwood_{name}"
    for name in (
        *("checkpoints", "drift_events", "follow_errors", "replaced_models", "storage_errors"),
    )
)


class Metrics:
    """Counters that requests change, and gauges that are read when metrics are requested.

    - `facts`: returns the current values of gauges, as {name: [(labels, value), ...]}.
    """

    def __init__(self, facts: Callable[[], dict[str, Any]]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        self.rows = Counter(
            "sapwood_rows", "Rows of requests that succeeded, by operation.", ["operation"], **own
        )
        for name in ("predict", "learn", "labels", "follow", "duplicate"):
            self.rows.labels(name)
        self.rejected = Counter(
            "sapwood_rejected_requests",
            "Rejected requests, by reason.",
            ["reason"],
            **own,
        )
        for reason in REJECTED:
            self.rejected.labels(reason)
        self.rejected_rows = Counter(
            "sapwood_rejected_rows", "Rows that were rejected, by reason.", ["reason"], **own
        )
        for reason in ROW_REASONS:
            self.rejected_rows.labels(reason)
        self.latency = Histogram(
            "sapwood_request_seconds", "Seconds until the answer.", ["path"], buckets=SECONDS, **own
        )
        self.requests = Counter(
            "sapwood_requests", "Requests, by path and status.", ["path", "status"], **own
        )
        self.evicted = Counter(
            "sapwood_evicted_labels", "Predictions whose label is no longer waited for.", **own
        )
        self.active = Gauge("sapwood_active_requests", "Requests that are served now.", **own)
        self._facts = facts
        self.registry.register(self)

    def collect(self) -> Iterator[Any]:
        """Yield the gauges."""
        for name, values in self._facts().items():
            names = list(values[0][0]) if values else []
            family = CounterMetricFamily if name in COUNTERS else GaugeMetricFamily
            found = family(name, HELP[name], labels=names)
            for labels, value in values:
                if value is not None:
                    found.add_metric([labels[each] for each in names], value)
            yield found

    def to_text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry)
