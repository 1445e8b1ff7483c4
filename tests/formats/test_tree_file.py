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

import numpy as np
import pytest

import sapwood
from places import DATA
from sapwood import (
    EBSTObserver,
    HoeffdingTreeRegressor,
    ModelFileError,
    QuantizerObserver,
    TEBSTObserver,
)
from sapwood.storage import container
from tree_file_cases import Tree, exercise, grown, stream, with_idle_leaves


def part(columns, start, stop=None):
    return {name: column[start:stop] for name, column in columns.items()}


def row(columns, place):
    return {name: column[place] for name, column in columns.items()}


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
    "another kind": (container.pack("stump", {}, {}), "holds 'stump'"),
    "no arrays": (
        container.pack(HoeffdingTreeRegressor.kind, {}, {}),
        "its header has other entries",
    ),
    "magic alone": (container.MAGIC, "8 bytes are too few"),
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
        tree._kernel.unwatch(0)
        tree.save(DATA / name)
        predictions[name] = [tree.predict_one(x) for x in KEPT_ROWS]
    KEPT_PREDICTIONS.write_text(json.dumps(predictions, indent=1) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", KEPT_FILES)
def test_files_of_the_first_release_are_read(name):
    """If this fails, files that people have are no longer read: mend the code, not the file."""
    assert (DATA / name).stat().st_size < 30_000
    tree = sapwood.load(DATA / name)
    assert tree.features == ["x0", "x1", "colour", "none"]
    assert tree.n_leaves > 2
    assert tree.summary.rows == 1000
    predictions = [tree.predict_one(x) for x in KEPT_ROWS]
    expected = json.loads(KEPT_PREDICTIONS.read_text(encoding="utf-8"))[name]
    np.testing.assert_allclose(predictions, expected, rtol=1e-12)
    exercise(tree)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    write_kept_files()
