"""The first part of the report: how good predictions are, and what happened to the rows."""

import math
from datetime import UTC, datetime

from sapwood.evaluate.result import BASELINES, UNSCORED, Errors, Evaluation
from sapwood.formatting import moment, number, plain
from sapwood.plot.clock import along_of
from sapwood.report.html import (
    ABSENT,
    Words,
    aligned_column,
    count,
    grouped_table,
    measured,
    megabytes,
    rate,
    scrolled,
    share,
    text,
    tiles,
)

__all__ = ["half_life", "render_result", "render_rows", "summary_of", "verdict"]


def summary_of(evaluation: Evaluation, created: datetime | None) -> str:
    """Return the lines below the title: the target, the rows, when labels arrived, the date."""
    rows = evaluation.rows_predicted
    sentences = [f"Target: <b>{text(evaluation.target)}</b>."]
    if rows:
        sentences.append(f"{count(rows)} rows{_period(evaluation)}.")
        sentences.append(_order(evaluation))
    else:
        sentences.append("No row could be used.")
    without = evaluation.rows_without_target
    if without and not evaluation.targets:
        joined = evaluation.labels_joined
        later = f"; the labels of {count(joined)} of them arrived later" if joined else ""
        sentences.append(f"{count(without)} rows had no label{later}.")
    if created is not None:
        sentences.append(f"Created {created.astimezone(UTC):%Y-%m-%d %H:%M} UTC.")
    return " ".join(sentences)


def _period(evaluation: Evaluation) -> str:
    """Return from when to when the rows are, if they have times."""
    known = next(iter(evaluation.targets.values()), evaluation)
    if along_of(known) == "rows" or known.sample is None:
        return ""
    times = known.sample.rows["time"][0], known.further["time"][-1]
    first, last = (moment(float(time), "%Y-%m-%d") for time in times)
    return f" from {first} to {last}" if first != last else f" of {first}"


def _order(evaluation: Evaluation) -> str:
    """Return how rows were evaluated, and when their labels arrived."""
    if evaluation.label_delay is not None:
        return (
            f"Each row was predicted when it arrived; its label arrived {text(evaluation.label_delay)} "
            "later, and was scored and learned then."
        )
    if evaluation.rows_without_target:
        return "Each row was predicted when it arrived, and learned when its label was known."
    return (
        "Each row was predicted first; its label arrived at once, and was learned before the next."
    )


def verdict(evaluation: Evaluation) -> str:
    """Return in a few sentences how good the predictions are."""
    total, recent = evaluation.total, evaluation.window
    unscored = _unscored(evaluation)
    if evaluation.rows_scored == 0 or not math.isfinite(total.mae):
        return f"No prediction could be scored, so there is nothing to report.{unscored}"
    target = plain(evaluation.target, 40)
    sentences = [f"{evaluation.headline}."] if evaluation.baselines else []
    sentences += [f"On average a prediction of {target} was off by {measured(total.mae)}."]
    mean = f"always predicting the mean ({measured(evaluation.target_mean)})"
    if math.isnan(total.r2):
        sentences.append("The target does not vary, so there is nothing to compare this with.")
    elif total.r2 >= 0:
        percent = number(100 * total.r2, 4 if total.r2 > 0.99 else 3)
        sentences.append(f"The squared error is {percent} % below that of {mean}.")
    else:
        times = number(1 - total.r2, 3)
        sentences.append(f"The squared error is {times} times that of {mean}: worse than no model.")
    scored = evaluation.rows_scored
    window = min(evaluation.window_rows, scored)
    if window < scored and math.isfinite(recent.mae) and total.mae > 0:
        ratio = recent.mae / total.mae
        how = "smaller" if ratio < 0.97 else "larger" if ratio > 1.03 else "about the same"
        of = f"{measured(recent.mae)}, with an R² of {measured(recent.r2, 3)}"
        sentences.append(f"Over the last {count(window)} rows the error was {how}: {of}.")
    if evaluation.drift_events is not None and not evaluation.drift_events:
        sentences.append("The monitor detected no drift.")
    return " ".join(sentences) + unscored


