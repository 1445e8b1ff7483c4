"""Model files: what is written comes back, and all else is refused by a message that helps."""

import errno
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sapwood import atomic, modelfile
from sapwood.modelfile import ModelFileError

KIND = "stump"
HEADER = {"depth": 1, "names": ["a", "ü"], "settings": {"delta": 1e-7, "track": None, "on": True}}
NODES = np.array([(1, -1, 0.5, True), (2, 7, np.nan, False)], "<i4,<i8,<f8,?")
ARRAYS = {"nodes": NODES, "none": np.zeros((0, 3)), "means": np.array([0.5, -2.0, np.inf])}


@pytest.fixture
def data():
    return modelfile.pack(KIND, HEADER, ARRAYS)


@pytest.fixture
def old(tmp_path, data):
    """A file that holds a model already."""
    file = tmp_path / "my.model"
    modelfile.write(file, KIND, HEADER, ARRAYS)
    assert file.read_bytes() == data
    return file


def assert_same(found, expected):
    """Assert that arrays are equal to the last bit, and their own."""
    assert list(found) == list(expected)
    for name, array in found.items():
        given = expected[name]
        assert array.dtype == given.dtype.newbyteorder("=")
        assert array.shape == given.shape
        assert array.tobytes() == given.astype(array.dtype).tobytes()
        assert array.dtype.isnative
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert array.flags.owndata


def assert_refused(data, words):
    with pytest.raises(ModelFileError, match=re.escape(words)) as caught:
        modelfile.unpack(data, KIND, source="my.model")
    assert str(caught.value).startswith("my.model ")


# What comes back


def test_a_file_comes_back(old):
    header, arrays = modelfile.read(old, KIND)
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
    data = modelfile.pack(kind, header, given_arrays)
    found_header, found = modelfile.unpack(data, kind)
    assert json.dumps(found_header) == json.dumps(header)
    assert_same(found, given_arrays)
    assert modelfile.pack(kind, found_header, found) == data


def test_the_order_of_keys_is_kept():
    header, found = modelfile.unpack(
        modelfile.pack(KIND, {"b": 1, "a": 2}, {"z": np.zeros(1), "y": np.ones(1)}), KIND
    )
    assert list(header) == ["b", "a"]
    assert list(found) == ["z", "y"]


def test_numbers_are_little_endian_and_aligned():
    data = modelfile.pack(KIND, {}, {"a": np.array([1], ">u2"), "b": np.array([2], ">i8")})
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
    header, found = modelfile.unpack(data, "stump")
    assert header == {"a": [1, 0.5]}
    assert found["n"].dtype == np.dtype([("x", "f4"), ("y", "?")])
    assert found["n"].tolist() == [(1.5, True), (-2.0, False)]
    assert modelfile.pack("stump", header, found) == data


def test_aligned_records_without_gaps():
    dtype = np.dtype([("x", "f8"), ("i", "i4"), ("j", "i4")], align=True)
    found = modelfile.unpack(modelfile.pack(KIND, {}, {"a": np.zeros(2, dtype)}), KIND)[1]
    assert found["a"].dtype == dtype


def test_the_buffer_may_be_any_bytes(data):
    for form in (bytearray(data), memoryview(data)):
        assert_same(modelfile.unpack(form, KIND)[1], ARRAYS)


def test_strings_and_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modelfile.write("a", KIND, {}, {})
    modelfile.write(Path("b"), KIND, {"b": 1}, {})
    assert modelfile.read(Path("a"), KIND) == ({}, {})
    assert modelfile.read(str(tmp_path / "b"), KIND) == ({"b": 1}, {})
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
        modelfile.pack(KIND, {}, {"a": array})


def test_a_name_that_is_not_a_string():
    with pytest.raises(ValueError, match="1 is the name of an array: a string is expected"):
        modelfile.pack(KIND, {}, {1: np.zeros(1)})


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
        modelfile.pack(KIND, header, {})


def test_the_deepest_header():
    header = {"a": nested(30)}
    assert modelfile.unpack(modelfile.pack(KIND, header, {}), KIND)[0] == header


def test_a_kind_that_is_not_a_string():
    with pytest.raises(ValueError, match="would be changed by JSON"):
        modelfile.pack(None, {}, {})


