"""Times against Python's datetime and exact fractions."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.streams import time_format
from sapwood.streams.stream import StreamError
from sapwood.streams.times import is_iso, parts_of, seconds_of, seconds_of_text

EPOCH = datetime(1970, 1, 1)
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**10), 10**10)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
FORMATS = [
    "%d.%m.%Y %H:%M",
    "%Y%m%d",
    "%Y%m%d%H%M%S",
    "%m/%d/%Y %H:%M:%S.%f",
    "%d/%m/%Y\t%H h",
    "%d %b %Y %I:%M %p",
    "%Y-%j",
    "%d.%m.%y",
    "%Y-%m-%d %H:%M:%S%z",
    "%H:%M",
    "%d %% %m %Y",
    "%a, %d %B %Y %H:%M",
    "%y%m%d%H",
]


def exact(moment):
    """The seconds of a datetime without a zone, exactly."""
    return Fraction((moment - EPOCH) // timedelta(microseconds=1), 10**6)


def nearest(fraction):
    return (fraction.numerator / fraction.denominator).hex()


@given(counts=st.lists(WHOLE | st.none(), max_size=20), unit=st.sampled_from(sorted(UNITS)))
def test_seconds_are_the_nearest_doubles_in_any_unit(counts, unit):
    expected = [
        float("nan").hex() if count is None else nearest(Fraction(count, UNITS[unit]))
        for count in counts
    ]
    for kind in (pa.timestamp(unit), pa.timestamp(unit, "Asia/Tokyo"), pa.duration(unit)):
        assert [value.hex() for value in seconds_of(pa.array(counts, kind)).tolist()] == expected


def test_dates_and_times_of_day():
    days = [date(1970, 1, 2), date(1, 1, 1), None]
    for kind in (pa.date32(), pa.date64()):
        np.testing.assert_array_equal(
            seconds_of(pa.array(days, kind)), [86_400, -62_135_596_800, np.nan]
        )
    clock = [time(14, 30, 5), None]
    for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        np.testing.assert_array_equal(seconds_of(pa.array(clock, kind)), [52_205, np.nan])


@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=8),
    separator=st.sampled_from(" T"),
    shape=st.sampled_from(["date", "hours", "minutes", "seconds", "milliseconds", "microseconds"]),
    zones=st.lists(st.integers(-1439, 1439) | st.none(), min_size=1, max_size=3),
    nanoseconds=st.none() | st.integers(0, 999),
)
def test_iso_text_is_the_time_that_datetime_wrote(moments, separator, shape, zones, nanoseconds):
    texts, expected = [], []
    for place, moment in enumerate(moments):
        offset = None if shape == "date" else zones[place % len(zones)]
        text = moment.isoformat(separator, "auto" if shape == "date" else shape)
        text = text[:10] if shape == "date" else text
        seconds = exact(datetime.fromisoformat(text))
        if shape == "microseconds" and nanoseconds is not None:
            text += f"{nanoseconds:03}"
            seconds += Fraction(nanoseconds, 10**9)
        if offset is not None:
            text += timezone(timedelta(minutes=offset)).tzname(None).removeprefix("UTC") or "Z"
            seconds -= 60 * offset
        texts.append(text)
        expected.append(nearest(seconds))
    found, bad = seconds_of_text(pa.array(texts), None)
    assert not bad.any()
    assert [value.hex() for value in found.tolist()] == expected
    assert all(map(is_iso, texts))


NO_TIMES = [
    "x",
    "2026-02-30",
    "2026-13-01",
    "2026-1-1",
    "20260101",
    "2026-01-01 24:00",
    "2026-01-01 10:60",
    "2026-01-01 23:59:60",
    "2026-01-01T10:11:12.",
    "2026-01-01T10:11:12,5",
    "2026-01-01T10:11.5",
    "2026-01-01Z",
    "2026-01-01+01:00",
    "2026-01-01T10:11:12 Z",
    "2026-01-01T10:11:12+24:00",
    "2026-01-01T10:11:12+00:60",
    "2026-01-01T10:11:12+01:00:00",
    "2026-W01-1",
    "0000-01-01",
    "0001-01-01T00:00+00:01",
    "٢٠٢٦-01-01",
    "10:11",
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_iso_time_alone_and_beside_others(text):
    assert not is_iso(text)
    for others in ([], ["2026-01-01"], ["2026-01-01T10:11:12Z"], ["2026-01-01 10:11:12.123456789"]):
        found, bad = seconds_of_text(pa.array([*others, text, None]), None)
        assert bad.tolist() == [*[False] * len(others), True, False]
        assert np.isnan(found[-2:]).all()


@given(texts=st.lists(st.text("0123456789- T:.Z+", max_size=26), max_size=3), moment=MOMENTS)
def test_a_time_is_the_same_beside_any_others(texts, moment):
    """Text of one shape is read by pyarrow, other text one by one: the same, to the last bit."""
    for text in [*texts, str(moment), f"{moment}Z", f"{moment.isoformat()}-03:30"]:
        alone, bad = seconds_of_text(pa.array([text]), None)
        beside, bad_too = seconds_of_text(pa.array([text, "x", "2026-01-01Z", None]), None)
        assert (alone[0].hex(), bad[0]) == (beside[0].hex(), bad_too[0])
        assert is_iso(text) == (not bad[0])


@given(
    moments=st.lists(MOMENTS.filter(lambda moment: moment.year >= 1000), min_size=1, max_size=6),
    format=st.sampled_from(FORMATS),
    others=st.lists(st.text("0123456789./: -", max_size=16), max_size=2),
    narrow=st.booleans(),
)
def test_formats_are_those_of_strptime(moments, format, others, narrow):
    texts = [moment.replace(tzinfo=UTC).strftime(format) for moment in moments]
    if narrow:  # as many write days and months
        texts = [re.sub(r"\b0(?=\d)", "", text) for text in texts]
    texts += others
    expected = []
    for text in texts:
        try:
            moment = datetime.strptime(text, format)
        except ValueError:
            expected.append(None)
        else:
            moment = (
                moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
            )
            start = exact(datetime(1900, 1, 1)) if format == "%H:%M" else 0  # a time of day
            expected.append(nearest(exact(moment) - start))
    found, bad = seconds_of_text(pa.array(texts), format)
    assert bad.tolist() == [seconds is None for seconds in expected]
    given_back = [
        None if no else value.hex() for value, no in zip(found.tolist(), bad, strict=True)
    ]
    assert given_back == expected


@pytest.mark.parametrize("format", ["%Q", "%Y-%", "%"])
def test_a_format_that_is_none(format):
    with pytest.raises(StreamError, match="is no format of times"):
        seconds_of_text(pa.array(["2026"]), format)


def test_most_formats_need_no_strptime(monkeypatch):
    monkeypatch.setattr(time_format, "seconds_by_text", None)
    for text, format in (
        ("02.01.1970 00:01", "%d.%m.%Y %H:%M"),
        ("1/2/70 0:01", "%m/%d/%y %H:%M"),
        ("Fri, 2 jan 1970 12:01 AM", "%a, %d %b %Y %I:%M %p"),
        ("02January1970 02:01:00.0 +0200", "%d%B%Y %H:%M:%S.%f %z"),
    ):
        found, _ = seconds_of_text(pa.array([text, None]), format)
        np.testing.assert_array_equal(found, [86_460, np.nan])


@given(moments=st.lists(MOMENTS, min_size=1, max_size=20))
def test_parts_are_those_of_datetime(moments):
    moments = [moment.replace(microsecond=0) for moment in moments]
    seconds = np.array([float(exact(moment)) for moment in moments] + [np.nan])
    parts = parts_of(seconds, ("month", "hour", "weekday"))
    assert list(parts) == ["month", "hour", "weekday"]
    for part in parts.values():
        assert np.isnan(part[-1])
    assert parts["hour"][:-1].tolist() == [moment.hour for moment in moments]
    assert parts["weekday"][:-1].tolist() == [moment.weekday() for moment in moments]
    assert parts["month"][:-1].tolist() == [moment.month for moment in moments]


def test_parts_of_times_beyond_any_calendar():
    for values in parts_of(np.array([1e18, -1e300]), ("hour", "weekday", "month")).values():
        assert np.isnan(values).all()
