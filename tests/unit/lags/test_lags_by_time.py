"""Lags by time: against a slow reference, whatever the times, batches, series and labels."""

import copy
import datetime
import itertools
import pickle
import zoneinfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from naive_lags import NaiveTimedLags
from sapwood.lags import LaggedModel, Lags
from sapwood.lags._timed import DEEPEST, LEAST_DEPTH

HOUR = 3600.0
times = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.25, 3.0, -1.0, -0.5, 30.0, -60.0, None]),
        st.none() | st.integers(-9, 9).map(float),
        st.sampled_from("AB"),
    ),
    max_size=50,
)
horizons = st.sampled_from([None, "1h", "2h"])


def stream_of(steps):
    """Yield times in hours from steps between them, with labels and series."""
    at = 1000.0
    for step, y, key in steps:
        at += step or 0.0
        yield None if step is None else at * HOUR, y, key


def made(horizon=None, by="key"):
    lags = Lags(["2h", "5h"], means="4h", time="at", by=by, horizon=horizon)
    hours = {None: 0.0, "1h": HOUR, "2h": 2 * HOUR}[horizon]
    return lags, NaiveTimedLags([2 * HOUR, 5 * HOUR], [4 * HOUR], horizon=hours)


def agree(found, expected):
    for one, other in zip(found, expected, strict=True):
        if other is None:
            assert one is None or np.isnan(one)
        else:
            assert one == pytest.approx(other, rel=1e-12, abs=1e-12)


def assert_same(one, other):
    """Two that remember the same, to the last bit."""
    header, arrays = one.to_state()
    other_header, other_arrays = other.to_state()
    assert header == other_header
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name])


@given(times, horizons)
def test_rows_one_by_one_are_as_the_reference(steps, horizon):
    lags, naive = made(horizon)
    for at, y, key in stream_of(steps):
        row = lags.next_row({"at": at, "key": key})
        agree([row[name] for name in lags.features], naive.features(at, key))
        lags.learn_one({"at": at, "key": key}, y)
        naive.arrive(at, y, key)


@given(times, horizons, st.lists(st.integers(0, 50), max_size=4))
def test_batches_are_rows_one_by_one_to_the_last_bit(steps, horizon, cuts):
    rows = list(stream_of(steps))
    one_by_one, _ = made(horizon)
    batched, _ = made(horizon)
    singles = []
    for at, y, key in rows:
        row = one_by_one.next_row({"at": at, "key": key})
        singles.append([np.nan if row[n] is None else row[n] for n in one_by_one.features])
        one_by_one.learn_one({"at": at, "key": key}, y)
    found = []
    for start, end in itertools.pairwise(
        sorted({0, len(rows), *(min(c, len(rows)) for c in cuts)})
    ):
        part = rows[start:end]
        columns = {
            "at": np.array([np.nan if at is None else at for at, _, _ in part]),
            "key": [key for _, _, key in part],
        }
        y = np.array([np.nan if y is None else y for _, y, _ in part])
        made_of = batched.transform_learn_many(columns, y)
        found += np.column_stack([made_of[name] for name in batched.features]).tolist()
    np.testing.assert_array_equal(np.array(found), np.array(singles))
    assert_same(one_by_one, batched)


@given(times, horizons, st.integers(0, 9))
def test_labels_that_come_late_are_filled_in(steps, horizon, late):
    lags, naive = made(horizon)
    waiting = []
    for at, y, key in stream_of(steps):
        row, ticket = lags.arrive({"at": at, "key": key})
        agree([row[name] for name in lags.features], naive.features(at, key))
        waiting.append((ticket, naive.arrive(at, None, key), y))
        if len(waiting) > late:
            earlier, own, label = waiting.pop(0)
            if label is not None:
                lags.label(earlier, label)
                own[1] = label


@given(times, horizons, st.integers(0, 50), st.sampled_from([copy.deepcopy, pickle.dumps]))
def test_a_restored_one_continues_as_before(steps, horizon, cut, way):
    lags, _ = made(horizon)
    rows = list(stream_of(steps))
    for at, y, key in rows[:cut]:
        lags.learn_one({"at": at, "key": key}, y)
    restored = way(lags)
    restored = pickle.loads(restored) if isinstance(restored, bytes) else restored
    assert restored.nbytes == lags.nbytes
    for at, y, key in rows[cut:]:
        assert restored.next_row({"at": at, "key": key}) == lags.next_row({"at": at, "key": key})
        restored.learn_one({"at": at, "key": key}, y)
        lags.learn_one({"at": at, "key": key}, y)
    assert_same(lags, restored)


