"""Files of forests and adaptive trees that were changed are refused in words, or do no harm."""

import copy
import re

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor, ModelFileError
from sapwood.storage import container
from tree_file_cases import INTEGERS, stream

HEADERS = (
    ("lifetime", [None, 1.0, 1e9, "x", 2_000]),
    ("pending", [None, [], [0, 0], ["x"] * 4, [99, -1, -1, -1]]),
    ("events", [None, [{}], [{"event": 1}], {}]),
    ("parameters", [None, {}, {"members": 3}]),
)
NUMBERS = (np.nan, np.inf, -1.0, 0.5, 1e16, 1e308, -1e308)


def grown(kind):
    if kind is ForestRegressor:
        model = ForestRegressor(members=3, grace_period=40)
    else:
        model = AdaptiveTreeRegressor(grace_period=40)
    model.learn_many(*stream(1_100))
    return model


STATES = {kind: grown(kind).to_state() for kind in (ForestRegressor, AdaptiveTreeRegressor)}


def changed(rng, kind):
    """The bytes of a file in which something was changed."""
    header, arrays = copy.deepcopy(STATES[kind])
    if rng.random() < 0.1:
        name, values = HEADERS[rng.integers(len(HEADERS))]
        header[name] = values[rng.integers(len(values))]
    for _ in range(rng.integers(1, 3)):
        name = rng.choice([each for each in arrays if arrays[each].size])
        flat = arrays[name].reshape(-1)
        place = rng.integers(len(flat))
        how = rng.integers(4)
        if how == 0:
            flat[place] = flat[rng.integers(len(flat))]
        elif how == 1 and flat.dtype.names:
            field = rng.choice(flat.dtype.names)
            values = INTEGERS if flat.dtype[field].kind in "iu" else NUMBERS
            with np.errstate(all="ignore"):
                flat[field][place] = np.array(values).astype(flat.dtype[field])[
                    rng.integers(len(values))
                ]
        elif how == 2:
            del arrays[name]
            arrays[name if rng.random() < 0.5 else f"{name}x"] = flat[: len(flat) // 2]
        else:
            flat.view(np.uint8)[rng.integers(flat.nbytes)] ^= 1 << rng.integers(8)
    return container.pack(kind.kind, {"format": kind.format, "model": header}, arrays)


def refused_or_harmless(data, kind):
    """Whether a file is refused; if not, the model has to work."""
    try:
        model = kind.from_bytes(data, "my.sapwood")
    except ModelFileError as error:
        words = str(error)
    else:
        exercise(model)
        return False
    assert re.match(r"my\.sapwood is damaged: .*[a-z]{3}", words)
    return True


def exercise(model):
    """Let a model do all that it can; nothing may fail."""
    assert model.copy().to_bytes() == model.to_bytes()
    columns, y = stream(600, seed=4)
    predictions = model.predict_learn_many(columns, y)
    assert np.isfinite([*predictions, *model.predict_many(columns)]).all()
    assert model.nbytes > 0
    assert str(model.summary)
    assert str(model.explain({"x0": 0.5, "colour": "pink"}))


def fuzz(seed, rounds):
    """Change files; how many were refused."""
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(rounds):
        for kind in STATES:
            refused += refused_or_harmless(changed(rng, kind), kind)
    return refused


def test_changed_files_are_refused_or_harmless():
    refused = fuzz(1, 60)
    assert 30 < refused < 120


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_changed_files(seed):
    assert fuzz(seed, 500) > 100
