"""How well series are forecast an hour, a day and a week ahead, compared with usual ways.

Hourly series with the time as the only column: traffic (metro), rented bicycles (bike), particulate
matter (Beijing PM2.5), and a generated one with a daily and a weekly pattern, a drifting level,
gaps and duplicates. A row at time t is predicted by labels up to t - h. Learners: ours, a forest
with `--lags auto`; LightGBM with its defaults and a ridge regression, both with the same lags and
calendar features, refitted once a day on all rows whose labels are known; statsforecast's AutoETS
with an additive season of a day (without which it mostly chose a model without seasons), fitted
once a week to the last 1,000 known hours and continued with those that come; the value one week
earlier; the last known value. Scores leave out the first 1,000 rows.
MASE is relative to the value one week earlier. Seconds are those of the processor, in one thread.
The series are also forecast for 10,000 rows, without LightGBM and AutoETS. The answer is written to
docs/benchmarks/results/forecasting.csv, and tables made of it to docs/howto/forecasting.md.

The constants of the combination (`sapwood/lags/_forecasts.pyx`) were chosen on other series: another
generated one, an autoregressive one, later rows of the files (metro from row 30,000, Beijing PM2.5
from row 30,000), and other columns (temperature of metro and Beijing, casual and registered riders
and humidity of bike, dew point of Beijing).
"""

import csv
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import FOLDER
from benchmarks.tables import Answer, Bound, Table
from sapwood.evaluate.prequential import Prequential
from sapwood.lags import Lags
from sapwood.rows.times import parts_of

__all__ = ["followed", "generated", "page", "read_records", "run"]

FloatArray = NDArray[np.float64]
ROWS, QUICK_ROWS, LEFT_OUT = 2_500, 1_500, 1_000
MANY_ROWS = 10_000
HORIZONS = ("1h", "24h", "168h")
WEEK, DAY = "168h", 86_400.0
OURS, LIGHTGBM, RIDGE = "sapwood --lags auto", "LightGBM, daily", "ridge, daily"
ETS = "AutoETS, weekly"
SEASONAL, LAST = "one week earlier", "last known value"
SLOW = (LIGHTGBM, ETS)
HOUR, ETS_ROWS = 3600.0, 1_000
PENALTY = 1.0
MAY_LOSE = 0.01
DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "benchmarks" / "results" / "forecasting.csv"
PAGE = DOCS / "howto" / "forecasting.md"
MARK = "<!-- written by python -m benchmarks forecasting -->\n"


class Record(NamedTuple):
    """How well one learner forecast one series at one horizon."""

    series: str
    rows: int
    horizon: str
    learner: str
    r2: float
    mase: float
    seconds: float


class Series(NamedTuple):
    """Times in seconds, and values."""

    times: FloatArray
    y: FloatArray


def run(quick: bool = False) -> Answer:
    """Forecast all series.

    Parameters
    ----------
    quick : bool
        Whether a few rows of the generated series are enough.
    """
    records = []
    for rows in (QUICK_ROWS,) if quick else (ROWS, MANY_ROWS):
        loaded = {"generated": generated(rows)}
        if not quick:
            loaded |= {name: series for name, read in FILES.items() if (series := read(rows))}
        skipped = SLOW if rows == MANY_ROWS else (ETS,) if quick else ()
        records += [
            record
            for name, series in loaded.items()
            for horizon in HORIZONS
            for record in _records(name, series, horizon, skipped)
        ]
    table = Table("Forecasts by horizon", Record._fields, records)
    if not quick:
        table.write_csv(RESULTS)
        PAGE.write_text(page(records), encoding="utf-8")
    scores = {(*_case(each), each.learner): each.r2 for each in records}
    cases = list(dict.fromkeys(map(_case, records)))
    behind = min(
        scores[(*case, OURS)] - max(scores[(*case, SEASONAL)], scores[(*case, LAST)])
        for case in cases
    )
    bounds = [Bound("least R² over the better naive forecast", behind, -MAY_LOSE, True)]
    for rival in dict.fromkeys(each.learner for each in records if each.learner != OURS):
        met = [case for case in cases if (*case, rival) in scores]
        ahead = [scores[(*case, OURS)] >= scores[(*case, rival)] for case in met]
        bounds.append(Bound(f"share of cases ahead of {rival}", float(np.mean(ahead)), 0.9, True))
    return Answer([table], table, bounds)


def _case(record: Record) -> tuple[str, int, str]:
    return record.series, record.rows, record.horizon


# -- series ----------------------------------------------------------------------------------------


def generated(rows: int) -> Series:
    """Return a series with a daily and a weekly pattern, gaps and duplicates.

    Parameters
    ----------
    rows : int
        How many.
    """
    rng = np.random.default_rng(7)
    hours = np.sort(rng.choice(int(rows * 1.05), rows))  # gaps and duplicates
    level = np.cumsum(rng.normal(0, 0.05, int(rows * 1.05)))[hours]
    weekend = hours // 24 % 7 >= 5
    usual = np.where(weekend, 10, 25) * np.sin(hours * np.pi / 12)
    start = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
    times = np.asarray(hours * 3600.0 + start, np.float64)
    return Series(times, 50 + level + usual + rng.normal(0, 3, rows))


