"""Splits on trial: what two features do together, where no single cut shows anything."""

import numpy as np
import pytest

from sapwood import HoeffdingTreeRegressor
from sapwood.tree import tree_state
from sapwood.tree.layout import LEAF
from tree_cases import r2

Tree = HoeffdingTreeRegressor


def together(kind, rows, seed=1):
    """Rows of six features, of which y depends on two, but on neither alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 6))
    product = X[:, 0] * X[:, 1]
    y = 3 * np.sign(product) if kind == "xor" else 5 * product
    return X, y + rng.normal(0, 0.5, rows)


def on_trial(rows=3300):
    """A tree in the middle of a trial."""
    X, y = together("xor", rows)
    tree = Tree()
    tree.learn_many(X, y)
    record, _ = tree._kernel.trial_table
    assert record["leaf"][0] == 0
    return tree


@pytest.mark.parametrize(("kind", "least"), [("xor", 0.96), ("product", 0.88)])
@pytest.mark.parametrize("seed", [3, 6])
def test_what_two_features_do_together_is_found(kind, least, seed):
    X, y = together(kind, 30_000, seed)
    tree = Tree()
    predictions = tree.predict_learn_many(X, y)
    assert r2(y[15_000:], predictions[15_000:]) > least
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    assert set(nodes["feature"][nodes["kind"] != LEAF]) >= {0, 1}


def test_two_categories_together():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, (2, 8000))
    columns = {"a": [f"a{i}" for i in a], "b": [f"b{i}" for i in b], "x": rng.random(8000)}
    y = 3.0 * (a ^ b) + rng.normal(0, 0.5, 8000)
    predictions = Tree().predict_learn_many(columns, y)
    assert r2(y[6000:], predictions[6000:]) > 0.85


def test_noise_is_tried_and_left_alone():
    rng = np.random.default_rng(5)
    tree = Tree()
    tree.learn_many(rng.random((6000, 6)), rng.normal(size=6000))
    assert tree.n_leaves == 1
    record, pages = tree._kernel.trial_table
    assert record["leaf"][0] == -1
    assert pages.shape[0] == 0
    # The turn of all six features is over, and the next comes with four times as many rows.
    assert tree._kernel.node_table["gain"][0] >= 4 * 3200


def test_where_little_is_left_nothing_is_tried():
    rng = np.random.default_rng(6)
    X = rng.random((5000, 3))
    y = 10 * X[:, 0] + rng.normal(0, 0.5, 5000)
    tree = Tree()
    for start in range(0, 5000, 500):
        tree.learn_many(X[start : start + 500], y[start : start + 500])
        assert tree._kernel.trial_table[0]["leaf"][0] == -1


def test_a_trial_is_saved_and_goes_on():
    tree = on_trial()
    copy = tree.copy()
    assert copy.to_bytes() == tree.to_bytes()
    X, y = together("xor", 3000, seed=2)
    assert np.array_equal(tree.predict_learn_many(X, y), copy.predict_learn_many(X, y))
    assert tree.n_leaves > 1
    assert copy.to_bytes() == tree.to_bytes()


def test_a_batch_is_the_same_as_a_loop():
    X, y = together("xor", 5500)
    batch, loop = Tree(), Tree()
    batch.learn_many(X, y)
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        loop.learn_one(dict(enumerate(row)), target)
    assert batch.n_leaves > 1
    assert batch.to_bytes() == loop.to_bytes()


def test_its_pages_are_counted():
    tree = on_trial()
    with_trial = tree.nbytes
    doubles = tree._kernel.watch_doubles
    # A new feature ends it; one more of a tree of one leaf takes less than its pages did.
    tree.learn_one({**dict(enumerate([0.5] * 6)), "new": 1.0}, 0.0)
    assert tree._kernel.trial_table[0]["leaf"][0] == -1
    assert tree.nbytes < with_trial - 2 * 8 * doubles + 4000


def test_with_a_limit_there_is_a_trial_only_if_there_is_room():
    X, y = together("xor", 8000)
    for limit in (40_000, 120_000):
        tree = Tree(max_bytes=limit)
        for start in range(0, 8000, 100):
            tree.learn_many(X[start : start + 100], y[start : start + 100])
            assert tree.nbytes <= limit
    assert tree.n_leaves > 1


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("leaf", 1, "of a leaf that there is not"),
        ("feature", 6, "a feature that there is not"),
        ("place", 32, "a place that there is not"),
        ("missing_left", 2, "missing values nowhere"),
        ("threshold", np.nan, "not finite"),
        ("ends", -1.0, "never ends"),
        ("left_weight", -1.0, "sides of the trial"),
        ("right_m2", -1.0, "sides of the trial"),
        ("left_weight", 1e6, "more than its leaf"),
    ],
)
def test_a_file_with_a_bad_trial_is_refused(field, value, complaint):
    tree = on_trial()
    state = tree_state.state_of(tree)
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    arrays["trial"][field] = value
    with pytest.raises(ValueError, match=complaint):
        tree_state.restored(Tree, type(state)(state.header, arrays), 1)
