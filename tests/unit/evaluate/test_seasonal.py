"""Forecast scores: against sums over all rows, in whatever batches, and after a checkpoint."""

import math

import numpy as np
import pytest

from sapwood.evaluate.recorder import LabelledRows
from sapwood.evaluate.seasonal import SeasonalScores, skill


def stream(rows=400):
    rng = np.random.default_rng(0)
    times = np.arange(rows) * 3600.0
    y = 10 * np.sin(np.arange(rows) * np.pi / 12) + rng.normal(size=rows)
    return times, y, y + rng.normal(0, 0.5, rows)


def recorded(scores, times, y, predictions, batch):
    for start in range(0, len(y), batch):
        part = slice(start, start + batch)
        scores.record(LabelledRows(predictions[part], y[part], times[part]))
    return scores.errors


@pytest.mark.parametrize(("season", "horizon", "back"), [("24h", None, 24), ("24h", "36h", 48)])
@pytest.mark.parametrize("batch", [1, 7, 400])
def test_scores_are_sums_over_all_rows(season, horizon, back, batch):
    times, y, predictions = stream()
    found = recorded(SeasonalScores(season, horizon), times, y, predictions, batch)
    naive, own = y[back:] - y[:-back], y[back:] - predictions[back:]
    assert found.rows == len(y) - back
    assert found.naive_mae == pytest.approx(np.abs(naive).mean())
    assert found.naive_rmse == pytest.approx(np.sqrt(np.square(naive).mean()))
    assert found.skill == pytest.approx(
        1 - np.sqrt(np.square(own).mean() / np.square(naive).mean())
    )
    scale = np.abs(y[24:] - y[:-24]).mean()
    assert found.mase == pytest.approx(np.abs(y - predictions)[24:].mean() / scale)


def test_seasons_in_rows_and_series():
    scores = SeasonalScores(1, by=["shop"])
    features = {"shop": ["A", "B", "A", "B"]}
    scores.record(LabelledRows(np.zeros(4), np.array([1.0, 5.0, 2.0, 8.0]), features=features))
    assert (scores.errors.rows, scores.errors.naive_mae) == (2, 2.0)
    late = [{"shop": "A"}]
    scores.record(LabelledRows(np.zeros(1), np.array([5.0]), features=late))
    assert scores.errors.naive_mae == pytest.approx(7 / 3)


def test_a_checkpoint_holds_sums_and_past():
    times, y, predictions = stream()
    whole = recorded(SeasonalScores("24h"), times, y, predictions, 50)
    first = SeasonalScores("24h")
    recorded(first, times[:200], y[:200], predictions[:200], 50)
    second = SeasonalScores("24h").restored(first.to_arrays())
    assert recorded(second, times[200:], y[200:], predictions[200:], 50) == whole
    with pytest.raises(ValueError, match="another season"):
        SeasonalScores("48h").restored(first.to_arrays())
    with pytest.raises(ValueError, match="a sum that cannot be"):
        first.restored({**first.to_arrays(), "seasonal_sums": np.full((25, 11), -1.0)})


def test_nothing_known_is_no_number():
    errors = SeasonalScores("24h").errors
    assert math.isnan(errors.mase)
    assert errors.to_dict()["skill"] is None
    assert math.isnan(skill(1.0, 0.0))


def test_each_hour_has_its_skill_and_coverage():
    times, y, predictions = stream(24 * 40)
    hours = np.arange(len(y)) % 24
    bounds = np.stack([predictions - 0.6, predictions + 0.6], axis=1)[:, np.newaxis]
    bounds[:7] = np.nan
    scores = SeasonalScores("24h", levels=[0.7])
    for part in (slice(0, 100), slice(100, None)):
        rows = LabelledRows(predictions[part], y[part], times[part], bounds[part])
        scores.record(rows)
    found = scores.errors
    assert [each.hour for each in found.hours] == list(range(24))
    inside = np.abs(y - predictions) <= 0.6
    naive = np.append(np.full(24, np.nan), y[:-24])
    for each in found.hours:
        own = hours == each.hour
        later = own & np.isfinite(naive)
        square = np.square(y - predictions)[later].sum() / np.square(y - naive)[later].sum()
        assert each.skill == pytest.approx(1 - np.sqrt(square))
        assert each.coverage == pytest.approx((inside[own & (np.arange(len(y)) >= 7)].mean(),))
        assert each.mae == pytest.approx(np.abs(y - predictions)[own].mean())
        assert each.rows == 40
    restored = SeasonalScores("24h", levels=[0.7]).restored(scores.to_arrays())
    assert restored.errors == found
    assert found.to_dict()["hours"][5]["rows"] == 40


@pytest.mark.parametrize(("horizon", "days"), [("24h", 1), ("300h", 13), ("30d", 30)])
def test_the_naive_forecast_of_a_long_horizon_is_some_seasons_earlier(horizon, days):
    times, y, predictions = stream(1000)
    found = recorded(SeasonalScores("24h", horizon), times, y, predictions, 100)
    assert found.rows == 1000 - 24 * days
    assert found.naive_mae == pytest.approx(np.abs(y[24 * days :] - y[: -24 * days]).mean())


def test_rows_of_the_same_time_are_compared_with_the_same_row_a_season_earlier():
    rng = np.random.default_rng(4)
    days, shops = np.repeat(np.arange(30.0), 4) * 86_400, np.tile(["A", "A", "B", "B"], 30)
    y = np.tile([1.0, 50.0, 100.0, 7.0], 30) + rng.normal(0, 0.1, 120)
    options = {"by": ["shop"], "are_repeated": True}
    whole, first = SeasonalScores("7d", **options), SeasonalScores("7d", **options)
    rows = LabelledRows(np.zeros(120), y, days, features={"shop": shops.tolist()})
    whole.record(rows)
    expected = np.abs(y[28:] - y[:-28]).mean()
    assert (whole.errors.rows, whole.errors.naive_mae) == (92, pytest.approx(expected))
    plain = SeasonalScores("7d", by=["shop"])
    plain.record(rows)
    assert plain.errors.naive_mae > 10
    assert not whole.errors.hours  # which all are 0
    first.record(rows.some(np.arange(61)))
    second = SeasonalScores("7d", **options).restored(first.to_arrays())
    second.record(rows.some(np.arange(61, 120)))
    assert second.errors.naive_mae == pytest.approx(expected)
