"""JSON lines: what columns are, which lines are bad, and that two parsers say the same."""

import gzip
import json
import math
import os
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood.streams import bad_rows, jsonlines
from sapwood.streams.blocks import TextSource
from sapwood.streams.jsonlines import JSONLinesStream
from sapwood.streams.schema import ReadOptions
from sapwood.streams.stream import StreamError
from stream_cases import bits, check_resuming, contents_of

NAN = math.nan
READ_OPTIONS = ReadOptions("y")


def opened(path, text, read_options=READ_OPTIONS):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return JSONLinesStream(TextSource(str(path), "utf-8"), read_options)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


def faults(stream):
    return [(number, reason, *rest[:2]) for _, number, reason, *rest in contents_of(stream)["bad"]]


# Columns


def test_what_columns_look_like(path):
    rows = [
        {"n": 1, "b": True, "t": "2026-11-15", "s": "u", "y": 1, "none": None},
        {"n": 2.5, "b": None, "t": "2026-11-15T14:30Z", "s": "7", "y": 2, "later": "v", "m": True},
        {"n": "?", "b": False, "t": "", "s": 8, "y": 3, "m": 2, "list": [1]},
    ]
    stream = opened(path, lines(*rows), ReadOptions("y", drop=("list",), time_parts=("hour",)))
    assert stream.features == {
        **{"n": "number", "b": "number", "t": "number", "t.hour": "number", "s": "category"},
        **{"none": "number", "later": "category", "m": "number"},
    }
    assert (stream.unit, stream.size, stream.length) == ("line", path.stat().st_size, None)
    [chunk] = stream.chunks()
    np.testing.assert_array_equal(chunk.columns["n"], [1, 2.5, NAN])
    np.testing.assert_array_equal(chunk.columns["b"], [1, NAN, 0])
    np.testing.assert_array_equal(chunk.columns["t.hour"], [0, 14, NAN])
    assert chunk.columns["s"] == ["u", "7", "8"]
    assert chunk.columns["later"] == [None, "v", None]
    np.testing.assert_array_equal(chunk.columns["m"], [NAN, 1, 2])
    np.testing.assert_array_equal(chunk.columns["none"], [NAN] * 3)


@pytest.mark.parametrize(
    ("good", "bad"), [(1.5, "x"), (True, "x"), ("2026-11-15", "x"), (1.5, [1]), (True, 3)]
)
def test_one_broken_line_of_ten_makes_no_text(path, good, bad):
    rows = [{"x": good, "y": 1}] * 9
    stream = opened(path, lines(*rows, {"x": bad, "y": 1}))
    assert stream.features["x"] == "number"
    [(number, reason, column, value)] = faults(stream)
    assert (number, column, value) == (10, "x", bad if bad == "x" else str(bad))
    assert reason in (
        bad_rows.NO_NUMBER,
        bad_rows.NO_BOOLEAN,
        bad_rows.NO_TIME,
    )
    assert len(contents_of(stream)["y"]) == 9
    text = opened(path, lines(*rows[1:], *[{"x": "x", "y": 1}]))
    assert text.features == {"x": "category"}


def test_only_the_beginning_decides_which_columns_there_are(path):
    rows = [{"x": 1, "y": 1}] * 1000 + [{"x": 2, "late": 3, "y": 1}, {"x": 3, "y": 1}]
    stream = opened(path, lines(*rows))
    assert stream.features == {"x": "number"}
    assert faults(stream) == [(1001, bad_rows.UNKNOWN_COLUMN, "late", "3")]
    known = opened(path, lines(*rows), ReadOptions("y", known={"x": "number"}))
    assert faults(known) == []
    assert len(contents_of(known)["y"]) == 1002


def test_the_beginning_has_at_most_so_many_bytes(path):
    wide = [{"x": 1, "pad": "u" * 100_000, "y": 1}] * 4
    stream = opened(path, lines(*wide, {"late": 1, "y": 2}), ReadOptions("y", drop=("pad",)))
    assert faults(stream) == [(5, bad_rows.UNKNOWN_COLUMN, "late", "1")]


