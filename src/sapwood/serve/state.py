"""The state of the service: operations change it, always in the same way.

The same operations in the same order give the same state to the last bit, so that a checkpoint and
the operations after it are enough to restore it.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.serve.class_host import host_from_bytes
from sapwood.serve.class_scoring import scoreboard_of
from sapwood.serve.model_host import REJECTIONS, ModelHost, Predicted
from sapwood.serve.operations import Operation, Outcome
from sapwood.serve.rows import Batch, shown

__all__ = ["ConflictError", "ServiceState"]

DONE = 100_000
"""Identifiers of learned rows that are remembered, so that none is learned twice."""
MODEL, TEXT = "model", "service"
SCORES = "scores."


class Pending(NamedTuple):
    """A row whose label is pending.

    - `values`: the prediction that was issued, for each target; of a classifier, the probabilities.
    - `bounds`: the prediction intervals that were issued, for each target and level.
    - `baselines`: what the baselines of each target predicted then.
    """

    x: dict[Any, Any]
    values: list[Any]
    bounds: Any
    baselines: list[list[float]]


class ConflictError(ValueError):
    """An identifier is in a state that forbids the operation."""

    status: ClassVar[int] = 409


class ServiceState:
    """A model, its scores, and its pending predictions.

    - `max_pending`: predictions whose labels are waited for; beyond that, the oldest is evicted.
    """

    def __init__(self, host: ModelHost, max_pending: int = 100_000, monitor: bool = True) -> None:
        self.host = host
        self.scores = scoreboard_of(host, monitor)
        self.seq = 0
        self.rows = host.learned_rows
        self.position: dict[str, Any] | None = None
        self.pending: OrderedDict[str, Pending] = OrderedDict()
        self._done: OrderedDict[str, None] = OrderedDict()
        self._max_pending = max_pending
        self._monitor = monitor

    # -- operations -------------------------------------------------------------------------------

    def apply(self, operation: Operation, moment: float, batch: Batch | None = None) -> Outcome:
        """Apply an operation.

        - `moment`: when it was logged, in seconds since 1970.
        - `batch`: its rows, if they were read already.
        - Raises ValueError, TypeError, OverflowError if it is rejected: nothing is learned then.
        """
        if batch is None:
            batch = operation.read(task=self.host.task)
        outcome: Outcome = getattr(self, f"_{operation.kind}")(batch, moment)
        if operation.kind == "follow":
            self.position = {**(self.position or {}), **operation.params}
        return outcome

    def _learn(self, batch: Batch, moment: float) -> Outcome:
        fresh, duplicates = self._without_duplicates(batch)
        outcome = Outcome(duplicates=duplicates)
        if fresh.count:
            self._learn_fresh(fresh, moment, outcome)
        outcome.answer = {"learned": outcome.learned, "duplicates": duplicates, "rows": self.rows}
        return outcome

    def _learn_fresh(self, batch: Batch, moment: float, outcome: Outcome) -> None:
        found = self.host.predict_learn(batch)
        self._meet_targets()
        self._remember(batch.ids)
        self.rows += batch.count
        outcome.learned += batch.count
        y = self.host.actuals(batch.y or [])
        outcome.drifts += self.scores.add(batch.as_dicts(), found, y, moment)

    def _follow(self, batch: Batch, moment: float) -> Outcome:
        """Learn rows of a topic; bad ones are left out."""
        outcome, batch.encoded = Outcome(), True
        try:
            self._learn_fresh(batch, moment, outcome)
        except REJECTIONS:
            rows, y = batch.as_dicts(), batch.y or []
            for row, target in zip(rows, y, strict=True):
                try:
                    one = Batch([row], 1, None, [target], encoded=True)
                    self._learn_fresh(one, moment, outcome)
                except REJECTIONS:
                    outcome.rejected += 1
        outcome.answer = {"learned": outcome.learned, "rows": self.rows}
        return outcome

    def _without_duplicates(self, batch: Batch) -> tuple[Batch, int]:
        """Return the rows that were not learned before, and the number of the others."""
        if batch.ids is None:
            return batch, 0
        kept, seen = [], set()
        for place, each in enumerate(batch.ids):
            if each is not None and each in self.pending:
                raise ConflictError(f"id {shown(each)} is pending; send its label to /labels")
            if each is None or not (each in self._done or each in seen):
                kept.append(place)
            seen.add(each)
        if len(kept) == batch.count:
            return batch, 0
        rows, ids, y, w = batch.as_dicts(), batch.ids, batch.y or [], batch.w
        fresh = Batch(
            [rows[place] for place in kept],
            len(kept),
            [ids[place] for place in kept],
            [y[place] for place in kept],
            None if w is None else [w[place] for place in kept],
        )
        return fresh, batch.count - len(kept)

    def _labels(self, batch: Batch, moment: float) -> Outcome:
        labels: dict[str, Any] = {}
        duplicates, unknown = list[str](), list[str]()
        for each, label in zip(batch.ids or (), batch.y or (), strict=True):
            assert each is not None  # as it is required
            if each in labels or each in self._done:
                duplicates.append(each)
            elif each in self.pending:
                labels[each] = label
            else:
                unknown.append(each)
        outcome = Outcome(duplicates=len(duplicates))
        if labels:
            ids, y = list(labels), list(labels.values())
            waiting = [self.pending[each] for each in ids]
            rows = [each.x for each in waiting]
            self.host.learn(rows, y, ids)
            self._meet_targets()
            for each in ids:
                del self.pending[each]
            self._remember(ids)
            self.rows += len(ids)
            outcome.learned = len(ids)
            found = _issued(self.host, waiting)
            issued = [each.baselines for each in waiting]
            outcome.drifts = self.scores.add(rows, found, self.host.actuals(y), moment, issued)
        outcome.answer = {
            "learned": outcome.learned,
            "duplicates": duplicates,
            "unknown": unknown,
            "rows": self.rows,
        }
        return outcome

    def _predict(self, batch: Batch, moment: float) -> Outcome:
        """Predict rows that have ids; what is issued stays the same if an id comes again."""
        ids, rows = batch.ids or [], batch.as_dicts()
        for each in ids:
            if each in self._done:
                raise ConflictError(f"id {shown(each)} has its label already; send a new id")
        places = [place for place, each in enumerate(ids) if each not in self.pending]
        made: dict[int, Pending] = {}
        if places:
            own = [ids[place] for place in places]
            fresh = self.host.predict(Batch([rows[place] for place in places], len(places), own))
            baselines = self.scores.baseline_predictions
            for number, place in enumerate(places):
                bounds = None if fresh.bounds is None else fresh.bounds[number].tolist()
                values = fresh.values[number].tolist()
                made[place] = Pending(rows[place], values, bounds, baselines)
        waiting = []
        for place, each in enumerate(ids):
            entry = made[place] if place in made else self.pending[str(each)]
            waiting.append(entry if each is None else self.pending.setdefault(each, entry))
        issued = _issued(self.host, waiting)
        outcome = Outcome(predicted=len(ids), answer={"issued": issued})
        while len(self.pending) > self._max_pending:
            self.pending.popitem(last=False)
            outcome.evicted += 1
        return outcome

    def _remember(self, ids: Sequence[str | None] | None) -> None:
        if ids is not None:
            self._done.update((each, None) for each in ids if each is not None)
            while len(self._done) > DONE:
                self._done.popitem(last=False)

    def _meet_targets(self) -> None:
        """Start scoring again if the model has met several targets with its first row."""
        targets = self.host.targets
        if targets != self.scores.targets:
            self.scores = scoreboard_of(self.host, self._monitor)

    # -- checkpoints ------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all of it: a header for JSON, and arrays."""
        text = {"pending": list(self.pending.items()), "done": list(self._done)}
        arrays = {
            MODEL: np.frombuffer(self.host.to_bytes(), np.uint8),
            TEXT: np.frombuffer(json.dumps(text).encode(), np.uint8),
        }
        arrays |= {f"{SCORES}{name}": each for name, each in self.scores.to_arrays().items()}
        return {"seq": self.seq, "rows": self.rows, "position": self.position}, arrays

    @classmethod
    def from_state(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        max_pending: int = 100_000,
        monitor: bool = True,
    ) -> Self:
        """Restore what `to_state` returned."""
        host = host_from_bytes(arrays[MODEL].tobytes(), "the checkpoint")
        made = cls(host, max_pending, monitor)
        text = json.loads(arrays[TEXT].tobytes())
        made.pending.update((each, Pending(*entry)) for each, entry in text["pending"])
        made._done.update(dict.fromkeys(text["done"]))
        made.seq, made.rows = int(header["seq"]), int(header["rows"])
        made.position = header["position"]
        own = {
            name.removeprefix(SCORES): array
            for name, array in arrays.items()
            if name.startswith(SCORES)
        }
        made.scores.restore(own)
        return made


def _issued(host: ModelHost, waiting: list[Pending]) -> Predicted:
    """Return predictions that were issued as those of a batch."""
    return host.issued([each.values for each in waiting], [each.bounds for each in waiting])
