"""Forests and adaptive trees for other libraries."""

import json
from functools import cache

import numpy as np
import pytest

from export_cases import rows_of
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor
from sapwood.export import ExportError, encode, to_onnx, to_shap, to_sklearn, to_treelite
from sapwood.export import onnx as exporter

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

MAKERS = {"forest": (ForestRegressor, {"members": 4}), "adaptive": (AdaptiveTreeRegressor, {})}
KINDS = ["numbers", "missing", "categories", "many categories", "drift"]
LEARNED, ROWS = 9_000, 1_000  # so that a challenger is 1,000 rows old
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@cache
def model_of(name, kind, leaf, track="auto"):
    make, own = MAKERS[name]
    model = make(threads=1, leaf=leaf, track=track, **own)
    model.predict_learn_many(*rows_of(kind, LEARNED, seed=1))
    return model


@cache
def rows_to_predict(kind):
    """Rows that were not learned, with gaps, values far away and categories that are new."""
    columns, _ = rows_of(kind, ROWS, seed=2)
    rng = np.random.default_rng(3)
    for column in columns.values():
        if column.dtype == np.float64:
            column[rng.random(ROWS) < 0.05] = np.nan
            column[rng.random(ROWS) < 0.02] *= 256
        else:
            column[rng.random(ROWS) < 0.05] = "new"
    return columns


def predict(model, X):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"X": X})[0]


@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MAKERS)
def test_onnx_predicts_the_same(name, kind, leaf):
    model, X = model_of(name, kind, leaf), rows_to_predict(kind)
    exported = to_onnx(model)
    onnx.checker.check_model(exported, full_check=True)
    expected = model.predict_many(X)
    twin = predict(exported, encode(model, X))
    np.testing.assert_allclose(twin, expected, **CLOSE)
    alone = model.member(0).predict_many(X)
    assert np.abs(alone - expected).max() > 0.01  # so that all of them have a say


def test_weights_below_0_are_held_within_what_members_say():
    model = ForestRegressor(members=4, threads=1, track=None)
    model.learn_many(*rows_of("numbers", 4_000, seed=1))
    model._kernel.stack_table[2:6] = [1.0, 1.0, 1.0, 0.0]
    X = rows_to_predict("numbers")
    expected = model.predict_many(X)
    members = [model.member(place).predict_many(X) for place in range(4)]
    plain = np.array([0.5, 0.5, 0.5, -0.5]) @ members
    assert np.count_nonzero(np.abs(plain - expected) > 1e-6) > 10  # as they are beyond all members
    np.testing.assert_allclose(predict(to_onnx(model), encode(model, X)), expected, **CLOSE)


def test_a_model_that_has_just_begun_anew():
    rng = np.random.default_rng(1)
    model = AdaptiveTreeRegressor(threads=1)
    for start in range(0, 20_000, 250):
        x = rng.random((250, 4))
        y = x[:, 0] + x[:, 1] + 0.1 * rng.normal(size=250)
        model.predict_learn_many(x, (1000.0 if start >= 4_000 else 1.0) * y)
        if model._kernel.begun:
            break
    assert model._kernel.rows == model._kernel.begun
    np.testing.assert_allclose(predict(to_onnx(model), x), model.predict_many(x), **CLOSE)


@pytest.mark.parametrize("name", MAKERS)
def test_the_model_tells_names_and_categories(name):
    model = model_of(name, "many categories", "mean")
    facts = {fact.key: json.loads(fact.value) for fact in to_onnx(model).metadata_props}
    assert facts["features"] == ["x0", "x1", "x2", "x3", "city"]
    assert facts["categories"] == [[], [], [], [], list(model._features.categories[4])]
    codes = encode(model, {**{f"x{place}": [0.0] for place in range(4)}, "city": ["city 7"]})
    assert facts["categories"][4][int(codes[0, 4])] == "city 7"


