"""The part of the report about what has changed in a stream."""

from sapwood.evaluate.result import Evaluation
from sapwood.plot.clock import MOST_MARKS
from sapwood.report.html import Column, count, table, text

__all__ = ["render_changes"]

MOST = 100


def render_changes(evaluation: Evaluation) -> str | None:
    """Return what a monitor has found to be changed; None if there was none."""
    alarms = evaluation.alarms
    if alarms is None:
        return None
    if not alarms:
        return '<p class="quiet">None: nothing that was watched has changed.</p>'
    rows = [
        (count(alarm.since), count(alarm.row), text(alarm.words, 240)) for alarm in alarms[-MOST:]
    ]
    heads = [Column("since row"), Column("noticed at"), Column("what has changed", numbers=False)]
    hidden = f" The last {MOST} are listed." if len(alarms) > MOST else ""
    marked = f" mark the last {MOST_MARKS}" if len(alarms) > MOST_MARKS else " mark them"
    changes = "One change was" if len(alarms) == 1 else f"{count(len(alarms))} changes were"
    return (
        f"<p>{changes} noticed; dotted lines{marked} in the curves.{hidden}</p>\n"
        f'<div class="scroll">{table(heads, rows)}</div>'
    )
