"""The quantizer, of a fixed radius and of an automatic one, against its twins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from cases import (
    assert_finite_answers,
    assert_like_reference,
    close,
    ordinary_y,
    run_apart,
    streams,
    watching,
)
from sapwood import QuantizerObserver

radii = st.sampled_from([0.01, 0.1, 0.25, 1 / 3, 1.0, 7.0, 1e3])


@given(streams(), radii, st.sampled_from(["border", "prototype"]))
def test_a_fixed_radius_against_its_twin(rows, radius, cut):
    observer = watching(QuantizerObserver(radius, cut=cut), *rows)
    twin = naive.QuantizerTwin(*rows, radius=radius, cut="border")
    if cut == "border":
        assert_like_reference(observer, twin)
    else:
        # The merits are those of the slots; only the thresholds lie elsewhere.
        scale = naive.variance(twin.y, twin.w) if len(twin) else 0
        merits = zip(observer.candidates().merits, twin.merits(), strict=True)
        assert all(close(*pair, scale) for pair in merits)


@given(streams(), radii)
def test_a_prototype_cut_lies_midway_between_the_mean_x_of_neighbouring_slots(rows, radius):
    thresholds = watching(QuantizerObserver(radius, cut="prototype"), *rows).candidates()[0]
    twin = naive.QuantizerTwin(*rows, radius=radius, cut="prototype")
    np.testing.assert_allclose(thresholds, twin.thresholds(), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("slots", [2, 3, 4, 7, 16, 33])
@pytest.mark.parametrize("spread", [np.ones_like, np.exp, lambda z: np.exp(40 * z)])
def test_an_automatic_radius_against_its_twin(slots, spread):
    rng = np.random.default_rng(slots)
    x = rng.normal(size=150)
    y, w = x + rng.normal(size=150), rng.integers(1, 9, 150) / 8
    x = x * spread(rng.normal(size=150))
    observer = watching(QuantizerObserver(slots=slots), x, y, w)
    twin = naive.AutoTwin(x, y, w, slots=slots)
    assert observer.radius == twin.radius
    assert_like_reference(observer, twin)


def test_the_default_is_an_automatic_radius_with_128_slots_and_border_cuts():
    default = QuantizerObserver()
    assert (default.adaptive, default.cut, default.targets) == (True, "border", 1)
    chosen = QuantizerObserver(radius="auto", slots=128, cut="border", targets=1)
    assert default.to_bytes() == chosen.to_bytes()
    assert not QuantizerObserver(0.5).adaptive
    assert QuantizerObserver(0.5).radius == 0.5


# Any finite double is legal as x.


def test_border_and_prototype_of_known_slots():
    x, y = [0.1, 0.3, 1.8, 1.9], [0, 0, 1, 1]
    border = watching(QuantizerObserver(0.5), x, y)
    prototype = watching(QuantizerObserver(0.5, cut="prototype"), x, y)
    assert border.best_split().threshold == 0.5
    assert prototype.best_split().threshold == pytest.approx((0.2 + 1.85) / 2)
    assert border.best_split().merit == prototype.best_split().merit == 0.25


@pytest.mark.parametrize("radius", [0.1, 1 / 3, 0.7, 1e-9, 1e9])
def test_a_border_is_the_smallest_double_of_the_next_slot(radius):
    observer = watching(QuantizerObserver(radius), np.arange(-50, 50) * radius, np.arange(100))
    for threshold in observer.candidates().thresholds:
        below = math.nextafter(threshold, -math.inf)
        key = naive.QuantizerTwin([], [], radius=radius).key
        assert key(below) == key(threshold) - 1


def test_minus_zero_is_zero():
    for radius in (0.25, "auto"):
        observer = watching(QuantizerObserver(radius), [-0.0, 0.0, -5e-324], [1.0, 1.0, 3.0])
        assert len(observer) == 2
        assert observer.best_split().left.n == 1
        assert observer.best_split().threshold == 0


@pytest.mark.parametrize(
    ("radius", "x"),
    [
        (1e3, [-1.7e308, -1e308, 1e308, 1.7e308]),
        (1e308, [-1.7e308, -0.5e308, 0.5e308, 1.7e308]),
        (0.25, [-5e-324, 0.0, 0.25, 1e308]),
        (5e-324, [-5e-324, 0.0, 5e-324, 1e-323]),
        (1e-300, [-1e-280, 1e-300, 1.0, 1e7]),  # keys beyond 2**63
        (1e-300, [1.0, math.nextafter(1, 2), 2.0, 1e7]),
        ("auto", [-1.7e308, -1e308, 1e308, 1.7e308]),
        ("auto", [-1e-323, -5e-324, 5e-324, 1e308]),
        ("auto", [1.0, math.nextafter(1, 2), 2.0, 1e7]),
    ],
)
def test_extreme_values_are_told_apart(radius, x):
    observer = QuantizerObserver(radius)
    for place, value in enumerate(x):
        observer.update(value, 1.0 if place >= 2 else 0.0)
    assert len(observer) == 4
    split = observer.copy().best_split()
    assert x[1] < split.threshold <= x[2]
    assert split.merit == 0.25
    assert (split.left.n, split.right.n) == (2, 2)
    for place, threshold in enumerate(observer.candidates().thresholds):
        assert x[place] < threshold <= x[place + 1]


def test_quotients_beyond_the_largest_double_share_a_slot():
    observer = watching(QuantizerObserver(1e-300), [-1e308, 1.0, 1e300, 1e308], [5, 0, 1, 1])
    assert len(observer) == 3
    assert_finite_answers(observer)
    assert observer.best_split().left.n == 1
    assert observer.best_split().threshold > -1e308


def test_neighbouring_doubles_are_parted_by_a_prototype_cut():
    low, high = 1.0, math.nextafter(1, 2)
    split = watching(QuantizerObserver(1e-16, cut="prototype"), [low, high], [0, 1]).best_split()
    assert split.merit == 0.25
    assert low < split.threshold <= high


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_a_few_slots_suffice_for_all_doubles(slots):
    printed = run_apart(
        f"""
import numpy as np
from sapwood import QuantizerObserver
x = np.array([-1.7e308, -1e308, -1e-308, -0.0, 5e-324, 1e-5, 1.0, 1e307, 1.7e308])
for order in (x, x[::-1], np.roll(x, 4)):
    observer = QuantizerObserver(slots={slots})
    observer.update_many(order, order > 0)
    assert 2 <= len(observer) <= {slots}, len(observer)
    split = observer.best_split()
    assert np.isfinite(split.threshold), split
    assert split.left.n == (x < split.threshold).sum(), split
    assert split.merit > 0, split
    assert observer.copy().to_bytes() == observer.to_bytes()
print("well")
""",
    )
    assert printed == "well\n"


@given(st.lists(ordinary_y, min_size=2, max_size=19), st.sampled_from([1e9, -1e12]))
def test_targets_far_from_zero_cost_no_accuracy(y, offset):
    """MOA's sums of squares turn into NaN at y + 1e9."""
    y = np.round(y, 2) + offset
    x = np.arange(len(y)) % 5
    observer = watching(QuantizerObserver(1.0), x, y)
    assert_like_reference(observer, naive.QuantizerTwin(x, y, radius=1.0))
