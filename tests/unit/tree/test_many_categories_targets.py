"""Features of more than 63 categories with several targets: each has levels of its own."""

import numpy as np
import pytest

import sapwood.model
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor
from sapwood.export.flat import ExportError, flatten
from sapwood.merge.errors import MergeError
from sapwood.merge.union import merged
from sapwood.tree._rescaling import in_other_units
from sapwood.tree.layout import NUMBER

KINDS = [HoeffdingTreeRegressor, ForestRegressor, AdaptiveTreeRegressor]


def shops(rows=2500, seed=1):
    """Rows of 150 shops, and targets: one that depends on the shop, its negative, and noise."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 150, rows)
    x = rng.random(rows)
    y = 10 * rng.normal(size=150)[code] + 5 * x + 0.3 * rng.normal(size=rows)
    X = {"shop": [f"shop {each}" for each in code], "x": x}
    return X, np.column_stack([y, -y, rng.normal(size=rows)])


def part(X, start, end):
    return {name: values[start:end] for name, values in X.items()}


def rows_of(X):
    return [dict(zip(X, row, strict=True)) for row in zip(*X.values(), strict=True)]


def stacked(predictions):
    return np.column_stack([*predictions.values()])


def explained(predicted, y):
    return 1 - ((predicted - y) ** 2).sum(axis=0) / ((y - y.mean(axis=0)) ** 2).sum(axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_each_target_has_levels_of_its_own(kind):
    X, y = shops()
    model = kind()
    predicted = stacked(model.predict_learn_many(X, y))
    shares = explained(predicted[1500:], y[1500:])
    assert shares[:2].min() > 0.99  # .24 if all later categories counted as one
    assert sapwood.model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    whole = model.predict_many(part(X, 0, 50), record=False)
    for target in model.targets:
        alone = model.of_target(target)
        assert alone.predict_many(part(X, 0, 50)).tolist() == whole[target].tolist()


def test_leaves_that_predict_the_mean_are_divided_by_categories():
    X, y = shops(6000)
    tree, alone = HoeffdingTreeRegressor(leaf="mean"), HoeffdingTreeRegressor(leaf="mean")
    predicted = stacked(tree.predict_learn_many(X, y[:, :2]))
    expected = explained(alone.predict_learn_many(X, y[:, 0])[4000:], y[4000:, 0])
    assert explained(predicted[4000:], y[4000:, :2]).min() > 0.97 * expected
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    assert (nodes["feature"][nodes["kind"] == NUMBER] == 0).any()
    assert "shop: those below" in tree.to_text()


def test_rows_one_by_one_do_as_batches_do():
    X, y = shops(900)
    whole, single = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    found = stacked(whole.predict_learn_many(X, y))
    said = []
    for x, own in zip(rows_of(X), y, strict=True):
        told = single.predict_one(x)
        said.append(list(told.values()) if said else [0.0] * 3)
        single.learn_one(x, dict(enumerate(own.tolist())))
    assert np.array_equal(found, np.array(said))
    assert single.to_bytes() == whole.to_bytes()


def test_a_copy_of_one_target_goes_on_learning():
    X, y = shops(3000)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(part(X, 0, 2000), y[:2000])
    alone = tree.of_target(1)
    later = part(X, 2000, 3000)
    later["kind"] = [f"kind {number % 80}" for number in range(1000)]  # becomes one of many, too
    predicted = alone.predict_learn_many(later, 1000.0 * y[2000:, 1])
    assert np.isfinite(predicted).all()
    assert sapwood.model.from_bytes(alone.to_bytes()).to_bytes() == alone.to_bytes()


def test_a_copy_of_one_target_is_neither_exported_nor_merged():
    X, y = shops(1200)
    first, second = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    first.learn_many(X, y)
    second.learn_many(*shops(1200, seed=2))
    with pytest.raises(ExportError, match="more than 63 categories"):
        flatten(first.of_target(0))
    with pytest.raises(MergeError, match="more than 63 categories"):
        merged(first.of_target(0), second.of_target(0))


def test_memory_is_limited_with_them():
    X, y = shops()
    tree = HoeffdingTreeRegressor(max_bytes=600_000)
    for start in range(0, 2500, 100):
        tree.learn_many(part(X, start, start + 100), y[start : start + 100])
        assert tree.nbytes <= 600_000
    assert sapwood.model.from_bytes(tree.to_bytes()).nbytes == tree.nbytes


def test_targets_that_are_missing():
    X, y = shops()
    gaps = y.copy()
    gaps[::3, 0] = np.nan
    gaps[1::3, 1] = np.nan
    tree = HoeffdingTreeRegressor()
    predicted = stacked(tree.predict_learn_many(X, gaps))
    assert explained(predicted[1500:], y[1500:])[:2].min() > 0.98


@pytest.mark.parametrize("name", ["split_encodings", "encoding_weights"])
def test_a_file_with_bad_encodings_is_rejected(name):
    X, y = shops(1200)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(X, y)
    header, arrays = tree.to_state()
    for bad in (arrays[name][1:], np.full_like(arrays[name], np.inf)):
        state = sapwood.model.State(header, {**arrays, name: bad})
        with pytest.raises(ValueError, match="encodings"):
            HoeffdingTreeRegressor.from_state(state, tree.format)
    without = {key: array for key, array in arrays.items() if key != name}
    with pytest.raises(ValueError, match="its arrays are not"):
        HoeffdingTreeRegressor.from_state(sapwood.model.State(header, without), tree.format)


def test_splits_of_a_copy_of_one_target_stay_where_y_changes_units():
    X, y = shops(6000)
    tree = HoeffdingTreeRegressor(leaf="mean")
    tree.learn_many(X, y)
    alone = tree.of_target(0)
    matrix = alone._features.read(X, learn=False).matrix
    before = [alone._kernel.explain_row(row)[3] for row in matrix]
    thresholds = alone._kernel.node_table["threshold"].copy()
    assert thresholds.any()
    assert in_other_units(alone._kernel, -1, 1000.0, 0.0)
    assert np.array_equal(thresholds, alone._kernel.node_table["threshold"])
    after = [alone._kernel.explain_row(row)[3] for row in matrix]
    assert np.allclose(after, 1000.0 * np.array(before), rtol=1e-9)
