"""What holds for every tree, on whatever rows Hypothesis finds."""

import copy
import math
import pickle
import random
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sapwood
from sapwood import HoeffdingTreeRegressor, QuantizerObserver
from tree_cases import (
    MARGIN,
    OBSERVERS,
    Stream,
    beside_notes,
    friedman,
    learn_rows,
    parameters,
    r2,
    streams,
    tree_of,
    unchanged,
)

# Rows may name no feature that the tree knows; that this is told is tested with its behaviour.
pytestmark = pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")

some_cuts = st.lists(st.integers(0, 150), max_size=3)
numbers_only = {"numbers": (1, 4), "categories": (0, 0)}
# With a few rows in a leaf, two features may cut them alike; which is taken is up to rounding.
patient = {"grace_period": 40, "tau": 0.05, "delta": 0.5}
powers_of_two = st.integers(-30, 30).map(lambda power: 2.0**power)


def prequential(arguments, stream):
    return HoeffdingTreeRegressor(**arguments).predict_learn_many(
        stream.columns, stream.y, stream.w
    )


def with_columns(stream, columns):
    return Stream(columns, stream.y, stream.w)


# Batches and loops.


@given(arguments=parameters(), stream=streams(numbers=(1, 4)), cuts=some_cuts)
def test_batches_are_a_loop_to_the_last_bit(arguments, stream, cuts):
    looped = learn_rows(HoeffdingTreeRegressor(**arguments), stream).to_bytes()
    assert tree_of(stream, **arguments).to_bytes() == looped
    tree = HoeffdingTreeRegressor(**arguments)
    for part in stream.parts(cuts):
        tree.learn_many(part.columns, part.y, part.w)
    assert tree.to_bytes() == looped


@given(arguments=parameters(), stream=streams(numbers=(1, 4)), cuts=some_cuts)
def test_predict_learn_many_is_a_loop_of_both(arguments, stream, cuts):
    tree, twin = HoeffdingTreeRegressor(**arguments), HoeffdingTreeRegressor(**arguments)
    found = [tree.predict_learn_many(part.columns, part.y, part.w) for part in stream.parts(cuts)]
    expected = []
    for x, y, w in zip(stream.rows(), stream.y.tolist(), stream.w.tolist(), strict=True):
        expected.append(twin.predict_one(x))
        twin.learn_one(x, y, w)
    assert np.concatenate(found).tolist() == expected
    assert tree.to_bytes() == twin.to_bytes()


@given(arguments=parameters(), stream=streams(numbers=(1, 4)), new=streams(rows=(1, 30)))
def test_predict_many_is_a_loop_and_leaves_nothing_but_notes(arguments, stream, new):
    tree, twin = (tree_of(stream, **arguments) for _ in range(2))
    before = beside_notes(tree)
    new.columns["c0"] = [f"unseen {row}" for row in range(len(new.y))]
    new.columns["unheard of"] = [1.0] * len(new.y)
    assert [tree.predict_one(x) for x in new.rows()] == twin.predict_many(new.columns).tolist()
    assert tree.to_bytes() == twin.to_bytes()
    assert beside_notes(tree) == before


@given(arguments=parameters(), stream=streams(numbers=(1, 4)), cuts=some_cuts)
def test_predicting_and_then_learning_batches_is_a_loop(arguments, stream, cuts):
    tree, twin = HoeffdingTreeRegressor(**arguments), HoeffdingTreeRegressor(**arguments)
    for part in stream.parts(cuts):
        if part.columns:
            told = [twin.predict_one(x) for x in part.rows()]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert tree.predict_many(part.columns).tolist() == told
        tree.learn_many(part.columns, part.y, part.w)
        learn_rows(twin, part)
    assert tree.to_bytes() == twin.to_bytes()


@given(
    arguments=parameters(),
    stream=streams(numbers=(1, 4), rows=(1, 100)),
    late=st.sampled_from([0, 1, 7, 40]),
    data=st.data(),
)
def test_questions_in_between_change_no_other_prediction(arguments, stream, late, data):
    """A prediction that is never learned changes no other one, as long as it is another row.

    Predictions before the first label have no keys yet, so that there only ids tell them apart.
    """
    tree, twin = HoeffdingTreeRegressor(**arguments), HoeffdingTreeRegressor(**arguments)
    rows = [{**x, "place": place} for place, x in enumerate(stream.rows())]
    for place in range(len(rows) + late):
        if place < len(rows):
            asked = data.draw(st.integers(0, 2)) if place < 20 else 1
            for _ in range(asked if place > late else 0):
                twin.predict_one({**rows[place], "place": -1 - place})
            assert twin.predict_one(rows[place]) == tree.predict_one(rows[place])
        if place >= late:
            for each in (tree, twin):
                each.learn_one(rows[place - late], stream.y[place - late], stream.w[place - late])
    assert beside_notes(tree) == beside_notes(twin)