def test_the_longest_header(monkeypatch):
    monkeypatch.setattr(modelfile, "LONGEST", 1000)
    with pytest.raises(
        ValueError, match=r"the header has 1\d\d\d bytes: keep what is large in arr"
    ):
        modelfile.pack(KIND, {"a": "x" * 1000}, {})
    data = modelfile.pack(KIND, {"a": "x" * 900}, {})
    assert modelfile.unpack(data, KIND)[0] == {"a": "x" * 900}
    monkeypatch.setattr(modelfile, "LONGEST", 500)
    assert_refused(data, "its header cannot have ")


def test_nothing_is_written_if_something_cannot_be_kept(old, data):
    with pytest.raises(ValueError, match="has dtype object"):
        modelfile.write(old, KIND, {}, {"a": np.zeros(2, object)})
    assert old.read_bytes() == data
    assert os.listdir(old.parent) == ["my.model"]


# Damage


def test_cut_at_every_length(old, data):
    for length in range(len(data)):
        old.write_bytes(data[:length])
        words = (
            "is empty"
            if length == 0
            else "bytes are too few"
            if length < 40
            else (f"is damaged: {length} bytes are there of {len(data)}; restore it from a copy")
        )
        with pytest.raises(ModelFileError, match=words) as caught:
            modelfile.read(old, KIND)
        assert str(old) in str(caught.value)
        assert_refused(data[:length], words)


@pytest.mark.parametrize("tail", [b"\0", b"\n", b"\0" * 8, b"x" * 1000])
def test_bytes_that_follow(data, tail):
    assert_refused(data + tail, f"is damaged: {len(tail)} bytes follow its end; restore it")
    assert_refused(data + data, f"is damaged: {len(data)} bytes follow its end; restore it")


def test_every_bit_flipped(data):
    for place in range(len(data)):
        for flip in (*(1 << bit for bit in range(8)), 0xFF):
            damaged = bytearray(data)
            damaged[place] ^= flip
            if place < 8:
                words = "is not a model file of sapwood"
            elif 16 <= place < 24:
                words = (
                    "bytes are there of" if damaged[16:24][::-1] > data[16:24][::-1] else "follow"
                )
            else:
                words = "is damaged: its checksum does not match; restore it from a copy"
            assert_refused(bytes(damaged), words)


@given(st.randoms(use_true_random=False))
def test_stretches_that_are_lost_or_moved(random):
    data = modelfile.pack(KIND, HEADER, ARRAYS)
    start, stop = sorted(random.sample(range(len(data) + 1), 2))
    other = random.choice(
        [
            data[:start] + data[stop:],
            data[:start] + bytes(stop - start) + data[stop:],
            data[:start] + random.randbytes(stop - start) + data[stop:],
            data[:start] + data[start:stop][::-1] + data[stop:],
            data[:start] + data[start:stop] * 2 + data[stop:],
        ]
    )
    if other != data:
        with pytest.raises(ModelFileError):
            modelfile.unpack(other, KIND)


@given(st.binary(max_size=200))
def test_any_bytes(tail):
    for start in (b"", modelfile.MAGIC, modelfile.PREFIX.pack(modelfile.MAGIC, 1, 8, 24)):
        with pytest.raises(ModelFileError):
            modelfile.unpack(start + tail, KIND)


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"SAPWOOD\n" * 9, b"{}", b"\n", b"\0" * 999])
def test_a_file_of_something_else(tmp_path, content):
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"notes.txt is not a model file of sapwood.*check"):
        modelfile.read(file, KIND)


def test_a_huge_file_of_something_else_is_not_read(tmp_path):
    file = tmp_path / "video"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ModelFileError, match="video is not a model file of sapwood"):
        modelfile.read(file, KIND)
    with file.open("r+b") as stream:
        stream.write(modelfile.pack(KIND, {}, {}))
    with pytest.raises(ModelFileError, match=f"video is damaged: {(1 << 40) - 80} bytes follow"):
        modelfile.read(file, KIND)


def test_an_empty_file(tmp_path):
    file = tmp_path / "empty"
    file.touch()
    with pytest.raises(ModelFileError, match="empty is empty: restore it from a copy"):
        modelfile.read(file, KIND)


