"""Columns, or y, that come in other units from some row on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from cases import predicted_one_by_one
from naive_units import NaiveUnits, find_map, is_sample, roundest
from sapwood import HoeffdingTreeRegressor as Tree
from sapwood.inspect.view import UnitChange
from sapwood.merge import snapshot
from sapwood.tree import tree_state
from sapwood.tree._rescaling import in_other_units
from sapwood.tree._units import nearest_power_of_ten, roundest_number
from tree_cases import r2
from tree_file_cases import assert_refused, packed

BEFORE, COLLECTED, WEIGHED = 6000, 64, 64


def friedman(rows, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 6))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    return X, y + 5 * X[:, 4] + rng.normal(size=rows)


def changed(column, scale, shift, rows=BEFORE + 3000, at=BEFORE):
    """Rows of which a column (-1 is y) is in other units from some row on."""
    X, y = friedman(rows)
    values = y if column < 0 else X[:, column]
    values[at:] = scale * values[at:] + shift
    return X, y


# -- the whole tree in other units ----------------------------------------------------------------


def mixed_columns(rows, seed=3):
    """Numbers, some of them missing, a category of few and one of many; y depends on all."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    few, many = rng.integers(0, 5, rows), rng.integers(0, 150, rows)
    level = rng.normal(0, 3, 150)
    y = np.where(x[:, 0] < 0.2, 3 * x[:, 1], -2.0) + 2.0 * few + level[many]
    x[rng.random(x.shape) < 0.05] = np.nan
    columns = {"a": x[:, 0], "b": x[:, 1], "few": [f"f{i}" for i in few]}
    return columns | {"many": [f"m{i}" for i in many]}, y + 0.1 * rng.normal(size=rows)


@pytest.mark.parametrize("leaf", ["adaptive", "mean"])
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**5])
@pytest.mark.parametrize(
    ("column", "targets"), [("a", 1), ("b", 1), (None, 1), ("a", 2), ("b", 2), ("numbers", 2)]
)
def test_a_tree_in_other_units_is_what_it_would_have_become(column, targets, scale, leaf):
    """To the last bit, as nothing is rounded by powers of 2; and it goes on so."""
    columns, y = mixed_columns(3000)
    more, z = mixed_columns(500, seed=4)
    if column == "numbers":  # without categories, targets share their terms
        column = "a"
        columns, more = ({name: each[name] for name in "ab"} for each in (columns, more))
    if targets > 1:
        y = np.stack([y, np.where(np.arange(3000) % 7 == 0, np.nan, np.abs(y) - 2.0)], 1)
        z = np.stack([z, -z], 1)
    tree, other = Tree(track=None, leaf=leaf), Tree(track=None, leaf=leaf)
    tree.learn_many(columns, y)
    feature = -1 if column is None else tree.features.index(column)
    assert in_other_units(tree._kernel, feature, scale, 0.0)
    times = scale if column is None else 1.0
    if column is not None:
        columns[column], more[column] = scale * columns[column], scale * more[column]
    other.learn_many(columns, times * y)
    assert repr(tree.predict_many(more)) == repr(other.predict_many(more))
    said = [each.predict_learn_many(more, times * z) for each in (tree, other)]
    if targets > 1:
        said = [np.concatenate(list(each.values())) for each in said]
    assert said[0].tobytes() == said[1].tobytes()
    assert tree.n_leaves == other.n_leaves > 5
    assert tree.to_text() == other.to_text()


@pytest.mark.parametrize("column", [0, 3, -1])
def test_a_shift_moves_the_whole_tree(column):
    X, y = friedman(5000)
    tree, other = Tree(track=None), Tree(track=None)
    tree.learn_many(X, y)
    assert in_other_units(tree._kernel, column, 3.5, -700.0)
    before = other.predict_many(X[:5])  # of a tree that knows nothing
    assert before.tolist() == [0.0] * 5
    other.learn_many(X, y)
    X2, _ = friedman(400, seed=2)
    expected = other.predict_many(X2)
    if column < 0:
        expected = 3.5 * expected - 700
    else:
        X2[:, column] = 3.5 * X2[:, column] - 700
    assert np.abs(tree.predict_many(X2) - expected).max() < 1e-8
    assert sapwood.HoeffdingTreeRegressor.from_bytes(tree.to_bytes()).n_leaves == tree.n_leaves


