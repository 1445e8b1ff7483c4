"""The kernel answers for a leaf as the plain twin does, and merits mean what they say."""

import itertools
from copy import deepcopy
from functools import cache

import numpy as np
import pytest

import naive
from naive_leaf import Cut, Slots, Sums, merit_of
from naive_tree import MEASURES
from reference_cases import (
    close,
    learned,
    made,
    pairs,
    rows_of,
    same_leaves,
    same_splits,
    stream_of,
)
from sapwood.tree import _review, _search, _split

# -- functions of the kernel ----------------------------------------------------------------------


@cache
def both_grown(name):
    return learned(stream_of(name)[:800], *made(grace_period=40))


def grown(name):
    """A tree in the midst of its growth, its twin, and pairs of their leaves that saw rows."""
    tree, twin = deepcopy(both_grown(name))
    found = [(number, leaf) for number, leaf in pairs(tree, twin) if leaf.y.weight >= 20]
    assert len(found) > 1
    return tree, twin, found


kernel_streams = pytest.mark.parametrize("name", ["missing", "weights", "categories"])


def cut_at(leaf, cut):
    """Where a cut of the twin is, for the kernel: slot or place in the order, and subset."""
    watch = leaf.watches[cut.feature]
    elements = watch.elements(cut.measure)
    if isinstance(watch, Slots):
        return elements[cut.after][0], 0
    return cut.after, sum(1 << code for code, _ in elements[: cut.after + 1])


@kernel_streams
def test_best_cuts(name):
    tree, twin, leaves = grown(name)
    for number, leaf in leaves:
        found = _search.best_cuts(tree._kernel, number, twin.min_share)
        for measure, (merit, second, *where) in zip(MEASURES["best"], found, strict=True):
            best, other = twin.best_cuts(leaf, measure)
            close([merit, second], [best.merit, other.merit])
            if other.merit < (1 - 1e-9) * best.merit:  # and not a tie that rounding decides
                place = list(leaf.watches).index(best.feature)
                assert where == [place, *cut_at(leaf, best)]


@kernel_streams
def test_sides_and_thresholds_of_all_cuts(name):
    tree, _, leaves = grown(name)
    for number, leaf in leaves:
        for feature, (label, watch) in enumerate(leaf.watches.items()):
            elements = watch.elements("target")
            for after in range(len(elements) - 1):
                cut = Cut(0.0, after, label, "target")
                place, subset = cut_at(leaf, cut)
                sides, seen = _search.sides_of(tree._kernel, number, feature, place, subset)
                parts = elements[: after + 1], elements[after + 1 :]
                expected = [*map(Sums.of, parts), watch.missing]
                actual = np.array(sides, dtype=float)
                actual[:, 1] += actual[:, 0] * tree._kernel.leaf_table[number]["origin"]
                close(actual, [(each.weight, each.target, each.residual) for each in expected])
                if isinstance(watch, Slots):
                    threshold = _search.threshold_of(tree._kernel, number, feature, place)
                    assert threshold == watch.threshold(after)
                else:
                    assert seen == sum(1 << code for code, _ in elements)


@kernel_streams
def test_deviations_and_review(name):
    tree, twin, leaves = grown(name)
    for number, leaf in leaves:
        for feature, (label, watch) in enumerate(leaf.watches.items()):
            deviation = watch.scale(twin.levels.get(label))[1]
            close(_review.deviation_of(tree._kernel, number, feature), deviation)
    for number, leaf in leaves:
        _review.review(tree._kernel, number)
        twin.review(leaf)
    same_leaves(tree, twin)


