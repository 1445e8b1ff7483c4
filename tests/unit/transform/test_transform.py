"""Models of a transformed target: their predictions, properties, files and stages around them."""

import numpy as np
import pytest

import sapwood
from naive_transform import NaiveTransform
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
    IntervalRegressor,
    TransformedRegressor,
)
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags
from sapwood.transform import _transform

EVERY = pytest.mark.parametrize("transform", ["sqrt", "log1p", "auto"])


def counts(rows=1_500, seed=0):
    rng = np.random.default_rng(seed)
    X = {"a": rng.random(rows), "b": rng.random(rows)}
    return X, rng.poisson(np.exp(2.0 * X["a"] + (X["b"] > 0.5))).astype(float)


def rows_of(X):
    return [dict(zip(X, row, strict=True)) for row in np.column_stack([*X.values()]).tolist()]


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
@pytest.mark.parametrize("kind", [HoeffdingTreeRegressor, AdaptiveTreeRegressor, ForestRegressor])
def test_a_batch_is_its_rows_one_by_one(transform, kind):
    X, y = counts(700)
    w = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y))
    batch, single = (TransformedRegressor(kind(), transform) for _ in range(2))
    found = batch.predict_learn_many(X, y, w)
    expected = []
    for x, label, weight in zip(rows_of(X), y.tolist(), w.tolist(), strict=True):
        expected.append(single.predict_one(x))
        single.learn_one(x, label, weight)
    assert found.tolist() == expected
    assert batch.predict_many(X).tolist() == [single.predict_one(x) for x in rows_of(X)]


@EVERY
def test_a_model_continues_after_saving_and_copying(transform, tmp_path):
    X, y = counts(900)
    first, rest = (
        {name: own[part] for name, own in X.items()} for part in (slice(500), slice(500, None))
    )
    model = TransformedRegressor(HoeffdingTreeRegressor(), transform)
    model.learn_many(first, y[:500])
    model.save(tmp_path / "model.sapwood")
    others = [sapwood.load(tmp_path / "model.sapwood"), model.copy()]
    expected = model.predict_learn_many(rest, y[500:]).tolist()
    for other in others:
        assert other.transform == transform
        assert other.predict_learn_many(rest, y[500:]).tolist() == expected
        assert other.to_bytes() == model.to_bytes()
        assert other.nbytes == model.nbytes


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
    with pytest.raises(ValueError, match=r"y = nan"):
        model.learn_one({"a": 0.1, "b": 0.2}, float("nan"))
    with pytest.raises(ValueError, match="several targets"):
        model.learn_many({"a": [0.1], "b": [0.2]}, {"u": [1.0], "v": [2.0]})
    assert model.to_bytes() == before


def test_labels_find_their_predictions_by_id():
    X, y = counts(400)
    rows = rows_of(X)
    model = TransformedRegressor(HoeffdingTreeRegressor(), "auto")
    for number, x in enumerate(rows):
        model.predict_one(x, id=number)
        if number >= 24:
            model.learn_one(rows[number - 24], y[number - 24], id=number - 24)
    assert [each._kernel.notes.count for each in model._models] == [24, 24]


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


@EVERY
def test_intervals_and_lags_around_it(transform):
    X, y = counts(3_000)
    model = IntervalRegressor(TransformedRegressor(HoeffdingTreeRegressor(), transform), [0.9])
    found = prequential(model, X, y)
    assert abs(found.intervals.levels[0.9].total.coverage - 0.9) < 0.02
    lagged = LaggedModel(TransformedRegressor(HoeffdingTreeRegressor(), transform), Lags([1]))
    single = LaggedModel(TransformedRegressor(HoeffdingTreeRegressor(), transform), Lags([1]))
    lagged.learn_many(X, y)
    for x, label in zip(rows_of(X), y.tolist(), strict=True):
        single.learn_one(x, label)
    x = {"a": 0.5, "b": 0.7}
    assert lagged.predict_one(x) == single.predict_one(x) > 0.0


def test_what_cannot_be_transformed_is_rejected():
    with pytest.raises(ValueError, match="transform = 'cube'"):
        TransformedRegressor(HoeffdingTreeRegressor(), "cube")
    with pytest.raises(ValueError, match="put lags and prediction intervals around"):
        TransformedRegressor(IntervalRegressor(HoeffdingTreeRegressor()))
    with pytest.raises(ValueError, match="a tree or forest of Sapwood is expected"):
        TransformedRegressor(HybridRegressor())
    tree = HoeffdingTreeRegressor()
    tree.learn_one({"a": 1.0}, 2.0)
    with pytest.raises(ValueError, match="has learned y itself"):
        TransformedRegressor(tree)


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
