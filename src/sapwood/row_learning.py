"""How a regressor learns and predicts: rows become numbers, and the kernel takes them."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector.tokens import key_of
from sapwood.row_methods import RowMethods, RowsToLearn, documented_by, whole_batch
from sapwood.rows import frames, missing_flags, targets
from sapwood.rows._dict_row import Gaps, RowReader
from sapwood.rows.encoder import EncodedRows
from sapwood.rows.features import Features, KnownFeatures
from sapwood.tree._kernel import LARGEST_Y, refuse_row
from sapwood.tree._schema_migration import SchemaMigration
from sapwood.validation import Label

__all__ = ["RowLearning", "recorded"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


class RowLearning(RowMethods):
    """The part of a regressor that learns and predicts rows."""

    kind: ClassVar[str]
    copy: Callable[[], Any]
    _parameters: dict[str, Any]
    _features: Features
    _reader: RowReader
    _kernel: Any

    # -- one row ----------------------------------------------------------------------------------

    def _encoded_one(self, x: Any) -> Any:
        """Return one row as the schema encodes it."""
        encoding = self._features.encoding
        return x if encoding is None else encoding.encode_one(x)

    @documented_by(RowMethods.learn_one)
    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        if id is not None:
            self._learn_row(x, y, w, key_of(id))
        # Most rows are plain; the reader leaves those to be encoded to the way of all others.
        elif not (
            type(y) is float and type(w) is float and self._kernel.learn_one(self._reader, x, y, w)
        ):
            self._learn_row(x, y, w, 0)

    @documented_by(RowMethods.predict_one)
    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        key = 0 if id is None else key_of(id)
        prediction: float | None = self._kernel.predict_one(self._reader, x, key, record)
        return self._predict_by_key(x, key, record) if prediction is None else prediction

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn one row, given the key of its id, or 0."""
        # What is no float may run code of its own, and has to before anything else is read.
        if type(y) is not float:
            if isinstance(y, Mapping | list | tuple | np.ndarray):
                self._learn_targets_one(x, targets.read_one(y), w, key)
                return
            y = validation.number(y, "y")
        if type(w) is not float:
            w = validation.number(w, "w")
        x = self._encoded_one(x)
        if not self._kernel.learn_one(self._reader, x, y, w, key):
            # It brings something new, or something bad; y and w were found good.
            read = targets.Targets(None, np.array([y]))
            self._kernel.write_locked(self._learn_odd, x, read, np.array([w]), key)

    def _learn_targets_one(self, x: dict[Any, Any], y: targets.Targets, w: float, key: int) -> None:
        """Learn one row of several targets."""
        weight = validation.number(w, "w")
        known = self._features.known.targets
        is_plain = bool(known) and (y.names == known or y.names is None)
        if is_plain and self._kernel.learn_targets_one(self._reader, x, y.values[0], weight, key):
            return
        self._kernel.write_locked(self._learn_odd, x, y, np.array([weight]), key)

    def _predict_by_key(self, x: dict[Any, Any], key: int, record: bool) -> Any:
        """Return what `predict_one` does, given the key of an id."""
        x = self._encoded_one(x)
        prediction: float | None = self._kernel.predict_one(self._reader, x, key, record)
        if prediction is not None:
            return prediction
        if self._features.known.targets:
            return self._predict_targets_one(x, key, record)
        read = partial(self._features.read_one, x, learn=False)
        _, predictions = self._predict_read(read, **recorded(key, record))
        if predictions.ndim == 1:
            return float(predictions[0])
        return self._predict_targets_one(x, key, record)

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[Any, int]:
        return self._predict_by_key(x, key, record), -1

    def _predict_targets_one(
        self, x: dict[Any, Any], key: int = 0, record: bool = True
    ) -> dict[Label, float]:
        """Predict several targets of one row."""
        found: list[float] | None = self._kernel.predict_targets_one(self._reader, x, key, record)
        if found is None:
            read = partial(self._features.read_one, x, learn=False)
            found = self._predict_read(read, **recorded(key, record))[1][0].tolist()
        return targets.named(self._features.known.targets, found)

    # -- many rows --------------------------------------------------------------------------------

    def _values_of(self, X: Any, keys: Any, record: bool) -> FloatArray:
        read = partial(self._features.read, frames.lasting(X), learn=False)
        return self._predict_read(read, ids=keys, asked=record)[1]

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        return self._values_of(X, keys, record), None

    def _names(self) -> tuple[Label, ...]:
        return self._features.known.targets

    def _predict_read(
        self, read: Callable[[], EncodedRows], **own: Any
    ) -> tuple[EncodedRows, FloatArray]:
        """Read rows and predict them.

        Where features or categories became known while they were read, they are read again while
        nothing is changed, so that a thread that predicts does not wait for others for long.
        """
        plan = read()
        predictions = self._predict_plan(plan, **own)
        if predictions is not None:
            return plan, predictions
        found: tuple[EncodedRows, FloatArray] = self._kernel.read_locked(
            self._predict_still, read, own
        )
        return found

    def _predict_still(
        self, read: Callable[[], EncodedRows], own: dict[str, Any]
    ) -> tuple[EncodedRows, FloatArray]:
        """Read rows and predict them, while nothing is changed."""
        plan = read()
        predictions = self._predict_plan(plan, **own)
        if predictions is None:
            raise RuntimeError("the features changed while the model was read")
        return plan, predictions

    def _predict_plan(self, plan: EncodedRows, **own: Any) -> FloatArray | None:
        """Predict rows; None if they have to be read again, as there are new features since."""
        validation.check_ids(own.get("ids"), len(plan.matrix))
        shape: tuple[int, ...] = (len(plan.matrix),)
        if plan.targets:
            shape = len(plan.matrix), len(plan.targets)
        predictions = np.empty(shape)
        if self._kernel.predict(plan.matrix, predictions.reshape(-1), plan.is_current, **own):
            return predictions
        return None

    def _learn_many(self, batch: RowsToLearn) -> Any:
        # What is converted may run code of its own, and has to before X is read.
        read = targets.read(batch.y)
        weights = validation.weights(batch.w, len(read.values))
        # Labels that nothing is predicted for count as those of rows that were not predicted.
        asked = not batch.delayed or batch.predicting is False
        learn = partial(self._learn_rows, ids=batch.keys, asked=asked, regions=batch.regions)
        return self._kernel.write_locked(learn, read, weights, batch)

    def _learn_rows(
        self, y: targets.Targets, weights: FloatArray, batch: RowsToLearn, **own: Any
    ) -> FloatArray | None:
        """Read rows and learn them, in this thread's turn."""
        plan = self._features.read(batch.X, learn=True)
        if len(y.values) != len(plan.matrix):
            raise ValueError(
                f"X has {len(plan.matrix)} rows and y has {len(y.values)} values: the lengths must "
                "agree"
            )
        return self._learn_plan(plan, y, weights, batch, **own)

    def _learn_odd(self, x: Any, y: targets.Targets, weights: FloatArray, key: int) -> None:
        """Learn a row that is not read the quick way, in this thread's turn."""
        plan = self._features.read_one(x, learn=True)
        self._learn_plan(plan, y, weights, None, **recorded(key, True))

    def _learn_plan(
        self,
        plan: EncodedRows,
        y: targets.Targets,
        weights: FloatArray,
        batch: RowsToLearn | None,
        **own: Any,
    ) -> FloatArray | None:
        """Learn rows that were read, if their y and weights are good; `own` is of the kernel."""
        names, values = self._fitting(y)
        validation.check_ids(own.get("ids"), len(plan.matrix))
        predictions = None
        if batch is not None and batch.predicting is not False:
            predictions = batch.found(values.shape)
            predictions.fill(np.nan)  # of rows that were not predicted yet
        flat = values.reshape(-1)
        bad = self._kernel.check(flat, weights, *([len(names)] if names else []))
        if bad >= 0:
            _refuse(names, values[bad], weights[bad], bad if len(values) > 1 or not names else None)
        if len(plan.starts(self._is_limited)) > 1 and not self._has_room(plan, names, weights):
            # Either all new names and labels fit, or no row is learned: a copy finds out.
            copy = self.copy()
            copy._learn_parts(0, plan.for_features(copy._features), names, values, weights)
        before = self._kernel.rows

        def learn(done: int) -> None:
            self._learn_parts(done, plan, names, values, weights, predictions=predictions, **own)

        def rows_done() -> int:
            self._settle()
            return int(self._kernel.rows - before)

        whole_batch(learn, rows_done)
        return predictions

    def _learn_parts(
        self,
        done: int,
        plan: EncodedRows,
        names: tuple[Label, ...],
        values: FloatArray,
        weights: FloatArray,
        *,
        predictions: FloatArray | None = None,
        asked: bool = True,
        regions: NDArray[np.int32] | None = None,
        ids: NDArray[np.uint64] | None = None,
    ) -> None:
        """Learn rows part by part: what is new is registered at the row that brings it.

        The first `done` rows were learned already: whole parts, or the first row of a turn too,
        which may have been predicted alone.
        """
        register: Callable[[], SchemaMigration | None] | None
        given = {"regions": regions, "ids": ids}
        arrays = {name: array for name, array in given.items() if array is not None}
        for span, is_turn, rows in plan.parts(self._is_limited):
            if done >= (len(values) if span.stop is None else span.stop):
                continue
            part, register = span, partial(self._registration, rows, names)
            matrix = rows.matrix
            if rows.adds_nothing(names) and (rows.is_complete or not self._features.flagging):
                register = None
            if done > span.start:
                part, matrix, register = slice(done, span.stop), matrix[done - span.start :], None
            elif is_turn and predictions is not None:
                # The first row is predicted before anything new is registered, and then learned.
                first = slice(part.start, part.start + 1)
                own = {name: array[first] for name, array in arrays.items()}
                row = rows.first_row_before()
                if np.isnan(predictions[first]).any():
                    self._kernel.predict(row, predictions[first].reshape(-1), asked=asked, **own)
                own.pop("regions", None)
                self._kernel.learn(
                    matrix[:1], values[first].reshape(-1), weights[first], None, register, **own
                )
                part, matrix, register = slice(first.stop, part.stop), matrix[1:], None
            own = {name: array[part] for name, array in arrays.items()}
            out = None if predictions is None else predictions[part].reshape(-1)
            self._kernel.learn(
                matrix,
                values[part].reshape(-1),
                weights[part],
                out,
                register,
                asked=asked,
                **own,
            )

    def _settle(self) -> None:
        """Finish what was interrupted, in this thread's turn, so that all accepted rows count."""

    @property
    def _is_limited(self) -> bool:
        return bool(self._parameters.get("max_bytes"))

    @abstractmethod
    def _has_room(self, plan: EncodedRows, names: tuple[Label, ...], weights: FloatArray) -> bool:
        """Return whether new names and labels of rows fit, however the model grows meanwhile."""

    def _gaps(self, plan: EncodedRows, known: KnownFeatures) -> Gaps | None:
        """Return how often columns were missing once rows are learned; None if that is no news."""
        if plan.is_complete or not self._features.flagging:
            return None
        counts = missing_flags.counted(self._features, known, plan.matrix)
        return None if counts is None else Gaps(counts, missing_flags.are_due(counts))

    def _fitting(self, y: targets.Targets) -> tuple[tuple[Label, ...], FloatArray]:
        """Return the names of several targets (none of one), and y in their order."""
        return targets.fitting(y, self._features.known.targets, self._kernel.rows > 0, self.kind)

    @abstractmethod
    def _registration(self, plan: EncodedRows, names: tuple[Label, ...]) -> SchemaMigration | None:
        """Return the new names and labels of rows, while no other thread may change the model."""


def recorded(key: int, record: bool) -> dict[str, Any]:
    """Return what a kernel takes of the id of a row, and of whether its prediction is kept."""
    own: dict[str, Any] = {"ids": np.array([key], np.uint64)} if key else {}
    return own if record else {**own, "asked": False}


def _refuse(names: tuple[Label, ...], y: Any, w: float, row: int | None) -> None:
    """Raise the error for a row that may not be learned."""
    if not names:
        refuse_row(y, w, row)
    for name, value in zip(names, y.tolist(), strict=True):
        if not (np.isnan(value) or abs(value) <= LARGEST_Y):
            refuse_row(value, w, row, targets.target_name(name))
    known = y[~np.isnan(y)]
    if not len(known):
        place = "" if row is None else f" at position {row}"
        raise ValueError(f"y{place} has no target that is not missing: {targets.MISSING}")
    refuse_row(known[0], w, row)
