"""Deltas: they add in any order, equal one worker for sums, and foreign ones are refused."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_merge
import sapwood
import tree_cases
from sapwood import HoeffdingTreeRegressor, ModelFileError
from sapwood.merge import Delta, MergeError, ShardLearner, apply, take_snapshot
from sapwood.merge.applying import take_in
from sapwood.merge.layout import WEIGHTED_ERRORS
from sapwood.storage import container

SLOTS = ("auto", "auto-8")
SUMS = ("rows", "weight", "target_mean", "target_m2", "residual_mean", "residual_m2", "mass")


@st.composite
def sharded(draw, tame=False, **fixed):
    """A tree that has learned the first rows of a stream, and the shards of the others."""
    stream = draw(tree_cases.streams(numbers=(1, 4), rows=(40, 150), tame=tame))
    arguments = draw(tree_cases.parameters(SLOTS, **fixed))
    first = draw(st.integers(20, 38))
    shards = draw(st.integers(1, 4))
    tree = tree_cases.tree_of(stream.part(0, first), **arguments)
    assume(tree._kernel.undecided < 0)
    rest = stream.part(first)
    cuts = sorted(draw(st.integers(0, len(rest.y))) for _ in range(shards - 1))
    return tree, rest, rest.parts(cuts)


def learned(snapshot, shard, part):
    worker = ShardLearner(snapshot, shard)
    worker.predict_learn_many(part.columns, part.y, part.w)
    return worker


def deltas_of(tree, parts, round=0):
    snapshot = take_snapshot(tree, round)
    return [learned(snapshot, shard, part).delta() for shard, part in enumerate(parts)]


def total(deltas):
    result = deltas[0]
    for delta in deltas[1:]:
        result = result + delta
    return result


def still(tree):
    """The tree, none of whose leaves will ever be due."""
    records = tree._kernel.leaf_table[: tree._kernel.leaf_count]
    records["due"] = records["review"] = np.inf
    return tree


def assert_near(one, other, scale=None):
    """Within rounding of the largest of them; models are as exact as their covariance allows."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    assert one.shape == other.shape
    if one.size:
        most = np.abs(other).max() if scale is None else scale
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7 * most + 1e-250)


def assert_same_delta(one, other):
    assert (one.base, one.round, one.shards) == (other.base, other.round, other.shards)
    assert one.features == other.features
    for name in ("places", "parts_at", "parts", "layer"):
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name])
    for name in ("slots", "levels", "label_sums", "stream", "scores"):
        assert_near(one.arrays[name], other.arrays[name])
    sums, others = one.arrays["sums"], other.arrays["sums"]
    for name in ("leaf", "slots", "rows"):
        np.testing.assert_array_equal(sums[name], others[name])
    assert_near(sums["weight"], others["weight"])
    sums, others = one.arrays["target_sums"], other.arrays["target_sums"]
    for name in (*SUMS, *WEIGHTED_ERRORS):
        assert_near(sums[name], others[name])
    for row, other_row in zip(one.arrays["models"], other.arrays["models"], strict=True):
        assert_near(row, other_row)


# -- laws -----------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(sharded())
def test_deltas_add_in_any_order_and_grouping(case):
    tree, _, parts = case
    deltas = deltas_of(tree, parts)
    expected = total(deltas)
    for order in itertools.islice(itertools.permutations(deltas), 6):
        assert_same_delta(total(order), expected)
    if len(deltas) == 4:
        assert_same_delta((deltas[3] + deltas[1]) + (deltas[2] + deltas[0]), expected)


@pytest.mark.parametrize("shard", [-1, 2**62 + 1, 0.5, None, True])
def test_numbers_that_no_shard_has(shard):
    """They were accepted, and the delta could not be read."""
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(np.arange(20.0)[:, None], np.arange(20.0))
    with pytest.raises(ValueError, match=r"shard = .*expected"):
        ShardLearner(take_snapshot(tree), shard)


@settings(max_examples=30)
@given(sharded())
def test_a_shard_without_rows_changes_nothing(case):
    tree, rest, _ = case
    full, empty = deltas_of(tree, [rest, rest.part(0, 0)])
    for both in (full + empty, empty + full):
        assert both.shards == (0, 1)
        for name, array in full.arrays.items():
            np.testing.assert_array_equal(both.arrays[name], array)
    before = tree.to_bytes()
    apply(tree, empty)
    assert tree.to_bytes() == before


