"""What the proposed memory.py promises beyond test_memory_streams.py: to be merged into it."""

import contextlib
import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood import HoeffdingTreeRegressor
from sapwood.evaluate import Prequential, prequential
from sapwood.streams.memory import ArrayStream, PairStream
from sapwood.streams.stream import StreamError


def bad_rows(stream, most_rows=8192):
    return [(b.number, b.reason, b.value) for c in stream.chunks(None, most_rows) for b in c.bad]


ODD = [1.0, None, math.nan, math.inf, "5", 2, -math.inf, [], 10**400, np.float32(0.5)]


@pytest.mark.parametrize("most_rows", [1, 3, 100])
def test_targets_that_are_no_finite_numbers_make_bad_rows(most_rows):
    stream = PairStream([({"a": float(row)}, y) for row, y in enumerate(ODD)])
    assert bad_rows(stream, most_rows) == [
        (4, "not finite", "inf"),
        (5, "target is not a number", "5"),
        (7, "not finite", "-inf"),
        (8, "target is not a number", "[]"),
        (9, "not finite", str(10**400)),
    ]
    chunks = list(stream.chunks(None, most_rows))
    found = [y for chunk in chunks for y in chunk.y.tolist()]
    np.testing.assert_array_equal(found, [1.0, math.nan, math.nan, 2.0, 0.5])
    assert [a for chunk in chunks for a in chunk.columns["a"].tolist()] == [0.0, 1.0, 2.0, 5.0, 9.0]
    assert [n for chunk in chunks for n in chunk.numbers.tolist()] == [1, 2, 3, 6, 10]


def test_targets_of_an_array():
    stream = ArrayStream({"a": [0, 1, 2, 3], "c": ["u", "v", "w", "z"]}, [1.0, np.nan, -np.inf, 4])
    assert bad_rows(stream) == [(3, "not finite", "-inf")]
    (chunk,) = stream.chunks()
    assert [bad.after for bad in chunk.bad] == [2]
    assert [row["c"] for row in chunk.rows()] == ["u", "v", "z"]
    np.testing.assert_array_equal(chunk.y, [1.0, math.nan, 4.0])


def test_infinite_features_make_bad_rows():
    columns = {"a": [0, math.inf, 2.0, math.inf], "c": list("uvwz")}
    stream = ArrayStream(columns, [1, 2, 3, math.nan])
    assert bad_rows(stream) == [(2, "not finite", "inf"), (4, "not finite", "inf")]
    (chunk,) = stream.chunks()
    assert [bad.column for bad in chunk.bad] == ["a", "a"]
    assert list(chunk.rows()) == [{"a": 0.0, "c": "u"}, {"a": 2.0, "c": "w"}]


