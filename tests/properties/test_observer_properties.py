"""What holds for every observer, on whatever rows Hypothesis finds."""

import copy
import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cases import (
    OBSERVERS,
    assert_like_reference,
    assert_moments,
    close,
    every_observer,
    one_by_one,
    streams,
    unchanged,
    watching,
)
from sapwood import EBSTObserver, Observer, QuantizerObserver, TEBSTObserver

# Cuts whose merit is that of the rows x < threshold; of TE-BST only after rounding.
REALISED = ["radius", "auto", "auto-4", "ebst"]

THREE_PARTS = st.tuples(*[streams(max_size=15)] * 3)


def heavy_tailed_rows(count=3000, targets=1):
    """Rows that make tables grow and coarsen."""
    rng = np.random.default_rng(count)
    x = rng.standard_cauchy(count) * 10.0 ** rng.integers(-3, 4, count)
    y = rng.normal(size=count if targets == 1 else (count, targets))
    return x, y, rng.uniform(0.1, 2, count)


def joined(parts):
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def assert_alike(a, b):
    """The same elements and thresholds, and merits that are equal but for rounding."""
    assert len(a) == len(b)
    means_of_x = getattr(a, "cut", None) == "prototype"
    np.testing.assert_allclose(
        a.candidates().thresholds,
        b.candidates().thresholds,
        rtol=1e-12 if means_of_x else 0,
        atol=1e-12 if means_of_x else 0,
    )
    scale = a.total.variance(ddof=0)
    for ours, theirs in zip(a.candidates().merits, b.candidates().merits, strict=True):
        assert close(ours, Fraction(theirs), scale, 1e-9)


@every_observer
def test_it_is_an_observer(make):
    assert isinstance(make(), Observer)


@every_observer
@given(rows=streams(), cuts=st.lists(st.integers(0, 40), max_size=3))
def test_a_batch_is_a_loop_of_updates_to_the_last_bit(make, rows, cuts):
    looped = one_by_one(make(), *rows).to_bytes()
    assert watching(make(), *rows).to_bytes() == looped
    batches = make()
    bounds = [0, *sorted(cuts), len(rows[0])]
    for start, stop in itertools.pairwise(bounds):
        batches.update_many(*(column[start:stop] for column in rows))
    assert batches.to_bytes() == looped


@every_observer
@pytest.mark.parametrize("targets", [1, 3])
def test_a_large_batch_is_a_loop_of_updates_to_the_last_bit(make, targets):
    rows = heavy_tailed_rows(targets=targets)
    looped = one_by_one(make(targets=targets), *rows)
    assert watching(make(targets=targets), *rows).to_bytes() == looped.to_bytes()


@every_observer
def test_weights_that_are_not_given_are_ones(make):
    x, y, _ = heavy_tailed_rows(200)
    plain = watching(make(), x, y).to_bytes()
    assert watching(make(), x, y, np.ones(200)).to_bytes() == plain
    assert one_by_one(make(), x, y).to_bytes() == plain


@every_observer
def test_strided_arrays_lists_and_other_numbers_are_taken(make):
    x, y, w = (column[:20] for column in heavy_tailed_rows(60))
    x, y = np.round(x * 8), np.round(y * 8)
    expected = watching(make(), x, y, w).to_bytes()
    wide = np.stack([x, y, w], axis=1)
    assert watching(make(), *wide.T).to_bytes() == expected
    assert watching(make(), *(column[::-1][::-1] for column in (x, y, w))).to_bytes() == expected
    assert watching(make(), *(column.tolist() for column in (x, y, w))).to_bytes() == expected
    assert watching(make(), x.astype(int), y.astype(np.float32), w).to_bytes() == expected
    assert watching(make(), x.astype(object), y.astype(object), w).to_bytes() == expected
    assert one_by_one(make(), x.astype(int), y.astype(np.float32), w).to_bytes() == expected


@every_observer
@given(rows=streams())
def test_clones_have_the_same_bytes_and_go_their_own_way(make, rows):
    observer = watching(make(), *rows)
    data = observer.to_bytes()
    clones = [
        type(observer).from_bytes(data),
        type(observer).from_bytes(bytearray(data)),
        pickle.loads(pickle.dumps(observer)),
        observer.copy(),
        copy.copy(observer),
        copy.deepcopy(observer),
    ]
    for clone in clones:
        assert clone.to_bytes() == data
        assert repr(clone) == repr(observer)
    with unchanged(observer):
        clones[0].update(1.5, 2.5, 3.5)
    observer.update(1.5, 2.5, 3.5)
    assert clones[0].to_bytes() == observer.to_bytes()


@every_observer
@pytest.mark.parametrize("targets", [1, 2])
def test_clones_of_grown_observers_continue_alike(make, targets):
    x, y, w = heavy_tailed_rows(4000, targets)
    observer = watching(make(targets=targets), x[:3000], y[:3000], w[:3000])
    clone = watching(observer.copy(), x[3000:], y[3000:], w[3000:])
    assert clone.to_bytes() == watching(observer, x[3000:], y[3000:], w[3000:]).to_bytes()


