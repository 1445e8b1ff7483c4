"""The moments against exact rational arithmetic on the stored doubles."""

import copy
import itertools
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import close
from naive import exact_moments
from sapwood import Moments


def alternating(first, low, high):
    return [first] + [low, high] * 500


# The univariate sets of NIST's Statistical Reference Datasets that try an algorithm's accuracy.
NIST = {
    "NumAcc1": [10000001.0, 10000003.0, 10000002.0],
    "NumAcc2": alternating(1.2, 1.1, 1.3),
    "NumAcc3": alternating(1000000.2, 1000000.1, 1000000.3),
    "NumAcc4": alternating(10000000.2, 10000000.1, 10000000.3),
}
nist = pytest.mark.parametrize("values", NIST.values(), ids=NIST.keys())

values = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), max_size=30)
weighted_values = st.lists(
    st.tuples(st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(1e-3, 1e3)), max_size=30
)


def moments_of(y, w=None):
    moments = Moments()
    moments.update_many(y, w)
    return moments


def digits_of_deviation(moments, y):
    """Log relative error of the sample's standard deviation: about its correct digits."""
    exact = exact_moments(y)[2] / (len(y) - 1)
    deviation = Fraction(math.sqrt(moments.variance()))
    error = abs(deviation**2 / exact - 1) / 2
    return -math.log10(error) if error else math.inf


def merged_at_random(parts, rng):
    """Merge statistics two at a time, whichever come first, until one is left."""
    parts = list(parts)
    while len(parts) > 1:
        a = parts.pop(rng.randrange(len(parts)))
        b = parts.pop(rng.randrange(len(parts)))
        parts.append(a + b)
    return parts[0]


def assert_equal_to_the_bit(a, b):
    assert a.__reduce__() == b.__reduce__()


@nist
def test_nist_sets_by_update(values):
    moments = Moments()
    for value in values:
        moments.update(value)
    assert digits_of_deviation(moments, values) >= 14


@nist
def test_nist_sets_by_update_many(values):
    assert digits_of_deviation(moments_of(values), values) >= 14


@nist
@pytest.mark.parametrize("most_parts", [2, 5, 50, 1001])
def test_nist_sets_by_merging_any_partition(values, most_parts):
    rng = random.Random(most_parts)
    for _ in range(20):
        shuffled = rng.sample(values, len(values))
        cuts = sorted(rng.choices(range(len(values) + 1), k=most_parts - 1))
        bounds = [0, *cuts, len(values)]
        parts = [moments_of(shuffled[a:b]) for a, b in itertools.pairwise(bounds)]
        merged = merged_at_random(parts, rng)
        assert merged.n == len(values)
        assert digits_of_deviation(merged, values) >= 14


@given(weighted_values)
def test_weighted_moments_are_exact(rows):
    y, w = [row[0] for row in rows], [row[1] for row in rows]
    n, mean, m2 = exact_moments(y, w)
    moments = moments_of(y, w)
    assert close(moments.n, n, n, 1e-14)
    assert close(moments.mean, mean, max(map(abs, y), default=0), 1e-14)
    assert close(moments.m2, m2, m2, 1e-13)


@given(weighted_values)
def test_update_many_is_update_in_a_loop(rows):
    looped = Moments()
    for y, w in rows:
        looped.update(y, w)
    batch = moments_of([row[0] for row in rows], [row[1] for row in rows])
    assert_equal_to_the_bit(batch, looped)


def test_a_whole_weight_counts_as_so_many_rows():
    weighted = moments_of([1.5, 4.0, -2.5], [3, 1, 2])
    repeated = moments_of([1.5, 1.5, 1.5, 4.0, -2.5, -2.5])
    assert weighted.n == repeated.n == 6
    assert weighted.mean == pytest.approx(repeated.mean, rel=1e-15)
    assert weighted.m2 == pytest.approx(repeated.m2, rel=1e-15)


@pytest.mark.parametrize("factor", [1e-300, 1e-9, 0.1, 3.0, 1e9, 1e300])
def test_the_scale_of_the_weights_changes_neither_mean_nor_population_variance(factor):
    rng = np.random.default_rng(0)
    y, w = rng.normal(7, 2, 500), rng.uniform(0.1, 5, 500)
    plain, scaled = moments_of(y, w), moments_of(y, w * factor)
    assert scaled.n == pytest.approx(plain.n * factor, rel=1e-13)
    assert scaled.mean == pytest.approx(plain.mean, rel=1e-14)
    assert scaled.variance(ddof=0) == pytest.approx(plain.variance(ddof=0), rel=1e-13)


def test_variance_divides_by_the_weight_less_ddof():
    moments = moments_of([1.0, 2.0, 6.0])
    assert moments.m2 == 14
    assert moments.variance() == 7
    assert moments.variance(ddof=0) == pytest.approx(14 / 3, rel=1e-15)
    assert moments.variance(ddof=1.5) == pytest.approx(14 / 1.5, rel=1e-15)


