"""Arrow's columns become features, targets and times; what cannot is told."""

import math
import re
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood import validation
from sapwood.streams import bad_rows
from sapwood.streams.arrow import MISSING
from sapwood.streams.convert import NUMBER, convert
from sapwood.streams.schema import Rule, Schema
from sapwood.streams.stream import StreamError
from stream_cases import bits

NAN = math.nan
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int8(), pa.string()),
]


def one(role, values, **rule):
    """What becomes of one feature: its column, and the faults as row, reason and value."""
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    schema = Schema(("x",), (Rule("x", role, **rule),), None, None)
    converted = convert(schema, {"x": array}, len(array))
    faults = [(fault.row, fault.reason, fault.value) for fault in converted.faults]
    assert all(fault.column == "x" for fault in converted.faults)
    assert all(fault.remedy == bad_rows.REMEDIES[fault.reason] for fault in converted.faults)
    column = converted.columns["x"]
    good = converted.good
    assert len(column) == (len(array) if good is None else np.count_nonzero(good))
    return column, faults


def numbers(*values, role="number", **rule):
    column, faults = one(role, *values, **rule)
    assert faults == []
    return column.tolist()


def labels(values, **rule):
    column, faults = one("category", values, **rule)
    assert faults == []
    assert {type(label) for label in column} <= {str, int, type(None)}
    return column


# Numbers


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None, -(2**63)], pa.int64()), [1, NAN, -(2.0**63)]),
        (pa.array([2**64 - 1, 2**53 + 1], pa.uint64()), [2.0**64, 2.0**53]),
        (pa.array([1, None], pa.int8()), [1, NAN]),
        (pa.array([np.float16(0.5), None], pa.float16()), [0.5, NAN]),
        (pa.array([0.1], pa.float32()), [float(np.float32(0.1))]),
        (pa.array([0.1, None, NAN]), [0.1, NAN, NAN]),
        (pa.array([True, False, None]), [1, 0, NAN]),
        (pa.array([Decimal("0.10"), None, Decimal("-12345678901234567.89")]), None),
        (pa.array([Decimal("0.1")], pa.decimal256(60, 20)), [0.1]),
        (pa.nulls(2), [NAN, NAN]),
        (pa.array([2.5, None, 2.5]).dictionary_encode(), [2.5, NAN, 2.5]),
        (pa.chunked_array([[1.5], [], [None, 2]], pa.float64()), [1.5, NAN, 2]),
        (pa.chunked_array([], pa.float64()), []),
        (pa.RunEndEncodedArray.from_arrays([2, 3], [7.0, None]), [7, 7, NAN]),
        (pa.array([timedelta(minutes=1), None]), [60, NAN]),
        (pa.array([datetime(1970, 1, 1, 1)]), [3600]),
    ],
)
def test_numbers_of_all_types(array, expected):
    if expected is None:
        expected = [NAN if value is None else float(value) for value in array.to_pylist()]
    np.testing.assert_array_equal(numbers(array), expected)


def test_plain_doubles_are_not_copied():
    values = np.array([1.5, NAN, -2.0])
    column, _ = one("number", pa.array(values))
    assert np.shares_memory(column, values)


def twin(text):
    """What text is as a number: a slow and obvious reading of it."""
    text = text.strip(" \t")
    if text in MISSING or re.fullmatch(r"[+-]?nan(\(\w*\))?", text, re.IGNORECASE | re.ASCII):
        return NAN
    if not text.isascii() or "_" in text or text != text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return None


TEXTS = (
    st.floats().map(repr)
    | st.integers().map(str)
    | st.sampled_from(MISSING)
    | st.text("0123456789.+-eE \t", max_size=9)
    | st.text("0123456789infatyINFATY()_x.", max_size=9)
    | st.text(max_size=5)
)


@given(texts=st.lists(TEXTS | st.none(), max_size=12), kind=st.sampled_from(TEXT_TYPES))
def test_text_is_read_as_numbers_one_by_one(texts, kind):
    expected, faults = [], []
    for row, text in enumerate(texts):
        number = NAN if text is None else twin(text)
        if number is None or math.isinf(number):
            reason = bad_rows.NO_NUMBER if number is None else bad_rows.NOT_FINITE
            faults.append((row, reason, text))
        else:
            expected.append(number)
    column, found = one("number", pa.array(texts).cast(pa.string()).cast(kind))
    assert found == faults
    assert bits(column) == bits(np.array(expected))


