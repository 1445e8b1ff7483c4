"""The automatic radius keeps its resolution where the data is: regret against E-BST."""

import numpy as np
import pytest

import naive
from cases import close, watching
from sapwood import EBSTObserver, QuantizerObserver


def normal(mean, deviation):
    return lambda rng, count: rng.normal(mean, deviation, count)


def uniform(bound):
    return lambda rng, count: rng.uniform(-bound, bound, count)


def bimodal(low, high):
    return lambda rng, count: np.where(
        rng.random(count) < 0.5, rng.normal(*low, count), rng.normal(*high, count)
    )


# The nine distributions of the paper's study.
DISTRIBUTIONS = {
    "N(0, 1)": normal(0, 1),
    "N(0, 0.1)": normal(0, 0.1),
    "N(0, 7)": normal(0, 7),
    "U(-1, 1)": uniform(1),
    "U(-0.1, 0.1)": uniform(0.1),
    "U(-7, 7)": uniform(7),
    "N(-1, 1) | N(1, 1)": bimodal((-1, 1), (1, 1)),
    "N(-0.1, 0.1) | N(0.1, 0.1)": bimodal((-0.1, 0.1), (0.1, 0.1)),
    "N(-7, 7) | N(7, 0.1)": bimodal((-7, 7), (7, 0.1)),
}
HALVES = [slice(0, 250), slice(250, 500)]
TARGETS = {"linear": lambda x: 3 * x + 1, "cubic": lambda x: 2 * x**3}


def regret(x, y, **arguments):
    """The share of E-BST's merit that is lost, and the observer."""
    observer = watching(QuantizerObserver(**arguments), x, y)
    best = watching(EBSTObserver(), x, y).best_split().merit
    return 1 - observer.best_split().merit / best, observer


def test_regret_over_the_distributions_of_the_paper():
    rng = np.random.default_rng(0)
    regrets = []
    for sample in DISTRIBUTIONS.values():
        for target in TARGETS.values():
            for count in (200, 1000, 5000, 20_000):
                x = sample(rng, count)
                lost, observer = regret(x, target(x))
                assert len(observer) <= 128
                regrets.append(lost)
    assert max(regrets) <= 0.003
    assert np.mean(regrets) <= 0.0002
    assert min(regrets) >= -1e-12  # no observer beats the exhaustive one