@kernel_streams
@pytest.mark.parametrize("measure", MEASURES["best"])
def test_children(name, measure):
    """Every leaf is split by its best cut, earned or not."""
    tree, twin, leaves = grown(name)
    for number, leaf in leaves:
        cut = twin.best_cuts(leaf, measure)[0]
        if cut.merit == 0.0:
            continue
        feature = list(leaf.watches).index(cut.feature)
        place, subset = cut_at(leaf, cut)
        of_target = measure == "target"
        _split.split_by(tree._kernel, number, feature, place, subset, cut.merit, of_target)
        twin.split(leaf, cut)
    same_splits(tree, twin)
    same_leaves(tree, twin)


@pytest.mark.parametrize("left", [9, 10, 11, 29, 30, 31])
def test_the_least_share_of_a_side(left):
    """Ten of forty rows are exactly a quarter."""
    rng = np.random.default_rng(left)
    a = np.arange(40) >= left
    order = rng.permutation(40)
    columns = {"a": a[order].astype(float), "b": [f"l{int(each)}" for each in a[order]]}
    stream = rows_of(columns, (a + 0.1 * rng.normal(size=40))[order])
    tree, twin = learned(stream, *made(max_depth=0, min_share=0.25))
    for measure, cut in zip(
        MEASURES["best"], _search.best_cuts(tree._kernel, 0, 0.25), strict=True
    ):
        close(cut[:2], [each.merit for each in twin.best_cuts(twin.root, measure)], 1.0)


# -- what merits mean -----------------------------------------------------------------------------


def tree_of_one_leaf(stream, **parameters):
    tree, twin = learned(stream, *made(max_depth=0, **parameters))
    return tree._kernel, twin


@pytest.mark.parametrize("seed", range(8))
def test_no_subset_of_categories_is_better_than_the_best_prefix(seed):
    """All subsets are tried, on the rows themselves."""
    rng = np.random.default_rng(seed)
    labels, w = rng.integers(0, 7, 60), rng.integers(1, 9, 60) / 4
    y = rng.normal(size=7)[labels] + rng.normal(size=60)
    stream = rows_of({"label": [f"l{i}" for i in labels]}, y, w)
    kernel, twin = tree_of_one_leaf(stream, min_share=1e-6)
    target, step, _ = _search.best_cuts(kernel, 0, 1e-6)
    every = [
        np.isin(labels, subset)
        for size in range(1, 7)
        for subset in itertools.combinations(range(7), size)
    ]
    close(target[0], max(float(naive.vr(y, w, left)) for left in every))
    sums = twin.root.watches["label"].places.items()
    residuals = [
        merit_of([pair for pair in sums if pair[0] in subset], right, "step")
        for size in range(1, 7)
        for subset in itertools.combinations(dict(sums), size)
        if (right := [pair for pair in sums if pair[0] not in subset])
    ]
    close(step[0], max(residuals))


def squares_left(place, residual, w):
    """The weighted squares that a least-squares line leaves."""
    A = np.sqrt(w)[:, None] * np.column_stack([np.ones(len(place)), place])
    b = np.sqrt(w) * residual
    return np.sum((b - A @ np.linalg.lstsq(A, b)[0]) ** 2)


def test_a_line_on_either_side_is_what_least_squares_fits_to_the_rows():
    rng = np.random.default_rng(2)
    place, w = rng.integers(0, 12, 200), rng.integers(1, 9, 200) / 4
    residual = np.abs(place - 4.0) + rng.normal(size=200)
    watch = Slots(12, (1.0, 11.0))
    elements = {slot: Sums() for slot in sorted(set(place.tolist()))}
    for slot, r, weight in zip(place.tolist(), residual, w, strict=True):
        elements[slot].add(weight, 0.0, r)
        watch.add(slot + 0.5, weight, 0.0, r)
    elements = list(elements.items())
    for cut in range(len(elements) - 1):
        left = place <= elements[cut][0]
        parts = [squares_left(place[side], residual[side], w[side]) for side in (left, ~left)]
        gained = squares_left(place, residual, w) - sum(parts)
        merit = merit_of(elements[: cut + 1], elements[cut + 1 :], "line")
        close(merit, gained / w.sum(), np.var(residual))
