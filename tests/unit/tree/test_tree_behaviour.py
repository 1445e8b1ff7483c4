"""What a tree does: where it splits, what its leaves predict, how it follows a stream."""

import math
import re
import signal
from contextlib import suppress
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import sapwood
from sapwood import HoeffdingTreeRegressor, QuantizerObserver
from tree_cases import OBSERVERS, friedman, r2

LEAVES = ["mean", "linear", "adaptive"]
STUMP = {"leaf": "mean", "track": None, "max_depth": 1}
every_leaf = pytest.mark.parametrize("leaf", LEAVES)


def learned(x, y, w=None, **arguments):
    tree = HoeffdingTreeRegressor(**arguments)
    tree.learn_many(x, y, w)
    return tree


def uniform(count, width=1, seed=0):
    return np.random.default_rng(seed).random((count, width))


# Splits.


@pytest.mark.parametrize("observer", OBSERVERS)
def test_an_obvious_step_is_found(observer):
    x = uniform(3000, 3)
    y = np.where(x[:, 1] < 0.5, -1.0, 4.0)
    tree = learned(x, y, observer=OBSERVERS[observer](), **STUMP)
    root = tree.to_frame().iloc[0]
    assert root["feature"] == "1"
    assert root["threshold"] == pytest.approx(0.5, abs=0.15 if observer == "auto-8" else 0.05)
    assert tree.predict_one({1: 0.1}) == pytest.approx(-1.0, abs=0.8)
    assert tree.predict_one({1: 0.9}) == pytest.approx(4.0, abs=0.8)
    assert tree.feature_importances == {"0": 0.0, "1": 1.0, "2": 0.0}


def test_residual_splits_go_where_a_line_bends():
    x = uniform(4000, 2)
    y = 30 * x[:, 0] + 10 * np.abs(x[:, 1] - 0.5)
    by_target = learned(x, y, split_on="target", max_depth=1).to_frame()
    by_residual = learned(x, y, split_on="residual", max_depth=1).to_frame()
    assert by_target["feature"][0] == "0"
    assert by_residual["feature"][0] == "1"
    assert by_residual["threshold"][0] == pytest.approx(0.5, abs=0.1)


def coloured(count=3000):
    rng = np.random.default_rng(1)
    colour = rng.choice(["a", "b", "c", "d", "e"], count)
    return colour, np.where(np.isin(colour, ["a", "c", "e"]), 10.0, -10.0), rng


def test_parts_of_y_that_are_far_apart_get_models_of_their_own():
    # Two planes, and the residual of one plane through both says nothing of the first feature.
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, (2_000, 7))
    x[:, 0] = np.sign(x[:, 0])
    slopes = np.array([3.0, 2.0, 1.0])
    y = np.where(x[:, 0] > 0, 3.0 + x[:, 1:4] @ slopes, -3.0 + x[:, 4:] @ slopes)
    tree, by_residual = HoeffdingTreeRegressor(), HoeffdingTreeRegressor(split_on="residual")
    predictions = tree.predict_learn_many(x, y)
    by_residual.learn_many(x, y)
    assert tree.to_frame()["feature"][0] == "0"
    assert by_residual.to_frame()["feature"][0] != "0"
    assert r2(y[500:], predictions[500:]) > 0.999


def test_a_subset_of_categories_is_separated():
    colour, y, _ = coloured()
    tree = learned({"colour": colour}, y, **STUMP)
    for label in "abcde":
        assert tree.predict_one({"colour": label}) == (10.0 if label in "ace" else -10.0)


@pytest.mark.parametrize(("sign", "left"), [(1, "bd"), (-1, "ace")])
def test_the_text_of_a_subset_names_the_categories_that_were_seen(sign, left):
    """And no others, wherever unseen ones go."""
    colour, y, _ = coloured()
    tree = learned({"colour": colour}, sign * y, **STUMP)
    named = re.search(r"in \{(.*?)\}", tree.to_text())[1]
    assert sorted(named.split(", ")) == list(left)
    named = re.search(r"in \{(.*?)\}", tree.to_frame()["condition"][1])[1]
    assert sorted(named.split(", ")) == list(left)


