"""Bounds around the predictions of any model: what they promise, late y, other models, files."""

import copy
import math
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import linear_model, preprocessing, tree
from sklearn.linear_model import SGDRegressor

import sapwood
from sapwood import HoeffdingTreeRegressor, IntervalRegressor, ModelFileError
from sapwood.evaluate.baselines import LastValue
from sapwood.lags import LaggedModel, Lags
from sapwood.storage import container

LEVELS = (0.5, 0.8, 0.95)


def stream(rows=4000, seed=1):
    rng = np.random.default_rng(seed)
    x = {
        "a": rng.random(rows),
        "b": rng.normal(size=rows),
        "city": rng.choice(["Oslo", "Rome"], rows).astype(object),
    }
    x["b"][rng.random(rows) < 0.05] = np.nan
    spread = np.where(x["city"] == "Oslo", 0.5, 3.0)
    return x, 4 * x["a"] + (x["city"] == "Rome") + rng.normal(size=rows) * spread


def part(x, start, stop):
    return {name: column[start:stop] for name, column in x.items()}


def rows_of(x):
    lists = [column.tolist() for column in x.values()]
    return [dict(zip(x, row, strict=True)) for row in zip(*lists, strict=True)]


def bounded(levels=LEVELS):
    return IntervalRegressor(HoeffdingTreeRegressor(), levels)


# -- what is promised ------------------------------------------------------------------------------


def test_coverage_is_as_asked_for_and_bounds_are_wide_where_errors_are_large():
    x, y = stream(20_000)
    _, bounds = bounded((0.5, 0.8, 0.9, 0.95)).predict_learn_intervals(x, y)
    assert np.isnan(bounds[:20]).all()
    assert np.isfinite(bounds[20:]).all()
    for place, level in enumerate((0.5, 0.8, 0.9, 0.95)):
        inside = (y >= bounds[:, place, 0]) & (y <= bounds[:, place, 1])
        assert abs(inside[20:].mean() - level) < 0.005
    width = bounds[5000:, 2, 1] - bounds[5000:, 2, 0]
    oslo = x["city"][5000:] == "Oslo"
    assert 1.3 < width[oslo].mean() < 2.3  # 1.64 for the true deviations
    assert 8.0 < width[~oslo].mean() < 12.0  # 9.87


def test_coverage_comes_back_after_a_change():
    x, y = stream(12_000)
    y[6000:] = 50 + 20 * (y[6000:] - 2)
    _, bounds = bounded((0.9,)).predict_learn_intervals(x, y)
    inside = (y >= bounds[:, 0, 0]) & (y <= bounds[:, 0, 1])
    windows = np.convolve(inside[20:], np.ones(1000), "valid") / 1000
    assert windows.min() > 0.85


@given(st.integers(0, 10**6), st.integers(1, 400))
def test_bounds_are_ordered_nested_and_finite(seed, rows):
    rng = np.random.default_rng(seed)
    x = {"a": rng.normal(size=rows), "b": rng.choice(["u", "v"], rows)}
    y = rng.choice([0.0, 1.0, 5.0], rows) * rng.choice([1.0, 100.0]) + rng.normal() * x["a"]
    model = bounded((0.1, 0.5, 0.9, 0.99))
    _, bounds = model.predict_learn_intervals(x, y)
    known = bounds[20:]
    assert np.isfinite(known).all()
    assert (known[:, :, 0] <= known[:, :, 1]).all()
    assert (np.diff(known[:, :, 0], axis=1) <= 0).all()
    assert (np.diff(known[:, :, 1], axis=1) >= 0).all()
    if rows > 20:
        found = [model.predict_interval_one({"a": 0.3, "b": "u"}, level / 100)
                 for level in (3, 10, 30, 50, 70, 90, 95, 99)]  # fmt: skip
        assert all(each.lower <= each.upper for each in found)
        for inner, outer in pairwise(found):
            assert outer.lower <= inner.lower
            assert outer.upper >= inner.upper


def test_counts_have_no_bounds_below_zero():
    rng = np.random.default_rng(2)
    x = {"a": rng.random(5000)}
    y = rng.poisson(2 * x["a"]).astype(float)
    model = bounded((0.5, 0.95))
    _, bounds = model.predict_learn_intervals(x, y)
    assert bounds[200:, 1, 0].min() == 0.0
    assert (bounds[200:, 1, 0] == 0.0).mean() > 0.5