@given(arguments=parameters(), stream=streams(**numbers_only))
def test_an_array_is_its_rows(arguments, stream):
    stream = with_columns(stream, dict(enumerate(stream.columns.values())))
    tree, twin = HoeffdingTreeRegressor(**arguments), HoeffdingTreeRegressor(**arguments)
    predictions = tree.predict_learn_many(stream.array(), stream.y, stream.w)
    expected = []
    for x, y, w in zip(stream.rows(), stream.y.tolist(), stream.w.tolist(), strict=True):
        expected.append(twin.predict_one(x))
        twin.learn_one(x, y, w)
    if len(stream.y):
        assert tree.to_bytes() == twin.to_bytes()
    assert predictions.tolist() == expected


@given(arguments=parameters(), stream=streams(numbers=(1, 4), rows=(3, 150)), data=st.data())
def test_features_may_appear_and_vanish_between_batches(arguments, stream, data):
    tree, twin = HoeffdingTreeRegressor(**arguments), HoeffdingTreeRegressor(**arguments)
    for rows in stream.parts(data.draw(some_cuts)):
        names = data.draw(st.lists(st.sampled_from([*stream.columns]), unique=True, min_size=1))
        part = with_columns(rows, {name: rows.columns[name] for name in names})
        tree.learn_many(part.columns, part.y, part.w)
        learn_rows(twin, part)
    assert tree.to_bytes() == twin.to_bytes()


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


@given(arguments=parameters(), stream=streams(numbers=(1, 4), rows=(1, 150)))
def test_an_absent_key_is_a_missing_value(arguments, stream):
    tree, twin = HoeffdingTreeRegressor(**arguments), HoeffdingTreeRegressor(**arguments)
    for row, x in enumerate(stream.rows()):
        present = {name: value for name, value in x.items() if not is_missing(value)}
        assert tree.predict_one(present) == twin.predict_one(x)
        twin.learn_one(x, float(stream.y[row]), float(stream.w[row]))
        tree.learn_one(present if row else x, float(stream.y[row]), float(stream.w[row]))
    assert tree.to_bytes() == twin.to_bytes()


@given(arguments=parameters(), stream=streams(numbers=(1, 4), rows=(1, 150)), seed=st.integers(0))
def test_the_order_of_keys_changes_nothing(arguments, stream, seed):
    tree, shuffle = HoeffdingTreeRegressor(**arguments), random.Random(seed).shuffle
    for row, x in enumerate(stream.rows()):
        items = list(x.items())
        if row:
            shuffle(items)
        tree.learn_one(dict(items), float(stream.y[row]), float(stream.w[row]))
    assert tree.to_bytes() == tree_of(stream, **arguments).to_bytes()


@given(stream=streams(numbers=(1, 2), categories=(0, 0)), cuts=some_cuts)
def test_batches_are_a_loop_while_memory_is_short(stream, cuts):
    """Observers that grow with the rows have to be measured in a loop as in a batch."""
    arguments = {"observer": OBSERVERS["ebst"](), "max_bytes": 28_500, "grace_period": 10}
    looped = learn_rows(HoeffdingTreeRegressor(**arguments), stream)
    tree = HoeffdingTreeRegressor(**arguments)
    for part in stream.parts(cuts):
        tree.learn_many(part.columns, part.y, part.w)
    assert tree.to_bytes() == looped.to_bytes()


# Files and copies.


def through_file(tree, folder):
    tree.save(folder / "tree.sapwood")
    return sapwood.load(folder / "tree.sapwood")


WAYS = {
    "bytes": lambda tree, _: HoeffdingTreeRegressor.from_bytes(tree.to_bytes()),
    "file": through_file,
    "pickle": lambda tree, _: pickle.loads(pickle.dumps(tree)),
    "copy": lambda tree, _: copy.copy(tree),
    "deepcopy": lambda tree, _: copy.deepcopy(tree),
    "method": lambda tree, _: tree.copy(),
}


