"""The calibration of probabilities, compared with its reference implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_classes import NaiveCalibrator
from sapwood.classify._calibration import Calibrator
from sapwood.corrector._pending import PendingPredictions


def stream(classes, count, seed=1):
    """Ratings that are too timid, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(classes, 0.4), count)
    codes = (truth.cumsum(axis=1) > rng.random((count, 1))).argmax(axis=1)
    ratings = 0.6 * truth + 0.4 / classes + rng.normal(0, 0.05, truth.shape)
    return ratings, codes.astype(np.int64), rng.choice([0.25, 1.0, 3.0], count)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_it_is_its_reference(classes):
    ratings, codes, weights = stream(classes, 400)
    own, naive = Calibrator(), NaiveCalibrator()
    own.widen(classes)
    for row, code, w in zip(ratings.tolist(), codes.tolist(), weights.tolist(), strict=True):
        assert own.probabilities_of(row) == pytest.approx(naive.probabilities(row), rel=1e-9)
        own.score_one(row, classes, code, w)
        naive.score(row, code, w)
    assert own.table[1:] == pytest.approx(
        [*naive.exponents, *naive.curvatures, *naive.losses], rel=1e-9
    )
    assert own.table[1] > 1.3  # as ratings were too timid
    totals = np.bincount(codes, weights, minlength=classes)
    assert own.class_weights[:classes] == pytest.approx(totals)


def test_many_rows_are_one_by_one_to_the_last_bit():
    ratings, codes, weights = stream(4, 300)
    one, many = Calibrator(), Calibrator()
    one.widen(4)
    many.widen(4)
    expected = []
    for row, code, w in zip(ratings.tolist(), codes.tolist(), weights.tolist(), strict=True):
        expected.append(one.probabilities_of(row))
        one.score_one(row, 4, code, w)
    found = many.score_many(ratings, 4, codes, weights, returns=True)
    assert found.tolist() == expected
    assert many.table.tobytes() == one.table.tobytes()
    assert many.class_weights.tobytes() == one.class_weights.tobytes()
    again = many.probabilities(ratings[:3], 4)
    assert again.tolist() == [many.probabilities_of(row) for row in ratings[:3].tolist()]


def test_probabilities_become_calibrated():
    ratings, codes, _ = stream(3, 20_000)
    own = Calibrator()
    own.widen(3)
    found = own.score_many(ratings, 3, codes, np.ones(len(codes)), returns=True)
    assert found.sum(axis=1) == pytest.approx(1.0)
    late = slice(5000, None)
    loss = -np.log(found[late][np.arange(15_000), codes[late]]).mean()
    plain = np.clip(ratings, 1e-3, 1)
    plain /= plain.sum(axis=1, keepdims=True)
    before = -np.log(plain[late][np.arange(15_000), codes[late]]).mean()
    assert loss < before - 0.02
    top = found[late].max(axis=1)
    right = found[late].argmax(axis=1) == codes[late]
    for low in (0.4, 0.6, 0.8):
        among = (top > low) & (top <= low + 0.1)
        assert right[among].mean() == pytest.approx(top[among].mean(), abs=0.04)


@given(
    st.lists(st.floats(-2, 2), min_size=2, max_size=6),
    st.lists(st.tuples(st.integers(0, 1), st.floats(0.01, 0.99)), max_size=30),
)
def test_the_predicted_class_never_changes(ratings, labels):
    own = Calibrator()
    own.widen(len(ratings))
    for code, rating in labels:
        own.score_one([rating, 1 - rating] + [0.0] * (len(ratings) - 2), len(ratings), code, 1.0)
    found = own.probabilities_of(ratings)
    clipped = np.clip(ratings, 0, 1)
    assert sum(found) == pytest.approx(1.0)
    order = np.argsort(clipped, kind="stable")
    assert (np.diff(np.array(found)[order]) >= 0).all()
    assert found.index(max(found)) == clipped.argmax()


def test_a_label_is_scored_by_what_was_issued():
    own, expected, pending = Calibrator(), Calibrator(), PendingPredictions(3, 8)
    pending.put_key(2**63 + 7, np.array([0.0, 0.9, 0.1]))
    own.score_one([0.5, 0.5], 2, 1, 1.0, pending, 2**63 + 7)
    expected.score_one([0.9, 0.1], 2, 1, 1.0)
    assert own.table.tobytes() == expected.table.tobytes()
    assert pending.count == 0


def test_a_class_that_was_not_known_is_counted_and_not_scored():
    own = Calibrator()
    own.widen(3)
    own.score_one([0.9, 0.1, 0.0], 2, 2, 5.0)
    assert own.table[0] == 1.0
    assert (own.table[1:5] == 1.0).all()
    assert own.class_weights.tolist() == [0.0, 0.0, 5.0]


def test_weights_of_any_size_leave_numbers():
    own = Calibrator()
    for w in (1e-300, 1e300, 1.0, 5e-324):
        own.score_one([0.3, 0.7], 2, 0, w)
    assert np.isfinite(own.table).all()
    assert sum(own.probabilities_of([0.3, 0.7])) == pytest.approx(1.0)


def test_what_does_not_fit_is_rejected():
    own = Calibrator()
    with pytest.raises(ValueError, match="no such class"):
        own.score_one([0.5, 0.5], 2, 2, 1.0)
    with pytest.raises(ValueError, match="more ratings than classes"):
        own.probabilities_of([0.3] * 3)
    with pytest.raises(ValueError, match="do not fit"):
        own.score_many(np.zeros((2, 2)), 2, np.zeros(1, np.int64), np.ones(2))
    with pytest.raises(ValueError, match="no such class"):
        own.score_many(np.zeros((1, 2)), 2, np.array([5]), np.ones(1))
    with pytest.raises(ValueError, match="13 doubles"):
        Calibrator(np.zeros(3))
