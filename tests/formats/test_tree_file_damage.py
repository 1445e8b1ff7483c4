"""Damaged files of trees: a change at any place is refused, or does no harm."""

import copy
import os

import numpy as np
import pytest

import sapwood
from cases import run_apart
from places import SUPPORT
from sapwood import ModelFileError, QuantizerObserver
from sapwood.tree import tree_state
from tree_file_cases import (
    CRAFTED,
    FLOATS,
    INTEGERS,
    Tree,
    assert_refused,
    fuzz,
    packed,
    refused_or_harmless,
)

# Damage, which the checksum finds


@pytest.fixture(scope="module")
def small():
    tree = Tree(observer=QuantizerObserver(slots=16), leaf="mean")
    tree.learn_many({"a": [1.0, 2.0, 3.0]}, [1.0, 2.0, 3.0])
    data = tree.to_bytes()
    assert len(data) < 7500
    return data


def test_cut_at_every_length(small):
    for length in range(len(small)):
        assert_refused(small[:length])
    assert_refused(small + b"\0")
    assert_refused(small + small)


def test_flipped_at_every_byte(small):
    for place in range(len(small)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(small)
            damaged[place] ^= flip
            assert_refused(bytes(damaged))


def test_a_damaged_file_is_named(small, tmp_path):
    path = tmp_path / "my.sapwood"
    for data in (small[:-9], small[:400] + b"?" + small[401:]):
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"damaged.*restore it from a copy") as caught:
            sapwood.load(path)
        assert str(caught.value).startswith(str(path))


# Changes at every place, one at a time: the checksum is right


@pytest.fixture(params=["auto", "raw", "mean", "ebst"])
def state(request):
    header, arrays = tree_state.state_of(CRAFTED[request.param]())
    return copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}


def test_the_state_itself_is_good(state):
    assert not refused_or_harmless(packed(*state))


@pytest.mark.parametrize(
    "end", [0, pytest.param(-1, marks=pytest.mark.long)], ids=["first", "last"]
)
@pytest.mark.parametrize("table", ["nodes", "leaves"])
def test_every_field_of_a_record(state, table, end):
    header, arrays = state
    refused = 0
    place = range(len(arrays[table]))[end]
    for field in arrays[table].dtype.names:
        kind = arrays[table].dtype[field].kind
        for value in {"i": (*INTEGERS, place), "u": (0, 2**64 - 1), "f": FLOATS}[kind]:
            changed = arrays[table].copy()
            changed[field][place] = value
            if changed.tobytes() != arrays[table].tobytes():
                refused += refused_or_harmless(packed(header, arrays, **{table: changed}))
    assert refused > 25


@pytest.mark.parametrize("places", [3, pytest.param(9, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["stream", "layer", "notes", "levels", "models", "watches"])
def test_numbers_of_every_array(state, name, places):
    header, arrays = state
    rng = np.random.default_rng(0)
    size = arrays[name].size
    for place in rng.choice(size, min(size, places), replace=False):
        for value in FLOATS:
            changed = arrays[name].copy()
            changed.reshape(-1)[place] = value
            refused = refused_or_harmless(packed(header, arrays, **{name: changed}))
            assert refused or np.isfinite(value)


def test_arrays_that_are_missing_or_too_many(state):
    header, arrays = state
    for name in arrays:
        others = {each: array for each, array in arrays.items() if each != name}
        assert_refused(packed(header, others), "its arrays are not nodes, leaves")
    assert_refused(packed(header, arrays, more=np.zeros(3)), "its arrays are not nodes, leaves")


def test_arrays_of_another_dtype_or_shape(state):
    header, arrays = state
    for name, array in arrays.items():
        others = [
            np.concatenate([array, array]),
            array[:-1],
            array[:0],
            array[None],
            np.zeros((), array.dtype),
            np.zeros(array.shape, np.int8),
            np.zeros(array.shape, np.float32),
            np.zeros(array.shape, np.bool_),
        ]
        if array.dtype.names:
            swapped = [*array.dtype.descr[1:], array.dtype.descr[0]]
            others += [array.view(np.uint8), array.view(swapped), np.zeros(array.shape, swapped)]
        for other in others if array.size else others[2:]:
            if other.shape != array.shape or other.dtype != array.dtype:
                assert_refused(packed(header, arrays, **{name: other}))


def test_arrays_in_another_order_of_memory_are_the_same(state):
    header, arrays = state
    fortran = {name: np.asfortranarray(array) for name, array in arrays.items()}
    assert packed(header, fortran) == packed(header, arrays)


NASTY_JSON = (None, True, False, -1, 0, 2, 0.5, 1e308, 10**30, 10**400, "", "auto", [], [1], {})


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def paths_in(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from paths_in(inner, (*path, key))
        else:
            yield (*path, key)


def changed_at(value, path, new):
    if not path:
        return new
    twin = copy.copy(value)
    twin[path[0]] = changed_at(value[path[0]], path[1:], new)
    return twin


def value_at(header, path):
    """The value of an entry, and None if there is none."""
    for key in path:
        try:
            header = header[key]
        except (LookupError, TypeError):
            return None
    return header


def test_every_entry_of_the_header(state, request):
    header, arrays = state
    known, _ = tree_state.state_of(CRAFTED["auto"]())
    is_first = "[auto]" in request.node.name
    for path in paths_in(header):
        if not is_first and value_at(header, path) == value_at(known, path):
            continue  # an entry like that of the first tree
        for new in (*NASTY_JSON, {"a": 1}, nested(20), {"parameters": {}, "features": {}}):
            changed = changed_at(header, path, new)
            if not isinstance(changed, dict) or changed == header:
                continue
            refused_or_harmless(packed(changed, arrays))


def test_entries_that_are_missing_or_too_many(state):
    header, arrays = state
    for path in paths_in(header):
        owner = header
        for key in path[:-1]:
            owner = owner[key]
        if not path or not isinstance(owner, dict):
            continue
        without = {key: value for key, value in owner.items() if key != path[-1]}
        if path[-1] != "gaps":  # which only files of columns with missing values have
            assert_refused(packed(changed_at(header, path[:-1], without), arrays))
        more = {**owner, "more": 1}
        assert_refused(packed(changed_at(header, path[:-1], more), arrays))


# Many changes at once, by chance: the checksum is right


def test_random_damage():
    fuzz(seed=0, rounds=30)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 9))
def test_much_random_damage_in_a_process_of_its_own(seed):
    program = (
        "import faulthandler, sys\n"
        "faulthandler.enable()\n"
        f"sys.path.insert(0, {os.fspath(SUPPORT)!r})\n"
        "import tree_file_cases\n"
        f"print(tree_file_cases.fuzz({seed}, 1500))\n"
    )
    assert int(run_apart(program)) > 0
