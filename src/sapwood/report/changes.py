"""The part of the report about what has changed in a stream."""

from datetime import UTC, datetime

from sapwood.evaluate.result import Evaluation
from sapwood.plot.clock import MOST_MARKS
from sapwood.report.html import ABSENT, Column, count, measured, table, text

__all__ = ["render_changes"]

MOST = 100


def render_changes(evaluation: Evaluation) -> str | None:
    """Return what a monitor has found to be changed; None if there was none."""
    alarms = evaluation.alarms
    if alarms is None:
        return None
    if not alarms:
        return '<p class="quiet">None: nothing that was watched has changed.</p>'
    shown = alarms[-MOST:]
    timed = any(alarm.since_time is not None for alarm in shown)
    rows = [
        (
            count(alarm.since),
            *((_moment(alarm.since_time),) if timed else ()),
            count(alarm.row),
            alarm.severity,
            measured(alarm.effect, 2),
            text(alarm.words, 240),
        )
        for alarm in shown
    ]
    heads = [
        Column("since row"),
        *((Column("time (UTC)", numbers=False),) if timed else ()),
        Column("noticed at"),
        Column("severity", numbers=False),
        Column("effect"),
        Column("what has changed", numbers=False),
    ]
    hidden = f" The last {MOST} are listed." if len(alarms) > MOST else ""
    marked = f" mark the last {MOST_MARKS}" if len(alarms) > MOST_MARKS else " mark them"
    changes = "One change was" if len(alarms) == 1 else f"{count(len(alarms))} changes were"
    effect = (
        "The effect of a change of errors is the relative growth of their mean size, else the "
        "population stability index (PSI)."
    )
    return (
        f"<p>{changes} noticed; dotted lines{marked} in the curves.{hidden} {effect}</p>\n"
        f'<div class="scroll">{table(heads, rows)}</div>'
    )


def _moment(time: float | None) -> str:
    if time is None:
        return ABSENT
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
