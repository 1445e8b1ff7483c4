"""The part of the page about the trees of an ensemble."""

from typing import Any

from sapwood import plot
from sapwood.evaluate.result import Evaluation
from sapwood.model import readable_part
from sapwood.report.charts import chart
from sapwood.report.html import Words, charts, count, measured, megabytes, scrolled, text

__all__ = ["render_members"]

MOST_REPLACEMENTS = 20  # that a table shows


def render_members(evaluation: Evaluation, model: Any) -> str | None:
    """Return the members of an ensemble and their replacements; None of a model of one tree."""
    ensemble = readable_part(model)
    if not hasattr(ensemble, "replacements"):
        return None
    summary = ensemble.summary
    *members, candidate = summary.members
    named = [(f"{place}, {member.role}", member) for place, member in enumerate(members)]
    error = "recent RMSE" if summary.targets == 1 else "recent RMSE, standardized"
    heads = ("age in rows", "leaves", "memory", error, "weight")
    trees = scrolled(
        (Words("member"), *heads),
        [
            (
                text(name),
                count(member.age),
                count(member.leaves),
                megabytes(member.nbytes),
                measured(member.error),
                f"{member.weight:.3f}".replace("-", "−"),
            )
            for name, member in (*named, ("candidate", candidate))
        ],
        kind="members",
    )
    words = (
        "<p>The trees of the ensemble: their age, size, recent error, and weight in the prediction. "
        "The candidate tree learns, and replaces a member once its error is smaller.</p>\n"
    )
    over_time = "" if evaluation.members is None else _over_time(evaluation)
    found = _replacements(ensemble.replacements)
    return f"{words}{trees}\n{over_time}{found}"


def _over_time(evaluation: Evaluation) -> str:
    errors = ("member-errors", "Recent errors over the stream", plot.member_errors, evaluation)
    ages = ("member-ages", "Ages over the stream", plot.member_ages, evaluation)
    return f"{charts(chart(*errors), chart(*ages))}\n"


def _replacements(events: list[dict[str, Any]]) -> str:
    if not events:
        return "<p>No member was replaced.</p>"
    shown = events[-MOST_REPLACEMENTS:]
    rows = [
        (count(each["rows"]), str(each["member"]), count(each["age"]), measured(each["error"]))
        for each in reversed(shown)
    ]
    heads = ("after rows", "member", "age of the new tree", "its RMSE")
    return scrolled(heads, rows, caption=_latest(len(shown), len(events)))


def _latest(shown: int, known: int) -> str:
    if shown < known:
        return f"The latest {count(shown)} of {count(known)} replacements"
    return "One replacement" if known == 1 else f"{count(known)} replacements"
