"""What a hybrid consists of, in a few lines."""

import math
from collections.abc import Mapping
from typing import Any

from sapwood.formatting import plain

__all__ = ["described", "hybrid_of", "to_text"]


def hybrid_of(model: Any) -> Any:
    """Return the hybrid that a model is, or has inside; None if there is none."""
    while model is not None and not hasattr(model, "weight_history"):
        inner = getattr(model, "model", None)
        model = None if inner is model else inner
    return model


def described(hybrid: Any) -> dict[str, Any]:
    """Return the members of a hybrid, their weights and the fits, in terms of JSON.

    Parameters
    ----------
    hybrid : HybridRegressor
        What is described.
    """
    known = hybrid.staleness
    refits = hybrid.refits
    fields = ("row", "rows", "used_from", "error")
    names = ("online_rmse", "batch_rmse", "rmse", "batch_weight", "best_batch_weight")
    weights = hybrid.weights
    if hybrid.targets:
        weights = {str(target): own for target, own in weights.items()}
    return {
        "online": type(hybrid.model).__name__,
        "batch": hybrid.batch_name,
        "weights": weights,
        **{name: None if math.isnan(known[name]) else known[name] for name in names},
        "drift_events": known["drift_events"],
        "refits": len(refits),
        "last_refit": {name: getattr(refits[-1], name) for name in fields} if refits else None,
    }


def to_text(hybrid: Any) -> str:
    """Return the same as lines of text.

    Parameters
    ----------
    hybrid : HybridRegressor
        What is described.
    """
    own = described(hybrid)
    lines = [f"hybrid of a {own['online']} and a batch model: {plain(own['batch'])}"]
    by_target = own["weights"] if hybrid.targets else {"": own["weights"]}
    for target, weights in by_target.items():
        of = f" of {plain(target)}" if target else ""
        lines.append(f"weights{of}: {_shares(weights)}")
    if own["rmse"] is not None:
        errors = ", ".join(
            f"{name} {own[key]:.4g}"
            for name, key in (("online", "online_rmse"), ("batch", "batch_rmse"), ("all", "rmse"))
        )
        lines.append(f"recent RMSE: {errors}")
    if (last := own["last_refit"]) is not None:
        failed = f", failed: {plain(last['error'], 200)}" if last["error"] else ""
        lines.append(
            f"refits: {own['refits']:,}, the last after {last['row']:,} rows, on {last['rows']:,} of "
            f"them, used from row {last['used_from']:,} on{failed}"
        )
    elif hybrid.parameters["refit"] is None:
        lines.append("refits: never, the batch model was given as it is")
    else:
        lines.append("refits: none yet")
    if own["drift_events"]:
        rows = ", ".join(f"{event['row']:,}" for event in own["drift_events"][-5:])
        lines.append(f"drift events of the batch model's errors: at rows {rows}")
    return "\n".join(lines)


def _shares(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in weights.items())
