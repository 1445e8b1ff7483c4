"""Rows that are in memory as a stream: arrays, columns, frames and pairs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.streams.memory import ArrayStream, PairStream, as_stream
from sapwood.streams.stream import StreamError

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0) / 4
PAIRS = [
    ({"age": 31, "city": "Oslo", "fee": 0.5}, 2.0),
    ({"age": None, "city": "Rome", "fee": math.nan}, 3),
    ({"age": 2.5, "city": None, "fee": True}, -1.5),
    ({"age": -0.0, "city": "Oslo", "fee": 1e-320}, 0.25),
]
ROWS = [
    ({"age": 31.0, "city": "Oslo", "fee": 0.5}, 2.0),
    ({"age": None, "city": "Rome", "fee": None}, 3.0),
    ({"age": 2.5, "city": None, "fee": 1.0}, -1.5),
    ({"age": -0.0, "city": "Oslo", "fee": 1e-320}, 0.25),
]
COLUMNS = {
    "age": [31, None, 2.5, -0.0],
    "city": np.array(["Oslo", "Rome", None, "Oslo"], dtype=object),
    "fee": np.array([0.5, np.nan, 1.0, 1e-320]),
}
TARGETS = [2.0, 3, -1.5, 0.25]


def frame_of(library):
    frames = pytest.importorskip(library)
    make = frames.table if library == "pyarrow" else frames.DataFrame
    return make({"age": [31.0, None, 2.5, -0.0], "city": list(COLUMNS["city"])})


STREAMS = [
    PairStream(PAIRS),
    ArrayStream(COLUMNS, TARGETS),
    ArrayStream(COLUMNS, np.array(TARGETS, dtype=np.float32)),
]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("most_rows", [1, 2, 3, 4, 100])
def test_rows_are_the_same_in_any_chunks(stream, most_rows):
    rows, numbers, ends = [], [], []
    for chunk in stream.chunks(most_rows=most_rows):
        rows += zip(chunk.rows(), chunk.y.tolist(), strict=True)
        numbers += chunk.numbers.tolist()
        ends.append((chunk.next, chunk.done, chunk.source, list(chunk.bad), chunk.times))
        assert len(chunk) <= most_rows
    assert repr(rows) == repr(ROWS)  # which tells -0.0 from 0.0
    assert numbers == [1, 2, 3, 4]
    stops = [*range(most_rows, 4, most_rows), 4]
    assert ends == [({"row": stop}, stop, "rows", [], None) for stop in stops]
    assert repr(list(stream)) == repr(ROWS)


@given(
    which=st.sampled_from(STREAMS),
    position=st.integers(0, 4),
    most_rows=st.integers(1, 5),
)
def test_a_stream_goes_on_from_any_position(which, position, most_rows):
    chunks = list(which.chunks({"row": position}, most_rows))
    rows = [row for chunk in chunks for row in chunk.rows()]
    assert repr(rows) == repr([x for x, _ in ROWS[position:]])
    numbers = [number for chunk in chunks for number in chunk.numbers.tolist()]
    assert numbers == list(range(position + 1, 5))


def test_an_array():
    stream = ArrayStream(X, Y, "trial", "price")
    chunk = next(stream.chunks(most_rows=4))
    assert {name: column.tolist() for name, column in chunk.columns.items()} == {
        0: [0.0, 2.0, 4.0, 6.0],
        1: [1.0, 3.0, 5.0, 7.0],
    }
    assert chunk.y.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert (stream.name, stream.target, stream.size, stream.length) == ("trial", "price", 6, 6)
    assert stream.features == {0: "number", 1: "number"}
    assert stream.fingerprint == "trial: 0, 1"
    assert (stream.unit, stream.time, stream.declared) == ("row", None, ())


def test_kinds_of_columns():
    stream = ArrayStream(COLUMNS | {"flag": np.array([True, False, True, True])}, TARGETS)
    assert stream.features == {
        "age": "number",
        "city": "category",
        "fee": "number",
        "flag": "number",
    }
    assert next(stream.chunks()).columns["flag"].tolist() == [1.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library):
    stream = ArrayStream(frame_of(library), TARGETS)
    assert stream.features == {"age": "number", "city": "category"}
    (chunk,) = stream.chunks()
    np.testing.assert_equal(chunk.columns["age"], [31.0, math.nan, 2.5, -0.0])
    labels = [label if isinstance(label, str) else None for label in chunk.columns["city"]]
    assert labels == ["Oslo", "Rome", None, "Oslo"]


def test_record_batches_and_streams_of_arrow_are_frames():
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.record_batch({"age": [31.0, None], "city": ["Oslo", "Rome"]})
    reader = pyarrow.RecordBatchReader.from_batches(batch.schema, [batch])
    for rows in (batch, reader):
        (chunk,) = ArrayStream(rows, [1.0, 2.0]).chunks()
        np.testing.assert_equal(chunk.columns["age"], [31.0, math.nan])
        assert chunk.columns["city"] == ["Oslo", "Rome"]


def test_a_frame_that_is_not_computed_yet_is_refused():
    lazy = pytest.importorskip("polars").LazyFrame({"age": [31.0]})
    with pytest.raises(ValueError, match=r"X is a LazyFrame, .*: give X.collect\(\)"):
        ArrayStream(lazy, [1.0])


def test_integers_of_all_widths_become_doubles():
    columns = {kind: np.array([0, 100], dtype=kind) for kind in ("i1", "u1", "i8", "u8", "f2")}
    (chunk,) = ArrayStream(columns, [1, 2]).chunks()
    for column in chunk.columns.values():
        assert (column.dtype, column.tolist()) == (np.float64, [0.0, 100.0])


def test_what_is_given_is_not_changed_later():
    columns, y = {"a": [1.0, 2.0]}, [3.0, 4.0]
    stream = ArrayStream(columns, y)
    columns["a"][0] = y[0] = 99.0
    (chunk,) = stream.chunks()
    assert (chunk.columns["a"].tolist(), chunk.y.tolist()) == ([1.0, 2.0], [3.0, 4.0])


def test_features_that_are_in_some_dicts_only():
    pairs = [({"a": 1.0, "b": "u"}, 1.0), ({"b": "v"}, 2.0), ({"a": 3.0}, 3.0)]
    assert [x for x, _ in PairStream(pairs)] == [
        {"a": 1.0, "b": "u"},
        {"a": None, "b": "v"},
        {"a": 3.0, "b": None},
    ]


def test_pairs_from_a_generator_are_read_as_they_are_needed():
    taken = []

    def pairs():
        for row in range(10):
            taken.append(row)
            yield {"a": float(row)}, 1.0

    stream = PairStream(pairs())
    assert (stream.size, stream.length, stream.features) == (None, None, {})
    chunk = next(stream.chunks(most_rows=4))
    assert chunk.columns["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert taken == [0, 1, 2, 3]


def test_lengths_of_pairs():
    stream = PairStream(PAIRS, "river", "fare")
    assert (stream.size, stream.length, stream.fingerprint) == (4, 4, "river")
    assert stream.target == "fare"


@pytest.mark.parametrize("rows", [(X, Y), (X.tolist(), Y.tolist()), ({"a": X[:, 0]}, Y)])
def test_x_and_y_are_a_stream(rows):
    stream = as_stream(rows)
    assert isinstance(stream, ArrayStream)
    assert [y for _, y in stream] == Y.tolist()


def test_what_is_a_stream_already_and_pairs():
    assert as_stream(STREAMS[0]) is STREAMS[0]
    for pairs in (PAIRS, tuple(PAIRS), iter(PAIRS)):
        stream = as_stream(pairs)
        assert isinstance(stream, PairStream)
        assert repr(list(stream)) == repr(ROWS)
    assert as_stream(PAIRS).name == "list"


@pytest.mark.parametrize("rows", [b"rows", {"a": [1.0]}, 3, None])
def test_what_is_no_stream_is_refused(rows):
    with pytest.raises(StreamError, match="is no stream: give one of sapwood"):
        as_stream(rows)


@pytest.mark.parametrize(
    ("x", "y", "complaint"),
    [
        (X, Y[:5], "column 0 has 6 values and y has 5: the lengths must agree"),
        ({"a": [1.0, 2.0], "b": [1.0]}, [1.0, 2.0], "column 'b' has 1 values and y has 2"),
        (X[0], Y, r"X has shape \(2,\): \(rows, features\) is expected"),
        (X[None], Y, r"X has shape \(1, 6, 2\)"),
        (X, ["a"] * 6, "y = 'a' at position 0 must be a number"),
        (X, Y.reshape(6, 1), r"y has shape \(6, 1\)"),
    ],
)
def test_columns_that_do_not_fit_are_refused(x, y, complaint):
    with pytest.raises(ValueError, match=complaint):
        ArrayStream(x, y)


def test_no_rows():
    assert list(ArrayStream(np.empty((0, 3)), []).chunks()) == []
    assert list(PairStream([]).chunks()) == []
    assert ArrayStream(np.empty((0, 3)), []).length == 0
