"""Several targets on the command line: the numbers of Python, or a line that says no."""

import math
from pathlib import Path

import numpy as np
import pytest

import sapwood
from cli_cases import invoke, read_csv
from sapwood.evaluate import prequential

ROWS = 900


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(5)
    temp, wind = draw.normal(15, 8, ROWS).round(2), draw.random(ROWS).round(3)
    city = [("Oslo", "Bonn", "Rome")[place % 3] for place in range(ROWS)]
    heating = (np.maximum(0, 18 - temp) + draw.normal(0, 0.2, ROWS)).round(3)
    power = (100 * wind**3 + draw.normal(0, 1, ROWS)).round(3)
    heating[::9], power[::7] = np.nan, np.nan
    return {"temp": temp, "wind": wind, "city": city}, {"heating": heating, "power": power}


@pytest.fixture
def file(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    X, Y = data
    columns = {**X, **Y}
    lines = [",".join(columns)]
    for row in zip(*columns.values(), strict=True):
        lines.append(",".join("" if str(value) == "nan" else str(value) for value in row))
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([*lines, ""]))
    return path


def tree():
    return sapwood.HoeffdingTreeRegressor(max_bytes=12_000_000)


TARGETS = ("-t", "heating", "--target", "power")


def test_evaluate_tells_what_python_tells(file, data):
    model = tree()
    expected = prequential(model, *data)
    found = invoke("evaluate", file, *TARGETS, "--json", "--save", "tree.sap")
    told = found.json()
    assert found.code == 0
    for name, own in expected.targets.items():
        total = told["targets"][name]["total"]
        assert total == {"mae": own.total.mae, "rmse": own.total.rmse, "r2": own.total.r2}
    assert told["total"]["r2"] == expected.total.r2
    assert told["rows"]["without_target"] == expected.rows_without_target > 0
    assert sapwood.load("tree.sap").predict_one({"temp": 3.0}) == model.predict_one({"temp": 3.0})
    shown = invoke("evaluate", file, *TARGETS, "--report", "page.html", "--curve", "curve.csv")
    assert f"mean R² {expected.total.r2:.4f} over 2 targets" in shown.stdout
    for name, own in expected.targets.items():
        (line,) = [each for each in shown.stdout.splitlines() if each.startswith(f"│{name}")]
        assert f"{own.total.r2:.4f}" in line
    curve = read_csv("curve.csv")
    for name, own in expected.targets.items():
        rows = [(int(each["row"]), float(each["mae"])) for each in curve if each["target"] == name]
        assert rows == list(zip(own.curve["row"].tolist(), own.curve["mae"].tolist(), strict=True))


def test_predictions_have_a_column_for_each_target(file, data):
    said = tree()
    assert invoke("evaluate", file, *TARGETS, "--predictions", "said.csv").code == 0
    rows = read_csv("said.csv")
    assert list(rows[0]) == [
        "line",
        *("target_heating", "prediction_heating", "target_power", "prediction_power"),
    ]
    assert len(rows) == ROWS
    X, Y = data
    for place, row in enumerate(rows[:50]):
        x = {name: column[place] for name, column in X.items()}
        y = {name: column[place] for name, column in Y.items()}
        expected = said.predict_one(x) if place and said.targets else dict.fromkeys(Y, 0.0)
        for name in Y:
            assert float(row[f"prediction_{name}"]) == expected[name]
            assert (row[f"target_{name}"] == "") == math.isnan(y[name])
        if not all(map(math.isnan, y.values())):
            said.learn_one(x, y)


def test_train_then_predict(file, data):
    model = tree()
    prequential(model, *data)
    assert invoke("train", file, *TARGETS, "--save", "tree.sap").code == 0
    assert sapwood.load("tree.sap").targets == ["heating", "power"]
    found = invoke("predict", "tree.sap", file, "-o", "said.csv", "--id", "city")
    assert found.code == 0
    rows = read_csv("said.csv")
    expected = model.predict_many(data[0])
    assert list(rows[0]) == ["city", "prediction_heating", "prediction_power"]
    for name in ("heating", "power"):
        assert [float(row[f"prediction_{name}"]) for row in rows] == expected[name].tolist()
    assert "heating" in invoke("inspect", "tree.sap").stdout
    more = invoke(
        "train", file, "-m", "tree.sap", "-t", "power", "-t", "heating", "--save", "2.sap"
    )
    assert more.code == 0
    assert sapwood.load("2.sap").targets == ["heating", "power"]


