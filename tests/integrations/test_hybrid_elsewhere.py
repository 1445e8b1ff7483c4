"""Hybrids in river, in scikit-learn, on the command line and in reports."""

import json
import re

import numpy as np
import pytest

import sapwood
from cli_cases import invoke
from hybrid_cases import small, stream
from sapwood.evaluate import prequential
from sapwood.report import render

lightgbm = pytest.importorskip("lightgbm")

MODEL = "hybrid:rounds=5"


@pytest.fixture
def csv(tmp_path):
    X, y = stream(1200, drift=800)
    path = tmp_path / "rows.csv"
    lines = [
        "a,b,c,d,y",
        *(",".join(map(repr, [*x, t])) for x, t in zip(X.tolist(), y.tolist(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# -- other libraries ------------------------------------------------------------------------------


def test_checks_of_river_pass():
    checks = pytest.importorskip("river.checks")
    from sapwood.river import ForestRegressor, HybridRegressor

    model = HybridRegressor(online=ForestRegressor(members=3, threads=1), min_rows=50)
    for check in checks.yield_checks(model):
        check(model.clone())


def test_in_river_it_predicts_as_by_itself():
    pytest.importorskip("river")
    from sapwood.river import ForestRegressor, HybridRegressor

    X, y = stream(400)
    own, adapter = (
        small(),
        HybridRegressor(
            ForestRegressor(members=3, threads=1), sapwood.hybrid.LightGBM(rounds=10), min_rows=100
        ),
    )
    for x, label in zip((dict(enumerate(row)) for row in X.tolist()), y.tolist(), strict=True):
        assert adapter.predict_one(x) == own.predict_one(x)
        adapter.learn_one(x, label)
        own.learn_one(x, label)
    assert "weights" in adapter.debug_one(x)


def test_in_scikit_learn_the_batch_learner_is_fitted_on_all_rows():
    base = pytest.importorskip("sklearn.base")
    from sapwood.sklearn import ForestRegressor, HybridRegressor

    X, y = stream(1000)
    model = HybridRegressor(
        ForestRegressor(members=3, threads=1), sapwood.hybrid.LightGBM(rounds=20), min_rows=100
    )
    model = base.clone(model).fit(X[:800], y[:800])
    assert model.model_.refits[-1][:3] == (800, 800, 800)
    assert model.score(X[800:], y[800:]) > 0.5
    assert model.get_params()["online__members"] == 3
    fits = len(model.model_.refits)
    model.partial_fit(X[800:], y[800:])
    assert len(model.model_.refits) >= fits


# -- the command line -----------------------------------------------------------------------------


def test_it_is_evaluated_trained_and_used(csv, tmp_path):
    report, saved = tmp_path / "report.html", tmp_path / "model.sapwood"
    found = invoke(
        "evaluate",
        csv,
        "-t",
        "y",
        "-m",
        "hybrid",
        "--batch",
        "lightgbm",
        "-s",
        "members=3",
        "-s",
        "min_rows=100",
        "--interval",
        "0.9",
        "--report",
        report,
        "--json",
    )
    assert json.loads(found.stdout)["rows"]["learned"] == 1200
    page = report.read_text(encoding="utf-8")
    assert "Online and batch model" in page
    assert "hybrid-weights" in page
    assert re.search(r"The latest \d+ of \d+ refits", page)
    invoke("train", csv, "-t", "y", "-m", "hybrid:online=tree,refit=300", "--save", saved)
    model = sapwood.load(saved)
    assert type(model.model) is sapwood.HoeffdingTreeRegressor
    assert [refit.row for refit in model.refits] == [300, 600, 900]
    shown = invoke("inspect", saved).stdout
    assert "hybrid of a HoeffdingTreeRegressor and a batch model: lightgbm" in shown
    assert re.search(r"weights: online \d+ %, corrector \d+ %, batch \d+ %", shown)
    assert "refits: 3, the last after 900 rows, on 900 of them, used from row 922 on" in shown
    own = json.loads(invoke("inspect", saved, "--json").stdout)["hybrid"]
    assert (own["batch"], own["refits"], own["weights"]) == ("lightgbm", 3, model.weights)
    out = invoke("predict", saved, csv)
    assert len(out.stdout.splitlines()) >= 1200


def test_a_lightgbm_file_is_corrected(csv, tmp_path):
    X, y = stream(1000, seed=7)
    own = {"verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(X, y, params=own, feature_name=["a", "b", "c", "d"])
    path = tmp_path / "booster.txt"
    lightgbm.train(own, data, 20).save_model(path)
    saved = tmp_path / "model.sapwood"
    invoke("train", csv, "-t", "y", "-m", "hybrid", "--batch", path, "--save", saved)
    model = sapwood.load(saved)
    assert model.refits == []
    assert model.staleness["drift_events"]
    shown = invoke("inspect", saved).stdout
    assert "fitted" in shown
    assert "refits: never" in shown
    assert "drift events" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "tree", "--batch", "lightgbm"], "has no batch learner; use -m hybrid"),
        (["-m", "hybrid", "--batch", "lightbgm"], "lightgbm, hist_gradient_boosting"),
        (["-m", "hybrid:online=bush"], "online=bush"),
        (["-m", "hybrid", "-s", "windows=3"], "no parameter windows"),
        (["-m", "hybrid", "-s", "window=3"], "window"),
    ],
)
def test_what_is_wrong_is_said(csv, options, message):
    found = invoke("evaluate", csv, "-t", "y", *options)
    assert found.code == 2
    assert message in found.stderr


def test_a_run_is_resumed_from_its_checkpoint(csv, tmp_path):
    checkpoint, lines = tmp_path / "run.checkpoint", csv.read_text(encoding="utf-8").splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join(lines[:551]) + "\n", encoding="utf-8")
    options = ["-t", "y", "-m", "hybrid", "-s", "members=3", "-s", "min_rows=100", "--json"]
    whole = json.loads(invoke("evaluate", csv, *options).stdout)
    invoke("evaluate", part, *options, "--checkpoint", checkpoint)
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = json.loads(invoke("evaluate", part, *options, "--checkpoint", checkpoint).stdout)
    assert found["total"]["rmse"] == whole["total"]["rmse"]


# -- the report -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("unsaved_charts")
def test_a_report_shows_weights_and_fits():
    X, y = stream(900, drift=500)
    model = small()
    page = render(prequential(model, (X, y)), model)
    assert "Online and batch model" in page
    tree = sapwood.HoeffdingTreeRegressor()
    assert "Online and batch model" not in render(prequential(tree, (X, y)), tree)


@pytest.mark.usefixtures("unsaved_charts")
def test_a_report_of_a_model_that_was_not_refitted():
    X, y = stream(50)
    model = small()
    page = render(prequential(model, (X, y)), model)
    assert "The batch model was not refitted." in page
    assert np.isnan(model.staleness["rmse"])
