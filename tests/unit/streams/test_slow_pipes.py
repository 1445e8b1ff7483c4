"""Pipes to a model: what a column is, its first value tells, however rows come in."""

import io
import json
import math
import re
import sys
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
from cases import PATIENCE
from cli_cases import HEADER, invoke, read_csv, rows_of, run, start, stop, wait_until, write_csv
from sapwood.streams import bad_rows, open_stream
from stream_cases import joined

MISSING = ("", "NA", " ?", "null")
TEXTS = ["", "", "NA", " ?", "1", "0", "-2.5", " 3", "true", "False", "2026-11-15", "x", "inf"]
TEXTS += ["2026-11-15 14:30", "2026-13-01"]
VALUES = [None, None, "", "NA", 1, 0, 1.0, -2.5, True, False, "2026-11-15", "x", "1", "true"]
VALUES += [math.inf, "2026-11-15T14:30Z"]
KNOWN = {"a": "number", "b": "number", "c": "category", "d.hour": "number"}
NAMES = ("a", "b", "c", "d", "e", "w", "y")
"""Column d is a time by its part, e is new to the model, w tells the time of rows, y the target."""


class Drip(io.RawIOBase):
    """A pipe that never has more than some lines, and then has to be waited for."""

    def __init__(self, text, lines):
        self.text = text
        self.lines = lines

    def read(self, size=-1):
        end = len(b"".join(self.text.splitlines(keepends=True)[: self.lines]))
        piece, self.text = self.text[: min(size, end)], self.text[min(size, end) :]
        return piece

    def fileno(self):
        raise OSError("there is no telling")


def opened(source, format):
    """A stream from standard input, which bytes or a pipe are put into."""
    pipe = io.BytesIO(source) if isinstance(source, bytes) else source
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
        return open_stream(
            "-", target="y", time="w", known=KNOWN, time_parts=("hour",), format=format
        )


# The twin


def looks(text):
    if re.fullmatch(r" *-?[\d.]+|inf", text):
        return "number"
    if text.lower() in ("true", "false"):
        return "boolean"
    return "time" if moment(text) is not None else None


def moment(text):
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()


