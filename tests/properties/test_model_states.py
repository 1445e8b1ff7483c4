"""Every state that a model can reach is saved, loaded and copied, and goes on to the same bits.

`pytest tests/test_model_states.py -m long -s` tries many more, others each time, and prints how
many states there were.
"""

from collections import Counter
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from model_states import ModelStates, tried
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    IntervalRegressor,
    QuantizerObserver,
)
from state_cases import by_bytes

# Rows may name no feature that the model knows; that this is told is tested with its behaviour.
pytestmark = pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")

SMALL = {"grace_period": 20, "observer": QuantizerObserver(slots=8)}


def two_targets(y):
    """Two targets made of one, each of them missing now and then."""
    if np.ndim(y) == 0:
        return {"one": y, "other": None if y > 0 else -y}
    rows = np.arange(len(y))
    lacks = rows % 3 == 2  # the other one; each row has one of them
    one = np.where((rows % 5 == 1) & ~lacks, np.nan, y)
    other = np.where(lacks, np.nan, 2 - y)
    return {"one": one, "other": other}


class TargetStates(ModelStates):
    """A tree of two targets."""

    seen: ClassVar[Counter] = Counter()

    @initialize(limit=st.sampled_from([None, 60_000]))
    def plant(self, limit):
        self.begin(HoeffdingTreeRegressor(**SMALL, max_bytes=limit))

    def labels(self, y):
        return two_targets(y)


class ForestStates(ModelStates):
    """A forest of three trees."""

    seen: ClassVar[Counter] = Counter()

    @initialize(limit=st.sampled_from([None, 400_000]), seed=st.integers(0, 9))
    def plant(self, limit, seed):
        self.begin(ForestRegressor(members=3, seed=seed, threads=1, max_bytes=limit, **SMALL))


class AdaptiveStates(ModelStates):
    """A tree and its challenger."""

    seen: ClassVar[Counter] = Counter()

    @initialize(limit=st.sampled_from([None, 200_000]))
    def plant(self, limit):
        self.begin(AdaptiveTreeRegressor(max_bytes=limit, **SMALL))


class IntervalStates(ModelStates):
    """Bounds around a tree, or around an adaptive one."""

    seen: ClassVar[Counter] = Counter()

    @initialize(make=st.sampled_from([HoeffdingTreeRegressor, AdaptiveTreeRegressor]))
    def plant(self, make):
        self.begin(IntervalRegressor(make(**SMALL)))


class IntervalTargetStates(IntervalStates):
    """Bounds around the same of two targets."""

    seen: ClassVar[Counter] = Counter()

    def labels(self, y):
        return two_targets(y)


MACHINES = (TargetStates, ForestStates, AdaptiveStates, IntervalStates, IntervalTargetStates)


@pytest.mark.parametrize("machine", MACHINES)
def test_states_of_a_model(machine):
    seen = tried(machine, max_examples=6, stateful_step_count=15)
    assert seen["states saved and loaded"] >= 60


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_many_states_of_a_model(machine):
    seen = tried(machine, max_examples=500, stateful_step_count=30, derandomize=False)
    assert seen["states saved and loaded"] >= 7_500
    assert min(seen[name] for name in ("files", "copied", "rejected")) > 0


# States that once were saved and could not be loaded


@pytest.mark.parametrize("make", [AdaptiveTreeRegressor, partial(ForestRegressor, members=3)])
def test_small_y_after_vast_ones(make):
    rng = np.random.default_rng(0)
    model = make(**SMALL)
    x = rng.normal(size=70)
    model.predict_learn_many({"x": x}, 1e90 * np.where(x > 0, 3 + x, -2))
    model.learn_many({"x": [None] * 40}, rng.normal(size=40))
    assert by_bytes(model).to_bytes() == model.to_bytes()


def test_a_target_that_is_missing_in_a_row_of_the_smallest_weight():
    tree = HoeffdingTreeRegressor(**SMALL)
    tree.learn_one({"x": 1.0}, {"one": 1.0, "other": None}, 5e-324)
    assert by_bytes(tree).to_bytes() == tree.to_bytes()


def test_targets_that_hardly_vary_after_vast_ones_of_next_to_no_weight():
    x = np.random.default_rng(0).normal(size=(400, 2))
    y = np.where(x[:, 0] > 0, 3 + x[:, 1], -2)
    tree = HoeffdingTreeRegressor(**SMALL)
    tree.learn_many(x, np.column_stack([1e90 * y, -1e90 * y]), np.full(400, 1e-290))
    tree.learn_many(x, np.column_stack([y, -y]))
    assert tree.n_leaves > 1
    for model in (tree, tree.of_target(1)):
        assert by_bytes(model).to_bytes() == model.to_bytes()
