"""Lags by time, horizons and forecasts on the command line."""

import math
import os
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

import sapwood
from cli_cases import invoke, read_csv

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


HORIZON = ("evaluate", "load.csv", "-t", "load", "--lags", "auto")


@pytest.mark.usefixtures("unsaved_charts")
def test_each_horizon_has_a_model_and_scores(folder):
    found = invoke(*HORIZON, "--horizon", "24h,1h", "--json", "--report", "report.html")
    assert found.code == 0, found.stderr
    result = found.json()
    assert [each["horizon"] for each in result["horizons"]] == ["1h", "24h"]
    assert result["known_ahead"] == "all"
    for each in result["horizons"]:
        assert each["season"] == "24h"
        assert each["r2"] > 0.8
        assert each["skill_last"] is not None
        assert each["evaluation"]["seasonal"]["mase"] == each["mase"]
    assert "horizon 24h: lag features load.lag24h, load.lag25h" in found.stderr
    page = (folder / "report.html").read_text()
    assert "Scores by horizon, one model each" in page
    table = invoke(*HORIZON, "--horizon", "24h")
    assert "skill: 1 - RMSE of the model" in table.stdout
    assert "1 day" in table.stdout
    assert "count as known at its horizon" not in table.stdout  # there are no other columns
    lines = (folder / "load.csv").read_text().splitlines()
    more = [f"{line},{place % 7}" for place, line in enumerate(lines[1:])]
    (folder / "load.csv").write_text("\n".join([f"{lines[0]},temp", *more]) + "\n")
    assert "count as known at its horizon" in invoke(*HORIZON, "--horizon", "24h").stdout


def test_a_horizon_is_a_delay_without_shorter_lags(folder):
    command = ("evaluate", "load.csv", "-t", "load", "--time", "at", "--json")
    ahead = invoke(*command, "--horizon", "24h", "--lags", "1h,24h,48h").json()
    late = invoke(*command, "--delay", "24h", "--lags", "24h,48h").json()
    assert ahead["total"] == late["total"]
    rows = invoke(
        "evaluate", "load.csv", "-t", "load", "--json", "--horizon", "5", "--lags", "5"
    ).json()
    late = invoke(
        "evaluate", "load.csv", "-t", "load", "--json", "--delay", "4", "--lags", "5"
    ).json()
    assert rows["total"] == late["total"]


def test_columns_that_are_not_known_ahead_are_left_out(folder):
    text = (folder / "load.csv").read_text().splitlines()
    lines = [f"{text[0]},copy", *(f"{line},{line.split(',')[1]}" for line in text[1:])]
    (folder / "more.csv").write_text("\n".join(lines) + "\n")
    command = ("evaluate", "more.csv", "-t", "load", "--lags", "24h", "--horizon", "24h", "--json")
    known, unknown = (invoke(*command, *own) for own in ((), ("--known-ahead", "none")))
    named = invoke(*command, "--known-ahead", "copy")
    assert unknown.code == named.code == 0, unknown.stderr
    assert known.json()["total"]["mae"] < 0.7 * unknown.json()["total"]["mae"]
    assert named.json()["total"] == known.json()["total"]


def test_a_checkpoint_of_a_horizon_is_resumed(folder):
    command = (*HORIZON, "--horizon", "24h", "--json")
    whole = invoke(*command).json()
    lines = (folder / "load.csv").read_text().splitlines(keepends=True)
    own = ("--checkpoint", "state", "--every", "200")
    assert invoke(*command, *own).json()["seasonal"]["mase"] == pytest.approx(
        whole["seasonal"]["mase"]
    )
    assert invoke(*command, *own).json()["seasonal"]["mase"] == pytest.approx(
        whole["seasonal"]["mase"]
    )
    assert len(lines) > 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--horizon", "soon"), "--horizon soon: rows are expected"),
        (("--horizon", "1,24h"), "rows (24) or durations (1h,24h) are expected"),
        (("--horizon", "24h", "--delay", "24h"), "labels are as late as --horizon already"),
        (("--horizon", "1h,24h", "--save", "x"), "--save x is for one --horizon"),
        (("--known-ahead", "none"), "--known-ahead none is for --horizon"),
        (
            ("--horizon", "1h", "--known-ahead", "zz"),
            "--known-ahead zz: load.csv has no such column",
        ),
    ],
)
def test_horizons_that_cannot_be_meant_are_rejected(folder, options, words):
    found = invoke("evaluate", "load.csv", "-t", "load", "--lags", "24h", *options)
    assert found.code == 2
    assert words in found.stderr


