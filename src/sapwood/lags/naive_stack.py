"""A model stacked with naive forecasts: the value a season earlier, and the last known value."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector._pending import Notes
from sapwood.corrector.pending_state import PENDING, pending_arrays, restore_pending
from sapwood.hybrid import _stack
from sapwood.model import State, from_bytes
from sapwood.row_methods import array_for
from sapwood.rows import frames
from sapwood.rows.encoder import is_rows
from sapwood.stages.one_target import OneTargetStage, checked_model, labels_of
from sapwood.stages.stage import rows_learned
from sapwood.validation import Label

__all__ = ["NaiveStack"]

FloatArray = NDArray[np.float64]
KeyArray = NDArray[np.uint64]
INNER, STATE, OLDER_PENDING = "model", "state", "pending"
MOST_PENDING = 2**17  # predictions that wait for their labels; the oldest go first
RECORD = 1 + _stack.MEMBERS + _stack.RESULTS
START = (-0.8, -0.8)
"""Where both stages begin: nine tenths of the season, and a tenth of the last known value."""


class NaiveStack(OneTargetStage):
    """A model of rows with lags, combined with two of these lags as forecasts of their own.

    The weights follow the errors of issued predictions, by the same combination as in
    `sapwood.HybridRegressor`. The prediction lies between the smallest and the largest of the
    three. Where the seasonal lag is missing, it is that of the model.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target.
    seasonal : str
        The feature with the value a season earlier, such as "y.lag168h".
    last : str, optional
        The feature with the last known value, such as "y.lag24h".

    Examples
    --------
    >>> import sapwood
    >>> from sapwood.lags import LaggedModel, Lags, NaiveStack
    >>> stack = NaiveStack(sapwood.ForestRegressor(members=3), "y.lag24", "y.lag1")
    >>> model = LaggedModel(stack, Lags([1, 24]))
    >>> for hour in range(200):
    ...     model.learn_one({"x": 0.0}, float(hour % 24))
    >>> round(model.predict_one({"x": 0.0}), 1)
    8.0
    """

    kind: ClassVar[str] = "NaiveStack"
    format: ClassVar[int] = 2

    def __init__(self, model: Any, seasonal: Label, last: Label | None = None) -> None:
        super().__init__()
        self._model = checked_model(model, "the stack")
        self._seasonal = validation.feature_name(seasonal)
        self._last = None if last is None else validation.feature_name(last)
        self._state = np.zeros((1, _stack.STATE))
        for stage, start in enumerate(START):
            self._state[0, stage * _stack.STAGE_NUMBERS + _stack.FIRST_START] = start
        self._pending = Notes(RECORD, MOST_PENDING)

    @property
    def model(self) -> Any:
        """The model inside."""
        return self._model

    @property
    def weights(self) -> dict[str, float]:
        """The shares of the model, of the season and of the last known value in predictions."""
        found = np.empty((1, 2))
        with self._turn():
            _stack.positions(self._state, found)
        first, second = (found[0] + 1) / 2
        named = {"model": first, "seasonal": 1 - first}
        shares = {name: float(share * (1 - second)) for name, share in named.items()}
        return {**shares, "last": float(second)}

    # -- predictions ------------------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        x = self._encoded_one(x)
        with self._turn():
            found, region = self._model._place_one(x, key, record)
            members = self._members([x], np.array([found]))
            results = self._combined(members)
            if record and key:
                self._keep(np.array([key], np.uint64), members, results)
            return float(results[0, 1]), region

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, NDArray[np.int32] | None]:
        X = frames.lasting(self._encoded(X))
        with self._turn():
            found, regions = self._model._place_many(X, keys, record)
            members = self._members(X, np.asarray(found, np.float64))
            results = self._combined(members)
            if record and keys is not None:
                self._keep(keys, members, results)
            return results[:, 1].copy(), regions

    def _members(self, X: Any, own: FloatArray) -> FloatArray:
        """Return what the model, the last known value and the season predict for rows."""
        members = np.full((len(own), _stack.MEMBERS), np.nan)
        members[:, 0] = own
        for place, name in ((1, self._last), (2, self._seasonal)):
            if name is not None:
                members[:, place] = _values(X, name, len(own))
        return members

    def _combined(self, members: FloatArray) -> FloatArray:
        results = np.empty((len(members), _stack.RESULTS))
        _stack.predict(self._state, members, results)
        return results

    def _keep(self, keys: KeyArray, members: FloatArray, results: FloatArray) -> None:
        labels = np.full(len(keys), rows_learned(self._model) or 0.0)
        records = np.column_stack([labels, members, results])
        good = np.isfinite(results).all(axis=1)
        self._pending.leave_keys(np.ascontiguousarray(keys[good]), records[good])

    # -- learning ---------------------------------------------------------------------------------

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        label, weight = validation.number(y, "y"), validation.number(w, "w")
        x = self._encoded_one(x)
        with self._turn():
            own = np.array([self._model._place_one(x, key, False)[0]])
            self._learn_all(
                lambda: self._model._learn_row(x, label, weight, key),
                *([x], own, (np.array([label]), np.array([weight]))),
                np.array([key], np.uint64) if key else None,
                found=np.empty(1),
            )

    def _learn_many(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None,
        keys: Any,
        *,
        delayed: bool,
        predicting: bool | FloatArray = True,
        regions: Any = None,
    ) -> FloatArray:
        X = frames.lasting(self._encoded(X))
        labels = labels_of(y, "naive forecasts are stacked for one alone")
        weights = np.ascontiguousarray(validation.weights(w, len(labels)))
        before = np.empty(len(labels))
        with self._turn():
            return self._learn_all(
                lambda: self._model._learn_into(
                    X, labels, weights, before, regions, keys=keys, delayed=delayed
                ),
                *(X, before, (labels, weights)),
                keys if delayed else None,
                found=array_for(predicting, labels.shape),
            )

    def _learn_all(
        self,
        learn: Any,
        X: Any,
        own: FloatArray,
        labels: tuple[FloatArray, FloatArray],
        keys: KeyArray | None,
        *,
        found: FloatArray,
    ) -> FloatArray:
        """Let the model learn, and the weights after it: both, or neither.

        `own`, the predictions of the model, may be filled by `learn`. Rows without keys were not
        predicted before. `found` gets the predictions of the stack.
        """
        y, w = labels
        rows = rows_learned(self._model) or 0.0
        known, pending = self._state, self._pending
        records, taken = np.full((len(y), RECORD), np.nan), np.zeros(1, np.uint8)
        results = np.empty((len(y), _stack.RESULTS))

        def finish() -> None:
            if keys is not None and pending.count:
                _stack.take(pending, keys, rows, records, taken)
            issued = ~np.isnan(records[:, 0])
            delays = np.where(issued, rows + np.arange(len(y)) - records[:, 0], 0.0)
            members = self._members(X, own)
            members[issued] = records[issued, 1 : 1 + _stack.MEMBERS]
            results[issued] = records[issued, 1 + _stack.MEMBERS :]
            state, kinds = known.copy(), issued.astype(np.uint8)
            _stack.learn(state, members, results, y[:, np.newaxis], w, delays, kinds)
            found[:] = results[:, 1]
            self._state = state

        self._both(learn, finish, lambda: self._state is known)
        return found

    # -- looking inside ---------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the model inside, of the sums of errors, and of the pending predictions."""
        with self._turn():
            return int(self._model.nbytes) + self._state.nbytes + self._pending.nbytes

    def __repr__(self) -> str:
        return f"<NaiveStack({self._model!r}, {self._seasonal!r}, {self._last!r})>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the model is, the sums of errors, and the pending predictions."""
        with self._turn():
            arrays: dict[str, NDArray[Any]] = {
                INNER: np.frombuffer(self._model.to_bytes(), np.uint8),
                STATE: self._state.copy(),
                **pending_arrays(self._pending),
            }
            return State({"seasonal": self._seasonal, "last": self._last}, arrays)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = state
        expected = {INNER, STATE, *(PENDING if format > 1 else (OLDER_PENDING,))}
        if header.keys() != {"seasonal", "last"} or arrays.keys() != expected:
            raise ValueError("its parts are not those of a stack with naive forecasts")
        made = cls(from_bytes(arrays[INNER].tobytes(), "the stacked model"), **header)
        sums = np.array(arrays[STATE])
        if sums.dtype != np.float64 or sums.shape != made._state.shape:
            raise ValueError("the sums of errors are not as they were saved")
        if not np.isfinite(sums).all():
            raise ValueError("the sums of errors cannot be")
        made._state = sums
        labels = rows_learned(made._model) or 0.0
        if format > 1:
            restore_pending(made._pending, arrays, labels)
        else:
            _restore_older(made._pending, arrays[OLDER_PENDING], labels)
        return made


