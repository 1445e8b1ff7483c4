"""What a tree says that it occupies is true, and stays below its limit at every moment."""

import gc
import sys
import tracemalloc
import types
from functools import partial

import numpy as np
import pytest

from sapwood import EBSTObserver, HoeffdingTreeRegressor, QuantizerObserver, TEBSTObserver
from sapwood.model import State
from sapwood.tree import _memory, tree_state
from sapwood.tree.memory import LEAST_BYTES

OBSERVERS = {
    "auto": QuantizerObserver,
    "auto-32": partial(QuantizerObserver, slots=32),
    "radius": partial(QuantizerObserver, 0.05),
    "std/2": partial(QuantizerObserver, "std/2"),
    "ebst": EBSTObserver,
    "tebst": TEBSTObserver,
}
every_observer = pytest.mark.parametrize("make", OBSERVERS.values(), ids=OBSERVERS.keys())

Tree = partial(HoeffdingTreeRegressor, grace_period=100)


def friedman(rows, features=5, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, features))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + noise * rng.normal(size=rows)


def watching(tree):
    """Of each leaf whether it watches."""
    return tree._kernel.leaf_table["watching"][: tree.n_leaves] != 0


def limited(tree, max_bytes):
    """The same tree with another limit."""
    header, arrays = tree_state.state_of(tree)
    header["parameters"]["max_bytes"] = max_bytes
    return HoeffdingTreeRegressor.from_state(State(header, arrays), HoeffdingTreeRegressor.format)


def leaf_of(tree, row):
    return tree._kernel.explain_row(np.asarray(row, dtype=float))[0]


def learn_within(tree, X, y, limit, most=700):
    """Learn in batches of all lengths, and check the limit after each of them."""
    rng = np.random.default_rng(1)
    start = 0
    while start < len(y):
        stop = start + int(rng.integers(1, most))
        tree.learn_many(X[start:stop], y[start:stop])
        assert tree.nbytes <= limit
        start = stop


# The limit


@every_observer
@pytest.mark.parametrize("limit", [60_000, 100_000, 300_000, 1_000_000])
def test_the_limit_holds_after_every_batch(make, limit):
    X, y = friedman(6000)
    tree = Tree(observer=make(), max_bytes=limit)
    learn_within(tree, X, y, limit)
    free = Tree(observer=make())
    free.learn_many(X, y)
    if free.nbytes < 0.9 * limit:
        assert tree.n_leaves == free.n_leaves
        np.testing.assert_array_equal(tree.predict_many(X[:100]), free.predict_many(X[:100]))
    elif limit >= 300_000:
        assert tree.n_leaves > 3


@pytest.mark.parametrize("make", [QuantizerObserver, EBSTObserver])
@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_the_limit_holds_after_every_row(make, leaf):
    X, y = friedman(2500)
    tree = Tree(observer=make(), max_bytes=90_000, leaf=leaf)
    for row, target in zip(X.tolist(), y, strict=True):
        tree.learn_one(dict(enumerate(row)), target)
        assert tree.nbytes <= 90_000


@every_observer
def test_a_batch_is_the_same_as_a_loop(make):
    X, y = friedman(3000, seed=2)
    whole, parts, loop = (Tree(observer=make(), max_bytes=120_000) for _ in range(3))
    whole.learn_many(X, y)
    learn_within(parts, X, y, 120_000)
    for row, target in zip(X.tolist(), y, strict=True):
        loop.learn_one(dict(enumerate(row)), target)
    assert parts.to_bytes() == whole.to_bytes()
    assert loop.to_bytes() == whole.to_bytes()


@every_observer
def test_more_and_more_features(make):
    limit = 600_000
    tree = Tree(observer=make(), max_bytes=limit, leaf="adaptive")
    X, y = friedman(4000, features=60)
    for features in range(5, 60, 5):
        start = 50 * features
        columns = {f"x{place}": X[start : start + 250, place] for place in range(features)}
        tree.learn_many(columns, y[start : start + 250])
        assert tree.nbytes <= limit
    assert len(tree.features) == 55


@pytest.mark.parametrize("make", [QuantizerObserver, EBSTObserver])
def test_thousands_of_labels(make):
    limit = 70_000
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5000, (6000, 2))
    y = codes[:, 0] % 7 + rng.normal(size=6000)
    columns = {name: [f"label {code}" for code in codes[:, name]] for name in (0, 1)}
    tree = Tree(observer=make(), max_bytes=limit)
    for start in range(0, 6000, 40):
        part = {name: column[start : start + 40] for name, column in columns.items()}
        tree.learn_many(part, y[start : start + 40])
        assert tree.nbytes <= limit


