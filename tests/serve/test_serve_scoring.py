"""The scores of the service: every target has errors, baselines, coverage and drift events."""

import numpy as np
import pytest

import sapwood
from sapwood.serve.model_host import ModelHost, Predicted
from sapwood.serve.operations import Operation
from sapwood.serve.rows import Batch
from sapwood.serve.scoring import Scoreboard
from sapwood.serve.state import ServiceState
from serve_cases import comparable, rows_of

NOON = 1_700_000_000.0  # 2023-11-14


def scored(board, values, y, rows=None, bounds=None):
    """Score rows in batches; return the drift events."""
    found = []
    for start in range(0, len(y), 50):
        some = slice(start, start + 50)
        batch = [{"a": 0.5}] * len(y[some]) if rows is None else rows[some]
        own = Predicted(values[some], None if bounds is None else bounds[some])
        found += board.add(batch, own, y[some], NOON + start)
    return found


def weighted_mean(values):
    weights = 0.999 ** np.arange(len(values))[::-1]
    return float(np.average(values, weights=weights))


def test_each_target_is_compared_with_its_own_baselines():
    draw = np.random.default_rng(1)
    y = draw.normal([5.0, -2.0], [1.0, 3.0], (400, 2))
    y[draw.random(400) < 0.2, 1] = np.nan
    values = y + draw.normal(0, 0.5, y.shape)
    board = Scoreboard(["low", "high"], [], monitor=False)
    scored(board, np.nan_to_num(values), y)
    found = board.summary()
    for place, name in enumerate(["low", "high"]):
        known = y[np.isfinite(y[:, place]), place]
        last = np.append(0.0, known[:-1])
        mean = np.append(0.0, np.cumsum(known)[:-1] / np.arange(1, len(known)))
        errors = np.abs(values[:, place] - y[:, place])
        assert found["errors"][name]["mae"] == pytest.approx(
            weighted_mean(errors[np.isfinite(errors)])
        )
        for baseline, predicted in {"mean": mean, "last": last}.items():
            expected = weighted_mean(np.abs(known - predicted))
            assert found["baselines"][name][baseline]["mae"] == pytest.approx(expected)


def test_coverage_is_counted_for_each_target():
    y = np.array([[1.0, 5.0], [1.0, np.nan], [9.0, 1.0]])
    bounds = np.tile(np.array([0.0, 2.0]), (3, 2, 1, 1))
    board = Scoreboard(["low", "high"], [0.9], monitor=False)
    scored(board, np.ones((3, 2)), y, bounds=bounds)
    assert board.summary()["coverage"] == {
        "low": {"0.9": pytest.approx(weighted_mean([1, 1, 0]))},
        "high": {"0.9": pytest.approx(weighted_mean([0, 1]))},
    }
    assert list(board.points)[1] == [2, NOON, 1.0, 1.0, 0.0, 2.0, 1.0, None, 0.0, 2.0]


def drifting():
    """Rows of which the second target changes at 2,000, and the feature at 3,000."""
    draw = np.random.default_rng(3)
    a, noise = draw.random(4_000), draw.normal(0, 0.1, (4_000, 2))
    values = np.column_stack([a, 2 * a])
    y = values + noise
    y[2_000:, 1] += 1.5
    a[3_000:] += 4.0
    return [{"a": each} for each in a.tolist()], values, y


def test_drift_of_any_target_is_reported_with_its_date():
    rows, values, y = drifting()
    events = scored(Scoreboard(["low", "high"], [], monitor=True), values, y, rows)
    kinds = {(event["what"], event["target"]) for event in events}
    assert {("bias", "high"), ("feature", None)} <= kinds
    assert not any(event["target"] == "low" for event in events)
    first = min(event["row"] for event in events)
    assert 2_000 < first < 2_300
    for event in events:
        assert event["time"] == pytest.approx(NOON + event["row"], abs=64)
        assert "2023-11-14" in event["text"]


def test_scores_continue_after_a_checkpoint():
    rows, values, y = drifting()
    whole = Scoreboard(["low", "high"], [], monitor=True)
    scored(whole, values, y, rows)
    parts = Scoreboard(["low", "high"], [], monitor=True)
    scored(parts, values[:2_050], y[:2_050], rows)
    restored = Scoreboard(["low", "high"], [], monitor=True)
    restored.restore(parts.to_arrays())
    for start in range(2_050, 4_000, 50):
        some = slice(start, start + 50)
        restored.add(rows[some], Predicted(values[some], None), y[some], NOON + start)
    expected, found = whole.to_arrays(), restored.to_arrays()
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }


def test_baselines_of_delayed_labels_are_those_of_the_time_of_prediction():
    """A baseline that knew later labels would look better than it can be."""
    state = ServiceState(ModelHost(sapwood.HoeffdingTreeRegressor()), monitor=False)
    items = rows_of(40)
    for place, item in enumerate(items):
        state._predict(Batch([item["x"]], 1, [f"{place}"]), NOON)
        if place >= 9:  # nine rows late
            state._labels(Batch([], 1, [f"{place - 9}"], [items[place - 9]["y"]]), NOON)
    y = [item["y"] for item in items[:31]]
    # Row i was predicted when the labels of i - 10 and earlier were known.
    last = [y[place - 10] if place >= 10 else 0.0 for place in range(31)]
    mean = [float(np.mean(y[: place - 9])) if place >= 10 else 0.0 for place in range(31)]
    found = state.scores.summary()["baselines"]["y"]
    assert found["last"]["mae"] == pytest.approx(weighted_mean(np.abs(np.subtract(y, last))))
    assert found["mean"]["mae"] == pytest.approx(weighted_mean(np.abs(np.subtract(y, mean))))


@pytest.mark.parametrize("kind", ["tree", "intervals", "forest"])
def test_a_label_finds_its_own_prediction_among_equal_rows(kind):
    """Labels of equal rows come in another order than the predictions."""
    made = {
        "tree": sapwood.HoeffdingTreeRegressor,
        "intervals": lambda: sapwood.IntervalRegressor(sapwood.HoeffdingTreeRegressor()),
        "forest": lambda: sapwood.ForestRegressor(members=3),
    }[kind]
    state, model = ServiceState(ModelHost(made()), monitor=False), made()
    draw = np.random.default_rng(2)
    for block in range(20):
        rows = [{"a": float(draw.integers(3))} for _ in range(6)]
        y = [row["a"] + draw.normal() for row in rows]
        ids = [f"{block}.{place}" for place in range(6)]
        state._predict(Batch(rows, 6, list(ids)), NOON)
        if kind == "intervals":
            model.predict_intervals_many(rows, ids=ids)
        else:
            model.predict_many(rows, ids=ids)
        for place in draw.permutation(6):
            state._labels(Batch([], 1, [ids[place]], [y[place]]), NOON)
            model.learn_one(rows[place], y[place], id=ids[place])
    assert state.host.model.to_bytes() == model.to_bytes()


def test_predictions_that_wait_are_restored():
    state = ServiceState(ModelHost(sapwood.HoeffdingTreeRegressor()), monitor=True)
    for place, item in enumerate(rows_of(30)):
        body = b'{"x": {"a": %f}, "id": "%d"}' % (item["x"]["a"], place)
        state.apply(Operation("predict", body), NOON)
        if place % 3 == 0:
            label = b'{"id": "%d", "y": %f}' % (place, item["y"])
            state.apply(Operation("labels", label), NOON)
    restored = ServiceState.from_state(*state.to_state())
    assert restored.pending == state.pending
    assert restored.pending["29"].baselines == state.pending["29"].baselines != [[0.0, 0.0]]
    assert comparable(restored) == comparable(state)