def test_paths_without_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        modelfile.read(tmp_path / "nothing", KIND)
    with pytest.raises(IsADirectoryError, match=re.escape(str(tmp_path))):
        modelfile.read(tmp_path, KIND)
    with pytest.raises(NotADirectoryError):
        modelfile.read(Path(sys.executable, "model"), KIND)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="pipe is not a regular file: copy its content"):
        modelfile.read(tmp_path / "pipe", KIND)


@pytest.mark.parametrize("data", [None, "text", 3, [1, 2]])
def test_what_is_not_bytes(data):
    assert_refused(data, f"my.model is {type(data).__name__}: bytes are expected")


def test_another_kind(old):
    with pytest.raises(ModelFileError, match=r"my.model holds 'stump', not 'tree': load it as"):
        modelfile.read(old, "tree")


# Files that lie, with the right checksum


def crafted(text, body=b"", version=1, length=None, size=None):
    """A file with a header and a body of our choice, and a checksum that fits."""
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    text = text.ljust(len(text) + -len(text) % 8)
    whole = modelfile.PREFIX.size + len(text) + len(body) + modelfile.DIGEST
    length = len(text) if length is None else length
    start = modelfile.PREFIX.pack(modelfile.MAGIC, version, length, whole if size is None else size)
    return sealed(start + text + body)


def sealed(content):
    return content + hashlib.blake2b(content, digest_size=modelfile.DIGEST).digest()


def directory(*entries):
    return {"kind": KIND, "header": {}, "arrays": list(entries)}


ENTRY = {"name": "a", "dtype": "<f8", "shape": [2], "offset": 0}
SECOND = {"name": "b", "dtype": "<f8", "shape": [1], "offset": 16}
TWO = np.array([1.0, 2.0]).tobytes()
THREE = np.array([1.0, 2.0, 3.0]).tobytes()


def test_what_is_crafted_without_a_lie_is_read():
    found = modelfile.unpack(crafted(directory(ENTRY, SECOND), THREE), KIND)[1]
    assert found["a"].tolist() == [1.0, 2.0]
    assert found["b"].tolist() == [3.0]


@pytest.mark.parametrize("version", [2, 7, 2**32 - 1])
def test_a_newer_version(version):
    assert_refused(
        crafted(directory(), version=version),
        f"my.model has format version {version} and this release reads version 1; "
        "it was written by a newer release: upgrade sapwood",
    )


def test_a_version_that_never_was():
    assert_refused(
        crafted(directory(), version=0),
        "has format version 0 and this release reads version 1; no release wrote it: restore it",
    )


@pytest.mark.parametrize("size", [0, 1, 71, 87, 2**31, 2**63, 2**64 - 1])
def test_another_size_of_the_file(size):
    data = crafted(directory(), size=size)
    there = len(data)
    words = f"{there} bytes are there of {size}" if size > there else f"{there - size} bytes follow"
    assert_refused(data, words)


