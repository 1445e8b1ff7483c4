"""Delayed labels without ids: equal rows in the order of arrival are matched as by ids."""

import numpy as np
import pytest

from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    IntervalRegressor,
)

ROWS, WARM, LATE = 900, 200, 24
MODELS = {
    "tree": HoeffdingTreeRegressor,
    "limited tree": lambda: HoeffdingTreeRegressor(max_bytes=2_000_000),
    "adaptive": lambda: AdaptiveTreeRegressor(threads=1),
    "forest": lambda: ForestRegressor(members=3, threads=1),
    "intervals around a tree": lambda: IntervalRegressor(HoeffdingTreeRegressor()),
    "intervals around a forest": lambda: IntervalRegressor(ForestRegressor(members=3, threads=1)),
}
BASE = [{"a": f"k{kind}"} for kind in np.random.default_rng(3).integers(0, 3, ROWS)]
NEWS = {
    "nothing": lambda at, row: row,
    "a category": lambda at, row: {**row, "a": "new"} if at >= 400 and at % 5 == 0 else row,
    "a category in one row": lambda at, row: {**row, "a": "new"} if at == 400 else row,
    "many categories": lambda at, row: {**row, "a": f"c{at // 4}"} if at % 3 else row,
    "a feature": lambda at, row: {**row, "b": at % 2} if at >= 400 else row,
    "a category feature": lambda at, row: {**row, "b": f"l{at % 7 % 3}"} if at >= 400 else row,
    "features that come and go": lambda at, row: (
        {**row, f"b{at // 90}": at % 2, "c": f"{at // 100}"} if at >= 300 and at % 3 else row
    ),
}


def rows_with(news):
    return [NEWS[news](at, row) for at, row in enumerate(BASE)]


def series():
    return np.cumsum(np.random.default_rng(4).normal(size=ROWS)).tolist()


def run(model, rows, y, with_ids, *, size=1, reload=0, never=0):
    """Return predictions, labels being late; learned by parts of so many rows."""
    model.learn_many(rows[:WARM], y[:WARM])
    found, waiting = [], []
    for at in range(WARM, len(rows)):
        found.append(model.predict_one(rows[at], **({"id": at} if with_ids else {})))
        due = at - LATE
        if due >= WARM and not (never and due % never == 0):
            waiting.append(due)
        if len(waiting) == size:
            if size == 1:
                own = {"id": due} if with_ids else {}
                model.learn_one(rows[due], y[due], **own)
            else:
                own = {"ids": waiting} if with_ids else {}
                part = [rows[each] for each in waiting], [y[each] for each in waiting]
                model.learn_many(*part, **own)
            waiting = []
        if reload and at % reload == 0:
            model = type(model).from_bytes(model.to_bytes())
    return found


@pytest.mark.parametrize("news", NEWS)
@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_with_ids_whatever_becomes_known(name, news):
    rows, y = rows_with(news), series()
    assert run(MODELS[name](), rows, y, False) == run(MODELS[name](), rows, y, True)


@pytest.mark.parametrize("news", ["a category", "many categories", "features that come and go"])
@pytest.mark.parametrize("name", ["tree", "forest", "intervals around a tree"])
@pytest.mark.parametrize("size", [7, 40])
def test_so_they_are_where_batches_are_learned(name, news, size):
    rows, y = rows_with(news), series()
    found = run(MODELS[name](), rows, y, False, size=size)
    assert found == run(MODELS[name](), rows, y, True, size=size)


@pytest.mark.parametrize("name", ["tree", "forest", "intervals around a tree"])
def test_what_appeared_is_saved_with_a_model(name):
    rows, y = rows_with("features that come and go"), series()
    expected = run(MODELS[name](), rows, y, True)
    assert run(MODELS[name](), rows, y, False, reload=13) == expected


@pytest.mark.parametrize("name", ["tree", "forest"])
def test_several_targets_are_matched_as_by_ids(name):
    rows = rows_with("a category")
    y = [{"up": each, "down": -2.0 * each + 1.0} for each in series()]
    assert run(MODELS[name](), rows, y, False) == run(MODELS[name](), rows, y, True)


@pytest.mark.parametrize("name", ["tree", "forest", "intervals around a tree"])
@pytest.mark.parametrize("never", [7, 50])
def test_labels_that_never_come_cost_little(name, never):
    rows, y = rows_with("a category"), series()
    errors = [
        np.sqrt(np.mean((np.array(run(MODELS[name](), rows, y, ids, never=never)) - y[WARM:]) ** 2))
        for ids in (False, True)
    ]
    assert errors[0] < 1.02 * errors[1]
