"""The base of stages: one lock, work that is finished or undone, and explicit delegation.

A stage is a model around another. To write one, derive from `Stage`, and state

- how it predicts and learns, each under `with self._turn():`, which lets no other thread learn or
  save meanwhile, and finishes what an interruption has left undone;
- each learning as ``self._both(learn, finish, is_due)``: the model inside learns by `learn`, then
  the stage takes it in by `finish`, in one step that cannot fail. If anything breaks off in
  between, the next call finishes it, so that all stages know a row, or none does;
- each further method that it offers: `passed_on` for those of the model inside that do not depend
  on rows, `offered` for those that pass through the stage's own transformation. Nothing is
  forwarded that is not listed.
"""

import threading
from collections.abc import Callable
from typing import Any

from sapwood.model import StoredModel

__all__ = ["Stage", "offered", "passed_on", "rows_learned"]


class passed_on:  # noqa: N801 - it is used as a function is
    """A method or property of the model inside that does not depend on rows.

    It is there if the model has it.
    """

    def __init__(self, documentation: str) -> None:
        self.__doc__ = documentation

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stage: Any, owner: type | None = None) -> Any:
        if stage is None:
            return self
        return getattr(stage.model, self._name)

    def __set__(self, stage: Any, value: Any) -> None:
        setattr(stage.model, self._name, value)


class offered:  # noqa: N801
    """A method that passes through a stage; it is there if the model inside has it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stage: Any, owner: type | None = None) -> Any:
        if stage is None:
            return self._method
        if not hasattr(stage.model, self._name):
            raise AttributeError(
                f"{type(stage).__name__} offers {self._name} if the model inside does, and a "
                f"{type(stage.model).__name__} does not"
            )
        return self._method.__get__(stage, owner)


class _Turn:
    """The turn of a thread in a stage."""

    def __init__(self, stage: "Stage") -> None:
        self._stage = stage
        self._acquire, self._release = stage._lock.acquire, stage._lock.release

    def __enter__(self) -> None:
        self._acquire()
        if self._stage._unfinished is not None:
            try:
                self._stage._settle()
            except BaseException:
                self._release()
                raise

    def __exit__(self, *error: object) -> None:
        self._release()


class Stage(StoredModel):
    """Something around a model that is itself a model."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._turns = _Turn(self)
        self._unfinished: tuple[Callable[[], Any], Callable[[], bool]] | None = None

    @property
    def model(self) -> Any:
        """The model inside."""
        raise NotImplementedError

    def _encoded_one(self, x: Any) -> Any:
        """Return one row as the schema of the innermost model encodes it."""
        model = self.model
        while isinstance(model, Stage):
            model = model.model
        features = getattr(model, "_features", None)
        if features is None:
            return super()._encoded_one(x)
        return x if features.encoding is None else features.encoding.encode_one(x)

    def _turn(self) -> "_Turn":
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
        rows = rows_learned(self.model)
        self._unfinished = finish, lambda: rows_learned(self.model) != rows and is_due()
        try:
            found = learn()
        except Exception:
            self._settle()
            raise
        finish()
        self._unfinished = None
        return found

    def _surely(self, finish: Callable[[], None], is_due: Callable[[], bool]) -> None:
        """Do something that is finished by the next call if it is interrupted."""
        self._unfinished = finish, is_due
        finish()
        self._unfinished = None

    def _settle(self) -> None:
        """Finish what an interruption has left undone, if it is due."""
        if self._unfinished is None:
            return
        finish, is_due = self._unfinished
        if is_due():
            finish()
        self._unfinished = None

    @property
    def rows_learned(self) -> float | None:
        """How many rows the model inside has learned, None if it does not report it."""
        return rows_learned(self.model)


def rows_learned(model: Any) -> float | None:
    """Return how many rows a model has learned, None if it does not report it."""
    if isinstance(model, Stage):
        return model.rows_learned
    rows: float | None = getattr(getattr(model, "_kernel", None), "rows", None)
    return rows
