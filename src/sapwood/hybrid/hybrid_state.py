"""Files of hybrids: no pickles, and nothing of them is trusted.

The models that learn rows are saved as they are by themselves, in a file within the file. Of the
batch model the trees are saved, or the rows that it was fitted on where it is none of trees; of a
fit that is under way, its rows: it is started again.
"""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import model, validation
from sapwood.corrector.pending_state import pending_arrays, restore_pending
from sapwood.drift.detector import ChangeDetector
from sapwood.hybrid import _stack
from sapwood.hybrid.backtest import Backtest
from sapwood.hybrid.core import (
    FIRST_POINT,
    HISTORY,
    MOST_EVENTS,
    MOST_POINTS,
    MOST_REFITS,
    Learned,
    order_of,
)
from sapwood.hybrid.frozen import FrozenModel
from sapwood.hybrid.learners import LEARNERS, learner_of
from sapwood.hybrid.refits import BatchModel, Fit, Refit
from sapwood.hybrid.trees import FlatTrees
from sapwood.hybrid.window import Rows
from sapwood.model import State, check_unchanged
from sapwood.rows.features import Features
from sapwood.stages.stage import rows_learned

if TYPE_CHECKING:
    from sapwood.hybrid.core import HybridCore
    from sapwood.hybrid.regressor import HybridRegressor

__all__ = ["attach", "restore", "state_of"]

Array = NDArray[Any]
Hybrid = TypeVar("Hybrid", bound="HybridRegressor")

PLAIN = ("window", "window_bytes", "refit", "min_rows", "lag", "correct", "background", "timeout")
COUNTS = ("last_start", "interval")
OLDER_ENTRIES = {
    *("parameters", "targets", "features", "batch", "fit", "refits", "events", "rows"),
    *COUNTS,
}
ENTRIES = {*OLDER_ENTRIES, "unscored"}
OLDER_STAGE = 6  # numbers of a stage in format 2, which are the first of those that it has now
BACKTEST = ("backtest.online", "backtest.corrector")
MOST_ROWS = 2**53
FITTED = "fitted model"  # in place of the class of a learner


def state_of(own: "HybridRegressor") -> State:
    """Return all that a hybrid is."""
    core, learned = own._core, own._core.learned
    header: dict[str, Any] = {
        "parameters": {name: own._parameters[name] for name in PLAIN},
        "targets": list(core.names),
        "features": own._features.to_header(),
        "batch": _batch_header(core),
        "fit": None,
        "refits": [[*refit[:4]] for refit in core.refits],
        "events": [dict(event) for event in learned.events],
        "rows": learned.rows,
        "unscored": learned.unscored,
        **{name: getattr(core, name) for name in COUNTS},
    }
    arrays: dict[str, Array] = {
        "state": learned.state,
        "history": np.array(core.history).reshape(-1, len(HISTORY)),
        **pending_arrays(core.pending),
    }
    models = {"online": core.online, "corrector": core.corrector, "detector": learned.detector}
    if learned.backtest is not None:
        models |= dict(zip(BACKTEST, learned.backtest, strict=True))
    for name, part in models.items():
        arrays[name] = np.frombuffer(b"" if part is None else part.to_bytes(), np.uint8)
    if core.learner is not None or core.lost not in ("", FITTED):
        arrays |= learned.window.latest().to_arrays("window.")
    if core.batch is not None:
        arrays |= _batch_arrays(core.batch)
    elif core.batch_rows is not None:
        assert core.batch_labels is not None
        arrays["batch.labels"] = core.batch_labels
    if core.batch_rows is not None:
        arrays |= core.batch_rows.to_arrays("batch_rows.")
    awaited = core.awaited
    if core.fit is not None:
        awaited = core.fit.rows, core.fit.labels, core.fit.used_from
    if awaited is not None:
        arrays |= awaited[0].to_arrays("fit.")
        arrays["fit.labels"] = awaited[1]
        header["fit"] = awaited[2]
    if core.frozen is not None and core.frozen.trees is not None:
        arrays |= core.frozen.trees.to_arrays("frozen.")
    return State(header, arrays)


def _batch_header(core: "HybridCore") -> dict[str, Any]:
    if core.frozen is not None or core.lost == FITTED:
        return {"frozen": None if core.frozen is None else core.frozen.names}
    learner = core.learner
    if learner is None:
        return {"lost": core.lost}
    if learner.name in LEARNERS:
        return {"learner": learner.name, "parameters": learner.parameters}
    return {"lost": learner.name}


