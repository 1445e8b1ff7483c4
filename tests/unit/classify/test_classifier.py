"""Classifiers: labels, probabilities, new classes, files, delayed labels, memory."""

import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from sapwood import (
    AdaptiveTreeClassifier,
    ForestClassifier,
    HoeffdingTreeClassifier,
    HoeffdingTreeRegressor,
)
from sapwood.classify.held import Held
from sapwood.classify.widening import widened

MAKERS = {
    "tree": HoeffdingTreeClassifier,
    "adaptive": lambda **own: AdaptiveTreeClassifier(threads=1, **own),
    "forest": lambda **own: ForestClassifier(members=3, threads=1, **own),
}
every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def blobs(count, classes, seed=1, categories=False):
    """Columns and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = {"a": rng.random(count), "b": rng.random(count)}
    codes = np.minimum((X["a"] + 0.2 * rng.random(count)) * classes, classes - 1).astype(int)
    if categories:
        X["c"] = [("x", "y", "z")[code] for code in rng.integers(0, 3, count)]
        codes = (codes + np.array([value == "x" for value in X["c"]])) % classes
    return X, [f"class {code}" for code in codes]


def rows_of(X):
    return [dict(zip(X, values, strict=True)) for values in zip(*X.values(), strict=True)]


def part(X, rows):
    return {name: values[rows] for name, values in X.items()}


# -- properties ----------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("classes", [1, 2, 5])
@pytest.mark.parametrize("categories", [False, True])
def test_a_batch_is_one_by_one_to_the_last_bit(make, classes, categories):
    X, y = blobs(500, classes, categories=categories)
    one, many = make(grace_period=40), make(grace_period=40)
    expected = []
    for x, label in zip(rows_of(X), y, strict=True):
        known = one.predict_proba_one(x)
        expected.append([known.get(f"class {code}", 0.0) for code in range(classes)])
        one.learn_one(x, label)
    found = np.zeros((500, classes))
    for rows in (slice(0, 3), slice(3, 250), slice(250, 500)):
        told = many.predict_proba_learn_many(part(X, rows), y[rows])
        for place, label in enumerate(many.classes):
            found[rows, int(label[-1])] = told[:, place]
    assert found.tolist() == expected
    assert one.to_bytes() == many.to_bytes()
    rest = rows_of(X)[:50]
    assert many.predict_many(part(X, slice(0, 50)), record=False).tolist() == [
        one.predict_one(x, record=False) for x in rest
    ]


@every_kind
def test_learn_many_is_learn_one_in_a_loop(make):
    X, y = blobs(300, 4)
    one, many = make(grace_period=40), make(grace_period=40)
    w = np.random.default_rng(2).choice([0.5, 1.0, 2.0], 300)
    for x, label, weight in zip(rows_of(X), y, w.tolist(), strict=True):
        one.learn_one(x, label, weight)
    many.learn_many(X, y, w)
    assert one.to_bytes() == many.to_bytes()
    assert many.class_weights["class 0"] == w[[label == "class 0" for label in y]].sum()


@every_kind
def test_the_order_of_classes_changes_nothing_but_rounding(make):
    X, y = blobs(1500, 3)
    codes = np.array([int(label[-1]) for label in y])
    first, second = make(), make()
    first.learn_many({"a": [0.1, 0.5, 0.9], "b": [0.5] * 3}, [0, 1, 2])
    second.learn_many({"a": [0.9, 0.5, 0.1], "b": [0.5] * 3}, [2, 1, 0])
    found = first.predict_proba_learn_many(X, codes)
    other = second.predict_proba_learn_many(X, codes)
    assert first.classes == [0, 1, 2]
    assert second.classes == [2, 1, 0]
    same = (found.argmax(axis=1) == 2 - other.argmax(axis=1)).mean()
    assert same > 0.97  # the first three rows came in another order
    assert abs((found.argmax(axis=1) == codes).mean() - 0.8) < 0.12


@every_kind
def test_two_classes_are_the_regressor_of_the_second(make):
    X, y = blobs(800, 2)
    model = make()
    model.learn_many(X, y)
    second = model.classes[1]
    inner = type(model.model)(**model.model.parameters)
    inner.learn_many(X, [float(label == second) for label in y])
    for x in rows_of(X)[:20]:
        rating = min(max(inner.predict_one(x, record=False), 0.0), 1.0)
        assert (model.predict_one(x, record=False) == second) == (rating > 0.5)


@every_kind
@pytest.mark.parametrize("classes", [2, 4])
def test_save_and_load_is_to_continue(make, classes, tmp_path):
    X, y = blobs(600, classes, categories=True)
    model = make(grace_period=40)
    model.learn_many(part(X, slice(0, 300)), y[:300])
    model.predict_many(part(X, slice(300, 320)), ids=range(20))
    model.predict_one(rows_of(X)[321])
    model.save(tmp_path / "my.sapwood")
    loaded = sapwood.load(tmp_path / "my.sapwood")
    copied = model.copy()
    for each in (model, loaded, copied):
        each.learn_many(part(X, slice(300, 320)), y[300:320], ids=range(20))
        each.learn_many(part(X, slice(320, 600)), y[320:])
    assert type(loaded) is type(model)
    assert loaded.to_bytes() == model.to_bytes() == copied.to_bytes()


@every_kind
def test_labels_that_come_late_are_scored_by_what_was_issued(make):
    X, y = blobs(400, 3)
    by_id, by_row = make(grace_period=40), make(grace_period=40)
    rows = rows_of(X)
    for number, x in enumerate(rows):
        by_id.predict_proba_one(x, id=number)
        by_row.predict_proba_one(x)
        if number >= 30:
            by_id.learn_one(rows[number - 30], y[number - 30], id=number - 30)
            by_row.learn_one(rows[number - 30], y[number - 30])
    assert by_id._held.pending.count == by_row._held.pending.count == 30
    at_once = make(grace_period=40)
    at_once.predict_proba_learn_many(part(X, slice(0, 370)), y[:370])
    late = by_id._held.calibrator.table
    assert late[0] == at_once._held.calibrator.table[0] == 370
    assert late.tolist() != at_once._held.calibrator.table.tolist()
    assert by_id.predict_many(X, record=False).tolist()[-1] in by_id.classes


@every_kind
def test_batches_of_late_labels_are_one_by_one(make):
    X, y = blobs(300, 4)
    one, many = make(grace_period=40), make(grace_period=40)
    rows = rows_of(X)
    for start in range(0, 300, 50):
        span = slice(start, start + 50)
        found = many.predict_proba_many(part(X, span))
        assert found.tolist() == [list(one.predict_proba_one(x).values()) for x in rows[span]]
        many.learn_many(part(X, span), y[span])
        for x, label in zip(rows[span], y[span], strict=True):
            one.learn_one(x, label)
    assert one.to_bytes() == many.to_bytes()


# -- new classes ---------------------------------------------------------------------------------


@every_kind
def test_a_class_that_comes_late_is_learned(make):
    X, y = blobs(3000, 3)
    late = [
        label if place >= 2000 or label != "class 2" else "class 1" for place, label in enumerate(y)
    ]
    model = make()
    found = model.predict_learn_many(X, late)
    assert "class 2" not in found[:2000].tolist()
    assert model.classes[-1] == "class 2"
    assert (found[2500:] == np.array(late[2500:])).mean() > 0.75


@every_kind
def test_what_was_learned_of_two_classes_is_kept_when_a_third_comes(make):
    X, y = blobs(2000, 2, categories=True)
    model = make()
    model.learn_many(X, y)
    before = model.predict_proba_many(X, record=False)
    leaves = model.n_leaves
    model.learn_one(rows_of(X)[0], "another")
    after = model.predict_proba_many(X, record=False)
    assert model.n_leaves == leaves
    same = before.argmax(axis=1) == after[:, :2].argmax(axis=1)
    assert same.mean() > 0.97
    assert abs(before - after[:, :2]).mean() < 0.05


@every_kind
def test_a_third_class_and_very_many_categories(make):
    rng = np.random.default_rng(1)
    rows, own = 4000, rng.integers(0, 3, 120)
    shop = rng.integers(0, 120, rows)
    X = {"shop": [f"shop {each}" for each in shop], "a": rng.random(rows)}
    y = np.where(rng.random(rows) < 0.1, rng.integers(0, 3, rows), own[shop])
    model = make()
    two = np.flatnonzero(y < 2)[:900]
    model.learn_many({name: [values[row] for row in two] for name, values in X.items()}, y[two])
    inner = model._held.model
    before = inner.predict_many(X, record=False)
    grown = widened(inner, float(y[two].mean()))
    after = grown.predict_many(X, record=False)
    assert np.allclose(after[1], before, atol=0.2)  # the corrector starts over
    assert np.allclose(after[0], 1 - after[1], atol=0.05)
    assert not after[2].any()
    predicted = model.predict_learn_many(X, y)
    assert (predicted[2000:] == y[2000:]).mean() > 0.9  # .93 is the best there is
    copy = sapwood.model.from_bytes(model.to_bytes())
    assert copy.predict_many(X).tolist() == model.predict_many(X).tolist()


def test_a_class_at_a_row_that_is_rejected_is_not_learned():
    X, y = blobs(100, 2)
    model = HoeffdingTreeClassifier()
    model.learn_many(X, y)
    before = model.to_bytes()
    with pytest.raises(ValueError, match=r"x\['a'\]|'a'"):
        model.learn_one({"a": "text", "b": 1.0}, "third")
    bad = {"a": [*X["a"][:50].tolist(), np.inf], "b": X["b"][:51]}
    with pytest.raises(ValueError, match="finite"):
        model.learn_many(bad, [*["third"] * 25, *["fourth"] * 26])
    with pytest.raises(ValueError, match="w"):
        model.learn_one({"a": 0.5, "b": 1.0}, "third", -1.0)
    assert model.to_bytes() == before


# -- labels --------------------------------------------------------------------------------------


def test_labels_of_all_kinds():
    model = HoeffdingTreeClassifier()
    for label in ("text", 7, -3, "", "ä" * 1000, 2**64 - 1):
        model.learn_one({"a": 1.0}, label)
    assert model.classes == ["text", 7, -3, "", "ä" * 1000, 2**64 - 1]
    assert sapwood.model.from_bytes(model.to_bytes()).classes == model.classes
    bools = HoeffdingTreeClassifier()
    bools.learn_many({"a": [0.0, 1.0] * 50}, np.array([False, True] * 50))
    assert bools.classes_.dtype == bool
    assert bools.predict_many({"a": [0.0, 1.0]}).tolist() == [False, True]
    whole = HoeffdingTreeClassifier()
    whole.learn_many({"a": [0.0, 1.0] * 50}, np.array([3, 5] * 50, np.int8))
    assert whole.predict_many({"a": [0.0, 1.0]}).dtype == np.int64
    assert type(whole.predict_one({"a": 0.0})) is int


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, pd.Series, pd.Categorical, pl.Series, pa.array]
)
def test_labels_in_any_container(kind):
    model = HoeffdingTreeClassifier()
    model.learn_many({"a": [1.0, 2.0, 3.0]}, kind(["u", "v", "u"]))
    assert model.class_weights == {"u": 2.0, "v": 1.0}


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (1.5, "y = 1.5 must be a string, a whole number or a bool"),
        (float("inf"), "or None if it is not known"),
        (["a"], "as the label of a class"),
        (2**64, r"must be from -2\*\*63 to 2\*\*64 - 1"),
        ("a" * 1001, "at most 1000 characters"),
        ("\ud800", "half of a surrogate pair"),
    ],
)
def test_labels_that_are_none(label, message):
    model = HoeffdingTreeClassifier()
    with pytest.raises(ValueError, match=message):
        model.learn_one({"a": 1.0}, label)
    with pytest.raises(ValueError, match=message.replace("y = ", "y at position 1 = ")):
        model.learn_many({"a": [1.0, 2.0]}, ["good", label])
    assert model.classes == []


def test_lengths_that_differ():
    model = HoeffdingTreeClassifier()
    for X in (
        {"a": [1.0, 2.0]},
        np.ones((2, 1)),
        [{"a": 1.0}, {"a": 2.0}],
        pd.DataFrame({"a": [1, 2]}),
    ):
        with pytest.raises(ValueError, match="X has 2 rows and y has 3 values"):
            model.learn_many(X, ["u", "v", "u"])
    with pytest.raises(ValueError, match="w has 1 values"):
        model.learn_many({"a": [1.0, 2.0]}, ["u", "v"], [1.0])
    with pytest.raises(ValueError, match="one dimension"):
        model.learn_many({"a": [1.0, 2.0]}, np.ones((2, 2), int))
    with pytest.raises(ValueError, match="sequence of labels"):
        model.learn_many({"a": [1.0]}, "u")


def test_more_classes_than_there_may_be():
    model = HoeffdingTreeClassifier(leaf="mean", track=None)
    with pytest.raises(ValueError, match="class number 1025"):
        model.learn_many({"a": np.zeros(1025)}, np.arange(1025))
    assert model.classes == []


# -- before the first label, and with one class --------------------------------------------------


@every_kind
def test_before_the_first_label(make):
    model = make()
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_many({"a": [1.0, 2.0]}).tolist() == [None, None]
    assert model.predict_proba_many({"a": [1.0, 2.0]}).shape == (2, 0)
    model.learn_one({"a": 1.0}, "only")
    assert model.predict_one({"a": 5.0}) == "only"
    assert model.predict_proba_one({"a": 5.0}) == {"only": 1.0}
    assert model.predict_learn_many({"a": [1.0]}, ["other"]).tolist() == ["only"]


# -- parameters, memory, threads -----------------------------------------------------------------


def test_parameters():
    model = ForestClassifier(members=4, grace_period=150, categorical=["k"], max_depth=3)
    assert model.parameters["grace_period"] == 150.0
    assert repr(model).startswith("<ForestClassifier(members=4, grace_period=150.0, max_depth=3")
    assert type(model)(**model.parameters).parameters == model.parameters
    with pytest.raises(ValueError, match="members = 1"):
        ForestClassifier(members=1)
    with pytest.raises(ValueError, match="max_bytes = 100, of which the trees have 1: at least"):
        ForestClassifier(max_bytes=100)
    with pytest.raises(ValueError, match="grace_period"):
        HoeffdingTreeClassifier(grace_period=-1)


@pytest.mark.parametrize(("name", "limit"), [("tree", 200_000), ("forest", 2_000_000)])
def test_a_limit_of_memory_is_kept(name, limit):
    X, y = blobs(4000, 6)
    model = MAKERS[name](max_bytes=limit, grace_period=30)
    for start in range(0, 4000, 500):
        rows = slice(start, start + 500)
        model.predict_many(part(X, rows))
        model.learn_many(part(X, rows), y[rows])
        assert model.nbytes <= limit
    assert (model.predict_many(X, record=False) == np.array(y)).mean() > 0.7


def test_threads_that_share_a_classifier():
    X, y = blobs(600, 5)
    model, errors = ForestClassifier(members=2), []

    def learn():
        for start in range(0, 600, 20):
            model.learn_many(part(X, slice(start, start + 20)), y[start : start + 20])

    def predict():
        try:
            for x in rows_of(X)[:200]:
                told = model.predict_proba_one(x, record=False)
                assert not told or abs(sum(told.values()) - 1) < 1e-9
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=each) for each in (learn, predict, predict)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = ForestClassifier(members=2)
    for start in range(0, 600, 20):
        alone.learn_many(part(X, slice(start, start + 20)), y[start : start + 20])
    assert not errors
    assert model.predict_proba_many(X).tolist() == alone.predict_proba_many(X).tolist()


@pytest.mark.parametrize("place", range(4))
def test_an_interruption_leaves_all_or_nothing(place, monkeypatch):
    """Between the trees and the calibration, or while a new class is built aside."""
    X, y = blobs(200, 3)
    model, expected = HoeffdingTreeClassifier(), HoeffdingTreeClassifier()
    for each in (model, expected):
        each.learn_many(part(X, slice(0, 100)), y[:100])
    x, label = rows_of(X)[100], y[100]
    if place < 2:
        real = model._both

        def broken(learn, finish, is_due):
            rows = model.rows_learned
            model._turns.unfinished = finish, lambda: model.rows_learned != rows and is_due()
            if place:
                learn()
            raise KeyboardInterrupt

        monkeypatch.setattr(model, "_both", broken)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one(x, label)
        monkeypatch.setattr(model, "_both", real)
        if place:
            expected.learn_one(x, label)
    else:
        owner, name = ((Held, "widened"), (type(model), "_learn_known"))[place - 2]
        monkeypatch.setattr(owner, name, lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.learn_one(x, "new")
        monkeypatch.undo()
    assert model.to_bytes() == expected.to_bytes()


def test_a_classifier_is_no_regressor():
    tree = HoeffdingTreeClassifier()
    with pytest.raises(sapwood.ModelFileError, match="HoeffdingTreeRegressor"):
        HoeffdingTreeRegressor.from_bytes(tree.to_bytes())


@given(
    st.lists(st.sampled_from(["a", "b", "c", 1, True]), min_size=1, max_size=30), st.integers(0, 9)
)
def test_any_sequence_of_labels(labels, seed):
    x = np.random.default_rng(seed).random(len(labels))
    one, many = HoeffdingTreeClassifier(), HoeffdingTreeClassifier()
    for value, label in zip(x.tolist(), labels, strict=True):
        one.learn_one({"x": value}, label)
    many.learn_many({"x": x}, labels)
    assert one.to_bytes() == many.to_bytes()
    assert sum(many.class_weights.values()) == len(labels)


def test_majority_leaves_are_those_of_means():
    rng = np.random.default_rng(1)
    X = rng.random((800, 2))
    y = np.where(X[:, 0] < 0.4, "a", np.where(X[:, 1] < 0.5, "b", "c"))
    found = []
    for leaf in ("majority", "mean"):
        model = HoeffdingTreeClassifier(leaf=leaf, track=None)
        found.append(model.predict_proba_learn_many(X, y))
        assert model.parameters["leaf"] == leaf
        again = HoeffdingTreeClassifier.from_bytes(model.to_bytes(), "it")
        assert again.to_bytes() == model.to_bytes()
    assert found[0].tobytes() == found[1].tobytes()
    with pytest.raises(ValueError, match="leaf"):
        HoeffdingTreeClassifier(leaf="most")