def test_any_number_of_rows(tmp_path):
    model, X = model_of("forest", "categories", "adaptive"), rows_to_predict("categories")
    path = tmp_path / "forest.onnx"
    exported = to_onnx(model, path)
    assert onnx.load(path) == exported
    matrix, expected = encode(model, X), model.predict_many(X)
    for count in (0, 1, 100):
        twin = predict(exported, matrix[:count])
        assert twin.shape == (count,)
        np.testing.assert_allclose(twin, expected[:count], **CLOSE)


@pytest.mark.parametrize("kind", ["numbers", "missing", "categories"])
@pytest.mark.parametrize("name", MAKERS)
def test_treelite_predicts_the_same(name, kind):
    treelite = pytest.importorskip("treelite")
    model, X = model_of(name, kind, "mean", track=None).copy(), rows_to_predict(kind)
    if name == "forest":
        model._kernel.stack_table[2:6] = [0.1, 0.2, 0.3, 0.2]
    twin = treelite.gtil.predict(to_treelite(model), encode(model, X))[:, 0, 0]
    np.testing.assert_allclose(twin, model.predict_many(X), **CLOSE)


@pytest.mark.parametrize("name", MAKERS)
def test_shap_values_add_up_to_predictions(name):
    shap = pytest.importorskip("shap")
    model, X = model_of(name, "missing", "mean", track=None).copy(), rows_to_predict("missing")
    if name == "forest":
        model._kernel.stack_table[2:6] = [0.1, 0.2, 0.3, 0.2]
    explainer = shap.TreeExplainer(to_shap(model))
    values = explainer.shap_values(encode(model, X)[:100])
    total = values.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict_many(X)[:100], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("export", [to_shap, to_treelite])
@pytest.mark.parametrize("name", MAKERS)
def test_what_other_formats_cannot_say_is_refused_in_words(name, export):
    with pytest.raises(ExportError, match="the leaves of this tree are linear models"):
        export(model_of(name, "numbers", "adaptive"))
    with pytest.raises(ExportError, match=r"train with track=None, use to_onnx, or export one"):
        export(model_of(name, "drift", "mean"))
    with pytest.raises(ExportError, match="more than 63 categories of 'city'"):
        export(model_of(name, "many categories", "mean", track=None))


@pytest.mark.parametrize("export", [to_shap, to_treelite])
def test_a_weight_below_0_is_refused_where_sums_are_all(export):
    model = model_of("forest", "numbers", "mean", track=None).copy()
    model._kernel.stack_table[2:6] = [1.0, 1.0, 1.0, 0.0]
    with pytest.raises(ExportError, match="one of the members has a weight below 0 at this moment"):
        export(model)


@pytest.mark.parametrize("name", MAKERS)
def test_one_tree_of_scikit_learn_is_not_several(name):
    with pytest.raises(ExportError, match=r"it has several trees, of which one is expected"):
        to_sklearn(model_of(name, "numbers", "mean"))


@pytest.mark.parametrize("name", MAKERS)
def test_what_has_learned_nothing_is_refused(name):
    make, own = MAKERS[name]
    with pytest.raises(ExportError, match="the model has learned no features yet"):
        to_onnx(make(**own))


def test_what_is_no_model_is_refused():
    with pytest.raises(ExportError, match="a HoeffdingTreeRegressor, ForestRegressor or"):
        to_onnx(7)


def test_what_is_too_large_for_the_format_is_refused(monkeypatch):
    model = model_of("forest", "numbers", "adaptive")
    monkeypatch.setattr(exporter, "MOST_BYTES", to_onnx(model).ByteSize() // 2)
    with pytest.raises(ExportError, match="GiB, and ONNX ends at 2 GiB"):
        to_onnx(model)


def test_a_member_is_exported_as_a_tree():
    model, X = model_of("forest", "numbers", "adaptive"), rows_to_predict("numbers")
    member = model.member(1)
    assert isinstance(member, HoeffdingTreeRegressor)
    twin = predict(to_onnx(member), encode(member, X))
    np.testing.assert_allclose(twin, member.predict_many(X), **CLOSE)