@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_rings_grow_with_the_rows_within_reach(batch):
    lags = Lags("1h", means="1h", time="at")
    at = np.arange(5000.0) * 2.0  # 1,800 rows an hour
    y = np.arange(5000.0)
    parts = []
    for start in range(0, 5000, batch):
        part = slice(start, start + batch)
        found = lags.transform_learn_many({"at": at[part]}, y[part])
        parts.append(np.column_stack([found[name] for name in lags.features]))
    parts = np.concatenate(parts)
    whole = Lags("1h", means="1h", time="at")
    whole.learn_many({"at": at}, y)
    assert_same(lags, whole)
    assert lags.to_state()[0]["past"]["depth"] == 4096
    np.testing.assert_array_equal(parts[1800:, 0], y[: 5000 - 1800])
    assert parts[4000, 1] == pytest.approx(np.mean(y[2200:4000]))


@pytest.mark.parametrize("batch", [1, 7, 500])
def test_rings_grow_after_rows_were_overwritten(batch):
    at = np.concatenate([np.arange(200.0) * HOUR / 2, 100 * HOUR + np.arange(300.0) * 60])
    y = np.arange(500.0)
    lags, naive = Lags("5h", means="4h", time="at"), NaiveTimedLags([5 * HOUR], [4 * HOUR])
    for start in range(0, 500, batch):
        part = slice(start, start + batch)
        found = lags.transform_learn_many({"at": at[part]}, y[part])
        for place, (time, label) in enumerate(
            zip(at[part].tolist(), y[part].tolist(), strict=True)
        ):
            agree([found[name][place] for name in lags.features], naive.features(time))
            naive.arrive(time, label)
    assert lags.to_state()[0]["past"]["depth"] == 512


def test_the_rows_looked_back_at_are_bounded():
    lags = Lags("1d", time="at")
    at = np.arange(DEEPEST + 10.0) / 1000.0
    lags.learn_many({"at": at}, np.arange(len(at)))
    header, arrays = lags.to_state()
    assert header["past"]["depth"] == DEEPEST
    assert arrays["starts"].tolist() == [10]


def learned(rows, **own):
    lags = Lags(["1h", "24h"], time="at", **own)
    for at, y in rows:
        lags.learn_one({"at": at}, y)
    return lags


def test_of_equal_times_the_last_known_label_counts():
    lags = learned(
        [("2026-11-18 10:00", 1.0), ("2026-11-18 10:00", 2.0), ("2026-11-18 10:00", None)]
    )
    assert lags.next_row({"at": "2026-11-18 11:00"})["y.lag1h"] == 2.0


def test_a_lag_in_a_gap_is_missing():
    lags = learned([("2026-11-18 10:00", 1.0), ("2026-11-18 12:00", 3.0)])
    assert lags.next_row({"at": "2026-11-18 12:00"})["y.lag1h"] is None
    assert lags.next_row({"at": "2026-11-18 13:00"})["y.lag1h"] == 3.0


def test_irregular_times_take_the_nearest_value_within_the_tolerance():
    rows = [("2026-11-18 10:04", 1.0), ("2026-11-18 10:09", 2.0)]
    assert learned(rows).next_row({"at": "2026-11-18 11:07"})["y.lag1h"] == 2.0
    assert learned(rows).next_row({"at": "2026-11-18 11:06"})["y.lag1h"] == 1.0
    strict = learned(rows, tolerance="1min")
    assert strict.next_row({"at": "2026-11-18 11:06"})["y.lag1h"] is None


def test_times_that_go_back_count_as_the_latest_until_they_go_back_far():
    lags = learned(
        [("2026-11-18 10:00", 1.0), ("2026-11-18 12:00", 3.0), ("2026-11-18 11:00", 4.0)]
    )
    assert lags.next_row({"at": "2026-11-18 13:00"})["y.lag1h"] == 4.0
    lags.learn_one({"at": "2026-10-01 00:00"}, 9.0)
    assert lags.next_row({"at": "2026-10-01 01:00"})["y.lag1h"] == 9.0
    assert lags.next_row({"at": "2026-11-18 13:00"})["y.lag1h"] is None


def test_rows_before_the_first_time_have_no_lags():
    lags = learned([(None, 1.0), (None, 2.0), ("2026-11-18 10:00", 3.0)])
    assert lags.next_row({"at": "2026-11-18 10:30"})["y.lag1h"] == 3.0
    assert Lags("1h", time="at").next_row({"x": 1.0}) == {"x": 1.0, "y.lag1h": None}