@pytest.mark.parametrize("name", REALISED)
@given(rows=streams(min_size=1))
def test_the_reported_merit_is_what_the_threshold_realises(name, rows):
    x, y, w = rows
    split = watching(OBSERVERS[name](), *rows).best_split()
    if split is None:
        return
    left = x < split.threshold
    scale = naive.variance(y, w)
    assert close(split.merit, naive.vr(y, w, left), scale)
    assert_moments(split.left, y[left], w[left])
    assert_moments(split.right, y[~left], w[~left])


@pytest.mark.parametrize("name", REALISED)
def test_every_candidate_realises_its_merit(name):
    """On rows for which slots were merged, too."""
    x, y, w = heavy_tailed_rows(1000)
    thresholds, merits = watching(OBSERVERS[name](), x, y, w).candidates()
    some = slice(None, None, 1 + len(merits) // 5)
    for threshold, merit in zip(thresholds[some], merits[some], strict=True):
        assert close(merit, naive.vr(y, w, x < threshold), naive.variance(y, w))


@given(rows=streams(min_size=1))
def test_tebst_realises_its_merit_on_the_rounded_values(rows):
    x, y, w = rows
    split = watching(TEBSTObserver(), *rows).best_split()
    if split is not None:
        left = np.round(x, 3) < split.threshold
        assert close(split.merit, naive.vr(y, w, left), naive.variance(y, w))


@every_observer
@given(rows=streams())
def test_the_total_is_that_of_the_rows(make, rows):
    assert_moments(watching(make(), *rows).total, rows[1], rows[2])


@every_observer
@given(rows=streams(min_size=1, max_size=10))
def test_asking_changes_nothing(make, rows):
    observer = watching(make(), *rows)
    with unchanged(observer):
        answers = [observer.best_split(), observer.total, len(observer), observer.nbytes]
        observer.candidates().merits[:] = -1
        observer.candidates().thresholds[:] = 0
    assert answers == [observer.best_split(), observer.total, len(observer), observer.nbytes]


@every_observer
@given(rows=streams())
def test_the_empty_observer_is_the_identity_of_merge(make, rows):
    observer = watching(make(), *rows)
    data = observer.to_bytes()
    assert (observer + make()).to_bytes() == data
    assert (make() + observer).to_bytes() == data


@pytest.mark.parametrize("name", ["radius", "prototype", "auto", "ebst", "tebst"])
@given(parts=THREE_PARTS)
@settings(max_examples=50)
def test_merging_in_any_grouping_is_watching_all(name, parts):
    a, b, c = (watching(OBSERVERS[name](), *rows) for rows in parts)
    everything = joined(parts)
    with unchanged(a, b, c):
        merged = [(a + b) + c, a + (b + c), (c + b) + a]
    for result in merged:
        assert_alike(result, merged[0])
        assert_alike(result, watching(OBSERVERS[name](), *everything))
        assert_moments(result.total, *everything[1:])
    a.merge(b)
    a.merge(c)
    assert a.to_bytes() == merged[0].to_bytes()


@given(parts=THREE_PARTS)
def test_merging_more_than_the_slots_can_hold_keeps_every_promise(parts):
    """Which slots are merged depends on the order; what is said of them does not."""
    a, b, c = (watching(QuantizerObserver(slots=4), *rows) for rows in parts)
    x, y, w = joined(parts)
    for merged in ((a + b) + c, a + (b + c), (c + b) + a):
        assert min(len(np.unique(x)), 2) <= len(merged) <= 4
        assert_moments(merged.total, y, w)
        for threshold, merit in zip(*merged.candidates(), strict=True):
            assert close(merit, naive.vr(y, w, x < threshold), naive.variance(y, w))


@every_observer
def test_an_observer_can_be_merged_with_itself(make):
    rows = heavy_tailed_rows(500)
    observer = watching(make(), *rows)
    split = observer.best_split()
    observer.merge(observer)
    assert observer.best_split().threshold == split.threshold
    assert observer.best_split().merit == pytest.approx(split.merit, rel=1e-12)
    assert observer.total.n == pytest.approx(2 * rows[2].sum(), rel=1e-12)


def test_merging_outliers_keeps_resolution_and_bound():
    rng = np.random.default_rng(8)
    x, w = rng.normal(size=20_000), rng.uniform(0.5, 2, 20_000)
    y = x**3 + rng.normal(size=20_000)
    x[::1000] *= 1e9
    parts = [watching(QuantizerObserver(), x[i::4], y[i::4], w[i::4]) for i in range(4)]
    merged = (parts[0] + parts[1]) + (parts[2] + parts[3])
    assert len(merged) <= 128
    left = x < merged.best_split().threshold
    assert merged.best_split().left.n == pytest.approx(w[left].sum(), rel=1e-12)
    best = watching(EBSTObserver(), x, y, w).best_split().merit
    assert merged.best_split().merit >= 0.99 * best


@given(streams(), streams(), st.integers(-6, 6))
def test_radii_that_differ_by_a_power_of_two_merge_exactly(rows, others, power):
    fine, coarse = sorted([0.3, 0.3 * 2.0**power])
    a, b = QuantizerObserver(fine), QuantizerObserver(coarse)
    a.update_many(*rows)
    b.update_many(*others)
    expected = naive.QuantizerTwin(*joined([rows, others]), radius=coarse)
    with unchanged(a, b):
        for merged in (a + b, b + a):
            assert merged.radius == coarse
            assert_like_reference(merged, expected)


@pytest.mark.parametrize("x", [-5e-324, 5e-324, -1e-310, 1e308, -1e308])
def test_coarsening_at_the_ends_of_the_range_is_watching_with_the_coarser_radius(x):
    rows = [x, -3.0, 3.0], [2.0, 0.0, 1.0]
    merged = QuantizerObserver(4.0) + watching(QuantizerObserver(1.0), *rows)
    watched = watching(QuantizerObserver(4.0), *rows)
    np.testing.assert_array_equal(merged.candidates().thresholds, watched.candidates().thresholds)
    np.testing.assert_allclose(merged.candidates().merits, watched.candidates().merits)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (QuantizerObserver(0.1), QuantizerObserver(0.3)),
        (QuantizerObserver(0.1), QuantizerObserver(0.1 + 2**-56)),
        (QuantizerObserver(1e300), QuantizerObserver(1e-300)),
        (QuantizerObserver(0.25), QuantizerObserver()),
        (TEBSTObserver(2), TEBSTObserver(3)),
        (EBSTObserver(), TEBSTObserver()),
        (QuantizerObserver(), EBSTObserver()),
        (EBSTObserver(), EBSTObserver(targets=2)),
        (QuantizerObserver(targets=3), QuantizerObserver(targets=2)),
    ],
)
def test_what_cannot_be_merged_exactly_is_refused_and_not_changed(a, b):
    a = watching(a, *heavy_tailed_rows(50, a.targets))
    b = watching(b, *heavy_tailed_rows(50, b.targets))
    for first, second in ((a, b), (b, a)):
        with unchanged(first, second):
            with pytest.raises(ValueError, match="cannot be merged"):
                first.merge(second)
            with pytest.raises(ValueError, match="cannot be merged"):
                first + second