def test_quantiles_are_the_ends_of_intervals_and_ascend():
    x, y = stream()
    model = bounded()
    model.learn_many(x, y)
    row = rows_of(part(x, 0, 1))[0]
    interval = model.predict_interval_one(row, 0.95)
    assert model.predict_quantile_one(row, 0.975) == interval.upper
    assert model.predict_quantile_one(row, 0.025) == interval.lower
    found = [model.predict_quantile_one(row, q) for q in np.linspace(0.025, 0.975, 39)]
    assert (np.diff(found) >= 0).all()
    assert found[0] < found[-1]


def test_between_two_levels_bounds_follow_a_normal_distribution():
    model = bounded((0.6826894921370859, 0.9544997361036416))  # one and two deviations
    x, y = stream()
    model.learn_many(x, y)
    row = rows_of(part(x, 0, 1))[0]
    one, two = (model.predict_interval_one(row, level) for level in model.levels)
    half = model.predict_interval_one(row, 0.8663855974622838)  # one and a half
    assert half.lower == pytest.approx((one.lower + two.lower) / 2)
    assert half.upper == pytest.approx((one.upper + two.upper) / 2)


def test_before_enough_is_known_there_is_no_bound():
    model = bounded()
    assert model.predict_one({"a": 1.0}) == 0.0
    for place in range(19):
        model.learn_one({"a": float(place)}, 1.0 + place % 3)
    lower, prediction, upper = model.predict_interval_one({"a": 1.0}, 0.8)
    assert math.isnan(lower)
    assert math.isnan(upper)
    assert math.isfinite(prediction)
    assert math.isnan(model.predict_quantile_one({"a": 1.0}, 0.5))
    model.learn_one({"a": 1.0}, 2.0)
    assert np.isfinite(model.predict_interval_one({"a": 1.0}, 0.8)).all()


# -- the model inside is as it was -----------------------------------------------------------------


def test_predictions_are_those_of_the_model_to_the_last_bit():
    x, y = stream()
    plain, model = HoeffdingTreeRegressor(), bounded()
    assert (model.predict_learn_many(x, y) == plain.predict_learn_many(x, y)).all()
    assert (model.predict_many(x) == plain.predict_many(x)).all()
    for row in rows_of(part(x, 0, 50)):
        assert model.predict_one(row) == plain.predict_one(row)
        assert model.predict_interval_one(row, 0.8).prediction == plain.predict_one(row)
    assert model.model.to_bytes() == plain.to_bytes()
    assert (model.features, model.n_leaves) == (plain.features, plain.n_leaves)
    assert model.nbytes > plain.nbytes


@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_is_the_same_as_its_rows_one_by_one(weighted):
    x, y = stream(1500)
    w = np.random.default_rng(3).choice([0.5, 1.0, 4.0], len(y)) if weighted else np.ones(len(y))
    whole, parts, singly, apart = (bounded() for _ in range(4))
    predictions, bounds = whole.predict_learn_intervals(x, y, w)
    for start in range(0, len(y), 130):
        some = slice(start, start + 130)
        parts.predict_learn_many(part(x, start, start + 130), y[some], w[some])
    for place, row in enumerate(rows_of(x)):
        if place % 50 == 0:
            lower, prediction, upper = apart.predict_interval_one(row, 0.8)
            told = [lower, upper, prediction]
            right = [*bounds[place, 1], predictions[place]]
            assert told == pytest.approx(right, rel=0, abs=0, nan_ok=True)
        else:
            apart.predict_one(row)
        singly.predict_one(row)
        singly.learn_one(row, y[place], w[place])
        apart.learn_one(row, y[place], w[place])
    assert whole.to_bytes() == parts.to_bytes() == singly.to_bytes() == apart.to_bytes()


def test_a_weight_is_as_much_evidence_as_so_many_rows_for_the_size_of_errors():
    heavy, many = bounded(), bounded()
    x, y = stream(300)
    heavy.learn_many(x, y)
    many.learn_many(x, y)
    row = rows_of(part(x, 0, 1))[0]
    heavy.learn_one(row, 500.0, 3.0)
    for _ in range(3):
        many.learn_one(row, 500.0)
    place = heavy.predict_interval_one(row, 0.95).upper
    assert place == pytest.approx(many.predict_interval_one(row, 0.95).upper, rel=0.5)
    assert place > 3 * bounded_after(x, y).predict_interval_one(row, 0.95).upper


