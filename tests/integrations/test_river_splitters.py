"""The observers as splitters of river's trees: right where river's own are not."""

import copy
import math
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.forest import ARFRegressor
from river.stats import Var
from river.tree import HoeffdingAdaptiveTreeRegressor, HoeffdingTreeRegressor
from river.tree.nodes.branch import NumericBinaryBranch
from river.tree.split_criterion import VarianceReductionSplitCriterion
from river.tree.splitter import QOSplitter
from river.tree.utils import BranchFactory, calculate_object_size

from cases import streams
from sapwood.river import EBSTSplitter, QuantizerSplitter, TEBSTSplitter
from tree_cases import friedman, r2

SPLITTERS = {
    "radius": lambda: QuantizerSplitter(radius=0.25),
    "auto": QuantizerSplitter,
    "auto-4": lambda: QuantizerSplitter(slots=4),
    "ebst": EBSTSplitter,
    "tebst": TEBSTSplitter,
}
every_splitter = pytest.mark.parametrize("make", SPLITTERS.values(), ids=SPLITTERS)
NAN, INF = math.nan, math.inf


def variance(y, w=None):
    """River's statistics of some rows, by its own updates."""
    total = Var()
    for value, weight in zip(y, np.ones(len(y)) if w is None else w, strict=True):
        total.update(float(value), float(weight))
    return total


def watching(splitter, x, y, w=None):
    for value, target, weight in zip(x, y, np.ones(len(x)) if w is None else w, strict=True):
        splitter.update(value, float(target), float(weight))
    return splitter


def best(splitter, before, min_samples=1):
    criterion = VarianceReductionSplitCriterion(min_samples_split=min_samples)
    return splitter.best_evaluated_split_suggestion(criterion, before, "x", True)


def is_null(suggestion):
    return suggestion.feature is None and suggestion.merit == -INF


def sides_by_river(threshold, x):
    """Which rows river's branch sends to the left."""
    branch = NumericBinaryBranch(None, "x", threshold, 0, None, None)
    return np.array([branch.branch_no({"x": value}) == 0 for value in x], dtype=bool)


def assert_same(ours, expected):
    assert ours.n == pytest.approx(expected.n, rel=1e-12)
    scale = 1 + abs(expected.mean.get())
    assert ours.mean.get() == pytest.approx(expected.mean.get(), rel=1e-9, abs=1e-9 * scale)
    assert ours.get() == pytest.approx(expected.get(), rel=1e-6, abs=1e-6 * scale**2)


# -- river's faults -------------------------------------------------------------------------------

TWO_SLOTS = [0.5] * 100 + [1.5] * 100, [0.0] * 100 + [1.0] * 100


def test_river_gives_a_perfect_split_of_two_slots_no_merit():
    x, y = TWO_SLOTS
    assert best(watching(QOSplitter(radius=1.0), x, y), variance(y)).merit == 0.0


@every_splitter
def test_a_perfect_split_has_the_whole_variance_as_merit(make):
    x, y = TWO_SLOTS
    before = variance(y)
    split = best(watching(make(), x, y), before)
    assert split.merit == pytest.approx(before.get(), rel=1e-14)
    assert split.feature == "x"
    assert (split.numerical_feature, split.multiway_split) == (True, False)
    assert 0.5 <= split.split_info < 1.5
    assert [(side.n, side.mean.get(), side.get()) for side in split.children_stats] == [
        (100, 0.0, 0.0),
        (100, 1.0, 0.0),
    ]


STEP = np.random.default_rng(1).normal(size=2000)
STEP_Y = np.where(STEP < -0.2, 0.0, 5.0) + 0.1 * np.random.default_rng(2).normal(size=2000)


def test_rivers_left_side_goes_on_growing_after_the_cut():
    split = best(watching(QOSplitter(radius=0.25), STEP, STEP_Y), variance(STEP_Y))
    true = sides_by_river(split.split_info, STEP)
    assert split.children_stats[0].n == 2000
    assert true.sum() < 900


@every_splitter
def test_the_sides_are_those_of_the_rows_that_river_sends_there(make):
    splitter = watching(make(), STEP, STEP_Y)
    before = variance(STEP_Y)
    split = best(splitter, before)
    left = sides_by_river(split.split_info, STEP)
    if isinstance(splitter, TEBSTSplitter):
        left = sides_by_river(split.split_info, STEP.round(splitter.digits))
    assert_same(split.children_stats[0], variance(STEP_Y[left]))
    assert_same(split.children_stats[1], variance(STEP_Y[~left]))
    assert abs(split.split_info + 0.2) < 0.26


