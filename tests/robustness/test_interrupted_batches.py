"""Batches that are learned in parts: an interruption leaves all of their rows learned, or none."""

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor

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
