"""A model stacked with naive forecasts: rows, batches, files, and how far behind it may be."""

import json

import numpy as np
import pytest

import sapwood
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags, NaiveStack
from sapwood.lags.naive_stack import PENDING, STATE
from sapwood.model import State


def daily(rows=900, noise=1.0):
    rng = np.random.default_rng(4)
    return 20 * np.sin(np.arange(rows) * np.pi / 12) + rng.normal(0, noise, rows)


def made(model=None):
    stack = NaiveStack(model or sapwood.HoeffdingTreeRegressor(), "y.lag24", "y.lag1")
    return LaggedModel(stack, Lags([1, 24]))


def columns(rows):
    return {"x": np.arange(float(rows)) % 5}


def test_batches_are_rows_one_by_one():
    y = daily(400)
    batched, single = made(), made()
    found = batched.predict_learn_many(columns(400), y)
    for place, label in enumerate(y.tolist()):
        x = {"x": float(place % 5)}
        assert single.predict_one(x) == pytest.approx(found[place], rel=1e-9)
        single.learn_one(x, label)
    assert batched.model.weights == pytest.approx(single.model.weights)


def test_late_labels_count_for_issued_predictions_and_files_hold_them():
    y = daily(300)
    model = made()
    waiting = []
    for place, label in enumerate(y.tolist()):
        model.predict_one({"x": 0.0}, id=place)
        waiting.append((place, label))
        if len(waiting) > 10:
            earlier, old = waiting.pop(0)
            model.learn_one({"x": 0.0}, old, id=earlier)
    restored = LaggedModel.from_bytes(model.to_bytes())
    assert len(model.model._pending) == 10
    for earlier, old in waiting:
        for each in (model, restored):
            each.learn_one({"x": 0.0}, old, id=earlier)
    assert not model.model._pending
    assert model.to_bytes() == restored.to_bytes()


@pytest.mark.parametrize("delay", [None, 24, 100])
def test_it_is_never_far_behind_the_better_naive_forecast(delay):
    y = daily(2000)
    season = 24 if delay is None else -(-(delay + 1) // 24) * 24
    last = 1 if delay is None else delay + 1
    stack = NaiveStack(sapwood.ForestRegressor(members=3), f"y.lag{season}", f"y.lag{last}")
    model = LaggedModel(stack, Lags(sorted({season, last})))
    found = prequential(model, (columns(2000), y), delay=delay)
    naive = np.sqrt(np.mean((y[season:] - y[:-season]) ** 2))
    assert found.total.r2 > 1 - (naive / y.std()) ** 2 - 0.1
    assert found.window.rmse < 1.05 * naive


def test_intervals_can_be_around_it():
    stack = NaiveStack(sapwood.HoeffdingTreeRegressor(), "y.lag24")
    model = LaggedModel(sapwood.IntervalRegressor(stack, [0.9]), Lags(24))
    y = daily(1500)
    _, bounds = model.predict_learn_intervals(columns(1500), y)
    inside = (bounds[500:, 0, 0] <= y[500:]) & (y[500:] <= bounds[500:, 0, 1])
    assert 0.85 < inside.mean() < 0.95


def test_the_better_forecast_gets_the_weight():
    model = made()
    model.learn_many(columns(900), daily(900, noise=0.01))
    weights = model.model.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["last"] < 0.1


def test_what_cannot_be_stacked_is_rejected():
    with pytest.raises(ValueError, match="a tree or forest of Sapwood is expected"):
        NaiveStack(made(), "y.lag24")
    with pytest.raises(ValueError, match="y has several targets"):
        NaiveStack(sapwood.HoeffdingTreeRegressor(), "a").learn_many(columns(2), np.ones((2, 2)))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (STATE, np.full((1, 3), 1.0), "not as they were saved"),
        (STATE, None, "cannot be"),
        (PENDING, [[1, 2.0]], "not as it was saved"),
        (PENDING, [[-1, *[1.0] * 6]], "a key that cannot be"),
        (PENDING, [[7, *["x"] * 6]], "no number"),
        (PENDING, {}, "not as they were saved"),
    ],
)
def test_a_state_that_cannot_be_is_rejected(name, value, words):
    header, arrays = NaiveStack(sapwood.HoeffdingTreeRegressor(), "y.lag24").to_state()
    if name == PENDING:
        value = np.frombuffer(json.dumps(value).encode(), np.uint8)
    elif value is None:
        value = np.full_like(arrays[STATE], np.nan)
    with pytest.raises(ValueError, match=words):
        NaiveStack.from_state(State(header, {**arrays, name: value}), 1)