@settings(max_examples=40)
@given(sharded(tame=True))
def test_sums_are_those_of_one_worker_that_learned_all(case):
    tree, rest, parts = case
    together = total(deltas_of(tree, parts))
    alone = deltas_of(tree, [rest])[0]
    assert together.rows == alone.rows == len(rest.y)
    one, other = together.arrays, alone.arrays
    np.testing.assert_array_equal(one["sums"]["leaf"], other["sums"]["leaf"])
    for name in ("rows", "weight"):
        assert_near(one["sums"][name], other["sums"][name])
    np.testing.assert_array_equal(one["stream"][:, :3], other["stream"][:, :3])
    np.testing.assert_array_equal(one["places"], other["places"])
    assert_near(one["slots"][:, 0], other["slots"][:, 0])
    held = abs(one["target_sums"]["target_mean"] - other["target_sums"]["target_mean"])
    if held.max(initial=0.0) <= 1e-9 * np.abs(rest.y).max():  # no y was held near a prediction
        scale = np.abs(rest.y).max() * rest.w.sum()
        assert_near(one["slots"][:, 1], other["slots"][:, 1], scale)
        assert_near(one["levels"][..., :2], other["levels"][..., :2], scale)
        # The least squares of each shard: together at least those of one worker.
        assert (one["levels"][..., 2] >= other["levels"][..., 2] - 1e-7 * scale).all()


@settings(max_examples=40)
@given(sharded(tame=True))
def test_a_tree_becomes_what_the_slow_twin_says(case):
    tree, _, parts = case
    snapshot = take_snapshot(tree)
    before = [naive_merge.Leaf(tree, leaf) for leaf in range(tree.n_leaves)]
    workers = [learned(snapshot, shard, part) for shard, part in enumerate(parts)]
    result = still(tree.copy())
    take_in(result, total([worker.delta() for worker in workers]))
    for leaf, base in enumerate(before):
        shards = [naive_merge.Leaf(worker.tree, leaf) for worker in workers]
        started = [base.record["rows"] + worker.shard % 8 for worker in workers]
        expected = naive_merge.merged_leaf(base, started, shards)
        found = naive_merge.Leaf(result, leaf)
        if expected is None:
            assert found.record["rows"] == base.record["rows"]
            continue
        for name in expected.keys() - {"coefficients", "covariance"}:
            assert_near(found.record[name], expected[name], np.abs(found.record["target_m2"]) + 1)
        if base.linear:
            deviations = np.sqrt(np.diag(expected["covariance"]))
            np.testing.assert_allclose(
                found.covariance / np.outer(deviations, deviations),
                expected["covariance"] / np.outer(deviations, deviations),
                atol=1e-5,
            )
            assert_near(found.coefficients, expected["coefficients"])


@settings(max_examples=40)
@given(sharded())
def test_one_shard_applied_is_the_worker_itself(case):
    tree, rest, _ = case
    worker = learned(take_snapshot(tree), 0, rest)
    result = still(tree.copy())
    take_in(result, worker.delta())
    assert result._kernel.rows == worker.tree._kernel.rows
    assert result.features == worker.tree.features or sorted(map(str, result.features)) == sorted(
        map(str, worker.tree.features)
    )
    expected = worker.tree.predict_many(rest.columns)
    spread = np.ptp(rest.y) + np.abs(rest.y).max()
    np.testing.assert_allclose(result.predict_many(rest.columns), expected, atol=1e-5 * spread)


@settings(max_examples=30)
@given(sharded())
def test_what_a_tree_becomes_can_be_saved_and_goes_on(case):
    tree, rest, parts = case
    apply(tree, total(deltas_of(tree, parts)))
    twin = HoeffdingTreeRegressor.from_bytes(tree.to_bytes())
    assert int(twin._kernel.rows) == int(tree._kernel.rows)
    for each in (tree, twin):
        each.learn_many(rest.columns, rest.y, rest.w)
    assert tree.to_bytes() == twin.to_bytes()


@settings(max_examples=30)
@given(sharded())
def test_a_delta_survives_bytes(case):
    tree, _, parts = case
    for delta in deltas_of(tree, parts, round=7):
        data = delta.to_bytes()
        twin = Delta.from_bytes(data)
        assert twin.to_bytes() == data
        assert twin.round == 7
        for name, array in delta.arrays.items():
            np.testing.assert_array_equal(twin.arrays[name], array)


# -- what workers find ----------------------------------------------------------------------------


def grown(rows=600):
    x, y = tree_cases.friedman(rows, features=5)
    columns = {"a": x[:, 0], "b": x[:, 1], "d": x[:, 3]}
    tree = HoeffdingTreeRegressor(grace_period=50, delta=0.5)
    tree.learn_many(columns, y)
    return tree


