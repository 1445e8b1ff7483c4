"""The kernel of bounds beside its slow twin."""

import numpy as np
import pytest

import naive_intervals
from sapwood.corrector._pending import PendingPredictions
from sapwood.intervals import _bounds, _one_row
from sapwood.intervals.bound_table import BoundTable

LEVELS = (0.2, 0.5, 0.9, 0.99)


def state():
    known = BoundTable(np.array(LEVELS))
    return known.table[0], known.overall, known.levels


def column(values):
    return values[:, np.newaxis]


def learn(*given):
    """Learn rows of one target, given what the kernel takes of several."""
    predictions, y = map(column, given[5:7])
    _bounds.learn(*given[:5], predictions, y, *given[7:])


def predict_intervals(*given):
    """Say the bounds of rows of one target, likewise."""
    _bounds.predict_intervals(*given[:5], column(given[5]), given[6])


def stream(kind, kept=1200):
    rng, rows = np.random.default_rng(5), 1200
    parents = np.array([-1, 0, 0, 1, 1, 3, 3], np.int32)
    regions = np.zeros(rows, np.int32)  # a tree that grows
    regions[200:] = rng.choice([1, 2], rows - 200)
    regions[500:] = rng.choice([2, 3, 4], rows - 500)
    regions[900:] = rng.choice([2, 4, 5, 6], rows - 900)
    predictions = rng.normal(0, 3, rows)
    errors = rng.normal(0, 1 + regions, rows)
    w = np.ones(rows)
    if kind == "weights":
        w = rng.choice([0.2, 1.0, 3.0, 40.0], rows)
    if kind == "counts":
        errors = np.maximum(-predictions, np.round(errors))
    if kind == "perfect":
        errors[:600] = 0.0
    if kind == "odd":
        predictions[rng.random(rows) < 0.1] = np.nan
        errors[rng.random(rows) < 0.02] *= 1e6
    if kind == "shock":
        errors[600:] *= 50.0
    y = np.nan_to_num(predictions) + errors
    y = np.round(y) if kind == "counts" else y
    return parents, regions[:kept], predictions[:kept], y[:kept], w[:kept]