def _batch_arrays(batch: BatchModel) -> dict[str, Array]:
    arrays: dict[str, Array] = {"batch.labels": batch.labels}
    if batch.is_flat:
        has = [each is not None for each in batch.models]
        arrays["batch.has"] = np.array(has, np.uint8)
        for place, each in enumerate(batch.models):
            if isinstance(each, FlatTrees):
                arrays |= each.to_arrays(f"batch.{place}.")
    return arrays


def restore(kind: type[Hybrid], state: State, format: int) -> Hybrid:
    """Return the hybrid of a header and arrays, of which nothing is trusted."""
    header, arrays = state if format > 2 else _of_format_2(state)
    _check(header.keys() == ENTRIES, "its header has other entries than it should")
    parameters, batch = header["parameters"], header["batch"]
    _check(
        isinstance(parameters, dict) and parameters.keys() == {*PLAIN}, "its parameters are wrong"
    )
    _check(isinstance(batch, dict) and len(batch) in (1, 2), "its batch learner is wrong")
    online = model.from_bytes(_bytes_of(arrays, "online"), "the online model")
    given, lost = _batch_of(batch, arrays)
    made = kind(online, given, **parameters)
    check_unchanged({name: made._parameters[name] for name in PLAIN}, parameters)
    made._features = Features.from_header(header["features"])
    targets = header["targets"]
    _check(isinstance(targets, list) and len(set(map(str, targets))) == len(targets), "its targets")
    _check_targets(online, targets)
    core = made._core_of(tuple(targets), made._core.learner, made._core.frozen)
    core.lost = lost
    if lost:
        core.learner, core.frozen = None, None
    _fill(core, header, arrays, made._features)
    made._core = core
    return made


def _of_format_2(state: State) -> State:
    """Return what the hybrid of an older file would be saved as now: it predicts the same."""
    header, arrays = state
    _check(header.keys() == OLDER_ENTRIES, "its header has other entries than it should")
    parameters, old = header["parameters"], arrays.get("state", np.empty(0))
    _check(isinstance(parameters, dict), "its parameters are wrong")
    refit, least = (parameters.get(name) for name in ("refit", "min_rows"))
    if type(refit) is int and type(least) is int:
        parameters = {**parameters, "refit": max(refit, least)}  # as it was understood
    width = _stack.STATE - _stack.STAGES * (_stack.STAGE_NUMBERS - OLDER_STAGE)
    _check(old.ndim == 2 and old.shape[1] == width, "a sum of its weights is missing")
    made = np.zeros((len(old), _stack.STATE))
    for stage in range(_stack.STAGES):
        first, older = stage * _stack.STAGE_NUMBERS, stage * OLDER_STAGE
        made[:, first : first + OLDER_STAGE] = old[:, older : older + OLDER_STAGE]
    rest = width - _stack.STAGES * OLDER_STAGE
    made[:, -rest:] = old[:, -rest:]
    own = {**header, "parameters": parameters, "unscored": 0}
    return State(own, {**arrays, "state": made})


def _batch_of(batch: dict[str, Any], arrays: dict[str, Array]) -> tuple[Any, str]:
    """Return the learner or the fitted model, and its class if it has to be given again."""
    if "learner" in batch:
        name, parameters = batch["learner"], batch.get("parameters")
        good = isinstance(name, str) and name in LEARNERS and isinstance(parameters, dict)
        _check(good, "its batch learner is unknown")
        return LEARNERS[name](**(parameters or {})), ""
    if "frozen" in batch:
        names = batch["frozen"]
        good = names is None or (isinstance(names, list) and all(type(n) is str for n in names))
        _check(good, "the features of its fitted model are wrong")
        if "frozen.roots" in arrays:
            trees = FlatTrees.from_arrays(arrays, "frozen.")
            _check(names is None or len(names) >= trees.width, "its fitted model has more features")
            return FrozenModel(trees, names), ""
        return _Absent(), FITTED
    lost = batch.get("lost")
    _check(isinstance(lost, str) and 0 < len(lost) < 1000, "its batch learner is wrong")
    return _Absent(), str(lost)


class _Absent:
    """In place of a learner or a model that has to be given again."""

    def fit(self, X: Any, y: Any) -> None:
        """Raise RuntimeError."""
        raise RuntimeError("the batch learner was not attached")

    def predict(self, X: Any) -> None:
        """Raise RuntimeError."""
        raise RuntimeError("the batch model was not attached")


