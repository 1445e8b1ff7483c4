"""The learning curve, and the log of refused rows: both stay small, however long the stream is."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_evaluate as naive
import sapwood
from sapwood.evaluate import prequential
from sapwood.evaluate.curve import POINTS, Curve
from sapwood.evaluate.recorder import Moment, rows_until_look
from sapwood.evaluate.rejections import RejectionLog
from sapwood.evaluate.result import CURVE, FURTHER
from sapwood.evaluate.scores import Scores


def scored_rows(count, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=count).cumsum()
    return y + rng.normal(size=count), y


def moment(scores, rows, seconds, interval):
    """A point of the curve, at which the model is looked at or not; its size is made up."""
    model = object() if measured_at(rows, interval) == rows else None
    return Moment(scores, seconds, rows // 50, rows * 8, model=model)


def ended(curve, scores, leaves, nbytes, seconds):
    found = curve.results(Moment(scores, seconds, leaves, nbytes))
    return found["curve"], found["speed"], found["further"]


def measured_at(row, interval=100):
    """The last row up to this one after which the size of the model was measured."""
    wide = next(each for each in range(5000, 10**9, 5000) if each % interval == 0)
    early = (100, 400, *range(1000, 20_000, 1000))
    looks = (each for each in early if each <= row and each % interval == 0)
    return max(row // wide * wide, *looks, 0)


def feed(scores, curve, rows, most=10**9, seconds_per_row=0.5):
    """Score rows in parts that end where points are due; the size of the model is made up."""
    predictions, y = rows
    start = 0
    while start < len(y):
        due = curve.interval - scores.rows % curve.interval
        stop = min(len(y), start + most, start + due)
        scores.update_many(predictions[start:stop], y[start:stop])
        curve.mark(moment(scores, scores.rows, scores.rows * seconds_per_row, curve.interval))
        start = stop


@settings(max_examples=25)
@given(count=st.integers(0, 700), seed=st.integers(0, 9), most=st.integers(1, 300))
def test_the_points_are_those_of_the_twin(count, seed, most):
    predictions, y = scored_rows(count, seed)
    scores, curve = Scores(0.9, 150), Curve()
    feed(scores, curve, (predictions, y), most)
    points, speed, _ = ended(curve, scores, count // 50, count * 8, count * 0.5)
    expected = naive.curve(predictions.tolist(), y.tolist(), 0.9, 150)
    assert points["row"].tolist() == [point[0] for point in expected]
    for point, of_twin in zip(points.tolist(), expected, strict=True):
        np.testing.assert_allclose(point[1:10], of_twin[1:], rtol=1e-7, atol=1e-9)
    measured = [measured_at(row) for row in points["row"].tolist()]
    measured[-1:] = [count] * (count > 0)
    assert points["leaves"].tolist() == [row // 50 for row in measured]
    assert points["bytes"].tolist() == [row * 8 for row in measured]
    assert speed.tolist() == [[row * 0.5, 2.0] for row in points["row"].tolist()]


@pytest.mark.parametrize("count", [39_900, 39_999, 40_000, 40_001, 80_000, 131_071])
def test_points_are_thinned_out_where_there_are_too_many(count):
    scores, curve = Scores(window=10), Curve()
    predictions, y = scored_rows(count)
    feed(scores, curve, (predictions, y))
    points, _, _ = ended(curve, scores, 0, 0, 0.0)
    assert points["row"].tolist() == naive.curve_rows(count)
    late = points[[len(points) // 2, -1]]
    for point in late:
        row = int(point["row"])
        expected = naive.errors(predictions[:row].tolist(), y[:row].tolist())
        np.testing.assert_allclose(point.tolist()[1:4], expected, rtol=1e-9)
    middle = int(late["row"][0])
    interval = 100  # of points at that row; it doubles when there are as many as there is room for
    while middle > POINTS * interval:
        interval *= 2
    assert late["bytes"].tolist()[:1] == [8 * measured_at(middle, interval)]


def test_ten_million_rows_keep_the_curve_small():
    scores, curve = Scores(window=100), Curve()
    predictions, y = scored_rows(1_000_000)
    for _ in range(10):
        feed(scores, curve, (predictions, y))
        assert (
            sum(array.nbytes for array in curve.to_arrays().values())
            <= POINTS * (CURVE.itemsize + 8 + FURTHER.itemsize) + 8
        )
    points, speed, _ = ended(curve, scores, 0, 0, 0.0)
    assert curve.interval == 100 * 2**8
    assert points["row"].tolist() == [*range(25_600, 10_000_000, 25_600), 10_000_000]
    assert len(points) == len(speed) == 391
    assert scores.rows == 10_000_000


def test_without_rows_there_is_no_point():
    points, speed, _ = ended(Curve(), Scores(), 1, 1, 0.0)
    assert (points.shape, points.dtype, speed.shape) == ((0,), CURVE, (0, 2))


def test_the_last_point_is_there_once():
    scores, curve = Scores(), Curve()
    feed(scores, curve, scored_rows(200))
    for _ in range(2):
        points, _, _ = ended(curve, scores, 3, 4, 9.0)
        assert points["row"].tolist() == [100, 200]
    scores.update(1.0, 1.0)
    points, speed, _ = ended(curve, scores, 3, 4, 102.5)
    assert points["row"].tolist() == [100, 200, 201]
    assert (points["leaves"][-1], points["bytes"][-1]) == (3, 4)
    assert speed[-1].tolist() == [102.5, 0.4]


def test_a_clock_that_stands_still_gives_no_speed():
    scores, curve = Scores(), Curve()
    feed(scores, curve, scored_rows(300), seconds_per_row=0.0)
    _, speed, _ = ended(curve, scores, 0, 0, 0.0)
    assert np.isnan(speed[:, 1]).all()


def test_rows_until_the_model_is_looked_at_again():
    rows = (0, 1, 99, 100, 250, 1600, 4999, 5000, 20_000)
    assert [rows_until_look(each, 100) for each in rows] == [
        *(100, 99, 1, 300, 150, 400, 1, 1000, 5000),
    ]
    assert [rows_until_look(each, 6400) for each in (5000, 160_000, 319_999)] == [
        *(155_000, 160_000, 1),
    ]
    for interval in (100, 200, 400):
        for row in range(1, 20_000):
            is_due = rows_until_look(row - 1, interval) == 1
            assert is_due == (measured_at(row, interval) == row and row % interval == 0)


def test_a_batch_is_cut_at_few_points():
    sizes = []

    class Counted(sapwood.HoeffdingTreeRegressor):
        def predict_learn_many(self, X, y, *more):
            sizes.append(len(y))
            return super().predict_learn_many(X, y, *more)

    found = prequential(Counted(), sapwood.streams.friedman(rows=8192))
    # A chunk of this stream ends at 4,096.
    ends = [100, 400, 1000, 2000, 3000, 4000, 4096, 5000, 6000, 7000, 8000, 8192]
    assert np.cumsum(sizes).tolist() == ends
    assert found.curve["row"].tolist() == [*range(100, 8192, 100), 8192]


@pytest.mark.parametrize("cut", [0, 99, 100, 39_999, 40_000, 41_000])
def test_a_saved_curve_goes_on_to_the_last_bit(cut):
    predictions, y = scored_rows(90_000)
    scores, curve = Scores(window=50), Curve()
    feed(scores, curve, (predictions[:cut], y[:cut]))
    saved, twin = curve.to_arrays(), Curve().restored(curve.to_arrays())
    other = scores.restored(scores.to_arrays())
    feed(scores, curve, (predictions[cut:], y[cut:]))
    feed(other, twin, (predictions[cut:], y[cut:]))
    for name, array in curve.to_arrays().items():
        assert array.tobytes() == twin.to_arrays()[name].tobytes()
    assert len(saved["curve"]) == (cut // 100 if cut < 40_000 else cut // 200)


def saved_curve():
    scores, curve = Scores(), Curve()
    feed(scores, curve, scored_rows(300))
    return curve.to_arrays()


@pytest.mark.parametrize(
    "changes",
    [
        {"curve": np.zeros(3)},
        {"curve": np.zeros((1, 3), CURVE)},
        {"curve": np.zeros(POINTS, CURVE), "curve_seconds": np.zeros(POINTS)},
        {"curve": np.zeros(3, CURVE)},
        {"curve_seconds": np.zeros(1)},
        {"curve_seconds": np.zeros(3, np.int64)},
        {"curve_interval": np.zeros(0, np.int64)},
        {"curve_interval": np.array(100)},
        {"curve_interval": np.array([0])},
        {"curve_interval": np.array([-100])},
        {"curve_interval": np.array([100.0])},
        {"curve_interval": np.array([200])},
    ],
)
def test_arrays_that_no_curve_has_are_refused(changes):
    with pytest.raises(ValueError, match="the saved"):
        Curve().restored(saved_curve() | changes)


# Rows that were refused


def where_by_twin(places, rows_read):
    """Bins of the smallest width that 64 of them suffice with."""
    width = 64
    while width * 64 < rows_read:
        width *= 2
    ends = [min(end, rows_read) for end in range(width, rows_read + width, width)]
    return [
        [end, sum(start <= place < end for place in places)] for start, end in pairwise([0, *ends])
    ]


@given(
    steps=st.lists(st.integers(1, 700), max_size=60),
    after=st.integers(0, 20_000),
    reasons=st.lists(st.sampled_from("abc"), min_size=1, max_size=5),
    cut=st.integers(0, 60),
)
def test_refusals_are_counted_by_reason_and_place(steps, after, reasons, cut):
    places = np.cumsum(steps, dtype=int).tolist()
    rows_read = (places[-1] + 1 if places else 0) + after
    log = RejectionLog()
    for number, place in enumerate(places):
        if number == cut:
            log = RejectionLog.from_header(log.to_header())
        log.add(reasons[number % len(reasons)], place)
    found = log.finished(rows_read)
    names = [reasons[number % len(reasons)] for number in range(len(places))]
    counts = {name: names.count(name) for name in set(names)}
    assert found.count == log.count == len(places)
    assert list(found.reasons.items()) == sorted(counts.items(), key=lambda item: (-item[1], item))
    assert found.where.tolist() == where_by_twin(places, rows_read)
    assert found.where.dtype == np.int64


@pytest.mark.parametrize("rows_read", [0, 1, 64, 65, 4096, 4097, 10**9, 10**15])
def test_the_places_of_refusals_stay_few(rows_read):
    where = RejectionLog().finished(rows_read).where
    assert where.shape == (len(where), 2)
    assert len(where) <= 64
    assert where[-1:, 0].tolist() == [rows_read] * (rows_read > 0)


GOOD = {"reasons": {"a": 2}, "width": 64, "bins": [2] + [0] * 63}


@pytest.mark.parametrize(
    "changes",
    [
        {"reasons": ["a"]},
        {"reasons": {"a": -1}},
        {"reasons": {"a": 2.0}},
        {"reasons": {"a": 3}},
        {"width": 0},
        {"width": "64"},
        {"width": None},
        {"bins": [2]},
        {"bins": None},
        {"bins": [math.inf] + [0] * 63},
        {"bins": [3, -1] + [0] * 62},
    ],
)
def test_refusals_that_were_never_saved_are_refused(changes):
    assert RejectionLog.from_header(GOOD).to_header() == GOOD
    with pytest.raises((TypeError, ValueError), match="saved rejections"):
        RejectionLog.from_header(GOOD | changes)
