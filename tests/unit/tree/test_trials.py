"""Splits on trial: what two features do together, where no single cut shows anything."""

import numpy as np
import pytest

from sapwood import HoeffdingTreeRegressor
from sapwood.tree import restoring, tree_state
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


def on_trial(rows=3300, max_bytes=None):
    """A tree in the middle of a trial."""
    X, y = together("xor", rows)
    tree = Tree(max_bytes=max_bytes)
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
    tree._kernel.unwatch(0)  # which ends it
    assert tree._kernel.trial_table[0]["leaf"][0] == -1
    assert with_trial - 3 * 8 * doubles - 1000 < tree.nbytes <= with_trial - 3 * 8 * doubles


@pytest.mark.parametrize("limit", [None, 12_000_000])
def test_it_goes_on_while_labels_and_features_become_known(limit):
    tree = on_trial(3190, max_bytes=limit)
    before, pages = tree._kernel.trial_table
    starts = [tree._kernel.slot_start(feature) for feature in range(7)]
    news = {"number": 1.0, "label": "a"}
    for added in ({}, {"number": None}, news, news | {"label": "b"}):
        tree.learn_one(dict(enumerate([0.5] * 6)) | added, 0.0)
    for i in range(100):  # a category becomes one of many
        tree.learn_one(dict(enumerate([0.5] * 6)) | {"label": f"L{i}"}, 0.0)
    record, now = tree._kernel.trial_table
    for field in ("leaf", "feature", "place", "threshold", "ends"):
        assert record[field] == before[field]
    assert record["left_weight"] + record["right_weight"] == (
        before["left_weight"] + before["right_weight"] + 104
    )
    for feature in range(6):
        own = slice(tree._kernel.slot_start(feature), tree._kernel.slot_start(feature + 1))
        weights = now[:, own].reshape(2, -1, 3)[:, :, 0]
        then = pages[:, starts[feature] : starts[feature + 1]].reshape(2, -1, 3)[:, :, 0]
        assert (weights >= then).all()
        assert weights.sum() == then.sum() + 104
    assert tree.copy().to_bytes() == tree.to_bytes()


def test_it_ends_where_its_own_feature_becomes_a_category_of_many():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, (2, 8000))
    tree, on = Tree(), -1
    for row in range(8000):
        tree.learn_one({"a": f"a{a[row]}", "b": f"b{b[row]}"}, 3.0 * (a[row] ^ b[row]))
        on = tree._kernel.trial_table[0]["leaf"][0]
        if on >= 0:
            break
    assert on >= 0
    for i in range(70):
        tree.learn_one({"a": f"L{i}", "b": "b0"}, 0.0)
    assert tree._kernel.trial_table[0]["leaf"][0] == -1
    assert tree.copy().to_bytes() == tree.to_bytes()


def test_new_labels_do_not_hide_what_two_features_do_together():
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (2, 12_000))
    labels = [f"L{i}" if new else "L" for i, new in enumerate(rng.random(12_000) < 0.02)]
    y = np.sign(a * b)
    tree, predictions = Tree(max_bytes=12_000_000), np.empty(12_000)
    for i, (x, target) in enumerate(zip(zip(a, b, labels, strict=True), y, strict=True)):
        row = dict(zip("abk", x, strict=True))
        predictions[i] = tree.predict_one(row)
        tree.learn_one(row, target)
    assert r2(y[6000:], predictions[6000:]) > 0.95


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
        restoring.restored(Tree, type(state)(state.header, arrays), 1)


def of_two(kind, rows, seed=1):
    """The stream of `together` with a second target, which is missing in some rows."""
    X, y = together(kind, rows, seed)
    other = 100 - 20 * y + X[:, 2]
    other[5::9] = np.nan
    return X, {"a": y, "b": other}


@pytest.mark.parametrize("kind", ["xor", "product"])
def test_what_two_features_do_together_is_found_for_several_targets(kind):
    X, y = of_two(kind, 20_000, seed=3)
    tree = Tree()
    predictions = tree.predict_learn_many(X, y)[12_000:]
    for place, own in enumerate(y.values()):
        known = own[12_000:] == own[12_000:]
        assert r2(own[12_000:][known], predictions[known, place]) > 0.85


def test_a_trial_of_several_targets_resumes_from_a_file():
    X, y = of_two("xor", 8000)
    tree, rows = Tree(), 0
    while not tree._kernel.has_trial or not tree._kernel.target_records.trials["left_weight"].all():
        tree.learn_many(
            X[rows : rows + 50], {name: own[rows : rows + 50] for name, own in y.items()}
        )
        rows += 50
    saved = tree.to_bytes()
    again = Tree.from_bytes(saved)
    assert again.to_bytes() == saved
    for model in (tree, again):
        model.learn_many(X[rows:], {name: own[rows:] for name, own in y.items()})
    assert again.to_bytes() == tree.to_bytes()
    assert tree.n_leaves > 2


def test_a_target_that_is_taken_out_during_a_trial_has_none():
    X, y = of_two("xor", 8000)
    tree, rows = Tree(), 0
    while not tree._kernel.has_trial:
        tree.learn_many(
            X[rows : rows + 50], {name: own[rows : rows + 50] for name, own in y.items()}
        )
        rows += 50
    alone = tree.of_target("b")
    assert not alone._kernel.has_trial
    assert alone.predict_many(X[:5]).tolist() == tree.predict_many(X[:5])[:, 1].tolist()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left_weight", 1e9, "more of target 1"),
        ("right_m2", -1.0, "sides of the trial are wrong for target 1"),
        ("left_mean", np.nan, "sides of the trial are wrong for target 1"),
    ],
)
def test_a_file_whose_trial_is_wrong_for_a_target(field, value, message):
    X, y = of_two("xor", 8000)
    tree, rows = Tree(), 0
    while not tree._kernel.has_trial:
        tree.learn_many(
            X[rows : rows + 50], {name: own[rows : rows + 50] for name, own in y.items()}
        )
        rows += 50
    state = tree.to_state()
    state.arrays["target_trial"] = state.arrays["target_trial"].copy()
    state.arrays["target_trial"][field][1] = value
    with pytest.raises(ValueError, match=message):
        Tree.from_state(state, Tree.format)
