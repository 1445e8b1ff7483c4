"""The running errors: of all rows, faded, and of a window."""

import math
from dataclasses import astuple
from itertools import pairwise
from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_evaluate as naive
from sapwood.evaluate.result import Errors
from sapwood.evaluate.scores import Scores

NAN3 = (math.nan, math.nan, math.nan)


@st.composite
def scored(draw, most=80):
    """Predictions and targets, some far from 0, some constant for a while."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(0, most))
    y = np.round(rng.normal(size=count), draw(st.sampled_from([0, 1, 12])))
    predictions = y + rng.normal(size=count) * draw(st.sampled_from([0.0, 1e-3, 1.0]))
    offset, scale = draw(st.sampled_from([0.0, 0.1, 1e5])), draw(st.sampled_from([1e-9, 1.0, 1e6]))
    predictions, y = (predictions + offset) * scale, (y + offset) * scale
    same = draw(st.integers(0, count))
    y[:same] = y[:1].repeat(same) if same else 0.0
    return predictions.tolist(), y.tolist()


def bits(scores):
    return [array.tobytes() for array in scores.to_arrays().values()]


def assert_errors(found, expected):
    """Compare; R² by what is left of it, of which a small spread leaves few digits."""
    mae, rmse, r2 = astuple(found)
    np.testing.assert_allclose([mae, rmse], expected[:2], rtol=1e-9)
    np.testing.assert_allclose(1 - r2, 1 - expected[2], rtol=1e-6, atol=1e-12)


@given(
    rows=scored(),
    fade=st.sampled_from([0.5, 0.9, 0.999]),
    window=st.sampled_from([1, 2, 7, 79, 80, 1000]),
)
def test_the_errors_are_those_of_the_definitions(rows, fade, window):
    predictions, y = rows
    scores = Scores(fade, window)
    scores.update_many(predictions, y)
    assert_errors(scores.total, naive.errors(predictions, y))
    assert_errors(scores.window, naive.window_errors(predictions, y, window))
    assert_errors(scores.faded, naive.faded_errors(predictions, y, fade))
    assert (scores.rows, scores.window_rows, scores.fade) == (len(y), window, fade)
    if y:
        assert scores.target_mean == pytest.approx(fmean(y), rel=1e-12)
        assert scores.target_deviation == pytest.approx(pstdev(y), rel=1e-6)


def test_a_small_case():
    scores = Scores(fade=0.5, window=2)
    scores.update_many([1.0, 2.0, 3.0], [1.0, 3.0, 5.0])
    assert astuple(scores.total) == (1.0, math.sqrt(5 / 3), 1 - 5 / 8)
    assert astuple(scores.window) == (1.5, math.sqrt(2.5), 1 - 5 / 2)
    # Weights 1/4, 1/2 and 1: the mean of y is 27/7, and the squares around it are 24.86/7.
    center = (1 / 4 + 3 / 2 + 5) / 1.75
    spread = (1 - center) ** 2 / 4 + (3 - center) ** 2 / 2 + (5 - center) ** 2
    expected = (2.5 / 1.75, math.sqrt(4.5 / 1.75), 1 - 4.5 / spread)
    np.testing.assert_allclose(astuple(scores.faded), expected, rtol=1e-14)


@given(rows=scored(), cuts=st.lists(st.integers(0, 80), max_size=5), window=st.integers(1, 90))
def test_many_are_as_one_by_one(rows, cuts, window):
    predictions, y = rows
    at_once, in_parts, singly = (Scores(window=window) for _ in range(3))
    at_once.update_many(predictions, y)
    for start, stop in pairwise([0, *sorted(cuts), len(y)]):
        in_parts.update_many(predictions[start:stop], y[start:stop])
    for prediction, target in zip(predictions, y, strict=True):
        singly.update(prediction, target)
    assert bits(at_once) == bits(in_parts) == bits(singly)


@given(rows=scored(), cut=st.integers(0, 80), window=st.integers(1, 90))
def test_saved_and_restored_scores_go_on_to_the_last_bit(rows, cut, window):
    predictions, y = rows
    scores = Scores(0.9, window)
    scores.update_many(predictions, y)
    before = Scores(0.9, window)
    before.update_many(predictions[:cut], y[:cut])
    twin = before.restored(before.to_arrays())
    twin.update_many(predictions[cut:], y[cut:])
    assert bits(twin) == bits(scores)
    assert repr(twin.total) == repr(scores.total)
    assert repr(twin.window) == repr(scores.window)


def test_what_is_saved_is_a_copy():
    scores = Scores(window=2)
    saved = scores.to_arrays()
    scores.update(1.0, 2.0)
    assert not saved["scores"].any()
    assert not saved["recent"].any()


def test_without_rows_there_are_no_errors():
    scores = Scores()
    for found in (scores.total, scores.faded, scores.window):
        np.testing.assert_equal(astuple(found), NAN3)
    assert (scores.rows, scores.target_mean, scores.target_deviation) == (0, 0.0, 0.0)
    scores.update_many([], [])
    assert scores.rows == 0


@pytest.mark.parametrize("value", [0.0, 0.1, -1e-300, 1 / 3, 1e8 + 0.3, 1e100])
@pytest.mark.parametrize("rows", [1, 2, 7, 1000, 1234])
def test_r2_of_constant_targets_is_nan(value, rows):
    scores = Scores()
    scores.update_many([value + 0.5] * rows, [value] * rows)
    for found in (scores.total, scores.faded, scores.window):
        assert math.isnan(found.r2)
        assert found.mae == pytest.approx(abs(value + 0.5 - value), rel=1e-12)
    assert scores.target_deviation == 0.0


def test_the_window_forgets_and_the_rest_does_not():
    scores = Scores(fade=0.9, window=3)
    scores.update_many([100.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0])
    assert scores.window.mae == pytest.approx(2.0)
    assert scores.total.mae == pytest.approx(26.5)
    assert scores.faded.mae == pytest.approx((72.9 + 0.81 + 1.8 + 3) / (0.729 + 0.81 + 0.9 + 1))


@pytest.mark.parametrize("fade", [0.0, 1e-20])
def test_where_all_but_the_last_row_is_forgotten_r2_is_nan(fade):
    scores = Scores(fade)
    scores.update_many(
        [0.0, 0.0, 0.0], [0.0004553717182085051, 179.5190527438786, 7.367239857867666]
    )
    assert scores.faded.mae == pytest.approx(7.367239857867666, rel=1e-12)
    assert math.isnan(scores.faded.r2)


@pytest.mark.parametrize("prediction", [math.nan, math.inf, -math.inf, 1e308, -1e300])
def test_wild_predictions_are_counted_and_change_nothing_else(prediction):
    scores, clean = Scores(window=2), Scores(window=2)
    scores.update_many([prediction, 1.0, 2.0, prediction], [1.0, 1.0, 3.0, 2.0])
    clean.update_many([1.0, 2.0], [1.0, 3.0])
    assert (scores.unscored, scores.rows) == (2, 2)
    assert bits(scores)[:2] == bits(clean)[:2]
    scores.update(prediction, 1.0)
    assert scores.unscored == 3
    assert scores.target_mean == 2.0


def test_targets_of_any_size():
    scores = Scores(window=10)
    scores.update_many([0.0, 0.0], [1e140, -1e140])
    scores.update_many([0.0, -1e140], [1.1e140, -math.inf])
    assert (scores.rows, scores.unscored) == (2, 2)
    assert scores.total == Errors(1e140, 1e140, 0.0)
    assert scores.window == Errors(1e140, 1e140, 0.0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"fade": 1.0}, "fade = 1.0: a number from 0 to below 1"),
        ({"fade": math.nan}, "fade = nan"),
        ({"fade": "0.9"}, "fade = '0.9'"),
        ({"window": 0}, "window = 0: a number from 1 to 10000000"),
        ({"window": 2.5}, "window = 2.5: a whole number"),
        ({"window": 10**7 + 1}, "window = 10000001"),
    ],
)
def test_bad_arguments_are_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        Scores(**arguments)


@pytest.mark.parametrize(
    ("predictions", "y", "complaint"),
    [
        ([1.0], [1.0, 2.0], "there are 1 predictions and 2 targets"),
        ([[1.0]], [1.0], "predictions has shape"),
        (["1.0"], [1.0], "predictions = '1.0' at position 0 must be a number"),
        ([1.0], [None], "y = None at position 0 must be a number"),
    ],
)
def test_what_cannot_be_scored_changes_nothing(predictions, y, complaint):
    scores = Scores(window=4)
    scores.update(1.0, 2.0)
    before = bits(scores)
    with pytest.raises(ValueError, match=complaint):
        scores.update_many(predictions, y)
    assert bits(scores) == before


def changed(place, value):
    state = np.arange(10.0)
    state[place] = value
    return {"scores": state}


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ({"recent": np.zeros((0, 2))}, "window has 0 rows"),
        ({"recent": np.array(3.0)}, r"recent are float64 of shape \(\)"),
        ({"recent": np.zeros((4, 3))}, r"recent are float64 of shape \(4, 3\)"),
        ({"recent": np.zeros((4, 2), np.int64)}, r"recent are int64"),
        ({"scores": np.zeros(9)}, r"scores are float64 of shape \(9,\)"),
        ({"scores": np.zeros(10, [("a", "f8")])}, "scores are"),
        (changed(0, -1.0), "of -1.0 rows"),
        (changed(0, 0.5), "of 0.5 rows"),
        (changed(0, math.nan), "of nan rows"),
        (changed(0, math.inf), "of inf rows"),
        (changed(0, 1e300), r"of 1e\+300 rows"),
        (changed(2, -1e-9), "below 0"),
        (changed(9, -1.0), "below 0"),
        ({"unscored": np.array([-1])}, r"rows not scored is -1"),
        ({"unscored": np.zeros(1)}, r"saved unscored are float64 of shape \(1,\)"),
        ({"unscored": np.zeros(2, np.int64)}, r"saved unscored are int64 of shape \(2,\)"),
    ],
)
def test_arrays_that_no_scores_have_are_refused(entries, complaint):
    arrays = {"scores": np.arange(10.0), "recent": np.zeros((4, 2)), "unscored": np.array([0])}
    arrays |= entries
    with pytest.raises(ValueError, match=complaint):
        Scores(0.9, 4).restored(arrays)
