"""What it costs each of several targets to get a feature wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_units import hashed
from reference_cases import without_flags
from sapwood import ForestRegressor, HoeffdingTreeRegressor
from sapwood.ensemble import ensemble_state
from sapwood.tree import restoring, tree_state
from target_cases import NAMES, columns_of, stream_of

Tree = HoeffdingTreeRegressor
FIELDS = ("cost", "weight", "late_cost", "late_weight")


def grown(make=Tree, rows=6000, seed=1):
    """A model of three targets, and the rows that it has learned."""
    X, Y = columns_of(np.random.default_rng(seed), rows)
    model = make()
    model.learn_many(X, Y)
    return model, X, Y


def costs_of(tree):
    """By feature and target."""
    kernel = tree._kernel
    return kernel.columns.known_costs.reshape(-1, kernel.targets)


def restored(tree, arrays):
    state = tree_state.state_of(tree)
    return restoring.restored(Tree, type(state)(state.header, arrays), Tree.format)


# -- the twin -------------------------------------------------------------------------------------


def tried(kernel, target, row, past, y):
    """What the value of another row costs in each column, each predicted once more."""
    *_, said, _, _ = kernel.explain_row(row, target)
    costs = np.zeros(len(row))
    for column in range(len(row)):
        other = row.copy()
        other[column] = past[column]
        *_, instead, _, _ = kernel.explain_row(other, target)
        costs[column] = (said - instead) * ((said - instead) + y - said)
    return costs


@pytest.mark.parametrize("leaf", ["adaptive", "linear", "mean"])
@pytest.mark.parametrize("kind", ["weights", "categories", "late"])
def test_costs_are_those_of_rows_that_are_predicted_anew(kind, leaf):
    """Row by row: who is tried, with which row of the past, and what it costs each target."""
    stream = stream_of(kind, 900)
    names = list(stream[-1][0])
    for at, label in enumerate("pqrst"):
        if "k" in names:
            stream[at][0]["k"] = label  # codes are given in the order in which they come
    for at in (0, 1, 450, 451):  # of all targets the range is wide, so that nothing is held in it
        stream[at][1].update(dict.fromkeys(NAMES, -300.0 if at % 2 else 300.0))
    if kind == "late":
        for at in (0, 1):
            stream[at][1]["b"] = None
    tree = without_flags(Tree(leaf=leaf, grace_period=50, tau=0.15, track=None))
    expected = {name: np.zeros((len(names), len(NAMES))) for name in FIELDS}
    samples = None
    for number, (x, y, w) in enumerate(stream):
        row = np.array([_read(name, x[name]) for name in names])
        samples = np.tile(row, (32, 1)) if samples is None else samples
        bits = hashed(number)
        kernel = tree._kernel
        for target, name in enumerate(NAMES if number and bits % 8 == 0 else ()):
            if y[name] is None or kernel.target_records.streams["rows"][target] == 0:
                continue
            own = tried(kernel, target, row, samples[(bits >> 48) % 32], y[name])
            expected["cost"][:, target] += w * own
            expected["weight"][:, target] += w
            for field, added in (("late_cost", w * own), ("late_weight", w)):
                expected[field][:, target] *= 1 - 1 / 256
                expected[field][:, target] += added
        if bits % 64 == 1:
            samples[(bits >> 16) % 32] = row
        tree.learn_one(x, y, w)
    assert tree.n_leaves > 3
    for field in FIELDS:
        assert costs_of(tree)[field] == pytest.approx(expected[field], rel=1e-8, abs=1e-7), field
    assert (costs_of(tree)["weight"] > 20).all()


def _read(name, value):
    if value is None:
        return np.nan
    return float("pqrst".index(value)) if name == "k" else value


# -- laws -----------------------------------------------------------------------------------------

parameters = st.fixed_dictionaries(
    {
        "leaf": st.sampled_from(["mean", "adaptive"]),
        "track": st.sampled_from(["auto", None]),
        "grace_period": st.just(50),
        "tau": st.just(0.15),
    }
)
seeds = st.integers(0, 2**32 - 1)


def drawn(seed):
    X, Y = columns_of(np.random.default_rng(seed), 400)
    return X, np.column_stack(list(Y.values()))


@given(seeds, parameters, st.integers(2, 3))
def test_copies_of_one_target_have_the_importances_of_one(seed, own, copies):
    X, Y = drawn(seed)
    one, several = Tree(**own), Tree(**own)
    one.learn_many(X, Y[:, 2])
    several.learn_many(X, np.repeat(Y[:, 2:], copies, axis=1))
    expected = list(one.feature_importances.values())
    assert sum(expected) == pytest.approx(1.0)
    assert list(several.feature_importances.values()) == pytest.approx(expected, abs=1e-6)
    for target in range(copies):
        alone = several.of_target(target)
        assert list(alone.feature_importances.values()) == pytest.approx(expected, abs=1e-6)
        overall = list(alone.overall_importances.values())
        assert overall == pytest.approx(list(one.overall_importances.values()), abs=1e-6)


@given(seeds, parameters, st.permutations([0, 1, 2]), st.integers(0, 3))
def test_order_and_targets_that_are_always_missing_do_not_matter(seed, own, order, place):
    X, Y = drawn(seed)
    one, other = Tree(**own), Tree(**own)
    one.learn_many(X, Y)
    other.learn_many(X, np.insert(Y[:, order], place, np.nan, axis=1))
    found = np.delete(costs_of(other), place, axis=1)
    assert found.tobytes() == np.ascontiguousarray(costs_of(one)[:, order]).tobytes()
    assert (costs_of(other)["weight"][:, place] == 0.0).all()
    shares = list(other.feature_importances.values())
    assert shares == pytest.approx(list(one.feature_importances.values()), rel=1e-9)


@given(seeds, parameters)
def test_a_batch_costs_what_rows_one_by_one_cost(seed, own):
    X, Y = drawn(seed)
    batch, single = Tree(**own), Tree(**own)
    batch.learn_many(X, Y)
    for x, y in zip(X.tolist(), Y.tolist(), strict=True):
        single.learn_one(dict(enumerate(x)), dict(enumerate(y)))
    assert costs_of(batch).tobytes() == costs_of(single).tobytes()


def test_a_feature_that_comes_later_and_categories_keep_what_is_known():
    tree, X, Y = grown(rows=2000)
    before = costs_of(tree).copy()
    x = {**dict(enumerate(X[0].tolist())), "new": 1.0, "label": "a"}
    tree.learn_one(x, {name: Y[name][0] for name in NAMES})
    after = costs_of(tree)
    assert after.shape == (6, 3)
    assert hashed(2000) % 8 != 0  # the row is not tried
    assert after[:4].tobytes() == before.tobytes()
    assert (after[4:]["weight"] == 0.0).all()


# -- what they tell -------------------------------------------------------------------------------


def permuted(model, X, Y):
    """By how much the squared error grows if a column is shuffled, as a share of the variance."""
    rng = np.random.default_rng(2)
    usual = model.predict_many(X)
    found = np.zeros((X.shape[1], len(Y)))
    for column in range(X.shape[1]):
        for _ in range(10):
            other = X.copy()
            other[:, column] = rng.permutation(X[:, column])
            said = model.predict_many(other)
            for target, y in enumerate(Y.values()):
                grown = (y - said[:, target]) ** 2 - (y - usual[:, target]) ** 2
                found[column, target] += np.mean(grown) / np.var(y)
    return found


@pytest.mark.parametrize("kind", [Tree, lambda: ForestRegressor(members=3)], ids=["tree", "forest"])
def test_importances_agree_with_permutation(kind):
    model, X, Y = grown(kind, rows=10_000)
    costs = permuted(model, X[-2000:], {name: y[-2000:] for name, y in Y.items()})
    for shares in (model.feature_importances, model.overall_importances):
        assert sum(shares.values()) == pytest.approx(1.0)
        together = costs.sum(axis=1) / costs.sum()
        assert np.abs(np.array(list(shares.values())) - together).max() < 0.1


def test_each_target_has_its_own():
    tree, X, Y = grown(rows=10_000)
    costs = permuted(tree, X[-2000:], {name: y[-2000:] for name, y in Y.items()})
    for target, name in enumerate(NAMES):
        shares = np.array(list(tree.of_target(name).feature_importances.values()))
        expected = costs[:, target] / costs[:, target].sum()
        assert np.abs(shares - expected).max() < 0.1, name
    assert tree.of_target("b").feature_importances["0"] < 0.05
    assert tree.of_target("a").feature_importances["0"] > 0.3


def test_what_a_target_is_measured_in_does_not_matter():
    tree, X, Y = grown(rows=3000)
    other = Tree()
    other.learn_many(X, {"a": 1e6 * Y["a"], "b": Y["b"], "c": 1e-6 * Y["c"]})
    expected = pytest.approx(tree.feature_importances, abs=1e-3)
    assert other.feature_importances == expected


def test_a_target_that_few_rows_have_is_a_tree_by_itself():
    """Its columns have been sampled in more rows than it has seen."""
    rows = 12_000
    X = np.column_stack([np.arange(rows), np.random.default_rng(1).random(rows)])
    Y = np.column_stack([X[:, 1], np.full(rows, np.nan)])
    Y[::1000, 1] = 2 * X[::1000, 1]
    tree = Tree()
    tree.learn_many(X, Y)
    assert tree._kernel.columns.known_facts["rises"][0] > 12 + 32
    alone = tree.of_target(1)
    assert alone.predict_one({0: 5.0, 1: 0.5}) == tree.predict_one({0: 5.0, 1: 0.5})[1]


# -- files ----------------------------------------------------------------------------------------


def test_a_file_without_costs_tells_what_splits_gained():
    tree, X, Y = grown(rows=3000)
    arrays = dict(tree_state.state_of(tree).arrays)
    del arrays["target_costs"]
    older = restored(tree, arrays)
    assert older.predict_many(X).tobytes() == tree.predict_many(X).tobytes()
    inner = tree._kernel.node_table[: tree._kernel.node_count]
    gains = np.bincount(inner["feature"], inner["gain"] * (inner["kind"] > 0), minlength=4)
    expected = pytest.approx(gains / gains.sum())
    assert list(older.feature_importances.values()) == expected
    older.learn_many(X, Y)
    assert list(older.feature_importances.values()) != expected


def test_a_file_of_a_forest_without_costs_is_read():
    forest, X, _ = grown(lambda: ForestRegressor(members=2), rows=1500)
    header, arrays = forest.to_state()
    older = {name: array for name, array in arrays.items() if not name.endswith("target_costs")}
    assert len(older) == len(arrays) - len(forest._kernel.trees)
    state = type(forest.to_state())(header, older)
    again = ensemble_state.restored(ForestRegressor, state, ForestRegressor.format)
    assert again.predict_many(X).tobytes() == forest.predict_many(X).tobytes()


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("weight", -1.0, "the weight of target of a feature 5 is wrong"),
        ("weight", 1e9, "the weight of target of a feature 5 is wrong"),
        ("late_weight", np.nan, "the late_weight of target of a feature 5 is not finite"),
        ("cost", np.inf, "the cost of target of a feature 5 is not finite"),
        ("late_cost", 1e300, "the late_cost of target of a feature 5 is wrong"),
    ],
)
def test_a_file_with_bad_costs_is_refused(field, value, complaint):
    tree, _, _ = grown(rows=300)
    arrays = {name: array.copy() for name, array in tree_state.state_of(tree).arrays.items()}
    arrays["target_costs"][field][5] = value
    with pytest.raises(ValueError, match=complaint):
        restored(tree, arrays)


def test_a_file_with_costs_of_other_features_is_refused():
    tree, _, _ = grown(rows=300)
    arrays = dict(tree_state.state_of(tree).arrays)
    arrays["target_costs"] = arrays["target_costs"][:-1]
    with pytest.raises(ValueError, match="there is not a cost for each target of each feature"):
        restored(tree, arrays)
    arrays["target_costs"] = np.zeros(12)
    with pytest.raises(ValueError, match="its target costs have other columns"):
        restored(tree, arrays)


def test_a_file_whose_slots_weigh_more_of_a_target_than_its_leaf_is_refused():
    tree, _, _ = grown(rows=300)
    state = tree_state.state_of(tree)
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    arrays["target_leaves"]["weight"][1] *= 0.5
    for name in ("target_m2", "residual_m2"):
        arrays["target_leaves"][name][1] *= 0.5
    with pytest.raises(ValueError, match="slots have seen more rows than their leaf"):
        restored(tree, arrays)