def test_what_would_leave_the_doubles_is_left_as_it_is():
    X, y = friedman(1500)
    tree = Tree(track=None)
    tree.learn_many(1e280 * X, y)
    data = tree.to_bytes()
    assert not in_other_units(tree._kernel, 3, 1e25, 0.0)
    assert not in_other_units(tree._kernel, -1, 1e99, 0.0)
    assert tree.to_bytes() == data
    with pytest.raises(IndexError):
        in_other_units(tree._kernel, 6, 2.0, 0.0)


# -- what is noticed ------------------------------------------------------------------------------

CHANGES = {
    "x3 times 1,000": (3, 1000.0, 0.0),
    "x3 times .001": (3, 0.001, 0.0),
    "x3 plus 100": (3, 1.0, 100.0),
    "x3 in percent": (3, 100.0, 0.0),
    "y times 1,000": (-1, 1000.0, 0.0),
    "y times .001": (-1, 0.001, 0.0),
    "y plus 100": (-1, 1.0, 100.0),
}


@pytest.mark.parametrize(("column", "scale", "shift"), CHANGES.values(), ids=CHANGES.keys())
def test_other_units_are_followed(column, scale, shift):
    X, y = changed(column, scale, shift)
    tree = Tree()
    said = tree.predict_learn_many(X, y)
    [change] = tree.unit_changes
    assert change.column == (None if column < 0 else str(column))
    assert change.scale == scale
    assert abs(change.shift - shift) < 1.5
    assert BEFORE + 128 < change.row < BEFORE + 1300
    late = change.row + 200
    assert r2(y[late:], said[late:]) > 0.88
    assert str(change) in str(tree.summary)


def test_the_way_back():
    X, y = changed(3, 1000.0, 0.0, rows=12_000)
    X[9000:, 3] /= 1000.0
    tree = Tree()
    said = tree.predict_learn_many(X, y)
    assert [(each.column, each.scale) for each in tree.unit_changes] == [("3", 1000), ("3", 0.001)]
    assert r2(y[10_500:], said[10_500:]) > 0.9


def test_all_columns_at_once():
    X, y = friedman(BEFORE + 2000)
    X[BEFORE:] *= 1000.0
    tree = Tree()
    said = tree.predict_learn_many(X, y)
    assert {each.column for each in tree.unit_changes} == set("012345")
    assert {each.scale for each in tree.unit_changes} == {1000.0}
    assert r2(y[BEFORE + 200 :], said[BEFORE + 200 :]) > 0.9


def test_the_last_sixteen_changes_are_remembered():
    tree = Tree()
    tree.learn_many(*friedman(3000))
    state = tree.to_state()
    state.arrays["changes"]["row"] = np.arange(1, 17)
    state.arrays["changes"]["scale"] = 2.0
    tree = Tree.from_state(state, Tree.format)
    X, y = friedman(2000, seed=2)
    tree.learn_many(X, y)
    X, y = friedman(600, seed=3)
    tree.learn_many(1000 * X, y)
    rows = [change.row for change in tree.unit_changes]
    assert len(rows) == 16
    assert rows[:10] == list(range(7, 17))
    assert set(rows[10:]) == {5131}


def test_words():
    assert str(UnitChange(7, None, 0.5, 2.0)).endswith("row 7: 0.5 times what it was + 2")


# -- what is not ----------------------------------------------------------------------------------


def awkward(kind, rng, X, y):  # noqa: PLR0912
    """Change a stream so that its units seem to change, which they do not."""
    rows = np.arange(len(y))
    if kind == "heavy tails":
        X[:, 3] = rng.standard_cauchy(len(y))
    elif kind == "heavy tails of y":
        y += rng.standard_cauchy(len(y))
    elif kind == "trend":
        X[:, 5] = rows
        y += rows / 500
    elif kind == "walk":
        X[:, 5] = np.cumsum(rng.normal(size=len(y)))
        y += np.cumsum(rng.normal(size=len(y))) / 3
    elif kind == "nights":
        sun = np.maximum(0, np.sin(rows / 120))
        X[:, 3] *= sun
        y[:] = 50 * X[:, 3] + 0.1 * rng.normal(size=len(y))
    elif kind == "glitches":
        for start in range(4000, len(y), 700):
            X[start : start + 2, 3] *= 1e4
            y[start + 300 : start + 302] *= 1e4
    elif kind == "bursts":
        for start in range(4000, len(y), 900):
            X[start : start + 30, 3] *= 1000
    elif kind == "stuck":
        X[6000:7000, 3] = 0.4
        y[8000:8500] = 11.0
    elif kind == "missing":
        X[6000:7500, 3] = np.nan
    elif kind == "appears":
        X[:5000, 3] = 0.0
    elif kind == "drift":
        X[6000:] = np.roll(X[6000:], 3, axis=1)
        y += 8.0 * (rows > 9000)
    elif kind == "rest":
        # A machine that stands still: noise of a sensor that says nothing of y any more.
        X[6000:, 3] *= 0.001
        y[6000:] = rng.normal(12, 1, len(y) - 6000)
    return X, y