def test_times_of_each_kind_mean_the_same():
    kinds = [
        lambda hour: datetime.datetime(2026, 11, 18, hour),
        lambda hour: np.datetime64(f"2026-11-18T{hour:02}:00"),
        lambda hour: f"2026-11-18 {hour:02}:00",
        lambda hour: f"2026-11-18T{hour + 1:02}:00+01:00",
        lambda hour: datetime.datetime(2026, 11, 18, hour, tzinfo=datetime.UTC).timestamp(),
    ]
    for kind in kinds:
        lags = Lags("1h", time="at")
        found = lags.transform_learn_many({"at": [kind(10), kind(11)]}, [1.0, 2.0])
        np.testing.assert_array_equal(found["y.lag1h"], [np.nan, 1.0])
        assert lags.next_row({"at": kind(12)})["y.lag1h"] == 2.0


def test_the_hour_that_a_clock_repeats_in_autumn_is_two_hours():
    lags = Lags("1h", time="at")
    for at, y in [("2026-10-25T02:00+02:00", 1.0), ("2026-10-25T02:00+01:00", 2.0)]:
        lags.learn_one({"at": at}, y)
    assert lags.next_row({"at": "2026-10-25T02:00+01:00"})["y.lag1h"] == 1.0
    assert lags.next_row({"at": "2026-10-25T03:00+01:00"})["y.lag1h"] == 2.0


def test_columns_have_lags_by_time_too():
    lags = Lags(lags_of={"temp": "1h"}, means_of={"temp": "2h"}, time="at")
    lags.learn_one({"at": 0.0, "temp": 5.0}, 1.0)
    lags.learn_one({"at": HOUR, "temp": 7.0}, 1.0)
    row = lags.next_row({"at": 2 * HOUR, "temp": 0.0})
    assert (row["temp.lag1h"], row["temp.mean2h"]) == (7.0, 6.0)


def test_a_horizon_in_rows_moves_means_back():
    lags = Lags([2, 3], means=2, horizon=2)
    for y in [1.0, 2.0, 3.0, 10.0]:
        lags.learn_one({}, y)
    assert lags.next_row({}) == {"y.lag2": 3.0, "y.lag3": 2.0, "y.mean2": 2.5}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lags": "24h"}, "y.lag24h: lags by time need the column of times"),
        ({"lags": [1], "time": "at"}, "time = 'at': spans count rows"),
        ({"lags": [1, "24h"], "time": "at"}, "1 and 24h: spans are all rows, or all durations"),
        ({"lags": "soon", "time": "at"}, "lags = 'soon': a duration is expected"),
        ({"lags": "1h", "time": "at", "tolerance": "0s"}, "tolerance = '0s': a duration"),
        ({"lags": "1h", "time": "at", "horizon": "2h"}, "lag 1h: it is not known yet at a horizon"),
        ({"lags": [1], "horizon": 2}, "lag 1: it is not known yet at a horizon of 2"),
        ({"lags": "1h", "time": "at", "horizon": 2}, "1h and 2: spans are all rows"),
    ],
)
def test_what_cannot_be_meant_is_rejected(arguments, words):
    with pytest.raises(ValueError, match=words):
        Lags(**arguments)


def test_what_is_no_time_is_rejected_before_anything_changes():
    lags = learned([("2026-11-18 10:00", 1.0)])
    before = lags.to_state()
    with pytest.raises(ValueError, match="x\\['at'\\] = 'noon'"):
        lags.learn_one({"at": "noon"}, 2.0)
    with pytest.raises(ValueError, match="'noon'"):
        lags.learn_many({"at": ["2026-11-18 11:00", "noon"]}, [1.0, 2.0])
    assert lags.to_state()[0] == before[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda past, arrays: past.update(depth=100), "rings of 100 rows"),
        (lambda past, arrays: past.update(depth=2 * DEEPEST), "rings of"),
        (lambda past, arrays: past.pop("depth"), "other entries"),
        (lambda past, arrays: arrays["values"].__setitem__((0, LEAST_DEPTH), np.inf), "times"),
        (lambda past, arrays: arrays["values"].__setitem__((0, LEAST_DEPTH), 9e9), "times"),
        (lambda past, arrays: arrays["values"].__setitem__((0, LEAST_DEPTH), np.nan), "times"),
        (lambda past, arrays: arrays["values"].__setitem__((0, 0), np.inf), "values"),
    ],
)
def test_a_state_that_cannot_be_is_rejected(change, words):
    lags = learned([("2026-11-18 10:00", 1.0), ("2026-11-18 11:00", 2.0)])
    header, arrays = copy.deepcopy(lags.to_state())
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(header["past"], arrays)
    with pytest.raises(ValueError, match=words):
        Lags.from_state(header, arrays)


