"""What the tests of trees in files share: trees to save, changed content, and its checks."""

import re
from functools import partial

import numpy as np
import pytest

from sapwood import (
    EBSTObserver,
    HoeffdingTreeRegressor,
    ModelFileError,
    QuantizerObserver,
    TEBSTObserver,
)
from sapwood.storage import container
from sapwood.tree import tree_state

COLOURS = ["red", "green", "blue", "grey"]
INTEGERS = (-1, 0, 1, 2, 5, 10**6, 2**31 - 1, -(2**31))
FLOATS = (np.nan, np.inf, -np.inf, -1.0, 0.5, 1e16, 1e308, -1e308)
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


def grown(rows=700, numbers=2, **parameters):
    """A tree that was asked before it learned, and some rows of which the labels are to come."""
    tree = Tree(**parameters)
    tree.predict_learn_many(*stream(rows, numbers=numbers))
    tree.predict_many(stream(9, seed=5, numbers=numbers)[0])
    return tree


def with_idle_leaves(**parameters):
    tree = grown(**parameters)
    assert tree.n_leaves > 2
    for leaf in range(0, tree.n_leaves, 2):
        tree._kernel.unwatch(leaf)
    return tree


def stream_of_targets(count, seed=1):
    """The same columns, and two targets: y, missing here and there, and another."""
    columns, y = stream(count, seed)
    second = np.where(np.array(columns["x1"]) > 0, 5.0, -y)
    return columns, {"a": np.where(np.arange(count) % 5 == 0, np.nan, y), "b": second}


def of_targets(rows=700, categories=True, **parameters):
    """A tree of two targets, some of whose leaves do not watch."""
    tree = Tree(**parameters)
    columns, y = stream_of_targets(rows)
    if not categories:
        del columns["colour"]
    tree.predict_learn_many(columns, y)
    tree.predict_many({name: column[:9] for name, column in columns.items()})
    for leaf in range(0, tree.n_leaves if rows > 100 else 0, 2):
        tree._kernel.unwatch(leaf)
    return tree


CRAFTED = {
    "auto": partial(with_idle_leaves, observer=QuantizerObserver(slots=16)),
    "raw": partial(grown, rows=20, observer=QuantizerObserver(slots=32)),
    "mean": partial(with_idle_leaves, observer=QuantizerObserver(slots=16), leaf="mean"),
    "radius": partial(with_idle_leaves, observer=QuantizerObserver(0.25)),
    "std/2": partial(grown, observer=QuantizerObserver("std/2"), leaf="linear"),
    "ebst": partial(with_idle_leaves, observer=EBSTObserver()),
    "tebst": partial(grown, observer=TEBSTObserver(1), max_bytes=400_000),
    "targets": partial(of_targets, observer=QuantizerObserver(slots=16)),
    "targets, numbers": partial(of_targets, categories=False),
    "targets, raw": partial(of_targets, rows=20),
}


def packed(header, arrays, **changed):
    """The bytes of a file with such a tree in it."""
    whole = {"format": HoeffdingTreeRegressor.format, "model": header}
    return container.pack(HoeffdingTreeRegressor.kind, whole, {**arrays, **changed})


def assert_refused(data, words=" "):
    with pytest.raises(ModelFileError, match=re.escape(words)) as caught:
        HoeffdingTreeRegressor.from_bytes(data, "my.sapwood")
    assert re.match(r"my\.sapwood .*[a-z]{3}", str(caught.value))


def exercise(tree):
    """Let a tree do all that it can; nothing may fail."""
    assert tree.copy().to_bytes() == tree.to_bytes()
    columns, y = stream_of_targets(500, seed=4) if tree.targets else stream(500, seed=4)
    if "colour" not in tree.features and tree.features:
        del columns["colour"]
    tree.predict_many(columns)
    predictions = tree.predict_learn_many(columns, y)
    x = {"x0": 0.5, "none": "a"} | ({"colour": "pink"} if "colour" in columns else {})
    for target in range(20):
        tree.learn_one(x, dict.fromkeys(tree.targets, target) if tree.targets else target)
    predicted = [predictions, tree.predict_many(columns), tree.predict_one(x)]
    if tree.targets:
        predicted = [values for each in predicted for values in each.values()]
    assert np.isfinite(np.concatenate([np.ravel(each) for each in predicted])).all()
    assert tree.nbytes > 0
    assert tree.to_text()
    assert str(tree.explain(x))
    assert str(tree.summary)


def refused_or_harmless(data):
    """Whether content is rejected; if not, the tree has to work."""
    try:
        tree = HoeffdingTreeRegressor.from_bytes(data, "my.sapwood")
    except ModelFileError as error:
        words = str(error)
    else:
        exercise(tree)
        return False
    assert re.match(r"my\.sapwood is damaged: .*[a-z]{3}", words)
    return True


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
        header, arrays = tree_state.state_of(make())
        for _ in range(rounds):
            let_in += not refused_or_harmless(damage(rng, header, arrays))
    return let_in
