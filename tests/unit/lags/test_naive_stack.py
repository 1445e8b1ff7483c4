"""A model stacked with naive forecasts: rows, batches, files, and how far behind it may be."""

import numpy as np
import pytest

import sapwood
from naive_forecasts import NaiveForecasts
from sapwood.corrector.pending_state import PENDING
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags, NaiveStack, _forecasts
from sapwood.lags.naive_stack import OLDER_PENDING, STATE
from sapwood.model import State
from sapwood.rows.calendar import Calendar

HOUR = 3600.0


def daily(rows=900, noise=1.0):
    rng = np.random.default_rng(4)
    return 20 * np.sin(np.arange(rows) * np.pi / 12) + rng.normal(0, noise, rows)


def made(model=None):
    stack = NaiveStack(model or sapwood.HoeffdingTreeRegressor(), "y.lag24", "y.lag1")
    return LaggedModel(stack, Lags([1, 24]))


def columns(rows):
    return {"x": np.arange(float(rows)) % 5}


def by_time(model=None, **parameters):
    lags = Lags(["1h", "24h"], time="at")
    stack = NaiveStack(
        model or sapwood.HoeffdingTreeRegressor(),
        *("y.lag24h", "y.lag1h"),
        linear=lags.features,
        time="at",
        **parameters,
    )
    return LaggedModel(stack, lags)


@pytest.mark.parametrize("has_time", [False, True])
@pytest.mark.parametrize("late", [0, 7])
def test_forecasts_are_those_of_the_reference(has_time, late):
    rng = np.random.default_rng(8)
    rows, lags = 260, 3
    given = rng.normal(50, 5, (rows, lags + 4))
    given[:, -2] = 1.7e9 + np.cumsum(rng.choice([HOUR, 1800.0, 5 * HOUR], rows))
    given[:, -1] = rng.random(rows) < 0.1
    given[rng.random(given.shape) < 0.05] = np.nan
    given[0] = np.nan
    own, w = rng.normal(50, 5, rows), rng.choice([0.0, 1.0, 2.5], rows, p=[0.1, 0.8, 0.1])
    clock = np.nan_to_num(given[:, -2])
    y = 0.8 * np.nan_to_num(given[:, 0], nan=50.0) + 5 * np.sin(clock * np.pi / 43_200)
    reference, state = NaiveForecasts(lags, has_time), np.zeros(_forecasts.size(lags, has_time))
    waiting = []
    for row in range(rows + late):
        if row < rows:
            members, results = np.empty((1, 6)), np.empty(1)
            asked = given[row : row + 1], own[row : row + 1]
            _forecasts.predict(state, has_time, *asked, members, results)
            expected = reference.predict(given[row], own[row])
            assert members[0] == pytest.approx(expected[0], rel=1e-7)
            assert results[0] == pytest.approx(expected[1], rel=1e-7)
            waiting.append((row, members, results))
        if row >= late:
            old, members, results = waiting.pop(0)
            part = slice(old, old + 1)
            delay = np.array([float(late)])
            kinds = np.array([1], np.uint8)
            _forecasts.learn(
                *(state, has_time, given[part], own[part], members, results),
                *(y[part], w[part], delay, kinds),
            )
            reference.learn(given[old], members[0], y[old], w[old], late)
    assert [*_forecasts.positions(state).values()] == pytest.approx(reference.shares, abs=1e-7)
    assert reference.shares[1:3].sum() > 0.3


