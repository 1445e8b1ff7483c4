"""Every state that a tree can reach is saved, loaded and copied, and goes on to the same bits.

`pytest tests/test_tree_states.py -m long -s` tries many more, others each time, and prints how
many states there were.
"""

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from model_states import ModelStates, tried
from sapwood import EBSTObserver, HoeffdingTreeRegressor, QuantizerObserver
from state_cases import by_file, infinite_or_nan, outcome
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


class TreeStates(ModelStates):
    """A tree, and its twin that comes from files."""

    seen: ClassVar[Counter] = Counter()

    @initialize(chosen=trees(limits=[None, None, 200_000]))
    def plant(self, chosen):
        self.begin(HoeffdingTreeRegressor(**chosen))

    def count(self):
        assert infinite_or_nan(self.model) == []
        watching = self.model._kernel.leaf_table["watching"][: self.model.n_leaves]
        self.seen["grown"] += len(watching) > 1
        self.seen["with leaves that do not watch"] += not watching.all()
        self.seen["where no leaf watches"] += not watching.any()
        self.seen["with categories"] += "category" in self.model.feature_kinds.values()


class LimitedStates(TreeStates):
    """The same for trees that have little room."""

    seen: ClassVar[Counter] = Counter()

    @initialize(chosen=trees(limits=TIGHT))
    def plant(self, chosen):
        super().plant(chosen)


@pytest.mark.parametrize("machine", [TreeStates, LimitedStates])
def test_states_of_a_tree(machine):
    # Which kinds of states are among so few depends on what Hypothesis has seen of other tests.
    seen = tried(machine, max_examples=12, stateful_step_count=20)
    assert seen["states saved and loaded"] >= 120


@pytest.mark.long
@pytest.mark.parametrize("machine", [TreeStates, LimitedStates])
def test_many_states_of_a_tree(machine):
    seen = tried(machine, max_examples=3_000, stateful_step_count=30, derandomize=False)
    assert seen["states saved and loaded"] >= 50_000
    kinds = ["grown", "with categories", "with leaves that do not watch"]
    kinds += ["where no leaf watches"] if machine is LimitedStates else []
    assert min(seen[name] for name in (*kinds, "files", "copied", "rejected")) > 0


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
