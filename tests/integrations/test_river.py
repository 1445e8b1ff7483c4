"""The tree in river: its checks, its pipelines and frames, and the same tree underneath."""

import copy
import inspect
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import base, datasets, ensemble, evaluate, metrics, preprocessing
from river.checks import check_estimator, yield_checks
from river.feature_extraction import BagOfWords

import sapwood
from cases import run_apart
from sapwood import EBSTObserver
from sapwood.river import (
    AdaptiveTreeClassifier,
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    MultiTargetTreeRegressor,
)
from sapwood.river import __main__ as program
from sapwood.sklearn import HoeffdingTreeRegressor as Estimator
from tree_cases import beside_notes, friedman, r2, unchanged

QUICK = {"grace_period": 20, "delta": 0.5, "tau": 0.5}
MODELS = {
    "default": {},
    "quick": QUICK,
    "mean": QUICK | {"leaf": "mean", "track": None, "categorical": ["ordinal_date"]},
    # Of fewer rows, two features may order all alike, and then the first of them is split.
    "observers": QUICK | {"observer": EBSTObserver(), "grace_period": 50, "max_bytes": 300_000},
}
# All others pass these checks in tests of their own.
OF_NO_OTHER_TEST = (AdaptiveTreeRegressor, ForestRegressor, AdaptiveTreeClassifier)
CHECKS = [check.__name__ for check in yield_checks(HoeffdingTreeRegressor())]


def dicts(x):
    return [dict(enumerate(row)) for row in x.tolist()]


def learned(count=600, **parameters):
    """A model that has learned, and the rows that it has not seen yet."""
    x, y = friedman(count + 200, features=5)
    model = HoeffdingTreeRegressor(**QUICK | parameters)
    model.learn_many(pd.DataFrame(x[:count]), pd.Series(y[:count]))
    return model, list(zip(dicts(x[count:]), y[count:].tolist(), strict=True))


# -- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_a_check_of_rivers_passes(parameters, name):
    model = HoeffdingTreeRegressor(**parameters)
    (check,) = [check for check in yield_checks(model) if check.__name__ == name]
    check(model.clone())


def test_none_of_rivers_checks_is_skipped():
    assert HoeffdingTreeRegressor()._unit_test_skips() == set()
    assert len(CHECKS) == len(set(CHECKS)) >= 28
    check_estimator(HoeffdingTreeRegressor())


def test_none_of_rivers_checks_is_skipped_with_several_targets():
    assert MultiTargetTreeRegressor()._unit_test_skips() == set()
    checks = {check.__name__ for check in yield_checks(MultiTargetTreeRegressor())}
    assert checks >= set(CHECKS) - {
        "check_debug_one",
        "check_learn_many_matches_learn_one",
        "check_predict_many_matches_predict_one",
    }


@pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")
@pytest.mark.parametrize(
    "models", [OF_NO_OTHER_TEST, pytest.param(program.MODELS, marks=pytest.mark.long)]
)
def test_the_program_lists_every_check(capsys, monkeypatch, models):
    monkeypatch.setattr(program, "MODELS", models)
    assert program.main() == 0
    lines = capsys.readouterr().out.splitlines()
    models = [
        f"{kind.__name__}, {check.__name__}: ok"
        for kind in models
        for check in yield_checks(kind())
    ]
    assert lines[: len(models)] == models
    assert len(lines) >= len(models) + 20
    assert all(line.startswith("Lags, check_") for line in lines[len(models) :])
    assert all(line.endswith(": ok") for line in lines)


def test_the_program_tells_a_failure(capsys, monkeypatch):
    def check_that_fails(model):
        raise AssertionError("it went wrong")

    monkeypatch.setattr(program, "yield_checks", lambda model: [check_that_fails])
    assert program.main() == 1
    assert "check_that_fails: FAILED: AssertionError('it went wrong')" in capsys.readouterr().out


def test_nothing_imports_river_or_scikit_learn_unasked():
    program = "import sapwood, sys; print([m for m in ('river', 'sklearn') if m in sys.modules])"
    assert run_apart(program) == "[]\n"


@pytest.mark.parametrize("face", [Estimator, HoeffdingTreeRegressor])
def test_the_parameters_are_those_of_the_tree(face):
    ours, theirs = (
        inspect.signature(kind).parameters for kind in (face, sapwood.tree.HoeffdingTreeRegressor)
    )
    own = face._own_parameters
    assert [(p.name, p.default, p.kind) for p in ours.values() if p.name not in own] == [
        (p.name, p.default, p.kind) for p in theirs.values()
    ]


def test_a_bad_parameter_is_refused_at_once():
    with pytest.raises(ValueError, match="grace_period = -1"):
        HoeffdingTreeRegressor(grace_period=-1)
    with pytest.raises(TypeError, match="grace_perod"):
        HoeffdingTreeRegressor(grace_perod=1)
    with pytest.raises(ValueError, match="categorical = 'day': a list of names is expected"):
        HoeffdingTreeRegressor(categorical="day")
    with pytest.raises(ValueError, match="can be read but once"):
        HoeffdingTreeRegressor(categorical=iter(["day"]))


