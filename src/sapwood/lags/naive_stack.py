"""A model combined with simple forecasts: linear ones, the season, the last value and the mean."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector._pending import PendingPredictions
from sapwood.corrector.pending_state import PENDING, pending_arrays, restore_pending
from sapwood.lags import _forecasts
from sapwood.lags._forecasts import MEMBERS
from sapwood.lags.values import all_seconds, numbers_of, seconds_of
from sapwood.model import State
from sapwood.rows.calendar import Calendar
from sapwood.rows.encoder import is_rows
from sapwood.schema import Rule
from sapwood.stages.one_target import (
    LabelledRows,
    OneTargetStage,
    check_entries,
    checked_model,
    checked_numbers,
)
from sapwood.stages.rows import GivenRow, GivenRows
from sapwood.stages.stage import rows_learned
from sapwood.validation import Label

__all__ = ["NaiveStack"]

FloatArray = NDArray[np.float64]
KeyArray = NDArray[np.uint64]
STATE, OLDER_PENDING = "state", "pending"
MOST_PENDING = 2**17  # predictions that wait for their labels; the oldest go first
MOST_LAGS = 200  # of the linear forecasts; each label costs the square of it
RECORD = 1 + len(MEMBERS) + 1
NOTHING = np.empty(0)
NONE: Any = object()  # in place of a column that is not given
OLD_FORMAT = 2
"""Files without linear forecasts. Their weights are learned again."""


class NaiveStack(OneTargetStage):
    """A model of rows with lags, combined with simple forecasts.

    These are: two linear forecasts (ridge regressions on lags and on the hour, the hour of days
    off and the day of the week; the second one also on the position in the year), the value a
    season earlier, the last known value, and the mean of all known values. The weights are at
    least 0, sum to 1, and minimise the squared error of the combination over issued predictions,
    with old rows forgotten.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target.
    seasonal : str, or sequence of str
        The feature with the value a season earlier, such as "y.lag168h". Of several the first is
        the forecast; with `level`, a missing one is replaced by the first that is known.
    last : str, optional
        The feature with the last known value, such as "y.lag24h".
    linear : sequence of str
        The features of the linear forecasts: lags and rolling means of the target.
    time : str, optional
        The column of times, whose hour and day the linear forecasts use.
    day_off : str, optional
        The feature that is 1 on days off besides Saturdays and Sundays, such as "at.holiday".
    timezone : str, optional
        In whose local time the linear forecasts have hours and days; UTC if not given.
    level : str, optional
        The one of the `linear` features that is the recent mean of a series, such as "y.mean168h".
        Give it if rows are of many series: the simple forecasts and the weights then learn in the
        unit of each series, whose lags and labels are centred on its level and divided by its
        size, so that a new series is forecast by what others of any size have shown.

    Examples
    --------
    >>> import sapwood
    >>> from sapwood.lags import LaggedModel, Lags, NaiveStack
    >>> lags = Lags([1, 24])
    >>> stack = NaiveStack(sapwood.ForestRegressor(), "y.lag24", "y.lag1", linear=lags.features)
    >>> model = LaggedModel(stack, lags)
    >>> for hour in range(200):
    ...     model.learn_one({"x": 0.0}, float(hour % 24))
    >>> round(model.predict_one({"x": 0.0}), 1)
    8.0
    """

    kind: ClassVar[str] = "NaiveStack"
    format: ClassVar[int] = 3
    _one = "naive forecasts are stacked for one alone"

    def __init__(
        self,
        model: Any,
        seasonal: Label | Sequence[Label],
        last: Label | None = None,
        *,
        linear: Sequence[Label] = (),
        time: Label | None = None,
        day_off: Label | None = None,
        timezone: str | None = None,
        level: Label | None = None,
    ) -> None:
        super().__init__()
        self._model = checked_model(model, "the stack", is_new=False)
        given = [seasonal] if isinstance(seasonal, str | int) else list(seasonal)
        self._seasonal, *others = map(validation.feature_name, given)
        self._last = None if last is None else validation.feature_name(last)
        if isinstance(linear, str) or len(linear) > MOST_LAGS:
            raise ValueError(
                f"linear = {validation.shown(linear)}: a list of at most {MOST_LAGS} features is "
                "expected"
            )
        self._linear = tuple(map(validation.feature_name, linear))
        self._seasons = self._places([self._seasonal, *others], "seasonal") if others else ()
        self._level = None if level is None else self._places([level], "level")[0]
        self._time = None if time is None else validation.feature_name(time)
        self._day_off = None if day_off is None else validation.feature_name(day_off)
        self._columns = tuple(
            NONE if name is None else name
            for name in (*self._linear, self._seasonal, self._last, self._time, self._day_off)
        )
        self._rule = None if self._time is None else Rule(str(self._time), "time")
        own = _forecasts.size(len(self._linear), time is not None)
        self._state = np.zeros(own + (0 if level is None else _forecasts.SIZES))
        self._calendar = Calendar(timezone)
        self._pending = PendingPredictions(RECORD, MOST_PENDING)

    def _places(self, names: Sequence[Label], argument: str) -> tuple[int, ...]:
        """Return the places of features among those of the linear forecasts."""
        for name in names:
            if name not in self._linear:
                raise ValueError(
                    f"{argument} = {validation.shown(name)}: one of the linear features is expected"
                )
        return tuple(map(self._linear.index, names))

    @property
    def model(self) -> Any:
        """The model inside."""
        return self._model

    @property
    def weights(self) -> dict[str, float]:
        """The shares of the model and of the simple forecasts in predictions.

        A forecast that does not exist has the prediction of the model.
        """
        with self._turn():
            return _forecasts.positions(self._state)

    # -- predictions ------------------------------------------------------------------------------

    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        found, regions = rows.place(self._model, record)
        inputs, units, _ = self._in_units(self._inputs_of(rows, len(found)))
        members, results = self._combined(inputs, np.asarray(found, np.float64), units)
        if record and rows.ids is not None:
            self._keep(rows.ids, members, results)
        return results, regions

    def _inputs_of(self, rows: GivenRow | GivenRows, count: int) -> FloatArray:
        """Return what the simple forecasts need of a row, or of rows."""
        if isinstance(rows, GivenRow):
            return self._inputs_one(rows.x)
        return self._inputs(rows.X, count)

    def _inputs_one(self, x: Mapping[Any, Any]) -> FloatArray:
        """Return what the simple forecasts need of a row."""
        values = list(map(x.get, self._columns))
        if self._rule is not None:
            values[-2] = self._calendar.local_one(seconds_of(values[-2], self._rule))
        try:
            return np.array([values], np.float64)
        except (TypeError, ValueError):
            return self._inputs([x], 1)

    def _inputs(self, X: Any, rows: int) -> FloatArray:
        """Return what the simple forecasts need of rows."""
        inputs = np.full((rows, len(self._columns)), np.nan)
        for place, name in enumerate(self._columns):
            column = None if name is NONE else _column(X, name)
            if self._rule is not None and place == len(self._columns) - 2:
                inputs[:, place] = all_seconds(column, self._rule)
                inputs[:, place] = self._calendar.local(inputs[:, place])
            elif column is not None:
                inputs[:, place] = numbers_of(column, name)
        return inputs

    def _in_units(
        self, inputs: FloatArray, y: FloatArray = NOTHING
    ) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return inputs in the units of their series, the units, and the sizes after labels y."""
        if self._level is None:
            return inputs, None, None
        units, sizes = np.empty((4, len(inputs))), self._state[-_forecasts.SIZES :].copy()
        seasons = np.array(self._seasons, np.intp)
        _forecasts.to_units(inputs, seasons, self._level, y, sizes, units)
        return inputs, units, sizes

    def _combined(
        self, inputs: FloatArray, own: FloatArray, units: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        members, results = np.empty((len(own), len(MEMBERS))), np.empty(len(own))
        has_time = self._rule is not None
        own = _inside(own, units)
        _forecasts.predict(self._state, has_time, inputs, own, members, results)
        return _outside(members.T, units).T, _outside(results, units)

    def _keep(self, keys: KeyArray, members: FloatArray, results: FloatArray) -> None:
        labels = np.full(len(keys), rows_learned(self._model) or 0.0)
        records = np.column_stack([labels, members, results])
        good = np.isfinite(results)
        self._pending.put_keys(np.ascontiguousarray(keys[good]), records[good])

    # -- learning ---------------------------------------------------------------------------------

    def _learn(self, batch: LabelledRows) -> None:
        rows, y, w, found, regions, delayed = batch
        own, inputs = np.empty(len(y)), self._inputs_of(rows, len(y))
        inputs, units, sizes = self._in_units(inputs, y)
        before = rows_learned(self._model) or 0.0
        known, pending = self._state, self._pending
        keys = rows.ids if delayed else None
        records, taken = np.full((len(y), RECORD), np.nan), np.zeros(1, np.uint8)
        results, has_time = np.empty(len(y)), self._rule is not None

        def finish() -> None:
            if keys is not None and pending.count:
                pending.take_into(keys, before, records, taken)
            issued = ~np.isnan(records[:, 0])
            delays = np.where(issued, before + np.arange(len(y)) - records[:, 0], 0.0)
            members = np.empty((len(y), len(MEMBERS)))
            members[issued] = _inside(records[:, 1:-1].T, units).T[issued]
            results[issued] = _inside(records[:, -1], units)[issued]
            kinds = issued.astype(np.uint8)
            learned = known.copy()  # as an interruption may be followed by another turn
            given = has_time, inputs, _inside(own, units)
            weights, fading = (w, None) if units is None else (w * units[2], units[3])
            own_y = _inside(y, units)
            _forecasts.learn(
                learned, *given, members, results, own_y, weights, delays, kinds, fading
            )
            if sizes is not None:
                learned[-len(sizes) :] = sizes
            found[:] = np.where(issued, records[:, -1], _outside(results, units))
            self._state = learned

        def learn() -> None:
            rows.learn_into(self._model, y, w, own, regions, delayed=delayed)

        self._both(learn, finish, lambda: self._state is known)

    # -- looking inside ---------------------------------------------------------------------------

    def _own_bytes(self) -> int:
        return int(self._state.nbytes) + self._pending.nbytes

    def __repr__(self) -> str:
        return f"<NaiveStack({self._model!r}, {self._seasonal!r}, {self._last!r})>"

    # -- files ------------------------------------------------------------------------------------

    def _own_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header = {
            "seasonal": [self._linear[place] for place in self._seasons] or self._seasonal,
            "last": self._last,
            "linear": list(self._linear),
            "time": self._time,
            "day_off": self._day_off,
            **({"timezone": self._calendar.timezone} if self._calendar else {}),
            **({} if self._level is None else {"level": self._linear[self._level]}),
        }
        return header, {STATE: self._state.copy(), **pending_arrays(self._pending)}

    @classmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        header, arrays = state
        names = {"seasonal", "last", *(() if format <= OLD_FORMAT else NEWER)}
        optional = {"timezone", "level"} if format > OLD_FORMAT else set()
        pending = PENDING if format > 1 else (OLDER_PENDING,)
        check_entries(state, names | (header.keys() & optional), {STATE, *pending})
        if not isinstance(header.get("linear", []), list):
            raise ValueError("the features of its linear forecasts are no list")
        made = cls(models[0], **header)
        if format > OLD_FORMAT:
            made._state = _checked(arrays[STATE], made._state.shape)
            restore_pending(made._pending, arrays, rows_learned(made._model) or 0.0)
        return made


def _inside(values: FloatArray, units: FloatArray | None) -> FloatArray:
    """Return values in the units of their series."""
    return values if units is None else (values - units[0]) / units[1]


def _outside(values: FloatArray, units: FloatArray | None) -> FloatArray:
    """Return values in units of their series as such."""
    return values if units is None else values * units[1] + units[0]


NEWER = ("linear", "time", "day_off")


def _checked(state: NDArray[Any], shape: tuple[int, ...]) -> FloatArray:
    """Return the state of simple forecasts, if it can be one."""
    state = checked_numbers(state, shape, "the sums of errors")
    shares = state[_forecasts.FIRST_SHARE :][: len(MEMBERS)]
    is_whole = (shares >= 0).all() and (abs(shares.sum() - 1.0) < 1e-6 or not shares.any())
    if not ((state[:3] >= 0).all() and is_whole):
        raise ValueError("the sums of errors cannot be")
    return state


def _column(X: Any, name: Label) -> Any:
    """Return a column of rows, None if there is none."""
    if is_rows(X):
        return [x.get(name) for x in X]
    return X.get(name) if isinstance(X, Mapping) else None
