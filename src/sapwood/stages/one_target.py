"""The base of stages around models of Sapwood of one target.

Such a stage defines three things, for one row and for many alike:

- `_predicted`: what it predicts for rows, given what the models inside predict for them;
- `_learn`: how it learns rows with labels;
- `_own_state` and `_restored_around`: what a file holds of it but for the models inside.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.model import State, from_bytes
from sapwood.regressor import Regressor
from sapwood.row_methods import RowsToLearn
from sapwood.rows import frames, targets
from sapwood.rows.column import UNKNOWN
from sapwood.stages.rows import GivenRow, GivenRows
from sapwood.stages.stage import RowStage, Stage, passed_on, rows_learned
from sapwood.validation import Label

__all__ = [
    "LabelledRows",
    "OneTargetStage",
    "check_entries",
    "checked_model",
    "checked_numbers",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

INNER = "model"  # the array of a file with the model inside; of several, with a number
MOST = 32  # models


class LabelledRows(NamedTuple):
    """Rows that are learned.

    Parameters
    ----------
    rows : GivenRow or GivenRows
        The rows.
    y, w : array of float
        Labels and weights.
    found : array of float
        Gets what is predicted just before each row.
    regions : array of int, optional
        Gets the regions of rows.
    delayed : bool
        Whether the rows were predicted before.
    """

    rows: Any
    y: FloatArray
    w: FloatArray
    found: FloatArray
    regions: IntArray | None = None
    delayed: bool = True


class OneTargetStage(RowStage):
    """A stage around models of one target."""

    _one: ClassVar[str]  # why there is one target, and what to do with several
    _numbered: ClassVar[bool] = False  # whether there may be several models inside

    parameters = passed_on("The arguments that make an empty model like the one inside.")
    features = passed_on("The names of the features, in the order of their first appearance.")
    feature_importances = passed_on("The share of each feature; sums to 1.")
    n_leaves = passed_on("The number of leaves of the model.")

    # -- what a stage defines ---------------------------------------------------------------------

    @abstractmethod
    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        """Return the predictions of rows and their regions; of one row, its region."""

    @abstractmethod
    def _learn(self, batch: LabelledRows) -> None:
        """Learn rows: all, or none."""

    def _row(self, x: Any, key: int) -> Any:
        """Return a row as the stage gets it, given the key of its id."""
        return GivenRow(x, key)

    def _rows(self, X: Any, keys: Any) -> Any:
        """Return many rows as the stage gets them, given the keys of their ids."""
        return GivenRows(X, keys)

    def _inside(self) -> list[Any]:
        """Return all models inside."""
        return [self.model]

    @abstractmethod
    def _own_bytes(self) -> int:
        """Return how many bytes the stage occupies without the models inside."""

    # -- rows -------------------------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        row = self._row(self._encoded_one(x), key)
        with self._turns:
            found, region = self._predicted(row, record)
            return float(found[0]), region

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        X = frames.lasting(self._encoded(X))
        with self._turns:
            return self._predicted(self._rows(X, keys), record)

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        label = np.array([y if type(y) is float else validation.number(y, "y")])
        weight = np.array([w if type(w) is float else validation.number(w, "w")])
        self._check_labels(label)
        row = self._row(self._encoded_one(x), key)
        with self._turns:
            self._learn(LabelledRows(row, label, weight, np.empty(1)))

    def _learn_many(self, batch: RowsToLearn) -> FloatArray:
        labels = self._labels_of(batch.y)
        validation.check_ids(batch.keys, len(labels))
        weights = np.ascontiguousarray(validation.weights(batch.w, len(labels)))
        X, found = frames.lasting(self._encoded(batch.X)), batch.found(labels.shape)
        with self._turns:
            rows = self._rows(X, batch.keys)
            own = LabelledRows(rows, labels, weights, found, batch.regions, batch.delayed)
            self._learn(own)
        return found

    def _labels_of(self, y: Any) -> FloatArray:
        """Return the labels of one target, if each of them can be learned."""
        read = targets.read(y)
        if read.values.ndim > 1 and read.values.shape[1] > 1:
            raise ValueError(f"y has several targets: {self._one}")
        labels = np.array(read.values, np.float64).reshape(-1)
        self._check_labels(labels)
        return labels

    def _check_labels(self, y: FloatArray) -> None:
        """Raise ValueError if the stage cannot learn a label."""

    def _learn_all(
        self, calls: Sequence[Callable[[], Any]], finish: Callable[[], Any], is_due: Any
    ) -> None:
        """Let all models inside learn the same rows, and the stage after them: all, or none.

        Parameters
        ----------
        calls : sequence of callables
            How each model learns. What the first one accepts, the others have to accept.
        finish, is_due : callables
            As for `_both`.
        """
        models = self._inside()
        rows = rows_learned(models[0])

        def follow() -> None:
            for call, model in zip(calls[1:], models[1:], strict=True):
                if rows_learned(model) == rows:
                    call()
            finish()

        self._both(calls[0], follow, is_due)

    # -- looking inside, and files ----------------------------------------------------------------

    @property
    def feature_kinds(self) -> dict[Label, str]:
        """What each feature is: "unknown" if the model inside has had no value of it."""
        kinds = self.model.feature_kinds
        return {name: kinds.get(name, UNKNOWN) for name in self.features}

    @property
    def nbytes(self) -> int:
        """Bytes of the models inside, and of what the stage knows."""
        with self._turn():
            return sum(int(model.nbytes) for model in self._inside()) + self._own_bytes()

    @abstractmethod
    def _own_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays of a file, but for the models inside."""

    @classmethod
    @abstractmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        """Return a stage around models, in the state of a file; nothing of it is trusted."""

    @classmethod
    def _made(cls) -> Self:
        """Return a stage that has nothing yet."""
        made = cls.__new__(cls)
        Stage.__init__(made)
        return made

    def to_state(self) -> State:
        """Return all that the model is: a header for JSON, and arrays."""
        with self._turn():
            header, own = self._own_state()
            files = [np.frombuffer(model.to_bytes(), np.uint8) for model in self._inside()]
            return State(header, {**dict(zip(self._files(), files, strict=False)), **own})

    @classmethod
    def _files(cls) -> list[str]:
        """Return the names of the arrays with models."""
        return [f"{INNER} {place}" for place in range(MOST)] if cls._numbered else [INNER]

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = map(dict, state)
        files = [arrays.pop(name) for name in cls._files() if name in arrays]
        models = [from_bytes(each.tobytes(), "the model inside") for each in files]
        if not models or not all(isinstance(m, Regressor) and not m.targets for m in models):
            raise ValueError("a model inside is none of one target")
        if len({(type(model), rows_learned(model)) for model in models}) > 1:
            raise ValueError("its models have learned different rows")
        return cls._restored_around(models, State(header, arrays), format)