@given(text=st.text("0123456789.eE+-infatyINFATY()_ x\n", max_size=12))
def test_the_pattern_of_numbers_is_what_pyarrow_reads(text):
    try:
        pa.array([text]).cast(pa.float64())
    except pa.ArrowInvalid:
        assert re.fullmatch(NUMBER, text, re.ASCII) is None
    else:
        assert re.fullmatch(NUMBER, text, re.ASCII) is not None


# Booleans


@pytest.mark.parametrize("kind", TEXT_TYPES)
def test_booleans_in_text(kind):
    texts = ["true", "FALSE", " 1", "0\t", "tRue", "", "NA", None, "yes", "1.0", "2"]
    column, faults = one("boolean", pa.array(texts).cast(kind))
    np.testing.assert_array_equal(column, [1, 0, 1, 0, 1, NAN, NAN, NAN])
    assert faults == [(row, bad_rows.NO_BOOLEAN, texts[row]) for row in (8, 9, 10)]


def test_booleans_in_other_types():
    assert numbers([True, False], role="boolean") == [1, 0]
    np.testing.assert_array_equal(numbers([1, 0, None], role="boolean"), [1, 0, NAN])
    column, faults = one("boolean", [1.0, 0.5, math.inf])
    assert column.tolist() == [1]
    assert faults == [
        (1, bad_rows.NO_BOOLEAN, "0.5"),
        (2, bad_rows.NO_BOOLEAN, "inf"),
    ]


# Times


def test_times_and_their_parts():
    parts = ("hour", "month")
    rules = (Rule("t", "time", parts=parts), Rule("u", "time", parts=parts))
    schema = Schema(("t", "u"), rules, None, None)
    moments = [datetime(2026, 11, 15, 14, 30), None]
    table = {"t": pa.array(moments, pa.timestamp("ms", "Europe/Oslo")), "u": pa.array([60.5, 0])}
    converted = convert(schema, table, 2)
    assert list(converted.columns) == list(schema.features)
    expected = {"t": 1_794_753_000, "t.hour": 14, "t.month": 11}
    for name, value in expected.items():
        np.testing.assert_array_equal(converted.columns[name], [value, NAN])
    assert converted.columns["u"].tolist() == [60.5, 0]
    assert converted.columns["u.month"].tolist() == [1, 1]


def test_times_in_other_types():
    column, faults = one("time", ["1970-01-02 ", "?", "tomorrow", None])
    np.testing.assert_array_equal(column, [86_400, NAN, NAN])
    assert faults == [(2, bad_rows.NO_TIME, "tomorrow")]
    assert numbers([19700102], role="time") == [19700102]
    assert numbers([19700102], role="time", time_format="%Y%m%d") == [86_400]
    assert numbers([date(1970, 1, 2)], role="time", time_format="%Y%m%d") == [86_400]
    assert one("time", [True, None])[1] == [(0, bad_rows.NO_TIME, "True")]
    assert one("time", [math.inf, 1.0])[1] == [(0, bad_rows.NOT_FINITE, "inf")]


# Labels


@pytest.mark.parametrize("kind", TEXT_TYPES)
def test_labels_in_text(kind):
    texts = ["red", " NA ", "?", "", None, "07", "7", "a b ", "red"]
    assert labels(pa.array(texts).cast(kind)) == [
        *("red", None, None, None, None, "07", "7", "a b ", "red")
    ]


def test_labels_of_other_types_are_their_text():
    assert labels([7, -1, None]) == ["7", "-1", None]
    assert labels([7.0, 0.1, NAN, None]) == ["7.0", "0.1", None, None]
    half = pa.array([np.float16(0.5)], pa.float16())
    assert labels(half) == ["0.5"]
    assert labels(pa.DictionaryArray.from_arrays([0, 0], half)) == ["0.5", "0.5"]
    assert labels([True, False]) == ["true", "false"]
    assert labels([Decimal("7.00")]) == ["7.00"]
    assert labels([date(2026, 11, 15)]) == ["2026-11-15"]
    assert labels(pa.array([datetime(2026, 11, 15)], pa.timestamp("s"))) == ["2026-11-15 00:00:00"]
    assert labels(pa.nulls(2)) == [None, None]
    assert labels(pa.array([b"ab"], pa.binary(2))) == ["ab"]


