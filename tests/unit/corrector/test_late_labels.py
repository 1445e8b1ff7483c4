"""Labels that come late: the same by whichever way, and whatever else is asked in between."""

import itertools

import numpy as np
import pytest
from river import evaluate, metrics, preprocessing
from sklearn.metrics import r2_score
from sklearn.model_selection import TimeSeriesSplit

import sapwood.river
import sapwood.sklearn
from cli_cases import invoke
from naive_evaluate import ListStream
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor
from sapwood.evaluate import Prequential

ROWS = 1_500
MODELS = {
    "tree": HoeffdingTreeRegressor,
    "adaptive": AdaptiveTreeRegressor,
    "forest": lambda: ForestRegressor(members=3),
}


@pytest.fixture(scope="module")
def series():
    """A series that is followed with profit: what moves it is not among its features."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(ROWS, 3)).round(6)
    drifting = np.zeros(ROWS)
    for row in range(1, ROWS):
        drifting[row] = 0.98 * drifting[row - 1] + rng.normal()
    y = (2.0 * X[:, 0] + np.where(X[:, 1] > 0, 3.0, 0.0) + drifting).round(6)
    return X, y


def dicts(X):
    return [{f"x{at}": value for at, value in enumerate(row)} for row in X.tolist()]


def by_hand(model, X, y, late):
    """Predictions of rows one by one, each label so many rows late."""
    rows, found = dicts(X), []
    for at, row in enumerate(rows):
        found.append(model.predict_one(row))
        if at >= late:
            model.learn_one(rows[at - late], float(y[at - late]))
    return found


def by_batches(model, X, y, size, what_if=None):
    """Predictions of batches, each learned when it was predicted."""
    found = []
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        found += model.predict_many(X[part]).tolist()
        if what_if is not None:
            model.predict_many(what_if[part])
        model.learn_many(X[part], y[part])
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("late", [1, 24, 168])
def test_evaluation_with_a_delay_is_the_loop_by_hand(name, late, series):
    X, y = series
    expected = by_hand(MODELS[name](), X, y, late)
    stream = ListStream([(row, float(label)) for row, label in zip(dicts(X), y, strict=True)])
    run = Prequential(MODELS[name](), stream, delay=late)
    parts = [part[2].tolist() for step in run.steps(200) for part in step.predicted]
    assert [*itertools.chain(*parts)] == expected


@pytest.mark.parametrize("late", [24, 168])
def test_river_with_a_delay_is_the_loop_by_hand(late, series):
    X, y = series
    # River tells labels that are due at a row before it asks for the row's prediction.
    expected = by_hand(HoeffdingTreeRegressor(), X, y, late - 1)
    rows = [(row, float(label)) for row, label in zip(dicts(X), y, strict=True)]
    model = sapwood.river.HoeffdingTreeRegressor()
    found = evaluate.progressive_val_score(rows, model, metrics.MSE(), delay=late)
    square = np.mean((np.array(expected) - y) ** 2)
    assert found.get() == pytest.approx(square)


@pytest.mark.parametrize("size", [24, 200, 1_000])
def test_partial_fit_is_learning_by_batches(size, series):
    X, y = series
    expected = by_batches(HoeffdingTreeRegressor(), X, y, size)
    model, found = sapwood.sklearn.HoeffdingTreeRegressor(), []
    for start in range(0, ROWS, size):
        part = slice(start, start + size)
        found += model.predict(X[part]).tolist() if start else [0.0] * size
        model.partial_fit(X[part], y[part])
    assert found == expected


def test_the_command_line_with_a_delay_is_the_loop_by_hand(series, tmp_path):
    X, y = series
    expected = by_hand(HoeffdingTreeRegressor(), X, y, 24)
    file, said = tmp_path / "series.csv", tmp_path / "said.csv"
    lines = [",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()]
    file.write_text("\n".join(["x0,x1,x2,y", *lines]) + "\n")
    invoke("evaluate", file, "--target", "y", "--delay", "24", "--predictions", said)
    found = np.genfromtxt(said, delimiter=",", names=True)
    assert found["prediction"].tolist() == expected


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1, 200])
def test_questions_that_are_never_answered_change_nothing(name, size, series):
    X, y = series
    what_if = X + np.array([0.5, 0.0, 0.0])
    plain = by_batches(MODELS[name](), X[:600], y[:600], size)
    asked = by_batches(MODELS[name](), X[:600], y[:600], size, what_if)
    assert asked == plain


def test_labels_in_another_order_are_found(series):
    X, y = series
    scores = []
    for track in ("auto", None):
        rng, tree, said = np.random.default_rng(5), HoeffdingTreeRegressor(track=track), []
        for start in range(0, ROWS, 50):
            part = np.arange(start, start + 50)
            said += tree.predict_many(X[part]).tolist()
            part = rng.permutation(part)
            tree.learn_many(X[part], y[part])
            assert track is None or tree._kernel.pending.count == 0
        scores.append(r2_score(y[500:], said[500:]))
    assert scores[0] > scores[1] - 0.01


@pytest.mark.parametrize("name", ["tree", "forest"])
def test_history_without_predictions_is_followed_by_no_more_than_the_tree(name, series):
    X, y = series
    for train, later in TimeSeriesSplit(4).split(X):
        scores = []
        for track in ("auto", None):
            model = MODELS[name]()
            model = type(model)(**({"members": 3} if name == "forest" else {}), track=track)
            model.learn_many(X[train], y[train])
            scores.append(r2_score(y[later], model.predict_many(X[later])))
        assert scores[0] > scores[1] - 0.05


@pytest.mark.parametrize("late", [None, 24])
def test_a_tree_behind_a_transformer_that_learns_follows_as_well(late, series):
    X, y = series
    rows = [(row, float(label)) for row, label in zip(dicts(X), y, strict=True)]
    plain = sapwood.river.HoeffdingTreeRegressor()
    scaled = preprocessing.StandardScaler() | sapwood.river.HoeffdingTreeRegressor()
    errors = [
        evaluate.progressive_val_score(rows, model, metrics.RMSE(), delay=late).get()
        for model in (plain, scaled)
    ]
    assert errors[1] < 1.05 * errors[0]
