"""What all regressors of Sapwood share: the ways in for rows, and out for predictions.

They differ by the kernel that they hand rows to, and by what new features make of it.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import door
from sapwood.door import Label
from sapwood.foreign_calls import ForeignCalls
from sapwood.model import State, StoredModel
from sapwood.rows import frames, targets
from sapwood.rows._dict_row import RowReader
from sapwood.rows.encoder import Plan
from sapwood.rows.features import Features
from sapwood.tree._kernel import LARGEST_Y, TreeKernel, refuse_row
from sapwood.tree._relay import Registration

__all__ = ["Regressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


class Kernel(Protocol):
    """What rows are handed to, once they are numbers."""

    rows: float

    def learn_one(self, reader: RowReader, x: Any, y: float, w: float) -> bool:
        """Learn a row, or return False if it brings something new or bad."""

    def predict_one(self, reader: RowReader, x: Any) -> float | None:
        """Predict a row, or return None if it cannot be read as it is."""

    def check(self, y: FloatArray, w: FloatArray) -> int:
        """Return the first row that may not be learned, or -1."""

    def learn(
        self,
        X: FloatArray,
        y: FloatArray,
        w: FloatArray,
        predictions: FloatArray | None = None,
        register: Callable[[], Registration | None] | None = None,
    ) -> None:
        """Learn rows that passed the door."""

    def predict(
        self,
        X: FloatArray,
        predictions: FloatArray,
        is_current: Callable[[], bool] | None = None,
    ) -> bool:
        """Predict rows, or return False if they have to be read again."""

    def while_still(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, while which nothing is changed."""

    def in_turn(self, learn: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, while which no other thread learns."""


class Regressor(StoredModel, ForeignCalls):
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

    several_targets: ClassVar[bool] = True  # which all of them can learn

    def __init__(self, parameters: dict[str, Any], features: Features, kernel: Any) -> None:
        super().__init__()
        self._parameters = parameters
        self._features = features
        self._reader = RowReader(features)
        self._kernel = kernel

    # -- learning and predicting ------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
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

        Raises
        ------
        ValueError, OverflowError
            If a value is not as said; nothing is changed then.

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
        # What is no float may run code of its own, and has to before anything else is read.
        if type(y) is not float:
            if isinstance(y, Mapping | list | tuple | np.ndarray):
                self._learn_targets_one(x, targets.read_one(y), w)
                return
            y = door.number(y, "y")
        if type(w) is not float:
            w = door.number(w, "w")
        if not self._kernel.learn_one(self._reader, x, y, w):
            # It brings something new, or something bad; y and w were found good.
            read = targets.Targets(None, np.array([y]))
            self._kernel.in_turn(self._learn_odd, x, read, np.array([w]))

    def _learn_targets_one(self, x: dict[Any, Any], y: targets.Targets, w: float) -> None:
        """Learn one row of several targets."""
        weight = door.number(w, "w")
        known = self._features.known.targets
        is_plain = bool(known) and (y.names == known or y.names is None)
        if is_plain and self._kernel.learn_targets_one(self._reader, x, y.values[0], weight):
            return
        self._kernel.in_turn(self._learn_odd, x, y, np.array([weight]))

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """Predict one row; nothing is changed.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`. Unknown ones are ignored, with a warning if there
            are no others; unknown categories count as missing.

        Returns
        -------
        float, or dict of float
            The prediction; 0.0 before anything was learned. Of several targets, that of each.
        """
        prediction: float | None = self._kernel.predict_one(self._reader, x)
        while prediction is None:  # it is not plain, or there are several targets
            if self._features.known.targets:
                return self._predict_targets_one(x)
            predictions = self._predict_plan(self._features.read_one(x, learn=False))
            prediction = None if predictions is None else float(predictions[0])
        return prediction

    def _predict_targets_one(self, x: dict[Any, Any]) -> dict[Label, float]:
        """Predict several targets of one row."""
        found: list[float] | None = self._kernel.predict_targets_one(self._reader, x)
        while found is None:
            predictions = self._predict_plan(self._features.read_one(x, learn=False))
            found = None if predictions is None else predictions[0].tolist()
        return targets.named(self._features.known.targets, found)

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None) -> None:
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
        """
        self._learn(X, y, w, predicting=False)

    def predict_many(self, X: Any) -> Any:
        """Predict many rows: the same as `predict_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for `learn_many`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            The predictions: for a frame of pandas or polars a series of that library named
            "prediction", with the index of the frame; for one of pyarrow an array of pyarrow. Of
            several targets: for a frame one with a column for each, for a mapping a dict of
            columns, for all else an array of shape (n, targets).
        """
        rows, predictions = frames.lasting(X), None
        while predictions is None:
            predictions = self._predict_plan(self._features.read(rows, learn=False))
        return self._in_kind(X, predictions)

    def _in_kind(self, X: Any, predictions: FloatArray) -> Any:
        if predictions.ndim == 1:
            return frames.like(X, predictions)
        return targets.in_kind(X, predictions, self._features.known.targets)

    def predict_learn_many(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Predict each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            What `predict_one` would have returned for each row just before `learn_one`; of the
            type that `predict_many` returns.
        """
        return self._in_kind(X, self._learn(X, y, w, predicting=True))

    def learn_telling(self, X: Any, y: Any, w: ArrayLike | None = None) -> FloatArray:
        """Learn many rows, and return what would have been said of each just before.

        As `predict_learn_many`, but nobody has asked: a row that was predicted before is judged by
        what was said then.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        """
        return self._learn(X, y, w, predicting=True, asked=False)

    def tell_one(self, x: dict[Any, Any]) -> Any:
        """Return what `predict_one` would, though nobody has asked: it is not judged by that.

        Parameters
        ----------
        x : dict
            The features.
        """
        predictions = None
        while predictions is None:
            plan = self._features.read_one(x, learn=False)
            predictions = self._predict_plan(plan, asked=False)
        told = predictions[0].tolist()
        return targets.named(plan.targets, told) if plan.targets else told

    def _predict_plan(self, plan: Plan, **own: Any) -> FloatArray | None:
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
        predicting: bool,
        **own: Any,
    ) -> FloatArray:
        """Learn rows, and return what was predicted just before, if that is wanted."""
        # What is converted may run code of its own, and has to before X is read.
        read = targets.read(y)
        weights = door.weights(w, len(read.values))
        learn = partial(self._learn_rows, **own)
        found: FloatArray = self._kernel.in_turn(learn, X, read, weights, predicting)
        return found

    def _learn_rows(
        self,
        X: Any,
        y: targets.Targets,
        weights: FloatArray,
        predicting: bool,
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

    def _learn_odd(self, x: Any, y: targets.Targets, weights: FloatArray) -> None:
        """Learn a row that is not read the quick way, in this thread's turn."""
        self._learn_plan(self._features.read_one(x, learn=True), y, weights)

    def _learn_plan(
        self,
        plan: Plan,
        y: targets.Targets,
        weights: FloatArray,
        predicting: bool = False,
        **own: Any,
    ) -> FloatArray | None:
        """Learn rows that were read, if their y and weights are good; `own` is of the kernel."""
        names, values = self._fitting(y)
        predictions = np.empty(values.shape) if predicting else None
        flat = values.reshape(-1)
        bad = self._kernel.check(flat, weights, *([len(names)] if names else []))
        if bad >= 0:
            _refuse(names, values[bad], weights[bad], bad if len(values) > 1 or not names else None)
        register: Callable[[], Registration | None] | None
        if names:  # then no category becomes one of many
            register = partial(self._registration, plan, names)
            said = None if predictions is None else predictions.reshape(-1)
            self._kernel.learn(plan.few_codes(names), flat, weights, said, register, **own)
            return predictions
        regions, asked = own.pop("regions", None), own.pop("asked", True)
        if not plan.is_whole:
            self._registration(plan, ())  # there is room for all of it, or none of it is learned
        for span, is_turn, rows in plan.parts():
            part, matrix, register = span, rows.matrix, partial(self._registration, rows, ())
            if is_turn and predictions is not None:
                # The first row is predicted before anything new is registered, and then learned.
                first = slice(part.start, part.start + 1)
                row = np.ascontiguousarray(matrix[:1, : rows.width_before])
                own = {} if regions is None else {"regions": regions[first]}
                self._kernel.predict(row, predictions[first], asked=asked, **own)
                self._kernel.learn(matrix[:1], values[first], weights[first], None, register)
                part, matrix, register = slice(first.stop, part.stop), matrix[1:], None
            own = {} if regions is None else {"regions": regions[part]}
            said = None if predictions is None else predictions[part]
            self._kernel.learn(
                matrix, values[part], weights[part], said, register, asked=asked, **own
            )
        return predictions

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
                f"target = {door.shown(target)}: one of {', '.join(map(door.shown, names))} is "
                "expected"
                if names
                else f"target = {door.shown(target)}: the model has one target, without a name; "
                "leave it out"
            )
        return names.index(target)

    @abstractmethod
    def _registration(self, plan: Plan, names: tuple[Label, ...]) -> Registration | None:
        """Return what rows bring that is new, once nobody else may change the model.

        Parameters
        ----------
        plan : Plan
            Of the rows.
        names : tuple
            Of several targets; none of one.
        """

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        # A state holds the arrays of the kernel themselves, which nobody may change meanwhile.
        data: bytes = self._kernel.while_still(super().to_bytes)
        return data

    def _detached_state(self) -> State:
        state: State = self._kernel.while_still(super()._detached_state)
        return state

    # -- what it is ---------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one."""
        return dict(self._parameters)

    @property
    def features(self) -> list[Label]:
        """The names of the features, in the order of their first appearance."""
        return list(self._features.known.names)

    @property
    def targets(self) -> list[Label]:
        """The names of several targets, in their order; none if there is one, or none yet."""
        return list(self._features.known.targets)

    @property
    def feature_kinds(self) -> dict[Label, str]:
        """What each feature is: "number" or "category".

        It is "unknown" if it was always missing, and "identifier" if it is a category whose
        values hardly ever came twice: then it counts as missing.
        """
        known = self._features.known
        return dict(zip(known.names, known.kinds, strict=True))

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
