"""Evaluations of classifiers: in memory, with drift alerts, and saved in between."""

import numpy as np
import pytest

import sapwood
from sapwood.drift import Monitor
from sapwood.evaluate import ClassRun, evaluate_classes, prequential
from sapwood.streams.memory import ArrayStream


def rows_of(count=600):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(count, 2))
    return X, (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0.5)


@pytest.mark.parametrize("kind", [int, str])
def test_labels_keep_their_type(kind):
    X, codes = rows_of()
    y = [kind(code) for code in codes]
    model, again = (sapwood.HoeffdingTreeClassifier() for _ in range(2))
    found = evaluate_classes(model, X, y)
    predicted = again.predict_learn_many(X, y)
    assert found.scores.metrics()["accuracy"] == np.mean(predicted == np.array(y))
    assert model.classes == again.classes
    assert model.to_bytes() == again.to_bytes()
    assert found.drift_events is None


def test_rows_without_labels_and_late_labels():
    X, codes = rows_of()
    y = [None if row % 10 == 0 else int(code) for row, code in enumerate(codes)]
    found = evaluate_classes(sapwood.HoeffdingTreeClassifier(), {"a": X[:, 0], "b": X[:, 1]}, y)
    assert (found.unlabelled, found.scores.rows, found.read) == (60, 540, 600)
    found = evaluate_classes(sapwood.HoeffdingTreeClassifier(), X, codes, delay=50)
    assert found.pending == 50
    assert found.scores.rows == 600


def test_drift_of_classes_features_and_losses():
    rng = np.random.default_rng(2)
    x = rng.normal(size=8000)
    y = np.where(x > 0, "up", "down")
    calm = evaluate_classes(sapwood.HoeffdingTreeClassifier(), {"x": x}, y, monitor=Monitor())
    assert calm.drift_events == []
    shifted = x.copy()
    shifted[5000:] += 3
    labels = np.where(shifted > 0, "up", "down")
    found = evaluate_classes(
        sapwood.HoeffdingTreeClassifier(), {"x": shifted}, labels, monitor=Monitor()
    )
    assert {alarm.what for alarm in found.drift_events} == {"feature", "target"}
    assert {alarm.name for alarm in found.drift_events} == {"x", "y"}
    turned = np.where((x > 0) ^ (np.arange(8000) > 5000), "up", "down")
    found = evaluate_classes(sapwood.HoeffdingTreeClassifier(), {"x": x}, turned, monitor=Monitor())
    assert {(alarm.what, alarm.name) for alarm in found.drift_events} == {("error", "log-loss")}
    assert found.to_dict()["drift"][0]["since"] == pytest.approx(5001, abs=20)


def test_a_run_is_saved_and_resumed_between_steps():
    X, codes = rows_of()
    columns = {"a": X[:, 0], "b": X[:, 1], "label": [f"c{code}" for code in codes]}
    runs = [
        ClassRun(
            sapwood.HoeffdingTreeClassifier(),
            ArrayStream(columns, np.zeros(len(codes))),
            "label",
            delay=20,
            monitor=Monitor(),
        )
        for _ in range(3)
    ]
    for _ in runs[0].steps(100):
        pass
    steps = runs[1].steps(100)
    for _ in range(3):
        next(steps)
    runs[2].model = runs[1].model.copy()
    runs[2].restore(*runs[1].to_state())
    for _ in runs[2].steps(100):
        pass
    first, last = (runs[place].finish().to_dict() | {"seconds": 0} for place in (0, 2))
    assert last == first
    assert runs[2].model.to_bytes() == runs[0].model.to_bytes()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "numbers"),
        ("rows_read", -1),
        ("position", 3),
        ("first_refused", 7),
        ("seconds", "long"),
    ],
)
def test_a_state_that_is_wrong_changes_nothing(name, value):
    X, codes = rows_of(50)
    columns = {"a": X[:, 0], "label": [f"c{code}" for code in codes]}
    stream = ArrayStream(columns, np.zeros(50))
    run = ClassRun(sapwood.HoeffdingTreeClassifier(), stream, "label")
    for _ in run.steps():
        pass
    header, arrays = run.to_state()
    other = ClassRun(run.model, stream, "label")
    with pytest.raises((KeyError, TypeError, ValueError)):
        other.restore({**header, name: value}, arrays)
    assert (other.rows_read, other.scores.rows, other.position) == (0, 0, None)


def test_numbers_are_not_scored_by_classifiers():
    X, codes = rows_of(20)
    with pytest.raises(ValueError, match=r"evaluate_classes\(model, X, y\)"):
        prequential(sapwood.ForestClassifier(), X, codes)