def test_labels_for_which_there_is_no_room():
    limit = 60_000
    tree = Tree(max_bytes=limit)
    refused = 0
    for row in range(100):
        data = tree.to_bytes()
        try:
            tree.learn_one({"a": f"{row} " + "long" * 240, "b": "x" * 10 + str(row % 50)}, row)
        except ValueError as error:
            refused += 1
            words = str(error)
            assert tree.to_bytes() == data
        assert tree.nbytes <= limit
    assert refused
    assert words.startswith(f"max_bytes = {limit}: there is no room for ")
    tree.learn_one({"a": "0 " + "long" * 240}, 1.0)


@pytest.mark.parametrize("make", [EBSTObserver, TEBSTObserver, QuantizerObserver])
@pytest.mark.parametrize("limit", [100_000, 500_000, 5_000_000])
def test_the_limit_holds_on_a_long_stream(make, limit):
    X, y = friedman(40_000, features=10)
    tree = HoeffdingTreeRegressor(observer=make(), max_bytes=limit)
    learn_within(tree, X, y, limit, most=400)


# What it says is true

SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, np.dtype)


def reachable_bytes(thing):
    """Return the bytes of all objects that belong to a thing."""
    seen, waiting = {}, [thing]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or one is None or isinstance(one, SHARED):
            continue
        seen[id(one)] = one
        waiting += gc.get_referents(one)
        waiting += [getattr(one, name) for name in ("_store", "base") if hasattr(one, name)]
        waiting += one.arrays() if hasattr(one, "arrays") else []
    return sum(map(sys.getsizeof, seen.values()))


SIZES = [(0, 5), (1, 5), (30, 5), (2000, 5), (4000, 10), (1000, 45)]


@pytest.fixture
def garbage_of_others():
    """Garbage collection does not look at what was there before, of which there is much."""
    gc.collect()
    gc.freeze()


@every_observer
@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_nbytes_is_not_less_than_what_is_there(make, leaf, garbage_of_others):
    for rows, features in SIZES:
        check_nbytes(make, leaf, rows, features)


def check_nbytes(make, leaf, rows, features):
    X, y = friedman(rows, features)

    def grow():
        tree = Tree(observer=make(), leaf=leaf)
        tree.learn_many(X, y)
        gc.collect()
        return tree

    grow()  # what is made once and for all is not the tree's
    tracemalloc.start()
    try:
        tree = grow()
        traced = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # Of what is freed, Python and NumPy keep a few blocks for later.
    assert traced <= tree.nbytes + 3100  # objects, and appearances of values while rows wait
    assert reachable_bytes(tree) <= tree.nbytes
    assert tree.nbytes <= 1.35 * traced + 3000


def test_the_reader_of_rows_is_counted():
    """It remembers the keys of dicts: as many as there may be features, and never unknown ones."""
    tree = Tree(max_bytes=LEAST_BYTES + 15_000)
    names = [f"a name that is rather long, number {place}" for place in range(4)]
    tree.learn_one(dict.fromkeys(names, 1.0), 1.0)
    before = tree.nbytes
    for _ in range(3):
        own_keys = {"".join(name): 2.0 for name in names}
        tree.predict_one({f"unknown {place}": 1.0 for place in range(10_000)} | own_keys)
        tree.learn_one(own_keys, 1.0)
    assert tree.nbytes == before
    assert reachable_bytes(tree) <= tree.nbytes
    assert tree._reader.nbytes < 2_000


@every_observer
@pytest.mark.parametrize("limit", [150_000, 400_000])
def test_the_limit_holds_at_every_moment(make, limit):
    """Also while a leaf is split, tables grow or observers are copied."""
    X, y = friedman(8000, noise=0.1)
    warm = Tree(observer=make())
    warm.learn_many(X[:500], y[:500])
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tree = Tree(observer=make(), max_bytes=limit)
        tracemalloc.reset_peak()
        learn_within(tree, X, y, limit)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    # The rows of a call are copied before they are validated. Further there are the objects of the
    # call, and garbage that is not collected yet.
    copied = 700 * (X.shape[1] + 2) * X.itemsize
    assert peak <= limit + copied + 16_000


