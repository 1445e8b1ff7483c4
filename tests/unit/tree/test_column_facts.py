"""What a tree knows of its columns: round cuts, importances, counters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_units import hashed
from reference_cases import without_flags
from sapwood import ForestRegressor, HoeffdingTreeRegressor
from sapwood.report.tree_view import render_tree
from sapwood.tree import restoring, tree_state
from sapwood.tree._column_tables import GRID_DOUBLES
from sapwood.tree._search import threshold_of
from sapwood.tree.layout import NUMBER

Tree = HoeffdingTreeRegressor


def friedman(rows, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 8))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=rows)


# -- round cuts -------------------------------------------------------------------------------


@given(
    st.integers(-3, 4),
    st.lists(st.integers(-5000, 5000), min_size=30, max_size=60, unique=True),
)
def test_a_round_cut_divides_values_on_the_grid_as_the_cut_would(decimals, steps):
    x = [step / 10**decimals if decimals >= 0 else float(step * 10**-decimals) for step in steps]
    tree = Tree()
    tree.learn_many({"x": x}, np.arange(len(x)) % 5.0)
    low, width = tree._kernel.watch_page(0)[:GRID_DOUBLES][:2]
    known = tree._kernel.columns.known_facts["decimals"][0]
    assert known <= decimals
    for place in range(31):
        border, cut = low + (place + 1) * width, threshold_of(tree._kernel, 0, 0, place)
        assert [value < cut for value in x] == [value < border for value in x]
        assert round(cut * 10.0**known) / 10.0**known == pytest.approx(cut, rel=1e-12)


def test_whole_numbers_are_cut_at_whole_numbers():
    rng = np.random.default_rng(1)
    weekday, hour = rng.integers(0, 7, 6000), rng.integers(0, 24, 6000)
    y = 5.0 * (weekday > 4) + 3.0 * (hour > 16) + 0.1 * rng.normal(size=6000)
    tree = Tree(leaf="mean", track=None)
    tree.learn_many({"weekday": weekday, "hour": hour}, y)
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    cuts = nodes["threshold"][nodes["kind"] == NUMBER]
    assert len(cuts) >= 3
    assert (cuts == np.round(cuts)).all()
    assert tree.to_text().splitlines()[0].startswith("weekday <= 4 ")
    # Once there is a value that is not whole, the same cut reads as it is made.
    tree.learn_one({"weekday": 4.5, "hour": 0}, 0.0)
    assert tree.to_text().splitlines()[0].startswith("weekday < 5 ")


@pytest.mark.parametrize(("values", "decimals"), [([0.1, 2.5], 1), ([0.25], 2), ([2e3, -1e4], -3)])
def test_the_grid_of_a_column_is_the_coarsest(values, decimals):
    tree = Tree()
    tree.learn_many({"x": values}, [0.0] * len(values))
    assert tree._kernel.columns.known_facts["decimals"].tolist() == [decimals]


@pytest.mark.parametrize("value", [np.pi, 1e-7, 1e300, 2.0**53 + 2])
def test_what_is_on_no_grid_is_cut_as_before(value):
    tree = Tree()
    tree.learn_many({"x": [1.0, value]}, [0.0, 1.0])
    assert tree._kernel.columns.known_facts["decimals"].tolist() == [5]


# -- importances ------------------------------------------------------------------------------


def permuted(tree, X, y):
    """By how much the squared error grows if a column is shuffled; the mean of ten times."""
    rng = np.random.default_rng(2)
    usual = np.mean((y - tree.predict_many(X)) ** 2)
    found = np.zeros(X.shape[1])
    for column in range(X.shape[1]):
        for _ in range(10):
            other = X.copy()
            other[:, column] = rng.permutation(X[:, column])
            found[column] += np.mean((y - tree.predict_many(other)) ** 2) - usual
    return found / found.sum()


@pytest.mark.parametrize("kind", [Tree, lambda: ForestRegressor(members=3)], ids=["tree", "forest"])
def test_importances_agree_with_permutation(kind):
    X, y = friedman(12_000)
    model = kind()
    model.learn_many(X, y)
    expected = permuted(model, X[-2000:], y[-2000:])
    for shares in (model.feature_importances, model.overall_importances):
        assert list(shares) == [str(column) for column in range(8)]
        assert sum(shares.values()) == pytest.approx(1.0)
        assert np.abs(np.array(list(shares.values())) - expected).max() < 0.1


def costs_of(tree, past, row, y):
    """What it costs to have the value of another row in each column, each predicted once more."""
    *_, said, _, _ = tree._kernel.explain_row(row)
    costs = np.zeros(len(row))
    for column in range(len(row)):
        other = row.copy()
        other[column] = past[column]
        *_, change, _, _ = tree._kernel.explain_row(other)
        change = said - change
        costs[column] = change * (change + y - said)
    return costs


@pytest.mark.parametrize("leaf", ["adaptive", "linear", "mean"])
def test_costs_of_columns_are_those_of_rows_that_are_predicted_anew(leaf):
    """Row by row: who is tried, with which row of the past, and what it costs."""
    rows, columns = 5000, 5  # so that fewer rows are tried towards the end
    rng = np.random.default_rng(4)
    X = rng.random((rows, columns)).round(2)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 4] = rng.integers(0, 3, rows)
    X[:3, 4] = range(3)  # codes are given in the order in which they come
    y = 4 * np.nan_to_num(X[:, 0]) * (X[:, 4] == 1) + 3 * np.nan_to_num(X[:, 1]) ** 2
    y += 0.1 * rng.normal(size=rows)
    y[:2] = -30.0, 30.0  # so that nothing is held within the range of y
    tree = without_flags(Tree(leaf=leaf, grace_period=50, track=None))
    cost, late, weight, faded = (np.zeros(columns) for _ in range(4))
    samples = np.tile(X[0], (32, 1))
    for number in range(rows):
        bits = hashed(number)
        # While units may have changed, rows are neither tried nor kept.
        calm = not tree._kernel.unit_detection_table["stirred"][0]
        stride = 8 if number < 2048 else 16 if number < 4096 else 32
        if number and calm and bits % stride == 0:
            chosen = samples[(bits >> 48) % 32]
            own = costs_of(tree, chosen, X[number], y[number])
            times, keep = stride / 8, 1 - 1 / max(2048 // stride, 64)
            cost, weight = cost + times * own, weight + times
            late, faded = late * keep + times * own, faded * keep + times
        if calm and bits % 64 == 1:
            samples[(bits >> 16) % 32] = X[number]
        known = {str(c): X[number, c] for c in range(4)} | {"4": "abc"[int(X[number, 4])]}
        tree.learn_one(known, y[number])
    facts = tree._kernel.columns.known_facts
    assert tree.n_leaves > 3
    for name, expected in (("cost", cost), ("late_cost", late)):
        assert facts[name] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for name, expected in (("weight", weight), ("late_weight", faded)):
        assert facts[name] == pytest.approx(expected, rel=1e-12)


def test_what_lately_matters_is_told_apart_from_all():
    rng = np.random.default_rng(3)
    X = rng.random((16_000, 2))
    y = np.where(np.arange(16_000) < 8000, X[:, 0], X[:, 1]) * 10
    tree = Tree()
    tree.learn_many({"before": X[:, 0], "now": X[:, 1]}, y)
    assert tree.feature_importances["now"] > 0.9
    assert 0.2 < tree.overall_importances["now"] < 0.8


def test_a_file_without_costs_tells_what_splits_gained():
    X, y = friedman(3000)
    tree = Tree()
    tree.learn_many(X, y)
    state = tree_state.state_of(tree)
    later = {"facts", "samples", "trial", "trial_watches"}
    arrays = {name: array for name, array in state.arrays.items() if name not in later}
    older = restoring.restored(Tree, type(state)(state.header, arrays), 1)
    assert np.array_equal(older.predict_many(X), tree.predict_many(X))
    inner = tree._kernel.node_table[: tree._kernel.node_count]
    gains = np.bincount(inner["feature"], inner["gain"] * (inner["kind"] > 0), minlength=8)
    expected = gains / gains.sum()
    assert list(older.feature_importances.values()) == pytest.approx(expected)
    older.learn_many(*friedman(3000, seed=4))
    assert list(older.feature_importances.values()) != pytest.approx(expected)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("decimals", 0.5, "a grid that there is not"),
        ("decimals", 6.0, "a grid that there is not"),
        ("weight", -1.0, "weight of the cost"),
        ("late_cost", np.inf, "cost of feature 0"),
        ("rises", -1.0, "risen too often"),
        ("last", np.inf, "last sample"),
    ],
)
def test_a_file_with_bad_facts_is_refused(field, value, complaint):
    tree = Tree()
    tree.learn_many(*friedman(300))
    state = tree_state.state_of(tree)
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    arrays["facts"][field][0] = value
    with pytest.raises(ValueError, match=complaint):
        restoring.restored(Tree, type(state)(state.header, arrays), 1)


@pytest.mark.parametrize("value", [-1.0, 0.5, 64.0])
def test_a_file_with_a_bad_sample_of_a_category_is_refused(value):
    tree = Tree()
    tree.learn_many({"c": ["a", "b"] * 50}, [0.0, 1.0] * 50)
    state = tree_state.state_of(tree)
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    arrays["samples"][3, 0] = value
    with pytest.raises(ValueError, match="sample 3 has a category"):
        restoring.restored(Tree, type(state)(state.header, arrays), 1)


# -- counters ---------------------------------------------------------------------------------


def test_a_counter_at_the_root_is_told():
    rng = np.random.default_rng(5)
    number, x = np.arange(6000.0), rng.random(6000)
    number[:2000] = rng.integers(0, 2000, 2000)  # it counts from then on
    y = 10.0 * (number > 1000) + x
    tree = Tree(leaf="mean")
    tree.learn_many({"number": number, "x": x}, y)
    assert tree.summary.counters == ("number",)
    assert "number: it only rises and is split on first" in str(tree.summary)
    assert "number: it only rises" in render_tree(tree._picture(), "y")
    other = Tree(leaf="mean")
    order = rng.permutation(6000)
    other.learn_many({"number": number[order], "x": x[order]}, y[order])
    assert other.summary.counters == ()
    assert "it only rises" not in render_tree(other._picture(), "y")


def test_a_day_that_many_rows_have_is_told_as_well():
    rng = np.random.default_rng(6)
    day, x = np.arange(9000) // 90, rng.random(9000)  # samples are some 64 rows apart
    day[:2000] = rng.integers(0, 20, 2000)  # so that it is the first to be split on
    tree = Tree(leaf="mean")
    tree.learn_many({"day": day, "x": x}, 5.0 * (day > 10) + x)
    assert tree.summary.counters == ("day",)
    again = Tree(leaf="mean")
    again.learn_many({"day": day % 60, "x": x}, 5.0 * (day % 60 > 10) + x)
    assert again.to_text(max_depth=1).startswith("day")
    assert again.summary.counters == ()
