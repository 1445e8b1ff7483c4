"""Classifiers in ONNX: the same probabilities and the same classes."""

import json

import numpy as np
import onnxruntime
import pytest

import sapwood
from sapwood import export
from sapwood.classify import LaggedClassifier
from sapwood.export import ExportError, encode, to_onnx
from sapwood.lags import Lags

KINDS = {
    "tree": sapwood.HoeffdingTreeClassifier,
    "mean": lambda **given: sapwood.HoeffdingTreeClassifier(leaf="mean", **given),
    "adaptive": sapwood.AdaptiveTreeClassifier,
    "forest": lambda **given: sapwood.ForestClassifier(members=3, threads=1, **given),
}


def learned(kind, classes, **given):
    rng = np.random.default_rng(1)
    X = {"a": rng.random(900), "b": rng.normal(size=900), "c": rng.choice(["x", "y", "z"], 900)}
    noise = 0.2 * rng.random(900)
    codes = np.minimum((X["a"] + noise) * classes + (X["c"] == "x"), classes - 1).astype(int)
    model = KINDS[kind](**given)
    model.predict_learn_many(X, [f"class {code}" for code in codes])
    X["a"][::9] = np.nan
    X["b"][::50] = 1e6
    return model, X


def run(model, X):
    made = to_onnx(model)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    return made, session.run(["label", "probabilities"], {"X": encode(model, X)})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [1, 2, 3, 5])
def test_probabilities_are_the_same(kind, classes):
    model, X = learned(kind, classes)
    made, (labels, p) = run(model, X)
    np.testing.assert_allclose(p, model.predict_proba_many(X, record=False), atol=1e-10)
    expected = model.predict_many(X, record=False).tolist()
    assert [model.classes[place] for place in labels] == expected
    facts = {each.key: json.loads(each.value) for each in made.metadata_props}
    assert facts["classes"] == model.classes


def test_ratings_below_chance_and_of_none():
    model, X = learned("tree", 3)
    table = model._held.calibrator.table
    table[1:5] = 0.5, 2.0, 8.0, 1.3
    table[9:] = 3.0, 1.0, 0.5, 0.0
    wild = {"a": X["a"] * 40 - 20, "b": X["b"], "c": X["c"]}
    _, (_, p) = run(model, wild)
    np.testing.assert_allclose(p, model.predict_proba_many(wild, record=False), atol=1e-10)


def test_the_class_of_the_least_cost():
    model, X = learned("tree", 3, cost={"class 1": 7.0})
    _, (labels, _) = run(model, X)
    expected = model.predict_many(X, record=False).tolist()
    assert [model.classes[place] for place in labels] == expected
    assert expected != learned("tree", 3)[0].predict_many(X, record=False).tolist()


def test_what_cannot_be_exported():
    with pytest.raises(ExportError, match="has learned no class yet"):
        to_onnx(sapwood.HoeffdingTreeClassifier())
    model, _ = learned("mean", 2, track=None)
    for write in (export.to_treelite, export.to_sklearn, export.to_shap):
        with pytest.raises(ExportError, match="use to_onnx, or export the regressor inside"):
            write(model)


def test_lags_are_features_of_an_exported_classifier():
    model, X = learned("tree", 3)
    lagged = LaggedClassifier(sapwood.HoeffdingTreeClassifier(), Lags(1))
    labels = model.predict_many(X, record=False)
    lagged.learn_many(X, labels)
    before = {**X, "y.lag1": [None, *labels[:-1]]}
    made, (found, shares) = run(lagged, before)
    assert [lagged.classes[code] for code in found.tolist()] == (
        lagged.model.predict_many(before, record=False).tolist()
    )
    known = lagged.model.predict_proba_many(before, record=False)
    assert np.allclose(shares, known, rtol=1e-9, atol=1e-12)
    facts = {each.key: json.loads(each.value) for each in made.metadata_props}
    assert facts["features"] == ["a", "b", "c", "y.lag1", "a is missing"]
    with pytest.raises(ExportError, match="calibration"):
        export.to_shap(lagged)
    assert repr(lagged).startswith("<LaggedClassifier(<HoeffdingTreeClassifier(")
