"""Bad rows of CSV: each is found, with its place, its reason and its text."""

import gzip

import numpy as np
import pytest

from sapwood.streams import bad_rows
from sapwood.streams.csv import open_delimited
from sapwood.streams.schema import ReadOptions
from sapwood.streams.stream import BadRowError

HEADER = b"x,city,open,sold,y\n"
GOOD = b"1,Oslo,true,2026-11-15,2\n"


def opened(tmp_path, *lines, good=20, end=b"\n", zipped=False, **read_options):
    """A stream of good rows, then some lines, then a good row."""
    text = HEADER + GOOD * good + b"".join(line + b"\n" for line in lines) + GOOD
    text = text.replace(b"\n", end)
    path = tmp_path / "rows.csv"
    path.write_bytes(gzip.compress(text) if zipped else text)
    return open_delimited(
        str(path),
        ReadOptions(**{"target": "y", "time": "sold", "encoding": "utf-8", **read_options}),
    )


@pytest.mark.parametrize(
    ("line", "reason", "column", "value"),
    [
        (b"1,Oslo,true,2026-11-15", "another number of fields", None, "4 instead of 5"),
        (b"1,Oslo,true,2026-11-15,2,3", "another number of fields", None, "6 instead of 5"),
        (b" ", "another number of fields", None, "1 instead of 5"),
        (b'1,"a,b",true,2026-11-15', "another number of fields", None, "4 instead of 5"),
        (b"1,Oslo,true,2026-11-15,two", "target is not a number", "y", "two"),
        (b"1,Oslo,true,2026-11-15,-Infinity", "not finite", "y", "-Infinity"),
        (b"one,Oslo,true,2026-11-15,2", "not a number", "x", "one"),
        (b"1e999,Oslo,true,2026-11-15,2", "not finite", "x", "1e999"),
        (b"1,Oslo,yes,2026-11-15,2", "not true or false", "open", "yes"),
        (b"1,Oslo,true,2026-13-15,2", "not a time", "sold", "2026-13-15"),
        (b"1,Oslo,true,?,2", "not a time", "sold", "?"),
        (b"1,Troms\xf8,true,2026-11-15,2", "bad encoding", "city", r"Troms\xf8"),
        (b"\xff,Oslo,true,2026-11-15,2", "bad encoding", "x", r"\xff"),
        (b"1," + b"u" * 1001 + b",true,2026-11-15,2", "label too long", "city", "u" * 1001),
        (b'1,"Oslo,true,2026-11-15,2', "unclosed quote", None, None),
        (b"1,Os\rlo,true,2026-11-15,2", "stray carriage return", None, None),
        (b"one,Oslo,yes,never,two", "not a number", "x", "one"),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_place_and_the_reason(tmp_path, line, reason, column, *, value, end):
    stream = opened(tmp_path, line, end=end)
    [chunk] = stream.chunks()
    [row] = chunk.bad
    assert (row.reason, row.column, row.value) == (reason, column, value)
    assert (row.source, row.unit, row.number) == (stream.name, "line", 22)
    assert (row.text, row.after) == (line, 20)
    assert row.remedy == bad_rows.REMEDIES[reason]
    assert chunk.numbers.tolist() == [*range(2, 22), 23]
    assert chunk.y.tolist() == [2.0] * 21
    assert chunk.next == {"byte": stream.size, "line": 24}


def test_rows_that_look_strange_but_are_good(tmp_path):
    stream = opened(
        tmp_path,
        b'"1","Oslo","true","2026-11-15","2"',
        b" 1 ,Oslo, TRUE ,\t2026-11-15, 2.0 ",
        b"",
        b'1,5" pipe,0,2026-11-15,2',
        b'1,"a"b,1,2026-11-15,2',
        b"1,\0,true,2026-11-15,2",
        b"+.1e1,?,,2026-11-15 00:00:00,2\r",
    )
    [chunk] = stream.chunks()
    assert chunk.bad == []
    assert chunk.columns["city"][20:] == ["Oslo", "Oslo", '5" pipe', "ab", "\0", None, "Oslo"]
    np.testing.assert_equal(chunk.columns["open"][20:], [1, 1, 0, 1, 1, np.nan, 1])
    assert (chunk.columns["x"] == 1).all()
    assert (chunk.columns["sold"] == 1_794_700_800).all()
    assert chunk.numbers.tolist() == [*range(2, 24), *range(25, 30)]


def test_a_forgotten_quote_does_not_swallow_the_rows_behind_it(tmp_path):
    quoted = b'2,"Bergen",true,2026-11-15,2'
    stream = opened(
        tmp_path, b'1,"Oslo,true,2026-11-15,2', quoted, b'1,Oslo",true,2026-11-15,2', quoted
    )
    [chunk] = stream.chunks()
    assert [(row.number, row.reason) for row in chunk.bad] == [(22, "unclosed quote")]
    assert chunk.columns["city"][20:] == ["Bergen", 'Oslo"', "Bergen", "Oslo"]


def test_many_bad_rows_in_order(tmp_path):
    rng = np.random.default_rng(1)
    kinds = [b"1", b"x,a,1,2026-11-15,1", b'1,"a,1,2026-11-15,1', b"1,\xff,1,2026-11-15,1"]
    places = rng.choice(np.arange(2, 30_000), 600, replace=False).tolist()
    bad = {line: kinds[place % 4] for place, line in enumerate(places)}
    lines = [bad.get(line, b"%d,a,1,2026-11-15,1" % line) for line in range(2, 30_000)]
    (tmp_path / "rows.csv").write_bytes(HEADER + b"\n".join(lines))
    stream = open_delimited(str(tmp_path / "rows.csv"), ReadOptions("y", encoding="utf-8"))
    assert dict(stream.features)["x"] == "number"
    found, good = [], []
    for chunk in stream.chunks():
        places = [len(good) + row.after for row in chunk.bad]
        good += chunk.numbers.tolist()
        assert chunk.columns["x"].tolist() == chunk.numbers.tolist()
        for row, place in zip(chunk.bad, places, strict=True):
            found.append(row.number)
            assert row.text == bad[row.number]
            assert place == row.number - 2 - (len(found) - 1)
    assert found == sorted(bad)
    assert sorted(good + found) == list(range(2, 30_000))


@pytest.mark.parametrize("zipped", [False, True])
def test_chunks_of_bad_rows_alone(tmp_path, zipped):
    stream = opened(tmp_path, b"1", b'1,"', b"2,2", good=1, zipped=zipped)
    chunks = list(stream.chunks(most_rows=1))
    assert [(len(chunk), len(chunk.bad)) for chunk in chunks] == [
        (1, 0),
        (0, 1),
        (0, 1),
        (0, 1),
        (1, 0),
    ]
    assert chunks[1].columns["city"] == []
    assert [len(chunks[2].columns["x"]), len(chunks[2].y), len(chunks[2].times)] == [0, 0, 0]
    assert [chunk.next["line"] for chunk in chunks] == [3, 4, 5, 6, 7]


def test_iteration_stops_at_a_bad_row(tmp_path):
    rows = iter(opened(tmp_path, b"x,Oslo,true,2026-11-15,2", good=15))
    assert [y for _, y in (next(rows) for _ in range(15))] == [2.0] * 15
    with pytest.raises(
        BadRowError, match=r"rows.csv, line 17, column 'x': not a number \('x'\); fix"
    ):
        next(rows)


def test_without_a_target_any_will_do(tmp_path):
    stream = opened(tmp_path, b"1,Oslo,true,2026-11-15,", target=None, time=None, drop=("y",))
    [chunk] = stream.chunks()
    assert (chunk.y, chunk.times, list(chunk.bad), len(chunk)) == (None, None, [], 22)