def _restore_older(pending: Notes, array: NDArray[Any], labels: float) -> None:
    """Restore the pending predictions of format 1: a list of keys and records."""
    saved = json.loads(array.tobytes())
    if not isinstance(saved, list) or len(saved) > MOST_PENDING:
        raise ValueError("the pending predictions are not as they were saved")
    for entry in saved:
        if not isinstance(entry, list) or len(entry) != 1 + RECORD:
            raise ValueError("a pending prediction is not as it was saved")
        key, *record = entry
        if type(key) is not int or not 0 < key < 2**64:
            raise ValueError("a pending prediction has a key that cannot be")
        if not all(value is None or type(value) is float for value in record):
            raise ValueError("a pending prediction has a value that is no number")
        if record[0] is None or not 0 <= record[0] <= labels:
            raise ValueError("a pending prediction is newer than all labels")
        pending.leave_key(key, np.array([np.nan if value is None else value for value in record]))


def _values(X: Any, name: Label, rows: int) -> Any:
    """Return a column of lags, NaN where one is missing."""
    column: Any = None
    if is_rows(X):
        column = [x.get(name) for x in X]
    elif isinstance(X, Mapping):
        column = X.get(name)
    if column is None:
        return np.full(rows, np.nan)
    return np.array(column, np.float64)
