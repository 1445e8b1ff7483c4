"""Bounds from the command line: evaluated, trained, predicted, resumed, and in the report."""

import csv
import json
import re

import numpy as np
import pytest

import sapwood
from cli_cases import assert_fails, invoke
from sapwood import IntervalRegressor, streams
from sapwood.evaluate import prequential
from sapwood.report import render

STREAM = "friedman:rows=3000"
BOTH = ("--interval", "0.5", "--interval", "0.9")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def right():
    """What a loop in Python finds."""
    chunk = next(streams.friedman(rows=3000).chunks())
    model = IntervalRegressor(tree(), (0.5, 0.9))
    return chunk, *model.predict_learn_intervals(chunk.columns, chunk.y)


def tree():
    return sapwood.HoeffdingTreeRegressor(max_bytes=12_000_000)


def test_evaluate_tells_bounds_in_table_json_curve_and_predictions(folder):
    options = (*BOTH, "--predictions", "p.csv", "--curve", "c.csv")
    assert "coverage at level 0.9" in invoke("evaluate", STREAM, *options).stdout
    found = invoke("evaluate", STREAM, *BOTH, "--json").json()
    chunk, predictions, bounds = right()
    inside = (chunk.y >= bounds[:, 1, 0]) & (chunk.y <= bounds[:, 1, 1])
    assert found["intervals"]["0.9"]["total"]["coverage"] == pytest.approx(inside[20:].mean())
    widths = (bounds[20:, 0, 1] - bounds[20:, 0, 0]).mean()
    assert found["intervals"]["0.5"]["total"]["width"] == pytest.approx(widths)
    rows = read("p.csv")
    assert list(rows[0]) == [
        *("row", "target", "prediction"),
        *("lower_0.5", "upper_0.5", "lower_0.9", "upper_0.9"),
    ]
    assert [row["upper_0.9"] for row in rows[:20]] == [""] * 20
    assert [float(row["upper_0.9"]) for row in rows[20:]] == bounds[20:, 1, 1].tolist()
    assert [float(row["lower_0.5"]) for row in rows[20:]] == bounds[20:, 0, 0].tolist()
    assert [float(row["prediction"]) for row in rows] == predictions.tolist()
    curve = read("c.csv")
    assert float(curve[-1]["coverage_0.9"]) == pytest.approx(inside[20:].mean())
    assert "score_0.5" in curve[0]


def test_without_levels_all_is_as_before(folder):
    invoke("evaluate", STREAM, "--predictions", "p.csv", "--curve", "c.csv")
    assert list(read("p.csv")[0]) == ["row", "target", "prediction"]
    assert not [name for name in read("c.csv")[0] if "coverage" in name]
    assert "intervals" not in invoke("evaluate", STREAM, "--json").json()


def test_a_model_with_bounds_is_trained_goes_on_and_predicts(folder):
    assert invoke("train", STREAM, *BOTH, "--save", "m").code == 0
    model = sapwood.load("m")
    assert isinstance(model, IntervalRegressor)
    assert model.levels == (0.5, 0.9)
    ended = invoke("predict", "m", "friedman:rows=50,seed=9", "--interval", "0.9")
    lines = list(csv.DictReader(ended.stdout.splitlines()))
    chunk = next(streams.friedman(rows=50, seed=9).chunks())
    predictions, bounds = model.predict_intervals_many(chunk.columns)
    assert [float(line["prediction"]) for line in lines] == predictions.tolist()
    assert [float(line["lower"]) for line in lines] == bounds[:, 1, 0].tolist()
    assert [float(line["upper"]) for line in lines] == bounds[:, 1, 1].tolist()
    plain = invoke("predict", "m", "friedman:rows=50,seed=9").stdout.splitlines()
    assert plain[1:] == [repr(value) for value in predictions.tolist()]
    ended = invoke("evaluate", "friedman:rows=500,seed=9", "--model", "m", "--json")
    assert list(ended.json()["intervals"]) == ["0.5", "0.9"]
    assert "prediction intervals: 50 %, 90 %" in invoke("inspect", "m").stdout
    assert json.loads(invoke("inspect", "m", "--json").stdout)["levels"] == [0.5, 0.9]


