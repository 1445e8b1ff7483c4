"""Lags in front of a model: together they are one that reads rows as they come."""

import copy
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector._pending import key_of_row
from sapwood.corrector.tokens import (
    EMPTY,
    RowToken,
    RowTokens,
    is_id,
    key_of,
    keys_of,
    tokens_of_rows,
)
from sapwood.deprecation import deprecated
from sapwood.lags.forecasting import Path, lost_lags, recursive_path
from sapwood.lags.lags import LaggedRows, Lags, Ticket
from sapwood.model import Model, State, from_bytes, is_all_or_nothing
from sapwood.rows import frames, targets
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.rows.encoder import is_rows
from sapwood.stages.order import check_order
from sapwood.stages.protocol import EncodedBatch, Prediction
from sapwood.stages.stage import offered, passed_on, rows_learned
from sapwood.stages.surface import TransparentStage
from sapwood.streams.memory import columns_of
from sapwood.validation import Label

__all__ = ["LaggedModel"]

INNER = "model"
PAST = "past."
PENDING = "pending"
MOST_PENDING = 100_000  # rows with ids that wait for their labels; the oldest go first

Pending = tuple[list[float | None], Ticket]
"""The lags of a row that waits for its label, and what it is found by in its series."""


class LaggedModel(TransparentStage):
    """A model whose rows get their lags, which are remembered and saved along with it.

    Parameters
    ----------
    model : object
        A model of Sapwood, such as `sapwood.HoeffdingTreeRegressor`. Other ones can be evaluated,
        but not saved.
    lags : Lags
        What is known of earlier rows.

    Notes
    -----
    A row that is predicted with an id becomes past at once, and is learned with the lags that it
    was predicted with, when `learn_one` brings its label under the same id: as in a stream whose
    labels are delayed. If the row has other values by then, these are learned. Without ids, a row
    becomes past when it is learned; its label finds the prediction by the row as it was given,
    whatever its lags have become.

    Every method that takes rows gives them their lags first. `.model` is the model inside, which
    takes rows that have them.

    Examples
    --------
    >>> import sapwood
    >>> from sapwood.lags import LaggedModel, Lags
    >>> model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 24], target="sold"))
    >>> for hour in range(500):
    ...     model.learn_one({"hour": hour % 24}, 100.0 + 10 * (hour % 24))
    >>> round(model.predict_one({"hour": 500 % 24}))
    300
    >>> list(model.feature_importances)
    ['hour', 'sold.lag1', 'sold.lag24']
    """

    kind = "LaggedModel"
    format = 5

    def __init__(self, model: Any, lags: Lags) -> None:
        if not isinstance(lags, Lags):
            raise ValueError(f"lags = {validation.shown(lags)}: those of sapwood.lags are expected")
        check_order(self.kind, model)
        known = list(model.targets) if getattr(model, "several_targets", False) else []
        if known and (isinstance(lags.target, str) or set(known) != set(lags.target)):
            told = ", ".join(map(validation.shown, known))
            raise ValueError(f"the targets of the model are {told}: name them in lags, as target=")
        super().__init__()
        self._set_model(model)
        self._lags = lags
        self._pending: dict[int, Pending] = {}

    def _set_model(self, model: Any) -> None:
        self._model = model
        self._is_ours = hasattr(type(model), "_place_one")  # else it keeps no predictions
        self._has_rows = False  # whether the model is known to have learned any

    @property
    def model(self) -> Any:
        """The model inside, whose rows have their lags."""
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        check_order(self.kind, model)
        with self._turn():
            self._set_model(model)

    @property
    def lags(self) -> Lags:
        """What is known of earlier rows."""
        return self._lags

    @property
    def several_targets(self) -> bool:
        """Whether lags are of several targets, which the model can learn."""
        return not isinstance(self.lags.target, str) and getattr(
            self.model, "several_targets", False
        )

    @property
    def all_or_nothing(self) -> bool:  # type: ignore[override]
        """Whether rows that are rejected have changed nothing, as the model promises."""
        return is_all_or_nothing(self.model)

    # -- one row ----------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row, and let it become past.

        Parameters
        ----------
        x, y, w
            As for the model itself.
        id : str, int, or tuple of such, optional
            The id by which the row was predicted: then it is past already, and learned with the
            lags that it had.
        """
        self._learn_row(x, y, w, 0 if id is None else key_of(id))

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn one row; given the key of its id, that of the row itself, or 0."""
        x = self._encoded_one(x)
        turn, lags, model = self._turns, self._lags, self._model
        with turn:
            if type(lags.target) is tuple:
                y = targets.named(lags.target, lags._labels_one(y))
            if key in self._pending:
                self._learn_pending_one(x, y, w, key)
                return
            row, plan = lags.plan_one(x, y)
            rows = rows_learned(model)
            # As `_both` does, without its cost.
            turn.unfinished = plan.push, lambda: rows_learned(model) != rows and plan.is_due
            try:
                self._let_learn(row, y, w, key or key_of_row(x) or EMPTY)
            except Exception:
                turn.settle()
                raise
            plan.push()
            turn.unfinished = None

    def _learn_pending_one(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn a row that is past already."""
        known, ticket = self._pending[key]
        row, values = self.lags.plan_again(x, known, ticket)
        self.lags._labels_one(y)  # which raises if it is no label

        def label() -> None:
            self.lags.amend(ticket, values)
            self.lags.label(ticket, y)
            self._pending.pop(key, None)

        self._both(lambda: self._let_learn(row, y, w, key), label, lambda: True)

    def _let_learn(self, row: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Let the model inside learn a row that has its lags."""
        if self._is_ours:
            self._model._learn_row(row, y, w, key)
        else:
            self._model.learn_one(row, y, *(() if w == 1.0 else (w,)))

    def _token(self, x: Any) -> int:
        """Return by what a row without an id is known; 0 before anything was learned.

        Until then models count predictions, and keep none.
        """
        if not self._has_rows:
            if not rows_learned(self._model):
                return 0
            self._has_rows = True
        return key_of_row(x) or EMPTY

    def _ask(
        self, x: Any, key: int, record: bool, ask: Callable[[dict[Any, Any], int], Any]
    ) -> Any:
        """Return what the model inside predicts for the next row, which has its lags.

        With an id the row becomes past, and waits, unless nothing is to be recorded.
        """
        x = self._encoded_one(x)
        lags = self._lags
        with self._turns:
            if not is_id(key):
                return ask(lags.next_row(x), key or self._token(x))
            if key in self._pending:
                known, ticket = self._pending[key]
                row, values = lags.plan_again(x, known, ticket)
                found = ask(row, key)
                if record:
                    lags.amend(ticket, values)
                return found
            row, plan = lags.plan_one(x)
            found = ask(row, key)
            if record:
                known = [row[name] for name in lags.features]
                ticket = Ticket(plan.key, plan.number)

                def arrive() -> None:
                    self._pending[key] = known, ticket
                    if plan.is_due:
                        plan.push()

                self._surely(arrive, lambda: True)
                while len(self._pending) > MOST_PENDING:
                    del self._pending[next(iter(self._pending))]
            return found

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> Any:
        """Predict the next row, with its region; given a key as for `_learn_row`."""
        if is_id(key):
            return self._ask(x, key, record, lambda row, own: self._placed(row, own, record))
        x = self._encoded_one(x)
        with self._turns:
            if not record:
                key = 0
            elif not key or not self._has_rows:
                key = self._token(x)
            return self._placed(self._lags.next_row(x), key, record)

    def _placed(self, row: dict[Any, Any], key: int, record: bool) -> Any:
        """Return the prediction and the region of a row that has its lags."""
        if self._is_ours:
            return self._model._place_one(row, key, record)
        return self._model.predict_one(row), -1

    def _ask_one(self, method: str, x: Any, *arguments: Any, id: Any = None) -> Any:
        """Call a method of the model inside with a row that has its lags."""

        def ask(row: dict[Any, Any], key: int) -> Any:
            return getattr(self._model, method)(row, *arguments, id=RowToken(key) if key else None)

        return self._ask(x, 0 if id is None else key_of(id), True, ask)

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        """Predict the next row; nothing is changed, unless it has an id.

        Parameters
        ----------
        x : dict
            The features, without lags.
        id : str, int, or tuple of such, optional
            By which `learn_one` will bring the label. The row becomes past at once.
        record : bool
            Whether the prediction is kept until its label comes. If not, nothing is changed.
        """
        found, _ = self._place_one(x, 0 if id is None else key_of(id), record)
        return found if isinstance(found, Mapping) else float(found)

    @offered
    def explain(self, x: Mapping[Any, Any], *arguments: Any, **own: Any) -> Any:
        """Return how the prediction for the next row comes about."""
        with self._turn():
            row = self.lags.transform_one(self._encoded_one(x))
            return self.model.explain(row, *arguments, **own)

    @offered
    def predict_region_one(self, x: dict[Any, Any], record: bool = True, *, id: Any = None) -> Any:
        """Predict the next row, with its region."""
        return self._place_one(x, 0 if id is None else key_of(id), record)

    @offered
    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9, *, id: Any = None) -> Any:
        """Predict the next row, with its prediction interval."""
        return self._ask_one("predict_interval_one", x, level, id=id)

    @offered
    def predict_intervals_one(self, x: dict[Any, Any], *, id: Any = None) -> Any:
        """Predict the next row, with the intervals of all levels."""
        return self._ask_one("predict_intervals_one", x, id=id)

    @offered
    def predict_quantile_one(self, x: dict[Any, Any], q: float, *, id: Any = None) -> Any:
        """Return a quantile of y for the next row."""
        return self._ask_one("predict_quantile_one", x, q, id=id)

    @offered
    def tell_one(self, x: dict[Any, Any]) -> Any:
        """Predict the next row: deprecated, use ``predict_one(x, record=False)``."""
        deprecated("tell_one(x)", "predict_one(x, record=False)")
        return self.predict_one(x, record=False)

    # -- many rows --------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None) -> None:
        """Learn rows, and let them become past: the same as `learn_one` in a loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        ids : sequence, optional
            The id of each row, as for `learn_one`. If rows of these wait for their labels, all are
            learned one by one.
        """
        self._learn("learn_many", X, y, w, ids)

    def predict_many(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Predict the next rows, whose targets are not known; nothing is changed without ids.

        Parameters
        ----------
        X : mapping of columns, list of dicts, data frame, or array
            The features, without lags. A lag of 24 is known for the first 24 rows of each series,
            and missing from the 25th on, which is warned of; `forecast` lets predictions take the
            place of targets that are not known.
        ids : sequence, optional
            The id of each row, as for `predict_one`.
        record : bool
            As for `predict_one`.
        """
        if ids is None:
            own = {} if record else {"record": False}
            return _in_kind(X, self._ask_many("predict_many", X, **own))
        return _in_kind(X, self._named(self._place_each(X, keys_of(ids), record)[0]))

    def forecast(self, X: Any) -> Any:
        """Predict rows that follow each other, each with the predictions before it as its lags.

        Nothing is changed: neither the model, nor what is remembered of earlier rows.

        Parameters
        ----------
        X : mapping of columns, list of dicts, data frame, or array
            The features, without lags, in the order of time.

        Returns
        -------
        array, mapping or series
            The predictions, as `predict_many` returns them.

        Examples
        --------
        >>> import sapwood
        >>> from sapwood.lags import LaggedModel, Lags
        >>> model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(2))
        >>> for hour in range(500):
        ...     model.learn_one({}, 10.0 + 5 * (hour % 2))
        >>> model.forecast([{}] * 5).round()
        array([10., 15., 10., 15., 10.])
        """
        return _in_kind(X, self._named(self.forecast_path(X).predictions))

    def forecast_path(self, X: Any, intervals: bool = False) -> Path:
        """Return what `forecast` does, with prediction intervals and which rows are recursive.

        Parameters
        ----------
        X : mapping of columns, list of dicts, data frame, or array
            As for `forecast`.
        intervals : bool
            Whether to add the prediction intervals of the model inside, an `IntervalRegressor`.
            They hold for rows whose labels are as late as they were in training; for rows further
            ahead, they are too narrow.

        Returns
        -------
        Path
            Predictions, bounds, and for each row whether it depends on predictions before it.
        """
        rows = _rows_of(self._encoded(X))
        with self._turn():
            return recursive_path(self._model, self._lags, rows, intervals)

    def _place_each(self, X: Any, keys: Any, record: bool) -> tuple[Any, Any]:
        """Return the predictions and regions of rows with ids, which become past one by one."""
        found = [
            self._place_one(x, key, record)
            for x, key in zip(_rows_of(self._encoded(X)), keys.tolist(), strict=True)
        ]
        values = [[*each.values()] if isinstance(each, Mapping) else each for each, _ in found]
        regions = [-1 if region is None else region for _, region in found]
        return np.array(values, np.float64), np.array(regions, np.int32)

    def _named(self, predictions: NDArray[Any]) -> Any:
        """Return predictions of several targets by their names."""
        if predictions.ndim == 1:
            return predictions
        return dict(zip(self.model.targets, predictions.T, strict=True))

    def _ask_many(self, method: str, X: Any, *arguments: Any, **own: Any) -> Any:
        """Call a method of the model inside with rows that have their lags."""
        X = self._encoded(X)
        with self._turn():
            plan = self.lags.plan(X)
            lost = lost_lags(plan, self.lags)
            if lost is not None:
                warnings.warn(f"{lost}: use forecast, or predict fewer rows", stacklevel=4)
            if own.get("record", True) and self._is_ours and self._token({}):
                own["ids"] = RowTokens(self._tokens(X, plan))
            return getattr(self.model, method)(plan.in_kind, *arguments, **own)

    def _tokens(self, X: Any, plan: LaggedRows) -> Any:
        return tokens_of_rows(X, plan.given, len(plan.rows))

    def predict_learn_many(
        self, X: Any, y: Any, w: ArrayLike | None = None, *, delayed: bool = False, ids: Any = None
    ) -> Any:
        """Predict each row before it is learned, and let it become past.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        delayed : bool
            Whether the rows were predicted before: then the model is scored by these predictions.
        ids : sequence, optional
            The id of each row, as for `learn_many`.
        """
        own = {"delayed": True} if delayed else {}
        return _in_kind(X, self._learn("predict_learn_many", X, y, w, ids, **own))

    @offered
    def predict_regions(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Predict the next rows, with their regions."""
        return self._place_many(X, None if ids is None else keys_of(ids), record)

    @offered
    def predict_intervals_many(self, X: Any, *, ids: Any = None) -> Any:
        """Predict the next rows, with the intervals of all levels."""
        if ids is None:
            return self._ask_many("predict_intervals_many", X)
        rows = zip(_rows_of(self._encoded(X)), keys_of(ids).tolist(), strict=True)
        found = [self.predict_intervals_one(x, id=RowToken(key)) for x, key in rows]
        return tuple(np.array([_plain(each) for each in part]) for part in zip(*found, strict=True))

    @offered
    def predict_interval_many(self, X: Any, level: float = 0.9) -> Any:
        """Return the prediction intervals of the next rows."""
        found = self._ask_many("predict_interval_many", X, level)
        if isinstance(found, Mapping) or found.ndim == 3:
            return found
        return frames.frame_like(X, {"lower": found[:, 0], "upper": found[:, 1]}, found)

    @offered
    def predict_learn_regions(
        self, X: Any, y: Any, w: ArrayLike | None = None, asked: bool = True, *, ids: Any = None
    ) -> Any:
        """Predict each row before it is learned, with its region."""
        return self._learn("predict_learn_regions", X, y, w, ids, asked=asked)

    @offered
    def predict_learn_intervals(
        self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None
    ) -> Any:
        """Predict each row before it is learned, with the intervals of all levels."""
        return self._learn("predict_learn_intervals", X, y, w, ids)

    @offered
    def learn_telling(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Learn rows: deprecated, use ``predict_learn_many(X, y, w, delayed=True)``."""
        deprecated("learn_telling(X, y, w)", "predict_learn_many(X, y, w, delayed=True)")
        return self._learn("predict_learn_many", X, y, w, None, delayed=True)

    def _learn(self, method: str, X: Any, y: Any, w: ArrayLike | None, ids: Any, **own: Any) -> Any:
        """Let the model learn rows by a method of its own, and return what that returns."""
        keys = None if ids is None else keys_of(ids)
        with self._turn():
            if self._are_pending(keys):
                return self._learn_pending(method, X, y, w, keys)
            more = () if w is None else (w,)

            def learn(features: Any, y: Any, keys: Any) -> Any:
                if self._is_ours:
                    own["ids"] = RowTokens(keys)
                return getattr(self.model, method)(features, y, *more, **own)

            return self._learn_rows(learn, X, y, keys)

    def _learn_rows(self, learn: Callable[[Any, Any, Any], Any], X: Any, y: Any, keys: Any) -> Any:
        """Let the model learn rows that are not past yet, by their keys or else by their tokens."""
        with self._turn():
            if not isinstance(self.lags.target, str):
                y = targets.Targets(self.lags.target, self.lags._labels(y))
            X = self._encoded(X)
            plan = self.lags.plan(X, y)
            own = self._tokens(X, plan) if keys is None else keys
            return self._both(lambda: learn(plan.in_kind, y, own), plan.push, lambda: plan.is_due)

    def _are_pending(self, keys: Any) -> bool:
        """Whether any of some keys is that of a row that waits for its label."""
        return keys is not None and not self._pending.keys().isdisjoint(keys.tolist())

    def _learn_pending(self, method: str, X: Any, y: Any, w: Any, keys: Any) -> Any:
        """Learn rows of which some are past already; return what a method of the model would."""
        if method == "predict_learn_intervals":
            raise ValueError(
                "some of the rows wait for their labels: learn them by learn_many, as their "
                "intervals were returned when they were predicted"
            )
        read = targets.read(y)
        predictions, regions = np.empty(read.values.shape), np.empty(len(read.values), np.int32)
        self._learn_each(X, read, w, (predictions, regions), keys)
        if method == "predict_learn_regions":
            return predictions, regions
        return self._named(predictions)

    def _learn_each(
        self, X: Any, y: targets.Targets, w: Any, before: tuple[Any, Any] | None, keys: Any
    ) -> None:
        """Learn rows one by one; arrays get the predictions and regions of just before each."""
        weights = validation.weights(w, len(y.values)).tolist()
        rows = _rows_of(self._encoded(X))
        if len(rows) != len(weights) or len(keys) != len(weights):
            raise ValueError(
                f"X has {len(rows)} rows, y {len(weights)} values and there are {len(keys)} ids: "
                "the lengths must agree"
            )
        with self._turn():
            for place, (x, key) in enumerate(zip(rows, keys.tolist(), strict=True)):
                if before is not None:
                    found, region = self._place_one(x, key, False)
                    before[0][place] = _plain(found)
                    if before[1] is not None:
                        before[1][place] = region
                label = y.values[place].tolist()
                if y.names:
                    label = dict(zip(y.names, label, strict=True))
                self._learn_row(x, label, weights[place], key)

    # -- as a stage -------------------------------------------------------------------------------

    def predict(self, batch: EncodedBatch) -> Prediction:
        """Predict the rows of a batch; those with ids become past. See `sapwood.stages`."""
        values, regions = self._place_many(batch.columns, batch.token)
        return Prediction(values, batch.token, regions)

    def learn(self, batch: EncodedBatch, y: Any, w: ArrayLike | None = None) -> None:
        """Learn the labels of a batch, found by its token."""
        self._learn("learn_many", batch.columns, y, w, RowTokens(batch.token))

    # -- for stages around it ---------------------------------------------------------------------

    def _place_many(self, X: Any, keys: Any = None, record: bool = True) -> Any:
        """Predict the next rows, with their regions, None if the model has none."""
        if keys is not None and len(keys) and is_id(int(keys[0])):
            values, regions = self._place_each(X, keys, record)
            return values, None if (regions < 0).any() else regions
        X = self._encoded(X)
        with self._turn():
            plan = self.lags.plan(X)
            own = self._tokens(X, plan) if keys is None else keys
            if not self._is_ours:
                return np.asarray(self.model.predict_many(plan.in_kind), np.float64), None
            return self.model._place_many(plan.in_kind, own if self._token({}) else None, record)

    def _learn_into(
        self,
        X: Any,
        y: Any,
        w: Any,
        predictions: Any,
        regions: Any = None,
        *,
        keys: Any = None,
        delayed: bool = True,
    ) -> None:
        with self._turn():
            if self._are_pending(keys):
                self._learn_each(X, targets.read(y), w, (predictions, regions), keys)
                return

            def learn(features: Any, y: Any, keys: Any) -> None:
                self.model._learn_into(
                    features, y, w, predictions, regions, keys=keys, delayed=delayed
                )

            self._learn_rows(learn, X, y, keys)

    # -- looking inside ---------------------------------------------------------------------------

    parameters = passed_on("The arguments that make an empty model like the one inside.")
    n_leaves = passed_on("How many leaves the model has.")
    region_tree = passed_on("The tree whose leaves are the regions of intervals.")
    levels = passed_on("The levels of the prediction intervals.")
    widths = passed_on("How wide intervals are in each region.")
    targets = passed_on("The names of several targets, in their order.")

    def merge(self, other: Any, *more: Any) -> NoReturn:
        """Raise ValueError: the pasts of two streams are not one past."""
        raise ValueError(
            "models with lags cannot be merged: each has its own past; merge the models inside, "
            "and put the lags of one of them around the result"
        )

    def of_target(self, target: Label) -> NoReturn:
        """Raise ValueError: one target alone would not know the lags of others.

        Parameters
        ----------
        target : str or int
            Its name.
        """
        raise ValueError(
            f"target = {validation.shown(target)}: a model with lags has no model of one target, which "
            "would not know those of others; .model.of_target reads rows that have their lags"
        )

    @property
    def features(self) -> list[Label]:
        """The features of rows as they come, without lags."""
        return [name for name in self.model.features if name not in self.lags.features]

    @property
    def feature_kinds(self) -> dict[Label, str]:
        """What each feature of rows as they come is."""
        kinds = self.model.feature_kinds
        return {name: kinds[name] for name in self.features}

    @property
    def nbytes(self) -> int:
        """Bytes of the model, and of what is remembered of earlier rows."""
        with self._turn():
            return int(self.model.nbytes) + self.lags.nbytes

    def __repr__(self) -> str:
        return f"<LaggedModel({self.model!r}, {self.lags!r})>"

    # -- files ------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        with self._turn():  # the state holds arrays of the lags themselves
            return super().to_bytes()

    def copy(self) -> Self:
        """Return an independent copy; the model inside is copied in its own way."""
        with self._turn():
            made = type(self)(copy.deepcopy(self.model), self.lags.copy())
            made._pending, made._schema = dict(self._pending), self._schema
            return made

    def to_state(self) -> State:
        """Return all that the model is, and what it remembers."""
        with self._turn():
            header, arrays = self.lags.to_state()
            own: dict[str, NDArray[Any]] = {f"{PAST}{name}": each for name, each in arrays.items()}
            own[INNER] = np.frombuffer(self.model.to_bytes(), np.uint8)
            waiting = [
                [key, known, list(ticket.key), ticket.number]
                for key, (known, ticket) in self._pending.items()
            ]
            own[PENDING] = np.frombuffer(json.dumps(waiting).encode(), np.uint8)
            return State({"lags": header}, own)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = state
        wanted = {INNER} if format < 3 else {INNER, PENDING}
        if header.keys() != {"lags"} or not wanted <= arrays.keys():
            raise ValueError("its header has other entries than it should")
        if not isinstance(header["lags"], dict):
            raise ValueError("its lags are no dict")
        past = {
            name.removeprefix(PAST): each for name, each in arrays.items() if name not in wanted
        }
        if {*wanted, *(f"{PAST}{name}" for name in past)} != arrays.keys():
            raise ValueError("its arrays are not those of a model and of its past")
        lags = Lags.from_state(header["lags"], past)
        inner = from_bytes(arrays[INNER].tobytes(), "the model with lags")
        if not isinstance(inner, Model):
            raise ValueError(f"it has lags around a {type(inner).__name__}, which does not learn")
        made = cls(inner, lags)
        if PENDING in wanted:
            made._pending = _restored(arrays[PENDING], lags.features, format)
        return made


def _restored(array: NDArray[Any], names: list[Label], format: int) -> dict[int, Pending]:
    """Return the rows that wait for their labels, if they can be such."""
    saved = json.loads(array.tobytes())
    if not isinstance(saved, list) or len(saved) > MOST_PENDING:
        raise ValueError("the rows that wait for labels are not as they were saved")
    pending: dict[int, Pending] = {}
    for entry in saved:
        if not isinstance(entry, list) or len(entry) != 4:
            raise ValueError("a row that waits for its label is not as it was saved")
        key, known, series, number = entry
        if format < 4:  # whole rows, as pairs of names and values
            given = dict(map(tuple, known))
            known = [given.get(name) for name in names]
        if not isinstance(known, list) or len(known) != len(names):
            raise ValueError("a row that waits for its label has not all of its lags")
        if not all(lag is None or type(lag) is float for lag in known):
            raise ValueError("a row that waits for its label has a lag that is no number")
        if not all(lag is None or -np.inf < lag < np.inf for lag in known):
            raise ValueError("a row that waits for its label has a lag that is not finite")
        if type(key) is not int or not is_id(key) or key >= 2**64 or not isinstance(series, list):
            raise ValueError("a row that waits for its label is not as it was saved")
        if not all(isinstance(part, str | int | float | bool | None) for part in series):
            raise ValueError("the series of a row that waits cannot be")
        ticket = Ticket(tuple(series), validation.whole(number, "the number of a row", 0, 2**53))
        pending[key] = known, ticket
    return pending


def _rows_of(X: Any) -> list[Any]:
    """Return rows as dicts; those that are dicts already stay as they are."""
    if is_rows(X):
        return list(X)
    columns = columns_of(X)
    lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values()]
    return [_marked(X, dict(zip(columns, row, strict=True))) for row in zip(*lists, strict=True)]


def _marked(X: Any, row: dict[Any, Any]) -> dict[Any, Any]:
    """Return a row of columns, as an encoded one if these are encoded."""
    return EncodedRow(row) if isinstance(X, EncodedColumns) else row


def _plain(found: Any) -> Any:
    """Return what was found for a row; of several targets, as a list."""
    return [*found.values()] if isinstance(found, Mapping) else found


def _in_kind(X: Any, predictions: Any) -> Any:
    """Return predictions for columns as users of X expect them."""
    if not isinstance(predictions, Mapping):
        return frames.like(X, np.asarray(predictions))
    return targets.in_kind(X, np.column_stack([*predictions.values()]), tuple(predictions))