def test_linear_forecasts_by_time_learn_the_hours_of_days_off():
    rows = 24 * 70
    hours = np.arange(rows)
    is_off = (hours // 24 % 7 >= 5) | (hours // 24 % 10 == 4)
    rng = np.random.default_rng(2)
    y = np.where(is_off, 5.0, 20.0) * np.sin(hours * np.pi / 12) + rng.normal(0, 1, rows)
    at = hours * HOUR + 4 * 24 * HOUR  # 1970-01-05, a Monday
    errors = {}
    for name in (None, "off"):
        model = by_time(day_off=name)
        found = model.predict_learn_many({"at": at, "off": is_off.astype(float)}, y)
        errors[name] = np.abs(found - y)[1200:].mean()
    assert errors["off"] < 0.95 * errors[None]


def test_batches_by_time_are_rows_one_by_one_to_the_last_bit():
    y = daily(500)
    at = np.arange(500) * HOUR
    batched, single = by_time(), by_time()
    found = [batched.predict_learn_many({"at": at[:313]}, y[:313])]
    found.append(batched.predict_learn_many({"at": at[313:]}, y[313:]))
    issued = []
    for moment, label in zip(at.tolist(), y.tolist(), strict=True):
        issued.append(single.predict_one({"at": moment}))
        single.learn_one({"at": moment}, label)
    assert np.concatenate(found).tolist() == issued
    assert batched.model._state.tobytes() == single.model._state.tobytes()
    assert sapwood.model.from_bytes(single.to_bytes()).to_bytes() == batched.to_bytes()


def test_missing_times_are_the_mean_hour():
    model = by_time()
    model.learn_many({"at": np.arange(300) * HOUR}, daily(300))
    model.learn_one({"at": None}, 7.0)
    assert np.isfinite(model.predict_one({"at": None}))
    with pytest.raises(ValueError, match="soon"):
        model.learn_one({"at": "soon"}, 7.0)


@pytest.mark.parametrize("format", [1, 2])
def test_files_of_older_formats_start_their_weights_again(format):
    header, arrays = NaiveStack(sapwood.HoeffdingTreeRegressor(), "y.lag24").to_state()
    old = {"seasonal": header["seasonal"], "last": None}
    sums = {**arrays, STATE: np.ones((1, 29))}
    if format == 1:
        sums = {name: array for name, array in sums.items() if name not in PENDING}
        sums[OLDER_PENDING] = np.frombuffer(b"[]", np.uint8)
    restored = NaiveStack.from_state(State(old, sums), format)
    assert restored.weights["seasonal"] == restored.weights["last"] == 0.4
    restored.learn_one({"y.lag24": 3.0}, 4.0)


def test_batches_are_rows_one_by_one():
    y = daily(400)
    batched, single = made(), made()
    found = batched.predict_learn_many(columns(400), y)
    for place, label in enumerate(y.tolist()):
        x = {"x": float(place % 5)}
        assert single.predict_one(x) == pytest.approx(found[place], rel=1e-9)
        single.learn_one(x, label)
    assert batched.model.weights == pytest.approx(single.model.weights)


def test_late_labels_count_for_issued_predictions_and_files_hold_them():
    y = daily(300)
    model = made()
    waiting = []
    for place, label in enumerate(y.tolist()):
        model.predict_one({"x": 0.0}, id=place)
        waiting.append((place, label))
        if len(waiting) > 10:
            earlier, old = waiting.pop(0)
            model.learn_one({"x": 0.0}, old, id=earlier)
    restored = LaggedModel.from_bytes(model.to_bytes())
    assert model.model._pending.count == 10
    assert model.model.nbytes > model.model.model.nbytes + model.model._pending.nbytes
    for earlier, old in waiting:
        for each in (model, restored):
            each.learn_one({"x": 0.0}, old, id=earlier)
    assert model.model._pending.count == 0
    assert model.to_bytes() == restored.to_bytes()


@pytest.mark.parametrize("delay", [None, 24, 100])
def test_it_is_never_far_behind_the_better_naive_forecast(delay):
    y = daily(2000)
    season = 24 if delay is None else -(-(delay + 1) // 24) * 24
    last = 1 if delay is None else delay + 1
    stack = NaiveStack(sapwood.ForestRegressor(members=3), f"y.lag{season}", f"y.lag{last}")
    model = LaggedModel(stack, Lags(sorted({season, last})))
    found = prequential(model, (columns(2000), y), delay=delay)
    naive = np.sqrt(np.mean((y[season:] - y[:-season]) ** 2))
    assert found.total.r2 > 1 - (naive / y.std()) ** 2 - 0.1
    assert found.window.rmse < 1.05 * naive


def test_intervals_can_be_around_it():
    stack = NaiveStack(sapwood.HoeffdingTreeRegressor(), "y.lag24")
    model = LaggedModel(sapwood.IntervalRegressor(stack, [0.9]), Lags(24))
    y = daily(1500)
    _, bounds = model.predict_learn_intervals(columns(1500), y)
    inside = (bounds[500:, 0, 0] <= y[500:]) & (y[500:] <= bounds[500:, 0, 1])
    assert 0.85 < inside.mean() < 0.95


def test_the_better_forecast_gets_the_weight():
    model = made()
    model.learn_many(columns(900), daily(900, noise=0.01))
    weights = model.model.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["last"] < 0.1


def test_what_cannot_be_stacked_is_rejected():
    with pytest.raises(ValueError, match="a tree or forest of Sapwood is expected"):
        NaiveStack(made(), "y.lag24")
    with pytest.raises(ValueError, match="y has several targets"):
        NaiveStack(sapwood.HoeffdingTreeRegressor(), "a").learn_many(columns(2), np.ones((2, 2)))


def test_rows_without_ids_find_their_predictions_in_a_batch():
    y, columns_of = daily(600), {"x": np.arange(600.0)}
    batched, single = made(), made()
    for start in range(0, 600, 60):
        part = slice(start, start + 60)
        X = {"x": columns_of["x"][part]}
        found = batched.predict_many(X)
        assert found.tolist() == single.predict_many(X).tolist()
        assert batched.model._pending.count == (60 if start else 0)  # none before the first label
        batched.learn_many(X, y[part])
        for x, label in zip(X["x"].tolist(), y[part].tolist(), strict=True):
            single.learn_one({"x": x}, label)
    assert batched.model._pending.count == 0
    assert batched.model.weights == single.model.weights


def test_an_interruption_takes_a_pending_prediction_once(monkeypatch):
    stack = NaiveStack(sapwood.HoeffdingTreeRegressor(), "a")
    rows = {"a": np.arange(50.0), "b": np.arange(50.0) % 7}
    stack.learn_many(rows, rows["a"] + rows["b"])
    stack.predict_one({"a": 3.0, "b": 1.0}, id=1)
    expected = stack.copy()
    expected.learn_one({"a": 3.0, "b": 1.0}, 4.0, id=1)
    learn, interruptions = _forecasts.learn, [KeyboardInterrupt]

    def interrupted(*arguments):
        if stack.model._kernel.rows == 51 and interruptions:
            raise interruptions.pop()
        learn(*arguments)

    monkeypatch.setattr(_forecasts, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stack.learn_one({"a": 3.0, "b": 1.0}, 4.0, id=1)
    assert stack.to_bytes() == expected.to_bytes()
    assert stack._pending.count == 0


def damaged_arrays(name, value):
    header, arrays = NaiveStack(sapwood.HoeffdingTreeRegressor(), "y.lag24").to_state()
    if value is None:
        value = np.full_like(arrays[name], np.nan)
    return State(header, {**arrays, name: value})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (STATE, np.full(3, 1.0), "not as they were saved"),
        (STATE, None, "cannot be"),
        (PENDING[0], np.zeros(3), "of another type"),
        (PENDING[3], np.zeros((0, 3)), "is wrong"),
        ("more", np.zeros(1), "its arrays are not those"),
    ],
)
def test_a_state_that_cannot_be_is_rejected(name, value, words):
    with pytest.raises(ValueError, match=words):
        NaiveStack.from_state(damaged_arrays(name, value), 3)


def test_linear_forecasts_have_the_hours_of_a_time_zone():
    """In both halves of a year the series follows the local hour; lags of it are right too."""
    start = 1_706_745_600.0  # 2024-02-01
    at = start + HOUR * np.arange(24 * 180.0)
    rng = np.random.default_rng(4)
    local = Calendar("Europe/Berlin").local(at)
    y = np.where(local % 86_400 // HOUR % 24 < 8, 0.0, 10.0) + rng.normal(0, 0.1, len(at))
    errors = {}
    for zone in (None, "Europe/Berlin"):
        model = by_time(timezone=zone)
        learned = model.predict_learn_many({"at": at, "x": np.zeros(len(at))}, y)
        change = slice(60 * 24, 64 * 24)  # clocks go forward on day 59
        errors[zone] = np.abs(learned - y)[change].mean()
        again = LaggedModel.from_bytes(model.to_bytes())
        assert again.to_bytes() == model.to_bytes()
        one = [again.predict_one({"at": each, "x": 0.0}) for each in at[-5:] + 5 * HOUR]
        many = model.predict_many({"at": at[-5:] + 5 * HOUR, "x": np.zeros(5)})
        assert one == many.tolist()
    assert errors["Europe/Berlin"] < errors[None]
    state = by_time(timezone="Europe/Berlin").model.to_state()
    with pytest.raises(ValueError, match="is not known"):
        NaiveStack.from_state(State(state.header | {"timezone": "X/Y"}, state.arrays), 3)


def panel(shops=40, days=60, late=50):
    """Return days, shops and sales of shops of very different sizes; one opens late."""
    rng = np.random.default_rng(3)
    sizes, week = np.exp(rng.normal(3, 1.5, shops)), 1 + 0.4 * np.sin(np.arange(7) * 2)
    day, shop = (each.ravel() for each in np.indices((days, shops)))
    opened = (shop > 0) | (day >= late)
    day, shop = day[opened], shop[opened]
    y = sizes[shop] * week[day % 7] * np.exp(rng.normal(0, 0.05, len(day)))
    return day, shop, y, sizes


def of_panel(level="y.mean168h", seasons=("y.lag168h", "y.lag336h")):
    lags = Lags(["24h", "168h", "336h"], means="168h", time="at", by="shop")
    tree = sapwood.HoeffdingTreeRegressor()
    stack = NaiveStack(tree, seasons, "y.lag24h", linear=lags.features, time="at", level=level)
    return LaggedModel(stack, lags)


def panel_rows(day, shop):
    return {"at": day * 24 * HOUR, "shop": [f"s{each}" for each in shop]}


def test_series_of_any_size_are_forecast_in_their_own_unit():
    day, shop, y, sizes = panel()
    errors = {}
    for level, seasons in (("y.mean168h", ("y.lag168h", "y.lag336h")), (None, ("y.lag168h",))):
        found = of_panel(level, seasons).predict_learn_many(panel_rows(day, shop), y)
        relative = np.abs(found - y) / sizes[shop]
        errors[level] = [relative[day >= 40].mean(), relative[(shop == 0) & (day > 57)].mean()]
    old, new = errors["y.mean168h"]
    assert old < 0.07
    assert new < 0.1
    assert old < 0.6 * errors[None][0]


def test_batches_of_many_series_are_rows_one_by_one():
    day, shop, y, _ = panel(shops=5)
    batched, single = of_panel(), of_panel()
    found = batched.predict_learn_many(panel_rows(day, shop), y)
    for place, label in enumerate(y.tolist()):
        x = {"at": float(day[place] * 24 * HOUR), "shop": f"s{shop[place]}"}
        assert single.predict_one(x) == pytest.approx(found[place], rel=1e-9)
        single.learn_one(x, label)
    assert batched.model.weights == pytest.approx(single.model.weights)
    restored = sapwood.model.from_bytes(batched.to_bytes())
    assert restored.to_bytes() == batched.to_bytes()
    x = {"at": 61 * 24 * HOUR, "shop": "s3"}
    assert restored.predict_one(x) == batched.predict_one(x)


def test_late_labels_of_many_series_count_for_issued_predictions():
    day, shop, y, _ = panel(shops=5)
    model, waiting = of_panel(), []
    for place, label in enumerate(y.tolist()):
        x = {"at": float(day[place] * 24 * HOUR), "shop": f"s{shop[place]}"}
        waiting.append((x, label, place, model.predict_one(x, id=place)))
        if len(waiting) > 10:
            model.learn_one(*waiting[0][:2], id=waiting.pop(0)[2])
    error = np.mean([abs(found - label) / label for _, label, _, found in waiting])
    assert error < 0.25
    assert sum(model.model.weights.values()) == pytest.approx(1)


def test_units_of_rows_are_the_level_and_the_size_of_their_series():
    rows = np.full((3, 8), np.nan)  # three lags, the mean, the season, the last, time, day off
    rows[:, 6] = 7.0, 7.0, 8.0
    rows[0, :6] = 10.0, 14.0, np.nan, 12.0, np.nan, 10.0
    rows[2, :6] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    units, sizes = np.empty((4, 3)), np.zeros(_forecasts.SIZES)
    y = np.array([18.0, -2.0, 5.0])
    _forecasts.to_units(rows, np.array([1, 2], np.intp), 3, y, sizes, units)
    size = 12 + (2 + 2 + 2 + 0) / 4
    assert units[:, 0].tolist() == [12.0, size, 1.0, 1.0]
    assert rows[0, [0, 1, 2, 4]].tolist() == [-2 / size, 2 / size, 2 / size, 2 / size]
    assert units[:, 1].tolist() == [18.0, 18.0, 0.01, 0.0]  # without lags: as the label before
    assert units[:, 2].tolist() == [8.0, 10.0, 0.01, 1.0]  # zeros alone
    assert sizes.tolist() == [3.0, 21.0, 25.0, 8.0]


@pytest.mark.parametrize("own", [{"level": "y.mean24"}, {"seasonal": ["y.lag24", "y.lag48"]}])
def test_levels_and_seasons_are_linear_features(own):
    tree = sapwood.HoeffdingTreeRegressor()
    with pytest.raises(ValueError, match="one of the linear features is expected"):
        NaiveStack(tree, **{"seasonal": "y.lag24", "linear": ["y.lag24"], **own})
