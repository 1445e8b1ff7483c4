"""Copies of a model with other columns, combined by their errors."""

import numpy as np
import pytest

import sapwood
from cases import predicted_one_by_one
from sapwood import ForestRegressor, HoeffdingTreeRegressor, ModelFileError, MultiViewRegressor
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags
from sapwood.views import _combination
from sapwood.views.columns import View

PAIR = [("shop", "day")]


def stream(rows=3_000, seed=0, share=1.0):
    """Return shops, days, a number and labels with an effect of each pair of shop and day."""
    rng = np.random.default_rng(seed)
    shop, day, x = rng.integers(0, 6, rows), rng.integers(0, 7, rows), rng.random(rows)
    y = share * rng.normal(size=(6, 7))[shop, day] + 2 * x + rng.normal(0, 0.2, rows)
    shops = np.array([f"s{each}" for each in shop], object)
    return {"shop": shops, "day": day.astype(float), "x": x}, y


def rows_of(X):
    return [dict(zip(X, row, strict=True)) for row in zip(*X.values(), strict=True)]


def tree():
    return HoeffdingTreeRegressor(grace_period=50)


def r2(predictions, y):
    return 1 - np.mean((predictions - y)[1_000:] ** 2) / np.var(y[1_000:])


def naive(members, y):
    """Return the mean of models corrected by a ridge regression, solved at each row."""
    count = members.shape[1]
    theta, products, target = np.full(count, 1 / count), np.zeros((count, count)), np.zeros(count)
    square = weight = 0.0
    found = []
    for own, label in zip(members, y, strict=True):
        base = own.mean()
        d = own - base
        found.append(np.clip(base + theta @ d, own.min(), own.max()))
        products = 0.9995 * products + np.outer(d, d)
        target = 0.9995 * target + d * (label - base)
        square = 0.9995 * square + (label - found[-1]) ** 2
        weight = 0.9995 * weight + 1
        ridge = 25.0 * square / weight
        for _ in range(2):
            for each in range(count):
                rest = target[each] - products[each] @ theta + products[each, each] * theta[each]
                value = (rest + ridge / count) / (products[each, each] + ridge)
                theta[each] = min(max(value, 0.0), 1.0)
    return np.array(found), theta


@pytest.mark.parametrize("count", [2, 3])
def test_the_combination_is_that_of_a_slow_one(count):
    rng = np.random.default_rng(3)
    y = rng.normal(size=300)
    members = np.ascontiguousarray(
        y[:, None] + rng.normal(size=(300, count)) * np.arange(1, count + 1)
    )
    state, found = _combination.fresh(count), np.empty(300)
    issued = np.full((300, 1 + count), np.nan)
    _combination.learn(state, members, issued, y, np.ones(300), found)
    expected, theta = naive(members, y)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    weights = _combination.weights(state, count)
    np.testing.assert_allclose(weights, theta + (1 - theta.sum()) / count, rtol=1e-9)
    assert sum(weights) == pytest.approx(1.0)
    assert weights[0] == max(weights)


def test_what_was_issued_is_scored_instead_of_what_is_predicted_now():
    y, w, ones = np.full(50, 1.0), np.ones(50), np.tile([1.0, 0.0], (50, 1))
    then = np.tile([0.5, 0.0, 1.0], (50, 1))
    now, late = _combination.fresh(2), _combination.fresh(2)
    _combination.learn(now, ones, np.full((50, 3), np.nan), y, w, np.empty(50))
    _combination.learn(late, ones, then, y, w, np.empty(50))
    assert _combination.weights(now, 2)[0] > 0.9
    assert _combination.weights(late, 2)[0] < 0.2


def test_a_cross_is_found_to_be_useful():
    X, y = stream()
    plain = r2(tree().predict_learn_many(X, y), y)
    model = MultiViewRegressor(tree(), crosses=PAIR)
    assert r2(model.predict_learn_many(X, y), y) > plain + 0.1
    assert model.weights["crosses"] > 0.8
    assert "shop & day" in model.model.features
    assert model.features == ["shop", "day", "x"]


def test_a_cross_that_is_useless_costs_little():
    X, y = stream(share=0.0)
    plain = r2(tree().predict_learn_many(X, y), y)
    assert r2(MultiViewRegressor(tree(), crosses=PAIR).predict_learn_many(X, y), y) > plain - 0.005


def test_cells_of_a_location_are_found_to_be_useful():
    rng = np.random.default_rng(8)
    x, z = rng.uniform(-5, 5, (2, 4_000))
    level = rng.normal(size=(10, 10))
    y = level[np.floor(x).astype(int) + 5, np.floor(z).astype(int) + 5]
    X = {"x": x, "z": z}
    plain = r2(tree().predict_learn_many(X, y), y)
    model = MultiViewRegressor(tree(), crosses=[("x", "z", 1), ("x", "z", 2.5)])
    assert model.crosses == (("x", "z", 1.0), ("x", "z", 2.5))
    assert r2(model.predict_learn_many(X, y), y) > plain + 0.2
    assert model.model.features == ["x", "z", "x & z by 1", "x & z by 2.5"]
    again = MultiViewRegressor.from_bytes(model.to_bytes())
    assert again.crosses == model.crosses
    one = {"x": -0.1, "z": 4.9}
    assert again.predict_one(one) == model.predict_one(one)
    assert model.predict_many({key: [value] for key, value in one.items()}) == pytest.approx(
        model.predict_one(one), rel=1e-12
    )


