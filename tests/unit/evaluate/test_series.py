"""Errors by series, compared with those of each series alone."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.evaluate.recorder import LabelledRows, packed
from sapwood.evaluate.scores import Scores
from sapwood.evaluate.series import SeriesErrors, SeriesScores


def rows_of(count=300, series=7, seed=2, start=1e9):
    """Return rows of several series with a bad prediction and a missing label."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, series, count)
    y = rng.normal(50 + 100 * keys, 5)
    predictions = y + rng.normal(0, 1 + keys)
    predictions[count // 3] = np.nan
    times = start + 3600.0 * np.arange(count)
    return keys, predictions, y, times


def expected_of(key, columns, apart=1):
    """Return the errors of one series, from its rows alone."""
    predictions, y, times = columns
    steps = np.abs(y[apart:] - y[:-apart]) if len(y) > apart else np.zeros(0)
    scored = np.isfinite(predictions)
    error = predictions[scored] - y[scored]
    known = y[scored]
    square = np.square(error).sum()
    return SeriesErrors(
        key,
        len(error),
        np.abs(error).mean(),
        math.sqrt(square / len(error)),
        1 - square / np.square(known - known.mean()).sum(),
        np.abs(predictions - y)[apart:][scored[apart:]].sum() / steps.sum(),
        times[scored].min(),
        times[scored].max(),
    )


def assert_same(found, expected):
    assert found.key == expected.key
    for name in ("rows", "mae", "rmse", "r2", "mase", "first", "last"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one == pytest.approx(other, rel=1e-9, nan_ok=True), name


@pytest.mark.parametrize(("season", "apart"), [(1, 1), (3, 3)])
def test_each_series_has_the_errors_of_its_rows_alone(season, apart):
    keys, predictions, y, times = rows_of()
    predictions[100] = 1.0  # in place of the missing one, which would leave a gap
    scores = SeriesScores(["shop"], season)
    scores.record(LabelledRows(predictions, y, times, features={"shop": keys}))
    table, columns = scores.table, (predictions, y, times)
    assert table.others is None
    assert sum(each.rows for each in table.series) == 300
    for found in table.series:
        own = expected_of(found.key, [each[keys == found.key[0]] for each in columns], apart)
        assert_same(found, own)
    total = Scores()
    total.take(predictions, y)
    assert sum(each.mae * each.rows for each in table.series) == pytest.approx(
        300 * total.total.mae
    )
    worst = table.worst(3)
    assert len(worst) == 3
    sums = [each.mae * each.rows for each in table.series]
    assert worst[0].mae * worst[0].rows == max(sums)


def test_rows_that_cannot_be_scored_do_not_count():
    keys, predictions, y, times = rows_of(60, 2)
    y[5] = np.nan
    scores = SeriesScores(["shop"])
    scores.record(LabelledRows(predictions, y, times, features={"shop": keys}))
    assert sum(each.rows for each in scores.table.series) == 58


def test_a_season_of_time_compares_values_by_time():
    keys, predictions, y, times = rows_of(400, 2)
    predictions[400 // 3] = 0.0
    keep = np.random.default_rng(1).random(400) < 0.8
    keys, predictions, y, times = (each[keep] for each in (keys, predictions, y, times))
    scores = SeriesScores(["shop"], "24h")
    scores.record(LabelledRows(predictions, y, times, features={"shop": keys}))
    for found in scores.table.series:
        own = keys == found.key[0]
        by_time = dict(zip(times[own], y[own], strict=True))
        steps = [abs(v - by_time[t - 86_400]) for t, v in by_time.items() if t - 86_400 in by_time]
        paired = own & np.isin(times - 86_400, times[own])
        errors = np.abs(predictions - y)[paired]
        assert len(errors) == len(steps) >= 50
        assert found.mase == pytest.approx(errors.sum() / np.sum(steps))


@given(cuts=st.lists(st.integers(0, 120), max_size=6), saved=st.booleans())
def test_batches_and_saving_change_nothing(cuts, saved):
    keys, predictions, y, times = rows_of(120, 5)
    names = [f"s{key}" if key else None for key in keys]
    whole, parts = (SeriesScores(["shop", "till"], 2) for _ in range(2))
    columns = {"shop": names, "till": keys % 2}
    rows = LabelledRows(predictions, y, times, features=columns)
    whole.record(rows)
    edges = [0, *sorted(cuts), 120]
    for start, stop in itertools.pairwise(edges):
        parts.record(rows.some(np.arange(start, stop)))
        if saved:
            parts = SeriesScores(["shop", "till"], 2).restored(parts.to_arrays())
    assert parts.table.to_dict() == whole.table.to_dict()
    of_rows = SeriesScores(["shop", "till"], 2)
    listed = [{"shop": a, "till": int(b)} for a, b in zip(names, keys % 2, strict=True)]
    of_rows.record(rows._replace(features=listed))
    assert of_rows.table.to_dict() == whole.table.to_dict()


@pytest.mark.parametrize("most", [1, 3, 16, 17, 40])
def test_further_series_are_one_together(most):
    keys, predictions, y, times = rows_of(300, 40)
    scores = SeriesScores(["shop"], most=most)
    for part in np.array_split(np.arange(300), 7):
        rows = LabelledRows(predictions, y, times, features={"shop": keys})
        scores.record(rows.some(part))
        scores = SeriesScores(["shop"], most=most).restored(scores.to_arrays())
    table = scores.table
    order = list(dict.fromkeys(keys.tolist()))
    assert [each.key[0] for each in table.series] == order[:most]
    others = ~np.isin(keys, order[:most])
    if most == 40:
        assert table.others is None
    else:
        assert table.others.rows == (others & np.isfinite(predictions)).sum()
        error = np.abs(predictions - y)[others]
        assert table.others.mae == pytest.approx(np.nanmean(error))
    assert len(scores.to_arrays()["series_sums"]) <= most + 1
    assert (
        sum(each.rows for each in table.series) + (0 if table.others is None else table.others.rows)
        == np.isfinite(predictions).sum()
    )


def test_missing_keys_are_a_series_and_results_are_json():
    keys = np.array([1.0, np.nan, np.nan, 1.0])
    scores = SeriesScores(["shop"])
    scores.record(LabelledRows(np.zeros(4), np.ones(4), features={"shop": keys}))
    assert [(each.key, each.rows) for each in scores.table.series] == [((1.0,), 2), ((None,), 2)]
    found = json.loads(json.dumps(scores.table.to_dict()))
    assert found["series"][1]["first"] is None
    assert found["series"][0]["mase"] is None  # values do not differ
    assert (found["by"], found["season"], found["others"]) == (["shop"], "1", None)


def test_a_large_mean_does_not_spoil_the_variance():
    rng = np.random.default_rng(0)
    y = 1e9 + rng.normal(0, 1, 5000)
    scores = SeriesScores(["shop"])
    scores.record(LabelledRows(y + 0.5, y, features={"shop": np.zeros(5000)}))
    [found] = scores.table.series
    assert found.r2 == pytest.approx(1 - 0.25 / y.var(), rel=1e-6)


def test_saved_scores_are_checked():
    keys, predictions, y, times = rows_of(50, 3)
    scores = SeriesScores(["shop"])
    scores.record(LabelledRows(predictions, y, times, features={"shop": keys}))
    good = scores.to_arrays()
    sums = good["series_sums"]
    negative, unknown = sums.copy(), sums.copy()
    negative[0, 0], unknown[0, 3] = -1.0, np.nan
    for changed, words in [
        ({"series_sums": sums[:-1]}, "a sum that cannot be"),
        ({"series_sums": negative}, "a sum that cannot be"),
        ({"series_sums": unknown}, "a sum that cannot be"),
        ({"series_keys": packed([[1], [1], [2]])}, "occur twice"),
        ({"series_keys": packed([[1], [2, 3], [4]])}, "is none"),
        ({"series_keys": packed([[1], [[2]], [4]])}, "is none"),
        ({"series_keys": packed({"1": 2})}, "no list"),
    ]:
        with pytest.raises(ValueError, match=words):
            SeriesScores(["shop"]).restored({**good, **changed})
    with pytest.raises(ValueError, match="another season"):
        SeriesScores(["shop"], 2).restored(good)
