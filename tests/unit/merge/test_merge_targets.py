"""Deltas of trees with several targets, which are the same as those of one."""

import numpy as np
import pytest
from test_merge import assert_near, assert_same_delta, still, total

from sapwood import HoeffdingTreeRegressor
from sapwood.merge import Delta, MergeError, ShardLearner, apply, take_snapshot
from sapwood.merge.applying import take_in

ROWS = 3_000


def stream(rows=ROWS, seed=1, missing=0.0, category=False):
    """Features by name, and two targets of other scales and signs, some of which are missing."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 3))
    columns = {name: x[:, place].round(2) for place, name in enumerate("abc")}
    up = 3 * columns["a"] + np.where(columns["b"] > 0.5, 2.0, 0.0) + 0.1 * rng.normal(size=rows)
    if category:
        columns["k"] = rng.choice(["red", "blue", "green"], rows)
        up = up + (columns["k"] == "red")
    y = np.column_stack([up, 5.0 - 20.0 * up + rng.normal(size=rows)])
    y[rng.random(rows) < missing, 1] = np.nan
    return columns, y


def part(columns, rows):
    return {name: column[rows] for name, column in columns.items()}


def grown(columns, y, rows=1_000, **parameters):
    tree = HoeffdingTreeRegressor(**parameters)
    tree.learn_many(part(columns, slice(0, rows)), y[:rows])
    return tree


def deltas_of(tree, columns, y, starts):
    snapshot, found = take_snapshot(tree), []
    for shard, (start, end) in enumerate(zip(starts, [*starts[1:], len(y)], strict=True)):
        worker = ShardLearner(snapshot, shard)
        rows = slice(start, end)
        worker.predict_learn_many(part(columns, rows), y[rows])
        found.append(worker.delta())
    return found


@pytest.mark.parametrize("category", [False, True])
@pytest.mark.parametrize("leaf", ["linear", "mean"])
def test_equal_targets_make_the_tree_of_one(category, leaf):
    columns, y = stream(category=category)
    one = grown(columns, y[:, 0], leaf=leaf)
    two = grown(columns, y[:, [0, 0]], leaf=leaf)
    for tree, values in ((one, y[:, 0]), (two, y[:, [0, 0]])):
        apply(tree, total(deltas_of(tree, columns, values, [1_000, 1_700, 2_300])))
    assert two.n_leaves == one.n_leaves > 3
    np.testing.assert_array_equal(
        two._kernel.node_table["threshold"], one._kernel.node_table["threshold"]
    )
    expected = one.predict_many(columns)
    for found in two.predict_many(columns).values():
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("category", [False, True])
def test_sums_are_those_of_one_worker_in_any_order(missing, category):
    columns, y = stream(missing=missing, category=category)
    tree = grown(columns, y)
    deltas = deltas_of(tree, columns, y, [1_000, 1_400, 2_200])
    expected = total(deltas)
    assert_same_delta(total(deltas[::-1]), expected)
    assert_same_delta(Delta.from_bytes(expected.to_bytes()), expected)
    alone = deltas_of(tree, columns, y, [1_000])[0]
    assert expected.rows == alone.rows == 2_000
    one, other = expected.arrays, alone.arrays
    np.testing.assert_array_equal(
        one["target_sums"]["rows"].sum(axis=0), (~np.isnan(y[1_000:])).sum(axis=0)
    )
    for name in ("rows", "weight", "target_mean", "target_m2"):
        assert_near(one["target_sums"][name], other["target_sums"][name])
    np.testing.assert_array_equal(one["places"], other["places"])
    for column in (0, 1, 3, 5, 6):  # weight, y of both targets, what both lack
        assert_near(one["slots"][:, column], other["slots"][:, column])
    assert_near(one["levels"][..., :2], other["levels"][..., :2])
    np.testing.assert_array_equal(one["stream"][:, :3], other["stream"][:, :3])
    assert_near(one["scores"][:, [0, 3, 4]], other["scores"][:, [0, 3, 4]])


@pytest.mark.parametrize("category", [False, True])
def test_one_shard_applied_is_the_worker_itself(category):
    columns, y = stream(missing=0.3, category=category)
    tree = grown(columns, y)
    worker = ShardLearner(take_snapshot(tree), 0)
    worker.predict_learn_many(part(columns, slice(1_000, None)), y[1_000:])
    result = still(tree.copy())
    take_in(result, worker.delta())
    found, expected = (each._kernel.target_records for each in (result, worker.tree))
    for name in ("rows", "weight", "low", "high", "mean", "m2", "usual"):
        np.testing.assert_allclose(found.streams[name], expected.streams[name], rtol=1e-9)
    count = 2 * tree.n_leaves
    for name in ("rows", "mean", "mean_weight", "error_0"):
        np.testing.assert_allclose(
            found.leaves[name][:count], expected.leaves[name][:count], rtol=1e-8
        )
    predicted = worker.tree.predict_many(columns)
    for name, own in result.predict_many(columns).items():
        np.testing.assert_allclose(own, predicted[name], atol=1e-5)


def test_shards_that_find_new_features_and_categories_add():
    columns, y = stream(missing=0.2)
    tree = grown(columns, y)
    snapshot, deltas = take_snapshot(tree), []
    extra = {"d": columns["a"] * 2}, {"k": np.array(["x", "y"] * (ROWS // 2))}
    for shard, (start, more) in enumerate(zip((1_000, 2_000), extra, strict=True)):
        rows, worker = slice(start, start + 1_000), ShardLearner(snapshot, shard)
        worker.predict_learn_many(part(columns | more, rows), y[rows])
        deltas.append(worker.delta())
    assert_same_delta(deltas[0] + deltas[1], deltas[1] + deltas[0])
    apply(tree, deltas[0] + deltas[1])
    assert tree.feature_kinds == {
        "a": "number",
        "b": "number",
        "c": "number",
        "d": "number",
        "k": "category",
    }
    again = HoeffdingTreeRegressor.from_bytes(tree.to_bytes())
    for each in (tree, again):
        each.learn_many(part(columns, slice(0, 500)), y[:500])
    assert again.to_bytes() == tree.to_bytes()


def test_rounds_are_about_as_good_as_one_process():
    columns, y = stream(12_000, missing=0.1)
    serial = grown(columns, y, 12_000)
    tree = grown(columns, y, 2_000)
    for start in range(2_000, 12_000, 1_000):
        own = part(columns, slice(0, start + 1_000))
        apply(tree, total(deltas_of(tree, own, y[: start + 1_000], [start, start + 500])))
    later, truth = stream(2_000, seed=2)
    for target in range(2):
        errors = [
            np.mean((each.predict_many(later)[target] - truth[:, target]) ** 2)
            for each in (serial, tree)
        ]
        assert errors[1] < 1.3 * errors[0]
        assert errors[1] < 0.1 * truth[:, target].var()


def test_a_target_without_rows_cannot_be_shared_out():
    columns, y = stream(200)
    y[3:, 1] = np.nan
    with pytest.raises(MergeError, match="the tree has learned 3 rows of a target"):
        take_snapshot(grown(columns, y, 200))


def test_many_categories_of_several_targets_are_rejected():
    columns, y = stream()
    tree = grown(columns, y)
    columns["k"] = np.array([f"k{place % 80}" for place in range(ROWS)])
    with pytest.raises(
        MergeError, match="more than 63 categories by an encoding of several targets"
    ):
        deltas_of(tree, columns, y, [1_000])
    with pytest.raises(
        MergeError, match="more than 63 categories by an encoding of several targets"
    ):
        take_snapshot(grown(columns, y))
