"""Trees and forests as a forecaster of sktime."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon

import sapwood
from sapwood import validation
from sapwood.lags import LaggedModel, Lags, NaiveStack
from sapwood.lags.auto import propose
from sapwood.rows.times import DAY, parts_of, seconds_of_array

__all__ = ["OnlineForecaster"]

AUTO = "auto"
MODELS = {
    "tree": sapwood.HoeffdingTreeRegressor,
    "adaptive": sapwood.AdaptiveTreeRegressor,
    "forest": sapwood.ForestRegressor,
}
TIME = "time"
Row = dict[str, Any]


class OnlineForecaster(BaseForecaster):
    """A tree or forest of Sapwood with lags, combined with simple forecasts.

    `update` learns the new rows only, at the same cost per row as `fit`.

    Parameters
    ----------
    model : {"forest", "tree", "adaptive"}
        The kind of model.
    parameters : dict, optional
        The parameters of the model, such as ``{"seed": 1}``.
    lags : "auto", int, or sequence of int
        How many rows earlier values of the series are. "auto" finds them in the series of `fit`,
        with a rolling mean, and combines the model with a `sapwood.lags.NaiveStack`.
    means : int or sequence of int
        The numbers of rows of rolling means, if lags are given.
    horizon : int, optional
        How many steps are forecast directly: no lag is shorter, and labels are as late in training.
        Steps further ahead are recursive, with predictions as lags. If not given, it is the
        furthest step of the `fh` of `fit`, at most the shortest of given lags; or 1 without `fh`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sapwood.sktime import OnlineForecaster
    >>> at = pd.date_range("2026-03-02", periods=24 * 60, freq="h")
    >>> y = pd.Series(50 + 20 * np.sin(np.arange(24 * 60) * np.pi / 12), at, name="load")
    >>> forecaster = OnlineForecaster("tree", lags=[1, 24]).fit(y[:-24])
    >>> forecaster.predict(fh=[6, 12]).round()
    2026-04-30 05:00:00    69.0
    2026-04-30 11:00:00    55.0
    Name: load, dtype: float64
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["sapwood developers"],
        "maintainers": ["sapwood developers"],
        "python_dependencies": "sapwood",
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "capability:multivariate": False,
        "capability:exogenous": True,
        "capability:categorical_in_X": True,
        "capability:insample": False,
        "capability:missing_values": True,
        "capability:pred_int": False,
        "capability:update": True,
        "requires-fh-in-fit": False,
    }
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}
    _last: Any  # the index of the last row

    def __init__(
        self,
        model: str = "forest",
        parameters: Mapping[str, Any] | None = None,
        lags: str | int | Sequence[int] = AUTO,
        means: int | Sequence[int] = (),
        horizon: int | None = None,
    ) -> None:
        self.model, self.parameters = model, parameters
        self.lags, self.means, self.horizon = lags, means, horizon
        super().__init__()
        self._y: Any = None  # which sktime sets if it is configured to remember series
        self._X: Any = None

    # -- what sktime calls ------------------------------------------------------------------------

    def _fit(self, y: Any, X: Any, fh: Any) -> "OnlineForecaster":
        """Learn a series with an empty model."""
        self._step = _step(y.index)
        self._steps = self._horizon(fh, len(y), y.index)
        self.model_ = self._new_model(np.asarray(y, np.float64))
        self._learn(_rows(y.index, X, self._step), y)
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> "OnlineForecaster":
        """Learn the rows that are new; without `update_params` they become known as lags alone."""
        is_new = y.index > self._last
        y, X = y[is_new], None if X is None else X[X.index > self._last]
        rows = _rows(y.index, X, self._step)
        if update_params:
            self._learn(rows, y)
            return self
        for x, label in zip(rows, y.tolist(), strict=True):
            self.model_.lags.learn_one(x, *([label] if np.isfinite(label) else []))
        self._last = y.index[-1] if len(y) else self._last
        return self

    def _predict(self, fh: Any, X: Any) -> Any:
        """Forecast the steps after the last row, each with those before it as its lags."""
        steps = np.asarray(fh.to_relative(self.cutoff), np.int64)
        path = ForecastingHorizon(np.arange(1, steps.max() + 1), is_relative=True)
        index = path.to_absolute_index(self.cutoff)
        rows = _rows(index, None if X is None else X.reindex(index), self._step)
        found = self.model_.forecast_path(rows).predictions[steps - 1]
        return pd.Series(found, index=fh.to_absolute_index(self.cutoff), name=self._name)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return the parameters that sktime checks the forecaster with."""
        return [
            {"model": "tree", "lags": [1, 2], "means": 3},
            {"parameters": {"seed": 2}, "horizon": 3},
            {"model": "adaptive"},
        ]

    # -- the model --------------------------------------------------------------------------------

    def _horizon(self, fh: Any, rows: int, index: Any) -> int:
        if self.horizon is not None:
            return validation.whole(self.horizon, "horizon", 1, max(rows, 1))
        steps = [1] if fh is None else fh.to_relative(index[-1:]).to_numpy().tolist()
        shortest = rows if isinstance(self.lags, str) else int(np.min(self.lags, initial=rows))
        return max(1, min(int(max(steps)), shortest, rows))

    def _new_model(self, y: Any) -> LaggedModel:
        if self.model not in MODELS:
            raise ValueError(
                f"model = {validation.shown(self.model)}: one of {', '.join(MODELS)} is expected"
            )
        horizon = self._steps
        inner: Any = MODELS[self.model](**(self.parameters or {}))
        if not isinstance(self.lags, str):
            return LaggedModel(inner, Lags(self.lags, self.means, horizon=horizon))
        if self.lags != AUTO:
            raise ValueError(f"lags = {validation.shown(self.lags)}: numbers of rows are expected")
        found = propose(y, None, float(horizon))
        lags = Lags(found.lags, found.means, horizon=horizon)
        last = found.lags[0]
        naive = last if found.naive is None else found.naive
        has_time = self._step is not None
        stack = NaiveStack(
            *(inner, f"y.lag{naive}", f"y.lag{last}"),
            linear=lags.features,
            time=TIME if has_time else None,
        )
        return LaggedModel(stack, lags)

    def _learn(self, rows: list[Row], y: Any) -> None:
        """Learn rows whose labels are as late as in a forecast; at the end all are known.

        Rows without a label are past, and are not learned.
        """
        labels, late = np.asarray(y, np.float64), self._steps - 1
        self._name = y.name
        self._last = y.index[-1] if len(y) else self._last
        if not late and np.isfinite(labels).all():
            self.model_.learn_many(rows, labels)
            return
        for place in range(len(rows) + late):
            if place < len(rows):
                self.model_.predict_one(rows[place], id=place)
            due = place - late
            if due >= 0 and np.isfinite(labels[due]):
                self.model_.learn_one(rows[due], float(labels[due]), id=due)


def _step(index: Any) -> float | None:
    """Return the usual seconds between the times of an index; None if it has no times."""
    if not isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return None
    return float(np.median(np.diff(_seconds(index)))) if len(index) > 1 else DAY


def _seconds(index: Any) -> Any:
    """Return the times of an index in seconds, those of periods at their start."""
    times = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
    return seconds_of_array(times.tz_localize(None).to_numpy())


def _rows(index: Any, X: Any, step: float | None) -> list[Row]:
    """Return the features of rows: those of their times, as far as these vary, and columns of X."""
    columns: dict[str, list[Any]] = {}
    if step is not None:
        seconds = _seconds(index)
        names = [
            "season",
            *(["weekday"] if step < 7 * DAY else []),
            *(["hour"] if step < DAY else []),
        ]
        parts = {f"{TIME}.{name}": own for name, own in parts_of(seconds, names).items()}
        columns = {name: own.tolist() for name, own in {TIME: seconds, **parts}.items()}
    if X is not None:
        columns |= {str(name): [_plain(value) for value in X[name].tolist()] for name in X.columns}
    if not columns:
        return [{} for _ in range(len(index))]
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _plain(value: Any) -> Any:
    return None if pd.isna(value) else value