def test_drift_is_reported_for_each_horizon(folder):
    found = invoke(*HORIZON, "--horizon", "1h,24h", "--monitor")
    assert found.code == 0, found.stderr
    for horizon in ("1h", "24h"):
        assert f"horizon {horizon}: drift: " in found.stdout


@pytest.mark.usefixtures("unsaved_charts")
def test_a_report_has_pictures_of_skill_and_of_what_predictions_consist_of(folder):
    own = ("--horizon", "1h,24h", "--interval", "0.9", "--report", "report.html", "--quiet")
    found = invoke(*HORIZON, *own)
    assert found.code == 0, found.stderr
    page = (folder / "report.html").read_text()
    for title in ("Skill by horizon", "Skill by hour", "Coverage by hour", "Forecast of load"):
        assert f"<b>{title}</b>" in page
    assert "Each of the last 480 predictions is the level" in page
    assert "Contributions by hour of the day" in page


def forecast_rows(*options):
    found = invoke("forecast", "model", *options, "-o", "path.csv")
    assert found.code == 0, found.stderr
    return read_csv("path.csv"), found.stderr


def train(*options):
    found = invoke("train", "load.csv", "-t", "load", *options, "--save", "model")
    assert found.code == 0, found.stderr


def test_a_path_follows_the_last_row_at_the_usual_step(folder):
    train("--horizon", "24h", "--lags", "24h,48h", "--interval", "0.9", "-m", "forest")
    before = (folder / "model").read_bytes()
    rows, words = forecast_rows("--horizon", "48h", "--picture", "path.svg")
    root = ElementTree.fromstring((folder / "path.svg").read_text())
    drawn = {each.tag.rpartition("}")[2]: each.get("points", "").split() for each in root.iter()}
    assert (len(drawn["polyline"]), len(drawn["polygon"])) == (48, 96)
    last = (folder / "load.csv").read_text().splitlines()[-1].split(",")[0]
    start = np.datetime64(last) + np.timedelta64(1, "h")
    times = [np.datetime64(row["at"]) for row in rows]
    assert times == [start + np.timedelta64(hour, "h") for hour in range(48)]
    hours = (np.array(times) - np.datetime64("2026-03-02T00:00")).astype(float) / 3600
    expected = 50 + 40 * np.sin(hours * np.pi / 12)
    found = np.array([float(row["prediction"]) for row in rows])
    assert np.corrcoef(found, expected)[0, 1] > 0.9
    for row in rows:
        assert float(row["lower"]) <= float(row["prediction"]) <= float(row["upper"])
    assert "48 forecast, 24 of them recursively" in words
    assert "prediction intervals hold up to the horizon of the model, 24h" in words
    assert (folder / "model").read_bytes() == before


def test_the_picture_of_one_row_can_be_seen(folder):
    train("--horizon", "24h", "--lags", "24h", "--interval", "0.9")
    forecast_rows("--horizon", "1h", "--picture", "path.svg")
    root = ElementTree.fromstring((folder / "path.svg").read_text())
    drawn = {each.tag.rpartition("}")[2]: each.get("points", "").split() for each in root.iter()}
    (left, height), (right, same) = (point.split(",") for point in drawn["polyline"])
    assert float(left) < float(right)
    assert height == same
    assert len(set(drawn["polygon"])) == 4


def test_columns_that_given_rows_lack_are_named(folder):
    train("--lags", "24h")
    (folder / "next.csv").write_text("at.hour\n5\n")
    _, words = forecast_rows("--rows", "next.csv")
    assert "next.csv lacks at" in words


