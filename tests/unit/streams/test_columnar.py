"""Parquet and Arrow files, alone and in folders, against the table that was written."""

import contextlib
import itertools
import json
import math
import os
import random
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood.streams import bad_rows
from sapwood.streams.blocks import TextSource
from sapwood.streams.columnar import open_columnar
from sapwood.streams.convert import convert
from sapwood.streams.jsonlines import JSONLinesStream
from sapwood.streams.opening import open_stream
from sapwood.streams.schema import ReadOptions, decide
from sapwood.streams.stream import StreamError
from stream_cases import bits, check_resuming, contents_of

READ_OPTIONS = ReadOptions("y", categorical=("zone",), time_parts=("hour",), time="t")
LOOKS = {
    "x": "number",
    "zone": "number",
    "city": "text",
    "open": "boolean",
    "t": "time",
    "y": "number",
}
SCHEMA = pa.schema(
    [
        ("x", pa.float64()),
        ("zone", pa.int64()),
        ("city", pa.string()),
        ("open", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")),
        ("y", pa.float64()),
    ]
)
KINDS = ["parquet", "arrow", "arrows"]


def write(path, table, group=5):
    """Write a table in what the end of a name says, with so many rows in a group."""
    if path.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=group)
        return
    new = pa.ipc.new_stream if path.endswith(".arrows") else pa.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=group)


def table_of(rows):
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def some_rows(count, seed=1):
    rng = random.Random(seed)
    return [
        {
            "x": rng.choice([None, rng.gauss(0, 1), -0.0]),
            "zone": rng.choice([None, rng.randrange(5)]),
            "city": rng.choice([None, "Oslo", "Bonn", "NA"]),
            "open": rng.choice([None, True, False]),
            "t": datetime.fromtimestamp(rng.randrange(10**9), UTC),
            "y": rng.gauss(0, 1),
        }
        for _ in range(count)
    ]


moments = st.datetimes(datetime(1600, 1, 1), datetime(2500, 1, 1), timezones=st.just(UTC))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.none() | st.floats(),
            "zone": st.none() | st.integers(-9, 9),
            "city": st.none() | st.sampled_from(["Oslo", "Bonn", " ?", "x" * 1001]) | st.text(),
            "open": st.none() | st.booleans(),
            "t": st.none() | moments,
            "y": st.none() | st.floats(),
        }
    ),
    max_size=9,
)


def as_text(row):
    """A row as JSON has it, in the order of the columns and with the times as text."""
    text = {**row, "t": None if row["t"] is None else row["t"].isoformat()}
    return {name: text[name] for name in SCHEMA.names}


# The values


@settings(max_examples=60)
@given(rows=ROWS, group=st.integers(1, 6), most_rows=st.integers(1, 9))
def test_all_formats_say_the_same(tmp_path_factory, rows, group, most_rows):
    """As Parquet, Arrow, JSON lines, and as text: values and faults are those of the table."""
    folder = tmp_path_factory.mktemp("formats")
    table = table_of(rows)
    converted = convert(decide("rows", LOOKS, READ_OPTIONS), table, len(rows))
    expected = {name: bits(column) for name, column in converted.columns.items()}
    faults = [(fault.row + 1, fault.reason, fault.column) for fault in converted.faults]
    text = {
        name: pa.array([_field(row[name]) for row in rows], pa.string()) for name in SCHEMA.names
    }
    of_text = convert(decide("rows", LOOKS, READ_OPTIONS), text, len(rows))
    assert {name: bits(column) for name, column in of_text.columns.items()} == expected
    assert [(fault.row + 1, fault.reason, fault.column) for fault in of_text.faults] == faults

    streams = []
    for kind in KINDS:
        path = str(folder / f"rows.{kind}")
        write(path, table, group)
        streams.append(open_columnar(path, READ_OPTIONS))
    if rows:
        path = str(folder / "rows.jsonl")
        with open(path, "w") as file:
            file.writelines(json.dumps(as_text(row)) + "\n" for row in rows)
        known = dict(decide("rows", LOOKS, READ_OPTIONS).features)  # a few rows do not tell them
        streams.append(
            JSONLinesStream(TextSource(path), ReadOptions(**{**vars(READ_OPTIONS), "known": known}))
        )
    for stream in streams:
        found = contents_of(stream, most_rows=most_rows)
        good = len(rows) - len(faults)
        assert found["columns"] == (expected if rows else {})
        assert found["y"] == bits(converted.y)
        assert found["times"] == bits(converted.times)
        assert len(found["numbers"]) == good
        assert [
            (number, reason, column) for _, number, reason, column, *_ in found["bad"]
        ] == faults


