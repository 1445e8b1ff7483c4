"""ARFF: headers in all spellings, and rows that are those of a CSV file of the same values."""

import gzip
import io
import os
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.streams.arff import ArffStream, open_arff
from sapwood.streams.schema import ReadOptions
from sapwood.streams.stream import StreamError

HEADER = (
    "@relation r\n@attribute x numeric\n@attribute city {Oslo, Bonn}\n@attribute y real\n@data\n"
)


def written(folder, text, name="rows.arff"):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return path


def read(folder, text, target=None, **read_options):
    stream = open_arff(written(folder, text), ReadOptions(target, **read_options))
    chunks = list(stream.chunks())
    return stream, chunks[0] if chunks else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("arff"))


# Rows


def spelled(label, style):
    """A label as ARFF may have it."""
    if (
        style == "plain"
        and label == label.strip()
        and not set(label) & set("'\",\t\n\\%{")
        and label
    ):
        return label
    quote = '"' if style == "double" else "'"
    escaped = label.replace("\\", "\\\\").replace(quote, f"\\{quote}").replace("\n", "\\n")
    return quote + escaped.replace("\t", "\\t") + quote


labels = st.sampled_from(
    [
        "Oslo",
        "New York",
        " a ",
        "it's",
        'say "so"',
        "a,b",
        "50%",
        "{x}",
        "back\\slash",
        "two\nlines",
        "%",
    ]
)
styles = st.sampled_from(["plain", "single", "double"])
separators = st.sampled_from([",", ", ", " , ", "\t", ",\t"])
rows = st.lists(
    st.tuples(
        st.floats(-9, 9), labels, styles, separators, st.sampled_from(["", " ", "% note\n", "\n"])
    ),
    max_size=8,
)


@given(rows=rows, end=st.sampled_from(["\n", "\r\n"]), most=st.integers(1, 4))
def test_rows_in_all_spellings(folder, rows, end, most):
    text = HEADER
    for number, label, style, separator, before in rows:
        text += before + separator.join(
            (repr(number), spelled(label, style), "?" if number == 1 else "2")
        )
        text += "\n"
    stream = open_arff(written(folder, text.replace("\n", end)), ReadOptions())
    chunks = list(stream.chunks(most_rows=most))
    assert all(not chunk.bad for chunk in chunks)
    assert [x for chunk in chunks for x in chunk.columns["x"].tolist()] == [row[0] for row in rows]
    assert [label for chunk in chunks for label in chunk.columns["city"]] == [
        row[1] for row in rows
    ]
    lines = [line for chunk in chunks for line in chunk.numbers.tolist()]
    for line, (number, *_) in zip(lines, rows, strict=True):
        assert text.split("\n")[line - 1].strip().startswith(repr(number))


@given(
    lines=st.lists(
        st.sampled_from(
            ["1,Oslo,2", " 1 , Oslo,2 ", "x,Oslo,3", "1,Oslo", "1,'Oslo,2", "% no", "", "?,?,4"]
        ),
        max_size=8,
    )
)
def test_both_ways_of_reading_agree(folder, lines):
    stream = open_arff(written(folder, HEADER + "\n".join(lines)), ReadOptions("y"))

    def seen():
        chunks = list(stream.chunks(most_rows=2))
        good = [
            (line, row)
            for chunk in chunks
            for line, row in zip(chunk.numbers.tolist(), chunk.rows(), strict=True)
        ]
        return (
            good,
            [row for chunk in chunks for row in chunk.bad],
            [chunk.next for chunk in chunks],
        )

    found = seen()
    with mock.patch.object(ArffStream, "_plain", return_value=None):
        assert seen() == found
    assert len(found[0]) == sum(
        line.strip() in ("1,Oslo,2", "1 , Oslo,2", "?,?,4") for line in lines
    )


def test_bad_rows(folder):
    _, chunk = read(
        folder, HEADER + "1,Oslo,2\n% note\n1,'Oslo,2\n1,'Os'lo,2\n  1,Oslo\nx,Oslo,2\r\n", "y"
    )
    assert [(row.number, row.reason, row.value, row.text, row.after) for row in chunk.bad] == [
        (8, "unclosed quote", None, b"1,'Oslo,2", 1),
        (9, "unclosed quote", None, b"1,'Os'lo,2", 1),
        (10, "another number of fields", "2 instead of 3", b"  1,Oslo", 1),
        (11, "not a number", "x", b"x,Oslo,2", 1),
    ]
    assert chunk.numbers.tolist() == [6]


def test_a_single_attribute(folder):
    text = "@relation r\n@attribute c string\n@data\na\n''\n\n?\n'b c'\n"
    _, chunk = read(folder, text)
    assert chunk.columns["c"] == ["a", None, None, "b c"]
    assert chunk.numbers.tolist() == [4, 5, 7, 8]


def test_sparse_rows_are_refused(folder):
    stream = open_arff(written(folder, HEADER + "1,Oslo,2\n  {0 5, 1 Bonn}\n"), ReadOptions("y"))
    with pytest.raises(
        StreamError, match="line 7: sparse rows are not read; save the file with all"
    ):
        list(stream.chunks())


