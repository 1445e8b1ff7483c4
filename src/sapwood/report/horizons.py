"""The part of a report about horizons: the scores of each."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from sapwood.plot.style import label_axes, looks_of
from sapwood.report.charts import chart
from sapwood.report.html import ABSENT, charts, count, measured, scrolled, text

if TYPE_CHECKING:
    from sapwood.evaluate.seasonal import SeasonalErrors

__all__ = ["render_horizons", "render_hours"]

SCORES = {
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "mase": "MASE",
    "skill_seasonal": "skill over seasonal naive",
    "skill_last": "skill over last known value",
}
INTERVAL_SCORES = {"coverage": "coverage", "pinball": "pinball loss"}


def render_horizons(horizons: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of the scores of each horizon.

    - `horizons`: as `sapwood evaluate --horizon --json` prints them.
    """
    level = next((row["level"] for row in horizons if "level" in row), None)
    scores = SCORES if level is None else SCORES | INTERVAL_SCORES
    heads = ["horizon", "rows", *scores.values()]
    rows = [
        [text(row["horizon"]), count(row["rows"]), *(_score(row[name]) for name in scores)]
        for row in horizons
    ]
    season = next((row["season"] for row in horizons if row["season"]), None)
    seasonal = "" if season is None else f" The season is {text(season)}."
    skills = {
        SCORES[name]: [math.nan if row[name] is None else row[name] for row in horizons]
        for name in ("skill_seasonal", "skill_last")
    }
    places = list(range(len(horizons)))

    def draw(ax: Axes) -> None:
        _lines(ax, places, skills, "horizon", "skill")
        ax.set_xticks(places, [str(row["horizon"]) for row in horizons])

    picture = chart("horizon-skill", "Skill by horizon", draw) if len(horizons) > 1 else ""
    scored = scrolled(heads, rows, caption="Scores by horizon, one model each")
    return (
        f"{scored}\n{picture}<p>Skill is 1 − RMSE "
        "of the model / RMSE of the naive forecast. MASE is the MAE divided by the mean absolute "
        f"difference of values a season apart.{seasonal}{_pinball(level)} The other parts of this page "
        "are of the longest horizon.</p>"
    )


def render_hours(found: "SeasonalErrors | None") -> str:
    """Return a table of the scores of each hour of the day, empty if there is none.

    - `found`: of the horizon that the other parts of the page are of.
    """
    if found is None or not found.hours:
        return ""
    heads = ["hour", "rows", "MAE", "RMSE", "skill over seasonal naive"]
    heads += [f"coverage of {level:g}" for level in found.levels]
    rows = [
        [
            *(count(each.hour), count(each.rows), _score(each.mae), _score(each.rmse)),
            *(_score(each.skill), *map(_score, each.coverage)),
        ]
        for each in found.hours
    ]
    hours = [each.hour for each in found.hours]
    skills = {SCORES["skill_seasonal"]: [each.skill for each in found.hours]}
    covered = {
        f"coverage of {level:g}": [each.coverage[place] for each in found.hours]
        for place, level in enumerate(found.levels)
    }
    drawn = [
        chart(
            f"hour-{place}",
            title,
            partial(_lines, x=hours, lines=lines, x_name="hour", y_name=name),
        )
        for place, (title, name, lines) in enumerate(
            (("Skill by hour", "skill", skills), ("Coverage by hour", "coverage", covered))
        )
        if lines
    ]
    made = scrolled(heads, rows, caption="Scores by hour of the day")
    return f"{charts(*drawn)}\n{made}"


def _lines(
    ax: Axes, x: Sequence[float], lines: Mapping[str, Sequence[float]], x_name: str, y_name: str
) -> None:
    """Draw a line for each name."""
    for name, look in looks_of(list(lines)).items():
        ax.plot(x, lines[name], color=look.colour, marker=look.marker, ms=3, label=name)
    label_axes(ax, x_name, y_name)
    ax.legend(frameon=False, fontsize="small")


def _pinball(level: float | None) -> str:
    if level is None:
        return ""
    return f" Coverage and pinball loss are of the prediction intervals of level {level:g}."


def _score(value: float | None) -> str:
    return ABSENT if value is None or not math.isfinite(value) else measured(value)
