"""Forests of classes: eager members, and candidates that have seen a single class."""

import numpy as np
import pytest

from sapwood import AdaptiveTreeClassifier, ForestClassifier
from sapwood.classify.growth import ClassGrowth
from sapwood.tasks import CLASSES, SQUARED_ERROR
from sapwood.tree.bounds import HoeffdingBound
from sapwood.tree.growth import GrowthRules

RULES = GrowthRules(400.0, HoeffdingBound(1e-3), 0.05, 0.02, 20, "best")


@pytest.mark.parametrize(("classes", "task"), [(2, SQUARED_ERROR), (5, CLASSES)])
def test_half_of_the_members_of_random_weights_are_eager(classes, task):
    growths = [ClassGrowth(classes)(RULES, 6.0, number) for number in range(8)]
    eager = [number for number, growth in enumerate(growths) if growth.grace_period == 120.0]
    assert eager == [1, 2, 5, 6]
    assert growths[1].least_evidence == 1.0
    assert growths[1].bound.code != RULES.bound.code
    assert growths[1].task is task
    assert growths[0] == (RULES if classes == 2 else growths[3])
    assert growths[0].least_evidence > 1.0


def test_eager_members_are_what_their_number_states_after_loading():
    rng = np.random.default_rng(1)
    X = rng.random((600, 3))
    forest = ForestClassifier(members=6, threads=1)
    forest.learn_many(X, (X.sum(axis=1) > 1.5).astype(int))
    loaded = ForestClassifier.from_bytes(forest.to_bytes())
    for model in (forest, loaded):
        graces = [tree.grace_period for tree in model.model._kernel.trees]
        assert graces == [400.0, 120.0, 120.0, 400.0, 200.0, 200.0, 120.0]
    assert (
        forest.predict_proba_learn_many(X, [1] * 600)
        == loaded.predict_proba_learn_many(X, [1] * 600)
    ).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_chessboard_that_no_single_split_reveals(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((3000, 2))
    y = np.floor(4 * X).sum(axis=1) % 2 == 1
    predicted = ForestClassifier(seed=seed, threads=1).predict_learn_many(X, y)
    assert np.mean(predicted[1500:] == y[1500:]) > 0.92


@pytest.mark.parametrize("make", [ForestClassifier, AdaptiveTreeClassifier])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_candidate_that_has_seen_one_class_takes_over_nothing(make, classes):
    rng = np.random.default_rng(3)
    y = np.append(np.repeat(np.arange(classes - 1), 200), np.full(800, classes - 1))
    X = {"x": y + 0.3 * rng.normal(size=len(y)), "z": rng.random(len(y))}
    model = make(threads=1)
    model.learn_many(X, y)
    events = [event["event"] for event in model.model._kernel.events]
    assert "reset" not in events
