"""New labels and features within a batch: the same as single rows, to the last bit."""

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor
from sapwood.observers import QuantizerObserver

# Rows may name no feature that the tree knows.
pytestmark = pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")

MODELS = {
    "tree": lambda limit, grace: HoeffdingTreeRegressor(grace_period=grace, max_bytes=limit),
    "means": lambda limit, grace: HoeffdingTreeRegressor(
        grace_period=grace, max_bytes=limit, leaf="mean", track=None
    ),
    "observers": lambda limit, grace: HoeffdingTreeRegressor(
        grace_period=grace, max_bytes=limit, observer=QuantizerObserver(radius=0.1)
    ),
    "forest": lambda limit, _: ForestRegressor(members=3, max_bytes=limit and 8 * limit),
    "adaptive": lambda limit, _: AdaptiveTreeRegressor(max_bytes=limit and 8 * limit),
}
LIMITS = [None, 20_000, 30_000, 45_000, 80_000, 200_000, 1_000_000]


def rows_of(rng, count, absent):
    """Rows with labels that never came before, and columns that come later: absent or missing."""
    late = int(rng.integers(0, count))
    share, length = rng.choice([0.02, 0.1, 0.5]), int(rng.choice([1, 70]))
    rows, y = [], []
    for i in range(count):
        a, b = rng.uniform(-1, 1, 2)
        label = f"N{i}" if rng.random() < share else f"L{rng.integers(0, 5)}"
        own = {"b": b, "late": label if i % 7 else None} if i >= late else {}
        row = {"a": a, "label": label.ljust(length, "x")} | own
        rows.append(row if absent else {"b": None, "late": None} | row)
        y.append(3 * np.sign(a * b) + rng.normal(0, 0.3))
    return rows, y


def one_by_one(model, rows, y, predicting):
    """Learn rows one by one; what was predicted, or None if a row was rejected."""
    predictions = []
    try:
        for x, target in zip(rows, y, strict=True):
            if predicting:
                predictions.append(model.predict_one(x))
            model.learn_one(x, target)
    except ValueError:
        return None
    return predictions


def at_once(model, rows, y, predicting, absent):
    batch = rows if absent else {name: [row[name] for row in rows] for name in rows[0]}
    try:
        if predicting:
            return model.predict_learn_many(batch, y)
        model.learn_many(batch, y)
    except ValueError:
        return None
    return []


def named(y):
    return [{"up": each, "down": -each} for each in y]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.long) for n in range(12, 24))]
)
def test_a_batch_is_single_rows_or_nothing(kind, seed):
    rng = np.random.default_rng(seed)
    limit, absent = LIMITS[seed % len(LIMITS)], bool(rng.random() < 0.5)
    batch, single = (MODELS[kind](limit, 20 if seed % 2 else 50) for _ in range(2))
    rows, y = rows_of(rng, 400, absent)
    several = kind != "observers" and seed % 5 == 4
    start = 0
    while start < len(rows):
        part = slice(start, start + int(rng.choice([1, 3, 40, 200])))
        start, predicting = part.stop, not several and bool(rng.random() < 0.5)
        before, targets = single.copy(), named(y[part]) if several else y[part]
        expected = one_by_one(single, rows[part], targets, predicting)
        found = at_once(batch, rows[part], targets, predicting, absent)
        if expected is None:
            assert found is None
            single = before
        else:
            assert np.array_equal(found, expected)
        assert batch.to_bytes() == single.to_bytes()


def full_tree():
    """A tree that has no room left for a split."""
    rng = np.random.default_rng(1)
    tree = HoeffdingTreeRegressor(grace_period=20, max_bytes=60_000)
    X = rng.random((4000, 2))
    tree.learn_many({"a": X[:, 0], "b": X[:, 1], "label": ["x"] * 4000}, np.sin(20 * X[:, 0]))
    return tree


def test_a_batch_whose_labels_find_no_room_is_not_learned_at_all():
    tree = full_tree()
    rows = [{"a": 0.5, "b": 0.5, "label": "x" * 900 + str(i)} for i in range(50)]
    single = tree.copy()
    learned = next(
        i for i in range(50) if one_by_one(single, rows[i : i + 1], [0.0], False) is None
    )
    assert 1 < learned < 50
    before = tree.to_bytes()
    with pytest.raises(ValueError, match="max_bytes = 60000: there is no room"):
        tree.learn_many(rows, np.zeros(50))
    assert tree.to_bytes() == before
    tree.learn_many(rows[:learned], np.zeros(learned))
    assert tree.to_bytes() == single.to_bytes()


@pytest.mark.parametrize("limit", [None, 200_000])
def test_a_row_that_brings_the_64th_label_and_first_values(limit):
    rng = np.random.default_rng(2)
    columns = {
        "label": [f"L{i}" for i in range(100)],
        "number": [None] * 63 + rng.random(37).tolist(),
        "other": [None] * 63 + ["a", "b"] * 18 + ["a"],
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    y = rng.random(100).tolist()
    batch, single = (HoeffdingTreeRegressor(max_bytes=limit) for _ in range(2))
    expected = one_by_one(single, rows, y, True)
    assert batch.predict_learn_many(columns, y).tolist() == expected
    assert batch.to_bytes() == single.to_bytes()