@every_splitter
def test_what_river_does_with_the_sides_is_of_no_effect_on_the_splitter(make):
    splitter, before = watching(make(), STEP, STEP_Y), variance(STEP_Y)
    split = best(splitter, before)
    seen = [(side.n, side.mean.get(), side.get()) for side in split.children_stats]
    for side in split.children_stats:
        side.update(1e9)
    again = best(splitter, before)
    assert [(side.n, side.mean.get(), side.get()) for side in again.children_stats] == seen
    assert (before.n, again.merit) == (2000, split.merit)


@every_splitter
def test_nothing_seen_or_nothing_to_part_is_no_split(make):
    with pytest.raises(RuntimeError):
        best(QOSplitter(), Var())
    splitter = make()
    assert is_null(best(splitter, Var()))
    splitter.update(None, 1.0, 1.0)
    splitter.update(NAN, 1.0, 1.0)
    assert is_null(best(splitter, variance([1.0, 1.0])))
    splitter = watching(make(), [3.0, 3.0], [1.0, 2.0])
    assert is_null(best(splitter, variance([1.0, 2.0])))


# -- against an obvious twin ----------------------------------------------------------------------


def exhaustive(x, y, w, min_samples):
    """The best merit of any cut, each side summed up anew: NaN lies above all numbers."""
    criterion = VarianceReductionSplitCriterion(min_samples_split=min_samples)
    merits = [-INF]
    for value in np.unique(x[~np.isnan(x)]):
        left = x <= value
        if not left.all():
            sides = [variance(y[left], w[left]), variance(y[~left], w[~left])]
            merits.append(criterion.merit_of_split(variance(y, w), sides))
    return max(merits)


values = st.one_of(st.integers(-9, 9).map(float), st.just(NAN))


@given(rows=streams(x=values, w=st.integers(1, 5).map(float), max_size=25), least=st.integers(1, 5))
def test_the_exhaustive_splitter_finds_the_best_cut(rows, least):
    x, y, w = rows
    split = best(watching(EBSTSplitter(), x, y, w), variance(y, w), least)
    expected = exhaustive(x, y, w, least)
    scale = variance(y, w).get()
    assert split.merit == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)
    if split.feature is None:
        return
    left = sides_by_river(split.split_info, x)
    for side, rows_there in zip(split.children_stats, (left, ~left), strict=True):
        assert side.n == w[rows_there].sum()
        mean = np.average(y[rows_there], weights=w[rows_there])
        assert side.mean.get() == pytest.approx(mean, rel=1e-12, abs=1e-12 * np.abs(y).max())


@given(rows=streams(x=st.one_of(st.floats(-5, 5), st.just(NAN)), min_size=2))
@every_splitter
def test_the_sides_hold_whatever_the_stream(make, rows):
    x, y, w = rows
    splitter = watching(make(), x, y, w)
    split = best(splitter, variance(y, w))
    if split.feature is None:
        return
    seen = x.round(splitter.digits) if isinstance(splitter, TEBSTSplitter) else x
    left = sides_by_river(split.split_info, seen)
    assert [side.n for side in split.children_stats] == [w[left].sum(), w[~left].sum()]


def test_a_value_at_the_threshold_stays_right():
    # Thresholds of observers send x < threshold to the left; river sends x <= threshold there.
    splitter = watching(QuantizerSplitter(radius=1.0), [0.0, 1.0, 2.0], [0.0, 5.0, 5.0])
    split = best(splitter, variance([0.0, 5.0, 5.0]))
    assert split.split_info == math.nextafter(1.0, 0.0)
    assert [side.n for side in split.children_stats] == [1, 2]


# -- rules ----------------------------------------------------------------------------------------


@every_splitter
def test_nan_goes_right_as_in_rivers_branches(make):
    x, y = [1.0, 2.0, NAN, NAN], [0.0, 0.0, 9.0, 9.0]
    split = best(watching(make(), x, y), variance(y))
    assert split.split_info == INF  # all numbers against NaN
    assert [(side.n, side.mean.get()) for side in split.children_stats] == [(2, 0.0), (2, 9.0)]
    assert split.merit == pytest.approx(variance(y).get())


@every_splitter
def test_none_is_left_out_and_what_is_bad_is_refused(make):
    splitter = watching(make(), STEP, STEP_Y)
    before = pickle.dumps(splitter)
    splitter.update(None, 1.0, 1.0)
    for x, y, w in [(INF, 1.0, 1.0), ("2", 1.0, 1.0), (1.0, NAN, 1.0), (1.0, 1.0, 0.0)]:
        with pytest.raises(ValueError, match="must be"):
            splitter.update(x, y, w)
    with pytest.raises(ValueError, match="y = nan"):
        splitter.update(NAN, NAN, 1.0)
    assert pickle.dumps(splitter) == before