# Headers


def test_attributes_in_all_spellings(folder):
    text = (
        "\ufeff% about\n\n@RELATION 'my data'\n@Attribute a NUMERIC\n  @attribute 'b c' Integer\n"
        '@attribute "d\\"e" real % note\n@ATTRIBUTE f{u, \'v w\'}\n@attribute\tg\tSTRING\n'
        "@attribute h date\n@attribute i date 'dd.MM.yyyy'\n@attribute it\\'s {}\n\n@DATA % rows\n"
        "1,2,3,u,s,2026-11-15T12:00:00,15.11.2026,?\n"
    )
    stream, chunk = read(folder, text, time_parts=())
    kinds = {"a": "number", "b c": "number", 'd"e': "number", "f": "category", "g": "category"}
    assert dict(stream.features) == {**kinds, "h": "number", "i": "number", "it\\'s": "category"}
    assert (chunk.columns["h"] - chunk.columns["i"]).tolist() == [43_200.0]
    assert chunk.numbers.tolist() == [14]
    assert chunk.next == {"byte": len(text.encode()), "line": 15}
    assert list(stream.chunks(chunk.next)) == []


@pytest.mark.parametrize(
    ("java", "value", "seconds"),
    [
        ("\"yyyy-MM-dd'T'HH:mm:ss\"", "'1970-01-02T00:00:01'", 86_401.0),
        ('"yyyy-MM-dd HH:mm:ss"', '"1970-01-02 00:00:01"', 86_401.0),
        ("yyyy-MM-dd", "1970-01-02", 86_400.0),
        ("'d/M/yy hh:mm a'", "'2/1/70 01:00 PM'", 133_200.0),
        ("\"HH 'o''clock %' dd MMM yyyy\"", '"01 oclock % 02 Jan 1970"', 90_000.0),
        ('"yyyyMMddHHmmss.SSS"', "19700101000001.250", 1.25),
        ('"yyyy-MM-dd HH:mm:ss Z"', '"1970-01-01 01:00:00 +0100"', 0.0),
    ],
)
def test_formats_of_times(folder, java, value, seconds):
    text = f"@relation r\n@attribute t date {java}\n@data\n{value}\n?\n"
    _, chunk = read(folder, text)
    np.testing.assert_equal(chunk.columns["t"], [seconds, np.nan])


def test_a_format_of_ones_own_goes_first(folder):
    text = "@relation r\n@attribute t date QQQ\n@data\n1970\n"
    with pytest.raises(
        StreamError, match="line 2: 'QQQ' in the format of times 'QQQ' is not known"
    ):
        read(folder, text)
    _, chunk = read(folder, text, time_formats={"t": "%Y"})
    assert chunk.columns["t"].tolist() == [0.0]
    _, chunk = read(folder, text, categorical=("t",))
    assert chunk.columns["t"] == [1970]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "rows.arff is empty"),
        ("a,b\n1,2\n", "rows.arff has no line @data: check that it is an ARFF file"),
        ("@relation r\na,b\n@data\n", "line 2: 'a,b' is neither @attribute nor @data"),
        ("@attribute a\n@data\n", "line 1: attribute 'a' is of type ''; numeric, nominal,"),
        ("@attribute\n@data\n", "line 1: '@attribute' is not @attribute, a name and a type"),
        ("@attribute a relational\n@data\n", "'a' is of type 'relational'; numeric, nominal"),
        ("@attribute a real\n@attribute a real\n@data\n", "columns 1 and 2 are both named 'a'"),
        (b"@attribute \xe9\xc3\xa9 real\n@data\n", "line 1: the header is not UTF-8"),
        ("@relation r\n@data\n1\n", "rows.arff has no features"),
    ],
)
def test_headers_that_are_refused(folder, text, complaint):
    with pytest.raises(StreamError, match=complaint):
        read(folder, text)


def test_a_long_header_and_a_pipe(folder, monkeypatch):
    names = [f"attribute_{place:05}" for place in range(12_000)]
    text = "".join(f"@attribute {name} numeric\n" for name in names) + "@data\n"
    text += ",".join(["1"] * 12_000) + "\n"
    stream, chunk = read(folder, text)
    assert list(stream.features) == names
    assert chunk.numbers.tolist() == [12_002]
    fingerprint = stream.fingerprint
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text.encode()))))
    pipe = open_arff("-", ReadOptions())
    assert pipe.fingerprint == fingerprint
    [chunk] = pipe.chunks()
    assert chunk.next == {"byte": len(text), "line": 12_003}


def test_the_rows_of_a_pipe_are_not_waited_for(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    os.write(writing, HEADER.encode())
    chunks = open_arff("-", ReadOptions("y")).chunks()
    os.write(writing, b"1,Oslo,2\n")
    assert next(chunks).y.tolist() == [2.0]
    os.close(writing)
    assert list(chunks) == []
    sys.stdin.close()
