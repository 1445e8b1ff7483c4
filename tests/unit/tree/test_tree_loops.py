"""The inner loops of a row compute the same bits on every processor."""

import itertools

import numpy as np
import pytest
from sapwood.tree._learning import (
    products_of_four,
    slots_of_row,
    step_of_models,
    steps_of_row,
)


@pytest.mark.parametrize("terms", [4, 8, 12, 20, 40])
def test_loops_for_the_processor_at_hand_compute_the_same_bits(terms):
    rng = np.random.default_rng(terms)
    square = rng.normal(size=(terms, terms))
    found = []
    for plain in (True, False):
        covariance = np.ascontiguousarray(square @ square.T)
        block = np.random.default_rng(1).normal(size=(terms, 4)) * 1e3
        z = np.random.default_rng(2).normal(size=terms)
        steps = np.array([0.3, 1e-7, -12.0, 0.0])
        v, predicted = np.zeros(terms), np.zeros(4)
        unusual = step_of_models(covariance, block, z, steps, v, predicted, plain)
        assert unusual == pytest.approx(z @ square @ square.T @ z)
        assert predicted == pytest.approx(
            np.random.default_rng(1).normal(size=(terms, 4)).T @ z * 1e3
        )
        found.append((unusual, covariance, block, v, predicted))
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize("averaging", [True, False])
@pytest.mark.parametrize("features", [1, 4, 7, 12])
def test_terms_and_mixtures_have_the_same_bits(features, averaging):
    rng = np.random.default_rng(features)
    found = []
    columns = rng.normal(size=(3, features)) * 10
    columns[0, 0] = np.nan
    columns[0, features // 2] = 1e9
    ranges = np.column_stack([columns[0], columns[0]])
    errors = np.array([2.0, 0.5, 0.0, 3.0, 1e9])
    for plain in (True, False):
        z = np.zeros(features)
        experts = np.array([0.5, 7.0, -9.0, 0.25, 1.0])
        mean, is_beyond = steps_of_row(columns, ranges, z, experts, errors, averaging, plain)
        assert not is_beyond
        assert experts.tolist() == [0.5, 3.0, -3.0, 0.25, 1.0]
        assert mean == pytest.approx(-3.0)  # the expert without errors
        found.append((z, experts, mean))
        for place, move in itertools.product(range(features), (-1.0, 1.0)):
            beyond = ranges.copy()
            beyond[place] += move
            _, is_beyond = steps_of_row(columns, beyond, z, experts, errors, averaging, plain)
            assert is_beyond == (not np.isnan(columns[0, place]))
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one, two)
    distance = (columns[0] - columns[1]) * columns[2]
    expected = np.clip(np.where(np.abs(distance) <= 1e4, distance, 0.0), -100.0, 100.0)
    assert np.array_equal(found[0][0], expected)


@pytest.mark.parametrize("features", [1, 4, 6, 11])
def test_slots_of_rows_are_the_same(features):
    rng = np.random.default_rng(features)
    grids = np.column_stack([np.zeros(features), np.full(features, 0.5), np.full(features, 2.0)])
    grids = np.column_stack([grids, np.zeros(features)])
    for trial in range(50):
        row = rng.normal(size=features) * 5
        row[rng.random(features) < 0.2] = np.nan
        laid = grids.copy()
        laid[rng.random(features) < 0.2, 2] = 0.0
        one, two = (slots_of_row(laid, row, 8, 3, plain) for plain in (True, False))
        assert one == two
        for place, (x, start) in enumerate(zip(row, one, strict=True)):
            slot = 8 if np.isnan(x) else min(max(int(2 * x), 0), 7)
            is_known = np.isnan(x) or laid[place, 2] > 0
            assert start == (27 * place + 3 * slot if is_known else -1), trial


def test_sums_of_products_have_the_same_bits():
    rng = np.random.default_rng(1)
    start, joint, d = rng.normal(size=10), rng.normal(size=4), rng.normal(size=4)
    found = []
    for plain in (True, False):
        own = start.copy(), joint.copy()
        products_of_four(*own, d, plain)
        found.append(own)
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one, two)
    triangle = np.tril_indices(4)
    assert found[0][0] == pytest.approx(0.99 * start + 0.3 * np.outer(d, d)[triangle])
    assert found[0][1] == pytest.approx(0.99 * joint + 0.3 * d * 1.7)
