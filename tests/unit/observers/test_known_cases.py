"""Cases with a known answer, for every observer; most are failures of other libraries."""

import numpy as np
import pytest

from cases import assert_moments, every_observer, one_by_one, watching


@every_observer
@pytest.mark.parametrize("watch", [watching, one_by_one])
def test_a_perfect_split_has_its_full_merit(make, watch):
    """In river's quantizer it has none: the slot right of the cut counts as left."""
    x, y = [0.1] * 30 + [0.9] * 10, [1.0] * 30 + [5.0] * 10
    split = watch(make(), x, y).best_split()
    assert 0.1 < split.threshold <= 0.9
    assert split.merit == pytest.approx(0.75 * 0.25 * 16, rel=1e-15)
    assert (split.left.n, split.left.mean, split.left.m2) == (30, 1, 0)
    assert (split.right.n, split.right.mean, split.right.m2) == (10, 5, 0)


@every_observer
def test_the_left_side_counts_its_own_rows_only(make):
    """In river's quantizer it claims them all."""
    rng = np.random.default_rng(7)
    x = rng.integers(-8, 8, 2000) / 4
    y = np.where(x < -0.25, 0.0, 1.0) + rng.normal(0, 0.1, 2000)
    observer = watching(make(), x, y)
    split = observer.best_split()
    left = x < split.threshold
    assert split.left.n == left.sum() < 1500
    assert split.right.n == (~left).sum()
    assert_moments(split.left, y[left])
    assert_moments(split.right, y[~left])
    assert observer.total.n == 2000


@every_observer
@pytest.mark.parametrize("x", [[], [3.0], [3.0, 3.0], [-0.0, 0.0]])
def test_fewer_than_two_elements_cannot_be_split(make, x):
    """River's quantizer raises an error."""
    observer = watching(make(), x, [2.0] * len(x))
    assert observer.best_split() is None
    assert [len(part) for part in observer.candidates()] == [0, 0]
    assert len(observer) == (1 if x else 0)
    assert observer.total.n == len(x)
    assert observer.total.mean == (2 if x else 0)


@every_observer
def test_of_equal_merits_the_first_cut_is_taken(make):
    observer = watching(make(), [3, 1, 0, 2], [4, 0, 4, 0])
    thresholds, merits = observer.candidates()
    assert merits[0] == merits[2] == pytest.approx(4 / 3)
    assert merits[1] == 0
    assert observer.best_split().threshold == thresholds[0]


@every_observer
def test_a_far_block_leaves_the_other_side_exact(make):
    """The paper's subtraction loses all digits of the right side's M2."""
    rng = np.random.default_rng(1)
    x = np.arange(500.0)
    y = np.where(x < 250, 1e6 + rng.normal(0, 1, 500), rng.normal(0, 1e-3, 500))
    split = watching(make(), x, y).best_split()
    left = x < split.threshold
    assert abs(left.sum() - 250) <= 6
    assert_moments(split.left, y[left])
    assert_moments(split.right, y[~left])


@every_observer
@pytest.mark.parametrize("offset", [1e9, -1e9, 1e12])
def test_targets_far_from_zero_cost_no_accuracy(make, offset):
    """MOA's sums of squares turn into NaN at y + 1e9."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=300), rng.integers(-2000, 2000, 300) / 1024
    near, far = watching(make(), x, y), watching(make(), x, y + offset)
    assert len(far) == len(near)
    variance = near.total.variance(ddof=0)
    np.testing.assert_allclose(
        far.candidates().merits, near.candidates().merits, rtol=0, atol=1e-13 * variance
    )
    assert far.best_split().threshold == near.best_split().threshold
    assert far.best_split().left.m2 == pytest.approx(near.best_split().left.m2, rel=1e-13)
    assert far.total.mean == pytest.approx(near.total.mean + offset, rel=1e-15)
