"""Rules that are read off a tree: each row meets the conditions of its own leaf's rule alone."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
from hybrid_cases import MeanEstimator
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


def met(rule, X):
    """Which rows meet all conditions of a rule."""
    count = len(next(iter(X.values())))
    return np.array(
        [all(holds(each, X[each.feature][row]) for each in rule.conditions) for row in range(count)]
    )


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
        assert (rule.mean, rule.deviation) == tuple(frame.loc[rule.node, ["mean", "deviation"]])
        assert 0 <= rule.age <= 6000
    # Noise has a deviation of .1; leaves in which values are missing leave more than that.
    assert 0.08 < min(rule.error for rule in rules) < 0.2
    assert max(rule.deviation for rule in rules) > 0.5


def test_weights_are_those_of_the_rows_that_meet_the_conditions():
    X, y = rows(1, 6000)
    X["a"] = np.nan_to_num(X["a"], nan=0.5)
    X["city"] = [city or "Bonn" for city in X["city"]]
    tree = HoeffdingTreeRegressor(track=None)
    tree.learn_many(X, y)
    rules = tree.to_rules()
    assert sum(rule.weight for rule in rules) == pytest.approx(6000)
    actual = np.array([met(rule, X).mean() for rule in rules])
    shares = np.array([rule.share for rule in rules])
    assert np.abs(shares - actual).max() < 0.01
    # Leaves themselves know no rows of nodes above their parents, and fewer than half of all.
    known = tree.to_frame().set_index("node")["weight"]
    assert sum(known[rule.node] for rule in rules) < 5000


def test_weights_are_near_those_where_values_are_missing():
    X, _ = rows(1, 6000)
    rules = TREE.to_rules()
    assert sum(rule.weight for rule in rules) == pytest.approx(6000)
    actual = np.array([met(rule, X).mean() for rule in rules])
    assert np.abs(actual - [rule.share for rule in rules]).max() < 0.03


@pytest.mark.parametrize("leaf", ["adaptive", "mean"])
def test_weights_add_up_after_pruning_and_with_weighted_rows(leaf):
    X, y = rows(4, 5000)
    tree = HoeffdingTreeRegressor(track=None, leaf=leaf)
    tree.learn_many(X, y, np.tile([1.0, 3.0], 2500))
    assert sum(rule.weight for rule in tree.to_rules()) == pytest.approx(10_000)
    tree.prune(1)
    assert sum(rule.share for rule in tree.to_rules()) == pytest.approx(1.0)
    tree.learn_many(X, y)
    assert all(rule.weight > 0 for rule in tree.to_rules())


def test_the_linear_models_held_within_their_range_predict_as_the_tree():
    random = np.random.default_rng(8)
    x = random.random((6000, 2)) * [1.0, 1e6]
    y = np.where(x[:, 0] < 0.5, x[:, 1] / 1e5, 20 - 3 * x[:, 0]) + random.normal(0, 0.1, 6000)
    tree = HoeffdingTreeRegressor(track=None)
    tree.learn_many({"a": x[:, 0], "b": x[:, 1]}, y)
    far = {"a": random.random(200), "b": random.uniform(-1e6, 2e6, 200)}
    rules = {rule.node: rule for rule in tree.to_rules()}
    beyond = 0
    for a, b in zip(far["a"], far["b"], strict=True):
        prediction, node = tree.predict_region_one({"a": a, "b": b})
        rule = rules[node]
        held = min(max(b, x[:, 1].min()), x[:, 1].max())  # as models do not extrapolate
        linear = rule.intercept + rule.slopes.get("a", 0) * a + rule.slopes.get("b", 0) * held
        beyond += b != held
        assert rule.low <= prediction <= rule.high
        assert prediction == pytest.approx(min(max(linear, rule.low), rule.high), abs=0.5)
    assert beyond > 20


def test_linear_models_are_written_around_the_centre_of_the_leaf():
    random = np.random.default_rng(6)
    hours = 1.7e9 + 3600.0 * np.arange(3000)
    free, city = random.random(3000) * -4, random.choice(CITIES[:2], 3000)
    tree = HoeffdingTreeRegressor(track=None, max_depth=0)
    y = 2 * free + 5.0 * (city == "Rome") + random.normal(0, 0.01, 3000)
    tree.learn_many({"time": hours, "free": free, "city": city}, y)
    (rule,) = tree.to_rules()
    lines = str(rule).splitlines()
    assert lines[2].startswith(f"  linear: {rule.central:.4g} + 0.98 (encoding(city) - ")
    assert "+ 2.001 (free + 2.1" in lines[2]
    assert y.min() < rule.central < y.max() < abs(rule.intercept)
    assert rule.encoded == {"city"}
    assert "+ -" not in lines[2]


def test_the_centre_of_a_rule_meets_its_conditions():
    for rule in TREE.to_rules():
        for condition in rule.conditions:
            if condition.labels is None and condition.feature in rule.centres:
                assert condition.low <= rule.centres[condition.feature] <= condition.high
        assert abs(rule.central - rule.mean) < 4 * rule.deviation + 1


def test_a_leaf_without_rows_of_its_own_has_the_deviation_of_its_parent_as_error():
    tree = HoeffdingTreeRegressor(track=None)
    x, row = np.random.default_rng(2).random(5000), 0
    while tree.n_leaves == 1:
        tree.learn_one({"x": x[row]}, 8.0 * (x[row] < 0.5))
        row += 1
    assert [rule.error for rule in tree.to_rules()] == pytest.approx([4.0, 4.0], rel=0.05)
    assert sum(rule.weight for rule in tree.to_rules()) == pytest.approx(row)


def test_of_no_rows_there_are_no_rules_and_of_no_features_one():
    tree = HoeffdingTreeRegressor()
    assert len(tree.to_rules()) == 0
    assert str(tree.to_rules()) == "no rows learned yet"
    assert tree.to_rules().to_frame().empty
    tree.learn_one({}, 3.0)
    (rule,) = tree.to_rules()
    assert (rule.conditions, rule.weight, rule.mean) == ((), 1.0, 3.0)
    assert str(rule).startswith("if any row\n  then mean 3 ")


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
    for name, slope in rules[0].slopes.items():
        assert rules.to_frame()[f"slope of {name}"][0] == slope == records[0]["slopes"][name]
    assert rules[0].slopes
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


@pytest.mark.parametrize(
    "around",
    [
        sapwood.IntervalRegressor,
        lambda model: sapwood.TransformedRegressor(model, "auto"),
        lambda model: sapwood.HybridRegressor(model, MeanEstimator(), min_rows=10**6),
    ],
)
def test_stages_have_the_rules_of_the_model_inside(around):
    X, y = rows(3, 3000)
    model = around(HoeffdingTreeRegressor())
    model.learn_many(X, y - y.min())
    assert len(model.to_rules()) > 1
    assert str(model.to_rules()) == str(model.model.to_rules())


@pytest.mark.parametrize("kind", ["HoeffdingTree", "AdaptiveTree", "Forest"])
@pytest.mark.parametrize("classes", [2, 3])
def test_rules_of_classifiers_have_the_shares_of_classes(kind, classes):
    X, y = rows(7, 4000)
    edges = np.quantile(y, np.arange(1, classes) / classes)
    labels = np.array(["low", "high", "top"])[np.searchsorted(edges, y)]
    model = getattr(sapwood, f"{kind}Classifier")()
    assert len(model.to_rules()) == 0
    model.learn_many(X, labels)
    rules = model.to_rules()
    assert len(rules) > 2
    assert sum(rule.share for rule in rules) == pytest.approx(1.0)
    for rule in rules:
        assert sum(rule.probabilities.values()) == pytest.approx(1.0)
        assert set(rule.probabilities) == set(labels)
        assert rule.label == max(rule.probabilities, key=rule.probabilities.get)
    rule = rules[0]
    own = labels[met(rule, X)]
    for label, share in rule.probabilities.items():
        assert share == pytest.approx(np.mean(own == label), abs=0.15)
    assert f"then {rule.label} {rule.probabilities[rule.label]:.1%}" in str(rule)
    assert json.loads(rules.to_json())[0]["probabilities"] == rule.probabilities
    assert rules.to_frame()[f"probability of {rule.label}"][0] == rule.probabilities[rule.label]


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
