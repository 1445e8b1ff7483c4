"""Model files: what is written comes back, and what cannot be kept is refused."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from modelfile_cases import ARRAYS, HEADER, KIND, assert_refused, assert_same, written
from sapwood.storage import container


@pytest.fixture
def data():
    return container.pack(KIND, HEADER, ARRAYS)


@pytest.fixture
def old(tmp_path):
    return written(tmp_path)


# What comes back


def test_a_file_comes_back(old):
    header, arrays = container.read(old, KIND)
    assert header == HEADER
    assert_same(arrays, ARRAYS)


PLAIN = st.sampled_from(["?", *(f"{kind}{size}" for kind in "iu" for size in "1248")]) | (
    st.sampled_from(["f2", "f4", "f8"])
)
FIELD = st.tuples(st.sampled_from("<>"), PLAIN).map("".join)
RECORD = st.lists(
    st.tuples(st.text(min_size=1, max_size=5), FIELD),
    min_size=1,
    max_size=5,
    unique_by=lambda field: field[0],
)
SHAPE = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False).filter(lambda number: abs(number) < np.inf),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(), parts, max_size=3),
    max_leaves=8,
)


@st.composite
def arrays(draw):
    """An array of any dtype and shape that can be kept, with any bits in it, in any order."""
    dtype = np.dtype(draw(FIELD | RECORD))
    shape = draw(SHAPE)
    size = int(np.prod(shape)) * dtype.itemsize
    array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype).reshape(shape)
    array = array.copy()
    for part in [array[field] for field in dtype.names] if dtype.names else [array]:
        if part.dtype == np.bool_:
            part.view(np.uint8)[...] %= 2
    if draw(st.booleans()):
        array = array.T
    return array[::-1] if array.ndim and draw(st.booleans()) else array


@given(st.text(), st.dictionaries(st.text(), JSON), st.dictionaries(st.text(), arrays()))
def test_any_header_and_arrays_come_back(kind, header, given_arrays):
    data = container.pack(kind, header, given_arrays)
    found_header, found = container.unpack(data, kind)
    assert json.dumps(found_header) == json.dumps(header)
    assert_same(found, given_arrays)
    assert container.pack(kind, found_header, found) == data


def test_the_order_of_keys_is_kept():
    header, found = container.unpack(
        container.pack(KIND, {"b": 1, "a": 2}, {"z": np.zeros(1), "y": np.ones(1)}), KIND
    )
    assert list(header) == ["b", "a"]
    assert list(found) == ["z", "y"]


def test_numbers_are_little_endian_and_aligned():
    data = container.pack(KIND, {}, {"a": np.array([1], ">u2"), "b": np.array([2], ">i8")})
    assert data[:12] == b"\x89Sapwood\x01\0\0\0"
    assert data[-32:-16] == b"\1\0\0\0\0\0\0\0" + b"\2\0\0\0\0\0\0\0"
    assert len(data) % 8 == 0


def test_files_of_the_first_version_can_be_read():
    """A file as the first version has it: these bytes stay, whatever becomes of the code."""
    data = bytes.fromhex("""
        89536170776f6f640100000078000000b0000000000000007b226b696e64223a227374756d70222c
        22686561646572223a7b2261223a5b312c302e355d7d2c22617272617973223a5b7b226e616d6522
        3a226e222c226474797065223a5b5b2278222c223c6634225d2c5b2279222c227c6231225d5d2c22
        7368617065223a5b325d2c226f6666736574223a307d5d7d0000c03f01000000c000000000000000
        521510734e20b741b468a6cef245c09e
    """)
    header, found = container.unpack(data, "stump")
    assert header == {"a": [1, 0.5]}
    assert found["n"].dtype == np.dtype([("x", "f4"), ("y", "?")])
    assert found["n"].tolist() == [(1.5, True), (-2.0, False)]
    again = container.pack("stump", header, found)
    assert again[:12] == data[:12]  # the same version, with the release that wrote it
    assert container.unpack(again, "stump")[0] == header


def test_aligned_records_without_gaps():
    dtype = np.dtype([("x", "f8"), ("i", "i4"), ("j", "i4")], align=True)
    found = container.unpack(container.pack(KIND, {}, {"a": np.zeros(2, dtype)}), KIND)[1]
    assert found["a"].dtype == dtype


def test_the_buffer_may_be_any_bytes(data):
    for form in (bytearray(data), memoryview(data)):
        assert_same(container.unpack(form, KIND)[1], ARRAYS)


def test_strings_and_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    container.write("a", KIND, {}, {})
    container.write(Path("b"), KIND, {"b": 1}, {})
    assert container.read(Path("a"), KIND) == ({}, {})
    assert container.read(str(tmp_path / "b"), KIND) == ({"b": 1}, {})
    assert sorted(os.listdir()) == ["a", "b"]


# What cannot be kept


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(2, object), "has dtype object"),
        (np.zeros(2, "U3"), "has dtype <U3"),
        (np.zeros(2, "V3"), "has dtype |V3"),
        (np.zeros(2, complex), "has dtype complex128"),
        (np.zeros(2, "M8[s]"), "has dtype datetime64[s]"),
        (np.zeros(2, np.longdouble), "has dtype"),
        (np.zeros(2, []), "has dtype []"),
        (np.zeros(2, [("a", object)]), "has dtype [('a', 'O')]"),
        (np.zeros(2, [("a", "f8", 3)]), "has dtype [('a', '<f8', (3,))]"),
        (np.zeros(2, [("a", [("b", "f8")])]), "has dtype [('a', [('b', '<f8')])]"),
        (np.zeros(2, np.dtype("i1,f8", align=True)), "without gaps"),
        (np.zeros(2, [(("title", "a"), "f8")]), "title"),
        (np.zeros((1, 1, 1, 1, 1)), "has 5 dimensions"),
        (np.ma.masked_array([1.0], [True]), "is MaskedArray"),
        ([1.0], "is list"),
        (np.array([0, 2], np.uint8).view(bool), "neither 0 nor 1"),
    ],
)
def test_arrays_that_cannot_be_kept(array, words):
    with pytest.raises(ValueError, match=rf"^array 'a' .*{re.escape(words)}"):
        container.pack(KIND, {}, {"a": array})


def test_a_name_that_is_not_a_string():
    with pytest.raises(ValueError, match="1 is the name of an array: a string is expected"):
        container.pack(KIND, {}, {1: np.zeros(1)})


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"a": np.nan}, "cannot be kept in JSON"),
        ({"a": -np.inf}, "cannot be kept in JSON"),
        ({"a": np.zeros(1)}, "ndarray is not JSON serializable"),
        ({"a": {1, 2}}, "set is not JSON serializable"),
        ({"a": b"b"}, "bytes is not JSON serializable"),
        ({"a": 10**5000}, "cannot be kept in JSON"),
        ({"a": (1, 2)}, "would be changed by JSON"),
        ({1: 2}, "would be changed by JSON"),
        ({1: 2, "1": 3}, "a key is there twice"),
        ({"a": "\ud83d\ude00"}, "would be changed by JSON"),
        ([], "would be changed by JSON"),
        ({"a": nested(31)}, "nested deeper than 32 levels"),
        ({"a": nested(900)}, "nested deeper than 32 levels"),
        ({"a": nested(100_000)}, "cannot be kept in JSON"),
    ],
)
def test_headers_that_cannot_be_kept(header, words):
    with pytest.raises(ValueError, match=words):
        container.pack(KIND, header, {})


def test_the_deepest_header():
    header = {"a": nested(30)}
    assert container.unpack(container.pack(KIND, header, {}), KIND)[0] == header


def test_a_kind_that_is_not_a_string():
    with pytest.raises(ValueError, match="would be changed by JSON"):
        container.pack(None, {}, {})


def test_the_longest_header(monkeypatch):
    monkeypatch.setattr(container, "LONGEST", 1000)
    with pytest.raises(
        ValueError, match=r"the header has 1\d\d\d bytes: keep what is large in arr"
    ):
        container.pack(KIND, {"a": "x" * 1000}, {})
    data = container.pack(KIND, {"a": "x" * 900}, {})
    assert container.unpack(data, KIND)[0] == {"a": "x" * 900}
    monkeypatch.setattr(container, "LONGEST", 500)
    assert_refused(data, "its header cannot have ")


def test_nothing_is_written_if_something_cannot_be_kept(old, data):
    with pytest.raises(ValueError, match="has dtype object"):
        container.write(old, KIND, {}, {"a": np.zeros(2, object)})
    assert old.read_bytes() == data
    assert os.listdir(old.parent) == ["my.model"]
