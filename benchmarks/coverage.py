"""Coverage of prediction intervals by horizon and by hour of the day.

The hourly series metro and bike, whole, with the time as the only column, are forecast an hour, a
day and a week ahead by a forest with `--lags auto --interval 0.9`. The coverage of each hour of the
day is that of all its rows, from the first one on. The answer is written to
docs/benchmarks/results/coverage.csv, and a table made of it to docs/howto/forecasting.md.
"""

import csv
from pathlib import Path
from typing import NamedTuple

from benchmarks.forecasting import DOCS, FILES, HORIZONS, PAGE, Series, followed, generated
from benchmarks.tables import Answer, Bound, Table

__all__ = ["page", "read_records", "run"]

LEVEL, WITHIN, LEAST_ROWS = 0.9, 0.03, 500
NAMES = ("metro", "bike")
ALL_ROWS, QUICK_ROWS = 10**9, 1_500
RESULTS = DOCS / "benchmarks" / "results" / "coverage.csv"
MARK = "<!-- written by python -m benchmarks coverage -->\n"


class Record(NamedTuple):
    """The coverage of one hour of the day of one series at one horizon."""

    series: str
    horizon: str
    hour: int
    rows: int
    coverage: float


def run(quick: bool = False) -> Answer:
    """Measure the coverage of all series.

    Parameters
    ----------
    quick : bool
        Whether a few rows of a generated series are enough.
    """
    loaded: dict[str, Series] = {"generated": generated(QUICK_ROWS)} if quick else {}
    if not quick:
        loaded = {name: series for name in NAMES if (series := FILES[name](ALL_ROWS))}
    records = [
        record
        for name, series in loaded.items()
        for horizon in HORIZONS
        for record in _records(name, series, horizon)
    ]
    table = Table(f"Coverage at level {LEVEL} by hour", Record._fields, records)
    if loaded and not quick:
        table.write_csv(RESULTS)
        PAGE.write_text(page(records), encoding="utf-8")
    far = [abs(each.coverage - LEVEL) for each in records if each.rows >= LEAST_ROWS]
    name = f"largest distance from {LEVEL} in hours of {LEAST_ROWS} rows"
    return Answer([table], table, [Bound(name, max(far), WITHIN)] if far else [])


def _records(name: str, series: Series, horizon: str) -> list[Record]:
    run, _ = followed(series, horizon, LEVEL)
    found = run.finish()
    hours = () if found.seasonal is None else found.seasonal.hours
    return [Record(name, horizon, each.hour, each.rows, each.coverage[0]) for each in hours]


# -- the page --------------------------------------------------------------------------------------


def read_records() -> list[Record]:
    """Return the records of the last run."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return [
            Record(
                *(row["series"], row["horizon"], int(row["hour"])),
                *(int(row["rows"]), float(row["coverage"])),
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
    before, _, after = Path(PAGE).read_text(encoding="utf-8").split(MARK)
    lines = [
        f"| series | horizon | rows | coverage | lowest hour | highest hour | hours within {WITHIN} |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for case in dict.fromkeys((each.series, each.horizon) for each in records):
        own = [each for each in records if (each.series, each.horizon) == case]
        rows = sum(each.rows for each in own)
        mean = sum(each.rows * each.coverage for each in own) / rows
        hours = [each.coverage for each in own if each.rows >= LEAST_ROWS]
        near = sum(abs(each - LEVEL) <= WITHIN for each in hours)
        lines.append(
            f"| {case[0]} | {case[1]} | {rows:,} | {mean:.3f} | {min(hours):.3f} | "
            f"{max(hours):.3f} | {near} of {len(hours)} |"
        )
    return f"{before}{MARK}\n" + "\n".join(lines) + f"\n\n{MARK}{after}"