@pytest.mark.parametrize("y", [[], [5.0]])
def test_a_variance_that_is_not_defined_is_zero(y):
    assert moments_of(y).variance() == 0
    assert moments_of(y).variance(ddof=0) == 0


def test_weights_below_one_have_a_population_variance():
    assert moments_of([1.0, 3.0], [0.25, 0.25]).variance(ddof=0) == 1


def test_the_empty_statistic():
    empty = Moments()
    assert (empty.n, empty.mean, empty.m2) == (0, 0, 0)
    assert empty + empty == empty
    assert empty - empty == empty


@given(values)
def test_the_empty_statistic_is_the_identity_of_merge_and_subtraction(y):
    moments = moments_of(y)
    assert_equal_to_the_bit(moments + Moments(), moments)
    assert_equal_to_the_bit(Moments() + moments, moments)
    assert_equal_to_the_bit(moments - Moments(), moments)


@given(values, values, values)
def test_merging_in_any_grouping_is_watching_all(a, b, c):
    n, mean, m2 = exact_moments(a + b + c)
    a, b, c = moments_of(a), moments_of(b), moments_of(c)
    scale = max(abs(part.mean) + math.sqrt(part.m2) for part in (a, b, c))
    for merged in ((a + b) + c, a + (b + c), (c + a) + b):
        assert merged.n == n
        assert close(merged.mean, mean, scale, 1e-14)
        assert close(merged.m2, m2, m2, 1e-13)


@given(values, values)
def test_subtracting_what_was_merged_gives_it_back(a, b):
    n, mean, m2 = exact_moments(a)
    whole = moments_of(a + b)
    rest = whole - moments_of(b)
    assert rest.n == n
    if n:
        # What the whole could not hold is lost, and grows where little is left.
        scale = (1 + len(b) / len(a)) * (abs(whole.mean) + math.sqrt(whole.m2) + 1)
        assert close(rest.mean, mean, scale, 1e-14)
        assert close(rest.m2, m2, whole.m2 + scale**2, 1e-13)
    else:
        assert (rest.mean, rest.m2) == (0, 0)


@given(weighted_values, weighted_values)
def test_subtraction_never_gives_a_negative_m2(a, b):
    whole = moments_of([y for y, _ in a], [w for _, w in a])
    part = moments_of([y for y, _ in b], [w for _, w in b])
    rest = whole - part
    assert rest.m2 >= 0
    assert rest.n >= 0


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9])
def test_subtraction_far_from_zero_is_never_negative(offset):
    rng = np.random.default_rng(int(offset) % 1000)
    for _ in range(500):
        small, large = rng.normal(offset, 1e-3, 3), rng.normal(offset, 1e3, 100)
        rest = moments_of(np.concatenate([small, large])) - moments_of(large)
        assert rest.m2 >= 0
        assert rest.n == 3


@pytest.mark.parametrize("w", [None, [0.1, 0.2, 0.3]])
def test_subtracting_everything_or_more_gives_the_empty_statistic(w):
    moments = moments_of([1.0, 2.0, 4.0], w)
    more = moments + moments_of([9.0])
    for nothing in (moments - moments, moments - more):
        assert_equal_to_the_bit(nothing, Moments())


def test_a_rounding_error_of_the_weights_is_not_a_rest():
    whole = moments_of([1.0, 2.0, 4.0], [0.1, 0.2, 0.3])
    part = moments_of([4.0, 2.0, 1.0], [0.3, 0.2, 0.1])
    assert whole.n > part.n
    assert_equal_to_the_bit(whole - part, Moments())


@pytest.mark.parametrize("operation", ["__add__", "__sub__", "__iadd__", "__isub__"])
def test_the_other_operand_is_not_changed(operation):
    moments, other = moments_of([1.0, 2.0, 7.0, 9.0]), moments_of([2.0, 7.0])
    before = other.__reduce__()
    getattr(moments, operation)(other)
    assert other.__reduce__() == before


def test_plain_operators_leave_the_left_operand_and_augmented_ones_change_it():
    moments, other = moments_of([1.0, 2.0]), moments_of([6.0])
    same = moments
    assert moments + other == moments_of([1.0, 2.0, 6.0])
    assert moments == moments_of([1.0, 2.0])
    moments += other
    assert same is moments
    assert (moments.n, moments.mean, moments.m2) == (3, 3, 14)
    moments -= other
    assert same is moments
    assert (moments.n, moments.mean, moments.m2) == (2, 1.5, 0.5)


