"""A node becomes a leaf again: it knows what all leaves below knew, and nothing else changes."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood import (
    AdaptiveTreeRegressor,
    EBSTObserver,
    ForestRegressor,
    HoeffdingTreeRegressor,
)
from sapwood.inspect import snapshot
from sapwood.intervals import IntervalRegressor
from sapwood.limits import MOST_ERROR
from sapwood.tree import joining
from sapwood.tree.layout import LEAF

Tree = HoeffdingTreeRegressor


def stream(rows, seed=1):
    """Numbers, a category, missing values, and a y that needs many splits."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4))
    k = rng.choice(["p", "q", "r"], rows)
    y = 5.0 * np.abs(X[:, 0]) + 3.0 * (X[:, 1] > 0.2) * X[:, 2] + 2.0 * (k == "p")
    y += 4.0 * (X[:, 3] > 0) + 0.2 * rng.normal(size=rows)
    X[rng.random((rows, 4)) < 0.03] = np.nan
    columns = {**dict(zip("abcd", X.T, strict=True)), "k": k.tolist()}
    return columns, y


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def grown(rows=3000, seed=1, targets=1, **parameters):
    columns, y = stream(rows, seed)
    tree = Tree(**{"grace_period": 60, **parameters})
    if targets == 1:
        tree.learn_many(columns, y)
    else:
        more = np.where(np.arange(rows) % 5 == 0, np.nan, np.abs(y) - 3.0 * (columns["a"] > 0))
        tree.learn_many(columns, {"y": y, "z": np.where(np.isnan(columns["a"]), 0.0, more)})
    return tree, columns, y


def inner_nodes(tree):
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    return np.flatnonzero(nodes["kind"] != LEAF)


def picture(tree):
    return snapshot.picture(tree._kernel, tree._features)


def same_from_now_on(tree, columns, y):
    """A tree that was saved and loaded goes on to the same bits."""
    twin = Tree.from_bytes(tree.to_bytes())
    assert twin.to_bytes() == tree.to_bytes()
    for each in (tree, twin):
        each.learn_many(columns, y)
    assert twin.to_bytes() == tree.to_bytes()


def test_errors_of_models_that_are_worlds_apart_stay_what_a_file_may_hold():
    tree, *_ = grown(1000)
    leaves = tree._kernel.leaf_table[:2]
    joined = joining.joined_records(np.ones(2), leaves, 1.0, np.full((2, 4), 1e300))
    assert joined.leaf["error_0"] == joined.leaf["said_3"] == MOST_ERROR
    assert joined.leaf["error_mean"] < 1e3


# -- laws -----------------------------------------------------------------------------------------


KINDS = [
    {},
    {"track": None},
    {"leaf": "mean"},
    {"leaf": "linear", "track": None},
    {"observer": EBSTObserver()},
    {"max_bytes": 60_000},
]


@settings(max_examples=20)
@given(st.sampled_from(KINDS), st.integers(0, 5), st.floats(0, 1))
def test_what_is_outside_stays_and_what_is_below_adds_up(parameters, seed, choice):
    tree, columns, y = grown(1500, seed, **parameters)
    inner = inner_nodes(tree)
    node = int(inner[int(choice * (len(inner) - 1))])
    before = picture(tree)
    said, regions = tree.predict_regions(columns)
    size, leaves = tree.nbytes, tree.n_leaves

    places = tree.prune(node)

    after, at = picture(tree), int(places[node])
    assert tree.n_leaves == leaves - before.below.leaves[node] + 1
    assert tree.nbytes < size
    assert after.columns["kind"][at] == LEAF
    assert after.columns["weight"][at] == pytest.approx(before.below.weight[node], rel=1e-12)
    assert after.columns["mean"][at] == pytest.approx(before.below.mean[node], rel=1e-9)
    now, new_regions = tree.predict_regions(columns)
    np.testing.assert_array_equal(new_regions, places[regions])
    outside = new_regions != at
    np.testing.assert_array_equal(now[outside], said[outside])
    same_from_now_on(tree, columns, y)


