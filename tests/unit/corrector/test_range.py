"""Predictions of all models are held to the range of y, and old files go on without it at first."""

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor, model
from sapwood.corrector._layer import RANGE_PARTS, layer_parts
from sapwood.storage import container
from sapwood.tree import older_formats

KINDS = (HoeffdingTreeRegressor, AdaptiveTreeRegressor, ForestRegressor)


def stream(rows=1500, seed=1):
    """Targets that are 0 in half of the rows, where a linear model predicts less."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 2))
    return x, np.maximum(10 * x[:, 0] + rng.normal(0, 0.5, rows), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_prediction_is_beyond_what_was_seen(kind):
    x, y = stream()
    tree = kind(max_depth=0)
    at_once = tree.predict_learn_many(x, y)
    assert at_once[:128].min() < 0.0  # both sides are open at first
    assert at_once[256:].min() == 0.0
    far = tree.predict_many(np.array([[-9.0, 0.0], [9.0, 0.0]]))
    assert far[0] == 0.0
    assert 0.7 * y.max() < far[1] <= y.max()
    assert tree.predict_one({0: -9.0, 1: 0.0}) == 0.0
    assert tree.explain({0: -9.0, 1: 0.0}).prediction == 0.0
    assert kind(max_depth=0, track=None).predict_learn_many(x, y)[256:].min() < 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_each_of_several_targets_has_its_own_range(kind):
    x, y = stream()
    tree = kind(max_depth=0)
    both = tree.predict_learn_many(x, {"up": y, "down": -y})
    assert both[256:, 0].min() == 0.0
    assert both[256:, 1].max() == 0.0
    far = tree.predict_one({0: -9.0, 1: 0.0})
    assert (far["up"], far["down"]) == (0.0, 0.0)
    assert tree.of_target("down").predict_one({0: -9.0, 1: 0.0}) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_one_by_one_is_as_in_batches_and_files_keep_it(kind):
    x, y = stream(700)
    tree, other = kind(max_depth=0), kind(max_depth=0)
    expected = tree.predict_learn_many(x, y)
    said = []
    for row, value in zip(x.tolist(), y.tolist(), strict=True):
        features = dict(enumerate(row))
        said.append(other.predict_one(features))
        other.learn_one(features, value)
    np.testing.assert_array_equal(said, expected)
    loaded = model.from_bytes(other.to_bytes())
    assert loaded.to_bytes() == other.to_bytes()
    np.testing.assert_array_equal(loaded.predict_many(x), tree.predict_many(x))


def test_a_trend_goes_on_beyond_its_range():
    time = np.arange(3000.0)
    tree = HoeffdingTreeRegressor(max_depth=0)
    y = 0.1 * time + 0.1 * np.sin(time)
    tree.predict_learn_many({"t": time}, y)
    assert tree.predict_one({"t": 3040.0}) > y.max()


@pytest.mark.parametrize("targets", [1, 3])
def test_layers_of_old_files_are_open_until_records_are_counted(targets):
    x, y = stream()
    tree = HoeffdingTreeRegressor(max_depth=0)
    names = ["a", "b", "c"][:targets]
    tree.learn_many(x, y if targets == 1 else dict.fromkeys(names, y))
    layers = tree._kernel.layer_table.reshape(targets, -1)
    start = next(start for name, start, _ in layer_parts() if name == "seen")
    old = np.delete(layers, np.s_[start : start + len(RANGE_PARTS)], axis=1).reshape(-1)
    header, arrays = container.unpack(tree.to_bytes(), tree.kind)
    data = container.pack(tree.kind, {**header, "format": 4}, {**arrays, "layer": old})
    assert older_formats.is_older({**arrays, "layer": old})
    assert not older_formats.is_older(arrays)
    found = model.from_bytes(data)
    far = {0: -9.0, 1: 0.0}
    predicted = found.predict_one(far)
    assert (predicted if targets == 1 else predicted["a"]) < 0.0
    found.learn_many(x[:300], y[:300] if targets == 1 else dict.fromkeys(names, y[:300]))
    predicted = found.predict_one(far)
    assert (predicted if targets == 1 else predicted["a"]) == 0.0


@pytest.mark.parametrize("part", ["window", "seen", "low_records", "high_before"])
def test_a_file_that_cannot_be_is_rejected(part):
    x, y = stream(300)
    tree = HoeffdingTreeRegressor(max_depth=0)
    tree.learn_many(x, y)
    header, arrays = container.unpack(tree.to_bytes(), tree.kind)
    layer = arrays["layer"].copy()
    start = next(start for name, start, _ in layer_parts() if name == part)
    for value in (-1.0, 0.5, 1e9):
        layer[start] = value
        data = container.pack(tree.kind, header, {**arrays, "layer": layer})
        with pytest.raises(model.ModelFileError):
            model.from_bytes(data)


@pytest.mark.parametrize("kind", KINDS)
def test_exported_models_are_held_too(kind):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from sapwood.export import encode, to_onnx

    x, y = stream()
    tree = kind(max_depth=0)
    tree.learn_many(x, y)
    session = runtime.InferenceSession(to_onnx(tree).SerializeToString())
    far = np.array([[-9.0, 0.0], [9.0, 0.0], [0.3, 0.1]])
    rows = encode(tree, far)
    found = session.run(None, {session.get_inputs()[0].name: rows})[0].ravel()
    np.testing.assert_allclose(found, tree.predict_many(far), rtol=1e-9)
    assert found[0] == 0.0
