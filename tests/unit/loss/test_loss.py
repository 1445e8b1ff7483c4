"""Models with another loss: derivatives, properties, files, delayed labels and stages around them."""

import math
import pickle

import numpy as np
import pytest

import sapwood
from count_cases import counts
from sapwood import (
    HoeffdingTreeRegressor,
    IntervalRegressor,
    LossRegressor,
)
from sapwood.loss import HuberLoss, PoissonLoss, WinsorizedLoss

EVERY = pytest.mark.parametrize("loss", ["poisson", "huber", "winsorized"])


class Logistic:
    """The log-loss of 0 and 1; raw predictions are log-odds."""

    def value(self, y, raw):
        return math.log1p(math.exp(-raw)) + (1 - y) * raw

    def gradient(self, y, raw):
        return self.inverse(raw) - y

    def hessian(self, y, raw):
        return max(self.inverse(raw) * (1 - self.inverse(raw)), 0.01)

    def link(self, y):
        return 1.0 if y > 0.5 else -1.0

    def inverse(self, raw):
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, raw))))


class Squared:
    """Half the squared error."""

    def value(self, y, raw):
        return 0.5 * (y - raw) ** 2

    def gradient(self, y, raw):
        return raw - y

    def hessian(self, y, raw):
        return 1.0

    def link(self, y):
        return y

    def inverse(self, raw):
        return raw


@pytest.mark.parametrize("make", [PoissonLoss, HuberLoss, WinsorizedLoss, Logistic])
def test_gradients_are_derivatives(make):
    loss = make()
    if not isinstance(loss, Logistic):
        for row in range(200):
            loss.update(float(row % 7), 2.0, row)
    factor = 2.0 if make is PoissonLoss else 1.0  # of the deviance; the derivatives are of its half
    for y in (0.0, 1.0):
        for raw in (-0.7, 0.2, 1.1):
            step = 1e-5
            numeric = (loss.value(y, raw + step) - loss.value(y, raw - step)) / (2 * step)
            assert factor * loss.gradient(y, raw) == pytest.approx(numeric, rel=1e-5, abs=1e-8)
            upper = loss.gradient(y, raw + step) - loss.gradient(y, raw - step)
            assert loss.hessian(y, raw) == pytest.approx(upper / (2 * step), rel=1e-4)