def test_rows_with_columns_that_are_known_ahead_can_be_given(folder):
    train("--lags", "24h")
    path, _ = forecast_rows("--horizon", "3h")
    lines = ["at", *(row["at"] for row in path)]
    (folder / "next.csv").write_text("\n".join(lines) + "\n")
    given, words = forecast_rows("--rows", "next.csv")
    assert given == path
    assert "trained without --horizon" in words
    some, _ = forecast_rows("--rows", "next.csv", "--horizon", "2h", "--min", "20", "--max", "60")
    assert len(some) == 2
    assert all(20 <= float(row["prediction"]) <= 60 for row in some)


def test_each_series_has_its_path(folder):
    lines = ["at,shop,load"]
    for hour in range(300):
        at = np.datetime64("2026-03-02T00:00") + np.timedelta64(hour, "h")
        lines += [f"{at},A,{10 + hour % 2}", f"{at},B,{100 + hour % 2}"]
    (folder / "load.csv").write_text("\n".join(lines) + "\n")
    train("--lags", "2h", "--by", "shop", "--horizon", "2h")
    rows, _ = forecast_rows("--horizon", "2h")
    assert [row["shop"] for row in rows] == ["A", "B", "A", "B"]
    predictions = [float(row["prediction"]) for row in rows]
    np.testing.assert_allclose(predictions, [10, 100, 11, 101], atol=1.0)
    assert predictions[0] < predictions[2]
    assert predictions[1] < predictions[3]


def test_a_forecast_that_cannot_be_made_is_rejected(folder):
    train("--lags", "24")
    by_rows = invoke("forecast", "model", "--horizon", "24h")
    assert by_rows.code == 2
    assert "its lags count rows" in by_rows.stderr
    assert "--horizon is missing" in invoke("forecast", "model").stderr
    assert "a duration is expected" in invoke("forecast", "model", "--horizon", "3").stderr
    train("--lags", "24h")
    wrong = invoke("forecast", "model", "--horizon", "24h", "--interval", "0.9")
    assert wrong.code == 2
    assert "no prediction intervals" in wrong.stderr
    assert invoke("train", "load.csv", "-t", "load", "--save", "bare").code == 0
    assert "it has no lags" in invoke("forecast", "bare", "--horizon", "24h").stderr


def test_a_saved_model_keeps_its_horizon(folder):
    train("--lags", "24h", "--horizon", "24h")
    more = ("train", "load.csv", "--model", "model", "--save", "more")
    other = invoke(*more, "--horizon", "1h")
    assert other.code == 2
    assert "model was trained with --horizon 24h: give the same" in other.stderr
    assert invoke(*more).code == 2
    assert invoke(*more, "--horizon", "24h").code == 0


def test_predict_warns_of_lags_that_are_not_known(folder):
    train("--lags", "1h,24h")
    path, _ = forecast_rows("--horizon", "5h")
    (folder / "next.csv").write_text("\n".join(["at", *(row["at"] for row in path)]) + "\n")
    found = invoke("predict", "model", "next.csv")
    assert found.code == 0
    assert "'load.lag1h' is not known from row 2 of 5 on" in found.stderr
    assert "use `sapwood forecast`" in found.stderr


@pytest.mark.usefixtures("unsaved_charts")
def test_coverage_and_pinball_loss_by_horizon_and_hour(folder):
    files = ("--json", "--report", "report.html")
    found = invoke(*HORIZON, "--horizon", "24h", "--interval", "0.9", "--interval", "0.5", *files)
    assert found.code == 0, found.stderr
    result = found.json()
    hours = result["seasonal"]["hours"]
    assert [each["hour"] for each in hours] == list(range(24))
    assert result["seasonal"]["levels"] == [0.5, 0.9]
    rows = sum(each["rows"] for each in hours)
    own = [sum(h["rows"] * h["coverage"][place] for h in hours) / rows for place in (0, 1)]
    assert own == pytest.approx([0.5, 0.9], abs=0.1)
    page = (folder / "report.html").read_text()
    assert "Scores by hour of the day" in page
    assert "coverage of 0.5" in page
    assert "pinball loss" in page
    several = (*HORIZON, "--horizon", "1h,24h", "--interval", "0.9")
    for each in invoke(*several, "--json").json()["horizons"]:
        assert each["coverage"] == pytest.approx(0.9, abs=0.06)
        assert each["coverage_lowest"] is None  # an hour has 55 rows
        assert 0.1 < each["pinball"] < 2
    assert "pinball loss: mean over both bounds" in " ".join(invoke(*several).stdout.split())


