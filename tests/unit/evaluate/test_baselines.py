"""Baselines beside an evaluation, against a slow and obvious twin; and what pictures rest on."""

import math
import re
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

import naive_evaluate as naive
import sapwood
from sapwood.evaluate import Prequential, baseline_scores, prequential
from sapwood.evaluate.baseline_scores import BaselineScores
from sapwood.evaluate.baselines import LastValue
from sapwood.evaluate.error_tables import BINS, BLOCK, grouped
from sapwood.evaluate.history import GROUPS, LABELS, ROWS, History
from sapwood.evaluate.model_log import ImportanceLog
from sapwood.evaluate.recorder import LabelledRows
from sapwood.evaluate.result import BASELINES, compared
from sapwood.evaluate.scores import Scores
from sapwood.rows.labels import Labels

HOUR = 3600.0
FIRST_MOMENT, MOMENTS = ImportanceLog.first, ImportanceLog.most
WEEK = 168 * HOUR


def told_by_twin(known, time, fade, ordinal=0):
    """The forecasts of each baseline for a row, by labels and times in the order of arrival."""
    known = [(y, at) for y, at in known if abs(y) <= 1e140]
    labels = [y for y, _ in known]
    if not labels:
        return {"last": 0.0, "mean": 0.0, "faded_mean": 0.0, "week": 0.0}
    weights = [fade**later for later in range(len(labels))][::-1]
    faded = math.fsum(w * y for w, y in zip(weights, labels, strict=True)) / math.fsum(weights)
    week = a_week_before(known, time, ordinal)
    return {
        "last": labels[-1],
        "mean": math.fsum(labels) / len(labels),
        "faded_mean": faded,
        "week": labels[-1] if week is None else week,
    }


def a_week_before(known, time, ordinal):
    """The label of the k-th row at the latest time within an hour up to a week before."""
    there = [(at, y) for y, at in known if WEEK <= time - at <= WEEK + HOUR]
    if not there:
        return None
    latest = max(at for at, _ in there)
    rows = [y for at, y in there if at == latest]
    return rows[min(ordinal, len(rows) - 1)]


def ordinals_of(times):
    """How many of the rows just before each one have the same time."""
    found, count, last = [], 0, math.nan
    for time in times:
        if not math.isnan(time):
            same = time == last
            found.append(count + 1 if same else 0)
            count, last = found[-1], time
        else:
            found.append(0)
    return found


def rows_of(seed, count, timed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=count).cumsum() * 10
    y[rng.random(count) < 0.03] = 1e200
    step = rng.choice([0.0, 600.0, HOUR, 24 * HOUR], count, p=[0.4, 0.1, 0.1, 0.4])
    times = np.where(rng.random(count) < 0.1, np.nan, np.cumsum(step)) if timed else None
    predictions = y + rng.normal(size=count)
    predictions[rng.random(count) < 0.03] = np.nan
    return predictions, y, times


@settings(max_examples=40)
@given(
    seed=st.integers(0, 999),
    count=st.integers(0, 120),
    timed=st.booleans(),
    fade=st.sampled_from([0.5, 0.99]),
    cuts=st.lists(st.integers(0, 120), max_size=3),
)
def test_baselines_are_those_of_the_twin(seed, count, timed, fade, cuts):
    predictions, y, times = rows_of(seed, count, timed)
    baselines, scores = BaselineScores(fade, 30), Scores(fade, 30)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), count], strict=True):
        part = slice(min(start, count), min(stop, count))
        baselines.score(
            LabelledRows(predictions[part], y[part], None if times is None else times[part])
        )
        scores.update_many(predictions[part], y[part])
        baselines = baselines.restored(baselines.to_arrays())
    at = [math.nan] * count if times is None else times.tolist()
    known = list(zip(y.tolist(), at, strict=True))
    order = ordinals_of(at)
    told = [told_by_twin(known[:row], at[row], fade, order[row]) for row in range(count)]
    good = [row for row in range(count) if abs(predictions[row]) <= 1e140 >= abs(y[row])]
    right = [float(y[row]) for row in good]
    found = baselines.finished(scores)
    assert list(found)[:3] == ["last", "mean", "faded_mean"]
    if len(found) == 4:
        event("with a week")
    for name, errors in found.items():
        guesses = [told[row][name] for row in good]
        for mine, expected in (
            (errors.total, naive.errors(guesses, right)),
            (errors.faded, naive.faded_errors(guesses, right, fade)),
            (errors.window, naive.window_errors(guesses, right, 30)),
        ):
            np.testing.assert_allclose(astuple(mine)[:2], expected[:2], rtol=1e-9)
    bias = [float(predictions[row] - y[row]) for row in good]
    assert baselines.bias == pytest.approx(
        math.fsum(bias) / len(bias) if bias else math.nan, nan_ok=True
    )


