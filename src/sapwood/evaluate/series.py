"""Errors by series, where rows of many series come in one stream."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.evaluate.recorder import (
    LabelledRows,
    Moment,
    Recorder,
    packed,
    ratio,
    restored_lags,
    saved_array,
    saved_lags,
    unpacked,
)
from sapwood.formatting import finite
from sapwood.lags.lags import Lags
from sapwood.lags.spans import read_span
from sapwood.validation import Label

__all__ = ["MOST_SERIES", "SeriesErrors", "SeriesScores", "SeriesTable"]

MOST_SERIES = 10_000
"""How many series have errors of their own: the first ones. All others are one together."""
TIME = "time"
ROWS, ABSOLUTE, SQUARE, ORIGIN, Y, Y_SQUARE, OWN, DIFFERENCES, FIRST, LAST = range(10)
"""Columns of the sums: rows, their absolute and squared error; the first label, from which others
are counted, with the sum and the sum of squares; the absolute error in rows with a value a season
before, and the absolute difference from that value; the first and the last time."""
SUMS = 10


@dataclass(frozen=True, slots=True)
class SeriesErrors:
    """The errors of one series.

    Parameters
    ----------
    key : tuple
        The values that identify it; None in place of a missing one.
    rows : int
        The number of scored rows.
    mae, rmse, r2 : float
        The errors of the model; R² is relative to the variance of the series.
    mase : float
        MAE divided by the mean absolute difference of values of the series that are a season apart,
        both for rows with a value a season before.
    first, last : float
        The first and the last time of its rows, in seconds since 1970; NaN if rows have no times.
    """

    key: tuple[Any, ...]
    rows: int
    mae: float
    rmse: float
    r2: float
    mase: float
    first: float = math.nan
    last: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, None for NaN."""
        found: dict[str, Any] = finite(asdict(self))
        return found