def test_an_operand_that_is_no_statistic_is_refused():
    with pytest.raises(TypeError):
        Moments() + 1
    with pytest.raises(TypeError):
        1 - Moments()
    moments = moments_of([1.0])
    with pytest.raises(TypeError):
        moments += None
    assert moments == moments_of([1.0])


def test_equality_compares_values_and_there_is_no_hash():
    assert moments_of([1.0, 3.0]) == Moments(2, 2, 2)
    assert moments_of([1.0, 3.0]) != Moments(2, 2, 2.5)
    assert Moments() != 0
    with pytest.raises(TypeError):
        hash(Moments())


def test_repr_can_be_evaluated():
    moments = moments_of([1.0, 3.0])
    assert repr(moments) == "Moments(n=2.0, mean=2.0, m2=2.0)"
    assert eval(repr(moments)) == moments


@pytest.mark.parametrize(
    "clone",
    [
        Moments.copy,
        copy.copy,
        copy.deepcopy,
        *(lambda m, p=p: pickle.loads(pickle.dumps(m, p)) for p in range(6)),
    ],
)
def test_clones_are_exact_and_independent(clone):
    moments = moments_of([0.1, 0.2, 0.3, 1e10], [1, 0.7, 2, 3])
    twin = clone(moments)
    assert_equal_to_the_bit(twin, moments)
    twin.update(5.0)
    assert twin.n == 7.7
    assert moments.n == 6.7


@pytest.mark.parametrize(
    ("y", "w"),
    [
        ([1.7e308, -1.7e308], None),  # their distance
        ([0.0, 1e200], None),  # its square
        ([0.0, 1e100], [1e150, 1e150]),  # the weighted square
        ([1.0, 1.0], [1e308, 1e308]),  # the weight
    ],
)
def test_an_overflow_is_said_and_changes_nothing(y, w):
    w = [1.0, 1.0] if w is None else w
    moments = moments_of([2.0, 3.0])
    before = moments.__reduce__()
    with pytest.raises(OverflowError):
        moments.update_many(y, w)
    assert moments.__reduce__() == before
    first = moments_of(y[:1], w[:1])
    before = first.__reduce__()
    with pytest.raises(OverflowError):
        first.update(y[1], w[1])
    with pytest.raises(OverflowError):
        first += moments_of(y[1:], w[1:])
    assert first.__reduce__() == before


@pytest.mark.parametrize("y", [1.7e308, -1.7e308, 5e-324, -0.0])
def test_any_finite_double_is_legal(y):
    moments = moments_of([y, y, y])
    assert (moments.n, moments.mean, moments.m2) == (3, y, 0)
    single = Moments()
    single.update(y)
    assert (single.n, single.mean, single.m2) == (1, y, 0)


@pytest.mark.parametrize(
    ("y", "w", "named"),
    [
        (math.nan, 1.0, "y = nan"),
        (math.inf, 1.0, "y = inf"),
        (-math.inf, 1.0, "y = -inf"),
        (1.0, 0.0, "w = 0.0"),
        (1.0, -1.0, "w = -1.0"),
        (1.0, math.nan, "w = nan"),
        (1.0, math.inf, "w = inf"),
    ],
)
def test_a_bad_value_is_named_with_its_position_and_changes_nothing(y, w, named):
    moments = moments_of([2.0, 3.0])
    before = moments.__reduce__()
    with pytest.raises(ValueError, match=f"^{named} "):
        moments.update(y, w)
    with pytest.raises(ValueError, match=f"^{named} at position 2 "):
        moments.update_many([1.0, 2.0, y, math.nan], [1.0, 2.0, w, 1.0])
    assert moments.__reduce__() == before


@pytest.mark.parametrize(
    ("y", "w", "message"),
    [
        ([1.0, 2.0], [1.0], "w has 1 values and y has 2"),
        ([[1.0, 2.0]], None, r"y has shape \(1, 2\)"),
        (1.0, None, r"y has shape \(\)"),
        ([1.0], 1.0, r"w has shape \(\)"),
        (["1", "2"], None, "'1'"),
        ([1.0, None], None, "y = None at position 1"),
        ([1j], None, "complex"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), None, "y = nan at position 1"),
    ],
)
def test_arrays_that_are_not_columns_of_numbers_are_refused(y, w, message):
    moments = moments_of([2.0, 3.0])
    before = moments.__reduce__()
    with pytest.raises(ValueError, match=message):
        moments.update_many(y, w)
    assert moments.__reduce__() == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": -1.0},
        {"n": math.nan},
        {"n": math.inf},
        {"n": 1.0, "mean": math.nan},
        {"n": 1.0, "m2": -1.0},
        {"n": 1.0, "m2": math.inf},
        {"mean": 1.0},
        {"m2": 1.0},
    ],
)
def test_moments_that_nothing_can_have_cannot_be_made(arguments):
    with pytest.raises(ValueError, match=" = "):
        Moments(**arguments)
