"""Files of hybrids: safe, complete, and resumed to the last bit, during a fit too."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hybrid_cases
import sapwood
from hybrid_cases import MeanEstimator, small, stream
from places import DATA
from sapwood import HybridRegressor, ModelFileError
from sapwood.hybrid import FitFailedWarning, LightGBM
from sapwood.hybrid.trees import FlatTrees, flattened
from sapwood.model import State
from sapwood.storage import container

lightgbm = pytest.importorskip("lightgbm")


@pytest.mark.parametrize("rows", [0, 50, 101, 119, 120, 333, 500])
def test_a_run_is_resumed_to_the_last_bit(rows, tmp_path):
    X, y = stream(700)
    whole = small().predict_learn_many(X, y)
    first = small()
    before = first.predict_learn_many(X[:rows], y[:rows]) if rows else np.empty(0)
    first.save(tmp_path / "my.sapwood")
    second = sapwood.load(tmp_path / "my.sapwood")
    assert second.is_refitting == first.is_refitting
    assert second.to_bytes() == first.to_bytes()
    after = second.predict_learn_many(X[rows:], y[rows:])
    assert np.concatenate([before, after]).tolist() == whole.tolist()


def test_predictions_whose_labels_are_to_come_are_saved(tmp_path):
    X, y = stream(900)
    one = small()
    one.predict_learn_many(X[:600], y[:600])
    one.predict_many(X[600:700])
    two = HybridRegressor.from_bytes(one.to_bytes())
    for model in (one, two):
        model.learn_many(X[600:700], y[600:700])
    assert one.weights == two.weights
    assert one.to_bytes() == two.to_bytes()


PROGRAM = """
import sys, time
sys.path.insert(0, {tests!r})
import numpy as np
import hybrid_cases
import sapwood
from hybrid_cases import small, stream
from sapwood.hybrid import FitFailedWarning, LightGBM

class Slow(LightGBM):
    name = "lightgbm"
    def fit(self, X, y, w):
        time.sleep({wait})
        return super().fit(X, y, w)

import sapwood.hybrid.learners as learners
learners.LEARNERS["lightgbm"] = Slow
X, y = stream(900)
path, out = {path!r}, {out!r}
try:
    model = sapwood.load(path)
except FileNotFoundError:
    model = small(batch=Slow(rounds=10))
for start in range(model.rows, 900, 15):
    part = slice(start, start + 15)
    found = model.predict_learn_many(X[part], y[part])
    with open(out, "ab") as file:
        file.truncate(start * 8)
        file.write(found.tobytes())
    model.save(path)
    if model.is_refitting:
        print("fitting", flush=True)
        time.sleep({pause})
