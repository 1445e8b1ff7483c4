"""The kernel of bounds beside its slow twin."""

import numpy as np
import pytest

import naive_intervals
from sapwood.intervals import IntervalRegressor, _bounds
from sapwood.tree import HoeffdingTreeRegressor

LEVELS = (0.2, 0.5, 0.9, 0.99)


def state():
    made = IntervalRegressor(HoeffdingTreeRegressor(), LEVELS)
    return made._table, made._overall, np.array(LEVELS)


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
    _bounds.learn(table, overall, levels, parents, regions, predictions, y, w, None, bounds)
    twin = naive_intervals.Bounds(LEVELS, parents.tolist())
    for row, (region, prediction) in enumerate(zip(regions.tolist(), predictions, strict=True)):
        said = twin.say(region, prediction)
        told = np.ravel(twin.tell(said))
        assert bounds[row] == pytest.approx(told, rel=1e-6, abs=1e-9, nan_ok=True), row
        twin.judge(region, said, y[row], w[row])
    assert np.isfinite(bounds[40:][np.isfinite(predictions[40:])]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_come_late_are_judged_by_what_was_said(kind):
    parents, regions, predictions, y, w = stream(kind, 700)
    table, overall, levels = state()
    twin = naive_intervals.Bounds(LEVELS, parents.tolist())
    late = 30
    said = np.full((len(y), 2 + 2 * len(LEVELS)), np.nan)
    twins = []
    for row in range(len(y) + late):
        if row < len(y):
            one = slice(row, row + 1)
            _bounds.foresee(
                table, overall, levels, parents, regions[one], predictions[one], said[one]
            )
            twins.append(twin.say(int(regions[row]), predictions[row]))
            told = np.empty((1, 2 * len(LEVELS)))
            _bounds.publish(said[one], overall, told)
            right = np.ravel(twin.tell(twins[row]))
            assert told[0] == pytest.approx(right, rel=1e-6, abs=1e-9, nan_ok=True), row
        if row >= late:
            old = slice(row - late, row - late + 1)
            # What the model would say by now does not matter.
            now = predictions[old] + 1.0
            rows = (regions[old], now, y[old], w[old], said[old])
            _bounds.learn(table, overall, levels, parents, *rows)
            if np.isnan(predictions[row - late]):
                twins[row - late] = twin.say(int(regions[row - late]), now[0])
            twin.judge(int(regions[row - late]), twins[row - late], y[row - late], w[row - late])


def test_rows_in_parts_and_foreseen_are_the_same_as_at_once():
    parents, regions, predictions, y, w = stream("plain")
    whole, parts = state(), state()
    bounds = np.empty((len(y), 2 * len(LEVELS)))
    _bounds.learn(*whole, parents, regions, predictions, y, w, None, bounds)
    for start in range(0, len(y), 7):
        some = slice(start, start + 7)
        said = np.empty((1, 2 + 2 * len(LEVELS)))
        told = np.empty((1, 2 * len(LEVELS)))
        before = parts[0].copy(), parts[1].copy()
        first = slice(start, start + 1)
        _bounds.foresee(*parts, parents, regions[first], predictions[first], said)
        _bounds.publish(said, parts[1], told)
        assert told[0].tolist() == pytest.approx(bounds[start].tolist(), nan_ok=True, rel=0, abs=0)
        assert (before[0] == parts[0]).all()
        assert (before[1] == parts[1]).all()
        _bounds.learn(*parts, parents, regions[some], predictions[some], y[some], w[some])
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
    _bounds.learn(table, overall, levels, parents, regions, predictions, y, w, None, bounds)
    assert np.isfinite(table[0]).all()
    assert np.isfinite(overall).all()
    known = np.isfinite(predictions) & (np.abs(predictions) <= 1e140)
    known[: np.flatnonzero(known)[20]] = False
    assert np.isfinite(bounds[known]).all()
    assert np.isnan(bounds[~known]).all()


@pytest.mark.parametrize(
    "wrong",
    ["region", "negative", "parent", "table", "levels", "rows", "said", "bounds", "weights"],
)
def test_arrays_that_do_not_fit_are_refused(wrong):
    parents, regions, predictions, y, w = stream("plain", 50)
    table, overall, levels = state()
    said, bounds = None, None
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
    elif wrong == "said":
        said = np.zeros((50, 3))
    else:
        bounds = np.zeros((49, 2 * len(LEVELS)))
    before = table.copy()
    with pytest.raises(ValueError, match=r"region|fit|levels"):
        _bounds.learn(table, overall, levels, parents, regions, predictions, y, w, said, bounds)
    assert (before == table).all()