def test_a_loss_of_squared_errors_is_the_model_itself():
    X, y = counts(2_000)
    alone, model = HoeffdingTreeRegressor(), LossRegressor(HoeffdingTreeRegressor(), Squared())
    expected, found = alone.predict_learn_many(X, y), model.predict_learn_many(X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert model.n_leaves == alone.n_leaves


@EVERY
def test_the_loss_is_saved_and_pickled(loss):
    X, y = counts(500)
    model = LossRegressor(HoeffdingTreeRegressor(), loss)
    model.learn_many(X, y)
    for other in (LossRegressor.from_bytes(model.to_bytes()), pickle.loads(pickle.dumps(model))):
        assert other.loss == loss
        assert other.mean_loss == model.mean_loss > 0.0
        assert other.to_bytes() == model.to_bytes()


def test_poisson_predicts_counts_better_than_squared_errors():
    def deviance(y, p):
        logs = np.log(np.where(y > 0, y, 1.0) / np.maximum(p, 1e-3))
        return float(2 * np.mean(np.where(y > 0, y * logs, 0.0) - (y - p)))

    for seed in range(3):
        X, y = counts(5_000, seed)
        found = LossRegressor(HoeffdingTreeRegressor(), "poisson").predict_learn_many(X, y)
        alone = HoeffdingTreeRegressor().predict_learn_many(X, y)
        assert found.min() >= 0.0
        assert abs(found[1_000:].mean() / y[1_000:].mean() - 1.0) < 0.05
        assert deviance(y[500:], found[500:]) < deviance(y[500:], alone[500:])


def test_huber_is_not_led_astray_by_outliers():
    rng = np.random.default_rng(2)
    X = {"a": rng.random(4_000), "b": rng.random(4_000)}
    truth = 5.0 * X["a"] + 3.0 * (X["b"] > 0.4)
    y = truth + rng.normal(size=4_000) * 0.3
    y = np.where(rng.random(4_000) < 0.01, 100.0 * y, y)
    robust = LossRegressor(HoeffdingTreeRegressor(), "huber").predict_learn_many(X, y)
    alone = HoeffdingTreeRegressor().predict_learn_many(X, y)
    errors = [np.mean((p[1_000:] - truth[1_000:]) ** 2) for p in (robust, alone)]
    assert errors[0] < 0.2 * errors[1]


def test_isolated_outliers_are_replaced_and_a_change_of_level_is_learned():
    rng = np.random.default_rng(5)
    y = rng.normal(size=2_000)
    y[1_500:] += 500.0
    y[[700, 900, 901, 1_200]] = 1e4, 1e4, -1e4, -1e4
    loss, held = WinsorizedLoss(), []
    for row, label in enumerate(y.tolist()):
        held.append(loss.held(label))
        loss.update(label, 0.0, row)
    # Two on different sides are isolated; of the new level, only the first label is.
    assert np.flatnonzero(held != y).tolist() == [700, 900, 901, 1_200, 1_500]
    assert np.abs(np.array(held)[[700, 900, 901, 1_200, 1_500]]).max() < 3.0


def test_without_outliers_the_winsorized_loss_is_the_model_itself():
    X, y = counts(2_000)
    alone, model = HoeffdingTreeRegressor(), LossRegressor(HoeffdingTreeRegressor(), "winsorized")
    expected, found = alone.predict_learn_many(X, y), model.predict_learn_many(X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("row", [0, 10])
def test_an_outlier_among_the_first_labels_does_not_hide_the_next(row):
    rng = np.random.default_rng(6)
    loss = WinsorizedLoss()
    for place, label in enumerate(rng.normal(size=200).tolist()):
        loss.update(1e3 if place == row else label, 0.0, place)
    assert loss.held(50.0) < 6.0


@pytest.mark.parametrize("rows", [0, 5, 31, 32, 500])
def test_a_winsorized_loss_is_restored(rows):
    loss, labels = WinsorizedLoss(), np.random.default_rng(7).normal(size=600).tolist()
    for row, label in enumerate(labels[:rows]):
        loss.update(label, 0.0, row)
    same = WinsorizedLoss.from_numbers(loss.to_numbers())
    for row, label in enumerate(labels[rows:], rows):
        assert same.held(10.0 * label) == loss.held(10.0 * label)
        for each in (loss, same):
            each.update(label, 0.0, row)
    assert same.to_numbers() == loss.to_numbers()


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 40.0],  # low above high
        [0.0, 1.0, 0.5, 40.0],
        [0.0, 1.0, 0.0, 3.0],  # without the first labels
        [0.0, 1.0, 0.0, 40.0, 2.0],
        [0.0, 1.0, 0.0, 40.5],
        [0.0, 1.0, 0.0, -1.0],
        [0.0, math.inf, 0.0, 40.0],
        [math.nan, 1.0, 0.0, 40.0],
    ],
)
def test_numbers_of_a_winsorized_loss_that_cannot_be(numbers):
    with pytest.raises(ValueError, match="the numbers of its loss"):
        WinsorizedLoss.from_numbers(numbers)


def test_a_loss_of_your_own_predicts_probabilities_and_cannot_be_saved(tmp_path):
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, 4_000)
    chance = 1 / (1 + np.exp(-2 * x))
    model = LossRegressor(HoeffdingTreeRegressor(), Logistic())
    model.learn_many({"x": x}, (rng.random(4_000) < chance).astype(float))
    found = model.predict_many({"x": x[:500]})
    assert 0.0 < found.min() < 0.2
    assert 0.8 < found.max() < 1.0
    assert np.abs(found - chance[:500]).mean() < 0.05
    for save in (lambda: model.save(tmp_path / "m.sapwood"), lambda: pickle.dumps(model)):
        with pytest.raises(ValueError, match="loss of your own cannot be saved; save the model"):
            save()
    assert not model.can_be_saved
    assert LossRegressor(HoeffdingTreeRegressor()).can_be_saved
    copied = model.copy()
    copied.learn_one({"x": 0.0}, 1.0)
    assert copied.rows_learned == model.rows_learned + 1


def test_bad_labels_and_derivatives_are_rejected_and_change_nothing():
    X, y = counts(300)
    model = LossRegressor(HoeffdingTreeRegressor(), "poisson")
    model.learn_many(X, y)
    before = model.to_bytes()
    two = {"a": [0.1, 0.2], "b": [0.3, 0.4]}
    with pytest.raises(ValueError, match=r"y = -2 at position 1: the loss 'poisson' needs y of"):
        model.learn_many(two, [1.0, -2.0])
    assert model.to_bytes() == before

    class Flat(Squared):
        def hessian(self, y, raw):
            return 0.0 if y > 5 else 1.0

    flat = LossRegressor(HoeffdingTreeRegressor(), Flat())
    flat.learn_many({"x": [1.0, 2.0]}, [1.0, 2.0])
    known = flat.model.to_bytes()
    for learn in (
        lambda: flat.learn_many({"x": [1.0, 2.0]}, [1.0, 9.0]),
        lambda: flat.learn_one({"x": 1.0}, 9.0),
    ):
        with pytest.raises(ValueError, match=r"hessian = 0 at y = 9, raw = .*above 0"):
            learn()
    assert flat.model.to_bytes() == known


