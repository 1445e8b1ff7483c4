"""Rows that are being learned, from one look to the next."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.hybrid.members import ManyRows, OneRow
from sapwood.recurring.pool import LOOK, Held, looked
from sapwood.regressor import Regressor
from sapwood.stages.one_target import LabelledRows
from sapwood.stages.stage import rows_learned

if TYPE_CHECKING:
    from sapwood.recurring.regressor import RecurringRegressor

__all__ = ["Learning"]

FloatArray = NDArray[np.float64]
REJECTED = (ValueError, TypeError, OverflowError)  # by which models reject rows


class Learning:
    """Rows that a model with a pool learns.

    `finish` learns all of them. If it is interrupted, it can be called again, and continues: each
    model learns each row once, as `Held` knows how many rows they had learned before.

    Parameters
    ----------
    stage : RecurringRegressor
        What learns.
    batch : LabelledRows
        The rows.
    """

    def __init__(self, stage: "RecurringRegressor", batch: LabelledRows) -> None:
        self._stage, self._batch = stage, batch
        self._rows: OneRow | ManyRows = batch.rows
        self._begin: Held = stage._held
        # A batch ends before a row that brings a feature, which earlier rows must not have.
        self._ends = [*batch.rows.first_rows(), batch.rows.count]

    @property
    def is_short(self) -> bool:
        """Whether the rows end at the next look at the latest, so that one call learns them."""
        return len(self._ends) == 1 and self._rows.count <= LOOK - self._begin.filled

    def is_due(self) -> bool:
        """Whether learning has begun and has not ended."""
        held = self._stage._held
        if held is self._begin:
            return rows_learned(held.model) != held.learned
        return held.rows < self._begin.rows + self._rows.count

    def finish(self) -> None:
        """Learn all rows that were not learned yet."""
        while (start := self._stage._held.rows - self._begin.rows) < self._rows.count:
            held = self._stage._held
            end = min(*(end for end in self._ends if end > start), start + LOOK - held.filled)
            self._stage._held = self._after(held, slice(start, end))

    def _after(self, held: Held, part: slice) -> Held:
        """Return what is held after some rows."""
        span = slice(held.filled, held.filled + part.stop - part.start)
        recent, rows = held.recent, self._rows.part(part.start, part.stop)
        recent[0, span] = self._batch.y[part]
        if rows_learned(held.model) == held.learned:
            recent[1, span] = np.nan
            self._learn(held.model, rows, part, recent[1, span])
        self._batch.found[part] = recent[1, span]
        made = held._replace(
            learned=rows_learned(held.model), rows=held.rows + part.stop - part.start
        )
        if held.trial is not None:
            candidates = self._tried(held, rows, part, span)
            made = made._replace(trial=held.trial.with_candidates(candidates))
        return made if made.filled else looked(made, self._stage._rules)

    def _learn(self, model: Any, rows: Any, part: slice, out: FloatArray) -> None:
        """Let the model in use learn some rows; `out` gets what it predicts just before each."""
        _, y, w, _, regions, delayed = self._batch
        own = None if regions is None else regions[part]
        rows.learn_into(model, y[part], w[part], out, own, delayed=delayed)

    def _tried(
        self, held: Held, rows: Any, part: slice, span: slice
    ) -> tuple[Regressor | None, ...]:
        """Let candidates learn some rows; one that rejects them is none any more."""
        trial = held.trial
        if trial is None:
            return ()
        X = [rows.x] if isinstance(rows, OneRow) else rows.X
        y, w = self._batch.y[part], self._batch.w[part]
        kept: list[Regressor | None] = []
        for place, (model, learned) in enumerate(zip(trial.candidates, trial.learned, strict=True)):
            found: Regressor | None = model
            if model is not None and rows_learned(model) == learned:
                out = held.recent[2 + place, span]
                out[:] = np.nan
                try:
                    model._learn_into(X, y, w, out, delayed=True)
                except REJECTED:
                    held.recent[2 + place] = np.nan
                    found = None
            kept.append(found)
        return tuple(kept)