@pytest.mark.parametrize("length", [1, 47, 49, 56, 2**26, 2**26 + 8, 2**31, 2**32 - 8])
def test_a_header_that_reaches_too_far(length):
    assert_refused(crafted(directory(), length=length), f"its header cannot have {length} bytes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "its header cannot be read (Expecting value"),
        (b"{", "its header cannot be read (Expecting property name"),
        (b"{} {}", "its header cannot be read (Extra data"),
        (b"\xff\xfe{}", "its header cannot be read ('ascii' codec"),
        ("{}".encode("utf-16"), "its header cannot be read ('ascii' codec"),
        (b'{"a":NaN}', "'NaN' is not a finite number"),
        (b'{"a":-Infinity}', "'-Infinity' is not a finite number"),
        (b'{"a":1e999}', "'1e999' is not a finite number"),
        (b"9" * 10_000, "its header cannot be read (Exceeds the limit"),
        (b"[" * 100_000, "nested deeper than 32 levels"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper than 32 levels"),
        (b'{"a":' * 100_000, "nested deeper than 32 levels"),
        (b'{"kind":"stump","kind":"stump"}', "a key is there twice, among ['kind']"),
        (b'{"kind":"stump","header":{"b":1,"b":1},"arrays":[]}', "a key is there twice"),
        (b"null", "other entries than kind, header and arrays"),
        (b"[]", "other entries than kind, header and arrays"),
        (b"3", "other entries than kind, header and arrays"),
        (b"{}", "other entries than kind, header and arrays"),
        (b'{"kind":"stump","header":{}}', "other entries than kind, header and arrays"),
        (b'{"kind":"stump","header":{},"arrays":[],"x":0}', "other entries than"),
        (b'{"kind":"stump","header":[],"arrays":[]}', "an entry of the wrong type"),
        (b'{"kind":"stump","header":{},"arrays":{}}', "an entry of the wrong type"),
        (b'{"kind":"tree","header":{},"arrays":[]}', "holds 'tree', not 'stump'"),
        (b'{"kind":["stump"],"header":{},"arrays":[]}', "holds ['stump'], not 'stump'"),
        (b'{"kind":"' + b"x" * 9999 + b'","header":{},"arrays":[]}', "holds 'xxxxxxxxxxxx..."),
    ],
)
def test_headers_that_lie(text, words):
    assert_refused(crafted(text), words)


@pytest.mark.parametrize("depth", [31, 32, *range(900, 1001, 10)])
def test_headers_nested_almost_too_deep(depth):
    text = f'{{"kind":"stump","header":{{"a":{"[" * depth}{"]" * depth}}},"arrays":[]}}'
    assert_refused(crafted(text.encode()), "nested deeper than 32 levels")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dtype": "O"}, "array 'a' has dtype 'O', not an allowed one"),
        ({"dtype": "|O"}, "not an allowed one"),
        ({"dtype": ">f8"}, "not an allowed one"),
        ({"dtype": "f8"}, "not an allowed one"),
        ({"dtype": "<f16"}, "not an allowed one"),
        ({"dtype": "<f8,<f8"}, "not an allowed one"),
        ({"dtype": "(2,)<f8"}, "not an allowed one"),
        ({"dtype": "|V8"}, "not an allowed one"),
        ({"dtype": "<U2"}, "not an allowed one"),
        ({"dtype": "<M8[s]"}, "not an allowed one"),
        ({"dtype": "sapwood"}, "not an allowed one"),
        ({"dtype": ""}, "not an allowed one"),
        ({"dtype": None}, "array 'a' has dtype None, not an allowed one"),
        ({"dtype": 8}, "not an allowed one"),
        ({"dtype": {}}, "not an allowed one"),
        ({"dtype": []}, "array 'a' has dtype [], not an allowed one"),
        ({"dtype": ["<f8"]}, "not an allowed one"),
        ({"dtype": [["x"]]}, "not an allowed one"),
        ({"dtype": [["x", "O"]]}, "not an allowed one"),
        ({"dtype": [["x", ["<f8"]]]}, "not an allowed one"),
        ({"dtype": [["x", [["y", "<f8"]]]]}, "not an allowed one"),
        ({"dtype": [["x", "<f8", [2]]]}, "not an allowed one"),
        ({"dtype": [["x", "<f8", 10**12]]}, "not an allowed one"),
        ({"dtype": [["", "<f8"]]}, "not an allowed one"),
        ({"dtype": [[1, "<f8"]]}, "not an allowed one"),
        ({"dtype": [[["t", "x"], "<f8"]]}, "not an allowed one"),
        ({"dtype": [["x", "<f8"], ["x", "<f8"]]}, "not an allowed one"),
        ({"shape": None}, "array 'a' has shape None, which no array can have"),
        ({"shape": 2}, "which no array can have"),
        ({"shape": "2"}, "which no array can have"),
        ({"shape": {"0": 2}}, "which no array can have"),
        ({"shape": [1, 1, 1, 1, 2]}, "array 'a' has shape [1, 1, 1, 1, 2], which no array"),
        ({"shape": [-1]}, "array 'a' has shape [-1], which no array can have"),
        ({"shape": [-1, -2]}, "which no array can have"),
        ({"shape": [2.0]}, "which no array can have"),
        ({"shape": [True, 2]}, "which no array can have"),
        ({"shape": ["2"]}, "which no array can have"),
        ({"shape": [[2]]}, "which no array can have"),
        ({"shape": [2**60]}, "which no array can have"),
        ({"shape": [2**63]}, "which no array can have"),
        ({"shape": [2**64 + 2]}, "which no array can have"),
        ({"shape": [10**4000] * 4}, "which no array can have"),
        ({"shape": [2**32, 2**32]}, "which no array can have"),
        ({"shape": [2**61 + 1, 8]}, "which no array can have"),
        ({"shape": [0, 2**62, 2**62]}, "which no array can have"),
        ({"shape": [2**40]}, f"array 'a' of {2**43} bytes reaches past the end"),
        ({"shape": [3]}, "array 'a' of 24 bytes reaches past the end"),
        ({"shape": [1]}, "8 bytes follow its last array"),
        ({"shape": []}, "8 bytes follow its last array"),
        ({"shape": [0]}, "16 bytes follow its last array"),
        ({"dtype": "<f4"}, "8 bytes follow its last array"),
        ({"dtype": "|b1", "shape": [16]}, "has a boolean that is neither 0 nor 1"),
        ({"dtype": [["x", "<f4"], ["y", "|b1"], ["z", "|i1"], ["u", "<u2"]]}, "neither 0 nor 1"),
        ({"dtype": "|u1", "shape": [15]}, "array 'a' is not followed by zeros"),
        ({"offset": -8}, "array 'a' starts at -8, outside of the file"),
        ({"offset": 24}, "array 'a' starts at 24, outside of the file"),
        ({"offset": 2**63}, "outside of the file"),
        ({"offset": -(10**4000)}, "outside of the file"),
        ({"offset": None}, "array 'a' starts at None, outside of the file"),
        ({"offset": 0.0}, "outside of the file"),
        ({"offset": False}, "outside of the file"),
        ({"offset": "0"}, "outside of the file"),
        ({"offset": 8, "shape": [1]}, "array 'a' leaves a gap before it"),
        ({"offset": 4, "shape": [1]}, "array 'a' leaves a gap before it"),
        ({"offset": 16, "shape": [0]}, "array 'a' leaves a gap before it"),
        ({"name": 3}, "the name of array 3 is not a string"),
        ({"name": ["a"]}, "the name of array ['a'] is not a string"),
        ({"name": None}, "the name of array None is not a string"),
        ({"order": "F"}, "entry 0 of its directory is not one of an array"),
    ],
)
def test_directories_that_lie(change, words):
    body = b"\1\2\3\4\5" + b"\6" * 11
    assert modelfile.unpack(crafted(directory(ENTRY), body), KIND)[1]["a"].shape == (2,)
    assert_refused(crafted(directory({**ENTRY, **change}), body), words)


