"""Lags in front of a model: together they are one that reads rows as they come."""

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector._pending import key_of_row
from sapwood.corrector.tokens import EMPTY, RowTokens, is_id, tokens_of_rows
from sapwood.lags.forecasting import Path, lost_lags, recursive_path
from sapwood.lags.lags import LaggedRows, Lags, Ticket
from sapwood.lags.pending_rows import (
    MOST_PENDING,
    Pending,
    packed,
    pending_bytes,
    restored,
)
from sapwood.lags.spans import Spans
from sapwood.model import Model, State, from_bytes
from sapwood.row_methods import RowsToLearn, whole_batch
from sapwood.rows import targets
from sapwood.stages.any_model import bytes_of, hooks_of
from sapwood.stages.intervals import OfferedIntervals
from sapwood.stages.order import check_order
from sapwood.stages.rows import plain, rows_of
from sapwood.stages.stage import offered, passed_on, rows_learned
from sapwood.validation import Label

__all__ = ["LaggedModel"]

INNER = "model"
PAST = "past."
PENDING = "pending"
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


class LaggedModel(OfferedIntervals):
    """A model with lag features, which are computed, stored and saved with it.

    Parameters
    ----------
    model : object
        A model of Sapwood, such as `sapwood.HoeffdingTreeRegressor`. Other ones can be evaluated,
        but not saved.
    lags : Lags, or int, str or sequence of such
        The lag features, with the values of earlier rows. ``[1, 24]`` stands for ``Lags([1, 24])``,
        and for a model that has learned several targets, for the lags of each.

    Notes
    -----
    A row that is predicted with an id counts as an earlier row immediately. When `learn_one` gets
    its label with the same id, the row is learned with the lags of the prediction, as in a stream
    with delayed labels. If its other values have changed, the new values are learned. Without ids,
    a row counts as an earlier row when it is learned. Its label finds the prediction by the
    original values of the row, whatever its lags are by then.

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
    _takes_tokens = True
    _cannot_merge = (
        "models with lags cannot be merged: each has its own past; merge the models inside, "
        "and put the lags of one of them around the result"
    )
    _of_target = (
        "a model with lags has no model of one target, which would not know those of others; "
        ".model.of_target reads rows that have their lags"
    )

    def __init__(self, model: Any, lags: Lags | Spans) -> None:
        check_order(self.kind, model)
        known = list(model.targets) if getattr(model, "several_targets", False) else []
        if not isinstance(lags, Lags):
            lags = Lags(lags, target=known or "y")
        if known and (isinstance(lags.target, str) or set(known) != set(lags.target)):
            names = ", ".join(map(validation.shown, known))
            raise ValueError(
                f"the targets of the model are {names}: name them in lags, as target=[{names}]"
            )
        super().__init__()
        self._set_model(model)
        self._lags = lags
        self._pending: dict[int, Pending] = {}

    def _set_model(self, model: Any) -> None:
        self._model, self._inner = model, hooks_of(model)
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
        """The lag features, with the values of earlier rows."""
        return self._lags

    @property
    def several_targets(self) -> bool:
        """Whether lags are of several targets, which the model can learn."""
        return not isinstance(self.lags.target, str) and getattr(
            self.model, "several_targets", False
        )

    # -- one row ----------------------------------------------------------------------------------

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        x = self._encoded_one(x)
        turn, lags, model, inner = self._turns, self._lags, self._model, self._inner
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
                inner._learn_row(row, y, w, key or key_of_row(x) or EMPTY)
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
        self._inner._learn_row(row, y, w, key)

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
        if is_id(key):
            return self._ask(
                x, key, record, lambda row, own: self._inner._place_one(row, own, record)
            )
        x = self._encoded_one(x)
        with self._turns:
            if not record:
                key = 0
            elif not key or not self._has_rows:
                key = self._token(x)
            return self._inner._place_one(self._lags.next_row(x), key, record)

    @offered
    def explain(self, x: Mapping[Any, Any], *arguments: Any, **own: Any) -> Any:
        """Explain the prediction for the next row."""
        with self._turn():
            row = self.lags.transform_one(self._encoded_one(x))
            return self.model.explain(row, *arguments, **own)

    # -- many rows --------------------------------------------------------------------------------

    def _names(self) -> tuple[Label, ...]:
        return tuple(getattr(self.model, "targets", ()))

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        if keys is not None and len(keys) and is_id(int(keys[0])):
            return self._place_each(X, keys, record)
        with self._turn():
            plan, own = self._planned(X, keys)
            found: tuple[FloatArray, IntArray | None]
            found = self._inner._place_many(plan.in_kind, own, record)
            return found

    def _ask_many(self, X: Any, record: bool, ask: Callable[[Any, dict[str, Any]], Any]) -> Any:
        with self._turn():
            plan, own = self._planned(X)
            return ask(plan.in_kind, {} if own is None else {"ids": RowTokens(own)})

    def _planned(self, X: Any, keys: Any = None) -> tuple[LaggedRows, Any]:
        """Return the next rows with their lags, and by which keys their predictions are kept."""
        X = self._encoded(X)
        plan = self.lags.plan(X)
        lost = lost_lags(plan, self.lags)
        if lost is not None:
            remedy = "use forecast, or predict" if hasattr(self, "forecast") else "predict"
            warnings.warn(f"{lost}: {remedy} fewer rows", stacklevel=5)
        if not self._token({}):
            return plan, None
        return plan, self._tokens(X, plan) if keys is None else keys

    def _place_each(self, X: Any, keys: Any, record: bool) -> tuple[FloatArray, IntArray | None]:
        """Predict rows with ids, which become past one by one."""
        found = [
            self._place_one(x, key, record)
            for x, key in zip(rows_of(self._encoded(X)), keys.tolist(), strict=True)
        ]
        values = np.array([plain(each) for each, _ in found], np.float64)
        regions = np.array([region for _, region in found], np.int32)
        return values, None if (regions < 0).any() else regions

    def _tokens(self, X: Any, plan: LaggedRows) -> Any:
        return tokens_of_rows(X, plan.given, len(plan.rows))

    def _learn_many(self, batch: RowsToLearn) -> Any:
        def learn(rows: Any, y: Any, keys: Any) -> Any:
            return self._inner._learn_many(batch._replace(X=rows, y=y, keys=keys))

        with self._turn():
            if self._are_pending(batch.keys):
                return self._learn_each(batch._replace(y=targets.read(batch.y)))
            return self._learn_rows(learn, batch.X, batch.y, batch.keys)

    def _learn_rows(
        self, learn: Callable[[Any, Any, Any], Any], X: Any, y: Any, keys: Any, w: Any = None
    ) -> Any:
        """Let the model learn rows that are not past yet, by their keys or else by their tokens."""
        with self._turn():
            if not isinstance(self.lags.target, str):
                y = targets.Targets(self.lags.target, self.lags._labels(y))
            elif isinstance(y, targets.Targets):  # which were read already
                y = y.values
            X = self._encoded(X)
            plan = self.lags.plan(X, y)
            own = self._tokens(X, plan) if keys is None else keys
            return self._both(lambda: learn(plan.in_kind, y, own), plan.push, lambda: plan.is_due)

    def _are_pending(self, keys: Any) -> bool:
        """Whether any of some keys is that of a row that waits for its label."""
        return keys is not None and not self._pending.keys().isdisjoint(keys.tolist())

    def _learn_each(self, batch: RowsToLearn) -> FloatArray:
        """Learn rows of which some are past already, one by one."""
        X, y, w, keys, _, predicting, regions = batch
        weights = validation.weights(w, len(y.values)).tolist()
        rows = rows_of(self._encoded(X))
        validation.check_labels(len(rows), len(weights))
        validation.check_ids(keys, len(weights))
        before, known = batch.found(y.values.shape), rows_learned(self._model)

        def learn(done: int) -> None:
            for place, x in enumerate(rows[done:], done):
                key = int(keys[place])
                if predicting is not False:
                    found, region = self._place_one(x, key, False)
                    before[place] = plain(found)
                    if regions is not None:
                        regions[place] = region
                label = y.values[place].tolist()
                if y.names:
                    label = dict(zip(y.names, label, strict=True))
                self._learn_row(x, label, weights[place], key)

        def rows_done() -> int:
            with self._turn():  # which finishes the row that was interrupted
                return int((rows_learned(self._model) or 0) - (known or 0))

        whole_batch(learn, rows_done)
        return before

    # -- forecasts --------------------------------------------------------------------------------

    def forecast(self, X: Any) -> Any:
        """Predict rows that follow each other, each with the predictions before it as its lags.

        Neither the model nor its lags change.

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
        return self._in_kind(X, self.forecast_path(X).predictions)

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
        rows = rows_of(self._encoded(X))
        with self._turn():
            return recursive_path(self._model, self._lags, rows, intervals)

    # -- looking inside ---------------------------------------------------------------------------

    parameters = passed_on("The arguments that make an empty model like the one inside.")
    targets = passed_on("The names of several targets, in their order.")

    @property
    def features(self) -> list[Label]:
        """The features of the original rows, without lags."""
        return [name for name in self.model.features if name not in self.lags.features]

    @property
    def feature_kinds(self) -> dict[Label, str]:
        """The kind of each feature of the original rows, without lags."""
        kinds = self.model.feature_kinds
        return {name: kinds[name] for name in self.features}

    @property
    def nbytes(self) -> int:
        """The memory of the model and of the values of earlier rows, in bytes."""
        with self._turn():
            own = self.lags.nbytes + pending_bytes(self._pending)
            return int(self.model.nbytes) + own

    def __repr__(self) -> str:
        return f"<{self.kind}({self.model!r}, {self.lags!r})>"

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
        """Return the complete state of the model and its lags."""
        with self._turn():
            header, arrays = self.lags.to_state()
            own: dict[str, NDArray[Any]] = {f"{PAST}{name}": each for name, each in arrays.items()}
            own[INNER] = bytes_of(self.model)
            own[PENDING] = packed(self._pending)
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
            made._pending = restored(arrays[PENDING], made.lags, format)
        return made
