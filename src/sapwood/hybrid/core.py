"""How predictions of an online model, a corrector and a batch model become one.

`HybridCore` has all that changes with rows, and none of the ways in and out: those are in
`regressor.py`. What rows change is built aside and swapped in by one assignment (`Learned`).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.drift.detector import ChangeDetector
from sapwood.hybrid import _stack
from sapwood.hybrid.backtest import Backtest, copied
from sapwood.hybrid.frozen import FrozenModel
from sapwood.hybrid.learners import BatchLearner
from sapwood.hybrid.members import StreamRows, feature_names
from sapwood.hybrid.refits import BatchModel, Fit, Refit
from sapwood.hybrid.schedule import Schedule
from sapwood.hybrid.window import Rows, Window
from sapwood.regressor import Regressor
from sapwood.rows._dict_row import RowReader
from sapwood.rows.column import CATEGORY
from sapwood.rows.features import Features
from sapwood.validation import Label

__all__ = ["HISTORY", "HybridCore", "Learned", "labels_in", "like", "order_of"]

FloatArray = NDArray[np.float64]

MOST_PENDING = 2**14  # pending predictions; the oldest is evicted
MOST_REFITS, MOST_EVENTS = 1000, 100
FIRST_POINT, MOST_POINTS = 200, 256
FALSE_ALERTS = 100_000
STILL_RUNNING = "not started, as the fit that took too long is still running"
GROWTH = 0.25  # of rows between two backtests of a fitted model
HISTORY = ("row", "online", "corrector", "batch", "online_rmse", "batch_rmse", "rmse")
RECORD = _stack.MEMBERS + _stack.RESULTS  # numbers of a target in the record of a prediction


class Learned(NamedTuple):
    """The state that changes with learned rows; it is replaced as a whole.

    Attributes
    ----------
    rows : int
        How many there were.
    state : ndarray of float, shape (targets, STATE)
        The evidence for weights; see `_stack`.
    window : Window
        The latest rows.
    detector : ChangeDetector
        Of the batch model's errors.
    events : tuple of dict
        The drift events that it found.
    unscored : int
        How many of the latest rows, in succession, have changed no weight: they were never
        predicted, or by no batch model.
    backtest : Backtest, optional
        Evaluates the members on such rows.
    """

    rows: int
    state: FloatArray
    window: Window
    detector: ChangeDetector
    events: tuple[dict[str, Any], ...] = ()
    unscored: int = 0
    backtest: Backtest | None = None


class HybridCore:
    """The state of a hybrid, for a fixed number of targets.

    Parameters
    ----------
    names : tuple
        Of several targets; none of one.
    features : Features
        By which rows become numbers for the batch learner.
    online, corrector : Regressor
        The models that learn each row; there may be no corrector.
    schedule : Schedule
        When the batch learner is fitted.
    learner : BatchLearner, optional
        Is fitted; there is none if a fitted model was given.
    frozen : FrozenModel, optional
        The fitted model that was given.
    window_bytes : int
        Of the rows that a fit may have.
    background : bool
        Whether fits run in the background.
    timeout : float, optional
        How many seconds learning waits for a fit at most.
    """

    def __init__(
        self,
        names: tuple[Label, ...],
        features: Features,
        online: Any,
        corrector: Any,
        *,
        schedule: Schedule,
        learner: BatchLearner | None,
        frozen: FrozenModel | None,
        window_bytes: int,
        background: bool = True,
        timeout: float | None = None,
    ) -> None:
        self.names, self.count, self.features = names, max(1, len(names)), features
        self.reader = RowReader(features)
        self.online, self.corrector = online, corrector
        self.schedule, self.learner, self.frozen = schedule, learner, frozen
        self.background, self.timeout = background, timeout
        self.lost = ""  # the class of a learner or model that a file could not hold
        state = np.zeros((self.count, _stack.STATE))
        if frozen is not None:  # predicts alone until labels are in favour of the others
            for stage in range(_stack.STAGES):
                state[:, stage * _stack.STAGE_NUMBERS + _stack.FIRST_START] = -1.0
        self.learned = Learned(
            0,
            state,
            Window(schedule.window, window_bytes, self.count),
            ChangeDetector(FALSE_ALERTS, "up"),
        )
        self.pending = PendingPredictions(1 + self.count * RECORD, MOST_PENDING)
        self.last_start = 0
        self.batch: BatchModel | None = None
        self.batch_rows: Rows | None = None  # of a batch model that a file cannot hold
        self.batch_labels: FloatArray | None = None  # of that model
        self.fit: Fit | None = None  # that is under way
        self.given_up: Fit | None = None  # the last one that took too long
        self.awaited: tuple[Rows, FloatArray, int] | None = None  # a fit that has no learner yet
        self.refits: tuple[Refit, ...] = ()
        self.history: tuple[FloatArray, ...] = ()
        self.interval = FIRST_POINT
        self.advanced = 0  # rows of the last call of `advance`

    @property
    def is_behind(self) -> bool:
        """Whether `advance` was not called since the last row."""
        return self.advanced != self.rows

    @property
    def is_blocked(self) -> bool:
        """Whether a fit that took too long is still running."""
        return self.given_up is not None and self.given_up.is_running

    @property
    def rows(self) -> int:
        """The number of rows learned."""
        return self.learned.rows

    # -- predicting -------------------------------------------------------------------------------

    def predict(self, rows: StreamRows, record: bool) -> FloatArray:
        """Return predictions, with a column for each target.

        Parameters
        ----------
        rows : StreamRows
            The rows.
        record : bool
            Whether they are issued: then labels are compared with them.
        """
        members = self._members(rows.count)
        members[:, :, 0] = rows.predict(self.online, record)
        members[:, :, 2] = self.predict_batch(rows, rows.plan(self.reader, False).matrix)
        if self.corrector is not None:
            more = rows.with_features(feature_names(self.names), members[:, :, 2])
            members[:, :, 1] = more.predict(self.corrector, record)
        flat = members.reshape(rows.count, self.count * _stack.MEMBERS)
        results = np.empty((rows.count, self.count * _stack.RESULTS))
        _stack.predict(self.learned.state, flat, results)
        if record:
            keys, labels = rows.keys(), np.full(rows.count, float(self.rows))
            good = np.isfinite(results).all(axis=1)
            records = np.column_stack([labels, flat, results])[good]
            self.pending.put_keys(np.ascontiguousarray(keys[good]), records)
        return self._last(results)

    def predict_batch(self, rows: StreamRows, matrix: FloatArray) -> FloatArray:
        """Return what the batch model predicts, NaN where there is none."""
        if self.frozen is not None:
            return self.frozen.predict(rows, matrix, self.count)
        if self.batch is not None:
            return self.batch.predict(matrix)
        return np.full((rows.count, self.count), np.nan)

    def _members(self, rows: int) -> FloatArray:
        return np.full((rows, self.count, _stack.MEMBERS), np.nan)

    def _last(self, results: FloatArray) -> FloatArray:
        return results.reshape(len(results), self.count, _stack.RESULTS)[:, :, 1]

    # -- fits -------------------------------------------------------------------------------------

    def rows_until_event(self) -> int:
        """Return how many rows can be learned together before a fit starts, or is used."""
        ends = [self.interval - self.rows % self.interval]
        if self.fit is not None:
            ends.append(self.fit.used_from - self.rows)
        elif (start := self._next_start()) is not None:
            ends.append(start - self.rows)
        return max(1, min(ends))

    def _next_start(self) -> int | None:
        """Return at how many rows the next fit starts or, of a fitted model, the next backtest."""
        if self.frozen is not None:
            return self.schedule._replace(refit=GROWTH, lag=0).start_after(self.last_start)
        return None if self.learner is None else self.schedule.start_after(self.last_start)

    def await_fit(self) -> None:
        """Wait for the fit whose row has come; nothing is changed."""
        if self.fit is not None and self.fit.used_from <= self.rows:
            self.fit.wait(self.timeout)

    def advance(self) -> None:
        """Do what is due after so many rows: use the model of a fit, start the next fit.

        If that is interrupted, it can be called again.
        """
        if self.rows and self.rows % self.interval == 0:
            self._note()
        self.use_fit()
        start = self._next_start()
        if self.fit is None and start is not None and self.rows >= start:
            if self.frozen is None:
                self.start_fit()
            else:
                self.learned = self._backtested(self.learned)
                self.last_start = self.rows
        self.advanced = self.rows

    def _backtested(self, learned: Learned) -> Learned:
        """Return what is known, with copies of the online models if the latest rows need them.

        Where predictions are issued there is nothing to copy, and learning keeps its latency.
        """
        if learned.unscored < self.schedule.min_rows:
            return learned._replace(backtest=None)
        return learned._replace(backtest=copied(self.online, self.corrector))

    def start_fit(self, used_from: int | None = None) -> None:
        """Start a fit on the rows of the window, used from a row on, or as the schedule has it."""
        assert self.learner is not None
        rows = self.learned.window.latest()
        if self.is_blocked:  # one such thread is enough
            note = Refit(self.rows, len(rows.w), self.rows, STILL_RUNNING, 0.0)
            self.refits = (*self.refits, note)[-MOST_REFITS:]
            self.last_start = self.rows
            return
        if used_from is None:
            used_from = self.schedule.used_from(self.rows)
        labels, order = labels_in(rows.X, self.features), order_of(self.features, rows.X.shape[1])
        fit = Fit(self.learner, rows, labels, order, used_from, background=self.background)
        self.fit, self.last_start = fit, self.rows
        self.use_fit()

    def use_fit(self) -> None:
        """Predict with the model of the fit whose row has come from now on."""
        fit = self.fit
        if fit is None or fit.used_from > self.rows:
            return
        made, note = fit.result(self.timeout)
        refits = (*self.refits, note)[-MOST_REFITS:]
        if made is None:
            self.given_up = fit if fit.is_running else None
            self.refits, self.fit = refits, None
            fit.warn(note.error)  # last, as a warning may be an error
            return
        learned = self.learned._replace(detector=ChangeDetector(FALSE_ALERTS, "up"))
        learned = self._backtested(learned)
        rows = None if made.is_flat else fit.rows
        self.batch, self.batch_rows, self.batch_labels = made, rows, made.labels
        self.learned, self.refits, self.fit = learned, refits, None

    # -- what is reported -------------------------------------------------------------------------

    def weights(self) -> FloatArray:
        """Return the shares of the online model, the corrector and the batch model, by target."""
        found = np.empty((self.count, 2))
        _stack.positions(self.learned.state, found)
        first, second = (1.0 + found.T) / 2.0
        if self.batch is None and self.frozen is None:
            first, second = np.ones(self.count), np.zeros(self.count)
        elif self.corrector is None:
            second = np.zeros(self.count)
        return np.column_stack([(1 - second) * first, second, (1 - second) * (1 - first)])

    def errors(self) -> FloatArray:
        """Return the recent RMSE of each member and of the hybrid, by target; NaN at first."""
        errors = self.learned.state[:, _stack.FIRST_ERROR :]
        with np.errstate(invalid="ignore"):
            return np.sqrt(errors[:, :-1] / errors[:, -1:])

    def _note(self) -> None:
        """Keep the weights and errors of the moment, of several targets on average, once."""
        if self.history and self.history[-1][0] == self.rows:
            return
        online, _, batch, own = self.errors().mean(axis=0).tolist()
        shares = self.weights().mean(axis=0).tolist()
        history = (*self.history, np.array([self.rows, *shares, online, batch, own]))
        interval = self.interval
        if len(history) >= MOST_POINTS:
            history, interval = history[1::2], 2 * interval
        self.history, self.interval = history, interval


def labels_in(X: FloatArray, features: Features) -> FloatArray:
    """Return how many labels of each category rows have; infinite for numbers."""
    labels = np.full(X.shape[1], np.inf)
    for place, kind in enumerate(features.kinds[: X.shape[1]]):
        if kind == CATEGORY:
            codes = X[:, place]
            labels[place] = np.max(codes, initial=-1.0, where=~np.isnan(codes)) + 1.0
    return labels


def order_of(features: Features, width: int) -> NDArray[np.int64]:
    """Return the places of the first features, in the order of their names."""
    names = features.names[:width]
    return np.array(
        sorted(range(width), key=lambda at: (type(names[at]) is str, names[at])), np.int64
    )


def like(online: Regressor) -> Regressor:
    """Return a model like another that has learned nothing."""
    return type(online)(**online.parameters)