def test_a_first_line_that_is_longer_than_the_beginning(path):
    stream = opened(
        path, lines({"x": 1, "pad": "u" * 400_000, "y": 1}), ReadOptions("y", drop=("pad",))
    )
    assert contents_of(stream)["columns"] == {"x": bits(np.array([1.0]))}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "is empty"),
        (b"\n \n", "has no JSON object in its first lines: there are blank lines only"),
        (b"x,y\nu,v\n", r"malformed JSON \(Expecting value: column 1\); write one object a line, "),
        (b'[\n{"y": 1},\n{"y": 2}\n]\n', r"is one JSON array: .*`jq -c '\.\[\]'`"),
        (b'[{"y": 1},\n{"y": 2}]\n', "is one JSON array"),
        (b'[{"y": 1}, {"y": 2}]\n', "is one JSON array"),
        (b"[1, 2]\n[3, 4]\n", "has no JSON object in its first lines"),
        (b'{"' + b"k" * 1001 + b'": 1}\n', "has 1001 characters; use at most 1000"),
        (b'{"x": 1}\n', "has no column 'y' to predict"),
        (b'{"x": [1], "y": 1}\n', "column 'x' holds lists or objects, .*as by --drop x"),
        (b'{"x": 1, "y": {"v": 1}}\n', "column 'y' holds .*; name another column to predict$"),
        (b"{}\n", "has no column 'y' to predict: there are no columns"),
    ],
)
def test_texts_that_are_no_json_lines(path, text, complaint):
    with pytest.raises(StreamError, match=complaint):
        opened(path, text)


# Rows


BAD_LINES = [
    (
        b"{",
        bad_rows.MALFORMED_JSON,
        None,
        "Expecting property name enclosed in double quotes",
    ),
    (b'{"x": 1, "y": 2,}', bad_rows.MALFORMED_JSON, None, ": column"),
    (
        b'{"x": 1, "y": 2} {"x": 1, "y": 2}',
        bad_rows.MALFORMED_JSON,
        None,
        "Extra data: column 18",
    ),
    (b"[1, 2]", bad_rows.MALFORMED_JSON, None, "no object: [1, 2]"),
    (b"null", bad_rows.MALFORMED_JSON, None, "no object: None"),
    (b'{"x": 1, "y": 2, "x": 1}', bad_rows.MALFORMED_JSON, None, "key 'x' stands twice"),
    (b'{"x": 01, "y": 2}', bad_rows.MALFORMED_JSON, None, "column 8"),
    (b"{" + b'"x":[' * 99_999, bad_rows.MALFORMED_JSON, None, ""),
    (b'{"x": ' + b"[" * 99_999, bad_rows.MALFORMED_JSON, None, "too many levels"),
    (b'{"x": 1, "c": "\xff", "y": 2}', bad_rows.BAD_ENCODING, None, r"\xff"),
    (b'{"x": 1, "c": "\\ud800", "y": 2}', bad_rows.LONE_SURROGATE, "c", r"\ud800"),
    (b'{"x": "u", "y": 2}', bad_rows.NO_NUMBER, "x", "u"),
    (b'{"x": [1], "y": 2}', bad_rows.NO_NUMBER, "x", "[1]"),
    (b'{"x": {"a": 1}, "y": 2}', bad_rows.NO_NUMBER, "x", "{'a': 1}"),
    (b'{"x": Infinity, "y": 2}', bad_rows.NOT_FINITE, "x", "inf"),
    (b'{"x": 1e400, "y": 2}', bad_rows.NOT_FINITE, "x", "inf"),
    (b'{"x": 1' + b"0" * 400 + b', "y": 2}', bad_rows.NOT_FINITE, "x", "1" + "0" * 400),
    (b'{"x": -' + b"1" * 9999 + b', "y": 2}', bad_rows.NOT_FINITE, "x", "-inf"),
    (b'{"c": [1], "y": 2}', bad_rows.NO_LABEL, "c", "[1]"),
    (b'{"c": "' + b"u" * 1001 + b'", "y": 2}', bad_rows.LABEL_TOO_LONG, "c", "u" * 1001),
    (b'{"b": "yes", "y": 2}', bad_rows.NO_BOOLEAN, "b", "yes"),
    (b'{"b": 2, "y": 2}', bad_rows.NO_BOOLEAN, "b", "2"),
    (b'{"t": "noon", "y": 2}', bad_rows.NO_TIME, "t", "noon"),
    (b'{"t": 1700000000, "y": 2}', bad_rows.NO_TIME, "t", "1700000000"),
    (b'{"x": 1, "y": "u"}', bad_rows.TARGET_NO_NUMBER, "y", "u"),
    (b'{"x": 1, "y": [2]}', bad_rows.TARGET_NO_NUMBER, "y", "[2]"),
]
GOOD_LINES = [
    b'{"x": %d, "c": "u%d", "b": true, "t": "2026-11-15 14:%02d", "y": %d}' % (row, row, row, row)
    for row in range(30)
]


