"""Files of models with a pool of retired models."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.drift.detector import ChangeDetector
from sapwood.model import State, from_bytes
from sapwood.recurring.pool import (
    MOST_EVENTS,
    TRIAL_LOOKS,
    Event,
    Held,
    Rules,
    Trial,
    fresh_detector,
)
from sapwood.regressor import Regressor
from sapwood.stages.one_target import check_entries

__all__ = ["checked_rules", "restored", "state_of"]

Arrays = dict[str, NDArray[Any]]

HEADER = {"pool", "max_bytes", "rows", "events", "names", "retired", "tried", "looks"}
RETIRED, TRIED, OLD = "retired {}", "tried {}", "at the alert"
DETECTOR, RECENT, SUMS, SQUARE = "detector", "recent", "sums", "square"
EVENT = {"event", "rows", "pool"}
MOST = 32
LEAST_BYTES = 1 << 16
MOST_ROWS = 2**53


def checked_rules(pool: Any, max_bytes: Any) -> Rules:
    """Return the bounds of a pool.

    Raises
    ------
    ValueError
        If there cannot be so many models or bytes.
    """
    return Rules(
        validation.whole(pool, "pool", 1, MOST),
        validation.whole(max_bytes, "max_bytes", LEAST_BYTES, 2**62),
    )


def state_of(held: Held, rules: Rules) -> State:
    """Return all that is held but for the model in use, and the bounds of the pool."""
    trial = held.trial
    arrays: Arrays = {
        DETECTOR: _bytes(held.detector.to_bytes()),
        RECENT: held.recent[: 2 + len(held.candidates), : held.filled].copy(),
    }
    arrays |= {RETIRED.format(place): _bytes(data) for place, data in enumerate(held.pool)}
    if trial is not None:
        arrays |= {
            TRIED.format(place): _bytes(model.to_bytes())
            for place, model in enumerate(trial.candidates)
            if model is not None
        }
        arrays |= {OLD: _bytes(trial.retired), SUMS: trial.sums, SQUARE: np.array([trial.square])}
    header = {
        "pool": rules.most,
        "max_bytes": rules.max_bytes,
        "rows": held.rows,
        "events": list(held.events),
        "names": list(held.names),
        "retired": len(held.pool),
        "tried": [model is not None for model in held.candidates],
        "looks": None if trial is None else trial.looks,
    }
    return State(header, arrays)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def restored(model: Any, state: State) -> tuple[Held, Rules]:
    """Return what is held with a model in use, and the bounds of the pool.

    Nothing of a file is trusted.

    Raises
    ------
    ValueError, TypeError
        If there is anything wrong with it.
    """
    header, arrays = state
    check_entries(state, HEADER, arrays)
    rules = checked_rules(header["pool"], header["max_bytes"])
    rows = validation.whole(header["rows"], "rows", 0, MOST_ROWS)
    count = validation.whole(header["retired"], "retired", 0, rules.most)
    tried, looks = header["tried"], header["looks"]
    _check(isinstance(tried, list) and all(type(each) is bool for each in tried), "tried is wrong")
    _check(len(tried) == (0 if looks is None else count), "other models are tried than retired")
    _check_arrays(arrays, count, tried, looks)
    pool = tuple(arrays[RETIRED.format(place)].tobytes() for place in range(count))
    _check(rules.within(pool) == pool, "its pool is too large")
    for place in range(count):
        _model(arrays[RETIRED.format(place)], model)
    trial = None if looks is None else _trial(arrays, model, tried, looks)
    held = Held.of(model, rules)._replace(
        rows=rows,
        pool=pool,
        detector=_detector(arrays[DETECTOR]),
        events=_events(header["events"], rows),
        names=_names(header["names"]),
        trial=trial,
    )
    recent = arrays[RECENT]
    shape = (2 + len(tried), held.filled)
    _check(recent.dtype == np.float64 and recent.shape == shape, "its last rows are wrong")
    _check(not np.isinf(recent).any() and bool(np.isfinite(recent[0]).all()), "a label is wrong")
    held.recent[: shape[0], : shape[1]] = recent
    return held, rules


def _check_arrays(arrays: Arrays, count: int, tried: list[bool], looks: Any) -> None:
    names = {DETECTOR, RECENT, *(RETIRED.format(place) for place in range(count))}
    if looks is not None:
        validation.whole(looks, "looks", 0, TRIAL_LOOKS - 1)
        names |= {TRIED.format(place) for place, has in enumerate(tried) if has}
        names |= {OLD, SUMS, SQUARE}
    _check(arrays.keys() == names, "its arrays are not those of a model with a pool")


def _model(data: NDArray[Any], like: Any) -> Any:
    """Return a model of a file, of the same class as another one."""
    found = from_bytes(data.tobytes(), "the model with a pool")
    good = isinstance(found, Regressor) and not (found.several_targets and found.targets)
    _check(good, "a model inside is none of one target")
    _check(type(found) is type(like), "its models are of several kinds")
    return found


def _trial(arrays: Arrays, model: Any, tried: list[bool], looks: int) -> Trial:
    candidates = tuple(
        _model(arrays[TRIED.format(place)], model) if has else None
        for place, has in enumerate(tried)
    )
    _model(arrays[OLD], model)
    sums, square = arrays[SUMS], arrays[SQUARE]
    good = sums.dtype == square.dtype == np.float64
    _check(good and sums.shape == (len(tried), 3) and square.shape == (1,), "its sums are wrong")
    known = sums[np.array(tried, bool)]  # those of a model that rejected a row are not used
    good = bool(np.isfinite(known).all() and (known[:, 1:] >= 0.0).all())
    _check(good and 0.0 <= float(square[0]) < np.inf, "its sums cannot be")
    trial = Trial((), (), arrays[OLD].tobytes(), np.array(sums), float(square[0]), looks)
    return trial.with_candidates(candidates)


def _detector(data: NDArray[Any]) -> ChangeDetector:
    found = ChangeDetector.from_bytes(data.tobytes(), "the detector of drift")
    _check(found.parameters == fresh_detector().parameters, "its detector is another one")
    return found


def _events(saved: Any, rows: int) -> tuple[Event, ...]:
    good = isinstance(saved, list) and len(saved) <= MOST_EVENTS
    _check(
        good and all(isinstance(each, dict) and each.keys() == EVENT for each in saved),
        "bad events",
    )
    for event in saved:
        _check(event["event"] in ("new", "returned"), "an event is none")
        validation.whole(event["rows"], "rows", 0, rows)
        validation.whole(event["pool"], "pool", 0, MOST)
    return tuple(saved)


def _names(saved: Any) -> tuple[Any, ...]:
    good = isinstance(saved, list) and all(type(each) in (str, int) for each in saved)
    _check(good and len(set(saved)) == len(saved), "its features are wrong")
    return tuple(saved)


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(complaint)
