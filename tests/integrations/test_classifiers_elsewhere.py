"""Classifiers in scikit-learn and river pass the checks there, and are those of Sapwood."""

import numpy as np
import pandas as pd
import pytest
from river import datasets, evaluate, metrics
from river.checks import yield_checks
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import sapwood
from sapwood import river, sklearn
from sapwood.sklearn.__main__ import OF_MODELS


@pytest.fixture
def array_api(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@pytest.mark.usefixtures("array_api")
@parametrize_with_checks(
    [sklearn.HoeffdingTreeClassifier(), sklearn.ForestClassifier(members=2, threads=1)],
    expected_failed_checks=lambda estimator: OF_MODELS,
)
def test_a_check_of_scikit_learns_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "model", [river.HoeffdingTreeClassifier(), river.ForestClassifier(members=2, threads=1)]
)
def test_checks_of_rivers_pass(model):
    for check in yield_checks(model):
        check(model.clone())


def test_probabilities_are_those_of_the_model():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.random(600), "c": rng.choice(["x", "y"], 600)})
    y = np.where(X["a"] > 0.6, 2.0, np.where(X["c"] == "x", -1.0, 0.0))
    ours, theirs = sapwood.HoeffdingTreeClassifier(), sklearn.HoeffdingTreeClassifier()
    theirs.partial_fit(X[:300], y[:300], classes=[-1.0, 0.0, 2.0, 9.0])
    theirs.partial_fit(X[300:], y[300:])
    names = {label: place for place, label in enumerate(dict.fromkeys(y.tolist()))}
    for rows in (slice(0, 300), slice(300, 600)):
        ours.learn_many(X[rows], [names[label] for label in y[rows].tolist()])
    assert theirs.classes_.tolist() == [-1.0, 0.0, 2.0, 9.0]
    found = theirs.predict_proba(X)
    own = ours.predict_proba_many(X)
    for label, place in names.items():
        column = theirs.classes_.tolist().index(label)
        assert found[:, column].tolist() == own[:, place].tolist()
    assert not found[:, 3].any()
    assert (theirs.predict(X) == y).mean() > 0.9
    assert theirs.feature_importances_.sum() == pytest.approx(1.0)
    assert cross_val_score(sklearn.HoeffdingTreeClassifier(), X, y.astype(int), cv=3).mean() > 0.8


def test_a_stream_of_rivers():
    metric = evaluate.progressive_val_score(
        datasets.ImageSegments().take(800), river.HoeffdingTreeClassifier(), metrics.Accuracy()
    )
    assert metric.get() > 0.75


def test_weights_and_costs_are_by_the_labels_of_the_estimator():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(1500) < 0.1, 9.0, -1.0)
    X = rng.normal(size=(1500, 2)) + (y == 9.0)[:, None]
    plain = sklearn.HoeffdingTreeClassifier().fit(X, y)
    weighted = sklearn.HoeffdingTreeClassifier(class_weight={9.0: 9.0}).fit(X, y)
    costly = sklearn.HoeffdingTreeClassifier(cost={9.0: 9.0}).fit(X, y)
    again = sklearn.HoeffdingTreeClassifier().fit(X, y, np.where(y == 9.0, 9.0, 1.0))
    assert (weighted.predict_proba(X) == again.predict_proba(X)).all()
    assert (costly.predict_proba(X) == plain.predict_proba(X)).all()
    expected = 9.0 * plain.predict_proba(X)[:, 1] > plain.predict_proba(X)[:, 0]
    assert ((costly.predict(X) == 9.0) == expected).all()
    assert (plain.predict(X) == 9.0).sum() < (weighted.predict(X) == 9.0).sum()


def test_costs_in_river():
    model = river.HoeffdingTreeClassifier(cost={"rare": 100.0})
    for place in range(60):
        model.learn_one({"a": float(place % 7)}, "rare" if place % 10 == 0 else "usual")
    assert model.predict_one({"a": 3.0}) == "rare"
    p = model.predict_proba_one({"a": 3.0})
    assert p["rare"] < p["usual"]