@pytest.mark.parametrize(("missing_y", "expected"), [(0.5, 0.0), (9.5, 10.0)])
@pytest.mark.parametrize("unseen", [{}, {"x": None}, {"x": math.nan}])
def test_missing_numbers_go_to_the_side_that_they_are_like(missing_y, expected, unseen):
    x = uniform(2000)[:, 0]
    y = np.where(x < 0.8, 0.0, 10.0)
    x[::4], y[::4] = math.nan, missing_y
    tree = HoeffdingTreeRegressor(**STUMP)
    tree.learn_many({"x": x[:200]}, y[:200])
    assert tree.n_leaves == 2
    assert tree.predict_one(unseen) == tree.predict_one({"x": 0.1 if expected == 0.0 else 0.9})


@pytest.mark.parametrize(("cut", "value"), [(0.7, 0.1), (0.3, 0.9)])
def test_missing_numbers_go_to_the_heavier_side_if_there_were_none(cut, value):
    x = uniform(1000)
    tree = learned(x, np.where(x[:, 0] < cut, 0.0, 10.0), **STUMP)
    assert tree.predict_one({}) == tree.predict_one({0: value})
    assert abs(tree.predict_one({}) - tree.predict_one({0: 1.0 - value})) > 5


@pytest.mark.parametrize("missing_y", [None, -9.0, 9.0])
def test_unseen_categories_go_the_way_of_missing_ones(missing_y):
    colour, y, rng = coloured()
    colour, y = colour.astype(object), y.copy()
    if missing_y is not None:
        gone = rng.random(len(y)) < 0.2
        colour[gone], y[gone] = None, missing_y
    tree = learned({"colour": colour}, y, **STUMP)
    assert tree.n_leaves == 2
    expected = tree.predict_one({"colour": "b" if missing_y == -9.0 else "a"})
    for x in ({}, {"colour": None}, {"colour": "unseen"}):
        assert tree.predict_one(x) == expected
    tree.learn_one({"colour": "new"}, 0.0)  # it has a code now, but the split never saw it
    assert tree.predict_one({"colour": "new"}) == tree.predict_one({})


def test_all_categories_after_the_63rd_are_one():
    rng = np.random.default_rng(3)
    label = np.concatenate([np.arange(63), rng.integers(0, 200, 6000)])
    y = np.where(label < 63, 0.0, 10.0)
    tree = learned({"label": [f"number {each}" for each in label]}, y, **STUMP)
    assert tree.predict_one({"label": "number 5"}) == pytest.approx(0.0, abs=0.1)
    for other in ("number 70", "number 199", "never seen"):
        assert tree.predict_one({"label": other}) == pytest.approx(10.0, abs=0.1)


def test_numbers_are_categories_where_they_are_declared():
    day = np.random.default_rng(0).integers(0, 7, 2000)
    y = np.where(np.isin(day, [0, 3, 6]), 1.0, 0.0)
    tree = learned({"day": day}, y, categorical=["day"], **STUMP)
    assert [tree.predict_one({"day": each}) for each in range(7)] == [1, 0, 0, 1, 0, 0, 1]
    assert tree.predict_one({"day": 3.0}) == 1.0


@pytest.mark.parametrize("depth", [0, 1, 3])
@every_leaf
def test_no_leaf_is_deeper_than_the_maximum(depth, leaf):
    x, y = friedman(8000)
    tree = learned(x, y, max_depth=depth, leaf=leaf)
    assert tree.summary.depth == depth
    assert tree.to_frame()["depth"].max() == depth
    assert tree.n_leaves <= 2**depth


