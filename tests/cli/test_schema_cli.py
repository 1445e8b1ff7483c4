"""A saved model goes on with the target that it has, whatever is typed."""

from pathlib import Path

import numpy as np
import pytest

import sapwood
from cli_cases import invoke, write_csv
from sapwood.cli.models import targets_of
from sapwood.lags import LaggedModel, Lags

FEATURES = "temp,hum,cnt"


def rows(count, seed=1):
    rng = np.random.default_rng(seed)
    return [f"{t!r},{h!r},{3 * t + h!r}" for t, h in rng.random((count, 2)).tolist()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", rows(600), FEATURES)
    write_csv(tmp_path / "new.csv", rows(300, 2), FEATURES)
    assert invoke("train", "a.csv", "-t", "cnt", "--save", "m", "-q").code == 0
    return tmp_path


def went_on(*typed):
    """Return how a command ended, and whether it has left the model as it was."""
    before = Path("m").read_bytes()
    ended = invoke(*typed)
    return ended, Path("m").read_bytes() == before


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_saved_model_knows_its_target(folder, command):
    ended = invoke(command, "new.csv", "--model", "m", "--save", "m2", "-q")
    assert ended.code == 0, ended.stderr
    assert invoke(command, "new.csv", "--model", "m", "-t", "cnt", "--save", "m3", "-q").code == 0
    assert Path("m2").read_bytes() == Path("m3").read_bytes()
    model = sapwood.load("m2")
    assert model.summary.rows == 900
    assert model.features == ["temp", "hum"]
    assert model.schema.targets == ("cnt",)


@pytest.mark.parametrize("command", ["train", "evaluate"])
@pytest.mark.parametrize("stream", [["new.csv", "-t", "hum"], ["new.csv:target=hum"], ["friedman"]])
def test_another_target_is_rejected_and_the_model_stays(folder, command, stream):
    ended, is_same = went_on(command, *stream, "--model", "m", "--save", "m", "-q")
    assert ended.code == 2
    assert is_same
    assert "m predicts cnt: leave --target out, or train a new model" in ended.stderr


def test_workers_know_the_target_too(folder):
    typed = ("train", "new.csv", "--model", "m", "--workers", "1", "--engine", "threads", "-q")
    assert invoke(*typed, "--save", "m2").code == 0
    assert sapwood.load("m2").schema.targets == ("cnt",)
    ended, is_same = went_on(*typed, "-t", "temp", "--save", "m")
    assert ended.code == 2
    assert is_same
    assert "m predicts cnt" in ended.stderr


def learned_in_python(**more):
    data = np.random.default_rng(3).random((300, 2))
    model = more.pop("model", None) or sapwood.HoeffdingTreeRegressor()
    model.learn_many({"temp": data[:, 0], "hum": data[:, 1]}, data @ [3, 1])
    return model


def test_a_feature_is_never_suggested_and_never_taken(folder):
    learned_in_python().save("p")
    ended = invoke("train", "new.csv", "--model", "p", "--save", "q")
    assert ended.code == 2
    assert "perhaps -t cnt? Columns are cnt\n" in ended.stderr
    ended = invoke("train", "new.csv", "--model", "p", "-t", "hum", "--save", "q")
    assert ended.code == 2
    assert "--target hum: hum is a feature of p" in ended.stderr
    write_csv(folder / "bare.csv", ["1,2"], "temp,hum")
    ended = invoke("train", "bare.csv", "--model", "p", "--save", "q")
    assert "all of its columns are features of the model" in ended.stderr
    ended = invoke("train", "bare.csv", "--model", "m", "--save", "q")
    assert ended.code != 0
    assert "no column 'cnt' to predict: all columns are features" in ended.stderr
    ended = invoke("train", "new.csv", "--model", "p", "-t", "cnt", "--save", "q", "-q")
    assert ended.code == 0
    assert targets_of(sapwood.load("q")) == ("cnt",)


def test_the_target_of_a_model_is_that_of_its_lags_or_of_several(folder):
    assert targets_of(LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(1, target="cnt"))) == (
        "cnt",
    )
    several = sapwood.HoeffdingTreeRegressor()
    several.learn_many({"temp": [1.0, 2.0]}, {"a": [1.0, 2.0], "b": [2.0, 1.0]})
    assert targets_of(several) == ("a", "b")
    assert targets_of(sapwood.HoeffdingTreeRegressor()) == ()
    write_csv(folder / "two.csv", ["1,2,3", "2,3,1"], "temp,b,a")
    several.save("s")
    assert invoke("train", "two.csv", "--model", "s", "--save", "s2", "-q").code == 0
    assert sapwood.load("s2").targets == ["a", "b"]
    ended = invoke("train", "two.csv", "--model", "s", "-t", "a", "--save", "s2", "-q")
    assert ended.code == 2
    assert "s predicts a, b" in ended.stderr