@pytest.mark.parametrize("name", sorted(ENTRY))
def test_entries_that_miss_something(name):
    entry = {key: value for key, value in ENTRY.items() if key != name}
    assert_refused(crafted(directory(entry), TWO), "entry 0 of its directory is not one of an")


@pytest.mark.parametrize("entry", [None, 3, "a", [], ["a", "<f8", [2], 0], {}])
def test_entries_that_are_none(entry):
    assert_refused(crafted(directory(ENTRY, entry), TWO), "entry 1 of its directory is not one of")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a"}, "array 'a' is there twice"),
        ({"offset": 0}, "array 'b' overlaps the one before"),
        ({"offset": 8}, "array 'b' overlaps the one before"),
        ({"offset": 15}, "array 'b' overlaps the one before"),
        ({"offset": 24}, "array 'b' leaves a gap before it"),
        ({"offset": 32}, "array 'b' starts at 32, outside of the file"),
        ({"shape": [2]}, "array 'b' of 16 bytes reaches past the end"),
    ],
)
def test_second_entries_that_lie(change, words):
    assert_refused(crafted(directory(ENTRY, {**SECOND, **change}), THREE), words)


def test_arrays_that_miss_their_filling():
    entry = {**ENTRY, "dtype": "|u1", "shape": [3]}
    assert_refused(crafted(directory(entry), b"123"), "array 'a' of 3 bytes reaches past the end")


NASTY = [None, True, -1, 0, 1, 2, 8, 2**31, 2**63, 10**30, 0.5, "", "a", "<f8", [], [0], [2], {}]


