"""Laws of trees of several targets."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from sapwood import HoeffdingTreeRegressor
from target_cases import NAMES, arrays_of, columns_of, stream_of

KINDS = ("plain", "gaps", "categories", "weights", "late")


def tree_of(**parameters):
    return HoeffdingTreeRegressor(**{"grace_period": 50, "tau": 0.15, **parameters})


def shape_of(tree):
    """All splits: features, thresholds and ways of missing values."""
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    names = ["kind", "feature", "child", "missing_left", "threshold", "subset"]
    return [nodes[name].tolist() for name in names]


def state_of(tree):
    header, arrays = tree.to_state()
    return header, {name: array.tobytes() for name, array in arrays.items()}


@st.composite
def streams(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(150, 300))
    X, columns = columns_of(rng, rows)
    Y = np.column_stack([columns[name] for name in NAMES])
    missing = rng.random(Y.shape) < draw(st.sampled_from([0.0, 0.3]))
    missing[:, 2] = False
    Y[missing] = np.nan
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.1]))] = np.nan
    w = rng.uniform(0.5, 3, rows) if draw(st.booleans()) else np.ones(rows)
    return X, Y, w


parameters = st.fixed_dictionaries(
    {
        "leaf": st.sampled_from(["mean", "linear", "adaptive"]),
        "split_on": st.sampled_from(["target", "residual", "best"]),
        "track": st.sampled_from(["auto", None]),
    }
)


@given(streams(), parameters)
def test_a_batch_is_the_same_as_one_by_one(stream, own):
    X, Y, w = stream
    batch, single = tree_of(**own), tree_of(**own)
    said = batch.predict_learn_many(X, Y, w)
    for row in range(len(X)):
        x = dict(enumerate(X[row].tolist()))
        expected = single.predict_one(x)
        assert list(said[row]) == (list(expected.values()) if row else [0.0, 0.0, 0.0])
        single.learn_one(x, dict(enumerate(Y[row].tolist())), w[row])
    assert state_of(batch)[0] == state_of(single)[0]
    assert shape_of(batch) == shape_of(single)
    assert batch.predict_many(X).tobytes() == single.predict_many(X).tobytes()


@pytest.mark.parametrize(
    "sizes", [[500], [1] * 500, [7, 200, 93, 200]], ids=["whole", "1", "parts"]
)
def test_more_categories_than_have_codes_come_in_batches_as_one_by_one(sizes):
    stream = stream_of("many", 500)
    batch, single = tree_of(), tree_of()
    said = []
    for start, size in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True):
        part = stream[start : start + size]
        found = batch.predict_learn_many([x for x, _, _ in part], [y for _, y, _ in part])
        said += found.tolist()
    for row, (x, y, _) in enumerate(stream):
        expected = single.predict_one(x)
        assert said[row] == (list(expected.values()) if row else [0.0, 0.0, 0.0])
        single.learn_one(x, y)
    assert state_of(batch)[0] == state_of(single)[0]
    assert len(single._features.categories[4]) > 63
    again = HoeffdingTreeRegressor.from_bytes(single.to_bytes())
    assert again.predict_one(stream[-1][0]) == single.predict_one(stream[-1][0])


@given(streams(), parameters, st.permutations([0, 1, 2]))
def test_targets_in_another_order_give_the_same(stream, own, order):
    X, Y, w = stream
    one, other = tree_of(**own), tree_of(**own)
    said = one.predict_learn_many(X, Y, w)
    permuted = other.predict_learn_many(X, np.ascontiguousarray(Y[:, order]), w)
    assert shape_of(one) == shape_of(other)
    assert permuted.tobytes() == np.ascontiguousarray(said[:, order]).tobytes()


@given(streams(), parameters, st.integers(0, 3))
def test_a_target_that_is_always_missing_changes_nothing(stream, own, place):
    X, Y, w = stream
    one, other = tree_of(**own), tree_of(**own)
    said = one.predict_learn_many(X, Y, w)
    wider = other.predict_learn_many(X, np.insert(Y, place, np.nan, axis=1), w)
    assert np.delete(wider, place, axis=1).tobytes() == said.tobytes()
    assert (wider[:, place] == 0.0).all()
    assert shape_of(one) == shape_of(other)


@given(streams(), parameters, st.integers(2, 4))
def test_copies_of_one_target_give_what_one_gives(stream, own, copies):
    X, Y, w = stream
    one, several = tree_of(**own), tree_of(**own)
    expected = one.predict_learn_many(X, Y[:, 2], w)
    said = several.predict_learn_many(X, np.repeat(Y[:, 2:], copies, axis=1), w)
    assert shape_of(one) == shape_of(several)
    assert np.abs(said - expected[:, None]).max() <= 1e-9 * np.ptp(Y[:, 2])


def test_copies_of_one_target_with_categories_and_gaps_in_features():
    rows = [(x, y["c"]) for x, y, _ in stream_of("categories", 600)]
    one, several = tree_of(), tree_of()
    for x, y in rows:
        expected, said = one.predict_one(x), several.predict_one(x)
        if several.targets:
            assert abs(said["b"] - expected) <= 1e-9
        one.learn_one(x, y)
        several.learn_one(x, {"a": y, "b": y})
    assert one.n_leaves > 3
    assert shape_of(one) == shape_of(several)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leaf", ["mean", "adaptive"])
def test_saved_and_loaded_goes_on_as_if_nothing_had_happened(kind, leaf, tmp_path):
    stream = stream_of(kind, 500)
    tree = tree_of(leaf=leaf)
    for x, y, w in stream[:300]:
        tree.learn_one(x, y, w)
    for x, _, _ in stream[300:320]:
        tree.predict_one(x)
    tree.save(tmp_path / "tree.sapwood")
    twins = [sapwood.load(tmp_path / "tree.sapwood"), copy.deepcopy(tree)]
    twins.append(pickle.loads(pickle.dumps(tree)))
    for twin in twins:
        assert twin.targets == list(NAMES)
        assert twin.nbytes == tree.nbytes
        assert twin.to_bytes() == tree.to_bytes()
    for x, y, w in stream[300:]:
        for each in (tree, *twins):
            each.learn_one(x, y, w)
    assert tree.n_leaves > 2
    for twin in twins:
        assert twin.to_bytes() == tree.to_bytes()


@pytest.mark.parametrize("max_bytes", [120_000, 200_000])
def test_memory_that_is_limited(max_bytes):
    X, Y, _ = arrays_of(stream_of("plain", 3000))
    tree, free = tree_of(max_bytes=max_bytes), tree_of()
    for start in range(0, len(X), 500):
        tree.learn_many(X[start : start + 500], Y[start : start + 500])
        assert tree.nbytes <= max_bytes
    free.learn_many(X, Y)
    assert 1 < tree.n_leaves < free.n_leaves
    again = sapwood.HoeffdingTreeRegressor.from_bytes(tree.to_bytes())
    assert again.nbytes == tree.nbytes


def test_nbytes_are_those_that_there_are():
    X, Y, _ = arrays_of(stream_of("plain", 3000))
    tree = tree_of()
    tree.learn_many(X, Y)
    kernel = tree._kernel
    pages = sum(page.nbytes for page in (*kernel.model_pages, *kernel.watch_pages))
    tables = [kernel.node_table, kernel.leaf_table, kernel.target_records.nodes]
    tables += [kernel.target_records.leaves, kernel.target_records.streams, kernel.layer_table]
    tables += [kernel.columns.known_costs, kernel.columns.known_samples]
    least = pages + sum(table.nbytes for table in tables)
    assert least < tree.nbytes < 1.2 * least + 50_000


def test_there_is_no_room_for_so_many_targets():
    tree = tree_of(max_bytes=40_000)
    with pytest.raises(ValueError, match="max_bytes = 40000: there is no room"):
        tree.learn_many(np.zeros((2, 3)), np.zeros((2, 50)))
    assert tree.targets == tree.features == []
    tree.learn_many(np.zeros((2, 3)), np.zeros(2))
