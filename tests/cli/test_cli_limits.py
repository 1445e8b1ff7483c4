"""Predictions and prediction intervals that are held within a range: --min and --max."""

import csv

import numpy as np
import pytest

import sapwood
from cli_cases import assert_fails, invoke
from sapwood import IntervalRegressor, streams
from sapwood.evaluate import prequential

STREAM = "friedman:rows=1500"
RANGE = ("--min", "12", "--max", "16")
BOUNDS = ("lower", "upper")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(rows, name, skipped=20):
    return np.array([float(row[name]) for row in rows[skipped:]])


@pytest.mark.parametrize("late", [(), ("--delay", "7")])
def test_evaluate_holds_what_it_scores_and_writes(late):
    options = (STREAM, "--interval", "0.9", *late, "--json", "--predictions")
    invoke("evaluate", *options, "plain.csv")
    found = invoke("evaluate", *options, "held.csv", *RANGE).json()
    plain, held = read("plain.csv"), read("held.csv")
    skipped = 40  # before enough is known there are no intervals
    for name in ("prediction", *BOUNDS):
        expected = np.clip(numbers(plain, name, skipped), 12, 16)
        assert numbers(held, name, skipped).tolist() == expected.tolist()
        assert (numbers(plain, name, skipped) != expected).any()
    errors = np.abs(numbers(held, "target", 0) - numbers(held, "prediction", 0))
    assert found["total"]["mae"] == pytest.approx(errors.mean())


def test_predict_holds_what_it_writes():
    invoke("train", STREAM, "--interval", "0.9", "--save", "m.sapwood")
    chunk = next(streams.friedman(rows=200, seed=3).chunks())
    names = [*chunk.columns]
    with open("new.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*(chunk.columns[name].tolist() for name in names), strict=True))
    options = ("predict", "m.sapwood", "new.csv", "--interval", "0.9", "-o")
    invoke(*options, "plain.csv")
    invoke(*options, "held.csv", "--min", "12")
    for name in ("prediction", *BOUNDS):
        expected = np.maximum(numbers(read("plain.csv"), name, 0), 12)
        assert numbers(read("held.csv"), name, 0).tolist() == expected.tolist()


def test_in_python_the_model_learns_as_without():
    rows = streams.friedman(rows=1000)
    models = [IntervalRegressor(sapwood.HoeffdingTreeRegressor()) for _ in range(2)]
    prequential(models[0], rows)
    found = prequential(models[1], rows, minimum=12, keep_predictions=True)
    assert found.predictions["prediction"].min() == 12
    assert models[0].to_bytes() == models[1].to_bytes()
    with pytest.raises(ValueError, match=r"minimum = 5: .* above maximum = 3"):
        prequential(models[0], rows, minimum=5, maximum=3)


def test_several_targets_are_held_as_well():
    x = np.linspace(0, 1, 300)
    model = sapwood.HoeffdingTreeRegressor()
    plain = prequential(model.copy(), {"x": x}, {"a": x - 2, "b": x + 2})
    found = prequential(model, {"x": x}, {"a": x - 2, "b": x + 2}, minimum=1.5)
    assert found.targets["a"].total.mae == pytest.approx(np.abs(x - 2 - 1.5).mean())
    assert found.targets["b"].total.mae <= plain.targets["b"].total.mae


def test_an_empty_range_is_rejected():
    assert_fails(invoke("evaluate", STREAM, "--min", "2", "--max", "1"), "--min 2", "--max 1")


def test_a_checkpoint_belongs_to_its_range():
    options = ("evaluate", STREAM, "--checkpoint", "c.check")
    invoke(*options, "--min", "12")
    assert_fails(invoke(*options, "--min", "13"), "c.check")