# -- the same tree underneath ---------------------------------------------------------------------


@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_it_learns_and_predicts_as_the_tree_does(parameters):
    model = HoeffdingTreeRegressor(**parameters)
    tree = sapwood.HoeffdingTreeRegressor(**parameters)
    for x, y in datasets.TrumpApproval().take(400):
        x["polled"] = "yes" if x["gallup"] > 40 else None
        assert model.predict_one(x) == tree.predict_one(x)
        assert model.learn_one(x, y, 2.0) is None
        tree.learn_one(x, y, 2.0)
    assert model.tree.to_bytes() == tree.to_bytes()
    assert model.debug_one(x) == str(tree.explain(x))


def test_batches_are_loops():
    x, y = friedman(500, features=6)
    w = np.random.default_rng(1).integers(1, 4, 500).astype(float)
    loop, batch = HoeffdingTreeRegressor(**QUICK), HoeffdingTreeRegressor(**QUICK)
    for row, target, weight in zip(dicts(x), y.tolist(), w.tolist(), strict=True):
        loop.learn_one(row, target, weight)
    for part in np.array_split(np.arange(500), 7):
        batch.learn_many(pd.DataFrame(x[part]), pd.Series(y[part]), pd.Series(w[part]))
    assert batch.tree.to_bytes() == loop.tree.to_bytes()
    heavy, same = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    heavy.learn_many(pd.DataFrame(x), pd.Series(y), 3)
    same.learn_many(pd.DataFrame(x), pd.Series(y), pd.Series(np.full(500, 3.0)))
    assert heavy.tree.to_bytes() == same.tree.to_bytes()


def test_what_is_bad_is_refused_before_anything_changes():
    model, _ = learned()
    good = {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5, 4: 0.5}
    for x, y, w, words in [
        (good, math.nan, 1.0, "y = nan"),
        (good, 1.0, 0.0, "w = 0.0"),
        (good | {2: math.inf}, 1.0, 1.0, r"x\[2\] = inf"),
        (good | {2: "warm"}, 1.0, 1.0, r"x\[2\] = 'warm'"),
        (good | {1.5: 1.0}, 1.0, 1.0, "1.5 is the name of a feature"),
        (good | {("a", 1.5): 1.0}, 1.0, 1.0, "'a', 1.5"),
        (good | {("a", 1): 1.0, "('a', 1)": 1.0}, 1.0, 1.0, "rename one of the two"),
    ]:
        with unchanged(model.tree), pytest.raises(ValueError, match=words):
            model.learn_one(x, y, w)
    frame = pd.DataFrame([good] * 3)
    with unchanged(model.tree), pytest.raises(ValueError, match="y = nan at position 1"):
        model.learn_many(frame, pd.Series([1.0, math.nan, 2.0]))


# -- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_a_clone_is_empty_and_has_the_same_parameters(parameters):
    model = HoeffdingTreeRegressor(**parameters)
    for x, y in datasets.TrumpApproval().take(50):
        model.learn_one(x, y)
    clone = model.clone()
    assert clone.tree.features == []
    assert clone.predict_one(x) == 0.0
    assert repr(clone) == repr(model)
    assert repr(clone.tree.parameters) == repr(model.tree.parameters)
    assert repr(model.tree.parameters) == repr(
        sapwood.HoeffdingTreeRegressor(**parameters).parameters
    )
    other = model.clone({"grace_period": 77, "categorical": ("a", 3)})
    assert other.tree.parameters["grace_period"] == 77
    assert other.clone().tree.parameters["categorical"] == (3, "a")


def test_copies_go_on_as_the_model_would():
    model, rest = learned()
    twins = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    twins.append(model.clone(include_attributes=True))
    for x, y in rest:
        expected = model.predict_one(x)
        assert [twin.predict_one(x) for twin in twins] == [expected] * 3
        for each in (model, *twins):
            each.learn_one(x, y)
    assert {twin.tree.to_bytes() for twin in twins} == {model.tree.to_bytes()}


def test_memory_is_what_the_tree_occupies():
    model, _ = learned(5000)
    assert 0 < model._raw_memory_usage - model.tree.nbytes < 2000
    assert model._memory_usage.endswith("KiB")


# -- with the rest of river -----------------------------------------------------------------------


def test_a_pipeline_learns_and_predicts_as_its_parts():
    x, y = friedman(800, features=6)
    model = preprocessing.StandardScaler() | HoeffdingTreeRegressor(**QUICK)
    scaler, tree = preprocessing.StandardScaler(), sapwood.HoeffdingTreeRegressor(**QUICK)
    assert isinstance(model, base.Regressor)
    for row, target in zip(dicts(x), y.tolist(), strict=True):
        assert model.predict_one(row) == tree.predict_one(scaler.transform_one(row))
        model.learn_one(row, target)
        scaler.learn_one(row)
        tree.learn_one(scaler.transform_one(row), target)
    assert "Prediction: " in model.debug_one(row)
    assert model.clone().predict_one(row) == 0.0


