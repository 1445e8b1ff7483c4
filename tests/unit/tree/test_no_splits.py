"""Features that no leaf splits on, though linear models use them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import target_cases
import target_reference_cases as targets_reference
from reference_cases import rows_of, same, stream_of
from sapwood import (
    AdaptiveTreeRegressor,
    EBSTObserver,
    ForestRegressor,
    HoeffdingTreeRegressor,
)
from sapwood.cli.models import make_model
from sapwood.cli.reading import Reading, open_named
from sapwood.merge import MergeError
from sapwood.tree.layout import LEAF

Tree = HoeffdingTreeRegressor


def split_on(tree):
    """The names of the features that a tree splits on."""
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    return {tree.features[place] for place in nodes["feature"][nodes["kind"] != LEAF]}


def together(rows, seed=3):
    """Rows of four features, of which y depends on the first two, but on neither alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4))
    return X, 3 * np.sign(X[:, 0] * X[:, 1]) + rng.normal(0, 0.5, rows)


# -- the twins ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("friedman", ["x3", "x2"]),
        ("categories", ["colour"]),
        ("many_labels", ["label"]),
        ("missing", ["x1", "colour", "never"]),
        ("coming_and_going", ["late", "kind"]),
    ],
)
def test_streams(name, names):
    stream = stream_of(name)
    free = Tree(grace_period=40, tau=0.1)
    for row in stream:
        free.learn_one(*row)
    tree, twin = same(stream, grace_period=40, tau=0.1, no_splits=names)
    assert split_on(free) & {*names}
    assert split_on(tree).isdisjoint(names)
    assert twin.splits


@pytest.mark.parametrize("kind", ["gaps", "categories"])
def test_several_targets(kind):
    tree, twin = targets_reference.made(grace_period=40, tau=0.15, no_splits=["x0", "k"])
    targets_reference.learned(target_cases.stream_of(kind, 420), tree, twin)
    targets_reference.same_splits(tree, twin)
    targets_reference.same_leaves(tree, twin)
    assert split_on(tree)
    assert split_on(tree).isdisjoint({"x0", "k"})


@pytest.mark.parametrize(("masked", "found"), [([], {0, 1}), ([2, 3], {0, 1}), ([1], set())])
def test_splits_on_trial(masked, found):
    X, y = together(9000)
    tree = Tree(no_splits=masked)
    tree.learn_many(X, y)
    assert split_on(tree) >= found
    assert split_on(tree).isdisjoint(masked)


def test_trials_are_those_of_the_twin():
    X, y = together(1500, seed=8)
    stream = rows_of(dict(zip("zabw", X[:, [2, 0, 1, 3]].T, strict=True)), y)
    _, twin = same(stream, grace_period=30, no_splits=["z"])
    assert {node.cut.feature for node in twin.splits} == {"a", "b"}


def test_a_feature_that_is_alone_is_not_tried():
    X, y = together(4000)
    tree = Tree(no_splits=[1, 2, 3])
    for start in range(0, 4000, 100):
        tree.learn_many(X[start : start + 100], y[start : start + 100])
        assert tree._kernel.trial_table[0]["leaf"][0] == -1


# -- laws -----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.sets(st.sampled_from("abcdk")),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, "auto"]),
    st.booleans(),
)
def test_where_leaves_have_no_linear_models_it_is_as_if_the_features_never_came(
    masked, seed, track, by_observers
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 4))
    columns = {**dict(zip("abcd", X.T, strict=True)), "k": rng.choice(["p", "q", "r"], 1500)}
    y = 3.0 * (X[:, 0] > 0) + 2.0 * (X[:, 1] > 0.5) + (columns["k"] == "p")
    y += np.sign(X[:, 2] * X[:, 3]) + 0.1 * rng.normal(size=1500)
    parameters = {"leaf": "mean", "grace_period": 50, "track": track}
    if by_observers:
        parameters["observer"] = EBSTObserver()
    tree, without = Tree(no_splits=masked, **parameters), Tree(**parameters)
    kept = {name: column for name, column in columns.items() if name not in masked}
    said = tree.predict_learn_many(columns, y)
    np.testing.assert_array_equal(said, without.predict_learn_many(kept, y) if kept else said)
    assert split_on(tree) == (split_on(without) if kept else set())
    assert tree.to_text() == without.to_text() or not kept


