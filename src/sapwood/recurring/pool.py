"""When a model is retired, when retired models are tried, and when one of them returns.

All that learning changes is in `Held`. It is looked at after every `LOOK` rows, so that a batch gives the
same as its rows one by one. `looked` returns what is held from then on, and changes nothing.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.drift._detector import LARGEST
from sapwood.drift.detector import ChangeDetector
from sapwood.model import from_bytes
from sapwood.regressor import Regressor
from sapwood.stages.stage import rows_learned
from sapwood.validation import Label

__all__ = ["LOOK", "MOST_EVENTS", "TRIAL_LOOKS", "Event", "Held", "Rules", "Trial", "looked"]

FloatArray = NDArray[np.float64]
Event = dict[str, Any]

LOOK = 25  # rows between two looks
TRIAL_LOOKS = 20  # after which a trial ends without a return
SURE = 4.0  # deviations by which a retired model has to be ahead
SAME = 0.1  # share of squared errors; models whose predictions differ by less are of one concept
ONCE_IN = 1_000_000.0  # rows between false drift alerts
MOST_EVENTS = 100
FURTHEST = 1e60  # that an error counts; its fourth power is finite


class Rules(NamedTuple):
    """The bounds of a pool.

    Attributes
    ----------
    most : int
        How many retired models it has.
    max_bytes : int
        How many bytes they have together.
    """

    most: int
    max_bytes: int

    def within(self, pool: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Return the latest models that fit."""
        while len(pool) > self.most or sum(map(len, pool)) > self.max_bytes:
            pool = pool[1:]
        return pool


class Trial(NamedTuple):
    """Retired models that learn along, and how their errors compare.

    Attributes
    ----------
    candidates : tuple of models
        In the order of the pool. None for one that rejected a row.
    learned : tuple of float
        How many rows each has learned.
    retired : bytes
        The model in use, as it was at the drift alert.
    sums : array of float, shape (candidates, 3)
        Of each: by how much its squared errors are less, the squares of that, and the squared
        differences of its predictions from those of the model in use.
    square : float
        The sum of squared errors of the model in use.
    looks : int
        How often it was looked at.
    """

    candidates: tuple[Regressor | None, ...]
    learned: tuple[float | None, ...]
    retired: bytes
    sums: FloatArray
    square: float
    looks: int

    def with_candidates(self, candidates: tuple[Regressor | None, ...]) -> "Trial":
        """Return the trial after these have learned rows."""
        return self._replace(candidates=candidates, learned=_rows_of(candidates))


class Held(NamedTuple):
    """All that learning changes.

    Attributes
    ----------
    model : Regressor
        The model in use.
    learned : float
        How many rows it has learned.
    rows : int
        How many rows were learned in all.
    pool : tuple of bytes
        The retired models, as files; the latest is last.
    detector : ChangeDetector
        Of the absolute errors.
    recent : array of float, shape (2 + most, LOOK)
        Since the last look: y, predictions of the model in use, and those of candidates. Learning
        fills places that are not in use yet.
    trial : Trial, optional
        That is under way.
    events : tuple of dict
        The ends of trials.
    names : tuple
        The features in the order of earlier models, once one of these has returned.
    """

    model: Any
    learned: float | None
    rows: int
    pool: tuple[bytes, ...]
    detector: ChangeDetector
    recent: FloatArray
    trial: Trial | None = None
    events: tuple[Event, ...] = ()
    names: tuple[Label, ...] = ()

    @classmethod
    def of(cls, model: Any, rules: Rules) -> "Held":
        """Return what is held at first."""
        recent = np.full((2 + rules.most, LOOK), np.nan)
        return cls(model, rows_learned(model), 0, (), fresh_detector(), recent)

    @property
    def filled(self) -> int:
        """How many rows there were since the last look."""
        return self.rows % LOOK

    @property
    def candidates(self) -> tuple[Regressor | None, ...]:
        """The retired models that are being tried."""
        return () if self.trial is None else self.trial.candidates

    @property
    def features(self) -> tuple[Label, ...]:
        """The names of the features, in the order of their first appearance."""
        own: tuple[Label, ...] = tuple(self.model.features)
        if not self.names:
            return own
        return (*self.names, *(name for name in own if name not in self.names))


