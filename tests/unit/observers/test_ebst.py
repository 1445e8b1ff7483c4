"""E-BST and TE-BST against their twins, and on streams that break recursive trees."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from cases import anything_finite, assert_like_reference, streams, watching
from sapwood import EBSTObserver, QuantizerObserver, TEBSTObserver


@given(streams(x=anything_finite, max_size=25))
def test_ebst_against_its_twin(rows):
    assert_like_reference(watching(EBSTObserver(), *rows), naive.EBSTTwin(*rows))


@given(streams(), st.integers(0, 6))
def test_tebst_against_its_twin(rows, digits):
    observer = watching(TEBSTObserver(digits=digits), *rows)
    assert_like_reference(observer, naive.TEBSTTwin(*rows, digits=digits))


@pytest.mark.parametrize(
    "order", [np.arange(60), np.arange(60)[::-1], np.random.default_rng(0).permutation(60)]
)
def test_the_order_of_the_rows_does_not_matter(order):
    rng = np.random.default_rng(3)
    x, y, w = rng.normal(size=60), rng.normal(size=60), rng.integers(1, 9, 60) / 8
    observer = watching(EBSTObserver(), x[order], y[order], w[order])
    assert_like_reference(observer, naive.EBSTTwin(x, y, w))


@pytest.mark.parametrize(
    ("x", "threshold"),
    [
        ([-1.7e308, 1.7e308], 0.0),
        ([2.0**1022, 2.0**1023], 1.5 * 2.0**1022),
        ([1.0, math.nextafter(1, 2)], math.nextafter(1, 2)),
        ([0.0, 5e-324], 5e-324),
        ([-5e-324, 0.0], 0.0),
        ([5e-324, 1e-323], 1e-323),
        ([5e-324, 2.5e-323], 1.5e-323),
        ([2.0**70, 2.0**70 + 2.0**20], 2.0**70 + 2.0**19),
    ],
)
def test_extreme_values_are_told_apart(x, threshold):
    split = watching(EBSTObserver(), x, [0, 1]).copy().best_split()
    assert split.threshold == threshold
    assert split.merit == 0.25
    assert (split.left.n, split.right.n) == (1, 1)


def test_values_are_rounded_to_the_digits_that_are_kept():
    observer = watching(TEBSTObserver(digits=1), [0.04, -0.04, 0.11, 0.12, 0.31], [0, 0, 1, 1, 1])
    assert len(observer) == 3
    np.testing.assert_allclose(observer.candidates().thresholds, [0.05, 0.2], rtol=1e-15)
    assert observer.best_split().left.n == 2


def test_values_too_large_for_decimals_are_kept_as_they_are():
    observer = watching(TEBSTObserver(digits=3), [1e300, -1e300, 2.0**52 + 1, 2.0**52], range(4))
    assert len(observer) == 4
    assert observer.candidates().thresholds[1] == 2.0**52 + 1  # there is none between the two


def test_tebst_without_digits_watches_whole_numbers():
    observer = watching(TEBSTObserver(digits=0), [0.5, 1.4, 0.6, 1.5, 2.5], [0, 1, 1, 2, 2])
    assert len(observer) == 3  # halves go to the even number: 0 | 1, 1 | 2, 2
    assert observer.candidates().thresholds.tolist() == [0.5, 1.5]
    assert observer.best_split().threshold == 1.5


def depth(observer):
    """How many nodes there are on the longest way from the root of the tree."""
    children = observer._store.arrays()[-1][: len(observer)] >> 1
    level = np.setdiff1d(np.arange(len(observer)), children)
    assert len(level) == 1
    levels = 0
    while len(level):
        levels += 1
        level = children[level].ravel()
        level = level[level >= 0]
    return levels


@pytest.mark.parametrize("descending", [False, True])
def test_a_sorted_stream_makes_no_deep_tree(descending):
    count, step = 200_000, 120_000
    x = np.arange(float(count))
    order = slice(None, None, -1 if descending else 1)
    observer = watching(EBSTObserver(), x[order], (x >= step)[order])
    for clone in (observer, copy.deepcopy(observer), pickle.loads(pickle.dumps(observer))):
        assert len(clone) == count
        split = clone.best_split()
        assert split.threshold == step - 0.5
        assert split.merit == pytest.approx(0.6 * 0.4, rel=1e-12)
        assert (split.left.n, split.left.mean, split.left.m2) == (step, 0, 0)
        assert (split.right.n, split.right.mean, split.right.m2) == (count - step, 1, 0)
        assert clone.to_bytes() == observer.to_bytes()
        # A row takes as many steps: 18 at best; 25 is the most that an AVL tree needs, a list has
        # 200,000.
        assert 18 <= depth(clone) <= 25


def test_ebst_finds_what_a_quantizer_of_tiny_radius_finds():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=3000), rng.normal(size=3000)
    ebst, fine = watching(EBSTObserver(), x, y), watching(QuantizerObserver(1e-12), x, y)
    np.testing.assert_allclose(ebst.candidates()[1], fine.candidates()[1], rtol=1e-9, atol=1e-18)
    assert ebst.best_split().left == fine.best_split().left
