"""A model that tries retired models after a drift alert."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.hybrid.members import ManyRows, OneRow, many_rows
from sapwood.model import State
from sapwood.recurring import files
from sapwood.recurring.learning import Learning
from sapwood.recurring.pool import Event, Held
from sapwood.row_methods import array_for
from sapwood.rows.targets import Targets
from sapwood.stages.one_target import OneTargetStage, checked_model, labels_of
from sapwood.stages.stage import Stage
from sapwood.tree._kernel import refuse_row
from sapwood.validation import Label

__all__ = ["RecurringRegressor"]

FloatArray = NDArray[np.float64]

USUAL_BYTES = 128 << 20
ONE = "RecurringRegressor predicts one target; use a model for each"


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

    def __init__(self, model: Any, pool: int = 4, max_bytes: int = USUAL_BYTES) -> None:
        super().__init__()
        found = checked_model(model, "the model with a pool")
        if found.several_targets and found.targets:
            raise ValueError(f"the model has several targets: {ONE}")
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

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        x = self._encoded_one(x)
        with self._turn():
            found: tuple[float, int] = self._held.model._place_one(x, key, record)
            return found

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, NDArray[np.int32] | None]:
        encoded = self._encoded(X)
        with self._turn():
            rows = many_rows(encoded, keys, self._held.features)
            found: tuple[FloatArray, NDArray[np.int32] | None]
            found = self._held.model._place_many(rows.columns, keys, record)
            return found

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        label, weight = validation.number(y, "y"), validation.number(w, "w")
        row = OneRow(self._encoded_one(x), np.array([key], np.uint64) if key else None)
        with self._turn():
            self._learn(Learning(self, row, np.array([label]), np.array([weight])))

    def _learn_many(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None,
        keys: Any,
        *,
        delayed: bool,
        predicting: bool | FloatArray = True,
        regions: Any = None,
    ) -> FloatArray:
        labels = labels_of(y, ONE)
        weights = np.ascontiguousarray(validation.weights(w, len(labels)))
        encoded = self._encoded(X)
        with self._turn():
            rows = many_rows(encoded, keys, self._held.features)
            validation.check_labels(rows.count, len(labels))
            found = array_for(predicting, labels.shape)
            learning = Learning(
                self, rows, labels, weights, delayed=delayed, found=found, regions=regions
            )
            if not learning.is_short:
                self._check(rows, labels, weights)
            self._learn(learning)
        return found

    def _learn(self, learning: Learning) -> None:
        """Learn rows; if that is interrupted, the next call finishes it, unless it had not begun."""
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
            model.copy()._learn_many(
                rows.columns, Targets(None, y), w, None, delayed=True, predicting=False
            )

    # -- looking inside ---------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the model in use, of retired models, and of copies that are being tried."""
        with self._turn():
            held = self._held
            models = sum(each.nbytes for each in (held.model, *held.candidates) if each is not None)
            saved = sum(map(len, held.pool))
            if held.trial is not None:
                saved += len(held.trial.retired) + held.trial.sums.nbytes
            return int(models) + saved + held.recent.nbytes + held.detector.nbytes

    def __repr__(self) -> str:
        return f"<RecurringRegressor({self.model!r}, pool={self.pool}): {self.retired} retired>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the stage is: the model in use, retired models, and a trial."""
        with self._turn():
            return files.state_of(self._held, self._rules)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        held, rules = files.restored(state)
        made = cls.__new__(cls)
        Stage.__init__(made)
        made._held, made._rules = held, rules
        return made