def as_text(value, role):
    """A value of JSON as a CSV file would have it."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return str(int(value)) if role == "number" else str(value).lower()
    return str(int(value)) if role == "boolean" and value in (0, 1) else str(value)


def decided(values, possible=("number", "boolean", "time")):
    found = (looks(as_text(value, None)) for value in values)
    return next((role for role in found if role in possible), "number")


def read(value, role):
    """The number of a value, or why it is none."""
    text = as_text(value, role)
    if text in MISSING:
        return math.nan
    if role == "time":
        return bad_rows.NO_NUMBER if moment(text) is None else moment(text)
    if role == "boolean":
        return {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}.get(text.lower(), bad_rows.NO_NUMBER)
    if looks(text) != "number":
        return bad_rows.NO_NUMBER
    return float(text) if math.isfinite(float(text)) else bad_rows.NOT_FINITE


def expected(rows):
    """The numbers of good rows by name, and the numbers and reasons of the others."""
    roles = {name: decided([row[name] for row in rows]) for name in "abw"}
    roles |= {"y": decided([row["y"] for row in rows], ("number", "boolean")), "d": "time"}
    good = {name: [] for name in ("a", "b", "d.hour", "w", "y")}
    bad = []
    for number, row in enumerate(rows):
        found = {name: read(row[name], role) for name, role in roles.items()}
        if found["d"] == bad_rows.NO_NUMBER:
            found["d"] = bad_rows.NO_TIME  # which is known without a value
        if isinstance(found["w"], float) and math.isnan(found["w"]):
            found["w"] = bad_rows.NO_TIME
        if found["y"] == bad_rows.NO_NUMBER:
            found["y"] = bad_rows.TARGET_NO_NUMBER
        faults = [found[name] for name in "abdwy" if isinstance(found[name], str)]
        if faults:
            bad.append((number, faults[0]))
            continue
        found["d.hour"] = found["d"] // 3600 % 24
        for name, column in good.items():
            column.append(found[name].hex())
    return good, bad


@st.composite
def rows_of_values(draw, values):
    """Rows in which a column has mostly values of one kind, if any."""
    rows = [dict.fromkeys(NAMES) for _ in range(draw(st.integers(1, 20)))]
    for name in "abdwy":
        own = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
        empty = draw(st.integers(0, 5))
        for place, row in enumerate(rows):
            row[name] = draw(st.sampled_from(own)) if place >= empty else values[0]
    for row in rows:
        row["c"], row["e"] = draw(st.sampled_from(["7", "u"])), draw(st.sampled_from(values))
    return rows


some_sizes = st.tuples(st.integers(1, 5), st.integers(1, 21))


def check(rows, text, format, sizes):
    """Check what is read against the twin; however rows come, and from each position on."""
    lines, most_rows = sizes
    first = 2 if format == "csv" else 1
    good, bad = expected(rows)
    chunks = list(opened(text, format).chunks(None, most_rows))
    whole = joined(chunks)
    assert whole["numbers"] == [
        ("standard input", number + first) for number in range(len(rows)) if number not in dict(bad)
    ]
    assert [(fault[1] - first, fault[2]) for fault in whole["bad"]] == bad
    for name in ("a", "b", "d.hour"):
        assert whole["columns"].get(name, []) == good[name]
    assert (whole["times"], whole["y"]) == (good["w"], good["y"])
    assert set(whole["columns"]) <= {"a", "b", "c", "d", "d.hour"}
    assert joined(opened(Drip(text, lines), format).chunks()) == whole
    for place, chunk in enumerate(chunks):
        rest = opened(Drip(text, lines), format).chunks(json.loads(json.dumps(chunk.next)))
        assert joined([*chunks[: place + 1], *rest]) == whole


@settings(max_examples=20)
@given(rows=rows_of_values(TEXTS), sizes=some_sizes)
def test_csv(rows, sizes):
    for row in rows:
        row["b"] = row["b"].replace("x", '"x')  # so that some blocks are read row by row
        row["b"] = row["b"] and row["b"] + '"' * row["b"].count('"')
    table = [",".join(NAMES), *(",".join(row[name] for name in NAMES) for row in rows)]
    text = "".join(f"{line}\n" for line in table).encode()
    check(rows, text, "csv", sizes)


@settings(max_examples=20)
@given(rows=rows_of_values(VALUES), sizes=some_sizes)
def test_jsonlines(rows, sizes):
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    check(rows, text, "jsonl", sizes)


# From the command line

ROWS = rows_of(400, seed=5)


def with_gaps(lines, empty=5):
    """Lines without a, flag and sold in the first ones."""
    fields = [line.split(",") for line in lines]
    return [
        ",".join(["", *row[1:2], "", row[3], "", row[5]]) if place < empty else ",".join(row)
        for place, row in enumerate(fields)
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", rows_of(2000))
    assert invoke("train", "a.csv", "-t", "y", "--save", "m").code == 0
    return tmp_path


def test_predictions_from_a_pipe_are_those_of_the_file(folder) -> None:
    assert sapwood.load("m").feature_kinds["flag"] == "number"
    write_csv(folder / "new.csv", with_gaps(ROWS))
    wanted = invoke("predict", "m", "new.csv")
    assert wanted.code == 0
    process = start("predict", "m")
    head, *lines = (folder / "new.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    process.stdin.write(head.encode())
    told = []
    for number, line in enumerate(lines[:20]):
        process.stdin.write(line.encode())
        process.stdin.flush()
        for _ in range(2 if number == 0 else 1):
            told.append(process.stdout.readline().decode())
    stdout, _ = process.communicate("".join(lines[20:]).encode(), timeout=PATIENCE)
    assert "".join(told) + stdout.decode() == wanted.stdout
    assert process.returncode == 0


def test_a_run_on_a_slow_pipe_goes_on_with_what_columns_were(folder) -> None:
    # After the interruption, each column has something that would tell another kind.
    lines = with_gaps(ROWS)
    odd = lines[30].split(",")
    lines[30] = ",".join(["true", *odd[1:2], "2", odd[3], "17", odd[5]])
    text = "".join(f"{line}\n" for line in [HEADER, *lines])
    outputs = ("--predictions", "p.csv", "--on-bad-row", "skip", "--bad-rows", "bad.csv")
    typed = ("evaluate", "-", "-t", "y", "-m", "m", *outputs, "--save", "grown", "--json")
    whole = run(*typed, cwd=folder, input=text.encode())
    assert whole.code == 0, whole.stderr
    assert [row["place"] for row in read_csv("bad.csv")] == ["line 32"]
    wanted = [(folder / name).read_bytes() for name in ("p.csv", "bad.csv", "grown")]
    process = start(*typed, "--checkpoint", "C", cwd=folder)
    process.stdin.write("".join(text.splitlines(keepends=True)[:31]).encode())
    process.stdin.flush()
    assert wait_until(lambda: (folder / "p.csv").read_bytes().count(b"\n") == 31, process)
    assert stop(process, 2).code == 130
    again = run(*typed, "--checkpoint", "C", cwd=folder, input=text.encode())
    assert "resuming after 30 rows" in again.stderr
    assert again.json() == whole.json()
    assert [(folder / name).read_bytes() for name in ("p.csv", "bad.csv", "grown")] == wanted
