"""What all regressors of Sapwood share: the ways in for rows, and out for predictions.

They differ by the kernel that they hand rows to, and by what new features make of it.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector.tokens import key_of, keys_of
from sapwood.deprecation import deprecated
from sapwood.foreign_calls import ForeignCalls
from sapwood.inspect.anomaly import AnomalyScores
from sapwood.model import State, StoredModel
from sapwood.rows import frames, missing_flags, targets
from sapwood.rows._dict_row import Gaps, RowReader
from sapwood.rows.encoder import EncodedRows
from sapwood.rows.features import Features, KnownFeatures
from sapwood.tree._kernel import LARGEST_Y, TreeKernel, refuse_row
from sapwood.tree._schema_migration import SchemaMigration
from sapwood.tree.growth import GrowthRules
from sapwood.validation import Label

__all__ = ["GrowthOf", "Regressor", "recorded"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
GrowthOf = Callable[[GrowthRules, float], GrowthRules]
"""Other rules of growth, given those of a tree's parameters and the rate of its random weights."""


class Kernel(Protocol):
    """What rows are handed to, once they are numbers."""

    rows: float

    def learn_one(self, reader: RowReader, x: Any, y: float, w: float, id: int = 0) -> bool:
        """Learn a row, or return False if it brings something new or bad."""

    def predict_one(
        self, reader: RowReader, x: Any, id: int = 0, record: bool = True
    ) -> float | None:
        """Predict a row, or return None if it cannot be read as it is."""

    def check(self, y: FloatArray, w: FloatArray) -> int:
        """Return the first row that may not be learned, or -1."""

    def learn(
        self,
        X: FloatArray,
        y: FloatArray,
        w: FloatArray,
        predictions: FloatArray | None = None,
        register: Callable[[], SchemaMigration | None] | None = None,
    ) -> None:
        """Learn rows that passed validation."""

    def predict(
        self,
        X: FloatArray,
        predictions: FloatArray,
        is_current: Callable[[], bool] | None = None,
    ) -> bool:
        """Predict rows, or return False if they have to be read again."""

    def read_locked(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, while which nothing is changed."""

    def write_locked(self, learn: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, while which no other thread learns."""


class Regressor(StoredModel, ForeignCalls, AnomalyScores):
    """A model of rows with named features, numbers and categories.

    Parameters
    ----------
    parameters : dict
        The arguments that make an empty model like this one.
    features : Features
        By which rows are read.
    kernel : Kernel
        What learns and predicts.
    """

    _origin: object  # models that share it have learned rows in common
    _growth_of: GrowthOf | None = None  # other rules of growth than those of its parameters
    several_targets: ClassVar[bool] = True  # which all of them can learn

    def __init__(self, parameters: dict[str, Any], features: Features, kernel: Any) -> None:
        super().__init__()
        self._parameters = parameters
        self._features = features
        self._reader = RowReader(features)
        self._kernel = kernel
        self._origin = object()

    # -- learning and predicting ------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features: numbers, bools, strings; None, NaN or nothing where a value is missing.
        y : float, or dict of float
            The target: any finite number. Several targets are a dict; one that is None, NaN or
            absent is missing, and the row is learned for the others.
        w : float
            How much the row counts: positive and finite. Two rows of weight 1 are as much
            evidence as one of weight 2.
        id : str, int, or tuple of such, optional
            The id by which the row was predicted, if its label is delayed. Without one, the
            prediction is found by the row itself; of equal rows, in the order of predictions.

        Raises
        ------
        ValueError, OverflowError
            If a value is not valid; nothing is changed then.

        Examples
        --------
        >>> import sapwood
        >>> tree = sapwood.HoeffdingTreeRegressor()
        >>> tree.learn_one({"temp": 21.5, "city": "Oslo"}, 310)
        >>> tree.predict_one({"temp": 21.5})
        310.0
        >>> tree.learn_one({"temp": "warm"}, 300)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: x['temp'] = 'warm' must be a number, as the values of this feature before ...
        """
        if id is not None:
            self._learn_row(x, y, w, key_of(id))
        # Most rows are plain; the reader leaves those to be encoded to the way of all others.
        elif not (
            type(y) is float and type(w) is float and self._kernel.learn_one(self._reader, x, y, w)
        ):
            self._learn_row(x, y, w, 0)

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
        if self._features.encoding is not None:
            x = self._features.encoding.encode_one(x)
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

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        """Predict one row; the prediction is kept until its label comes, for the corrector.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`. Unknown ones are ignored, with a warning if there
            are no others; unknown categories count as missing.
        id : str, int, or tuple of such, optional
            By which `learn_one` will find the prediction when the label comes; see there.
        record : bool
            Whether the prediction is kept; if not, the model is not scored by it.

        Returns
        -------
        float, or dict of float
            The prediction; 0.0 before anything was learned. Of several targets, that of each.

        Examples
        --------
        >>> import sapwood
        >>> tree = sapwood.HoeffdingTreeRegressor()
        >>> for hour in range(48):  # labels are 3 rows late
        ...     _ = tree.predict_one({"weekend": 0}, id=hour)
        ...     if hour >= 3:
        ...         tree.learn_one({"weekend": 0}, hour - 3.0, id=hour - 3)
        """
        key = 0 if id is None else key_of(id)
        prediction: float | None = self._kernel.predict_one(self._reader, x, key, record)
        if prediction is not None:
            return prediction
        if self._features.encoding is not None:
            x = self._features.encoding.encode_one(x)
            prediction = self._kernel.predict_one(self._reader, x, key, record)
            if prediction is not None:
                return prediction
        if self._features.known.targets:
            return self._predict_targets_one(x, key, record)
        read = partial(self._features.read_one, x, learn=False)
        _, predictions = self._predict_read(read, **recorded(key, record))
        if predictions.ndim == 1:
            return float(predictions[0])
        return self._predict_targets_one(x, key, record)

    def _predict_targets_one(
        self, x: dict[Any, Any], key: int = 0, record: bool = True
    ) -> dict[Label, float]:
        """Predict several targets of one row."""
        found: list[float] | None = self._kernel.predict_targets_one(self._reader, x, key, record)
        if found is None:
            read = partial(self._features.read_one, x, learn=False)
            found = self._predict_read(read, **recorded(key, record))[1][0].tolist()
        return targets.named(self._features.known.targets, found)

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop, or nothing at all.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features. Columns of an array are the features in the order in which they were
            first seen, or named 0, 1, … if there are none yet. Frames are those of pandas, polars
            and pyarrow, or any Arrow stream.
        y : array_like or series of float, shape (n,); or several targets
            The targets, by position: an index does not count. Several are an array of shape
            (n, targets), a mapping of columns, a list of dicts or a data frame; each may be missing
            for itself (NaN, None, absent). A model is of one target, or of several, from its first
            row on.
        w : array_like or series of float, shape (n,), optional
            The weights; 1 each if not given.
        ids : sequence, optional
            The id of each row, as for `learn_one`.
        """
        self._learn(X, y, w, predicting=False, **_by_ids(ids))

    def predict_many(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Predict many rows: the same as `predict_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for `learn_many`.
        ids : sequence, optional
            The id of each row, as for `predict_one`.
        record : bool
            As for `predict_one`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            The predictions: for a frame of pandas or polars a series of that library named
            "prediction", with the index of the frame; for one of pyarrow an array of pyarrow. Of
            several targets: for a frame one with a column for each, for a mapping a dict of
            columns, for all else an array of shape (n, targets).
        """
        rows, own = frames.lasting(X), _by_ids(ids)
        if not record:
            own["asked"] = False
        read = partial(self._features.read, rows, learn=False)
        return self._in_kind(X, self._predict_read(read, **own)[1])

    def _in_kind(self, X: Any, predictions: FloatArray) -> Any:
        if predictions.ndim == 1:
            return frames.like(X, predictions)
        return targets.in_kind(X, predictions, self._features.known.targets)

    def predict_learn_many(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None = None,
        *,
        delayed: bool = False,
        ids: Any = None,
    ) -> Any:
        """Predict each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        delayed : bool
            Whether the rows were predicted before: then the model is scored by the predictions
            that were issued, not by those that are returned.
        ids : sequence, optional
            The id of each row, as for `learn_many`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            What `predict_one` would have returned for each row just before `learn_one`; of the
            type that `predict_many` returns.
        """
        own = {**_by_ids(ids), **({"asked": False} if delayed else {})}
        return self._in_kind(X, self._learn(X, y, w, predicting=True, **own))

    def learn_telling(self, X: Any, y: Any, w: ArrayLike | None = None) -> FloatArray:
        """Learn delayed rows: deprecated, use ``predict_learn_many(X, y, w, delayed=True)``.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        """
        deprecated("learn_telling(X, y, w)", "predict_learn_many(X, y, w, delayed=True)")
        return self._learn(X, y, w, predicting=True, asked=False)

    def tell_one(self, x: dict[Any, Any]) -> Any:
        """Predict one row: deprecated, use ``predict_one(x, record=False)``.

        Parameters
        ----------
        x : dict
            The features.
        """
        deprecated("tell_one(x)", "predict_one(x, record=False)")
        return self.predict_one(x, record=False)

    # -- for stages around it ---------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[Any, int]:
        """Return the prediction of a row and its region, -1 if the model has none."""
        return self._predict_by_key(x, key, record), -1

    def _predict_by_key(self, x: dict[Any, Any], key: int, record: bool) -> Any:
        """Return what `predict_one` does, given the key of an id."""
        if self._features.encoding is not None:
            x = self._features.encoding.encode_one(x)
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

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        """Return the predictions of rows and their regions, None if the model has none."""
        read = partial(self._features.read, frames.lasting(X), learn=False)
        return self._predict_read(read, ids=keys, asked=record)[1], None

    def _learn_into(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None,
        predictions: FloatArray,
        regions: IntArray | None = None,
        *,
        keys: Any = None,
        delayed: bool = True,
    ) -> None:
        """Learn rows; the arrays get the predictions and regions of just before each row."""
        own: dict[str, Any] = {"ids": keys, "asked": not delayed}
        if regions is not None:
            own["regions"] = regions
        self._learn(X, y, w, predicting=predictions, **own)

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
        shape: tuple[int, ...] = (len(plan.matrix),)
        if plan.targets:
            shape = len(plan.matrix), len(plan.targets)
        predictions = np.empty(shape)
        if self._kernel.predict(plan.matrix, predictions.reshape(-1), plan.is_current, **own):
            return predictions
        return None

    def _learn(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None,
        predicting: bool | FloatArray,
        **own: Any,
    ) -> FloatArray:
        """Learn rows, and return what was predicted just before, if that is wanted.

        `predicting` may be the array for it.
        """
        # What is converted may run code of its own, and has to before X is read.
        read = targets.read(y)
        weights = validation.weights(w, len(read.values))
        learn = partial(self._learn_rows, **own)
        found: FloatArray = self._kernel.write_locked(learn, X, read, weights, predicting)
        return found

    def _learn_rows(
        self,
        X: Any,
        y: targets.Targets,
        weights: FloatArray,
        predicting: bool | FloatArray,
        **own: Any,
    ) -> FloatArray | None:
        """Read rows and learn them, in this thread's turn."""
        plan = self._features.read(X, learn=True)
        if len(y.values) != len(plan.matrix):
            raise ValueError(
                f"X has {len(plan.matrix)} rows and y has {len(y.values)} values: the lengths must "
                "agree"
            )
        return self._learn_plan(plan, y, weights, predicting, **own)

    def _learn_odd(self, x: Any, y: targets.Targets, weights: FloatArray, key: int) -> None:
        """Learn a row that is not read the quick way, in this thread's turn."""
        plan = self._features.read_one(x, learn=True)
        self._learn_plan(plan, y, weights, **recorded(key, True))

    def _learn_plan(
        self,
        plan: EncodedRows,
        y: targets.Targets,
        weights: FloatArray,
        predicting: bool | FloatArray = False,
        **own: Any,
    ) -> FloatArray | None:
        """Learn rows that were read, if their y and weights are good; `own` is of the kernel."""
        names, values = self._fitting(y)
        predictions: FloatArray | None
        if isinstance(predicting, bool):
            predictions = np.empty(values.shape) if predicting else None
        else:
            predictions = predicting.reshape(values.shape)
        flat = values.reshape(-1)
        bad = self._kernel.check(flat, weights, *([len(names)] if names else []))
        if bad >= 0:
            _refuse(names, values[bad], weights[bad], bad if len(values) > 1 or not names else None)
        if len(plan.starts(self._is_limited)) > 1 and not self._has_room(plan, names, weights):
            # Either all new names and labels fit, or no row is learned: a copy finds out.
            copy = self.copy()
            copy._learn_parts(plan.for_features(copy._features), names, values, weights)
        self._learn_parts(plan, names, values, weights, predictions=predictions, **own)
        return predictions

    def _learn_parts(
        self,
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
        """Learn rows part by part: what is new is registered at the row that brings it."""
        register: Callable[[], SchemaMigration | None] | None
        given = {"regions": regions, "ids": ids}
        arrays = {name: array for name, array in given.items() if array is not None}
        for span, is_turn, rows in plan.parts(self._is_limited):
            part, register = span, partial(self._registration, rows, names)
            matrix = rows.matrix
            if is_turn and predictions is not None:
                # The first row is predicted before anything new is registered, and then learned.
                first = slice(part.start, part.start + 1)
                own = {name: array[first] for name, array in arrays.items()}
                row = rows.first_row_before()
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

    @property
    def _is_limited(self) -> bool:
        return bool(self._parameters.get("max_bytes"))

    @abstractmethod
    def _has_room(self, plan: EncodedRows, names: tuple[Label, ...], weights: FloatArray) -> bool:
        """Return whether new names and labels of rows fit, however the model grows meanwhile.

        Parameters
        ----------
        plan : EncodedRows
            Of the rows.
        names : tuple
            Of several targets; none of one.
        weights : array
            Of the rows.
        """

    def _gaps(self, plan: EncodedRows, known: KnownFeatures) -> Gaps | None:
        """Return how often columns were missing once rows are learned; None if that is no news."""
        if plan.is_complete or not self._features.flagging:
            return None
        counts = missing_flags.counted(self._features, known, plan.matrix)
        return None if counts is None else Gaps(counts, missing_flags.are_due(counts))

    def _fitting(self, y: targets.Targets) -> tuple[tuple[Label, ...], FloatArray]:
        """Return the names of several targets (none of one), and y in their order."""
        return targets.fitting(y, self._features.known.targets, self._kernel.rows > 0, self.kind)

    def _check_slots(self, tree: TreeKernel) -> None:
        """Raise unless the leaves of a tree that is to learn several targets watch by slots."""
        if tree.observing.by_observers:
            raise ValueError(
                f"observer = {self._parameters['observer']!r}: with several targets a tree watches "
                "its features by slots: leave it out, or give QuantizerObserver(slots=...)"
            )

    def _place_of(self, target: Label) -> int:
        """Return the place of one of several targets, given its name."""
        names = self._features.known.targets
        if target not in names:
            raise ValueError(
                f"target = {validation.shown(target)}: one of {', '.join(map(validation.shown, names))} is "
                "expected"
                if names
                else f"target = {validation.shown(target)}: the model has one target, without a name; "
                "leave it out"
            )
        return names.index(target)

    @abstractmethod
    def _registration(self, plan: EncodedRows, names: tuple[Label, ...]) -> SchemaMigration | None:
        """Return the new names and labels of rows, while no other thread may change the model.

        Parameters
        ----------
        plan : EncodedRows
            Of the rows.
        names : tuple
            Of several targets; none of one.
        """

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        # A state holds the arrays of the kernel themselves, which nobody may change meanwhile.
        data: bytes = self._kernel.read_locked(super().to_bytes)
        return data

    def copy(self) -> Self:
        """Return an independent copy."""
        made: Self = self._of_same_rows(super().copy())
        if self._growth_of is not None:
            made._use_growth(self._growth_of)
        return made

    def _use_growth(self, growth_of: GrowthOf) -> None:
        """Grow by other rules from now on; they are copied with the model, but not saved."""
        raise NotImplementedError

    def _of_same_rows(self, model: Any) -> Any:
        """Return a model that has the rows of this one: then they cannot be merged."""
        if self._kernel.rows > 0:
            model._origin = self._origin
        return model

    def _detached_state(self) -> State:
        state: State = self._kernel.read_locked(super()._detached_state)
        return state

    # -- what it is ---------------------------------------------------------------------------

    @property
    def _schema_holder(self) -> Features:
        return self._features

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one."""
        return dict(self._parameters)

    @property
    def features(self) -> list[Label]:
        """The names of the features, in the order of their first appearance."""
        return list(self._features.known.given)

    @property
    def targets(self) -> list[Label]:
        """The names of several targets, in their order; none if there is one, or none yet."""
        return list(self._features.known.targets)

    @property
    def feature_kinds(self) -> dict[Label, str]:
        """What each feature is: "number" or "category".

        It is "unknown" if it was always missing, and "identifier" if it is a category whose
        values hardly ever occur twice: then it counts as missing.
        """
        known = self._features.known
        kinds = dict(zip(known.names, known.kinds, strict=True))
        return {name: kinds[name] for name in known.given}

    @property
    @abstractmethod
    def n_leaves(self) -> int:
        """How many leaves the model has."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that the model occupies."""

    @property
    @abstractmethod
    def feature_importances(self) -> dict[str, float]:
        """The share of each feature in what the model explains; sums to 1."""

    @property
    @abstractmethod
    def summary(self) -> Any:
        """The model in a few numbers; `print` it to read it."""

    @abstractmethod
    def to_text(self, max_depth: int | None = None, digits: int = 4) -> str:
        """Return the model as indented text."""

    def __repr__(self) -> str:
        default: dict[str, Any] = type(self)()._parameters  # type: ignore[call-arg]
        arguments = ", ".join(
            f"{name}={value!r}"
            for name, value in self._parameters.items()
            if repr(value) != repr(default[name])
        )
        return f"<{self.kind}({arguments}): {self._size()}, {int(self._kernel.rows)} rows learned>"

    @abstractmethod
    def _size(self) -> str:
        """Return how large the model is, in words."""


def _by_ids(ids: Any) -> dict[str, Any]:
    """Return what a kernel takes of the ids of rows."""
    return {} if ids is None else {"ids": keys_of(ids)}


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
            refuse_row(value, w, row, targets.told(name))
    known = y[~np.isnan(y)]
    if not len(known):
        place = "" if row is None else f" at position {row}"
        raise ValueError(f"y{place} has no target that is not missing: {targets.MISSING}")
    refuse_row(known[0], w, row)