def _fill(
    core: "HybridCore", header: dict[str, Any], arrays: dict[str, Array], features: Features
) -> None:
    """Fill a newly made core with its saved state."""
    for name in COUNTS:
        low = FIRST_POINT if name == "interval" else 0
        setattr(core, name, validation.whole(header[name], name, low, MOST_ROWS))
    rows = validation.whole(header["rows"], "rows", 0, MOST_ROWS)
    _check(core.last_start <= rows, "its last fit started later than its last row")
    unscored = validation.whole(header["unscored"], "unscored", 0, rows)
    state = _table(arrays, "state", core.count, _stack.STATE)
    _check_sums(state)
    core.history = tuple(_table(arrays, "history", None, len(HISTORY)))
    _check(len(core.history) < MOST_POINTS, "its history is too long")
    core.refits = _refits(header["refits"])
    corrector = _bytes_of(arrays, "corrector")
    _check(bool(corrector) == (core.corrector is not None), "it lacks, or has, a corrector")
    if corrector:
        core.corrector = model.from_bytes(corrector, "the corrector")
        _check(type(core.corrector) is type(core.online), "its corrector is of another class")
        _check_targets(core.corrector, list(core.names))
    detector = ChangeDetector.from_bytes(_bytes_of(arrays, "detector"), "the detector")
    window = core.learned.window
    if core.learner is not None or core.lost not in ("", FITTED):
        window = window.filled(_rows(arrays, "window.", core.count, rows))
    backtest = _backtest(core, arrays)
    events = _events(header["events"])
    core.learned = Learned(rows, state, window, detector, events, unscored, backtest)
    core.advanced = rows
    restore_pending(core.pending, arrays, rows)
    _fill_batch(core, header, arrays, features)


def _check_targets(learned: Any, targets: list[Any]) -> None:
    """Raise ValueError if a model inside has learned other targets than the hybrid."""
    own = list(getattr(learned, "targets", targets))
    is_new = not own and not rows_learned(learned)
    _check(is_new or own == targets, "its targets are others")


def _check_sums(state: NDArray[np.float64]) -> None:
    """Raise ValueError for evidence of weights that no rows can give."""
    size, start = _stack.STAGE_NUMBERS, _stack.FIRST_START
    signed = [stage * size + place for stage in range(_stack.STAGES) for place in (1, 3, start + 2)]
    starts = [stage * size + start for stage in range(_stack.STAGES)]
    squares = np.delete(state, [*signed, *starts], axis=1)  # products may be below 0
    good = bool(np.isfinite(state).all() and (squares >= 0).all())
    _check(good and bool((np.abs(state[:, starts]) <= 1).all()), "a sum of its weights is wrong")


def _backtest(core: "HybridCore", arrays: dict[str, Array]) -> Backtest | None:
    """Return the copies of the online models that evaluate them, if there are any."""
    if BACKTEST[0] not in arrays:
        return None
    made = [
        model.from_bytes(found, "the backtest") if (found := _bytes_of(arrays, name)) else None
        for name in BACKTEST
    ]
    _check(type(made[0]) is type(core.online), "a copy of its online model is of another class")
    _check(type(made[1]) is type(core.corrector), "a copy of its corrector is of another class")
    for copy, own in zip(made, (core.online, core.corrector), strict=True):
        same = copy is None or list(copy.targets) == list(own.targets)
        _check(same, "a copy of its online models has other targets")
    return Backtest(*made)


def _fill_batch(
    core: "HybridCore", header: dict[str, Any], arrays: dict[str, Array], features: Features
) -> None:
    """Restore the batch model, and start the fit again that was under way."""
    labels = arrays.get("batch.labels")
    if labels is not None:
        labels = _labels(labels)
        if "batch.has" in arrays:
            has = arrays["batch.has"]
            _check(has.dtype == np.uint8 and has.shape == (core.count,), "its models are wrong")
            models = [
                FlatTrees.from_arrays(arrays, f"batch.{place}.") if each else None
                for place, each in enumerate(has.tolist())
            ]
            good = all(each is None or each.width <= len(labels) for each in models)
            _check(good, "its batch model has more features than its labels")
            core.batch = BatchModel([*models], labels)
        else:
            core.batch_rows = _rows(arrays, "batch_rows.", core.count, core.rows)
            core.batch_labels = labels
            good = core.batch_rows.X.shape[1] == len(labels) <= len(features.names)
            _check(good, "the rows of its last fit have other features")
            if core.learner is not None:
                _refit(core, features)
    if header["fit"] is not None:
        used_from = validation.whole(header["fit"], "fit", 0, MOST_ROWS)
        good = used_from > core.rows or bool(core.lost)  # without a learner no fit is used
        _check(good, "the fit that was under way should have been used")
        rows = _rows(arrays, "fit.", core.count, core.rows)
        fit_labels = _labels(arrays.get("fit.labels"))
        good = rows.X.shape[1] == len(fit_labels) <= len(features.names)
        _check(good, "the fit that was under way has other features")
        core.awaited = rows, fit_labels, used_from
        if core.learner is not None:
            _start(core, features)