def test_the_same_hour_of_last_week():
    times = np.arange(0.0, 3 * WEEK, HOUR)
    y = 100.0 * (times // WEEK) + times % WEEK // HOUR  # 100 more each week
    found = prequential(LastValue(), streams_of(y, times), window=300)
    assert list(found.baselines) == list(BASELINES)
    late = found.baselines["week"].window  # all of its 300 rows have a week before them
    assert late.mae == late.rmse == 100.0
    assert "week" not in prequential(LastValue(), streams_of(y[:300], times[:300])).baselines
    assert "week" not in prequential(LastValue(), streams_of(y, None)).baselines


def streams_of(y, times):
    rows = [
        ({"a": 1.0}, float(value), None if times is None else times[row])[: 2 + (times is not None)]
        for row, value in enumerate(y)
    ]
    return naive.ListStream(rows)


def test_rows_of_one_date_are_forecast_by_the_rows_of_the_date_a_week_before():
    days = np.repeat(np.arange(30), 24)
    y = 1000.0 * np.tile(np.arange(24), 30) + days  # each hour of a day has its own value
    found = prequential(LastValue(), streams_of(y, 24 * HOUR * days), window=300)
    assert found.baselines["week"].window.rmse == 7.0  # a mean over the day would have 6,922


def test_without_a_row_a_week_before_the_last_within_an_hour_counts():
    baselines = BaselineScores(0.9, 10)
    for y, time in ((1.0, 0.0), (3.0, 1800.0), (50.0, WEEK)):
        baselines.score(LabelledRows(np.zeros(1), np.array([y]), np.array([time])))
    assert baselines.forecast(WEEK + 1800.0)[3:] == [3.0, 1.0]
    assert baselines.forecast(WEEK + 1800.0 + HOUR)[3:] == [3.0, 1.0]
    assert baselines.forecast(WEEK + 1801.0 + HOUR)[3:] == [50.0, 0.0]  # nothing: the last value
    assert baselines.forecast(2 * WEEK)[3:] == [50.0, 1.0]
    assert baselines.forecast(5 * HOUR)[3:] == [50.0, 0.0]
    assert baselines.forecast(math.nan)[3:] == [50.0, 0.0]


def test_the_week_is_bounded_and_begins_again_with_another_series(monkeypatch):
    monkeypatch.setattr(baseline_scores, "MOST_IN_WEEK", 256)
    baselines = BaselineScores(0.9, 10)
    times = np.arange(0.0, 2 * WEEK, 600.0)  # 1,008 rows a week
    baselines.score(LabelledRows(times, times, times))
    assert len(baselines.to_arrays()["baselines_week"]) == 256
    assert baselines.names == ["last", "mean", "faded_mean"]
    again = np.arange(0.0, WEEK, 3600.0)
    baselines.score(LabelledRows(again, again + 0.5, again))
    week = baselines.to_arrays()["baselines_week"]
    assert week[:, 0].tolist() == again.tolist()
    assert baselines.forecast(WEEK)[3:] == [0.5, 1.0]


@pytest.mark.parametrize("delay", [1, 3, 40])
def test_labels_are_as_late_for_baselines_as_for_the_model(delay):
    y = np.random.default_rng(4).normal(size=60).cumsum()
    found = prequential(LastValue(), ([[0.0]] * 60, y), delay=delay)
    assert found.baselines["last"].total == found.total
    guesses = [
        told_by_twin([(v, math.nan) for v in y[: max(0, row - delay)]], math.nan, 0.999)
        for row in range(60)
    ]
    expected = naive.errors([guess["faded_mean"] for guess in guesses], y.tolist())
    assert astuple(found.baselines["faded_mean"].total) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("error", "rival", "words"),
    [
        (0.951, 0.98, "3 % better than"),
        (1.004, 1.0, "as good as"),
        (1.2, 1.0, "20 % worse than"),
        (2.5, 1.0, "2.5 times that of"),
        (0.001, 1.0, "99.9 % better than"),
        (0.0, 0.0, "as good as"),
        (0.5, 0.0, "worse than"),
    ],
)
def test_the_headline_compares(error, rival, words):
    assert compared(error, rival) == words


