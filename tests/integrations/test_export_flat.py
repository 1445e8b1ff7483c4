"""The flat arrays that exports start from, and what an export refuses."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_cases import ROWS, case, leaf_of, predict_flat
from sapwood import HoeffdingTreeRegressor
from sapwood.corrector._layer import layer_parts
from sapwood.export import ExportError, encode, to_onnx, to_shap, to_sklearn, to_treelite
from sapwood.export.flat import CODES, FlatTree, flatten
from sapwood.tree.layout import CATEGORY, LEAF, SAID_ERRORS
from tree_cases import parameters, streams, unchanged

EXPORTS = {"sklearn": to_sklearn, "shap": to_shap, "treelite": to_treelite, "onnx": to_onnx}


@given(data=st.data())
def test_a_flat_tree_predicts_as_the_tree_does(data):
    stream = data.draw(streams(rows=(1, 150), numbers=(1, 4)))
    tree = HoeffdingTreeRegressor(**data.draw(parameters()))
    tree.predict_learn_many(stream.columns, stream.y, stream.w)
    with unchanged(tree):
        flat = flatten(tree)
    X = encode(tree, stream.columns)
    expected = tree.predict_many(stream.columns)
    if flat.models is None:
        np.testing.assert_array_equal(predict_flat(flat, X), expected)
    else:
        scale = np.abs(stream.y).max()
        np.testing.assert_allclose(predict_flat(flat, X), expected, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
@pytest.mark.parametrize("candidate", range(4))
@pytest.mark.parametrize("weight", [0.4, 1.0])
def test_each_candidate_of_the_last_layer_is_exported(leaf, candidate, weight):
    given = case("drift", leaf)
    tree = given.tree.copy()
    layer = tree._kernel.layer_table
    part = {name: layer[start : start + size] for name, start, size in layer_parts()}
    part["theta"][:] = 0.0
    part["theta"][candidate] = weight
    flat = flatten(tree)
    assert flat.tracking.weights[candidate] == weight
    X = given.matrix[:100]
    found, expected = predict_flat(flat, X), tree.predict_many(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    plain = predict_flat(flatten(case("drift", leaf, track=None).tree), X)
    assert not np.allclose(found, plain, rtol=1e-3)


@pytest.mark.parametrize("leaf", ["linear", "adaptive"])
@pytest.mark.parametrize("perfect", [0, 1, 3])
def test_an_expert_without_errors_predicts_alone(leaf, perfect):
    given = case("numbers", leaf)
    tree = given.tree.copy()
    for expert, name in enumerate(SAID_ERRORS):
        tree._kernel.leaf_table[name] = 0.0 if expert == perfect else 1e-6 * (1 + expert)
    X = given.matrix[:100]
    np.testing.assert_allclose(
        predict_flat(flatten(tree), X), tree.predict_many(X), rtol=1e-12, atol=1e-12
    )


def test_others_of_which_none_was_learned_yet():
    tree = HoeffdingTreeRegressor(leaf="linear")
    labels = [f"c{i}" for i in range(63)]
    tree.learn_many({"city": labels * 5}, np.arange(315.0) % 63 + 50.0)
    X = encode(tree, {"city": ["c7", "new", None]})
    assert X[:2, 0].tolist() == [7, 63]
    expected = tree.predict_many({"city": ["c7", "new", None]})
    assert expected[1] == expected[2]
    np.testing.assert_allclose(predict_flat(flatten(tree), X), expected, rtol=1e-12)


def test_nodes_come_before_their_children_and_left_before_right():
    flat = flatten(case("deep").tree)
    inner = np.flatnonzero(~flat.is_leaf)
    assert np.array_equal(flat.left[inner], inner + 1)
    assert (flat.right[inner] > flat.left[inner]).all()
    assert (flat.depth[flat.right[inner]] == flat.depth[inner] + 1).all()


def test_inner_nodes_are_what_is_below_them():
    flat = flatten(case("missing").tree)
    leaf = flat.is_leaf
    assert flat.weight[0] == pytest.approx(flat.weight[leaf].sum())
    assert flat.values[0] == pytest.approx(np.average(flat.values[leaf], weights=flat.weight[leaf]))


def test_the_cases_are_what_they_are_called():
    assert np.count_nonzero(flatten(case("deep").tree).is_leaf) > 2000
    assert len(flatten(case("one leaf").tree).kind) == 1
    assert (flatten(case("categories").tree).kind == CATEGORY).sum() > 10
    assert flatten(case("drift").tree).tracking is not None
    assert flatten(case("drift", track=None).tree).tracking is None
    missing = flatten(case("missing").tree)
    assert missing.missing_left.any()
    assert (~missing.missing_left & ~missing.is_leaf).any()
    codes = case("categories").matrix[:, 4]
    assert np.isin([0, 62, 63], codes).all()  # 63 is that of all others
    assert np.isnan(case("categories").matrix[:, 5]).sum() > 0.03 * ROWS


# Rows


def test_rows_are_encoded_in_the_order_of_the_features():
    tree = HoeffdingTreeRegressor(categorical=["day"])
    tree.learn_many({"x": [1.5, 2.5], "day": [7, 3], "city": ["Oslo", "Rome"]}, [1.0, 2.0])
    X = encode(tree, {"city": ["Rome", None, "Bonn"], "day": [3.0, 7, 5], "x": [1, None, 0.1]})
    np.testing.assert_array_equal(
        X, [[1.0, 1.0, 1.0], [np.nan, 0.0, np.nan], [0.1, np.nan, np.nan]]
    )


def test_bad_rows_are_refused_as_by_predict():
    tree = HoeffdingTreeRegressor()
    tree.learn_many({"x": [1.5, 2.5]}, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"x\['x'\] = inf at position 1 must be finite"):
        encode(tree, {"x": [1.0, float("inf")]})


# Categories as numbers


@given(
    subset=st.integers(0, 2**CODES - 1),
    count=st.sampled_from([1, 2, 3, 5, 63]),
    missing_left=st.booleans(),
)
def test_subsets_become_cuts_between_codes_where_they_can(subset, count, missing_left):
    flat = stump(subset, count, missing_left)
    known = [*range(count), *([63] if count == 63 else []), np.nan]
    sides = [bool(subset >> code & 1) for code in known[:-1]]
    changes = sum(a != b for a, b in pairwise(sides))
    if changes > 1:
        with pytest.raises(ExportError, match="the categories of 'city' into subsets, which Z"):
            flat.without_categories("Z")
    else:
        cut = flat.without_categories("Z")
        assert (cut.kind != CATEGORY).all()
        assert [leaf_of(cut, [c]) for c in known] == [leaf_of(flat, [c]) for c in known]


def stump(subset, count, missing_left):
    """A tree that asks whether the code of a city is in a subset."""
    tree = HoeffdingTreeRegressor(leaf="mean")
    tree.learn_many({"city": [f"c{i}" for i in range(count)]}, np.zeros(count))
    three = np.arange(3)
    return FlatTree(
        **vars(flatten(tree))
        | {
            "kind": np.array([CATEGORY, LEAF, LEAF]),
            "left": np.array([1, -1, -1]),
            "right": np.array([2, -1, -1]),
            "feature": np.array([0, -1, -1]),
            "threshold": np.zeros(3),
            "subset": np.array([subset, 0, 0], np.uint64),
            "missing_left": np.array([missing_left, False, False]),
            "depth": np.minimum(three, 1),
            "values": three * 1.0,
        }
    )


# What is refused


@pytest.mark.parametrize("name", ["sklearn", "shap", "treelite"])
@pytest.mark.parametrize("leaf", ["linear", "adaptive"])
def test_linear_leaves_are_refused_where_leaves_are_constants(name, leaf):
    with pytest.raises(ExportError, match=rf"leaf='{leaf}': .* train with leaf='mean', or use to_"):
        EXPORTS[name](case("missing", leaf).tree)


@pytest.mark.parametrize(("name", "whose"), [("sklearn", "scikit-learn's"), ("shap", "SHAP's")])
def test_subsets_of_categories_are_refused_where_there_are_none(name, whose):
    complaint = (
        rf"the categories of '(city|day)' into subsets, which {whose} tree cannot express; use"
    )
    with pytest.raises(ExportError, match=complaint):
        EXPORTS[name](case("categories").tree)


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_an_empty_tree_is_refused(export):
    with pytest.raises(ExportError, match="learned no features yet; let it learn some rows first"):
        export(HoeffdingTreeRegressor(leaf="mean"))
    without_features = HoeffdingTreeRegressor(leaf="mean")
    without_features.learn_one({}, 3.0)
    with pytest.raises(ExportError, match="learned no features yet"):
        export(without_features)


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_what_is_no_tree_is_refused(export):
    with pytest.raises(ExportError, match=r"tree = 'oak': a HoeffdingTreeRegressor, Forest"):
        export("oak")
    with pytest.raises(ExportError, match=r"tree = None: a HoeffdingTreeRegressor, ForestReg"):
        encode(None, [[1.0]])


@pytest.mark.parametrize(
    ("export", "module", "package"),
    [
        (to_sklearn, "sklearn.tree", "scikit-learn"),
        (to_treelite, "treelite.model_builder", "treelite"),
        (to_onnx, "onnx", "onnx"),
    ],
)
def test_without_the_other_library(export, module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"not installed: run `pip install {package}`"):
        export(case("one leaf").tree)
