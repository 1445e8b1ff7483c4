"""Deltas of categories of many: their sums add, and levels are those of one worker."""

import itertools
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_merge import assert_same_delta, deltas_of, total

import tree_cases
from sapwood import HoeffdingTreeRegressor, ModelFileError
from sapwood.merge import Delta, MergeError, ShardLearner, apply, take_snapshot
from sapwood.merge.alignment import many_of
from sapwood.scale import train
from sapwood.storage import container
from scale_cases import Backwards


def shops(rows, labels, seed=1, prefix="s"):
    """Rows of a number and of a category, whose level is most of y."""
    draw = np.random.default_rng(seed)
    codes, x = draw.integers(0, labels, rows), np.round(draw.random(rows), 3)
    levels = np.random.default_rng(99).normal(0, 3, labels)
    y = levels[codes] + 2 * x + draw.normal(0, 0.5, rows)
    columns = {"x": x.tolist(), "shop": [f"{prefix}{code}" for code in codes]}
    return tree_cases.Stream(columns, y, np.ones(rows))


@st.composite
def sharded(draw):
    """A tree whose category is one of few or of many, and shards that bring further ones."""
    known = draw(st.sampled_from([5, 60, 63, 64, 100]))
    tree = tree_cases.tree_of(shops(300, known), grace_period=50, track=None)
    parts = [
        shops(draw(st.integers(1, 200)), draw(st.sampled_from([3, 62, 130])), shard, prefix)
        for shard, prefix in enumerate(draw(st.sampled_from(["ss", "st", "ttu", "stuv"])))
    ]
    return tree, parts


def naive_sums(tree, parts):
    """Sums of y and its square from the first y of a tree, by label; written to be obvious."""
    sums = defaultdict(lambda: [0.0, 0.0, 0.0])
    for part in parts:
        for label, y, w in zip(part.columns["shop"], part.y, part.w, strict=True):
            own = y - tree._kernel.first
            for power in range(3):
                sums[label][power] += w * own**power
    return sums


# -- laws -----------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(sharded())
def test_deltas_add_in_any_order_whoever_finds_the_64th_category(case):
    tree, parts = case
    deltas = deltas_of(tree, parts)
    expected = total(deltas)
    for order in itertools.islice(itertools.permutations(deltas), 6):
        assert_same_delta(total(order), expected)
    assert_same_delta(Delta.from_bytes(expected.to_bytes()), expected)


@settings(max_examples=15)
@given(sharded())
def test_sums_of_categories_are_those_of_their_rows(case):
    tree, parts = case
    was_many = tree._kernel.columns.place_table[1] >= 0
    together = total(deltas_of(tree, parts))
    place = together.features["names"].index("shop")
    expected = naive_sums(tree, parts)
    if place not in many_of(together.features):
        assert not len(together.arrays["label_sums"])
        return
    found = dict(
        zip(together.features["labels"][place], together.arrays["label_sums"], strict=True)
    )
    for label, own in found.items():
        powers = 3 if was_many else 2  # while they are few, squares are not counted
        np.testing.assert_allclose(own[:powers], expected[label][:powers], rtol=1e-9, atol=1e-9)
        assert own[2] <= expected[label][2] * (1 + 1e-9) + 1e-9
    assert {label for label, own in expected.items() if own[0]} <= found.keys()


@pytest.mark.parametrize("labels", [64, 100, 300])
def test_levels_are_those_of_one_worker_that_learned_all(labels):
    """As long as no mean forgets anything."""
    first = shops(2_000, labels)
    tree = tree_cases.tree_of(first, max_depth=0)
    serial = tree.copy()
    parts = [shops(300, labels + 20, shard) for shard in (2, 3, 4)]
    apply(tree, total(deltas_of(tree, parts)))
    for part in parts:
        serial.learn_many(part.columns, part.y)
    mine, theirs = (
        dict(zip(each._features.categories[1], each._kernel.encodings_of(1), strict=False))
        for each in (tree, serial)
    )
    assert mine.keys() == theirs.keys()
    start = 64 * 2
    np.testing.assert_allclose(
        tree._kernel.encoding_table[start : start + 3],
        serial._kernel.encoding_table[start : start + 3],
        rtol=1e-9,
    )
    for label, level in theirs.items():
        np.testing.assert_allclose(mine[label], level, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("labels", "first"), [(100, 50), (100, 2_000), (500, 2_000)])