def bounded_after(x, y):
    model = bounded()
    model.learn_many(x, y)
    return model


# -- y that come late ------------------------------------------------------------------------------


def test_late_rows_are_judged_by_what_was_said_whichever_way_they_come():
    x, y = stream(1200)
    single, many = bounded(), bounded()
    rows, late = rows_of(x), 40
    for place in range(len(rows) + late):
        if place < len(rows):
            single.predict_one(rows[place])
        if place >= late:
            single.learn_one(rows[place - late], y[place - late])
    # The same by batches: 40 rows are predicted ahead, then one learned and one predicted.
    many.predict_many(part(x, 0, late))
    for place in range(late, len(rows) + late):
        if place < len(rows):
            many.predict_interval_many(part(x, place, place + 1), 0.8)
        many.learn_many(part(x, place - late, place - late + 1), y[place - late : place - late + 1])
    assert single.to_bytes() == many.to_bytes()
    assert single._bounds.pending.count == 0


def test_what_was_said_counts_and_not_what_would_be_said_now():
    x, y = stream(500)
    said, unsaid = bounded_after(x, y), bounded_after(x, y)
    row = {"a": 0.5, "b": 0.0, "city": "Rome"}
    told = said.predict_interval_one(row, 0.95)
    for model in (said, unsaid):  # meanwhile the model learns that y is at 1000 by now
        for _ in range(400):
            model.learn_one({"a": 0.5, "b": 0.1, "city": "Rome"}, 1000.0)
    before = said._bounds.overall[0].copy()
    assert unsaid._bounds.overall[0].tolist() == before.tolist()
    said.learn_one(row, told.upper + 0.01)
    unsaid.learn_one(row, told.upper + 0.01)
    # An error of a little more than the bound for the one, of a thousand for the other.
    assert 0 < said._bounds.overall[0][1] - 0.999 * before[1] < 50
    assert unsaid._bounds.overall[0][1] - 0.999 * before[1] > 500


def test_with_late_rows_coverage_is_still_as_asked_for():
    x, y = stream(6000)
    model = bounded((0.9,))
    inside = []
    for start in range(0, len(y), 200):
        some = part(x, start, start + 200)
        bounds = model.predict_interval_many(some, 0.9)
        model.learn_many(some, y[start : start + 200])
        inside += ((y[start : start + 200] - bounds.T) * [[1], [-1]] >= 0).all(axis=0).tolist()
    assert abs(np.mean(inside[1000:]) - 0.9) < 0.01


def test_predictions_that_are_never_learned_do_no_harm():
    x, y = stream(1500)
    asked, plain = bounded(), bounded()
    for start in range(0, len(y), 100):
        some = part(x, start, start + 100)
        asked.predict_many({**some, "a": some["a"] + 0.001})
        for model in (asked, plain):
            model.predict_many(some)
            model.learn_many(some, y[start : start + 100])
    assert (asked._bounds.table == plain._bounds.table).all()
    assert (asked._bounds.overall[0] == plain._bounds.overall[0]).all()


def test_what_is_remembered_is_bounded():
    x, y = stream(500)
    model = bounded_after(x, y)
    before = model.nbytes
    model.predict_many({"a": np.arange(20_000.0)})
    pending = model._bounds.pending
    assert pending.count == pending.most == 8192
    grown = (pending.room - 16) * pending.place_bytes
    assert grown <= model.nbytes - before < grown + 1_000_000


def test_a_feature_or_category_that_becomes_known_loses_no_pending_prediction():
    x, y = stream(500)
    model = bounded_after(x, y)
    row = {"a": 0.5, "b": 0.0, "city": "Ulan Bator", "new": 3.0}
    told = model.predict_interval_one(row, 0.95)
    for _ in range(5):  # meanwhile the city and the feature become known
        model.learn_one({**row, "a": 0.4}, 1000.0)
    before = model._bounds.overall[0].copy()
    assert model._bounds.pending.count == 1
    model.learn_one(row, told.upper + 0.01)
    assert model._bounds.pending.count == 0
    assert 0 < model._bounds.overall[0][1] - 0.999 * before[1] < 50


