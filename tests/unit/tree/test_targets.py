"""Several targets: what y may be, what is refused, and what can be seen of each."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river.checks import yield_checks

import sapwood
from sapwood import HoeffdingTreeRegressor
from sapwood.export import ExportError, to_sklearn
from sapwood.river import MultiTargetTreeRegressor
from sapwood.sklearn import HoeffdingTreeRegressor as Estimator
from target_cases import NAMES, arrays_of, stream_of
from tree_file_cases import assert_refused, packed

ROWS = 400


def tables():
    X, Y, _ = arrays_of(stream_of("plain", ROWS))
    return X, Y


def learned(X, Y):
    tree = HoeffdingTreeRegressor(grace_period=50)
    tree.learn_many(X, Y)
    return tree


def columns_of(X, Y):
    features = {f"x{place}": X[:, place] for place in range(X.shape[1])}
    return features, {name: Y[:, place] for place, name in enumerate(NAMES)}


# -- what y may be --------------------------------------------------------------------------------


def test_all_kinds_of_y_are_the_same():
    X, Y = tables()
    features, targets = columns_of(X, Y)
    trees = [
        learned(features, targets),
        learned(features, pd.DataFrame(targets)),
        learned(features, pl.DataFrame(targets)),
        learned(features, pa.table(targets)),
        learned(features, [dict(zip(NAMES, row, strict=True)) for row in Y.tolist()]),
    ]
    for tree in trees:
        assert tree.targets == list(NAMES)
        assert tree.to_bytes() == trees[0].to_bytes()
    by_place = learned(features, Y)
    assert by_place.targets == [0, 1, 2]
    assert by_place.predict_many(X).tolist() == trees[0].predict_many(X).tolist()
    assert learned(X, Y.tolist()).predict_many(X).tolist() == by_place.predict_many(X).tolist()


def test_predictions_come_back_in_kind():
    X, Y = tables()
    features, targets = columns_of(X, Y)
    tree = learned(features, targets)
    expected = tree.predict_many(X)
    assert expected.shape == (ROWS, 3)
    frame = pd.DataFrame(features, index=np.arange(ROWS)[::-1])
    said = tree.predict_many(frame)
    assert list(said.columns) == list(NAMES)
    assert said.index.equals(frame.index)
    assert said.to_numpy().tolist() == expected.tolist()
    said = tree.predict_many(pl.DataFrame(features))
    assert said.to_numpy().tolist() == expected.tolist()
    said = tree.predict_many(pa.table(features))
    assert said.column_names == list(NAMES)
    said = tree.predict_many(features)
    assert {name: column.tolist() for name, column in said.items()} == {
        name: expected[:, place].tolist() for place, name in enumerate(NAMES)
    }
    assert tree.predict_one({"x0": 0.5}).keys() == set(NAMES)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "absent"])
def test_what_is_missing(missing):
    X, Y = tables()
    tree, twin = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    gaps = Y.copy()
    gaps[5::3, 1] = np.nan
    twin.learn_many(X, gaps)
    for row in range(ROWS):
        y = dict(enumerate(Y[row].tolist()))
        if np.isnan(gaps[row, 1]):
            y[1] = missing
            if isinstance(missing, str):
                del y[1]
        tree.learn_one(dict(enumerate(X[row].tolist())), y)
    assert tree.predict_many(X).tolist() == twin.predict_many(X).tolist()


# -- what is refused ------------------------------------------------------------------------------


def refused(model, words, *rows):
    """Whether rows are refused with such words, and nothing is changed."""
    before = model.to_bytes()
    with pytest.raises((ValueError, OverflowError), match=words):
        model.learn_many(*rows)
    assert model.to_bytes() == before


def test_another_number_or_other_names_later():
    X, Y = tables()
    features, targets = columns_of(X, Y)
    tree = learned(features, targets)
    refused(tree, "y is one column and the model has 'a', 'b' and 'c' for targets", X, Y[:, 0])
    refused(tree, "y has 2 columns and the model has 3 targets", X, Y[:, :2])
    refused(tree, "y names 'd', and the targets of the model are", X, {**targets, "d": Y[:, 0]})
    with pytest.raises(ValueError, match="y is one column"):
        tree.learn_one({"x0": 1.0}, 2.0)
    one = learned(X, Y[:, 0])
    refused(one, "y has 3 columns and this HoeffdingTreeRegressor has learned one target", X, Y)
    refused(one, "y has one column, 'a': give the column itself", X, {"a": Y[:, 0]})
    refused(HoeffdingTreeRegressor(), "one dimension is expected, or several", X, Y[:, :1])


def test_values_that_no_target_may_have():
    X, Y = tables()
    features, targets = columns_of(X, Y)
    tree = learned(features, targets)
    for bad, words in ((np.inf, "finite"), (1e101, "must not be beyond 1e\\+100")):
        lies = Y.copy()
        lies[7, 1] = bad
        refused(tree, rf"y\['b'\] = {bad:g}.* at position 7 {words}|{words}", X, lies)
    lies = Y.copy()
    lies[3] = np.nan
    refused(tree, "y at position 3 has no target that is not missing", X, lies)
    refused(tree, r"y\['b'\] = 'x' at position 1 must be a number", X[:2], {"b": [1.0, "x"]})
    refused(tree, r"y\['b'\] has 1 values and y\['a'\] has 2", X[:2], {"a": [1, 2], "b": [1]})
    refused(tree, "w = -1.0 at position 0", X[:2], Y[:2], [-1.0, 1.0])
    refused(tree, "rows and y has", X, Y[:7])
    refused(tree, "at most 1024 targets", X[:2], np.zeros((2, 1025)))


def test_what_is_for_one_target_says_so():
    X, Y = tables()
    with pytest.raises(ExportError, match="the model has 3 targets: export one of them"):
        to_sklearn(learned(X, Y))


# -- looking inside -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "gaps", "categories", "late"])
def test_one_target_as_a_tree_of_its_own(kind):
    tree = HoeffdingTreeRegressor(grace_period=50)
    stream = stream_of(kind, 500)
    for x, y, w in stream:
        tree.learn_one(x, y, w)
    assert tree.n_leaves > 2
    for name in NAMES:
        one = tree.of_target(name)
        for x, _, _ in stream[-20:]:
            assert one.predict_one(x) == tree.predict_one(x)[name]
            assert tree.explain(x, name).prediction == tree.predict_one(x)[name]
        one.learn_one(stream[0][0], 1.0)
        assert copy.deepcopy(one).to_bytes() == one.to_bytes()


def test_views_of_all_targets_or_one():
    X, Y = tables()
    tree = learned(*columns_of(X, Y))
    assert tree.summary.targets == 3
    assert "targets" in str(tree.summary)
    first = tree.to_text().splitlines()
    assert all(f" {name} " in f" {line}" for line in first if "weight" in line for name in "bc")
    assert tree.to_text(target="b") == tree.of_target("b").to_text()
    assert tree.to_frame()["mean of b"].notna().all()
    assert tree.explain({"x0": 0.5}).keys() == set(NAMES)
    assert str(tree.draw(target="b")) == str(tree.of_target("b").draw(target="b"))
    with pytest.raises(ValueError, match=r"as in draw\(target='a'\)"):
        tree.draw()
    with pytest.raises(ValueError, match="target = 'z': one of 'a', 'b', 'c' is expected"):
        tree.of_target("z")
    shares = tree.feature_importances
    assert sum(shares.values()) == pytest.approx(1.0)
    gains = tree._kernel.target_records.nodes.reshape(-1, 3)[: tree._kernel.node_count]["gain"]
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    inner = nodes["kind"] != 0
    assert gains[inner].mean(axis=1) == pytest.approx(nodes["gain"][inner])


# -- other libraries ------------------------------------------------------------------------------


CHECKS = [check.__name__ for check in yield_checks(MultiTargetTreeRegressor())]


@pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")
@pytest.mark.parametrize("place", range(len(CHECKS)), ids=lambda place: CHECKS[place])
def test_a_check_of_rivers_passes(place):
    model = MultiTargetTreeRegressor(grace_period=50)
    check = list(yield_checks(model))[place]
    check(model.clone())


def test_the_same_tree_underneath_in_river():
    stream = stream_of("gaps", 300)
    model, tree = MultiTargetTreeRegressor(), HoeffdingTreeRegressor()
    assert model.predict_one(stream[0][0]) == {}
    for x, y, w in stream:
        model.learn_one(x, y, w)
        tree.learn_one(x, y, w)
    assert model.tree.to_bytes() == tree.to_bytes()
    assert model.predict_one(stream[0][0]) == tree.predict_one(stream[0][0])


def test_multi_output_in_scikit_learn():
    X, Y = tables()
    model = Estimator(grace_period=50).partial_fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    assert model.n_outputs_ == 3
    assert model.predict(X).shape == (ROWS, 3)
    assert model.predict(X).tolist() == learned(X, Y).predict_many(X).tolist()
    assert 0.5 < model.score(X, Y) <= 1.0
    assert model.__sklearn_tags__().target_tags.multi_output
    framed = Estimator(grace_period=50).fit(X, pd.DataFrame(Y, columns=NAMES))
    assert framed.tree_.targets == list(NAMES)
    gaps = Y.copy()
    gaps[::4, 0] = np.nan
    assert np.isfinite(Estimator().fit(X, gaps).predict(X)).all()


def test_a_file_that_lies_about_targets():
    tree = learned(*tables())
    header, arrays = tree.to_state()
    for name, field, value in (
        ("target_streams", "m2", -1.0),
        ("target_streams", "rows", 1e9),
        ("target_streams", "low", 1e99),
        ("target_leaves", "weight", 1e9),
        ("target_leaves", "origin", np.nan),
        ("target_nodes", "gain", -1.0),
    ):
        changed = arrays[name].copy()
        changed[field][0] = value
        assert_refused(packed(header, arrays, **{name: changed}), "is damaged: ")
    assert_refused(packed(header, arrays, target_leaves=arrays["target_leaves"][:-1]))
    fewer = {**header, "features": {**header["features"], "targets": ["a", "b"]}}
    assert_refused(packed(fewer, arrays))
    assert sapwood.HoeffdingTreeRegressor.from_bytes(packed(header, arrays)).targets == [0, 1, 2]
