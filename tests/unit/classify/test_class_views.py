"""Classifiers are looked into and changed as regressors are: explanations, anomalies, pruning."""

import numpy as np
import pytest

import sapwood
from sapwood.classify import LaggedClassifier
from sapwood.lags import Lags

KINDS = {
    "tree": sapwood.HoeffdingTreeClassifier,
    "adaptive": sapwood.AdaptiveTreeClassifier,
    "forest": lambda **own: sapwood.ForestClassifier(members=3, threads=1, **own),
}
RNG = np.random.default_rng(5)
X = {"temp": RNG.normal(15, 8, 3000), "wind": RNG.random(3000)}
SKY = np.where(X["temp"] > 18, "clear", np.where(X["wind"] > 0.6, "storm", "rain"))
WARM = np.where(X["temp"] > 18, "warm", "cold")
ROW = {"temp": 30.0, "wind": 0.5}


def learned(kind, y, **parameters):
    model = KINDS[kind](**parameters)
    model.learn_many(X, y)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("y", [SKY, WARM], ids=["three classes", "two classes"])
def test_ratings_of_classes_are_explained(kind, y):
    model = learned(kind, y)
    before = model.to_bytes()
    found = model.explain(ROW)
    assert model.to_bytes() == before
    assert found.probabilities == model.predict_proba_one(ROW, record=False)
    rated = model.model.predict_one(ROW, record=False)
    if y is WARM:
        rated = {1: rated}
    assert list(found.ratings) == (
        sorted(model.classes, key=lambda label: -found.probabilities[label])
        if y is SKY
        else model.classes[1:]
    )
    for label, own in found.ratings.items():
        assert own.prediction == rated[model.classes.index(label)]
        assert own.to_dict() == found.to_dict()["ratings"][label]
    text = str(found)
    assert text.startswith("class  probability") or text.startswith("class probability")
    assert all(f"rating of class {label!r}:" in text for label in found.ratings)


def test_the_most_probable_classes_are_explained():
    model = learned("tree", SKY)
    assert list(model.explain(ROW, most=1).ratings) == ["clear"]
    with pytest.raises(ValueError, match="most = 0"):
        model.explain(ROW, most=0)
    empty = sapwood.HoeffdingTreeClassifier()
    assert (empty.explain(ROW).probabilities, empty.explain(ROW).ratings) == ({}, {})
    empty.learn_one(ROW, "a")
    assert (empty.explain(ROW).probabilities, empty.explain(ROW).ratings) == ({"a": 1.0}, {})


def test_lags_are_part_of_an_explanation():
    model = LaggedClassifier(sapwood.HoeffdingTreeClassifier(), Lags([1], target="light"))
    model.learn_many([{} for _ in range(900)], ["green", "yellow", "red"] * 300)
    found = model.explain({})
    assert max(found.probabilities, key=found.probabilities.get) == "green"
    assert "light.lag1" in str(found.ratings["green"])


@pytest.mark.parametrize("y", [SKY, SKY == "clear"], ids=["3 classes", "2 classes"])
@pytest.mark.parametrize("kind", ["tree", "adaptive"])
def test_a_picture_shows_the_share_of_one_class(kind, y):
    model = learned(kind, y)
    shown = (
        model.classes[1]
        if len(model.classes) == 2
        else max(model.class_weights, key=model.class_weights.get)
    )
    assert f"mean of {shown}, line" in model.draw().svg
    assert model.draw(label=shown) == model.draw()
    assert f"… {len(model.to_rules())} leaves" in model.draw(max_depth=0).svg
    if len(model.classes) > 2:
        others = [model.draw(label=label).svg for label in model.classes]
        assert len(set(others)) == 3
    for label in ("none", *(model.classes[:1] if len(model.classes) == 2 else ())):
        with pytest.raises(ValueError, match="the picture shows one of"):
            model.draw(label=label)


