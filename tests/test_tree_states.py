"""Every state that a tree can reach is saved, loaded and copied, and goes on to the same bits.

A machine of Hypothesis calls the tree in any order. Beside the tree goes a twin that is saved and
loaded, copied or pickled now and then, and takes its own place; after every call, both have to be
the same to the last bit, and so has a third that is loaded from what was saved just now.

`pytest tests/test_tree_states.py -m long -s` tries many more, others each time, and prints how
many states there were.
"""

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sapwood import EBSTObserver, HoeffdingTreeRegressor, QuantizerObserver
from state_cases import COPIES, batches, by_bytes, by_file, infinite_or_nan, outcome, tried
from tree_cases import parameters

# Rows may name no feature that the tree knows; that this is told is tested with its behaviour.
pytestmark = pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")

TIGHT = (16_384, 21_328, 30_000, 40_000, 60_000, 100_000)
SLOTS = (8, 16, 32, 64)


@st.composite
def trees(draw, limits):
    """Arguments of a tree."""
    chosen = draw(parameters())
    if draw(st.booleans()):
        chosen["observer"] = QuantizerObserver(slots=draw(st.sampled_from(SLOTS)))
    chosen["max_bytes"] = draw(st.sampled_from(limits))
    chosen["categorical"] = draw(st.sampled_from([(), ("b", 7)]))
    return chosen


class TreeStates(RuleBasedStateMachine):
    """A tree, and its twin that comes from files."""

    seen: ClassVar[Counter] = Counter()

    @initialize(chosen=trees(limits=[None, None, 200_000]))
    def plant(self, chosen):
        self.tree = HoeffdingTreeRegressor(**chosen)
        self.twin = by_bytes(self.tree)

    def both(self, work):
        """Let both do the same, with the same outcome."""
        found = outcome(work, self.tree)
        assert outcome(work, self.twin) == found
        self.seen["refused"] += isinstance(found, tuple)

    @rule(batch=batches())
    def learn_columns(self, batch):
        self.both(lambda tree: tree.predict_learn_many(*batch))

    @rule(batch=batches(), repeated=st.integers(2, 6))
    def learn_much(self, batch, repeated):
        columns = {name: values * repeated for name, values in batch.columns.items()}
        y, w = np.tile(batch.y, repeated), np.tile(batch.w, repeated)
        self.both(lambda tree: tree.learn_many(columns, y, w))

    @rule(batch=batches(most=6))
    def learn_rows(self, batch):
        for x, y, w in batch.rows():
            self.both(lambda tree, x=x, y=y, w=w: tree.learn_one(x, y, w))

    @rule(batch=batches(names=("a", "b", "c", "d", 7)))
    def learn_array(self, batch):
        wanted = self.tree.features or [0, 1]
        given = iter(batch.columns.values())
        empty = [np.nan] * len(batch.y)
        columns = [
            next(given, empty) if self.tree.feature_kinds.get(name) != "category" else empty
            for name in wanted
        ]
        X = np.array(columns, dtype=float).T
        self.both(lambda tree: tree.learn_many(X, batch.y, batch.w))

    @rule(batch=batches(most=20))
    def predict(self, batch):
        self.both(lambda tree: tree.predict_many(batch.columns))
        for x, _, _ in batch.rows():
            self.both(lambda tree, x=x: tree.predict_one(x))

    @rule(
        y=st.sampled_from([np.nan, np.inf, 1e101, 1.0]),
        w=st.sampled_from([0.0, -1.0, np.nan, 1e51]),
    )
    def learn_what_is_refused(self, y, w):
        self.both(lambda tree: tree.learn_one({"a": 1.0, "fresh": 2.0}, y, w))

    @rule(way=st.sampled_from(COPIES))
    def copy(self, way):
        self.twin = way(self.twin)
        self.seen["copied"] += 1

    @rule()
    def save_and_load(self):
        self.twin = by_file(self.twin)
        self.seen["files"] += 1

    @invariant()
    @precondition(lambda self: hasattr(self, "tree"))
    def saved_and_loaded(self):
        data = self.tree.to_bytes()
        assert self.twin.to_bytes() == data
        loaded = HoeffdingTreeRegressor.from_bytes(data)
        assert loaded.to_bytes() == data
        assert loaded.nbytes == self.tree.nbytes
        assert infinite_or_nan(self.tree) == []
        self.count()

    def count(self):
        watching = self.tree._kernel.leaf_table["watching"][: self.tree.n_leaves]
        self.seen["states saved and loaded"] += 1
        self.seen["grown"] += len(watching) > 1
        self.seen["with leaves that do not watch"] += not watching.all()
        self.seen["where no leaf watches"] += not watching.any()
        self.seen["with categories"] += "category" in self.tree.feature_kinds.values()


class LimitedStates(TreeStates):
    """The same for trees that have little room."""

    seen: ClassVar[Counter] = Counter()

    @initialize(chosen=trees(limits=TIGHT))
    def plant(self, chosen):
        super().plant(chosen)


def assert_varied(seen, states):
    """The states were many, and of all kinds."""
    assert seen["states saved and loaded"] >= states
    assert (
        min(seen[name] for name in ("grown", "with categories", "files", "copied", "refused")) > 0
    )


def test_states_of_a_tree():
    assert_varied(tried(TreeStates, max_examples=30, stateful_step_count=20), 500)


def test_states_of_a_tree_of_little_room():
    seen = tried(LimitedStates, max_examples=40, stateful_step_count=20)
    assert_varied(seen, 500)
    assert min(seen["with leaves that do not watch"], seen["where no leaf watches"]) > 0


@pytest.mark.long
@pytest.mark.parametrize("machine", [TreeStates, LimitedStates])
def test_many_states_of_a_tree(machine):
    seen = tried(machine, max_examples=3_000, stateful_step_count=30, derandomize=False)
    assert_varied(seen, 50_000)


# States that once were saved and could not be loaded


def test_no_leaf_watches_as_observers_are_full():
    tree = HoeffdingTreeRegressor(observer=EBSTObserver(), max_bytes=22_328)
    rng = np.random.default_rng(0)
    tree.learn_many({"a": rng.random(500)}, rng.random(500))
    assert_goes_on_without_watching(tree)


def test_no_leaf_watches_as_labels_are_long():
    tree = HoeffdingTreeRegressor(max_bytes=21_328)
    for place in range(19):
        outcome(tree.learn_one, {"a": f"{place}" * 400}, place)
    assert_goes_on_without_watching(tree)


def assert_goes_on_without_watching(tree):
    assert tree._kernel.leaf_table["watching"][: tree.n_leaves].tolist() == [0]
    twin = by_file(tree)
    assert twin.to_bytes() == tree.to_bytes()
    for place in range(50):
        assert twin.predict_one({"a": None}) == tree.predict_one({"a": None})
        tree.learn_one({"a": None}, place)
        twin.learn_one({"a": None}, place)
    assert twin.to_bytes() == tree.to_bytes()