def _field(value):
    """A value as a CSV file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    return value if value is None else str(value)


@settings(max_examples=20)
@given(
    rows=ROWS,
    kind=st.sampled_from(KINDS),
    cuts=st.lists(st.integers(0, 9), max_size=2),
    group=st.integers(1, 4),
)
def test_each_position_gives_the_rest(tmp_path_factory, rows, kind, cuts, group):
    """From one file or a folder of several, whatever the groups and the chunks are."""
    folder = tmp_path_factory.mktemp("folder")
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for place, (start, stop) in enumerate(itertools.pairwise(ends)):
        write(str(folder / f"part-{place}.{kind}"), table_of(rows[start:stop]), group)
    found = check_resuming(open_columnar(folder, READ_OPTIONS))
    whole = str(folder / f"_whole.{kind}")
    write(whole, table_of(rows), group)
    alone = contents_of(open_columnar(whole, READ_OPTIONS))
    assert [found[key] for key in ("columns", "y", "times")] == [
        alone[key] for key in ("columns", "y", "times")
    ]
    assert len(found["numbers"]) == len(alone["numbers"])


def test_rows_are_counted_from_one_in_each_file(tmp_path):
    rows = some_rows(7)
    rows[1]["y"] = rows[5]["y"] = math.inf
    for name, some in [("a", rows[:3]), ("b", rows[3:])]:
        write(str(tmp_path / f"{name}.parquet"), table_of(some))
    stream = open_columnar(tmp_path, READ_OPTIONS)
    assert (stream.size, stream.length, stream.unit) == (7, 7, "row")
    assert (stream.target, stream.time, stream.declared) == ("y", "t", ("zone",))
    chunks = list(stream.chunks())
    assert [chunk.numbers.tolist() for chunk in chunks] == [[1, 3], [1, 2, 4]]
    assert [chunk.done for chunk in chunks] == [3, 7]
    assert [os.path.basename(chunk.source) for chunk in chunks] == ["a.parquet", "b.parquet"]
    [bad] = chunks[1].bad
    assert (bad.number, bad.after, bad.reason) == (3, 2, bad_rows.NOT_FINITE)
    assert bad.source == chunks[1].source


def test_a_bad_row_can_be_read_again_as_json(tmp_path):
    row = {
        "x": math.inf,
        "zone": 3,
        "city": "Bø",
        "open": None,
        "t": datetime(2026, 11, 15, 14, 30, tzinfo=UTC),
        "y": 1.5,
    }
    path = str(tmp_path / "rows.arrow")
    table = table_of([row])
    write(path, table.set_column(2, "city", table["city"].combine_chunks().dictionary_encode()))
    [chunk] = open_columnar(path, READ_OPTIONS).chunks()
    [bad] = chunk.bad
    assert (bad.reason, bad.column, bad.value) == (bad_rows.NOT_FINITE, "x", "inf")
    again = json.loads(bad.text)
    assert again.pop("t").startswith("2026-11-15 14:30:00")
    assert again == {"x": math.inf, "zone": 3, "city": "Bø", "open": None, "y": 1.5}


def test_only_what_is_needed_is_read(tmp_path):
    table = table_of(some_rows(20)).append_column("tags", pa.array([["a"]] * 20))
    for kind in KINDS:
        path = str(tmp_path / f"rows.{kind}")
        write(path, table)
        stream = open_columnar(path, ReadOptions("y", drop=("tags", "city"), time_parts=()))
        assert list(stream.features) == ["x", "zone", "open", "t"]
        assert len(contents_of(stream)["y"]) == 20
        with pytest.raises(StreamError, match=r"column 'tags' holds list<.*--drop tags"):
            open_columnar(path, ReadOptions("y"))
        known = open_columnar(
            path, ReadOptions("y", known={"city": "category", "tagged": "number"})
        )
        assert known.features == {"city": "category"}


def test_columns_with_dots_in_their_names(tmp_path):
    path = str(tmp_path / "rows.parquet")
    write(path, pa.table({"a": [1.0], "a.b": ["u"], "y": [2.0]}))
    [chunk] = open_columnar(path, ReadOptions("y")).chunks()
    assert (chunk.columns["a"].tolist(), chunk.columns["a.b"]) == ([1.0], ["u"])
    [chunk] = open_columnar(path, ReadOptions("y", drop=("a",))).chunks()
    assert chunk.columns == {"a.b": ["u"]}


def test_to_go_on_reads_no_row_group_before(tmp_path, monkeypatch):
    path = str(tmp_path / "rows.parquet")
    write(path, table_of(some_rows(20)), group=5)
    stream = open_columnar(path, READ_OPTIONS)
    chunks = list(stream.chunks(None, 6))
    asked = []
    read = pq.ParquetFile.iter_batches

    def watched(self, *args, row_groups, **options):
        asked.append(list(row_groups))
        return read(self, *args, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    assert [chunk.next["group"] for chunk in chunks] == [1, 2, 3, 4]
    for chunk in chunks:
        list(stream.chunks(chunk.next))
    assert asked == [[1, 2, 3], [2, 3], [3]]


# Folders


def test_files_of_a_folder_in_order(tmp_path):
    names = ["b.parquet", "a/2.PQ", "a/10.parquet", "c/z.parquet", "a.parquet", "c.arrow"]
    passed_over = ["_tmp.parquet", ".x.parquet", "_logs/1.parquet", ".git/1.parquet", "notes.txt"]
    for place, name in enumerate([*names, *passed_over]):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if name == "notes.txt":
            path.write_text("no rows")
        else:
            temporary = str(tmp_path / f"tmp.{'arrow' if name.endswith('arrow') else 'parquet'}")
            write(temporary, pa.table({"x": [float(place)], "y": [0.0]}))
            os.rename(temporary, path)
    stream = open_columnar(tmp_path, ReadOptions("y"))
    assert [chunk.columns["x"].tolist() for chunk in stream.chunks()] == [
        [names.index(name)]
        for name in ["a/2.PQ", "a/10.parquet", "a.parquet", "b.parquet", "c/z.parquet", "c.arrow"]
    ]
    assert len(contents_of(open_columnar(tmp_path, ReadOptions("y"), "parquet"))["y"]) == 5


def test_a_folder_without_files(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n")
    with pytest.raises(StreamError, match="is a folder without Parquet or Arrow files"):
        open_columnar(tmp_path, ReadOptions("y"))


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ({"x": [1.0], "z": [1.0]}, r"b\.parquet has no column 'y', unlike .*a\.parquet"),
        ({"x": ["u"], "y": [1.0]}, r"b\.parquet: column 'x' holds string, while .* --drop x"),
        ({"x": [True], "y": [1.0]}, r"b\.parquet: column 'x' holds bool"),
        ({"x": [[1.0]], "y": [1.0]}, r"b\.parquet: column 'x' holds list"),
    ],
)
def test_files_that_differ_are_told_before_any_row(tmp_path, second, complaint):
    write(str(tmp_path / "a.parquet"), pa.table({"x": [1.0], "y": [1.0]}))
    write(str(tmp_path / "b.parquet"), pa.table(second))
    with pytest.raises(StreamError, match=complaint):
        open_columnar(tmp_path, ReadOptions("y"))


def test_files_that_differ_harmlessly(tmp_path):
    write(str(tmp_path / "a.parquet"), pa.table({"x": pa.nulls(1), "y": [1]}))
    write(str(tmp_path / "b.parquet"), pa.table({"y": [2.5], "more": ["u"], "x": ["7"]}))
    write(
        str(tmp_path / "c.parquet"), pa.table({"y": [3], "x": pa.array(["8"]).dictionary_encode()})
    )
    stream = open_columnar(tmp_path, ReadOptions("y"))
    assert stream.features == {"x": "category"}
    found = contents_of(stream)
    assert found["columns"]["x"] == bits([None, "7", "8"])
    assert found["y"] == bits(np.array([1, 2.5, 3]))


def test_two_columns_of_one_name(tmp_path):
    table = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["x", "x", "y"])
    write(str(tmp_path / "rows.arrow"), table)
    with pytest.raises(StreamError, match="has 2 columns 'x': rename all but one"):
        open_columnar(str(tmp_path / "rows.arrow"), ReadOptions("y"))


def test_a_folder_that_has_changed_since(tmp_path):
    for name in ("b", "c"):
        write(str(tmp_path / f"{name}.parquet"), table_of(some_rows(3)))
    stream = open_columnar(tmp_path, READ_OPTIONS)
    first, second = stream.chunks()
    write(str(tmp_path / "d.parquet"), table_of(some_rows(4)))
    behind = open_columnar(tmp_path, READ_OPTIONS)
    assert behind.fingerprint == stream.fingerprint
    assert [len(chunk) for chunk in behind.chunks(first.next)] == [3, 4]
    assert [len(chunk) for chunk in behind.chunks(second.next)] == [4]
    write(str(tmp_path / "a.parquet"), table_of(some_rows(4)))
    before = open_columnar(tmp_path, READ_OPTIONS)
    assert before.fingerprint != stream.fingerprint
    with pytest.raises(StreamError, match="file 1 is not the one that was being read"):
        list(before.chunks(first.next))


@pytest.mark.parametrize("kind", KINDS)
def test_the_fingerprint_is_of_the_first_row_and_the_columns(tmp_path, kind):
    rows = some_rows(9)
    prints = []
    for name, some in [("a", rows[:4]), ("b", rows), ("c", rows[1:])]:
        path = str(tmp_path / f"{name}.{kind}")
        write(path, table_of(some))
        prints.append(open_columnar(path, READ_OPTIONS).fingerprint)
    assert prints[0] == prints[1] != prints[2]


# Files that cannot be read


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_cut_off(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    write(str(path), table_of(some_rows(12)))
    data = path.read_bytes()
    for length in range(0, len(data) - 9, max(1, len(data) // 40)):
        path.write_bytes(data[:length])
        rows = None
        with contextlib.suppress(StreamError):
            rows = len(contents_of(open_columnar(path, READ_OPTIONS))["y"])
        # The streaming format does not tell its end.
        assert rows is None or (kind == "arrows" and rows in (0, 5, 10))
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(StreamError, match=rf"rows\.{kind} cannot be read: .*write it again"):
        contents_of(open_columnar(path, READ_OPTIONS))


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_damaged(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    table = table_of(some_rows(12))
    city = table["city"].combine_chunks()
    write(str(path), table.append_column("twin", city.dictionary_encode()))
    data = path.read_bytes()
    rng = random.Random(5)
    refused = 0
    for _ in range(150):
        spoilt = bytearray(data)
        for _ in range(rng.choice([1, 4])):
            spoilt[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(spoilt)
        try:
            contents_of(open_columnar(path, ReadOptions("y")))
        except StreamError:
            refused += 1
    assert refused > 20


def test_a_file_that_is_something_else(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(StreamError, match=r"rows\.parquet cannot be read: .*write it again"):
        open_columnar(path, ReadOptions("y"))
    path = tmp_path / "rows.data"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(StreamError, match="neither a Parquet nor an Arrow file: give its format"):
        open_columnar(path, ReadOptions("y"))
    path.write_bytes(b"FEA1" + bytes(20))
    with pytest.raises(StreamError, match="Feather file of version 1"):
        open_columnar(path, ReadOptions("y"))
    path.write_bytes(b"")
    with pytest.raises(StreamError, match="is empty"):
        open_columnar(path, ReadOptions("y"))
    with pytest.raises(FileNotFoundError):
        open_columnar(tmp_path / "nothing.parquet", ReadOptions("y"))


def test_remedies_are_those_for_tables(tmp_path):
    path = str(tmp_path / "rows.parquet")
    write(path, pa.table({"x": pa.array([b"\xff"]), "y": [1.0]}))
    [chunk] = open_stream(path, target="y").chunks()
    assert str(chunk.bad[0]).endswith("write the file again with text in UTF-8, or drop the column")
    with pytest.raises(
        StreamError, match=r"encoding is for files of text, and .* is parquet: leave"
    ):
        open_stream(path, target="y", encoding="cp1252")
    write(path, pa.table({"x": [1.0], "y": [[1.0]]}))
    with pytest.raises(StreamError, match=r"'y' holds list.*; name another column to predict$"):
        open_stream(path, target="y")


def test_a_named_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "rows.parquet")
    with pytest.raises(StreamError, match=r"rows\.parquet, which can be read but once, cannot be"):
        open_stream(tmp_path / "rows.parquet", target="y")


def test_texts_and_tables_in_one_folder(tmp_path):
    """Tables are read, unless the format of texts is given."""
    write(str(tmp_path / "a.parquet"), pa.table({"x": [1.0], "y": [1.0]}))
    (tmp_path / "b.csv").write_text("x,y\n2,3\n")
    for format, y in ((None, [1.0]), ("parquet", [1.0]), ("csv", [3.0])):
        [chunk] = open_stream(tmp_path, target="y", format=format).chunks()
        assert chunk.y.tolist() == y


def test_names_that_tell_nothing(tmp_path):
    table = table_of(some_rows(4))
    write(str(tmp_path / "rows.arrows"), table)
    os.rename(tmp_path / "rows.arrows", tmp_path / "rows")
    assert len(contents_of(open_columnar(tmp_path / "rows", READ_OPTIONS, "arrow"))["y"]) == 4
    write(str(tmp_path / "rows.parquet"), table)
    os.rename(tmp_path / "rows.parquet", tmp_path / "rows")
    assert len(contents_of(open_columnar(tmp_path / "rows", READ_OPTIONS))["y"]) == 4


def test_rows_that_are_appended_to_a_parquet_file(tmp_path):
    path = str(tmp_path / "rows.parquet")
    rows = some_rows(11)
    write(path, table_of(rows[:6]), group=4)
    stream = open_columnar(path, READ_OPTIONS)
    *_, last = stream.chunks()
    before = stream.fingerprint
    write(path, table_of(rows), group=100)
    longer = open_columnar(path, READ_OPTIONS)
    assert longer.fingerprint == before
    [chunk] = longer.chunks(last.next)
    assert chunk.numbers.tolist() == [7, 8, 9, 10, 11]
    assert chunk.y.tolist() == [row["y"] for row in rows[6:]]


def test_a_parquet_file_that_changes_while_it_is_read(tmp_path):
    path = str(tmp_path / "rows.parquet")
    write(path, table_of(some_rows(4)))
    stream = open_columnar(path, READ_OPTIONS)
    write(path, table_of(some_rows(6)))
    with pytest.raises(StreamError, match="has changed since it was opened"):
        list(stream.chunks())
