"""Observers of classes, compared with a search over all splits and with river's splitters."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.tree.split_criterion import GiniSplitCriterion, InfoGainSplitCriterion
from river.tree.splitter import ExhaustiveSplitter, GaussianSplitter

from sapwood.observers import (
    ExhaustiveClassObserver,
    GaussianClassObserver,
    HistogramClassObserver,
    QuantizerClassObserver,
)
from sapwood.observers.class_counts import split_merits

OBSERVERS = (
    ExhaustiveClassObserver,
    HistogramClassObserver,
    GaussianClassObserver,
    lambda: QuantizerClassObserver(0.1),
)
CRITERIA = {"gini": GiniSplitCriterion(0.0), "information_gain": InfoGainSplitCriterion(0.0)}


def rows_of(seed=1, count=400, classes=3):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, count)
    return rng.normal(codes * 1.5, 1.0).round(3), codes, rng.choice([0.5, 1.0, 2.0], count)


def impurity(counts, criterion):
    shares = [count / sum(counts) for count in counts if count > 0]
    if criterion == "gini":
        return 1 - sum(share * share for share in shares)
    return -sum(share * math.log2(share) for share in shares)


def searched(x, codes, w, criterion):
    """Return the best split of all rows and its merit, slowly."""
    wide = max(codes) + 1
    best = (-1.0, None)
    values = sorted(set(x))
    whole = np.bincount(codes, w, minlength=wide)
    for low, high in pairwise(values):
        threshold = low + (high - low) / 2
        left = np.bincount(codes[x < threshold], w[x < threshold], minlength=wide)
        right = whole - left
        after = sum(side.sum() * impurity(side, criterion) for side in (left, right))
        merit = impurity(whole, criterion) - after / whole.sum()
        best = max(best, (merit, threshold), key=lambda pair: pair[0])
    return best


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_exhaustive_split_is_the_best_of_all(criterion, seed):
    x, codes, w = rows_of(seed)
    observer = ExhaustiveClassObserver()
    observer.update_many(x, codes, w)
    split = observer.best_split(criterion)
    merit, threshold = searched(x, codes, w, criterion)
    assert split.merit == pytest.approx(merit)
    assert split.threshold == pytest.approx(threshold)
    left = x < split.threshold
    assert split.left == pytest.approx(np.bincount(codes[left], w[left], minlength=3))
    assert split.left + split.right == pytest.approx(np.bincount(codes, w))
    thresholds, merits = observer.candidates(criterion)
    assert len(thresholds) == len(merits) == len(set(x)) - 1
    assert merits.max() == pytest.approx(merit)


def of_river(splitter, x, codes, criterion):
    """Return the best split of one of river's splitters, and the reduction of impurity."""
    for value, code in zip(x.tolist(), codes.tolist(), strict=True):
        splitter.update(value, code, 1.0)
    counts = np.bincount(codes).astype(float)
    own = dict(enumerate(counts))
    found = splitter.best_evaluated_split_suggestion(CRITERIA[criterion], own, "x", True)
    # Its merit for Gini is one minus the impurity that is left.
    offset = 1 - impurity(counts, criterion) if criterion == "gini" else 0.0
    return found.split_info, found.merit - offset


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", [4, 5, 6])
def test_splits_are_those_of_river(criterion, seed):
    x, codes, _ = rows_of(seed, classes=2)
    gaussian, exhaustive = GaussianClassObserver(), ExhaustiveClassObserver()
    gaussian.update_many(x, codes)
    exhaustive.update_many(x, codes)
    threshold, merit = of_river(GaussianSplitter(), x, codes, criterion)
    split = gaussian.best_split(criterion)
    assert split.threshold == pytest.approx(threshold)
    assert split.merit == pytest.approx(merit, rel=1e-3)
    # River's exhaustive splitter does not report what its split brings on these rows.
    threshold, _ = of_river(ExhaustiveSplitter(), x, codes, criterion)
    left = np.bincount(codes[x <= threshold], minlength=2)[None].astype(float)
    brings = split_merits(left, np.bincount(codes) - left, criterion)[0]
    assert exhaustive.best_split(criterion).merit >= brings - 1e-12


@pytest.mark.parametrize("make", OBSERVERS)
def test_many_rows_are_one_by_one(make):
    x, codes, w = rows_of(5, 150)
    x[::13] = np.nan
    many, one = make(), make()
    many.update_many(x, codes, w)
    for row in zip(x.tolist(), codes.tolist(), w.tolist(), strict=True):
        one.update(*row)
    assert len(many) == len(one)
    assert many.total == pytest.approx(one.total)
    mine, theirs = many.candidates(), one.candidates()
    assert mine[0] == pytest.approx(theirs[0])
    assert mine[1] == pytest.approx(theirs[1], abs=1e-12)


@pytest.mark.parametrize("make", [ExhaustiveClassObserver, GaussianClassObserver, OBSERVERS[-1]])
def test_merging_is_watching_both(make):
    x, codes, w = rows_of(6)
    codes[:200] %= 2  # the second part has a class more
    whole, first, second = make(), make(), make()
    whole.update_many(x, codes, w)
    first.update_many(x[:200], codes[:200], w[:200])
    second.update_many(x[200:], codes[200:], w[200:])
    first.merge(second)
    assert len(first) == len(whole)
    assert first.total == pytest.approx(whole.total)
    assert first.best_split().merit == pytest.approx(whole.best_split().merit)
    assert first.best_split().threshold == pytest.approx(whole.best_split().threshold)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=2, max_size=40))
def test_slots_and_bins_that_are_fine_enough_lose_nothing(rows):
    x, codes = np.array([a for a, _ in rows], float), np.array([b for _, b in rows])
    exact, bins, slots = ExhaustiveClassObserver(), HistogramClassObserver(8), OBSERVERS[-1]()
    for observer in (exact, bins, slots):
        observer.update_many(x, codes)
    best = exact.best_split()
    for observer in (bins, slots):
        found = observer.best_split()
        assert (found is None) == (best is None)
        if best is not None:
            assert found.merit == pytest.approx(best.merit)


@pytest.mark.parametrize("make", OBSERVERS)
def test_nothing_to_split(make):
    observer = make()
    assert observer.best_split() is None
    observer.update_many([1.0, 1.0], [0, 1])
    assert observer.best_split() is None
    observer.update_many([np.nan], [1])
    assert observer.total.tolist() == [1.0, 1.0]


def test_each_side_has_its_share():
    observer = ExhaustiveClassObserver()
    observer.update_many([0.0, *range(1, 100)], [1, *([0] * 99)])
    assert observer.best_split().threshold == 0.5
    assert observer.best_split(min_share=0.05).threshold > 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([1.0], [0.5]), "a whole number is expected"),
        (([1.0], [-1]), "codes are from -1 to -1"),
        (([1.0], [0, 1]), "codes have shape"),
        (([1.0], [0], [-1.0]), "w"),
    ],
)
def test_what_is_rejected(given, words):
    observer = ExhaustiveClassObserver()
    with pytest.raises(ValueError, match=words):
        observer.update_many(*given)
    assert len(observer) == 0
    with pytest.raises(ValueError, match="criterion"):
        split_merits(np.ones((1, 2)), np.ones((1, 2)), "entropy")
