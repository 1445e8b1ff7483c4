"""The benchmarks of classes: their pages are those of their results, and a run resumes."""

import numpy as np
import pytest
from benchmarks import class_observers, class_weights, classes
from benchmarks.class_peers import OURS
from benchmarks.class_streams import ClassStream


def test_the_page_of_classifiers_is_that_of_the_results():
    page = classes.page(classes.read(), classes.read(classes.LONG_FILE))
    assert page == classes.PAGE.read_text(encoding="utf-8")


def test_the_page_of_observers_is_that_of_the_results():
    page = class_observers.page(class_observers.read())
    assert page == class_observers.PAGE.read_text(encoding="utf-8")


def test_the_tables_of_weights_are_those_of_the_results():
    page = class_weights.FILE.parents[2] / "howto" / "classification.md"
    assert class_weights.markdown(class_weights.read()) in page.read_text(encoding="utf-8")


def test_one_row_in_so_many_of_rare_classes_is_kept():
    labels = ["a"] * 6 + ["b"] * 5
    stream = ClassStream("s", [{"x": float(row)} for row in range(11)], labels)
    thinned = class_weights._thinned(stream, 2, 7)
    assert [x["x"] for x in thinned.rows] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0]
    assert thinned.labels == ["a"] * 6 + ["b"]


def record(stream="led", rows=30, timing="at once", learner="river HT"):
    return classes.Record(stream, 2, rows, timing, learner, 0.5, 0.1, 0.7, 10.0)


def test_a_run_resumes_with_what_was_measured_of_others():
    stream = ClassStream("led", [{"x": 1.0}] * 30, ["a", "b"] * 15)
    others = [record(), record(timing="by 1,000")]
    ours, longer, gone = record(learner=OURS[0]), record(rows=40), record(stream="unknown")
    kept = classes.kept_of([*others, ours, longer, gone], [stream])
    assert kept == {each.key: each for each in others}


def test_streams_that_a_run_has_not_finished_are_left_out():
    whole = [record("led", learner=name) for name in ("a", "b")]
    assert classes._complete([*whole, record("sea", learner="a")]) == whole
    assert classes._complete([]) == []


def test_slow_learners_are_measured_on_short_streams_alone(monkeypatch):
    fast, slow = "fast", classes.SHORT_ONLY[0]
    monkeypatch.setattr(classes, "learners", lambda: dict.fromkeys((fast, slow)))
    stream = ClassStream("mine", [], [])
    known = {
        ("mine", timing, name): record("mine", 0, timing, name)
        for timing in classes.TIMINGS
        for name in (fast, slow)
    }
    found = [(r.timing, r.learner) for r in classes.measured(stream, known, is_long=True)]
    assert found == [("at once", fast)]
    assert len(list(classes.measured(stream, known))) == 3  # river SRP is too slow for both timings


def test_learners_that_are_not_installed_are_kept(monkeypatch):
    monkeypatch.setattr(classes, "learners", lambda: {"here": None})
    streams = [ClassStream(name, [], []) for name in ("led", "sea")]
    whole = [record(name, 0, learner="whole") for name in ("led", "sea")]
    part, here = record("led", 0, learner="part"), record("led", 0, learner="here")
    kept = {each.key: each for each in (*whole, part, here)}
    assert classes.not_installed(kept, streams) == whole


def test_measured_learners_are_scored(monkeypatch):
    class Last:
        def __init__(self):
            self.last = None

        def predict_proba(self, x):
            return {} if self.last is None else {self.last: 1.0}

        def learn(self, x, y):
            self.last = y

    monkeypatch.setattr(classes, "learners", lambda: {"known": Last, "last": lambda _: Last()})
    labels = ["a", "a", "b", "b", "a"]
    stream = ClassStream("mine", [{"x": float(row)} for row in range(5)], labels)
    known = {
        ("mine", timing, "known"): record("mine", 5, timing, "known") for timing in classes.TIMINGS
    }
    found = list(classes.measured(stream, known))
    assert [each.learner for each in found] == ["known", "last"] * 2
    assert found[1].accuracy == pytest.approx(2 / 4)  # the first row has no class to predict
    assert np.isnan(found[3].accuracy)  # fewer than 1,000 rows