def test_a_model_without_rows_has_a_picture_and_a_forest_has_none():
    assert "<svg" in sapwood.HoeffdingTreeClassifier().draw().svg
    forest = sapwood.ForestClassifier()
    assert not hasattr(forest, "draw")
    with pytest.raises(AttributeError, match="ForestClassifier has no draw: it has several trees"):
        forest.draw()
    lagged = LaggedClassifier(sapwood.HoeffdingTreeClassifier(), Lags([1], target="light"))
    with pytest.raises(
        AttributeError, match="LaggedClassifier has no forecast: its model predicts"
    ):
        lagged.forecast()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_unlike_all_others_are_anomalies(kind):
    model = learned(kind, SKY)
    odd = {"temp": 300.0, "wind": 50.0}
    assert model.anomaly_score_one(ROW) < model.anomaly_score_one(odd)
    own = model.anomaly_score_many([ROW, odd])
    assert own.tolist() == model.model.anomaly_score_many([ROW, odd]).tolist()
    with pytest.raises(ValueError, match="leaf = 'majority': anomaly scores need linear models"):
        learned(kind, SKY, leaf="majority").anomaly_score_one(ROW)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_split_is_taken_back_and_not_made_again(kind):
    model = learned(kind, SKY)
    model.no_splits = ["temp"]
    assert model.parameters["no_splits"] == model.no_splits == ("temp",)
    members, leaves = [()], model.n_leaves
    if kind == "forest":
        members = [(at,) for at in range(3) if model.model.member(at).n_leaves > 1]
    for member in members:
        assert (model.prune(0, *member) == 0).all()
    assert model.n_leaves == (3 if kind == "forest" else 1) < leaves
    again = type(model).from_bytes(model.to_bytes())
    assert again.no_splits == ("temp",)
    model.learn_many({name: own[:2000] for name, own in X.items()}, SKY[:2000])
    if kind != "adaptive":  # whose tree may have been replaced
        assert "temp >" not in model.to_text()
    model.learn_one(ROW, "new")
    assert (model.no_splits, model.classes[-1]) == (("temp",), "new")


def test_a_wrong_no_splits_changes_nothing():
    model = learned("tree", SKY)
    before = model.to_bytes()
    with pytest.raises(ValueError, match="name of a feature"):
        model.no_splits = [1.5]
    assert model.to_bytes() == before


def test_an_interrupted_no_splits_is_finished(monkeypatch):
    model, other = learned("tree", SKY), learned("tree", SKY)
    other.no_splits = ["wind"]
    kind = type(model.model)
    change = kind._change_no_splits

    def interrupted(self, names):
        change(self, names)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, "_change_no_splits", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.no_splits = ["wind"]
    assert model.to_bytes() == other.to_bytes()


def test_leaves_of_naive_bayes_are_neither_explained_nor_pruned():
    model = learned("tree", SKY, leaf="naive_bayes")
    with pytest.raises(ValueError, match="no sums of contributions; pass another leaf"):
        model.explain(ROW)
    with pytest.raises(ValueError, match="cannot be joined"):
        model.prune(0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_anytime_bound_needs_more_evidence_of_two_classes(kind):
    noise = np.random.default_rng(3)
    wide = noise.normal(size=(6000, 4))
    y = np.where(wide[:, 0] + 0.8 * wide[:, 1] + noise.normal(size=6000) > 0, "a", "b")
    plain, anytime = KINDS[kind](), KINDS[kind](split_bound="anytime")
    for model in (plain, anytime):
        model.learn_many(wide, y)
    assert anytime.n_leaves <= plain.n_leaves
    again = type(anytime).from_bytes(anytime.to_bytes())
    assert again.parameters["split_bound"] == "anytime"
    assert again.to_bytes() == anytime.to_bytes()
    assert "split_bound" not in plain.to_state().header["parameters"]  # as in older files


def test_the_anytime_bound_is_not_that_of_vfdt():
    with pytest.raises(ValueError, match="Hoeffding's bound, as those of VFDT"):
        sapwood.HoeffdingTreeClassifier(leaf="majority", merit="gini", split_bound="anytime")
