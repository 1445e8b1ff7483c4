"""Trees as those of scikit-learn."""

import pickle

import numpy as np
import pytest

from export_cases import case, rows_at_thresholds
from sapwood.export import encode, to_sklearn

sklearn_tree = pytest.importorskip("sklearn.tree")

KINDS = ["numbers", "missing", "two categories", "one leaf", "deep", "drift"]


@pytest.mark.parametrize("track", ["auto", None])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_equal_to_the_last_bit(kind, track):
    given = case(kind, track=track)
    twin = to_sklearn(given.tree)
    assert isinstance(twin, sklearn_tree.DecisionTreeRegressor)
    np.testing.assert_array_equal(twin.predict(given.matrix), given.expected)


def test_a_double_is_predicted_as_the_float32_next_to_it():
    tree = case("missing").tree
    X = np.random.default_rng(5).normal(size=(10_000, 4))
    np.testing.assert_array_equal(
        to_sklearn(tree).predict(X), tree.predict_many(X.astype(np.float32))
    )


@pytest.mark.parametrize("kind", ["numbers", "whole numbers"])
def test_rows_at_thresholds_go_the_same_way(kind):
    tree = case(kind).tree
    X = rows_at_thresholds(tree, np.float32)
    np.testing.assert_array_equal(to_sklearn(tree).predict(X), tree.predict_many(X))


def test_what_scikit_learn_knows_of_its_trees():
    tree, X = case("two categories")
    twin = to_sklearn(tree)
    assert twin.n_features_in_ == 5
    assert twin.get_n_leaves() == tree.n_leaves
    assert twin.get_depth() == tree.summary.depth
    gains = tree.to_frame().groupby("feature")["gain"].sum().reindex(tree.features, fill_value=0.0)
    np.testing.assert_allclose(
        twin.feature_importances_, gains / gains.sum(), rtol=1e-9, atol=1e-12
    )
    assert (twin.tree_.impurity >= 0).all()
    leaves = tree.to_frame().query("kind == 'leaf'")
    assert twin.tree_.weighted_n_node_samples[0] == pytest.approx(leaves["weight"].sum())
    assert "feature_4 <= 0.50" in sklearn_tree.export_text(twin, max_depth=2)
    copy = pickle.loads(pickle.dumps(twin))
    rows = encode(tree, X)
    np.testing.assert_array_equal(copy.predict(rows), twin.predict(rows))
