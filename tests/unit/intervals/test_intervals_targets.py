"""Bounds around the predictions of several targets: what they promise, laws, ways in and out."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_intervals
import sapwood
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    IntervalRegressor,
    ModelFileError,
)
from sapwood.evaluate import prequential
from sapwood.evaluate.baselines import LastValue
from sapwood.intervals import Interval
from sapwood.lags import LaggedModel, Lags
from sapwood.storage import container
from target_cases import NAMES, columns_of, stream_of

LEVELS = (0.5, 0.8, 0.95)
MODELS = {
    "tree": lambda: HoeffdingTreeRegressor(grace_period=50, tau=0.15),
    "forest": lambda: ForestRegressor(members=2, threads=1, grace_period=50, tau=0.15),
    "adaptive": lambda: AdaptiveTreeRegressor(threads=1, grace_period=50, tau=0.15),
}
models = pytest.mark.parametrize("kind", MODELS)


def bounded(kind="tree", levels=LEVELS):
    return IntervalRegressor(MODELS[kind](), levels)


def arrays(rows, seed=1, gaps=0.3):
    """Four features and three targets, of which the last is never missing."""
    rng = np.random.default_rng(seed)
    X, columns = columns_of(rng, rows)
    Y = np.column_stack([columns[name] for name in NAMES])
    missing = rng.random(Y.shape) < gaps
    missing[:, 2] = False
    Y[missing] = np.nan
    return X, Y


def row_of(X, place):
    return dict(enumerate(X[place].tolist()))


def target_of(Y, place):
    return dict(enumerate(Y[place].tolist()))


def known_of(model):
    """All that is known of errors, as bytes."""
    return model._bounds.table.tobytes(), model._bounds.overall.tobytes()


# -- what is promised ------------------------------------------------------------------------------


@models
def test_each_target_is_covered_as_asked_for_wherever_it_is_missing(kind):
    rng = np.random.default_rng(3)
    rows = 6000
    x = {"a": rng.random(rows), "k": rng.choice(["p", "q"], rows)}
    spread = np.where(x["k"] == "p", 0.5, 3.0)
    y = {
        "one": 4 * x["a"] + rng.normal(size=rows) * spread,
        "two": 1000 - 400 * x["a"] + 100 * rng.exponential(size=rows) / spread,
    }
    y["two"][rng.random(rows) < 0.4] = np.nan
    _, bounds = IntervalRegressor(MODELS[kind](), (0.5, 0.9)).predict_learn_intervals(x, y)
    assert bounds.shape == (rows, 2, 2, 2)
    for place, own in enumerate(y.values()):
        has = np.flatnonzero(~np.isnan(own))[20:]
        for at, level in enumerate((0.5, 0.9)):
            lower, upper = bounds[has, place, at].T
            assert abs(((own[has] >= lower) & (own[has] <= upper)).mean() - level) < 0.01
        width = bounds[3000:, place, 1, 1] - bounds[3000:, place, 1, 0]
        wide, narrow = (
            width[x["k"][3000:] == label].mean() for label in ("qp" if place == 0 else "pq")
        )
        assert wide > 2 * narrow


def test_bounds_of_a_tree_are_those_of_a_slow_twin_for_each_target():
    stream = stream_of("categories", 700)
    model, told = bounded(), []
    twins = None
    for x, y, w in stream:
        prediction, region = model.model.predict_region_one(x, record=False)
        parents = model.model.region_parents.tolist()
        if twins is None:
            twins = {name: naive_intervals.Bounds(LEVELS, parents) for name in NAMES}
            prediction = dict.fromkeys(NAMES, 0.0)
        else:
            told = model.predict_intervals_one(x)[1]
        model.learn_one(x, y, w)
        for name, twin in twins.items():
            twin.parents = model.model.region_parents.tolist()
            said = twin.predict(region, prediction[name])
            if len(told):
                right = np.array(twin.published(said))
                assert told[name] == pytest.approx(right, rel=1e-6, abs=1e-9, nan_ok=True)
            if y[name] is not None:
                twin.score(region, said, y[name], w)
    assert model.n_leaves > 3
    assert all(np.isfinite(each).all() for each in told.values())


@models
def test_predictions_are_those_of_the_model_to_the_last_bit(kind):
    X, Y = arrays(600)
    plain, model = MODELS[kind](), bounded(kind)
    assert model.predict_learn_many(X, Y).tobytes() == plain.predict_learn_many(X, Y).tobytes()
    assert model.targets == plain.targets == [0, 1, 2]
    told = plain.predict_one(row_of(X, 0))
    assert model.predict_one(row_of(X, 0)) == told
    interval = model.predict_interval_one(row_of(X, 0), 0.8)
    assert {name: each.prediction for name, each in interval.items()} == told


# -- laws ------------------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_is_the_same_as_its_rows_one_by_one(kind, weighted):
    X, Y = arrays(350)
    w = np.random.default_rng(3).choice([0.5, 1.0, 4.0], len(Y)) if weighted else np.ones(len(Y))
    whole, parts, singly = (bounded(kind) for _ in range(3))
    predictions, bounds = whole.predict_learn_intervals(X, Y, w)
    for start in range(0, len(Y), 60):
        some = slice(start, start + 60)
        parts.predict_learn_many(X[some], Y[some], w[some])
    for place in range(len(Y)):
        prediction, told = singly.predict_intervals_one(row_of(X, place))
        if place:
            assert list(prediction.values()) == predictions[place].tolist()
            same = np.array_equal([*told.values()], bounds[place], equal_nan=True)
            assert same, place
        singly.learn_one(row_of(X, place), target_of(Y, place), w[place])
    assert known_of(whole) == known_of(parts) == known_of(singly)
    rest = row_of(X, 5)
    assert whole.predict_interval_one(rest) == singly.predict_interval_one(rest)


@models
@pytest.mark.parametrize("several", [False, True])
def test_rows_that_were_not_predicted_are_learned_as_by_the_model_alone(kind, several):
    X, Y = arrays(350)
    Y = Y if several else np.nan_to_num(Y[:, 0])
    plain, whole, singly = MODELS[kind](), bounded(kind), bounded(kind)
    plain.learn_many(X, Y)
    whole.learn_many(X, Y)
    for place in range(len(Y)):
        singly.learn_one(row_of(X, place), target_of(Y, place) if several else Y[place])
    assert whole.to_bytes() == singly.to_bytes()
    assert whole.model.to_bytes() == plain.to_bytes()


@given(st.integers(0, 10**6), st.permutations([0, 1, 2]), st.sampled_from([*MODELS]))
def test_targets_in_another_order_give_the_same_bounds(seed, order, kind):
    X, Y = arrays(120, seed)
    one, other = bounded(kind), bounded(kind)
    predictions, bounds = one.predict_learn_intervals(X, Y)
    said, told = other.predict_learn_intervals(X, np.ascontiguousarray(Y[:, order]))
    assert said.tobytes() == np.ascontiguousarray(predictions[:, order]).tobytes()
    assert told.tobytes() == np.ascontiguousarray(bounds[:, order]).tobytes()


@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([*MODELS]))
def test_a_target_that_is_always_missing_changes_nothing(seed, place, kind):
    X, Y = arrays(120, seed)
    one, other = bounded(kind), bounded(kind)
    _, bounds = one.predict_learn_intervals(X, Y)
    _, wider = other.predict_learn_intervals(X, np.insert(Y, place, np.nan, axis=1))
    assert np.delete(wider, place, axis=1).tobytes() == bounds.tobytes()
    assert np.isnan(wider[:, place]).all()


@given(st.integers(0, 10**6), st.integers(2, 4))
def test_copies_of_one_target_have_the_bounds_of_one(seed, copies):
    X, Y = arrays(200, seed)
    one, several = bounded(), bounded()
    _, bounds = one.predict_learn_intervals(X, Y[:, 2])
    _, told = several.predict_learn_intervals(X, np.repeat(Y[:, 2:], copies, axis=1))
    for place in range(copies):
        np.testing.assert_allclose(told[:, place], bounds, rtol=1e-6, atol=1e-9)


# -- y that come late ------------------------------------------------------------------------------


@models
def test_late_rows_are_judged_by_what_was_said_whichever_way_they_come(kind):
    X, Y = arrays(300)
    single, many = bounded(kind), bounded(kind)
    for model in (single, many):
        model.learn_many(X[:20], Y[:20])
    late = 15
    for place in range(20, len(Y) + late):
        if place < len(Y):
            single.predict_one(row_of(X, place))
            many.predict_interval_many(X[place : place + 1], 0.8)
        if place >= 20 + late:
            old = place - late
            single.learn_one(row_of(X, old), target_of(Y, old))
            many.learn_many(X[old : old + 1], Y[old : old + 1])
    assert known_of(single) == known_of(many)
    assert single._bounds.pending.count == many._bounds.pending.count == 0


def test_what_was_said_counts_and_not_what_would_be_said_now():
    X, Y = arrays(300, gaps=0.0)
    said, unsaid = bounded(), bounded()
    for model in (said, unsaid):
        model.learn_many(X, Y)
    row = {**row_of(X, 0), 2: X[0, 2] + 1e-6}
    told = said.predict_interval_one(row, 0.95)
    for model in (said, unsaid):
        for _ in range(100):
            model.learn_one(row_of(X, 0), {0: 1000.0, 1: 120.0})
    assert known_of(said) == known_of(unsaid)
    before = said._bounds.overall[:, 1].copy()
    for model in (said, unsaid):
        model.learn_one(row, {0: told[0].upper + 0.01, 1: None, 2: told[2].upper})
    # An error of a little more than the bound for the one, of hundreds for the other.
    assert 0 < said._bounds.overall[0, 1] - 0.999 * before[0] < 50
    assert unsaid._bounds.overall[0, 1] - 0.999 * before[0] > 200
    assert said._bounds.overall[1, 1] == unsaid._bounds.overall[1, 1] == before[1]


# -- ways in and out -------------------------------------------------------------------------------


def named(rows=300):
    X, Y = arrays(rows)
    return dict(zip("uvwx", X.T, strict=True)), dict(zip(NAMES, Y.T, strict=True))


def test_bounds_come_back_in_kind():
    x, y = named()
    model = bounded()
    model.learn_many(pd.DataFrame(x), pd.DataFrame(y))
    matrix = np.column_stack([*x.values()])
    right = model.predict_interval_many(matrix, 0.8)
    assert right.shape == (300, 3, 2)
    predictions, bounds = model.predict_intervals_many(matrix)
    assert (bounds[:, :, 1] == right).all()
    columns = model.predict_interval_many(x, 0.8)
    assert list(columns) == ["a", "b", "c"]
    assert (columns["b"] == right[:, 1]).all()
    pandas = model.predict_interval_many(pd.DataFrame(x, index=range(7, 307)), 0.8)
    names = ["lower_a", "upper_a", "lower_b", "upper_b", "lower_c", "upper_c"]
    assert pandas.columns.tolist() == names
    assert pandas.index.tolist() == list(range(7, 307))
    assert (pandas.to_numpy().reshape(300, 3, 2) == right).all()
    assert model.predict_interval_many(pl.DataFrame(x), 0.8).columns == names
    arrow = model.predict_interval_many(pa.table(x), 0.8)
    assert arrow["upper_c"].to_pylist() == right[:, 2, 1].tolist()
    assert model.predict_many(pl.DataFrame(x)).columns == ["a", "b", "c"]
    row = {name: float(column[4]) for name, column in x.items()}
    told = model.predict_interval_one(row, 0.8)
    assert told["b"] == Interval(right[4, 1, 0], predictions[4, 1], right[4, 1, 1])
    quantile = model.predict_quantile_one(row, 0.9)
    assert quantile == {name: each.upper for name, each in told.items()}
    assert {name: each.tolist() for name, each in model.predict_intervals_one(row)[1].items()} == (
        dict(zip("abc", bounds[4].tolist(), strict=True))
    )
    widths = model.widths
    assert list(widths) == ["a", "b", "c"]
    assert len(widths["a"]) == model.n_leaves
    assert (widths["b"]["width"] > 0).all()


@models
@pytest.mark.parametrize("shape", ["dict", "pandas", "polars", "arrow", "rows"])
def test_frames_are_learned_as_arrays_are(kind, shape):
    x, y = named(60)
    turned = {
        "dict": lambda columns: columns,
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.table,
        "rows": lambda columns: pd.DataFrame(columns).to_dict("records"),
    }[shape]
    model, right = bounded(kind), bounded(kind)
    right.learn_many(x, y)
    model.learn_many(turned(x), turned(y))
    right.predict_learn_many(x, y)
    model.predict_learn_many(turned(x), turned(y))
    assert known_of(model) == known_of(right)


def test_a_model_that_has_learned_several_targets_gets_bounds_for_each():
    X, Y = arrays(200)
    tree = MODELS["tree"]()
    tree.learn_many(X, Y)
    model = IntervalRegressor(tree)
    assert model.targets == [0, 1, 2]
    assert all(math.isnan(each.lower) for each in model.predict_interval_one(row_of(X, 0)).values())
    model.learn_many(X, Y)
    assert np.isfinite([*model.predict_interval_one(row_of(X, 0)).values()]).all()
    late = bounded()
    late.predict_one(row_of(X, 0))
    late.model.learn_many(X, Y)  # behind its back
    assert list(late.predict_one(row_of(X, 0))) == [0, 1, 2]
    assert IntervalRegressor.from_bytes(late.to_bytes()).targets == [0, 1, 2]


def test_nothing_is_told_before_the_first_row_but_one_number():
    model = bounded()
    assert model.predict_one({0: 1.0}) == 0.0
    assert model.predict_interval_many([[1.0]]).shape == (1, 2)
    assert model.targets == []
    assert model.several_targets


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, 2.0], "3 columns|one column"),
        ([[1.0, 2.0], [1.0, 2.0]], "2 columns"),
        ({"q": [1.0, 2.0], 0: [1.0, 2.0]}, "'q'"),
        ([[1.0, 2.0, math.inf], [1.0, 2.0, 3.0]], "inf"),
        ([[1.0, 2.0, 1e120], [1.0, 2.0, 3.0]], "1e"),
        ([[1.0, "x", 1.0], [1.0, 2.0, 3.0]], "x"),
        ([[math.nan] * 3, [1.0, 2.0, 3.0]], "no target"),
    ],
)
@models
def test_bad_targets_are_refused_and_change_nothing(kind, y, words):
    X, Y = arrays(60)
    model = bounded(kind)
    model.learn_many(X, Y)
    model.predict_many(X[:5])
    before = model.to_bytes()
    for learn in (model.learn_many, model.predict_learn_intervals):
        with pytest.raises((ValueError, OverflowError), match=words):
            learn(X[:2], y)
    row = {name: each[0] for name, each in y.items()} if isinstance(y, dict) else y[0]
    for place in (0, 20):  # which was predicted, and was not
        with pytest.raises((ValueError, OverflowError)):
            model.learn_one(row_of(X, place), row)
    with pytest.raises(ValueError, match=r"positive|weight"):
        model.learn_many(X[:2], Y[:2], [1.0, 0.0])
    with pytest.raises(ValueError, match="lengths"):
        model.learn_many(X[:3], Y[:2])
    assert model.to_bytes() == before


def test_models_of_one_target_refuse_several():
    other = IntervalRegressor(LastValue())
    assert other.targets == []
    with pytest.raises(ValueError, match="LastValue learns one target"):
        other.learn_many([[1.0], [2.0]], [[1.0, 2.0], [3.0, 4.0]])
    lagged = IntervalRegressor(LaggedModel(HoeffdingTreeRegressor(), Lags([1])))
    with pytest.raises(ValueError, match="LaggedModel learns one target"):
        lagged.learn_many([[1.0], [2.0]], [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="LaggedModel learns one target, and there are 2"):
        prequential(lagged.model, [[1.0], [2.0]], [[1.0, 2.0], [3.0, 4.0]])
    one = bounded()
    one.learn_many([[1.0], [2.0]], [1.0, 2.0])
    before = one.to_bytes()
    with pytest.raises(ValueError, match="has learned one target"):
        one.learn_many([[1.0], [2.0]], [[1.0, 2.0], [3.0, 4.0]])
    assert one.to_bytes() == before


def test_huge_values_leave_all_finite():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    Y = rng.choice([0.0, 1e-300, 1e99, -1e99, 1.0], (400, 2))
    for kind in MODELS:
        model = bounded(kind)
        _, bounds = model.predict_learn_intervals(X, Y)
        assert np.isfinite(bounds[20:]).all()
        assert IntervalRegressor.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


# -- one of them -----------------------------------------------------------------------------------


@models
def test_one_target_alone_tells_the_same_bounds_and_learns_on(kind):
    stream = stream_of("categories", 700)
    model = bounded(kind)
    model.learn_many([x for x, _, _ in stream], [y for _, y, _ in stream])
    model.column_formats = {"when": "%Y"}
    alone = {name: model.of_target(name) for name in NAMES}
    for x, _, _ in stream[:30]:
        told, bounds = model.predict_intervals_one(x)
        for name, own in alone.items():
            prediction, right = own.predict_intervals_one(x)
            assert prediction == told[name]
            assert right.tolist() == bounds[name].tolist()
    for name, own in alone.items():
        assert own.column_formats == {"when": "%Y"}
        assert own.widths.tolist() == model.widths[name].tolist()
        again = IntervalRegressor.from_bytes(own.to_bytes())
        again.learn_one(stream[0][0], 3.0)
        assert again.predict_interval_one(stream[1][0]).prediction != 0.0
    with pytest.raises(ValueError, match="one of 'a', 'b', 'c' is expected"):
        model.of_target("z")
    with pytest.raises(ValueError, match="the model has one target"):
        alone["a"].of_target("a")


# -- files -----------------------------------------------------------------------------------------


def known(kind="tree"):
    X, Y = arrays(200)
    model = bounded(kind)
    model.learn_many(X, Y)
    model.predict_many(X[:30])
    return model


@models
def test_files_and_copies_go_on_to_the_same_bits(kind, tmp_path):
    model = known(kind)
    model.save(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    X, Y = arrays(60, seed=9)
    twins = [
        sapwood.load(tmp_path / "model"),
        model.copy(),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ]
    for twin in twins:
        assert twin.to_bytes() == data == model.to_bytes()
        assert twin.nbytes == model.nbytes
    model.learn_many(X, Y)
    for twin in twins:
        twin.learn_many(X, Y)
        assert twin.to_bytes() == model.to_bytes()
    plain = model.model.nbytes + (0 if kind == "tree" else model.region_tree.nbytes)
    bounds = model._bounds
    own = bounds.table.nbytes + bounds.overall.nbytes + bounds.factors.nbytes + 24 + 8
    assert model.nbytes == plain + own + bounds.pending.nbytes


def lies():
    header, arrays = known().to_state()
    regions = len(arrays["regions"]) // 3

    def with_number(name, place, value):
        changed = arrays[name].copy()
        changed[place] = value
        return header, {**arrays, name: changed}

    two = bounded()
    two.learn_many([[1.0], [2.0]], [[1.0, 2.0], [3.0, 4.0]])
    yield "two targets", (header, {**arrays, "model": two.to_state().arrays["model"]})
    yield "regions", (header, {**arrays, "regions": arrays["regions"][:regions]})
    yield "overall", (header, {**arrays, "overall": arrays["overall"][:12]})
    yield "shape", (header, {**arrays, "overall": arrays["overall"].reshape(3, -1)})
    yield "root of the third", with_number("regions", 2 * regions, -1.0)
    yield "quantiles of the second", with_number("regions", (regions, 3), 9.0)
    yield "rows of the second", with_number("overall", 12, 0.5)
    yield "least of the third", with_number("overall", 24 + 4, 1e9)
    yield "pending of the second", with_number("pending", (0, 9), np.nan)
    yield "records", (header, {**arrays, "pending": arrays["pending"][:, :9]})


@pytest.mark.parametrize("lie", list(lies()), ids=lambda lie: lie[0])
def test_lies_in_a_file_are_noticed(lie):
    header, arrays = lie[1]
    data = container.pack("IntervalRegressor", {"format": 2, "model": header}, arrays)
    with pytest.raises(ModelFileError, match="the buffer is damaged"):
        IntervalRegressor.from_bytes(data)
