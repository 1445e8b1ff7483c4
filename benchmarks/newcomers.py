"""Results without any options: ``sapwood evaluate FILE -t TARGET`` on real files.

They are compared with the results if times and dates are left as text, and with baselines. The
warnings in the table of columns are listed. The last part is the bike stream with lag features, and
without the columns that leak the target.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.data_sets import FOLDER
from benchmarks.tables import Answer, Bound, Table

__all__ = ["run"]

FILES = {
    "bike_hour": "cnt",
    "metro_traffic": "traffic_volume",
    "beijing_pm25": "pm2.5",
    "california_housing": "median_house_value",
    "diamonds": "price",
    "bias_correction": "Next_Tmax",
    "puma8NH": "thetadd3",
}
TIMES = {"bike_hour": "dteday", "metro_traffic": "date_time", "bias_correction": "Date"}
LEAKS = ("casual", "registered", "instant")
LAGS = ("--lags", "1,24,168")
QUICK_ROWS = 3_000
METRO_R2, BIKE_RMSE = 0.965, 42.0


class Record(NamedTuple):
    """What was found of one file."""

    file: str
    command: str
    rows: int
    without_target: int
    r2: float
    r2_with_times_as_text: float
    headline: str


def run(quick: bool = False) -> Answer:
    """Evaluate each file by the command line.

    Parameters
    ----------
    quick : bool
        Take the first 3,000 lines of each file, and promise nothing.
    """
    there = {name: target for name, target in FILES.items() if (FOLDER / f"{name}.csv").exists()}
    records, warnings = [], []
    for name, target in there.items():
        found, output = _evaluated(name, ["-t", target], quick)
        lines = [line for line in output.splitlines() if line[:2] == "  " != line[1:3]]
        warnings += [(name, line.strip()) for line in lines]
        plain = found
        if name in TIMES:
            none = ["--time-format", f"{TIMES[name]}=none", "--categorical", TIMES[name]]
            plain, _ = _evaluated(name, ["-t", target, *none], quick)
        records.append(_record(name, f"-t {target}", found, plain))
    if "bike_hour" in there:
        bare = ["-t", "cnt", *(part for leak in LEAKS for part in ("--drop", leak))]
        for more in ((), LAGS):
            found, _ = _evaluated("bike_hour", [*bare, *more], quick)
            records.append(_record("bike_hour", " ".join([*bare, *more]), found, found))
    title = "What `sapwood evaluate FILE -t TARGET` finds, and with times left as text"
    if len(there) < len(FILES):
        title += f" (without {len(FILES) - len(there)} files; SAPWOOD_DATA names their folder)"
    columns = ("file", "options", "rows", "without y", "R²", "times as text", "headline")
    tables = [
        Table(title, columns, [*records]),
        Table("What it warned of", ("file", "column: warning"), warnings),
    ]
    bounds = [] if quick else list(_bounds(records))
    return Answer(tables, Table("newcomers", Record._fields, records), bounds)


def _record(name: str, command: str, found: dict[str, Any], plain: dict[str, Any]) -> Record:
    rows = found["rows"]
    return Record(
        name,
        command,
        rows["read"],
        rows["without_target"],
        found["total"]["r2"],
        plain["total"]["r2"],
        found["headline"],
    )


def _evaluated(name: str, options: Sequence[str], quick: bool) -> tuple[dict[str, Any], str]:
    """Return the result of a command, and its other output."""
    path = FOLDER / f"{name}.csv"
    source, text = str(path), None
    if quick:
        with path.open("rb") as file:
            text = b"".join(next(file, b"") for _ in range(QUICK_ROWS))
        source = "-"
    ended = subprocess.run(
        [sys.executable, "-m", "sapwood", "evaluate", source, *options, "--json"],
        input=text,
        capture_output=True,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"{name}: {ended.stderr.decode()}")
    return json.loads(ended.stdout), ended.stderr.decode()


def _bounds(records: Sequence[Record]) -> Iterator[Bound]:
    for record in records:
        if record.file == "metro_traffic":
            yield Bound("R², metro_traffic", record.r2, METRO_R2, at_least=True)
        if LAGS[0] in record.command:
            rmse = float(record.headline.split()[1].rstrip(","))
            yield Bound("RMSE, bike_hour with lags", rmse, BIKE_RMSE)