def test_whole_numbers_are_labels_if_that_was_declared():
    texts = ["7", "7.0", "07", "+7", " 7", "7.50", "7.5", "-0", "1e3", "1e+16", "9" * 20, "-9", "x"]
    assert labels(texts, declared=True) == [
        *(7, 7, "07", "+7", " 7", "7.50", "7.5", "-0", "1e3", 10**16, "9" * 20, -9, "x")
    ]
    assert labels([7, None, 2**63 - 1], declared=True) == [7, None, 2**63 - 1]
    assert labels(pa.array([2**64 - 1], pa.uint64()), declared=True) == [2**64 - 1]
    assert labels([7.0, 7.5, -0.0, 1e300], declared=True) == [7, "7.5", 0, "1e+300"]
    assert labels([Decimal("7.00"), Decimal("7.50")], declared=True) == [7, "7.50"]
    assert labels([True], declared=True) == ["true"]


@given(values=st.lists(st.none() | st.floats(allow_infinity=False), max_size=9), declared=...)
def test_numbers_are_the_same_labels_as_their_text(values: list[float | None], declared: bool):
    texts = [None if value is None else repr(value) for value in values]
    typed = labels(pa.array(values, pa.float64()), declared=declared)
    assert typed == labels(pa.array(texts, pa.string()), declared=declared)


@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=9), declared=...)
def test_whole_numbers_are_the_same_labels_as_their_text(values: list[int | None], declared: bool):
    texts = [None if value is None else str(value) for value in values]
    typed = labels(pa.array(values, pa.int64()), declared=declared)
    assert typed == labels(pa.array(texts, pa.string()), declared=declared)


def test_labels_that_are_none():
    column, faults = one("category", ["x" * (validation.LONGEST + 1), "é" * validation.LONGEST])
    assert column == ["é" * validation.LONGEST]
    assert faults == [(0, bad_rows.LABEL_TOO_LONG, "x" * (validation.LONGEST + 1))]
    column, faults = one("category", [1.0, -math.inf])
    assert (column, faults) == (["1.0"], [(1, bad_rows.NOT_FINITE, "-inf")])


def test_dictionaries_that_are_odd():
    odd = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None, 3, 1], pa.int8()), pa.array(["a", "?", "a", None])
    )
    assert labels(odd) == ["a", "a", None, None, None]
    large = pa.DictionaryArray.from_arrays(
        pa.array([99_999, 5]), pa.array([str(label) for label in range(100_000)])
    )
    assert labels(large) == ["99999", "5"]
    chunked = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    )
    assert labels(chunked) == ["a", "b", "c", "a"]


# Encoding and types


@pytest.mark.parametrize("role", ["number", "boolean", "time", "category"])
@pytest.mark.parametrize("as_string", [False, True])
@pytest.mark.parametrize("dictionary", [False, True])
def test_bytes_that_are_no_text(role, as_string, dictionary):
    array = pa.array([b"?", b"ab\xff", None])
    if as_string:  # as Parquet files of other writers may have it
        array = array.cast(pa.string(), safe=False)
    column, faults = one(role, array.dictionary_encode() if dictionary else array)
    assert faults == [(1, bad_rows.BAD_ENCODING, r"ab\xff")]
    assert bits(column) == bits([None, None] if role == "category" else np.array([NAN, NAN]))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1.0]]),
        pa.array([{"a": 1}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        pa.array([pa.MonthDayNano([1, 1, 1])]),
    ],
)
def test_types_that_are_neither_numbers_nor_text(array):
    with pytest.raises(StreamError, match=r"column 'x' holds .*; leave it out, as by --drop x"):
        one("number", array)


# Faults


TARGETED = Schema(
    ("a", "when", "y", "b"),
    (Rule("a", "number"), Rule("b", "category")),
    Rule("y", "number"),
    Rule("when", "time"),
)


