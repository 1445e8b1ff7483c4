"""Threads that write to the caller's memory, or bring new categories, while a model works."""

import threading
import time

import numpy as np
import pytest

import sapwood
from sapwood.drift import Monitor
from sapwood.intervals import IntervalRegressor
from sapwood.lags import LaggedModel, Lags
from sapwood.rows import encoder, targets

MODELS = {
    "tree": sapwood.HoeffdingTreeRegressor,
    "forest": lambda: sapwood.ForestRegressor(members=3),
    "adaptive": sapwood.AdaptiveTreeRegressor,
    "intervals": lambda: IntervalRegressor(sapwood.HoeffdingTreeRegressor()),
    "lags": lambda: LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 2], lags_of={0: 1})),
}
BAD = (np.nan, np.inf, -np.inf, 1e300)


class Filled:
    """A thread that fills arrays now with good values, now with bad ones."""

    def __init__(self, *arrays):
        self.arrays, self.good = arrays, [array.copy() for array in arrays]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        turn = 0
        while not self.ended.is_set():
            turn += 1
            for array, good in zip(self.arrays, self.good, strict=True):
                array[...] = good
                array.flat[turn % array.size :: 7] = BAD[turn % len(BAD)]
                array[...] = good

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()


def columns_of(X):
    return {place: X[:, place] for place in range(X.shape[1])}


@pytest.mark.parametrize("shape", ["array", "columns"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_learned_was_found_good(name, shape):
    """A batch is learned as it was validated, or rejected."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(5_000, 4)), np.ones(5_000)
    y = X[:, 0] + rng.normal(size=5_000)
    model, learned = MODELS[name](), 0
    with Filled(X, y, w):
        for _ in range(30):
            rows = X if shape == "array" else columns_of(X)
            try:
                model.predict_many(rows)
                model.learn_many(rows, y, w)
                learned += 1
            except (ValueError, OverflowError):
                continue
    model.learn_many(X if shape == "array" else columns_of(X), y, w)
    twin = type(model).from_bytes(model.to_bytes())
    assert np.isfinite(twin.predict_many(X if shape == "array" else columns_of(X))).all()


def test_what_a_monitor_takes_in_was_found_good():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 3)), rng.normal(size=20_000)
    predictions = np.zeros(20_000)
    monitor = Monitor()
    with Filled(X, y, predictions):
        for _ in range(20):
            try:
                monitor.update_many(X, y, predictions)
            except ValueError:
                continue
    assert Monitor.from_bytes(monitor.to_bytes()).rows == monitor.rows


def test_arrays_of_the_caller_are_not_kept():
    """What is written to them between the reading of rows and their use has no effect."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    tree = sapwood.HoeffdingTreeRegressor()
    for rows in (X, columns_of(X), X[::2], np.asfortranarray(X)):
        plan = tree._features.read(rows, learn=True)
        assert not np.may_share_memory(plan.matrix, X)
    assert not np.may_share_memory(targets.read(y).values, y)
    two = np.column_stack([y, y])
    assert not np.may_share_memory(targets.read(two).values, two)


def test_predictions_do_not_wait_for_the_end_of_new_categories(monkeypatch):
    """Each call reads its rows at most twice, however often a category becomes known meanwhile."""
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many({"k": ["a", "b"], "x": [1.0, 2.0]}, [1.0, 2.0])
    X = {"k": ["a", "b"] * 5_000, "x": [1.0, 2.0] * 5_000}
    ended = threading.Event()

    def learn():
        number = 0
        while not ended.is_set():
            tree.learn_one({"k": f"new {number}", "x": 1.0}, 1.0)
            number += 1
            time.sleep(0)

    readings, read = [], encoder.read

    def counted(features, X, learn):
        readings.append(len(X["k"]))
        return read(features, X, learn)

    monkeypatch.setattr(encoder, "read", counted)
    learner = threading.Thread(target=learn)
    learner.start()
    try:
        for _ in range(10):
            assert len(tree.predict_many(X)) == 10_000
    finally:
        ended.set()
        learner.join()
    assert 10 <= readings.count(10_000) <= 20