@pytest.mark.parametrize("late", [100, 500, 1000])
def test_intervals_do_not_widen_because_labels_are_delayed(late):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=8000), rng.normal(size=8000)
    model, widths, inside = bounded((0.9,)), [], []
    for start in range(0, len(y), late):
        some = {"x": x[start : start + late]}
        lower, upper = model.predict_interval_many(some, 0.9).T
        model.learn_many(some, y[start : start + late])
        if start >= 2000:
            widths += (upper - lower).tolist()
            inside += (
                (lower <= y[start : start + late]) & (y[start : start + late] <= upper)
            ).tolist()
    assert 3.1 < np.mean(widths) < 3.6  # 3.29 of a normal distribution
    assert abs(np.mean(inside) - 0.9) < 0.015


# -- other models ----------------------------------------------------------------------------------


class Own:
    """A user's class, without weights."""

    def __init__(self):
        self.mean, self.rows = 0.0, 0

    def predict_many(self, X):
        return np.full(len(next(iter(X.values()))), self.mean)

    def learn_many(self, X, y):
        for value in y:
            self.rows += 1
            self.mean += (value - self.mean) / self.rows


OTHERS = {
    "river": tree.HoeffdingTreeRegressor,
    "river's pipeline": lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
    "scikit-learn": lambda: SGDRegressor(random_state=1, learning_rate="constant", eta0=0.01),
    "own": Own,
    "baseline": LastValue,
}


@pytest.mark.parametrize("name", OTHERS)
def test_any_model_can_have_bounds(name):
    rng = np.random.default_rng(4)
    x = {"a": rng.random(3000), "b": rng.normal(size=3000)}
    y = x["b"] + rng.normal(size=3000) * np.where(x["a"] < 0.5, 0.2, 2.0)
    model, single = IntervalRegressor(OTHERS[name]()), IntervalRegressor(OTHERS[name]())
    _, bounds = model.predict_learn_intervals(x, y)
    inside = (y >= bounds[:, 1, 0]) & (y <= bounds[:, 1, 1])
    assert abs(inside[20:].mean() - 0.9) < 0.01
    width = (bounds[:, 1, 1] - bounds[:, 1, 0])[1500:]
    if name not in ("baseline", "own"):
        assert width[x["a"][1500:] < 0.5].mean() < 0.6 * width[x["a"][1500:] >= 0.5].mean()
    told = single.predict_learn_many(part(x, 0, 300), y[:300])
    twin = IntervalRegressor(OTHERS[name]())
    for place, row in enumerate(rows_of(part(x, 0, 300))):
        assert twin.predict_one(row) == told[place]
        twin.learn_one(row, y[place])
    assert (twin._bounds.table == single._bounds.table).all()
    assert (twin._bounds.overall[0] == single._bounds.overall[0]).all()
    with pytest.raises(TypeError, match="cannot be saved"):
        model.to_bytes()
    again = pickle.loads(pickle.dumps(single))
    assert again.predict_interval_one(rows_of(x)[5]) == single.predict_interval_one(rows_of(x)[5])
    assert model.copy().predict_many(x).tolist() == model.predict_many(x).tolist()


def test_rows_that_our_own_tree_cannot_read_have_bounds_all_the_same():
    class Odd:
        def predict_one(self, x):
            return float(len(x["words"]))

        def learn_one(self, x, y):
            pass

    model = IntervalRegressor(Odd())
    for place in range(60):
        model.learn_one({"words": ["a"] * (place % 5)}, place % 5 + 0.5 * (place % 2))
    lower, prediction, upper = model.predict_interval_one({"words": ["a", "b"]})
    assert prediction == 2.0
    assert 1.0 < lower < upper < 3.5


def test_predictions_that_are_no_numbers_have_no_bounds_and_teach_nothing():
    class Diverging:
        def __init__(self):
            self.rows = 0

        def predict_one(self, x):
            return [1.0, math.nan, math.inf, 1e200][self.rows % 4]

        def learn_one(self, x, y):
            self.rows += 1

    model = IntervalRegressor(Diverging())
    rng = np.random.default_rng(1)
    _, bounds = model.predict_learn_intervals({"a": rng.random(400)}, 1 + rng.random(400))
    assert np.isfinite(bounds[80::4]).all()
    assert np.isnan(bounds[1::4]).all()
    assert np.isnan(bounds[2::4]).all()
    assert model._bounds.overall[0][0] == 100
    assert model.predict_many({"a": [0.5]}).tolist() == [1.0]


