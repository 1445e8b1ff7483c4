"""Exports of models of several targets: all of them by ONNX, one of them by other formats."""

import json

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor
from sapwood.export import ExportError, encode, to_onnx, to_shap, to_sklearn, to_treelite
from sapwood.intervals import IntervalRegressor

MODELS = {
    "tree": lambda: HoeffdingTreeRegressor(grace_period=50),
    "constant leaves": lambda: HoeffdingTreeRegressor(leaf="mean", track=None),
    "forest": lambda: ForestRegressor(members=3, grace_period=50),
    "adaptive": lambda: AdaptiveTreeRegressor(grace_period=50),
    "intervals": lambda: IntervalRegressor(HoeffdingTreeRegressor(grace_period=50)),
}


def learned(kind, rows=2500):
    rng = np.random.default_rng(4)
    X = {"u": rng.normal(size=rows), "v": rng.random(rows), "k": rng.choice(list("pqr"), rows)}
    X["v"][rng.random(rows) < 0.05] = np.nan
    up = np.where(X["u"] > 0, 3.0, 0.0) + 2.0 * (X["k"] == "p") + 0.1 * rng.normal(size=rows)
    Y = {"up": up, "down": 100.0 - 5.0 * up + X["u"], "flat": np.nan_to_num(X["v"])}
    Y["flat"][::4] = np.nan
    model = MODELS[kind]()
    model.learn_many(X, Y)
    return model, X


@pytest.mark.parametrize("kind", MODELS)
def test_onnx_predicts_all_targets(kind):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model, X = learned(kind)
    made = to_onnx(model)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    (found,) = session.run(None, {"X": encode(model, X)})
    expected = model.predict_many(X)
    np.testing.assert_allclose(
        found, np.column_stack([expected[name] for name in model.targets]), rtol=1e-11, atol=1e-11
    )
    facts = {each.key: json.loads(each.value) for each in made.metadata_props}
    assert facts["targets"] == ["up", "down", "flat"]
    one = to_onnx(model.of_target("down")) if hasattr(model, "of_target") else None
    if one is not None:
        assert "targets" not in {each.key for each in one.metadata_props}
        session = onnxruntime.InferenceSession(one.SerializeToString())
        (alone,) = session.run(None, {"X": encode(model, X)})
        np.testing.assert_array_equal(alone, found[:, 1])


@pytest.mark.parametrize("export", [to_shap, to_treelite, to_sklearn], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["tree", "constant leaves", "forest", "adaptive"])
def test_other_formats_name_the_remedy(kind, export):
    model, _ = learned(kind)
    remedy = r"has 3 targets.*model\.of_target\('up'\)"
    with pytest.raises(ExportError, match=remedy):
        export(model)


def test_the_remedy_works():
    model, X = learned("constant leaves")
    one = model.of_target("up")
    assert to_shap(one)["trees"]
    np.testing.assert_allclose(
        to_sklearn(one).predict(encode(one, X)), one.predict_many(X), rtol=1e-6
    )