def check_entries(state: State, header: Collection[str], arrays: Collection[str]) -> None:
    """Raise ValueError unless a file has these entries, and no others."""
    if state.header.keys() != {*header}:
        raise ValueError("its header has other entries than it should")
    if state.arrays.keys() != {*arrays}:
        raise ValueError("its arrays are not those of such a model")


def checked_model(model: Any, outside: str, *, is_new: bool = True) -> Regressor:
    """Return a model that such a stage can be put around.

    Parameters
    ----------
    model : object
        What was given.
    outside : str
        What lags and prediction intervals are to be put around instead.
    is_new : bool
        Whether it may have learned nothing yet.

    Raises
    ------
    ValueError
        If it is no tree or forest of one target.
    """
    if not isinstance(model, Regressor):
        raise ValueError(
            f"model = {type(model).__name__}: a tree or forest of Sapwood is expected; put lags "
            f"and prediction intervals around {outside}"
        )
    if is_new and rows_learned(model):
        raise ValueError("the model has learned y itself: give a new one")
    return model


def checked_numbers(saved: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    """Return an array of finite numbers of a file.

    Parameters
    ----------
    saved : array
        What was saved.
    shape : tuple
        The shape that it has to have.
    what : str
        What it is, for the message.

    Raises
    ------
    ValueError
        If it is none.
    """
    if saved.dtype != np.float64 or saved.shape != shape:
        raise ValueError(f"{what} are not as they were saved")
    if not np.isfinite(saved).all():
        raise ValueError(f"{what} cannot be")
    return np.array(saved, np.float64)
