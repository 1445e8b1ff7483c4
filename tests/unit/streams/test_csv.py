"""CSV: what is read is what stands there, however it is cut into chunks."""

import csv
import gzip
import io
import os
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_text import naive_read
from sapwood.streams import reader
from sapwood.streams.blocks import TextSource
from sapwood.streams.csv import DelimitedStream, open_delimited
from sapwood.streams.quotes import Quotes
from sapwood.streams.schema import ReadOptions, Rule, Schema
from sapwood.streams.stream import StreamError

ROLES = {"x": "number", "city": "category", "open": "boolean", "sold": "time", "y": "number"}
RULES = tuple(Rule(name, role) for name, role in ROLES.items())
SCHEMA = Schema(tuple(ROLES), RULES[:4], RULES[4], RULES[3])

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64).map(repr) | st.sampled_from(
    ["1", " 2.5", "-0", "+3", "1e5", "1E-400", "NA", "?", " ", "", ".5", "7.", "\t8 ", "00012"]
)
odd_numbers = st.sampled_from(["x", "inf", "1,5", "1e400", "0x10", "1_0", "٣", "- 1", "1e", "nan "])
labels = st.sampled_from(
    ["Oslo", "", " a ", "a,b", 'say "so"', "two\nlines", "NULL", "Ærø", "7", '"']
)
booleans = st.sampled_from(["true", "False", "1", "0", " TRUE", "", "n/a"])
times = st.sampled_from(["2026-11-15", "1969-12-31 23:59:59", "", " 2000-02-29T12:00:00"])


def rows_of(x, city, is_open, sold, y):
    return st.lists(st.tuples(x, city, is_open, sold, y), max_size=12)


good_rows = rows_of(
    numbers, labels, booleans, times.filter(bool), numbers.filter(lambda y: y.strip("NA? "))
)
any_rows = rows_of(
    numbers | odd_numbers,
    labels | st.just("x" * 1001),
    booleans | st.just("yes"),
    times | st.just("15.11.2026"),
    numbers | odd_numbers,
)


def as_csv(rows, end="\n", quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)
    return text.getvalue().encode()


def opened(path, schema=SCHEMA):
    return DelimitedStream(TextSource(path, "utf-8"), schema, Quotes(b","), {"byte": 0, "line": 1})


def written(folder, content, name="rows.csv"):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def seen(chunks):
    """The good rows of chunks as (line, values in hex), and the bad ones with all they tell."""
    good, bad = [], []
    for chunk in chunks:
        before = len(good)
        for place, (number, row) in enumerate(
            zip(chunk.numbers.tolist(), chunk.rows(), strict=True)
        ):
            row["y"] = None if np.isnan(chunk.y[place]) else chunk.y[place]
            assert chunk.times[place] == row["sold"]
            good.append((number, {name: exact(value) for name, value in row.items()}))
        for row in chunk.bad:
            assert row.source == chunk.source
            told = (row.number, row.reason, row.column, row.value, row.text)
            bad.append((*told, before + row.after))
    return good, bad


def exact(value):
    return value if value is None or isinstance(value, str) else float(value).hex()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("csv"))


# Laws


@given(rows=good_rows | any_rows, end=st.sampled_from(["\n", "\r\n", "\n\n"]), data=st.data())
def test_rows_are_what_a_slow_reader_finds(folder, rows, end, data):
    text = as_csv(rows, end, data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])))
    cut = data.draw(st.integers(0, 2))
    text = text[: len(text) - cut]
    good, bad = seen(opened(written(folder, text)).chunks())
    expected, faults = naive_read(text, ROLES, "y", "sold")
    assert good == [
        (line, {name: exact(value) for name, value in values.items()}) for line, values in expected
    ]
    assert [(*row[:3], row[4]) for row in bad] == faults
    assert [row[-1] for row in bad] == [
        sum(line < fault[0] for line, _ in good) for fault in faults
    ]


@settings(max_examples=50)
@given(
    rows=any_rows,
    most=st.integers(1, 5),
    at=st.integers(0, 20),
    block=st.sampled_from([1, 17, 1 << 20]),
    spoil=st.lists(
        st.tuples(
            st.integers(0, 400),
            st.sampled_from([b'"', b"\xff", b",", b"\n", b"\r", b"\xef\xbb\xbf"]),
        ),
        max_size=3,
    ),
    zipped=st.booleans(),
)
def test_chunks_and_paths_do_not_change_what_is_read(
    folder, rows, *, most, at, block, spoil, zipped
):
    text = as_csv(rows)
    for place, letter in spoil:
        text = text[:place] + letter + text[place:]
    stream = opened(written(folder, gzip.compress(text, 1) if zipped else text))
    whole = seen(stream.chunks())
    with mock.patch.object(reader, "BLOCK", block):
        chunks = list(stream.chunks(most_rows=most))
        assert seen(chunks) == whole
        assert all(len(chunk) + len(chunk.bad) <= most for chunk in chunks)
        if chunks:
            rest = seen(stream.chunks(chunks[at % len(chunks)].next, most))
            assert rest == seen(chunks[at % len(chunks) + 1 :])
    with mock.patch.object(DelimitedStream, "_plain", return_value=None):
        assert seen(stream.chunks()) == whole