def _unscored(evaluation: Evaluation) -> str:
    """Return a sentence on the rows that are not part of the errors, if there are any."""
    if not evaluation.unscored:
        return ""
    rows = f"{count(evaluation.unscored)} of {count(evaluation.rows_learned)} rows"
    first = plain(evaluation.first_unscored, 80)
    return f" Not scored are {rows}, whose {UNSCORED}; the first is {first}."


def render_result(evaluation: Evaluation) -> str:
    """Return the result in words, in tiles and in tables."""
    total, rejected = evaluation.total, evaluation.rejected.count
    values = [
        ("MAE", measured(total.mae), "mean absolute error"),
        ("RMSE", measured(total.rmse), "root mean squared error"),
        ("R²", measured(total.r2), "1 is perfect, 0 is the mean"),
        ("Rows", count(evaluation.rows_read), "read"),
        ("Rejected", count(rejected), f"{text(share(rejected, evaluation.rows_read))} of them"),
        ("Throughput", rate(evaluation.steady_rows_per_second), "rows per second"),
        (
            "Leaves",
            ABSENT if evaluation.leaves is None else count(evaluation.leaves),
            "at the end",
        ),
        (
            "Memory",
            ABSENT if evaluation.model_bytes is None else megabytes(evaluation.model_bytes),
            "at the end",
        ),
    ]
    return (
        f'<p class="verdict">{text(verdict(evaluation), 700)}</p>\n{tiles(values)}\n'
        f'<div class="side-by-side">{_error_table(evaluation)}{render_rows(evaluation)}</div>'
    )


def _error_table(evaluation: Evaluation) -> str:
    """Return the errors of the model, and apart from them those of baselines on the same rows."""
    scored = evaluation.rows_scored
    own = {
        "all rows": evaluation.total,
        f"exponentially weighted <small>{half_life(evaluation.fade)}</small>": evaluation.faded,
        f"last {count(min(evaluation.window_rows, scored))} rows": evaluation.window,
    }
    baselines = {BASELINES[name]: found.total for name, found in evaluation.baselines.items()}
    if not baselines:
        baselines = {"the mean alone": Errors(math.nan, evaluation.target_deviation, 0.0)}
    found = [*own.values(), *baselines.values()]
    columns = [
        aligned_column([getattr(each, name) for each in found]) for name in ("mae", "rmse", "r2")
    ]
    rows = list(zip([*own, *baselines], *columns, strict=True))
    groups = {"Model": rows[: len(own)], "Baselines, over all rows": rows[len(own) :]}
    unit = text(plain(evaluation.target, 40))
    heads = [Words(""), "MAE", "RMSE", "R²"]
    made = grouped_table(heads, groups, caption=f"Errors in units of {unit}")
    return f'<div class="wide scroll">{made}</div>'


def half_life(fade: float) -> str:
    """Return the half-life of exponential weights; nothing if they do not decrease."""
    if not 0 < fade < 1:
        return ""
    return f"half-life {count(math.log(0.5) / math.log(fade))} rows"


def render_rows(evaluation: Evaluation) -> str:
    """Return how many rows were read, predicted, learned and rejected."""
    rows = [
        ("read", count(evaluation.rows_read)),
        ("predicted", count(evaluation.rows_predicted)),
        ("learned", count(evaluation.rows_learned)),
        ("rejected", count(evaluation.rejected.count)),
        ("not scored", count(evaluation.unscored)),
    ]
    if evaluation.rows_without_target:
        rows += [("without a target", count(evaluation.rows_without_target))]
    if evaluation.labels_joined:
        rows += [("labels that arrived later", count(evaluation.labels_joined))]
    heads = (Words("rows"), "count")
    return scrolled(heads, rows, caption="Rows")
