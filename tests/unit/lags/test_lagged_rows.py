"""Rows that lack features, ids that are given again, rows without ids, and bytes of series."""

import json
import tracemalloc

import numpy as np
import pytest

from sapwood import ForestRegressor, HoeffdingTreeRegressor
from sapwood.corrector.tokens import key_of
from sapwood.intervals import IntervalRegressor
from sapwood.lags import LaggedModel, Lags
from sapwood.model import State, from_bytes
from sapwood.schema import Rule, Schema
from sapwood.stages import Stage

NESTINGS = {
    "lags": LaggedModel,
    "lags(interval)": lambda model, lags: LaggedModel(IntervalRegressor(model), lags),
    "interval(lags)": lambda model, lags: IntervalRegressor(LaggedModel(model, lags)),
}
nested = pytest.mark.parametrize("nesting", NESTINGS)


def tree():
    return HoeffdingTreeRegressor(grace_period=30)


def rows_lacking_features(rows, seed=0):
    """Rows of which some lack a feature, and features that appear later; and y."""
    rng = np.random.default_rng(seed)
    made = []
    for row in range(rows):
        x = {"a": round(float(rng.normal()), 1)}
        if rng.random() < 0.5:
            x["b"] = round(float(rng.normal()), 1)
        if row > rows // 2:
            x["c"] = f"label {rng.integers(0, 2 + row // 30)}"
        made.append(x)
    y = [float(rng.normal()) + (x["a"] > 0) for x in made]
    return made, y


@nested
@pytest.mark.parametrize("by", [(), "a"])
def test_a_batch_of_dicts_is_its_rows_one_by_one(nesting, by):
    many, one = (NESTINGS[nesting](tree(), Lags([1, 2], by=by)) for _ in range(2))
    rows, y = rows_lacking_features(300)
    for start in range(0, 300, 50):
        part = slice(start, start + 50)
        found = many.predict_learn_many(rows[part], y[part]).tolist()
        expected = []
        for x, label in zip(rows[part], y[part], strict=True):
            expected.append(one.predict_one(x))
            one.learn_one(x, label)
        assert found == expected
        assert many.features == one.features
        assert many.to_bytes() == one.to_bytes()


def test_dicts_that_a_schema_encodes_may_lack_features_too():
    schema = Schema((Rule("t", "time", parts=("hour",)),))
    many, one = (LaggedModel(tree(), Lags([1])) for _ in range(2))
    rows, y = rows_lacking_features(60)
    rows = [x | {"t": f"2026-01-01 {row % 24:02d}:00"} for row, x in enumerate(rows)]
    for model in (many, one):
        model.schema = schema
    many.learn_many(rows, y)
    for x, label in zip(rows, y, strict=True):
        one.learn_one(x, label)
    assert many.to_bytes() == one.to_bytes()
    with pytest.raises(ValueError, match="position 1"):
        many.learn_many([rows[0], rows[1] | {"t": "soon"}], y[:2])


# -- ids -------------------------------------------------------------------------------------------


@nested
def test_an_id_that_waits_takes_the_row_as_it_is_given_now(nesting):
    made, other = (NESTINGS[nesting](tree(), Lags([1], lags_of={"a": 1})) for _ in range(2))
    for model in (made, other):
        for row in range(200):
            model.learn_one({"a": float(row % 10)}, 3.0 * (row % 10))
    made.predict_one({"a": 1.0}, id=7)
    assert made.predict_one({"a": 9.0}, id=7) == other.predict_one({"a": 9.0}, id=7)
    assert made.predict_one({"a": 9.0}, id=7) != made.predict_one({"a": 1.0}, id=7, record=False)
    # What is past is the row that was given last.
    assert made.predict_one({"a": 2.0}, id=8) == other.predict_one({"a": 2.0}, id=8)
    for model in (made, other):
        model.learn_one({"a": 4.0}, 12.0, id=7)
    assert made.predict_one({"a": 5.0}) == other.predict_one({"a": 5.0})


def test_an_id_cannot_move_to_another_series():
    model = LaggedModel(tree(), Lags([1], by="shop"))
    model.learn_one({"shop": "A"}, 1.0)
    model.predict_one({"shop": "A"}, id=1)
    with pytest.raises(ValueError, match="as one of series"):
        model.predict_one({"shop": "B"}, id=1)
    with pytest.raises(ValueError, match="another id"):
        model.learn_one({"shop": "B"}, 2.0, id=1)
    model.learn_one({"shop": "A"}, 2.0, id=1)
    assert not model._pending


@nested
def test_a_prediction_that_is_not_recorded_changes_nothing(nesting):
    model = NESTINGS[nesting](tree(), Lags([1]))
    model.learn_many({"a": [1.0, 2.0]}, [1.0, 2.0])
    before = model.to_bytes()
    model.predict_one({"a": 3.0}, id="new", record=False)
    model.predict_many({"a": [3.0]}, ids=["new"], record=False)
    assert model.to_bytes() == before


def test_a_row_that_cannot_be_predicted_does_not_become_past():
    model = LaggedModel(tree(), Lags([1]))
    model.learn_many({"a": [1.0, 2.0]}, [1.0, 2.0])
    before = model.to_bytes()
    with pytest.raises(ValueError, match="must be a number"):
        model.predict_one({"a": "text"}, id="new")
    assert model.to_bytes() == before


