"""Prediction sets: compared with a reference, and their coverage on streams that drift."""

from itertools import pairwise

import numpy as np
import pytest

import sapwood
from naive_classes import LEVELS, NaiveSets
from sapwood.classify._calibration import Calibrator
from sapwood.model import State

CLASSIFIERS = (
    sapwood.HoeffdingTreeClassifier,
    sapwood.AdaptiveTreeClassifier,
    sapwood.ForestClassifier,
)


def labels_of(X, rng):
    """Return noisy labels of four classes."""
    scores = np.column_stack([X[:, 0], X[:, 1], -X[:, 0], -X[:, 1]])
    return (scores + rng.normal(0, 0.5, scores.shape)).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 5])
def test_thresholds_are_those_of_the_reference(classes):
    rng = np.random.default_rng(2)
    own, naive = Calibrator(), NaiveSets()
    own.widen(classes)
    for _ in range(600):
        ratings = rng.dirichlet(np.ones(classes)).tolist()
        code, w = int(rng.choice(classes, p=ratings)), float(rng.choice([0.5, 1.0, 2.0]))
        naive.score(own.probabilities_of(ratings), code, w)
        own.score_one(ratings, classes, code, w)
        for order, level in zip(naive.orders, LEVELS, strict=True):
            if order < 1:  # rounding decides whether the last bin or its end is that of order 1
                assert own.threshold(level) == pytest.approx(naive.quantile(order), rel=1e-6)
    assert own.sets == pytest.approx([*naive.orders, *naive.bins], rel=1e-6)
    found = [own.threshold(level) for level in np.linspace(0.01, 0.999, 200)]
    assert all(after <= before for before, after in pairwise(found))


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_coverage_is_nominal_although_the_stream_drifts(kind, level):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 2))
    y = labels_of(X, rng)
    y[2000:] = (y[2000:] + 1) % 4
    model = kind()
    held, sizes = [], []
    for start in range(0, 4000, 50):
        part = slice(start, start + 50)
        if start >= 200:
            sets = model.predict_set_many(X[part], level)
            columns = {label: place for place, label in enumerate(model.classes)}
            held += [own[columns[label]] for own, label in zip(sets, y[part], strict=True)]
            sizes += sets.sum(axis=1).tolist()
        model.learn_many(X[part], y[part])
    assert np.mean(held) == pytest.approx(level, abs=0.025)
    assert 1 <= np.mean(sizes) < 4


def test_sets_of_many_rows_are_those_of_each():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(800, 2))
    model = sapwood.HoeffdingTreeClassifier()
    assert model.predict_set_one({0: 1.0, 1: 2.0}) == []
    assert model.predict_set_many(X[:2]).shape == (2, 0)
    model.learn_many(X[:10], labels_of(X[:10], rng))
    assert len(model.predict_set_one({0: 1.0, 1: 2.0})) == len(model.classes)
    model.learn_many(X, labels_of(X, rng))
    before = model.to_bytes()
    many = model.predict_set_many(X[:50], 0.8, record=False)
    assert model.to_bytes() == before
    for (a, b), own in zip(X[:50].tolist(), many, strict=True):
        one = model.predict_set_one({0: a, 1: b}, 0.8, record=False)
        assert set(one) == {model.classes[place] for place in np.flatnonzero(own)}
        p = model.predict_proba_one({0: a, 1: b}, record=False)
        assert one == sorted(one, key=lambda label: -p[label])
        wider = model.predict_set_one({0: a, 1: b}, 0.99, record=False)
        assert set(one) <= set(wider)


def test_sets_are_saved_and_follow_issued_predictions():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 2))
    y = labels_of(X, rng)
    model = sapwood.ForestClassifier(members=2)
    model.learn_many(X, y)
    again = sapwood.ForestClassifier.from_bytes(model.to_bytes(), "it")
    assert again._held.calibrator.sets.tobytes() == model._held.calibrator.sets.tobytes()
    one = model.copy()
    for (a, b), label in zip(X[:60].tolist(), y[:60].tolist(), strict=True):
        one.learn_one({0: a, 1: b}, label)
    again.learn_many(X[:60], y[:60])
    assert again.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("level", [0, 1, -0.1, float("nan"), "high"])
def test_a_level_is_between_0_and_1(level):
    model = sapwood.HoeffdingTreeClassifier()
    with pytest.raises(ValueError, match="level"):
        model.predict_set_one({"x": 1.0}, level)
    with pytest.raises(ValueError, match="level"):
        model.predict_set_many({"x": [1.0]}, level)


def test_files_of_the_first_format_have_no_sets():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 2))
    model = sapwood.HoeffdingTreeClassifier()
    model.learn_many(X, labels_of(X, rng))
    header, arrays = model.to_state()
    earlier = {name: array for name, array in arrays.items() if name != "prediction_sets"}
    again = sapwood.HoeffdingTreeClassifier.from_state(State(header, earlier), 1)
    assert again.predict_many(X, record=False).tolist() == model.predict_many(X).tolist()
    assert len(again.predict_set_one({0: 0.0, 1: 0.0}, record=False)) == 4  # as nothing is known
    with pytest.raises(ValueError, match="prediction_sets"):
        sapwood.HoeffdingTreeClassifier.from_state(State(header, earlier), 2)
    for place, value in ((0, -0.1), (0, 1.1), (10, -1.0), (10, np.nan)):
        wrong = arrays["prediction_sets"].copy()
        wrong[place] = value
        with pytest.raises(ValueError, match=r"quantile|sets"):
            sapwood.HoeffdingTreeClassifier.from_state(
                State(header, {**arrays, "prediction_sets": wrong}), 2
            )