def test_the_headline_names_the_best_baseline():
    y = np.tile([0.0, 10.0], 50)
    found = prequential(sapwood.HoeffdingTreeRegressor(), (y[:, None], y))
    assert found.best_baseline == "mean"
    assert found.headline.endswith("% better than the mean so far")
    assert found.to_dict()["headline"] == found.headline


def test_the_headline_reports_the_last_rows_where_they_disagree():
    y = np.random.default_rng(3).normal(size=5000).cumsum()
    X = np.where(np.arange(5000) < 4000, y, y + 10.0)[:, None]

    class Copy:
        def predict_one(self, x):
            return x[0]

        def learn_one(self, x, y):
            pass

    found = prequential(Copy(), (X, y), window=900)
    assert re.fullmatch(
        r"RMSE [\d.]+, [\d.]+ times that of repeating the last value", found.headline
    )
    X[:4990] = y[:4990, None]
    found = prequential(Copy(), (X, y), window=10)
    rmse = found.baselines["last"].window.rmse
    better = compared(found.total.rmse, found.baselines["last"].total.rmse)
    assert better.endswith("better than")
    assert found.headline == (
        f"RMSE {found.total.rmse:.4g}, {better} repeating the last value; "
        f"last 10 rows: RMSE 10, {10 / rmse:.2g} times that of repeating the last value"
    )
    assert prequential(LastValue(), (X, y), window=900).headline.count("RMSE") == 1


def test_baselines_are_part_of_the_json():
    y = np.tile([0.0, 10.0], 50)
    found = prequential(sapwood.HoeffdingTreeRegressor(), (y[:, None], y))
    assert found.to_dict()["baselines"]["last"]["total"]["mae"] == found.baselines["last"].total.mae


# What is kept for pictures


@settings(max_examples=30)
@given(
    count=st.integers(0, 3 * ROWS),
    cuts=st.lists(st.integers(0, 3 * ROWS), max_size=6),
    coded=st.booleans(),
)
def test_one_row_of_each_block_is_kept_however_rows_are_cut(count, cuts, coded):
    history = History()
    y, cities = np.arange(count) * 2.0, [f"city {row % 5}" for row in range(count)]
    column = cities
    if coded:
        column = Labels(np.arange(count) % 5, [f"city {place}" for place in range(5)])
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), count], strict=True):
        part = slice(min(start, count), min(stop, count))
        history.record(LabelledRows(-y[part], y[part], y[part] + 1, None, {"city": column[part]}))
        history = History().restored(history.to_arrays())
    found = history.finished()
    rows = found.rows["row"]
    blocks = (rows - 1) // found.interval
    assert (np.diff(blocks) == 1).all()
    assert blocks[:1].tolist() == [0] * bool(count)
    assert count == 0 or blocks[-1] >= count // found.interval - 1
    assert len(rows) < ROWS
    assert found.interval == 1 or len(rows) >= ROWS // 2 - 1
    assert (found.rows["y"] == 2.0 * (rows - 1)).all()
    assert (found.rows["prediction"] == -found.rows["y"]).all()
    assert (found.rows["time"] == found.rows["y"] + 1).all()
    whole = History()
    whole.record(LabelledRows(-y, y, y + 1, None, {"city": cities}))
    assert whole.finished().rows.tobytes() == found.rows.tobytes()
    for name, array in whole.to_arrays().items():
        assert history.to_arrays()[name].tobytes() == array.tobytes()
    if count:
        labels, codes = found.groups["city"]
        assert [labels[code] for code in codes] == [cities[row - 1] for row in rows]


def test_a_sample_has_every_hour_of_a_daily_cycle():
    count = 100_000
    history = History()
    hours = np.arange(count) % 24
    history.record(
        LabelledRows(np.zeros(count), np.zeros(count), 3600.0 * np.arange(count), None, {})
    )
    found = history.finished()
    assert found.interval == 64  # every 64th row would have three hours only
    counts = np.bincount(hours[found.rows["row"] - 1], minlength=24)
    assert counts.min() > 0.5 * len(found.rows) / 24
    assert len({tuple(History(seed).finished().rows) for seed in range(3)}) == 1
    other = History(seed=1)
    other.record(LabelledRows(np.zeros(count), np.zeros(count), None, None, {}))
    assert other.finished().rows["row"].tolist() != found.rows["row"].tolist()


