"""Forecast scores: MASE, and the skill against the seasonal naive forecast, in total and by hour."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.durations import duration_text
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
from sapwood.lags.spans import Span, read_span
from sapwood.rows.calendar import Calendar
from sapwood.rows.times import parts_of
from sapwood.validation import Label

__all__ = ["HourErrors", "SeasonalErrors", "SeasonalScores", "skill"]

TIME, ORDINAL = "time", "ordinal"
SUMS = (
    *("rows", "absolute", "own_square_all", "known", "naive", "naive_square", "own_square"),
    *("steps", "differences", "own", "bounded"),
)
"""Rows, their absolute and their squared error; rows with a seasonal naive forecast, its absolute
and squared error, and the squared error of the model there; pairs of values a season apart, the sum
of their absolute differences, and the absolute error of the model there; rows with prediction
intervals."""
HOURS = 24
NO_HOUR = HOURS  # the row of the table for rows without a time
MOST_SERIES = 10_000


def skill(error: float, reference: float) -> float:
    """Return how much smaller an error is than that of a reference: 1 is perfect, 0 is equal.

    Examples
    --------
    >>> skill(50.0, 100.0)
    0.5
    """
    return 1.0 - error / reference if reference > 0 else math.nan


@dataclass(frozen=True, slots=True)
class HourErrors:
    """Errors in one hour of the day.

    Parameters
    ----------
    hour : int
        0 to 23.
    rows : int
        The number of scored rows.
    mae, rmse : float
        The errors of the model.
    skill : float
        As of `SeasonalErrors`, in this hour.
    coverage : tuple of float
        The shares of labels within the prediction intervals, for each level.
    """

    hour: int
    rows: int
    mae: float
    rmse: float
    skill: float
    coverage: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SeasonalErrors:
    """Errors relative to the season of a series.

    Parameters
    ----------
    season : str
        The season, as "168h", or rows.
    mase : float
        The mean absolute scaled error: that of the model, divided by the mean absolute difference
        of values that are a season apart, both for rows with a value a season before.
    rows : int
        Rows for which the seasonal naive forecast exists.
    naive_mae, naive_rmse : float
        The errors of the seasonal naive forecast for these rows: the last value known at the
        horizon that is a whole number of seasons earlier.
    skill : float
        1 - RMSE of the model / RMSE of the seasonal naive forecast, for the same rows.
    hours : tuple of HourErrors
        The same by the hour of the day, in the order of hours that have rows; empty if rows have no
        times, or all have the same hour.
    levels : tuple of float
        The levels of the prediction intervals.
    are_repeated : bool
        Whether several rows have the same time each time: then each was compared with the row of
        the same place a season earlier.
    """

    season: str
    mase: float
    rows: int
    naive_mae: float
    naive_rmse: float
    skill: float
    hours: tuple[HourErrors, ...] = ()
    levels: tuple[float, ...] = ()
    are_repeated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, None for NaN."""
        found: dict[str, Any] = finite(asdict(self))
        return found


