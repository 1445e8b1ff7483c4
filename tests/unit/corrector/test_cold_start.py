"""The last label has a share in predictions while few labels are known, if that is better."""

import numpy as np
import pytest

import sapwood
from export_cases import predict_flat
from sapwood.corrector._layer import ErrorCorrectionLayer, last_label_share
from sapwood.export.flat import encode, flatten

KINDS = [
    sapwood.HoeffdingTreeRegressor,
    sapwood.AdaptiveTreeRegressor,
    lambda: sapwood.ForestRegressor(members=3),
]


def series(rows=400, seed=1):
    """A series that hardly changes from row to row, and features that say little about it."""
    rng = np.random.default_rng(seed)
    level = 100 + np.cumsum(rng.normal(0, 3, rows))
    return {"a": rng.random(rows), "b": rng.random(rows)}, level


def skill(predictions, y, part):
    last = y[part.start - 1 : part.stop - 1]
    return np.mean((y[part] - predictions[part]) ** 2) / np.mean((y[part] - last) ** 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_models_begin_with_the_last_label_of_a_series(kind, seed):
    x, y = series(seed=seed)
    predictions = kind().predict_learn_many(x, y)
    assert skill(predictions, y, slice(25, 100)) < 1.6


def share_after(y, model, labels):
    layer = ErrorCorrectionLayer()
    layer.predict_learn(model[:labels], y[:labels])
    return last_label_share(layer.state)


def test_the_share_grows_on_a_series_is_0_without_order_and_ends():
    _, y = series()
    still = np.full(400, 100.0)
    assert share_after(y, still, 9) == 0.0  # the first label is of no prediction
    assert share_after(y, still, 10) > 0.0
    assert share_after(y, still, 60) > 0.9
    assert share_after(y, still, 101) == 1.0
    assert share_after(y, still, 151) == pytest.approx(0.5)
    assert share_after(y, still, 201) == 0.0
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=200)
        shares = [share_after(noise, np.zeros(200), labels) for labels in range(1, 201)]
        assert max(shares) == 0.0


def test_labels_that_come_in_blocks_are_less_evidence():
    _, y = series()
    layer, still = ErrorCorrectionLayer(), np.full(40, 100.0)
    for start in (0, 40):
        _, notes = layer.predict(still)
        layer.learn(still, y[start : start + 40], notes)
    assert last_label_share(layer.state) == 0.0  # of 40 labels as late as these, about 8 count
    assert share_after(y, np.full(400, 100.0), 80) > 0.9


@pytest.mark.parametrize("kind", KINDS[:2])
def test_exports_predict_as_the_model_does_at_a_cold_start(kind):
    x, y = series()
    model = kind()
    model.predict_learn_many({name: column[:60] for name, column in x.items()}, y[:60])
    layer = model._kernel.layer_table
    assert last_label_share(layer) > 0.5
    rows = {name: column[60:90] for name, column in x.items()}
    if isinstance(model, sapwood.HoeffdingTreeRegressor):
        found = predict_flat(flatten(model), encode(model, rows))
        np.testing.assert_allclose(found, model.predict_many(rows), rtol=1e-12)
        shown = model.explain({name: column[0] for name, column in rows.items()})
        assert shown.last_layer[-1].name == "last label"
        assert shown.last_layer[-1].prediction == y[59]
    onnx = pytest.importorskip("onnxruntime")
    session = onnx.InferenceSession(sapwood.export.to_onnx(model).SerializeToString())
    name = session.get_inputs()[0].name
    found = session.run(None, {name: encode(model, rows)})[0]
    np.testing.assert_allclose(found, model.predict_many(rows), rtol=1e-9)
