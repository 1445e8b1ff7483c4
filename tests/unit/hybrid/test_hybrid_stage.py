"""A hybrid as a stage: ids, lags and intervals around it, and interruptions."""

import threading
import time

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import sapwood
from hybrid_cases import MeanEstimator, small, stream
from interrupted import interrupted_at
from sapwood import ForestRegressor, HybridRegressor, IntervalRegressor
from sapwood.lags import LaggedModel, Lags
from sapwood.stages import EncodedBatch, Stage

pytest.importorskip("lightgbm")

STAGES = {
    "hybrid": lambda model: model,
    "interval": IntervalRegressor,
    "lags": lambda model: LaggedModel(model, Lags([1, 3])),
    "interval(lags)": lambda model: IntervalRegressor(LaggedModel(model, Lags([1, 3]))),
    "lags(interval)": lambda model: LaggedModel(IntervalRegressor(model), Lags([1, 3])),
}
nested = pytest.mark.parametrize("stage", STAGES)


def quick(**options):
    """Return a hybrid that takes little time."""
    own = {"batch": MeanEstimator(), "refit": 20, "min_rows": 20, "lag": 2, "background": False}
    return HybridRegressor(sapwood.HoeffdingTreeRegressor(), **{**own, **options})


def dicts(X):
    return [{f"x{place}": value for place, value in enumerate(row)} for row in X.tolist()]


def columns(rows):
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def hybrid_in(model):
    while not isinstance(model, HybridRegressor):
        model = model.model
    return model


# -- ids -------------------------------------------------------------------------------------------


def test_ids_find_predictions_of_equal_rows_in_any_order():
    X, y = stream(400)
    rows = [{"x": float(round(row[0]))} for row in X.tolist()]  # of three values
    one, many, unique = (small(correct=correct) for correct in (True, True, True))
    order = np.random.default_rng(3).permutation(40)
    for start in range(0, 400, 40):
        some, ids = rows[start : start + 40], [*range(start, start + 40)]
        expected = [one.predict_one(x, id=own) for x, own in zip(some, ids, strict=True)]
        assert many.predict_many(columns(some), ids=ids).tolist() == expected
        unique.predict_many(columns(some), ids=ids)
        shuffled = [start + int(place) for place in order]
        for own in shuffled:
            one.learn_one(rows[own], y[own], id=own)
        many.learn_many(columns([rows[own] for own in shuffled]), y[shuffled], ids=shuffled)
        assert one._core.pending.count == many._core.pending.count == 0
    assert one.weights == many.weights
    assert one.to_bytes() == many.to_bytes()


@nested
def test_a_stage_with_ids_is_the_evaluation_with_a_delay(stage):
    X, y = stream(260)
    rows = dicts(X)
    model, other = (STAGES[stage](small()) for _ in range(2))
    found, expected = [], []
    for number, row in enumerate(rows):
        found.append(model.predict_one(row, id=number))
        if number >= 5:
            model.learn_one(rows[number - 5], y[number - 5], id=number - 5)
        if number == 120:
            model = type(model).from_bytes(model.to_bytes())
    run = sapwood.evaluate.Prequential(
        other, sapwood.streams.memory.as_stream(columns(rows), y), delay=5
    )
    for step in run.steps(64):
        for part in step.predicted:
            expected += part.predictions.tolist()
    assert found == expected
    assert len(hybrid_in(model).refits) >= 1


@nested
def test_batches_of_a_stage_are_rows_one_by_one(stage):
    X, y = stream(300)
    rows = dicts(X)
    one, many = (STAGES[stage](small()) for _ in range(2))
    found = []
    for row, label in zip(rows, y.tolist(), strict=True):
        found.append(one.predict_one(row))
        one.learn_one(row, label)
    expected = []
    for start in range(0, 300, 50):
        part = slice(start, start + 50)
        expected += many.predict_learn_many(columns(rows[part]), y[part]).tolist()
    assert found == expected