@dataclass(frozen=True, slots=True)
class SeriesTable:
    """The errors of all series.

    Parameters
    ----------
    by : tuple of names
        The columns that identify series.
    season : str
        The season of MASE.
    series : tuple of SeriesErrors
        In the order of their first rows.
    others : SeriesErrors, optional
        The rows of all further series, if there were more than `MOST_SERIES`.
    """

    by: tuple[Label, ...]
    season: str
    series: tuple[SeriesErrors, ...]
    others: SeriesErrors | None = None

    def worst(self, count: int) -> list[SeriesErrors]:
        """Return the series whose rows have the largest sums of absolute errors."""
        known = [each for each in self.series if each.rows]
        return sorted(known, key=lambda each: -each.mae * each.rows)[:count]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, None for NaN."""
        return {
            "by": list(self.by),
            "season": self.season,
            "series": [each.to_dict() for each in self.series],
            "others": None if self.others is None else self.others.to_dict(),
        }


class SeriesScores(Recorder):
    """Scores predictions by series.

    - `by`: the columns that identify series.
    - `season`: rows of a series, or a duration, by which values are apart that MASE is relative to.
    - `most`: how many series have errors of their own.

    Examples
    --------
    >>> scores = SeriesScores(["city"])
    >>> cities = {"city": ["Oslo", "Bonn", "Oslo"]}
    >>> y = np.array([1.0, 7.0, 3.0])
    >>> scores.record(LabelledRows(np.array([2.0, 7.0, 3.0]), y, features=cities))
    >>> [(each.key, each.rows, each.mae, each.mase) for each in scores.table.series]
    [(('Oslo',), 2, 0.5, 0.0), (('Bonn',), 1, 0.0, nan)]
    """

    def __init__(self, by: Sequence[Label], season: int | str = 1, most: int = MOST_SERIES) -> None:
        self._by, self._given, self._most = tuple(by), season, most
        by_time = read_span(season, "season").by_time
        self._past = Lags([season], time=TIME if by_time else None, by=self._by)
        self._places: dict[tuple[Any, ...], int] = {}
        self._sums = _empty(16)

    def record(self, rows: LabelledRows) -> None:
        """Score rows, and keep their labels."""
        if not len(rows.y):
            return
        columns = {name: _listed(rows.column(name)) for name in self._by}
        places = self._places_of(list(zip(*columns.values(), strict=True)))
        times = np.full(len(rows.y), np.nan) if rows.times is None else rows.times
        scored = rows.is_scored
        y = np.where(scored, rows.y, np.nan)
        past = self._past.transform_learn_many({**columns, TIME: times}, y)
        earlier = np.asarray(past[self._past.features[0]], np.float64)
        self._add(places, rows.predictions - rows.y, y, earlier, times)

    def _add(
        self,
        places: NDArray[np.intp],
        error: NDArray[np.float64],
        y: NDArray[np.float64],
        earlier: NDArray[np.float64],
        times: NDArray[np.float64],
    ) -> None:
        """Add rows to the sums one after the other, so that it is the same in any batches."""
        scored = np.isfinite(y)
        first = np.unique(places[scored], return_index=True)
        new = self._sums[first[0], ROWS] == 0
        self._sums[first[0][new], ORIGIN] = y[scored][first[1][new]]
        from_origin = y - self._sums[places, ORIGIN]
        paired = scored & np.isfinite(earlier)
        for column, chosen, values in (
            (ROWS, scored, np.ones(len(y))),
            (ABSOLUTE, scored, np.abs(error)),
            (SQUARE, scored, np.square(error)),
            (Y, scored, from_origin),
            (Y_SQUARE, scored, np.square(from_origin)),
            (OWN, paired, np.abs(error)),
            (DIFFERENCES, paired, np.abs(y - earlier)),
        ):
            np.add.at(self._sums[:, column], places[chosen], values[chosen])
        timed = scored & np.isfinite(times)
        np.minimum.at(self._sums[:, FIRST], places[timed], times[timed])
        np.maximum.at(self._sums[:, LAST], places[timed], times[timed])

    def _places_of(self, keys: list[tuple[Any, ...]]) -> NDArray[np.intp]:
        """Return the place of each row's series; that after the last one for further series."""
        known, most = self._places, self._most
        for key in dict.fromkeys(keys):
            if key not in known and len(known) < most:
                known[key] = len(known)
        if len(known) >= len(self._sums):
            grown = _empty(min(2 * len(known), most + 1))
            grown[: len(self._sums)] = self._sums
            self._sums = grown
        return np.array([known.get(key, most) for key in keys], np.intp)

    @property
    def table(self) -> SeriesTable:
        """The errors so far."""
        series = tuple(_errors(key, self._sums[place]) for key, place in self._places.items())
        others = None
        if len(self._places) == self._most and self._sums[self._most, ROWS]:
            others = _errors((None,) * len(self._by), self._sums[self._most])
        return SeriesTable(self._by, str(self._given), series, others)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the errors by series."""
        return {"series": self.table}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        used = self._most + 1 if len(self._places) == self._most else len(self._places)
        return {
            "series_keys": packed([list(key) for key in self._places]),
            "series_sums": self._sums[:used].copy(),
            **saved_lags("series_past", self._past),
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return one in a state that `to_arrays` returned."""
        made = type(self)(self._by, self._given, self._most)
        keys = unpacked(arrays["series_keys"])
        sums = saved_array(arrays, "series_sums", np.float64, (None, SUMS))
        if not isinstance(keys, list) or len(keys) > self._most:
            raise ValueError("the saved series are no list, or too many")
        for key in keys:
            good = isinstance(key, list) and len(key) == len(self._by)
            if not good or any(isinstance(part, list | dict) for part in key):
                raise ValueError(f"the saved series {validation.shown(key)} is none")
            made._places[tuple(key)] = len(made._places)
        places = len(keys)
        _check_sums(sums, places, self._most)
        made._sums = _empty(max(16, places + 1))
        made._sums[: len(sums)] = sums
        made._past = restored_lags(arrays, "series_past", self._past)
        if len(made._places) != places:
            raise ValueError("the saved series occur twice")
        return made


def _check_sums(sums: NDArray[np.float64], places: int, most: int) -> None:
    counts = [ROWS, ABSOLUTE, SQUARE, Y_SQUARE, OWN, DIFFERENCES]
    fits = len(sums) == (most + 1 if places == most else places)
    if not fits or not np.isfinite(sums[:, :FIRST]).all() or (sums[:, counts] < 0).any():
        raise ValueError("the saved errors by series have a sum that cannot be")
    if np.isnan(sums).any():
        raise ValueError("the saved errors by series have a time that cannot be")


def _empty(count: int) -> NDArray[np.float64]:
    sums = np.zeros((count, SUMS))
    sums[:, FIRST], sums[:, LAST] = np.inf, -np.inf
    return sums


def _errors(key: tuple[Any, ...], sums: NDArray[np.float64]) -> SeriesErrors:
    own = sums.tolist()
    rows = own[ROWS]
    mae, mase = ratio(own[ABSOLUTE], rows), ratio(own[OWN], own[DIFFERENCES])
    spread = own[Y_SQUARE] - ratio(own[Y] * own[Y], rows)
    first, last = (each if math.isfinite(each) else math.nan for each in own[FIRST:])
    r2 = 1.0 - ratio(own[SQUARE], max(spread, 0.0)) if rows > 1 else math.nan
    rmse = math.sqrt(ratio(own[SQUARE], rows))
    return SeriesErrors(key, int(rows), mae, rmse, r2, mase, first, last)


def _listed(column: Any) -> list[Any]:
    """Return the values of a column; None where one is missing."""
    listed = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [None if value != value else value for value in listed]  # noqa: PLR0124 - NaN
