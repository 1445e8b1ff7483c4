"""The part of the report about an online model and a batch model that are combined."""

import math
from typing import Any

from sapwood import plot
from sapwood.hybrid.summary import hybrid_of
from sapwood.report.charts import chart
from sapwood.report.html import Words, charts, count, measured, scrolled, text

__all__ = ["render_hybrid"]

MOST_FITS = 20  # that a table shows


def render_hybrid(model: Any) -> str | None:
    """Return weights over time, and fits; None of a model that is no hybrid."""
    hybrid = hybrid_of(model)
    if hybrid is None:
        return None
    known = hybrid.staleness
    weights = chart("hybrid-weights", "Weights over time", plot.hybrid_weights, hybrid)
    errors = chart("hybrid-errors", "Recent errors", plot.hybrid_errors, hybrid)
    gain = known["correction_gain"]
    helped = (
        ""
        if math.isnan(gain)
        else (
            f" On recent rows the hybrid avoids {100 * gain:.0f} % of the batch model's squared error "
            f"(RMSE {measured(known['rmse'])}, batch model {measured(known['batch_rmse'])}, online "
            f"model {measured(known['online_rmse'])})."
        )
    )
    words = (
        "<p>The weights of the online model, of the corrector (an online model that has the batch "
        "model's prediction as a feature) and of the batch model in predictions. The batch model "
        f"has {100 * known['batch_weight']:.0f} % now and had "
        f"{100 * known['best_batch_weight']:.0f} % at best.{helped}</p>\n"
    )
    return (
        f"{words}{charts(weights, errors)}\n{_events(known['drift_events'])}{_fits(hybrid.refits)}"
    )


def _events(events: list[dict[str, Any]]) -> str:
    if not events:
        return ""
    rows = [
        (count(each["row"]), measured(each["before"]), measured(each["after"]))
        for each in reversed(events[-MOST_FITS:])
    ]
    heads = ("row", "mean error before", "after")
    caption = "Drift events: the batch model's error grew"
    return scrolled(heads, rows, caption=caption)


def _fits(fits: list[Any]) -> str:
    if not fits:
        return "<p>The batch model was not refitted.</p>"
    shown = fits[-MOST_FITS:]
    rows = [
        (
            count(fit.row),
            count(fit.rows),
            count(fit.used_from),
            "" if math.isnan(fit.seconds) else f"{fit.seconds:.2f}",
            text(fit.error or "used"),
        )
        for fit in reversed(shown)
    ]
    names = ("started at row", "rows", "used from row", "seconds")
    heads = (*names, Words("result"))
    return scrolled(heads, rows, caption=f"The latest {len(shown)} of {len(fits)} refits")