@pytest.mark.parametrize("share", [0.1, 0.25, 0.4])
@pytest.mark.parametrize("observer", ["auto", "ebst", "radius"])
def test_no_side_of_a_split_is_smaller_than_the_minimal_share(share, observer):
    x = uniform(1000)
    y = np.where(x[:, 0] < 0.03, 20.0, 0.0) - 10 * x[:, 0]
    observer = OBSERVERS[observer]() if observer != "radius" else QuantizerObserver(0.02)
    root = learned(x, y, min_share=share, observer=observer, **STUMP).to_frame().iloc[0]
    assert root["kind"] == "number"
    before = x[: int(root["weight"]), 0]
    assert share <= np.mean(before < root["threshold"]) <= 1 - share


def test_smaller_delta_and_longer_grace_split_later():
    x, y = friedman(3000)

    def rows_before_the_split(**arguments):
        tree = learned(x, y, **arguments, **STUMP)
        assert tree.n_leaves == 2
        return tree.to_frame()["weight"][0]

    quick = rows_before_the_split(delta=0.1, grace_period=50)
    assert quick < rows_before_the_split(delta=1e-12, grace_period=50)
    assert quick < 500 <= rows_before_the_split(delta=0.1, grace_period=500)


@pytest.mark.parametrize("arguments", [{"delta": 0}, {"tau": 0}, {"tau": 1e-200}])
def test_the_smallest_delta_and_tau_are_refused_or_wait_for_ever(arguments):
    """With two features that are worth the same, a bound of 0 is never reached."""
    x = uniform(2000, 2)
    x[1::2] = 1 - x[::2, ::-1]
    tree = None
    with suppress(ValueError):
        tree = HoeffdingTreeRegressor(**arguments, **STUMP)
    if tree is not None:
        tree.learn_many(x, 1.0 * (x[:, 0] > 0.3) + (x[:, 1] > 0.7))
        assert tree.n_leaves == 1


# Leaves.


@every_leaf
def test_children_start_from_what_the_split_knows(leaf):
    x = uniform(5000, 3)
    y = 1e6 + np.where(x[:, 0] < 0.5, 0.0, 1000.0) + np.random.default_rng(1).normal(size=5000)
    tree = HoeffdingTreeRegressor(leaf=leaf)
    found = tree.predict_learn_many(x, y)
    assert tree.n_leaves >= 2
    assert found[1:].min() > 1e6 - 400
    assert found[1:].max() < 1e6 + 1400
    assert np.mean(np.abs(found[-500:] - y[-500:])) < 30


PROBLEMS = {
    "friedman": lambda x, noise: friedman(len(x))[1],
    "steps": lambda x, noise: 5 * (x[:, 0] < 0.3) + 3 * (x[:, 1] > 0.6) + 0.3 * noise,
    "line": lambda x, noise: x @ np.arange(10.0) + noise,
    "noise": lambda x, noise: noise,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_adaptive_leaf_is_hardly_worse_than_the_better_of_both(name):
    x = friedman(10_000)[0]
    y = PROBLEMS[name](x, np.random.default_rng(2).normal(size=len(x)))
    mean, linear, both = (
        r2(y, HoeffdingTreeRegressor(leaf=leaf, track=None).predict_learn_many(x, y))
        for leaf in LEAVES
    )
    assert both > max(mean, linear) - 0.02


def test_a_line_is_learned_by_a_linear_leaf_alone():
    x = uniform(3000, 4)
    y = 5 + x @ [1.0, -2.0, 3.0, 0.0]
    tree = learned(x, y, leaf="linear", max_depth=0, track=None)
    np.testing.assert_allclose(tree.predict_many(x[:100]), y[:100], atol=0.01)


@pytest.mark.parametrize("features", [38, 39, 40, 100, 300])
def test_many_features_are_learned_by_the_cheaper_update(features):
    rng = np.random.default_rng(features)
    x = rng.normal(size=(6000, features))
    y = x @ rng.normal(size=features) + rng.normal(size=6000)
    mean, linear = (
        r2(y[3000:], HoeffdingTreeRegressor(leaf=leaf).predict_learn_many(x, y)[3000:])
        for leaf in ("mean", "linear")
    )
    assert linear > 0.9
    assert linear > mean + 0.3


def test_a_leaf_that_finds_its_own_scales_goes_on_from_what_it_said():
    """Also if they are so much narrower than those of the tree that the slope is found anew."""
    rng = np.random.default_rng(0)
    x = np.where(np.arange(20_000) % 16 == 0, 0.03, 1.0) * rng.random(20_000)
    y = 5.0 * x + np.where(x < 0.03, 8.0, 0.0)
    tree = HoeffdingTreeRegressor(leaf="linear", track=None, max_depth=1)
    said = []
    for start in range(0, len(y), 50):
        tree.learn_many(x[start : start + 50, None], y[start : start + 50])
        said.append(tree.predict_one({0: 0.015}))
    assert tree.n_leaves == 2
    # When the slope is forgotten, what it said there, 8, is not.
    assert abs(np.diff(said[200:])).max() < 4.0


def test_features_that_appear_and_vanish_with_every_row_are_learned():
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=30)
    tree, found, y = HoeffdingTreeRegressor(), [], []
    for _ in range(3000):
        some, values = rng.choice(30, 5, replace=False), rng.normal(size=5)
        x = {f"f{name}": value for name, value in zip(some.tolist(), values.tolist(), strict=True)}
        y.append(float(slopes[some] @ values))
        found.append(tree.predict_one(x))
        tree.learn_one(x, y[-1])
    assert len(tree.features) == 30
    assert r2(np.array(y[2000:]), np.array(found[2000:])) > 0.85


