"""Features of many categories: their levels, what a tree makes of them, and what they cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_cases import predict_flat
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor
from sapwood.export import flat
from sapwood.rows.column import IDS
from sapwood.tree.layout import CATEGORY, LISTED, NUMBER
from tree_cases import r2

FEW = 63


def stores(categories, rows, seed=1):
    """Stores whose levels and slopes differ: columns, and y."""
    rng = np.random.default_rng(seed)
    level, slope = rng.normal(0, 3, categories), rng.normal(1, 0.5, categories)
    store, x = rng.integers(0, categories, rows), rng.random(rows)
    y = level[store] + slope[store] * 3 * x + rng.normal(size=rows)
    return {"store": [f"s{number}" for number in store], "x": x}, y


def write_locked(columns, y):
    """Rows one by one."""
    for store, x, target in zip(columns["store"], columns["x"].tolist(), y.tolist(), strict=True):
        yield {"store": store, "x": x}, target


def learned_one_by_one(model, columns, y):
    said = []
    for x, target in write_locked(columns, y):
        said.append(model.predict_one(x))
        model.learn_one(x, target)
    return np.array(said)


def listed(rows=600):
    """A tree that split 40 categories by their codes, before there were more than 63."""
    rng = np.random.default_rng(2)
    early = rng.integers(0, 40, 400)
    later = rng.integers(0, 90, rows)
    code = np.concatenate([early, later])
    y = 5.0 * (code % 2) + 0.1 * rng.normal(size=len(code))
    tree = HoeffdingTreeRegressor(leaf="mean")
    columns = {"store": [f"s{number}" for number in code], "x": rng.random(len(code))}
    return tree, columns, y


def test_levels_explain_as_much_as_the_running_mean_and_more():
    columns, y = stores(300, 6000)
    predictions = HoeffdingTreeRegressor().predict_learn_many(columns, y)
    sums, counts, running = {}, {}, np.empty(len(y))
    for row, store in enumerate(columns["store"]):
        mean = y[:row].mean() if row else 0.0
        running[row] = (sums.get(store, 0.0) + mean) / (counts.get(store, 0) + 1)
        sums[store] = sums.get(store, 0.0) + y[row]
        counts[store] = counts.get(store, 0) + 1
    assert r2(y, running) > 0.7
    assert r2(y, predictions) > r2(y, running) + 0.04


def test_a_level_is_a_mean_shrunk_by_what_a_row_is_worth():
    columns, y = stores(200, 3000)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(columns, y)
    codes = tree._features.categories[0]
    code = np.array([codes[store] for store in columns["store"]])
    # Those before the 64th label tell nothing of squares, as it was one of few then.
    start = int(np.flatnonzero(code == FEW)[0])
    within, about = [], []
    for row in range(start, len(y)):
        own = y[:row][code[:row] == code[row]]
        if len(own):
            within.append((y[row] - own.mean()) ** 2 * len(own) / (len(own) + 1))
        about.append((y[row] - y[:row].mean()) ** 2 * row / (row + 1))
    prior = np.mean(within) / (np.mean(about) - np.mean(within))
    assert 0.1 < prior < 0.6
    levels = tree._kernel.encodings_of(0)
    for number in (0, 5, FEW, 150, 199):
        own = y[code == number]
        expected = (own.sum() + prior * y.mean()) / (len(own) + prior)
        assert np.isclose(levels[number], expected, rtol=1e-9, atol=1e-9)
    assert np.isclose(levels[-1], y.mean())


def test_a_new_category_is_predicted_by_what_all_of_them_do():
    columns, y = stores(500, 4000)
    tree = HoeffdingTreeRegressor(track=None)
    tree.learn_many(columns, y)
    said = [tree.predict_one({"store": "never seen", "x": x}) for x in (0.1, 0.5, 0.9)]
    assert np.allclose(said, y.mean() + 3 * (np.array([0.1, 0.5, 0.9]) - 0.5), atol=0.7)


def test_a_level_follows_where_its_category_goes():
    """Of a category, 256 rows are remembered: most of its old y is forgotten."""
    tree = HoeffdingTreeRegressor()
    names = [f"s{number}" for number in range(100)]
    tree.learn_many({"store": [*names, *["s7"] * 5000]}, [*range(100), *[7.0] * 5000])
    tree.learn_many({"store": ["s7"] * 512}, [27.0] * 512)
    level = tree._kernel.encodings_of(0)[tree._features.categories[0]["s7"]]
    assert np.isclose(level, 27 - 20 * (1 - 1 / 256) ** 512, atol=0.2)


def test_noise_of_a_category_seen_once_is_not_believed():
    """Categories that say nothing: their levels are shrunk to almost nothing."""
    rng = np.random.default_rng(3)
    store, x = rng.integers(0, 3000, 6000), rng.random(6000)
    y = 10 * x + rng.normal(size=6000)
    with_stores, without = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    labels = [f"s{number}" for number in store]
    found = r2(y, with_stores.predict_learn_many({"store": labels, "x": x}, y))
    assert found > r2(y, without.predict_learn_many({"x": x}, y)) - 0.01


@pytest.mark.parametrize(
    "model",
    [
        HoeffdingTreeRegressor,
        lambda: HoeffdingTreeRegressor(leaf="mean", grace_period=20, delta=0.5, tau=0.5),
        lambda: ForestRegressor(members=3),
        AdaptiveTreeRegressor,
    ],
    ids=["tree", "mean", "forest", "adaptive"],
)
def test_a_batch_is_the_same_as_a_loop_also_where_categories_become_many(model):
    columns, y = stores(150, 700)
    batch, loop = model(), model()
    together = batch.predict_learn_many(columns, y)
    assert np.array_equal(together, learned_one_by_one(loop, columns, y))
    assert batch.to_bytes() == loop.to_bytes()
    copy = batch.copy()
    assert copy.to_bytes() == batch.to_bytes()
    assert copy.nbytes == batch.nbytes
    more, targets = stores(400, 300, seed=4)
    assert np.array_equal(batch.predict_many(more), copy.predict_many(more))
    assert np.array_equal(
        batch.predict_learn_many(more, targets), copy.predict_learn_many(more, targets)
    )
    assert copy.to_bytes() == batch.to_bytes()


@given(st.lists(st.integers(0, 80), min_size=70, max_size=160), st.integers(0, 160))
def test_wherever_a_batch_is_divided(codes, at):
    columns = {"store": [f"s{code}" for code in [*codes, *range(70)]]}
    y = np.arange(len(columns["store"])) % 7 + 0.5
    whole, parts = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    said = whole.predict_learn_many(columns, y)
    first = parts.predict_learn_many({"store": columns["store"][:at]}, y[:at])
    second = parts.predict_learn_many({"store": columns["store"][at:]}, y[at:])
    assert np.array_equal(said, [*first, *second])
    assert whole.to_bytes() == parts.to_bytes()


def test_up_to_63_categories_nothing_is_different():
    columns, y = stores(FEW, 2000)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(columns, y)
    assert tree._kernel.columns.place_table.tolist() == [-1, -1]
    assert tree._kernel.encoding_table.shape == (128, 2)


def test_splits_by_codes_stay_and_levels_take_over():
    tree, columns, y = listed()
    tree.learn_many({name: column[:400] for name, column in columns.items()}, y[:400])
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    assert nodes["kind"][0] == CATEGORY
    split = nodes["subset"][0]
    text = tree.to_text(digits=3)
    start = next(row for row in range(400, 1000) if len(set(columns["store"][: row + 1])) > FEW)
    tree.learn_many({name: column[400:start] for name, column in columns.items()}, y[400:start])
    turned = {name: column[start : start + 1] for name, column in columns.items()}
    tree.learn_many(turned, y[start : start + 1])
    assert tree._kernel.node_table["kind"][0] == LISTED
    root, names = tree._kernel.node_table[0], [f"s{code}" for code in range(40)]
    assert root["subset"] == split
    for name in names:
        left = int(split) >> tree._features.categories[0][name] & 1
        assert tree.predict_region_one({"store": name})[1] == root["child"] + (not left)
    # The question of the root reads as it did.
    assert tree.to_text(digits=3).splitlines()[0] == text.splitlines()[0]
    tree.learn_many({name: column[start + 1 :] for name, column in columns.items()}, y[start + 1 :])
    assert tree.copy().to_bytes() == tree.to_bytes()


def test_splits_by_codes_are_exported_by_a_column_of_codes():
    tree, columns, y = listed(3000)
    tree.learn_many(columns, y)
    made = flat.flatten(tree)
    assert made.names == ["store", "x", "code of store"]
    assert made.labels == [[], [], list(tree._features.categories[0])[:FEW]]
    assert set(made.kind[made.feature == 2]) == {CATEGORY}
    assert NUMBER in made.kind[made.feature == 0]
    X = {"store": ["s1", "never", None, "s89"], "x": [0.5] * 4}
    matrix = flat.encode(tree, X)
    assert matrix.shape == (4, 3)
    codes = tree._features.categories[0]
    assert matrix[:, 2].tolist()[:2] == [codes["s1"], FEW]
    assert np.isnan(matrix[2, 2])
    assert matrix[3, 2] == min(codes["s89"], FEW)
    np.testing.assert_allclose(predict_flat(made, matrix), tree.predict_many(X))


def test_pages_and_texts_tell_levels():
    columns, y = stores(1000, 8000)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(columns, y)
    node = tree._kernel.node_table[0]
    assert node["kind"] == NUMBER
    assert tree.features[node["feature"]] == "store"
    threshold = node["threshold"] + tree._kernel.first
    count = len(tree._features.categories[0])
    below = int(np.sum(tree._kernel.encodings_of(0)[:count] < threshold))
    first = tree.to_text(digits=4).splitlines()[0]
    assert first.startswith(f"store: those below {threshold:.6g} ({below} of {count})")
    frame = tree.to_frame()
    assert np.isclose(frame["threshold"][0], threshold)
    assert frame["condition"][2].startswith("store: those above ")
    assert "store: those" in str(tree.explain({"store": "s5", "x": 0.5}))


def test_exports_read_levels_as_numbers():
    columns, y = stores(200, 4000)
    tree = HoeffdingTreeRegressor(leaf="mean", track=None)
    tree.learn_many(columns, y)
    rows = {"store": ["s5", "never", None, "s199"], "x": [0.5, 0.1, 0.2, None]}
    matrix = flat.encode(tree, rows)
    codes = tree._features.categories[0]
    levels = tree._kernel.encodings_of(0)
    expected = [levels[codes["s5"]], levels[-1], np.nan, levels[codes["s199"]]]
    np.testing.assert_array_equal(matrix[:, 0], expected)
    made = flat.flatten(tree)
    assert made.labels == [[], []]
    for row, said in zip(matrix, tree.predict_many(rows), strict=True):
        node = 0
        while made.left[node] >= 0:
            value = row[made.feature[node]]
            left = made.missing_left[node] if np.isnan(value) else value < made.threshold[node]
            node = made.left[node] if left else made.right[node]
        assert np.isclose(made.values[node], said)


def test_ids_are_noticed_where_memory_is_limited():
    """With 12 MB there are codes for 2,929 labels, fewer than are looked at without a limit."""
    x = np.random.default_rng(3).normal(size=4_000)
    ids = [f"id {number}" for number in range(4_000)]
    ids[100:103] = ids[:3]  # some come twice
    for kind in (HoeffdingTreeRegressor, AdaptiveTreeRegressor):
        batch, alone = kind(max_bytes=12_000_000), kind(max_bytes=12_000_000)
        batch.learn_many({"x": x, "id": ids}, 10 * x)
        for row in range(3_200):
            alone.learn_one({"x": x[row], "id": ids[row]}, 10 * x[row])
        for model in (batch, alone):
            assert model.feature_kinds == {"x": "number", "id": "identifier"}
            assert type(model).from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


@pytest.mark.parametrize(("limit", "labels"), [(12_000_000, 50_000), (1_000_000, 10**9)])
def test_what_may_repeat_is_no_id(limit, labels):
    """Many categories, or too few rows to tell."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, labels, 4_000)
    tree = HoeffdingTreeRegressor(max_bytes=limit)
    tree.learn_many({"k": [f"label {code}" for code in codes]}, rng.normal(size=4_000))
    assert tree.feature_kinds == {"k": "category"}


