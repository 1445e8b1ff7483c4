"""What all regressors of Sapwood share: the ways in for rows, and out for predictions.

They differ by the kernel that they hand rows to, and by what new features make of it.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import door
from sapwood.door import Label
from sapwood.foreign_calls import ForeignCalls
from sapwood.model import State, StoredModel
from sapwood.rows import frames
from sapwood.rows._dict_row import RowReader
from sapwood.rows.encoder import Plan
from sapwood.rows.features import Features
from sapwood.tree._kernel import refuse_row
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

    def __init__(self, parameters: dict[str, Any], features: Features, kernel: Any) -> None:
        super().__init__()
        self._parameters = parameters
        self._features = features
        self._reader = RowReader(features)
        self._kernel = kernel

    # -- learning and predicting ------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features: numbers, bools, strings; None, NaN or nothing where a value is missing.
        y : float
            The target: any finite number.
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
            y = door.number(y, "y")
        if type(w) is not float:
            w = door.number(w, "w")
        if not self._kernel.learn_one(self._reader, x, y, w):
            # It brings something new, or something bad; y and w were found good.
            self._kernel.in_turn(self._learn_odd, x, np.array([y]), np.array([w]))

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict one row; nothing is changed.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`. Unknown ones are ignored, with a warning if there
            are no others; unknown categories count as missing.

        Returns
        -------
        float
            The prediction; 0.0 before anything was learned.
        """
        prediction: float | None = self._kernel.predict_one(self._reader, x)
        while prediction is None:  # it is not plain
            predictions = self._predict_plan(self._features.read_one(x, learn=False))
            prediction = None if predictions is None else float(predictions[0])
        return prediction

    def learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop, or nothing at all.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features. Columns of an array are the features in the order in which they were
            first seen, or named 0, 1, … if there are none yet. Frames are those of pandas, polars
            and pyarrow, or any Arrow stream.
        y : array_like or series of float, shape (n,)
            The targets, by position: an index does not count.
        w : array_like or series of float, shape (n,), optional
            The weights; 1 each if not given.
        """
        self._learn(X, y, w, None)

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
            "prediction", with the index of the frame; for one of pyarrow an array of pyarrow.
        """
        rows, predictions = frames.lasting(X), None
        while predictions is None:
            predictions = self._predict_plan(self._features.read(rows, learn=False))
        return frames.like(X, predictions)

    def predict_learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> Any:
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
        predictions = np.empty(np.shape(y)[:1])
        self._learn(X, y, w, predictions)
        return frames.like(X, predictions)

    def learn_telling(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> FloatArray:
        """Learn many rows, and return what would have been said of each just before.

        As `predict_learn_many`, but nobody has asked: a row that was predicted before is judged by
        what was said then.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        """
        predictions = np.empty(np.shape(y)[:1])
        self._learn(X, y, w, predictions, asked=False)
        return predictions

    def _predict_plan(self, plan: Plan, **own: Any) -> FloatArray | None:
        """Predict rows; None if they have to be read again, as there are new features since."""
        predictions = np.empty(len(plan.matrix))
        if self._kernel.predict(plan.matrix, predictions, plan.is_current, **own):
            return predictions
        return None

    def _learn(
        self,
        X: Any,
        y: ArrayLike,
        w: ArrayLike | None,
        predictions: FloatArray | None,
        **own: Any,
    ) -> None:
        # What is converted may run code of its own, and has to before X is read.
        targets = np.ascontiguousarray(door.column(y, "y"))
        weights = door.weights(w, len(targets))
        learn = partial(self._learn_rows, **own)
        self._kernel.in_turn(learn, X, targets, weights, predictions)

    def _learn_rows(
        self,
        X: Any,
        targets: FloatArray,
        weights: FloatArray,
        predictions: FloatArray | None,
        **own: Any,
    ) -> None:
        """Read rows and learn them, in this thread's turn."""
        plan = self._features.read(X, learn=True)
        if len(targets) != len(plan.matrix):
            raise ValueError(
                f"X has {len(plan.matrix)} rows and y has {len(targets)} values: the lengths must "
                "agree"
            )
        self._learn_plan(plan, targets, weights, predictions, **own)

    def _learn_odd(self, x: Any, targets: FloatArray, weights: FloatArray) -> None:
        """Learn a row that is not read the quick way, in this thread's turn."""
        self._learn_plan(self._features.read_one(x, learn=True), targets, weights)

    def _learn_plan(
        self,
        plan: Plan,
        targets: FloatArray,
        weights: FloatArray,
        predictions: FloatArray | None = None,
        **own: Any,
    ) -> None:
        """Learn rows that were read, if their y and weights are good; `own` is of the kernel."""
        bad = self._kernel.check(targets, weights)
        if bad >= 0:
            refuse_row(targets[bad], weights[bad], bad)
        regions, asked = own.pop("regions", None), own.pop("asked", True)
        if not plan.is_whole:
            self._registration(plan)  # there is room for all of it, or none of it is learned
        for span, is_turn, rows in plan.parts():
            register: Callable[[], Registration | None] | None
            part, matrix, register = span, rows.matrix, partial(self._registration, rows)
            if is_turn and predictions is not None:
                # The first row is predicted before anything new is registered, and then learned.
                first = slice(part.start, part.start + 1)
                row = np.ascontiguousarray(matrix[:1, : rows.width_before])
                own = {} if regions is None else {"regions": regions[first]}
                self._kernel.predict(row, predictions[first], asked=asked, **own)
                self._kernel.learn(matrix[:1], targets[first], weights[first], None, register)
                part, matrix, register = slice(first.stop, part.stop), matrix[1:], None
            own = {} if regions is None else {"regions": regions[part]}
            said = None if predictions is None else predictions[part]
            self._kernel.learn(
                matrix, targets[part], weights[part], said, register, asked=asked, **own
            )

    @abstractmethod
    def _registration(self, plan: Plan) -> Registration | None:
        """Return what rows bring that is new, once nobody else may change the model."""

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
