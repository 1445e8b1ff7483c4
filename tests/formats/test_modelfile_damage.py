"""Model files that are damaged, are none, or lie: all are refused by a message that helps."""

import hashlib
import json
import os
import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelfile_cases import ARRAYS, HEADER, KIND, assert_refused, written
from sapwood.storage import container
from sapwood.storage.container import ModelFileError


@pytest.fixture
def data():
    return container.pack(KIND, HEADER, ARRAYS)


@pytest.fixture
def old(tmp_path):
    return written(tmp_path)


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
            container.read(old, KIND)
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
    data = container.pack(KIND, HEADER, ARRAYS)
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
            container.unpack(other, KIND)


@given(st.binary(max_size=200))
def test_any_bytes(tail):
    for start in (b"", container.MAGIC, container.PREFIX.pack(container.MAGIC, 1, 8, 24)):
        with pytest.raises(ModelFileError):
            container.unpack(start + tail, KIND)


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"SAPWOOD\n" * 9, b"{}", b"\n", b"\0" * 999])
def test_a_file_of_something_else(tmp_path, content):
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"notes.txt is not a model file of sapwood.*check"):
        container.read(file, KIND)


def test_a_huge_file_of_something_else_is_not_read(tmp_path):
    file = tmp_path / "video"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ModelFileError, match="video is not a model file of sapwood"):
        container.read(file, KIND)
    packed = container.pack(KIND, {}, {})
    with file.open("r+b") as stream:
        stream.write(packed)
    rest = (1 << 40) - len(packed)
    with pytest.raises(ModelFileError, match=f"video is damaged: {rest} bytes follow"):
        container.read(file, KIND)


def test_an_empty_file(tmp_path):
    file = tmp_path / "empty"
    file.touch()
    with pytest.raises(ModelFileError, match="empty is empty: restore it from a copy"):
        container.read(file, KIND)


def test_paths_without_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        container.read(tmp_path / "nothing", KIND)
    with pytest.raises(IsADirectoryError, match=re.escape(str(tmp_path))):
        container.read(tmp_path, KIND)
    with pytest.raises(NotADirectoryError):
        container.read(Path(sys.executable, "model"), KIND)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="pipe is not a regular file: copy its content"):
        container.read(tmp_path / "pipe", KIND)


@pytest.mark.parametrize("data", [None, "text", 3, [1, 2]])
def test_what_is_not_bytes(data):
    assert_refused(data, f"my.model is {type(data).__name__}: bytes are expected")


def test_another_kind(old):
    with pytest.raises(ModelFileError, match=r"my.model holds 'stump', not 'tree': load it as"):
        container.read(old, "tree")


# Files that lie, with the right checksum


def crafted(text, body=b"", version=1, length=None, size=None):
    """A file with a header and a body of our choice, and a checksum that fits."""
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    text = text.ljust(len(text) + -len(text) % 8)
    whole = container.PREFIX.size + len(text) + len(body) + container.DIGEST
    length = len(text) if length is None else length
    start = container.PREFIX.pack(container.MAGIC, version, length, whole if size is None else size)
    return sealed(start + text + body)


def sealed(content):
    return content + hashlib.blake2b(content, digest_size=container.DIGEST).digest()


def directory(*entries):
    return {"kind": KIND, "header": {}, "arrays": list(entries)}


ENTRY = {"name": "a", "dtype": "<f8", "shape": [2], "offset": 0}
SECOND = {"name": "b", "dtype": "<f8", "shape": [1], "offset": 16}
TWO = np.array([1.0, 2.0]).tobytes()
THREE = np.array([1.0, 2.0, 3.0]).tobytes()


def test_what_is_crafted_without_a_lie_is_read():
    found = container.unpack(crafted(directory(ENTRY, SECOND), THREE), KIND)[1]
    assert found["a"].tolist() == [1.0, 2.0]
    assert found["b"].tolist() == [3.0]


@pytest.mark.parametrize("version", [3, 7, 2**32 - 1])
def test_a_newer_version(version):
    assert_refused(
        crafted(directory(), version=version),
        f"my.model has format version {version} and this release reads up to 2; "
        "it was written by a newer release: upgrade sapwood",
    )


def test_a_version_that_never_was():
    assert_refused(
        crafted(directory(), version=0),
        "has format version 0 and this release reads up to 2; no release wrote it: restore it",
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
        (
            b'{"kind":["stump"],"header":{},"arrays":[]}',
            "its header has an entry of the wrong type",
        ),
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
    assert container.unpack(crafted(directory(ENTRY), body), KIND)[1]["a"].shape == (2,)
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
        found = container.unpack(crafted(directory(*entries), THREE), KIND)[1]
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
