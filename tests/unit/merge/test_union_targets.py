"""Models of several targets are merged: each member predicts as it did alone, and goes on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor
from sapwood.merge import MergeError

NAMES = ("up", "down", "late")
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def site(seed, names="abkl", rows=700, late=True):
    """Columns in an order, and targets with gaps; the last may be missing in all rows."""
    rng = np.random.default_rng(seed)
    labels = [f"k{code}" for code in rng.permutation(6)]
    columns = {
        "a": rng.random(rows),
        "b": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
        "k": rng.choice(labels, rows).tolist(),
        "l": rng.choice(["x", "y"], rows).tolist(),
    }
    first = np.array([label in ("k0", "k3") for label in columns["k"]])
    up = np.where(columns["a"] < 0.5, 10 * columns["a"], -5.0) + 4 * first
    up += rng.normal(0, 0.1, rows)
    down = 100 - 2 * up + np.nan_to_num(columns["b"])
    down[rng.random(rows) < 0.3] = np.nan
    third = 1e4 * columns["a"] if late else np.full(rows, np.nan)
    columns = {name: columns[name] for name in names}
    return columns, dict(zip(NAMES, (up, down, third), strict=True))


def tree(**arguments):
    return HoeffdingTreeRegressor(**{"track": None, "grace_period": 60, **arguments})


def forest(**arguments):
    own = {"track": None, "grace_period": 60, "members": 3, "threads": 1}
    return ForestRegressor(**{**own, **arguments})


def taught(model, *place):
    model.learn_many(*site(*place))
    return model


def stacked(predictions):
    return np.column_stack([predictions[name] for name in NAMES])


def same_from_now_on(model, columns, y):
    again = type(model).from_bytes(model.to_bytes())
    for each in (model, again):
        each.learn_many(columns, y)
    assert again.to_bytes() == model.to_bytes()


@settings(max_examples=12)
@given(
    st.permutations("abkl").map("".join),
    st.permutations("abkl").map(lambda names: "".join(names[:3])),
    st.integers(0, 1000),
    st.sampled_from(["adaptive", "mean"]),
    st.booleans(),
)
def test_each_member_predicts_as_it_did_alone(one_names, other_names, seed, leaf, late):
    one = taught(tree(leaf=leaf), 2 * seed, one_names)
    other = taught(tree(leaf=leaf), 2 * seed + 1, other_names, 500, late)
    before = one.to_bytes(), other.to_bytes()
    both = one.merge(other)
    assert (one.to_bytes(), other.to_bytes()) == before
    assert both.targets == list(NAMES)
    assert both.summary.rows == 1200
    for columns, _ in (site(2 * seed, one_names), site(2 * seed + 1, other_names, 500, late)):
        alone = [stacked(each.predict_many(columns)) for each in (one, other)]
        for place, own in enumerate(alone):
            found = stacked(both.member(place).predict_many(columns))
            np.testing.assert_allclose(found, own, **CLOSE)
        together = stacked(both.predict_many(columns))[:, :2]
        expected = (700 * alone[0] + 500 * alone[1])[:, :2] / 1200
        np.testing.assert_allclose(together, expected, **CLOSE)
    same_from_now_on(both, *site(2 * seed + 1, other_names, 500, late))


def test_what_trees_know_of_features_and_gaps_is_in_its_place():
    """Trees that were merged grow and predict as they would have gone on alone, by names."""
    one, other = taught(tree(), 1, "abkl", 150), taught(tree(), 2, "lkba", 150)
    both = one.merge(other)
    alone = other.copy()
    member = both.member(1)
    columns, y = site(3, "lkba", 900)
    for model in (alone, member):
        model.learn_many(columns, y)
    assert alone.n_leaves > 2
    assert member.n_leaves == alone.n_leaves
    np.testing.assert_allclose(
        stacked(member.predict_many(columns)), stacked(alone.predict_many(columns)), **CLOSE
    )
    ours, theirs = member.feature_importances, alone.feature_importances
    assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("track", ["auto", None])
@pytest.mark.parametrize("max_bytes", [None, 4_000_000])
def test_forests_and_trees_of_several_targets_are_one_forest(track, max_bytes):
    given = {"track": track, "max_bytes": max_bytes}
    one, other = taught(forest(**given), 1), taught(tree(**given), 2, "lkb")
    for both in (one.merge(other), other.merge(one)):
        assert both.summary.rows == 1400
        assert len(both.summary.members) == 5
        assert both.targets == list(NAMES)
        columns, y = site(4)
        same_from_now_on(both, columns, y)
        error = np.nanmean(np.abs(both.predict_many(columns)["up"] - y["up"]))
        assert error < 2.0
        assert both.of_target("up").predict_many(columns)[0] == pytest.approx(
            both.predict_many(columns)["up"][0]
        )


def test_what_is_known_of_targets_is_that_of_all_rows():
    one, other = taught(tree(), 1), taught(tree(), 2)
    records = one.merge(other)._kernel.tables.record_table
    for place, name in enumerate(NAMES):
        y = np.concatenate([site(1)[1][name], site(2)[1][name]])
        y = y[~np.isnan(y)]
        own = records[place]
        assert (own["rows"], own["weight"]) == (len(y), len(y))
        assert (own["low"], own["high"]) == (y.min(), y.max())
        assert own["first"] + own["mean"] == pytest.approx(y.mean())
        assert own["m2"] == pytest.approx(((y - y.mean()) ** 2).sum())


def test_other_targets_are_rejected():
    one = taught(tree(), 1)
    other = tree()
    columns, y = site(2)
    other.learn_many(columns, {"up": y["up"], "side": y["down"]})
    words = "the targets are 'up', 'down', 'late' in one model and the targets are 'up', 'side'"
    with pytest.raises(MergeError, match=words):
        one.merge(other)
    with pytest.raises(MergeError, match="have a tree that has learned the same rows"):
        one.merge(taught(tree(), 1))
    adaptive = AdaptiveTreeRegressor()
    adaptive.learn_many(columns, y)
    for first, second in ((adaptive, one), (one, adaptive)):
        with pytest.raises(
            MergeError, match=r"an AdaptiveTreeRegressor cannot be merged, .* model\.tree"
        ):
            first.merge(second)
