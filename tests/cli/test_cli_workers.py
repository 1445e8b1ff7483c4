"""`sapwood train --workers`: what it learns and tells, how it goes on, and what it refuses."""

import pytest

import sapwood
from cli_cases import invoke, read_csv

ROWS = 24_000
THREADS = ("--workers", "3", "--engine", "threads")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A text in two files, the second of which has a bad row."""
    folder = tmp_path_factory.mktemp("rows")
    for part in range(2):
        lines = ["a,city,sold"]
        for row in range(ROWS // 2):
            lines.append(f"{row % 97},{('Oslo', 'Bonn')[row % 2]},{row % 97 + 50 * (row % 2)}")
        if part:
            lines[11_000] = "1,Oslo,many"
        (folder / f"part{part}.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def files(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return str(source / "*.csv")


def test_workers_learn_all_files(files, tmp_path):
    skip = ("--on-bad-row", "skip", "--bad-rows", "bad.csv")
    found = invoke("train", files, "-t", "sold", "--save", "m.sapwood", *THREADS, *skip)
    assert found.code == 0, found.stderr
    assert found.stdout == "m.sapwood\n"
    assert "rows: 24,000 read, 23,999 learned, 1 rejected" in found.stderr
    assert "1: target is not a number" in found.stderr
    model = sapwood.load("m.sapwood")
    assert int(model.summary.rows) == 23_999
    assert model.feature_kinds == {"a": "number", "city": "category"}
    assert model.parameters["max_bytes"] == 12_000_000  # as for one process
    assert abs(model.predict_one({"a": 40, "city": "Bonn"}) - 90) < 2
    [bad] = read_csv(tmp_path / "bad.csv")
    assert (bad["place"], bad["text"]) == ("line 11001", "1,Oslo,many")


def test_a_bad_row_is_told_by_file_and_line(files):
    found = invoke("train", files, "-t", "sold", "--save", "m.sapwood", *THREADS)
    assert found.code == 2
    assert "part1.csv, line 11001, column 'sold': target is not a number" in found.stderr


def test_the_same_command_goes_on_from_its_checkpoint(files, tmp_path):
    arguments = ("train", files, "-t", "sold", "--save", "m.sapwood", *THREADS)
    arguments += ("--on-bad-row", "skip", "--checkpoint", "job")
    assert invoke(*arguments).code == 0
    first = (tmp_path / "m.sapwood").read_bytes()
    again = invoke(*arguments)
    assert again.code == 0
    assert (tmp_path / "m.sapwood").read_bytes() == first
    other = invoke(*arguments, "--set", "grace_period=50")
    assert other.code == 2
    assert "job is of a job with another model" in other.stderr


def test_workers_learn_the_members_of_a_forest(files, tmp_path):
    arguments = ("train", files, "-t", "sold", "--save", "m.sapwood", "--on-bad-row", "skip")
    found = invoke(*arguments, *THREADS, "-m", "forest", "--set", "members=4", "--quiet")
    assert found.code == 0, found.stderr
    model = sapwood.load("m.sapwood")
    assert model.summary.rows == 23_999
    assert model.parameters["members"] == 4
    assert abs(model.predict_one({"a": 40, "city": "Bonn"}) - 90) < 2


REFUSED = {
    "lags": (("--lags", "1"), "sapwood: --lags needs rows one after the other"),
    "means": (("--means-of", "a:3"), "sapwood: --means-of needs rows one after the other"),
    "delay": (("--delay", "5"), "--delay needs rows one after the other"),
    "interval": (("--interval", "0.9"), "--interval needs rows one after the other"),
    "engine": (("--engine", "celery"), "celery is no engine"),
    "adaptive": (("-m", "adaptive"), "--workers 3: model adaptive (AdaptiveTreeRegressor) cannot"),
    "hybrid": (
        ("-m", "hybrid"),
        "--workers 3: model hybrid (HybridRegressor) cannot be trained by workers: pass -m tree or "
        "-m forest, or leave out --workers",
    ),
    "every": (("--checkpoint", "job", "--every", "1000"), "with --workers it is a time"),
    "bad rows": (
        ("--on-bad-row", "skip", "--bad-rows", "bad.csv", "--checkpoint", "job"),
        "--bad-rows cannot be resumed with --workers",
    ),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_workers_cannot_do_is_refused(files, tmp_path, options, words):
    found = invoke("train", files, "-t", "sold", "--save", "m.sapwood", *THREADS, *options)
    assert found.code == 2
    assert words in found.stderr
    assert not (tmp_path / "m.sapwood").exists()


@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_a_header_alone_is_rejected(tmp_path, monkeypatch, task):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "header.csv").write_text("a,sold\n")
    command = ("train", "header.csv", "-t", "sold", "--task", task, "--save", "m.sapwood")
    found = invoke(*command, *THREADS)
    assert found.code == 2
    assert "header.csv has no rows: there is nothing to learn from" in found.stderr
    assert not (tmp_path / "m.sapwood").exists()


def test_a_model_of_nothing_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wide.csv").write_text("a,sold\n" + 3 * "1,2,3\n" + "1,\n")
    command = ("train", "wide.csv", "-t", "sold", "--on-bad-row", "skip", "--save", "m.sapwood")
    found = invoke(*command, *THREADS)
    assert found.code == 2
    counts = "(3: another number of fields; 1 had no target)"
    assert f"wide.csv: none of 4 rows was learned {counts}: fix the rows" in found.stderr
    assert not (tmp_path / "m.sapwood").exists()


def test_the_standard_input_is_refused(files):
    found = invoke("train", "-", "-t", "sold", "--save", "m.sapwood", *THREADS, input="a,sold\n")
    assert found.code == 2
    assert "the standard input cannot be shared out" in found.stderr
