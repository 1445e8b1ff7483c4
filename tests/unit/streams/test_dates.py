"""Times that are found: in which formats, with which doubts, and which parts they are given."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import sapwood
from cli_cases import assert_fails, invoke, run, write_csv
from sapwood.streams import open_stream
from sapwood.streams.dates import recognise_numbers, recognise_text
from sapwood.streams.times import seconds_of_text, telling_parts

MOMENTS = [datetime(2012, 10, 2, 9, 30, tzinfo=UTC) + timedelta(hours=7 * n) for n in range(200)]
WRITTEN = {
    "%m/%d/%y %H:%M": "%m/%d/%y %H:%M",
    "%d/%m/%Y %H:%M": "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S": "%d.%m.%Y %H:%M:%S",
    "%m-%d-%Y %I:%M %p": "%m-%d-%Y %I:%M %p",
    "%Y/%m/%d %H:%M": "%Y/%m/%d %H:%M",
    "%d %b %Y, %H:%M": "%d %b %Y, %H:%M",
    "%B %d, %Y %H:%M": "%b %d, %Y %H:%M",
    "%A, %d %B %Y %H:%M": "%a, %d %b %Y %H:%M",
    "%a, %d %b %Y %H:%M:%S +0000": "%a, %d %b %Y %H:%M:%S %z",
    "%a %b %d %H:%M:%S %Y": "%a %b %d %H:%M:%S %Y",
    "%d/%b/%Y:%H:%M:%S +0000": "%d/%b/%Y:%H:%M:%S %z",
    "%Y%m%dT%H%M%S": "%Y%m%dT%H%M%S",
    "%Y-%m-%d %H:%M:%S UTC": "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M:%S,%f": "%Y-%m-%d %H:%M:%S,%f",
    "%Y-%m-%d %H:%M": None,
    "%Y-%m-%dT%H:%M:%S.%fZ": None,
    "%Y-%m-%dT%H:%M:%S+00:00": None,
}


@pytest.mark.parametrize("written", WRITTEN)
def test_times_are_recognised_and_read(written):
    texts = [moment.strftime(written) for moment in MOMENTS]
    found = recognise_text("sold", texts)
    assert (found.format, found.doubt) == (WRITTEN[written], "")
    seconds, bad = seconds_of_text(pa.array(texts), found.format)
    assert not bad.any()
    assert seconds.tolist() == [moment.timestamp() for moment in MOMENTS]


@pytest.mark.parametrize(
    ("texts", "format", "seconds"),
    [
        (["2012-10", "2012-11"], "%Y-%m", [1_349_049_600, 1_351_728_000]),
        (["10/2012", "11/2012"], "%m/%Y", [1_349_049_600, 1_351_728_000]),
        (["Oct 2012", "November 2012"], "%b %Y", [1_349_049_600, 1_351_728_000]),
        (["2-May-12", "3-Jun-12"], "%d-%b-%y", [1_335_916_800, 1_338_681_600]),
        (["9:00", "17:30"], "%H:%M", [32_400, 63_000]),
        (["9:00:15", "17:30:00"], "%H:%M:%S", [32_415, 63_000]),
        (["9:00 am", "5:30 PM"], "%I:%M %p", [32_400, 63_000]),
        (["12/31/99", "1/1/00"], "%m/%d/%y", [946_598_400, 946_684_800]),
    ],
)
def test_dates_without_a_day_and_days_without_a_date(texts, format, seconds):
    assert recognise_text("t", texts).format == format
    assert seconds_of_text(pa.array(texts), format)[0].tolist() == seconds


@pytest.mark.parametrize(
    "texts",
    [
        ["Oslo", "Bonn"],
        ["12-34-56", "98-76-54"],  # a code
        ["1/2", "2/3"],
        ["2012-W40", "2012-W41"],
        ["10.0.0.1", "10.0.0.2"],
        ["30/2/2012", "31/2/2012"],  # of the shape of a date, and none
        ["A1", "2012-10-02"],
        ["Okt 2012", "Mai 2012"],
    ],
)
def test_what_is_no_time_stays_text(texts):
    assert recognise_text("t", texts) is None


def test_one_broken_value_in_ten_does_no_harm():
    texts = [moment.strftime("%d.%m.%Y") for moment in MOMENTS[:9]]
    assert recognise_text("t", [*texts, "unknown"]).format == "%d.%m.%Y"
    assert recognise_text("t", [*texts[:8], "unknown"]) is None


@pytest.mark.parametrize(
    ("texts", "format", "told"),
    [
        (["1/2/2012", "13/2/2012"], "%d/%m/%Y", ""),
        (["2/1/2012", "2/13/2012"], "%m/%d/%Y", ""),
        (["1/1/2012", "2/1/2012", "3/1/2012"], "%d/%m/%Y", "closer together"),
        (["1/1/2012", "1/2/2012", "1/3/2012"], "%m/%d/%Y", "closer together"),
        (["1/11/2012", "1/12/2012", "2/1/2012"], "%m/%d/%Y", "the rows are in order"),
        (["1/11/2012", "2/11/2012", "1/12/2012"], "%d/%m/%Y", "the rows are in order"),
        (["3/3/2012", "3/3/2012"], "%d/%m/%Y", "ambiguous"),
        (["12-10-30", "12-10-31", "12-11-01"], "%y-%m-%d", "the rows are in order"),
    ],
)
def test_days_and_months_are_told_apart_by_the_data(texts, format, told):
    found = recognise_text("t", texts)
    assert found.format == format
    assert bool(found.doubt) == bool(told)
    assert told in found.doubt
    assert not told or "pass --time-format 't=" in found.doubt


@pytest.mark.parametrize(
    ("name", "values", "format"),
    [
        ("day", ["20121002", "20121003"], "%Y%m%d"),
        ("x", ["20121002", "20121003"], "%Y%m%d"),
        ("x", ["20121002", "20129903"], None),
        ("x", ["20121002", "20121002"], None),
        ("when", ["20121002", "20121002"], "%Y%m%d"),
        ("x", ["2012100209", "2012100210"], "%Y%m%d%H"),
        ("x", ["20121002093000", "20121002094500"], "%Y%m%d%H%M%S"),
        ("timestamp", ["1349168400", "1249168400"], "seconds"),
        ("eventTime", ["1349168400123", "1249168400123"], "milliseconds"),
        ("ts", ["1349168400.25", "1249168400.5"], "seconds"),
        ("x", ["1349168400", "1349168400", "1349172000", "1349175600"], "seconds"),
        ("x", ["1349168400000000", "1349168400000001", "1349168400000002"], "microseconds"),
        ("x", ["1349168400", "1249168400", "1349168400"], None),
        ("time", ["17", "18"], None),
        ("ticks", ["5", "6", "7"], None),
    ],
)
def test_numbers_are_times_where_something_speaks_for_it(name, values, format):
    found = recognise_numbers(name, values)
    assert (None if found is None else found.format) == format


# -- parts ----------------------------------------------------------------------------------------

HOURLY = np.array([moment.timestamp() for moment in MOMENTS])
DAYS = np.arange(1_000) * 86_400.0


@pytest.mark.parametrize(
    ("seconds", "parts"),
    [
        (HOURLY, ("hour", "weekday", "season")),
        (HOURLY[:1], ("hour", "weekday", "season")),
        (DAYS, ("weekday", "season")),
        (DAYS + 32_400.0, ("weekday", "season")),  # always at nine
        (DAYS * 7, ("season",)),  # always on one weekday
        (DAYS[:1] + 10 * 86_400.0, ("weekday", "season")),
        (np.arange("1990-01", "1999-01", dtype="datetime64[M]"), ("season",)),
        (np.arange("1990", "1999", dtype="datetime64[Y]"), ()),
        (HOURLY % 86_400.0, ("hour",)),
        (np.array([np.nan]), ("hour", "weekday", "season")),
    ],
)
def test_parts_are_those_that_vary(seconds, parts):
    if seconds.dtype.kind == "M":
        seconds = seconds.astype("datetime64[s]").astype(np.float64)
    assert telling_parts(seconds) == parts


def test_the_season_is_a_circle(tmp_path):
    rows = ["2011-12-31,1", "2012-01-01,2", "2012-07-01,3"]
    path = write_csv(tmp_path / "a.csv", rows, "t,y")
    [chunk] = open_stream(path, target="y", time_parts=["season"]).chunks()
    assert chunk.columns["t.season"].round(3).tolist() == [1.0, 1.0, -1.0]


# -- the command line -----------------------------------------------------------------------------


def rush_hours(count, start=0):
    """Lines with a time and a target that depends on the hour and the weekday alone."""
    lines = []
    for place in range(start, start + count):
        moment = datetime(2012, 10, 2) + timedelta(hours=place)
        y = 100 * (moment.hour in (8, 17)) + 50 * (moment.weekday() < 5)
        lines.append(f"{moment:%-m/%-d/%y %-H:%M},{place % 3},{y}")
    return lines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", rush_hours(4000), "date_time,x,y")
    write_csv(tmp_path / "new.csv", rush_hours(48, 4000), "date_time,x,y")
    return tmp_path


def test_parts_are_features_and_the_model_remembers_how_times_were_read(folder):
    ended = invoke("evaluate", "a.csv", "-t", "y", "--save", "m", "--json")
    assert ended.code == 0
    found = ended.json()
    plain = invoke("evaluate", "a.csv", "-t", "y", "--time-format", "date_time=none", "--json")
    assert found["total"]["r2"] > 0.8
    assert plain.json()["total"]["r2"] < 0.5
    tree = sapwood.load("m")
    assert tree.column_formats == {"date_time": "%m/%d/%y %H:%M"}
    names = ["date_time", "date_time.hour", "date_time.weekday", "date_time.season", "x"]
    assert list(tree.features) == names
    from_file = invoke("predict", "m", "new.csv")
    assert from_file.code == 0
    predictions = [float(line) for line in from_file.stdout.splitlines()[1:]]
    truth = [float(line.rpartition(",")[2]) for line in rush_hours(48, 4000)]
    assert np.corrcoef(predictions, truth)[0, 1] > 0.8
    # A pipe is not looked at: there the model alone knows the format.
    from_pipe = run("predict", "m", "-", input=(folder / "new.csv").read_bytes())
    assert from_pipe.stdout == from_file.stdout


def test_parts_can_be_chosen_and_left_out(folder):
    for typed, parts in (("none", []), ("month,hour", ["month", "hour"])):
        ended = invoke("train", "a.csv", "-t", "y", "--time-parts", typed, "--save", "m")
        assert ended.code == 0, ended.stderr
        made = [f"date_time.{part}" for part in parts]
        assert list(sapwood.load("m").features) == ["date_time", *made, "x"]
    ended = invoke("train", "a.csv", "-t", "y", "--time-parts", "week", "--save", "m")
    assert_fails(ended, "'week' is no part of a time")


def test_a_file_is_looked_at_further_if_days_and_months_are_in_doubt(tmp_path):
    minutes = [datetime(2012, 10, 2) + timedelta(minutes=n) for n in range(20_000)]
    lines = [f"{minute:%m/%d/%Y %H:%M},1" for minute in minutes]
    path = write_csv(tmp_path / "a.csv", lines, "t,y")
    assert recognise_text("t", [line[:-2] for line in lines[:999]]).format == "%d/%m/%Y %H:%M"
    stream = open_stream(path, target="y")
    assert dict(stream.time_formats) == {"t": "%m/%d/%Y %H:%M"}
    assert stream.column_notes[0].rows == 999
    assert not any("taken for" in warning for warning in stream.column_notes[0].warnings)
    write_csv(path, lines[:5_000], "t,y")
    notes = open_stream(path, target="y").column_notes
    assert "10/02/2012 00:00 is taken for day first" in notes[0].warnings[-1]


def test_a_format_that_is_none_of_any_kind(folder):
    ended = invoke("evaluate", "a.csv", "-t", "y", "--time-format", "date_time=ms")
    assert_fails(ended, "'ms' is no format of times", "milliseconds")


def test_a_later_time_of_another_order_is_a_bad_row(folder):
    write_csv(folder / "a.csv", [*rush_hours(2000), "25/12/12 9:00,1,1"], "date_time,x,y")
    ended = invoke("evaluate", "a.csv", "-t", "y", "--on-bad-row", "skip", "--json")
    assert ended.json()["rows"]["reasons"] == {"not a time": 1}
