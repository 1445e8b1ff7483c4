"""Batches that are learned in parts: an interruption leaves all of their rows learned, or none."""

import numpy as np
import pytest

from sapwood import (
    AdaptiveTreeRegressor,
    CorrectedRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    validation,
)
from sapwood.ensemble import _ensemble

MODELS = {
    "tree": HoeffdingTreeRegressor,
    "limited": lambda: HoeffdingTreeRegressor(max_bytes=2**20),
    "adaptive": lambda: AdaptiveTreeRegressor(threads=1),
    "forest": lambda: ForestRegressor(members=2, threads=1),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("predicting", [False, True])
def test_an_interrupted_batch_is_learned_as_a_whole_or_not_at_all(kind, predicting, monkeypatch):
    """Later rows bring a feature, and the 64th category, from which on there are many."""
    rng = np.random.default_rng(1)
    rows = [{"x": value, "k": f"k{place % 70}"} for place, value in enumerate(rng.random(200))]
    y = [10 * row["x"] + place % 70 for place, row in enumerate(rows)]
    for row in rows[130:]:
        row["z"] = row["x"] ** 2
    start = MODELS[kind]()
    start.learn_many(rows[:50], y[:50])
    after, out = start.copy(), np.full(150, np.nan)
    expected = after.predict_learn_many(rows[50:], y[50:])
    states = {50: start.to_bytes(), 200: after.to_bytes()}
    if not predicting:
        other = start.copy()
        other.learn_many(rows[50:], y[50:])
        states[200] = other.to_bytes()
    found = []
    register = type(start)._registration
    for call in range(1, 30):
        model, calls = start.copy(), []

        def interrupted(self, *arguments, model=model, calls=calls, call=call):
            if self is model:
                calls.append(1)
                if len(calls) == call:
                    raise KeyboardInterrupt
            return register(self, *arguments)

        monkeypatch.setattr(type(start), "_registration", interrupted)
        try:
            if predicting:
                model._learn_into(rows[50:], y[50:], None, out, delayed=False)
            else:
                model.learn_many(rows[50:], y[50:])
        except KeyboardInterrupt:
            found.append(int(model._kernel.rows))
        monkeypatch.undo()
        assert model.to_bytes() == states[int(model._kernel.rows)]
        if predicting and model._kernel.rows == 200:
            assert out.tolist() == expected.tolist()
        if len(calls) < call:
            break
    assert found[0] == 50
    assert set(found[1:]) == {200}


class Weights(np.ndarray):
    """Weights whose length is read at the start of a batch, and before and in each block."""

    calls = 0
    interrupted = 0

    def __len__(self):
        Weights.calls += 1
        if Weights.calls == Weights.interrupted:
            raise KeyboardInterrupt
        return super().__len__()


@pytest.mark.parametrize("kind", [AdaptiveTreeRegressor, ForestRegressor])
@pytest.mark.parametrize("block", [1, 2])
def test_rows_of_an_interrupted_block_are_learned_once(kind, block, monkeypatch):
    """The ensemble has accepted a block of rows, but no member has learned it yet."""
    X = np.random.default_rng(1).random((1_400, 2))
    model = kind(threads=2)
    model.learn_many(X[:100], X[:100, 0])
    expected = model.copy()
    expected.learn_many(X[100:], X[100:, 0])
    monkeypatch.setattr(Weights, "calls", 0)
    monkeypatch.setattr(Weights, "interrupted", 1 + 2 * block)
    monkeypatch.setattr(validation, "weights", lambda w, rows: np.ones(rows).view(Weights))
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X[100:], X[100:, 0])
    assert model.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("kind", MODELS)
def test_too_few_ids_are_rejected_before_a_row_is_read(kind):
    X = np.random.default_rng(1).random((700, 2))
    model = MODELS[kind]()
    model.learn_many(X, X[:, 0])
    before = model.to_bytes()
    message = "ids has 600 values and X has 700 rows: the lengths must agree"
    for call in (
        lambda: model.predict_many(X, ids=range(600)),
        lambda: model.learn_many(X, X[:, 0], ids=range(600)),
        lambda: model.predict_learn_many(X, X[:, 0], ids=range(600)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert model.to_bytes() == before


class Interruption:
    """Raises at one of the reads of the block of rows that an ensemble learns."""

    def __init__(self):
        self.reads = self.wanted = 0

    def work(self):
        """A block that counts how often it is read."""
        interruption = self

        class Work(_ensemble.Work):
            def __getattribute__(self, name):
                interruption.reads += 1
                if interruption.reads == interruption.wanted:
                    raise KeyboardInterrupt
                return super().__getattribute__(name)

        return Work


@pytest.mark.parametrize("kind", [AdaptiveTreeRegressor, ForestRegressor])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("stage", [lambda model: model, CorrectedRegressor])
def test_predictions_of_an_interrupted_block_are_complete(kind, targets, stage, monkeypatch):
    """The array of the caller is filled when the block is finished, at whatever line it stopped."""
    X = np.random.default_rng(1).random((700, 2))
    y = X[:, 0] if targets == 1 else X[:, :2] - X[:, 1:] / 3
    own = {} if stage is not CorrectedRegressor else {"track": None}
    start = stage(kind(threads=1, **own))
    start.learn_many(X[:60], y[:60])
    after = start.copy()
    expected = np.asarray(after.predict_learn_many(X[60:], y[60:]))
    states = {start.to_bytes(): False, after.to_bytes(): True}  # whether the rows are learned
    interruption, finished = Interruption(), 0
    monkeypatch.setattr(_ensemble, "Work", interruption.work())
    points = 0
    while True:
        points += 1
        model, out = start.copy(), np.full(expected.shape, np.nan)
        interruption.reads, interruption.wanted = 0, points
        try:
            model._learn_into(X[60:], y[60:], None, out, delayed=False)
            break
        except KeyboardInterrupt:
            interruption.wanted = 0
        if states[model.to_bytes()]:
            assert out.tolist() == expected.tolist()
            finished += 1
    assert finished > 20