@pytest.mark.parametrize(("line", "reason", "column", "value"), BAD_LINES)
def test_a_bad_line_among_good_ones(path, line, reason, column, value):
    stream = opened(path, b"\n".join([*GOOD_LINES[:20], line, b"", *GOOD_LINES[20:]]) + b"\n")
    found = contents_of(stream)
    [(source, number, told_reason, told_column, told_value, text, before)] = found["bad"]
    assert (source, number, told_reason, told_column, before) == (
        *(str(path), 21, reason, column, 20),
    )
    assert text == line
    assert (told_value is None) if value is None else (value in told_value)
    assert found == {
        **contents_of(opened(path, b"\n".join([*GOOD_LINES[:20], b"", b"", *GOOD_LINES[20:]]))),
        "bad": found["bad"],
    }


def test_values_of_all_kinds_in_one_column(path):
    rows = [
        *[{"x": 1.0, "c": "u", "b": True, "y": 0}] * 40,
        {"x": "1.5", "c": 7, "b": 1, "y": "2"},
        {"x": True, "c": 7.0, "b": 0.0, "y": True},
        {"x": 2**53 + 1, "c": True, "b": "FALSE", "y": 10**30},
        {"x": None, "c": None, "b": None, "y": -0.0},
        {"x": "NA", "c": " ? ", "b": "", "y": 1e-320},
        {"x": NAN, "c": "", "b": NAN, "y": 1},
    ]
    [chunk] = opened(path, lines(*rows)).chunks()
    assert chunk.bad == ()
    np.testing.assert_array_equal(chunk.columns["x"][40:], [1.5, 1, 2.0**53, NAN, NAN, NAN])
    assert chunk.columns["c"][40:] == ["7", "7.0", "true", None, None, None]
    np.testing.assert_array_equal(chunk.columns["b"][40:], [1, 0, 0, NAN, NAN, NAN])
    assert bits(chunk.y[40:]) == bits(np.array([2, 1, 1e30, -0.0, 1e-320, 1]))


def test_declared_categories_and_formats(path):
    rows = [{"zone": zone, "day": 20261115, "y": 1} for zone in (7, "7", 7.0, "07", 7.5, 2**70)]
    read_options = ReadOptions("y", categorical=("zone",), time_formats={"day": "%Y%m%d"})
    [chunk] = opened(path, lines(*rows), read_options).chunks()
    assert chunk.columns["zone"] == [7, 7, 7, "07", "7.5", str(2**70)]
    assert chunk.columns["day"].tolist() == [1_794_700_800] * 6


def test_lines_of_other_systems(path):
    text = b'\xef\xbb\xbf{"x": 1, "y": 2}\r\n\r\n  {"x": 3, "y": 4}  \r\n{"x": 5, "y": 6}'
    found = check_resuming(opened(path, text))
    assert found["columns"]["x"] == bits(np.array([1.0, 3.0, 5.0]))
    assert [number for _, number in found["numbers"]] == [1, 3, 4]


# Laws

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["2026-11-15", "2026-11-15T14:30:00Z", "NA", "true", "1.5", ""])
    | st.text(max_size=4)
)
OBJECTS = st.dictionaries(
    st.sampled_from(["x", "c", "b", "t", "y", "q"]), SCALARS | st.lists(SCALARS, max_size=2)
)
LINES = (
    st.sampled_from(GOOD_LINES)
    | st.builds(
        lambda row, ascii: json.dumps(row, ensure_ascii=ascii).encode(errors="surrogatepass"),
        OBJECTS,
        st.booleans(),
    )
    | st.sampled_from([line for line, *_ in BAD_LINES if len(line) < 1000])
    | st.sampled_from([b"", b"  ", b'{"x": -0, "y": 1}', b'{"x": -0.0, "y": 1}', b'{"x": -NaN}'])
    | st.sampled_from([b'{"x": 1', b', "y": 2}', b'{"q": {"x": 1}', b'{"y": 1}}', b'{"x": Inf}'])
    | st.sampled_from([b'{"q": Inf, "y": 1}', b'{"q": [-NaN], "y": 1}', b'{"q": "Inf", "y": 1}'])
)


