"""The part of the report about drift events."""

from collections.abc import Sequence

from sapwood.drift import DriftEvent
from sapwood.evaluate.result import Evaluation
from sapwood.formatting import moment
from sapwood.plot.clock import MOST_MARKS
from sapwood.report.html import ABSENT, Words, count, measured, scrolled, text

__all__ = ["grouped_events", "render_drift"]

MOST_GROUPS = 50
MOST_EVENTS = 8  # of a group
LEAST_GAP = 500
PART_OF_STREAM = 50
SEVERITIES = ("minor", "moderate", "major")


def render_drift(evaluation: Evaluation) -> str | None:
    """Return the drift events in groups; None if there are none."""
    events = evaluation.drift_events
    if not events:
        return None
    groups = grouped_events(events, evaluation.rows_scored)
    shown = groups[-MOST_GROUPS:]
    timed = any(event.since_time is not None for group in shown for event in group)
    rows = [_row(group, timed) for group in shown]
    heads = [
        "since row",
        *((Words("time (UTC)"),) if timed else ()),
        "detected at",
        Words("severity"),
        "effect",
        Words("events"),
    ]
    hidden = f" The last {MOST_GROUPS} groups are listed." if len(groups) > MOST_GROUPS else ""
    marked = f"the last {MOST_MARKS} of them" if len(events) > MOST_MARKS else "them"
    found = "One drift event was" if len(events) == 1 else f"{count(len(events))} drift events were"
    within = "" if len(groups) == len(events) else f" They form {_groups(len(groups))}."
    effect = (
        "Effect: the relative growth of the mean absolute error, or the population stability index "
        "(PSI) of a distribution; the largest of a group."
    )
    return (
        f"<p>{found} detected; dotted lines mark {marked} in the charts.{within}{hidden} "
        f"{effect}</p>\n{scrolled(heads, rows, kind='drift')}"
    )


def _groups(number: int) -> str:
    return "one group" if number == 1 else f"{count(number)} groups of events close to each other"


def grouped_events(events: Sequence[DriftEvent], rows: int) -> list[list[DriftEvent]]:
    """Return events in groups: each event was detected soon after the one before it.

    - `rows`: rows of the stream: a gap of a fiftieth of them, at least 500, starts a new group.
    """
    gap = max(LEAST_GAP, rows // PART_OF_STREAM)
    groups: list[list[DriftEvent]] = []
    for event in events:
        if groups and event.row - groups[-1][-1].row <= gap:
            groups[-1].append(event)
        else:
            groups.append([event])
    return groups


def _row(group: Sequence[DriftEvent], timed: bool) -> tuple[str, ...]:
    first = min(group, key=lambda event: event.since)
    worst = max(group, key=lambda event: (SEVERITIES.index(event.severity), event.effect))
    shown = "<br>".join(text(event.words, 240) for event in group[:MOST_EVENTS])
    hidden = len(group) - MOST_EVENTS
    rows = [count(group[0].row)]
    if group[-1].row != group[0].row:
        rows.append(count(group[-1].row))
    return (
        count(first.since),
        *((_moment(first.since_time),) if timed else ()),
        " to ".join(rows),
        worst.severity,
        measured(max(event.effect for event in group), 2),
        shown + (f"<br>and {count(hidden)} more" if hidden > 0 else ""),
    )


def _moment(time: float | None) -> str:
    if time is None:
        return ABSENT
    return moment(time)
