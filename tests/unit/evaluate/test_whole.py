"""An evaluation from Python: what it takes, what it returns, and how that looks."""

import math
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import evaluate, metrics, preprocessing
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import sapwood
from sapwood import streams
from sapwood.cli.reading import Reading
from sapwood.evaluate import prequential
from sapwood.evaluate.baselines import LastValue
from sapwood.evaluate.losses import quantile_loss
from sapwood.streams import StreamError


def tree():
    return sapwood.HoeffdingTreeRegressor(grace_period=50)


def data(count=500):
    rng = np.random.default_rng(5)
    X = rng.random((count, 2))
    return X, 10 * X[:, 0] + np.where(X[:, 1] > 0.5, 5.0, 0.0)


# What it takes


def test_x_and_y_are_taken_like_a_tuple_of_them():
    X, y = data()
    assert prequential(tree(), X, y).total == prequential(tree(), (X, y)).total
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert prequential(tree(), frame, pd.Series(y)).total == prequential(tree(), X, y).total


def test_a_file_is_taken_with_its_target(tmp_path):
    path = tmp_path / "a.csv"
    X, y = data()
    lines = [f"{a},{b},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,y", *lines]) + "\n")
    expected = prequential(tree(), streams.open_stream(path, target="y"))
    for source in (path, str(path)):
        found = prequential(tree(), source, target="y")
        assert found.total == expected.total
        assert found.stream == str(path)
    with pytest.raises(
        StreamError, match=r"name the column to predict, such as target='...': a, b, y"
    ):
        prequential(tree(), path)
    with pytest.raises(StreamError, match="has no column 'why'"):
        prequential(tree(), path, target="why")


def test_a_generator_is_taken_by_its_name():
    found = prequential(tree(), "friedman:rows=300")
    assert found.total == prequential(tree(), streams.friedman(rows=300)).total
    with pytest.raises(StreamError, match="target = 'x': that of friedman is 'y'"):
        prequential(tree(), "friedman", target="x")


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ((streams.friedman(rows=5), [1.0]), {}, "a stream has targets of its own"),
        ((streams.friedman(rows=5),), {"target": "y"}, "a target is named for files"),
        (([[1.0]], [1.0]), {"target": "y"}, "a target is named for files"),
        ((7,), {}, "7 is no stream"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, options, words):
    with pytest.raises(StreamError, match=words):
        prequential(tree(), *given, **options)


# Dates and times in frames

MOMENTS = [datetime(2026, 11, 15, 14, 30, tzinfo=UTC), None, datetime(1969, 12, 31, tzinfo=UTC)]
SECONDS = [1_794_753_000.0, math.nan, -86_400.0]


def frames_of(zone):
    naive = [moment and moment.replace(tzinfo=None) for moment in MOMENTS]
    moments = MOMENTS if zone else naive
    column = pd.Series(naive)
    yield pd.DataFrame({"t": column.dt.tz_localize("UTC") if zone else column})
    yield pl.DataFrame({"t": pl.Series(moments, dtype=pl.Datetime("us", "UTC" if zone else None))})
    yield pa.table({"t": pa.array(moments, pa.timestamp("ms", "UTC" if zone else None))})


