"""Rows one by one, with many classes: the same as in batches, and read without detours."""

import numpy as np
import pytest

import sapwood
from sapwood.rows import encoder

CLASSIFIERS = (
    sapwood.HoeffdingTreeClassifier,
    sapwood.AdaptiveTreeClassifier,
    lambda: sapwood.ForestClassifier(members=2),
)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_a_prediction_that_is_not_recorded_changes_nothing(make):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = np.abs(X).argmax(axis=1)
    model = make()
    model.learn_many(X, y)
    before = model.to_bytes()
    many = model.predict_proba_many(X[:40], record=False)
    for values, expected in zip(X[:40].tolist(), many.tolist(), strict=True):
        found = model.predict_proba_one(dict(enumerate(values)), record=False)
        assert list(found.values()) == expected
    assert model.to_bytes() == before
    model.predict_proba_one(dict(enumerate(X[0].tolist())))
    assert model.to_bytes() != before


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_plain_rows_are_not_read_by_the_general_encoder(make, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = np.abs(X).argmax(axis=1)
    model = make()
    model.learn_many(X[:200], y[:200])
    calls = []
    monkeypatch.setattr(encoder, "_columns", lambda *given: calls.append(given))
    for values, label in zip(X[200:].tolist(), y[200:].tolist(), strict=True):
        x = dict(enumerate(values))
        model.predict_proba_one(x)
        model.learn_one(x, label)
    assert not calls
