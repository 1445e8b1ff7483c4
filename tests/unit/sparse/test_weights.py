"""The table of weights: it is the reference, forgets what it must, and undoes what it should."""

import numpy as np
import pytest

from naive_sparse import NaiveSparse
from sapwood.sparse._rows import SparseRows, key_of_name
from sapwood.sparse._weights import BYTES, LEAST_BYTES, SparseWeights


def bags(rows, seed=0, words=60):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(rows):
        x = {f"w{j}": float(rng.choice([1.0, 2.0, -0.5])) for j in rng.choice(words, 5, False)}
        found.append(x | {"city": str(rng.choice(["Oslo", "Rome", "Lima"])), "gap": None})
    effects = rng.normal(size=words)
    y = [
        sum(effects[int(name[1:])] * value for name, value in x.items() if name[0] == "w")
        + 3.0 * (x["city"] == "Rome")
        + 0.3 * rng.normal()
        + 100.0
        for x in found
    ]
    return found, np.array(y)


def learned(weights, rows, y, w=None, *, commit=True):
    read, linear = SparseRows(rows, True), np.empty(len(y))
    w = np.ones(len(y)) if w is None else w
    weights.begin(read)
    at = 0
    while at < len(y):
        at = weights.learn(read, y, w, at, linear)
    if commit:
        weights.commit(linear, linear, y, w, np.empty(len(y)))
    return linear


def bits(weights):
    count, *arrays = weights.state()
    return count, [array.tobytes() for array in arrays]


def test_the_kernel_is_the_reference():
    rows, y = bags(400)
    w = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(y))
    weights, naive = SparseWeights(1 << 20), NaiveSparse()
    found = learned(weights, rows, y, w)
    expected = [naive.learn(*row) for row in zip(rows, y.tolist(), w.tolist(), strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    predictions = np.empty(len(y))
    weights.predict(SparseRows(rows, True), predictions)
    np.testing.assert_allclose(predictions, [naive.predict(x) for x in rows], rtol=1e-9)
    for name in ("w3", "city"):
        expected = naive.weights[name] / naive.scales[name]
        np.testing.assert_allclose(weights.weight_of(key_of_name(name)), expected, rtol=1e-9)
    assert np.isnan(weights.weight_of(key_of_name("unknown")))
    assert weights.names == len(naive.weights)


@pytest.mark.parametrize("words", [40, 3_000])  # without and with growth of the table
def test_undo_restores_every_bit(words):
    rows, y = bags(300, words=words)
    weights = SparseWeights(1 << 20)
    learned(weights, rows[:60], y[:60])
    before = bits(weights)
    learned(weights, rows[60:], y[60:], commit=False)
    assert bits(weights) != before
    assert weights.is_open
    weights.undo()
    assert bits(weights) == before
    assert not weights.is_open
    once = SparseWeights(1 << 20)
    learned(once, rows[:60], y[:60])
    assert learned(weights, rows[60:], y[60:]).tolist() == learned(once, rows[60:], y[60:]).tolist()
    assert bits(weights) == bits(once)


def test_rows_by_one_or_together_are_the_same():
    rows, y = bags(300, words=3_000)
    together, single = SparseWeights(1 << 20), SparseWeights(1 << 20)
    found = learned(together, rows, y)
    one_by_one = [
        learned(single, [x], np.array([label]))[0] for x, label in zip(rows, y, strict=True)
    ]
    assert found.tolist() == one_by_one
    assert bits(together)[1][:3] == bits(single)[1][:3]


def test_the_table_keeps_to_its_bytes_and_forgets_what_came_least_recently():
    weights = SparseWeights(LEAST_BYTES)
    assert weights.most == LEAST_BYTES // BYTES == 64
    rng = np.random.default_rng(2)
    for number in range(500):
        y = np.array([5.0 + rng.normal()])
        learned(weights, [{"often": 1.0, f"once {number}": 1.0}], y)
    assert weights.names <= 64
    assert not np.isnan(weights.weight_of(key_of_name("often")))
    assert not np.isnan(weights.weight_of(key_of_name("once 499")))
    assert np.isnan(weights.weight_of(key_of_name("once 0")))


def test_a_row_of_more_names_than_there_is_room_for_is_learned():
    weights = SparseWeights(LEAST_BYTES)
    rows = [{f"n{j}": 1.0 for j in range(1_000)}, {f"n{j}": 2.0 for j in range(900)}]
    for _ in range(5):
        learned(weights, rows, np.array([1.0, 3.0]))
    assert weights.names == 64
    found = np.empty(2)
    weights.predict(SparseRows(rows, True), found)
    assert found.min() >= 1.0
    assert found.max() <= 3.0


def test_zeros_are_absent_or_present():
    assert SparseRows([{"a": 0, "b": 1.5, "c": False}], True).terms == 1
    assert SparseRows([{"a": 0, "b": 1.5, "c": False}], False).terms == 3
    assert SparseRows([{"a": None, "b": float("nan"), "c": "text"}], True).terms == 2
    one, other = SparseRows([{"a": 0.0, "b": 2}], True), SparseRows([{"b": 2.0}], True)
    assert one.token(0) == other.token(0) == other.all_tokens()[0]
    assert SparseRows([{}], True).token(0) != 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("inf"), r"x\['a'\] = inf"),
        (-float("inf"), r"x\['a'\] = -inf"),
        (10**400, r"x\['a'\] = 1000"),
        ([1.0], r"x\['a'\] = \[1.0\]"),
        (object(), r"x\['a'\]"),
    ],
)
def test_a_bad_value_is_named(value, message):
    with pytest.raises(ValueError, match=message):
        SparseRows([{"b": 1.0}, {"a": value}], True)


def test_what_is_no_row_is_named():
    with pytest.raises(ValueError, match=r"X\[1\] = 'text': a dict of features is expected"):
        SparseRows([{"b": 1.0}, "text"], True)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1e9, 1e300])
def test_units_of_values_and_of_y_do_not_matter(size):
    rows, y = bags(200)
    plain, scaled = SparseWeights(1 << 20), SparseWeights(1 << 20)
    found = learned(plain, rows, y)
    other = [
        {name: value * size if isinstance(value, float) else value for name, value in x.items()}
        for x in rows
    ]
    np.testing.assert_allclose(learned(scaled, other, y), found, rtol=1e-6)
    units = min(max(size, 1e-100), 1e100)
    third = SparseWeights(1 << 20)
    np.testing.assert_allclose(learned(third, rows, y * units), found * units, rtol=1e-6)


@pytest.mark.parametrize("place", range(5))
def test_a_damaged_table_is_rejected(place):
    rows, y = bags(100)
    weights = SparseWeights(1 << 20)
    learned(weights, rows, y)
    count, *arrays = weights.state()
    bad = [arrays[0][::-1].copy(), arrays[1] + np.uint64(256), arrays[2] * np.nan, arrays[3] * -1.0]
    if place == 4:
        count *= 3
    else:
        arrays[place] = bad[place]
    with pytest.raises(ValueError, match=r"."):
        SparseWeights(1 << 20).restore(count, *arrays)
