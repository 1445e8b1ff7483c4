"""Time zones and special days, compared with the standard library."""

import datetime as dt
import math
import sys
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sapwood.rows.calendar import Calendar
from sapwood.schema import PARTS, Rule, Schema
from sapwood.streams import open_stream

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
BERLIN = ZoneInfo("Europe/Berlin")
SPRING = 1_711_846_800.0  # 2024-03-31T01:00Z, when 02:00 to 03:00 is skipped
AUTUMN = 1_729_990_800.0  # 2024-10-27T01:00Z, when 02:00 to 03:00 is repeated
moments = st.integers(-2_000_000_000, 4_000_000_000).map(lambda each: each / 4)


@given(zone=st.sampled_from(ZONES), seconds=st.lists(moments, min_size=1, max_size=20))
@example(zone="Europe/Berlin", seconds=[SPRING - 0.25, SPRING, AUTUMN - 0.25, AUTUMN])
@example(zone="Australia/Lord_Howe", seconds=[1_712_415_600.0 + 900.0 * each for each in range(9)])
def test_local_times_are_those_of_the_standard_library(zone, seconds):
    calendar, tz = Calendar(zone), ZoneInfo(zone)
    offsets = [(EPOCH + dt.timedelta(seconds=each)).astimezone(tz).utcoffset() for each in seconds]
    expected = [each + own.total_seconds() for each, own in zip(seconds, offsets, strict=True)]
    assert calendar.local(np.array(seconds)).tolist() == expected
    assert [calendar.local_one(each) for each in seconds] == expected


@given(zone=st.sampled_from(ZONES), seconds=st.lists(moments, min_size=1, max_size=20))
@example(zone="Europe/Berlin", seconds=[SPRING + 3600 + 900.0 * each for each in range(9)])
def test_times_without_an_offset_are_local(zone, seconds):
    calendar, tz = Calendar(zone), ZoneInfo(zone)
    naive = [dt.datetime(1970, 1, 1) + dt.timedelta(seconds=each) for each in seconds]
    expected = [(each.replace(tzinfo=tz) - EPOCH).total_seconds() for each in naive]
    assert calendar.absolute(np.array(seconds)).tolist() == expected
    assert [calendar.absolute_one(each) for each in seconds] == expected


def test_skipped_and_repeated_local_times():
    rule = Rule("at", "time", calendar=Calendar("Europe/Berlin"))
    assert rule.value("2024-03-31 01:59") == SPRING - 60
    assert rule.value("2024-03-31 02:30") == rule.value("2024-03-31 03:30") == SPRING + 1800
    assert rule.value("2024-10-27 02:30") == AUTUMN - 1800  # the first of both
    assert rule.value("2024-10-27 03:00") == AUTUMN + 3600
    assert rule.value("2024-10-27 02:30+01:00") == AUTUMN + 1800  # an offset decides


def test_times_that_are_missing_or_far_away_have_no_special_days():
    calendar = Calendar("Europe/Berlin", (("fair", (0, 1)),))
    found = calendar.special_days(np.array([np.nan, np.inf, 0.0, 1e300]))
    assert np.array_equal(found["fair"], [np.nan, np.nan, 1.0, 0.0], equal_nan=True)
    assert math.isnan(calendar.special_days_one(math.nan)["fair"])
    assert calendar.special_days_one(1e300) == {"fair": 0.0}
    made = Rule("at", "time", parts=("hour",), calendar=calendar).derive(np.array([np.nan, 0.0]))
    assert np.array_equal(made["at.hour"], [np.nan, 1.0], equal_nan=True)


days = st.integers(-800_000, 2_900_000)


