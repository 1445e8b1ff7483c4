"""Forecast scores: MASE, and the skill against the seasonal naive forecast, by time or by rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.recorder import (
    LabelledRows,
    Moment,
    Recorder,
    packed,
    saved_array,
    unpacked,
)
from sapwood.lags.lags import Lags
from sapwood.lags.spans import Span, read_span
from sapwood.validation import Label

__all__ = ["SeasonalErrors", "SeasonalScores", "skill"]

TIME = "time"
SUMS = ("rows", "absolute", "known", "naive", "naive_square", "own_square", "steps", "differences")
"""Rows and their absolute error; rows with a seasonal naive forecast, its absolute and squared
error, and the squared error of the model there; pairs of values a season apart, and the sum of
their absolute differences."""


def skill(error: float, reference: float) -> float:
    """Return how much smaller an error is than that of a reference: 1 is perfect, 0 is equal.

    Examples
    --------
    >>> skill(50.0, 100.0)
    0.5
    """
    return 1.0 - error / reference if reference > 0 else math.nan


@dataclass(frozen=True, slots=True)
class SeasonalErrors:
    """Errors relative to the season of a series.

    Parameters
    ----------
    season : str
        The season, as "168h", or rows.
    mase : float
        The mean absolute scaled error: that of the model, divided by the mean absolute difference
        of values that are a season apart.
    rows : int
        Rows for which the seasonal naive forecast exists.
    naive_mae, naive_rmse : float
        The errors of the seasonal naive forecast for these rows: the last value known at the
        horizon that is a whole number of seasons earlier.
    skill : float
        1 - RMSE of the model / RMSE of the seasonal naive forecast, for the same rows.
    """

    season: str
    mase: float
    rows: int
    naive_mae: float
    naive_rmse: float
    skill: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, None for NaN."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


class SeasonalScores(Recorder):
    """Scores predictions relative to the seasonal naive forecast.

    Parameters
    ----------
    season : int or str
        Rows, or a duration.
    horizon : int or str, optional
        How far ahead rows are predicted, in the same unit.
    by : sequence of names
        The columns that identify series.
    """

    def __init__(
        self, season: int | str, horizon: int | str | None = None, by: Sequence[Label] = ()
    ) -> None:
        self._season, self._by = read_span(season, "season"), tuple(by)
        self._horizon, self._given = horizon, season
        self._past = Lags(
            list(dict.fromkeys([season, self._naive_span(horizon)])),
            time=TIME if self._season.by_time else None,
            by=self._by,
        )
        self._sums = dict.fromkeys(SUMS, 0.0)

    def _naive_span(self, horizon: int | str | None) -> int | str:
        """Return the shortest whole number of seasons that is known at the horizon."""
        ahead: Span | None = None if horizon is None else read_span(horizon, "horizon")
        if ahead is None or ahead.amount <= self._season.amount:
            return self._season.given
        seasons = math.ceil(ahead.amount / self._season.amount)
        amount = seasons * self._season.amount
        return f"{amount:g}s" if self._season.by_time else int(amount)

    def record(self, rows: LabelledRows) -> None:
        """Score rows, and keep their labels."""
        if not len(rows.y):
            return
        columns: dict[Any, Any] = {name: _column(rows.features, name) for name in self._by}
        if self._season.by_time:
            columns[TIME] = np.full(len(rows.y), np.nan) if rows.times is None else rows.times
        columns["row"] = np.zeros(len(rows.y))
        y = np.where(rows.is_scored, rows.y, np.nan)
        made = self._past.transform_learn_many(columns, y)
        seasonal, *rest = (np.asarray(made[name], np.float64) for name in self._past.features)
        naive = rest[0] if rest else seasonal
        error, scored = np.abs(rows.predictions - rows.y), rows.is_scored
        known, paired = scored & np.isfinite(naive), scored & np.isfinite(seasonal)
        self._add("rows", scored.sum())
        self._add("absolute", error[scored].sum())
        self._add("known", known.sum())
        self._add("naive", np.abs(rows.y - naive)[known].sum())
        self._add("naive_square", np.square(rows.y - naive)[known].sum())
        self._add("own_square", np.square(error)[known].sum())
        self._add("steps", paired.sum())
        self._add("differences", np.abs(rows.y - seasonal)[paired].sum())

    def _add(self, name: str, value: Any) -> None:
        self._sums[name] += float(value)

    @property
    def errors(self) -> SeasonalErrors:
        """The errors so far."""
        sums = self._sums
        scale = _ratio(sums["differences"], sums["steps"])
        naive_rmse = math.sqrt(_ratio(sums["naive_square"], sums["known"]))
        own_rmse = math.sqrt(_ratio(sums["own_square"], sums["known"]))
        return SeasonalErrors(
            str(self._season.given),
            _ratio(_ratio(sums["absolute"], sums["rows"]), scale),
            int(sums["known"]),
            _ratio(sums["naive"], sums["known"]),
            naive_rmse,
            skill(own_rmse, naive_rmse),
        )

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the errors relative to the season."""
        return {"seasonal": self.errors}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        header, arrays = self._past.to_state()
        return {
            "seasonal_sums": np.array(list(self._sums.values())),
            "seasonal_past": packed(header),
            **{f"seasonal_past_{name}": np.array(own) for name, own in arrays.items()},
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return one in a state that `to_arrays` returned."""
        made = type(self)(self._given, self._horizon, self._by)
        sums = saved_array(arrays, "seasonal_sums", np.float64, (len(SUMS),))
        if not (np.isfinite(sums).all() and (sums >= 0).all()):
            raise ValueError("the saved seasonal scores have a sum that cannot be")
        made._sums = dict(zip(SUMS, sums.tolist(), strict=True))
        start = "seasonal_past_"
        past = {name.removeprefix(start): own for name, own in arrays.items() if start in name}
        made._past = Lags.from_state(unpacked(arrays["seasonal_past"]), past)
        if made._past.parameters != self._past.parameters:
            raise ValueError("the saved seasonal scores are of another season")
        return made


def _ratio(one: float, other: float) -> float:
    return one / other if other > 0 else math.nan


def _column(features: Any, name: Any) -> Any:
    """Return a column of features that may be rows."""
    if isinstance(features, Mapping):
        return features[name]
    return [x.get(name) for x in features]