def fresh_detector() -> ChangeDetector:
    """Return a detector that has seen nothing."""
    return ChangeDetector(ONCE_IN, "up")


def looked(held: Held, rules: Rules) -> Held:
    """Return what is held after a look at the last rows, which `held` counts already."""
    y, predictions = held.recent[0], held.recent[1]
    known = np.isfinite(predictions)  # an interruption may have left some out
    detector = fresh_detector()
    detector._seen = held.detector._seen
    found = detector.update_many(np.minimum(np.abs(y - predictions)[known], LARGEST))
    held = held._replace(detector=detector)
    if held.trial is not None:
        return _tried(held, held.trial, known, rules)
    return held._replace(trial=_begun(held)) if found else held


def _begun(held: Held) -> Trial:
    """Return a trial of all retired models."""
    candidates = tuple(_restored(data, held.model) for data in held.pool)
    sums = np.zeros((len(candidates), 3))
    return Trial(candidates, _rows_of(candidates), held.model.to_bytes(), sums, 0.0, 0)


def _restored(data: bytes, model: Regressor) -> Regressor:
    """Return a retired model, for which no predictions are pending."""
    made: Regressor = from_bytes(data, "a retired model")
    if made.schema != model.schema:
        made.schema = model.schema
    notes = made._kernel.pending
    if notes is not None:
        notes.restore(*PendingPredictions(notes.width, notes.most).state())
    return made


def _rows_of(models: tuple[Regressor | None, ...]) -> tuple[float | None, ...]:
    return tuple(rows_learned(model) for model in models)


def _tried(held: Held, trial: Trial, known: NDArray[np.bool_], rules: Rules) -> Held:
    """Return what is held after a look during a trial."""
    y, own, *others = held.recent[: 2 + len(trial.candidates), known]
    error = np.clip(y - own, -FURTHEST, FURTHEST)
    sums = trial.sums.copy()
    for place, other in enumerate(others):
        lead = error**2 - np.clip(y - other, -FURTHEST, FURTHEST) ** 2
        apart = np.clip(own - other, -FURTHEST, FURTHEST) ** 2
        sums[place] += lead.sum(), (lead**2).sum(), apart.sum()
    trial = trial._replace(
        sums=sums, square=trial.square + float((error**2).sum()), looks=trial.looks + 1
    )
    best = _best(trial)
    if best is None and trial.looks < TRIAL_LOOKS:
        return held._replace(trial=trial)
    return _ended(held, trial, best, rules)


def _best(trial: Trial) -> int | None:
    """Return the candidate that is furthest ahead, if it is surely ahead."""
    lead, square = trial.sums[:, 0], trial.sums[:, 1]
    ahead = np.where(lead > SURE * np.sqrt(square), lead, -np.inf)
    best = int(np.argmax(ahead)) if len(ahead) else 0
    return best if len(ahead) and ahead[best] > 0.0 else None


def _ended(held: Held, trial: Trial, best: int | None, rules: Rules) -> Held:
    """Return what is held after a trial; `best` is the candidate that returns, if one does.

    Retired models that predict the same as the model in use are of the same concept: what was
    retired now replaces them.
    """
    differ = trial.sums[:, 2] > SAME * trial.square
    kept = [
        data
        for place, data in enumerate(held.pool)
        if place != best and differ[place] and trial.candidates[place] is not None
    ]
    pool = rules.within((*kept, trial.retired))
    event = {"event": "new" if best is None else "returned", "rows": held.rows, "pool": len(pool)}
    held = held._replace(pool=pool, trial=None, events=(*held.events, event)[-MOST_EVENTS:])
    if best is None:
        return held
    names, model = held.features, trial.candidates[best]
    if model is None:
        raise RuntimeError("a model that rejected a row is ahead")
    _expect_labels(held.model, model)
    return held._replace(
        model=model, learned=rows_learned(model), detector=fresh_detector(), names=names
    )


def _expect_labels(old: Regressor, new: Regressor) -> None:
    """Let a model expect the labels of rows that another one has predicted."""
    pending, notes = old._kernel.pending, new._kernel.pending
    if pending is not None and notes is not None:
        fresh = PendingPredictions(notes.width, notes.most)
        fresh.add_unrecorded(pending.count + pending.unrecorded)
        notes.restore(*fresh.state())