def test_ids_cost_nothing_and_are_told():
    rows = IDS + 500
    x = np.random.default_rng(5).random(rows)
    ids = [f"id {number}" for number in range(rows)]
    tree, without = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    tree.learn_many({"x": x, "id": ids}, 10 * x)
    without.learn_many({"x": x}, 10 * x)
    assert tree.feature_kinds == {"x": "number", "id": "identifier"}
    assert tree.summary.identifiers == ("id",)
    assert str(tree.summary).endswith("id: its values hardly ever repeat, it is left out")
    assert tree.nbytes < 3 * without.nbytes
    assert tree.copy().to_bytes() == tree.to_bytes()
    said = tree.predict_one({"x": 0.5, "id": "id 7"})
    assert said == tree.predict_one({"x": 0.5, "id": None}) == tree.predict_one({"x": 0.5})


def test_memory_is_bounded_by_max_bytes():
    limit = 100_000
    tree = HoeffdingTreeRegressor(max_bytes=limit)
    rng = np.random.default_rng(6)
    for batch in range(8):
        labels = [f"{rng.integers(0, 10**6)}" for _ in range(500)]
        x = rng.random(500)
        tree.learn_many({"store": labels, "x": x}, 10 * x)
        assert tree.nbytes <= limit, batch
    assert tree._features.known.counts == [64, 0]
    assert tree._kernel.columns.place_table.tolist() == [80, -1]
    assert tree.n_leaves > 3


def test_levels_are_counted():
    columns, y = stores(600, 2500)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(columns, y)
    places = tree._kernel.columns.place_table[0]
    assert places == 1024
    assert tree._kernel.encoding_table.shape == (2 * 64 + 3 + places, 2)
    assert tree.nbytes > tree._kernel.encoding_table.nbytes + tree._features.nbytes
