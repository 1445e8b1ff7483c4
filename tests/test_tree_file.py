"""Trees in files: what is saved comes back and goes on bit for bit, and all else is refused.

Run as a program, this writes the files that later releases have to read, and what their trees
predict: only for a new version of the format, beside the files of older ones.
"""

import copy
import json
import os
import pickle
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import sapwood
from cases import run_apart
from sapwood import (
    EBSTObserver,
    HoeffdingTreeRegressor,
    ModelFileError,
    QuantizerObserver,
    TEBSTObserver,
    modelfile,
)
from sapwood.tree import build, storage
from sapwood.tree.features import CATEGORY

DATA = Path(__file__).parent / "data"
COLOURS = ["red", "green", "blue", "grey"]

Tree = partial(HoeffdingTreeRegressor, grace_period=40)


def stream(count, seed=1, numbers=2):
    """Columns of numbers, some of them missing, of categories and of nothing; and y."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(count, numbers)), 2)
    codes = rng.integers(0, 4, count)
    y = np.where(x[:, 0] < -0.3, 3 * x[:, -1], -2.0) + 4.0 * codes + 0.1 * rng.normal(size=count)
    x[rng.random(x.shape) < 0.1] = np.nan
    columns = {f"x{place}": x[:, place] for place in range(numbers)}
    return {**columns, "colour": [COLOURS[code] for code in codes], "none": [None] * count}, y


def part(columns, start, stop=None):
    return {name: column[start:stop] for name, column in columns.items()}


def row(columns, place):
    return {name: column[place] for name, column in columns.items()}


def grown(rows=700, numbers=2, **parameters):
    tree = Tree(**parameters)
    tree.learn_many(*stream(rows, numbers=numbers))
    return tree


def with_idle_leaves(**parameters):
    tree = grown(**parameters)
    assert tree.n_leaves > 2
    for leaf in range(0, tree.n_leaves, 2):
        build.unwatch(tree._kernel, leaf)
    return tree


def without_features():
    tree = Tree()
    for y in (1.0, 5.0, 3.0):
        tree.learn_one({}, y)
    return tree


def with_new_features():
    tree = grown()
    tree.learn_one({"x0": 0.5, "later": 3, 17: "label"}, 2.0, w=0.25)
    tree.learn_one({"none": "now it is known"}, 2.0)
    return tree


TREES = {
    "auto": grown,
    "auto-16": partial(grown, observer=QuantizerObserver(slots=16)),
    "mean": partial(grown, leaf="mean"),
    "linear": partial(grown, leaf="linear", split_on="residual", track=None),
    "target": partial(grown, split_on="target"),
    "shallow": partial(grown, max_depth=1),
    "limited": partial(grown, rows=3000, max_bytes=80_000, observer=QuantizerObserver(slots=16)),
    "radius": partial(grown, observer=QuantizerObserver(0.25)),
    "prototype": partial(grown, observer=QuantizerObserver(0.25, cut="prototype")),
    "std/2": partial(grown, observer=QuantizerObserver("std/2")),
    "ebst": partial(grown, observer=EBSTObserver()),
    "tebst": partial(grown, observer=TEBSTObserver(1)),
    "ebst-mean": partial(grown, observer=EBSTObserver(), leaf="mean"),
    "ebst-limited": partial(grown, rows=3000, max_bytes=80_000, observer=EBSTObserver()),
    "diagonal": partial(grown, numbers=45),
    "raw": partial(grown, rows=20),
    "one row": partial(grown, rows=1),
    "no rows": Tree,
    "no rows, ebst": partial(Tree, observer=EBSTObserver()),
    "no features": without_features,
    "new features": with_new_features,
    "declared": partial(grown, categorical=["colour", 5]),
    "idle": with_idle_leaves,
    "idle-ebst": partial(with_idle_leaves, observer=EBSTObserver()),
}


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]()


# What comes back


def assert_same(one, other):
    assert other.to_bytes() == one.to_bytes()
    assert other.nbytes == one.nbytes
    assert repr(other) == repr(one)


def assert_go_on_alike(one, other, rows=1500):
    """Learn the same rows, also with features and labels that are new, and compare all."""
    columns, y = stream(rows, seed=2)
    for tree in (one, other):
        tree.learn_many({**part(columns, 0, 300), "new": y[:300]}, y[:300], np.full(300, 0.5))
    for place in range(300, 400):
        x = row(columns, place)
        x["colour"] = x["colour"] if place % 9 else f"colour {place}"
        assert one.predict_one(x) == other.predict_one(x)
        one.learn_one(x, y[place])
        other.learn_one(x, y[place])
    predictions = [tree.predict_learn_many(part(columns, 400), y[400:]) for tree in (one, other)]
    np.testing.assert_array_equal(*predictions)
    assert_same(one, other)


def test_a_tree_comes_back_and_goes_on(tree, tmp_path):
    path = tmp_path / "my.sapwood"
    tree.save(path)
    assert os.listdir(tmp_path) == ["my.sapwood"]
    assert path.read_bytes() == tree.to_bytes()
    twin = sapwood.load(path)
    assert_same(tree, twin)
    assert {**twin.parameters, "observer": 0} == {**tree.parameters, "observer": 0}
    assert twin.to_text() == tree.to_text()
    assert_go_on_alike(tree, twin)


def test_copies_are_independent(tree):
    data = tree.to_bytes()
    copies = [
        tree.copy(),
        copy.copy(tree),
        copy.deepcopy(tree),
        pickle.loads(pickle.dumps(tree)),
    ]
    tree.learn_many(*stream(50, seed=3))
    for each in copies:
        assert each.to_bytes() == data


@pytest.mark.parametrize("cut", [0, 1, 7, 24, 25, 90, 400, 599])
@pytest.mark.parametrize("kind", ["auto", "ebst", "limited"])
def test_saved_in_mid_stream(kind, cut):
    parameters = {
        "auto": {},
        "ebst": {"observer": EBSTObserver()},
        "limited": {"max_bytes": 40_000, "observer": QuantizerObserver(slots=16)},
    }[kind]
    columns, y = stream(600)
    whole, tree = Tree(**parameters), Tree(**parameters)
    for place in range(600):
        if place == cut:
            tree = HoeffdingTreeRegressor.from_bytes(tree.to_bytes())
        for each in (whole, tree):
            each.learn_one(row(columns, place), y[place])
    assert_same(whole, tree)


EXTREMES = {
    "small x": (1e-320, 1.0, 1.0),
    "large x": (1e300, 1.0, 1.0),
    "largest x": (1.7e308, 1.0, 1.0),
    "small y": (1.0, 1e-320, 1.0),
    "large y": (1.0, 3e99, 1.0),
    "small w": (1.0, 1.0, 1e-310),
    "large w": (1.0, 1.0, 1e46),
    "large w and y": (1.0, 3e99, 1e46),
}


@pytest.mark.parametrize("leaf", ["mean", "linear"])
@pytest.mark.parametrize("observer", [QuantizerObserver(slots=16), QuantizerObserver("std/2")])
@pytest.mark.parametrize(
    "scales",
    [pytest.param(scales, id=name) for name, scales in EXTREMES.items()],
)
def test_a_tree_of_extreme_rows_comes_back(scales, observer, leaf):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (600, 2))
    y = np.where(x[:, 0] < 0, 1.0, -1.0) + 0.1 * rng.normal(size=600)
    tree = Tree(observer=observer, leaf=leaf)
    for part in np.split(np.arange(600), 6):
        tree.learn_many(x[part] * scales[0], y[part] * scales[1], np.full(100, scales[2]))
        assert_same(tree, tree.copy())


def test_the_room_of_tables_comes_back():
    """Or the limit of memory would be reached at another row."""
    tree = Tree(leaf="mean", observer=QuantizerObserver(slots=16))
    rng = np.random.default_rng(0)
    x = rng.random((6000, 1))
    y = np.floor(32 * x[:, 0]) ** 2
    for start in range(0, 6000, 50):
        tree.learn_many(x[start : start + 50], y[start : start + 50])
        assert tree.copy().nbytes == tree.nbytes
    assert tree.n_leaves > 20


def test_a_subclass_comes_back_as_what_it_is():
    class Mine(HoeffdingTreeRegressor):
        pass

    tree = Mine()
    tree.learn_one({"a": 1.0}, 2.0)
    assert type(Mine.from_bytes(tree.to_bytes())) is Mine
    assert type(tree.copy()) is Mine


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "my.sapwood"
    for rows in (1, 100):
        grown(rows=rows).save(path)
        assert os.listdir(tmp_path) == ["my.sapwood"]
        assert sapwood.load(os.fspath(path)).summary.rows == rows
        assert sapwood.load(os.fsencode(path)).summary.rows == rows


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"my\.sapwood"):
        grown().save(tmp_path / "no folder" / "my.sapwood")
    with pytest.raises(IsADirectoryError):
        grown().save(tmp_path)
    assert os.listdir(tmp_path) == []


# What is no tree


def test_paths_without_a_tree(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"my\.sapwood"):
        sapwood.load(tmp_path / "my.sapwood")
    with pytest.raises(IsADirectoryError):
        sapwood.load(tmp_path)


def observer_of_some_rows():
    observer = EBSTObserver()
    observer.update_many([1.0, 2.0], [3.0, 4.0])
    return observer


OTHER_FILES = {
    "empty": (b"", "is empty"),
    "pickle": (pickle.dumps({"a": 1}), "is not a model file of sapwood"),
    "pickled tree": (pickle.dumps(Tree()), "is not a model file of sapwood"),
    "observer": (observer_of_some_rows().to_bytes(), "is not a model file of sapwood"),
    "text": (b"no model", "is not a model file of sapwood"),
    "zeros": (bytes(5000), "is not a model file of sapwood"),
    "another kind": (modelfile.pack("stump", {}, {}), "holds 'stump'"),
    "no arrays": (modelfile.pack(storage.KIND, {}, {}), "its header has other entries"),
    "magic alone": (modelfile.MAGIC, "8 bytes are too few"),
}


@pytest.mark.parametrize(("data", "words"), OTHER_FILES.values(), ids=OTHER_FILES.keys())
def test_files_of_something_else(tmp_path, data, words):
    path = tmp_path / "my.sapwood"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=re.escape(words)) as caught:
        sapwood.load(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("data", [None, "text", 3, [1, 2], np.zeros(3)])
def test_what_is_not_bytes(data):
    with pytest.raises(ModelFileError, match="bytes are expected"):
        HoeffdingTreeRegressor.from_bytes(data)


# Damage, which the checksum finds


@pytest.fixture(scope="module")
def small():
    tree = Tree(observer=QuantizerObserver(slots=16), leaf="mean")
    tree.learn_many({"a": [1.0, 2.0, 3.0]}, [1.0, 2.0, 3.0])
    data = tree.to_bytes()
    assert len(data) < 6000
    return data


def assert_refused(data, words=" "):
    with pytest.raises(ModelFileError, match=re.escape(words)) as caught:
        HoeffdingTreeRegressor.from_bytes(data, "my.sapwood")
    assert re.match(r"my\.sapwood .*[a-z]{3}", str(caught.value))


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


# Content that was made to do harm: the checksum is right

INTEGERS = (-1, 0, 1, 2, 5, 10**6, 2**31 - 1, -(2**31))
FLOATS = (np.nan, np.inf, -np.inf, -1.0, 0.5, 1e16, 1e308, -1e308)
CRAFTED = {
    "auto": partial(with_idle_leaves, observer=QuantizerObserver(slots=16)),
    "raw": partial(grown, rows=20, observer=QuantizerObserver(slots=32)),
    "mean": partial(with_idle_leaves, observer=QuantizerObserver(slots=16), leaf="mean"),
    "radius": partial(with_idle_leaves, observer=QuantizerObserver(0.25)),
    "std/2": partial(grown, observer=QuantizerObserver("std/2"), leaf="linear"),
    "ebst": partial(with_idle_leaves, observer=EBSTObserver()),
    "tebst": partial(grown, observer=TEBSTObserver(1), max_bytes=400_000),
}


@pytest.fixture(params=["auto", "raw", "mean", "ebst"])
def state(request):
    header, arrays = storage.state_of(CRAFTED[request.param]())
    return copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}


def packed(header, arrays, **changed):
    return modelfile.pack(storage.KIND, header, {**arrays, **changed})


def exercise(tree):
    """Let a tree do all that it can; nothing may fail."""
    assert tree.copy().to_bytes() == tree.to_bytes()
    columns, y = stream(500, seed=4)
    tree.predict_many(columns)
    predictions = tree.predict_learn_many(columns, y)
    x = {"x0": 0.5, "colour": "pink", "none": "a"}
    for target in range(20):
        tree.learn_one(x, target)
    assert np.isfinite([*predictions, *tree.predict_many(columns), tree.predict_one(x)]).all()
    assert tree.nbytes > 0
    assert tree.to_text()
    assert str(tree.explain(x))
    assert str(tree.summary)


def refused_or_harmless(data):
    """Whether content is refused; if not, the tree has to work."""
    try:
        tree = HoeffdingTreeRegressor.from_bytes(data, "my.sapwood")
    except ModelFileError as error:
        words = str(error)
    else:
        exercise(tree)
        return False
    assert re.match(r"my\.sapwood is damaged: .*[a-z]{3}", words)
    return True


def test_the_state_itself_is_good(state):
    assert not refused_or_harmless(packed(*state))


@pytest.mark.parametrize("table", ["nodes", "leaves"])
def test_every_field_of_a_record(state, table):
    header, arrays = state
    refused = 0
    for field in arrays[table].dtype.names:
        kind = arrays[table].dtype[field].kind
        for place in {0, 1, len(arrays[table]) - 1} - {-1}:
            if place >= len(arrays[table]):
                continue
            for value in {"i": (*INTEGERS, place), "u": (0, 2**64 - 1), "f": FLOATS}[kind]:
                changed = arrays[table].copy()
                changed[field][place] = value
                if changed.tobytes() != arrays[table].tobytes():
                    refused += refused_or_harmless(packed(header, arrays, **{table: changed}))
    assert refused > 50


@pytest.mark.parametrize("name", ["stream", "tracks", "levels", "models", "watches"])
def test_numbers_of_every_array(state, name):
    header, arrays = state
    rng = np.random.default_rng(0)
    size = arrays[name].size
    for place in rng.choice(size, min(size, 18), replace=False):
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


# A tree that is none

ROOT_CASES = {
    "root is its own child": ("child", 0, 0),
    "root is a leaf of its own": ("kind", 0, 0),
    "child before its parent": ("child", -3, 1),
    "child of another": ("child", 0, 3),
    "parent is another": ("parent", 1, 2),
    "parent is itself": ("parent", 2, 2),
    "root has a parent": ("parent", 0, 0),
    "depth": ("depth", 3, 7),
    "kind": ("kind", 0, 3),
    "way of missing values": ("missing_left", 0, 2),
}


@pytest.mark.parametrize(("field", "place", "value"), ROOT_CASES.values(), ids=ROOT_CASES.keys())
def test_nodes_that_are_no_tree(field, place, value):
    header, arrays = storage.state_of(grown())
    inner = np.flatnonzero(arrays["nodes"]["kind"])
    arrays["nodes"] = arrays["nodes"].copy()
    arrays["nodes"][field][inner[place] if place < 0 else place] = value
    assert_refused(packed(header, arrays), "is damaged: ")


def test_two_splits_that_share_their_children():
    header, arrays = storage.state_of(grown())
    nodes = arrays["nodes"].copy()
    one, other = np.flatnonzero(nodes["kind"])[1:3]
    nodes["child"][other] = nodes["child"][one]
    assert_refused(packed(header, arrays, nodes=nodes))


def test_a_cycle():
    header, arrays = storage.state_of(grown())
    nodes = arrays["nodes"].copy()
    deepest = np.flatnonzero(nodes["kind"])[-1]
    nodes["child"][deepest] = nodes["parent"][deepest]
    assert_refused(packed(header, arrays, nodes=nodes), "the child of node")


def test_leaves_that_are_swapped():
    header, arrays = storage.state_of(grown())
    leaves = arrays["leaves"].copy()
    leaves[[0, 1]] = leaves[[1, 0]]
    assert_refused(packed(header, arrays, leaves=leaves), "a leaf belongs to another node")
    nodes = arrays["nodes"].copy()
    at = np.flatnonzero(nodes["kind"] == 0)[:2]
    nodes["child"][at] = nodes["child"][at[::-1]]
    assert_refused(packed(header, arrays, nodes=nodes), "a leaf belongs to another node")
    nodes["child"][at] = 0
    assert_refused(packed(header, arrays, nodes=nodes), "nodes share a leaf, or have none")


def test_no_nodes_at_all():
    header, arrays = storage.state_of(grown())
    empty = {name: array[:0] for name, array in arrays.items() if name in ("nodes", "leaves")}
    assert_refused(packed(header, arrays, **empty), "there cannot be 0 nodes and 0 leaves")


def test_leaves_that_do_not_watch_are_never_due():
    """They have no page to decide by."""
    header, arrays = storage.state_of(with_idle_leaves())
    for field in ("due", "review"):
        leaves = arrays["leaves"].copy()
        leaves[field][0] = 1.0
        assert_refused(packed(header, arrays, leaves=leaves), f"the {field} of leaf 0 is wrong")


def test_leaves_that_say_that_they_watch():
    header, arrays = storage.state_of(with_idle_leaves())
    leaves = arrays["leaves"].copy()
    leaves["watching"][:2] = [1, 0]
    assert_refused(packed(header, arrays, leaves=leaves))
    leaves["watching"] = 1
    assert_refused(packed(header, arrays, leaves=leaves), "the pages of what is watched have shape")


def test_splits_on_features_that_are_not_there():
    header, arrays = storage.state_of(grown())
    names = header["features"]["names"]
    for feature in (-1, len(names), 2**31 - 1, names.index("none")):
        nodes = arrays["nodes"].copy()
        nodes["feature"][0] = feature
        assert_refused(packed(header, arrays, nodes=nodes), "feature")


def test_nodes_below_the_depth_that_is_allowed():
    header, arrays = storage.state_of(grown())
    header["parameters"]["max_depth"] = 1
    assert_refused(packed(header, arrays), "below the depth of 1")


# What leaves watch by


def raw_state():
    tree = grown(rows=20)
    header, arrays = storage.state_of(tree)
    return header, {name: array.copy() for name, array in arrays.items()}, tree._kernel


@pytest.mark.parametrize("kept", [-1.0, 0.5, 24.0, 25.0, 1e9, 1e300])
def test_more_kept_rows_than_there_is_room_for(kept):
    header, arrays, _ = raw_state()
    assert arrays["watches"][0, 3] == 17  # in three rows x0 is missing
    arrays["watches"][0, 3] = kept
    assert_refused(packed(header, arrays), "the number of rows that are kept is wrong in page 0")


def test_kept_rows_that_are_none():
    header, arrays, kernel = raw_state()
    start = kernel.slot_start(0)
    arrays["watches"][0, start] = 0.0
    assert_refused(packed(header, arrays), "a row that is kept has no weight")


@pytest.mark.parametrize("change", [(0, -1.0), (1, 2.0), (2, 0.0), (2, -1.0), (2, 1e9), (3, 5.0)])
def test_grids_of_categories_are_fixed(change):
    header, arrays = storage.state_of(grown())
    place, value = change
    watches = arrays["watches"].copy()
    watches[0, 4 * header["features"]["kinds"].index(CATEGORY) + place] = value
    assert_refused(packed(header, arrays, watches=watches), "the grid of a category is wrong")


def test_grids_where_observers_watch():
    header, arrays = storage.state_of(grown(observer=EBSTObserver()))
    for place in range(4):
        watches = arrays["watches"].copy()
        watches[0, place] = 1.0
        assert_refused(packed(header, arrays, watches=watches), "what was never seen")


def test_slots_of_rows_that_the_leaf_never_saw():
    tree = grown()
    header, arrays = storage.state_of(tree)
    watches = arrays["watches"].copy()
    watches[0, tree._kernel.slot_start(1)] += 1e6
    assert_refused(packed(header, arrays, watches=watches), "more rows than their leaf")


# Observers


def observer_state(**parameters):
    tree = grown(**parameters)
    header, arrays = storage.state_of(tree)
    own = [each for leaf in tree._kernel.observers for each in leaf]
    return header, arrays, own


def with_observers(arrays, blobs):
    sizes = np.array([len(blob) for blob in blobs], dtype=np.int64)
    return {
        **arrays,
        "observer_sizes": sizes,
        "observers": np.frombuffer(b"".join(blobs), dtype=np.uint8),
    }


def like(observer, **changed):
    return type(observer)(**{**observer._parameters(), **changed})


def test_observers_of_another_kind():
    header, arrays, own = observer_state(observer=QuantizerObserver(0.25))
    blobs = [each.to_bytes() for each in own]
    others = {
        "radius": like(own[0], radius=0.5),
        "auto": QuantizerObserver(targets=2),
        "one target": like(own[0], targets=1),
        "cut": like(own[0], cut="prototype"),
        "std": like(own[0], radius="std/2"),
        "ebst": EBSTObserver(targets=2),
    }
    for other in others.values():
        changed = [other.to_bytes(), *blobs[1:]]
        assert_refused(packed(header, with_observers(arrays, changed)), "is damaged: ")
    assert not refused_or_harmless(packed(header, with_observers(arrays, blobs)))


def test_observers_of_features_that_are_not_observed():
    header, arrays, own = observer_state(observer=EBSTObserver())
    blobs = [each.to_bytes() for each in own]
    for name in ("colour", "none"):
        place = header["features"]["names"].index(name)
        changed = [*blobs]
        changed[place] = blobs[0]
        words = f"feature {place} was never observed"
        assert_refused(packed(header, with_observers(arrays, changed)), words)


def test_observers_of_more_rows_than_their_leaf():
    header, arrays, own = observer_state(observer=EBSTObserver())
    observer = like(own[0])
    observer.update_many(np.arange(2000.0), np.zeros((2000, 2)))
    blobs = [observer.to_bytes(), *(each.to_bytes() for each in own[1:])]
    assert_refused(packed(header, with_observers(arrays, blobs)), "more rows than their leaf")


def test_observers_whose_bytes_or_sizes_are_wrong():
    header, arrays, _ = observer_state(observer=EBSTObserver())
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(arrays["observers"]), 50):
        data = arrays["observers"].copy()
        data[place] ^= 1
        assert_refused(packed(header, arrays, observers=data), "the saved observer")
    sizes = arrays["observer_sizes"]
    for first, second in ((1, -1), (-(2**62), 2**62), (2**63 - 1 - sizes[0], 0)):
        changed = sizes.copy()
        changed[:2] += [first, second]
        assert_refused(packed(header, arrays, observer_sizes=changed))
    wrapping = np.full(len(sizes), 2**62)
    wrapping[3] += len(arrays["observers"])
    assert_refused(packed(header, arrays, observer_sizes=wrapping), "the sizes of its observers")
    assert_refused(packed(header, arrays, observer_sizes=sizes[:-1]), "observers, not")


# Parameters and features

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


def test_every_entry_of_the_header(state):
    header, arrays = state
    for path in paths_in(header):
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
        assert_refused(packed(changed_at(header, path[:-1], without), arrays))
        more = {**owner, "more": 1}
        assert_refused(packed(changed_at(header, path[:-1], more), arrays))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("grace_period", True),
        ("grace_period", 40),
        ("grace_period", -1.0),
        ("delta", 2.0),
        ("min_share", 0.9),
        ("leaf", "mean"),
        ("leaf", "forest"),
        ("split_on", None),
        ("track", "never"),
        ("max_bytes", 100),
        ("max_bytes", 20_000),
        ("max_bytes", -1),
        ("max_depth", 0),
        ("max_depth", 2.0),
        ("observer", ["QuantizerObserver", {"radius": "auto", "slots": 16}]),
        ("observer", ["EBSTObserver", {"targets": 1}]),
        ("observer", ["Moments", {}]),
        ("observer", ["object", {}]),
        ("observer", [["EBSTObserver"], {"targets": 1}]),
        ("observer", "EBSTObserver"),
        ("categorical", ["x0"]),
    ],
)
def test_parameters_that_do_not_fit(name, value):
    header, arrays = storage.state_of(grown(leaf="adaptive"))
    header["parameters"][name] = value
    assert_refused(packed(header, arrays), "is damaged: ")


def test_a_tree_larger_than_its_limit():
    tree = grown()
    header, arrays = storage.state_of(tree)
    header["parameters"]["max_bytes"] = tree.nbytes
    twin = HoeffdingTreeRegressor.from_bytes(packed(header, arrays))
    assert twin.nbytes == tree.nbytes
    header["parameters"]["max_bytes"] = tree.nbytes - 1
    words = f"it occupies {tree.nbytes} bytes and its max_bytes are {tree.nbytes - 1}"
    assert_refused(packed(header, arrays), words)


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [
        ("kinds", 0, "category"),
        ("kinds", 0, "unknown"),
        ("kinds", 2, "number"),
        ("kinds", 2, "unknown"),
        ("kinds", 3, "category"),
        ("kinds", 0, "word"),
        ("names", 0, "x1"),
        ("names", 0, None),
        ("names", 0, True),
        ("labels", 0, ["a"]),
        ("labels", 2, ["red"] * 4),
        ("labels", 2, list(map(str, range(64)))),
        ("labels", 2, [[]]),
    ],
)
def test_features_that_do_not_fit(field, place, value):
    header, arrays = storage.state_of(grown())
    header["features"][field][place] = value
    assert_refused(packed(header, arrays), "is damaged: ")


def test_a_small_file_takes_little_memory():
    """A header that promises thousands of features is refused before there is room for them."""
    header, arrays = storage.state_of(Tree(observer=QuantizerObserver(slots=4096)))
    names = [f"x{place}" for place in range(4096)]
    header["features"] = {
        "names": names,
        "kinds": ["number"] * 4096,
        "labels": [[]] * 4096,
        "categorical": [],
    }
    assert_refused(packed(header, arrays), "the levels have shape")


# Many changes at once


def damage(rng, header, arrays):
    """Change some numbers of a state, at random, and return its bytes."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.integers(1, 4)):
        name = rng.choice([each for each in arrays if arrays[each].size])
        flat = arrays[name].reshape(-1)
        place = rng.integers(len(flat))
        kind = rng.integers(4)
        if kind == 0:
            flat[place] = flat[rng.integers(len(flat))]
        elif kind == 1 and name != "observers":
            flat.view(np.int64)[rng.integers(flat.nbytes // 8)] = rng.integers(-(2**63), 2**63)
        elif kind == 2 and flat.dtype.names:
            field = rng.choice(flat.dtype.names)
            values = {"i": INTEGERS, "u": (0, 1, 2**63), "f": FLOATS}[flat.dtype[field].kind]
            flat[field][place] = values[rng.integers(len(values))]
        else:
            flat.view(np.uint8)[rng.integers(flat.nbytes)] ^= 1 << rng.integers(8)
    return packed(header, arrays)


def fuzz(seed, rounds):
    """Damage trees of all kinds; the number of those that were let in."""
    rng = np.random.default_rng(seed)
    let_in = 0
    for make in CRAFTED.values():
        header, arrays = storage.state_of(make())
        for _ in range(rounds):
            let_in += not refused_or_harmless(damage(rng, header, arrays))
    return let_in


def test_random_damage():
    fuzz(seed=0, rounds=60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 9))
def test_much_random_damage_in_a_process_of_its_own(seed):
    program = (
        "import faulthandler, sys\n"
        "faulthandler.enable()\n"
        f"sys.path.insert(0, {os.fspath(Path(__file__).parent)!r})\n"
        "import test_tree_file\n"
        f"print(test_tree_file.fuzz({seed}, 1500))\n"
    )
    assert int(run_apart(program, seconds=600)) > 0


# Files of earlier releases


KEPT_ROWS = [{"x0": -1.5, "x1": 2.0, "colour": "red"}, {"x0": 1.5, "colour": "grey"}, {}]
KEPT_FILES = {
    "tree-v1.sapwood": QuantizerObserver(slots=16),
    "tree-of-observers-v1.sapwood": TEBSTObserver(0),
}
KEPT_PREDICTIONS = DATA / "predictions-v1.json"


def write_kept_files():
    predictions = {}
    for name, observer in KEPT_FILES.items():
        tree = Tree(observer=observer, max_bytes=100_000)
        tree.learn_many(*stream(1000, seed=7))
        build.unwatch(tree._kernel, 0)
        tree.save(DATA / name)
        predictions[name] = [tree.predict_one(x) for x in KEPT_ROWS]
    KEPT_PREDICTIONS.write_text(json.dumps(predictions, indent=1) + "\n")


@pytest.mark.parametrize("name", KEPT_FILES)
def test_files_of_the_first_release_are_read(name):
    """If this fails, files that people have are no longer read: mend the code, not the file."""
    assert (DATA / name).stat().st_size < 30_000
    tree = sapwood.load(DATA / name)
    assert tree.features == ["x0", "x1", "colour", "none"]
    assert tree.n_leaves > 2
    assert tree.summary.rows == 1000
    predictions = [tree.predict_one(x) for x in KEPT_ROWS]
    expected = json.loads(KEPT_PREDICTIONS.read_text())[name]
    np.testing.assert_allclose(predictions, expected, rtol=1e-12)
    exercise(tree)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    write_kept_files()
