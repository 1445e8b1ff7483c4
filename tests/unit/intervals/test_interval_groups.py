"""Intervals that hold their level in each group of rows, such as the hours of the day."""

import math
import pickle
from datetime import datetime, timedelta

import numpy as np
import pytest

import naive_intervals
import sapwood
from sapwood.intervals import IntervalRegressor, _bounds
from sapwood.intervals.bound_table import BoundTable
from sapwood.intervals.groups import Groups, hour_of
from sapwood.lags import LaggedModel, Lags
from sapwood.schema import Rule, Schema

LEVELS = (0.5, 0.9)
START = datetime(2024, 1, 1)


def noisy_hours(rows=12_000, seed=1):
    """Noise that depends on the hour in a way that no split of the tree is worth."""
    rng = np.random.default_rng(seed)
    hour = np.arange(rows) % 24.0
    x = rng.uniform(-1, 1, rows)
    size = np.where(hour % 6 == 3, 1.5, 0.5)
    return hour, x, 3 * x + rng.normal(0, size)


def coverage_by(groups, y, bounds, skipped=4000):
    inside = (y >= bounds[:, 0]) & (y <= bounds[:, 1])
    return [inside[skipped:][groups[skipped:] == each].mean() for each in np.unique(groups)]


def test_the_kernel_is_its_reference_implementation():
    rng, rows = np.random.default_rng(5), 1500
    known = BoundTable(np.array(LEVELS))
    parents = np.array([-1, 0, 0], np.int32)
    regions, groups = rng.choice([1, 2], rows).astype(np.int32), rng.integers(0, 5, rows, np.int32)
    predictions = rng.normal(0, 3, (rows, 1))
    y, w = predictions + rng.normal(0, 1 + groups[:, None]), rng.choice([1.0, 2.5], rows)
    bounds = np.empty((rows, 1, len(LEVELS), 2))
    known.score(parents, regions, predictions, y, w, bounds=bounds, groups=groups)
    slow = naive_intervals.Bounds(LEVELS, parents.tolist())
    for row in range(rows):
        group = int(groups[row]) or None
        said = slow.predict(int(regions[row]), predictions[row, 0], group)
        expected = np.array(slow.published(said))
        assert bounds[row, 0] == pytest.approx(expected, rel=1e-6, nan_ok=True)
        slow.score(int(regions[row]), said, y[row, 0], w[row], group)
    assert (known.factors[:, 0] == 1).all()
    assert known.factors[0, 4] == pytest.approx(slow.groups[4])


@pytest.mark.parametrize("late", [0, 24])
def test_the_level_is_held_in_each_hour(late):
    hour, x, y = noisy_hours()
    tree = sapwood.HoeffdingTreeRegressor(no_splits=["hour"])
    model = IntervalRegressor(tree, [0.9], by="hour")
    bounds = np.empty((len(y), 2))
    columns = {"hour": hour, "x": x}
    for start in range(0, len(y), 24):
        part = {name: column[start : start + 24] for name, column in columns.items()}
        ids = range(start, start + 24)
        bounds[start : start + 24] = model.predict_intervals_many(part, ids=ids)[1][:, 0]
        old = slice(max(0, start - late), max(0, start - late + 24 * (start >= late)))
        if old.stop > old.start:
            part = {name: column[old] for name, column in columns.items()}
            model.learn_many(part, y[old], ids=range(old.start, old.stop))
    found = coverage_by(hour, y, bounds)
    assert 0.86 < min(found) <= max(found) < 0.94
    plain = IntervalRegressor(sapwood.HoeffdingTreeRegressor(no_splits=["hour"]), [0.9])
    uneven = coverage_by(hour, y, plain.predict_learn_intervals(columns, y)[1][:, 0])
    assert min(uneven) < 0.75
    assert max(uneven) > 0.94


