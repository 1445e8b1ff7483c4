"""Proposed lags: seasons are found in spite of gaps and noise, within what the horizon allows."""

import numpy as np
import pytest

from sapwood.lags import Lags
from sapwood.lags.auto import propose


def weekly(rows=3000, noise=0.3):
    rng = np.random.default_rng(5)
    hours = np.arange(float(rows))
    day = np.sin(hours * np.pi / 12)
    y = np.where(hours % 168 < 120, 3 * day, day) + rng.normal(0, noise, rows)
    return hours * 3600, y


@pytest.mark.parametrize(
    ("horizon", "lags"),
    [
        (3600.0, ("1h", "2h", "3h", "24h", "168h", "336h")),
        (86_400.0, ("24h", "25h", "26h", "168h", "336h")),
        (100_000.0, ("28h", "29h", "30h", "48h", "168h", "336h")),
        (604_800.0, ("168h", "169h", "170h", "336h")),
    ],
)
def test_seasons_are_found_in_spite_of_gaps_and_duplicates(horizon, lags):
    times, y = weekly()
    rng = np.random.default_rng(1)
    chosen = np.sort(rng.choice(len(y), len(y)))  # some rows twice, others never
    found = propose(y[chosen], times[chosen], horizon)
    assert (found.lags, found.means, found.season) == (lags, ("24h",), "168h")
    Lags(found.lags, found.means, time="at", horizon=f"{horizon:g}s")  # which are allowed


def test_without_times_rows_are_counted():
    _, y = weekly()
    found = propose(y, horizon=24)
    assert (found.lags, found.means, found.season) == ((24, 25, 26, 168, 336), (24,), 168)


def test_noise_and_few_rows_have_no_season():
    noise = np.random.default_rng(2).normal(size=2000)
    for y in (noise, noise[:3], noise[:0], np.full(500, 7.0), np.full(9, np.nan)):
        assert propose(y).season is None
        assert propose(y).lags == (1, 2, 3)
        assert propose(y, np.full(len(y), np.nan)).season is None


def test_a_trend_is_no_season():
    assert propose(np.arange(1000.0)).season is None


def test_times_of_several_rows_are_recognised_and_duplicates_are_not():
    times, y = weekly(600)
    assert not propose(y, times).are_repeated
    some = np.sort(np.random.default_rng(1).choice(600, 600))
    assert not propose(y[some], times[some]).are_repeated
    days = np.floor(times / 86_400) * 86_400
    assert propose(y, days).are_repeated
    assert propose(y, days).rows_per_time == 24


def test_seasons_are_those_of_several_series_together():
    rng = np.random.default_rng(5)
    days, series = (each.ravel() for each in np.indices((90, 20)))
    y = 10.0 * series + np.sin(days * 2 * np.pi / 7) + rng.normal(0, 1.0, len(days))
    found = propose(y, days * 86_400.0, 86_400.0, series)
    assert (found.season, found.step, found.naive, found.earlier) == (
        *("168h", 86_400.0, "168h"),
        ("336h",),
    )
    alone = series == 3
    assert propose(y[alone], days[alone] * 86_400.0, 86_400.0).season != "168h"


def test_a_season_lasts_for_a_third_of_the_known_values_at_most():
    summers = np.concatenate([np.arange(60) + 365 * year for year in range(4)])
    y = np.random.default_rng(1).normal(size=len(summers)) + np.repeat([0, 3, 0, 3], 60)
    found = propose(y, summers * 86_400.0)
    assert all(int(lag[:-1]) <= 24 * 80 * 2 for lag in found.lags)