@pytest.mark.parametrize("wrong", [3, "tree", object(), HoeffdingTreeRegressor])
def test_what_is_no_model_is_refused(wrong):
    if wrong is HoeffdingTreeRegressor:
        pytest.skip("a class has the methods of a model, and fails when they are called")
    with pytest.raises(TypeError, match="is no model"):
        IntervalRegressor(wrong)


def test_bounds_around_a_model_with_lags_leave_the_lags_to_it():
    y = 100.0 + 10 * np.arange(600) % 240
    x = {"x": np.zeros(600)}
    plain, model = (LaggedModel(HoeffdingTreeRegressor(), Lags([24])) for _ in range(2))
    bounds = IntervalRegressor(model)
    assert bounds.predict_learn_many(x, y).tolist() == plain.predict_learn_many(x, y).tolist()
    bounds.learn_many(part(x, 0, 30), y[:30])
    plain.learn_many(part(x, 0, 30), y[:30])
    assert model.features == ["x"]
    assert (
        model.lags.to_state()[1]["values"].tolist() == plain.lags.to_state()[1]["values"].tolist()
    )
    assert "y.lag24" in model.model.features


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [(), (0.0,), (1.0,), "0.9", 0.9, (0.5, None), [0.5, math.nan]])
def test_levels_are_shares(levels):
    with pytest.raises(ValueError, match="levels"):
        IntervalRegressor(HoeffdingTreeRegressor(), levels)


def test_levels_are_sorted_and_told_once():
    assert IntervalRegressor(HoeffdingTreeRegressor(), [0.9, 0.5, 0.9]).levels == (0.5, 0.9)
    assert repr(bounded((0.9,))).endswith("levels=(0.9))>")


@pytest.mark.parametrize("level", [0.96, 0.0, 1.0, -1, math.nan, "0.5", None])
def test_levels_that_errors_cannot_tell_are_refused(level):
    model = bounded_after(*stream(100))
    row = {"a": 0.5}
    with pytest.raises(ValueError, match="level"):
        model.predict_interval_one(row, level)
    with pytest.raises(ValueError, match="level"):
        model.predict_interval_many({"a": [0.5]}, level)


@pytest.mark.parametrize("q", [0.0, 1.0, 0.98, 0.02, math.nan])
def test_quantiles_that_errors_cannot_tell_are_refused(q):
    with pytest.raises(ValueError, match="q"):
        bounded_after(*stream(100)).predict_quantile_one({"a": 0.5}, q)


