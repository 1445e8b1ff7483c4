"""The part of the page about the trees of an ensemble."""

from functools import partial
from typing import Any

from sapwood import plot
from sapwood.evaluate.result import Evaluation
from sapwood.model import readable_part
from sapwood.report.charts import chart
from sapwood.report.html import Column, count, measured, megabytes, table, text

__all__ = ["render_members"]

MOST_REPLACEMENTS = 20  # that a table shows


def render_members(evaluation: Evaluation, model: Any) -> str | None:
    """Return who predicts, and who has taken another's place; None of a model of one tree."""
    ensemble = readable_part(model)
    if not hasattr(ensemble, "replacements"):
        return None
    summary = ensemble.summary
    *members, waiting = summary.members
    named = [(f"{place}, {member.role}", member) for place, member in enumerate(members)]
    error = "RMSE lately" if summary.targets == 1 else "RMSE lately, in deviations"
    heads = ("age in rows", "leaves", "memory", error, "weight")
    trees = table(
        (Column("member", numbers=False), *map(Column, heads)),
        [
            (
                text(name),
                count(member.age),
                count(member.leaves),
                megabytes(member.nbytes),
                measured(member.error),
                f"{member.weight:.3f}",
            )
            for name, member in (*named, ("waiting", waiting))
        ],
    )
    words = (
        "<p>What each tree that predicts knows, how far off it was lately, and its weight in the "
        "prediction. The last one waits: it takes the place of another if it errs less.</p>\n"
    )
    over_time = "" if evaluation.members is None else _over_time(evaluation)
    found = _replacements(ensemble.replacements)
    return f'{words}<div class="scroll">{trees}</div>\n{over_time}{found}'


def _over_time(evaluation: Evaluation) -> str:
    errors = chart(
        "member-errors", "Errors over the stream", partial(plot.member_errors, evaluation)
    )
    ages = chart("member-ages", "Ages over the stream", partial(plot.member_ages, evaluation))
    return f'<div class="charts">{errors}{ages}</div>\n'


def _replacements(events: list[dict[str, Any]]) -> str:
    if not events:
        return "<p>No tree has taken the place of another.</p>"
    shown = events[-MOST_REPLACEMENTS:]
    rows = [
        (count(each["rows"]), str(each["member"]), count(each["age"]), measured(each["error"]))
        for each in reversed(shown)
    ]
    heads = tuple(map(Column, ("after rows", "member", "age of the new one", "its RMSE")))
    made = table(heads, rows, caption=f"The latest {len(shown)} replacements")
    return f'<div class="scroll">{made}</div>'