def test_progressive_validation_is_the_loop():
    metric = metrics.MAE() + metrics.R2()
    evaluate.progressive_val_score(datasets.TrumpApproval(), HoeffdingTreeRegressor(), metric)
    tree, predictions, targets = sapwood.HoeffdingTreeRegressor(), [], []
    for x, y in datasets.TrumpApproval():
        predictions.append(tree.predict_one(x))
        targets.append(y)
        tree.learn_one(x, y)
    errors = np.abs(np.subtract(targets, predictions))
    mae, score = metric.get()
    assert mae == pytest.approx(errors.mean())
    assert score == pytest.approx(r2(np.array(targets), np.array(predictions)))


def test_an_ensemble_of_rivers_takes_it():
    x, y = friedman(1500)
    model = ensemble.BaggingRegressor(HoeffdingTreeRegressor(), n_models=3, seed=1)
    predictions = []
    for row, target in zip(dicts(x), y.tolist(), strict=True):
        predictions.append(model.predict_one(row))
        model.learn_one(row, target)
    assert len({member.tree.to_bytes() for member in model}) == 3
    assert r2(y[500:], np.array(predictions[500:])) > 0.75


# -- frames and names -----------------------------------------------------------------------------


def frames(columns):
    return {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "pyarrow": pa.table(columns),
    }


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_three_libraries(library):
    x, y = friedman(400)
    columns = {"a": x[:, 0], "b": x[:, 1], "c": np.where(x[:, 2] < 0.5, "low", "high").tolist()}
    y = y + 9 * (x[:, 2] < 0.5)
    frame = frames(columns)[library]
    targets = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}[library](y)
    model, tree = HoeffdingTreeRegressor(**QUICK), sapwood.HoeffdingTreeRegressor(**QUICK)
    model.learn_many(frame, targets)
    tree.learn_many(columns, y)
    assert model.tree.to_bytes() == tree.to_bytes()
    predictions = model.predict_many(frame)
    kinds = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.ChunkedArray}
    assert isinstance(predictions, kinds[library])
    np.testing.assert_array_equal(np.asarray(predictions), tree.predict_many(columns))


def test_a_series_has_the_index_of_its_frame():
    model, rest = learned()
    frame = pd.DataFrame([x for x, _ in rest], index=[f"row {i}" for i in range(len(rest))])
    predictions = model.predict_many(frame)
    assert predictions.index.equals(frame.index)
    assert predictions.tolist() == [model.predict_one(x) for x, _ in rest]
    # Rows and targets belong together by position: an index is of no effect.
    shuffled, plain = model.clone(), model.clone()
    shuffled.learn_many(frame, pd.Series([y for _, y in rest], index=range(len(rest))[::-1]))
    plain.learn_many(frame.reset_index(drop=True), pd.Series([y for _, y in rest]))
    assert shuffled.tree.to_bytes() == plain.tree.to_bytes()


def test_a_pipeline_takes_batches():
    x, y = friedman(300)
    for frame in frames({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}).values():
        model = preprocessing.StandardScaler() | HoeffdingTreeRegressor()
        model.learn_many(frame, pd.Series(y))
        scaler = preprocessing.StandardScaler()
        scaler.learn_many(frame)
        tree = sapwood.HoeffdingTreeRegressor()
        tree.learn_many(scaler.transform_many(frame), y)
        expected = tree.predict_many(scaler.transform_many(frame))
        np.testing.assert_array_equal(np.asarray(model.predict_many(frame)), expected)


def test_n_grams_are_names():
    texts = pd.Series(["a good day", "a bad day", "no good at all", "good day"] * 20)
    y = pd.Series([1.0, -1.0, -1.0, 2.0] * 20)
    model = BagOfWords(ngram_range=(1, 2)) | HoeffdingTreeRegressor()
    model.learn_many(texts, y)
    assert {"good", "('good', 'day')"} <= set(model["HoeffdingTreeRegressor"].tree.features)
    predictions = model.predict_many(texts)
    assert predictions[3] > predictions[1] + 1
    frame = model["BagOfWords"].transform_many(texts)
    single = HoeffdingTreeRegressor()
    for row, target in zip(frame.to_dict("records"), y, strict=True):
        single.learn_one(row, target)
    assert beside_notes(single.tree) == beside_notes(model["HoeffdingTreeRegressor"].tree)
    assert single.predict_one(frame.to_dict("records")[3]) == predictions[3]


def test_names_that_are_unknown_are_ignored_in_predictions():
    model, rest = learned()
    x, _ = rest[0]
    odd = {("a", 1.5): 1.0, None: 2.0, ("a", "b"): 3.0, "new": "red", frozenset(): 4.0}
    assert model.predict_one(x | odd) == model.predict_one(x)
