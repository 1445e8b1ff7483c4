"""Trees as models of ONNX."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export_cases import case, rows_at_thresholds, with_subset
from sapwood import HoeffdingTreeRegressor
from sapwood.export import ExportError, encode, to_onnx
from sapwood.export import onnx as exporter
from tree_cases import parameters, streams, tree_of

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

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
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def predict(model, X):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (predictions,) = session.run(None, {"X": X})
    return predictions


@pytest.mark.parametrize("track", ["auto", None])
@pytest.mark.parametrize("kind", KINDS)
def test_constant_leaves_are_equal_to_the_last_bit(kind, track):
    given = case(kind, track=track)
    np.testing.assert_array_equal(predict(to_onnx(given.tree), given.matrix), given.expected)


@pytest.mark.parametrize("leaf", ["adaptive", "linear"])
@pytest.mark.parametrize("kind", KINDS)
def test_linear_leaves_are_equal_but_for_rounding(kind, leaf):
    given = case(kind, leaf)
    twin = predict(to_onnx(given.tree), given.matrix)
    assert twin.dtype == np.float64
    np.testing.assert_allclose(twin, given.expected, **CLOSE)


@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_rows_at_thresholds_go_the_same_way(leaf):
    tree = case("missing", leaf).tree
    X = rows_at_thresholds(tree, np.float64)[:, : len(tree.features)]  # without flags
    found = predict(to_onnx(tree), encode(tree, X))
    np.testing.assert_allclose(found, tree.predict_many(X), **CLOSE)


@settings(max_examples=60)
@given(data=st.data())
def test_any_tree_predicts_the_same(data):
    stream = data.draw(streams(rows=(1, 150), numbers=(0, 4), categories=(1, 2)))
    tree = tree_of(stream, **data.draw(parameters()))
    twin = predict(to_onnx(tree), encode(tree, stream.columns))
    expected = tree.predict_many(stream.columns)
    scale = np.abs(stream.y).max()
    np.testing.assert_allclose(twin, expected, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("subset", [0, 1, 0b101, 2**63, 2**64 - 1])
def test_subsets_that_hold_nothing_or_all(subset):
    given = with_subset(subset)
    np.testing.assert_array_equal(predict(to_onnx(given.tree), given.matrix), given.expected)


@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_any_number_of_rows(leaf):
    given = case("categories", leaf)
    model = to_onnx(given.tree)
    for count in (0, 1, 2, 100):
        twin = predict(model, given.matrix[:count])
        assert twin.shape == (count,)
        np.testing.assert_allclose(twin, given.expected[:count], **CLOSE)


def test_a_category_of_which_the_tree_has_learned_nothing_else_yet():
    tree = HoeffdingTreeRegressor()
    tree.learn_many({"x": [1.0, 2.0] * 300, "city": ["Oslo", "Rome"] * 300}, [3.0, 5.0] * 300)
    tree.learn_one({"x": 1.0, "city": "Bonn", "new": None}, 4.0)  # "new" has no kind yet
    X = {"x": [1.5, None], "city": ["Bonn", "Lima"], "new": [7.0, None]}
    np.testing.assert_allclose(
        predict(to_onnx(tree), encode(tree, X)), tree.predict_many(X), **CLOSE
    )


@pytest.mark.parametrize(("kind", "leaf"), [("missing", "mean"), ("missing", "adaptive")])
def test_the_reference_implementation_predicts_the_same(kind, leaf):
    reference = pytest.importorskip("onnx.reference")
    given = case(kind, leaf)
    (twin,) = reference.ReferenceEvaluator(to_onnx(given.tree)).run(None, {"X": given.matrix[:300]})
    np.testing.assert_allclose(twin, given.expected[:300], **CLOSE)


@pytest.mark.parametrize("kind", ["categories", "one leaf"])
@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_models_are_as_the_format_has_them(kind, leaf):
    onnx.checker.check_model(to_onnx(case(kind, leaf).tree), full_check=True)


def test_the_model_tells_names_and_categories():
    tree = HoeffdingTreeRegressor(categorical=["day"])
    tree.learn_many({"x": [1, 2], "day": [7, 3], 5: ["Øst", "Vest"]}, [1.0, 2.0])
    facts = {fact.key: json.loads(fact.value) for fact in to_onnx(tree).metadata_props}
    assert facts == {"features": ["x", "day", 5], "categories": [[], [7, 3], ["Øst", "Vest"]]}


def test_a_model_is_written_to_a_file(tmp_path):
    given = case("drift", "adaptive")
    path = tmp_path / "tree.onnx"
    model = to_onnx(given.tree, path)
    assert onnx.load(path) == model
    (twin,) = onnxruntime.InferenceSession(path).run(None, {"X": given.matrix})
    np.testing.assert_allclose(twin, given.expected, **CLOSE)


@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_what_is_too_large_for_the_format_is_refused(leaf, monkeypatch):
    tree = case("deep", leaf).tree
    size = to_onnx(tree).ByteSize()
    monkeypatch.setattr(exporter, "MOST_BYTES", size)
    with pytest.raises(ExportError, match="GiB, and ONNX ends at 2 GiB; hold the tree smaller by"):
        to_onnx(tree)
