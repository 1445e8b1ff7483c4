"""The streams that trees are tried on: Friedman's function, and real ones read from CSV files.

The files are public and not part of the repository. They are looked for in the folder that the
environment variable ``SAPWOOD_DATA`` names, or else in a data folder next to the repository; a
stream whose file is not there is left out.
"""

import csv
import os
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CEILING", "FURTHER", "REAL", "DataSet", "Source", "friedman", "friedman_set", "load"]

FloatArray = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

FOLDER = Path(
    os.environ.get("SAPWOOD_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
SHUFFLE_SEED = 0
MISSING = ("", "NA")
CEILING = 0.9596
"""The R² that the noise of Friedman's function leaves to the best of all learners."""


class DataSet(NamedTuple):
    """A stream in its order, each row with a target.

    Attributes
    ----------
    name : str
        As tables show it.
    columns : dict of str to array
        Numbers as float64, NaN where one is missing; words as objects, None where one is missing.
    y : array
        The target.
    """

    name: str
    columns: Columns
    y: FloatArray

    def head(self, rows: int) -> "DataSet":
        """Return the first rows.

        Parameters
        ----------
        rows : int
            How many; all, if there are fewer.
        """
        columns = {name: column[:rows] for name, column in self.columns.items()}
        return DataSet(self.name, columns, self.y[:rows])

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows one by one, None for what is missing."""
        lists = [_with_none(column).tolist() for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]


def friedman(rng: np.random.Generator, rows: int) -> tuple[FloatArray, FloatArray]:
    """Return rows of Friedman's first function: five of ten features matter, the noise is N(0, 1).

    Parameters
    ----------
    rng : numpy.random.Generator
        Gives features and noise.
    rows : int
        How many.
    """
    x = rng.random((rows, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
    return x, y + 5 * x[:, 4] + rng.normal(size=rows)


def friedman_set(rows: int, seed: int = 1) -> DataSet:
    """Return Friedman's first function as a set of named columns.

    Parameters
    ----------
    rows : int
        How many.
    seed : int
        The same rows for the same seed.
    """
    x, y = friedman(np.random.default_rng(seed), rows)
    columns = {f"x{i}": np.ascontiguousarray(column) for i, column in enumerate(x.T)}
    return DataSet("Friedman #1", columns, y)


def load(name: str, source: "Source | None" = None) -> DataSet | None:
    """Read a real stream, or return None where its file is not there.

    Parameters
    ----------
    name : str
        A key of `REAL` or `FURTHER`, or any other name of a given source.
    source : Source, optional
        Where it comes from, if not from there.
    """
    source = source or {**REAL, **FURTHER}[name]
    path = FOLDER / source.file
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row[source.target] not in MISSING]
    if source.shuffled:
        order = np.random.default_rng(SHUFFLE_SEED).permutation(len(rows))
        rows = [rows[i] for i in order]
    columns: Columns = {}
    for column in rows[0]:
        if column != source.target and column not in source.dropped:
            columns |= _columns(source, column, [row[column] for row in rows])
    y = np.array([float(row[source.target]) for row in rows])
    known = ~np.isnan(y)
    return DataSet(name, {each: column[known] for each, column in columns.items()}, y[known])


def _columns(source: "Source", name: str, texts: list[str]) -> Columns:
    if name == source.time:
        return _time_parts([datetime.strptime(text, source.time_format) for text in texts])
    if name in source.words:
        words = [None if text in MISSING else text for text in texts]
        return {name: np.array(words, dtype=object)}
    return {name: np.array([np.nan if text in MISSING else float(text) for text in texts])}


def _time_parts(times: list[datetime]) -> Columns:
    return {
        "hour": np.array([float(time.hour) for time in times]),
        "weekday": np.array([float(time.weekday()) for time in times]),
        "month": np.array([float(time.month) for time in times]),
    }


def _with_none(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype == object:
        return column
    result = column.astype(object)
    result[np.isnan(column)] = None
    return result


class Source(NamedTuple):
    """Where a stream comes from, and how its file is read.

    Attributes
    ----------
    file : str
        Its name.
    target : str
        The column to predict; rows without it are left out.
    dropped : tuple of str
        Columns that are counters or give the target away.
    words : tuple of str
        Columns that are not numbers.
    time, time_format : str
        A column that is replaced by its hour, weekday and month.
    shuffled : bool
        Whether the file's order means nothing and is sorted, so that a fixed shuffle replaces it.
    """

    file: str
    target: str
    dropped: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    time: str = ""
    time_format: str = "%m/%d/%y %H:%M"
    shuffled: bool = False


REAL = {
    "bike": Source("bike_hour.csv", "cnt", ("instant", "dteday", "casual", "registered")),
    "metro": Source(
        "metro_traffic.csv",
        "traffic_volume",
        words=("holiday", "weather_main", "weather_description"),
        time="date_time",
    ),
    "Beijing PM2.5": Source("beijing_pm25.csv", "pm2.5", ("No",), words=("cbwd",)),
    "california": Source(
        "california_housing.csv",
        "median_house_value",
        words=("ocean_proximity",),
        shuffled=True,
    ),
    "diamonds": Source(
        "diamonds.csv",
        "price",
        words=("cut", "color", "clarity"),
        shuffled=True,
    ),
    "puma8NH": Source("puma8NH.csv", "thetadd3"),
}

FURTHER = {
    "maximum temperature": Source("bias_correction.csv", "Next_Tmax", ("Date", "Next_Tmin")),
    "minimum temperature": Source("bias_correction.csv", "Next_Tmin", ("Date", "Next_Tmax")),
    "CO2": Source("occupancy.csv", "CO2", ("Date", "Occupancy", "HumidityRatio")),
    "light": Source("occupancy.csv", "Light", ("Date", "Occupancy")),
    "dew point": Source("weather.csv", "feat_2", ("target",)),
    "wind": Source("weather.csv", "feat_5", ("target",)),
}
"""Numbers to predict from files of other tasks."""