def test_dates_of_many_rows_are_compared_with_the_row_of_the_same_place(folder):
    rng = np.random.default_rng(6)
    lines = ["day,load"]
    for hour in range(24 * 50):
        day = np.datetime64("2026-03-02") + np.timedelta64(hour // 24, "D")
        lines.append(f"{day},{50 + 40 * math.sin(hour * math.pi / 12) + rng.normal():.2f}")
    (folder / "days.csv").write_text("\n".join(lines) + "\n")
    run = ("evaluate", "days.csv", "-t", "load", "--lags", "auto", "--horizon", "24h")
    found = invoke(*run, "--season", "7d", "--json")
    assert found.code == 0, found.stderr
    assert found.json()["seasonal"]["naive_mae"] == pytest.approx(2 / math.sqrt(math.pi), rel=0.1)
    assert "several rows have the same time" in " ".join(invoke(*run).stdout.split())


def test_contributions_sum_to_the_predictions(folder):
    train("--horizon", "24h", "--lags", "24h,48h", "-m", "forest")
    rows, _ = forecast_rows("--horizon", "24h", "--contributions")
    assert list(rows[0]) == ["at", "prediction", "level", "from_calendar", "from_lags"]
    values = np.array([[float(row[name]) for name in list(row)[1:]] for row in rows])
    assert values[:, 1:].sum(axis=1) == pytest.approx(values[:, 0])
    assert np.ptp(values[:, 1]) == 0
    assert np.abs(values[:, 2:]).max() > 5


def test_series_that_ended_are_not_forecast_and_others_have_a_picture_each(folder):
    lines = (folder / "load.csv").read_text().splitlines()
    made = ["at,load,shop"]
    for place, line in enumerate(lines[1:]):
        made += [f"{line},{shop}" for shop in ("A", "B", "C") if shop != "B" or place < 700]
    (folder / "load.csv").write_text("\n".join(made) + "\n")
    train("--lags", "24h", "--by", "shop")
    rows, words = forecast_rows("--horizon", "12h", "--picture", "path.svg")
    assert [row["shop"] for row in rows] == ["A", "C"] * 12
    assert "1 series ended more than 12h before the last row, and are not forecast" in words
    picture = (folder / "path.svg").read_text()
    assert "Forecast of load of A" in picture
    assert "Forecast of load of C" in picture
    assert picture.count("<polyline") == 2


def test_rows_that_are_not_in_the_order_of_time_are_reported(folder):
    command = (*HORIZON, "--horizon", "24h", "--quiet")
    assert "order of time" not in invoke(*command).stderr
    header, *lines = (folder / "load.csv").read_text().splitlines()
    np.random.default_rng(1).shuffle(lines)
    (folder / "load.csv").write_text("\n".join([header, *lines]) + "\n")
    assert "of the first rows are earlier than the row before" in invoke(*command).stderr


@pytest.mark.usefixtures("unsaved_charts")
def test_a_report_of_few_rows_has_no_coverage_yet(folder):
    lines = (folder / "load.csv").read_text().splitlines()
    (folder / "few.csv").write_text("\n".join(lines[:20]) + "\n")
    own = ("--lags", "24h", "--horizon", "24h", "--interval", "0.9", "--report", "report.html")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = invoke("evaluate", "few.csv", "-t", "load", *own)
    assert found.code == 0, found.stderr


def test_a_forecast_may_be_written_to_a_device(folder):
    train("--lags", "24h")
    found = invoke("forecast", "model", "--horizon", "3h", "-o", os.devnull)
    assert found.code == 0, found.stderr
    assert "3 forecast" in found.stderr