@pytest.fixture(params=TARGETS.values(), ids=TARGETS.keys())
def stream(request):
    """A feature of N(0, 1), and a target of it with a little noise."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=30_000)
    return x, request.param(x) + rng.normal(0, 0.1, len(x))


@pytest.mark.parametrize("outliers", ["from the start", "later", "negative too", "of any size"])
def test_one_value_in_a_thousand_times_1e9(stream, outliers):
    x, y = stream
    far = np.arange(len(x)) % 1000 == (0 if outliers == "from the start" else 999)
    x = np.where(far, x * 1e9, x)
    if outliers == "of any size":
        x[far] = np.sign(x[far]) * 10.0 ** np.linspace(1, 300, far.sum())
    elif outliers != "negative too":
        x[far] = np.abs(x[far])
    lost, observer = regret(x, y)
    assert len(observer) <= 128
    assert lost <= 0.01


@pytest.mark.parametrize("first", [1e9, -1e9, 1e300, -1e-300, 1e5])
def test_a_first_value_far_from_the_rest(stream, first):
    x, y = stream
    x[0] = first
    lost, observer = regret(x, y)
    assert len(observer) <= 128
    assert lost <= 0.01


@pytest.mark.parametrize("offset", [1e12, -1e12])
def test_a_feature_far_from_zero(stream, offset):
    x, y = stream
    lost, observer = regret(offset + x, y)
    assert 50 <= len(observer) <= 128
    assert lost <= 0.003


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_a_feature_of_any_scale(stream, scale):
    x, y = stream
    lost, observer = regret(x * scale, y)
    assert 50 <= len(observer) <= 128
    assert lost <= 0.003


def test_a_power_of_two_as_scale_changes_nothing_but_the_scale(stream):
    x, y = stream
    plain, scaled = regret(x, y)[1], regret(x * 2.0**100, y)[1]
    assert scaled.radius == plain.radius * 2.0**100
    np.testing.assert_array_equal(
        scaled.candidates().thresholds, plain.candidates().thresholds * 2.0**100
    )
    np.testing.assert_array_equal(scaled.candidates().merits, plain.candidates().merits)


@pytest.mark.parametrize(
    "second", [lambda x: x + 1000, lambda x: x - 30, lambda x: 100 * x], ids=["up", "down", "wide"]
)
def test_a_shift_of_the_feature_keeps_the_resolution(stream, second):
    """Where the second half lies elsewhere, a cut within it is found as well as before."""
    x, y = stream
    half = len(x) // 2
    y[:half] = y[half:].mean()
    moved = np.concatenate([x[:half], second(x[half:])])
    lost, observer = regret(moved, y)
    assert len(observer) <= 128
    assert lost <= 0.01


def test_heavy_tails_keep_the_middle_fine():
    rng = np.random.default_rng(2)
    x = rng.standard_cauchy(50_000)
    y = np.where(x < 0.5, 0.0, 1.0) + rng.normal(0, 0.1, len(x))
    lost, observer = regret(x, y)
    assert len(observer) <= 128
    assert lost <= 0.01


def test_the_number_of_slots_is_never_exceeded_on_the_way():
    rng = np.random.default_rng(3)
    x = rng.standard_cauchy(2000) * 10.0 ** rng.integers(-5, 6, 2000)
    for slots in (2, 3, 17, 128):
        observer = QuantizerObserver(slots=slots)
        for value in x:
            observer.update(value, 1.0)
            assert len(observer) <= slots
        assert len(observer) >= slots / 4
        assert observer.total.n == 2000


def scales(rng, low, high):
    return 10.0 ** rng.uniform(low, high, 500)


STREAMS = {
    "heavy tails": lambda rng: rng.standard_cauchy(500) * scales(rng, -5, 5),
    "all scales": lambda rng: rng.choice([-1, 1], 500) * scales(rng, -300, 300),
    "the whole range": lambda rng: rng.choice([-1, 1], 500) * scales(rng, 300, 308.2),
    "subnormal": lambda rng: rng.choice([-1, 1], 500) * scales(rng, -323, -300),
    "whole numbers": lambda rng: np.round(10 * rng.standard_cauchy(500)),
    "ascending": lambda rng: np.sort(rng.normal(size=500)),
    "a walk": lambda rng: np.cumsum(rng.normal(size=500)),
    "two places": lambda rng: np.concatenate([rng.normal(size=250), rng.normal(1e12, 1, 250)]),
}


@pytest.mark.parametrize("slots", [5, 20, 128])
@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS.keys())
def test_cuts_are_right_wherever_the_slots_had_to_go(make, slots):
    """However slots were merged, a cut's merit is that of the rows below its threshold."""
    rng = np.random.default_rng(slots)
    x, y, w = make(rng), rng.normal(size=500), rng.integers(1, 9, 500) / 8
    whole = watching(QuantizerObserver(slots=slots), x, y, w)
    halves = [watching(QuantizerObserver(slots=slots), x[h], y[h], w[h]) for h in HALVES]
    for observer in (whole, halves[0] + halves[1]):
        assert slots / 4 <= len(observer) <= slots
        assert observer.copy().to_bytes() == observer.to_bytes()
        thresholds, merits = observer.candidates()
        assert (thresholds[:-1] < thresholds[1:]).all()
        for cut in range(0, len(merits), 1 + len(merits) // 4):
            exact = naive.vr(y, w, x < thresholds[cut])
            assert close(merits[cut], exact, naive.variance(y, w))


@pytest.mark.parametrize("codes", [np.arange(128), np.arange(-64, 64) * 3, 10.0 ** np.arange(128)])
def test_values_that_repeat_keep_a_slot_each_while_they_fit(codes):
    rng = np.random.default_rng(4)
    x = rng.permutation(np.repeat(codes, 20)).astype(float)
    observer = watching(QuantizerObserver(), x, x % 7)
    assert len(observer) == 128
    thresholds = observer.candidates().thresholds
    assert (np.sort(codes)[:-1] < thresholds).all()
    assert (thresholds <= np.sort(codes)[1:]).all()
    np.testing.assert_allclose(
        observer.candidates().merits,
        watching(EBSTObserver(), x, x % 7).candidates().merits,
        rtol=1e-9,
        atol=1e-15,
    )


def test_one_code_too_many_costs_only_cuts_that_are_far_from_the_best():
    codes = np.arange(129.0)
    observer = watching(QuantizerObserver(), codes, codes)
    # Cells of width 2 would be 65, more than half of the slots; a sixteenth of these is freed.
    assert observer.radius == 4
    assert len(observer) == 128 - 8
    assert observer.best_split().merit == watching(EBSTObserver(), codes, codes).best_split().merit
    lost = np.setdiff1d(codes[1:], observer.candidates().thresholds)
    assert ((lost < 16) | (lost > 112)).all()
