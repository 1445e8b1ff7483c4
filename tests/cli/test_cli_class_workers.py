"""`sapwood train --workers` with classes: what the forest knows, and what is rejected."""

import numpy as np
import pytest

import sapwood
from cli_cases import invoke

ROWS = 12_000
THREADS = ("--workers", "3", "--engine", "threads")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    temp, wind = rng.normal(15, 8, ROWS).round(2), rng.random(ROWS).round(3)
    return temp, wind, np.where(temp > 18, "clear", np.where(wind > 0.6, "storm", "rain"))


@pytest.fixture
def files(tmp_path, monkeypatch, data):
    """The rows in two files; that of the first worker's blocks has labels of all classes."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{t},{w},{s}" for t, w, s in zip(*data, strict=True)]
    for part, own in enumerate((lines[:7_000], lines[7_000:])):
        (tmp_path / f"part{part}.csv").write_text("\n".join(["temp,wind,sky", *own]) + "\n")
    return "part*.csv"


def accuracy(model, data):
    temp, wind, sky = data
    return (model.predict_many({"temp": temp, "wind": wind}, record=False) == sky).mean()


@pytest.mark.parametrize(
    ("typed", "members", "least"),
    [
        ((), 3, 0.97),
        (("-m", "forest", "-s", "members=7"), 6, 0.97),
        (("-m", "forest", "-s", "members=2"), 6, 0.97),
    ],
)
def test_workers_learn_all_rows_as_one_forest(files, data, typed, members, least):
    ended = invoke("train", files, "-t", "sky", "--save", "my.sapwood", *THREADS, *typed)
    assert ended.code == 0, ended.stderr
    assert ended.stdout == "my.sapwood\n"
    assert "rows: 12,000 read, 12,000 learned, 0 rejected, 0 without a label" in ended.stderr
    model = sapwood.load("my.sapwood")
    assert type(model) is sapwood.ForestClassifier
    assert (model.parameters["members"], model.rows_learned) == (members, ROWS)
    assert sum(model.class_weights.values()) == ROWS
    assert model.schema.targets == ("sky",)
    assert accuracy(model, data) > least
    ended = invoke("predict", "my.sapwood", "part0.csv", "--output", "told.csv")
    assert ended.code == 0, ended.stderr
    first = (files, model.to_bytes())
    assert invoke("train", files, "-t", "sky", "--save", "my.sapwood", *THREADS, *typed).code == 0
    assert (files, sapwood.load("my.sapwood").to_bytes()) == first


def test_processes_learn_what_threads_learn(files):
    typed = ("train", files, "-t", "sky", "--save", "my.sapwood", "--workers", "2")
    assert invoke(*typed, "--engine", "threads").code == 0
    with open("my.sapwood", "rb") as file:
        first = file.read()
    ended = invoke(*typed)
    assert ended.code == 0, ended.stderr
    with open("my.sapwood", "rb") as file:
        assert file.read() == first


def test_two_classes_whose_first_labels_differ_by_worker(files, tmp_path):
    rows = [f"{row % 7},{'yes' if row % 2000 < 1000 else 'no'}" for row in range(4_000)]
    (tmp_path / "two.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    ended = invoke(
        *("train", "two.csv", "-t", "y", "--save", "my.sapwood"),
        *("--workers", "2", "--engine", "threads"),
    )
    assert ended.code == 0, ended.stderr
    model = sapwood.load("my.sapwood")
    assert model.classes == ["yes", "no"]
    assert model.class_weights == {"yes": 2000.0, "no": 2000.0}


def test_bad_rows_and_missing_labels(files):
    with open("part1.csv", "a") as file:
        file.write("hot,0.5,clear\n3,0.2,\n")
    ended = invoke("train", files, "-t", "sky", "--save", "my.sapwood", *THREADS)
    assert ended.code == 2
    assert "part1.csv, line 5002" in ended.stderr
    assert len(ended.stderr.strip().splitlines()[-1:]) == 1
    ended = invoke(
        *("train", files, "-t", "sky", "--save", "my.sapwood", *THREADS, "--on-bad-row", "skip")
    )
    assert ended.code == 0, ended.stderr
    assert "12,002 read, 12,000 learned, 1 rejected, 1 without a label" in ended.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--lags", "3"], "--lags needs rows one after the other"),
        (["--delay", "3"], "--delay needs rows one after the other"),
        (["--checkpoint", "job"], "--checkpoint is not for --workers with classes"),
        (["--on-bad-row", "skip", "--bad-rows", "b.csv"], "--bad-rows is not for --workers"),
        (["-m", "adaptive"], "--workers: AdaptiveTreeClassifier cannot be merged"),
        (["-s", "leaf=naive_bayes"], "--workers: a forest has no leaves of naive Bayes"),
        (["--engine", "teams"], "teams is no engine"),
    ],
)
def test_what_workers_cannot_do(files, given, words):
    typed = ("train", files, "-t", "sky", "--save", "my.sapwood", "--workers", "2")
    ended = invoke(*typed, "--engine", "threads", *given)
    assert ended.code == 2
    assert words in ended.stderr


def test_saved_models_do_not_go_on(files):
    assert invoke("train", "part0.csv", "-t", "sky", "--save", "my.sapwood").code == 0
    ended = invoke("train", files, "-m", "my.sapwood", "--save", "more.sapwood", *THREADS)
    assert ended.code == 2
    assert "workers with classes begin new ones" in ended.stderr
