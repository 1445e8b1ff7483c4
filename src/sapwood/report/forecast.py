"""The parts of a report about forecasts: the next rows, and what predictions consist of."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sapwood.durations import seconds_of_duration
from sapwood.lags.decomposition import Decomposition
from sapwood.lags.forecasting import next_rows
from sapwood.lags.model import LaggedModel
from sapwood.plot.style import BLUE, label_axes, looks_of
from sapwood.report.charts import chart
from sapwood.report.html import Words, charts, measured, table, text

__all__ = ["render_decomposition", "render_forecast"]

STEPS = 24  # that are forecast at least
MOST_SERIES, MOST_ROWS = 4, 2_000
DAY = 86_400.0
MEANINGS = {"hour": "hour of the day", "weekday": "day of the week, 0 is Monday", "day": "day"}


def render_forecast(model: Any) -> str | None:
    """Return the forecast of the rows after the last one, None if their times are not known.

    - `model`: the model after the evaluation.
    """
    horizon = model.lags.horizon if isinstance(model, LaggedModel) else None
    if not isinstance(horizon, str) or model.several_targets or model.lags.time is None:
        return None
    latest = model.lags.latest_times
    steps = [step for _, step in latest.values()]
    ahead = max(float(seconds_of_duration(horizon) or 0.0), STEPS * max(steps, default=0.0))
    try:
        rows, _ = next_rows(model, ahead, MOST_ROWS * max(len(latest), 1))
    except ValueError:
        return None
    by, calendar = model.lags.by, _calendar(model)
    series: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        series.setdefault(tuple(row[name] for name in by), []).append(row)
    if not series:
        return None
    levels = tuple(getattr(model.model, "levels", ()))
    drawn, recursive = [], 0
    for place, (key, own) in enumerate(list(series.items())[:MOST_SERIES]):
        path = model.forecast_path(own, intervals=bool(levels))
        recursive += int(path.is_recursive.sum())
        times = np.array([row[model.lags.time] for row in own])
        days = (times if calendar is None else calendar.local(times)) / DAY

        def draw(ax: Axes, path: Any = path, days: Any = days) -> None:
            for level in range(len(levels)):
                bounds = path.bounds[:, level]
                ax.fill_between(days, bounds[:, 0], bounds[:, 1], color=BLUE, alpha=0.2, lw=0)
            ax.plot(days, path.predictions, color=BLUE, label="forecast")
            _date_axis(ax)

        name = ", ".join(map(str, key)) or str(model.lags.target)
        drawn.append(chart(f"fan-{place}", text(f"Forecast of {name}"), draw))
    own_names = {model.lags.time, *by, *(name for row in rows[:1] for name in row)}
    missing = [str(name) for name in model.features if name not in own_names]
    words = f"<p>The forecast after the last row. The horizon of the model is {text(horizon)}. "
    if recursive:
        words += f"{recursive:,} rows beyond it use predictions as lags; their intervals are too narrow. "
    if missing:
        words += f"{text(', '.join(missing))} count as missing. "
    if len(series) > MOST_SERIES:
        words += f"{MOST_SERIES} of {len(series):,} series are shown. "
    return f"{words.strip()}</p>\n{charts(*drawn)}\n"


def _date_axis(ax: Axes) -> None:
    ax.xaxis_date()
    ax.tick_params(axis="x", labelrotation=30)


def _calendar(model: LaggedModel) -> Any:
    rules = [rule for rule in model.schema.rules if rule.name == model.lags.time]
    return rules[0].calendar if rules else None


def render_decomposition(found: Decomposition | None) -> str | None:
    """Return what predictions consist of, on average and by time; None if it is not known.

    - `found`: of the last rows of the evaluation.
    """
    if found is None or not found.parts:
        return None
    rows = [
        [text(name), *map(measured, map(float, (np.abs(own).mean(), own.min(), own.max())))]
        for name, own in found.parts.items()
    ]
    heads = (Words("columns"), "mean absolute", "least", "largest")
    looks = looks_of(list(found.parts))
    drawn = []
    for part in ("hour", "weekday", "day"):
        keys, means = found.by(part)
        if len(keys) < 2:
            continue

        def draw(ax: Axes, part: str = part, keys: Any = keys, means: Any = means) -> None:
            for name, own in means.items():
                ax.plot(keys, own, color=looks[name].colour, label=name)
            if part == "day":
                _date_axis(ax)
                ax.set_ylabel("adds to the level")
            else:
                label_axes(ax, MEANINGS[part], "adds to the level")
            ax.legend(frameon=False, fontsize="small")

        title = f"Contributions by {MEANINGS[part].partition(',')[0]}"
        drawn.append(chart(f"parts-{part}", title, draw))
    count = len(next(iter(found.parts.values())))
    return (
        f"<p>Each of the last {count:,} predictions is the level, {measured(found.level)}, plus what "
        "each group of columns adds (Shapley values, relative to other rows among them).</p>\n"
        f"{table(heads, rows, caption='Contributions to predictions')}\n"
        f"{charts(*drawn)}\n"
    )
