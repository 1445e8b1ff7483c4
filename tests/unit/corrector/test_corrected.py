"""The error-correction layer around any model."""

import numpy as np
import pytest

import sapwood
from sapwood import CorrectedRegressor, HoeffdingTreeRegressor, TransformedRegressor
from sapwood.corrector._layer import ErrorCorrectionLayer
from sapwood.evaluate import prequential
from sapwood.model import from_bytes


class Linear:
    """A linear model of one feature, of another library."""

    def __init__(self):
        self.slope = 0.0

    def predict_one(self, x):
        return self.slope * x["a"]

    def learn_one(self, x, y, w=1.0):
        self.slope += 0.05 * w * (y - self.slope * x["a"]) * x["a"]


class Diverging(Linear):
    """A model whose predictions are not finite in every third row."""

    def predict_one(self, x):
        return [1e300, float("nan"), 2.0][int(x["a"] * 1000) % 3]


def bare(**parameters):
    return HoeffdingTreeRegressor(track=None, **parameters)


def shifted(rows=3_000, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.uniform(0, 1, rows)
    return {"a": a}, 3 * a + rng.normal(0, 0.1, rows) + 8.0 * (np.arange(rows) >= rows // 2)


def rows_of(X):
    return [{"a": value} for value in X["a"].tolist()]


@pytest.mark.parametrize("make", [bare, Linear, lambda: TransformedRegressor(bare(), "sqrt")])
def test_it_is_the_layer_on_the_predictions_of_the_model(make):
    X, y = shifted()
    y = y + 10
    model, alone = CorrectedRegressor(make()), make()
    if hasattr(alone, "predict_learn_many"):
        members = alone.predict_learn_many(X, y)
    else:
        members = np.empty(len(y))
        for place, (x, label) in enumerate(zip(rows_of(X), y.tolist(), strict=True)):
            members[place] = alone.predict_one(x)
            alone.learn_one(x, label)
    expected = ErrorCorrectionLayer().predict_learn(members, y)
    found = model.predict_learn_many(X, y)
    assert found.tolist() == expected.tolist()
    after = np.arange(1_500, 2_500)
    assert np.abs(found - y)[after].mean() < 0.9 * np.abs(members - y)[after].mean()


def test_it_equals_the_layer_of_a_tree_whose_leaves_do_not_depend_on_it():
    """A tree of means splits by the target alone if it is told to."""
    X, y = shifted(1_500, seed=4)
    tree = HoeffdingTreeRegressor(leaf="mean", max_depth=0)
    corrected = CorrectedRegressor(bare(leaf="mean", max_depth=0))
    one = tree.predict_learn_many(X, y)
    assert np.allclose(one, corrected.predict_learn_many(X, y), rtol=0, atol=1e-9)


@pytest.mark.parametrize("ids", [True, False])
def test_delayed_labels_find_the_issued_prediction(ids):
    X, y = shifted(600)
    rows, late = rows_of(X), 7
    model, layer, alone = CorrectedRegressor(bare()), ErrorCorrectionLayer(), bare()
    notes, found, expected = [], [], []
    for number, x in enumerate(rows):
        found.append(model.predict_one(x, **({"id": number} if ids else {})))
        issued, note = layer.predict(np.array([alone.predict_one(x)]))
        expected.append(issued[0])
        notes.append(note)
        if number >= late:
            own = number - late
            model.learn_one(rows[own], y[own], **({"id": own} if ids else {}))
            members = np.array([alone.predict_one(rows[own], record=False)])
            layer.learn(members, y[own : own + 1], notes[own])
            alone.learn_one(rows[own], y[own])
    assert found == expected
    assert model._held.pending.count == late


def test_rows_that_were_never_predicted_do_not_change_the_weights():
    X, y = shifted(1_000)
    model = CorrectedRegressor(bare())
    model.learn_many(X, y)
    theta = ErrorCorrectionLayer().state
    assert model._held.own[0].rows == 1_000
    asked = CorrectedRegressor(bare())
    asked.predict_learn_many(X, y)
    assert asked._held.own[0].state.sum() != model._held.own[0].state.sum() != theta.sum()
    members = bare().predict_learn_many(X, y)
    layer = ErrorCorrectionLayer()
    layer.learn(members, y)
    assert layer.state.tolist() == model._held.own[0].state.tolist()


def test_targets_have_a_layer_each_and_may_be_missing():
    X, y = shifted(800)
    labels = {"u": y, "v": np.where(np.arange(800) % 3 == 0, np.nan, -y)}
    model, alone = CorrectedRegressor(bare()), bare()
    members = alone.predict_learn_many(X, labels)
    found = model.predict_learn_many(X, labels)
    for name, own in labels.items():
        layer, before = ErrorCorrectionLayer(), np.ascontiguousarray(members[name])
        assert found[name].tolist() == layer.predict_learn(before, own).tolist()
        assert layer.rows == np.count_nonzero(~np.isnan(own))
    one = model.predict_one({"a": 0.5})
    assert one["u"] == pytest.approx(9.5, abs=1.0)
    assert one["v"] == pytest.approx(-9.5, abs=1.0)
    assert from_bytes(model.to_bytes()).predict_one({"a": 0.5}) == one


def test_predictions_that_are_not_finite_are_issued_and_not_learned():
    X, y = shifted(300)
    found = CorrectedRegressor(Diverging()).predict_learn_many(X, y)
    kind = (X["a"] * 1000).astype(int) % 3
    assert (found[kind == 0] == 1e300).all()
    assert np.isnan(found[kind == 1]).all()
    assert np.isfinite(found[kind == 2]).all()


@pytest.mark.parametrize(
    ("y", "w", "error"),
    [
        ([np.nan], None, "y = nan"),
        ([1e200], None, "y = 1e\\+200"),
        ([1.0], [1e47], "w = 1e\\+47"),
        ([1.0], [-1.0], "w = -1"),
        ({"u": [1.0], "v": [2.0]}, None, "learns one target"),
    ],
)
def test_labels_that_are_rejected_change_nothing(y, w, error):
    model = CorrectedRegressor(Linear())
    with pytest.raises((ValueError, OverflowError), match=error):
        model.learn_many({"a": [0.5]}, y, w)
    assert (model.model.slope, model._held.labels) == (0.0, 0)


def test_a_model_of_another_library_is_copied_and_not_saved():
    X, y = shifted(300)
    model = CorrectedRegressor(Linear())
    model.predict_learn_many(X, y)
    twin = model.copy()
    assert twin.predict_one({"a": 0.5}) == model.predict_one({"a": 0.5})
    twin.learn_one({"a": 0.5}, 3.0)
    assert twin.model.slope != model.model.slope
    assert not model.can_be_saved
    with pytest.raises(TypeError, match="cannot be saved"):
        model.to_bytes()


def test_it_is_evaluated_with_intervals_and_delays():
    X, y = shifted(4_000)
    model = sapwood.IntervalRegressor(CorrectedRegressor(bare()), [0.9])
    found = prequential(model, X, y)
    assert abs(found.intervals.levels[0.9].total.coverage - 0.9) < 0.02
    walk = np.cumsum(np.random.default_rng(5).normal(size=2_000))
    X = {"a": X["a"][:2_000]}
    late, alone = (
        prequential(each, X, walk, delay=3) for each in (CorrectedRegressor(bare()), bare())
    )
    assert late.total.rmse < 0.9 * alone.total.rmse
