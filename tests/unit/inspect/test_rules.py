"""Rules that are read off a tree: each row meets the conditions of its own leaf's rule alone."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Nice"]


def rows(seed, count):
    """Numbers that overlap in splits, a category, and gaps in both."""
    random = np.random.default_rng(seed)
    x, city = random.random((count, 2)), random.choice(CITIES, count)
    y = np.where(x[:, 0] < 0.5, 3 * x[:, 1], 5.0) + 4 * np.isin(city, CITIES[:2])
    y += np.where(x[:, 0] < 0.25, 6.0, 0.0) + random.normal(0, 0.1, count)
    a = np.where(random.random(count) < 0.05, np.nan, x[:, 0])
    b = [None if random.random() < 0.05 else each for each in city]
    return {"a": a, "b": x[:, 1], "city": b}, y


def holds(condition, value):
    """Whether a value meets a condition."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return condition.missing
    if condition.labels is not None:
        return condition.missing if value not in CITIES else value in condition.labels
    return condition.low <= value < condition.high


def grown(model):
    X, y = rows(1, 6000)
    model.learn_many(X, y)
    return model


TREE = grown(HoeffdingTreeRegressor(track=None))


@settings(max_examples=200)
@given(
    st.one_of(st.none(), st.floats(-1, 2)),
    st.floats(-1, 2),
    st.one_of(st.none(), st.sampled_from([*CITIES, "Kyiv"])),
)
def test_a_row_meets_the_conditions_of_the_rule_of_its_leaf_alone(a, b, city):
    x = {"a": a, "b": b, "city": city}
    met = [
        rule
        for rule in TREE.to_rules()
        if all(holds(condition, x[condition.feature]) for condition in rule.conditions)
    ]
    assert [rule.node for rule in met] == [TREE.predict_region_one(x)[1]]


def test_conditions_on_a_feature_are_merged():
    rules = TREE.to_rules()
    assert len(rules) == TREE.n_leaves > 5
    for rule in rules:
        names = [condition.feature for condition in rule.conditions]
        assert len(set(names)) == len(names)
    depths = TREE.to_frame().set_index("node")["depth"]
    assert sum(len(rule.conditions) for rule in rules) < sum(depths[rule.node] for rule in rules)


def test_numbers_are_those_of_the_leaves():
    rules, frame = TREE.to_rules(), TREE.to_frame().set_index("node")
    weights = [rule.weight for rule in rules]
    assert weights == sorted(weights, reverse=True)
    assert sum(rule.share for rule in rules) == pytest.approx(1.0)
    for rule in rules:
        assert (rule.weight, rule.mean, rule.deviation) == tuple(
            frame.loc[rule.node, ["weight", "mean", "deviation"]]
        )
        assert 0 <= rule.age <= 6000
    # Noise has a deviation of .1; leaves in which values are missing leave more than that.
    assert 0.08 < min(rule.error for rule in rules) < 0.2
    assert max(rule.deviation for rule in rules) > 0.5


def test_the_linear_model_of_a_rule_predicts_as_the_leaf():
    x = np.random.default_rng(3).random((4000, 2))
    tree = HoeffdingTreeRegressor(track=None)
    tree.learn_many({"a": x[:, 0], "b": x[:, 1]}, 2 + 3 * x[:, 0] - x[:, 1])
    (rule,) = tree.to_rules()
    assert rule.slopes == pytest.approx({"a": 3.0, "b": -1.0}, abs=1e-3)
    predicted = rule.intercept + rule.slopes["a"] * 0.3 + rule.slopes["b"] * 0.6
    assert predicted == pytest.approx(tree.predict_one({"a": 0.3, "b": 0.6}), abs=1e-9)
    assert str(rule).startswith("if any row\n  then mean ")


def test_json_and_frame_hold_the_same():
    rules = TREE.to_rules()
    records = json.loads(rules.to_json())
    assert records == json.loads(json.dumps(rules.to_records()))
    assert [record["node"] for record in records] == rules.to_frame()["node"].tolist()
    assert f"… {len(rules) - 2} more rules" in rules.to_text(2)
    with pytest.raises(ValueError, match="most = 0"):
        rules.to_text(0)


def test_a_high_cardinality_category_has_limits_of_its_encoding():
    random = np.random.default_rng(5)
    shop = random.integers(0, 200, 8000)
    tree = HoeffdingTreeRegressor(track=None, leaf="mean")
    tree.learn_many({"shop": [f"s{each}" for each in shop]}, (shop % 7) * 3.0)
    conditions = [condition for rule in tree.to_rules() for condition in rule.conditions]
    assert conditions
    assert all(each.encoded or each.labels is not None for each in conditions)
    assert any("encoding(shop)" in str(each) for each in conditions)


def test_an_adaptive_tree_has_the_rules_of_its_tree():
    model = grown(AdaptiveTreeRegressor())
    assert str(model.to_rules()) == str(model.tree.to_rules())


def test_a_forest_has_the_rules_of_its_best_member():
    forest = grown(ForestRegressor(members=4, seed=1))
    members = forest.summary.members
    errors = {place: members[place].error for place in range(4) if members[place].role != "leaf"}
    best = min(errors, key=errors.get)
    assert str(forest.to_rules()) == str(forest.member(best).to_rules())


def test_of_several_targets_one_is_named():
    tree = HoeffdingTreeRegressor()
    X, y = rows(2, 3000)
    tree.learn_many(X, {"u": y, "v": -y})
    with pytest.raises(ValueError, match=r"to_rules\(target='u'\)"):
        tree.to_rules()
    assert str(tree.to_rules("v")) == str(tree.of_target("v").to_rules())