def test_a_run_with_bounds_is_resumed_to_the_same_bytes(folder):
    for name in ("a", "b"):
        options = (*BOTH, "--predictions", f"{name}.csv", "--save", name)
        invoke("evaluate", STREAM, *options)
    first = ("evaluate", STREAM, *BOTH, "--predictions", "c.csv", "--save", "c")
    invoke(*first, "--checkpoint", "run", "--every", "1000")
    again = invoke(*first, "--checkpoint", "run", "--every", "1000")
    assert "resuming after 3,000 rows" in again.stderr
    contents = [(folder / name).read_bytes() for name in ("a", "b", "c")]
    assert contents[0] == contents[1] == contents[2]
    assert (folder / "a.csv").read_bytes() == (folder / "c.csv").read_bytes()
    other = ("evaluate", STREAM, "--interval", "0.5", "--predictions", "c.csv", "--save", "c")
    assert_fails(invoke(*other, "--checkpoint", "run"), "belongs to another run, whose interval")


def test_a_model_with_lags_can_have_bounds(folder):
    options = ("--lags", "1", "--interval", "0.9")
    assert invoke("train", STREAM, *options, "--save", "m").code == 0
    lines = invoke("predict", "m", "friedman:rows=5", "--interval", "0.9").stdout.splitlines()
    assert lines[0] == "prediction,lower,upper"
    assert len(lines) == 6
    assert "prediction intervals: 90 %" in invoke("inspect", "m").stdout


def test_other_models_can_have_bounds_but_not_all_be_saved(folder):
    ended = invoke("evaluate", STREAM, "--model", "mean", "--interval", "0.9", "--json")
    assert abs(ended.json()["intervals"]["0.9"]["total"]["coverage"] - 0.9) < 0.01
    ended = invoke("evaluate", STREAM, "--model", "mean", "--interval", "0.9", "--save", "m")
    assert_fails(ended, "a RunningMean cannot be saved")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("evaluate", STREAM, "--interval", "1.5"), "levels = 1.5"),
        (("evaluate", STREAM, "--interval", "0"), "levels = 0.0"),
        (
            ("predict", "plain", STREAM, "--interval", "0.9"),
            "the model has no prediction intervals",
        ),
        (
            ("predict", "bounded", STREAM, "--interval", "0.8"),
            "the model has prediction intervals of 0.9",
        ),
        (
            ("evaluate", STREAM, "--model", "bounded", "--interval", "0.8"),
            "has prediction intervals of 0.9",
        ),
    ],
)
def test_levels_that_cannot_be_are_told(folder, arguments, words):
    model = tree()
    model.save("plain")
    IntervalRegressor(model, (0.9,)).save("bounded")
    assert_fails(invoke(*arguments), words)


@pytest.mark.usefixtures("unsaved_charts")
def test_the_report_has_a_part_about_prediction_intervals():
    rng = np.random.default_rng(3)
    x = {"size": rng.random(4000), "city": rng.choice(["Oslo", "<Rome>"], 4000).astype(object)}
    spread = np.where(x["city"] == "Oslo", 0.2, 4.0)
    side = np.where(x["city"] == "Oslo", 50.0, -50.0)
    y = side * (x["size"] > 0.5) + rng.normal(size=4000) * spread
    model = IntervalRegressor(tree(), (0.5, 0.9))
    found = prequential(model, x, y)
    page = render(found, model)
    part = re.search(r'<section id="intervals".*?</section>', page, re.DOTALL)[0]
    assert part.count("<figure") == 3
    assert "90 % prediction intervals over the whole stream" in part
    assert "The last 150 rows" in part
    assert f"{found.intervals.levels[0.9].total.coverage:.4f}" in part
    assert "city not in {&lt;Rome&gt;}, size ≥ 0.5078" in part
    assert "city in {&lt;Rome&gt;}, 0.4922 ≤ size &lt; 0.5078" in part
    assert page == render(found, model)
    assert 'id="intervals"' not in render(prequential(tree(), x, y), tree())


def test_a_model_with_bounds_predicts_rows_of_files(folder):
    lines = [f"{place % 7},{place % 3},{place % 7 + 0.5}" for place in range(500)]
    with open("rows.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(["a,zone,y", *lines]))
    training = ("train", "rows.csv", "-t", "y", "--interval", "0.9", "--categorical", "zone")
    assert invoke(*training, "--save", "m").code == 0
    ended = invoke("predict", "m", "rows.csv", "--interval", "0.9", "-o", "said.csv")
    assert ended.code == 0, ended.stderr
    rows = read("said.csv")
    model = sapwood.load("m")
    _, bounds = model.predict_intervals_many({"a": [0.0, 1.0], "zone": [0, 1]})
    assert [float(rows[place]["lower"]) for place in (0, 1)] == bounds[:, 0, 0].tolist()