def test_rounds_are_as_accurate_as_one_process(labels, first):
    rows = shops(14_000, labels)
    tree = tree_cases.tree_of(rows.part(0, first), track=None)
    done = first
    while done < 10_000:
        end = min(10_000, done + max(1_000, done // 2))
        part = rows.part(done, end)
        cuts = np.linspace(0, end - done, 5).astype(int)[1:-1].tolist()
        apply(tree, total(deltas_of(tree, part.parts(cuts))))
        done = end
    assert tree.feature_kinds["shop"] == "category"
    serial = tree_cases.tree_of(rows.part(0, 10_000), track=None)
    rest = rows.part(10_000)
    scores = [tree_cases.r2(rest.y, each.predict_many(rest.columns)) for each in (serial, tree)]
    assert scores[1] > scores[0] - 0.003
    assert HoeffdingTreeRegressor.from_bytes(tree.to_bytes()).to_bytes() == tree.to_bytes()


def test_workers_learn_files_with_many_categories(tmp_path):
    rows = shops(6_000, 150)
    path = tmp_path / "shops.parquet"
    pa.parquet.write_table(pa.table({**rows.columns, "y": rows.y}), path)
    found = {
        engine: train(
            HoeffdingTreeRegressor(),
            str(path),
            workers=3,
            engine=engine,
            read_options={"target": "y"},
            first=1_000,
        )
        for engine in ("threads", Backwards())
    }
    one, other = found.values()
    assert one.rows_learned == 6_000
    assert len(one.model._features.categories[1]) == 150
    assert one.model.to_bytes() == other.model.to_bytes()
    assert one.r2 > 0.8


def test_means_forget_as_those_of_a_tree_do():
    """A category that has changed its level is followed, as its mean remembers 256 rows."""
    rows = shops(30_000, 70)
    tree = tree_cases.tree_of(rows, max_depth=0)
    weights = tree._kernel.encoding_table[64 * 2 + 3 : 64 * 2 + 3 + 70, 0]
    assert weights.max() == 256
    later = shops(40_000, 70, 2)
    moved = later._replace(y=later.y + 50)
    apply(tree, total(deltas_of(tree, [moved])))
    means = tree._kernel.encoding_table[64 * 2 + 3 : 64 * 2 + 3 + 70]
    assert means[:, 0].max() == 256
    labels = np.array([float(label[1:]) for label in tree._features.categories[1]])
    expected = np.random.default_rng(99).normal(0, 3, 70)[labels.astype(int)] + 51
    np.testing.assert_allclose(means[:, 1] + tree._kernel.first, expected, atol=0.3)


def test_ids_that_one_worker_finds_are_ids():
    tree = tree_cases.tree_of(shops(20, 5))
    numbers = np.arange(17_000.0)
    ids = tree_cases.Stream(
        {"x": numbers, "shop": [f"id{place}" for place in range(17_000)]}, numbers, numbers + 1
    )
    known = total(deltas_of(tree, [shops(50, 5, 2), ids]))
    assert known.features["kinds"] == ["number", "identifier"]
    apply(tree, known)
    assert tree.feature_kinds["shop"] == "identifier"


# -- what is refused ------------------------------------------------------------------------------


def test_categories_that_share_a_level_are_refused_by_name():
    rows = shops(3_000, 400)
    tree = tree_cases.tree_of(rows.part(0, 60), max_bytes=400_000)
    learner = ShardLearner(take_snapshot(tree), 0)
    with pytest.raises(MergeError, match=r"^'shop' has more categories than can be distinguished"):
        learner.predict_learn_many(rows.columns, rows.y)
    tree.learn_many(rows.columns, rows.y)
    with pytest.raises(MergeError, match=r"^'shop' has more .* --drop shop"):
        take_snapshot(tree)


def test_more_categories_than_the_tree_has_levels_for_are_refused():
    tree = tree_cases.tree_of(shops(60, 10), max_bytes=400_000)
    deltas = deltas_of(tree, [shops(200, 60, 1), shops(200, 60, 2, "t")])
    with pytest.raises(
        MergeError, match=r"^'shop' has \d+ categories .* at most 97 can be distinguished"
    ):
        apply(tree, total(deltas))


@pytest.mark.parametrize(
    "lie",
    [
        lambda sums: sums[1:],
        lambda sums: -sums,
        lambda sums: sums * 1e9,
        lambda sums: sums * [1.0, 1e200, 1.0],
        lambda sums: sums * [1.0, 1.0, -1.0],
        lambda sums: sums + np.nan,
    ],
    ids=["short", "negative", "heavy", "far", "square", "nan"],
)
def test_sums_that_cannot_be_are_refused(lie):
    tree = tree_cases.tree_of(shops(300, 80))
    [delta] = deltas_of(tree, [shops(100, 80, 2)])
    data = delta.to_bytes()
    header, arrays = container.unpack(data, "TreeDelta", "the delta")
    lying = container.pack("TreeDelta", header, {**arrays, "label_sums": lie(arrays["label_sums"])})
    with pytest.raises(ModelFileError):
        Delta.from_bytes(lying)
    assert Delta.from_bytes(data).rows == 100
