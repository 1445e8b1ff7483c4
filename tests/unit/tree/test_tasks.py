"""Tasks: what trees have to know of what is predicted. A third one shows that nothing else does."""

from dataclasses import replace

import numpy as np

from sapwood import ForestRegressor, HoeffdingTreeRegressor
from sapwood.tasks import CLASSES, SQUARED_ERROR, MeritUnit, Task
from sapwood.tree.bounds import HoeffdingBound
from sapwood.tree.growth import GrowthRules


def _log_columns(y, values):
    return np.log(np.asarray(y, dtype=np.float64))


COSTS = Task("costs in one currency", MeritUnit.ONE, True, _log_columns)
"""Targets that share a unit, so that a large variance counts for more than a small one."""


class CostGrowth:
    """Hands the third task over to trees, as `ClassGrowth` does with classes."""

    def __call__(self, growth: GrowthRules, rate: float, number: int) -> GrowthRules:
        return replace(growth, task=COSTS)


def stream(rows=3000):
    """Two targets, each with a step of its own: a large one of x0, and a small one of x1."""
    rng = np.random.default_rng(4)
    X = rng.random((rows, 2))
    large = np.exp(3.0 * (X[:, 0] > 0.5) + 0.5 * rng.normal(size=rows))
    small = np.exp(0.3 * (X[:, 1] > 0.5) + 0.01 * rng.normal(size=rows))
    return X, np.column_stack([large, small])


def first_split(task_growth):
    X, y = stream()
    tree = HoeffdingTreeRegressor(leaf="mean")
    if task_growth is not None:
        tree._use_growth(task_growth)
    tree.learn_many(X, COSTS.columns(y, 0))
    return tree


def test_a_third_task_decides_by_its_unit_which_target_a_split_serves():
    by_shares, by_costs = first_split(None), first_split(CostGrowth())
    assert by_shares._kernel.node_table["feature"][0] == 1
    assert by_costs._kernel.node_table["feature"][0] == 0
    assert by_costs.n_leaves > 1


def test_a_third_task_is_saved_copied_and_taken_apart_as_others_are():
    X, y = stream(800)
    forest = ForestRegressor(members=2, threads=1)
    forest._use_growth(CostGrowth())
    forest.learn_many(X, COSTS.columns(y, 0))
    whole = forest.predict_many(X, record=False)
    loaded = ForestRegressor.from_bytes(forest.to_bytes())
    assert np.array_equal(loaded.predict_many(X, record=False), whole)
    assert np.array_equal(forest.of_target(1).predict_many(X), whole[:, 1])


def test_kernels_read_the_code_of_the_unit():
    growth = GrowthRules(200.0, HoeffdingBound(1e-7), 0.05, 0.01, 20, "best")
    assert growth.to_record()["merit_unit"] == MeritUnit.VARIANCE == 0
    assert replace(growth, task=CLASSES).to_record()["merit_unit"] == MeritUnit.ONE == 1


def test_y_becomes_columns():
    y = np.array([1.5, 2.0])
    assert SQUARED_ERROR.columns(y, 0) is y
    assert CLASSES.columns(np.array([0, 1]), 2).tolist() == [0.0, 1.0]
    assert CLASSES.columns(np.array([0, 2]), 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