def test_targets_and_times():
    table = {
        "a": pa.array(["1", "2", "3", "4", "5", "6", "7"]),
        "when": pa.array([*["1970-01-02"] * 4, None, "noon", "1970-01-03"]),
        "y": pa.array(["0.5", "", "x", "inf", "1", "2", " 3"]),
        "b": pa.array(["u"] * 7),
    }
    converted = convert(TARGETED, table, 7)
    assert [(fault.row, fault.reason, fault.column, fault.value) for fault in converted.faults] == [
        (2, bad_rows.TARGET_NO_NUMBER, "y", "x"),
        (3, bad_rows.NOT_FINITE, "y", "inf"),
        (4, bad_rows.NO_TIME, "when", None),
        (5, bad_rows.NO_TIME, "when", "noon"),
    ]
    assert converted.columns["a"].tolist() == [1, 2, 7]
    assert converted.columns["b"] == ["u", "u", "u"]
    np.testing.assert_array_equal(converted.y, [0.5, NAN, 3])
    assert converted.times.tolist() == [86_400, 86_400, 172_800]
    assert converted.good.tolist() == [True, True, False, False, False, False, True]


def test_a_target_that_is_null_or_nan_is_missing():
    table = {"a": pa.array([1, 2]), "when": pa.array([0.0, 1.0]), "b": pa.nulls(2)}
    converted = convert(TARGETED, {**table, "y": pa.array([None, NAN])}, 2)
    assert converted.faults == []
    np.testing.assert_array_equal(converted.y, [NAN, NAN])


def test_the_first_fault_in_the_order_of_the_file_is_told():
    table = {
        "b": pa.array([b"\xff", b"\xff", b"u"]),
        "y": pa.array(["x", "1", "x"]),
        "when": pa.array([0, 1, 2]),
        "a": pa.array(["x", "1", "1"]),
    }
    converted = convert(TARGETED, table, 3)
    assert [(fault.row, fault.column) for fault in converted.faults] == [
        (0, "a"),
        (1, "b"),
        (2, "y"),
    ]
    assert converted.columns == {"a": pytest.approx([]), "b": []}


def test_a_column_of_times_may_be_a_feature_too():
    rule = Rule("t", "time", parts=("hour",))
    schema = Schema(("t",), (rule,), None, rule)
    converted = convert(schema, {"t": pa.array(["1970-01-01 05:00", ""])}, 2)
    assert converted.columns["t"].tolist() == converted.times.tolist() == [18_000]
    assert converted.columns["t.hour"].tolist() == [5]
    assert [fault.row for fault in converted.faults] == [1]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["1", " 2.5", "?", "", "x", "inf"]),
        st.sampled_from(["1970-01-02", "1970-01-02T01:00Z", "1970-01-02 00:00:00.1234567", "soon"]),
        st.sampled_from(["3", "-1e5", "", "y"]),
        st.sampled_from(["red", "?", "x" * 1001]),
    ),
    min_size=1,
    max_size=12,
)


@given(rows=ROWS, data=st.data())
def test_each_row_is_judged_by_itself(rows, data):
    """Together, in two parts, or without the bad ones: the others' values are the same."""

    def converted(some):
        columns = zip(*some, strict=True) if some else [[]] * 4
        names = ("a", "when", "y", "b")
        table = {
            name: pa.array(list(column), pa.string())
            for name, column in zip(names, columns, strict=True)
        }
        done = convert(TARGETED, table, len(some))
        values = [*done.columns.values(), done.y, done.times]
        rows = list(zip(*map(bits, values), strict=True))
        return rows, [(fault.row, fault.reason, fault.value) for fault in done.faults]

    whole, faults = converted(rows)
    cut = data.draw(st.integers(0, len(rows)))
    first, first_faults = converted(rows[:cut])
    second, second_faults = converted(rows[cut:])
    assert first + second == whole
    assert first_faults + [(cut + row, *fault) for row, *fault in second_faults] == faults
    bad = {row for row, *_ in faults}
    good = [row for place, row in enumerate(rows) if place not in bad]
    assert converted(good) == (whole, [])
    expected = [
        place
        for place, (a, when, y, b) in enumerate(rows)
        if a in ("x", "inf") or when == "soon" or y == "y" or len(b) > 1000
    ]
    assert sorted(bad) == expected
