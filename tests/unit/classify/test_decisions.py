"""Weights of classes, and predictions by their costs."""

import numpy as np
import pytest
from sklearn.metrics import recall_score

import sapwood
from sapwood.classify.decisions import weighted

KINDS = {
    "tree": sapwood.HoeffdingTreeClassifier,
    "forest": lambda **given: sapwood.ForestClassifier(members=3, threads=1, **given),
}


def rare(count=2000, seed=1):
    """Rows of which 5 % are of a class that cannot be separated from the other."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(count) < 0.05, "rare", "usual")
    return {"a": rng.normal(size=count) + 1.5 * (y == "rare"), "b": rng.random(count)}, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighting", ["balanced", {"rare": 19}])
def test_more_rows_of_a_rare_class_are_found(kind, weighting):
    X, y = rare()
    plain = KINDS[kind]().predict_learn_many(X, y)
    found = KINDS[kind](class_weight=weighting).predict_learn_many(X, y)
    before, after = (recall_score(y[500:], own[500:], pos_label="rare") for own in (plain, found))
    assert before < 0.3
    assert after > 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_classes_are_weights_of_rows(kind):
    X, y = rare(500)
    weight = {"rare": 3.0, "usual": 0.5}
    model, other = KINDS[kind](class_weight=weight), KINDS[kind]()
    model.learn_many(X, y, np.full(500, 2.0))
    other.learn_many(X, y, np.array([2.0 * weight[label] for label in y]))
    assert model.model.to_bytes() == other.model.to_bytes()
    assert model.class_weights == other.class_weights


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighting", ["balanced", {"rare": 3}])
def test_batches_are_one_by_one_and_go_on_after_loading(kind, weighting):
    X, y = rare(400)
    X["a"][0], y[200] = 0.5, "new"
    model, single = KINDS[kind](class_weight=weighting), KINDS[kind](class_weight=weighting)
    model.learn_many({n: c[:250] for n, c in X.items()}, y[:250])
    model = type(model).from_bytes(model.to_bytes())
    model.learn_many({n: c[250:] for n, c in X.items()}, y[250:])
    for a, b, label in zip(X["a"].tolist(), X["b"].tolist(), y.tolist(), strict=True):
        single.learn_one({"a": a, "b": b}, label)
    assert model.to_bytes() == single.to_bytes()


def test_balanced_weights_are_those_of_a_loop():
    rng = np.random.default_rng(2)
    codes, weights, counts = rng.integers(0, 3, 50), rng.random(50), rng.random(3)
    found, after = weighted("balanced", ("a", "b", "c"), codes, weights, counts)
    own = counts.copy()
    for code, weight, each in zip(codes, weights, found, strict=True):
        own[code] += weight
        assert each == pytest.approx(weight * own.sum() / (3 * own[code]))
    np.testing.assert_allclose(after, own)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", [{"rare": 19}, {"rare": {"usual": 19}, "usual": {"rare": 1}}])
def test_the_class_of_the_least_cost_is_predicted(kind, cost):
    X, y = rare(800)
    model, plain = KINDS[kind](cost=cost), KINDS[kind]()
    p = plain.predict_proba_learn_many(X, y)
    found = model.predict_learn_many(X, y)
    assert model.model.to_bytes() == plain.model.to_bytes()
    place = plain.classes.index("rare")
    known = p.all(axis=1)
    expected = np.where(19 * p[:, place] > 1 - p[:, place], "rare", "usual")
    assert found[known].tolist() == expected[known].tolist()
    many = model.predict_many(X, record=False)
    assert many.tolist() == [
        model.predict_one({"a": a, "b": b}, record=False)
        for a, b in zip(X["a"].tolist(), X["b"].tolist(), strict=True)
    ]
    again = type(model).from_bytes(model.to_bytes())
    assert again.predict_many(X, record=False).tolist() == many.tolist()
    assert again.parameters["cost"] == model.parameters["cost"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"class_weight": "equal"}, "class_weight = 'equal' must be None, 'balanced', or a dict"),
        ({"class_weight": {"a": 0}}, r"class_weight\['a'\] = 0 must be a positive and finite"),
        ({"class_weight": {0.5: 1}}, "class_weight: a label = 0.5 must be a string"),
        ({"class_weight": [1, 2]}, r"class_weight = \[1, 2\] must be"),
        ({"cost": [[0, 1], [5, 0]]}, "a dict of labels and the cost of missing each"),
        ({"cost": {"a": -1}}, r"cost\['a'\] = -1 must be a finite number, at least 0"),
        ({"cost": {"a": {"b": float("inf")}}}, r"cost\['a'\]\['b'\] = inf must be"),
        ({"cost": {"a": 1, "b": {"a": 2}}}, "not both"),
    ],
)
def test_what_is_no_weight_and_no_cost(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sapwood.HoeffdingTreeClassifier(**given)
