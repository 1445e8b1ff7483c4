"""Thousands of series in one model: cost, errors by series, and the first rows of new series.

Generated daily sales of shops, a day ahead: levels are lognormal (the middle 90 % span a factor of
50), each of five kinds of shops has a weekly pattern, levels drift, noise is 10 %. A quarter of the
shops open after a third of the days, 15 % close before the end. Learners: ours, one forest with
`--lags auto --by shop`; the value one week earlier, or the last known value where there is none;
and for 40 new shops the same command on the rows of the shop alone. Errors are means over shops of
MAE / mean sales. "Established" rows are those after three weeks and after the first 50 of a shop;
"new" rows are the rows 2 to 50 of shops that open late. The answer is written to
docs/benchmarks/results/panels.csv, and a table made of it to docs/howto/many-series.md.
"""

import csv
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.forecasting import DOCS
from benchmarks.tables import Answer, Bound, Table

__all__ = ["page", "panel", "read_records", "run"]

FloatArray = NDArray[np.float64]
SIZES, QUICK_SIZES = ((1_000, 120), (5_000, 90)), ((30, 90),)
SETTLED, NEW, ALONE, WEEK = 21, 50, 40, 7
RESULTS = DOCS / "benchmarks" / "results" / "panels.csv"
PAGE = DOCS / "howto" / "many-series.md"
MARK = "<!-- written by python -m benchmarks panels -->\n"
START = np.datetime64("2026-01-05")


class Record(NamedTuple):
    """What one model of many series costs, and its errors."""

    series: int
    rows: int
    microseconds: float
    megabytes: float
    established: float
    established_naive: float
    better: float
    new: float
    new_alone: float
    new_naive: float


class Panel(NamedTuple):
    """Rows of shops, by day: days, shops, kinds of shops, sales; and the first day of each shop."""

    day: NDArray[np.intp]
    shop: NDArray[np.intp]
    kind: NDArray[np.intp]
    y: FloatArray
    first: NDArray[np.intp]


