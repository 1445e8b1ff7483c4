"""A fitted model of the user's that is corrected online."""

import numpy as np
import pytest

from hybrid_cases import stream
from sapwood import ForestRegressor, HybridRegressor
from sapwood.hybrid import FitFailedWarning

lightgbm = pytest.importorskip("lightgbm")
pd = pytest.importorskip("pandas")
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
    online = hybrid.model.predict_one(row)
    assert hybrid.predict_one(row) == pytest.approx(0.5 * (online + alone))


def test_a_booster_without_names_reads_features_in_their_order():
    X, y = stream(1000)
    own = {"verbose": -1, "num_threads": 1}
    booster = lightgbm.train(own, lightgbm.Dataset(X, y, params=own), 20)
    hybrid = corrected(booster)
    hybrid.learn_many(X[:300], y[:300])
    assert hybrid._core.frozen.names is None
    batch = hybrid._core.frozen.trees.predict(X)
    assert batch.tolist() == booster.predict(X).tolist()


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


def _rows(columns):
    from sapwood.hybrid.members import ManyRows

    return ManyRows(columns, len(columns["a"]))