@given(
    some=st.lists(LINES, max_size=6),
    known=st.sampled_from([None, {"x": "number", "c": "category", "t": "number"}]),
    ends=st.sampled_from([b"\n", b"\r\n"]),
)
def test_both_parsers_say_the_same(tmp_path_factory, some, known, ends):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    read_options = ReadOptions("y", known=known)
    text = ends.join([*GOOD_LINES[:10], *some])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlines, "SAMPLE_ROWS", 10)  # so that there are unknown columns
        stream = opened(path, text, read_options)
        patch.setattr(jsonlines, "MANY", 0)
        at_once = [contents_of(stream, most_rows=most_rows) for most_rows in (1, 3, 100)]
        patch.setattr(jsonlines, "MANY", math.inf)
        by_line = contents_of(stream)
    for found in at_once:
        assert found == by_line
    assert len(by_line["numbers"]) + len(by_line["bad"]) == 10 + sum(
        map(bool, map(bytes.strip, some))
    )


def test_good_lines_are_parsed_at_once(path, monkeypatch):
    stream = opened(path, b"\n".join(GOOD_LINES))
    monkeypatch.setattr(JSONLinesStream, "_parsed_by_line", None)
    assert len(contents_of(stream)["y"]) == 30


@settings(max_examples=50)
@given(some=st.lists(LINES, max_size=8))
def test_each_position_gives_the_rest(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    check_resuming(opened(path, b"\n".join([*some, *GOOD_LINES[:9]])), sizes=(2, 5))


# Sources


def test_gzip_is_read_as_plain_text_is(path):
    text = b"\n".join(GOOD_LINES)
    plain = contents_of(opened(path, text))
    packed = opened(path, gzip.compress(text))
    assert check_resuming(packed, sizes=(7,)) == plain
    assert packed.size == path.stat().st_size
    assert [chunk.done for chunk in packed.chunks()][-1] == packed.size


def test_the_fingerprint_is_of_the_first_line(path):
    prints = [
        opened(path, b"\n".join(some)).fingerprint
        for some in (GOOD_LINES, GOOD_LINES[:3], GOOD_LINES[1:])
    ]
    assert prints[0] == prints[1] != prints[2]


@pytest.fixture
def pipe(monkeypatch):
    """What is written to it is the standard input."""
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as stdin, open(writing, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield pipe


def test_a_model_answers_a_pipe_line_by_line(pipe):
    known = {"x": "number", "c": "category", "t.hour": "number"}
    pipe.write(lines({"x": 1, "extra": [0]}).encode())
    stream = JSONLinesStream(TextSource("-"), ReadOptions(known=known, time_parts=("hour",)))
    assert stream.name == "standard input"
    chunks = stream.chunks()
    first = next(chunks)
    assert bits(first.columns["x"]) == bits(np.array([1.0]))
    assert first.columns["c"] == [None]
    pipe.write(lines({"c": "u", "t": "2026-11-15 14:30"}).encode())
    second = next(chunks)
    assert second.columns["c"] == ["u"]
    assert second.columns["t.hour"].tolist() == [14]
    assert second.y is None
    pipe.close()
    assert list(chunks) == []


def test_a_first_line_that_is_broken_does_not_stop_a_pipe(pipe):
    pipe.write(b"{broken\n")
    read_options = ReadOptions("y", drop=("z",), time="w", known={"x": "number"})
    stream = JSONLinesStream(TextSource("-"), read_options)
    pipe.write(lines({"x": 1, "y": 2, "z": 3, "w": 4}).encode())
    pipe.close()
    found = contents_of(stream)
    assert [number for _, number in found["numbers"]] == [2]
    assert found["times"] == bits(np.array([4.0]))
    assert [reason for _, _, reason, *_ in found["bad"]] == [bad_rows.MALFORMED_JSON]


def test_without_a_model_a_pipe_is_waited_for(pipe):

    def write():
        pipe.write(lines({"x": None, "y": 1}).encode())
        pipe.write(lines({"x": "u", "y": 1}).encode())
        pipe.close()

    thread = threading.Thread(target=write)
    thread.start()
    stream = JSONLinesStream(TextSource("-"), ReadOptions("y"))
    thread.join()
    assert stream.features == {"x": "category"}
    assert contents_of(stream)["columns"]["x"] == bits([None, "u"])


def test_keys_that_a_model_does_not_know_are_passed_over(path):
    known = {"x": "number", "c": "category", "gone": "number"}
    rows = [{"x": 1, "c": 7, "q": {"deep": [1]}, "y": 1}, {"q": 5, "y": 2}] * 20
    stream = opened(path, lines(*rows), ReadOptions("y", known=known))
    [chunk] = stream.chunks()
    assert chunk.bad == ()
    np.testing.assert_array_equal(chunk.columns["x"][:2], [1, NAN])
    assert chunk.columns["c"][:2] == ["7", None]
    np.testing.assert_array_equal(chunk.columns["gone"], [NAN] * 40)
