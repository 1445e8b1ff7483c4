"""Stages: every method of every model under every wrapper, ids, threads, and interruptions."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
from interrupted import interrupted_at
from sapwood import (
    AdaptiveTreeRegressor,
    CorrectedRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    MonitoredRegressor,
)
from sapwood.intervals import IntervalRegressor
from sapwood.lags import LaggedModel, Lags
from sapwood.stages import EncodedBatch, Stage
from sapwood.stages.scored import ScoredStage


def corrected(model):
    """The error-correction layer around a model like this one that has none."""
    return CorrectedRegressor(type(model)(**{**model.parameters, "track": None}))


MODELS = {
    "tree": HoeffdingTreeRegressor,
    "adaptive": lambda: AdaptiveTreeRegressor(threads=1),
    "forest": lambda: ForestRegressor(members=3, threads=1),
}
STAGES = {
    "lags": lambda model: LaggedModel(model, Lags([1, 3])),
    "interval": IntervalRegressor,
    "lags(interval)": lambda model: LaggedModel(IntervalRegressor(model), Lags([1, 3])),
    "interval(lags)": lambda model: IntervalRegressor(LaggedModel(model, Lags([1, 3]))),
    "interval(corrected)": lambda model: IntervalRegressor(corrected(model)),
    "lags(corrected)": lambda model: LaggedModel(corrected(model), Lags([1, 3])),
    "monitored(lags(interval))": lambda model: MonitoredRegressor(
        LaggedModel(IntervalRegressor(model), Lags([1, 3]))
    ),
}
nested = pytest.mark.parametrize("stage", STAGES)


def series(rows=300, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, rows).astype(float)
    y = np.cumsum(rng.normal(size=rows)) + 2 * x
    return [{"x": value} for value in x.tolist()], y.tolist()


def columns(rows):
    return {"x": np.array([row["x"] for row in rows])}


def test_intervals_of_a_lagged_model_are_those_of_its_prediction():
    rows, y = series(600)
    lagged = STAGES["lags(interval)"](HoeffdingTreeRegressor())
    lagged.learn_many(columns(rows), y)
    for row in rows[:20]:
        told = lagged.predict_interval_one(row, 0.9)
        assert told.prediction == lagged.predict_one(row)
        assert lagged.predict_intervals_one(row)[0] == told.prediction
        assert lagged.predict_quantile_one(row, 0.95) == pytest.approx(told.upper)


def test_both_orders_of_lags_and_intervals_are_the_same():
    rows, y = series(800)
    first, second = (
        STAGES[name](HoeffdingTreeRegressor()) for name in ("lags(interval)", "interval(lags)")
    )
    one = first.predict_learn_intervals(columns(rows), y)
    other = second.predict_learn_intervals(columns(rows), y)
    for found, expected in zip(one, other, strict=True):
        assert np.array_equal(found, expected, equal_nan=True)
    assert first.predict_interval_one(rows[0]) == second.predict_interval_one(rows[0])


# -- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_equal_rows_with_ids_are_scored_by_their_own_predictions(kind):
    """Without ids they are found in the order of predictions, which is the same here."""
    rng = np.random.default_rng(5)
    y = (np.cumsum(rng.normal(size=400)) + 50).tolist()
    found = []
    for ids in (True, False):
        model, said = MODELS[kind](), []
        model.learn_one({"x": 1.0}, 50.0)
        for row in range(400):
            own = {"id": f"row {row}"} if ids else {}
            said.append(model.predict_one({"x": 1.0}, **own))
            if row >= 7:
                own = {"id": f"row {row - 7}"} if ids else {}
                model.learn_one({"x": 1.0}, y[row - 7], **own)
        found.append(said)
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", MODELS)
def test_ids_find_predictions_in_any_order_and_by_batches(kind):
    rows, y = series(300)
    order = np.random.default_rng(7).permutation(50)
    one, many = MODELS[kind](), MODELS[kind]()
    for start in range(0, 300, 50):
        some = rows[start : start + 50]
        numbers = [start + place for place in range(50)]
        expected = [one.predict_one(row, id=n) for row, n in zip(some, numbers, strict=True)]
        assert many.predict_many(columns(some), ids=numbers).tolist() == expected
        shuffled = [some[place] for place in order]
        labels = [y[start + place] for place in order]
        numbers = [start + int(place) for place in order]
        for row, label, number in zip(shuffled, labels, numbers, strict=True):
            one.learn_one(row, label, id=number)
        many.learn_many(columns(shuffled), labels, ids=numbers)
        assert one._kernel.pending.count == many._kernel.pending.count == 0
    assert one.predict_one(rows[0]) == many.predict_one(rows[0])


@nested
@pytest.mark.parametrize("kind", ["tree", "forest"])
def test_a_stage_with_ids_is_the_evaluation_with_a_delay(stage, kind):
    """Lags of delayed rows are those that were known when a row came, whatever the order."""
    rows, y = series(200)
    model, twin = (STAGES[stage](MODELS[kind]()) for _ in range(2))
    found, expected = [], []
    for number, row in enumerate(rows):
        found.append(model.predict_one(row, id=number))
        if number >= 5:
            model.learn_one(rows[number - 5], y[number - 5], id=number - 5)
        if number == 120:
            model = type(model).from_bytes(model.to_bytes())
    run = sapwood.evaluate.Prequential(
        twin, sapwood.streams.memory.as_stream(columns(rows), np.array(y)), delay=5
    )
    for step in run.steps(64):
        for part in step.predicted:
            expected += part.predictions.tolist()
    assert found == expected


@nested
def test_batches_of_a_stage_are_rows_one_by_one(stage):
    rows, y = series(250)
    one, many = (STAGES[stage](HoeffdingTreeRegressor()) for _ in range(2))
    found = []
    for row, label in zip(rows, y, strict=True):
        found.append(one.predict_one(row))
        one.learn_one(row, label)
    expected = []
    for start in range(0, 250, 50):
        some = columns(rows[start : start + 50])
        expected += many.predict_learn_many(some, y[start : start + 50]).tolist()
    assert found == expected
    assert one.predict_one(rows[0]) == many.predict_one(rows[0])


@nested
def test_a_stage_takes_a_batch_and_its_token(stage):
    rows, y = series(200)
    model, twin = (STAGES[stage](HoeffdingTreeRegressor()) for _ in range(2))
    for start in range(0, 200, 10):
        some = rows[start : start + 10]
        ids = range(start, start + 10)
        batch = EncodedBatch.of(columns(some), ids=ids)
        found = model.predict(batch)
        assert (found.token == batch.token).all()
        assert found.values.tolist() == [
            twin.predict_one(row, id=number) for row, number in zip(some, ids, strict=True)
        ]
        model.learn(batch, y[start : start + 10])
        for row, number in zip(some, ids, strict=True):
            twin.learn_one(row, y[number], id=number)


# -- threads and interruptions ---------------------------------------------------------------------


@nested
def test_a_stage_is_saved_and_predicts_while_another_thread_learns(stage):
    rows, y = series(2000)
    model, failures, done = STAGES[stage](HoeffdingTreeRegressor()), [], threading.Event()
    model.learn_many(columns(rows[:100]), y[:100])

    def save():
        while not done.is_set():
            try:
                twin = type(model).from_bytes(model.to_bytes())
                twin.copy().predict_one({"x": 1.0})
                assert model.nbytes > 0
                model.predict_many(columns(rows[:20]))
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=save) for _ in range(2)]
    for thread in threads:
        thread.start()
    for row, label in zip(rows[100:300], y[100:300], strict=True):
        model.predict_one(row)
        model.learn_one(row, label)
    for start in range(300, 2000, 100):
        model.learn_many(columns(rows[start : start + 100]), y[start : start + 100])
    done.set()
    for thread in threads:
        thread.join()
    assert not failures


def state_of(model):
    """What the stages of a model have learned, in numbers."""
    found = [model.rows_learned]
    while isinstance(model, Stage):
        if isinstance(model, LaggedModel):
            found.append(model.lags._history.clock)
        elif isinstance(model, ScoredStage):
            found.append(model._held.labels)
        else:
            found.append(model._bounds.labels[0])
        model = model.model
    return found


def test_an_interruption_leaves_no_lock_held():
    """Another thread would wait for it for ever."""
    rows, y = series(60)
    model = STAGES["interval(lags)"](HoeffdingTreeRegressor())
    model.learn_many(columns(rows[:40]), y[:40])
    line, found = 0, []
    while interrupted_at(line := line + 1, lambda: model.learn_one(rows[40], y[40])):
        reader = threading.Thread(target=lambda: found.append(model.predict_one(rows[45])))
        reader.daemon = True
        reader.start()
        reader.join(60)
        assert len(found) == line
    assert line > 20


@pytest.mark.parametrize("kind", MODELS)
@nested
def test_a_batch_keeps_the_predictions_of_ids_that_wait(stage, kind):
    """Each of its rows is left in the same memory, and taken at once."""
    rows, y = series(200)
    model = STAGES[stage](MODELS[kind]())
    model.learn_many(columns(rows[:50]), y[:50])
    for number in range(5):
        model.predict_one(rows[number], id=number)
    model.predict_learn_many(columns(rows[50:]), y[50:])
    inner = model
    while isinstance(inner, Stage):
        assert isinstance(inner, LaggedModel) or pending_of(inner) == 5
        inner = inner.model
    assert pending_of(inner) == (5 if inner.parameters["track"] else 0)


def pending_of(model):
    """How many predictions wait in the model or stage itself."""
    if isinstance(model, ScoredStage):
        return model._held.pending.count
    pending = model._bounds.pending if isinstance(model, Stage) else model._kernel.pending
    return 0 if pending is None else pending.count  # None of a tree without a layer


@nested
@pytest.mark.parametrize(
    ("way", "step"),
    [
        ("learn_one", 3),
        ("learn_many", 41),
        ("delayed", 11),
        ("delayed_many", 43),
        pytest.param("learn_one", 1, marks=pytest.mark.long),
        pytest.param("delayed", 1, marks=pytest.mark.long),
        pytest.param("learn_many", 1, marks=pytest.mark.long),
        pytest.param("delayed_many", 1, marks=pytest.mark.long),
    ],
)
def test_an_interruption_leaves_all_stages_before_or_after_the_row(stage, way, step, request):
    rows, y = series(60)
    start = STAGES[stage](ForestRegressor(members=2, threads=1))
    start.learn_many(columns(rows[:40]), y[:40])
    late = {"delayed": 1, "delayed_many": 3}.get(way, 0)
    for row in range(40, 40 + late):
        start.predict_one(rows[row], id=row)
    if "monitored" in stage and request.node.get_closest_marker("long") is None:
        step *= 7  # as its calls have many lines
    data, line = start.to_bytes(), 1 - step
    while True:
        line += step
        model = type(start).from_bytes(data)
        actions = {
            "learn_one": lambda m=model: m.learn_one(rows[40], y[40]),
            "learn_many": lambda m=model: m.learn_many(columns(rows[40:43]), y[40:43]),
            "delayed": lambda m=model: m.learn_one(rows[40], y[40], id=40),
            "delayed_many": lambda m=model: m.learn_many(
                columns(rows[40:43]), y[40:43], ids=range(40, 43)
            ),
        }
        reached = interrupted_at(line, actions[way])
        model.predict_one(rows[45])  # which finishes what was left undone
        if isinstance(model.model, Stage):
            model.model.predict_one(rows[45] if stage == "interval(lags)" else {"x": 1.0})
        learned, *stages = state_of(model)
        if late and "lags" in stage:  # rows became past when they were predicted
            stages.remove(40 + late)
        assert all(count == learned for count in stages), (line, learned, stages)
        if not reached:
            break
    assert learned == (43 if "many" in way else 41)
    assert line > 20


def hybrid():
    pytest.importorskip("lightgbm")
    online = ForestRegressor(members=2, threads=1)
    batch = sapwood.hybrid.LightGBM(rounds=2)
    return sapwood.HybridRegressor(
        online, batch, refit=9.0, min_rows=42, lag=1, correct=False, background=False
    )


INNER = {
    "tree": HoeffdingTreeRegressor,
    "transform": lambda: sapwood.TransformedRegressor(HoeffdingTreeRegressor(), "auto"),
    "loss": lambda: sapwood.LossRegressor(HoeffdingTreeRegressor(), "poisson"),
    "views": lambda: sapwood.MultiViewRegressor(HoeffdingTreeRegressor(), without=["x"]),
    "recurring": lambda: sapwood.RecurringRegressor(HoeffdingTreeRegressor()),
    "screened": lambda: sapwood.ScreenedRegressor(HoeffdingTreeRegressor(), features=1),
    "lags": lambda: LaggedModel(HoeffdingTreeRegressor(), Lags([1, 3])),
    "sparse": lambda: sapwood.SparseRegressor(HoeffdingTreeRegressor()),
    "hybrid": hybrid,
}
STEPS = {
    "tree": 31,
    "transform": 181,
    "loss": 181,
    "views": 181,
    "recurring": 181,
    "screened": 181,
    "lags": 61,
    "sparse": 41,
    "hybrid": 1499,
}


@pytest.mark.parametrize(
    ("inner", "step"),
    [*STEPS.items(), *(pytest.param(inner, 1, marks=pytest.mark.long) for inner in STEPS)],
)
def test_an_interrupted_batch_gives_intervals_of_its_own_predictions(inner, step):
    """Their state is that of before the batch or that of after it, to the last bit.

    The batch is learned in parts, as features come with its second and third row, and a fit is used
    after the third.
    """
    rows, y = series(60)
    y = np.abs(np.round(y)).tolist()
    rows[41], rows[42], rows[43] = ({**rows[40 + n], "z": 1.0, "k": "ab"[n % 2]} for n in (1, 2, 3))
    del rows[41]["k"]
    start = IntervalRegressor(INNER[inner]())
    start.learn_many(columns(rows[:40]), y[:40])
    data, states, found = start.to_bytes(), {40: start._bounds.overall.tobytes()}, set()
    start.learn_many(rows[40:44], y[40:44])
    states[44] = start._bounds.overall.tobytes()
    line, reached = 1 - step, True
    while reached:
        line += step
        model = IntervalRegressor.from_bytes(data)
        reached = interrupted_at(line, lambda m=model: m.learn_many(rows[40:44], y[40:44]))
        model.predict_one(rows[45])  # which finishes what was left undone
        learned = int(model.rows_learned)
        assert model._bounds.overall.tobytes() == states[learned], line
        found.add(learned)
    assert found == {40, 44}


# -- random programs -------------------------------------------------------------------------------

actions = st.lists(
    st.tuples(
        st.sampled_from(["predict", "label", "learn", "learn_many", "copy", "save", "ask"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(program=actions, stage=st.sampled_from(sorted(STAGES)), seed=st.integers(0, 3))
def test_random_programs_with_ids_find_every_prediction(program, stage, seed):
    """Whatever is done in between, all labels with ids find their predictions, equal rows too."""
    rows, y = series(40, seed)
    model = STAGES[stage](HoeffdingTreeRegressor())
    model.learn_many(columns(rows), y)
    waiting, number = [], 0
    for action, value in program:
        if action == "predict":
            model.predict_one({"x": float(value)}, id=number)
            waiting.append((number, value))
            number += 1
        elif action == "label" and waiting:
            own, x = waiting.pop(value % len(waiting))
            model.learn_one({"x": float(x)}, float(own), id=own)
        elif action == "learn":
            model.learn_one({"x": float(value)}, 1.0)
        elif action == "learn_many":
            model.learn_many({"x": [float(value), 1.0]}, [1.0, 2.0])
        elif action == "copy":
            model = model.copy()
        elif action == "save":
            model = type(model).from_bytes(model.to_bytes())
        elif action == "ask":
            model.predict_one({"x": float(value)}, record=False)
        inner = model
        while isinstance(inner, Stage):
            assert isinstance(inner, LaggedModel) or pending_of(inner) == len(waiting)
            inner = inner.model
        assert pending_of(inner) == (len(waiting) if inner.parameters["track"] else 0)


ONE_TARGET = {
    "screened": sapwood.ScreenedRegressor,
    "views": lambda model: sapwood.MultiViewRegressor(model, without=["x"]),
    "recurring": sapwood.RecurringRegressor,
    "sparse": sapwood.SparseRegressor,
    "loss": lambda model: sapwood.LossRegressor(model, "huber"),
}


@pytest.mark.parametrize("stage", [*STAGES, *ONE_TARGET])
@pytest.mark.parametrize("row", [None, [1.0], "x"])
def test_a_row_that_is_no_dict_is_rejected(stage, row):
    model = {**STAGES, **ONE_TARGET}[stage](HoeffdingTreeRegressor())
    model.learn_one({"x": 1.0, "z": 2.0}, 1.0)
    for call in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
        with pytest.raises(ValueError, match=r"x = .*: a dict of features is expected"):
            call(row)