def test_rows_and_columns_have_the_same_cells():
    view = View(crosses=(("x", "z", 0.5),))
    values = [0.0, -0.0, 0.49, -1e-9, 7.0, np.nan, None, 1e300]
    cells = [view.one({"x": value, "z": 1.0})["x & z by 0.5"] for value in values]
    assert cells[:5] == ["0 & 2", "0 & 2", "0 & 2", "-1 & 2", "14 & 2"]
    assert cells[5:7] == [None, None]
    assert view.one({"z": 1.0})["x & z by 0.5"] is None
    assert view.one({"x": "text", "z": 1.0})["x & z by 0.5"] is None
    by_rows, by_columns = (
        MultiViewRegressor(tree(), crosses=[("x", "z", 0.5), ("x", "z", 2)]) for _ in range(2)
    )
    X = {"x": 40 * values, "z": np.arange(320.0)}
    for row, x in enumerate(rows_of(X)):
        by_rows.learn_one(x, float(row % 8))
    by_columns.learn_many(X, np.arange(320.0) % 8)
    assert by_rows.to_bytes() == by_columns.to_bytes()


def test_a_copy_does_not_get_columns():
    X, y = stream()
    model = MultiViewRegressor(tree(), without=["x", "shop"])
    model.learn_many(X, y)
    assert list(model.weights) == ["all columns", "without"]
    assert model._models[1].features == ["day", "(constant)"]
    assert model.features == ["shop", "day", "x"]
    found = model.predict_many({**X, "x": X["x"] * 0})
    other = model._models[1].predict_many({"day": X["day"]})
    first = model._models[0].predict_many({**X, "x": X["x"] * 0})
    shares = model.weights
    expected = shares["all columns"] * first + shares["without"] * other
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_rows_that_have_only_columns_that_are_left_out():
    model, single = (MultiViewRegressor(tree(), without=["a"]) for _ in range(2))
    a = np.arange(200.0)
    model.learn_many({"a": a}, a)
    for value in a.tolist():
        single.learn_one({"a": value}, value)
    assert single.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("kind", [tree, lambda: ForestRegressor(members=2)])
def test_batches_with_missing_values_and_words_are_their_rows_one_by_one(kind):
    X, y = stream(900)
    rng = np.random.default_rng(1)
    X["shop"] = [
        None if gone else shop for gone, shop in zip(rng.random(900) < 0.1, X["shop"], strict=True)
    ]
    X["day"] = np.where(rng.random(900) < 0.1, np.nan, X["day"])
    batch, single = (
        MultiViewRegressor(kind(), without=["x"], crosses=[*PAIR, ("shop", "absent")])
        for _ in range(2)
    )
    found, start = [], 0
    for stop in (1, 7, 300, 900):
        part = {name: column[start:stop] for name, column in X.items()}
        found += batch.predict_learn_many(part, y[start:stop]).tolist()
        start = stop
    expected = []
    for x, label in zip(rows_of(X), y.tolist(), strict=True):
        own = {
            name: None if isinstance(value, float) and np.isnan(value) else value
            for name, value in x.items()
        }
        expected.append(single.predict_one(own))
        single.learn_one(own, label)
    assert found == expected
    assert batch.weights == single.weights


def test_features_that_come_with_later_rows_of_a_batch_come_with_these_rows():
    X, y = stream(600)
    rows = rows_of(X)
    for place, row in enumerate(rows):
        row["late"] = float(place % 7)
        for name, first in (("shop", 50), ("late", 200)):
            if place < first or place % 11 == 0:
                del row[name]
    batch, single = (
        MultiViewRegressor(tree(), without=["x"], crosses=[*PAIR, ("shop", "late")])
        for _ in range(2)
    )
    found = batch.predict_learn_many(rows, y).tolist()
    expected = predicted_one_by_one(single, rows, y)
    assert found == expected
    assert batch.weights == single.weights
    assert batch.features == single.features


def test_labels_that_are_late_find_what_was_issued_after_loading():
    X, y = stream(600)
    model, rows = MultiViewRegressor(tree(), without=["x"], crosses=PAIR), rows_of(X)
    other = sapwood.model.from_bytes(model.to_bytes())
    for place, x in enumerate(rows):
        for each in (model, other):
            each.predict_one(x, id=place)
            if place >= 30:
                each.learn_one(rows[place - 30], float(y[place - 30]), id=place - 30)
        if place % 97 == 0:
            other = sapwood.model.from_bytes(other.to_bytes())
    assert model._pending.count == 30
    assert other.to_bytes() == model.to_bytes()
    assert other.nbytes == model.nbytes > sum(each.nbytes for each in model._models)