def test_the_hour_of_the_schema_is_used_in_batches_rows_and_behind_lags():
    _, x, y = (each[:3000] for each in noisy_hours())
    times = np.array([START + timedelta(hours=row) for row in range(len(y))], "datetime64[s]")
    schema = Schema((Rule("t", "time", parts=("hour",)), Rule("x", "number")), time="t")
    assert hour_of(schema) == "t.hour"
    made = []
    for _ in range(2):
        made.append(IntervalRegressor(sapwood.HoeffdingTreeRegressor(), LEVELS))
        made[-1].schema = schema
    model, twin = made
    bounds = model.predict_learn_intervals({"t": times, "x": x}, y)[1]
    assert model._groups.name == "t.hour"
    assert model._groups.values == [float(each) for each in range(24)]
    for row in range(400):
        given = {"t": START + timedelta(hours=row), "x": float(x[row])}
        told = twin.predict_intervals_one(given)[1]
        assert np.array_equal(told, bounds[row], equal_nan=True)
        twin.learn_one(given, float(y[row]))
    lagged = LaggedModel(IntervalRegressor(sapwood.HoeffdingTreeRegressor()), Lags([1]))
    lagged.schema = schema
    lagged.predict_learn_many({"t": times[:100], "x": x[:100]}, y[:100])
    assert lagged.model._groups.values == [float(each) for each in range(24)]


@pytest.mark.parametrize("column", ["numbers", "labels"])
def test_batches_are_a_loop_and_files_go_on(column):
    hour, x, y = (each[:600] for each in noisy_hours())
    kinds = hour if column == "numbers" else [f"h{each:g}" for each in hour]
    looped, whole = (
        IntervalRegressor(sapwood.HoeffdingTreeRegressor(), LEVELS, by="hour") for _ in range(2)
    )
    for row in range(300):
        value = int(kinds[row]) if column == "numbers" else kinds[row]
        looped.learn_one({"hour": value, "x": float(x[row])}, float(y[row]))
    whole.learn_many({"hour": kinds[:300], "x": x[:300]}, y[:300])
    assert looped.to_bytes() == whole.to_bytes()
    copies = [
        pickle.loads(pickle.dumps(whole)),
        whole.copy(),
        IntervalRegressor.from_bytes(whole.to_bytes()),
    ]
    rest = {"hour": kinds[300:], "x": x[300:]}
    expected = whole.predict_learn_intervals(rest, y[300:])[1]
    for each in copies:
        assert each.parameters["by"] == "hour"
        assert (each.predict_learn_intervals(rest, y[300:])[1] == expected).all()
        assert each.to_bytes() == whole.to_bytes()


def test_an_error_of_the_model_leaves_groups_as_they_were():
    model = IntervalRegressor(sapwood.HoeffdingTreeRegressor(), by="hour")
    model.learn_one({"hour": 1, "x": 1.0}, 1.0)
    before = model.to_bytes()
    with pytest.raises(ValueError, match="x"):
        model.learn_many({"hour": [2, 3], "x": [1.0, math.inf]}, [1.0, 2.0])
    assert model.to_bytes() == before


def test_values_beyond_the_room_and_missing_ones_have_no_group():
    groups = Groups("k")
    found = groups.of_rows({"k": np.append(np.arange(100.0), np.nan)}, learn=True)
    assert found.tolist() == [*range(1, _bounds.MOST_GROUPS), *[0] * 38]
    assert [groups.of_row({"k": value}) for value in (0, 62, 63, None, math.nan, [])] == [
        1, 63, 0, 0, 0, 0,
    ]  # fmt: skip
    assert groups.of_rows({"other": np.zeros(3)}) is None


@pytest.mark.parametrize(
    "lie",
    [
        {"group_values": [1.0]},
        {"group_values": [1.0, 1.0]},
        {"group_values": [1.0, None]},
        {"grouped_by": "x"},
        {"grouped_by": None, "by": None},
        {"by": 1.5},
    ],
)
def test_files_with_wrong_groups_are_rejected(lie):
    model = IntervalRegressor(sapwood.HoeffdingTreeRegressor(), by="hour")
    model.learn_many({"hour": [1.0, 2.0] * 20}, np.arange(40.0))
    header, arrays = model.to_state()
    IntervalRegressor.from_state((header, arrays), IntervalRegressor.format)
    with pytest.raises((ValueError, TypeError)):
        IntervalRegressor.from_state(({**header, **lie}, arrays), IntervalRegressor.format)
    wrong = {**arrays, "groups": arrays["groups"] * 100}
    with pytest.raises(ValueError, match="factor"):
        IntervalRegressor.from_state((header, wrong), IntervalRegressor.format)