@given(
    rows=good_rows,
    strange=st.lists(
        st.tuples(
            st.integers(0, 12),
            st.sampled_from(
                [
                    b"",
                    b"1",
                    b"1,2,3,4,5,6",
                    b'1,"a,true,2000-01-01,2',
                    b"x,a,1,2000-01-01,1",
                    b"\xff,a,1,2000-01-01,1",
                ]
            ),
        ),
        max_size=4,
    ),
)
def test_bad_lines_leave_the_good_rows_as_they_are(folder, rows, strange):
    lines = [as_csv([row]) for row in rows]
    alone, _ = seen(opened(written(folder, b"".join(lines))).chunks())
    for place, line in strange:
        lines.insert(place, line + b"\n")
    good, bad = seen(opened(written(folder, b"".join(lines))).chunks())
    assert [row for _, row in good] == [row for _, row in alone]
    assert len(bad) == sum(line != b"" for _, line in strange)


# What is in the file


def read(folder, text, target=None, name="rows.csv", delimiter=None, **read_options):
    text = text.encode() if isinstance(text, str) else text
    stream = open_delimited(
        written(folder, text, name), ReadOptions(target, **read_options), delimiter
    )
    chunks = list(stream.chunks())
    return stream, chunks[0] if chunks else None


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_what_the_header_has_most_of(folder, delimiter):
    text = '"a,b;c|d\te",f\n"x,y;z|u\tv",1\n'.replace('",', f'"{delimiter}')
    stream, chunk = read(folder, text)
    assert dict(stream.features) == {"a,b;c|d\te": "category", "f": "number"}
    assert chunk.columns["a,b;c|d\te"] == ["x,y;z|u\tv"]
    _, chunk = read(folder, "a,b\tc\n1,x\t3\n", delimiter=b"\t")
    assert chunk.columns["a,b"] == ["1,x"]


def test_looks_of_columns(folder):
    rows = [
        f"{place},{place % 2 == 0},2026-11-{place:02},{'u' * place}," for place in range(10, 30)
    ]
    rows[3] = "x,y,z,0,"
    stream, chunk = read(folder, "n,b,t,c,empty\n" + "\n".join(rows), time_parts=())
    assert dict(stream.features) == {
        "n": "number",
        "b": "number",
        "t": "number",
        "c": "category",
        "empty": "number",
    }
    assert [(row.number, row.reason, row.column) for row in chunk.bad] == [(5, "not a number", "n")]
    assert chunk.columns["b"].tolist() == [
        float(place % 2 == 0) for place in range(10, 30) if place != 13
    ]
    assert np.diff(chunk.columns["t"][:3]).tolist() == [86400.0, 86400.0]
    assert np.isnan(chunk.columns["empty"]).all()


def test_looks_are_those_of_the_first_thousand_rows(folder):
    text = "x\n" + "1\n" * 1000 + "a\n" * 2000
    stream, _ = read(folder, text)
    assert dict(stream.features) == {"x": "number"}
    stream, _ = read(folder, text.replace("1\n", "1\na\n", 400))
    assert dict(stream.features) == {"x": "category"}
    wide = "x,y\n" + "1," + "u" * 300_000 + "\n" + "a,v\n" * 100
    stream, _ = read(folder, wide)
    assert dict(stream.features) == {"x": "number", "y": "category"}


def test_columns_are_read_as_asked_for(folder):
    text = "id,zone,city,sold,rent\n1,7,Oslo,15.11.2026 14:30,700\n2,07,?,16.11.2026 00:00,800\n"
    stream, chunk = read(
        folder,
        text,
        "rent",
        drop=("id",),
        categorical=("zone",),
        time_formats={"sold": "%d.%m.%Y %H:%M"},
        time_parts=("hour",),
        time="sold",
    )
    assert (stream.target, stream.time, stream.declared, stream.unit) == (
        "rent",
        "sold",
        ("zone",),
        "line",
    )
    assert chunk.columns["zone"] == [7, "07"]
    assert chunk.columns["city"] == ["Oslo", None]
    assert chunk.columns["sold.hour"].tolist() == [14.0, 0.0]
    assert (chunk.times[1] - chunk.times[0], chunk.y.tolist()) == (34_200.0, [700.0, 800.0])
    assert list(chunk.columns) == list(stream.features)


def test_what_is_not_read_need_not_be_good(folder):
    _, chunk = read(folder, b"a,junk,y\n1,\xff,2\n3,x\xfe,bad\n", "y", drop=("junk",))
    assert chunk.columns["a"].tolist() == [1.0]
    assert [(row.reason, row.column) for row in chunk.bad] == [("target is not a number", "y")]


def test_places_in_the_file(folder):
    text = b"\xef\xbb\xbf\n\r\n a , b\r\n1,2\r\n\r\n3,4"
    stream, chunk = read(folder, text)
    assert list(stream.features) == ["a", "b"]
    assert chunk.numbers.tolist() == [4, 6]
    assert chunk.next == {"byte": len(text), "line": 7}
    assert (chunk.done, stream.size, stream.length) == (len(text), len(text), None)
    assert list(stream.chunks(chunk.next)) == []
    first, second = stream.chunks(most_rows=1)
    assert (first.next, first.done) == ({"byte": 19, "line": 5}, 19)
    assert second.numbers.tolist() == [6]


