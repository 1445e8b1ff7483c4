"""The part of a report about series: the errors of each."""

from typing import TYPE_CHECKING

from sapwood.formatting import moment, r_squared
from sapwood.report.html import Words, count, measured, scrolled, text

if TYPE_CHECKING:
    from sapwood.evaluate.series import SeriesErrors, SeriesTable

__all__ = ["day_of", "render_series"]

SHOWN = 50


def day_of(seconds: float) -> str:
    """Return the day of a time in UTC, empty if it is not known.

    Examples
    --------
    >>> day_of(86_400.0), day_of(float("nan"))
    ('1970-01-02', '')
    """
    try:
        return moment(seconds, "%Y-%m-%d")
    except (ValueError, OverflowError):
        return ""


def render_series(found: "SeriesTable | None") -> str:
    """Return a table of the series with the largest sums of errors, empty if there is none."""
    if found is None or not found.series:
        return ""
    keys = [Words(text(name)) for name in found.by]
    heads = [*keys, "rows", "MAE", "RMSE", "R²", "MASE", "first", "last"]
    rows = [_cells(each) for each in found.worst(SHOWN)]
    words = f"{count(len(found.series))} series. "
    if len(rows) < len(found.series):
        words += f"The {len(rows)} with the largest sums of absolute errors are shown. "
    if found.others is not None:
        words += f"{count(found.others.rows)} rows are of further series. "
    apart = f"{found.season} row" if found.season == "1" else text(found.season)
    return (
        f"{scrolled(heads, rows, caption='Scores by series')}\n<p>{words}MASE is the MAE divided by the "
        f"mean absolute difference of values of the series that are {apart} apart.</p>"
    )


def _cells(own: "SeriesErrors") -> list[str]:
    key = [text("missing" if part is None else str(part)) for part in own.key]
    scores = measured(own.mae), measured(own.rmse), r_squared(own.r2), measured(own.mase)
    return [*key, count(own.rows), *scores, day_of(own.first), day_of(own.last)]