@every_observer
def test_what_is_no_observer_is_refused(make):
    observer = watching(make(), [1.0, 2.0], [0.0, 1.0])
    with unchanged(observer):
        with pytest.raises(ValueError, match="cannot be merged"):
            observer.merge(None)
        with pytest.raises(TypeError):
            observer + 1


# Several targets.


@pytest.mark.parametrize("name", REALISED)
@given(rows=streams(targets=3, min_size=2, max_size=15))
@settings(max_examples=50)
def test_several_targets_count_by_their_shares_of_variance(name, rows):
    x, y, w = rows
    observer = watching(OBSERVERS[name](targets=3), *rows)
    split = observer.best_split()
    for target, moments in enumerate(observer.total):
        assert_moments(moments, y[:, target], w)
    if split is None:
        return
    left = x < split.threshold
    assert close(split.merit, naive.merit(y, w, left), 1)
    for target in range(3):
        assert_moments(split.left[target], y[left, target], w[left])
        assert_moments(split.right[target], y[~left, target], w[~left])
    exact = [naive.merit(y, w, x < cut) for cut in observer.candidates().thresholds]
    assert close(split.merit, max(exact), 1)


@every_observer
def test_a_constant_target_has_no_say(make):
    x, y, w = heavy_tailed_rows(100)
    single = watching(make(), x, y, w)
    double = watching(make(targets=2), x, np.stack([y, np.full(100, 0.1)], axis=1), w)
    scale = 2 * single.total.variance(ddof=0)
    np.testing.assert_allclose(
        double.candidates().merits, single.candidates().merits / scale, rtol=1e-12
    )
    assert double.total[0] == single.total
    assert (double.total[1].mean, double.total[1].m2) == (0.1, 0)


@every_observer
def test_the_scale_and_the_offset_of_a_target_do_not_matter(make):
    x, y, w = heavy_tailed_rows(100, targets=2)
    plain = watching(make(targets=2), x, y, w)
    scaled = watching(make(targets=2), x, y * [1e-100, 1e100] + [0, 1e101], w)
    np.testing.assert_allclose(
        scaled.candidates().merits, plain.candidates().merits, rtol=1e-9, atol=1e-12
    )


@every_observer
@given(parts=st.tuples(*[streams(targets=2, max_size=9)] * 2))
@settings(max_examples=30)
def test_several_targets_merge(make, parts):
    a, b = (watching(make(targets=2), *rows) for rows in parts)
    _, y, w = joined(parts)
    for target, moments in enumerate((a + b).total):
        assert_moments(moments, y[:, target], w)
    np.testing.assert_allclose(
        (a + b).candidates().merits, (b + a).candidates().merits, rtol=1e-9, atol=1e-12
    )