@st.composite
def ragged_pairs(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = []
    for _ in range(draw(st.integers(1, 120))):
        x = {"z": rng.normal()}
        for name in "abcd":
            if rng.random() < 0.5:
                x[name] = rng.choice([3, 2**60, "u", "v"]) if name == "c" else rng.normal()
                x[name] = str(x[name]) if name == "c" and rng.random() < 0.5 else x[name]
        pairs.append((x, float(rng.normal())))
    return pairs


@settings(max_examples=40)
@given(pairs=ragged_pairs(), most_rows=st.integers(1, 50), start=st.integers(0, 120))
def test_rows_of_ragged_pairs_are_the_same_in_any_chunks(pairs, most_rows, start):
    stream = PairStream(pairs)
    rows = [row for chunk in stream.chunks() for row in chunk.rows()]
    others = [row for chunk in stream.chunks({"row": start}, most_rows) for row in chunk.rows()]
    assert others == rows[start:]
    found = []
    for size in (most_rows, 8192):
        run = Prequential(
            HoeffdingTreeRegressor(grace_period=10, delta=0.5), stream, on_bad_row="skip"
        )
        for _ in run.steps(size):
            pass
        found.append((run.model.to_bytes(), run.finish().curve.tobytes()))
    assert found[0] == found[1]
    twin = HoeffdingTreeRegressor(grace_period=10, delta=0.5)
    for x, y in pairs:
        with contextlib.suppress(ValueError):
            twin.predict_learn_many([x], [y])
    assert found[0][0] == twin.to_bytes()


def test_labels_that_are_numbers_in_one_chunk_and_texts_in_another():
    pairs = [({"c": "a"}, 1.0), ({"c": 3}, 2.0)] * 3
    for most_rows in (1, 2, 6):
        run = Prequential(HoeffdingTreeRegressor(), PairStream(pairs))
        for _ in run.steps(most_rows):
            pass
        assert run.rows_learned == 6


def test_values_of_other_types_become_those_of_python():
    pairs = [({"i": np.int64(3), "f": np.float32(0.5), "s": np.str_("u"), "n": np.nan}, 1)]
    (chunk,) = PairStream(pairs).chunks()
    (row,) = chunk.rows()
    assert row == {"i": 3.0, "f": 0.5, "s": "u", "n": None}
    assert {type(value) for value in row.values()} == {float, str, type(None)}


def test_an_integer_that_no_double_reaches_is_refused_by_the_model():
    pairs = [({"a": 1}, 1.0), ({"a": 10**400}, 2.0), ({"a": 3}, 3.0)]
    found = prequential(HoeffdingTreeRegressor(), pairs, on_bad_row="skip")
    assert found.rejected.reasons == {"rejected by the model": 1}


def test_masked_values_are_missing():
    masked = np.ma.array([[1.0, 2.0], [999.0, 4.0]], mask=[[0, 0], [1, 0]])
    for X in (masked, {0: masked[:, 0], 1: masked[:, 1]}):
        (chunk,) = ArrayStream(X, [1.0, 2.0]).chunks()
        np.testing.assert_equal(chunk.columns[0], [1.0, np.nan])
        assert type(chunk.columns[0]) is np.ndarray


def test_tables_with_text():
    for X in (np.array([["1", "u"], ["2", "v"]]), [["1", "u"], ["2", "v"]]):
        (chunk,) = ArrayStream(X, [1.0, 2.0]).chunks()
        assert chunk.columns == {0: ["1", "2"], 1: ["u", "v"]}
    (chunk,) = ArrayStream([[1.5, "u"], [None, "v"]], [1.0, 2.0]).chunks()
    np.testing.assert_equal(chunk.columns[0], [1.5, np.nan])


def test_dates_are_numbers_in_columns_and_refused_in_dicts():
    pandas = pytest.importorskip("pandas")
    days = np.array(["1970-01-02", "NaT"], "M8[ns]")
    for X in ({"day": days}, pandas.DataFrame({"day": days}), days.reshape(2, 1)):
        chunk = next(ArrayStream(X, [1.0, 2.0]).chunks())
        [column] = chunk.columns.values()
        np.testing.assert_array_equal(column, [86_400.0, np.nan])
    spans = {"took": np.array([1500, "NaT"], "m8[ms]")}
    chunk = next(ArrayStream(spans, [1.0, 2.0]).chunks())
    np.testing.assert_array_equal(chunk.columns["took"], [1.5, np.nan])
    rows = [({"t": datetime(2026, 1, 1)}, 1.0), ({"t": 3.0}, 1.0)]
    found = prequential(HoeffdingTreeRegressor(), rows, on_bad_row="skip")
    assert found.rejected.count == 1


@pytest.mark.parametrize("rows", [[1, 2], np.ones((3, 3)), [({"a": 1.0},)], [(3.0, 1.0)], ["ab"]])
def test_what_are_no_pairs_is_refused_in_words(rows):
    with pytest.raises(
        StreamError, match=r"row 1 of .*: a pair of a dict of features and a target"
    ):
        prequential(HoeffdingTreeRegressor(), rows)


def test_missing_labels_of_frames_are_none():
    pandas = pytest.importorskip("pandas")
    (chunk,) = ArrayStream(pandas.DataFrame({"c": ["u", None]}), [1.0, 2.0]).chunks()
    assert chunk.columns["c"] == ["u", None]
