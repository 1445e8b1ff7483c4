"""Rows that cannot be used: each is told with its place and reason, and does no harm."""

import json
import os
import signal

import pytest

from cli_cases import (
    HEADER,
    assert_fails,
    fields_of,
    invoke,
    read_csv,
    rows_of,
    start,
    stop,
    wait_until,
    write_csv,
)
from sapwood.streams import bad_rows

NAMES = HEADER.split(",")
NEW_KEYS = 1000
"""Lines of JSON that may bring new keys."""


def broken(line, way):
    """A line that is broken in one of ten ways, the reason, the column, and the value."""
    a, b, flag, city, sold, y = line.split(",")

    def joined(**changed):
        values = dict(zip(NAMES, (a, b, flag, city, sold, y), strict=True))
        return ",".join({**values, **changed}.values())

    ways = [
        (line.rsplit(",", 2)[0], bad_rows.ANOTHER_LENGTH, "", "4 instead of 6"),
        (line + ",1", bad_rows.ANOTHER_LENGTH, "", "7 instead of 6"),
        (joined(y="-"), bad_rows.TARGET_NO_NUMBER, "y", "-"),
        (joined(y="n/k"), bad_rows.TARGET_NO_NUMBER, "y", "n/k"),
        (joined(a="much"), bad_rows.NO_NUMBER, "a", "much"),
        (joined(b="inf"), bad_rows.NOT_FINITE, "b", "inf"),
        (
            joined(city="Os?lo").encode().replace(b"?", b"\xff"),
            bad_rows.BAD_ENCODING,
            "city",
            None,
        ),
        (joined(city='"Oslo'), bad_rows.UNCLOSED_QUOTE, "", ""),
        (joined(sold="2026-13-45 10:00"), bad_rows.NO_TIME, "sold", "2026-13-45 10:00"),
        (joined(flag="maybe"), bad_rows.NO_BOOLEAN, "flag", "maybe"),
    ]
    return ways[way]


