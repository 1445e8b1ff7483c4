"""A fitted model of the user's that is corrected online."""

import warnings

import numpy as np
import pytest

from hybrid_cases import stream, timed
from naive_hybrid import NaiveHybrid
from sapwood import ForestRegressor, HybridRegressor
from sapwood.hybrid import FitFailedWarning

lightgbm = pytest.importorskip("lightgbm")
pd = pytest.importorskip("pandas")
ensemble = pytest.importorskip("sklearn.ensemble")
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def fitted():
    X, y = stream(4000, seed=5)
    frame = pd.DataFrame(X, columns=NAMES)
    return lightgbm.LGBMRegressor(n_estimators=50, n_jobs=1, verbose=-1).fit(frame, y)


def corrected(model, **options):
    return HybridRegressor(ForestRegressor(members=3, threads=1), model, refit=None, **options)


def test_it_predicts_as_the_model_at_first_and_is_corrected_after_a_drift(fitted):
    X, y = stream(4000, drift=2000)
    columns = {name: X[:, place] for place, name in reversed([*enumerate(NAMES)])}  # other order
    alone = fitted.predict(pd.DataFrame(X, columns=NAMES))
    hybrid = corrected(fitted)
    found = hybrid.predict_learn_many(columns, y)
    fresh, stale = slice(500, 2000), slice(2500, 4000)
    errors = {
        name: [np.mean((p - y)[part] ** 2) for part in (fresh, stale)]
        for name, p in (("alone", alone), ("hybrid", found))
    }
    assert errors["hybrid"][0] < 1.2 * errors["alone"][0]
    assert errors["hybrid"][1] < 0.3 * errors["alone"][1]
    known = hybrid.staleness
    assert known["batch_weight"] < 0.1 < known["best_batch_weight"]
    assert known["correction_gain"] > 0.7
    assert 2000 < known["drift_events"][0]["row"] < 2100
    assert hybrid.refits == []


def test_features_are_found_by_name(fitted):
    X, _ = stream(300)
    hybrid = corrected(fitted, correct=False)
    hybrid.learn_one(dict(zip(NAMES, X[0].tolist(), strict=True)), 1.0)
    alone = fitted.predict(pd.DataFrame(X[:1], columns=NAMES))[0]
    row = {name: X[0, place] for name, place in (("d", 3), ("a", 0), ("c", 2), ("b", 1))}
    assert hybrid.predict_one(row) == pytest.approx(alone)


@pytest.mark.parametrize("timing", ["at once", "by 100", "never"])
def test_it_predicts_as_the_reference_implementation(fitted, timing):
    X, y = stream(700, drift=400)
    y = y + 50.0
    naive = NaiveHybrid(min_rows=100, frozen=fitted.booster_)
    hybrid = HybridRegressor(batch=fitted, refit=None, min_rows=100)
    expected, found = [], []
    for what, start, end in timed(len(y), timing):
        if what == "predict":
            expected += [naive.predict(row, X[row].tolist()) for row in range(start, end)]
            found += hybrid.predict_many(_named(X[start:end])).tolist()
        else:
            for row in range(start, end):
                naive.learn(row, X[row].tolist(), y[row])
            hybrid.learn_many(_named(X[start:end]), y[start:end])
    assert found == expected


def test_before_the_first_label_the_model_predicts_alone(fitted):
    X, y = stream(1200)
    alone = fitted.predict(pd.DataFrame(X, columns=NAMES))
    hybrid = corrected(fitted)
    assert hybrid.weights == {"online": 0.0, "corrector": 0.0, "batch": 1.0}
    blocks = []
    for part in (slice(0, 600), slice(600, 1200)):  # labels come in blocks
        blocks.append(hybrid.predict_many(_named(X[part])))
        hybrid.learn_many(_named(X[part]), y[part])
    assert blocks[0] == pytest.approx(alone[:600], rel=1e-12)
    errors = [np.mean((p - y[600:]) ** 2) for p in (blocks[1], alone[600:])]
    assert errors[0] < 1.05 * errors[1]


def test_a_history_without_predictions_shows_that_the_model_is_stale(fitted):
    X, y = stream(2000, drift=0)
    hybrid = corrected(fitted)
    hybrid.learn_many(_named(X), y)
    assert hybrid.weights["batch"] < 0.1