def test_a_feature_that_appears_after_splits_is_learned():
    x, y = friedman(14_000)
    z = np.random.default_rng(9).normal(size=len(y))
    tree = learned(x[:4000], y[:4000])
    assert tree.n_leaves > 5
    y[4000:] += 20 * z[4000:]
    columns = {name: x[4000:, name] for name in range(10)} | {"z": z[4000:]}
    found = tree.predict_learn_many(columns, y[4000:])
    assert r2(y[-2000:], found[-2000:]) > 0.9


# Following the stream.


def correlated(count, seed=3):
    rng = np.random.default_rng(seed)
    noise = np.zeros(count)
    for row in range(1, count):
        noise[row] = 0.98 * noise[row - 1] + rng.normal()
    return noise


@every_leaf
def test_tracking_follows_errors_that_are_correlated(leaf):
    x, y = friedman(8000)
    y = y + correlated(8000)
    tracked, plain = (
        r2(y, HoeffdingTreeRegressor(leaf=leaf, track=track).predict_learn_many(x, y))
        for track in ("auto", None)
    )
    assert tracked > plain + 0.15


@every_leaf
def test_tracking_costs_nothing_where_errors_are_independent(leaf):
    x, y = friedman(10_000)
    tracked, plain = (
        r2(y, HoeffdingTreeRegressor(leaf=leaf, track=track).predict_learn_many(x, y))
        for track in ("auto", None)
    )
    assert tracked > plain - 0.002


def test_tracking_alone_follows_a_random_walk():
    y = np.cumsum(np.random.default_rng(4).normal(size=3000))
    found = HoeffdingTreeRegressor().predict_learn_many(np.empty((3000, 0)), y)
    assert np.mean((found[200:] - y[200:]) ** 2) < 1.3  # 1.0 for who predicts the last y


@pytest.mark.parametrize(
    ("leaf", "track"),
    [("mean", "auto"), ("linear", None), ("adaptive", None), ("adaptive", "auto")],
)
def test_a_leaf_recovers_from_an_abrupt_change(leaf, track):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 2))
    y = np.where(np.arange(4000) < 2000, x @ [0.3, 0.1], x @ [-0.3, 0.1] + 10)
    y += 0.1 * rng.normal(size=4000)
    tree = HoeffdingTreeRegressor(leaf=leaf, track=track, max_depth=0)
    error = (tree.predict_learn_many(x, y) - y) ** 2
    assert error[2000] > 50
    assert error[2100:2200].mean() < 1.0
    assert error[3800:].mean() < 2 * error[1800:2000].mean() + 0.01