@pytest.mark.parametrize(
    ("X", "y", "w"),
    [
        ({"a": [1.0]}, [math.nan], None),
        ({"a": [1.0]}, [1e120], None),
        ({"a": [1.0]}, [1e300], None),
        ({"a": [1.0]}, [1.0], [0.0]),
        ({"a": [1.0]}, [1.0], [math.inf]),
        ({"a": [1.0, 2.0]}, [1.0], None),
        ({"a": [math.inf]}, [1.0], None),
        ({"a": ["x"]}, [1.0], None),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(X, y, w):
    model = bounded_after(*stream(300))
    model.predict_many({"a": [1.0]})
    before = model.to_bytes()
    with pytest.raises((ValueError, OverflowError)):
        model.learn_many(X, y, w)
    with pytest.raises((ValueError, OverflowError)):
        model.predict_learn_intervals(X, y, w)
    if len(X["a"]) == 1:
        with pytest.raises((ValueError, OverflowError)):
            model.learn_one({"a": X["a"][0]}, y[0], 1.0 if w is None else w[0])
    assert model.to_bytes() == before


# -- frames ----------------------------------------------------------------------------------------


def test_frames_get_frames():
    x, y = stream(500)
    model = bounded_after(x, y)
    right = model.predict_interval_many(x, 0.8)
    assert right.shape == (500, 2)
    pandas = model.predict_interval_many(pd.DataFrame(x, index=range(7, 507)), 0.8)
    assert pandas.columns.tolist() == ["lower", "upper"]
    assert pandas.index.tolist() == list(range(7, 507))
    assert (pandas.to_numpy() == right).all()
    polars = model.predict_interval_many(pl.DataFrame(x), 0.8)
    assert polars.columns == ["lower", "upper"]
    assert (polars.to_numpy() == right).all()
    arrow = model.predict_interval_many(pa.table(pd.DataFrame(x)), 0.8)
    assert arrow.column_names == ["lower", "upper"]
    assert arrow["upper"].to_pylist() == right[:, 1].tolist()
    assert model.predict_many(pd.DataFrame(x)).name == "prediction"
    other = IntervalRegressor(tree.HoeffdingTreeRegressor())
    other.learn_many(pl.DataFrame({"a": x["a"]}), y)
    assert other.predict_interval_many(pl.DataFrame({"a": x["a"]})).shape == (500, 2)


# -- files -----------------------------------------------------------------------------------------


def known():
    x, y = stream(900)
    model = bounded_after(x, y)
    model.predict_many(part(x, 0, 30))
    model.column_formats = {"when": "%Y"}
    return model


def test_files_and_copies_go_on_to_the_same_bits(tmp_path):
    model = known()
    model.save(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    x, y = stream(200, seed=9)
    twins = [
        sapwood.load(tmp_path / "model"),
        IntervalRegressor.from_bytes(data),
        model.copy(),
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ]
    for twin in twins:
        assert twin.to_bytes() == data == model.to_bytes()
        assert twin.nbytes == model.nbytes
        assert twin.column_formats == {"when": "%Y"}
    model.learn_many(x, y)
    for twin in twins:
        twin.learn_many(x, y)
        assert twin.to_bytes() == model.to_bytes()


def lies():
    header, arrays = known().to_state()
    table, overall = arrays["regions"], arrays["overall"]

    def with_number(name, place, value):
        changed = arrays[name].copy()
        changed[place] = value
        return header, {**arrays, name: changed}

    yield "levels", ({**header, "levels": [0.5, 0.8]}, arrays)
    yield "order", ({**header, "levels": [0.8, 0.5, 0.95]}, arrays)
    yield "no levels", ({**header, "levels": "0.5"}, arrays)
    yield "labels", ({**header, "labels": 0}, arrays)
    yield "labels below 0", ({**header, "labels": -1}, arrays)
    yield "entry", ({**header, "more": 1}, arrays)
    yield "array", (header, {**arrays, "more": overall})
    yield "lacking", (header, {name: arrays[name] for name in arrays if name != "errors"})
    yield "no model", (header, {**arrays, "model": arrays["model"][:-1]})
    yield "errors", (header, {**arrays, "errors": arrays["model"]})
    yield "regions", (header, {**arrays, "regions": table[:-1]})
    yield "dtype", (header, {**arrays, "regions": table.astype(np.float32)})
    yield "root", with_number("regions", 0, -1.0)
    yield "half met", with_number("regions", (0, 1), -1.0)
    yield "infinite", with_number("regions", (0, 0), np.inf)
    yield "negative", with_number("regions", (0, 2), -3.0)
    yield "quantiles", with_number("regions", (0, 3), 9.0)
    yield "far", with_number("regions", (0, 4), 1e9)
    yield "rows", with_number("overall", 0, 0.5)
    yield "weight", with_number("overall", 2, 0.0)
    yield "lately", with_number("overall", 3, np.nan)
    yield "least", with_number("overall", 4, 1e9)
    yield "least nan", with_number("overall", 4, np.nan)
    yield "seen", with_number("overall", 5, 1e9)
    yield "lateness", with_number("overall", 8, -1.0)
    yield "factor", with_number("overall", 9, 0.0)
    yield "known", with_number("pending", (0, 0), -1.0)
    yield "pending", with_number("pending", (0, 1), np.nan)
    yield "ages", with_number("pending_ages", 0, -8)
    yield "sizes", with_number("pending_sizes", 0, 2.0**62)
    yield "ids", with_number("pending_sizes", 6, 1.0)
    yield "records", (header, {**arrays, "pending": arrays["pending"][:, :-1]})


@pytest.mark.parametrize("lie", list(lies()), ids=lambda lie: lie[0])
def test_lies_in_a_file_are_noticed(lie):
    header, arrays = lie[1]
    data = container.pack("IntervalRegressor", {"format": 2, "model": header}, arrays)
    with pytest.raises(ModelFileError, match="the buffer is damaged"):
        IntervalRegressor.from_bytes(data)
