"""The prequential loop: what is predicted, learned, scored and left out; and going on."""

import itertools
import json
import math
import sys
from dataclasses import astuple, replace

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_evaluate as naive
from sapwood import HoeffdingTreeRegressor
from sapwood.evaluate import Prequential, prequential
from sapwood.evaluate.run import Run
from sapwood.storage import container
from sapwood.streams import friedman
from sapwood.streams.memory import ArrayStream
from sapwood.streams.stream import BadRowError, StreamError

REFUSED = "rejected by the model"


def small_tree(**parameters):
    """A tree that splits after few rows."""
    return HoeffdingTreeRegressor(grace_period=20, delta=0.5, **parameters)


def good_rows(count, seed=0, timed=False):
    rng = np.random.default_rng(seed)
    rows = []
    for row in range(count):
        x = {"a": rng.normal(), "c": str(rng.choice(["red", "blue", "green"])), "b": rng.normal()}
        y = 5.0 * (x["a"] > 0) + 3.0 * (x["c"] == "red") + x["b"] + 0.1 * rng.normal()
        x |= {name: None for name in x if rng.random() < 0.1}
        rows.append((x, y, float(row // 3)) if timed else (x, y))
    return rows


@st.composite
def mixed_rows(draw, timed=False, most=260):
    """Good rows, among them bad ones, and such as a tree refuses."""
    rows = good_rows(draw(st.integers(0, most)), draw(st.integers(0, 9)), timed)
    places = st.integers(0, max(0, len(rows) - 1))
    for place in draw(st.lists(places, max_size=6)) if rows else ():
        x, _, *time = rows[place]
        refused = [(x, 1e150, *time), (x, -1e300, *time), ({**x, "a": math.inf}, 1.0, *time)]
        # Before any row was learned, what is infinite is not yet known to be a number.
        rows[place] = draw(st.sampled_from(refused if place > 60 else refused[:2]))
    for place in sorted(draw(st.lists(places, max_size=8)), reverse=True):
        rows[place:place] = [draw(st.sampled_from(["no number", "bad encoding"]))]
    return rows


def is_good(row):
    return not isinstance(row, str) and abs(row[1]) < 1e100 and row[0]["a"] != math.inf


def through_a_file(run):
    """A new run that goes on from what a file would keep of an old one."""
    header, arrays = container.unpack(container.pack("test", *run.to_state()), "test")
    model = HoeffdingTreeRegressor.from_bytes(run.model.to_bytes())
    delay = None if run.delay is None else run.delay.amount
    delay = int(delay) if delay is not None and not run.delay.by_time else delay
    window, fade = run.scores.window_rows, run.scores.fade
    options = {"delay": delay, "window": window, "fade": fade, "on_bad_row": run.on_bad_row}
    twin = Prequential(model, run.stream, **options)
    twin.restore(header, arrays)
    return twin


def follow(run, most_rows=8192, interruptions=()):
    """Go to the end, and save and restore after some steps; return the run and all of its steps."""
    steps = []
    while True:
        for step in run.steps(most_rows):
            steps.append(step)
            if len(steps) in interruptions:
                run = through_a_file(run)
                break
        else:
            return run, steps


def without_times(run):
    """All that is known of a run, but for how long it took."""
    header, arrays = run.to_state()
    header = {name: value for name, value in header.items() if "seconds" not in name}
    refusals = header.pop("refusals")
    kept = {name: array.tobytes() for name, array in arrays.items() if "seconds" not in name}
    return header, sorted(refusals["reasons"].items()), kept, run.model.to_bytes()


def told(steps):
    """What steps tell, however the stream was cut into them."""
    predicted = [
        row
        for step in steps
        for part in step.predicted
        for row in zip(*(column.tolist() for column in part[:3]), strict=True)
    ]
    bad = [(row.source, row.number, row.reason, row.remedy) for step in steps for row in step.bad]
    return predicted, bad


def facts(found):
    """What an evaluation has found, but for how long it took; NaN is equal to itself."""
    kept = replace(found, curve=None, speed=None, seconds=0.0, model_seconds=0.0)
    return repr(kept), found.curve.tobytes()


# The loop


@pytest.mark.parametrize("most_rows", [1, 7, 100, 8192])
def test_a_tree_is_evaluated_as_by_the_twin(most_rows):
    rows = good_rows(730)
    twin = small_tree()
    predictions, _ = naive.run(twin, rows)
    y = [row[1] for row in rows]
    run, steps = follow(
        Prequential(small_tree(), naive.ListStream(rows), fade=0.99, window=50), most_rows
    )
    found = run.finish()
    assert told(steps)[0] == list(zip(range(1, 731), y, predictions, strict=True))
    assert run.model.to_bytes() == twin.to_bytes()
    assert (found.rows_read, found.rows_predicted, found.rows_learned) == (730, 730, 730)
    assert astuple(found.total) == pytest.approx(naive.errors(predictions, y))
    assert astuple(found.faded) == pytest.approx(naive.faded_errors(predictions, y, 0.99))
    assert astuple(found.window) == pytest.approx(naive.window_errors(predictions, y, 50))
    assert found.total.r2 > 0.5
    expected = naive.curve(predictions, y, 0.99, 50)
    assert found.curve["row"].tolist() == [100, 200, 300, 400, 500, 600, 700, 730]
    for point, of_twin in zip(found.curve.tolist(), expected, strict=True):
        np.testing.assert_allclose(point[:10], of_twin, rtol=1e-9)
    assert (found.leaves, found.model_bytes) == (twin.n_leaves, twin.nbytes)
    assert (found.curve["leaves"][-1], found.curve["bytes"][-1]) == (twin.n_leaves, twin.nbytes)
    assert found.target_mean == pytest.approx(np.mean(y))
    assert found.target_deviation == pytest.approx(np.std(y))
    assert (found.stream, found.target, found.fade, found.window_rows) == ("a list", "y", 0.99, 50)
    assert found.model == repr(twin)
    assert found.rejected.count == 0


def test_the_leaves_of_the_curve_are_those_of_then():
    rows = good_rows(500)
    found = prequential(small_tree(), naive.ListStream(rows))
    for point, measured in zip(found.curve, (100, 100, 100, 400, 500), strict=True):
        tree = small_tree()
        for x, y in rows[:measured]:
            tree.learn_one(x, y)
        assert (point["leaves"], point["bytes"]) == (tree.n_leaves, tree.nbytes)
    assert found.curve["leaves"][-1] > 2


def test_a_model_goes_on_from_where_it_is():
    tree, twin = small_tree(), small_tree()
    for x, y in good_rows(50):
        tree.learn_one(x, y)
        twin.learn_one(x, y)
    rows = good_rows(70, seed=5)
    predictions, _ = naive.run(twin, rows)
    found = prequential(tree, naive.ListStream(rows))
    assert found.total.mae == pytest.approx(naive.errors(predictions, [y for _, y in rows])[0])
    assert tree.to_bytes() == twin.to_bytes()


def test_rows_of_all_kinds_are_the_same_stream():
    x, y = np.random.default_rng(1).random((300, 2)), np.arange(300.0) % 7
    pairs = [({0: a, 1: b}, target) for (a, b), target in zip(x.tolist(), y, strict=True)]
    given_as = [
        (x, y),
        (x.tolist(), y.tolist()),
        ({0: x[:, 0], np.int64(1): x[:, 1].tolist()}, y),
        pairs,
        iter(pairs),
        ArrayStream(x, y),
    ]
    trees = [small_tree() for _ in given_as]
    found = [prequential(tree, rows).total for tree, rows in zip(trees, given_as, strict=True)]
    assert len({repr(errors) for errors in found}) == 1
    assert len({tree.to_bytes() for tree in trees}) == 1


def test_a_tree_calls_the_columns_of_arrays_as_when_it_learns_them():
    x, y = np.random.default_rng(1).random((300, 2)), np.arange(300.0) % 7
    frame = pandas.DataFrame(x)
    for rows in (x, frame, {0: x[:, 0], 1: x[:, 1]}):
        evaluated, learned = small_tree(), small_tree()
        prequential(evaluated, (rows, y))
        learned.predict_learn_many(x, y)
        assert evaluated.features == learned.features == [0, 1]
        assert evaluated.to_bytes() == learned.to_bytes()
        row = {0: 0.25, 1: 0.75}
        assert evaluated.predict_one(row) == evaluated.predict_many([[0.25, 0.75]])[0]
        assert evaluated.predict_one(row) != evaluated.predict_one({0: 0.75, 1: 0.25})


def test_columns_of_arrays_are_the_features_of_a_tree_that_knows_some():
    x, y = np.random.default_rng(1).random((300, 2)), np.arange(300.0) % 7
    evaluated, learned = small_tree(), small_tree()
    for tree in (evaluated, learned):
        tree.learn_many({"a": x[:, 0], "b": x[:, 1]}, y)
    prequential(evaluated, (x, y))
    learned.predict_learn_many(x, y)
    assert evaluated.to_bytes() == learned.to_bytes()
    with pytest.raises(StreamError, match=r"X has shape \(300, 1\), and the model has 2 features"):
        prequential(evaluated, (x[:, :1], y))


def test_a_stream_without_rows():
    found = prequential(small_tree(), naive.ListStream([]))
    assert (found.rows_read, found.rows_predicted, found.rows_learned) == (0, 0, 0)
    assert (found.curve.shape, found.speed.shape, found.rejected.where.shape) == (
        (0,),
        (0, 2),
        (0, 2),
    )
    np.testing.assert_equal(astuple(found.total), (math.nan,) * 3)
    assert found.rows_per_second == 0.0


def test_a_stream_of_nothing_but_bad_rows():
    stream = naive.ListStream(["bad"] * 5)
    words = "a list: all 5 rows were rejected, so nothing was learned; the first is file 0, line 1"
    with pytest.raises(StreamError, match=words):
        prequential(small_tree(), stream, on_bad_row="skip")
    with pytest.raises(StreamError, match="a list: its only row was rejected"):
        prequential(small_tree(), naive.ListStream(["bad"]), on_bad_row="skip")
    with pytest.raises(BadRowError, match="file 0, line 1: bad"):
        prequential(small_tree(), stream)


def test_a_window_that_is_larger_than_the_stream():
    found = prequential(small_tree(), naive.ListStream(good_rows(90)), window=10**6)
    assert found.window_rows == 10**6
    assert astuple(found.window) == pytest.approx(astuple(found.total))


def test_a_constant_target():
    rows = [(x, 0.1) for x, _ in good_rows(250)]
    found = prequential(small_tree(), naive.ListStream(rows), window=70)
    assert all(math.isnan(errors.r2) for errors in (found.total, found.faded, found.window))
    assert np.isnan(found.curve["r2"]).all()
    assert np.isnan(found.curve["window_r2"]).all()
    assert found.window.mae < 1e-12
    assert json.loads(json.dumps(found.to_dict()))["total"]["r2"] is None


# Interruptions, chunks, and rows that cannot be used


@pytest.mark.parametrize("delay", [None, 7, "3 seconds"])
@settings(max_examples=40)
@given(data=st.data())
def test_chunks_and_interruptions_change_nothing(delay, data):
    timed = delay == "3 seconds"
    stream = naive.ListStream(data.draw(mixed_rows(timed)), data.draw(st.sampled_from([None, 50])))
    late = (3.0 if stream.time else 3) if timed else delay
    options = {"delay": late, "window": 30, "fade": 0.9, "on_bad_row": "skip"}
    run, steps = follow(Prequential(small_tree(), stream, **options))
    others = st.tuples(st.integers(1, 120), st.sets(st.integers(0, 25), max_size=4))
    most_rows, interruptions = data.draw(others)
    other, other_steps = follow(
        Prequential(small_tree(), stream, **options), most_rows, interruptions
    )
    assert without_times(other) == without_times(run)
    assert told(other_steps) == told(steps)
    assert facts(other.finish()) == facts(run.finish())
    assert other.model.to_bytes() == run.model.to_bytes()


@settings(max_examples=40)
@given(rows=mixed_rows(), most_rows=st.integers(1, 300), delay=st.sampled_from([None, None, 1, 9]))
def test_bad_rows_leave_the_model_as_the_good_ones_make_it(rows, most_rows, delay):
    # Late labels that are refused make others come sooner, by which a last layer would be judged.
    track = "auto" if delay is None else None
    clean, tree = small_tree(track=track), small_tree(track=track)
    naive.run(clean, [*filter(is_good, rows)], delay)
    stream = naive.ListStream(rows)
    run, steps = follow(Prequential(tree, stream, delay=delay, on_bad_row="skip"), most_rows)
    found = run.finish()
    assert run.model.to_bytes() == clean.to_bytes()
    unusable = [place for place, row in enumerate(rows) if not is_good(row)]
    assert found.rejected.count == sum(found.rejected.reasons.values()) == len(unusable)
    assert found.rejected.where[:, 1].sum() == len(unusable)
    assert found.rows_learned == len(rows) - len(unusable)
    assert found.rows_read == len(rows) == found.rows_learned + found.rejected.count
    if delay is None:
        assert found.rows_predicted == found.rows_learned == found.curve["row"][-1:].sum()
        assert [row[1] for row in told(steps)[1]] == [place + 1 for place in unusable]
        reasons = [row if isinstance(row := rows[place], str) else REFUSED for place in unusable]
        assert [row[2] for row in told(steps)[1]] == reasons


@settings(max_examples=40)
@given(rows=mixed_rows(), most_rows=st.integers(1, 300))
def test_by_default_the_first_bad_row_stops_all_after_the_rows_before_it(rows, most_rows):
    first = next((place for place, row in enumerate(rows) if not is_good(row)), len(rows))
    clean = small_tree()
    naive.run(clean, rows[:first])
    run = Prequential(small_tree(), naive.ListStream(rows))
    if first == len(rows):
        follow(run, most_rows)
    else:
        with pytest.raises(BadRowError, match=f"file 0, line {first + 1}: ") as caught:
            follow(run, most_rows)
        reason = rows[first] if isinstance(rows[first], str) else REFUSED
        assert (caught.value.row.number, caught.value.row.reason) == (first + 1, reason)
    assert run.model.to_bytes() == clean.to_bytes()
    assert run.rows_predicted == run.rows_learned == run.scores.rows == first


def test_the_places_of_refused_rows_count_all_rows_before_them():
    rows = good_rows(300)
    rows[63:63] = ["bad"] * 64  # rows 63 to 126
    rows[127] = (rows[127][0], 1e300)
    rows[290] = (rows[290][0], -1e300)
    for most_rows in (1, 100, 8192):
        run, _ = follow(
            Prequential(small_tree(), naive.ListStream(rows), on_bad_row="skip"), most_rows
        )
        refused = run.finish().rejected
        assert refused.reasons == {"bad": 64, REFUSED: 2}
        assert refused.where.tolist() == [
            [64, 1],
            [128, 64],
            [192, 0],
            [256, 0],
            [320, 1],
            [364, 0],
        ]


def test_a_refused_row_tells_what_the_model_said():
    rows = good_rows(10)
    rows[4] = (rows[4][0], 1e150)
    with pytest.raises(BadRowError, match=r"line 5: rejected by the model; y = 1e\+150 .*scale y"):
        prequential(small_tree(), naive.ListStream(rows))


def test_after_a_stop_inside_of_a_step_nothing_can_be_saved_or_learned_twice():
    run = Prequential(small_tree(), naive.ListStream([*good_rows(20), "bad", *good_rows(20)]))
    steps = run.steps(15)
    next(steps)
    saved = run.to_state(), run.model.to_bytes()
    with pytest.raises(BadRowError):
        next(steps)
    assert run.rows_learned == 20
    with pytest.raises(RuntimeError, match="stopped inside of a step"):
        run.to_state()
    with pytest.raises(RuntimeError, match="go on from what was saved before"):
        next(run.steps())
    run.learner.model = HoeffdingTreeRegressor.from_bytes(saved[1])
    run.restore(*saved[0])
    run.on_bad_row = "skip"
    follow(run)
    assert run.finish().rows_learned == 40


def test_a_run_can_be_left_and_taken_up_again_between_steps():
    run, whole = (Prequential(small_tree(), naive.ListStream(good_rows(200))) for _ in range(2))
    for _ in range(3):
        for _ in itertools.islice(run.steps(30), 2):
            pass
    follow(run)
    follow(whole)
    assert without_times(run) == without_times(whole)


# Other models


class ByRows:
    """The mean of the targets so far, as a model of river's kind."""

    n_leaves = "many"

    def __init__(self):
        self.seen = []

    def predict_one(self, x):
        assert list(x) == ["a", "c", "b"]
        return float(np.mean([y for _, y in self.seen])) if self.seen else 0

    def learn_one(self, x, y):
        self.seen.append((x, y))


class ByBatches:
    """The same by batches, which have to be of one row."""

    nbytes = np.int64(77)

    def __init__(self):
        self.seen = []

    def predict_many(self, X):
        assert [len(column) for column in X.values()] == [1, 1, 1]
        return np.array([np.mean([y for _, y in self.seen]) if self.seen else 0.0])

    def learn_many(self, X, y):
        self.seen.append(({name: column[0] for name, column in X.items()}, float(y[0])))


@pytest.mark.parametrize("delay", [None, 3])
@pytest.mark.parametrize("model", [ByRows, ByBatches])
def test_other_models(model, delay):
    rows = good_rows(150)
    made, twin = model(), ByRows()
    predictions, _ = naive.run(twin, rows, delay)
    found = prequential(made, naive.ListStream(rows), delay=delay, window=40)
    y = [row[1] for row in rows]
    assert made.seen == twin.seen == rows
    assert astuple(found.total) == pytest.approx(naive.errors(predictions, y))
    assert astuple(found.window) == pytest.approx(naive.window_errors(predictions, y, 40))
    told_bytes = 77 if model is ByBatches else None
    assert (found.leaves, found.model_bytes) == (None, told_bytes)
    assert found.curve["leaves"].tolist() == [-1, -1]
    assert found.curve["bytes"].tolist() == [told_bytes or -1] * 2


@pytest.mark.parametrize("names", [(), ("predict_one",), ("learn_one", "predict_many"), ("fit",)])
def test_what_is_no_model_is_refused(names):
    made = type("Odd", (), {name: lambda *_: 0.0 for name in names})()
    with pytest.raises(
        ValueError, match="Odd is no model that can be evaluated: it needs predict_"
    ):
        prequential(made, naive.ListStream(good_rows(3)))


def test_errors_of_other_models_are_theirs():
    class Broken(ByRows):
        def learn_one(self, x, y):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        prequential(Broken(), naive.ListStream(good_rows(3)), on_bad_row="skip")


def test_a_batch_of_predictions_has_to_have_one_for_each_row():
    class Short:
        def predict_learn_many(self, X, y):
            return y[1:]

    with pytest.raises(ValueError, match="there are 2 predictions and 3 targets"):
        prequential(Short(), naive.ListStream(good_rows(3)))


# What is told in the end


class Clock:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now


def test_the_time_that_others_take_between_steps_does_not_count(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(sys.modules[Run.__module__], "time", clock)
    run = Prequential(small_tree(), naive.ListStream(good_rows(40)))
    for _ in run.steps(10):
        clock.now += 1000.0
    clock.now += 1000.0
    found = run.finish()
    assert found.seconds == 4.0
    assert found.rows_per_second == 10.0
    assert found.speed.tolist() == [[4.0, 10.0]]


def test_the_time_of_labels_after_the_end_counts(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(sys.modules[Run.__module__], "time", clock)
    run = Prequential(small_tree(), naive.ListStream(good_rows(40)), delay=100)
    follow(run)
    clock.now += 1000.0
    assert run.finish().seconds == 2.0


def test_the_result_in_terms_of_json():
    rows = good_rows(300)
    rows[7:7] = ["bad", "bad"]
    found = prequential(small_tree(), naive.ListStream(rows), on_bad_row="skip")
    told_in_json = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told_in_json["rows"] == {
        "read": 302,
        "predicted": 300,
        "learned": 300,
        "without_target": 0,
        "labels_joined": 0,
        "refused": 2,
        "rejected": 2,
        "reasons": {"bad": 2},
        "unscored": 0,
        "first_unscored": None,
    }
    assert tuple(told_in_json["total"].values()) == astuple(found.total)
    assert told_in_json["window"]["rows"] == 1000
    assert told_in_json["faded"]["fade"] == 0.999
    assert told_in_json["rows_per_second"] == 302 / found.seconds
    assert found.speed.shape == (3, 2)
    assert 0 < found.model_seconds < found.seconds


def test_what_cannot_be_run_is_refused():
    stream = naive.ListStream(good_rows(3))
    with pytest.raises(ValueError, match="on_bad_row = 'ignore': 'error' or 'skip' is expected"):
        prequential(small_tree(), stream, on_bad_row="ignore")
    stream.target = None
    with pytest.raises(StreamError, match="a list has no target"):
        prequential(small_tree(), stream)


def test_a_run_that_is_to_stop_does_not_begin_to_wait_for_rows():
    def stop():
        assert run.waiting
        if run.rows_read:
            raise KeyboardInterrupt

    run = Prequential(small_tree(), friedman(rows=2_000))
    run.before_wait = stop
    steps = run.steps(500)
    next(steps)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert run.rows_read == 500
