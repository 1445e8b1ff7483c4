"""Trees of several targets that watch by observers, which are the same as those of one."""

import numpy as np
import pytest

from sapwood import (
    AdaptiveTreeRegressor,
    EBSTObserver,
    ForestRegressor,
    HoeffdingTreeRegressor,
    QuantizerObserver,
    TEBSTObserver,
)

ROWS = 3_000
OBSERVERS = {
    "ebst": EBSTObserver,
    "tebst": TEBSTObserver,
    "quantizer": lambda: QuantizerObserver(radius=0.05),
    "std": lambda: QuantizerObserver(radius="std/3"),
}


def stream(rows=ROWS, seed=1, missing=0.0):
    """Features, of which some values are missing, and targets of other scales and signs."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 3))
    columns = {"a": x[:, 0].round(2), "b": x[:, 1], "k": rng.choice(["red", "blue"], rows)}
    columns["a"][rng.random(rows) < 0.1] = np.nan
    up = 3 * np.nan_to_num(columns["a"], nan=0.2) + np.where(columns["b"] > 0.5, 2.0, 0.0)
    up += (columns["k"] == "red") + 0.1 * rng.normal(size=rows)
    y = np.column_stack([up, 5.0 - 20.0 * up + rng.normal(size=rows)])
    y[rng.random(rows) < missing, 1] = np.nan
    return columns, y


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("leaf", ["linear", "mean"])
def test_equal_targets_make_the_tree_of_one(observer, leaf):
    columns, y = stream()
    one = HoeffdingTreeRegressor(observer=OBSERVERS[observer](), leaf=leaf)
    two = HoeffdingTreeRegressor(observer=OBSERVERS[observer](), leaf=leaf)
    expected = one.predict_learn_many(columns, y[:, 0])
    found = two.predict_learn_many(columns, y[:, [0, 0]])
    assert two.n_leaves == one.n_leaves > 3
    nodes, others = (tree._kernel.node_table[: tree._kernel.node_count] for tree in (one, two))
    for name in ("kind", "feature", "threshold", "subset", "missing_left"):
        np.testing.assert_array_equal(others[name], nodes[name])
    for own in found.values():
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("observer", OBSERVERS)
def test_elements_hold_the_sums_of_the_rows_that_have_a_target(observer):
    """Before the first split, by sums over all rows."""
    columns, y = stream(150, missing=0.4)
    tree = HoeffdingTreeRegressor(observer=OBSERVERS[observer](), grace_period=1e9, leaf="mean")
    tree.learn_many({"b": columns["b"]}, y)
    [[found]] = tree._kernel.observers
    _, table = found._elements()
    cells = table[:, 2:].reshape(len(table), 6, 3)
    means, weight = cells[..., 0] + cells[..., 1], table[:, 0]
    known = ~np.isnan(y)
    origin = tree._kernel.target_records.leaves["origin"][:2]
    np.testing.assert_allclose(weight @ means[:, 4:], (~known).sum(axis=0), atol=1e-9)
    expected = np.where(known, y - origin, 0.0).sum(axis=0)
    np.testing.assert_allclose(weight @ means[:, [0, 2]], expected, rtol=1e-9)


@pytest.mark.parametrize("observer", OBSERVERS)
def test_rows_with_missing_targets_are_learned(observer):
    columns, y = stream(missing=0.4)
    tree = HoeffdingTreeRegressor(observer=OBSERVERS[observer]())
    tree.learn_many(columns, y)
    assert tree.n_leaves > 3
    later, truth = stream(1_000, seed=2)
    for target, own in tree.predict_many(later).items():
        error = np.mean((own - truth[:, target]) ** 2) / truth[:, target].var()
        assert error < 0.05


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_files_and_single_targets_go_on_alike(observer, missing):
    columns, y = stream(missing=missing)
    tree = HoeffdingTreeRegressor(observer=OBSERVERS[observer]())
    tree.learn_many(columns, y)
    again = HoeffdingTreeRegressor.from_bytes(tree.to_bytes())
    more, labels = stream(600, seed=3)
    single = tree.of_target(1)
    expected = tree.predict_many(more, record=False)[1]
    np.testing.assert_array_equal(single.predict_many(more, record=False), expected)
    for each in (tree, again):
        each.learn_many(more, labels)
    assert again.to_bytes() == tree.to_bytes()
    single.learn_many(more, labels[:, 1])
    assert HoeffdingTreeRegressor.from_bytes(single.to_bytes()).to_bytes() == single.to_bytes()


def test_a_row_at_a_time_makes_the_tree_of_a_batch():
    columns, y = stream(600, missing=0.3)
    batch, rows = (HoeffdingTreeRegressor(observer=EBSTObserver()) for _ in range(2))
    batch.learn_many(columns, {"up": y[:, 0], "down": y[:, 1]})
    for row in range(600):
        labels = dict(zip(("up", "down"), y[row], strict=True))
        rows.learn_one({name: own[row] for name, own in columns.items()}, labels)
    assert rows.to_bytes() == batch.to_bytes()


def test_an_origin_that_is_far_away_moves_in_elements_too():
    rng = np.random.default_rng(1)
    x = rng.random(400)
    y = np.column_stack([np.where(x > 0.5, 3.0, 1.0), rng.random(400)])
    y[0, 0], y[2, 1] = 1e12, np.nan
    y[[1, 3], 0] = np.nan
    tree = HoeffdingTreeRegressor(observer=EBSTObserver(), grace_period=1e9, leaf="mean")
    tree.learn_many(x[:, None], y)
    [[found]] = tree._kernel.observers
    _, table = found._elements()
    cells = table[:, 2:].reshape(len(table), 6, 3)
    means = cells[..., 0] + cells[..., 1]
    lacking = means[:, 4] > 0.5
    assert lacking.sum() == 2
    np.testing.assert_array_equal(means[lacking, 0], 0.0)


def test_memory_is_bounded():
    columns, y = stream(8_000)
    tree = HoeffdingTreeRegressor(observer=EBSTObserver(), max_bytes=1_500_000)
    for start in range(0, 8_000, 50):
        rows = slice(start, start + 50)
        tree.learn_many({name: own[rows] for name, own in columns.items()}, y[rows])
        assert tree.nbytes <= 1_500_000
    assert HoeffdingTreeRegressor.from_bytes(tree.to_bytes()).nbytes == tree.nbytes
    observers = [own for own in tree._kernel.observers if own]
    assert observers


@pytest.mark.parametrize("kind", [ForestRegressor, AdaptiveTreeRegressor])
def test_ensembles_learn_several_targets_by_observers(kind):
    columns, y = stream(missing=0.2)
    model = kind(observer=EBSTObserver())
    model.learn_many(columns, y)
    later, truth = stream(1_000, seed=2)
    for target, own in model.predict_many(later).items():
        assert np.mean((own - truth[:, target]) ** 2) < 0.1 * truth[:, target].var()
    assert kind.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    single = model.of_target(0)
    np.testing.assert_array_equal(single.predict_many(later), model.predict_many(later)[0])


def test_prune_makes_a_leaf_that_watches_again():
    columns, y = stream()
    tree = HoeffdingTreeRegressor(observer=EBSTObserver())
    tree.learn_many(columns, y)
    tree.prune(0)
    assert tree.n_leaves == 1
    tree.learn_many(columns, y)
    assert tree.n_leaves > 3