def _read(file: str, target: str, moment: Callable[[dict[str, str]], datetime], rows: int) -> Any:
    path = FOLDER / file
    if not path.exists():
        return None
    times, y = [], []
    with path.open(newline="", encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            if row[target] in ("", "NA"):
                continue
            times.append(moment(row).replace(tzinfo=UTC).timestamp())
            y.append(float(row[target]))
            if len(y) == rows:
                break
    return Series(np.array(times), np.array(y))


def _metro(row: dict[str, str]) -> datetime:
    return datetime.strptime(row["date_time"], "%m/%d/%y %H:%M")


def _bike(row: dict[str, str]) -> datetime:
    day = row["dteday"]
    format = "%Y-%m-%d" if "-" in day else "%m/%d/%Y"
    return datetime.strptime(day, format).replace(hour=int(float(row["hr"])))


def _pm25(row: dict[str, str]) -> datetime:
    return datetime(*(int(row[name]) for name in ("year", "month", "day", "hour")))  # type: ignore[arg-type]


FILES: dict[str, Callable[[int], Any]] = {
    "metro": lambda rows: _read("metro_traffic.csv", "traffic_volume", _metro, rows),
    "bike": lambda rows: _read("bike_hour.csv", "cnt", _bike, rows),
    "Beijing PM2.5": lambda rows: _read("beijing_pm25.csv", "pm2.5", _pm25, rows),
}


# -- learners --------------------------------------------------------------------------------------


def _records(name: str, series: Series, horizon: str, skipped: tuple[str, ...]) -> Iterator[Record]:
    start = time.process_time()
    ours, lags, means = _ours(series, horizon)
    found: dict[str, tuple[FloatArray, float]] = {OURS: (ours, time.process_time() - start)}
    rows = _features(series, lags, means, horizon)
    ahead = {"1h": 3600.0, "24h": DAY, "168h": 7 * DAY}[horizon]
    peers: dict[str, Callable[[], FloatArray]] = {
        LIGHTGBM: lambda: _daily(series, rows, ahead, _lightgbm),
        RIDGE: lambda: _daily(series, rows, ahead, _ridge),
        ETS: lambda: _ets(series, ahead),
    }
    for learner, predicted in peers.items():
        if learner not in skipped:
            start = time.process_time()
            found[learner] = predicted(), time.process_time() - start
    found[SEASONAL] = _lagged(series, WEEK, "30min"), 0.0
    found[LAST] = _last(series, ahead), 0.0
    seasonal = _lagged(series, WEEK, "30min")
    scored = (np.arange(len(series.y)) >= LEFT_OUT) & np.isfinite(seasonal)
    y = series.y[scored]
    scale = np.abs(y - seasonal[scored]).mean()
    for learner, (predictions, seconds) in found.items():
        error = y - predictions[scored]
        r2 = 1 - np.square(error).sum() / np.square(y - y.mean()).sum()
        mase = float(np.abs(error).mean() / scale)
        yield Record(name, len(series.y), horizon, learner, float(r2), mase, seconds)


def _ours(series: Series, horizon: str) -> tuple[FloatArray, tuple[Any, ...], tuple[Any, ...]]:
    """Return predictions by the command line's own way, and the lags that it proposed."""
    run, predictions = followed(series, horizon)
    own = run.lags.parameters if run.lags is not None else {}
    return predictions, own["lags"], own["means"]


def followed(
    series: Series, horizon: str, level: float | None = None
) -> tuple[Prequential, FloatArray]:
    """Return a run of the command line's own way after its last row, and its predictions.

    Parameters
    ----------
    series : Series
        The only column besides its times.
    horizon : str
        How far ahead it is forecast.
    level : float, optional
        That of prediction intervals.
    """
    from sapwood.cli.reading import Reading
    from sapwood.cli.runs import Learning, Targets, make_run

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.csv"
        moments = np.asarray(series.times, "datetime64[s]")
        lines = [f"{at},{y!r}" for at, y in zip(moments, series.y.tolist(), strict=True)]
        path.write_text("\n".join(["at,y", *lines]) + "\n", encoding="utf-8")
        levels = [] if level is None else [level]
        learning = Learning(model="forest", lags="auto", set_=["threads=1"], interval=levels)
        run, _ = make_run(str(path), Reading(target=["y"]), learning, Targets(horizon=horizon))
        parts = [part.predictions for step in run.steps() for part in step.predicted]
        return run, np.concatenate(parts)


def _features(series: Series, lags: Any, means: Any, horizon: str) -> FloatArray:
    """Return the same lags and calendar features, which are known at the horizon."""
    past = Lags(lags, means, time="at", horizon=horizon)
    made = past.transform_learn_many({"at": series.times}, series.y)
    parts = parts_of(series.times, ("hour", "weekday", "season"))
    own = [np.asarray(made[name], np.float64) for name in past.features]
    return np.column_stack([*own, *parts.values()])


def _lagged(series: Series, span: str, tolerance: str) -> FloatArray:
    past = Lags(span, time="at", tolerance=tolerance)
    made = past.transform_learn_many({"at": series.times}, series.y)
    return np.asarray(made[past.features[0]], np.float64)


def _last(series: Series, ahead: float) -> FloatArray:
    """Return the latest value that is known at the horizon; the first one before there is any."""
    places = np.searchsorted(series.times, series.times - ahead, side="right") - 1
    return series.y[np.maximum(places, 0)]


def _daily(series: Series, rows: FloatArray, ahead: float, fit: Callable[..., Any]) -> FloatArray:
    """Return predictions of a learner that is refitted once a day on the labels that are known."""
    predictions = np.full(len(series.y), np.nan)
    days = np.floor(series.times / DAY)
    for day in np.unique(days[LEFT_OUT:]):
        chosen = np.flatnonzero(days == day)
        known = int(np.searchsorted(series.times, series.times[chosen[0]] - ahead, side="right"))
        predictions[chosen] = fit(rows[:known], series.y[:known])(rows[chosen])
    return predictions


def _lightgbm(rows: FloatArray, y: FloatArray) -> Callable[[FloatArray], FloatArray]:
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(n_jobs=1, verbose=-1).fit(rows, y)
    return lambda asked: np.asarray(model.booster_.predict(asked, num_threads=1))


def _ets(series: Series, ahead: float) -> FloatArray:
    """Return forecasts of exponential smoothing, by the hours that are known at the horizon."""
    from statsforecast.models import AutoETS

    start = series.times[0]
    places = np.round((series.times - start) / HOUR).astype(np.int64)
    grid = np.full(places[-1] + 1, np.nan)
    grid[places] = series.y  # of several rows of an hour the last one
    last = np.maximum.accumulate(np.where(np.isfinite(grid), np.arange(len(grid)), 0))
    grid, predictions = grid[last], np.full(len(series.y), np.nan)
    week, model = -1, None
    for row in range(LEFT_OUT, len(series.y)):
        known = int((series.times[row] - ahead - start) // HOUR) + 1
        first = max(0, known - ETS_ROWS) // 24 * 24  # as its seasons start with the first hour
        recent = grid[first:known]
        if model is None or places[row] // 168 > week:
            week, model = places[row] // 168, AutoETS(season_length=24, model="ZZA").fit(recent)
        steps = max(1, int(places[row]) - known + 1)
        predictions[row] = model.forward(recent, h=steps)["mean"][-1]
    return predictions


def _ridge(rows: FloatArray, y: FloatArray) -> Callable[[FloatArray], FloatArray]:
    means = np.nanmean(rows, axis=0)
    scale = np.nanstd(rows, axis=0) + 1e-9

    def scaled(given: FloatArray) -> FloatArray:
        hour, weekday = given[:, -3] * np.pi / 12, given[:, -2] * 2 * np.pi / 7
        cycles = np.column_stack([np.sin(hour), np.cos(hour), np.sin(weekday), np.cos(weekday)])
        known = np.where(np.isfinite(given), (given - means) / scale, 0.0)
        return np.column_stack([known, cycles, np.ones(len(given))])

    x = scaled(rows)
    weights = np.linalg.solve(x.T @ x + PENALTY * np.eye(x.shape[1]), x.T @ y)
    return lambda asked: np.asarray(scaled(asked) @ weights)


# -- the page --------------------------------------------------------------------------------------


def read_records() -> list[Record]:
    """Return the records of the last run."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return [
            Record(
                row["series"],
                int(row["rows"]),
                row["horizon"],
                row["learner"],
                *(float(row[name]) for name in ("r2", "mase", "seconds")),
            )
            for row in csv.DictReader(file)
        ]


def page(records: list[Record]) -> str:
    """Return the page with a table made of records.

    Parameters
    ----------
    records : list of Record
        Of one run.
    """
    before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
    tables = [
        f"{rows:,} rows:\n\n{_table([each for each in records if each.rows == rows])}"
        for rows in dict.fromkeys(each.rows for each in records)
    ]
    return f"{before}{MARK}\n" + "\n\n".join(tables) + f"\n\n{MARK}{after}"


def _table(records: list[Record]) -> str:
    learners = list(dict.fromkeys(each.learner for each in records))
    lines = [
        f"| series | horizon | {' | '.join(learners)} |",
        f"| --- | --: | {' | '.join('--:' for _ in learners)} |",
    ]
    cases = dict.fromkeys((each.series, each.horizon) for each in records)
    by_case = {(each.series, each.horizon, each.learner): each for each in records}
    for case in cases:
        own = [by_case[(*case, learner)] for learner in learners]
        cells = [f"{each.r2:.3f} ({each.mase:.2f})" for each in own]
        lines.append(f"| {case[0]} | {case[1]} | {' | '.join(cells)} |")
    seconds = [sum(each.seconds for each in records if each.learner == name) for name in learners]
    lines.append(f"| CPU seconds | all | {' | '.join(f'{each:.1f}' for each in seconds)} |")
    return "\n".join(lines)
