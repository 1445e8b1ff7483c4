"""Rows whose label is not known: they are counted, and nothing is learned of them."""

import numpy as np
import pandas as pd
import pytest

import sapwood

MAKE = {
    "tree": sapwood.HoeffdingTreeClassifier,
    "forest": lambda: sapwood.ForestClassifier(members=3, threads=1),
}


def rows_of(count, classes, seed=1):
    rng = np.random.default_rng(seed)
    X = {"a": rng.random(count), "b": rng.integers(0, 3, count).astype(float)}
    y = [f"c{int(each)}" for each in np.floor(X["a"] * classes)]
    missing = rng.random(count) < 0.3
    return X, [None if lost else label for label, lost in zip(y, missing, strict=True)]


def dicts(X):
    return [
        dict(zip(X, row, strict=True))
        for row in zip(*(c.tolist() for c in X.values()), strict=True)
    ]


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("classes", [2, 4])
def test_a_row_without_a_label_changes_nothing_that_is_learned(kind, classes):
    X, y = rows_of(600, classes)
    kept = [place for place, label in enumerate(y) if label is not None]
    model, other = MAKE[kind](), MAKE[kind]()
    model.learn_many(X, y)
    other.learn_many({n: c[kept] for n, c in X.items()}, [y[place] for place in kept])
    assert model.rows_unlabelled == 600 - len(kept) > 0
    assert model.rows_learned == other.rows_learned == len(kept)
    assert model.model.to_bytes() == other.model.to_bytes()


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("predicts", ["not", "before", "meanwhile"])
def test_batches_are_one_by_one(kind, predicts):
    X, y = rows_of(400, 3)
    together, single = MAKE[kind](), MAKE[kind]()
    expected = []
    for x in dicts(X) if predicts == "before" else ():
        single.predict_one(x)
    if predicts == "before":
        together.predict_many(X)
        together.learn_many(X, y)
    elif predicts == "meanwhile":
        found = together.predict_learn_many(X, y)
    else:
        together.learn_many(X, y)
    for x, label in zip(dicts(X), y, strict=True):
        if predicts == "meanwhile":
            expected.append(single.predict_one(x, record=label is not None))
        single.learn_one(x, label)
    if predicts == "meanwhile":
        assert found.tolist() == expected
    assert together.rows_unlabelled == single.rows_unlabelled > 0
    assert together.to_bytes() == single.to_bytes()


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_what_stands_for_a_missing_label(missing):
    model = sapwood.HoeffdingTreeClassifier()
    model.learn_one({"a": 1.0}, missing)
    model.learn_many({"a": [1.0, 2.0, 3.0]}, ["u", missing, "v"])
    assert model.rows_unlabelled == 2
    assert model.classes == ["u", "v"]
    again = sapwood.HoeffdingTreeClassifier.from_bytes(model.to_bytes())
    assert again.rows_unlabelled == 2
    assert model.copy().rows_unlabelled == 2


def test_a_prediction_whose_label_is_not_known_waits_no_longer():
    model = sapwood.HoeffdingTreeClassifier()
    model.learn_many({"a": [1.0, 2.0] * 10}, ["u", "v"] * 10)
    model.predict_one({"a": 1.0}, id=7)
    model.predict_one({"a": 3.0})
    assert model._held.pending.count == 2
    model.learn_one({"a": 1.0}, None, id=7)
    model.learn_one({"a": 3.0}, None)
    assert model._held.pending.count == 0


def test_a_batch_that_is_rejected_counts_nothing():
    model = sapwood.HoeffdingTreeClassifier()
    model.learn_one({"a": 1.0}, "u")
    before = model.to_bytes()
    with pytest.raises(ValueError, match=r"position|0\.5"):
        model.learn_many({"a": [1.0, 2.0, 3.0]}, ["u", None, 0.5])
    with pytest.raises(ValueError, match="X has 1 rows"):
        model.learn_many({"a": [1.0]}, ["u", None])
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    "make",
    [np.array, list, pd.Series, lambda y: np.array(y, np.float32), lambda y: np.array(y, object)],
)
def test_whole_floats_are_whole_numbers(make):
    model = sapwood.HoeffdingTreeClassifier()
    model.learn_many({"a": [1.0, 2.0, 3.0]}, make([1.0, 0.0, 1.0]))
    model.learn_one({"a": 3.0}, 2.0)
    assert model.classes == [1, 0, 2]
    assert all(type(label) is int for label in model.classes)
