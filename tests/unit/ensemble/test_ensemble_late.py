"""Ensembles whose labels come by batches: each tree is judged by what it said itself, and then."""

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor

BATCH, CHANGE = 1_500, 9_000
FADE = 0.995


@pytest.fixture(scope="module")
def rows():
    """Friedman's function, whose features are others from some row on."""
    rng = np.random.default_rng(1)
    x = rng.random((18_000, 10))
    used = np.where(np.arange(len(x))[:, None] < CHANGE, x[:, :5], x[:, 5:])
    y = 10 * np.sin(np.pi * used[:, 0] * used[:, 1]) + 20 * (used[:, 2] - 0.5) ** 2
    return x, y + 10 * used[:, 3] + 5 * used[:, 4] + rng.normal(size=len(x))


def batches(rows):
    x, y = rows
    for start in range(0, len(y), BATCH):
        yield x[start : start + BATCH], y[start : start + BATCH]


def test_a_tree_that_began_after_rows_were_predicted_is_not_judged_by_them(rows):
    model = AdaptiveTreeRegressor(threads=1)
    restarts = []
    model.listen(lambda event: restarts.append(event) if event["event"] == "restarted" else None)
    for x, y in batches(rows):
        model.predict_many(x)
        model.learn_many(x, y)
        if model._kernel.rows == CHANGE:
            break
    assert [event["rows"] for event in restarts] == [8_000]
    # The challenger that began with row 8,000 has no error yet with row 9,000, and no say.
    known = [pytest.approx(1 / (1 - FADE), rel=1e-3), 0.0]
    assert model._kernel.tree_table["weight"].tolist() == known
    assert [member.weight for member in model.summary.members] == [1.0, 0.0]
    model.predict_many(x[:50])
    model.learn_many(x[:50], y[:50])
    assert model._kernel.tree_table["weight"][1] == pytest.approx((1 - FADE**50) / (1 - FADE))


def test_a_tree_that_takes_a_place_is_judged_by_what_it_said_before(rows):
    model = AdaptiveTreeRegressor(threads=1)
    kernel, replaced = model._kernel, []

    def listener(event):
        if event["event"] == "replaced":
            replaced.append((event["rows"], kernel.tree_table.copy()))

    model.listen(listener)
    for x, y in batches(rows):
        said, start = np.empty(len(y)), int(kernel.rows)
        if start:
            kernel.trees[1].predict(x, said)
        model.predict_many(x)
        model.learn_many(x, y)
        if replaced:
            break
    ((at, table),) = replaced
    assert start < at < start + BATCH
    square, weight = table["square"][0], table["weight"][0]
    for error in (y - said)[at - start :]:
        square, weight = FADE * square + error**2, FADE * weight + 1.0
    assert kernel.tree_table["weight"][0] == pytest.approx(weight)
    assert kernel.tree_table["square"][0] == pytest.approx(square)
