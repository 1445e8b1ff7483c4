"""The forecaster in sktime: its checks, and what it forecasts."""

import doctest

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sktime")

from sktime.forecasting.base import ForecastingHorizon
from sktime.utils.estimator_checks import check_estimator

from sapwood.lags import NaiveStack
from sapwood.sktime import OnlineForecaster, forecaster
from sapwood.sktime import __main__ as program


def hourly(rows=24 * 50, start="2026-03-02"):
    rng = np.random.default_rng(3)
    at = pd.date_range(start, periods=rows, freq="h")
    y = 50 + 20 * np.sin(np.arange(rows) * np.pi / 12) + rng.normal(0, 1, rows)
    return pd.Series(y, at, name="load")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Sorting by default")  # of sktime itself
def test_all_checks_of_sktime_pass(capsys):
    assert program.main() == 0, capsys.readouterr().out


def test_the_examples_of_the_docstrings_run():
    found = doctest.testmod(forecaster, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert found.attempted
    assert found.failed == 0


QUICK = ["test_constructor", "test_clone", "test_fit_does_not_overwrite_hyper_params"]
QUICK += ["test_non_state_changing_method_contract", "test_predict_time_index_in_sample_full"]


def test_some_checks_of_sktime_pass():
    found = check_estimator(OnlineForecaster, tests_to_run=QUICK, verbose=False)
    assert found
    assert {name: each for name, each in found.items() if each != "PASSED"} == {}


def test_a_day_ahead_is_forecast_and_new_rows_are_learned():
    y = hourly()
    forecaster = OnlineForecaster("tree", horizon=24).fit(y[:-72])
    steps = range(1, 25)
    for start in (-72, -48, -24):
        expected = y[start:][:24]
        found = forecaster.predict(fh=steps)
        assert found.index.equals(expected.index)
        assert found.name == "load"
        assert np.abs(found - expected).mean() < 2
        assert forecaster.predict(fh=[3, 9]).tolist() == found.iloc[[2, 8]].tolist()
        before = forecaster.model_.to_bytes()
        absolute = ForecastingHorizon(expected.index, is_relative=False)
        assert forecaster.predict(fh=absolute).tolist() == found.tolist()
        assert forecaster.model_.to_bytes() == before
        forecaster.update(expected)
    assert isinstance(forecaster.model_.model, NaiveStack)
    assert forecaster.model_.model.model.summary.rows == len(y)


def test_rows_that_are_known_already_are_not_learned_again():
    y = hourly(500)
    once = OnlineForecaster("tree", lags=[1, 24]).fit(y[:400]).update(y[400:])
    again = OnlineForecaster("tree", lags=[1, 24]).fit(y[:400]).update(y[300:])
    assert once.predict(fh=[1, 5]).tolist() == again.predict(fh=[1, 5]).tolist()


def test_without_update_params_new_values_are_lags_alone():
    y = hourly(500)
    forecaster = OnlineForecaster("tree", lags=[1, 24]).fit(y[:400])
    tree = forecaster.model_.model.to_bytes()
    forecaster.update(y[400:406], update_params=False)
    assert forecaster.model_.model.to_bytes() == tree
    assert forecaster.predict(fh=[1]).index[0] == y.index[406]
    row = forecaster.model_.lags.next_row({})
    assert (row["y.lag1"], row["y.lag24"]) == (y.iloc[405], y.iloc[382])


@pytest.mark.parametrize("index", ["range", "period", "zoned"])
def test_series_of_any_index(index):
    y = hourly(600)
    if index == "range":
        y = y.reset_index(drop=True)
    elif index == "period":
        y.index = y.index.to_period("h")
    else:
        y.index = y.index.tz_localize("Europe/Berlin", ambiguous=True, nonexistent="shift_forward")
        y = y[~y.index.duplicated()]
        y.index.freq = None
    forecaster = OnlineForecaster("tree", lags=[24, 48]).fit(y[:480], fh=[12])
    if index != "zoned":
        found = forecaster.predict(fh=range(1, 13))
        assert np.abs(found - y[480:492]).mean() < 3
    has_time = "time.hour" in forecaster.model_.features
    assert has_time == (index != "range")


@pytest.mark.parametrize("horizon", [1, 3])
def test_missing_values_leave_the_other_rows_where_they_are(horizon):
    y = hourly(500)
    gaps = y.copy()
    gaps.iloc[[40, 200, 201, 498]] = np.nan
    lags = {"lags": [3, 24], "horizon": horizon}
    forecaster = OnlineForecaster("tree", **lags).fit(gaps[:300]).update(gaps[300:])
    assert forecaster.model_.model.summary.rows == 496
    row = forecaster.model_.lags.next_row({})
    assert (row["y.lag3"], row["y.lag24"]) == (y.iloc[497], y.iloc[476])
    assert np.isfinite(forecaster.predict(fh=range(1, 40))).all()


def test_the_steps_of_fit_are_the_horizon():
    y = hourly(300)
    assert OnlineForecaster("tree").fit(y, fh=[2, 5]).model_.lags.horizon == 5
    absolute = ForecastingHorizon(y.index[-1:] + pd.Timedelta("7h"), is_relative=False)
    assert OnlineForecaster("tree").fit(y, fh=absolute).model_.lags.horizon == 7
    assert OnlineForecaster("tree").fit(y).model_.lags.horizon == 1
    assert OnlineForecaster("tree", lags=[3, 24]).fit(y, fh=[9]).model_.lags.horizon == 3
    assert OnlineForecaster("tree", lags=4).fit(y, fh=[9]).model_.lags.horizon == 4


def test_columns_of_the_future_may_be_categories_or_missing():
    y = hourly(900)
    X = pd.DataFrame({"open": np.where(np.arange(900) % 7 < 3, "yes", "no")}, y.index)
    X["warmth"] = np.where(np.arange(900) % 5 == 0, np.nan, 1.0)
    y = y + np.where(X["open"] == "yes", 30, 0)
    forecaster = OnlineForecaster("tree", lags=[24]).fit(y[:-24], X[:-24])
    found = forecaster.predict(fh=range(1, 25), X=X[-24:])
    closed = forecaster.predict(fh=range(1, 25), X=X[-24:].assign(open="no"))
    is_open = (X["open"] == "yes")[-24:]
    assert (found - closed)[is_open].mean() > 10
    assert abs((found - closed)[~is_open].mean()) < 5
    gaps = forecaster.predict(fh=[2, 24], X=X.iloc[[-23, -1]])
    assert gaps.tolist() == pytest.approx(found.iloc[[1, 23]].tolist(), abs=3)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"model": "bush"}, "one of tree, adaptive, forest is expected"),
        ({"lags": "some"}, "numbers of rows are expected"),
        ({"horizon": 0}, "horizon"),
        ({"lags": "24h"}, "numbers of rows are expected"),
    ],
)
def test_what_cannot_be_is_rejected(parameters, words):
    with pytest.raises(ValueError, match=words):
        OnlineForecaster(**parameters).fit(hourly(100))