KINDS = ["heavy tails", "heavy tails of y", "trend", "walk", "nights", "glitches", "bursts"]
KINDS += ["stuck", "missing", "appears", "drift", "rest"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_else_is_taken_for_other_units(kind):
    for seed in range(3):
        X, y = friedman(12_000, seed)
        tree = Tree()
        tree.learn_many(*awkward(kind, np.random.default_rng(seed), X, y))
        assert tree.unit_changes == []


def test_trees_with_observers_take_all_as_it_is():
    tree = Tree(observer=sapwood.QuantizerObserver(radius=0.1))
    tree.learn_many(*changed(3, 1000.0, 0.0))
    assert tree.unit_changes == []
    assert not tree._kernel.watching_units


@pytest.mark.parametrize("case", ["no layer", "two targets", "adaptive", "forest"])
def test_y_is_followed_by_trees_of_one_target_with_a_layer_alone(case):
    X, y = changed(-1, 1000.0, 0.0)
    trees = learned(MORE[case](), X, y if case != "two targets" else two_of(y))
    assert [tree.unit_changes for tree in trees] == [[]] * len(trees)
    assert all(not tree._kernel.columns.unit_table["samples"][0] for tree in trees)


# -- several targets and ensembles -------------------------------------------------------------------


MORE = {
    "no layer": lambda: Tree(track=None),
    "two targets": Tree,
    "adaptive": lambda: sapwood.AdaptiveTreeRegressor(threads=1),
    "forest": lambda: sapwood.ForestRegressor(members=3, threads=1),
    "adaptive, two targets": lambda: sapwood.AdaptiveTreeRegressor(threads=1),
}


def two_of(y):
    """Two targets; the second has another sign and scale, and is missing in some rows."""
    return np.stack([y, np.where(np.arange(len(y)) % 5 == 0, np.nan, 7.0 - 0.01 * y)], 1)


def learned(model, X, y):
    """Let a model learn; return its trees."""
    for start in range(0, len(y), 500):
        model.learn_many(X[start : start + 500], y[start : start + 500])
    if isinstance(model, Tree):
        return [model]
    return [model.member(place) for place in range(model._kernel.members)]


@pytest.mark.parametrize("case", MORE)
@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (0.001, 0.0), (1.0, 100.0)])
def test_units_of_features_are_followed(case, scale, shift):
    X, y = changed(3, scale, shift)
    is_several = "two" in case
    y = two_of(y) if is_several else y
    model = MORE[case]()
    trees = learned(model, X[: BEFORE + 400], y[: BEFORE + 400])
    # The member of a forest that never splits errs so much that it may take any values as they are.
    for tree in trees[:-1] if case == "forest" else trees:
        (found,) = tree.unit_changes
        assert (found.column, found.scale) == ("3", scale)
        assert found.shift == pytest.approx(shift, abs=0.2)
        assert found.row <= BEFORE + 128 + COLLECTED + WEIGHED
    now = model.predict_many(X[BEFORE + 400 :])
    y = y[BEFORE + 400 :]
    for target in range(2 if is_several else 1):
        actual, said = (y[:, target], now[:, target]) if is_several else (y, now)
        known = ~np.isnan(actual)
        assert r2(actual[known], said[known]) > 0.8


def test_equal_targets_are_followed_as_one_of_them():
    X, y = changed(3, 1000.0, 0.0)
    one, many = Tree(track=None), Tree(track=None)
    one.learn_many(X, y)
    many.learn_many(X, np.stack([y, y, y], 1))
    assert one.unit_changes == many.unit_changes != []
    assert one.n_leaves == many.n_leaves


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["two targets", "adaptive", "forest"])
def test_nothing_else_is_taken_for_other_units_of_these(kind, case):
    X, y = friedman(9_000, 1)
    X, y = awkward(kind, np.random.default_rng(1), X, y)
    trees = learned(MORE[case](), X, two_of(y) if case == "two targets" else y)
    assert [tree.unit_changes for tree in trees] == [[]] * len(trees)