class SeasonalScores(Recorder):
    """Scores predictions relative to the seasonal naive forecast.

    - `season`: rows, or a duration.
    - `horizon`: how far ahead rows are predicted, in the same unit.
    - `by`: the columns that identify series.
    - `levels`: the levels of the prediction intervals.
    - `are_repeated`: whether several rows of a series have the same time each time, as where dates
      have no hour: the k-th of them is then compared with the k-th a season earlier.
    - `calendar`: whose local time has the hours.
    """

    def __init__(
        self,
        season: int | str,
        horizon: int | str | None = None,
        by: Sequence[Label] = (),
        levels: Sequence[float] = (),
        *,
        are_repeated: bool = False,
        calendar: Calendar | None = None,
    ) -> None:
        self._calendar = calendar
        self._season, self._by = read_span(season, "season"), tuple(by)
        self._horizon, self._given, self._levels = horizon, season, tuple(levels)
        self._ordinals: dict[tuple[Any, ...], list[float]] | None = None
        if are_repeated and self._season.by_time:
            self._ordinals = {}
        self._past = Lags(
            list(dict.fromkeys([season, self._naive_span(horizon)])),
            time=TIME if self._season.by_time else None,
            by=(*self._by, *(() if self._ordinals is None else (ORDINAL,))),
        )
        self._sums = np.zeros((HOURS + 1, len(SUMS) + len(self._levels)))

    def _naive_span(self, horizon: int | str | None) -> int | str:
        """Return the shortest whole number of seasons that is known at the horizon."""
        ahead: Span | None = None if horizon is None else read_span(horizon, "horizon")
        if ahead is None or ahead.amount <= self._season.amount:
            return self._season.given
        seasons = math.ceil(ahead.amount / self._season.amount)
        amount = seasons * self._season.amount
        return duration_text(amount) if self._season.by_time else int(amount)

    def record(self, rows: LabelledRows) -> None:
        """Score rows, and keep their labels."""
        if not len(rows.y):
            return
        columns: dict[Any, Any] = {name: rows.column(name) for name in self._by}
        if self._season.by_time:
            columns[TIME] = np.full(len(rows.y), np.nan) if rows.times is None else rows.times
        columns["row"] = np.zeros(len(rows.y))
        if self._ordinals is not None:
            columns[ORDINAL] = self._ordinals_of(columns)
        y = np.where(rows.is_scored, rows.y, np.nan)
        made = self._past.transform_learn_many(columns, y)
        seasonal, *rest = (np.asarray(made[name], np.float64) for name in self._past.features)
        naive = rest[0] if rest else seasonal
        error, scored = np.abs(rows.predictions - rows.y), rows.is_scored
        known, paired = scored & np.isfinite(naive), scored & np.isfinite(seasonal)
        square, ones = np.square(error), np.ones(len(error))
        parts = [
            *((scored, ones), (scored, error), (scored, square)),
            *((known, ones), (known, np.abs(rows.y - naive)), (known, np.square(rows.y - naive))),
            *(
                (known, square),
                (paired, ones),
                (paired, np.abs(rows.y - seasonal)),
                (paired, error),
            ),
        ]
        if self._levels and rows.bounds is not None:
            lower, upper = rows.bounds[:, :, 0], rows.bounds[:, :, 1]
            bounded = scored & np.isfinite(lower).all(axis=1) & np.isfinite(upper).all(axis=1)
            inside = (lower <= rows.y[:, np.newaxis]) & (rows.y[:, np.newaxis] <= upper)
            parts += [(bounded, ones), *((bounded, each.astype(np.float64)) for each in inside.T)]
        hours = _hours(rows.times, len(rows.y), self._calendar)
        for place, (chosen, values) in enumerate(parts):
            np.add.at(self._sums[:, place], hours[chosen], values[chosen])

    def _ordinals_of(self, columns: dict[Any, Any]) -> list[int]:
        """Return how many rows of the same series and time came before each row."""
        ordinals, known = [], self._ordinals
        assert known is not None
        keys = zip(*(list(columns[name]) for name in self._by), strict=True)
        series = list(keys) if self._by else [()] * len(columns[TIME])
        for key, time in zip(series, columns[TIME].tolist(), strict=True):
            before = known.pop(key, [math.nan, 0])
            count = int(before[1]) + 1 if before[0] == time else 0
            known[key] = [time, count]
            ordinals.append(count)
        while len(known) > MOST_SERIES:
            del known[next(iter(known))]
        return ordinals

    @property
    def errors(self) -> SeasonalErrors:
        """The errors so far."""
        sums = self._named(self._sums.sum(axis=0))
        hours = [
            HourErrors(
                hour,
                int(own["rows"]),
                ratio(own["absolute"], own["rows"]),
                math.sqrt(ratio(own["own_square_all"], own["rows"])),
                skill(math.sqrt(own["own_square"]), math.sqrt(own["naive_square"])),
                tuple(ratio(own[level], own["bounded"]) for level in map(str, self._levels)),
            )
            for hour, own in enumerate(map(self._named, self._sums[:HOURS]))
            if own["rows"]
        ]
        naive_rmse = math.sqrt(ratio(sums["naive_square"], sums["known"]))
        own_rmse = math.sqrt(ratio(sums["own_square"], sums["known"]))
        return SeasonalErrors(
            str(self._season.given),
            ratio(sums["own"], sums["differences"]),
            int(sums["known"]),
            ratio(sums["naive"], sums["known"]),
            naive_rmse,
            skill(own_rmse, naive_rmse),
            tuple(hours) if len(hours) > 1 else (),
            self._levels,
            self._ordinals is not None,
        )

    def _named(self, sums: NDArray[np.float64]) -> dict[str, float]:
        return dict(zip((*SUMS, *map(str, self._levels)), sums.tolist(), strict=True))

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the errors relative to the season."""
        return {"seasonal": self.errors}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        return {
            "seasonal_sums": self._sums.copy(),
            "seasonal_ordinals": packed({"known": self._listed()}),
            **saved_lags("seasonal_past", self._past),
        }

    def _listed(self) -> list[Any]:
        """Return the last time of each series, None if it is none, and its rows."""
        return [
            [[_plain(part) for part in key], None if math.isnan(time) else time, count]
            for key, (time, count) in (self._ordinals or {}).items()
        ]

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return one in a state that `to_arrays` returned."""
        are_repeated = self._ordinals is not None
        made = type(self)(
            *(self._given, self._horizon, self._by, self._levels),
            are_repeated=are_repeated,
            calendar=self._calendar,
        )
        sums = saved_array(arrays, "seasonal_sums", np.float64, self._sums.shape)
        if not (np.isfinite(sums).all() and (sums >= 0).all()):
            raise ValueError("the saved seasonal scores have a sum that cannot be")
        made._sums = sums
        if made._ordinals is not None:
            for key, time, count in unpacked(arrays["seasonal_ordinals"])["known"]:
                made._ordinals[tuple(key)] = [math.nan if time is None else float(time), int(count)]
        made._past = restored_lags(arrays, "seasonal_past", self._past)
        return made


def _hours(
    times: NDArray[np.float64] | None, rows: int, calendar: Calendar | None
) -> NDArray[np.int64]:
    """Return the hour of the day of each row; `NO_HOUR` if it is not known."""
    if times is None:
        return np.full(rows, NO_HOUR)
    times = times if calendar is None else calendar.local(times)
    hours = parts_of(times, ["hour"])["hour"]
    return np.where(np.isfinite(hours), hours, NO_HOUR).astype(np.int64)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