@pytest.mark.parametrize("size", [400, 90])
def test_batches_of_dicts_that_bring_features_are_rows_one_by_one(size):
    rng = np.random.default_rng(0)
    rows = [
        {"a": a, "k": "uv"[k]}
        for a, k in zip(rng.random(400), rng.integers(0, 2, 400), strict=True)
    ]
    for place, b in enumerate(rng.random(400)):
        if place > 150 and place % 3:
            rows[place]["b"] = b
        if place > 230:
            rows[place]["c"] = "pq"[place % 2]
    y = np.array([3 * row["a"] + row.get("b", 0.0) for row in rows])

    def made():
        return small(batch=DecisionTreeRegressor(max_depth=4, random_state=0))

    one, many, expected, found = made(), made(), [], []
    for x, target in zip(rows, y.tolist(), strict=True):
        expected.append(one.predict_one(x))
        one.learn_one(x, target)
    for start in range(0, 400, size):
        part = slice(start, start + size)
        found.extend(many.predict_learn_many(rows[part], y[part]))
    assert len(one.refits) > 2
    assert found == expected


def test_a_batch_is_learned_by_its_token():
    X, y = stream(240)
    rows = dicts(X)
    model, other = small(), small()
    for start in range(0, 240, 20):
        part, ids = slice(start, start + 20), range(start, start + 20)
        batch = EncodedBatch.of(columns(rows[part]), ids=ids)
        found = model.predict(batch)
        assert found.values.tolist() == other.predict_many(columns(rows[part]), ids=ids).tolist()
        model.learn(batch, y[part])
        other.learn_many(columns(rows[part]), y[part], ids=ids)
    assert model.to_bytes() == other.to_bytes()


def test_stages_inside_are_rejected_with_the_remedy():
    for inner in (
        LaggedModel(ForestRegressor(), Lags([1])),
        IntervalRegressor(ForestRegressor()),
        HybridRegressor(),
    ):
        with pytest.raises(TypeError, match="put it around the hybrid"):
            HybridRegressor(inner)


def test_a_copy_shares_the_learner_that_no_file_holds():
    X, y = stream(200)
    model = quick()
    model.learn_many(X, y)
    made = model.copy()
    assert not made._core.lost
    more, labels = stream(100, seed=2)
    assert made.predict_learn_many(more, labels).tolist() == (
        model.predict_learn_many(more, labels).tolist()
    )


# -- interruptions and threads ---------------------------------------------------------------------


def state_of(model):
    """What each stage of a model has learned, and what the hybrid consists of, in numbers."""
    found = []
    while isinstance(model, Stage) and not isinstance(model, HybridRegressor):
        if isinstance(model, LaggedModel):
            found.append(model.lags._history.clock)
        else:
            found.append(model._bounds.labels[0])
        model = model.model
    core = model._core
    parts = (
        core.online._kernel.rows,
        core.corrector._kernel.rows,
        core.learned.window.latest().stop,
    )
    return [core.rows, *parts, *found]