@pytest.mark.parametrize("case", ["two targets", "adaptive", "forest", "adaptive, two targets"])
def test_rows_of_these_by_batches_or_one_by_one_and_from_files(case):
    """Through all phases: at rest, while values are collected, while maps are weighed, and after."""
    X, y = changed(3, 1000.0, 0.0, rows=BEFORE + 200)
    y = two_of(y) if "two" in case else y
    whole, parts = MORE[case](), MORE[case]()
    learned(whole, X[:BEFORE], y[:BEFORE])
    learned(parts, X[:BEFORE], y[:BEFORE])
    single, phases = type(whole).from_bytes(whole.to_bytes()), set()
    whole.learn_many(X[BEFORE:], y[BEFORE:])
    for start in range(BEFORE, len(y), 37):
        parts.learn_many(X[start : start + 37], y[start : start + 37])
        parts = type(parts).from_bytes(parts.to_bytes())
        tree = parts._kernel if isinstance(parts, Tree) else parts._kernel.trees[0]
        phases.add(int(tree.unit_detection_table["phase"][0]))
    for row in range(BEFORE, len(y)):
        x = dict(zip(single.features, X[row].tolist(), strict=True))
        if "two" in case:
            single.learn_one(x, dict(zip(single.targets, y[row].tolist(), strict=True)))
        else:
            single.learn_one(x, float(y[row]))
    assert phases == {0, 1, 2}
    assert whole.to_bytes() == parts.to_bytes() == single.to_bytes()


def test_one_of_several_targets_is_predicted_the_same_while_units_change():
    X, y = changed(3, 1000.0, 0.0, rows=BEFORE + 140)
    y = two_of(y)
    tree = Tree()
    tree.learn_many(X[: BEFORE - 1], y[: BEFORE - 1])
    for row in range(BEFORE - 1, len(y)):
        tree.learn_many(X[row : row + 1], y[row : row + 1])
        if row % 10 == 0:
            said = tree.predict_many(X[-50:])
            for place, name in enumerate(tree.targets):
                alone = tree.of_target(name)
                np.testing.assert_array_equal(alone.predict_many(X[-50:]), said[:, place])
                alone.learn_many(X[-50:], y[-50:, 0])
                assert Tree.from_bytes(alone.to_bytes()).to_bytes() == alone.to_bytes()
    assert tree.unit_changes == tree.of_target(tree.targets[0]).unit_changes != []


def test_workers_stay_in_the_units_of_the_snapshot():
    tree = Tree()
    tree.learn_many(*friedman(3000))
    worker, _ = snapshot.tree_of_snapshot(snapshot.take_snapshot(tree))
    X, y = friedman(1000, seed=2)
    worker.learn_many(1000 * X, y)
    assert worker.unit_changes == []


# -- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [3, -1])
@pytest.mark.parametrize("scale", [1000.0, 0.001])
def test_rows_by_batches_or_one_by_one(column, scale):
    X, y = changed(column, scale, 0.0, rows=BEFORE + 900)
    whole, parts, single = Tree(), Tree(), Tree()
    said = whole.predict_learn_many(X, y)
    start = [parts.predict_learn_many(X[i : i + 37], y[i : i + 37]) for i in range(0, len(y), 37)]
    rows = [dict(enumerate(row)) for row in X.tolist()]
    alone = predicted_one_by_one(single, rows, y)
    assert np.concatenate(start).tobytes() == said.tobytes() == np.array(alone).tobytes()
    assert whole.to_bytes() == parts.to_bytes()
    assert whole.unit_changes == single.unit_changes


@pytest.mark.parametrize("column", [3, -1])
@pytest.mark.parametrize("after", [2, 20, 100, 140])
def test_saved_in_the_middle_of_it(column, after):
    X, y = changed(column, 1000.0, 0.0, rows=BEFORE + 400)
    tree, at = Tree(), BEFORE + after
    tree.learn_many(X[:at], y[:at])
    phase = tree._kernel.unit_detection_table["phase"][0]
    assert phase == {2: 0, 20: 1, 100: 2, 140: 0}[after]
    loaded = Tree.from_bytes(tree.to_bytes())
    assert loaded.to_bytes() == tree.to_bytes()
    assert loaded.nbytes == tree.nbytes
    said = tree.predict_learn_many(X[at:], y[at:])
    assert loaded.predict_learn_many(X[at:], y[at:]).tobytes() == said.tobytes()
    assert loaded.unit_changes == tree.unit_changes != []


