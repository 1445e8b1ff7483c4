"""Collinear columns are harmless: cuts that separate the same rows are no rivals."""

import numpy as np
import pytest

from sapwood import HoeffdingTreeRegressor, QuantizerObserver
from sapwood.tree import _search
from tree_cases import friedman, r2

Tree = HoeffdingTreeRegressor


def with_copies(X, how):
    """Three times as many columns: each with two that are like it."""
    copies = {
        "equal": (lambda x: x, lambda x: x),
        "other units": (lambda x: 32 + 1.8 * x, lambda x: 1000 * x),
        "reversed": (lambda x: -x, lambda x: 1 - x),
        "monotone": (np.sqrt, lambda x: x + 0.1 * x**2),
    }[how]
    return np.column_stack([X, *(copy(X) for copy in copies)])


def final_r2(X, y, **arguments):
    return r2(y, Tree(**arguments).predict_learn_many(X, y))


@pytest.mark.parametrize("how", ["equal", "other units", "reversed", "monotone"])
@pytest.mark.parametrize("seed", [1, 2])
def test_copies_of_columns_do_not_stall_the_tree(how, seed):
    X, y = friedman(30_000, seed)
    assert final_r2(with_copies(X, how), y) > final_r2(X, y) - 0.02


def test_noisy_copies_cost_no_more_than_columns_that_mean_nothing():
    lost = []
    for seed in (1, 2, 3):
        X, y = friedman(20_000, seed)
        rng = np.random.default_rng(seed)
        unrelated = [rng.random(X.shape) for _ in range(2)]
        noisy = [X + rng.normal(0, 0.05, X.shape) for _ in range(2)]
        scores = [final_r2(np.column_stack([X, *more]), y) for more in (unrelated, noisy)]
        lost.append(scores[0] - scores[1])
    assert np.mean(lost) < 0.01


def test_copies_do_not_stall_a_tree_of_several_targets():
    X, y = friedman(20_000, 1)
    scores = []
    for columns in (X, with_copies(X, "equal")):
        predictions = Tree().predict_learn_many(columns, np.column_stack([y, -y]))
        scores.append(r2(y, predictions[:, 0]))
    assert scores[1] > scores[0] - 0.02


def test_parts_of_the_time_do_no_harm_where_a_column_has_it_already():
    rng = np.random.default_rng(1)
    quarter, day = np.arange(20_000) % 96, np.arange(20_000) // 96
    work, weekend = (np.repeat(rng.uniform(0, high, 12), 8) for high in (60, 20))
    y = np.where(day % 7 < 5, work[quarter], weekend[quarter]) + rng.normal(0, 1, 20_000)
    names = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], dtype=object)
    columns = {"second": 900.0 * quarter, "z": rng.random(20_000), "day": names[day % 7]}
    parts = {"hour": quarter // 4, "weekday": day % 7}
    assert final_r2(columns | parts, y) > final_r2(columns, y) - 0.005


def grown(X, y, **arguments):
    """The cuts of a tree that never splits: merit, second, feature, place, subset by measure."""
    tree = Tree(delta=1e-300, tau=1e-6, **arguments)
    tree.learn_many(X, y)
    assert tree.n_leaves == 1
    return _search.best_cuts(tree._kernel, 0, 0.02)


@pytest.mark.parametrize("observer", [None, QuantizerObserver(radius=0.05)])
def test_the_second_best_is_that_of_other_rows(observer):
    rng = np.random.default_rng(3)
    x = rng.random((900, 3))
    y = 3.0 * (x[:, 0] > 0.5) + 2.0 * (x[:, 1] > 0.5) + rng.normal(0, 0.5, 900)
    alone = grown(x, y, observer=observer, leaf="mean")
    copied = grown(np.column_stack([x, x[:, 0], -x[:, 0]]), y, observer=observer, leaf="mean")
    assert alone[0][:3] == copied[0][:3]
    assert copied[0][1] < 0.8 * copied[0][0]


def test_features_that_separate_other_rows_stay_rivals():
    rng = np.random.default_rng(4)
    x = rng.random((2000, 2))
    y = (x[:, 0] > 0.3) + 1.0 * (x[:, 1] > 0.7) + rng.normal(0, 0.2, 2000)
    merit, second, *_ = grown(x, y, leaf="mean")[0]
    assert second > 0.8 * merit