def test_new_features_and_categories_of_workers_are_merged():
    tree = grown()
    tree.learn_many({"a": [0.1, 0.2], "c": ["red", "blue"]}, [1.0, 2.0])
    x, y = tree_cases.friedman(300, seed=2, features=5)
    first = {"a": x[:, 0], "c": ["red", "zinc", "green"] * 100, "z": x[:, 1]}
    second = {"b": x[:, 1], "c": ["blue", "amber", "zinc"] * 100, "e": ["x", "y"] * 150}
    parts = [tree_cases.Stream(columns, y, np.ones(300)) for columns in (first, second)]
    one, two = deltas_of(tree, parts)
    both = one + two
    assert_same_delta(both, two + one)
    result = tree.copy()
    apply(result, both)
    assert result.features == ["a", "b", "d", "c", "e", "z"]
    assert result.feature_kinds["e"] == "category"
    labels = dict(zip(result.features, result._features.categories, strict=True))
    assert labels["c"] == {"red": 0, "blue": 1, "amber": 2, "green": 3, "zinc": 4}
    assert int(result._kernel.rows) == 602 + 600
    # The weight of each category is what was there, and what both workers saw.
    weights = result._kernel.encoding_table[64 * 3 : 64 * 4, 0]
    assert weights[:6].tolist() == [101.0, 101.0, 100.0, 100.0, 200.0, 0.0]
    means = result._kernel.encoding_table[64 * 3 : 64 * 4, 1] + result._kernel.first
    zinc = np.concatenate([y[1::3], y[2::3]])
    assert means[4] == pytest.approx(zinc.mean(), rel=1e-9)
    assert sapwood.model.from_bytes(result.to_bytes()).features == result.features


def test_a_feature_of_two_kinds_is_refused():
    tree = grown()
    parts = [
        tree_cases.Stream({"a": [0.5], "n": values}, np.ones(1), np.ones(1))
        for values in ([1.0], ["one"])
    ]
    one, two = deltas_of(tree, parts)
    with pytest.raises(MergeError, match=r"'n' holds numbers in one shard and labels in another"):
        one + two


def test_a_wider_range_of_workers_lays_one_grid():
    """The leaf has seen one value only of a number; two workers see two ranges of it."""
    x, y = tree_cases.friedman(200, features=5)
    tree = HoeffdingTreeRegressor(grace_period=1e6)
    tree.learn_many({"a": x[:, 0], "k": np.full(200, 5.0)}, y)
    parts = [
        tree_cases.Stream(
            {"a": x[:100, 0], "k": np.linspace(low, low + 1, 100)}, y[:100], np.ones(100)
        )
        for low in (0.0, 10.0)
    ]
    one, two = deltas_of(tree, parts)
    assert len(one.arrays["parts"]) == len(two.arrays["parts"]) == 1
    both = one + two
    assert len(both.arrays["parts"]) == 2
    assert_same_delta(both, two + one)
    still(tree)
    take_in(tree, both)
    low, width, inverse, _ = tree._kernel.watch_page(0)[4:8]
    assert low <= 0.0
    assert low + 32 * width >= 11.0
    assert inverse == 1 / width
    start = tree._kernel.slot_start(1)
    slots = tree._kernel.watch_page(0)[start : start + 32 * 3].reshape(32, 3)
    assert slots[:, 0].sum() == 400.0  # the rows that were kept as one are among them
    inside = slice(int((4.9 - low) / width), int((5.1 - low) / width) + 1)
    assert slots[inside, 0].sum() == 200.0


