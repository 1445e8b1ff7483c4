"""Lags by time, horizons and forecasts on the command line."""

import math

import numpy as np
import pytest

import sapwood
from cli_cases import invoke

HOURS = 24 * 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Hourly demand of 60 days with a daily pattern, gaps and duplicates, in UTC."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    lines = ["at,load"]
    for hour in range(HOURS):
        if rng.random() < 0.1:
            continue
        at = np.datetime64("2026-03-02T00:00") + np.timedelta64(hour, "h")
        for _ in range(1 + (rng.random() < 0.1)):
            load = 50 + 40 * math.sin(hour * math.pi / 12) + rng.normal()
            lines.append(f"{at},{load:.2f}")
    (tmp_path / "load.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


BARE = ("--time-parts", "none")  # so that lags alone know the hour


def test_lags_by_time_are_right_where_rows_are_missing_or_doubled(folder):
    late = ("evaluate", "load.csv", "-t", "load", "--time", "at", "--delay", "24h", "--json")
    by_row = invoke(*late, *BARE, "--lags", "24").json()
    by_time = invoke(*late, *BARE, "--lags", "24h")
    assert by_time.code == 0, by_time.stderr
    assert "also lag features: load.lag24h" in by_time.stderr
    assert by_time.json()["window"]["mae"] < 0.75 * by_row["window"]["mae"]


def test_a_saved_model_reads_times_as_they_stand_in_the_file(folder):
    train = ("train", "load.csv", "-t", "load", "--lags", "24h", "--means", "48h")
    assert invoke(*train, "--save", "model").code == 0
    model = sapwood.load("model")
    assert model.lags.time == "at"
    lagged = model.lags.transform_one(model._encoded_one({"at": "2026-05-01T00:00"}))
    assert lagged["load.lag24h"] == pytest.approx(50, abs=5)


def test_durations_need_a_column_of_times(folder):
    (folder / "bare.csv").write_text(
        "x,y\n" + "".join(f"{row % 7},{row % 3}.5\n" for row in range(99))
    )
    found = invoke("evaluate", "bare.csv", "-t", "y", "--lags", "24h")
    assert found.code == 2
    assert "24h before a row needs --time, the column of times" in found.stderr
    mixed = invoke("evaluate", "load.csv", "-t", "load", "--lags", "24h,3")
    assert mixed.code == 2
    assert "24h and 3: spans are all rows, or all durations" in mixed.stderr