@settings(max_examples=8)
@given(st.booleans(), st.integers(0, 3), st.floats(0, 1))
def test_several_targets(with_category, seed, choice):
    tree, columns, _ = grown(1500, seed, targets=2)
    if not with_category:
        columns = {name: column for name, column in columns.items() if name != "k"}
        y = tree.predict_many(columns)
        tree = Tree(grace_period=60)
        tree.learn_many(columns, y)
    inner = inner_nodes(tree)
    node = int(inner[int(choice * (len(inner) - 1))])
    before = picture(tree)
    expected = before.of_targets[
        [
            place
            for place, kind in enumerate(before.columns["kind"])
            if kind == LEAF and _is_below(before, place, node)
        ]
    ]
    said, regions = tree.predict_regions(columns)
    size = tree.nbytes
    places = tree.prune(node)
    at, after = int(places[node]), picture(tree)
    for target in range(2):
        own, record = expected[:, target], after.of_targets[at, target]
        assert record["weight"] == pytest.approx(own["weight"].sum(), rel=1e-12)
        mean = (own["weight"] * own["mean"]).sum() / own["weight"].sum()
        assert record["mean"] == pytest.approx(mean, rel=1e-9)
    now, new_regions = tree.predict_regions(columns)
    np.testing.assert_array_equal(new_regions, places[regions])
    outside = new_regions != at
    np.testing.assert_array_equal(now[outside], said[outside])
    assert tree.nbytes < size
    same_from_now_on(tree, columns, {"y": said[:, 0], "z": said[:, 1]})


def _is_below(before, place, node):
    while place >= 0 and place != node:
        place = before.columns["parent"][place]
    return place == node


def test_to_the_root_and_on_the_tree_grows_again():
    tree, columns, y = grown()
    many = tree.n_leaves
    places = tree.prune(0)
    assert tree.n_leaves == 1
    assert not places.any()
    weight = tree.to_frame()["weight"].iloc[0]
    tree.learn_many(columns, y)
    tree.learn_many(columns, y)
    assert tree.n_leaves > many // 2
    assert weight <= 3000


# -- the linear models ----------------------------------------------------------------------------


def raw_models(tree, leaf, target=0):
    """Information and coefficients of a leaf in terms of the features as they are, and of 1."""
    kernel = tree._kernel
    page = kernel.model_page(leaf)
    centres, scales, covariance, terms = kernel.page_parts()
    start, rest = kernel.model_place(target)
    n = kernel.features + 1
    own = page[rest : rest + kernel.page_size]
    c, s = own[centres:scales], own[scales:covariance]
    matrix = own[covariance:]
    P = np.diag(matrix[:n]) if len(matrix) == terms else matrix.reshape(terms, terms)[:n, :n]
    units = np.zeros((n, n))
    units[0, 0] = 1.0
    for feature in range(n - 1):
        units[1 + feature, 0] = -c[feature] * s[feature]
        units[1 + feature, 1 + feature] = s[feature]
    origin = (
        kernel.leaf_table["origin"][leaf]
        if kernel.targets == 1
        else kernel.target_records.leaves.reshape(-1, kernel.targets)["origin"][leaf, target]
    )
    beta = units.T @ page[start : start + 4 * n].reshape(n, 4)
    beta[0] += origin
    to_raw = np.linalg.inv(units)  # which makes the features of their terms
    return to_raw @ np.linalg.inv(P) @ to_raw.T, beta


@pytest.mark.parametrize("targets", [1, 2])
def test_models_are_joined_by_their_information(targets):
    tree, *_ = grown(targets=targets)
    leaves = range(tree.n_leaves)
    for target in range(targets):
        parts = [raw_models(tree, leaf, target) for leaf in leaves]
        information = sum(L for L, _ in parts)
        beta = np.linalg.solve(information, sum(L @ b for L, b in parts))
        twin = tree.copy()
        twin.prune(0)
        L, found = raw_models(twin, 0, target)
        np.testing.assert_allclose(L, information, rtol=1e-6, atol=1e-9 * np.abs(information).max())
        np.testing.assert_allclose(found, beta, rtol=1e-6, atol=1e-8)


