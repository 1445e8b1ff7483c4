"""Axes along the rows of a stream, or along its time."""

from datetime import UTC
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from numpy.typing import NDArray

from sapwood.evaluate.result import Evaluation
from sapwood.formatting import moment
from sapwood.plot.style import MUTED, short

__all__ = [
    "DAY",
    "Along",
    "along_of",
    "along_of_rows",
    "are_in_order",
    "label_along",
    "mark_changes",
    "place_in_words",
    "places_of",
    "places_of_recent",
    "places_of_rows",
    "start_axis",
]

Along = Literal["rows", "time"]
DAY = 86_400.0
FARTHEST = 2.5e11  # seconds; dates end near the year 9999
EARLIEST = -6.2e10
MOST_MARKS = 20


def are_in_order(times: NDArray[np.float64]) -> bool:
    """Whether times are known for all rows, and go on from row to row.

    Examples
    --------
    >>> are_in_order(np.array([0.0, 60.0])), are_in_order(np.array([60.0, 0.0, np.nan]))
    (True, False)
    """
    if len(times) < 2 or not np.isfinite(times).all():
        return False
    inside = EARLIEST < times[0] < times[-1] < FARTHEST
    return bool(inside and (np.diff(times) >= 0).all())


def along_of(evaluation: Evaluation) -> Along:
    """Return what pictures of an evaluation go along: its time, if it has one; else its rows."""
    known = are_in_order(evaluation.further["time"])
    sample = evaluation.sample
    if known and sample is not None and len(sample.rows) > 1:
        known = are_in_order(sample.rows["time"])
    return "time" if known else "rows"


def along_of_rows(rows: NDArray[Any]) -> Along:
    """Return what a picture of some rows goes along: their times, if all are known."""
    return "time" if are_in_order(rows["time"]) else "rows"


def places_of_recent(rows: NDArray[Any], along: Along) -> NDArray[np.float64]:
    """Return where consecutive rows are; those of the same time are spread up to the next time."""
    places = places_of(rows["row"], rows["time"], along)
    if along == "rows" or not len(places):
        return places
    times, first, counts = np.unique(places, return_index=True, return_counts=True)
    if len(times) == len(places) or len(times) == 1:
        return places
    steps = np.append(np.diff(times), times[-1] - times[-2])
    place = np.arange(len(places)) - np.repeat(first, counts)
    # The first rows of a window may be the last ones of their time: count from the next time.
    place[: counts[0]] += max(int(counts[1:].max()) - int(counts[0]), 0)
    wide = np.maximum(np.repeat(counts, counts), counts[1:].max())
    return np.asarray(places + np.repeat(steps, counts) * place / wide)


def places_of(rows: NDArray[Any], times: NDArray[Any], along: Along) -> NDArray[np.float64]:
    """Return where points are on such an axis: days since 1970, or rows."""
    return np.asarray(times if along == "time" else rows, dtype=np.float64) / (
        DAY if along == "time" else 1.0
    )


def places_of_rows(rows: NDArray[Any], evaluation: Evaluation, along: Along) -> NDArray[np.float64]:
    """Return where scored rows are on such an axis; times are between those of the curve."""
    if along == "rows" or not len(evaluation.curve):
        return np.asarray(rows, dtype=np.float64)
    known = evaluation.curve["row"]
    return np.asarray(np.interp(rows, known, evaluation.further["time"]) / DAY)


def place_in_words(place: float, along: Along) -> str:
    """Return where a point of such an axis is.

    Examples
    --------
    >>> place_in_words(2500.0, "rows"), place_in_words(20_410.5, "time")
    ('at row 2.5k', 'on 2025-11-18')
    """
    if along == "rows":
        return f"at row {short(place)}"
    return f"on {moment(place * DAY, '%Y-%m-%d')}"


def start_axis(ax: Axes, along: Along) -> None:
    """Let an axis of rows start at 0, and one of time at the first point, with dates."""
    if along == "rows":
        ax.set_xlim(left=0)
    else:
        ax.set_xlim(left=ax.dataLim.x0)
        label_along(ax, along)


def mark_changes(ax: Axes, evaluation: Evaluation, along: Along) -> None:
    """Draw a line at each drift event; at the last ones, if there are many."""
    curve, events = evaluation.curve, (evaluation.drift_events or ())[-MOST_MARKS:]
    if not len(curve):
        return
    for x in places_of_rows(np.array([event.since for event in events]), evaluation, along):
        ax.axvline(x, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), label="_drift")


def label_along(ax: Axes, along: Along) -> None:
    """Show dates on the axis below, if it goes along time."""
    if along == "time":
        locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        formatter = ConciseDateFormatter(locator, UTC, show_offset=False)  # type: ignore[no-untyped-call]
        formatter.formats[2] = "%d %b"  # a day without its month is not clear
        ax.xaxis.set_major_formatter(formatter)
        ax.set_xlabel("time (UTC)")
