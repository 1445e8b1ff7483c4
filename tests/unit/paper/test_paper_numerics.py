"""Section 3's argument: each method is right where it should be, and wrong where we say so."""

import numpy as np
import pytest

from sapwood.paper.numerics import METHODS, SCENARIOS, describe_numerics, measure_numerics


@pytest.fixture(scope="module")
def measured():
    return measure_numerics()


def worst(measured, scenario: int, method: str, column: str, offset: float) -> float:
    rows = measured[
        (measured["scenario"] == SCENARIOS[scenario].name)
        & (measured["method"] == method)
        & (measured["offset"] == offset)
    ]
    return float(rows[column].max())


def test_all_methods_agree_near_zero() -> None:
    slots = np.random.default_rng(0).normal(size=(64, 50))
    for method in METHODS.values():
        left, right = method(slots)
        assert left[20] == pytest.approx(slots[:21].var(ddof=1))
        assert right[20] == pytest.approx(slots[21:].var(ddof=1))


def test_sums_of_squares_lose_the_cut_and_moments_do_not(measured) -> None:
    naive, papers, ours = METHODS
    assert worst(measured, 0, naive, "regret", 1e10) > 0.1
    assert worst(measured, 0, papers, "regret", 1e10) == 0
    assert worst(measured, 0, ours, "variance_error", 1e12) < 1e-14


def test_subtraction_loses_the_small_side(measured) -> None:
    _, papers, ours = METHODS
    assert worst(measured, 1, papers, "variance_error", 1e6) > 1
    assert worst(measured, 1, papers, "negative", 1e6) > 0
    assert worst(measured, 1, ours, "variance_error", 1e6) < 1e-14


def test_the_text_is_computed(measured) -> None:
    naive = measured[
        (measured["scenario"] == SCENARIOS[0].name) & (measured["method"] == next(iter(METHODS)))
    ]
    text = describe_numerics(measured)
    assert f"{naive['variance_error'].max():.1e}" in text
    assert f"{naive['regret'].max():.1%}" in text