def test_a_row_over_several_lines_is_named_by_its_first(folder):
    text = 'c,"the\ny"\n"a\n\nb",1\nc,2\n"d\r\ne",x\nf,3'
    _, chunk = read(folder, text, "the\ny")
    assert chunk.columns["c"] == ["a\n\nb", "c", "f"]
    assert chunk.numbers.tolist() == [3, 6, 9]
    assert [(row.number, row.text, row.after) for row in chunk.bad] == [(7, b'"d\r\ne",x', 2)]


def test_the_mark_of_utf_8_within_a_file_belongs_to_its_field(folder):
    stream, chunk = read(folder, b"a,b\n" + b"1,2\n" * 20 + b"\xef\xbb\xbf3,4\n" * 2, "b")
    assert [row.number for row in chunk.bad] == [22, 23]
    found = [row.number for chunk in stream.chunks(most_rows=1) for row in chunk.bad]
    assert found == [22, 23]


def test_a_file_with_a_header_only(folder):
    stream, chunk = read(folder, "a,b\n", "b")
    assert (dict(stream.features), chunk) == ({"a": "number"}, None)
    with open(written(folder, b"a,b"), "ab") as file:
        file.write(b"\n1,2\n")
    [chunk] = stream.chunks()
    assert chunk.numbers.tolist() == [2]


def test_the_fingerprint_is_that_of_the_header_and_the_first_row(folder):
    first, _ = read(folder, "\na,b\n1,2\n")
    fingerprint = first.fingerprint
    for text, same in (("\na,b\n1,2\n3,4\n", True), ("\na,b\n1,3\n", False)):
        stream, _ = read(folder, text)
        assert (stream.fingerprint == fingerprint) == same


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "rows.csv is empty"),
        (b"\n\r\n", "rows.csv has no header: all of its lines are blank"),
        (b"a,,c\n", "line 1: column 2 has no name; give it one"),
        (b"\na,b, a\n", "line 2: columns 1 and 3 are both named 'a'; rename one"),
        (
            b"1.5,2\n3,4\n",
            "line 1: it looks like a row and not like .*, as '1.5' is a value; with --no",
        ),
        (b"a," + b"x" * 1001, "line 1: the name of column 2 has 1001 characters; check that"),
        (b"a\xe9\xc3\xa9,b\n", "line 1: the header is not UTF-8; name the encoding, such as --enc"),
        (b'a,"b\n1,2\n', "line 1: the header has no end; close its quotes"),
    ],
)
def test_headers_that_are_refused(folder, text, complaint):
    with pytest.raises(StreamError, match=complaint):
        read(folder, text)


def test_numbers_that_are_names(folder):
    assert list(read(folder, b"0,1\n3,4\n")[0].features) == ["0", "1"]
    names = ["city", *map(str, range(2000, 2030, 2)), "2.5 m"]
    assert list(read(folder, ",".join(names) + "\n")[0].features) == names


def test_a_header_without_end_is_refused(folder):
    path = written(folder, b"x" * (17 << 20))
    with pytest.raises(StreamError, match="line 1: the header has no end"):
        open_delimited(path, ReadOptions())


# Pipes


def test_rows_of_a_pipe_for_a_model_come_as_they_arrive(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    os.write(writing, b"t,x,y\n2026-11-15,1,2\n")
    known = {"t": "number", "x": "number"}
    stream = open_delimited("-", ReadOptions("y", known=known))
    chunks = stream.chunks()
    assert next(chunks).y.tolist() == [2.0]
    os.write(writing, b"2026-11-16,,3\n")
    chunk = next(chunks)
    assert (chunk.y.tolist(), chunk.numbers.tolist()) == ([3.0], [3])
    decided = {"time: t": 1, "number: x": 1, "number: y": 1}
    assert chunk.next == {"byte": 35, "line": 4, **decided}
    assert (stream.name, stream.size, len(stream.fingerprint)) == ("standard input", None, 32)
    os.close(writing)
    assert list(chunks) == []
    sys.stdin.close()


def test_a_pipe_and_its_file_are_the_same(folder, monkeypatch):
    text = b"x,c,y\n" + b"".join(b"%d,%d,a\n" % (place, place % 3) for place in range(50_000))
    text = text.replace(b"a\n", b"1\n", 49_000)
    file, _ = read(folder, text, "y", categorical=("c",))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text))))
    pipe = open_delimited("-", ReadOptions("y", categorical=("c",)))
    assert pipe.fingerprint == file.fingerprint
    for one, other in zip(file.chunks(), pipe.chunks(), strict=True):
        assert np.array_equal(one.columns["x"], other.columns["x"])
        assert (one.columns["c"], one.next) == (other.columns["c"], other.next)
        assert [row.number for row in one.bad] == [row.number for row in other.bad]
