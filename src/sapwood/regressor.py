"""What all regressors of Sapwood share: the ways in for rows, and out for predictions.

They differ by the kernel that they hand rows to, and by what new features make of it.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.deprecation import deprecated
from sapwood.foreign_calls import ForeignCalls
from sapwood.inspect.anomaly import AnomalyScores
from sapwood.model import State, StoredModel
from sapwood.row_learning import RowLearning
from sapwood.rows._dict_row import RowReader
from sapwood.rows.features import Features
from sapwood.tree._schema_migration import SchemaMigration
from sapwood.tree.growth import GrowthRules
from sapwood.validation import Label

__all__ = ["GrowthOf", "Regressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
GrowthOf = Callable[[GrowthRules, float, int], GrowthRules]
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


class Regressor(RowLearning, StoredModel, ForeignCalls, AnomalyScores):
    """A model of rows with named features, numbers and categories.

    - `parameters`: the arguments that make an empty model like this one.
    - `features`: by which rows are read.
    - `kernel`: what learns and predicts.
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

    # -- deprecated -------------------------------------------------------------------------------

    def learn_telling(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Learn delayed rows: deprecated, use ``predict_learn_many(X, y, w, delayed=True)``."""
        deprecated("learn_telling(X, y, w)", "predict_learn_many(X, y, w, delayed=True)")
        return self.predict_learn_many(X, y, w, delayed=True)

    def tell_one(self, x: dict[Any, Any]) -> Any:
        """Predict one row: deprecated, use ``predict_one(x, record=False)``."""
        deprecated("tell_one(x)", "predict_one(x, record=False)")
        return self.predict_one(x, record=False)

    # -- files and copies -------------------------------------------------------------------------

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
        return self._features.known.kinds_given

    @property
    @abstractmethod
    def n_leaves(self) -> int:
        """The number of leaves of the model."""

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
