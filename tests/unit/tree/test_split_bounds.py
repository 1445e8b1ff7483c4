"""The split bound is a policy: rules state it, kernels read it, files keep it."""

import numpy as np
import pytest

from naive_tree import anytime_bound, anytime_weight
from reference_cases import drift, same
from sapwood import AdaptiveTreeRegressor, ForestRegressor, load
from sapwood import HoeffdingTreeRegressor as Tree
from sapwood.tree.bounds import SPLIT_BOUNDS, AnytimeBound, HoeffdingBound


def friedman(rows, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 6))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    return X, y + rng.normal(size=rows)


@pytest.mark.parametrize("delta", [1e-300, 1e-7, 1e-3, 0.05])
@pytest.mark.parametrize("lead", [1e-3, 0.05, 0.3])
def test_the_anytime_bound_is_below_a_lead_from_the_weight_on_that_it_needs(delta, lead):
    needed = AnytimeBound(delta).weight_needed(lead)
    assert needed == pytest.approx(anytime_weight(delta, lead), rel=1e-7)
    assert anytime_bound(1.001 * needed, delta) < lead < anytime_bound(0.999 * needed, delta)
    assert needed > HoeffdingBound(delta).weight_needed(lead)


def test_the_anytime_bound_holds_for_all_means_of_a_walk():
    """Of fair coins at most 5% ever have a mean above it; above Hoeffding's are far more."""
    n = np.arange(2, 2001)
    tosses = np.random.default_rng(1).integers(0, 2, (2000, 2000))
    off = np.cumsum(tosses, axis=1)[:, 1:] / n - 0.5
    anytime = np.array([anytime_bound(each, 0.05) for each in n])
    hoeffding = np.sqrt(np.log(1 / 0.05) / (2 * n))
    assert (off > anytime).any(axis=1).mean() < 0.05
    assert (off > hoeffding).any(axis=1).mean() > 2 * 0.05


@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_the_kernel_splits_as_the_reference_implementation_does(leaf):
    stream = drift(np.random.default_rng(9), 900)
    parameters = {"leaf": leaf, "grace_period": 30, "tau": 0.2}
    tree, twin = same(stream, split_bound="anytime", **parameters)
    other, _ = same(stream, **parameters)
    assert len(twin.splits) >= 2
    assert tree.to_text() != other.to_text()


@pytest.mark.parametrize("kind", [Tree, AdaptiveTreeRegressor, ForestRegressor])
def test_it_is_kept_in_files_and_copies(kind, tmp_path):
    X, y = friedman(4000)
    model = kind(split_bound="anytime")
    model.learn_many(X[:3000], y[:3000])
    model.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), model.copy()):
        assert other.parameters["split_bound"] == "anytime"
        other.learn_many(X[3000:], y[3000:])
        assert np.array_equal(other.predict_many(X), same_rows(model, X, y).predict_many(X))


def same_rows(model, X, y):
    other = model.copy()
    other.learn_many(X[3000:], y[3000:])
    return other


def test_a_file_of_the_default_does_not_name_it():
    """So that earlier releases read it."""
    X, y = friedman(300)
    tree = Tree()
    tree.learn_many(X, y)
    assert "split_bound" not in tree.to_state().header["parameters"]


def test_several_targets_read_it():
    X, y = friedman(6000)
    leaves = {}
    for name in SPLIT_BOUNDS:
        tree = Tree(split_bound=name)
        tree.learn_many(X, np.column_stack([y, -y]))
        leaves[name] = tree.n_leaves
    assert 1 < leaves["anytime"] < leaves["hoeffding"]


@pytest.mark.parametrize("value", ["bernstein", "", None, 1])
def test_a_bound_that_there_is_not(value):
    with pytest.raises(ValueError, match=r"split_bound = .*'hoeffding', 'anytime' is expected"):
        Tree(split_bound=value)
