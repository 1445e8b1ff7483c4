"""Linear models take values beyond the learned range of a column as its nearest end."""

import numpy as np
import pytest

import sapwood
from sapwood.merge import ShardLearner, apply, take_snapshot
from sapwood.tree import restoring, tree_state
from sapwood.tree._rescaling import in_other_units
from sapwood.tree.layout import FACTS

Tree = sapwood.HoeffdingTreeRegressor
MODELS = [Tree, sapwood.AdaptiveTreeRegressor, lambda: sapwood.ForestRegressor(members=3)]


def rows(count, low=0.0, high=1.0, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(low, high, (count, 2))
    return {"a": x[:, 0], "b": x[:, 1]}, 10 * x[:, 0] - 3 * x[:, 1]


def range_of(tree, feature=0):
    facts = tree._kernel.columns.known_facts
    return [facts["low"][feature], facts["high"][feature]]


@pytest.mark.parametrize("make", MODELS)
def test_models_do_not_extrapolate_and_learn_rows_beyond_as_they_are(make):
    model = make()
    model.learn_many(*rows(2000))
    columns, _ = rows(2000)
    ends = {"a": columns["a"].max(), "b": columns["b"].min()}
    assert model.predict_one({"a": 1.2, "b": -0.3}) == model.predict_one(ends)
    far, y = rows(400, 1.0, 1.5, seed=2)
    model.learn_many(far, y)
    inside = {"a": [1.1, 1.3, 1.49], "b": [1.4, 1.2, 1.01]}
    errors = model.predict_many(inside) - (10 * np.array(inside["a"]) - 3 * np.array(inside["b"]))
    assert np.abs(errors).max() < 0.3


def test_the_range_is_that_of_the_values_that_were_learned():
    tree = Tree()
    tree.learn_many({"a": [2.0, np.nan, -1.0], "c": ["x", "y", "x"]}, [1.0, 2.0, 3.0])
    tree.predict_many({"a": [50.0], "c": ["x"]})
    assert range_of(tree) == [-1.0, 2.0]
    largest = np.finfo(float).max
    assert range_of(tree, 1) == [-largest, largest]
    tree.learn_one({"a": 7.0, "c": "z", "late": 3.0}, 2.0)
    assert range_of(tree) == [-1.0, 7.0]
    assert range_of(tree, tree._features.names.index("late")) == [3.0, 3.0]


@pytest.mark.parametrize("make", MODELS)
def test_rows_beyond_one_by_one_are_a_batch_and_survive_a_file(make, tmp_path):
    columns, y = rows(1500)
    columns["a"] += np.arange(1500) / 300.0  # each row is about as far as any before it
    columns["b"][700:720] = 40.0
    batch, single = make(), make()
    predictions = batch.predict_learn_many(columns, y)
    found = []
    for row in range(1500):
        x = {name: float(column[row]) for name, column in columns.items()}
        found.append(single.predict_one(x))
        single.learn_one(x, y[row])
        if row == 705:
            single.save(tmp_path / "model")
            single = sapwood.load(tmp_path / "model")
    assert found == predictions.tolist()
    beyond = {"a": [9.0, 2.0], "b": [0.5, 90.0]}
    assert single.predict_many(beyond).tolist() == batch.predict_many(beyond).tolist()


def test_trees_of_older_formats_extrapolate_as_before():
    tree = Tree(track=None)
    columns, y = rows(2000)
    tree.learn_many(columns, y)
    state = tree_state.state_of(tree)
    arrays = dict(state.arrays)
    arrays["facts"] = arrays["facts"][list(FACTS.of_format(5).names)].astype(FACTS.of_format(5))
    older = restoring.restored(Tree, type(state)(state.header, arrays), 5)
    assert older.predict_many(columns).tolist() == tree.predict_many(columns).tolist()
    assert older.predict_one({"a": 1.05, "b": 0.5}) > tree.predict_one({"a": 1.05, "b": 0.5}) + 0.3


def test_the_range_changes_with_the_units_of_a_column():
    tree = Tree()
    columns, y = rows(2000)
    tree.learn_many(columns, y)
    low, high = range_of(tree)
    assert in_other_units(tree._kernel, 0, 1000.0, 5.0)
    assert range_of(tree) == [1000.0 * low + 5.0, 1000.0 * high + 5.0]
    assert in_other_units(tree._kernel, -1, 2.0, 0.0)
    assert range_of(tree) == [1000.0 * low + 5.0, 1000.0 * high + 5.0]


def test_the_range_of_merged_workers_is_that_of_all_their_rows():
    tree = Tree()
    tree.learn_many(*rows(500))
    workers = [ShardLearner(take_snapshot(tree), shard) for shard in range(2)]
    for place, (low, high) in enumerate([(-2.0, 0.5), (0.5, 3.0)]):
        columns, y = rows(300, low, high, seed=place)
        workers[place].predict_learn_many(columns, y)
    expected = [
        min(worker.tree._kernel.columns.known_facts["low"][0] for worker in workers),
        max(worker.tree._kernel.columns.known_facts["high"][0] for worker in workers),
    ]
    apply(tree, workers[0].delta() + workers[1].delta())
    assert range_of(tree) == expected
    assert expected[0] < -1.9
    assert expected[1] > 2.9