def test_compare_tells_the_mean_and_each_target(file, data):
    models = ["tree", "tree:leaf=mean", "adaptive"]
    found = invoke("compare", file, *TARGETS, "-m", ",".join(models), "--json").json()
    by_model = {each["model"]: each for each in found["results"]}
    errors = {}
    for name in models:
        alone = invoke(
            "evaluate",
            file,
            *TARGETS,
            "-m",
            name.partition(":")[0],
            "--json",
            *(["-s", "leaf=mean"] if ":" in name else []),
        ).json()
        assert by_model[name]["total"] == alone["total"]
        assert by_model[name]["targets"]["power"]["total"] == alone["targets"]["power"]["total"]
        errors[name] = alone["total"]["rmse"]
    assert min(found["ranks"], key=found["ranks"].get) == min(errors, key=errors.get)
    shown = invoke("compare", file, *TARGETS, "--report", "page.html")
    assert shown.code == 0
    assert "RMSE over all rows: means over targets, in deviations, and each target" in (
        " ".join(shown.stdout.split())
    )
    assert "tree:leaf=mean" in "".join(shown.stdout.split())
    (line,) = [each for each in shown.stdout.splitlines() if "  power" in each]
    own = by_model["tree"]["targets"]["power"]["total"]["rmse"]
    assert f"{own:.4g}" in line
    assert ">power<" in Path("page.html").read_text()


def test_late_labels(file, data):
    model = tree()
    expected = prequential(model, *data, delay=24)
    found = invoke("evaluate", file, *TARGETS, "--delay", 24, "--json", "--save", "tree.sap")
    assert found.code == 0, found.stderr
    for name, own in expected.targets.items():
        assert found.json()["targets"][name]["total"]["rmse"] == own.total.rmse
    saved = sapwood.load("tree.sap")
    model.schema = saved.schema  # models made in Python have none
    assert saved.to_bytes() == model.to_bytes()


@pytest.fixture
def labelled(file, data):
    """The rows with ids and without targets, and a file of labels in another order."""
    X, Y = data
    lines = [",".join(["id", *X])]
    lines += [
        ",".join([f"r{place}", *map(str, row)])
        for place, row in enumerate(zip(*X.values(), strict=True))
    ]
    file.with_name("x.csv").write_text("\n".join([*lines, ""]))
    told = ["id,power,heating"]
    for place in reversed(range(ROWS)):
        values = [Y[name][place] for name in ("power", "heating")]
        told.append(",".join([f"r{place}", *("" if math.isnan(v) else str(v) for v in values)]))
    file.with_name("y.csv").write_text("\n".join([*told, ""]))
    return file.parent


def test_labels_from_another_file(labelled, data):
    expected = prequential(tree(), *data)
    found = invoke(
        "evaluate",
        "x.csv",
        *TARGETS,
        "--id",
        "id",
        "--labels",
        "y.csv",
        "--json",
        "--save",
        "t.sap",
    )
    assert found.code == 0, found.stderr
    for name, own in expected.targets.items():
        assert found.json()["targets"][name]["total"]["rmse"] == own.total.rmse
    assert found.json()["rows"]["without_target"] == expected.rows_without_target > 0
    Path("z.csv").write_text("id,temp,heating\nr1,3.5,\n")
    refused = invoke("evaluate", "z.csv", *TARGETS, "--id", "id", "--labels", "y.csv")
    assert (refused.code, refused.stderr.count("\n")) == (2, 1)
    assert "it has a column heating of its own: leave that out by --drop" in refused.stderr


def test_labels_that_come_later_under_the_same_id(labelled, data):
    X, Y = data
    lines = [",".join(["id", *X, *Y])]
    rows = [list(map(str, row)) for row in zip(*X.values(), strict=True)]
    waiting = []
    for place, row in enumerate(rows):
        values = ["" if math.isnan(Y[name][place]) else str(Y[name][place]) for name in Y]
        lines.append(",".join([f"r{place}", *row, "", ""]))
        waiting.append(",".join([f"r{place}", *row, *values]))
        if len(waiting) == 20:
            lines += [each for each in waiting if not each.endswith(",,")]
            waiting = []
    lines += [each for each in waiting if not each.endswith(",,")]
    Path("both.csv").write_text("\n".join([*lines, ""]))
    found = invoke("evaluate", "both.csv", *TARGETS, "--id", "id", "--json", "--save", "t.sap")
    assert found.code == 0, found.stderr
    model, said = tree(), []
    for start in range(0, ROWS, 20):
        part = range(start, start + 20)
        told = [model.predict_one({name: X[name][place] for name in X}) for place in part]
        said += [list(each.values()) if model.targets else [0.0, 0.0] for each in told]
        for place in part:
            y = {name: float(Y[name][place]) for name in Y}
            if not all(map(math.isnan, y.values())):
                model.learn_one({name: X[name][place] for name in X}, y)
    told = found.json()
    for place, name in enumerate(Y):
        errors = np.array(said)[:, place] - Y[name]
        rmse = math.sqrt(np.nanmean(errors**2))
        assert told["targets"][name]["total"]["rmse"] == pytest.approx(rmse, rel=1e-12)
    # The evaluation kept the waiting predictions by ids, so that the files differ in these alone.
    saved = sapwood.load("t.sap")
    assert saved.n_leaves == model.n_leaves
    for name, own in saved.predict_many(X).items():
        assert own.tolist() == model.predict_many(X)[name].tolist()


