"""A tree of several targets takes the decisions of its plain twin, and knows what that knows."""

import numpy as np
import pytest

from target_cases import NAMES, stream_of
from target_reference_cases import (
    learned,
    made,
    same_leaves,
    same_splits,
)


@pytest.mark.parametrize(
    ("leaf", "split_on", "track"),
    [
        ("mean", "target", "auto"),
        ("linear", "residual", None),
        ("linear", "best", "auto"),
        ("adaptive", "target", None),
        ("adaptive", "best", "auto"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "gaps", "categories", "weights", "late"])
def test_streams(kind, leaf, split_on, track):
    tree, twin = made(leaf=leaf, split_on=split_on, track=track, grace_period=40, tau=0.15)
    learned(stream_of(kind, 420), tree, twin)
    assert len(twin.splits) >= 2
    same_splits(tree, twin)
    same_leaves(tree, twin)


@pytest.mark.parametrize("kind", ["many", "whole"])
def test_rare_categories_and_cuts_that_are_round(kind):
    tree, twin = made(leaf="adaptive", split_on="best", track="auto", grace_period=40, tau=0.15)
    stream = stream_of(kind, 420)
    learned(stream, tree, twin)
    assert len(twin.splits) >= 2
    same_splits(tree, twin)
    same_leaves(tree, twin)
    if kind == "many":
        assert len({x["k"] for x, _, _ in stream}) > 250
        x = {**stream[-1][0], "k": "never seen"}
        assert tree.predict_one(x) == tree.predict_one({**x, "k": "nor this"})
        alone = tree.of_target("b")
        assert alone.predict_one(x) == tree.predict_one(x)["b"]


@pytest.mark.parametrize("leaf", ["adaptive", "mean"])
def test_splits_that_read_more_than_63_categories_by_one_number(leaf):
    tree, twin = made(leaf=leaf, grace_period=60, tau=0.15)
    stream = stream_of("encoded", 900)
    learned(stream, tree, twin)
    same_splits(tree, twin)
    same_leaves(tree, twin)
    columns = tree._kernel.columns
    assert columns.split_encoded
    feature = tree._features.index["k"]
    own = twin.faces[0].encodings["k"]
    weights = columns.encoding_weight_table[feature]
    np.testing.assert_allclose(weights, own.weights, rtol=1e-6)
    codes = len(twin.faces[0].labels["k"])
    numbers = [own.of(code) for code in range(codes)]
    np.testing.assert_allclose(tree._kernel.encodings_of(feature)[:codes], numbers, rtol=1e-6)
    assert any(cut.cut.feature == "k" for cut in twin.splits)


def test_labels_that_are_late():
    """Batches are predicted, and learned a batch later."""
    stream = stream_of("gaps", 400)
    tree, twin = made(grace_period=40, tau=0.15)
    batches = [stream[start : start + 20] for start in range(0, len(stream), 20)]
    for number, rows in enumerate(batches):
        for x, _, _ in rows if number else ():
            expected, said = twin.predict(x), tree.predict_one(x)
            if number > 1:
                for name in NAMES:
                    assert abs(said[name] - expected[name]) <= 1e-6
        for x, y, w in batches[number - 1] if number else ():
            twin.learn(x, y, w)
            tree.learn_one(x, y, w)
    same_leaves(tree, twin)


def test_a_leaf_whose_errors_became_nothing_in_all_targets_watches_anew():
    rng = np.random.default_rng(4)
    x = rng.random(2100)
    y = np.where(np.arange(2100) == 20, 1e6, x + 0.01 * rng.normal(size=2100))
    stream = [({"x": a}, {"a": b, "b": -b, "c": 2 * b}, 1.0) for a, b in zip(x, y, strict=True)]
    tree, twin = made(leaf="linear", max_depth=0)
    for row in stream:
        twin.learn(*row)
        tree.learn_one(*row)
    assert twin.root.rows == 2100 > twin.root.weight
    same_leaves(tree, twin)


def together(rows, kind, seed=1):
    """Rows in which all targets depend on two features, but on neither alone."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(-1, 1, (3, rows))
    labels = rng.integers(0, 2, rows)
    both = np.sign(a * b) if kind != "categories" else np.sign(a) * (2.0 * (labels == 1) - 1)
    for row in range(rows):
        x = {"a": a[row], "b": b[row], "c": c[row]}
        if kind == "categories":
            x["k"] = f"k{labels[row]}"
        if kind == "gaps" and row % 7 == 3:
            del x["b"]
        noise = rng.normal(0, 0.3, 3)
        y = {
            "a": 3 * both[row] + noise[0],
            "b": 50 - 40 * both[row] + 9 * noise[1],
            "c": both[row] / 3 + noise[2],
        }
        if kind == "gaps" and row % 5 == 2:
            del y["b"]
        yield x, y, 1.0


@pytest.mark.parametrize("leaf", ["adaptive", "mean"])
@pytest.mark.parametrize("kind", ["plain", "gaps", "categories"])
def test_splits_on_trial(kind, leaf):
    tree, twin = made(leaf=leaf, grace_period=40, slots=16)
    trials, stream = 0, list(together(900, kind))
    for x, y, w in stream:
        twin.learn(x, y, w)
        tree.learn_one(x, y, w)
        assert tree.n_leaves == len(twin.leaves)
        assert tree._kernel.has_trial == (twin.trial is not None)
        if twin.trial and twin.trial.sides:
            trials += 1
            same_trial(tree._kernel, twin.trial)
    assert trials >= 30
    assert len(twin.splits) >= 2
    same_splits(tree, twin)
    same_leaves(tree, twin)


def same_trial(kernel, trial):
    record = kernel.trial_table[0][0]
    own = kernel.target_records.trials
    for side, name in zip(trial.sides, ("left", "right"), strict=True):
        assert record[f"{name}_weight"] == pytest.approx(side.weight, rel=1e-9)
        for target, node in zip(own, side.nodes, strict=True):
            assert target[f"{name}_weight"] == pytest.approx(node.residual.weight, rel=1e-9)
            assert target[f"{name}_mean"] == pytest.approx(node.residual.mean, rel=1e-6, abs=1e-9)
            assert target[f"{name}_m2"] == pytest.approx(node.residual.m2, rel=1e-6, abs=1e-9)