def test_what_is_too_far_away_counts_as_missing_meanwhile():
    X, y = changed(3, 1000.0, 0.0)
    tree, at = Tree(), BEFORE + 30
    tree.learn_many(X[:at], y[:at])
    row = dict(enumerate(X[at].tolist()))
    assert row[3] > 10
    said = tree.predict_one(row)
    assert said == tree.predict_one({**row, 3: None}) == tree.predict_many(X[at : at + 1])[0]
    assert said != tree.predict_one({**row, 3: 0.9})


def test_what_is_said_while_y_is_doubted_follows_it():
    X, y = changed(-1, 1.0, 1e4)
    tree, at = Tree(), BEFORE + 30
    tree.learn_many(X[:at], y[:at])
    said = tree.predict_many(X[at : at + 9])
    assert len(set(said.tolist())) == 1
    assert abs(said[0] - y[at - 10 : at].mean()) < 10


# -- the twin -------------------------------------------------------------------------------------


def test_samples_and_maps_are_those_of_the_twin():
    X, y = changed(3, 25.4, 0.0)
    X[::3, 5] = 0.25
    tree, twins = Tree(), [NaiveUnits() for _ in range(7)]
    tree.learn_many(X[:BEFORE], y[:BEFORE])
    for row in filter(is_sample, range(BEFORE)):
        twins[0].add(y[row], abs(y[row] - y[row - 1]))
        for twin, x in zip(twins[1:], X[row].tolist(), strict=True):
            twin.add(x, abs(x - twin.values[-1]) if twin.values else 0.0)
    for twin, record in zip(twins, tree._kernel.columns.unit_table, strict=True):
        for name, value in twin.told.items():
            assert record[name] == pytest.approx(value, rel=1e-9), name
    start = BEFORE
    while tree._kernel.unit_detection_table["phase"][0] == 0:
        tree.learn_many(X[start : start + 1], y[start : start + 1])
        start += 1
    end = start + COLLECTED + WEIGHED
    tree.learn_many(X[start:end], y[start:end])
    [change] = tree.unit_changes
    own = twins[4].told
    found = [
        find_map(own["mean"], own["variance"] ** 0.5, X[start:end, 3].tolist(), kind)
        for kind in ("scale", "shift", "both")
    ]
    assert (change.scale, change.shift) == pytest.approx(found[0], rel=1e-9)
    assert change.scale == pytest.approx(25.4, rel=0.15)


@given(st.floats(1e-25, 1e25))
def test_the_nearest_power_of_ten(ratio):
    power = nearest_power_of_ten(ratio)
    assert power == pytest.approx(10.0 ** round(np.log10(power)), rel=1e-12)
    assert abs(np.log10(ratio / power)) <= 0.5 + 1e-9


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e2))
def test_the_roundest_number(value, uncertainty):
    found = roundest_number(value, uncertainty)
    assert abs(found - value) <= uncertainty * (1 + 1e-9)
    near = roundest(value, uncertainty)
    assert found == pytest.approx(near, abs=2.001 * uncertainty)


# -- files ----------------------------------------------------------------------------------------

LIES = {
    "range": ("units", "low", 3, 1e9, "the range of units 3 is wrong"),
    "infinite": ("units", "mean", 2, np.inf, "the mean of units 2 is not finite"),
    "state": ("units", "state", 1, 7.0, "the state of units 1 is none"),
    "suspect at rest": ("units", "state", 1, 2.0, "unit change without a suspect, or none"),
    "variance": ("units", "variance", 0, -1.0, "the variance of units 0 is negative"),
    "phase": ("unrest", "phase", 0, 3.0, "the phase of the unit change is none"),
    "rows": ("unrest", "rows", 0, 128.0, "the unit change is too long"),
    "change": ("changes", ["row", "column"], 0, (9.0, 6.0), "change 0 is that of a column that"),
    "future": ("changes", "row", 0, 1e9, "change 0 was never seen"),
    "order": ("changes", "row", 5, 100.0, "the scale of change 5 is none"),
}


@pytest.mark.parametrize(("array", "field", "place", "value", "words"), LIES.values(), ids=LIES)
def test_lies(array, field, place, value, words):
    tree = Tree()
    tree.learn_many(*friedman(3000))
    header, arrays = tree_state.state_of(tree)
    own = arrays[array].copy()
    own[field][place] = value
    assert_refused(packed(header, arrays, **{array: own}), words)
