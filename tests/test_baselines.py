"""Baselines beside an evaluation, against a slow and obvious twin; and what pictures rest on."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_evaluate as naive
import sapwood
from sapwood.evaluate import Prequential, prequential
from sapwood.evaluate.baseline_scores import BaselineScores
from sapwood.evaluate.baselines import LastValue
from sapwood.evaluate.history import (
    FIRST_MOMENT,
    GROUPS,
    LABELS,
    MOMENTS,
    ROWS,
    History,
    ImportanceLog,
)
from sapwood.evaluate.result import BASELINES, compared
from sapwood.evaluate.scores import Scores

HOUR = 3600.0
WEEK = 168 * HOUR


def told_by_twin(known, time, fade):
    """What each baseline says of a row, of labels and their times in the order of arrival."""
    known = [(y, at) for y, at in known if abs(y) <= 1e140]
    labels = [y for y, _ in known]
    if not labels:
        return {"last": 0.0, "mean": 0.0, "faded_mean": 0.0, "week": 0.0}
    weights = [fade**later for later in range(len(labels))][::-1]
    faded = math.fsum(w * y for w, y in zip(weights, labels, strict=True)) / math.fsum(weights)
    return {
        "last": labels[-1],
        "mean": math.fsum(labels) / len(labels),
        "faded_mean": faded,
        "week": labels[-1] if (week := same_hour(known, time)) is None else week,
    }


def same_hour(known, time):
    """The mean over the latest hour of an earlier week, as hours come; None if there is none."""
    if math.isnan(time):
        return None
    hour = time // HOUR
    hours, latest = {}, -math.inf
    for y, at in known:
        if not math.isnan(at) and at // HOUR % 168 == hour % 168 and at // HOUR >= latest:
            latest = at // HOUR
            hours.setdefault(latest, []).append(y)
    earlier = [each for each in hours if each < hour]
    # An hour that is over is forgotten when two later ones have come.
    if not earlier or max(earlier) not in sorted(hours)[-2:] or latest > hour:
        return None
    return math.fsum(hours[max(earlier)]) / len(hours[max(earlier)])


def rows_of(seed, count, timed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=count).cumsum() * 10
    y[rng.random(count) < 0.03] = 1e200
    step = rng.choice([600.0, HOUR, 7 * HOUR], count)
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
        baselines.take_many(predictions[part], y[part], None if times is None else times[part])
        scores.update_many(predictions[part], y[part])
    at = [math.nan] * count if times is None else times.tolist()
    known = list(zip(y.tolist(), at, strict=True))
    told = [told_by_twin(known[:row], at[row], fade) for row in range(count)]
    good = [row for row in range(count) if abs(predictions[row]) <= 1e140 >= abs(y[row])]
    right = [float(y[row]) for row in good]
    found = baselines.finished(scores)
    assert list(found)[:3] == ["last", "mean", "faded_mean"]
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


def test_two_rows_of_an_hour_look_a_week_back_and_are_averaged_later():
    baselines = BaselineScores(0.9, 10)
    for y, time in ((1.0, 0.0), (3.0, 1800.0), (50.0, WEEK)):
        baselines.take_many(np.zeros(1), np.array([y]), np.array([time]))
    assert baselines.forecast(WEEK + 1800.0)[3:] == [2.0, 1.0]  # not the 50 of this very hour
    assert baselines.forecast(2 * WEEK)[3:] == [50.0, 1.0]
    assert baselines.forecast(5 * HOUR)[3:] == [50.0, 0.0]  # nothing is known: the last value
    assert baselines.forecast(math.nan)[3:] == [50.0, 0.0]


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
    assert found.to_dict()["baselines"]["last"]["total"]["mae"] == found.baselines["last"].total.mae


# What is kept for pictures


@settings(max_examples=30)
@given(
    count=st.integers(0, 3 * ROWS),
    cuts=st.lists(st.integers(0, 3 * ROWS), max_size=6),
)
def test_every_kth_row_is_kept_however_rows_are_cut(count, cuts):
    history = History()
    y, cities = np.arange(count) * 2.0, [f"city {row % 5}" for row in range(count)]
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), count], strict=True):
        part = slice(min(start, count), min(stop, count))
        history.take(part.start, -y[part], y[part], y[part] + 1, {"city": cities[part]})
        history = History.from_arrays(history.to_arrays())
    found = history.finished()
    rows = found.rows["row"]
    assert rows.tolist() == list(range(1, count + 1, found.interval))
    assert len(rows) < ROWS
    assert found.interval == 1 or len(rows) >= ROWS // 2
    assert (found.rows["y"] == 2.0 * (rows - 1)).all()
    assert (found.rows["prediction"] == -found.rows["y"]).all()
    assert (found.rows["time"] == found.rows["y"] + 1).all()
    if count:
        labels, codes = found.groups["city"]
        assert [labels[code] for code in codes] == [cities[row - 1] for row in rows]


def test_groups_and_labels_are_bounded():
    history = History()
    count = 500
    columns = {f"c{place}": [f"{row % 100}" for row in range(count)] for place in range(GROUPS + 2)}
    columns["number"] = np.zeros(count)
    history.take(0, np.zeros(count), np.zeros(count), None, columns)
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
        log = ImportanceLog.from_arrays(log.to_arrays())
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
    assert found.bias == pytest.approx(np.mean(sample.rows["prediction"] - sample.rows["y"]))
    assert found.beside["time"][-1] == good[-1][2]
