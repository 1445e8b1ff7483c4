"""A drift monitor around any model."""

from functools import partial

import numpy as np
import pytest

import sapwood
from sapwood import HoeffdingTreeRegressor, MonitoredRegressor
from sapwood.drift import Monitor
from sapwood.drift.regressor import MOST_ALARMS
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags
from sapwood.model import from_bytes


def stream(rows=4_000, seed=2):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    shop = rng.choice(["x", "y"], rows)
    y = a + 0.1 * rng.normal(size=rows)
    a[rows // 2 :] += 5.0  # so errors grow too
    return {"a": a, "b": b, "shop": shop.tolist()}, y


def rows_of(X):
    lists = [X["a"].tolist(), X["b"].tolist(), X["shop"]]
    return [dict(zip(X, row, strict=True)) for row in zip(*lists, strict=True)]


def test_it_predicts_as_the_model_and_alerts_as_an_evaluation():
    X, y = stream()
    monitor = Monitor(once_in=100_000)
    expected = prequential(HoeffdingTreeRegressor(), X, y, monitor=monitor)
    model = MonitoredRegressor(HoeffdingTreeRegressor(), Monitor(once_in=100_000))
    found = model.predict_learn_many(X, y)
    assert found.tolist() == HoeffdingTreeRegressor().predict_learn_many(X, y).tolist()
    assert model.drift_events == expected.drift_events
    assert {alarm.name for alarm in model.drift_events} >= {"a", "error"}
    assert model.monitor.to_bytes() == monitor.to_bytes()


def test_rows_one_by_one_and_late_labels_alert_as_an_evaluation():
    X, y = stream(2_400)
    rows, late = rows_of(X), 10
    expected = prequential(
        HoeffdingTreeRegressor(), X, y, delay=late, monitor=Monitor(once_in=100_000)
    )
    model = MonitoredRegressor(HoeffdingTreeRegressor(), Monitor(once_in=100_000))
    for number, x in enumerate(rows):
        model.predict_one(x, id=number)
        if number >= late:
            model.learn_one(rows[number - late], y[number - late], id=number - late)
    for number in range(len(rows) - late, len(rows)):
        model.learn_one(rows[number], y[number], id=number)
    assert model.drift_events == expected.drift_events
    assert len(model.drift_events) >= 1


def test_features_that_are_ignored_do_not_alert():
    X, y = stream()
    model = MonitoredRegressor(HoeffdingTreeRegressor(), Monitor(once_in=100_000), ignored=["a"])
    model.predict_learn_many(X, y)
    assert {alarm.name for alarm in model.drift_events} == {"error"}
    assert model.ignored == ("a",)
    with pytest.raises(ValueError, match="a list of names is expected"):
        MonitoredRegressor(HoeffdingTreeRegressor(), ignored="a")


def test_targets_have_a_monitor_each():
    X, y = stream()
    labels = {"u": y, "v": -y}
    model = MonitoredRegressor(HoeffdingTreeRegressor(), Monitor(once_in=100_000))
    model.predict_learn_many(X, labels)
    expected = prequential(HoeffdingTreeRegressor(), X, labels, monitor=Monitor(once_in=100_000))
    assert model.drift_events == expected.drift_events
    assert {alarm.target for alarm in model.drift_events} == {"u", "v", None}
    twin = from_bytes(model.to_bytes())
    assert (twin.drift_events, twin.to_bytes()) == (model.drift_events, model.to_bytes())


def test_intervals_of_the_model_inside_are_offered_and_their_rows_watched():
    X, y = stream(1_200)
    alone = sapwood.IntervalRegressor(HoeffdingTreeRegressor())
    model = MonitoredRegressor(sapwood.IntervalRegressor(HoeffdingTreeRegressor()))
    one, other = alone.predict_learn_intervals(X, y), model.predict_learn_intervals(X, y)
    assert all(map(partial(np.array_equal, equal_nan=True), one, other))
    x = rows_of(X)[0]
    assert model.predict_interval_one(x, id=5) == alone.predict_interval_one(x, id=5)
    assert model.predict_quantile_one(x, 0.2) == alone.predict_quantile_one(x, 0.2)
    for many in (model, alone):
        many.predict_interval_many(X, 0.8)
    assert model._held.pending.count == alone._bounds.pending.count == 1_202
    assert (model.levels, model.monitor.rows) == (alone.levels, 1_200)
    for each in (model, alone):
        each.learn_one(x, 3.0, id=5)
    assert model.predict_one(x) == alone.predict_one(x)


def test_a_forecast_with_intervals_records_nothing():
    X, y = stream(600)
    model = LaggedModel(
        MonitoredRegressor(sapwood.IntervalRegressor(HoeffdingTreeRegressor())), Lags([1])
    )
    model.learn_many({"b": X["b"]}, y)
    before = model.to_bytes()
    path = model.forecast_path([{"b": 0.0}] * 3, intervals=True)
    assert path.bounds.shape == (3, 2, 2)
    assert model.to_bytes() == before
    assert model.drift_events == model.model.drift_events


def test_the_latest_alerts_are_kept():
    X, y = stream(2_400)
    model = MonitoredRegressor(HoeffdingTreeRegressor(), Monitor(once_in=1_000))
    model.predict_learn_many(X, y)
    model._held.own.drift_events[:0] = model.drift_events * MOST_ALARMS
    model.learn_one({"a": 0.0}, 1.0)
    assert len(model.drift_events) == MOST_ALARMS


class Lenient:
    """A model of another library that takes any values."""

    def __init__(self):
        self.rows = 0

    def predict_one(self, x):
        return 1.0

    def learn_one(self, x, y):
        self.rows += 1


def test_rows_that_the_monitor_cannot_read_are_learned_and_not_watched():
    model = MonitoredRegressor(Lenient())
    for value in (1.0, "warm", 2.0):
        model.learn_one({"a": value}, 3.0)
    assert (model.model.rows, model.monitor.rows) == (3, 2)


def test_rows_that_wait_are_watched_as_one_by_one():
    """A feature, a label or a value that cannot be read may come while others wait."""
    X, y = stream(900)
    rows = rows_of(X)
    for number in range(430, 900):
        rows[number]["late"] = float(number % 7)
        rows[number]["shop"] = "xyz"[number % 3]
    rows[500]["a"], rows[777]["b"] = None, "warm"
    waits, read = (MonitoredRegressor(Lenient()) for _ in range(2))
    watched = Monitor()
    for number, (x, label) in enumerate(zip(rows, y.tolist(), strict=True)):
        for model in (waits, read):
            model.learn_one(x, label)
        assert read.monitor.rows == number + (number < 777)
        if number != 777:
            watched.update(x, label, 1.0)
    assert waits._held.own._waiting is not None
    assert waits.drift_events == read.drift_events
    assert waits.monitor.to_bytes() == read.monitor.to_bytes() == watched.to_bytes()
    assert (waits._held.own._waiting, watched.rows) == (None, 899)
