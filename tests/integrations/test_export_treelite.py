"""Trees as models of treelite."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export_cases import case, rows_at_thresholds, with_subset
from sapwood.export import encode, to_treelite
from tree_cases import parameters, streams, tree_of

treelite = pytest.importorskip("treelite")

KINDS = [
    "numbers",
    "missing",
    "two categories",
    "categories",
    "many categories",
    "one leaf",
    "deep",
    "drift",
]


def predict(model, X):
    return treelite.gtil.predict(model, X)[:, 0, 0]


@pytest.mark.parametrize("track", ["auto", None])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_equal_to_the_last_bit(kind, track):
    given = case(kind, track=track)
    np.testing.assert_array_equal(predict(to_treelite(given.tree), given.matrix), given.expected)


def test_rows_at_thresholds_go_the_same_way():
    tree = case("missing").tree
    X = rows_at_thresholds(tree, np.float64)
    np.testing.assert_array_equal(predict(to_treelite(tree), X), tree.predict_many(X))


@settings(max_examples=40)
@given(data=st.data())
def test_any_tree_predicts_the_same(data):
    stream = data.draw(streams(rows=(1, 150), numbers=(1, 4)))
    tree = tree_of(stream, **data.draw(parameters(leaf="mean")))
    twin = predict(to_treelite(tree), encode(tree, stream.columns))
    np.testing.assert_array_equal(twin, tree.predict_many(stream.columns))


@pytest.mark.parametrize("subset", [0, 1, 0b101, 2**63, 2**64 - 1])
def test_subsets_that_hold_nothing_or_all(subset):
    given = with_subset(subset)
    np.testing.assert_array_equal(predict(to_treelite(given.tree), given.matrix), given.expected)


def test_a_saved_model_predicts_the_same(tmp_path):
    tree, X = case("categories")
    to_treelite(tree).serialize(str(tmp_path / "tree.treelite"))
    again = treelite.Model.deserialize(str(tmp_path / "tree.treelite"))
    assert (again.num_tree, again.num_feature) == (1, 6)
    np.testing.assert_array_equal(predict(again, encode(tree, X)), tree.predict_many(X))
