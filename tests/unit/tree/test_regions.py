"""Which part of a tree predicts a row."""

import numpy as np
import pytest

from sapwood import HoeffdingTreeRegressor


def stream(rows=6000):
    rng = np.random.default_rng(4)
    city = rng.choice(["Oslo", "Rome", "Lima"], rows)
    x = {"a": rng.random(rows), "b": rng.normal(size=rows), "city": city}
    x["b"][rng.random(rows) < 0.1] = np.nan
    return x, np.where(x["a"] < 0.4, 3.0, -3.0) * (city == "Oslo") + rng.normal(0, 0.1, rows)


def row_of(x, place):
    return {name: column[place].item() for name, column in x.items()}


def leaf_by_hand(tree, row):
    """Walk down the nodes as the frame of the tree tells them."""
    nodes = tree._kernel.node_table
    values = tree._features.read_one(row, learn=False).matrix[0]
    node = 0
    while nodes[node]["kind"] != 0:
        value = values[nodes[node]["feature"]]
        if np.isnan(value):
            left = nodes[node]["missing_left"]
        elif nodes[node]["kind"] == 1:
            left = value < nodes[node]["threshold"]
        else:
            left = int(nodes[node]["subset"]) >> int(value) & 1
        node = int(nodes[node]["child"]) + (not left)
    return node


def test_regions_are_the_nodes_of_the_leaves_and_predictions_are_the_same():
    x, y = stream()
    tree, twin, single = (HoeffdingTreeRegressor() for _ in range(3))
    predictions, regions = tree.predict_learn_regions(x, y)
    assert (predictions == twin.predict_learn_many(x, y)).all()
    assert tree.to_bytes() == twin.to_bytes()
    for place in range(1500):
        row = row_of(x, place)
        prediction, region = single.predict_region_one(row)
        assert (prediction, region) == (predictions[place], regions[place])
        assert region == leaf_by_hand(single, row)
        single.learn_one(row, y[place])
    assert len(set(regions.tolist())) > 3
    later, now = tree.predict_regions(x)
    assert (later == tree.predict_many(x)).all()
    assert now[:50].tolist() == [leaf_by_hand(tree, row_of(x, place)) for place in range(50)]


def test_parents_lead_to_the_root_and_never_change():
    x, y = stream()
    tree = HoeffdingTreeRegressor()
    assert tree.predict_region_one({"a": 1.0}) == (0.0, 0)
    assert tree.predict_regions({"a": [1.0]})[1].tolist() == [0]
    before = tree.region_parents
    for start in range(0, len(y), 1000):
        tree.learn_many(
            {name: c[start : start + 1000] for name, c in x.items()}, y[start : start + 1000]
        )
        parents = tree.region_parents
        assert parents[: len(before)].tolist() == before.tolist()
        before = parents
    assert len(before) == 2 * tree.n_leaves - 1 > 1
    assert before[0] == -1
    assert (before[1:] < np.arange(1, len(before))).all()
    assert (before[1:] >= 0).all()


def test_a_row_that_brings_something_new_has_a_region():
    x, y = stream()
    tree = HoeffdingTreeRegressor()
    tree.learn_many(x, y)
    row = {"a": 0.2, "city": "Paris", "new": 1.0}
    assert tree.predict_region_one(row) == (tree.predict_one(row), leaf_by_hand(tree, row))


def test_former_names_of_arguments_are_deprecated():
    x = np.arange(200.0) % 7
    one, other = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    for tree in (one, other):
        tree.learn_many({"x": x}, x)
        tree.predict_many({"x": x[:20]})
    found = one.predict_learn_regions({"x": x[:20]}, x[:20], delayed=True)
    with pytest.warns(DeprecationWarning, match=r"predict_learn_regions\(delayed=\.\.\.\)"):
        expected = other.predict_learn_regions({"x": x[:20]}, x[:20], asked=False)
    for array, former in zip(found, expected, strict=True):
        assert array.tobytes() == former.tobytes()
    assert one.to_bytes() == other.to_bytes()
    with pytest.warns(DeprecationWarning, match=r"record=\.\.\."):
        assert one.predict_region_one({"x": 1.0}, asked=False) == one.predict_region_one(
            {"x": 1.0}, record=False
        )