def test_the_linear_models_are_those_of_a_tree_that_may_split_but_does_not():
    X, y = together(3000)
    y += 5 * X[:, 2]
    masked, plain = Tree(no_splits=range(4)), Tree(max_depth=0)
    np.testing.assert_array_equal(masked.predict_learn_many(X, y), plain.predict_learn_many(X, y))
    np.testing.assert_array_equal(masked._kernel.model_page(0), plain._kernel.model_page(0))


def test_a_running_number_helps_lines_and_divides_nothing():
    rng = np.random.default_rng(1)
    number, x = np.arange(8000.0), rng.random(8000)
    y = 0.01 * number + 20 * (x > 0.5) + rng.normal(size=8000)
    # Shuffled at first, so that a free tree splits on it.
    number[:4000], y[:4000] = number[order := rng.permutation(4000)], y[:4000][order]
    y[:4000] += 20 * ((x[:4000] > 0.5) - 1.0 * (x[order] > 0.5))
    y[:4000] += 15 * (number[:4000] > 2000)
    tree, free = Tree(no_splits=["number"]), Tree()
    for each in (tree, free):
        each.learn_many({"number": number, "x": x}, y)
    assert "number" in split_on(free)
    assert split_on(tree) == {"x"}
    later = tree.predict_one({"number": 8000.0, "x": 0.7})
    assert abs(later - 100) < 3
    assert tree.feature_importances["number"] > 0.05


# -- names that come later ------------------------------------------------------------------------


def test_a_feature_that_comes_later_is_not_split_on_either():
    rng = np.random.default_rng(2)
    x, z = rng.random((2, 4000))
    y = 5.0 * (z > 0.5) + x
    tree = Tree(no_splits=["z", "never"])
    tree.learn_many({"x": x[:1000]}, y[:1000])
    tree.learn_many({"x": x[1000:], "z": z[1000:]}, y[1000:])
    twin = Tree.from_bytes(tree.to_bytes())
    for each in (tree, twin):
        each.learn_many({"x": x, "z": z}, y)
        assert "z" not in split_on(each)
    assert twin.to_bytes() == tree.to_bytes()


# -- a parameter ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["abc", b"a", 3, None, [None], [1.5], [True], [("a",)]])
@pytest.mark.parametrize("kind", [Tree, ForestRegressor, AdaptiveTreeRegressor])
def test_names_are_checked(kind, bad):
    with pytest.raises(ValueError, match=r"no_splits = .*list of names is expected|is the name of"):
        kind(no_splits=bad)


def test_it_is_a_parameter_like_others():
    tree = Tree(no_splits=["b", 3, "a", "b"])
    assert tree.parameters["no_splits"] == (3, "a", "b")
    assert repr(tree).startswith("<HoeffdingTreeRegressor(no_splits=(3, 'a', 'b')")
    assert Tree(**tree.parameters).parameters == tree.parameters
    assert Tree().parameters["no_splits"] == ()


@pytest.mark.parametrize("kind", [Tree, ForestRegressor, AdaptiveTreeRegressor])
def test_files_keep_it_and_do_not_name_what_is_empty(kind):
    X, y = together(3000)
    y += 4.0 * (X[:, 2] > 0) + 3.0 * (X[:, 3] > 0)
    model = kind(no_splits=[2])
    model.learn_many(X[:1500], y[:1500])
    twin = kind.from_bytes(model.to_bytes())
    assert twin.parameters["no_splits"] == (2,)
    for each in (model, twin):
        each.learn_many(X[1500:], y[1500:])
    assert twin.to_bytes() == model.to_bytes()
    assert "no_splits" not in kind().to_state().header["parameters"]
    header, arrays = kind().to_state()
    header["parameters"]["no_splits"] = []
    with pytest.raises(ValueError, match="not as they were saved"):
        kind.from_state(type(kind().to_state())(header, arrays), kind.format)