def test_rows_that_wait_are_saved_whatever_their_types():
    model = LaggedModel(tree(), Lags([1]))
    model.learn_many({"a": [1.0, 2.0]}, [1.0, 2.0])
    model.predict_one({"a": np.float32(3.0), "b": np.int64(1)}, id=1)
    loaded = from_bytes(model.to_bytes())
    assert loaded._pending == model._pending
    assert key_of(1) in loaded._pending


def test_rows_that_wait_in_a_file_of_format_3_keep_their_lags():
    model = LaggedModel(tree(), Lags([1]))
    model.learn_many({"a": [1.0, 2.0]}, [1.0, 2.0])
    model.predict_one({"a": 3.0}, id=1)
    header, arrays = model.to_state()
    ((key, known, series, number),) = json.loads(arrays["pending"].tobytes())
    rows = [[key, [["a", 3.0], ["y.lag1", known[0]]], series, number]]
    older = arrays | {"pending": np.frombuffer(json.dumps(rows).encode(), np.uint8)}
    loaded = LaggedModel.from_state(State(header, older), 3)
    assert loaded._pending == model._pending
    loaded.learn_one({"a": 3.0}, 3.0, id=1)
    model.learn_one({"a": 3.0}, 3.0, id=1)
    assert loaded.predict_one({"a": 1.0}) == model.predict_one({"a": 1.0})


def test_batches_with_ids_learn_rows_that_wait_with_their_lags():
    many, one = (LaggedModel(tree(), Lags([1, 2])) for _ in range(2))
    rows, y = rows_lacking_features(120)
    for model in (many, one):
        model.learn_many(rows[:40], y[:40])
    for start in range(40, 120, 20):
        part, ids = slice(start, start + 20), list(range(start, start + 20))
        many.predict_many(rows[part], ids=ids)
        found = many.predict_learn_many(rows[part], y[part], delayed=True, ids=ids)
        expected = []
        for x, id in zip(rows[part], ids, strict=True):
            one.predict_one(x, id=id)
        for x, label, id in zip(rows[part], y[part], ids, strict=True):
            expected.append(one.predict_one(x, id=id, record=False))
            one.learn_one(x, label, id=id)
        assert found.tolist() == expected
    assert many.to_bytes() == one.to_bytes()


# -- rows without ids ------------------------------------------------------------------------------


@nested
@pytest.mark.parametrize("inner", [tree, lambda: ForestRegressor(members=2, threads=1)])
def test_a_label_finds_its_prediction_though_its_lags_have_changed(nesting, inner):
    model = NESTINGS[nesting](inner(), Lags([1, 2]))
    for row in range(50):
        model.learn_one({"a": float(row)}, float(row))
    innermost = model
    while isinstance(innermost, Stage):
        innermost = innermost.model
    model.predict_one({"a": 3.0})
    model.predict_many([{"a": 4.0}, {}])
    assert innermost._kernel.pending.count == 3
    model.learn_one({"a": 5.0, "new": "category"}, 2.0)
    model.learn_one({"a": 3.0}, 2.0)
    model.learn_many({"a": [4.0]}, [2.0])
    model.learn_many([{}], [2.0])
    assert innermost._kernel.pending.count == 0


# -- bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lags", [Lags([1, 2], by="s"), Lags(list(range(1, 25)), [24], by="s")])
def test_nbytes_count_the_rows_that_wait_for_their_labels(lags):
    model = LaggedModel(tree(), lags)
    model.learn_many({"s": ["a"] * 50, "x": np.arange(50.0)}, np.arange(50.0))
    model.predict_one({"s": "a", "x": 0.0}, id=0)
    before = model.nbytes - model.lags.nbytes
    tracemalloc.start()
    for number in range(1, 3001):
        model.predict_one({"s": "a", "x": 0.5 * number}, id=number)
    pending = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    counted = model.nbytes - model.lags.nbytes - before
    assert 0.8 * pending < counted < 3 * pending
    assert from_bytes(model.to_bytes()).nbytes == model.nbytes == model.copy().nbytes
    for number in range(3001):
        model.learn_one({"s": "a", "x": 0.5 * number}, 1.0, id=number)
    assert model.nbytes == model.model.nbytes + model.lags.nbytes


def test_nbytes_count_the_names_of_series_and_stay_after_loading():
    model = LaggedModel(tree(), Lags(1, by="s", max_series=150))
    model.learn_many({"s": [f"{row:03d}" * 100 for row in range(200)]}, [1.0] * 200)
    names = model.lags.n_series * 300
    assert model.lags.n_series == 150
    assert model.lags.nbytes > names
    assert model.lags.nbytes < names + 150 * 400
    assert from_bytes(model.to_bytes()).nbytes == model.nbytes == model.copy().nbytes


@pytest.mark.parametrize("given", [2, [1, 2], np.array([1, 2])])
def test_numbers_of_rows_stand_for_lags(given):
    own, same = (LaggedModel(tree(), lags) for lags in (given, Lags(given)))
    for each in range(50):
        own.learn_one({"x": each % 3}, each % 5)
        same.learn_one({"x": each % 3}, each % 5)
    assert own.to_bytes() == same.to_bytes()


@pytest.mark.parametrize("given", [None, 1.5, object()])
def test_what_are_no_lags_is_rejected_with_a_remedy(given):
    with pytest.raises(ValueError, match=r"^lags = .*: whole numbers of rows are expected, or dur"):
        LaggedModel(tree(), given)