@given(
    arguments=parameters(),
    stream=streams(numbers=(1, 4)),
    cut=st.integers(0, 150),
    way=st.sampled_from([*WAYS]),
)
def test_a_copy_goes_on_as_the_original_to_the_last_bit(
    tmp_path_factory, arguments, stream, cut, way
):
    before, after = stream.parts([cut])
    tree = tree_of(before, **arguments)
    with unchanged(tree):
        twin = WAYS[way](tree, tmp_path_factory.getbasetemp())
        assert twin.to_bytes() == tree.to_bytes()
    assert twin.parameters["leaf"] == arguments["leaf"]
    expected = tree.predict_learn_many(after.columns, after.y, after.w)
    assert twin.predict_learn_many(after.columns, after.y, after.w).tolist() == expected.tolist()
    assert twin.to_bytes() == tree.to_bytes()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_tree_without_features_is_copied_too(tmp_path, way, rows):
    tree = HoeffdingTreeRegressor()
    for row in range(rows):
        tree.learn_one({}, row)
    twin = WAYS[way](tree, tmp_path)
    assert twin.to_bytes() == tree.to_bytes()
    assert twin.predict_one({}) == tree.predict_one({})


@pytest.mark.parametrize("observer", ["auto", "radius"])
def test_a_copy_goes_on_as_the_original_while_memory_is_short(observer):
    x, y = friedman(20_000)
    tree = HoeffdingTreeRegressor(max_bytes=300_000, observer=OBSERVERS[observer]())
    twin = tree.copy() if tree.features else HoeffdingTreeRegressor(**tree.parameters)
    for start in range(0, len(y), 1000):
        part = slice(start, start + 1000)
        tree.learn_many(x[part], y[part])
        twin.learn_many(x[part], y[part])
        twin = twin.copy()
        assert twin.nbytes == tree.nbytes <= 300_000
    assert twin.to_bytes() == tree.to_bytes()


# Columns.


@given(
    arguments=parameters(["auto", "ebst", "radius"], **patient),
    stream=streams(**numbers_only, rows=(0, 300), tame=True),
    seed=st.integers(0),
)
def test_the_order_of_columns_matters_only_by_rounding(arguments, stream, seed):
    names = [*stream.columns]
    random.Random(seed).shuffle(names)
    shuffled = with_columns(stream, {name: stream.columns[name] for name in names})
    expected, found = prequential(arguments, stream), prequential(arguments, shuffled)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * spread(stream.y))


def spread(y):
    return float(np.ptp(y)) + abs(float(y[0])) * 1e-6 if len(y) else 0.0


@given(
    arguments=parameters(),
    stream=streams(numbers=(0, 9)),
    value=st.sampled_from([0.0, 3.3, -1e9, 1e308, "always", True, None]),
)
@example(  # the fourth feature makes the fifth term
    arguments={"leaf": "linear"},
    stream=Stream({i: [*friedman(100)[0][:, i]] for i in range(3)}, friedman(100)[1], np.ones(100)),
    value=3.3,
)
def test_a_constant_feature_at_the_end_changes_no_prediction(arguments, stream, value):
    wider = with_columns(stream, stream.columns | {"constant": [value] * len(stream.y)})
    if not stream.columns:
        stream = with_columns(stream, {"missing": [None] * len(stream.y)})
    assert prequential(arguments, wider).tolist() == prequential(arguments, stream).tolist()


@given(
    arguments=parameters(["auto", "ebst"], **patient),
    stream=streams(**numbers_only, rows=(0, 300), tame=True),
)
def test_a_constant_feature_in_front_changes_predictions_only_by_rounding(arguments, stream):
    wider = with_columns(stream, {"constant": [2.5] * len(stream.y)} | stream.columns)
    expected, found = prequential(arguments, stream), prequential(arguments, wider)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * spread(stream.y))


@given(
    arguments=parameters(["auto", "auto-8", "ebst"]),
    stream=streams(**numbers_only, rows=(0, 300), odd=False),
    factor=powers_of_two,
)
@example(  # of what is 0 at first, no scale is known
    arguments={"leaf": "mean", "track": None, "grace_period": 10},
    stream=Stream(
        {"x": [0.0] * 30 + [1.0, 2.0, 3.0, 0.0] * 30}, np.arange(150.0) % 4, np.ones(150)
    ),
    factor=2.0**-18,
)
def test_scaling_x_by_a_power_of_two_changes_nothing(arguments, stream, factor):
    scaled = {
        name: [None if value is None else value * factor for value in column]
        for name, column in stream.columns.items()
    }
    expected = prequential(arguments, stream)
    assert prequential(arguments, with_columns(stream, scaled)).tolist() == expected.tolist()


