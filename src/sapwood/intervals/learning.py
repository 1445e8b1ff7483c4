"""How a model with prediction intervals learns: intervals are issued, and scored by labels."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector._pending import key_of_row, keys_of_columns
from sapwood.intervals import _bounds
from sapwood.intervals._one_row import OneRow
from sapwood.intervals.bound_table import BoundTable, checked_levels
from sapwood.intervals.groups import Groups, hour_of
from sapwood.intervals.wrapped import Before, wrapped
from sapwood.row_methods import RowsToLearn
from sapwood.rows import frames, targets
from sapwood.rows.encoded import EncodedRow
from sapwood.rows.targets import Targets
from sapwood.schema import Schema
from sapwood.stages.labels import checked_labels, named, row_of
from sapwood.stages.order import check_order
from sapwood.stages.protocol import EncodedBatch
from sapwood.stages.stage import rows_learned
from sapwood.stages.surface import TransparentStage
from sapwood.validation import Label

__all__ = ["LEVELS", "IntervalLearning"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

LEVELS = (0.5, 0.9)
HEAVIEST = 1e50  # weight of a row


class IntervalLearning(TransparentStage):
    """The part of a model with prediction intervals that predicts and learns."""

    kind: ClassVar[str] = "IntervalRegressor"

    def __init__(
        self, model: Any, levels: Iterable[float] = LEVELS, by: Label | None = None
    ) -> None:
        check_order(self.kind, model)
        super().__init__()
        self._wrapped = wrapped(model)
        self._levels = checked_levels(levels)
        self._by = None if by is None else validation.feature_name(by)
        self._groups = Groups(self._by)
        self._grouped: Schema | None = None  # whose hour groups are of
        self._bounds = BoundTable(self._levels, max(1, len(self.targets)))
        self._followed = len(self._renumbered)

    @property
    def model(self) -> Any:
        """The model that is wrapped."""
        return self._wrapped.model

    @property
    def _renumbered(self) -> tuple[IntArray, ...]:
        """The new numbers of regions, for each time that their tree was pruned."""
        tree: Any = self._wrapped.errors or self._wrapped.model
        while getattr(tree, "_is_stage", False):
            tree = tree.model
        found: tuple[IntArray, ...] = getattr(tree, "_renumbered", ())
        return found

    def _follow_pruning(self) -> None:
        """Let regions be those of a tree that was pruned meanwhile."""
        renumbered = self._renumbered
        for places in renumbered[self._followed :]:
            self._bounds.renumber(places)
        self._followed = len(renumbered)

    def _one(self, region: int) -> OneRow:
        """Return the object that handles one row of a region."""
        if len(self._renumbered) != self._followed:
            self._follow_pruning()
        return self._bounds.one(self._parents, region)

    def _group_of(self, x: dict[Any, Any], learn: bool = False) -> int:
        """Return the group of one row; it has an hour only if the schema has encoded it."""
        if self._by is None and type(x) is EncodedRow:
            self._group_by_hour()
        return self._groups.of_row(x, learn)

    def _groups_of(self, X: Any, learn: bool = False) -> IntArray | None:
        """Return the groups of many rows, None if none has one."""
        if self._by is None:
            self._group_by_hour()
        if self._groups.name is None:
            return None
        return self._groups.of_rows(X, getattr(self.model, "features", ()), learn)

    def _group_by_hour(self) -> None:
        """Let groups be those of the schema's hour; they start over if that is another one."""
        schema = self.schema
        if schema is not self._grouped:
            name, self._grouped = hour_of(schema), schema
            if name != self._groups.name:
                self._groups = Groups(name)
                self._bounds.factors[:] = 1.0

    def _meet_targets(self) -> None:
        """Start over if the model has met its targets meanwhile, as it does in its first row."""
        targets = max(1, len(self.targets))
        if targets != self._bounds.targets:
            self._bounds = BoundTable(self._levels, targets)

    # -- rows -------------------------------------------------------------------------------------

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, given: int) -> None:
        x = self._encoded_one(x)
        if type(y) is not float and isinstance(y, Mapping | list | tuple | np.ndarray):
            self._learn_targets_one(x, targets.read_one(y), w, given)
            return
        if type(y) is not float:
            y = validation.number(y, "y")
        if type(w) is not float:
            w = validation.number(w, "w")
        if self._bounds.targets > 1 or not (abs(y) <= _bounds.LARGEST and 0.0 < w <= HEAVIEST):
            self._learn_targets_one(x, Targets(None, np.array([y])), w, given)
            return
        turn, inner = self._turns, self._wrapped
        with turn:
            prediction, region = inner.predict_one(x, given, False)
            one = self._one(region)
            key = given or (key_of_row(x) if self._bounds.pending.count else 0)
            known, rows = one.known, rows_learned(inner.model)

            def finish() -> None:
                inner.finish_one(x, y, prediction, w)
                group = self._group_of(x, True)
                one.score(region, prediction, y, w, key, group, len(self._groups))

            # As `_both` does, without its cost.
            turn.unfinished = (
                finish,
                lambda: rows_learned(inner.model) != rows and one.known == known,
            )
            try:
                inner.learn_one(x, y, w, key if inner.by_rows else given)
            except Exception:
                turn.settle()
                raise
            finish()
            turn.unfinished = None

    def _learn_targets_one(self, x: dict[Any, Any], y: Targets, w: Any, given: int) -> None:
        """Learn one row of several targets, or one that is not as it should be."""
        own, weights = self._checked(y, [validation.number(w, "w")])
        columns = {name: [value] for name, value in x.items()}
        with self._turn():
            before = Before(np.empty(own.values.shape))
            prediction, region = self._wrapped.predict_one(x, given, False)
            before.predictions[:] = row_of(prediction, own.values.shape[1])
            before.regions[:] = region
            keys = np.array([given or key_of_row(x)], np.uint64)
            labels = named(own.names or (), own.values[0].tolist())

            def learn() -> None:
                self._wrapped.learn_one(x, labels, float(weights[0]), given)

            def finish() -> None:
                self._wrapped.finish_many(columns, own, weights, before)
                self._score(columns, before, own.values, weights, keys=keys)

            self._both(learn, finish, self._is_due())

    def _place_one(self, x: dict[Any, Any], given: int = 0, record: bool = True) -> tuple[Any, int]:
        if self._bounds.targets > 1 and record:
            issued, region = self._issue_one(x, given)
            return self._named(issued[0, :, 0].tolist()), region
        x, inner = self._encoded_one(x), self._wrapped
        with self._turns:
            key = given or (key_of_row(x) if record else 0)
            prediction, region = inner.predict_one(x, key if inner.by_rows else given, record)
            if record and type(prediction) is float:  # else of several targets: the first row
                one = self._one(region)
                one.issue(region, prediction, key, self._group_of(x))
        return prediction, region

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray]:
        issued, regions = self._issue_many(X, keys, record)
        return self._plain(np.ascontiguousarray(issued[:, :, 0])), regions

    def _learn_many(self, batch: RowsToLearn) -> FloatArray:
        own = targets.read(batch.y)
        predictions = batch.found(own.values.shape)
        before = Before(predictions, batch.regions)
        self._learn(batch.X, own, batch.w, batch.keys, delayed=batch.delayed, before=before)
        return self._plain(before.predictions)

    def _learn(
        self, X: Any, y: Targets, w: ArrayLike | None, given: Any, *, delayed: bool, before: Before
    ) -> FloatArray:
        """Learn rows; return their intervals of just before. `before` gets their predictions."""
        own, weights = self._checked(y, w)
        X = self._encoded(frames.lasting(X))
        with self._turn():
            keys = None
            if delayed and self._bounds.pending.count:
                keys = self._keys(X, len(weights)) if given is None else given
            bounds = np.empty((*own.values.shape, len(self._levels), 2))

            def learn() -> None:
                self._wrapped.learn_many(X, own, weights, before, keys=given, delayed=delayed)

            def finish() -> None:
                self._wrapped.finish_many(X, own, weights, before)
                self._score(X, before, own.values, weights, keys=keys, bounds=bounds)

            self._both(learn, finish, self._is_due())
        return bounds

    def _is_due(self) -> Callable[[], bool]:
        """Return a function that returns whether no label was learned since now."""
        bounds, known = self._bounds, self._bounds.labels[0]
        return lambda: self._bounds is not bounds or bounds.labels[0] == known

    # -- issuing and scoring intervals ------------------------------------------------------------

    def _checked(self, y: Targets, w: ArrayLike | None) -> tuple[Targets, FloatArray]:
        """Return y, with names if there are several targets and a column for each, and weights."""
        return checked_labels(
            y,
            w,
            self.model,
            several=self._bounds.targets > 1,
            largest=_bounds.LARGEST,
            heaviest=HEAVIEST,
        )

    def _named(self, results: Any) -> Any:
        """Return the results of targets by name; of one target, its result alone."""
        return results[0] if self._bounds.targets == 1 else named(tuple(self.targets), results)

    def _plain(self, values: FloatArray) -> FloatArray:
        """Return predictions or bounds; of one target, without a dimension of targets."""
        return values if self.targets else np.ascontiguousarray(values[:, 0])

    def _issue_one(self, x: dict[Any, Any], given: int = 0) -> tuple[FloatArray, int]:
        """Return the prediction of a row with its bounds, and its region."""
        x = self._encoded_one(x)
        with self._turn():
            prediction, region = self._wrapped.predict_one(x, given, True)
            groups = np.array([self._group_of(x)], np.int32)
            issued = self._issue(np.array([region], np.int32), row_of(prediction, 1), groups)
            self._bounds.remember(np.array([given or key_of_row(x)], np.uint64), issued)
        return issued, region

    def _issue_many(
        self, X: Any, given: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray]:
        """Return the predictions of rows with their bounds, and their regions."""
        X = self._encoded(frames.lasting(X))
        with self._turn():
            predictions, regions = self._wrapped.predict_many(X, given, record)
            issued = self._issue(regions, predictions, self._groups_of(X))
            if record:
                keys = self._keys(X, len(issued)) if given is None else given
                self._bounds.remember(keys, issued)
        return issued, regions

    def _issue(
        self, regions: IntArray, predictions: FloatArray, groups: IntArray | None = None
    ) -> FloatArray:
        if predictions.shape[1] != self._bounds.targets:
            self._meet_targets()
        self._follow_pruning()
        return self._bounds.predict(self._parents(), regions, predictions, groups)

    def _parents(self) -> IntArray:
        return self._wrapped.parents

    def _keys(self, X: Any, rows: int) -> Any:
        """Return the keys of rows that have no ids: hashes of their values."""
        batch = EncodedBatch.of(X, names=getattr(self.model, "features", ()))
        return batch.token if len(batch.columns) else keys_of_columns({}, rows)

    def _score(
        self,
        X: Any,
        before: Before,
        y: FloatArray,
        w: FloatArray,
        *,
        keys: Any,
        bounds: FloatArray | None = None,
    ) -> None:
        if y.shape[1] != self._bounds.targets:
            self._meet_targets()
            keys = None
        self._follow_pruning()
        known, groups = len(self._groups), self._groups_of(X, True)
        self._bounds.score(
            self._parents(),
            before.regions,
            before.predictions,
            y,
            w,
            keys=keys,
            bounds=bounds,
            groups=groups,
            known_groups=known,
        )
