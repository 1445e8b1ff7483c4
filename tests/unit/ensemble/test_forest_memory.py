"""The limit of memory that a forest has by default."""

import numpy as np
import pytest

from sapwood import ForestRegressor, HoeffdingTreeRegressor, model
from sapwood.ensemble.forest import USUAL_BYTES
from sapwood.tree import _memory, memory

RNG = np.random.default_rng(1)


def columns(rows, labels):
    shop = [f"shop {code}" for code in RNG.integers(0, labels, rows)]
    return {"shop": shop, "x": RNG.random(rows)}, RNG.normal(size=rows)


def test_a_forest_is_limited_unless_it_is_not_to_be():
    assert ForestRegressor().parameters["max_bytes"] == USUAL_BYTES == 64 * 1024**2
    assert ForestRegressor(max_bytes=None).parameters["max_bytes"] is None
    assert repr(ForestRegressor()).startswith("<ForestRegressor():")
    assert "max_bytes=None" in repr(ForestRegressor(max_bytes=None))


def test_a_file_keeps_its_own_limit():
    for limit in (None, 5_000_000):
        forest = ForestRegressor(max_bytes=limit, members=2)
        forest.learn_many(*columns(50, 3))
        assert model.from_bytes(forest.to_bytes()).parameters["max_bytes"] == limit


def test_a_wide_forest_stays_within_the_limit_and_no_narrow_one_notices_it():
    X = RNG.random((6000, 400))
    y = 10 * X[:, 0] + 20 * (X[:, 1] - 0.5) ** 2 + RNG.normal(size=6000)
    free, limited = ForestRegressor(max_bytes=None), ForestRegressor()
    for each in (free, limited):
        each.learn_many(X, y)
    assert limited.nbytes <= USUAL_BYTES < free.nbytes
    few = [ForestRegressor(max_bytes=None), ForestRegressor()]
    said = [each.predict_learn_many(X[:, :4], y) for each in few]
    np.testing.assert_array_equal(*said)


@pytest.mark.parametrize("observer_slots", [8, 32])
@pytest.mark.parametrize("limit", [400_000, 3_000_000])
def test_room_for_names_is_what_the_whole_computation_finds(limit, observer_slots, monkeypatch):
    """Labels that only need names are registered the short way, to the same tree."""
    from sapwood.observers import QuantizerObserver

    X, y = columns(4000, 1500)
    short = HoeffdingTreeRegressor(
        max_bytes=limit, observer=QuantizerObserver(slots=observer_slots)
    )
    found = []
    has_room = _memory.has_room_for_names

    def noted(tables, is_category, places, names, targets):
        result = has_room(tables, is_category, places, names, targets)
        if result:
            kinds = is_category.view(np.bool_), places
            sizes = memory._sizes(tables, kinds, names, targets, None)
            stopping, keeps_trial = _memory.leaves_without_room(tables, *kinds, *sizes)
            assert not stopping.any()
            assert keeps_trial
        found.append(result)
        return result

    monkeypatch.setattr(_memory, "has_room_for_names", noted)
    short.learn_many(X, y)
    assert any(found)
    assert not all(found)
    monkeypatch.setattr(_memory, "has_room_for_names", lambda *arguments: False)
    whole = HoeffdingTreeRegressor(
        max_bytes=limit, observer=QuantizerObserver(slots=observer_slots)
    )
    whole.learn_many(X, y)
    assert whole.to_bytes() == short.to_bytes()
