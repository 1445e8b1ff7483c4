"""Time zones and special days on the command line, in saved models and in forecasts."""

import datetime as dt
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import sapwood
from cli_cases import invoke, read_csv
from sapwood.lags import NaiveStack

BERLIN = ZoneInfo("Europe/Berlin")
START = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
CLOSED = [dt.date(2024, 5, 1) - dt.timedelta(days=5 * each) for each in range(13)]
ZONE = ("--timezone", "Europe/Berlin", "--special-days", "closed.csv")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Hourly demand of 60 days that follows the local hour, and is low when a shop is closed."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    utc, local = ["at,load"], ["at,load"]
    for hour in range(24 * 60):
        at = START + dt.timedelta(hours=hour)
        here = at.astimezone(BERLIN)
        is_closed = here.date() in CLOSED
        load = (0 if is_closed else 40) + (30 if 8 <= here.hour < 18 else 0) + rng.normal()
        utc.append(f"{at.isoformat()},{load:.2f}")
        local.append(f"{here.replace(tzinfo=None).isoformat()},{load:.2f}")
    (tmp_path / "utc.csv").write_text("\n".join(utc) + "\n")
    (tmp_path / "local.csv").write_text("\n".join(local) + "\n")
    (tmp_path / "closed.csv").write_text("date,until\n" + "".join(f"{day},\n" for day in CLOSED))
    return tmp_path


def mae(*options):
    ended = invoke("evaluate", "utc.csv", "-t", "load", "--json", *options)
    assert ended.code == 0, ended.stderr
    return ended.json()["total"]["mae"]


def test_local_hours_and_special_days_are_features(folder):
    ended = invoke("train", "utc.csv", "-t", "load", *ZONE, "--save", "m")
    assert ended.code == 0, ended.stderr
    assert "time; also its hour, weekday, season, closed" in ended.stderr
    model = sapwood.load("m")
    assert model.features == ["at", "at.hour", "at.weekday", "at.season", "at.closed"]
    encoded = model.schema.encode_one({"at": "2024-05-01T00:30+02:00"})
    assert (encoded["at.hour"], encoded["at.closed"]) == (0, 1)
    assert mae(*ZONE) < 0.8 * mae()


def test_the_same_hours_in_local_time_and_in_utc(folder):
    """They differ in the hour that is skipped or repeated alone: here no row is repeated."""
    trained = {}
    for name in ("utc", "local"):
        ended = invoke("train", f"{name}.csv", "-t", "load", *ZONE, "--lags", "24h", "--save", name)
        assert ended.code == 0, ended.stderr
        trained[name] = sapwood.load(name)
    rows = [{"at": f"2024-05-{day:02d}T12:00"} for day in range(1, 4)]
    one, other = (trained[name].predict_many(rows) for name in ("utc", "local"))
    assert one.tolist() == other.tolist()


def test_a_model_keeps_its_calendar_without_the_file_and_the_package(folder, monkeypatch):
    pytest.importorskip("holidays")
    train = ("train", "utc.csv", "-t", "load", *ZONE, "--holidays", "DE")
    assert invoke(*train, "--save", "m").code == 0
    monkeypatch.setitem(sys.modules, "holidays", None)
    (folder / "closed.csv").unlink()
    model = sapwood.load("m")
    encoded = model.schema.encode_one({"at": dt.datetime(2024, 5, 1, 12)})
    assert (encoded["at.holiday"], encoded["at.closed"]) == (1, 1)
    assert model.schema.encode_one({"at": "2024-05-02"})["at.holiday"] == 0
    predicted = invoke("predict", "m", "local.csv", "-o", "-")
    assert predicted.code == 0, predicted.stderr
    ended = invoke("train", "local.csv", "--model", "m", "--save", "m2", "-q")
    assert ended.code == 0, ended.stderr
    assert sapwood.load("m2").schema == model.schema


def test_a_missing_package_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "holidays", None)
    ended = invoke("evaluate", "utc.csv", "-t", "load", "--holidays", "DE")
    assert ended.code == 2
    assert "holidays is not installed: pip install 'sapwood[holidays]'" in ended.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--timezone", "Europe/Atlantis"), "timezone 'Europe/Atlantis' is not known"),
        (("--special-days", "utc.csv"), 'utc.csv: the header "date"'),
        (("--special-days", "none.csv"), "none.csv"),
    ],
)
def test_what_is_no_calendar_is_rejected(folder, options, words):
    ended = invoke("evaluate", "utc.csv", "-t", "load", *options)
    assert ended.code == 2
    assert words in ended.stderr


