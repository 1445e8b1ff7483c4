"""A model that tries retired models after a drift alert."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.hybrid.members import ManyRows, OneRow, many_rows
from sapwood.model import State
from sapwood.recurring import files
from sapwood.recurring.learning import Learning
from sapwood.recurring.pool import Event, Held
from sapwood.row_methods import RowsToLearn
from sapwood.stages.one_target import LabelledRows, OneTargetStage, checked_model
from sapwood.tree._kernel import refuse_row
from sapwood.validation import Label

__all__ = ["RecurringRegressor"]

FloatArray = NDArray[np.float64]

USUAL_BYTES = 128 << 20


class RecurringRegressor(OneTargetStage):
    """A model for recurring concepts: keeps retired models, and uses one again if it is better.

    At a drift alert of the absolute errors, a copy of the model is kept in a pool, and the model
    continues. For 500 rows, copies of the models of the pool learn the same rows, and their errors
    are compared. One that is better by 4 standard deviations replaces the model in use.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target.
    pool : int
        The largest number of retired models, from 1 to 32. The least recently used one is dropped
        first.
    max_bytes : int
        The memory limit of the retired models: 128 MiB by default. During a trial, copies of them
        need about the same memory again.

    Notes
    -----
    It helps if concepts return, such as the modes of a machine, and if labels arrive soon. Until a
    retired model returns, the predictions are those of the model inside. During a trial of four
    retired models, a row takes about five times as long. The detector checks the errors every 25
    rows, so an alert and a return may each be 25 rows late. It ignores the weights of rows.

    References
    ----------
    J. Gama, P. Kosina, "Recurrent concepts in data streams classification", Knowledge and Information
    Systems 40, 2014.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> a, b = rng.random((2, 6_000))
    >>> is_first = np.arange(6_000) // 2_000 != 1
    >>> y = 9 * b * np.where(is_first, np.sin(6 * a), np.cos(9 * a)) + rng.normal(0, 0.1, 6_000)
    >>> model = sapwood.RecurringRegressor(sapwood.HoeffdingTreeRegressor())
    >>> model.learn_many({"a": a, "b": b}, y)
    >>> [event["event"] for event in model.events]
    ['new', 'returned']
    """

    kind: ClassVar[str] = "RecurringRegressor"
    format: ClassVar[int] = 1
    _one = "RecurringRegressor predicts one target; use a model for each"

    def __init__(self, model: Any, pool: int = 4, max_bytes: int = USUAL_BYTES) -> None:
        super().__init__()
        found = checked_model(model, "the model with a pool", is_new=False)
        if found.several_targets and found.targets:
            raise ValueError(f"the model has several targets: {self._one}")
        self._rules = files.checked_rules(pool, max_bytes)
        self._held = Held.of(found, self._rules)

    @property
    def model(self) -> Any:
        """The model in use."""
        return self._held.model

    @property
    def pool(self) -> int:
        """How many retired models may be kept."""
        return self._rules.most

    @property
    def max_bytes(self) -> int:
        """What retired models may occupy."""
        return self._rules.max_bytes

    @property
    def retired(self) -> int:
        """How many retired models there are."""
        return len(self._held.pool)

    @property
    def events(self) -> list[Event]:
        """The last 100 ends of trials.

        ``event`` is "returned" if a retired model replaced the model in use, or "new" if none was
        better; ``rows`` is how many rows were learned by then, ``pool`` the number of retired models.
        """
        return [dict(event) for event in self._held.events]

    @property
    def features(self) -> list[Label]:
        """The names of the features, in the order of their first appearance."""
        return list(self._held.features)

    @property
    def rows_learned(self) -> float:
        """How many rows were learned, by whichever model was in use."""
        return float(self._held.rows)

    # -- learning and predicting ------------------------------------------------------------------

    def _row(self, x: Any, key: int) -> Any:
        return OneRow(x, key)

    def _rows(self, X: Any, keys: Any) -> Any:
        return many_rows(X, keys, self._held.features)

    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        found: tuple[FloatArray, Any] = rows.place(self._held.model, record)
        return found

    def _learn(self, batch: LabelledRows) -> None:
        """Learn rows; if that is interrupted, the next call finishes it, unless it had not begun."""
        validation.check_labels(batch.rows.count, len(batch.y))
        learning = Learning(self, batch)
        if not learning.is_short:
            self._check(batch.rows, batch.y, batch.w)
        self._turns.unfinished = learning.finish, learning.is_due
        try:
            learning.finish()
        except Exception:
            self._turns.settle()
            raise
        self._turns.unfinished = None

    def _check(self, rows: ManyRows, y: FloatArray, w: FloatArray) -> None:
        """Raise ValueError or OverflowError if some rows may not be learned, before any is."""
        model = self._held.model
        bad = model._kernel.check(y, w)
        if bad >= 0:
            refuse_row(y[bad], w[bad], bad)
        plan = rows.plan(model._reader, True)
        if len(plan.starts(model._is_limited)) > 1 and not model._has_room(plan, (), w):
            model.copy()._learn_many(RowsToLearn(rows.X, y, w, predicting=False))

    # -- looking inside ---------------------------------------------------------------------------

    def _own_bytes(self) -> int:
        held = self._held
        models = sum(each.nbytes for each in held.candidates if each is not None)
        saved = sum(map(len, held.pool))
        if held.trial is not None:
            saved += len(held.trial.retired) + held.trial.sums.nbytes
        return int(models) + saved + held.recent.nbytes + held.detector.nbytes

    def __repr__(self) -> str:
        return f"<RecurringRegressor({self.model!r}, pool={self.pool}): {self.retired} retired>"

    # -- files ------------------------------------------------------------------------------------

    def _own_state(self) -> State:
        return files.state_of(self._held, self._rules)

    @classmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        made = cls._made()
        made._held, made._rules = files.restored(models[0], state)
        return made
