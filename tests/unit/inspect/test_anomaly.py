"""Anomaly scores: as the reference, higher for rows that no leaf expects, and free of effects."""

import threading

import numpy as np
import pytest

import naive_anomaly
import sapwood
from sapwood.export.flat import encode


def rows(seed, count, width=5):
    random = np.random.default_rng(seed)
    hidden = random.normal(size=(count, 2))
    X = hidden @ random.normal(size=(2, width)) + 0.2 * random.normal(size=(count, width))
    y = np.where(hidden[:, 0] > 0, 3 * hidden[:, 1], 5.0) + 0.1 * random.normal(size=count)
    return X, y


def reference(kernels, X):
    logs = [[naive_anomaly.log_unusual(tree, row, row) for row in X] for tree in kernels]
    return 1 - np.exp(-np.mean(logs, axis=0))


@pytest.mark.parametrize("width", [1, 5, 40])  # 40 terms have a diagonal covariance
def test_scores_of_a_tree_are_those_of_the_reference(width):
    X, y = rows(1, 3000, width)
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(X, y)
    asked = np.vstack([X[:30], 1e3 * X[:5], 1e9 * X[:5], np.full((1, width), np.nan)])
    found = tree.anomaly_score_many(asked)
    np.testing.assert_allclose(found, reference([tree._kernel], asked), rtol=1e-12)
    ones = [tree.anomaly_score_one(dict(enumerate(row))) for row in asked]
    assert ones == found.tolist()
    assert ((found >= 0) & (found <= 1)).all()


def test_scores_of_ensembles_are_those_of_their_trees():
    X, y = rows(2, 2500)
    forest, adaptive = sapwood.ForestRegressor(members=4), sapwood.AdaptiveTreeRegressor()
    for model, count in ((forest, 4), (adaptive, 1)):
        model.learn_many(X, y)
        expected = reference(model._kernel.trees[:count], X[:20])
        np.testing.assert_allclose(model.anomaly_score_many(X[:20]), expected, rtol=1e-12)


def test_categories_count_by_their_encodings():
    random = np.random.default_rng(3)
    city = random.choice(["Oslo", "Rome", "Bonn"], 3000)
    temp = random.normal(size=3000) + 8.0 * (city == "Rome")
    tree = sapwood.HoeffdingTreeRegressor(max_depth=0)
    y = np.where(city == "Rome", 20.0, 1.0) + random.normal(size=3000)
    tree.learn_many({"temp": temp, "city": city}, y)
    usual = tree.anomaly_score_one({"temp": 8.0, "city": "Rome"})
    odd = tree.anomaly_score_one({"temp": 8.0, "city": "Oslo"})
    assert usual + 0.1 < odd
    shops = random.integers(0, 200, 3000)
    many = sapwood.HoeffdingTreeRegressor()
    X = {"shop": [f"s{shop}" for shop in shops], "temp": temp}
    many.learn_many(X, shops % 5 + temp)
    kernel, raw = many._kernel, many._features.read(X, learn=False).matrix[:20]
    levels = encode(many, X)[:20, :2]
    levels[:, 0] -= kernel.first  # models measure them from the first y
    expected = [
        1 - np.exp(-naive_anomaly.log_unusual(kernel, row, own))
        for row, own in zip(raw, levels, strict=True)
    ]
    np.testing.assert_allclose(
        many.anomaly_score_many({name: column[:20] for name, column in X.items()}), expected, 1e-9
    )


def test_several_targets_have_one_score():
    X, y = rows(4, 2000)
    tree, alone = sapwood.HoeffdingTreeRegressor(), sapwood.HoeffdingTreeRegressor()
    tree.learn_many(X, {"u": y, "v": y})
    alone.learn_many(X, y)
    np.testing.assert_allclose(
        tree.anomaly_score_many(X[:50]), alone.anomaly_score_many(X[:50]), rtol=1e-9
    )


def test_rows_that_break_what_others_share_score_higher():
    X, y = rows(5, 4000)
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(X[:3000], y[:3000])
    usual = X[3000:]
    random = np.random.default_rng(6)
    mixed = np.column_stack([random.permutation(column) for column in usual.T])
    above = np.median(tree.anomaly_score_many(mixed)) > tree.anomaly_score_many(usual)
    assert above.mean() > 0.95


def test_before_the_first_row_nothing_is_unusual():
    tree = sapwood.HoeffdingTreeRegressor()
    assert tree.anomaly_score_one({"x": 1.0}) == 0.0
    assert tree.anomaly_score_many({"x": [1.0, 2.0]}).tolist() == [0.0, 0.0]
    tree.learn_one({"x": 1.0}, 2.0)
    assert 0.0 <= tree.anomaly_score_one({"x": 1.0}) <= 1.0
    assert tree.anomaly_score_many({"x": []}).tolist() == []


def test_trees_of_means_have_none_and_say_what_to_do():
    for model in (
        sapwood.HoeffdingTreeRegressor(leaf="mean"),
        sapwood.ForestRegressor(leaf="mean"),
    ):
        with pytest.raises(ValueError, match="leaf='adaptive' or 'linear'"):
            model.anomaly_score_one({"x": 1.0})


def test_a_score_changes_nothing():
    X, y = rows(7, 1000)
    for model in (sapwood.HoeffdingTreeRegressor(), sapwood.ForestRegressor(members=2)):
        model.learn_many(X, y)
        before = model.to_bytes()
        model.anomaly_score_many(X)
        model.anomaly_score_one({0: 1.0, "new": 2.0})
        assert model.to_bytes() == before


def test_rows_that_are_bad_are_rejected_by_name():
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many({"x": [1.0, 2.0]}, [1.0, 2.0])
    with pytest.raises(ValueError, match="x"):
        tree.anomaly_score_one({"x": float("inf")})


def test_another_thread_may_learn_meanwhile():
    X, y = rows(8, 6000)
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(X[:500], y[:500])
    learner = threading.Thread(
        target=lambda: [tree.learn_many(X[k : k + 50], y[k : k + 50]) for k in range(500, 6000, 50)]
    )
    learner.start()
    for _ in range(20):
        assert np.isfinite(tree.anomaly_score_many(X[:200])).all()
    learner.join()
    assert tree._kernel.rows == 6000
