"""A model stacked with naive forecasts: rows, batches, files, and how far behind it may be."""

import json

import numpy as np
import pytest

import sapwood
from sapwood.corrector.pending_state import PENDING
from sapwood.evaluate import prequential
from sapwood.hybrid import _stack
from sapwood.lags import LaggedModel, Lags, NaiveStack
from sapwood.lags.naive_stack import OLDER_PENDING, RECORD, STATE
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
    assert model.model._pending.count == 10
    assert model.model.nbytes > model.model.model.nbytes + model.model._pending.nbytes
    for earlier, old in waiting:
        for each in (model, restored):
            each.learn_one({"x": 0.0}, old, id=earlier)
    assert model.model._pending.count == 0
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


def test_rows_without_ids_find_their_predictions_in_a_batch():
    y, columns_of = daily(600), {"x": np.arange(600.0)}
    batched, single = made(), made()
    for start in range(0, 600, 60):
        part = slice(start, start + 60)
        X = {"x": columns_of["x"][part]}
        found = batched.predict_many(X)
        assert found.tolist() == single.predict_many(X).tolist()
        assert batched.model._pending.count == (60 if start else 0)  # none before the first label
        batched.learn_many(X, y[part])
        for x, label in zip(X["x"].tolist(), y[part].tolist(), strict=True):
            single.learn_one({"x": x}, label)
    assert batched.model._pending.count == 0
    assert batched.model.weights == single.model.weights


def test_an_interruption_takes_a_pending_prediction_once(monkeypatch):
    stack = NaiveStack(sapwood.HoeffdingTreeRegressor(), "a")
    rows = {"a": np.arange(50.0), "b": np.arange(50.0) % 7}
    stack.learn_many(rows, rows["a"] + rows["b"])
    stack.predict_one({"a": 3.0, "b": 1.0}, id=1)
    expected = stack.copy()
    expected.learn_one({"a": 3.0, "b": 1.0}, 4.0, id=1)
    members, interruptions = NaiveStack._members, [KeyboardInterrupt]

    def interrupted(self, X, own):
        if self is stack and stack.model._kernel.rows == 51 and interruptions:
            raise interruptions.pop()
        return members(self, X, own)

    monkeypatch.setattr(NaiveStack, "_members", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stack.learn_one({"a": 3.0, "b": 1.0}, 4.0, id=1)
    assert stack.to_bytes() == expected.to_bytes()
    assert stack._pending.count == 0


def damaged_arrays(name, value):
    header, arrays = NaiveStack(sapwood.HoeffdingTreeRegressor(), "y.lag24").to_state()
    return State(header, {**arrays, name: value})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (STATE, np.full((1, 3), 1.0), "not as they were saved"),
        (STATE, np.full((1, _stack.STATE), np.nan), "cannot be"),
        (PENDING[0], np.zeros(3), "of another type"),
        (PENDING[3], np.zeros((0, 3)), "is wrong"),
        ("more", np.zeros(1), "its parts are not those"),
    ],
)
def test_a_state_that_cannot_be_is_rejected(name, value, words):
    with pytest.raises(ValueError, match=words):
        NaiveStack.from_state(damaged_arrays(name, value), 2)


def older(pending):
    """Return a state of format 1, in which pending predictions were a list."""
    header, arrays = NaiveStack(sapwood.HoeffdingTreeRegressor(), "y.lag24").to_state()
    kept = {name: array for name, array in arrays.items() if name not in PENDING}
    array = np.frombuffer(json.dumps(pending).encode(), np.uint8)
    return State(header, {**kept, OLDER_PENDING: array})


def test_pending_predictions_of_format_1_are_read():
    record = [0.0, 1.0, None, 2.0, 1.5, 1.5]
    made = NaiveStack.from_state(older([[2**63 + 5, *record], [7, *record]]), 1)
    assert made._pending.count == 2
    found = made._pending.take_one(2**63 + 5, 0.0)
    np.testing.assert_array_equal(found, [0.0, 1.0, np.nan, 2.0, 1.5, 1.5])


@pytest.mark.parametrize(
    ("pending", "words"),
    [
        ([[1, 2.0]], "not as it was saved"),
        ([[-1, *[0.0] * RECORD]], "a key that cannot be"),
        ([[7, *["x"] * RECORD]], "no number"),
        ([[7, *[1.0] * RECORD]], "newer than all labels"),
        ({}, "not as they were saved"),
    ],
)
def test_pending_predictions_of_format_1_that_cannot_be_are_rejected(pending, words):
    with pytest.raises(ValueError, match=words):
        NaiveStack.from_state(older(pending), 1)
