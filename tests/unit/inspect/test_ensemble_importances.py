"""Permutation importances of ensembles, from the rows that their trees keep as samples."""

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor
from sapwood.inspect.ensemble_importances import permutation_importances


def correlated(rows, seed=1):
    """Two columns that nearly agree, a dominant one, and one of noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 4))
    X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=rows)
    y = 10 * (X[:, 2] - 0.5) ** 2 + 4 * X[:, 2] + X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=rows)
    return X, y


def forest(**given):
    return ForestRegressor(members=6, threads=1, **given)


def shares_of(model):
    return np.array(list(model.feature_importances.values()))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sizes_agree_with_permutations_of_the_last_rows(seed):
    X, y = correlated(12_000, seed)
    model = forest(seed=seed)
    model.learn_many(X, y)
    rng = np.random.default_rng(0)
    X, y = X[-2000:], y[-2000:]
    usual = np.mean((model.predict_many(X, record=False) - y) ** 2)
    growth = np.zeros(4)
    for column in range(4):
        for _ in range(5):
            other = X.copy()
            other[:, column] = rng.permutation(other[:, column])
            growth[column] += np.mean((model.predict_many(other, record=False) - y) ** 2) - usual
    growth = np.maximum(growth, 0.0)
    assert np.abs(shares_of(model) - growth / growth.sum()).sum() < 0.1


def test_each_is_the_mean_squared_change_of_the_combined_prediction():
    """Row by row, as `explain_row` predicts."""
    X, y = correlated(3000)
    model = forest()
    model.learn_many(X, y)
    kernel = model._kernel
    kept = [tree.columns.known_samples for tree in kernel.trees if tree.rows]
    rows = np.unique(np.vstack(kept), axis=0)

    def combined(row):
        return kernel.explain_row(np.ascontiguousarray(row))[3]

    usual, rng = [combined(row) for row in rows], np.random.default_rng(1)
    expected = np.zeros(4)
    orders = [rng.permutation(len(rows)) for _ in range(4)]
    for column in range(4):
        for order in orders:
            other = rows.copy()
            other[:, column] = rows[order, column]
            changes = [combined(row) - own for row, own in zip(other, usual, strict=True)]
            expected[column] += np.mean(np.square(changes))
    found = kernel.read_locked(permutation_importances, kernel, model._features)
    assert found == pytest.approx(expected, rel=1e-9)
    assert shares_of(model) == pytest.approx(expected / expected.sum(), rel=1e-9)


def test_reading_them_changes_nothing():
    X, y = correlated(1500)
    model = forest()
    model.learn_many(X, y)
    before = model.to_bytes()
    first, again = model.feature_importances, model.feature_importances
    assert first == again
    assert model.to_bytes() == before
    assert type(model).from_bytes(before).feature_importances == first


def test_a_flag_of_missing_values_is_permuted_with_its_column():
    rng = np.random.default_rng(3)
    x, z = rng.random((2, 6000))
    y = 3.0 * x + z
    model = forest()
    model.learn_many({"x": np.where(x > 0.5, np.nan, x), "z": z}, y)
    assert model._features.known.flags
    shares = model.feature_importances
    assert list(shares) == ["x", "z"]
    found = model._kernel.read_locked(permutation_importances, model._kernel, model._features)
    assert [found[flag] for flag in model._features.known.flags] == [0.0]
    # Var(3x) is 9 times Var(z); the flag and x itself know 3/4 of it, and linear terms a little.
    assert 0.8 < shares["x"] < 0.95


def test_targets_are_in_units_of_their_variance():
    rng = np.random.default_rng(4)
    X = rng.random((6000, 2))
    model = forest()
    model.learn_many(X, {"small": X[:, 0], "large": 1000.0 * X[:, 1]})
    assert shares_of(model) == pytest.approx([0.5, 0.5], abs=0.1)


def test_a_target_that_few_members_have_seen():
    rng = np.random.default_rng(5)
    X = rng.random((3000, 2))
    late = np.where(np.arange(3000) < 2998, np.nan, X[:, 1])
    model = forest()
    model.learn_many(X, {"early": X[:, 0], "late": late})
    shares = shares_of(model)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] > 0.9


@pytest.mark.parametrize("columns", [300, 900])
def test_many_columns_are_tried_with_fewer_rows(columns):
    rng = np.random.default_rng(6)
    X = rng.random((600, columns))
    model = forest(max_bytes=None)
    model.learn_many(X, 5.0 * X[:, 7])
    shares = model.feature_importances
    assert max(shares, key=shares.get) == "7"
    assert sum(shares.values()) == pytest.approx(1.0)


def test_before_anything_is_known_they_are_zero_or_those_of_members():
    model = forest()
    assert model.feature_importances == {}
    model.learn_one({"a": 1.0, "b": 2.0}, 3.0)
    assert model.feature_importances == {"a": 0.0, "b": 0.0}


def test_an_adaptive_tree_has_those_of_its_tree():
    X, y = correlated(2000)
    model = AdaptiveTreeRegressor()
    model.learn_many(X, y)
    assert model.feature_importances == model.tree.feature_importances