def test_an_interruption_leaves_the_model_before_or_after_a_row(monkeypatch):
    X, y = counts(300)
    model = LossRegressor(HoeffdingTreeRegressor(), "huber")
    model.learn_many(X, y)
    expected = model.copy()
    expected.learn_one({"a": 0.5, "b": 0.5}, 3.0)
    expected.learn_one({"a": 0.6, "b": 0.5}, 4.0)
    learn, interruptions = HoeffdingTreeRegressor._learn_row, [KeyboardInterrupt]

    def interrupted(self, *arguments):
        learn(self, *arguments)
        if self is model.model and interruptions:
            raise interruptions.pop()

    monkeypatch.setattr(HoeffdingTreeRegressor, "_learn_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_one({"a": 0.5, "b": 0.5}, 3.0)
    model.learn_one({"a": 0.6, "b": 0.5}, 4.0)
    assert model.to_bytes() == expected.to_bytes()
    before = model.to_bytes()
    interruptions.append(KeyboardInterrupt)
    monkeypatch.setattr(
        HoeffdingTreeRegressor,
        "_learn_row",
        lambda self, *arguments: (_ for _ in ()).throw(KeyboardInterrupt),
    )
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X, y)
    assert model.to_bytes() == before


def test_frames_arrays_categories_and_missing_values_are_read():
    random = np.random.default_rng(4)
    city = random.choice(["Oslo", "Rome"], 600)
    temp = np.where(random.random(600) < 0.1, np.nan, random.random(600))
    y = np.where(city == "Rome", 9.0, 1.0)
    by_columns, by_rows = (LossRegressor(HoeffdingTreeRegressor(), "poisson") for _ in range(2))
    by_columns.learn_many({"city": city, "temp": temp}, y)
    by_rows.learn_many(
        [{"city": c, "temp": t} for c, t in zip(city.tolist(), temp.tolist(), strict=True)], y
    )
    assert by_columns.to_bytes() == by_rows.to_bytes()
    assert by_columns.feature_kinds == {"city": "category", "temp": "number"}
    pandas = pytest.importorskip("pandas")
    by_frame = LossRegressor(HoeffdingTreeRegressor(), "poisson")
    frame = pandas.DataFrame({"city": city, "temp": temp})
    by_frame.learn_many(frame, y)
    found = by_frame.predict_many(frame)
    assert found.name == "prediction"
    assert found.tolist() == by_columns.predict_many({"city": city, "temp": temp}).tolist()
    by_array = LossRegressor(HoeffdingTreeRegressor(), "poisson")
    by_array.learn_many(np.column_stack([temp, y]), y)
    assert by_array.features == [0, 1]


def test_before_the_first_row_the_prediction_is_zero():
    for loss in ("poisson", "huber", "winsorized", Logistic()):
        model = LossRegressor(HoeffdingTreeRegressor(), loss)
        assert model.predict_one({"x": 1.0}) == 0.0
        assert model.predict_many({"x": [1.0]}).tolist() == [0.0]
        assert math.isnan(model.mean_loss)
        model.learn_one({"x": 1.0}, 0.0)
        assert model.rows_learned == 1


def test_what_cannot_have_a_loss_is_rejected():
    with pytest.raises(
        ValueError, match="loss = 'cube': one of 'poisson', 'huber', 'winsorized' is expected"
    ):
        LossRegressor(HoeffdingTreeRegressor(), "cube")
    with pytest.raises(TypeError, match="value, gradient, hessian, link and inverse"):
        LossRegressor(HoeffdingTreeRegressor(), object())


@EVERY
def test_huge_labels_overflow_nothing(loss):
    model = LossRegressor(HoeffdingTreeRegressor(), loss)
    for y in (0.0, 1e99, 1.0, 1e99, 0.0):
        model.learn_one({"x": y}, y)
        assert math.isfinite(model.predict_one({"x": y}))


@pytest.mark.parametrize("change", ["sums", "numbers", "limit", "loss", "model", "arrays"])
def test_a_damaged_file_is_rejected(change):
    X, y = counts(200)
    model = LossRegressor(HoeffdingTreeRegressor(), "huber")
    model.learn_many(X, y)
    header, arrays = model.to_state()
    if change == "sums":
        arrays["sums"][0] = -1.0
    elif change == "numbers":
        arrays["numbers"] = np.array([1.0])
    elif change == "limit":
        arrays["numbers"][1] = -1.0
    elif change == "loss":
        header["loss"] = "cube"
    elif change == "model":
        arrays["model"] = np.frombuffer(IntervalRegressor(model.model).to_bytes(), np.uint8)
    else:
        del arrays["sums"]
    with pytest.raises((ValueError, TypeError)):
        LossRegressor.from_state(sapwood.model.State(header, arrays), 1)