@given(zone=st.sampled_from((None, *ZONES)), spans=st.lists(st.tuples(days, st.integers(0, 40))))
def test_special_days_of_a_file_are_those_of_a_set(zone, spans, tmp_path_factory):
    first = dt.date(1970, 1, 1).toordinal()
    spans = [(day // 100 + 18_000, length) for day, length in spans]
    path = tmp_path_factory.mktemp("days") / "fair.csv"
    lines = [
        f"{dt.date.fromordinal(first + day)},{dt.date.fromordinal(first + day + length)}"
        for day, length in spans
    ]
    path.write_text("\n".join(["date,until", *lines]) + "\n")
    special = {day + more for day, length in spans for more in range(length + 1)}
    calendar = Calendar.of(zone, special_days=[path])
    seconds = np.array([86_400.0 * day + 40_000 for day, _ in spans] or [0.0])
    seconds = np.concatenate([seconds + 86_400.0 * each for each in (-2, -1, 0, 1, 40, 41)])
    local = calendar.local(seconds)
    expected = [float(int(each // 86_400) in special) for each in local]
    assert calendar.special_days(seconds)["fair"].tolist() == expected
    assert [calendar.special_days_one(each)["fair"] for each in seconds] == expected
    assert Calendar.from_header(calendar.to_header()) == calendar


def test_special_days_begin_and_end_at_local_midnight(tmp_path):
    path = tmp_path / "fair.csv"
    path.write_text("date\n2024-03-31\n")  # a day of 23 hours
    calendar = Calendar.of("Europe/Berlin", special_days=[path])
    start = SPRING - 2 * 3600
    edges = np.array([start - 1, start, start + 23 * 3600 - 1, start + 23 * 3600])
    assert calendar.special_days(edges)["fair"].tolist() == [0, 1, 1, 0]
    assert calendar.ends == {"fair": dt.date(2024, 3, 31)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("day\n2024-01-01\n", 'the header "date", or "date,until", is expected'),
        ("date\n2024-01-01\n31.12.2024\n", "line 3: '31.12.2024' until '31.12.2024' is no span"),
        ("date,until\n2024-01-02,2024-01-01\n", "line 2: '2024-01-02' until '2024-01-01'"),
        ("", "the header"),
    ],
)
def test_a_bad_file_of_special_days_is_named(tmp_path, text, words):
    path = tmp_path / "fair.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"fair\.csv") as caught:
        Calendar.of(special_days=[path])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("calendar", "words"),
    [
        ({"timezone": "Europe/Atlantis"}, "'Europe/Atlantis' is not known"),
        ({"timezone": "../etc/passwd"}, "is not known"),
        ({"timezone": ""}, "is not known"),
        ({"days": (("hour", (1, 2)),)}, "none of hour"),
        ({"days": (("a.b", (1, 2)),)}, "a name without a dot"),
        ({"days": (("fair", (1, 2)), ("fair", ()))}, "different names"),
        ({"days": (("fair", (2, 1)),)}, "in ascending order"),
        ({"days": (("fair", (1,)),)}, "in ascending order"),
        ({"days": (("fair", (1, 2.0)),)}, "in ascending order"),
        ({"days": (("fair", tuple(range(20_002))),)}, "at most 10,000 spans"),
        ({"days": tuple((f"kind {each}", ()) for each in range(21))}, "at most 20 kinds"),
    ],
)
def test_a_calendar_that_cannot_be_is_rejected(calendar, words):
    with pytest.raises(ValueError, match=words):
        Calendar(**calendar)


@pytest.mark.parametrize(
    "header",
    [
        None,
        {"timezone": None},
        {"timezone": 7, "days": {}},
        {"timezone": "Europe/Atlantis", "days": {}},
        {"timezone": None, "days": []},
        {"timezone": None, "days": {"fair": "12"}},
        {"timezone": None, "days": {"fair": [1, 10**12]}},
    ],
)
def test_a_saved_calendar_is_checked(header):
    with pytest.raises(ValueError, match=r"calendar|timezone|special days"):
        Calendar.from_header(header)
    entry = {"rules": [{"name": "at", "role": "time", "calendar": header}], "targets": []}
    with pytest.raises(ValueError, match="the schema is not as it was saved"):
        Schema.from_header({**entry, "time": None, "ids": []})


def test_models_of_different_calendars_are_not_joined():
    one = Schema((Rule("at", "time", calendar=Calendar("Europe/Berlin")),))
    with pytest.raises(ValueError, match="as time in Europe/Berlin for one model and as time for"):
        one.joined(Schema((Rule("at", "time"),)))
    assert one.joined(one) == one


def test_holidays_of_a_country_and_of_a_part_of_it():
    pytest.importorskip("holidays")
    germany, bavaria = Calendar.of(holidays="DE"), Calendar.of(holidays="DE-BY")
    noon = 43_200.0
    new_year, epiphany, ordinary = (
        (dt.date(2026, 1, day) - dt.date(1970, 1, 1)).days * 86_400 + noon for day in (1, 6, 7)
    )
    times = np.array([new_year, epiphany, ordinary])
    assert germany.special_days(times)["holiday"].tolist() == [1, 0, 0]
    assert bavaria.special_days(times)["holiday"].tolist() == [1, 1, 0]
    assert germany.ends == {"holiday": dt.date(2069, 12, 26)}
    for unknown in ("XX", "DE-XX"):
        with pytest.raises(ValueError, match=f"holidays '{unknown}'"):
            Calendar.of(holidays=unknown)


def test_without_its_package_holidays_are_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'sapwood\[holidays\]'"):
        Calendar.of(holidays="DE")


# -- the same in each way in ----------------------------------------------------------------------

TEXTS = ["2024-03-30 23:30", "2024-03-31 01:30", "2024-03-31 03:15", "2024-10-27 02:30", None]
NAIVE = [None if each is None else dt.datetime.fromisoformat(each) for each in TEXTS]
AWARE = [None if each is None else each.replace(tzinfo=BERLIN) for each in NAIVE]
CALENDAR = Calendar("Europe/Berlin", (("fair", (19_813, 19_814)),))
EXPECTED = {
    "at": [None if each is None else each.timestamp() for each in AWARE],
    "at.hour": [23, 1, 3, 2, None],
    "at.weekday": [5, 6, 6, 6, None],
    "at.month": [3, 3, 3, 10, None],
    "at.yearday": [90, 91, 91, 301, None],
    "at.fair": [0, 1, 1, 0, None],
}
SHAPES = {
    "text": TEXTS,
    "text with offsets": [each and each.isoformat() for each in AWARE],
    "naive": NAIVE,
    "aware": AWARE,
    "in UTC": [each and each.astimezone(dt.UTC) for each in AWARE],
    "datetime64": np.array([np.datetime64(each or "NaT", "s") for each in NAIVE]),
    "pandas": pd.Series(NAIVE, dtype="datetime64[ns]"),
    "pandas aware": pd.Series(AWARE, dtype="datetime64[ns, Europe/Berlin]"),
    "polars": pl.Series(NAIVE, dtype=pl.Datetime("us")),
    "polars aware": pl.Series(AWARE, dtype=pl.Datetime("us", "Europe/Berlin")),
    "arrow": pa.array(NAIVE, pa.timestamp("us")),
    "seconds": EXPECTED["at"],
}


def plain(columns):
    return {
        name: [None if value is None or math.isnan(value) else value for value in list(column)]
        for name, column in columns.items()
        if name in EXPECTED
    }


def schema(**more):
    parts = ("hour", "weekday", "month", "yearday")
    return Schema((Rule("at", "time", parts=parts, calendar=CALENDAR, **more),))


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_any_form_have_the_same_calendar(shape):
    column = SHAPES[shape]
    assert plain(schema().encode({"at": column})) == EXPECTED
    if isinstance(column, list | np.ndarray):
        rows = [schema().encode_one({"at": value}) for value in column]
        assert plain({name: [row[name] for row in rows] for name in EXPECTED}) == EXPECTED


def test_many_texts_at_once_have_the_same_calendar():
    many = [f"2024-10-27 {each // 60:02d}:{each % 60:02d}" for each in range(1440)]
    made = schema().encode({"at": many})
    rows = [schema().encode_one({"at": each}) for each in many]
    for name, column in made.items():
        assert column.tolist() == [row[name] for row in rows]
    mixed = [text + ("Z" if place % 2 else "") for place, text in enumerate(many)]
    assert schema().encode({"at": mixed})["at"].tolist() == [
        schema().encode_one({"at": each})["at"] for each in mixed
    ]


def test_dates_are_local_and_times_of_day_have_no_zone():
    rule = Rule("day", "time", "%d.%m.%Y", ("weekday",), calendar=CALENDAR)
    assert rule.value("31.03.2024") == rule.value(dt.date(2024, 3, 31)) == SPRING - 2 * 3600
    assert rule.derive_one(rule.value("31.03.2024"))["day.weekday"] == 6
    clock = Rule("clock", "time", "%H:%M", calendar=CALENDAR)
    assert clock.value("01:00") == clock.value(dt.time(1)) == 3600.0
    zoned = Rule("at", "time", "%d.%m.%Y %H:%M %z", calendar=CALENDAR)
    assert zoned.value("31.03.2024 02:30 +0200") == SPRING - 1800
    digits = Rule("at", "time", "%Y%m%d%H%M", calendar=CALENDAR)
    assert digits.value(202403310130) == digits.value("202403310130") == SPRING - 1800


def write(path, column, kind):
    if kind == "csv":
        path.write_text("at,y\n" + "".join(f"{each or ''},1\n" for each in column))
    elif kind == "jsonl":
        entries = ("null" if each is None else f'"{each}"' for each in column)
        path.write_text("".join(f'{{"at": {each}, "y": 1}}\n' for each in entries))
    else:
        pq.write_table(pa.table({"at": column, "y": [1.0] * len(column)}), path)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_have_the_same_calendar(tmp_path, shape, kind):
    column = SHAPES[shape]
    if kind != "parquet" and not isinstance(column, list):
        pytest.skip("a type that text has not")
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        column = pa.array(list(column) if isinstance(column, np.ndarray) else column)
    write(path, column, kind)
    formats = {"at": "seconds"} if shape == "seconds" else {}
    parts = ("hour", "weekday", "month", "yearday")
    stream = open_stream(
        path, target="y", time_formats=formats, time_parts=parts, calendar=CALENDAR
    )
    found = [chunk.columns for chunk in stream.chunks()]
    assert plain({name: np.concatenate([c[name] for c in found]) for name in EXPECTED}) == EXPECTED
    assert [note.parts for note in stream.column_notes] == [(*parts, "fair"), ()]
    assert stream.calendar == CALENDAR
    known = stream.model_schema
    again = open_stream(
        [path, path],
        target="y",
        known=dict(stream.features),
        known_formats=known.formats,
        known_calendars=known.calendars,
    )
    columns = [chunk.columns for chunk in again.chunks()]
    joined = {name: np.concatenate([each[name] for each in columns]) for name in EXPECTED}
    assert plain(joined) == {name: own * 2 for name, own in EXPECTED.items()}


def test_the_calendar_is_that_of_the_times_of_rows(tmp_path):
    (tmp_path / "a.csv").write_text(
        "sold,paid,y\n"
        + "2026-07-01 10:00,2026-07-02 10:00,1\n2026-07-03 11:00,2026-07-04 12:00,2\n"
    )
    for time, zoned, other in ((None, "sold", "paid"), ("paid", "paid", "sold")):
        stream = open_stream(tmp_path / "a.csv", target="y", time=time, calendar=CALENDAR)
        assert f"{zoned}.fair" in stream.features
        assert f"{other}.fair" not in stream.features
        [chunk] = stream.chunks()
        hours = [chunk.columns[name][0] % 86_400 / 3600 for name in (zoned, other)]
        assert hours == [8, 10]
        if time:
            assert chunk.times.tolist() == chunk.columns["paid"].tolist()
    (tmp_path / "b.csv").write_text("x,y\n1,1\n")
    with pytest.raises(ValueError, match=r"b\.csv has no column of times"):
        open_stream(tmp_path / "b.csv", target="y", calendar=CALENDAR)


def test_parts_without_a_calendar_stay_those_of_utc():
    assert Rule("at", "time", parts=PARTS).derive_one(SPRING)["at.hour"] == 1.0
    assert Rule("at", "time").derive(np.array([0.0])) == {}