def test_a_row_that_one_copy_would_reject_changes_nothing():
    X, y = stream(300)
    model = MultiViewRegressor(tree(), without=["x"], crosses=PAIR)
    model.learn_many(X, y)
    before = model.to_bytes()
    with pytest.raises(ValueError, match="'warm'"):
        model.learn_one({"shop": "s1", "day": 1.0, "x": "warm"}, 1.0)
    with pytest.raises(ValueError, match="'warm'"):
        model.learn_many({**X, "day": ["warm"] * 300}, y)
    with pytest.raises(ValueError, match="rows"):
        model.learn_many(X, y[:-1])
    assert model.to_bytes() == before


def test_an_interruption_between_copies_is_made_good(monkeypatch):
    X, y = stream(400)
    expected, model = (MultiViewRegressor(tree(), without=["x"], crosses=PAIR) for _ in range(2))
    expected.learn_many(X, y)
    for place in (1, 2):
        model = MultiViewRegressor(tree(), without=["x"], crosses=PAIR)
        learn, calls = HoeffdingTreeRegressor._learn_into, []

        def interrupted(self, *arguments, learn=learn, calls=calls, place=place, **own):
            calls.append(self)
            if len(calls) == place + 1:
                raise KeyboardInterrupt
            learn(self, *arguments, **own)

        with monkeypatch.context() as patch:
            patch.setattr(HoeffdingTreeRegressor, "_learn_into", interrupted)
            with pytest.raises(KeyboardInterrupt):
                model.learn_many(X, y)
        assert model.to_bytes() == expected.to_bytes()


def test_lags_and_intervals_go_around_it():
    rng = np.random.default_rng(2)
    X = {"x": rng.random(3_000)}
    y = 3 * X["x"] + np.sin(np.arange(3_000) / 20) + rng.normal(0, 0.1, 3_000)
    lags = Lags([1, 2])
    model = LaggedModel(MultiViewRegressor(tree(), without=lags.features), lags)
    found = prequential(sapwood.IntervalRegressor(model, [0.9]), X, y)
    assert abs(found.intervals.levels[0.9].total.coverage - 0.9) < 0.03
    assert model.model.without == ("y.lag1", "y.lag2")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({}, "name columns"),
        ({"without": "day"}, "a list of columns"),
        ({"crosses": "ab"}, "a list of pairs"),
        ({"crosses": ["ab"]}, "a list of columns"),
        ({"crosses": [("a", "a")]}, "a pair of columns"),
        ({"crosses": [("a", "b", "c")]}, "a pair of columns"),
        ({"crosses": [("a", "b", 0.0)]}, "the size of cells"),
        ({"crosses": [("a", "b", -1)]}, "the size of cells"),
        ({"crosses": [("a", "b", float("inf"))]}, "the size of cells"),
        ({"crosses": [("a", "b", float("nan"))]}, "the size of cells"),
        ({"crosses": [("a", "a", 1.0)]}, "the size of cells"),
        ({"crosses": [("a", "b", 1.0)] * 2}, "each once"),
        ({"crosses": [("a", "b")] * 2}, "each once"),
    ],
)
def test_views_that_cannot_be_are_rejected(own, message):
    with pytest.raises(ValueError, match=message):
        MultiViewRegressor(tree(), **own)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state", lambda array: array[1:]),
        ("state", lambda array: array * np.nan),
        ("state", lambda array: array + 5),
        ("model 1", lambda array: array[:-1]),
        ("model 1", lambda array: np.frombuffer(tree().to_bytes(), np.uint8)),
        (
            "model 1",
            lambda array: np.frombuffer(sapwood.drift.ChangeDetector().to_bytes(), np.uint8),
        ),
    ],
)
def test_a_file_with_a_wrong_array_is_rejected(name, change):
    X, y = stream(300)
    model = MultiViewRegressor(tree(), crosses=PAIR)
    model.learn_many(X, y)
    header, arrays = model.to_state()
    state = sapwood.model.State(
        {"format": 1, "schema": None, "model": header}, {**arrays, name: change(arrays[name])}
    )
    with pytest.raises(ModelFileError):
        MultiViewRegressor._restored(state, "the buffer")


@pytest.mark.parametrize(
    "header",
    [
        {"without": [], "crosses": []},
        {"without": ["x"], "crosses": [["shop", "day"]]},
        {"without": [], "crosses": ["sd"]},
        {"without": "x", "crosses": []},
        {"without": []},
    ],
)
def test_a_file_with_a_wrong_header_is_rejected(header):
    arrays = MultiViewRegressor(tree(), crosses=PAIR).to_state().arrays
    state = sapwood.model.State({"format": 1, "schema": None, "model": header}, arrays)
    with pytest.raises(ModelFileError):
        MultiViewRegressor._restored(state, "the buffer")