def late_by_50(x, y):
    tree = HoeffdingTreeRegressor(grace_period=100)
    rows, found = [dict(enumerate(row)) for row in x.tolist()], []
    for row in range(len(y)):
        found.append(tree.predict_one(rows[row]))
        if row >= 50:
            tree.learn_one(rows[row - 50], float(y[row - 50]))
    return found


def test_with_delayed_labels_only_those_that_were_learned_are_used():
    x, y = friedman(1200)
    y = y + correlated(1200)
    rows = [dict(enumerate(row)) for row in x.tolist()]
    found = late_by_50(x, y)
    assert found[:51] == [0.0] * 51
    y[1100:] = 1e3  # of no prediction before row 1150
    assert found[:1150] == late_by_50(x, y)[:1150] != found[1150:]
    blocks = HoeffdingTreeRegressor(grace_period=100)
    for start in range(0, 1200, 300):
        part = slice(start, start + 300)
        expected = [blocks.predict_one(x) for x in rows[part]]
        assert blocks.predict_many(x[part]).tolist() == expected
        blocks.learn_many(x[part], y[part])


# Parameters.

BAD_PARAMETERS = {
    "grace_period": [0, -1.0, math.nan, math.inf, "200", None, [1], 10**400],
    "delta": [-0.1, 1.0, 2, math.nan, "0.1", None],
    "tau": [-0.1, 1.0, math.nan, "0.1", None],
    "min_share": [0, 0.5, 0.7, -0.1, math.nan, "0.1", None],
    "max_depth": [-1, 1.0, "3", True, 10**7],
    "observer": ["auto", 5, QuantizerObserver, QuantizerObserver(slots=4)],
    "leaf": ["means", "", None, 1, ["mean"]],
    "split_on": ["y", "", None, 1],
    "track": ["none", "", 1, True, False],
    "max_bytes": [0, -1, 1e6, "1MB", True],
    "categorical": ["c", 5, [1.5], [None], ["x" * 2000]],
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_are_named(name):
    for value in BAD_PARAMETERS[name]:
        with pytest.raises(ValueError, match=f"^{name} = |is the name of a feature: "):
            HoeffdingTreeRegressor(**{name: value})


def test_an_observer_that_has_watched_is_refused():
    observer = QuantizerObserver()
    observer.update(1.0, 1.0)
    with pytest.raises(ValueError, match=r"^observer = .*: an empty .* is expected$"):
        HoeffdingTreeRegressor(observer=observer)


def test_parameters_are_those_that_were_given():
    given = {"grace_period": 50.0, "leaf": "mean", "max_depth": 3, "categorical": ("a", "b")}
    tree = HoeffdingTreeRegressor(**given)
    assert {name: tree.parameters[name] for name in given} == given
    twin = HoeffdingTreeRegressor(**tree.parameters)
    assert repr(twin) == repr(tree)
    tree.parameters["leaf"] = "linear"
    assert tree.parameters["leaf"] == "mean"


def test_repr_tells_what_is_not_default():
    assert repr(HoeffdingTreeRegressor()) == "<HoeffdingTreeRegressor(): 1 leaves, 0 rows learned>"
    x = uniform(1000)
    tree = learned(x, np.where(x[:, 0] < 0.5, 0.0, 1.0), **STUMP)
    arguments = "max_depth=1, leaf='mean', track=None"
    assert repr(tree) == f"<HoeffdingTreeRegressor({arguments}): 2 leaves, 1000 rows learned>"


# Looking inside.


@pytest.fixture(scope="module", params=LEAVES)
def mixed(request):
    """A tree of numbers and categories, some missing; and rows for it."""
    rng = np.random.default_rng(6)
    columns = {
        "x": np.where(rng.random(4000) < 0.1, math.nan, rng.random(4000)),
        "colour": rng.choice(["red", "green", "blue", None], 4000),
        "dull": rng.random(4000),
    }
    y = np.where(columns["colour"] == "red", 5.0, -5.0) * np.nan_to_num(columns["x"])
    y += 3 * np.abs(columns["dull"] - 0.5) + correlated(4000) / 5
    tree = learned(columns, y, leaf=request.param, grace_period=100)
    assert tree.n_leaves > 3
    rows = [{name: column[row] for name, column in columns.items()} for row in range(200)]
    return tree, [*rows, {}, {"colour": "unseen"}, {"x": 1e308, "new": 5.0}]


def test_an_explanation_sums_up(mixed):
    tree, rows = mixed
    for x in rows:
        told = tree.explain(x)
        assert told.prediction == tree.predict_one(x)
        assert sum(expert.share for expert in told.experts) == pytest.approx(1.0)
        total = sum(expert.share * expert.prediction for expert in told.experts)
        assert total == pytest.approx(told.leaf_prediction, abs=1e-9)
        assert told.leaf_prediction + told.tracking == pytest.approx(told.prediction, abs=1e-9)
        assert told.path[0].condition == "root"
        assert str(told).splitlines()[-1].startswith("prediction ")
        linear = [expert for expert in told.experts if expert.name != "mean"]
        if linear and x.get("x") != 1e308:
            share = sum(expert.share for expert in linear)
            expected = sum(expert.share * expert.prediction for expert in linear) / share
            sums = told.intercept + sum(term.amount for term in told.contributions)
            assert sums == pytest.approx(expected, abs=0.2)  # of those that no bound held


def test_a_row_of_categories_alone_is_explained():
    colour, y, _ = coloured()
    tree = learned({"colour": colour}, y, **STUMP)
    assert tree.explain({"colour": "a"}).prediction == tree.predict_one({"colour": "a"}) == 10.0


def test_the_path_leads_to_the_leaf_by_its_conditions(mixed):
    tree, rows = mixed
    frame = tree.to_frame()
    for x in rows[:50]:
        nodes = [step.node for step in tree.explain(x).path]
        assert frame["kind"][nodes[-1]] == "leaf"
        for parent, child in pairwise(nodes):
            value = x[frame["feature"][parent]]
            if frame["kind"][parent] == "number" and not math.isnan(value):
                side = "left" if value < frame["threshold"][parent] else "right"
                assert frame[side][parent] == child


def test_summary_and_importances_add_up(mixed):
    tree, _ = mixed
    frame, summary = tree.to_frame(), tree.summary
    assert (summary.rows, summary.weight, summary.features) == (4000, 4000.0, 3)
    assert summary.nodes == len(frame) == 2 * summary.leaves - 1
    assert summary.leaves == (frame["kind"] == "leaf").sum() == tree.n_leaves
    assert summary.depth == frame["depth"].max()
    assert summary.nbytes == tree.nbytes
    assert sum(tree.feature_importances.values()) == pytest.approx(1.0)
    assert tree.feature_importances["colour"] > tree.feature_importances["dull"]
    assert (frame["gain"][frame["kind"] == "leaf"].fillna(0.0) == 0.0).all()


def test_features_of_one_text_are_told_apart():
    x = uniform(2000, 2)
    tree = learned({1: x[:, 0], "1": x[:, 1]}, np.where(x[:, 0] < 0.5, 0.0, 1.0), **STUMP)
    assert sum(tree.feature_importances.values()) == pytest.approx(1.0)


def test_text_and_picture_show_every_node(mixed):
    tree, _ = mixed
    leaves = tree.n_leaves
    assert len(tree.to_text().splitlines()) == 2 * leaves - 1
    assert tree.to_text(max_depth=0).startswith(f"… {leaves} leaves: ")
    svg = ElementTree.fromstring(tree.draw(max_depth=None).svg)
    groups = [group.get("class") for group in svg.iter("{http://www.w3.org/2000/svg}g")]
    assert (groups.count("split"), groups.count("leaf")) == (leaves - 1, leaves)


# Names that nobody knows, and classes that somebody has derived


@pytest.mark.parametrize("x", [{0: 1.0}, {"X": 1.0, "Z": None}])
def test_names_none_of_which_is_known_deserve_a_word(x):
    tree = HoeffdingTreeRegressor()
    tree.learn_many({"x": [1.0, 2.0], "z": [0.0, 1.0]}, [1.0, 2.0])
    with pytest.warns(UserWarning, match="no feature that the model knows, such as 'x'"):
        assert tree.predict_one(x) == tree.predict_one({})
    with pytest.warns(UserWarning, match="check the names"):
        tree.predict_many({name: [value] for name, value in x.items()})
    assert tree.predict_one({**x, "x": 1.0}) == tree.predict_one({"x": 1.0})


class Derived(HoeffdingTreeRegressor):
    pass


def test_a_derived_class_is_loaded_by_itself(tmp_path):
    tree = Derived(grace_period=50)
    tree.learn_one({"x": 1.0}, 2.0)
    assert type(tree.copy()) is Derived
    assert type(Derived.from_bytes(tree.to_bytes())) is Derived
    tree.save(tmp_path / "tree.sapwood")
    with pytest.raises(sapwood.ModelFileError, match="class Derived, not HoeffdingTreeRegressor"):
        sapwood.load(tmp_path / "tree.sapwood")
    with pytest.raises(sapwood.ModelFileError, match="class HoeffdingTreeRegressor, not Derived"):
        Derived.from_bytes(HoeffdingTreeRegressor().to_bytes())


@pytest.mark.parametrize("learning", [False, True])
def test_ctrl_c_ends_a_call_of_many_rows(learning):
    """Signals are looked for between two rows, not only when all are done."""
    tree = HoeffdingTreeRegressor()
    X, y = np.zeros((3_000_000, 1)), np.zeros(3_000_000)
    tree.learn_many(X[:100], np.arange(100.0))
    predictions = np.empty(len(X))
    calls = {
        False: lambda: tree._kernel.predict(X, predictions),
        True: lambda: tree._kernel.learn(X, y, np.broadcast_to(1.0, len(y)), predictions),
    }
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(30):  # until it comes while the kernel is at work, not before
            predictions[:] = np.nan
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                calls[learning]()
            if 0 < np.isnan(predictions).sum() < len(X):
                break
        else:
            pytest.fail("no call was interrupted before it had done all rows")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert np.isfinite(tree.predict_one({0: 0.0}))
    tree.learn_one({0: 1.0}, 1.0)


def test_new_features_come_with_a_row_that_fills_the_tables():
    """Tables that grow for a split, and pages of another layout, come in one after the other."""
    rng = np.random.default_rng(3)
    X, y = rng.random((30_000, 2)), rng.normal(size=30_000)
    y += 20 * np.floor(40 * X[:, 0]) + 30 * np.floor(30 * X[:, 1])
    tree = HoeffdingTreeRegressor(grace_period=20, leaf="mean")
    width, room = 2, len(tree._kernel.leaf_table)
    for row in range(len(y)):
        due = tree._kernel.leaf_table["due"][: tree.n_leaves]
        at = tree._kernel.explain_row(np.append(X[row], np.zeros(width - 2)))[0] if row else 0
        full = tree.n_leaves == len(tree._kernel.leaf_table)
        if full and tree._kernel.leaf_table["weight"][at] + 1 >= due[at]:
            width += 1  # a feature that is new, in the very row
        tree.learn_one(dict(enumerate([*X[row].tolist(), *[0.0] * (width - 2)])), y[row])
        if width == 6:
            break
    assert width > 3
    assert len(tree._kernel.leaf_table) > room
    assert tree.copy().to_bytes() == tree.to_bytes()


def test_a_line_without_noise_needs_few_leaves():
    rng = np.random.default_rng(3)
    X = rng.random((12_000, 6))
    y = X @ np.arange(1.0, 7.0)
    tree = HoeffdingTreeRegressor()
    predictions = tree.predict_learn_many(X, y)
    assert tree.n_leaves <= 8
    assert np.abs(predictions - y)[-1000:].max() < 1e-3 * y.std()
    bent = HoeffdingTreeRegressor()  # but what bends is followed, without noise as well
    bent.learn_many(X, np.abs(X[:, 0] - 0.5) + y)
    assert bent.n_leaves > tree.n_leaves
