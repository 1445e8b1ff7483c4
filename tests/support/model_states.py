"""A machine of Hypothesis that calls a model in any order.

A second model makes the same calls, and is saved and loaded, copied or pickled from time to time.
After every call both have to be bit-identical. A third one, loaded from the bytes just saved, has to
be bit-identical too.
"""

from collections import Counter
from typing import ClassVar

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from state_cases import COPIES, batches, by_bytes, by_file, outcome


class ModelStates(RuleBasedStateMachine):
    """A model, and a copy of it that was restored from files."""

    seen: ClassVar[Counter] = Counter()

    def begin(self, model):
        self.model = model
        self.restored = by_bytes(model)

    def labels(self, y):
        """What is learned where y is to be; a machine of several targets has more of them."""
        return y

    def count(self):
        """Count what kind of state it is."""

    def both(self, work):
        """Let both do the same, with the same outcome."""
        found = outcome(work, self.model)
        assert outcome(work, self.restored) == found
        self.seen["rejected"] += isinstance(found, tuple)

    @rule(batch=batches())
    def learn_columns(self, batch):
        y = self.labels(batch.y)
        self.both(lambda model: model.predict_learn_many(batch.columns, y, batch.w))

    @rule(batch=batches(), repeated=st.integers(2, 6))
    def learn_much(self, batch, repeated):
        columns = {name: values * repeated for name, values in batch.columns.items()}
        y, w = self.labels(np.tile(batch.y, repeated)), np.tile(batch.w, repeated)
        self.both(lambda model: model.learn_many(columns, y, w))

    @rule(batch=batches(most=6))
    def learn_rows(self, batch):
        for x, y, w in batch.rows():
            self.both(lambda model, x=x, y=y, w=w: model.learn_one(x, self.labels(y), w))

    @rule(batch=batches(names=("a", "b", "c", "d", 7)))
    def learn_array(self, batch):
        wanted = self.model.features or [0, 1]
        given = iter(batch.columns.values())
        empty = [np.nan] * len(batch.y)
        columns = [
            next(given, empty) if self.model.feature_kinds.get(name) != "category" else empty
            for name in wanted
        ]
        X, y = np.array(columns, dtype=float).T, self.labels(batch.y)
        self.both(lambda model: model.learn_many(X, y, batch.w))

    @rule(batch=batches(most=20))
    def predict(self, batch):
        self.both(lambda model: model.predict_many(batch.columns))
        for x, _, _ in batch.rows():
            self.both(lambda model, x=x: model.predict_one(x))

    @rule(
        y=st.sampled_from([np.nan, np.inf, 1e101, 1.0]),
        w=st.sampled_from([0.0, -1.0, np.nan, 1e51]),
    )
    def learn_what_is_refused(self, y, w):
        y = self.labels(y)
        self.both(lambda model: model.learn_one({"a": 1.0, "fresh": 2.0}, y, w))

    @rule(way=st.sampled_from(COPIES))
    def copy(self, way):
        self.restored = way(self.restored)
        self.seen["copied"] += 1

    @rule()
    def save_and_load(self):
        self.restored = by_file(self.restored)
        self.seen["files"] += 1

    @invariant()
    @precondition(lambda self: hasattr(self, "model"))
    def saved_and_loaded(self):
        data = self.model.to_bytes()
        assert self.restored.to_bytes() == data
        loaded = type(self.model).from_bytes(data)
        assert loaded.to_bytes() == data
        assert loaded.nbytes == self.model.nbytes
        self.seen["states saved and loaded"] += 1
        self.count()


def tried(machine, **chosen):
    """Run a machine; what it counted."""
    machine.seen.clear()
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    run_state_machine_as_test(
        machine, settings=settings(suppress_health_check=slow, print_blob=True, **chosen)
    )
    print(f"\n{machine.__name__}: {dict(machine.seen)}")
    return machine.seen