def test_rounds_grow_a_tree_about_as_good_as_a_serial_one():
    x, y = tree_cases.friedman(20_000)
    later, truth = tree_cases.friedman(5_000, seed=9)
    serial = HoeffdingTreeRegressor()
    serial.learn_many(x, y)
    tree, done, round = HoeffdingTreeRegressor(), 8_000, 0
    tree.learn_many(x[:done], y[:done])
    while done < len(y):
        end, round = min(len(y), done + max(2_000, done // 10)), round + 1
        edges = np.linspace(done, end, 9).astype(int)
        parts = [
            tree_cases.Stream({place: x[a:b, place] for place in range(10)}, y[a:b], np.ones(b - a))
            for a, b in itertools.pairwise(edges)
        ]
        apply(tree, total(deltas_of(tree, parts, round)))
        done = end
    assert int(tree._kernel.rows) == 20_000
    scores = [tree_cases.r2(truth, each.predict_many(later)) for each in (serial, tree)]
    assert scores[0] > 0.9
    assert scores[1] > scores[0] - 0.012


# -- what is refused ------------------------------------------------------------------------------


def small_delta():
    tree = grown()
    x, y = tree_cases.friedman(40, seed=3, features=5)
    part = tree_cases.Stream({"a": x[:, 0], "b": x[:, 1], "d": x[:, 3]}, y, np.ones(40))
    return tree, part, deltas_of(tree, [part, part], round=3)


def test_deltas_that_do_not_belong_together_are_refused():
    tree, part, (one, two) = small_delta()
    with pytest.raises(MergeError, match="shard 0 of round 3 is in both"):
        one + one
    with pytest.raises(MergeError, match="shard 1 of round 3 is in both"):
        (one + two) + two
    other = deltas_of(tree, [part], round=4)[0]
    with pytest.raises(MergeError, match=r"different bases do not add|different rounds do not add"):
        one + other
    before = tree.to_bytes()
    foreign = grown(700)
    with pytest.raises(MergeError, match="round 3 belongs to another snapshot"):
        apply(foreign, one)
    apply(tree, one)
    assert tree.to_bytes() != before
    with pytest.raises(MergeError, match="round 3 belongs to another snapshot"):
        apply(tree, two)  # the tree has changed


def test_a_delta_or_snapshot_of_another_release_is_refused(monkeypatch):
    tree, _, (one, _) = small_delta()
    data, snapshot = one.to_bytes(), take_snapshot(tree)
    monkeypatch.setattr(sapwood, "__version__", "99.0")
    with pytest.raises(MergeError, match=r"a worker with sapwood 0.* and the driver has 99.0"):
        Delta.from_bytes(data)
    with pytest.raises(MergeError, match=r"made by sapwood 0.* and this worker has 99.0"):
        ShardLearner(snapshot)


def test_what_is_no_delta_is_refused():
    tree, _, (one, _) = small_delta()
    with pytest.raises(ModelFileError, match="holds 'HoeffdingTreeRegressor', not 'TreeDelta'"):
        Delta.from_bytes(tree.to_bytes())
    with pytest.raises(ModelFileError, match="holds 'TreeDelta', not 'TreeSnapshot'"):
        ShardLearner(one.to_bytes())
    data = one.to_bytes()
    rng = np.random.default_rng(4)
    for place in rng.integers(0, len(data), 200):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.integers(8)
        with pytest.raises(ModelFileError):
            Delta.from_bytes(bytes(damaged))


def lie(change):
    """A delta whose checksum is right, and whose content was changed."""
    _, _, (one, _) = small_delta()
    header, arrays = container.unpack(one.to_bytes(), "TreeDelta")
    change(header, arrays)
    return container.pack("TreeDelta", header, arrays)


LIES = {
    "leaf": lambda h, a: a["sums"]["leaf"].__setitem__(0, -1),
    "order": lambda h, a: a["sums"]["leaf"].__setitem__(-1, 0),
    "rows": lambda h, a: a["sums"]["rows"].__setitem__(0, 0.5),
    "more rows": lambda h, a: a["stream"].__setitem__((0, 0), 41.0),
    "weight": lambda h, a: a["sums"]["weight"].__setitem__(0, -1.0),
    "mass": lambda h, a: a["target_sums"]["mass"].__setitem__((0, 0), 0.0),
    "spread": lambda h, a: a["target_sums"]["target_m2"].__setitem__((0, 0), -1.0),
    "error": lambda h, a: a["target_sums"]["error_0"].__setitem__((0, 0), -1.0),
    "not finite": lambda h, a: a["models"].__setitem__((0, 0), np.nan),
    "information": lambda h, a: a["models"].__setitem__((0, 0), 1e40),
    "place": lambda h, a: a["places"].__setitem__(0, 10**6),
    "places": lambda h, a: a["places"].__setitem__(1, a["places"][0]),
    "slot": lambda h, a: a["slots"].__setitem__((0, 0), 1e6),
    "sum": lambda h, a: a["slots"].__setitem__((0, 1), 1e120),
    "slots": lambda h, a: a["sums"]["slots"].__setitem__(0, 99),
    "range": lambda h, a: a["stream"].__setitem__((0, 1), 1e6),
    "levels": lambda h, a: a["levels"].__setitem__((0, 0, 0), 1.0),
    "squares of levels": lambda h, a: a["levels"].__setitem__((0, 0, 2), -1.0),
    "grid": lambda h, a: a["facts"].__setitem__((0, 0), 0.5),
    "finer grid": lambda h, a: a["facts"].__setitem__((0, 0), 6.0),
    "weight of costs": lambda h, a: a["facts"].__setitem__((0, 4), -1.0),
    "cost": lambda h, a: a["facts"].__setitem__((0, 3), np.inf),
    "scores": lambda h, a: a["scores"].__setitem__((0, 2), -1.0),
    "targets": lambda h, a: a.__setitem__("target_sums", a["target_sums"].repeat(2, axis=1)),
    "rows of a target": lambda h, a: a["target_sums"]["rows"].__setitem__((0, 0), 0.0),
    "weight of a target": lambda h, a: a["target_sums"]["weight"].__setitem__((0, 0), -1.0),
    "layer": lambda h, a: a["layer"].__setitem__(0, 7.0),
    "shards": lambda h, a: h.__setitem__("shards", [1, 0]),
    "no shards": lambda h, a: h.__setitem__("shards", []),
    "base": lambda h, a: h.__setitem__("base", "x"),
    "known": lambda h, a: h.__setitem__("known", [0] * 9),
    "features": lambda h, a: h["features"].__setitem__("kinds", ["category"] * 3),
    "entry": lambda h, a: h.__setitem__("more", 1),
    "array": lambda h, a: a.__setitem__("more", np.zeros(1)),
    "no array": lambda h, a: a.__delitem__("levels"),
}


@pytest.mark.parametrize("change", LIES.values(), ids=LIES.keys())
def test_a_delta_that_lies_is_refused(change):
    with pytest.raises(ModelFileError, match="the delta is damaged"):
        Delta.from_bytes(lie(change))


def test_trees_that_cannot_be_shared_out_are_refused():
    with pytest.raises(MergeError, match="has learned 0 rows"):
        take_snapshot(HoeffdingTreeRegressor())
    watched = HoeffdingTreeRegressor(observer=sapwood.EBSTObserver())
    watched.learn_many(np.arange(20.0)[:, None], np.arange(20.0))
    with pytest.raises(MergeError, match="watch by observers"):
        take_snapshot(watched)
    with pytest.raises(MergeError, match="this is ForestRegressor"):
        take_snapshot(sapwood.ForestRegressor())


def test_a_tree_with_a_limit_stays_within_it():
    x, y = tree_cases.friedman(4_000)
    tree = HoeffdingTreeRegressor(max_bytes=150_000, grace_period=50, delta=0.5)
    tree.learn_many(x[:500], y[:500])
    for round, start in enumerate(range(500, 4_000, 500)):
        parts = [
            tree_cases.Stream(dict(enumerate(x[a : a + 250].T)), y[a : a + 250], np.ones(250))
            for a in (start, start + 250)
        ]
        apply(tree, total(deltas_of(tree, parts, round)))
        assert tree.nbytes <= 150_000
    assert int(tree._kernel.rows) == 4_000
    assert tree.n_leaves > 4


# -- what is known of columns ----------------------------------------------------------------------


def test_grids_join_to_the_finest_and_costs_add():
    rng = np.random.default_rng(4)
    whole = rng.integers(0, 20, (3000, 2)).astype(float)
    y = whole[:, 0] + rng.normal(size=3000)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(whole[:1000], y[:1000])
    before = tree._kernel.columns.known_facts.copy()
    assert before["decimals"].tolist() == [0, 0]
    shards = [whole[1000:2000], whole[2000:].copy()]
    shards[1][500, 1] = 7.25
    snapshot = take_snapshot(tree)
    deltas = []
    for shard, (x, labels) in enumerate(zip(shards, (y[1000:2000], y[2000:]), strict=True)):
        worker = ShardLearner(snapshot, shard)
        worker.predict_learn_many(x, labels)
        deltas.append(worker.delta())
    apply(tree, deltas[0] + deltas[1])
    facts = tree._kernel.columns.known_facts
    assert facts["decimals"].tolist() == [0, 2]
    for place, name in ((3, "cost"), (4, "weight")):
        added = deltas[0].arrays["facts"][:, place] + deltas[1].arrays["facts"][:, place]
        np.testing.assert_allclose(facts[name], before[name] + added)
    assert facts["weight"].sum() > 2.5 * before["weight"].sum()
    assert tree.feature_importances["0"] > 0.999
    assert HoeffdingTreeRegressor.from_bytes(tree.to_bytes()).to_bytes() == tree.to_bytes()
