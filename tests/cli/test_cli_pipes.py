"""Predictions of a pipe are written as soon as its columns are known: --sample and --schema."""

import os
import select

import pytest

import sapwood
from cli_cases import assert_fails, invoke, start, stop

HEADER = "day,city,x,y\n"
ROWS = [
    f"2024-01-{row % 28 + 1:02},{'ab'[row % 2]},{row % 7},{2 * (row % 7)}\n" for row in range(60)
]
PATIENCE = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def lines_of(process, count):
    """Read so many lines, each of which has to come before the input ends."""
    found = b""
    while found.count(b"\n") < count:
        assert select.select([process.stdout], [], [], PATIENCE)[0], found
        found += os.read(process.stdout.fileno(), 65536)
    return found.decode().splitlines(keepends=True)[:count]


def predictions(*options, text, count):
    process = start("evaluate", "-", "--predictions", "-", "--quiet", *options)
    process.stdin.write(text.encode())
    process.stdin.flush()
    found = lines_of(process, count)
    stop(process)
    return found


@pytest.fixture
def whole():
    """What is predicted where all rows are looked at first."""
    with open("all.csv", "w", encoding="utf-8") as file:
        file.writelines([HEADER, *ROWS])
    invoke("evaluate", "all.csv", "-t", "y", "--predictions", "all.txt")
    with open("all.txt", encoding="utf-8") as file:
        return file.readlines()


def test_a_sample_of_a_pipe_is_enough(whole):
    text = HEADER + "".join(ROWS[:30])
    # The last row of a pipe may still grow.
    assert predictions("-t", "y", "--sample", "25", text=text, count=25) == whole[:25]


def test_with_a_schema_rows_of_a_pipe_are_predicted_at_once(whole):
    invoke("train", "all.csv", "-t", "y", "--save", "m.sapwood")
    text = HEADER + "".join(ROWS[:3])
    assert predictions("--schema", "m.sapwood", text=text, count=3) == whole[:3]
    known = sapwood.load("m.sapwood")
    invoke("evaluate", "all.csv", "--schema", "m.sapwood", "--save", "new.sapwood")
    new = sapwood.load("new.sapwood")
    assert new.features == known.features
    assert new.schema.targets == known.schema.targets


def test_a_sample_of_json_lines():
    rows = "".join(f'{{"x": {row % 7}, "y": {row}}}\n' for row in range(10))
    found = predictions("--format", "jsonl", "-t", "y", "--sample", "5", text=rows, count=5)
    assert len(found) == 5


def test_a_longer_sample_finds_what_a_column_is():
    with open("late.csv", "w", encoding="utf-8") as file:
        file.writelines(["x,y\n", *("1,2\n",) * 40, *("text,2\n",) * 60])
    short = invoke("evaluate", "late.csv", "-t", "y", "--sample", "20", "--on-bad-row", "skip")
    assert "60" in short.stdout
    whole = invoke("evaluate", "late.csv", "-t", "y", "--json").json()
    assert whole["rows"]["learned"] == 100


def test_what_cannot_be_meant_is_rejected():
    assert_fails(invoke("evaluate", "friedman", "--sample", "5"), "--sample", "computed")
    with open("a.csv", "w", encoding="utf-8") as file:
        file.writelines([HEADER, *ROWS])
    assert_fails(invoke("evaluate", "a.csv", "-t", "y", "--sample", "0"), "sample")
    invoke("train", "a.csv", "-t", "y", "--save", "m.sapwood")
    ended = invoke("evaluate", "a.csv", "-m", "m.sapwood", "--schema", "m.sapwood")
    assert_fails(ended, "--schema m.sapwood")
    assert_fails(invoke("evaluate", "a.csv", "--schema", "none.sapwood", "-t", "y"), "none.sapwood")