def attach(own: "HybridRegressor", batch: Any) -> None:
    """Give a hybrid its batch learner, or its fitted model, again."""
    core = own._core
    if not core.lost:
        raise ValueError("the hybrid has its batch learner: attach is for one that was loaded")
    if core.lost == FITTED:
        frozen = batch if isinstance(batch, FrozenModel) else FrozenModel(batch)
        core.frozen, core.lost = frozen, ""
        return
    learner = learner_of(batch)
    if learner.name != core.lost:
        raise ValueError(
            f"batch = {validation.shown(batch)}: the hybrid was saved with {core.lost}"
        )
    core.learner, core.lost = learner, ""
    if core.batch_rows is not None:
        _refit(core, own._features)
    if core.awaited is not None:
        _start(core, own._features)


def _refit(core: "HybridCore", features: Features) -> None:
    """Repeat the fit of the model that predicts."""
    assert core.learner is not None
    assert core.batch_rows is not None
    assert core.batch_labels is not None
    order = order_of(features, len(core.batch_labels))
    fit = Fit(core.learner, core.batch_rows, core.batch_labels, order, core.rows, background=False)
    core.batch, note = fit.result(None)
    if core.batch is None:
        fit.warn(note.error)


def _start(core: "HybridCore", features: Features) -> None:
    """Start the fit again that was under way."""
    assert core.learner is not None
    assert core.awaited is not None
    rows, labels, used_from = core.awaited
    order = order_of(features, len(labels))
    core.fit = Fit(core.learner, rows, labels, order, used_from, background=core.background)
    core.awaited = None
    core.use_fit()


def _refits(saved: Any) -> tuple[Refit, ...]:
    _check(isinstance(saved, list) and len(saved) <= MOST_REFITS, "its fits are wrong")
    made = []
    for each in saved:
        good = isinstance(each, list) and [type(part) for part in each] == [int, int, int, str]
        _check(good and len(each[3]) < 100_000, "one of its fits is wrong")
        row, rows, used_from, error = each
        made.append(Refit(row, rows, used_from, error, float("nan")))
    return tuple(made)


def _events(saved: Any) -> tuple[dict[str, Any], ...]:
    _check(isinstance(saved, list) and len(saved) <= MOST_EVENTS, "its drift events are wrong")
    for event in saved:
        good = isinstance(event, dict) and event.keys() == {"row", "before", "after"}
        _check(good and type(event["row"]) is int, "one of its drift events is wrong")
        _check(all(type(event[name]) is float for name in ("before", "after")), "a drift event")
    return tuple(dict(event) for event in saved)


def _rows(arrays: dict[str, Array], prefix: str, targets: int, most: int) -> Rows:
    rows = Rows.from_arrays(arrays, prefix)
    _check(rows.y.shape[1] == targets, "saved rows have other targets")
    _check(rows.stop <= most, "saved rows are later than the last one")
    return rows


def _labels(array: Array | None) -> NDArray[np.float64]:
    good = array is not None and array.dtype == np.float64 and array.ndim == 1
    _check(good and bool((np.asarray(array) >= 0).all()), "the labels of a fit are wrong")
    return np.array(array)


def _table(
    arrays: dict[str, Array], name: str, rows: int | None, columns: int
) -> NDArray[np.float64]:
    """Return an array of so many rows, or any number of them, and columns."""
    array = arrays.get(name, np.empty(0))
    good = array.dtype == np.float64 and array.ndim == 2 and array.shape[1] == columns
    _check(good and rows in (None, len(array)), f"{name} is {array.dtype} of shape {array.shape}")
    return np.array(array)


def _bytes_of(arrays: dict[str, Array], name: str) -> bytes:
    array = arrays.get(name)
    _check(array is not None and array.dtype == np.uint8 and array.ndim == 1, f"{name} is no bytes")
    return np.asarray(array).tobytes()


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(complaint)
