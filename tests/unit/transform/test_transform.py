"""Models of a transformed target: their predictions, properties, files and stages around them."""

import numpy as np
import pytest

from count_cases import counts
from naive_transform import NaiveTransform
from sapwood import (
    HoeffdingTreeRegressor,
    TransformedRegressor,
)
from sapwood.evaluate import prequential
from sapwood.transform import _transform

EVERY = pytest.mark.parametrize("transform", ["sqrt", "log1p", "auto"])


@pytest.mark.parametrize(("name", "auto"), [("sqrt", False), ("log1p", False), ("sqrt", True)])
def test_the_kernel_is_the_reference(name, auto):
    rng = np.random.default_rng(3)
    y = rng.poisson(4.0, 60).astype(float) + rng.choice([0.0, 0.5], 60)
    w = rng.choice([0.5, 1.0, 3.0], 60)
    t = np.sqrt(y) if name == "sqrt" else np.log1p(y)
    members = np.column_stack([y + rng.normal(size=60), t + rng.normal(size=60) * 0.5])
    members = np.ascontiguousarray(members if auto else members[:, 1:])
    naive, state, found = NaiveTransform(name, auto), np.zeros(_transform.STATE), np.empty(60)
    expected = [naive.learn(*row) for row in zip(members.tolist(), y, w, strict=True)]
    _transform.learn(name, state, members, y, w, 0.0, found)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    _transform.predict(name, state, members, found)
    np.testing.assert_allclose(found, [naive.predict(row) for row in members.tolist()], rtol=1e-12)


@EVERY
def test_counts_are_not_negative_and_means_are_right(transform):
    X, y = counts(6_000)
    found = prequential(
        TransformedRegressor(HoeffdingTreeRegressor(), transform), X, y, keep_predictions=True
    )
    predictions = found.predictions["prediction"]
    assert predictions.min() >= 0.0
    assert abs(predictions[1_000:].mean() / y[1_000:].mean() - 1.0) < 0.03
    assert found.total.r2 > 0.6


def test_auto_is_not_behind_the_model_alone_and_predicts_counts_better():
    for seed in range(3):
        X, y = counts(6_000, seed)
        alone = prequential(HoeffdingTreeRegressor(), X, y).total.rmse
        auto = prequential(TransformedRegressor(HoeffdingTreeRegressor()), X, y).total.rmse
        assert auto < alone


@pytest.mark.parametrize(("transform", "bad"), [("sqrt", -0.5), ("auto", -2.0), ("log1p", -1.0)])
def test_a_label_without_a_transform_is_rejected_and_changes_nothing(transform, bad):
    X, y = counts(300)
    model = TransformedRegressor(HoeffdingTreeRegressor(), transform)
    model.learn_many(X, y)
    before = model.to_bytes()
    with pytest.raises(ValueError, match=rf"y = {bad:g} at position 1: \w+ needs y"):
        model.learn_many({"a": [0.1, 0.2], "b": [0.3, 0.4]}, [1.0, bad])
    assert model.to_bytes() == before


def test_an_interruption_leaves_all_models_before_or_after_a_row(monkeypatch):
    X, y = counts(300)
    model = TransformedRegressor(HoeffdingTreeRegressor(), "auto")
    model.learn_many(X, y)
    expected = model.copy()
    expected.learn_one({"a": 0.5, "b": 0.5}, 3.0)
    expected.learn_one({"a": 0.6, "b": 0.5}, 4.0)
    learn, interruptions = HoeffdingTreeRegressor._learn_row, [KeyboardInterrupt]

    def interrupted(self, *arguments):
        if self is model._models[1] and interruptions:
            raise interruptions.pop()
        learn(self, *arguments)

    monkeypatch.setattr(HoeffdingTreeRegressor, "_learn_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_one({"a": 0.5, "b": 0.5}, 3.0)
    model.learn_one({"a": 0.6, "b": 0.5}, 4.0)
    assert model.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("change", ["state", "model 0", "transform", "rows"])
def test_a_damaged_file_is_rejected(change):
    X, y = counts(200)
    model = TransformedRegressor(HoeffdingTreeRegressor(), "auto")
    model.learn_many(X, y)
    header, arrays = model.to_state()
    if change == "state":
        arrays["state"][0] = -1.0
    elif change == "transform":
        header["transform"] = "log1p"
    elif change == "rows":
        model.learn_one({"a": 0.1, "b": 0.2}, 1.0)
        arrays["model 0"] = model.to_state().arrays["model 0"]
    else:
        arrays["model 0"] = arrays["model 0"][:-7]
    with pytest.raises(ValueError, match=r"."):
        TransformedRegressor.from_state((header, arrays), 1)


def test_a_transform_that_there_is_not_is_rejected():
    with pytest.raises(ValueError, match="transform = 'cube'"):
        TransformedRegressor(HoeffdingTreeRegressor(), "cube")
