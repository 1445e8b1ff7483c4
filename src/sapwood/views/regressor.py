"""A model of several views of the same rows."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.corrector.pending_state import PENDING, pending_arrays, restore_pending
from sapwood.hybrid.members import many_rows
from sapwood.model import State
from sapwood.stages.one_target import (
    LabelledRows,
    OneTargetStage,
    check_entries,
    checked_model,
    checked_numbers,
)
from sapwood.stages.rows import GivenRows
from sapwood.stages.stage import passed_on, rows_learned
from sapwood.validation import Label
from sapwood.views import _combination
from sapwood.views.columns import Cross, View, views_of

__all__ = ["MultiViewRegressor"]

FloatArray = NDArray[np.float64]

STATE = "state"
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
    _one = "several views are of one target; use a model for each"
    _numbered = True

    def __init__(
        self,
        model: Any,
        *,
        without: Iterable[Label] = (),
        crosses: Iterable[Sequence[Any]] = (),
    ) -> None:
        first = checked_model(model, "the model of several views")
        super().__init__()
        self._views = views_of(without, crosses)
        self._models: list[Any] = [first, *(first.copy() for _ in self._views[1:])]
        self._state = _combination.fresh(len(self._views))
        self._pending = PendingPredictions(2 + len(self._views), MOST_PENDING)

    @property
    def model(self) -> Any:
        """The copy with the most columns: with crosses, if there are any."""
        return self._models[0]

    def _inside(self) -> list[Any]:
        return self._models

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

    # -- learning and predicting ------------------------------------------------------------------

    def _rows(self, X: Any, keys: Any) -> Any:
        rows = many_rows(X, keys, self.features)
        # Columns would bring features to the first row that only later rows have.
        return GivenRows(X, keys) if rows.first_rows() else rows

    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        found = [
            view.of(rows).place(model, record)
            for model, view in zip(self._models, self._views, strict=True)
        ]
        members = np.ascontiguousarray(np.array([predictions for predictions, _ in found]).T)
        results = np.empty(len(members))
        _combination.predict(self._state, members, results)
        if record and rows.ids is not None:
            labels = np.full(len(results), rows_learned(self.model) or 0.0)
            records = np.column_stack([labels, results, members])
            self._pending.put_keys(np.ascontiguousarray(rows.ids), records)
        return results, found[0][1]

    def _learn(self, batch: LabelledRows) -> None:
        """Learn rows; the first copy has all columns, so what it accepts the others accept."""
        rows, y, w, found, regions, delayed = batch
        before = np.empty((len(self._models), len(y)))
        calls = [
            partial(
                view.of(rows).learn_into,
                *(model, y, w, before[place], None if place else regions),
                delayed=delayed,
            )
            for place, (model, view) in enumerate(zip(self._models, self._views, strict=True))
        ]
        learned = rows_learned(self.model) or 0.0
        known, pending = self._state, self._pending
        issued, taken = np.full((len(y), pending.width), np.nan), np.zeros(1, np.uint8)

        def finish() -> None:
            if delayed and rows.ids is not None and pending.count:
                pending.take_into(rows.ids, learned, issued, taken)
            state = known.copy()  # as an interruption may let this begin again
            members, then = np.ascontiguousarray(before.T), np.ascontiguousarray(issued[:, 1:])
            if learned:
                _combination.learn(state, members, then, y, w, found)
            else:  # the first row has no prediction
                found[:1] = 0.0
                rest = tuple(each[1:] for each in (members, then, y, w, found))
                _combination.learn(state, *rest)
            self._state = state

        self._learn_all(calls, finish, lambda: self._state is known)

    # -- looking inside ---------------------------------------------------------------------------

    n_leaves = passed_on("How many leaves the copy with the most columns has.")
    to_rules = passed_on("Return one rule for each leaf of the copy with the most columns.")

    def _own_bytes(self) -> int:
        return int(self._state.nbytes) + self._pending.nbytes

    def __repr__(self) -> str:
        return f"<MultiViewRegressor({self.model!r}): {len(self._views)} views>"

    # -- files ------------------------------------------------------------------------------------

    def _own_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header = {"without": list(self.without), "crosses": [*map(list, self.crosses)]}
        return header, {STATE: self._state.copy(), **pending_arrays(self._pending)}

    @classmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        header, arrays = state
        check_entries(state, {"without", "crosses"}, {STATE, *PENDING})
        if not all(isinstance(each, list) for each in (*header.values(), *header["crosses"])):
            raise ValueError("its views are no lists")
        made = cls._made()
        made._views, made._models = views_of(header["without"], header["crosses"]), models
        count = len(made._views)
        if len(models) != count:
            raise ValueError("its models are not those of its views")
        fresh = _combination.fresh(count)
        made._state = checked_numbers(arrays[STATE], fresh.shape, "the weights")
        own = made._state[2 : 2 + count]
        if (made._state[:2] < 0.0).any() or (own < 0.0).any() or (own > 1.0).any():
            raise ValueError("the weights cannot be")
        made._pending = PendingPredictions(2 + count, MOST_PENDING)
        restore_pending(made._pending, arrays, rows_learned(models[0]) or 0.0)
        return made
