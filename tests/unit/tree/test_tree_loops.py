"""The inner loops of linear models compute the same bits on every processor."""

import numpy as np
import pytest
from sapwood.tree._learning import step_of_models


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