def broken_json(line, way):
    """An object that is broken in one of ten ways, likewise."""
    row = fields_of(line)
    ways = [
        ('{"a": 1,', bad_rows.MALFORMED_JSON, "", None),
        ("[1, 2]", bad_rows.MALFORMED_JSON, "", None),
        (json.dumps({**row, "new": 1}), bad_rows.UNKNOWN_COLUMN, "new", "1"),
        (json.dumps({**row, "y": [2]}), bad_rows.TARGET_NO_NUMBER, "y", "[2]"),
        (json.dumps({**row, "y": "n/k"}), bad_rows.TARGET_NO_NUMBER, "y", "n/k"),
        (json.dumps({**row, "a": "much"}), bad_rows.NO_NUMBER, "a", "much"),
        (json.dumps({**row, "b": float("inf")}), bad_rows.NOT_FINITE, "b", None),
        (b'{"a": 1, "city": "Os\xfflo", "y": 2}', bad_rows.BAD_ENCODING, None, None),
        (json.dumps({**row, "sold": "soon"}), bad_rows.NO_TIME, "sold", "soon"),
        (json.dumps({**row, "flag": "maybe"}), bad_rows.NO_BOOLEAN, "flag", "maybe"),
    ]
    return ways[way]


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_pair(folder, format, lines=20_000, each=50):
    """A file in which one line in fifty is broken, one of the good lines alone; what is wrong."""
    good = rows_of(lines)
    spoil, header, first = (broken, HEADER, 2) if format == "csv" else (broken_json, None, 1)
    start = 0 if format == "csv" else NEW_KEYS
    dirty, clean, wrong = [], [], []
    for place, line in enumerate(good):
        if place % each == each - 1 and place >= start:
            text, *fault = spoil(line, place // each % 10)
            dirty.append(as_bytes(text))
            wrong.append((place + first, as_bytes(text), *fault))
        else:
            text = line if format == "csv" else json.dumps(fields_of(line))
            dirty.append(text.encode())
            clean.append(text.encode())
    head = [] if header is None else [header.encode()]
    for name, rows in (("dirty", [*head, *dirty]), ("clean", [*head, *clean])):
        (folder / f"{name}.{format}").write_bytes(b"\n".join(rows) + b"\n")
    return wrong


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_every_broken_line_is_told_and_the_others_are_learned(folder, format) -> None:
    wrong = write_pair(folder, format)
    skip = ("--encoding", "utf-8", "--on-bad-row", "skip", "--bad-rows", "bad.csv")
    ended = invoke("evaluate", f"dirty.{format}", "-t", "y", *skip, "--save", "m1", "--json")
    assert ended.code == 0, ended.stderr
    told = read_csv("bad.csv")
    count = len(wrong)
    assert len(told) == count >= 380
    for row, (number, text, reason, column, value) in zip(told, wrong, strict=True):
        assert row["file"] == f"dirty.{format}"
        assert row["place"] == f"line {number}"
        assert row["reason"] == reason
        assert row["text"].encode("utf-8", "surrogateescape") == text
        assert column is None or row["column"] == column
        assert value is None or row["value"] == value
    rows = ended.json()["rows"]
    assert rows["read"] == 20_000
    assert rows["learned"] == rows["predicted"] == 20_000 - count
    assert rows["refused"] == count == sum(rows["reasons"].values())
    expected = {}
    for _, _, reason, _, _ in wrong:
        expected[reason] = expected.get(reason, 0) + 1
    assert rows["reasons"] == expected

    clean = invoke("evaluate", f"clean.{format}", "-t", "y", "--save", "m2", "--json")
    assert (folder / "m1").read_bytes() == (folder / "m2").read_bytes()
    for name in ("total", "faded", "window", "leaves", "bytes"):
        assert clean.json()[name] == ended.json()[name]


@pytest.mark.parametrize("way", range(10))
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_the_first_broken_line_stops_the_work(folder, format, way) -> None:
    lines = rows_of(NEW_KEYS + 40)
    place = NEW_KEYS + 20
    text, reason, column, value = (broken if format == "csv" else broken_json)(lines[place], way)
    texts = [line if format == "csv" else json.dumps(fields_of(line)) for line in lines]
    texts = [as_bytes(HEADER), *map(as_bytes, texts)]
    texts[place + 1] = as_bytes(text)
    first = 0 if format == "csv" else 1  # there is no header
    (folder / f"d.{format}").write_bytes(b"\n".join(texts[first:]) + b"\n")
    ended = invoke("evaluate", f"d.{format}", "-t", "y", "--save", "m", "--curve", "k")
    told = f"d.{format}, line {place + 2 - first}"
    assert_fails(ended, told, f": {reason}", bad_rows.REMEDIES[reason])
    if column:
        assert f"{told}, column '{column}': {reason}" in ended.stderr
    if value:
        assert f"('{value}')" in ended.stderr
    assert sorted(path.name for path in folder.iterdir()) == [f"d.{format}"]


def test_training_and_predicting_leave_out_the_same_rows(folder) -> None:
    wrong = write_pair(folder, "csv", lines=1000)
    skip = ("--encoding", "utf-8", "--on-bad-row", "skip", "--bad-rows")
    ended = invoke("train", "dirty.csv", "-t", "y", *skip, "bad1.csv", "--save", "m1")
    assert ended.code == 0
    assert "rows: 1,000 read, 980 predicted, 980 learned, 20 rejected" in ended.stderr
    assert "  4: another number of fields" in ended.stderr.splitlines()
    assert invoke("train", "clean.csv", "-t", "y", "--save", "m2").code == 0
    assert (folder / "m1").read_bytes() == (folder / "m2").read_bytes()

    # A row whose target is broken can still be predicted.
    wrong = [fault for fault in wrong if fault[3] != "y"]
    ended = invoke("predict", "m1", "dirty.csv", *skip, "bad2.csv")
    assert ended.code == 0
    assert "rows: 1,000 read, 984 predicted, 16 rejected" in ended.stderr
    assert [row["place"] for row in read_csv("bad2.csv")] == [f"line {fault[0]}" for fault in wrong]
    lines = ended.stdout.splitlines()
    assert len(lines) == 1001
    empty = [number for number, line in enumerate(lines, 1) if not line]
    assert empty == [fault[0] for fault in wrong]


def test_values_that_no_file_can_hold_are_told_all_the_same(folder) -> None:
    rows = [json.dumps({"a": 1.0, "y": 2.0})] * (NEW_KEYS + 30)
    rows[NEW_KEYS + 10] = '{"a": 1, "y": 2, "n\\ud800": "x\\udfff"}'
    (folder / "d.jsonl").write_text("\n".join(rows))
    skip = ("--on-bad-row", "skip", "--bad-rows", "bad.csv")
    assert invoke("evaluate", "d.jsonl", "-t", "y", *skip).code == 0
    [row] = read_csv("bad.csv")
    assert row["column"] == "n\\ud800"
    assert row["value"] == "x\\udfff"
    assert row["text"] == rows[NEW_KEYS + 10]


def test_what_the_model_refuses_is_a_bad_row_too(folder) -> None:
    lines = [f"{place % 7},{place % 5}" for place in range(600)]
    lines[300] = "1e308,3"
    lines[400] = "1,1e308"
    write_csv(folder / "d.csv", lines, "a,y")
    skip = ("--on-bad-row", "skip", "--bad-rows", "bad.csv")
    ended = invoke("evaluate", "d.csv", "-t", "y", *skip, "--json")
    assert ended.code == 0
    rows = ended.json()["rows"]
    assert rows["read"] == 600 == rows["learned"] + rows["refused"]
    assert len(read_csv("bad.csv")) == rows["refused"]


@pytest.mark.parametrize("delay", ["1", "50", "599", "10000"])
def test_what_the_model_refuses_after_the_end_is_told_too(folder, delay) -> None:
    lines = [f"{place % 7},{place % 5}" for place in range(600)]
    for place in (300, 598, 599):
        lines[place] = "1,1e308"
    write_csv(folder / "d.csv", lines, "a,y")
    late = ("-t", "y", "--delay", delay, "--checkpoint", "c", "--every", "250")
    skip = ("--on-bad-row", "skip", "--bad-rows", "bad.csv")
    ended = invoke("evaluate", "d.csv", *late, *skip, "--json")
    told = read_csv("bad.csv")
    assert [row["place"] for row in told] == ["line 302", "line 600", "line 601"]
    assert {row["reason"] for row in told} == {"rejected by the model"}
    assert ended.json()["rows"]["refused"] == 3
    # The checkpoint is of the time before: if the file has grown, labels come as they would have.
    content = (folder / "bad.csv").read_bytes()
    assert invoke("evaluate", "d.csv", *late, *skip, "--json").json() == ended.json()
    assert (folder / "bad.csv").read_bytes() == content
    write_csv(folder / "d.csv", [*lines, *lines], "a,y")
    grown = invoke("evaluate", "d.csv", *late, *skip, "--json").json()
    content = (folder / "bad.csv").read_bytes()
    assert len(read_csv("bad.csv")) == grown["rows"]["refused"] == 6
    (folder / "c").unlink()
    (folder / "c.previous").unlink()
    assert invoke("evaluate", "d.csv", *late, *skip, "--json").json() == grown
    assert (folder / "bad.csv").read_bytes() == content


def test_rows_left_out_can_be_read_from_standard_output(folder) -> None:
    write_pair(folder, "csv", lines=500)
    skip = ("--encoding", "utf-8", "--on-bad-row", "skip", "--bad-rows", "-")
    ended = invoke("evaluate", "dirty.csv", "-t", "y", *skip)
    assert ended.stdout.splitlines()[0] == "file,place,reason,column,value,text"
    assert len(ended.stdout.splitlines()) == 11
    assert "errors in predicting y" in ended.stderr


def test_a_file_for_rows_that_are_never_left_out_is_refused(folder) -> None:
    write_csv(folder / "d.csv", rows_of(30))
    ended = invoke("evaluate", "d.csv", "-t", "y", "--bad-rows", "bad.csv")
    assert_fails(ended, "--bad-rows", "--on-bad-row skip")
    assert not (folder / "bad.csv").exists()


# -- no row that can be used ----------------------------------------------------------------------

REFUSED_FILES = {
    "text.csv": (
        "a,y\n" + "".join(f"{row},inf\n" for row in range(2500)),
        "not finite",
        "inf",
    ),
    "long.csv": ("a,y\n" + "1,2,3\n" * 2500, "another number of fields", "3 instead of 2"),
    "huge.csv": ("a,y\n" + "1,1e200\n" * 2500, "rejected by the model", "scale y down"),
    "huge.jsonl": ('{"a": 1, "y": 1e200}\n' * 2500, "rejected by the model", "scale y down"),
}
ALL = "all 2,500 rows were rejected, so nothing was learned; the first is"


@pytest.fixture
def refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (text, _, _) in REFUSED_FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", REFUSED_FILES)
def test_a_stream_of_which_no_row_can_be_used_is_an_error(refused, name) -> None:
    _, reason, value = REFUSED_FILES[name]
    skip = ("-t", "y", "--on-bad-row", "skip")
    kept = ("--bad-rows", "bad.csv", "--checkpoint", "C", "--every", "100")
    before = set(os.listdir(refused))
    place = "line 2" if name.endswith("csv") else "line 1"
    for command in (
        ("evaluate", name, *skip, *kept, "--save", "m", "--report", "r.html", "--curve", "c.csv"),
        ("evaluate", name, *skip, *kept, "--json"),
        ("train", name, *skip, *kept, "--save", "m"),
        ("compare", "friedman:rows=100", f"{name}:target=y", *skip[2:], "-m", "tree"),
    ):
        ended = invoke(*command)
        assert (ended.code, ended.stdout) == (2, "")
        last = ended.stderr.splitlines()[-1]
        assert last.startswith(f"sapwood: {name}: {ALL} {name}, {place}")
        assert reason in last
        assert value in last
        assert set(os.listdir(refused)) <= before | {"bad.csv"}
    assert len(read_csv(refused / "bad.csv")) == 2500


def test_rows_that_are_refused_when_their_labels_come_are_no_result_either(refused) -> None:
    command = ("evaluate", "huge.csv", "-t", "y", "--on-bad-row", "skip", "--delay", "100")
    ended = invoke(*command, "--save", "m")
    assert (ended.code, ended.stdout) == (2, "")
    assert ALL in ended.stderr
    assert not (refused / "m").exists()


def test_one_good_row_is_enough(refused) -> None:
    with open("text.csv", "a") as file:
        file.write("1,2\n")
    ended = invoke("evaluate", "text.csv", "-t", "y", "--on-bad-row", "skip", "--save", "m")
    assert ended.code == 0, ended.stderr
    assert "1 learned, 2,500 rejected" in ended.stdout


def test_all_rows_refused_after_a_checkpoint_of_good_ones_are_no_error(refused) -> None:
    (refused / "grown.csv").write_text("a,y\n1,2\n")
    command = ("evaluate", "grown.csv", "-t", "y", "--on-bad-row", "skip", "--checkpoint", "C")
    assert invoke(*command).code == 0
    with open("grown.csv", "a") as file:
        file.write("1,none\n" * 50)
    ended = invoke(*command)
    assert ended.code == 0, ended.stderr
    assert "1 learned, 50 rejected" in ended.stdout


def test_an_interruption_saves_nothing_of_rows_that_were_all_refused(refused) -> None:
    rows = b"a,y\n" + b"1,2,3\n" * 2500
    command = ("evaluate", "-", "-t", "y", "--on-bad-row", "skip", "--bad-rows", "bad.csv")
    process = start(*command, "--checkpoint", "C", "--every", "100", cwd=refused)
    process.stdin.write(rows)
    process.stdin.flush()
    is_read = lambda: os.path.exists("bad.csv") and len(read_csv("bad.csv")) == 2500  # noqa: E731
    assert wait_until(is_read, process)
    ended = stop(process, signal.SIGINT)
    assert ended.code == 130
    words = "interrupted after 2,500 rows, all rejected: nothing was saved; the first is standard"
    assert words in ended.stderr
    assert not os.path.exists("C")
