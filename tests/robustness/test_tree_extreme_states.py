"""States of a tree that extreme but legal rows once made infinite, wrong, or impossible to load."""

import numpy as np
import pytest

from sapwood import EBSTObserver, HoeffdingTreeRegressor, QuantizerObserver
from state_cases import infinite_or_nan


def assert_sound(tree):
    """All is finite, and comes back."""
    assert infinite_or_nan(tree) == []
    assert tree.copy().to_bytes() == tree.to_bytes()


@pytest.mark.parametrize("slots", [8, 9, 10, 11, 32])
def test_an_early_origin_moves_with_the_slots_that_are_laid_already(slots):
    """With few slots the grid is laid before the first leaf may choose another origin."""
    tree = HoeffdingTreeRegressor(observer=QuantizerObserver(slots=slots), track=None)
    for place in range(7):
        tree.learn_one({"a": float(place)}, 1e9 + place)
    tree.learn_one({"a": 7.0}, 1.0)
    assert_sound(tree)
    page, start = tree._kernel.watch_pages[0], tree._kernel.slot_start(0)
    if page[2] > 0:  # the grid is laid
        sums = page[start:].reshape(-1, 3).sum(axis=0)
        assert sums[0] == 8
        assert sums[1] == pytest.approx(7 * (1e9 - 1.0) + 21)


def test_experts_of_large_y_whose_errors_are_far_apart():
    """Products of the powers of their errors and of y exceeded the largest double."""
    rng = np.random.default_rng(3)
    tree = HoeffdingTreeRegressor()
    record = tree._kernel
    for place in range(60):
        x = {"a": rng.normal(), "b": rng.normal()}
        tree.learn_one(x, 1e100 if place % 2 else -1e100)
    leaves = record.leaf_table
    leaves["error_0"][0] = 1e100
    for name in ("error_mean", "error_1", "error_2", "error_3"):
        leaves[name][0] = 1e130
    assert np.isfinite(tree.predict_one({"a": 1.0, "b": 0.5}))


def test_grids_of_children_whose_parent_covers_all_doubles():
    rng = np.random.default_rng(0)
    x = rng.uniform(-8.5, 8.5, (2000, 2)) * 1e307
    y = np.where(x[:, 0] < 0, -1.0, 1.0) + np.where(x[:, 1] < 0, 3.0, 0.0)
    tree = HoeffdingTreeRegressor(grace_period=40, observer=QuantizerObserver(slots=8))
    for part in range(0, 2000, 100):
        tree.learn_many(x[part : part + 100], y[part : part + 100])
        assert_sound(tree)
    assert tree.n_leaves >= 4
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    assert abs(nodes["threshold"][0]) < 1e308  # the cut is near 0, and not at the largest double


@pytest.mark.parametrize("factor", [4.0, 0.5])
def test_scales_that_never_stop_changing_while_rows_weigh_nothing(factor):
    """The variance of a coefficient grew, or shrank, with each of them."""
    rng = np.random.default_rng(0)
    tree = HoeffdingTreeRegressor(observer=EBSTObserver(), grace_period=1e40)
    growth = 2.0 if factor > 1 else 4.0
    for place in range(300):
        x = factor**place * rng.choice([-1, 1]) * (1 + rng.random())
        tree.learn_one({"a": x}, rng.normal(), 1e-200 * growth**place)
        if place % 10 == 0:
            assert_sound(tree)


def test_cuts_of_rows_whose_weights_have_no_products():
    rng = np.random.default_rng(0)
    tree = HoeffdingTreeRegressor(grace_period=10, delta=0.5)
    tree.learn_many({"b": rng.normal(size=8)}, rng.normal(size=8))
    x = rng.normal(size=200)
    tree.learn_many({"a": x}, np.sign(x), np.full(200, 5e-324))
    tree.learn_many({"b": rng.normal(size=60)}, rng.normal(size=60))
    assert_sound(tree)