@pytest.mark.parametrize("kind", ["forest", "adaptive"])
def test_forests_and_adaptive_trees_of_several_targets(file, data, kind):
    model = {
        "forest": lambda: sapwood.ForestRegressor(members=3),
        "adaptive": sapwood.AdaptiveTreeRegressor,
    }[kind]()
    expected = prequential(model, *data)
    options = [
        "-m",
        kind,
        *(["-s", "members=3"] if kind == "forest" else []),
        "-s",
        "max_bytes=none",
    ]
    found = invoke("evaluate", file, *TARGETS, *options, "--json", "--save", "m.sap")
    assert found.code == 0, found.stderr
    for name, own in expected.targets.items():
        assert found.json()["targets"][name]["total"]["rmse"] == own.total.rmse
    assert invoke("predict", "m.sap", file, "-o", "said.csv").code == 0
    said = model.predict_many(data[0])
    for name in ("heating", "power"):
        assert [float(row[f"prediction_{name}"]) for row in read_csv("said.csv")] == (
            said[name].tolist()
        )


def test_a_checkpoint_goes_on(file):
    whole = invoke("evaluate", file, *TARGETS, "--predictions", "whole.csv", "--json").json()
    lines = file.read_text().splitlines()
    part = file.with_name("part.csv")
    for count in (400, len(lines)):
        part.write_text("\n".join([*lines[:count], ""]))
        found = invoke(
            "evaluate", part, *TARGETS, "--predictions", "said.csv", "--checkpoint", "at", "--json"
        )
        assert found.code == 0
    told = found.json()
    assert told["targets"] == whole["targets"]
    assert file.with_name("said.csv").read_text() == file.with_name("whole.csv").read_text()


REFUSED = [
    (["evaluate", "-m", "mean"], "this RunningMean learns one target, and there are 2"),
    (["evaluate", "-t", "power"], "the target 'power' is named twice"),
    (["evaluate", "-t", "nope"], "has no column 'nope' to predict"),
    (["evaluate", "-t", "city"], "column 'city' holds categories, and a target is a number"),
    (["evaluate", "--drop", "power"], "column 'power' is read as left out"),
    (["compare", "-m", "tree,last"], "this LastValue learns one target, and there are 2"),
]


@pytest.mark.parametrize(("typed", "words"), REFUSED, ids=[" ".join(each) for each, _ in REFUSED])
def test_what_is_not_there_is_refused_in_one_line(file, typed, words):
    command, *rest = typed
    found = invoke(command, file, *TARGETS, *rest)
    assert found.code == 2
    assert found.stderr.count("\n") == 1
    assert words in found.stderr


@pytest.mark.parametrize("model", ["tree", "forest"])
def test_workers_learn_several_targets(file, model):
    more = ("--save", "w.sap", "--workers", "2", "--engine", "threads", "-m", model)
    found = invoke("train", file, *TARGETS, *more)
    assert found.code == 0, found.stderr
    assert "rows: 900 read, 885 learned" in found.stderr
    assert "15 had no target: not learned" in found.stderr
    trained = sapwood.load("w.sap")
    assert trained.targets == list(trained.schema.targets) == ["heating", "power"]
    assert trained.features == ["temp", "wind", "city"]


def test_models_and_streams_of_other_targets_are_refused(file):
    assert invoke("train", file, *TARGETS, "--save", "tree.sap").code == 0
    assert invoke("train", file, "-t", "heating", "--save", "one.sap").code == 0
    for typed, words in (
        (["train", file, "-m", "tree.sap", "-t", "heating"], "tree.sap predicts heating, power"),
        (
            ["train", file, "-m", "tree.sap", "-t", "heating", "-t", "wind"],
            "tree.sap predicts heating, power",
        ),
        (["train", file, "-m", "one.sap", *TARGETS], "one.sap predicts heating"),
        (["train", "friedman", *TARGETS], "the target of friedman is y; name one target"),
    ):
        found = invoke(*typed, "--save", "other.sap")
        assert (found.code, found.stderr.count("\n")) == (2, 1), found.stderr
        assert words in found.stderr
    for option in (["-t", "heating"], ["--interval", "0.9"], ["--to", "kafka://localhost:1/x"]):
        found = invoke("predict", "tree.sap", file, *option)
        assert (found.code, found.stderr.count("\n")) == (2, 1), found.stderr