@pytest.mark.parametrize("zone", [False, True])
def test_times_of_frames_are_seconds_for_the_tree_and_for_streams(zone):
    expected = tree()
    expected.learn_many({"t": np.array(SECONDS)}, [1.0, 2.0, 3.0])
    for frame in frames_of(zone):
        own = tree()
        own.learn_many(frame, [1.0, 2.0, 3.0])
        assert own.to_bytes() == expected.to_bytes()
        found = prequential(LastValue(), frame, [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(found.sample.rows["time"], SECONDS)


def test_zones_tell_the_same_moment():
    berlin = pd.DataFrame({"t": pd.to_datetime(["2026-07-01 14:00"]).tz_localize("Europe/Berlin")})
    found = prequential(LastValue(), berlin, [1.0])
    assert found.sample.rows["time"].tolist() == [datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()]


def test_dates_and_durations():
    frame = pl.DataFrame({"day": [datetime(1970, 1, 3).date(), None], "took": [None, 90_000]})
    frame = frame.with_columns(pl.col("took").cast(pl.Duration("ms")))
    own, expected = tree(), tree()
    own.learn_many(frame, [1.0, 2.0])
    expected.learn_many({"day": [2 * 86_400.0, None], "took": [None, 90.0]}, [1.0, 2.0])
    assert own.to_bytes() == expected.to_bytes()
    with pytest.raises(ValueError, match=r"x\['t'\] holds Time: turn dates and times into numbers"):
        tree().learn_many(pl.DataFrame({"t": [datetime(1970, 1, 1, 5).time()]}), [1.0])


def test_times_of_numpy_make_a_weekly_baseline():
    count = 3 * 168
    times = np.datetime64("2026-01-05T00", "h") + np.arange(count)
    y = np.tile(np.arange(168.0), 3) + np.arange(count) // 168
    found = prequential(tree(), {"t": times, "a": np.zeros(count)}, y)
    assert found.baselines["week"].faded.mae < 10
    assert found.best_baseline == "week"
    assert found.further["time"][-1] == datetime(2026, 1, 25, 23, tzinfo=UTC).timestamp()


# What it returns


def test_losses_by_name_and_by_function():
    X, y = data()

    def twice(y, prediction):
        return 2 * np.abs(y - prediction)

    found = prequential(tree(), X, y, losses=["mape", "smape", "quantile:0.5", twice])
    assert list(found.losses) == ["mape", "smape", "quantile:0.5", "twice"]
    assert found.losses["twice"] == pytest.approx(2 * found.total.mae)
    assert found.losses["quantile:0.5"] == pytest.approx(found.total.mae / 2)
    rows = prequential(tree(), X, y, keep_predictions=True).predictions
    error = np.abs(rows["y"] - rows["prediction"])
    assert found.losses["mape"] == pytest.approx(100 * np.mean(error / np.abs(rows["y"])))
    assert found.to_dict()["losses"]["twice"] == found.losses["twice"]
    named = prequential(tree(), X, y, losses={"mine": twice}).losses
    assert named == {"mine": found.losses["twice"]}


@pytest.mark.parametrize(
    ("losses", "error", "words"),
    [
        (["rmsle"], ValueError, "'rmsle' is no loss: mape, smape or quantile:LEVEL"),
        (["quantile:2"], ValueError, "loss 'quantile:2': level = 2.0"),
        ("mape", ValueError, "a list is expected"),
        ([3], TypeError, "3 is no loss"),
        ([lambda y, p: 1.0], ValueError, r"shape \(\) for 100 rows"),
    ],
)
def test_losses_that_are_none(losses, error, words):
    with pytest.raises(error, match=words):
        prequential(tree(), *data(), losses=losses)


def test_quantile_losses_have_levels():
    with pytest.raises(ValueError, match="level"):
        quantile_loss(-0.1)


def test_predictions_are_kept_if_asked():
    X, y = data()
    found = prequential(tree(), X, y, keep_predictions=True)
    assert found.predictions["number"].tolist() == list(range(1, 501))
    assert found.predictions["y"].tolist() == y.tolist()
    expected = tree().predict_learn_many(X, y)
    np.testing.assert_array_equal(found.predictions["prediction"], expected)
    assert prequential(tree(), X, y).predictions is None


def test_a_bar_shows_progress(capsys):
    prequential(tree(), *data(), progress=True)
    told = capsys.readouterr().err
    assert told.endswith("\n")
    last = told.split("\r")[-1]
    assert re.match(r"\[#{24}\] 100 %  500 rows, [\d,]+ rows/s, RMSE [\d.]+", last)
    prequential(tree(), *data())
    assert capsys.readouterr().err == ""


# How it looks


class Tags(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.open, self.words = [], []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data.strip())


def test_an_evaluation_is_told_in_ten_lines():
    X, y = data()
    found = prequential(tree(), X, y, losses=["mape"])
    lines = repr(found).splitlines()
    assert len(lines) <= 11
    assert lines[1] == f"{found.headline} (target: y)"
    assert lines[2].split() == ["MAE", "RMSE", "R²"]
    assert f"{found.total.rmse:.5g}"[:5] in lines[3]
    assert [line[:24].strip() for line in lines[6:9]] == [
        "repeating the last value",
        "the mean so far",
        "the exponentially weight",
    ]
    assert lines[-2].startswith("mape: ")
    assert lines[-1].startswith("500 rows read, 500 learned, 0 rejected, 0 not scored; ")


def test_an_evaluation_and_a_tree_are_shown_in_notebooks():
    X, y = data(2000)
    model = tree()
    columns = {"<b>a</b>": X[:, 0], "b": X[:, 1]}
    found = prequential(model, columns, y)
    words = " ".join(Tags(found._repr_html_()).words)
    assert found.headline in words
    assert "the mean so far" in words
    html = model._repr_html_()
    assert "<svg" in html
    assert "<b>a</b>" not in html.replace("<b>&lt;HoeffdingTreeRegressor", "")
    assert "2000 rows learned" in " ".join(Tags(html).words)
    assert "has not split yet" in tree()._repr_html_()
    forest = sapwood.ForestRegressor(members=2)
    assert "0 replacements" in forest._repr_html_()


# In libraries that have doors of their own


def test_a_tree_in_scikit_learn_points_to_the_adapter():
    X, y = data(50)
    for use in (
        lambda: cross_val_score(tree(), X, y),
        lambda: tree().fit(X, y),
        lambda: make_pipeline(tree()).fit(X, y),
    ):
        with pytest.raises(TypeError, match=r"use sapwood\.sklearn\.HoeffdingTreeRegressor"):
            use()


def test_a_tree_in_river_points_to_the_adapter():
    rows = [({"a": float(a)}, float(a)) for a in range(20)]
    for model in (tree(), preprocessing.StandardScaler() | tree()):
        with pytest.raises(ValueError, match=r"use sapwood\.river\.HoeffdingTreeRegressor"):
            evaluate.progressive_val_score(rows, model, metrics.MAE())
    assert str(tree()) == repr(tree())


def test_the_clock_of_files_of_single_days_and_of_numbered_columns(tmp_path):
    for day in (1, 2):
        rows = "".join(f"2026-11-0{day} {hour:02}:00,{hour}\n" for hour in range(24))
        (tmp_path / f"day{day}.csv").write_text(f"0,1\n{rows}")
    last = datetime(2026, 11, 2, 23, tzinfo=UTC).timestamp()
    found = prequential(tree(), tmp_path / "day*.csv", target="1")
    assert (found.rows_learned, found.further["time"][-1]) == (48, last)
    days = np.arange("2026-11-01", "2026-11-03", dtype="M8[h]")
    by_number = tree()
    found = prequential(by_number, {0: days}, np.arange(48.0))
    assert (by_number.features, found.further["time"][-1]) == ([0], last)
    read = Reading(target=["1"], model=by_number).open(str(tmp_path / "day2.csv"))
    assert (read.clock, [note.name for note in read.column_notes]) == (0, ["0", "1"])
    found = prequential(by_number, read)
    assert found.further["time"][-1] == last
