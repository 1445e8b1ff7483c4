"""Labels that come late: the order of predicting and learning is that of the twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_evaluate as naive
from sapwood import HoeffdingTreeRegressor
from sapwood.evaluate import Prequential, prequential
from sapwood.evaluate.delay import Delay, Waiting
from sapwood.storage import container
from sapwood.streams.stream import BadRowError


class Diary:
    """A model that notes what is asked of it; rows are told apart by their feature."""

    def __init__(self):
        self.events = []

    def predict_one(self, x):
        self.events.append(("predict", int(x["i"])))
        return 0.5 * len(self.events)

    def learn_one(self, x, y):
        assert y == 10 * x["i"]
        self.events.append(("learn", int(x["i"])))


def numbered(count, times=None):
    rows = [({"i": float(i)}, 10.0 * i) for i in range(count)]
    return rows if times is None else [(*row, t) for row, t in zip(rows, times, strict=True)]


moments = st.one_of(
    st.none(), st.just(math.nan), st.integers(-5, 40).map(float), st.floats(0, 30, width=16)
)


@given(
    count=st.integers(0, 40),
    delay=st.sampled_from([1, 2, 3, 39, 40, 41, 10**9]),
    most_rows=st.integers(1, 12),
)
def test_late_by_rows(count, delay, most_rows):
    run = Prequential(Diary(), naive.ListStream(numbered(count)), delay=delay)
    steps = list(run.steps(most_rows))
    found = run.finish()
    assert run.model.events == naive.schedule(count, delay)
    assert found.rows_predicted == found.rows_learned == found.rows_read == count
    told = [number for step in steps for part in step.predicted for number in part[0].tolist()]
    assert told == list(range(1, count + 1))


@given(
    times=st.lists(moments, min_size=1, max_size=30),
    delay=st.sampled_from([0.5, 1, 2.5, 7, 1e9]),
    most_rows=st.integers(1, 12),
)
def test_late_by_seconds(times, delay, most_rows):
    run = Prequential(Diary(), naive.ListStream(numbered(len(times), times)), delay=delay)
    for _ in run.steps(most_rows):
        pass
    run.finish()
    assert run.model.events == naive.schedule(len(times), delay, times)


def events(times, delay):
    model = Diary()
    prequential(model, naive.ListStream(numbered(len(times), times)), delay=delay)
    return [f"{verb[0]}{row}" for verb, row in model.events]


def test_small_cases_by_seconds():
    assert events([0, 1, 2, 3], 2) == ["p0", "p1", "l0", "p2", "l1", "p3", "l2", "l3"]
    # A time that goes back, or is missing, counts as the latest before it.
    assert events([5, 1, 7, 9], 2) == ["p0", "p1", "l0", "l1", "p2", "l2", "p3", "l3"]
    assert events([5, None, 6, 7], 2) == ["p0", "p1", "p2", "l0", "l1", "p3", "l2", "l3"]
    # Before the first time, rows count as simultaneous with it.
    assert events([None, None, 5, 7], 2) == ["p0", "p1", "p2", "l0", "l1", "l2", "p3", "l3"]
    assert events([None, None], 2) == ["p0", "p1", "l0", "l1"]
    assert events([math.inf, 1, 2], 1) == ["p0", "p1", "l0", "l1", "p2", "l2"]


def test_a_small_case_by_rows():
    model = Diary()
    prequential(model, naive.ListStream(numbered(4)), delay=2)
    told = [f"{verb[0]}{row}" for verb, row in model.events]
    assert told == ["p0", "p1", "p2", "l0", "p3", "l1", "l2", "l3"]


@st.composite
def rows_for_a_tree(draw, timed):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = []
    for row in range(draw(st.integers(0, 150))):
        x = {"a": rng.normal(), "c": str(rng.choice(["red", "blue"])), "b": rng.normal()}
        y = 5.0 * (x["a"] > 0) + 3.0 * (x["c"] == "red") + x["b"]
        x["b"] = None if rng.random() < 0.2 else x["b"]
        time = None if rng.random() < 0.1 else float(row + rng.integers(-2, 3))
        rows.append((x, y, time) if timed else (x, y))
    return rows


@pytest.mark.parametrize("timed", [False, True])
@given(data=st.data())
def test_a_tree_learns_late_as_the_twin_does(timed, data):
    rows = data.draw(rows_for_a_tree(timed))
    delay = data.draw(st.sampled_from([1, 5, 60]))
    times = [row[2] for row in rows] if timed else None
    tree, twin = (HoeffdingTreeRegressor(grace_period=10, delta=0.5) for _ in range(2))
    predictions, order = naive.run(twin, [row[:2] for row in rows], delay, times)
    run = Prequential(tree, naive.ListStream(rows), delay=delay, window=20)
    parts = [part for step in run.steps(data.draw(st.integers(1, 200))) for part in step.predicted]
    found = run.finish()
    assert [p for part in parts for p in part[2].tolist()] == predictions
    assert [y for part in parts for y in part[1].tolist()] == [row[1] for row in rows]
    assert tree.to_bytes() == twin.to_bytes()
    assert order == list(range(len(rows)))
    expected = naive.errors(predictions, [row[1] for row in rows])
    assert (found.total.mae, found.total.rmse) == pytest.approx(expected[:2], nan_ok=True)
    assert found.curve["row"].tolist() == naive.curve_rows(len(rows))


def test_errors_count_when_the_label_comes():
    run = Prequential(Diary(), naive.ListStream(numbered(10)), delay=4)
    rows = [(run.scores.rows, run.rows_predicted, run.rows_learned) for _ in run.steps(1)]
    assert rows == [(max(0, i - 4), i, max(0, i - 4)) for i in range(1, 11)]
    assert run.finish().rows_learned == run.scores.rows == 10


# Rows that the model refuses


def test_rows_that_cannot_be_predicted_or_learned_are_left_out():
    rows = numbered(100)
    rows[30] = ({"i": math.inf}, 1.0)  # cannot be predicted
    rows[5] = ({"i": 5.0}, 1e200)  # cannot be learned, which is found late
    rows[99] = ({"i": 99.0}, -1e200)  # even after the end
    stream = naive.ListStream([*rows[:50], "a bad row", *rows[50:]], file_rows=40)
    tree = HoeffdingTreeRegressor(track=None)  # which learns alike, predicted or not
    run = Prequential(tree, stream, delay=10, on_bad_row="skip")
    steps = [*run.steps(7), run.learn_rest()]
    found = run.finish()
    bad = [(bad.source, bad.number, bad.reason) for step in steps for bad in step.bad]
    assert bad == [
        ("file 0", 6, "rejected by the model"),
        ("file 0", 31, "rejected by the model"),
        ("file 1", 11, "a bad row"),
        ("file 2", 21, "rejected by the model"),
    ]
    assert found.rejected.reasons == {"rejected by the model": 3, "a bad row": 1}
    assert found.rejected.where.tolist() == [[64, 3], [101, 1]]
    assert (found.rows_read, found.rows_predicted, found.rows_learned) == (101, 99, 97)
    clean = HoeffdingTreeRegressor(track=None)
    for place, (x, y) in enumerate(rows):
        if place not in {5, 30, 99}:
            clean.learn_one(x, y)
    assert tree.to_bytes() == clean.to_bytes()


def test_a_refused_row_is_found_in_its_own_place_after_the_end():
    rows = numbered(64)
    rows[63] = ({"i": 1.0}, 1e200)
    stream = naive.ListStream(rows)
    found = prequential(HoeffdingTreeRegressor(), stream, delay=5, on_bad_row="skip")
    assert found.rejected.where.tolist() == [[64, 1]]


@pytest.mark.parametrize(
    ("row", "predicted", "learned"),
    [(({"i": math.inf}, 1.0), 20, 15), (({"i": 1.0}, 1e200), 26, 20)],
)
@pytest.mark.parametrize("most_rows", [1, 6, 100])
def test_by_default_a_refused_row_stops_all(row, predicted, learned, most_rows):
    rows = numbered(40)
    rows[20] = row
    tree = HoeffdingTreeRegressor()
    run = Prequential(tree, naive.ListStream(rows), delay=5)
    with pytest.raises(BadRowError, match="file 0, line 21: rejected by the model; ") as caught:
        list(run.steps(most_rows))
    assert caught.value.row.number == 21
    assert tree.summary.rows == run.rows_learned == learned
    assert run.delay.clock == predicted


def test_errors_of_other_models_are_not_taken_for_refusals():
    class Broken(Diary):
        def learn_one(self, x, y):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        prequential(Broken(), naive.ListStream(numbered(5)), delay=1, on_bad_row="skip")


# What cannot be


@pytest.mark.parametrize(
    ("delay", "timed", "complaint"),
    [
        (0, False, "delay = 0: a number from 1 to"),
        (2.5, False, "delay = 2.5: a whole number"),
        (True, False, "delay = True: a whole number"),
        ("3", False, "delay = '3': a whole number"),
        (0.0, True, "delay = 0.0: a positive finite number"),
        (math.inf, True, "delay = inf: a positive finite number"),
        (math.nan, True, "delay = nan: a positive finite number"),
    ],
)
def test_delays_that_make_no_sense_are_refused(delay, timed, complaint):
    stream = naive.ListStream(numbered(3, [1.0, 2.0, 3.0] if timed else None))
    with pytest.raises(ValueError, match=complaint):
        prequential(Diary(), stream, delay=delay)


def test_a_model_that_only_learns_what_it_predicts_cannot_learn_late():
    class AtOnce:
        def predict_learn_many(self, X, y):
            return np.zeros(len(y))

    assert prequential(AtOnce(), naive.ListStream(numbered(3))).rows_learned == 3
    with pytest.raises(ValueError, match=r"AtOnce is no model .* needs predict_one and learn_one"):
        prequential(AtOnce(), naive.ListStream(numbered(3)), delay=1)


# Saving


VALUES = [
    0.1 + 0.2,
    1e-320,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    3,
    2**70,
    True,
    None,
    "é\ud800",
    "",
]


@given(
    values=st.lists(
        st.one_of(st.sampled_from(VALUES), st.floats(allow_nan=False, allow_infinity=False)),
        max_size=6,
    ),
    y=st.floats(allow_nan=False, allow_infinity=False),
    clock=st.sampled_from([None, 0.0, -0.0, 1e-310, 1.7e9 + 0.1]),
)
def test_rows_that_wait_survive_a_file_to_the_last_bit(values, y, clock):
    delay = Delay(0.1, by_time=True)
    delay.advance(clock)
    for row, value in enumerate(values):
        delay.put(Waiting({"x": value, 7: 1.0}, y, -y, "file", row + 1, row, float(row), [0.5] * 5))
    data = container.pack("test", delay.to_header(), {})
    twin = Delay(0.1, by_time=True).restore(container.unpack(data, "test")[0])
    assert repr(twin.waiting) == repr(delay.waiting)  # which tells -0.0 from 0.0, and 1 from True
    assert repr(twin.clock) == repr(delay.clock)


ROW = {"x": [], "y": 1.0, "prediction": 1.0, "source": "f", "number": 1, "row": 0, "due": 3.0}
ROW |= {"time": 0.0, "forecasts": [0.0] * 5, "ticket": None, "bounds": []}


def test_forecasts_of_earlier_formats_have_another_name():
    older = {name: value for name, value in ROW.items() if name != "forecasts"}
    found = Waiting.from_header(older | {"told": [1.0, 2.0, 3.0, 4.0, 5.0]})
    assert found.forecasts == [1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(TypeError, match="forecasts of a pending row is None"):
        Waiting.from_header(older)


@pytest.mark.parametrize(
    "header",
    [
        {"clock": 1.0},
        {"clock": "1", "waiting": []},
        {"clock": True, "waiting": []},
        {"clock": None, "waiting": []},
        {"clock": 1.0, "waiting": 3},
        {"clock": 1.0, "waiting": [3]},
        {"clock": 1.0, "waiting": [{}]},
        {"clock": 1.0, "waiting": [ROW, ROW]},
        *(
            {"clock": 1.0, "waiting": [ROW | {name: []}]}
            for name in ROW
            if name not in ("bounds", "x")
        ),
        {"clock": 1.0, "waiting": [ROW | {"x": 3}]},
        {"clock": 1.0, "waiting": [ROW | {"x": [["a", 1.0, 2.0]]}]},
        {"clock": 1.0, "waiting": [ROW | {"x": [[{}, 1.0]]}]},
        {"clock": 1.0, "waiting": [ROW | {"bounds": [0.0, 1]}]},
        {"clock": 1.0, "waiting": [ROW | {"bounds": 3}]},
        {"clock": 1.0, "waiting": [ROW | {"y": 1}]},
        {"clock": 1.0, "waiting": [ROW | {"number": 1.0}]},
    ],
)
def test_what_no_delay_has_saved_is_refused_and_changes_nothing(header):
    delay = Delay(2, by_time=False)
    delay.put(Waiting({}, 1.0, 1.0, "f", 1, 0, 0.0, [0.0] * 5))
    before = delay.to_header()
    with pytest.raises((KeyError, TypeError, ValueError)):
        delay.restore(header)
    assert delay.to_header() == before == {"clock": 1.0, "waiting": [ROW]}


def test_rows_that_wait_in_older_files_are_objects():
    row = ROW | {"x": {"a": 1.0}}
    delay = Delay(2, by_time=False).restore({"clock": 1.0, "waiting": [row]})
    assert [waiting.x for waiting in delay.rest()] == [{"a": 1.0}]
