"""Trees as SHAP explains them."""

import numpy as np
import pytest

from export_cases import ROWS, case, rows_at_thresholds
from sapwood import HoeffdingTreeRegressor
from sapwood.export import to_shap

KINDS = ["numbers", "missing", "two categories", "one leaf", "deep", "drift"]


def walk(model, row):
    """What SHAP's model says of a row, by the rules of its documentation."""
    node = 0
    while model["children_left"][node] >= 0:
        value = row[model["features"][node]]
        way = "left" if value <= model["thresholds"][node] else "right"
        node = model[f"children_{'default' if np.isnan(value) else way}"][node]
    return model["values"][node, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_says_what_the_tree_does(kind):
    given = case(kind)
    (model,) = to_shap(given.tree)["trees"]
    X = given.matrix[: ROWS // 10]
    assert [walk(model, row) for row in X] == given.expected[: len(X)].tolist()


@pytest.mark.parametrize("track", ["auto", None])
@pytest.mark.parametrize("kind", KINDS)
def test_explanations_sum_up_to_predictions(kind, track):
    shap = pytest.importorskip("shap")
    given = case(kind, track=track)
    explainer = shap.TreeExplainer(to_shap(given.tree))
    np.testing.assert_array_equal(explainer.model.predict(given.matrix), given.expected)
    X = given.matrix[: 200 if kind == "deep" else 2000]
    sums = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(sums, given.expected[: len(X)], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["numbers", "whole numbers"])
def test_rows_at_thresholds_go_the_same_way(kind):
    tree = case(kind).tree
    (model,) = to_shap(tree)["trees"]
    X = rows_at_thresholds(tree, np.float32)
    assert [walk(model, row) for row in X] == tree.predict_many(X).tolist()
    X = rows_at_thresholds(tree, np.float64, before=False)
    assert [walk(model, row) for row in X] == tree.predict_many(X).tolist()


@pytest.mark.parametrize("scale", [1e-200, 1e-39, 1e-30, 1.0, 1e30, 1e39, 1e300])
def test_thresholds_of_any_size(scale):
    x = np.arange(4000.0) % 10 * scale
    tree = HoeffdingTreeRegressor(leaf="mean")
    tree.learn_many({"x": x}, x / scale < 4.5)
    (model,) = to_shap(tree)["trees"]
    assert len(model["values"]) > 1
    assert [walk(model, [value]) for value in x[:10]] == tree.predict_many({"x": x[:10]}).tolist()


@pytest.mark.parametrize("kind", ["numbers", "whole numbers"])
def test_explanations_against_a_background(kind):
    shap = pytest.importorskip("shap")
    given = case(kind)
    X = np.nan_to_num(given.matrix[:400])  # many values are on a threshold
    expected = given.tree.predict_many(X)
    explainer = shap.TreeExplainer(to_shap(given.tree), data=X[:50])
    assert explainer.feature_perturbation == "interventional"
    assert explainer.expected_value == pytest.approx(expected[:50].mean())
    sums = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)
