"""Lags in the pipelines of river and scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import compose, evaluate, linear_model, metrics, preprocessing
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline

import sapwood
from sapwood.lags import LaggedModel
from sapwood.lags import Lags as Past
from sapwood.river import HoeffdingTreeRegressor as RiverTree
from sapwood.river import Lags as RiverLags
from sapwood.sklearn import HoeffdingTreeRegressor as Estimator
from sapwood.sklearn import Lags as Transformer


def sales(rows=600):
    """Sales of two shops that repeat every three days of each."""
    shop = np.array(["A", "B"] * (rows // 2))
    day = np.arange(rows) // 2
    y = np.where(shop == "A", 10.0, 100.0) * (1 + day % 3)
    return {"shop": shop.tolist(), "noise": (day % 5 * 1.0).tolist()}, y


def pairs(rows=600):
    columns, y = sales(rows)
    names = list(columns)
    for *values, target in zip(*columns.values(), y.tolist(), strict=True):
        yield dict(zip(names, values, strict=True)), target


def test_a_pipeline_of_rivers_is_the_lagged_model():
    pipeline = RiverLags([1, 3], by="shop") | RiverTree()
    ours = LaggedModel(sapwood.HoeffdingTreeRegressor(), Past([1, 3], by="shop"))
    errors = []
    for x, y in pairs():
        found, expected = pipeline.predict_one(x), ours.predict_one(x)
        errors.append(abs(found - y))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
        pipeline.learn_one(x, y)
        ours.learn_one(x, y)
    assert np.mean(errors[300:]) < 1.0


def test_lags_stand_before_rivers_own_models():
    def error_of(*first):
        scaled = preprocessing.StandardScaler(), linear_model.LinearRegression()
        model = compose.Pipeline(*first, compose.SelectType(float), *scaled)
        return evaluate.progressive_val_score(pairs(), model, metrics.MAE()).get()

    assert error_of(RiverLags([3], means=[3], by="shop")) < 0.5 * error_of()


def test_a_clone_remembers_nothing():
    lags = RiverLags([1], by="shop", lags_of={"noise": [2]})
    lags.learn_one({"shop": "A", "noise": 1.0}, 5.0)
    assert lags.transform_one({"shop": "A"}) == {"shop": "A", "y.lag1": 5.0}
    assert lags.clone().transform_one({"shop": "A"}) == {"shop": "A"}
    assert lags.clone()._get_params() == lags._get_params()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_gets_columns_of_its_own_library(frame):
    columns, y = sales(8)
    lags = Transformer([1], by="shop", target="sold")
    found = lags.fit_transform(frame(columns), y)
    assert type(found) is frame
    assert list(found.columns) == ["shop", "noise", "sold.lag1"]
    known = np.array(found["sold.lag1"], dtype=float)
    np.testing.assert_array_equal(known, [np.nan, np.nan, *y[:6]])
    after = lags.transform(frame(columns)[:3])
    np.testing.assert_array_equal(np.array(after["sold.lag1"], dtype=float), [y[6], y[7], np.nan])
    assert list(lags.get_feature_names_out()) == ["shop", "noise", "sold.lag1"]


def test_rows_after_fit_follow_those_of_fit():
    X, y = np.arange(6.0)[:, None], np.arange(6.0) * 10
    lags = Transformer([1, 2]).fit(X[:4], y[:4])
    np.testing.assert_array_equal(lags.transform(X[4:]), [[4.0, 30.0, 20.0], [5.0, np.nan, 30.0]])
    lags.partial_fit(X[4:], y[4:])
    np.testing.assert_array_equal(lags.transform([[6.0]]), [[6.0, 50.0, 40.0]])
    np.testing.assert_array_equal(clone(lags).fit(X[:1], y[:1]).transform(X[1:2]), [[1, 0, np.nan]])
    assert list(lags.get_feature_names_out()) == ["x0", "y.lag1", "y.lag2"]


@pytest.mark.parametrize(
    "last", [lambda: Estimator(passes=1, shuffle=False), HistGradientBoostingRegressor]
)
def test_a_pipeline_forecasts_by_the_lags_that_are_known(last):
    columns, y = sales(1200)
    X = pd.DataFrame(columns)[["noise"]].assign(shop=np.arange(1200) % 2.0)
    model = make_pipeline(Transformer([3], by="shop"), last())
    model.fit(X[:1000], y[:1000])
    np.testing.assert_allclose(model.predict(X[1000:1006]), y[1000:1006], atol=2.0)
    scores = cross_val_score(model, X, y, cv=TimeSeriesSplit(3, test_size=6))
    assert min(scores) > 0.99


def test_without_targets_there_are_no_lags():
    with pytest.raises(ValueError, match="requires y to be passed"):
        Transformer([1]).fit_transform([[1.0]])