@pytest.mark.parametrize(
    ("stage", "way", "step"),
    [
        ("hybrid", "learn_one", 17),
        ("hybrid", "delayed", 23),
        ("hybrid", "learn_many", 397),
        ("interval(lags)", "learn_one", 31),
        ("lags(interval)", "delayed", 31),
        pytest.param("hybrid", "learn_one", 1, marks=pytest.mark.long),
        pytest.param("hybrid", "delayed", 1, marks=pytest.mark.long),
        pytest.param("hybrid", "learn_many", 7, marks=pytest.mark.long),
        pytest.param("interval(lags)", "learn_one", 3, marks=pytest.mark.long),
        pytest.param("lags(interval)", "delayed", 3, marks=pytest.mark.long),
    ],
)
@pytest.mark.filterwarnings("ignore:.*attach:sapwood.hybrid.FitFailedWarning")
def test_an_interruption_leaves_all_members_before_or_after_the_row(stage, way, step):
    """The interrupted call starts a fit, and the next row uses it."""
    X, y = stream(60)
    rows = dicts(X)
    start = STAGES[stage](quick(refit=9.0, min_rows=40))
    start.learn_many(columns(rows[:39]), y[:39])
    if way == "delayed":
        start.predict_one(rows[39], id="a")
    expected = start.copy()
    actions = {
        "learn_one": lambda m: m.learn_one(rows[39], y[39]),
        "learn_many": lambda m: m.learn_many(columns(rows[39:45]), y[39:45]),
        "delayed": lambda m: m.learn_one(rows[39], y[39], id="a"),
    }
    actions[way](expected)
    wanted = [expected.predict_one(rows[50], record=False)]
    line = 0
    while True:
        line += step
        model = start.copy()
        reached = interrupted_at(line, lambda m=model: actions[way](m))
        model.predict_one(rows[45], record=False)  # which finishes what was left undone
        hybrid_in(model).predict_one({}, record=False)
        counts = state_of(model)
        if way == "delayed" and "lags" in stage:  # the row became past when it was predicted
            counts.remove(40)
        assert len(set(counts)) == 1, (line, counts)
        core = hybrid_in(model)._core
        if counts[0] >= 40 and not core.lost:
            assert core.last_start == 40  # no fit is forgotten
        if counts[0] == (45 if way == "learn_many" else 40):
            assert model.predict_one(rows[50], record=False) == wanted[0]
        if not reached:
            break
    assert counts[0] == (45 if way == "learn_many" else 40)
    assert line > 60


def test_predictions_do_not_wait_while_learning_waits_for_a_fit():
    X, y = stream(130)
    go, waits = threading.Event(), threading.Event()

    class Held(MeanEstimator):
        def fit(self, X, y):
            waits.set()
            go.wait(20)
            return super().fit(X, y)

    model = small(batch=Held(), lag=5)
    learning = threading.Thread(target=model.learn_many, args=(X, y))
    learning.start()
    assert waits.wait(20)
    for _ in range(2000):
        if model.rows == 105:
            break
        time.sleep(0.01)
    assert np.isfinite(model.predict_one(dict(enumerate(X[0].tolist()))))
    assert model.rows == 105  # learning still waits
    go.set()
    learning.join()
    assert model.refits[0].used_from == 105
    assert model.rows == 130


def test_it_is_saved_and_predicts_while_another_thread_learns():
    X, y = stream(1200)
    model, failures, done = small(), [], threading.Event()
    model.learn_many(X[:50], y[:50])

    def save():
        while not done.is_set():
            try:
                made = HybridRegressor.from_bytes(model.to_bytes())
                made.predict_many(X[:5])
                model.predict_many(X[:20], record=False)
            except Exception as error:
                failures.append(error)
                return

    thread = threading.Thread(target=save)
    thread.start()
    for start in range(50, 1200, 23):
        model.learn_many(X[start : start + 23], y[start : start + 23])
    done.set()
    thread.join()
    assert not failures


def test_delayed_rows_of_a_batch_are_predicted_as_one_by_one():
    """A fit is used between predictions and their labels, so that the corrector has other features."""
    rng = np.random.default_rng(5)
    x = rng.random(700)
    rows = [{"x": each} for each in x.tolist()]
    y = 3 * x + np.where(np.arange(700) > 300, 4.0, 0.0) + rng.normal(0, 0.1, 700)
    batch, single = (small(min_rows=50, batch=MeanEstimator()) for _ in range(2))
    for model in (batch, single):
        model.learn_many(rows[:300], y[:300])
        model.predict_many(rows[300:600], ids=list(range(300, 600)))
    found = batch.predict_learn_many(rows[300:], y[300:], delayed=True, ids=list(range(300, 700)))
    expected = []
    for number in range(300, 700):
        expected.append(single.predict_one(rows[number], record=False))
        single.learn_one(rows[number], y[number], id=number)
    assert found.tolist() == expected
    assert batch.to_bytes() == single.to_bytes()
    assert len(batch.refits) > 3
