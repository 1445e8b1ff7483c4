"""An online model and a batch learner that is refitted, combined."""

import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.ensemble.forest import ForestRegressor
from sapwood.hybrid import hybrid_state
from sapwood.hybrid.checks import check_online, check_rows, checked_flag
from sapwood.hybrid.core import HybridCore, like
from sapwood.hybrid.frozen import FrozenModel
from sapwood.hybrid.learners import BatchLearner, default_learner, learner_of
from sapwood.hybrid.learning import Learning, Mode
from sapwood.hybrid.members import ManyRows, OneRow, StreamRows, many_rows
from sapwood.hybrid.refits import FitFailedWarning
from sapwood.hybrid.schedule import Schedule
from sapwood.hybrid.view import HybridView
from sapwood.model import State
from sapwood.row_methods import RowsToLearn, whole_batch
from sapwood.rows import frames, targets
from sapwood.rows.features import Features
from sapwood.validation import Label

__all__ = ["HybridRegressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

WINDOW, WINDOW_BYTES = 20_000, 256_000_000
MOST_BYTES = 2**40


class HybridRegressor(HybridView):
    """A combination of an online model and a batch learner refitted on the latest rows.

    The online model learns each row immediately. The batch learner is fitted again, in a thread of
    its own, whenever the number of rows has grown by a quarter. A corrector, an online model like
    the first, has the prediction of the batch model as an additional feature. The predictions are
    combined by weights that are learned from the errors of issued predictions. The combined
    prediction lies within the range of the predictions of the three models.

    Parameters
    ----------
    online : object, optional
        A tree or an ensemble of Sapwood; by default a `sapwood.ForestRegressor`. The model itself
        learns, not a copy. Put lags and prediction intervals around the hybrid, not around this
        model.
    batch : {"lightgbm", "hist_gradient_boosting"} or object, optional
        The batch learner: a name, for its default parameters; `sapwood.hybrid.LightGBM(...)` for
        other parameters; or any estimator with `fit` and `predict`. It gets numbers, NaN for
        missing values, and codes of categories. With ``refit=None``, a fitted model, which gets its
        features by name. The default is LightGBM or, if it is not installed, the histogram gradient
        boosting of scikit-learn.
    window : int
        The largest number of latest rows for a fit.
    window_bytes : int
        The memory limit of these rows.
    refit : float, int or None
        When a fit starts. A float: when the number of rows, or of rows in the window, has grown by
        this share since the last fit. An integer: after this number of rows. None: never.
    min_rows : int
        The number of rows before the first fit, and the smallest number of rows between two fits.
    lag : int, optional
        The number of rows between the start of a fit and its first use; by default a fortieth of
        its rows, at least 20. Results therefore do not depend on the duration of fits. `learn_one`
        waits if the fit is not ready in time.
    correct : bool
        Whether there is a corrector.
    background : bool
        Whether a fit runs in a thread of its own; if not, it runs when its model is first needed.
    timeout : float, optional
        After so many seconds `learn_one` does not wait for a fit any more, which is then given up
        with a warning; such a run cannot be repeated bit for bit.

    Notes
    -----
    If a fit fails, or its model predicts a value that is not finite, a `FitFailedWarning` is given,
    and predictions continue without this model.

    Files contain no pickles. The trees of LightGBM and of scikit-learn's histogram gradient
    boosting are saved as arrays, which are checked when they are read. For other learners, the rows
    of the last fit are saved; after loading, call `attach` with the learner to repeat this fit. A
    fit that was running is started again on the same rows.

    Labels of rows that were never predicted train all models. The error of a prediction made just
    before such a row is no estimate of the error of rows that are predicted far ahead. Therefore
    the weights learn from backtests: copies of the online models, made when a batch model is put
    into use, predict one in four of the rows that follow. A fitted model of the user predicts alone
    until labels are in favour of the others.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, (4000, 4))
    >>> y = np.sin(6 * X[:, 0] * X[:, 1]) + X[:, 2] + rng.normal(0, 0.1, 4000)
    >>> hybrid, forest = sapwood.HybridRegressor(), sapwood.ForestRegressor()
    >>> errors = [np.mean((m.predict_learn_many(X, y) - y)[1000:] ** 2) for m in (hybrid, forest)]
    >>> bool(errors[0] < 0.8 * errors[1])
    True
    >>> len(hybrid.refits)
    11
    """

    kind: ClassVar[str] = "HybridRegressor"
    format: ClassVar[int] = 3
    several_targets: ClassVar[bool] = True

    def __init__(
        self,
        online: Any = None,
        batch: Any = None,
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        refit: float | None = 0.25,
        min_rows: int = 200,
        lag: int | None = None,
        correct: bool = True,
        background: bool = True,
        timeout: float | None = None,
    ) -> None:
        super().__init__()
        schedule = Schedule.checked(refit, min_rows, lag, window)
        online = ForestRegressor() if online is None else online
        check_online(online)
        self._parameters = {
            "online": online,
            "batch": batch,
            "window": schedule.window,
            "window_bytes": validation.whole(window_bytes, "window_bytes", 10_000, MOST_BYTES),
            "refit": schedule.refit,
            "min_rows": schedule.min_rows,
            "lag": schedule.lag,
            "correct": checked_flag(correct, "correct"),
            "background": checked_flag(background, "background"),
            "timeout": None
            if timeout is None
            else validation.between(timeout, "timeout", 0.0, 1e9),
        }
        self._features = Features(online.parameters.get("categorical", ()))
        self._learners = threading.RLock()  # of whoever learns, while fits are waited for too
        self._is_learning = False
        self._core = self._begun(tuple(online.targets), batch)

    def _begun(self, names: tuple[Label, ...], batch: Any) -> HybridCore:
        """Return what is known of targets at first: nothing."""
        own = self._parameters
        learner: BatchLearner | None = None
        frozen = None
        if own["refit"] is not None:
            learner = default_learner() if batch is None else learner_of(batch)
        elif isinstance(batch, str) or batch is None:
            raise ValueError(
                f"batch = {validation.shown(batch)} and refit = None: a fitted model is expected, or "
                "another refit"
            )
        else:
            frozen = batch if isinstance(batch, FrozenModel) else FrozenModel(batch)
        return self._core_of(names, learner, frozen)

    def _core_of(
        self, names: tuple[Label, ...], learner: BatchLearner | None, frozen: FrozenModel | None
    ) -> HybridCore:
        own = self._parameters
        online = own["online"]
        return HybridCore(
            names,
            self._features,
            online,
            like(online) if own["correct"] else None,
            schedule=Schedule(own["refit"], own["min_rows"], own["lag"], own["window"]),
            learner=learner,
            frozen=frozen,
            window_bytes=own["window_bytes"],
            background=own["background"],
            timeout=own["timeout"],
        )

    # -- learning and predicting ------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[Any, int]:
        row = OneRow(self._encoded_one(x), key)
        with self._turn():
            found = self._advanced().predict(row, record)[0].tolist()
            names = self._core.names
        return (targets.named(names, found) if names else found[0]), -1

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        rows = self._many(X, keys)
        with self._turn():
            return self._plain(self._advanced().predict(rows, record)), None

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        if isinstance(y, Mapping | list | tuple | np.ndarray):
            read = targets.read_one(y)
        else:
            read = targets.Targets(None, np.array([validation.number(y, "y")]))
        row = OneRow(self._encoded_one(x), key)
        self._learn(row, read, [validation.number(w, "w")], Mode.LEARN)

    def _learn_many(self, batch: RowsToLearn) -> FloatArray:
        mode = Mode.DELAYED if batch.delayed else Mode.PREDICT
        mode = Mode.LEARN if batch.predicting is False else mode
        rows = self._many(batch.X, batch.keys)
        return self._plain(self._learn(rows, targets.read(batch.y), batch.w, mode, batch.found))

    def _many(self, X: Any, keys: Any = None) -> ManyRows:
        """Return many rows as columns, with the keys of their ids."""
        return many_rows(self._encoded(frames.lasting(X)), keys, self._features.names)

    def _learn(
        self,
        rows: StreamRows,
        y: targets.Targets,
        w: ArrayLike | None,
        mode: Mode,
        array: Callable[[tuple[int, ...]], FloatArray] = np.empty,
    ) -> FloatArray:
        """Learn rows; return what was predicted just before each, if that is wanted.

        `array` returns the array of some shape for it.
        """
        weights = np.ascontiguousarray(validation.weights(w, len(y.values)))
        with self._learners:
            with self._turn():
                before = self._features.names
                core, known, matrix, values = self._planned(rows, y, weights)
            found = array(values.shape)
            first = core.rows

            def learn(start: int) -> None:
                while start < rows.count:
                    end = min(rows.count, start + core.rows_until_event())
                    part, some = slice(start, end), rows.part(start, end)
                    width = len({*before, *some.names()})  # features of later rows come after
                    learning = Learning(
                        core,
                        some,
                        np.ascontiguousarray(matrix[part, :width]),
                        y=values[part],
                        w=weights[part],
                        mode=mode,
                        out=found[part] if mode is not Mode.LEARN else None,
                    )
                    self._take_in(learning, known)
                    start = end

            def rows_done() -> int:
                with self._turn():  # which finishes the part that was interrupted
                    self._advanced()
                return core.rows - first

            whole_batch(learn, rows_done)
        return found

    def _take_in(self, learning: Learning, known: Any) -> None:
        """Learn rows up to the next event, which is then dealt with."""
        core = learning.core

        def finish() -> None:
            self._features.known, self._core = known, core
            learning.finish()

        self._is_learning = True
        try:
            with self._turn():
                self._both(learning.learn, finish, lambda: learning.is_due)
            core.await_fit()  # while others predict
            with self._turn():
                core.advance()
        finally:
            self._is_learning = False

    def _advanced(self) -> HybridCore:
        """Return the core, after an event that was due when learning was interrupted."""
        core = self._core
        if core.is_behind and not self._is_learning:
            core.advance()
        return core

    def _planned(
        self, rows: StreamRows, y: targets.Targets, w: FloatArray
    ) -> tuple[HybridCore, Any, FloatArray, FloatArray]:
        """Validate rows; return the core, the schema with these rows, the rows as numbers, and y."""
        core = self._advanced()
        plan = rows.plan(core.reader, True)
        validation.check_labels(rows.count, len(y.values))
        names, values = targets.fitting(y, core.names, core.rows > 0, self.kind)
        values = values.reshape(rows.count, max(1, len(names)))
        check_rows(rows, names, values, w, correct=self._parameters["correct"])
        if names != core.names:
            core = self._core_of(names, core.learner, core.frozen)
        if rows.count > core.rows_until_event():
            rows.plan(core.online._reader, True)  # raises before anything is learned
        return core, plan.known(), plan.matrix, values

    def _names(self) -> tuple[Label, ...]:
        return self._core.names

    def _plain(self, found: FloatArray) -> FloatArray:
        """Return predictions; of one target, without a dimension of targets."""
        return np.ascontiguousarray(found if self._core.names else found[:, 0])

    # -- files and copies -------------------------------------------------------------------------

    def refit_now(self) -> None:
        """Fit the batch learner on the rows of the window, wait for it, and use it from now on.

        Use this at the end of historical rows. A running fit is abandoned.

        Raises
        ------
        ValueError
            If there is no batch learner, or no row.
        RuntimeError
            If a fit that took too long is still running.
        """
        with self._learners, self._turn():
            core = self._core
            if core.learner is None or not core.rows:
                lacking = "batch learner to fit" if core.learner is None else "row yet"
                raise ValueError(f"the hybrid has no {lacking}")
            if core.is_blocked:
                raise RuntimeError("a fit that took longer than timeout is still running: wait")
            core.start_fit(used_from=core.rows)

    def attach(self, batch: Any) -> None:
        """Give a batch learner, or a fitted model, to a hybrid whose file could not hold it.

        The last fit is repeated on its rows, and a fit that was running is started again.

        Parameters
        ----------
        batch : object
            As the hybrid had when it was saved.
        """
        with self._learners, self._turn():
            hybrid_state.attach(self, batch)

    def to_state(self) -> State:
        """Return all that the model is: a header for JSON, and arrays."""
        with self._turn():
            self._core.advance()  # which another thread may be about to do
            return hybrid_state.state_of(self)

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        with self._turn():
            return super().to_bytes()

    def copy(self) -> Self:
        """Return an independent copy; a learner that no file holds is shared."""
        with self._turn():
            made, core = super()._restored(self._detached_state(), "the model"), self._core
            if made._core.lost and not core.lost:
                hybrid_state.attach(made, core.learner or core.frozen)
            return made

    def _detached_state(self) -> State:
        with self._turn():
            return super()._detached_state()

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError, OverflowError
            If there is anything wrong with it.
        """
        if format < 2:
            raise ValueError("it is of format 1, which no release has written: train it again")
        return hybrid_state.restore(cls, state, format)

    @classmethod
    def _restored(cls, state: State, source: str) -> Self:
        """Return the hybrid of a file, with a warning if that could not hold the batch model."""
        made = super()._restored(state, source)
        if made._core.lost:
            warnings.warn(
                f"{source} does not hold the hybrid's batch model ({made._core.lost}): predictions "
                "continue without it until it is given by attach(batch)",
                FitFailedWarning,
                stacklevel=4,
            )
        return made
