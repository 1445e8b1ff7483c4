"""Two finished models as one forest: what it says, that it goes on, and what is refused."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood import (
    AdaptiveTreeRegressor,
    EBSTObserver,
    ForestRegressor,
    HoeffdingTreeRegressor,
    QuantizerObserver,
    model,
)
from sapwood.merge import MergeError
from sapwood.rows.features import MOST_LABELS


class Site:
    """Rows of one site: its columns in some order, its categories first seen in another.

    Parameters
    ----------
    seed : int
        Of the rows.
    names : sequence of str
        The columns that it has, in its order; those in capitals are categories.
    labels : int
        How many categories there may be.
    rows : int
        How many there are.
    """

    def __init__(self, seed, names="abcXY", labels=6, rows=1500):
        rng = np.random.default_rng(seed)
        all_columns = {name: np.round(rng.random(rows), 3) for name in "abcde"}
        codes = {name: rng.integers(0, labels, rows) for name in "XYZ"}
        self.y = (
            np.where(all_columns["a"] < 0.5, 10 * all_columns["b"], -5.0)
            + 3 * (codes["X"] % 5)
            + rng.normal(0, 0.1, rows)
        )
        columns = all_columns | {
            name: [f"{name}{code}" for code in own] for name, own in codes.items()
        }
        self.columns = {name: columns[name] for name in names}

    def taught(self, model):
        model.learn_many(self.columns, self.y)
        return model


def tree(**arguments):
    return HoeffdingTreeRegressor(**{"track": None, **arguments})


def forest(**arguments):
    return ForestRegressor(**{"track": None, "members": 3, "threads": 1, **arguments})


def pages(tree):
    """All that a tree knows, by name and by leaf, with what is outstanding left out."""
    arrays = tree.to_state().arrays
    return {name: arrays[name] for name in ("nodes", "leaves", "models", "watches", "levels")}


def sites(side):
    """Sites of either side, none of which has the rows of one of the other."""
    return st.builds(
        Site,
        st.integers(0, 2**32).map(lambda seed: 2 * seed + side),
        st.permutations("abcdXYZ").map(lambda names: "".join(names[:5])),
        st.sampled_from([2, 6, 40]),
        st.integers(50, 900),
    )


# -- laws -----------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(sites(0), sites(1))
def test_each_tree_says_what_it_said_alone_whatever_order_its_features_came_in(north, south):
    one, other = north.taught(tree()), south.taught(tree())
    before = one.to_bytes(), other.to_bytes()
    both = one.merge(other)
    assert (one.to_bytes(), other.to_bytes()) == before
    rows = one._kernel.rows, other._kernel.rows
    share = rows[0] / sum(rows)
    for site in (north, south):
        alone = [np.asarray(each.predict_many(site.columns)) for each in (one, other)]
        for place, said in enumerate(alone):
            member = both.member(place)
            np.testing.assert_allclose(
                member.predict_many(site.columns), said, rtol=1e-9, atol=1e-9
            )
        together = share * alone[0] + (1 - share) * alone[1]
        np.testing.assert_allclose(both.predict_many(site.columns), together, rtol=1e-9, atol=1e-9)
    assert both.summary.rows == sum(rows)
    assert [each.age for each in both.summary.members] == [*rows, 0]


@settings(max_examples=8)
@given(sites(0), sites(1))
def test_it_does_not_matter_who_is_merged_with_whom(north, south):
    one, other = north.taught(tree()), south.taught(tree())
    there, back = one.merge(other), other.merge(one)
    np.testing.assert_allclose(
        there.predict_many(north.columns), back.predict_many(north.columns), rtol=1e-9, atol=1e-9
    )
    assert there.feature_kinds == back.feature_kinds


@settings(max_examples=8)
@given(sites(0), sites(1), st.booleans())
def test_members_go_on_as_they_would_alone_and_as_they_would_if_loaded(north, south, bagged):
    kind = forest if bagged else tree
    both = north.taught(kind()).merge(south.taught(kind()))
    loaded = model.from_bytes(both.to_bytes())
    plain = [place for place, each in enumerate(both.summary.members[:-1]) if each.role == "plain"]
    alone = [both.member(place) for place in plain]
    more = Site(5, "abcXY", 6, 700)
    said = both.predict_learn_many(more.columns, more.y)
    np.testing.assert_array_equal(loaded.predict_learn_many(more.columns, more.y), said)
    assert loaded.to_bytes() == both.to_bytes()
    assert both.summary.rows == len(north.y) + len(south.y) + 700
    for place, each in zip(plain, alone, strict=True):
        each.learn_many(more.columns, more.y)
        for name, array in pages(each).items():
            np.testing.assert_array_equal(pages(both.member(place))[name], array, err_msg=name)


def test_a_tree_in_another_order_has_learned_the_same():
    """Recoding is its own inverse: what comes back is what was sent, to the last bit."""
    site = Site(1, "Xab")
    names = ("b", "X", "a")
    order = np.argsort([label[1:] for label in site.columns["X"]], kind="stable")[::-1]
    turned = tree()
    turned.learn_many({n: [site.columns[n][r] for r in order] for n in names}, site.y[order])
    straight = Site(2, "abX").taught(tree())
    there = straight.merge(turned)
    columns = Site(3, "abX").columns
    member = there.member(1)
    np.testing.assert_allclose(
        member.predict_many(columns), turned.predict_many(columns), rtol=1e-9, atol=1e-12
    )
    back = turned.merge(straight).member(0)
    for name, array in pages(turned).items():
        np.testing.assert_array_equal(pages(back)[name], array, err_msg=name)


# -- what they may have learned -------------------------------------------------------------------


def test_several_sites_are_merged_one_after_the_other():
    parts = [Site(seed, rows=400).taught(tree()) for seed in range(4)]
    both = reduce(lambda one, other: one.merge(other), parts)
    columns = Site(9).columns
    mean = np.mean([each.predict_many(columns) for each in parts], axis=0)
    np.testing.assert_allclose(both.predict_many(columns), mean, rtol=1e-9)
    assert both.summary.rows == 1600
    assert [round(each.weight, 9) for each in both.summary.members] == [0.25] * 4 + [0.0]


def test_forests_bring_all_of_their_members_with_their_weights():
    north, south = Site(1).taught(forest(seed=1)), Site(2, rows=500).taught(forest(seed=2))
    both = north.merge(south)
    assert both.parameters["members"] == 6
    assert [each.role for each in both.summary.members] == [
        each.role for one in (north, south) for each in one.summary.members[:-1]
    ] + ["bagged"]
    weights = np.array([each.weight for each in both.summary.members])
    for own, share, part in ((weights[:3], 0.75, north), (weights[3:6], 0.25, south)):
        before = np.maximum([each.weight for each in part.summary.members[:3]], 0.0)
        np.testing.assert_allclose(own, share * before / before.sum(), rtol=1e-12)
    columns = Site(9).columns
    said = [both.member(place).predict_many(columns) for place in range(6)]
    np.testing.assert_allclose(both.predict_many(columns), weights[:6] @ said, rtol=1e-9)
    numbers = both._kernel.tree_table["number"]
    assert len(set(numbers.tolist())) == 7
    more = Site(4, rows=3000)
    both.learn_many(more.columns, more.y)
    assert both.summary.rows == 5000


def test_a_forest_takes_in_a_tree_and_a_tree_a_forest():
    trees, one = Site(1).taught(forest()), Site(2).taught(tree())
    for both in (trees.merge(one), one.merge(trees)):
        assert both.summary.rows == 3000
        assert sorted(each.role for each in both.summary.members[:-1]) == [
            "bagged", "leaf", "plain", "plain",
        ]  # fmt: skip


@pytest.mark.parametrize("track", ["auto", None])
def test_the_last_layer_begins_anew_and_follows(track):
    north, south = Site(1).taught(tree(track=track)), Site(2).taught(tree(track=track))
    both = north.merge(south)
    columns = Site(9).columns
    members = [np.asarray(both.member(place).predict_many(columns)) for place in (0, 1)]
    np.testing.assert_allclose(both.predict_many(columns), np.mean(members, axis=0), rtol=1e-9)
    more = Site(9)
    said = both.predict_learn_many(more.columns, more.y + 100)
    later = np.abs(more.y + 100 - said)[-300:].mean()
    assert later < 3.0  # all of y is 100 more than either site had seen


@pytest.mark.parametrize("labels", [40, 64, 90, 200])
def test_categories_of_few_and_of_many(labels):
    """Where there are many together, their levels stand for them, as they would in one tree."""
    few, many = Site(1, "abX", 5), Site(2, "Xba", labels, rows=4000)
    one, other = few.taught(tree()), many.taught(tree())
    for both in (one.merge(other), other.merge(one)):
        for site, alone in ((few, one), (many, other)):
            place = 0 if both.member(0).summary.rows == alone.summary.rows else 1
            near = 1e-9 if len({*site.columns["X"]}) > 63 or labels < 64 else 0.1
            np.testing.assert_allclose(
                both.member(place).predict_many(site.columns),
                alone.predict_many(site.columns),
                rtol=near,
                atol=near,
            )
        both.learn_many(many.columns, many.y)
        assert np.abs(both.predict_many(many.columns) - many.y).mean() < 1.5


def test_ids_of_one_site_are_ids_of_both():
    rng = np.random.default_rng(1)
    x = rng.random(20_000)
    one, other = tree(), tree()
    one.learn_many({"x": x, "id": [f"n{k}" for k in range(20_000)]}, x)
    other.learn_many({"x": x[:500] / 2, "id": [f"s{k}" for k in range(500)]}, x[:500])
    for both in (one.merge(other), other.merge(one)):
        assert both.feature_kinds["id"] == "identifier"
        assert both.predict_one({"x": 0.5, "id": "n3"}) == both.predict_one({"x": 0.5, "id": "z"})


def test_features_that_only_one_site_has():
    north, south = Site(1, "aX"), Site(2, "bY")
    both = north.taught(tree()).merge(south.taught(tree()))
    assert both.feature_kinds == {"a": "number", "X": "category", "b": "number", "Y": "category"}


@pytest.mark.parametrize(
    "observer", [QuantizerObserver(radius=0.01), EBSTObserver(), QuantizerObserver(slots=8)]
)
def test_leaves_that_watch_by_observers(observer):
    north, south = Site(1, "abX", rows=600), Site(2, "Xba", rows=600)
    one, other = (site.taught(tree(observer=observer)) for site in (north, south))
    both = one.merge(other)
    np.testing.assert_allclose(
        both.member(1).predict_many(south.columns), other.predict_many(south.columns), rtol=1e-9
    )
    both.learn_many(north.columns, north.y)
    assert both.summary.rows == 1800


def test_without_a_limit_in_one_model_there_is_none():
    limited, free = Site(1).taught(tree(max_bytes=1_000_000)), Site(2).taught(tree())
    both = limited.merge(free)
    assert both.parameters["max_bytes"] is None
    assert both.merge(Site(3).taught(forest())).parameters["max_bytes"] is None


def test_their_limits_of_memory_add():
    north, south = Site(1, "abX", rows=4000), Site(2, "Xbacde", rows=4000)
    one, other = (site.taught(tree(max_bytes=200_000)) for site in (north, south))
    both = one.merge(other)
    limit = both.parameters["max_bytes"]
    assert limit >= 400_000
    assert both.nbytes <= limit
    more = Site(3, "abcdeXYZ", rows=8000)
    both.learn_many(more.columns, more.y)
    assert both.nbytes <= limit


def test_declared_categories_and_formats_of_columns_are_those_of_both():
    one, other = tree(categorical=["shop"]), tree(categorical=["day"])
    one.learn_many({"shop": [1, 2, 3] * 50, "x": range(150)}, range(150))
    other.learn_many({"day": [5, 6] * 50, "x": range(100)}, range(100))
    one.column_formats, other.column_formats = {"x": "%Y"}, {"x": "%Y", "z": "%d"}
    both = one.merge(other)
    assert both.parameters["categorical"] == ("day", "shop")
    assert both.column_formats == {"x": "%Y", "z": "%d"}


# -- what is refused ------------------------------------------------------------------------------


def taught(**arguments):
    return Site(2, rows=60).taught(tree(**arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"grace_period": 100},
        {"delta": 0.01},
        {"tau": 0.1},
        {"min_share": 0.1},
        {"max_depth": 3},
        {"leaf": "mean"},
        {"split_on": "target"},
        {"track": "auto"},
        {"observer": EBSTObserver()},
        {"observer": QuantizerObserver(slots=8)},
    ],
    ids=str,
)
def test_other_parameters_are_refused_by_name(arguments):
    one, other = Site(1, rows=60).taught(tree()), taught(**arguments)
    (name,) = arguments
    for pair in ((one, other), (other, one)):
        with pytest.raises(MergeError, match=f"^{name} is "):
            pair[0].merge(pair[1])


def test_the_same_rows_are_refused():
    one = Site(1).taught(tree())
    with pytest.raises(MergeError, match="with itself: its rows would count twice"):
        one.merge(one)
    with pytest.raises(MergeError, match="both models have a tree that has learned the same"):
        one.merge(Site(1).taught(tree()))
    with pytest.raises(MergeError, match="both models are copies or parts of one"):
        one.merge(one.copy())
    both = one.merge(Site(2).taught(tree()))
    with pytest.raises(MergeError, match="which would count twice"):
        both.merge(one)


def went_on(model, site):
    site.taught(model)
    return model


def by_file(model):
    return type(model).from_bytes(model.to_bytes())


@pytest.mark.parametrize("way", [lambda model: model, by_file], ids=["copies", "files"])
def test_models_that_have_rows_in_common_are_refused(way):
    """Also where one has learned more, or another target of the same rows."""
    more, few = Site(5, rows=1), Site(6, rows=400)
    one = Site(1).taught(tree())
    several = tree()
    rows = Site(3)
    several.learn_many(rows.columns, {"up": rows.y, "down": -rows.y})
    whole = Site(1).taught(forest(members=4))
    for mine, theirs in (
        (one, went_on(way(one.copy()), more)),
        (one, went_on(way(one.copy()), few)),
        (way(several.of_target("up")), way(several.of_target("down"))),
        (whole, went_on(way(whole.copy()), few)),
    ):
        for pair in ((mine, theirs), (theirs, mine)):
            with pytest.raises(MergeError, match="which would count twice"):
                pair[0].merge(pair[1])


def test_members_of_one_forest_are_refused():
    whole = Site(1).taught(forest(members=4))
    for other in (whole.member(1), whole, whole.copy().member(2)):
        with pytest.raises(MergeError, match="which would count twice"):
            whole.member(0).merge(other)


def test_copies_of_a_model_that_has_learned_nothing_are_merged():
    empty = tree()
    one, other = Site(1).taught(empty.copy()), Site(2).taught(empty.copy())
    assert one.merge(other).summary.rows == 3000


@pytest.mark.parametrize("values", [1, 2, 5, 30, 1000])
@pytest.mark.parametrize("columns", [1, 2])
def test_rows_that_are_equal_by_chance_are_others(values, columns):
    """Few values in few columns: most rows of any two models are equal."""
    models = []
    for seed in range(6):
        rng = np.random.default_rng([seed, values, columns])
        X = rng.integers(0, values, (400, columns)).astype(float)
        models.append(tree())
        models[-1].learn_many(X, X[:, 0] + rng.normal(size=400))
    for place in range(5):
        assert models[place].merge(models[place + 1]).summary.rows == 800


def test_other_models_and_several_targets_are_refused():
    one, site = taught(), Site(3, rows=60)
    with pytest.raises(
        MergeError, match=r"an AdaptiveTreeRegressor cannot be merged, .* model\.tree"
    ):
        one.merge(site.taught(AdaptiveTreeRegressor()))
    several = tree()
    several.learn_many(site.columns, {"up": site.y, "down": -site.y})
    with pytest.raises(MergeError, match=r"one target in one model .* model.of_target\(name\)"):
        one.merge(several)
    assert one.merge(several.of_target("up")).summary.rows == 120
    with pytest.raises(MergeError, match="learned nothing yet"):
        one.merge(tree())
    with pytest.raises(MergeError, match=r"33 trees in both together, .* at most 32"):
        one.merge(site.taught(forest(members=32)))


def test_a_feature_of_another_kind_is_refused_by_name():
    one = taught()
    for column in (["a", "b", "c"] * 20, [True, False, None] * 20):
        other = tree(categorical=["a"])
        other.learn_many({"a": column}, range(60))
        with pytest.raises(MergeError, match=r"^'a' holds numbers in one model and labels in"):
            one.merge(other)
        with pytest.raises(MergeError, match=r"^'a' holds numbers"):
            other.merge(one)


def test_formats_of_columns_that_differ_are_refused():
    one, other = Site(1, rows=60).taught(tree()), taught()
    one.column_formats, other.column_formats = {"a": "%d.%m.%Y"}, {"a": "%m/%d/%Y"}
    with pytest.raises(
        MergeError, match=r"^'a' was read by the format '%d.%m.%Y' for one model and"
    ):
        one.merge(other)


def test_lists_of_categories_that_have_no_room_together_are_refused():
    def site(prefix, seed):
        codes = np.random.default_rng(seed).integers(0, 60, 6000)
        one = tree(split_on="target", leaf="mean")
        one.learn_many({"shop": [f"{prefix}{code}" for code in codes]}, 10.0 * codes)
        assert one.n_leaves > 1
        return one

    with pytest.raises(MergeError, match=r"^'shop' has more than 63 .* distinguish too many"):
        site("n", 1).merge(site("s", 2))


def test_labels_that_share_levels_are_refused():
    codes = [f"{code}" for code in range(300)] * 2
    one = tree(max_bytes=100_000)
    one.learn_many({"shop": codes, "x": range(600)}, range(600))
    other = tree(max_bytes=100_000)
    other.learn_many({"shop": codes[:10], "x": range(10)}, range(10))
    with pytest.raises(MergeError, match=r"^'shop' has more categories than can be distinguished"):
        one.merge(other)


def test_too_many_labels_are_refused(monkeypatch):
    one, other = tree(), tree()
    one.learn_many({"shop": [*map(str, range(200))] * 2}, range(400))
    other.learn_many({"shop": [*map(str, range(100, 300))] * 2}, range(1, 401))
    assert MOST_LABELS == 65536
    monkeypatch.setattr("sapwood.merge.assembly.labels_within", lambda limit: 250)
    with pytest.raises(MergeError, match=r"^'shop' has 300 categories in all models together"):
        one.merge(other)
