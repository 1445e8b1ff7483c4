"""Recursive forecasts: as rows that are learned one by one, in a copy; nothing is changed."""

import numpy as np
import pytest

import sapwood
from sapwood.lags import LaggedModel, Lags


def daily(rows=1500, noise=0.5):
    rng = np.random.default_rng(1)
    return 10 * np.sin(np.arange(rows) * np.pi / 12) + rng.normal(0, noise, rows)


def trained(model=None, lags=None):
    model = LaggedModel(model or sapwood.HoeffdingTreeRegressor(), lags or Lags([1, 2, 24]))
    y = daily()
    model.learn_many({"x": np.zeros(len(y))}, y)
    return model


def test_a_path_does_not_go_astray():
    model = trained()
    actual = 10 * np.sin(np.arange(1500, 1548) * np.pi / 12)
    path = model.forecast([{"x": 0.0}] * 48)
    assert np.sqrt(np.mean((path - actual) ** 2)) < 1.5
    with pytest.warns(UserWarning, match="'y.lag1' is not known from row 2 of 48 on"):
        alone = model.predict_many([{"x": 0.0}] * 48)
    assert np.sqrt(np.mean((alone - actual) ** 2)) > 3


@pytest.mark.parametrize("model", [sapwood.HoeffdingTreeRegressor(), sapwood.ForestRegressor()])
def test_predictions_are_lags_of_later_rows_and_nothing_changes(model):
    model = trained(model)
    before = model.to_bytes()
    path = model.forecast([{"x": 0.0}] * 5)
    assert model.to_bytes() == before
    expected, lags = [], model.lags.copy()
    for _ in range(5):
        expected.append(model.model.predict_one(lags.next_row({"x": 0.0}), record=False))
        lags.learn_one({"x": 0.0}, expected[-1])
    assert path.tolist() == expected


def test_by_time_only_rows_beyond_the_shortest_lag_are_recursive():
    at = np.arange(500.0) * 3600
    model = LaggedModel(
        sapwood.IntervalRegressor(sapwood.HoeffdingTreeRegressor()), Lags("24h", time="at")
    )
    model.learn_many({"at": at}, daily(500))
    before = model.to_bytes()
    path = model.forecast_path({"at": at[-1] + 3600 * np.arange(1.0, 31.0)}, intervals=True)
    assert path.is_recursive.tolist() == [False] * 24 + [True] * 6
    assert path.bounds.shape == (30, len(model.levels), 2)
    assert (path.bounds[:, 0, 0] <= path.predictions).all()
    assert model.to_bytes() == before


def test_several_targets_and_series_have_paths():
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(1, by="shop", target=["a", "b"]))
    for day in range(300):
        for shop in "AB":
            own = float(day % 2 + (10 if shop == "A" else 0))
            model.learn_one({"shop": shop}, {"a": own, "b": -own})
    path = model.forecast([{"shop": "A"}, {"shop": "B"}, {"shop": "A"}])
    assert np.round(path).tolist() == [[10, -10], [0, 0], [11, -11]]


def test_a_model_that_is_not_ours_can_forecast():
    class Last:
        def predict_one(self, x):
            return (x["y.lag1"] or 0.0) + 1.0

        def learn_one(self, x, y):
            pass

    model = LaggedModel(Last(), Lags(1))
    model.learn_one({}, 5.0)
    assert model.forecast([{}] * 3).tolist() == [6.0, 7.0, 8.0]