# The target.


@given(arguments=parameters(), stream=streams(rows=(0, 300), numbers=(1, 4)), factor=powers_of_two)
def test_scaling_y_by_a_power_of_two_scales_predictions_exactly(arguments, stream, factor):
    expected = factor * prequential(arguments, stream)
    found = prequential(arguments, stream._replace(y=factor * stream.y))
    assert found.tolist() == expected.tolist()


@given(arguments=parameters(**patient), stream=streams(rows=(1, 300), numbers=(1, 4), tame=True))
@pytest.mark.parametrize("shift", [-300.0, 1e6])
def test_shifting_y_shifts_predictions_up_to_rounding(shift, arguments, stream):
    expected = prequential(arguments, stream)[1:]
    found = prequential(arguments, stream._replace(y=stream.y + shift))[1:] - shift
    rounding = 1e-9 * (abs(shift) + np.abs(stream.y).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounding + 1e-6 * spread(stream.y))


@given(arguments=parameters(), stream=streams(numbers=(1, 4)), y=st.floats(-1e6, 1e6))
def test_a_constant_y_is_predicted_exactly(arguments, stream, y):
    tree = HoeffdingTreeRegressor(**arguments)
    found = tree.predict_learn_many(stream.columns, np.full(len(stream.y), y), stream.w)
    assert found[1:].tolist() == [y] * (len(stream.y) - 1)
    assert tree.n_leaves == 1


# Predictions.


def bounds_before(y, margin):
    """The range that the y before each row but the first leave for its prediction."""
    low, high = np.minimum.accumulate(y)[:-1], np.maximum.accumulate(y)[:-1]
    reach = margin * (high - low) + 1e-12 * np.maximum(np.abs(low), np.abs(high))
    return low - reach, high + reach


@given(arguments=parameters(), stream=streams(numbers=(0, 4), rows=(2, 150)))
def test_predictions_stay_near_the_range_of_y(arguments, stream):
    if not stream.columns:
        stream.columns["missing"] = [None] * len(stream.y)
    found = prequential(arguments, stream)
    margin = 0.0 if arguments["leaf"] == "mean" else MARGIN
    # Tracking adds at most the distance of a prediction to the mean of earlier ones.
    low, high = bounds_before(stream.y, margin + (arguments["track"] == "auto") * (1 + margin))
    assert found[0] == 0.0
    assert ((low <= found[1:]) & (found[1:] <= high)).all()


@given(arguments=parameters(), x=st.dictionaries(st.text(max_size=3), st.floats(-9, 9)))
def test_a_tree_that_learned_nothing_predicts_zero(arguments, x):
    tree = HoeffdingTreeRegressor(**arguments)
    with unchanged(tree) if tree.features else pytest.MonkeyPatch().context():
        assert tree.predict_one(x) == 0.0
        assert tree.predict_many({name: [value] * 3 for name, value in x.items()}).tolist() == (
            [0.0] * 3 if x else []
        )
        assert tree.predict_many(np.zeros((4, 2))).tolist() == [0.0] * 4
    assert tree.features == []


# Weights.


@given(stream=streams(numbers=(1, 2), rows=(1, 150)))
def test_one_leaf_predicts_the_weighted_mean(stream):
    tree = tree_of(stream, leaf="mean", track=None, max_depth=0)
    expected = np.average(stream.y, weights=stream.w)
    assert tree.predict_one({}) == pytest.approx(expected, rel=1e-12, abs=1e-12 * spread(stream.y))


@given(stream=streams(numbers=(1, 2), rows=(1, 150)), factor=powers_of_two)
def test_the_scale_of_weights_does_not_matter_to_one_mean(stream, factor):
    arguments = {"leaf": "mean", "track": None, "max_depth": 0}
    scaled = stream._replace(w=factor * stream.w)
    assert prequential(arguments, scaled).tolist() == prequential(arguments, stream).tolist()