@settings(max_examples=200)
@given(st.data())
def test_a_lie_is_refused_or_harmless(data):
    entries = [dict(ENTRY), dict(SECOND)]
    for _ in range(data.draw(st.integers(1, 3))):
        entry = data.draw(st.sampled_from(entries))
        entry[data.draw(st.sampled_from(sorted(ENTRY)))] = data.draw(st.sampled_from(NASTY))
    try:
        found = modelfile.unpack(crafted(directory(*entries), THREE), KIND)[1]
    except ModelFileError:
        return
    assert [array.size for array in found.values()] == [2, 1]


def test_nothing_is_allocated_for_a_claim():
    claims = [
        crafted(directory({**ENTRY, "shape": [2**36]}), TWO),
        crafted(directory({**ENTRY, "shape": [2**20, 2**20]}), TWO),
        crafted(directory(), length=2**32 - 8),
        crafted(directory(), size=2**40),
    ]
    tracemalloc.start()
    for data in claims:
        assert_refused(data, "is damaged")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


# Atomic writing


class OutOfOrderError(OSError):
    """A failure that only these tests raise."""


def failing(*_, **__):
    raise OutOfOrderError(errno.EIO, "Out of order")


class FullDisk:
    """A file that takes some bytes and then no more."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def fileno(self):
        return self.stream.fileno()

    def write(self, data):
        self.stream.write(data[:10])
        self.stream.flush()
        raise OutOfOrderError(errno.ENOSPC, "Out of order")


def open_on_a_full_disk(*arguments, **options):
    return FullDisk(open(*arguments, **options))


@pytest.mark.parametrize("step", ["open", "chmod", "write", "fsync", "replace"])
def test_a_failure_leaves_the_old_file(old, data, monkeypatch, step):
    old.chmod(0o666)  # wider than a new one
    if step == "write":
        monkeypatch.setattr(atomic, "open", open_on_a_full_disk, raising=False)
    else:
        monkeypatch.setattr(os, step, failing)
    with pytest.raises(OutOfOrderError, match=re.escape(f"Out of order: '{old}'")):
        modelfile.write(old, KIND, {"new": True}, {})
    monkeypatch.undo()
    assert old.read_bytes() == data
    assert os.listdir(old.parent) == ["my.model"]


def test_a_failure_without_an_old_file_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutOfOrderError):
        modelfile.write(tmp_path / "new", KIND, {}, {})
    assert os.listdir(tmp_path) == []


def test_an_interruption_leaves_the_old_file(old, data, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        modelfile.write(old, KIND, {"new": True}, {})
    assert old.read_bytes() == data
    assert os.listdir(old.parent) == ["my.model"]


def test_the_order_of_the_steps(old, monkeypatch):
    """The content is on the disk before the name is, and the name before the call returns."""
    steps = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(handle):
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        steps.append("folder" if folder else f"{os.fstat(handle).st_size} bytes")
        fsync(handle)

    def note_replace(source, target):
        assert os.path.dirname(source) == os.path.dirname(target) == str(old.parent)
        steps.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    modelfile.write(old, KIND, {}, {})
    assert steps == [f"{len(modelfile.pack(KIND, {}, {}))} bytes", "replace", "folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
def test_a_folder_that_cannot_be_flushed(old, monkeypatch, code):
    fsync = os.fsync

    def fail_for_folders(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fail_for_folders)
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            modelfile.write(old, KIND, {"new": True}, {})
    else:
        modelfile.write(old, KIND, {"new": True}, {})
    assert modelfile.read(old, KIND) == ({"new": True}, {})
    assert os.listdir(old.parent) == ["my.model"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions(tmp_path, umask):
    file = tmp_path / "model"
    before = os.umask(umask)
    try:
        modelfile.write(file, KIND, {}, {})
        assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask
        for mode in (0o600, 0o640, 0o666):
            file.chmod(mode)
            modelfile.write(file, KIND, {}, {})
            assert stat.S_IMODE(file.stat().st_mode) == mode
    finally:
        os.umask(before)


def test_a_private_file_is_never_open_to_others(old, monkeypatch):
    modes = []
    fsync = os.fsync

    def note(handle):
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        fsync(handle)

    def create(file, flags, mode=0o777, **_):
        modes.append(mode)
        return real(file, flags, mode)

    real = os.open
    old.chmod(0o600)
    monkeypatch.setattr(os, "open", create)
    monkeypatch.setattr(os, "fsync", note)
    modelfile.write(old, KIND, {}, {})
    assert modes[:2] == [0o600, 0o600]


def test_a_file_that_may_not_be_written(old, data, monkeypatch):
    monkeypatch.setattr(os, "access", lambda file, mode: mode != os.W_OK)  # as root may do all
    with pytest.raises(PermissionError, match=re.escape(f"Permission denied: '{old}'")):
        modelfile.write(old, KIND, {}, {})
    assert old.read_bytes() == data


def test_paths_that_cannot_be_written(tmp_path):
    for path in ("", str(tmp_path), f"{tmp_path}/", f"{tmp_path}/new/"):
        with pytest.raises(IsADirectoryError, match=re.escape(f"Is a directory: '{path}'")):
            modelfile.write(path, KIND, {}, {})
    with pytest.raises(FileNotFoundError, match=re.escape(f"'{tmp_path}/no/model'")):
        modelfile.write(tmp_path / "no" / "model", KIND, {}, {})
    with pytest.raises(NotADirectoryError):
        modelfile.write(Path(sys.executable, "model"), KIND, {}, {})
    assert os.listdir(tmp_path) == []


def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"Not a regular file: '.*pipe'"):
        modelfile.write(tmp_path / "pipe", KIND, {}, {})
    assert (tmp_path / "pipe").is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/model")
    for depth in (1, 2):
        modelfile.write(tmp_path / "link", KIND, {"depth": depth}, {})
        assert (tmp_path / "link").is_symlink()
        assert modelfile.read(tmp_path / "folder" / "model", KIND) == ({"depth": depth}, {})
    assert os.listdir(tmp_path / "folder") == ["model"]


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "..model", "a b\n", "\udc80"])
def test_unusual_names(tmp_path, name):
    for depth in (1, 2):
        modelfile.write(tmp_path / name, KIND, {"depth": depth}, {})
    assert modelfile.read(tmp_path / name, KIND) == ({"depth": 2}, {})
    assert os.listdir(tmp_path) == [name]


def test_two_writers_do_not_collide(tmp_path):
    file = tmp_path / "model"
    arrays = {1: {"a": np.full(1000, 1.0)}, 2: {"a": np.full(5000, 2.0)}}
    failures = []

    def save(writer):
        try:
            for _ in range(30):
                modelfile.write(file, KIND, {"writer": writer}, arrays[writer])
                header, found = modelfile.read(file, KIND)
                assert_same(found, arrays[header["writer"]])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=[writer]) for writer in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["model"]


SAVE_FOR_EVER = """
import sys
import numpy as np
from sapwood import modelfile

path, count = sys.argv[1], int(sys.argv[2])
while True:
    count += 1
    modelfile.write(path, "stump", {"count": count}, {"a": np.full(100_000 + count, float(count))})
    print(count, flush=True)
"""


def test_killed_while_saving(tmp_path):
    file = tmp_path / "model"
    last = 0
    rng = np.random.default_rng(0)
    for _ in range(12):
        command = [sys.executable, "-c", SAVE_FOR_EVER, str(file), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(rng.integers(1, 20)):
                saved = int(process.stdout.readline())
                count = check_saved(file)
                assert count >= saved > last
            threading.Event().wait(rng.uniform(0, 0.01))
            process.send_signal(signal.SIGKILL)
            saved = max([saved, *map(int, process.stdout.read().split())])
        assert process.returncode == -signal.SIGKILL
        last = check_saved(file)
        assert last in (saved, saved + 1)
    left = [name for name in os.listdir(tmp_path) if name != "model"]
    assert all(re.fullmatch(r"\.model\.[0-9a-f]{16}\.tmp", name) for name in left)


def check_saved(file):
    header, arrays = modelfile.read(file, KIND)
    count = header["count"]
    assert arrays["a"].shape == (100_000 + count,)
    assert (arrays["a"] == count).all()
    return count