def test_a_saved_model_has_a_calendar_of_its_own(folder):
    assert invoke("train", "utc.csv", "-t", "load", *ZONE, "--save", "m", "-q").code == 0
    again = ("train", "utc.csv", "--model", "m", "--save", "m2", "-q")
    assert invoke(*again, *ZONE).code == 0
    ended = invoke(*again, "--timezone", "Europe/Oslo")
    assert ended.code == 2
    assert "the model has a time zone and special days of its own" in ended.stderr
    assert invoke("evaluate", "friedman:rows=9", *ZONE).code == 2


def test_a_run_resumes_with_its_calendar(folder):
    text = (folder / "utc.csv").read_text().splitlines()
    (folder / "grows.csv").write_text("\n".join(text[:700]) + "\n")
    typed = ("train", "grows.csv", "-t", "load", "--checkpoint", "C", "-q", *ZONE)
    assert invoke(*typed, "--save", "m").code == 0
    (folder / "grows.csv").write_text("\n".join(text) + "\n")
    assert invoke(*typed, "--save", "m").code == 0
    assert invoke("train", "utc.csv", "-t", "load", *ZONE, "--save", "whole", "-q").code == 0
    resumed, whole = sapwood.load("m"), sapwood.load("whole")
    rows = [{"at": f"2024-05-01T{hour:02d}:00"} for hour in range(24)]
    assert resumed.predict_many(rows).tolist() == whole.predict_many(rows).tolist()
    plain = invoke(*(each for each in typed if each not in ZONE), *ZONE[2:], "--save", "m")
    assert plain.code == 2
    (folder / "closed.csv").write_text("date\n2024-03-24\n")
    ended = invoke(*typed, "--save", "m")
    assert ended.code == 2
    for each in (plain, ended):
        assert "C belongs to another run, whose calendar differed" in each.stderr


def test_workers_read_with_the_calendar(folder):
    typed = ("train", "utc.csv", "local.csv", "-t", "load", *ZONE, "-q")
    for engine in ("threads", "processes"):
        parallel = ("--workers", "2", "--engine", engine, "--save", engine)
        ended = invoke(*typed, *parallel)
        assert ended.code == 0, ended.stderr
        assert sapwood.load(engine).schema.calendars["at"].timezone == "Europe/Berlin"
        assert "at.closed" in sapwood.load(engine).features
    assert Path("threads").read_bytes() == Path("processes").read_bytes()


TRAIN = ("train", "utc.csv", "-t", "load", "--lags", "168h", "--horizon", "24h")


def test_a_forecast_has_local_times_and_knows_later_special_days(folder):
    assert invoke(*TRAIN, *ZONE, "--save", "m", "-q").code == 0
    ended = invoke("forecast", "m", "--horizon", "72h", "-o", "f.csv")
    assert ended.code == 0, ended.stderr
    rows = read_csv(folder / "f.csv")
    assert rows[0]["at"] == "2024-04-30 02:00:00+02:00"
    loads = {row["at"][:13]: float(row["prediction"]) for row in rows}
    assert loads["2024-04-30 12"] > 55
    assert loads["2024-05-01 12"] < 0.75 * loads["2024-04-30 12"]  # closed
    assert "no special days of closed are known after 2024-05-01" in ended.stderr
    (folder / "ahead.csv").write_text("at\n" + "".join(f"{row['at']}\n" for row in rows))
    again = invoke("forecast", "m", "--rows", "ahead.csv", "-o", "again.csv")
    assert again.code == 0, again.stderr
    assert (folder / "again.csv").read_bytes() == (folder / "f.csv").read_bytes()


def test_hours_of_scores_and_of_linear_forecasts_are_local(folder):
    score = ("evaluate", "utc.csv", "-t", "load", "--lags", "auto", "--horizon", "24h", "--json")
    found = {}
    for name, options in {"utc": (), "local": ZONE}.items():
        ended = invoke(*score, *options, "--save", name)
        assert ended.code == 0, ended.stderr
        found[name] = {each["hour"]: each for each in ended.json()["seasonal"]["hours"]}
    rows = {name: [hours[hour]["rows"] for hour in (1, 2)] for name, hours in found.items()}
    assert rows == {"utc": [60, 60], "local": [61, 59]}  # from 1 to 1; a local hour was skipped
    stack = sapwood.load("local").model
    assert isinstance(stack, NaiveStack)
    assert stack.to_state().header["timezone"] == "Europe/Berlin"
    assert "timezone" not in sapwood.load("utc").model.to_state().header