@settings(max_examples=20)
@example(seed=1, count=BLOCK, cut=100)
@given(seed=st.integers(0, 99), count=st.integers(0, 3 * BLOCK), cut=st.integers(0, 3 * BLOCK))
def test_tables_of_errors_are_of_all_rows(seed, count, cut):
    rng = np.random.default_rng(seed)
    y, predictions = rng.normal(size=count), np.round(rng.normal(size=count), 1)
    times = np.where(rng.random(count) < 0.1, np.nan, 3600.0 * rng.integers(0, 999, count))
    seasons = rng.integers(0, 4, count)
    labels = [None if season == 3 else f"s{season}" for season in seasons]
    history = History()
    for part in (slice(0, min(cut, count)), slice(min(cut, count), count)):
        columns = {"season": labels[part]}
        history.record(LabelledRows(predictions[part], y[part], times[part], None, columns))
    found, error = history.errors_by(), predictions - y
    for hour in range(24):
        own = error[times % 86400 // 3600 == hour]
        check_part(found.hours[hour], own)
    if count:
        for name, part in zip(*found.groups["season"], strict=True):
            check_part(part, error[[label == name for label in labels]])
    assert found.predictions["rows"].sum() == count
    assert len(found.predictions) <= BINS
    assert (np.diff(found.predictions["prediction"]) > -1e-12).all()
    if count <= BLOCK:  # each bin is a part of the rows in the order of their predictions
        order = np.argsort(predictions, kind="stable")
        cuts = np.cumsum(found.predictions["rows"])[:-1]
        for part, rows in zip(found.predictions, np.split(order, cuts), strict=bool(count)):
            check_part(part, error[rows])
            assert part["prediction"] == pytest.approx(predictions[rows].mean())
    parts = grouped(found.predictions, 12)
    assert len(parts) <= 12
    assert parts["rows"].sum() == count
    if count:
        assert np.average(parts["bias"], weights=parts["rows"]) == pytest.approx(error.mean())


def check_part(part, errors):
    assert part["rows"] == len(errors)
    if len(errors):
        assert part["bias"] == pytest.approx(errors.mean())
        assert part["mae"] == pytest.approx(np.abs(errors).mean())


def test_groups_and_labels_are_bounded():
    history = History()
    count = 500
    columns = {f"c{place}": [f"{row % 100}" for row in range(count)] for place in range(GROUPS + 2)}
    columns["number"] = np.zeros(count)
    history.record(LabelledRows(np.zeros(count), np.zeros(count), None, None, columns))
    found = history.finished()
    assert list(found.groups) == [f"c{place}" for place in range(GROUPS)]
    labels, codes = found.groups["c0"]
    assert labels == [str(label) for label in range(LABELS)]
    assert codes.tolist() == [row % 100 if row % 100 < LABELS else -1 for row in range(count)]


def test_importances_are_noted_at_few_moments():
    tree = sapwood.HoeffdingTreeRegressor(grace_period=50)
    rng = np.random.default_rng(1)
    X = rng.random((2000, 2))
    tree.learn_many(X, np.where(X[:, 1] > 0.5, 10.0, 0.0))
    log = ImportanceLog()
    for rows in range(100, 40 * FIRST_MOMENT, 100):
        log.add(rows, tree)
        assert len(log._moments) < MOMENTS
        log = ImportanceLog().restored(log.to_arrays())
    moments = log.finished(40 * FIRST_MOMENT, tree)
    assert [rows for rows, _ in moments] == [
        *range(log.interval, 40 * FIRST_MOMENT, log.interval),
        40 * FIRST_MOMENT,
    ]
    assert moments[0][1] == {str(k): v for k, v in tree.feature_importances.items()}
    assert moments[0][1]["1"] > 0.9
    assert log.finished(100, object()) == []


def test_an_evaluation_keeps_what_was_scored():
    rng = np.random.default_rng(2)
    rows = []
    for row in range(300):
        x = {"a": float(rng.normal()), "c": "red" if row % 3 else "blue"}
        rows.append(
            "broken" if row % 50 == 7 else (x, 1e200 if row % 40 == 5 else x["a"], 10.0 * row)
        )
    run = Prequential(
        sapwood.HoeffdingTreeRegressor(), naive.ListStream(rows), delay=None, on_bad_row="skip"
    )
    for _ in run.steps(37):
        pass
    found = run.finish()
    good = [row for row in rows if not isinstance(row, str) and row[1] < 1e140]
    sample = found.sample
    assert sample.rows["y"].tolist() == [row[1] for row in good]
    assert sample.rows["time"].tolist() == [row[2] for row in good]
    labels, codes = sample.groups["c"]
    assert [labels[code] for code in codes] == [row[0]["c"] for row in good]
    assert found.errors_by.groups["c"][1]["rows"].sum() == len(good)
    assert found.bias == pytest.approx(np.mean(sample.rows["prediction"] - sample.rows["y"]))
    assert found.further["time"][-1] == good[-1][2]