@given(stream=streams(**numbers_only, rows=(1, 100)), count=st.integers(2, 5))
def test_a_row_of_weight_k_is_k_rows_to_a_mean(stream, count):
    arguments = {"leaf": "mean", "track": None, "max_depth": 0}
    stream = stream._replace(w=np.ones(len(stream.y)))
    heavy = tree_of(stream._replace(w=count * stream.w), **arguments)
    repeated = {
        name: [value for value in column for _ in range(count)]
        for name, column in stream.columns.items()
    }
    many = tree_of(Stream(repeated, stream.y.repeat(count), stream.w.repeat(count)), **arguments)
    assert heavy.summary.weight == many.summary.weight
    assert heavy.predict_one({}) == pytest.approx(many.predict_one({}), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("factor", [2.0**-3, 2.0, 2.0**20])
def test_a_clear_split_is_the_same_at_every_scale_of_weights(factor):
    rng = np.random.default_rng(5)
    x = rng.random((2000, 3))
    y = np.where(x[:, 1] < 0.4, 0.0, 10.0) + rng.normal(size=2000)
    trees = []
    for scale in (1.0, factor):
        tree = HoeffdingTreeRegressor(
            grace_period=200 * scale, leaf="mean", track=None, max_depth=1
        )
        tree.learn_many(x, y, np.full(2000, scale))
        trees.append(tree)
    one, other = (tree.to_frame() for tree in trees)
    assert one["condition"].tolist() == other["condition"].tolist()
    assert (other["weight"] / factor).tolist() == one["weight"].tolist()
    np.testing.assert_allclose(other["mean"], one["mean"], atol=0.1)


@pytest.mark.parametrize("leaf", ["mean", "linear", "adaptive"])
@pytest.mark.parametrize("scale", [0.1, 100.0, 1e6, 1e14, 1e30, 1e45])
def test_heavy_rows_do_not_harm_the_models(leaf, scale):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 4))
    y = x @ [1.0, 2.0, 3.0, 4.0] + 0.5 * rng.normal(size=4000)
    found = []
    for weight in (1.0, scale):
        tree = HoeffdingTreeRegressor(leaf=leaf, track=None, grace_period=200 * weight)
        found.append(tree.predict_learn_many(x, y, np.full(4000, weight))[2000:])
        assert tree.copy().to_bytes() == tree.to_bytes()
    assert r2(y[2000:], found[1]) > r2(y[2000:], found[0]) - 0.1


@settings(max_examples=50)
@given(
    arguments=parameters(),
    stream=streams(numbers=(1, 3), rows=(2, 150)),
    low=st.integers(-300, 45),
    seed=st.integers(0, 99),
)
def test_weights_of_any_size_leave_a_tree_sound(arguments, stream, low, seed):
    powers = np.random.default_rng(seed).uniform(low, 45, len(stream.y))
    tree = HoeffdingTreeRegressor(**arguments)
    found = tree.predict_learn_many(stream.columns, stream.y, 10.0**powers)
    assert np.isfinite(found).all()
    assert tree.copy().to_bytes() == tree.to_bytes()
    frame = tree.to_frame()
    assert np.isfinite(frame[["weight", "mean", "deviation"]].to_numpy()).all()
    assert not math.isnan(tree.explain(stream.rows()[0]).prediction)


def test_a_radius_that_follows_the_deviation_survives_any_number():
    tree = HoeffdingTreeRegressor(observer=QuantizerObserver("std/2"), grace_period=10, delta=0.5)
    x = [1e308, -1e308, *np.random.default_rng(1).normal(size=200)]
    tree.learn_many({"x": x}, np.sign(x))
    assert tree.predict_one({"x": 1.0}) == pytest.approx(1.0, abs=0.2)


def test_no_weights_make_a_sum_of_squares_negative():
    rng = np.random.default_rng(244)
    w, y = 10.0 ** rng.uniform(-300, 40, 60), rng.normal(size=60)
    tree = HoeffdingTreeRegressor(leaf="linear", max_depth=0)
    tree.learn_many(rng.random((60, 1)), y, w)
    assert tree.copy().to_bytes() == tree.to_bytes()
    assert tree._kernel.leaf_table["residual_m2"][0] >= 0.0


@pytest.mark.parametrize("weight", [0.01, 1.0, 1e4])
def test_light_rows_find_scales_as_soon_as_heavy_ones(weight):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3))
    y = x @ [1.0, 2.0, 3.0]
    tree = HoeffdingTreeRegressor(leaf="linear", track=None, grace_period=200 * weight)
    found = tree.predict_learn_many(x, y, np.full(2000, weight))
    assert r2(y[1000:], found[1000:]) > 0.9