def test_a_model_with_lags_by_time_continues_after_loading():
    rng = np.random.default_rng(0)
    at = np.arange(900.0) * HOUR
    at = at[rng.random(900) > 0.1]
    y = 10 * np.sin(at / HOUR / 24 * 2 * np.pi) + rng.normal(size=len(at))
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags("24h", means="48h", time="at"))
    model.learn_many({"at": at[:500]}, y[:500])
    restored = LaggedModel.from_bytes(model.to_bytes())
    for each in (model, restored):
        each.learn_many({"at": at[500:]}, y[500:])
    assert model.to_bytes() == restored.to_bytes()
    assert model.predict_one({"at": at[-1] + HOUR}) == restored.predict_one({"at": at[-1] + HOUR})


def hourly(first, count):
    """Return so many hours of real time in Berlin from one on, and their numbers as labels."""
    start = datetime.datetime.fromisoformat(first).astimezone(datetime.UTC)
    hours = [start + datetime.timedelta(hours=hour) for hour in range(count)]
    return [(at.astimezone(BERLIN), float(hour)) for hour, at in enumerate(hours)]


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("first", ["2026-03-28T00:00+01:00", "2026-10-24T00:00+02:00"])
@pytest.mark.parametrize("written", ["datetime", "text"])
def test_times_with_a_zone_are_absolute_when_clocks_change(first, written):
    lags = Lags(["1h", "24h"], means="3h", time="at")
    for at, y in hourly(first, 60):
        row = {"at": at if written == "datetime" else at.isoformat()}
        found = lags.transform_one(row)
        assert found.get("y.lag1h") == (y - 1 if y >= 1 else None)
        assert found.get("y.lag24h") == (y - 24 if y >= 24 else None)
        assert found.get("y.mean3h") == (y - 2 if y >= 3 else None if y == 0 else (y - 1) / 2)
        lags.learn_one(row, y)


def test_local_times_without_a_zone_skip_an_hour_in_spring():
    lags = Lags(["1h", "24h"], time="at")
    found = {}
    for at, y in hourly("2026-03-28T00:00+01:00", 60):
        row = {"at": at.strftime("%Y-%m-%d %H:%M")}
        found[row["at"]] = lags.transform_one(row)
        lags.learn_one(row, y)
    assert "y.lag1h" not in found["2026-03-29 03:00"]  # 02:00 did not exist
    assert found["2026-03-29 04:00"]["y.lag1h"] == 26.0
    assert found["2026-03-29 12:00"]["y.lag24h"] == 12.0  # 12:00 of the day before, 23 hours ago
    assert "y.lag24h" not in found["2026-03-30 02:00"]
    assert found["2026-03-30 03:00"]["y.lag24h"] == 26.0


def test_local_times_without_a_zone_have_an_hour_twice_in_autumn():
    lags = Lags(["1h", "24h"], time="at")
    found = {}
    for at, y in hourly("2026-10-24T00:00+02:00", 60):
        row = {"at": at.strftime("%Y-%m-%d %H:%M")}
        found.setdefault(row["at"], []).append(lags.transform_one(row))
        lags.learn_one(row, y)
    first, second = found["2026-10-25 02:00"]
    assert (first["y.lag1h"], second["y.lag1h"]) == (25.0, 25.0)
    assert found["2026-10-25 03:00"][0]["y.lag1h"] == 27.0  # the later of both
    assert found["2026-10-25 12:00"][0]["y.lag24h"] == 12.0  # 25 hours ago
    assert found["2026-10-26 02:00"][0]["y.lag24h"] == 27.0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (datetime.timedelta(days=30), "2592000s"),
        (datetime.timedelta(days=30, seconds=0.25), "2592000.25s"),
        (datetime.timedelta(microseconds=5), "0.000005s"),
    ],
)
def test_any_timedelta_can_be_saved_as_text(given, text):
    lags = Lags([given], time="at", target="y", tolerance=given / 5 * 2)
    assert lags.features == [f"y.lag{text}"]
    assert Lags(**lags.parameters).parameters == lags.parameters
