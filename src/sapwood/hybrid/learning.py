"""Rows that are being learned, and what of a hybrid changes with them."""

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.drift._detector import LARGEST
from sapwood.drift.detector import ChangeDetector
from sapwood.hybrid import _stack
from sapwood.hybrid.backtest import EVERY, Backtest
from sapwood.hybrid.core import FALSE_ALERTS, MOST_EVENTS, HybridCore, Learned
from sapwood.hybrid.members import StreamRows, feature_names
from sapwood.rows.targets import Targets
from sapwood.stages.labels import plain_of
from sapwood.stages.stage import rows_learned

__all__ = ["Learning", "Mode"]

FloatArray = NDArray[np.float64]


class Mode(Enum):
    """How rows come: to be learned alone, or to be predicted just before."""

    LEARN = "learn"  # those that were predicted before are scored by that, others are not
    PREDICT = "predict"  # predicted now, and scored by that
    DELAYED = "delayed"  # as LEARN, and what would be predicted now is returned


class Learning:
    """Rows that are being learned, up to the next event.

    The online model learns them by `learn`; then `finish` lets all else follow. If that is
    interrupted, it can be called again: each step is done once.

    Parameters
    ----------
    core : HybridCore
        What learns.
    rows : StreamRows
        The rows.
    matrix : ndarray of float
        The same, encoded.
    y : ndarray of float, shape (n, targets)
        Labels, NaN where one is missing.
    w : ndarray of float
        Weights.
    mode : Mode
        Whether predictions are wanted.
    out : ndarray of float, shape (n, targets), optional
        Gets predictions of just before each row, if they are wanted.
    """

    def __init__(
        self,
        core: HybridCore,
        rows: StreamRows,
        matrix: FloatArray,
        *,
        y: FloatArray,
        w: FloatArray,
        mode: Mode,
        out: FloatArray | None,
    ) -> None:
        self.core, self._rows, self._matrix, self._mode, self._out = core, rows, matrix, mode, out
        self._y, self._w, self._own = y, w, plain_of(Targets(core.names or None, y))
        self._before = core.learned
        self._corrected = rows_learned(core.corrector)
        self._now = np.full((2, *y.shape), np.nan)  # of the online model and of the corrector
        self._records = np.full((rows.count, core.pending.width), np.nan)
        self._taken = np.zeros(1, np.uint8)

    @property
    def is_due(self) -> bool:
        """Whether it was not finished yet."""
        return self.core.learned is self._before

    def learn(self) -> None:
        """Let the online model learn the rows."""
        self._learn(0, self._rows, self.core.online)

    def _learn(self, place: int, rows: StreamRows, model: Any) -> None:
        if self._mode is Mode.LEARN:
            rows.learn(model, self._own, self._w)
            return
        delayed = self._mode is Mode.DELAYED
        rows.learn_into(model, self._own, self._w, self._now[place], delayed=delayed)

    def finish(self) -> None:
        """Let the corrector learn the rows, and the weights follow; all, once."""
        core, rows = self.core, self._rows
        if core.pending.count and self._mode is not Mode.PREDICT:
            core.pending.take_into(rows.keys(), float(core.rows), self._records, self._taken)
        known = ~np.isnan(self._records[:, 0])
        split = 1 + core.count * _stack.MEMBERS
        members = self._records[:, 1:split].reshape(rows.count, core.count, _stack.MEMBERS).copy()
        results = np.ascontiguousarray(self._records[:, split:])
        batch = members[:, :, 2]
        if not known.all() or self._mode is Mode.DELAYED:
            batch = core.predict_batch(rows, self._matrix)
            members[:, :, 2] = np.where(known[:, np.newaxis], members[:, :, 2], batch)
        if core.corrector is not None:
            self._learn_corrector(core.corrector, members[:, :, 2].copy(), batch)
        now = None
        if self._mode is not Mode.LEARN:
            now = np.dstack([*self._now, batch])
            where = known[:, np.newaxis, np.newaxis]
            members[:, :, :2] = np.where(where, members[:, :, :2], now[:, :, :2])
        core.learned = self._followed(members, results, known, now)

    def _learn_corrector(self, corrector: Any, issued: FloatArray, batch: FloatArray) -> None:
        """Let the corrector learn rows, with what the batch model predicted then, as it was issued.

        Where the batch model predicts something else now, what the corrector would predict now has
        another feature.
        """
        core, rows, names = self.core, self._rows, feature_names(self.core.names)
        done = int((rows_learned(corrector) or 0.0) - (self._corrected or 0.0))
        if self._mode is not Mode.DELAYED or np.array_equal(issued, batch, equal_nan=True):
            if not done:
                self._learn(1, rows.with_features(names, issued), corrector)
            return
        for place in range(done, rows.count):
            own, one = slice(place, place + 1), rows.part(place, place + 1)
            before = one.with_features(names, batch[own])
            self._now[1, own] = before.predict(corrector, False)
            y = plain_of(Targets(core.names or None, self._y[own]))
            one.with_features(names, issued[own]).learn(corrector, y, self._w[own])

    def _followed(
        self,
        members: FloatArray,
        results: FloatArray,
        known: NDArray[np.bool_],
        now: FloatArray | None,
    ) -> Learned:
        """Return what is learned with the rows; `results` of rows that were not issued are set.

        `now` is what the members predict just before each row.
        """
        core = self.core
        rows, state, window, detector, events, unscored, backtest = self._before
        delays = np.where(known, rows + np.arange(len(known)) - self._records[:, 0], 0.0)
        never = 0 if self._mode is Mode.PREDICT else 2
        issued = np.where(known, 1, never).astype(np.uint8)
        state = state.copy()
        flat = members.reshape(len(known), -1)
        scored = (issued != 2) & np.isfinite(members[:, :, 2]).any(axis=1)
        first = int(np.argmax(scored)) if scored.any() else len(scored)
        tests = None if backtest is None else self._tests(backtest, first)
        if now is not None:
            now = np.ascontiguousarray(now.reshape(flat.shape))
        _stack.learn(state, flat, results, self._y, self._w, delays, issued, tests, now, self._out)
        if core.learner is not None or core.lost:
            window = window.appended(self._matrix, self._y, self._w)
        errors = np.abs(self._y - members[:, :, 2])
        seen = np.flatnonzero((issued != 2) & np.isfinite(errors).all(axis=1))
        if len(seen):
            detector, found = _watched(detector, errors[seen].mean(axis=1))
            more = [
                {"row": rows + int(seen[place]) + 1, "before": before, "after": after}
                for place, before, after in found
            ]
            events = (*events, *more)[-MOST_EVENTS:]
        if first < len(scored):  # predictions are issued: they show more than backtests
            unscored, backtest = -1 - int(np.flatnonzero(scored)[-1]), None
        unscored += len(scored)
        return Learned(rows + len(known), state, window, detector, events, unscored, backtest)

    def _tests(self, backtest: Backtest, count: int) -> FloatArray:
        """Return predictions of a thinned sample of the first rows, which were not scored."""
        core = self.core
        made = core._members(self._rows.count)
        places = slice(-self._before.rows % EVERY, count, EVERY)
        if places.start < count:
            rows = self._rows.part(0, count).thinned(places.start, EVERY)
            batch = core.predict_batch(rows, np.ascontiguousarray(self._matrix[places]))
            made[places] = backtest.predict(rows, batch, feature_names(core.names))
        return made.reshape(len(made), -1)


def _watched(
    detector: ChangeDetector, errors: FloatArray
) -> tuple[ChangeDetector, list[tuple[int, float, float]]]:
    """Return a detector that has seen errors as well, and the changes that it found in them."""
    made = ChangeDetector(FALSE_ALERTS, "up")
    made._seen = detector._seen
    found = made.update_many(np.minimum(errors, LARGEST))
    return made, [(each.row - detector.rows - 1, each.before, each.after) for each in found]