def test_a_booster_without_names_reads_features_in_their_order():
    X, y = stream(1000)
    own = {"verbose": -1, "num_threads": 1}
    booster = lightgbm.train(own, lightgbm.Dataset(X, y, params=own), 20)
    hybrid = corrected(booster)
    hybrid.learn_many(X[:300], y[:300])
    assert hybrid._core.frozen.names is None
    batch = hybrid._core.frozen.trees.predict(X)
    assert batch.tolist() == booster.predict(X).tolist()
    assert corrected(booster).predict_many(X[:9]) == pytest.approx(booster.predict(X[:9]))


def test_a_model_without_names_predicts_before_the_first_row():
    X, y = stream(400)
    model = ensemble.RandomForestRegressor(5, random_state=1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hybrid = corrected(model)
        assert hybrid.predict_many(X[:9]) == pytest.approx(model.predict(X[:9]))
        one = dict(enumerate(X[3].tolist()))
        assert hybrid.predict_one(one) == pytest.approx(model.predict(X[3:4])[0])


def test_features_that_are_found_by_their_order_are_warned_of_once():
    X, y = stream(400)
    model = ensemble.RandomForestRegressor(5, random_state=1).fit(X, y)
    hybrid = corrected(model)
    with pytest.warns(UserWarning, match=r"first appearance, a, b, c, d\. .*feature_names_in_"):
        hybrid.predict_many(_named(X[:9]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hybrid.predict_learn_many(_named(X), y)
    model.feature_names_in_ = np.array(NAMES[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = corrected(model).predict_many(_named(X[:9]))
    expected = model.predict(pd.DataFrame(X[:9, ::-1], columns=NAMES[::-1]))
    assert found == pytest.approx(expected)


def test_a_failure_after_another_is_warned_of():
    class Failing:
        kinds = iter((RuntimeError("not today"), RuntimeError("not today"), KeyError("gone")))

        def predict(self, X):
            raise next(self.kinds)

    hybrid, row = corrected(Failing()), {0: 1.0}
    with pytest.warns(FitFailedWarning, match="not today"):
        hybrid.predict_one(row)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hybrid.predict_one(row)
    with pytest.warns(FitFailedWarning, match="gone"):
        hybrid.predict_one(row)


def test_it_is_saved_with_its_trees(fitted):
    X, y = stream(800)
    columns = dict(zip(NAMES, X.T.copy(), strict=True))
    part = {name: column[:500] for name, column in columns.items()}
    rest = {name: column[500:] for name, column in columns.items()}
    one = corrected(fitted)
    one.predict_learn_many(part, y[:500])
    two = HybridRegressor.from_bytes(one.to_bytes())
    assert (
        two.predict_learn_many(rest, y[500:]).tolist()
        == one.predict_learn_many(rest, y[500:]).tolist()
    )


def test_a_model_of_categories_gets_a_frame():
    X, y = stream(1500)
    label = np.where(X[:, 3] > 0, "north", "south").astype(object)
    y = y + 3 * (label == "north")
    frame = pd.DataFrame(X[:, :3], columns=NAMES[:3]).assign(d=pd.Categorical(label))
    model = lightgbm.LGBMRegressor(n_estimators=30, n_jobs=1, verbose=-1).fit(frame, y)
    hybrid = corrected(model)
    columns = {**dict(zip(NAMES[:3], X[:, :3].T.copy(), strict=True)), "d": label.tolist()}
    found = hybrid._core.frozen.predict(_rows(columns), np.empty((1500, 0)), 1)[:, 0]
    assert found == pytest.approx(model.predict(frame))
    hybrid.predict_learn_many(columns, y)
    with pytest.warns(FitFailedWarning, match="fitted model"):
        again = HybridRegressor.from_bytes(hybrid.to_bytes())
    assert again._core.frozen is None
    again.attach(model)
    row = {name: column[7] for name, column in columns.items()}
    assert again.predict_one(row) == hybrid.predict_one(row)


def test_a_model_that_fails_is_left_out():
    class Failing:
        def predict(self, X):
            raise RuntimeError("not today")

    X, y = stream(200)
    hybrid, forest = corrected(Failing()), ForestRegressor(members=3)
    with pytest.warns(FitFailedWarning, match="RuntimeError: not today"):
        found = hybrid.predict_learn_many(X, y)
    assert found.tolist() == forest.predict_learn_many(X, y).tolist()


def _named(X):
    return dict(zip(NAMES, X.T.copy(), strict=True))


def _rows(columns):
    from sapwood.hybrid.members import ManyRows

    return ManyRows(columns, len(columns["a"]))
