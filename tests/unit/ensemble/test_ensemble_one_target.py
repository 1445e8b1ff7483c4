"""One target of a forest, or of an adaptive tree, of several: it says the same, and goes on."""

from functools import partial

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor
from target_cases import columns_of


def streamed(kind, rows, gaps=0.25):
    rng = np.random.default_rng(11)
    X, columns = columns_of(rng, rows)
    Y = np.column_stack([columns["a"], columns["b"]])
    Y[rng.random(rows) < gaps, 1] = np.nan
    if kind == "changing":
        Y[rows // 2 :] = 30 - 2 * Y[rows // 2 :]
    return X, Y


@pytest.mark.parametrize("kind", ["plain", "changing"])
@pytest.mark.parametrize("make", [partial(ForestRegressor, members=3), AdaptiveTreeRegressor])
def test_one_target_as_an_ensemble_of_its_own(make, kind):
    X, Y = streamed(kind, 3000)
    model = make(threads=1, grace_period=50)
    model.column_formats = {"when": "%Y"}
    for rows in (400, 1600, 3000):
        model.learn_many(X[model.summary.rows : rows], Y[model.summary.rows : rows])
        said = model.predict_many(X[:50])
        for place in range(2):
            one = model.of_target(place)
            assert one.predict_many(X[:50]).tobytes() == said[:, place].tobytes()
            assert one.targets == []
            assert one.column_formats == {"when": "%Y"}
            assert one.explain({0: 0.5}).prediction == one.predict_one({0: 0.5})
            assert sum(one.feature_importances.values()) == pytest.approx(1)
            again = type(one).from_bytes(one.to_bytes())
            known = ~np.isnan(Y[:, place])
            for each in (one, again):
                each.learn_many(X[known][:700], Y[known, place][:700])
            assert one.to_bytes() == again.to_bytes()


@pytest.mark.parametrize("make", [partial(ForestRegressor, members=3), AdaptiveTreeRegressor])
def test_one_target_goes_on_about_as_well_as_it_was(make):
    X, Y = streamed("plain", 6000, gaps=0.0)
    model = make(threads=1, grace_period=50)
    model.learn_many(X[:3000], Y[:3000])
    one = model.of_target(0)
    both = model.predict_learn_many(X[3000:], Y[3000:])[:, 0]
    alone = one.predict_learn_many(X[3000:], Y[3000:, 0])
    errors = [np.mean((said - Y[3000:, 0]) ** 2) for said in (both, alone)]
    assert errors[1] < 1.1 * errors[0]


def test_targets_that_cannot_stand_alone_yet_are_refused():
    X, Y = streamed("plain", 600, gaps=0.0)
    Y[:560, 1] = np.nan
    model = AdaptiveTreeRegressor(threads=1)
    model.learn_many(X[:500], Y[:500])
    with pytest.raises(ValueError, match="no y of it was learned yet"):
        model.of_target(1)
    with pytest.raises(ValueError, match="one of 0, 1 is expected"):
        model.of_target(2)
    model.learn_many(X[500:], Y[500:])
    with pytest.raises(ValueError, match="fewer rows than its challenger is old"):
        model.of_target(1)
    one = model.of_target(0)
    with pytest.raises(ValueError, match="the model has one target, without a name"):
        one.of_target(0)


def test_limited_memory_is_enough_for_one_target():
    X, Y = streamed("plain", 1500)
    model = ForestRegressor(members=2, threads=1, max_bytes=400_000, grace_period=50)
    model.learn_many(X, Y)
    one = model.of_target(1)
    assert one.nbytes <= 400_000
    assert one.predict_many(X[:20]).tobytes() == model.predict_many(X[:20])[:, 1].tobytes()