KINDS = ["plain", "weights", "counts", "perfect", "odd", "shock"]


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_those_of_the_twin(kind):
    parents, regions, predictions, y, w = stream(kind)
    table, overall, levels = state()
    bounds = np.empty((len(y), 2 * len(LEVELS)))
    learn(table, overall, levels, parents, regions, predictions, y, w, None, None, None, bounds)
    twin = naive_intervals.Bounds(LEVELS, parents.tolist())
    for row, (region, prediction) in enumerate(zip(regions.tolist(), predictions, strict=True)):
        said = twin.predict(region, prediction)
        told = np.ravel(twin.published(said))
        assert bounds[row] == pytest.approx(told, rel=1e-6, abs=1e-9, nan_ok=True), row
        twin.score(region, said, y[row], w[row])
    assert np.isfinite(bounds[40:][np.isfinite(predictions[40:])]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_come_late_are_judged_by_what_was_said(kind):
    parents, regions, predictions, y, w = stream(kind, 700)
    table, overall, levels = state()
    twin = naive_intervals.Bounds(LEVELS, parents.tolist())
    late = 30
    pending, labels = PendingPredictions(3 + 2 * len(LEVELS), 64), np.zeros(1)
    factors = np.ones((_bounds.MOST_GROUPS, len(LEVELS)))
    one = _one_row.OneRow(table, overall, levels, parents, pending, labels, factors)
    twins = []
    for row in range(len(y) + late):
        if row < len(y):
            here, said = slice(row, row + 1), np.empty((1, 2 + 2 * len(LEVELS)))
            predict_intervals(
                table, overall, levels, parents, regions[here], predictions[here], said
            )
            one.issue(int(regions[row]), predictions[row], row)
            twins.append(twin.issue(int(regions[row]), predictions[row]))
            told = np.empty((1, 2 * len(LEVELS)))
            _bounds.publish(said, overall, told)
            right = np.ravel(twin.published(twins[row]))
            assert told[0] == pytest.approx(right, rel=1e-6, abs=1e-9, nan_ok=True), row
        if row >= late:
            old = slice(row - late, row - late + 1)
            # What the model would say by now does not matter.
            now = predictions[old] + 1.0
            if np.isnan(predictions[row - late]):
                twins[row - late] = twin.predict(int(regions[row - late]), now[0])
            if row % 2:
                one.score(
                    int(regions[row - late]), now[0], y[row - late], w[row - late], row - late
                )
            else:
                keys = np.array([row - late], np.uint64)
                rows = (regions[old], now, y[old], w[old], pending, keys, labels)
                learn(table, overall, levels, parents, *rows)
            twin.score(int(regions[row - late]), twins[row - late], y[row - late], w[row - late])
            assert overall[0, _bounds.LATENESS_PLACE] == pytest.approx(twin.lateness)
    assert labels[0] == len(y)


def test_rows_in_parts_and_foreseen_are_the_same_as_at_once():
    parents, regions, predictions, y, w = stream("plain")
    whole, parts = state(), state()
    bounds = np.empty((len(y), 2 * len(LEVELS)))
    learn(*whole, parents, regions, predictions, y, w, None, None, None, bounds)
    for start in range(0, len(y), 7):
        some = slice(start, start + 7)
        said = np.empty((1, 2 + 2 * len(LEVELS)))
        told = np.empty((1, 2 * len(LEVELS)))
        before = parts[0].copy(), parts[1].copy()
        first = slice(start, start + 1)
        predict_intervals(*parts, parents, regions[first], predictions[first], said)
        _bounds.publish(said, parts[1], told)
        assert told[0].tolist() == pytest.approx(bounds[start].tolist(), nan_ok=True, rel=0, abs=0)
        assert (before[0] == parts[0]).all()
        assert (before[1] == parts[1]).all()
        learn(*parts, parents, regions[some], predictions[some], y[some], w[some])
    assert (whole[0] == parts[0]).all()
    assert (whole[1] == parts[1]).all()


def test_extreme_numbers_leave_all_finite():
    table, overall, levels = state()
    rng = np.random.default_rng(3)
    rows = 5000
    y = rng.choice([0.0, 1.0, -1e140, 1e140, 5e-324], rows)
    predictions = rng.choice([0.0, 1e140, -1e140, 1e-300, np.inf, np.nan, 1e200], rows)
    bounds = np.empty((rows, 2 * len(LEVELS)))
    regions, parents = np.zeros(rows, np.int32), np.array([-1], np.int32)
    w = rng.choice([1e-12, 1.0, 1e12], rows)
    learn(table, overall, levels, parents, regions, predictions, y, w, None, None, None, bounds)
    assert np.isfinite(table[0]).all()
    assert np.isfinite(overall).all()
    known = np.isfinite(predictions) & (np.abs(predictions) <= 1e140)
    known[: np.flatnonzero(known)[20]] = False
    assert np.isfinite(bounds[known]).all()
    assert np.isnan(bounds[~known]).all()


@pytest.mark.parametrize(
    "wrong",
    ["region", "negative", "parent", "table", "levels", "rows", "pending", "bounds", "weights"],
)
def test_arrays_that_do_not_fit_are_refused(wrong):
    parents, regions, predictions, y, w = stream("plain", 50)
    table, overall, levels = state()
    pending, keys, labels, bounds = None, None, np.zeros(1), None
    if wrong == "region":
        regions[7] = 7
    elif wrong == "negative":
        regions[7] = -1
    elif wrong == "parent":
        parents[3] = 3
    elif wrong == "table":
        table = table[:3].copy()
    elif wrong == "levels":
        levels = levels[:2].copy()
    elif wrong == "rows":
        y = y[:-1].copy()
    elif wrong == "weights":
        w = w[:-1].copy()
    elif wrong == "pending":
        pending, keys = PendingPredictions(3, 64), np.zeros(50, np.uint64)
    else:
        bounds = np.zeros((49, 2 * len(LEVELS)))
    before = table.copy()
    given = (regions, predictions, y, w, pending, keys, labels, bounds)
    with pytest.raises(ValueError, match=r"region|fit|levels"):
        learn(table, overall, levels, parents, *given)
    assert (before == table).all()


# -- several targets -------------------------------------------------------------------------------


def targets_of(kinds, kept=1200):
    """Rows of several targets, each of which is missing here and there, and the last always."""
    found = [stream(kind, kept) for kind in kinds]
    predictions = np.column_stack([each[2] for each in found])
    y = np.column_stack([each[3] for each in found])
    y[np.random.default_rng(7).random(y.shape) < 0.3] = np.nan
    y[:, -1] = np.nan
    return *found[0][:2], predictions, y, found[0][4]


def test_each_of_several_targets_has_the_bounds_of_its_twin():
    parents, regions, predictions, y, w = targets_of(KINDS, 700)
    known = BoundTable(np.array(LEVELS), len(KINDS))
    bounds = np.empty((*y.shape, len(LEVELS), 2))
    known.score(parents, regions, predictions, y, w, bounds=bounds)
    for target, kind in enumerate(KINDS):
        twin = naive_intervals.Bounds(LEVELS, parents.tolist())
        for row, region in enumerate(regions.tolist()):
            said = twin.predict(region, predictions[row, target])
            right = np.array(twin.published(said))
            told = bounds[row, target]
            assert told == pytest.approx(right, rel=1e-6, abs=1e-9, nan_ok=True), (kind, row)
            if not np.isnan(y[row, target]):
                twin.score(region, said, y[row, target], w[row])
    assert np.isnan(bounds[:, -1]).all()
    assert (known.table[-1] == BoundTable(np.array(LEVELS)).table[0]).all()


def test_what_is_said_of_several_targets_is_what_is_said_of_each_alone():
    parents, regions, predictions, y, w = targets_of(["plain", "counts", "shock"], 800)
    known = BoundTable(np.array(LEVELS), 3)
    said = known.predict(parents, regions[:40], predictions[:40])
    assert np.isnan(known.published(said)).all()
    known.score(parents, regions, predictions, y, w)
    said = known.predict(parents, regions, predictions)
    for target in range(2):
        alone = BoundTable(np.array(LEVELS))
        has = ~np.isnan(y[:, target])
        one = predictions[:, target : target + 1]
        alone.score(parents, regions[has], one[has], y[has, target : target + 1], w[has])
        assert (alone.table == known.table[target]).all()
        assert (alone.overall == known.overall[target]).all()
        assert (alone.predict(parents, regions, one)[:, 0] == said[:, target]).all()
        assert (
            alone.published(said[:, target : target + 1])[:, 0] == known.published(said)[:, target]
        ).all()
        level = known.between(said, 0.7)[:, target]
        assert (alone.between(said[:, target : target + 1], 0.7)[:, 0] == level).all()
        assert (known.of_target(target).table == alone.table).all()


def test_delayed_rows_of_several_targets_are_those_of_each_alone():
    parents, regions, predictions, y, w = targets_of(["plain", "counts", "shock"], 800)
    whole = ~np.isnan(y[:, :2]).any(axis=1)
    regions, predictions, y, w = regions[whole], predictions[whole, :2], y[whole, :2], w[whole]
    both = BoundTable(np.array(LEVELS), 2)
    singles = [BoundTable(np.array(LEVELS)) for _ in range(2)]
    for start in range(0, len(y) - 100, 50):  # labels come by 50, those of every third row
        here = slice(start, start + 50)
        keys = np.arange(start, start + 50, dtype=np.uint64)
        said = both.predict(parents, regions[here], predictions[here])
        both.remember(keys[::3], said[::3])
        both.score(parents, regions[here], predictions[here] + 1, y[here], w[here], keys=keys)
        for target, alone in enumerate(singles):
            own = slice(target, target + 1)
            told = alone.predict(parents, regions[here], predictions[here, own])
            assert np.array_equal(told[:, 0], said[:, target], equal_nan=True)
            alone.remember(keys[::3], told[::3])
            now = predictions[here, own] + 1
            alone.score(parents, regions[here], now, y[here, own], w[here], keys=keys)
            assert (alone.table == both.table[target]).all()
            assert (alone.overall == both.overall[target]).all()
    assert both.pending.count == singles[0].pending.count == 0


@pytest.mark.parametrize("wrong", ["predictions", "y", "keys", "bounds", "table", "overall"])
def test_arrays_of_other_targets_are_refused(wrong):
    parents, regions, predictions, y, w = targets_of(["plain", "counts"], 50)
    known = BoundTable(np.array(LEVELS), 2)
    keys, bounds = None, None
    if wrong == "predictions":
        predictions = predictions[:, :1].copy()
    elif wrong == "y":
        y = y[:, :1].copy()
    elif wrong == "keys":
        keys = np.zeros(49, np.uint64)
    elif wrong == "bounds":
        bounds = np.zeros((50, 1, len(LEVELS), 2))
    elif wrong == "table":
        known.table = known.table[:1, :63].copy()
    else:
        known.overall = known.overall[:1].copy()
    before = known.table.copy()
    with pytest.raises(ValueError, match="fit"):
        known.score(parents, regions, predictions, y, w, keys=keys, bounds=bounds)
    assert (known.table == before).all()