def panel(shops: int, days: int, seed: int = 1) -> Panel:
    """Return generated sales.

    Parameters
    ----------
    shops, days : int
        How many.
    seed : int
        Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    week = rng.normal(0, 0.35, (5, WEEK))
    week -= week.mean(axis=1, keepdims=True)
    kind, level = rng.integers(5, size=shops), np.exp(rng.normal(4, 1.2, shops))
    late, early = rng.random(shops) < 0.25, rng.random(shops) < 0.15
    first = np.where(late, rng.integers(days // 3, days - NEW - 5, shops), 0)
    end = np.where(early & ~late, rng.integers(days * 2 // 3, days, shops), days)
    drift = np.cumsum(rng.normal(0, 0.01, (shops, days)), axis=1)
    day, shop = (each.ravel() for each in np.indices((days, shops)))
    is_open = (first[shop] <= day) & (day < end[shop])
    day, shop = day[is_open], shop[is_open]
    noise = rng.normal(0, 0.1, len(day))
    y = level[shop] * np.exp(week[kind[shop], day % WEEK] + drift[shop, day] + noise)
    return Panel(day, shop, kind[shop], y, first)


def run(quick: bool = False) -> Answer:
    """Forecast panels.

    Parameters
    ----------
    quick : bool
        Whether a small one is enough.
    """
    records = [_record(*size) for size in (QUICK_SIZES if quick else SIZES)]
    table = Table("Panels, a day ahead", Record._fields, records)
    if not quick:
        table.write_csv(RESULTS)
        PAGE.write_text(page(records), encoding="utf-8")
    worst = max(each.established / each.established_naive for each in records)
    cold = max(each.new / min(each.new_alone, each.new_naive) for each in records)
    bounds = [
        Bound("established rows: error / that of the naive forecast", worst, 1.0),
        Bound("new rows: error / the better of alone and naive", cold, 1.0),
        Bound("share of series better than naive", min(each.better for each in records), 0.9, True),
    ]
    return Answer([table], table, bounds)


def _record(shops: int, days: int) -> Record:
    found = panel(shops, days)
    start = time.process_time()
    predicted, megabytes = _followed(found)
    seconds = time.process_time() - start
    y, ours = (_on_grid(found, values, days) for values in (found.y, predicted))
    naive = np.full_like(y, np.nan)
    naive[:, 1:] = y[:, :-1]
    naive[:, WEEK:] = np.where(np.isfinite(y[:, :-WEEK]), y[:, :-WEEK], naive[:, WEEK:])
    age = np.arange(days) - found.first[:, np.newaxis]
    old = (np.arange(days) >= SETTLED) & (age >= NEW) & np.isfinite(naive)
    new = (found.first[:, np.newaxis] > 0) & (age >= 1) & (age < NEW)
    scale = np.nanmean(y, axis=1)

    def errors(predictions: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        """Return the error of each series, NaN of those without such rows."""
        error = np.where(rows & np.isfinite(y), np.abs(predictions - y), 0.0).sum(axis=1)
        count = (rows & np.isfinite(y)).sum(axis=1)
        return np.divide(error, scale * count, out=np.full(shops, np.nan), where=count > 0)

    late = np.flatnonzero(found.first > 0)[:ALONE]
    alone = np.full_like(y, np.nan)
    for shop in late.tolist():
        own = (found.shop == shop) & (found.day < found.first[shop] + NEW)
        day, kind, y_own = found.day[own], found.kind[own], found.y[own]
        part = Panel(day, found.shop[own], kind, y_own, found.first)
        alone[shop, part.day] = _followed(part)[0]
    chosen = [float(errors(each, new)[late].mean()) for each in (ours, alone, naive)]
    established = errors(ours, old), errors(naive, old)
    known = np.isfinite(established[0])
    return Record(
        series=shops,
        rows=len(found.y),
        microseconds=1e6 * seconds / len(found.y),
        megabytes=megabytes,
        established=float(established[0][known].mean()),
        established_naive=float(established[1][known].mean()),
        better=float((established[0] < established[1])[known].mean()),
        new=chosen[0],
        new_alone=chosen[1],
        new_naive=chosen[2],
    )


def _on_grid(found: Panel, values: FloatArray, days: int) -> FloatArray:
    grid = np.full((len(found.first), days), np.nan)
    grid[found.shop, found.day] = values
    return grid


def _followed(found: Panel) -> tuple[FloatArray, float]:
    """Return predictions of the command line's own way, and the megabytes of the model."""
    from sapwood.cli.reading import Reading
    from sapwood.cli.runs import Learning, Targets, make_run

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panel.csv"
        with path.open("w", encoding="utf-8") as file:
            file.write("day,shop,kind,sold\n")
            for day, shop, kind, sold in zip(*found[:4], strict=True):
                file.write(f"{START + int(day)},s{shop},k{kind},{float(sold)!r}\n")
        learning = Learning(model="forest", lags="auto", by=["shop"], set_=["threads=1"])
        reading = Reading(target=["sold"], categorical=["shop"])
        run, _ = make_run(str(path), reading, learning, Targets(horizon="1d"))
        parts = [part.predictions for step in run.steps() for part in step.predicted]
        return np.concatenate(parts), run.model.nbytes / 1e6


# -- the page --------------------------------------------------------------------------------------


def read_records() -> list[Record]:
    """Return the records of the last run."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return [
            Record(
                *(int(row[name]) for name in Record._fields[:2]), *map(float, [*row.values()][2:])
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
    lines = [
        "| series | rows | CPU µs per row | MB | established: error | one week earlier | series better | "
        "new: error | series alone | one week earlier |",
        "| --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for each in records:
        lines.append(
            f"| {each.series:,} | {each.rows:,} | {each.microseconds:.0f} | {each.megabytes:.0f} | "
            f"{each.established:.3f} | {each.established_naive:.3f} | {each.better:.1%} | "
            f"{each.new:.3f} | {each.new_alone:.3f} | {each.new_naive:.3f} |"
        )
    return f"{before}{MARK}\n" + "\n".join(lines) + f"\n\n{MARK}{after}"