print("done", flush=True)
"""


def test_a_run_that_is_killed_during_a_fit_predicts_the_same_bytes(tmp_path):
    X, y = stream(900)
    expected = np.concatenate(
        [
            part
            for model in [small()]
            for s in range(0, 900, 15)
            for part in [model.predict_learn_many(X[s : s + 15], y[s : s + 15])]
        ]
    )
    path, out = str(tmp_path / "run.sapwood"), str(tmp_path / "out.bin")
    kills = 0
    for wait, pause in ((0.3, 5.0), (0.3, 5.0), (0.0, 0.0)):
        text = PROGRAM.format(
            tests=os.path.dirname(hybrid_cases.__file__), path=path, out=out, wait=wait, pause=pause
        )
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as process:
            line = process.stdout.readline()
            if line == b"fitting\n" and pause:
                time.sleep(0.05)
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.stdout.read()
        saved = sapwood.load(path)
        assert not pause or saved.is_refitting
    assert kills == 2
    with open(out, "rb") as file:
        assert file.read() == expected.tobytes()


def test_another_learner_is_given_again(tmp_path):
    X, y = stream(700)
    whole = small(batch=MeanEstimator())
    expected = whole.predict_learn_many(X, y)
    for rows in (130, 160, 400):
        first = small(batch=MeanEstimator())
        first.predict_learn_many(X[:rows], y[:rows])
        with pytest.warns(FitFailedWarning, match=r"MeanEstimator\).*attach\(batch\)"):
            second = HybridRegressor.from_bytes(first.to_bytes())
        assert second.to_bytes() == first.to_bytes()
        with pytest.raises(ValueError, match=r"was saved with hybrid_cases\.MeanEstimator"):
            second.attach(LightGBM())
        second.attach(MeanEstimator())
        assert second.is_refitting == first.is_refitting
        assert second.predict_learn_many(X[rows:], y[rows:]).tolist() == expected[rows:].tolist()
        with pytest.raises(ValueError, match="has its batch learner"):
            second.attach(MeanEstimator())


def test_without_its_learner_a_hybrid_predicts_online(tmp_path):
    X, y = stream(600)
    first = small(batch=MeanEstimator())
    first.predict_learn_many(X[:300], y[:300])
    path = tmp_path / "own.sapwood"
    first.save(path)
    with pytest.warns(FitFailedWarning, match=r"own\.sapwood does not hold .*attach\(batch\)"):
        second = sapwood.load(path)
    found = second.predict_learn_many(X[300:], y[300:])
    assert np.isfinite(found).all()
    assert second.weights == {"online": 1.0, "corrector": 0.0, "batch": 0.0}
    with pytest.warns(FitFailedWarning, match="attach"):
        third = HybridRegressor.from_bytes(second.to_bytes())
    third.attach(MeanEstimator())
    assert third.weights["batch"] > 0


def test_saving_does_not_change_the_bytes_that_a_hybrid_occupies():
    X, y = stream(900)
    model = small()
    for start in range(0, 900, 150):
        model.learn_many(X[start : start + 150], y[start : start + 150])
        again = HybridRegressor.from_bytes(model.to_bytes())
        assert model.nbytes == again.nbytes == model.copy().nbytes


def test_a_backtest_is_saved():
    X, y = stream(900)
    whole, first = small(), small()
    whole.learn_many(X[:800], y[:800])
    for rows in (150, 333, 517):
        first.learn_many(X[first.rows : rows], y[first.rows : rows])
        assert first._core.learned.backtest is not None
        first = HybridRegressor.from_bytes(first.to_bytes())
    first.learn_many(X[517:800], y[517:800])
    assert first.to_bytes() == whole.to_bytes()


def test_a_file_of_format_2_predicts_as_it_did():
    X, y = stream(200)
    model = sapwood.load(DATA / "format_2" / "hybrid.sapwood")
    assert model.rows == 160
    assert HybridRegressor.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    expected = json.loads((DATA / "format_2" / "hybrid.json").read_text())
    assert model.predict_learn_many(X[160:], y[160:]).tolist() == expected


def test_copies_are_independent():
    X, y = stream(500)
    one = small()
    one.learn_many(X[:300], y[:300])
    two = one.copy()
    before = one.to_bytes()
    two.learn_many(X[300:], y[300:])
    assert one.to_bytes() == before != two.to_bytes()


def states():
    X, y = stream(400)
    model = small()
    model.predict_learn_many(X[:310], y[:310])
    model.predict_many(X[310:330])
    data = model.to_bytes()
    assert model.is_refitting
    return container.unpack(data, "HybridRegressor", "it")


def forest_of_targets():
    forest = sapwood.ForestRegressor(members=3, threads=1)
    forest.learn_many(np.eye(3), {"u": [1.0, 2.0, 3.0], "v": [3.0, 2.0, 1.0]})
    return np.frombuffer(forest.to_bytes(), np.uint8)


CHANGES = {
    "rows below zero": lambda h, a: h["model"].update(rows=-1),
    "no rows": lambda h, a: h["model"].update(rows=None),
    "a learner that is none": lambda h, a: h["model"].update(
        batch={"learner": "os.system", "parameters": {}}
    ),
    "a batch that is a list": lambda h, a: h["model"].update(batch=["lightgbm"]),
    "other parameters": lambda h, a: h["model"]["parameters"].update(window="all"),
    "a fit of the past": lambda h, a: h["model"].update(fit=3),
    "pending predictions of another width": lambda h, a: a.update(pending=np.zeros((20, 2))),
    "pending predictions of the future": lambda h, a: a["pending"].fill(10**6),
    "a state that is infinite": lambda h, a: a["state"].fill(np.inf),
    "squares below zero": lambda h, a: a["state"].fill(-1.0),
    "another state": lambda h, a: a.update(state=np.zeros(3)),
    "no window": lambda h, a: a.pop("window.X"),
    "rows of the future": lambda h, a: a.update({"window.first": np.array([10**6])}),
    "an infinite row": lambda h, a: a["window.X"].fill(np.inf),
    "a tree without an end": lambda h, a: a["batch.0.right"].fill(0),
    "a tree beyond its nodes": lambda h, a: a["batch.0.right"].fill(10**6),
    "a feature beyond the row": lambda h, a: a["batch.0.feature"].fill(10**6),
    "a leaf that is no number": lambda h, a: a["batch.0.number"].fill(np.nan),
    "flags that are none": lambda h, a: a["batch.0.flags"].fill(255),
    "roots that are none": lambda h, a: a["batch.0.roots"].fill(5),
    "labels of another width": lambda h, a: a.update({"batch.labels": np.zeros(0)}),
    "an online model that is none": lambda h, a: a.update(online=np.zeros(8, np.uint8)),
    "no corrector": lambda h, a: a.update(corrector=np.zeros(0, np.uint8)),
    "a corrector of several targets": lambda h, a: a.update(corrector=forest_of_targets()),
    "refits that are none": lambda h, a: h["model"].update(refits=[["a"]]),
    "events that are none": lambda h, a: h["model"].update(events=[{"row": "a"}]),
    "a history that is none": lambda h, a: a.update(history=np.zeros((2, 2))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_damage_is_found(change):
    header, arrays = states()
    arrays = {name: np.array(array) for name, array in arrays.items()}
    CHANGES[change](header, arrays)
    with pytest.raises(ModelFileError):
        HybridRegressor._restored(State(header, arrays), "it")


def test_no_file_holds_a_pickle():
    header, arrays = states()
    kinds = {array.dtype.kind for array in arrays.values()}
    assert kinds <= set("fiu")
    assert isinstance(header, dict)


# -- trees of other libraries ---------------------------------------------------------------------


def table(rows=2000, seed=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    return X, np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"objective": "regression_l1"},
        {"objective": "quantile", "alpha": 0.8},
        {"num_leaves": 2},
        {"min_data_in_leaf": 1500},
        {"extra_trees": True, "bagging_fraction": 0.5, "bagging_freq": 1},
    ],
)
def test_trees_of_lightgbm_predict_the_same(parameters):
    X, y = table()
    own = {"verbose": -1, "num_threads": 1, **parameters}
    booster = lightgbm.train(own, lightgbm.Dataset(X, y, params=own), 20)
    trees = flattened(booster)
    assert trees is not None
    assert trees.predict(X).tolist() == booster.predict(X).tolist()
    again = FlatTrees.from_arrays(trees.to_arrays("t."), "t.")
    assert again.predict(X).tolist() == trees.predict(X).tolist()


def test_values_that_lightgbm_reads_as_zero_are_on_the_side_of_zero():
    tiny = float(np.float32(1e-35))
    values = [-1.0, -2 * tiny, -tiny, -tiny / 2, -5e-324, -0.0, 0.0, tiny / 2, tiny, 2 * tiny, 1.0]
    X = np.array(values)[:, np.newaxis]
    own = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 1, "min_data_in_bin": 1}
    rows = np.repeat([[-1.0], [0.0], [1.0]], 50, axis=0)
    for y in ((0.0, 5.0, 9.0), (5.0, 0.0, 9.0), (9.0, 5.0, 0.0)):
        data = lightgbm.Dataset(rows, np.repeat(y, 50), params=own)
        booster = lightgbm.train(own, data, 5)
        trees = flattened(booster)
        assert trees is not None
        assert 0.0 < np.abs(trees.number[trees.feature != -1]).min() < 1e-34
        assert trees.predict(X).tolist() == booster.predict(X).tolist()
        assert len({*trees.predict(X).tolist()}) == 3


@pytest.mark.parametrize(
    "parameters",
    [
        {"objective": "poisson"},
        {"linear_tree": True},
        {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1},
    ],
)
def test_other_predictions_are_left_to_lightgbm(parameters):
    X, y = table()
    X, y = np.nan_to_num(X), np.abs(y)
    own = {"verbose": -1, "num_threads": 1, **parameters}
    booster = lightgbm.train(own, lightgbm.Dataset(X, y, params=own), 10)
    assert flattened(booster) is None


def test_trees_that_split_on_categories_are_left_to_lightgbm():
    X, _ = table()
    X[:, 3] = np.random.default_rng(1).integers(0, 6, len(X))
    own = {"verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(X, (X[:, 3] % 2) * 5.0, params=own, categorical_feature=[3])
    assert flattened(lightgbm.train(own, data, 10)) is None


def test_trees_of_scikit_learn_predict_the_same():
    ensemble = pytest.importorskip("sklearn.ensemble")
    limits = pytest.importorskip("threadpoolctl").threadpool_limits
    X, y = table()
    with limits(1):
        model = ensemble.HistGradientBoostingRegressor(max_iter=10).fit(X, y)
        trees = flattened(model)
        assert trees is not None
        assert trees.predict(X).tolist() == model.predict(X).tolist()
        poisson = ensemble.HistGradientBoostingRegressor(max_iter=5, loss="poisson")
        assert flattened(poisson.fit(X, np.abs(y))) is None