@every_splitter
def test_rows_that_lack_the_feature_make_its_merit_smaller(make):
    x, y = TWO_SLOTS
    splitter = watching(make(), x, y)
    alone = best(splitter, variance(y))
    among = best(splitter, variance(y * 4))
    assert among.merit == pytest.approx(alone.merit / 4)
    assert [side.n for side in among.children_stats] == [100, 100]


@every_splitter
def test_a_side_of_too_few_rows_is_no_choice(make):
    x, y = [0.0] + [1.0] * 9 + [2.0] * 10, [100.0] + [0.0] * 9 + [30.0] * 10
    splitter = watching(make(), x, y)
    assert best(splitter, variance(y), 1).children_stats[0].n == 1
    assert best(splitter, variance(y), 5).children_stats[0].n == 10


@every_splitter
def test_clones_are_empty_and_copies_are_independent(make):
    splitter, before = watching(make(), STEP, STEP_Y), variance(STEP_Y)
    clone = splitter.clone()
    assert repr(clone) == repr(splitter)
    assert is_null(best(clone, Var()))
    split = best(splitter, before)
    for twin in (copy.deepcopy(splitter), pickle.loads(pickle.dumps(splitter))):
        assert best(twin, before).split_info == split.split_info
        twin.update(0.0, 1e6, 50.0)
        assert best(splitter, before).merit == split.merit


@every_splitter
def test_it_is_a_splitter_of_regression(make):
    splitter = make()
    assert (splitter.is_target_class, splitter.is_numeric) == (False, True)
    with pytest.raises(NotImplementedError):
        splitter.cond_proba(1.0, 1.0)


def test_bad_parameters_are_refused():
    for radius in ("std/2", 0.0, "wide"):
        with pytest.raises(ValueError, match="radius = "):
            QuantizerSplitter(radius=radius)
    with pytest.raises(ValueError, match="slots = 1"):
        QuantizerSplitter(slots=1)
    with pytest.raises(ValueError, match="digits = 99"):
        TEBSTSplitter(digits=99)


def test_river_sees_what_a_splitter_occupies():
    splitter = watching(EBSTSplitter(), STEP, STEP_Y)
    for size in (sys.getsizeof(splitter), splitter._raw_memory_usage):
        assert 0 <= size - splitter._observer.nbytes < 2000
    assert calculate_object_size(splitter) > splitter._observer.nbytes > 2000 * 8


# -- in river's trees -----------------------------------------------------------------------------


def score(model, count=4000):
    """R² of a model on Friedman's problem, each row predicted before it is learned."""
    x, y = friedman(count)
    predictions = []
    for row, target in zip(x.tolist(), y.tolist(), strict=True):
        named = dict(enumerate(row))
        predictions.append(model.predict_one(named))
        model.learn_one(named, target)
    return r2(y, np.array(predictions))


@every_splitter
@pytest.mark.parametrize(("leaf", "gain"), [("mean", 0.05), ("adaptive", 0.0)])
def test_rivers_tree_gains(make, leaf, gain):
    tree = HoeffdingTreeRegressor(splitter=make(), leaf_prediction=leaf)
    shipped = HoeffdingTreeRegressor(splitter=QOSplitter(), leaf_prediction=leaf)
    ours = score(tree)
    assert tree.n_branches > 3
    assert ours > score(shipped) + gain


@every_splitter
def test_rivers_adaptive_tree_and_forest_take_it(make):
    tree = HoeffdingAdaptiveTreeRegressor(splitter=make(), seed=1)
    assert score(tree) > 0.5
    assert tree.n_branches > 1
    forest = ARFRegressor(splitter=make(), n_models=3, seed=1)
    assert score(forest, 1500) > 0.4
    assert score(pickle.loads(pickle.dumps(forest)), 100) > 0


def test_missing_values_are_no_trouble_for_rivers_tree():
    x, y = friedman(3000)
    tree = HoeffdingTreeRegressor(splitter=QuantizerSplitter(), leaf_prediction="mean")
    for number, (row, target) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        named = dict(enumerate(row))
        if number % 3 == 0:
            named[3] = NAN
        if number % 5 == 0:
            del named[1]
        tree.learn_one(named, target)
    assert tree.n_branches > 1
    assert isinstance(tree._root, NumericBinaryBranch)
    assert all(math.isfinite(tree.predict_one(dict(enumerate(row)))) for row in x.tolist())


def test_a_null_suggestion_is_rivers():
    assert best(EBSTSplitter(), Var()) == BranchFactory()