def test_the_limit_holds_when_features_have_come():
    """While they are laid in, the old pages and the new ones are there side by side."""
    limit = 200_000
    X, y = friedman(3000, features=12)
    few, more = ({place: X[:, place] for place in range(count)} for count in (6, 12))
    Tree().learn_many(more, y)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tree = Tree(max_bytes=limit)
        tree.learn_many(few, y)
        tracemalloc.reset_peak()
        tree.learn_many({name: column[:10] for name, column in more.items()}, y[:10])
        after, peak = (traced - before for traced in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    assert len(tree.features) == 12
    assert tree.n_leaves > 10
    assert tree.nbytes <= limit
    assert after <= limit + 12_000
    assert peak <= 2 * limit + 12_000


# Which leaves watch


def regions(rows, seed, noisy):
    """A noisy and a perfect half, by the first feature, of which `noisy` is 0 or 1."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 4))
    steps = 10 * np.floor(4 * X[:, 1])
    waves = steps + 20 * np.sin(40 * X[:, 2]) * np.sin(30 * X[:, 3]) + 5 * rng.normal(size=rows)
    return X, np.where((X[:, 0] >= 0.5) == noisy, waves, steps)


def shares_that_watch(tree):
    """The share of the rows of either half that fall into a leaf that watches."""
    X, _ = regions(2000, seed=99, noisy=0)
    found = watching(tree)[[leaf_of(tree, row) for row in X]]
    return found[X[:, 0] < 0.5].mean(), found[X[:, 0] >= 0.5].mean()


def test_the_least_promising_leaves_stop_and_start_again():
    tree = Tree(leaf="mean", max_bytes=76_000)
    # Both halves differ, so that the first cut is between them.
    X, y = regions(20_000, seed=1, noisy=0)
    tree.learn_many(X, y + 100 * (X[:, 0] >= 0.5))
    noisy, perfect = shares_that_watch(tree)
    assert noisy > 0.9
    assert perfect < 0.1
    # Then they change places. Leaves are ranked again after a while.
    X, y = regions(70_000, seed=2, noisy=1)
    tree.learn_many(X, y + 100 * (X[:, 0] >= 0.5))
    perfect, noisy = shares_that_watch(tree)
    assert noisy > 0.9
    assert perfect < 0.1


def test_the_leaf_that_promises_least_stops_first():
    X, y = friedman(4000)
    tree = Tree(leaf="mean")
    tree.learn_many(X, y)
    tree = limited(tree, tree.nbytes + tree.nbytes // 15)  # for notes
    promise = _memory.promises(tree._kernel)
    _memory.rank_now(tree._kernel, tree.nbytes // 3)
    chosen = watching(tree)
    records = tree._kernel.leaf_table[: tree.n_leaves]
    assert 2 < chosen.sum() < tree.n_leaves - 2
    assert promise[chosen].min() >= promise[~chosen].max()
    assert np.isinf(records["due"][~chosen]).all()
    tree = limited(tree, 2 * tree.parameters["max_bytes"])
    _memory.rank_now(tree._kernel, 0)
    assert watching(tree).all()
    assert (tree._kernel.leaf_table["due"] < np.inf).all()
    tree.learn_many(X, y)


def test_leaves_start_from_nothing_again():
    X, y = friedman(4000)
    tree = Tree()
    tree.learn_many(X, y)
    before = tree.copy().predict_many(X)
    tree = limited(tree, tree.nbytes + tree.nbytes // 15)  # for notes
    _memory.rank_now(tree._kernel, tree.nbytes // 2)
    tree = limited(tree, 2 * tree.parameters["max_bytes"])
    _memory.rank_now(tree._kernel, 0)
    np.testing.assert_array_equal(tree.predict_many(X), before)
    assert (tree._kernel.leaf_table["weight"][: tree.n_leaves] == 0).any()
    assert tree.copy().to_bytes() == tree.to_bytes()


@pytest.mark.parametrize(
    ("make", "limit", "loss"),
    [
        (QuantizerObserver, 500_000, 0.03),
        (partial(QuantizerObserver, slots=32), 150_000, 0.03),
        (partial(QuantizerObserver, "std/2"), 300_000, 0.05),
        (EBSTObserver, 500_000, 0.05),
    ],
)
def test_a_tight_limit_costs_little_accuracy(make, limit, loss):
    X, y = friedman(25_000, features=8)
    scores = []
    for max_bytes in (None, limit):
        tree = HoeffdingTreeRegressor(observer=make(), max_bytes=max_bytes)
        predictions = tree.predict_learn_many(X, y)
        errors = np.square(predictions - y)[12_500:]
        scores.append(1 - errors.mean() / y[12_500:].var())
    assert tree.nbytes <= limit
    assert scores[1] > scores[0] - loss


@pytest.mark.parametrize("make", [QuantizerObserver, EBSTObserver])
def test_leaves_are_ranked_seldom(make):
    """For a ranking looks at all leaves."""
    X, y = friedman(20_000, noise=0.1)
    tree = Tree(observer=make(), max_bytes=400_000)
    ranked = {0.0}
    for start in range(0, len(y), 20):
        tree.learn_many(X[start : start + 20], y[start : start + 20])
        ranked.add(tree._kernel.stream["ranked_at"])
    assert not watching(tree).all()
    assert 1 < len(ranked) < 120


# What has no room


def test_the_smallest_limit():
    words = f"max_bytes = {LEAST_BYTES - 1}: at least {LEAST_BYTES} are expected"
    with pytest.raises(ValueError, match=words):
        Tree(max_bytes=LEAST_BYTES - 1)
    for make in OBSERVERS.values():
        tree = Tree(max_bytes=LEAST_BYTES, observer=make())
        tree.learn_one({}, 3.0)
        assert tree.predict_one({}) == 3.0
        assert tree.nbytes <= LEAST_BYTES


@every_observer
def test_a_limit_too_small_for_the_features(make):
    X, y = friedman(100, features=40)
    tree = Tree(max_bytes=30_000, observer=make())
    data = tree.to_bytes()
    words = (
        r"max_bytes = 30000: there is no room for 40 features and their labels "
        r"\(a tree of 1 leaves needs \d+\); allow more, or leave features out"
    )
    with pytest.raises(ValueError, match=words):
        tree.learn_many(X, y)
    with pytest.raises(ValueError, match=words):
        tree.learn_one(dict(enumerate(X[0])), 1.0)
    assert tree.to_bytes() == data
    assert tree.features == []
    tree.learn_many(X[:, :2], y)
    assert tree.features == [0, 1]
    assert tree.nbytes <= 30_000


@every_observer
def test_a_limit_that_is_just_enough(make):
    """Whatever the limit is: the features are refused, or the limit holds."""
    X, y = friedman(300, features=5)
    accepted = []
    for limit in range(LEAST_BYTES, 80_000, 1500):
        tree = Tree(max_bytes=limit, observer=make())
        try:
            tree.learn_many(X[:1], y[:1])
        except ValueError:
            accepted.append(False)
            continue
        accepted.append(True)
        learn_within(tree, X[1:], y[1:], limit, most=50)
    assert accepted == sorted(accepted)
    assert set(accepted) == {False, True}


@every_observer
def test_a_feature_that_comes_later_and_has_no_room(make):
    X, y = friedman(3000)
    limit = 90_000
    tree = Tree(max_bytes=limit, observer=make())
    tree.learn_many(X, y)
    wide = {place: X[:10, place % 5] for place in range(60)}
    data = tree.to_bytes()
    with pytest.raises(ValueError, match=f"max_bytes = {limit}: there is no room for 60 features"):
        tree.learn_many(wide, y[:10])
    with pytest.raises(ValueError, match=f"max_bytes = {limit}: there is no room for 60 features"):
        tree.learn_one({place: column[0] for place, column in wide.items()}, 1.0)
    assert tree.to_bytes() == data
    assert np.isfinite(tree.predict_many(wide)).all()
    learn_within(tree, X, y, limit)
    tree.learn_one(dict(enumerate(X[0])), 1.0)


def test_a_feature_that_comes_later_and_finds_room():
    """Some leaves stop watching for it: those that promise least."""
    X, y = friedman(3000, features=8)
    limit = 100_000
    tree = Tree(max_bytes=limit)
    tree.learn_many(X[:, :5], y)
    before = watching(tree)
    promise = _memory.promises(tree._kernel)
    tree.learn_many({place: X[:1, place] for place in range(8)}, y[:1])
    after = watching(tree)
    assert 1 < after.sum() < before.sum()
    assert not (after & ~before).any()
    assert promise[after].min() >= promise[before & ~after].max()
    assert tree.nbytes <= limit
    learn_within(tree, X, y, limit)
