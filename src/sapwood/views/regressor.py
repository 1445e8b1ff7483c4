"""A model of several views of the same rows."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector._pending import PendingPredictions
from sapwood.corrector.pending_state import PENDING, pending_arrays, restore_pending
from sapwood.hybrid import _stack
from sapwood.hybrid.members import OneRow, many_rows
from sapwood.model import State, from_bytes
from sapwood.regressor import Regressor
from sapwood.row_methods import array_for
from sapwood.rows import frames
from sapwood.stages.one_target import OneTargetStage, checked_model, labels_of
from sapwood.stages.stage import Stage, passed_on, rows_learned
from sapwood.validation import Label
from sapwood.views import _combination
from sapwood.views.columns import Cross, View, views_of

__all__ = ["MultiViewRegressor"]

FloatArray = NDArray[np.float64]
KeyArray = NDArray[np.uint64]

INNER, STATE = "model {}", "state"
ALL = View()
MOST_PENDING = 1 << 16


class MultiViewRegressor(OneTargetStage):
    """Copies of a model with different columns, combined by their errors.

    Lag features make some models worse, and crosses of columns improve some. This model trains
    copies with and without them. At first, the prediction is the mean of the copies; then a ridge
    regression on recent labels estimates their weights. Time and memory are those of all copies
    together.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target that has learned nothing yet.
    without : iterable of str or int
        Columns that one copy does not get, such as lag features.
    crosses : iterable of pairs of str or int
        Pairs of columns. One copy gets a category of both values for each pair, such as
        "shop & item". With a size, as in ``("longitude", "latitude", 0.5)``, both are numbers, and
        the category is the cell of a grid that they are in.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> shop, item = rng.integers(0, 6, (2, 4_000))
    >>> X = {"shop": [f"s{each}" for each in shop], "item": [f"i{each}" for each in item]}
    >>> y = rng.normal(size=(6, 6))[shop, item]
    >>> model = sapwood.MultiViewRegressor(
    ...     sapwood.HoeffdingTreeRegressor(), crosses=[("shop", "item")]
    ... )
    >>> model.learn_many(X, y)
    >>> [name for name, weight in model.weights.items() if weight > 0.9]
    ['crosses']

    Around lags:

    >>> from sapwood.lags import LaggedModel, Lags
    >>> lags = Lags([24, 168])
    >>> model = sapwood.MultiViewRegressor(sapwood.ForestRegressor(), without=lags.features)
    >>> lagged = LaggedModel(model, lags)
    """

    kind: ClassVar[str] = "MultiViewRegressor"
    format: ClassVar[int] = 1

    def __init__(
        self,
        model: Any,
        *,
        without: Iterable[Label] = (),
        crosses: Iterable[Sequence[Any]] = (),
    ) -> None:
        first = checked_model(model, "the model of several views")
        if rows_learned(first):
            raise ValueError("the model has learned y itself: give a new one")
        super().__init__()
        self._views = views_of(without, crosses)
        self._models: list[Any] = [first, *(first.copy() for _ in self._views[1:])]
        self._state = _combination.fresh(len(self._views))
        self._pending = PendingPredictions(2 + len(self._views), MOST_PENDING)

    @property
    def model(self) -> Any:
        """The copy with the most columns: with crosses, if there are any."""
        return self._models[0]

    @property
    def without(self) -> tuple[Label, ...]:
        """The columns that one copy does not get."""
        return self._views[-1].without

    @property
    def crosses(self) -> tuple[Cross, ...]:
        """The pairs of columns that one copy gets as categories; those of numbers with a size."""
        return self._views[0].crosses

    @property
    def features(self) -> list[Label]:
        """The names of the features without crosses, in the order of their first appearance."""
        return list(self._models[self._views.index(ALL)].features)

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the copies in predictions: "crosses", "all columns" and "without"."""
        with self._turn():
            found = _combination.weights(self._state, len(self._views))
        names = [
            "crosses" if v.crosses else "without" if v.without else "all columns"
            for v in self._views
        ]
        return dict(zip(names, found, strict=True))

    # -- predictions ------------------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        row = OneRow(self._encoded_one(x))
        with self._turn():
            found = [
                model._place_one(view.of(row), key, record)
                for model, view in zip(self._models, self._views, strict=True)
            ]
            members = np.array([[prediction for prediction, _ in found]])
            results = self._combined(members)
            if record and key:
                self._keep(np.array([key], np.uint64), members, results)
            return float(results[0]), found[0][1]

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, NDArray[np.int32] | None]:
        encoded = self._encoded(X)
        with self._turn():
            rows = many_rows(encoded, keys, self.features)
            found = [
                model._place_many(view.of(rows), keys, record)
                for model, view in zip(self._models, self._views, strict=True)
            ]
            members = np.column_stack([predictions for predictions, _ in found])
            results = self._combined(members)
            if record and keys is not None:
                self._keep(keys, members, results)
            return results, found[0][1]

    def _combined(self, members: FloatArray) -> FloatArray:
        results = np.empty(len(members))
        _combination.predict(self._state, np.ascontiguousarray(members), results)
        return results

    def _keep(self, keys: KeyArray, members: FloatArray, results: FloatArray) -> None:
        labels = np.full(len(keys), rows_learned(self.model) or 0.0)
        self._pending.put_keys(
            np.ascontiguousarray(keys), np.column_stack([labels, results, members])
        )

    # -- learning ---------------------------------------------------------------------------------

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        label, weight = validation.number(y, "y"), validation.number(w, "w")
        row = OneRow(self._encoded_one(x))
        with self._turn():
            calls, before = [], np.empty((1, len(self._models)))
            for place, (model, view) in enumerate(zip(self._models, self._views, strict=True)):
                own = view.of(row)
                before[0, place] = model._place_one(own, key, False)[0]
                calls.append(partial(model._learn_row, own, label, weight, key))
            labels = np.array([label]), np.array([weight])
            keys = np.array([key], np.uint64) if key else None
            self._learn_all(calls, before.T, labels, keys, np.empty(1))

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
        labels = labels_of(y, "several views are of one target; use a model for each")
        weights = np.ascontiguousarray(validation.weights(w, len(labels)))
        encoded = frames.lasting(self._encoded(X))
        before = np.empty((len(self._models), len(labels)))
        with self._turn():
            rows = many_rows(encoded, keys, self.features)
            # Columns would bring features to the first row that only later rows have.
            as_dicts = bool(rows.first_rows())
            own = [
                [view.one(x) for x in encoded] if as_dicts else view.of(rows)
                for view in self._views
            ]
            calls = [
                partial(
                    model._learn_into,
                    *(own[place], labels, weights, before[place], None if place else regions),
                    keys=keys,
                    delayed=delayed,
                )
                for place, model in enumerate(self._models)
            ]
            found = array_for(predicting, labels.shape)
            self._learn_all(calls, before, (labels, weights), keys if delayed else None, found)
        return found

    def _learn_all(
        self,
        calls: Sequence[Any],
        before: FloatArray,
        labels: tuple[FloatArray, FloatArray],
        keys: KeyArray | None,
        found: FloatArray,
    ) -> None:
        """Let all copies learn, and their weights after them: all, or none.

        The first copy has all columns of the others, so what it accepts they accept. `before` may be
        filled by the calls.
        """
        rows = rows_learned(self.model) or 0.0
        known, pending = self._state, self._pending
        issued, taken = np.full((len(found), pending.width), np.nan), np.zeros(1, np.uint8)

        def finish() -> None:
            for call, model in zip(calls[1:], self._models[1:], strict=True):
                if rows_learned(model) == rows:
                    call()
            if keys is not None and pending.count:
                _stack.take(pending, keys, rows, issued, taken)
            state = known.copy()  # as an interruption may let this begin again
            members, then = np.ascontiguousarray(before.T), np.ascontiguousarray(issued[:, 1:])
            if rows:
                _combination.learn(state, members, then, *labels, found)
            else:  # the first row has no prediction
                found[:1] = 0.0
                rest = tuple(each[1:] for each in (members, then, *labels, found))
                _combination.learn(state, *rest)
            self._state = state

        self._both(calls[0], finish, lambda: self._state is known)

    # -- looking inside ---------------------------------------------------------------------------

    n_leaves = passed_on("How many leaves the copy with the most columns has.")
    to_rules = passed_on("Return one rule for each leaf of the copy with the most columns.")

    @property
    def nbytes(self) -> int:
        """Bytes of all copies, of their weights, and of pending predictions."""
        with self._turn():
            inner = sum(model.nbytes for model in self._models)
            return int(inner) + self._state.nbytes + self._pending.nbytes

    def __repr__(self) -> str:
        return f"<MultiViewRegressor({self.model!r}): {len(self._views)} views>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the copies are, their weights, and the pending predictions."""
        with self._turn():
            arrays: dict[str, NDArray[Any]] = {
                INNER.format(place): np.frombuffer(model.to_bytes(), np.uint8)
                for place, model in enumerate(self._models)
            }
            arrays |= {STATE: self._state.copy(), **pending_arrays(self._pending)}
            header = {"without": list(self.without), "crosses": [*map(list, self.crosses)]}
            return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted."""
        header, arrays = state
        if header.keys() != {"without", "crosses"}:
            raise ValueError("its header has other entries than it should")
        if not all(isinstance(each, list) for each in (*header.values(), *header["crosses"])):
            raise ValueError("its views are no lists")
        views = views_of(header["without"], header["crosses"])
        names = [INNER.format(place) for place in range(len(views))]
        if arrays.keys() != {*names, STATE, *PENDING}:
            raise ValueError("its arrays are not those of a model of several views")
        models = [from_bytes(arrays[name].tobytes(), "the model of a view") for name in names]
        for model in models:
            if not isinstance(model, Regressor) or (model.several_targets and model.targets):
                raise ValueError("a model inside is none of one target")
        if len({(type(model), rows_learned(model)) for model in models}) > 1:
            raise ValueError("its models have learned different rows")
        made = cls.__new__(cls)
        Stage.__init__(made)
        made._views, made._models = views, models
        made._state = _checked(arrays[STATE], len(views))
        made._pending = PendingPredictions(2 + len(views), MOST_PENDING)
        restore_pending(made._pending, arrays, rows_learned(models[0]) or 0.0)
        return made


def _checked(saved: NDArray[Any], count: int) -> FloatArray:
    """Return the weights of a file and their sums, if they can be such."""
    fresh = _combination.fresh(count)
    if saved.dtype != np.float64 or saved.shape != fresh.shape:
        raise ValueError("the weights are not as they were saved")
    state = np.array(saved, np.float64)
    own = state[2 : 2 + count]
    if (
        not np.isfinite(state).all()
        or (state[:2] < 0.0).any()
        or (own < 0.0).any()
        or (own > 1.0).any()
    ):
        raise ValueError("the weights cannot be")
    return state
