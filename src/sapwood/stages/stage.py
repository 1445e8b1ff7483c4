"""The base of stages: one lock, work that is finished or undone, and explicit delegation.

A stage is a model around another. To write one, derive from `Stage`, and state

- how it predicts and learns, each under `with self._turn():`, which lets no other thread learn or
  save meanwhile, and finishes what an interruption has left undone;
- each learning as ``self._both(learn, finish, is_due)``: the model inside learns by `learn`, then
  the stage takes it in by `finish`, in one step that cannot fail. If anything breaks off in
  between, the next call finishes it, so that all stages know a row, or none does;
- each further method that it offers: `passed_on` for those of the model inside that do not depend
  on rows, `offered` for those that pass through the stage's own transformation. Nothing is
  forwarded that is not listed, and no other public attribute can be set;
- which models it cannot be put around: see `sapwood.stages.order`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from sapwood import validation
from sapwood.model import StoredModel
from sapwood.row_methods import RowMethods, RowsToLearn
from sapwood.rows.encoder import is_rows
from sapwood.stages._turn import Turn
from sapwood.stages.protocol import EncodedBatch, Prediction

__all__ = ["RowStage", "Stage", "offered", "passed_on", "rows_learned"]


class passed_on:  # noqa: N801 - it is used as a function is
    """A method or property of the model inside that does not depend on rows.

    It is there if the model has it.

    Parameters
    ----------
    documentation : str
        What it is.
    settable : bool
        Whether another value may be assigned, which becomes that of the model inside.
    """

    def __init__(self, documentation: str, settable: bool = False) -> None:
        self.__doc__ = documentation
        self._settable = settable

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stage: Any, owner: type | None = None) -> Any:
        if stage is None:
            return self
        try:
            return getattr(stage.model, self._name)
        except AttributeError:
            if hasattr(type(stage.model), self._name):
                raise
            raise AttributeError(_not_offered(stage, self._name)) from None

    def __set__(self, stage: Any, value: Any) -> None:
        if not self._settable or not hasattr(type(stage.model), self._name):
            raise AttributeError(_cannot_set(stage, self._name))
        setattr(stage.model, self._name, value)


class offered:  # noqa: N801
    """A method of a stage that exists only if the model inside has it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stage: Any, owner: type | None = None) -> Any:
        if stage is None:
            return self._method
        if not hasattr(stage.model, self._name):
            raise AttributeError(_not_offered(stage, self._name))
        return self._method.__get__(stage, owner)


def _not_offered(stage: Any, name: str) -> str:
    return (
        f"{type(stage).__name__} offers {name} if the model inside does, and a "
        f"{type(stage.model).__name__} does not"
    )


def _cannot_set(stage: Any, name: str) -> str:
    return (
        f"{name} of a {type(stage).__name__} cannot be set: it would change nothing; give it to the "
        "model inside when that is made, or set it there (.model)"
    )


class Stage(StoredModel):
    """A model around another model, such as lags or prediction intervals."""

    _is_stage = True  # as `isinstance` takes long for each row

    def __init__(self) -> None:
        super().__init__()
        self._turns = Turn()

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(_cannot_set(self, name))
        super().__setattr__(name, value)

    @property
    def model(self) -> Any:
        """The model inside."""
        raise NotImplementedError

    def _encoded_one(self, x: Any) -> Any:
        """Return one row as the schema of the innermost model encodes it."""
        if type(x) is not dict and not isinstance(x, Mapping):
            raise ValueError(f"x = {validation.shown(x)}: a dict of features is expected")
        encode = getattr(self.model, "_encoded_one", None)
        return super()._encoded_one(x) if encode is None else encode(x)

    def _encoded(self, X: Any) -> Any:
        """Return many rows as the schema encodes them; dicts stay dicts, which may lack features."""
        if not is_rows(X) or not self.schema.converting:
            return super()._encoded(X)
        try:
            return [self.schema.encode_one(x) for x in X]
        except ValueError:
            self.schema.encode(X)  # which names the row at fault
            raise

    def _turn(self) -> Turn:
        """Let no other thread learn, save or copy meanwhile, in a ``with`` statement."""
        return self._turns

    def _both(
        self, learn: Callable[[], Any], finish: Callable[[], Any], is_due: Callable[[], bool]
    ) -> Any:
        """Let the model inside learn, and this stage after it: both, or neither.

        Parameters
        ----------
        learn : callable
            Lets the model inside learn, or changes nothing.
        finish : callable
            Lets this stage take in what was learned.
        is_due : callable
            Whether it has not done so yet.
        """
        before, turn = self._progress, self._turns

        def is_unfinished() -> bool:
            if getattr(self.model, "_is_stage", False):
                with self.model._turn():  # which finishes what `finish` may need of it
                    pass
            return self._progress != before and is_due()

        turn.unfinished = finish, is_unfinished
        try:
            found = learn()
        except Exception:
            turn.settle()
            raise
        finish()
        turn.unfinished = None
        return found

    @property
    def _progress(self) -> Any:
        """What changes when the model inside has learned rows."""
        return rows_learned(self.model)

    def _surely(self, finish: Callable[[], None], is_due: Callable[[], bool]) -> None:
        """Do something that is finished by the next call if it is interrupted."""
        self._turns.unfinished = finish, is_due
        finish()
        self._turns.unfinished = None

    @property
    def rows_learned(self) -> float | None:
        """How many rows the model inside has learned, None if it does not report it."""
        return rows_learned(self.model)


class RowStage(RowMethods, Stage):
    """A stage that takes rows as a regressor does."""

    def predict(self, batch: EncodedBatch) -> Prediction:
        """Predict the rows of a batch; see `sapwood.stages`."""
        values, regions = self._place_many(batch.columns, batch.token)
        return Prediction(values, batch.token, regions)

    def learn(self, batch: EncodedBatch, y: Any, w: ArrayLike | None = None) -> None:
        """Learn the labels of a batch, found by its token."""
        self._learn_many(RowsToLearn(batch.columns, y, w, batch.token, predicting=False))


def rows_learned(model: Any) -> float | None:
    """Return how many rows a model has learned, None if it does not report it."""
    if getattr(model, "_is_stage", False):
        return rows_learned(model.model)
    rows: float | None = getattr(getattr(model, "_kernel", None), "rows", None)
    return rows