def test_the_members_of_a_forest_have_it():
    X, y = together(6000)
    y += 6.0 * (X[:, 2] > 0) + 3.0 * (X[:, 3] > 0)
    for kind in (ForestRegressor, AdaptiveTreeRegressor):
        free, model = kind(), kind(no_splits=[2])
        for each in (free, model):
            each.learn_many(X, y)
        members = range(model._kernel.members)
        found = [split_on(model.member(place)) for place in members]
        assert any(2 in split_on(free.member(place)) for place in members)
        assert any(3 in names for names in found)
        assert not any(2 in names for names in found)
        assert all(model.member(place).parameters["no_splits"] == (2,) for place in members)


def test_models_that_are_merged_agree_on_it():
    X, y = together(4000)
    one, other, third = Tree(no_splits=[2]), Tree(no_splits=[2]), Tree()
    one.learn_many(X[:2000], y[:2000])
    other.learn_many(X[2000:], y[2000:])
    third.learn_many(X[2000:], y[2000:])
    assert one.merge(other).parameters["no_splits"] == (2,)
    with pytest.raises(MergeError, match=r"no_splits is \(2,\) in one model and \(\) in the other"):
        one.merge(third)


def test_its_names_count_as_memory():
    names = [f"a rather long name of a feature, {place}" for place in range(300)]
    assert Tree(no_splits=names).nbytes - Tree().nbytes > 300 * 30
    assert Tree(no_splits=names).nbytes == Tree(no_splits=names).copy().nbytes


def test_faces_of_other_libraries_take_it():
    from sapwood.river import HoeffdingTreeRegressor as RiverTree
    from sapwood.sklearn import HoeffdingTreeRegressor as SklearnTree

    estimator = SklearnTree(no_splits=["x"])
    assert clone(estimator).get_params()["no_splits"] == ["x"]
    model = RiverTree(no_splits=("x",))
    assert model.clone().no_splits == ["x"]
    assert RiverTree().clone().tree.parameters["no_splits"] == ()
    assert model.tree.parameters["no_splits"] == ("x",)


def test_the_command_line_takes_names():
    stream = open_named("friedman:rows=100", Reading())
    made = make_model("tree", {"no_splits": "x1+x2"}, stream)
    assert made.parameters["no_splits"] == ("x1", "x2")
    assert make_model("forest:no_splits=x1", {}, stream).parameters["no_splits"] == ("x1",)
    assert make_model("tree", {"no_splits": "none"}, stream).parameters["no_splits"] == ()


def test_a_counter_is_told_with_its_remedy():
    rng = np.random.default_rng(5)
    number, x = np.arange(6000.0), rng.random(6000)
    number[:2000] = rng.integers(0, 2000, 2000)
    y = 10.0 * (number > 1000) + x
    tree, mended = Tree(leaf="mean"), Tree(leaf="mean", no_splits=["number"])
    for each in (tree, mended):
        each.learn_many({"number": number, "x": x}, y)
    assert "if it is a counter, leave it out, or name it in no_splits" in str(tree.summary)
    assert mended.summary.counters == ()


@pytest.mark.parametrize("kind", [ForestRegressor, AdaptiveTreeRegressor])
def test_ensembles_tell_what_they_were_given_and_keep_it(kind):
    model = kind(no_splits=["id", 3])
    assert sorted(model.no_splits, key=str) == [3, "id"]
    model.no_splits = ["other"]
    assert model.no_splits == model.copy().no_splits == ("other",)