def test_many_features_are_joined_by_their_variances():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 45))
    y = 2 * X[:, 0] - X[:, 1] + 6 * (X[:, 2] > 0) + 0.1 * rng.normal(size=4000)
    tree = Tree(max_depth=2)
    tree.learn_many(X, y)
    assert tree.n_leaves >= 3
    slopes = [raw_models(tree, leaf)[1][1:3, 0] for leaf in range(tree.n_leaves)]
    tree.prune(0)
    _, beta = raw_models(tree, 0)
    assert np.abs(beta[1:3, 0] - [2, -1]).max() <= np.abs(np.array(slopes) - [2, -1]).max() + 0.02
    same_from_now_on(tree, X, y)


def test_a_line_that_was_cut_in_vain_is_whole_again():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(6000, 3))
    line = X @ [3.0, -2.0, 1.0] + 7.0
    tree = Tree(leaf="linear", split_on="target", track=None)
    tree.learn_many(X, line + 0.1 * rng.normal(size=6000))
    assert tree.n_leaves > 4
    tree.prune(0)
    assert np.abs(tree.predict_many(X) - line).max() < 0.1


def test_of_two_slopes_neither_is_taken():
    """The line of one side would be far off on the other; that of all rows is near the mean."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-1, 1, 3000)])
    y = np.abs(x) + 0.01 * rng.normal(size=3000)
    tree = Tree(max_depth=1, track=None)
    tree.learn_many({"x": x}, y)
    assert tree.n_leaves == 2
    tree.prune(0)
    errors = np.abs(tree.predict_many({"x": x}) - y)
    assert errors.max() < 0.75
    fit = np.polyval(np.polyfit(x, y, 1), x)
    assert np.sqrt(np.mean(errors**2)) < 1.1 * np.sqrt(np.mean((fit - y) ** 2))


def test_features_that_are_far_away_are_joined_too():
    rng = np.random.default_rng(6)
    far, x = 1e200 * rng.normal(size=3000), rng.random(3000)
    tree = Tree(max_depth=1, leaf="linear", track=None)
    tree.learn_many({"far": far, "x": x}, 2e-200 * far + 5.0 * (x < 0.7))
    assert tree.n_leaves == 2
    tree.prune(0)
    difference = tree.predict_one({"far": 1e200, "x": 0.5}) - tree.predict_one({"far": 0, "x": 0.5})
    assert difference == pytest.approx(2.0, abs=0.1)


def test_models_that_cannot_be_joined_are_those_of_the_heaviest_leaf(monkeypatch):
    rng = np.random.default_rng(6)
    far, x = rng.normal(size=3000), rng.random(3000)
    tree = Tree(max_depth=1, leaf="linear", track=None)
    tree.learn_many({"far": far, "x": x}, 5.0 * (x < 0.7) + x)
    assert tree.n_leaves == 2
    monkeypatch.setattr(joining, "_inverse", lambda matrix: np.full(matrix.shape, np.nan))
    heaviest = int(np.argmax(picture(tree).nodes["weight"][1:]))
    leaf = int(tree._kernel.node_table["child"][1 + heaviest])
    row = {"far": 0.0, "x": 0.3 if heaviest == 0 else 0.9}
    page, said = tree._kernel.model_page(leaf), tree.predict_one(row)
    tree.prune(0)
    np.testing.assert_array_equal(tree._kernel.model_page(0)[4:], page[4:])
    assert tree.predict_one(row) == pytest.approx(said, abs=0.2)


# -- trials, decisions, limits ---------------------------------------------------------------------


def on_trial(rows=3300):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (rows, 6))
    return X, 3 * np.sign(X[:, 0] * X[:, 1]) + rng.normal(0, 0.5, rows)


def test_a_trial_goes_on_in_another_leaf_and_ends_with_its_own():
    X, y = on_trial(30_000)
    y += 12.0 * (X[:, 5] > 0)
    tree = Tree()
    for start in range(0, len(X), 100):
        tree.learn_many(X[start : start + 100], y[start : start + 100])
        leaf = int(tree._kernel.trial_table[0]["leaf"][0])
        nodes = tree._kernel.node_table[: tree._kernel.node_count]
        at = int(tree._kernel.leaf_table["node"][leaf]) if leaf >= 0 else 0
        chain = [at]
        while chain[-1] > 0:
            chain.append(int(nodes["parent"][chain[-1]]))
        others = [node for node in inner_nodes(tree) if node not in chain]
        if leaf >= 0 and len(chain) > 1 and others:
            break
    else:
        pytest.fail("no trial beside a split")
    record, pages = tree._kernel.trial_table
    elsewhere, here = tree.copy(), tree.copy()
    places = elsewhere.prune(others[0])
    kept, kept_pages = elsewhere._kernel.trial_table
    assert elsewhere._kernel.leaf_table["node"][kept["leaf"][0]] == places[at]
    np.testing.assert_array_equal(kept_pages, pages)
    assert kept["feature"] == record["feature"]
    here.prune(chain[1])
    assert here._kernel.trial_table[0]["leaf"][0] == -1
    same_from_now_on(elsewhere, X[:500], y[:500])
    same_from_now_on(here, X[:500], y[:500])


def test_a_decision_that_is_outstanding_is_that_of_the_same_leaf_or_of_none():
    tree, columns, y = grown()
    nodes = tree._kernel.node_table
    inside = int(nodes["child"][0])
    node = inside if nodes["kind"][inside] != LEAF else inside + 1
    regions = tree.predict_regions(columns)[1]
    at = [int(place) for place in np.unique(regions)]
    is_below = [_is_below(picture(tree), place, node) for place in at]
    for below in (False, True):
        leaf = int(nodes["child"][at[is_below.index(below)]])
        twin = tree.copy()
        twin._kernel.set_undecided(leaf)
        places = twin.prune(node)
        if below:
            assert twin._kernel.undecided == -1
        else:
            new = twin._kernel.leaf_table["node"][twin._kernel.undecided]
            assert new == places[tree._kernel.leaf_table["node"][leaf]]
        same_from_now_on(twin, columns, y)


def test_where_no_leaf_below_watches_the_new_one_does_not_either():
    tree, columns, y = grown(3000, max_bytes=200_000)
    nodes = tree._kernel.node_table
    pairs = [(node, nodes["child"][node] + np.arange(2)) for node in inner_nodes(tree)]
    node, children = next(pair for pair in pairs if (nodes["kind"][pair[1]] == LEAF).all())
    for leaf in nodes["child"][children]:
        tree._kernel.unwatch(leaf)
    at = int(tree.prune(node)[node])
    assert not picture(tree).columns["watching"][at]
    assert tree.nbytes <= 200_000
    same_from_now_on(tree, columns, y)


# -- what is refused, and who else is there --------------------------------------------------------


@pytest.mark.parametrize("node", [-1, 10_000, 1.5, "root", None, True])
def test_nodes_that_there_are_not(node):
    tree, *_ = grown(1500)
    data = tree.to_bytes()
    with pytest.raises(ValueError, match="node = "):
        tree.prune(node)
    assert tree.to_bytes() == data


def test_a_leaf_cannot_be_pruned():
    with pytest.raises(ValueError, match="node = 0 is a leaf: there is nothing below it"):
        Tree().prune(0)


def test_a_member_of_a_forest_is_pruned_as_a_tree():
    columns, y = stream(4000)
    forest = ForestRegressor(members=3)
    forest.learn_many(columns, y)
    member = forest.member(0)
    before = member.n_leaves
    member.prune(0)
    assert before > member.n_leaves == 1
    same_from_now_on(member, columns, y)


def test_readers_see_the_tree_before_or_after():
    tree, columns, y = grown(2000)
    rows, stop, wrong = rows_of(columns)[:20], threading.Event(), []

    def read():
        while not stop.is_set():
            for x in rows:
                if not np.isfinite(tree.predict_one(x)):
                    wrong.append(x)
            frame = tree.to_frame()
            if (frame["parent"] >= len(frame)).any():
                wrong.append(frame)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for _ in range(20):
            tree.prune(0)
            tree.learn_many(columns, y)
    finally:
        stop.set()
        thread.join()
    assert not wrong


# -- other features to split on --------------------------------------------------------------------


def test_other_features_may_be_named_while_the_tree_lives():
    tree, columns, y = grown(2000)
    assert tree.no_splits == ()
    text, said = tree.to_text(), tree.predict_many(columns)
    tree.no_splits = ["d", "a"]
    assert tree.no_splits == tree.parameters["no_splits"] == ("a", "d")
    assert tree.to_text() == text
    np.testing.assert_array_equal(tree.predict_many(columns), said)
    tree.prune(0)
    same_from_now_on(tree, columns, y)
    nodes = tree._kernel.node_table[inner_nodes(tree)]
    assert len(nodes)
    assert {tree.features[place] for place in nodes["feature"]}.isdisjoint({"a", "d"})
    tree.no_splits = ()
    assert tree.parameters["no_splits"] == ()
    assert "no_splits" not in tree.to_state().header["parameters"]


def test_a_trial_of_a_feature_that_is_named_ends():
    X, y = on_trial()
    tree = Tree()
    tree.learn_many(X, y)
    feature = int(tree._kernel.trial_table[0]["feature"][0])
    other = tree.copy()
    other.no_splits = [5 - feature]
    assert other._kernel.trial_table[0]["leaf"][0] == 0
    tree.no_splits = [feature]
    assert tree._kernel.trial_table[0]["leaf"][0] == -1
    same_from_now_on(tree, X, y)


def test_names_for_which_there_is_no_memory_are_refused():
    tree, *_ = grown(2000, max_bytes=60_000)
    data = tree.to_bytes()
    with pytest.raises(ValueError, match="max_bytes = 60000: there is no room for the names"):
        tree.no_splits = [f"a name of a feature that is not there, {place}" for place in range(900)]
    assert tree.to_bytes() == data
    assert tree.no_splits == ()


def test_observers_are_measured_again_where_names_take_of_their_room():
    tree, columns, y = grown(2000, max_bytes=60_000, observer=EBSTObserver())
    kernel = tree._kernel
    assert kernel.stream["measure_at"] > kernel.rows
    count = int(kernel.stream["bound"] - tree.nbytes) // sys.getsizeof("long name 100") + 1
    tree.no_splits = [f"long name {100 + place}" for place in range(count)]
    assert kernel.stream["measure_at"] == kernel.rows
    assert tree.nbytes <= kernel.stream["bound"]
    same_from_now_on(tree, columns, y)
    assert tree.nbytes <= 60_000


def test_a_split_on_a_number_that_runs_is_mended():
    """What comes is beyond every threshold; without the splits the tree is as good as one that
    never made them."""
    rng = np.random.default_rng(8)
    number, x = np.arange(9000.0), rng.random(9000)
    number[:3000] = rng.permutation(3000)
    y = 8.0 * (number > 1500) * (number < 3000) + 20.0 * (x > 0.5) * x + rng.normal(size=9000)
    early, late = slice(0, 3000), slice(3000, None)
    tree, other = Tree(track=None), Tree(track=None, no_splits=["number"])
    for each in (tree, other):
        each.learn_many({"number": number[early], "x": x[early]}, y[early])
    is_on_number = tree.to_frame()["feature"] == "number"
    assert is_on_number.any()
    tree.no_splits = ["number"]
    while True:
        frame = tree.to_frame()
        found = frame["node"][(frame["feature"] == "number") & (frame["kind"] != "leaf")]
        if not len(found):
            break
        tree.prune(int(found.iloc[0]))
    errors = []
    for each in (tree, other):
        said = each.predict_learn_many({"number": number[late], "x": x[late]}, y[late])
        errors.append(np.sqrt(np.mean((said - y[late]) ** 2)))
    assert errors[0] < 1.3 * errors[1]


@pytest.mark.parametrize("way", ["at once", "by file"])
def test_intervals_follow_a_tree_that_was_pruned(way):
    """The widths of regions elsewhere stay; that of the leaf is made of those below."""
    rng = np.random.default_rng(2)
    x, z = rng.random((2, 12_000))
    noise = np.where(x < 0.5, np.where(z < 0.5, 0.02, 0.2), 2.0)
    y = np.where(x < 0.5, 0.0, 10.0) + np.where(z < 0.5, 0.0, 3.0) * (x < 0.5)
    model = IntervalRegressor(HoeffdingTreeRegressor(leaf="mean", track=None), levels=[0.8])
    model.learn_many({"x": x, "z": z}, y + noise * rng.normal(size=12_000))
    tree = model.model

    def widths():
        rows = {"x": [0.25, 0.25, 0.75], "z": [0.25, 0.75, 0.5]}
        return np.diff(model.predict_interval_many(rows, 0.8), axis=1)[:, 0]

    before = widths()
    node = tree.predict_region_one({"x": 0.25, "z": 0.25})[1]
    parent = int(tree.region_parents[node])
    assert parent > 0
    tree.prune(parent)
    if way == "by file":
        model = IntervalRegressor.from_bytes(model.to_bytes())
    after = widths()
    assert after[2] == before[2]
    assert min(before[:2]) <= after[0] <= max(before[:2]) * 1.01
    model.learn_many({"x": x, "z": z}, y + noise * rng.normal(size=12_000))
    assert len(model.widths) == model.region_tree.n_leaves


@pytest.mark.parametrize("change", ["prune", "no_splits"])
def test_a_trial_of_several_targets_ends_if_its_leaf_or_its_feature_goes(change):
    X, y = on_trial(8000)
    y += 12.0 * (X[:, 5] > 0)
    y = np.stack([y, X[:, 1] - 2.0 * y], 1)
    tree = Tree()
    for start in range(0, len(X), 100):
        tree.learn_many(X[start : start + 100], y[start : start + 100])
        trial = tree._kernel.trial_table[0]
        if tree.n_leaves > 1 and trial["leaf"][0] >= 0:
            break
    else:
        pytest.fail("no trial beside a split")
    if change == "prune":
        at = tree._kernel.leaf_table["node"][trial["leaf"][0]]
        tree.prune(int(tree._kernel.node_table["parent"][at]))
    else:
        tree.no_splits = [tree.features[int(trial["feature"][0])]]
    assert not tree._kernel.has_trial
    same_from_now_on(tree, X[:400], y[:400])


# -- ensembles ------------------------------------------------------------------------------------


def ensemble(kind, targets=1, rows=4000, **parameters):
    columns, y = stream(rows)
    model = kind(grace_period=60, **parameters)
    model.learn_many(columns, y if targets == 1 else {"y": y, "z": np.abs(y)})
    return model, columns, y if targets == 1 else {"y": y, "z": np.abs(y)}


def pruned(model, node, member):
    own = {} if isinstance(model, AdaptiveTreeRegressor) else {"member": member}
    return model.prune(node, **own)


def goes_on(model, columns, y):
    """A model that was saved and loaded goes on to the same bits."""
    twin = type(model).from_bytes(model.to_bytes())
    assert twin.to_bytes() == model.to_bytes()
    for each in (model, twin):
        each.learn_many(columns, y)
    assert twin.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize(
    ("kind", "member"), [(ForestRegressor, 0), (ForestRegressor, 1), (AdaptiveTreeRegressor, 0)]
)
@pytest.mark.parametrize("max_bytes", [None, 900_000])
def test_a_member_is_pruned_as_the_same_tree_alone(kind, member, targets, max_bytes):
    """All other trees stay, and so do their shares in predictions."""
    own = {"members": 3} if kind is ForestRegressor else {}
    model, columns, y = ensemble(kind, targets, max_bytes=max_bytes, **own)
    tree = model.member(member)
    node = int(inner_nodes(tree)[-1])
    before, trees = model.to_state().arrays, len(model._kernel.trees)
    text = model._kernel.trees[-1].node_table.tobytes()

    places = pruned(model, node, member)

    np.testing.assert_array_equal(places, tree.prune(node))
    after = model.to_state().arrays
    for name in ("nodes", "leaves", "models", "watches", "trial", "units"):
        assert after[f"{member} {name}"].tobytes() == tree.to_state().arrays[name].tobytes(), name
    for place in set(range(trees)) - {member}:
        for name in before:
            if name.startswith(f"{place} "):
                assert after[name].tobytes() == before[name].tobytes(), name
    assert model._kernel.trees[-1].node_table.tobytes() == text
    assert after["blend"].tobytes() == before["blend"].tobytes()
    goes_on(model, columns, y)


def test_nobody_is_told_of_a_split_where_a_member_was_pruned():
    model, columns, y = ensemble(ForestRegressor, members=3)
    events = []
    model.learn_many(columns, y)
    model.listen(events.append)
    for member in range(2):
        model.prune(0, member=member)
    model._kernel.tree_table["born"][-1] = model._kernel.rows  # as none is to be replaced
    model._kernel.renew(model._kernel)
    assert [event for event in events if event["event"] == "split"] == []


@pytest.mark.parametrize(("node", "member"), [(10_000, 0), (0, 3), (0, -1), (0, "a"), (-1, 1)])
def test_members_and_nodes_of_a_forest_that_there_are_not(node, member):
    model, *_ = ensemble(ForestRegressor, members=3)
    data = model.to_bytes()
    with pytest.raises(ValueError, match=r"node = |member = "):
        model.prune(node, member=member)
    assert model.to_bytes() == data


def test_readers_see_a_forest_before_or_after():
    model, columns, y = ensemble(ForestRegressor, members=3)
    rows, stop, wrong = rows_of(columns)[:20], threading.Event(), []

    def read():
        while not stop.is_set():
            for x in rows:
                if not np.isfinite(model.predict_one(x)):
                    wrong.append(x)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for _ in range(10):
            for member in range(2):
                if model.member(member).n_leaves > 1:
                    model.prune(0, member=member)
            model.learn_many(columns, y)
    finally:
        stop.set()
        thread.join()
    assert not wrong


@pytest.mark.parametrize("kind", [ForestRegressor, AdaptiveTreeRegressor])
@pytest.mark.parametrize("max_bytes", [None, 900_000])
def test_other_features_may_be_named_while_an_ensemble_lives(kind, max_bytes):
    model, columns, _ = ensemble(kind, rows=12, max_bytes=max_bytes)
    said = model.predict_many(columns)
    assert model.n_leaves == len(model._kernel.trees) - 1
    model.no_splits = ["d", "a"]
    assert model.no_splits == model.parameters["no_splits"] == ("a", "d")
    np.testing.assert_array_equal(model.predict_many(columns), said)
    assert type(model).from_bytes(model.to_bytes()).no_splits == ("a", "d")
    goes_on(model, *stream(4000, seed=2))
    assert model.n_leaves > 2 * (len(model._kernel.trees) - 1)
    for tree in model._kernel.trees:
        assert tree.no_splits == ("a", "d")
    for member in range(len(model._kernel.trees) - 1):
        tree = model.member(member)
        nodes = tree._kernel.node_table[inner_nodes(tree)]
        assert {tree.features[place] for place in nodes["feature"]}.isdisjoint({"a", "d"})


def test_trees_that_come_later_know_the_names_too():
    model, *_ = ensemble(ForestRegressor, members=3)
    model.no_splits = ["d"]
    twin = ForestRegressor(grace_period=60, members=3, no_splits=["d"])
    fresh, _ = model._fresh(model._kernel, 99, model._kernel.members)
    other, _ = twin._fresh(twin._kernel, 99, twin._kernel.members)
    assert fresh.no_splits == other.no_splits == ("d",)


def test_names_for_which_an_ensemble_has_no_memory_change_no_tree():
    model, *_ = ensemble(ForestRegressor, members=3, max_bytes=900_000)
    data = model.to_bytes()
    with pytest.raises(ValueError, match="there is no room for the names"):
        model.no_splits = [f"{'a long name, ' * 20}{at}" for at in range(4000)]
    assert model.to_bytes() == data
    assert model.no_splits == ()
