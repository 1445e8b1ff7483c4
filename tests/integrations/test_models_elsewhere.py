"""Any model of Sapwood in scikit-learn and river, such as a model around another one."""

import pickle

import numpy as np
import pytest

import sapwood
from sapwood import (
    HoeffdingTreeRegressor,
    LossRegressor,
    MultiViewRegressor,
    RecurringRegressor,
    ScreenedRegressor,
    SparseRegressor,
    TransformedRegressor,
)

MODELS = {
    "screened": lambda: ScreenedRegressor(HoeffdingTreeRegressor(), features=2),
    "views": lambda: MultiViewRegressor(HoeffdingTreeRegressor(), without=["c"]),
    "recurring": lambda: RecurringRegressor(HoeffdingTreeRegressor()),
    "sparse": lambda: SparseRegressor(HoeffdingTreeRegressor()),
    "transformed": lambda: TransformedRegressor(HoeffdingTreeRegressor(), "sqrt"),
    "loss": lambda: LossRegressor(HoeffdingTreeRegressor(), "winsorized"),
}
EVERY = pytest.mark.parametrize("name", MODELS)


def stream(rows=800):
    rng = np.random.default_rng(1)
    X = {name: rng.random(rows) for name in "abc"}
    return X, 3.0 * X["a"] + X["b"] + 1.0


@EVERY
def test_scikit_learn_trains_a_copy(name):
    pandas, base = pytest.importorskip("pandas"), pytest.importorskip("sklearn.base")
    from sapwood.sklearn import ModelRegressor

    X, y = stream()
    frame, model = pandas.DataFrame(X), MODELS[name]()
    before = model.to_bytes()
    found = ModelRegressor(model, passes=1, shuffle=False).fit(frame, y)
    assert model.to_bytes() == before
    expected = MODELS[name]()
    expected.learn_many(frame, y)
    own = found.predict(frame)
    np.testing.assert_array_equal(own, np.asarray(expected.predict_many(frame)))
    assert found.score(frame, y) > 0.9
    same = base.clone(found)
    assert not hasattr(same, "model_")
    np.testing.assert_array_equal(same.fit(frame, y).predict(frame), own)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict(frame), own)


def test_scikit_learn_searches_models():
    pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV

    from sapwood.sklearn import ModelRegressor

    X, y = stream()
    matrix = np.column_stack([*X.values()])
    models = [
        ScreenedRegressor(HoeffdingTreeRegressor(max_depth=0, leaf="mean")),
        ScreenedRegressor(HoeffdingTreeRegressor()),
    ]
    search = GridSearchCV(ModelRegressor(models[0]), {"model": models}, cv=3).fit(matrix, y)
    assert search.best_params_["model"].model.parameters.get("leaf", "adaptive") == "adaptive"
    assert search.best_score_ > 0.9


@EVERY
def test_river_trains_a_copy(name):
    pytest.importorskip("river")
    from sapwood.river import ModelRegressor

    X, y = stream(300)
    rows = [dict(zip(X, row, strict=True)) for row in zip(*X.values(), strict=True)]
    prototype, expected = MODELS[name](), MODELS[name]()
    model = ModelRegressor(prototype)
    for x, label in zip(rows, y.tolist(), strict=True):
        assert model.predict_one(x) == expected.predict_one(x)
        model.learn_one(x, label)
        expected.learn_one(x, label)
    assert model.model.to_bytes() == expected.to_bytes()
    same = model.clone()
    assert same.model.rows_learned == prototype.rows_learned == 0
    assert type(same.prototype) is type(prototype)


def train(module, model, X, y):
    module.ModelRegressor(model).fit(X, y)


@pytest.mark.parametrize("library", ["sklearn", "river"])
def test_what_is_no_new_model_is_rejected(library):
    module = pytest.importorskip(f"sapwood.{library}")
    X, y = stream(50)
    learned = HoeffdingTreeRegressor()
    learned.learn_many(X, y)
    matrix = np.column_stack([*X.values()])
    for given, error, message in (
        (learned, ValueError, "has learned rows itself"),
        ("forest", TypeError, "model = 'forest': a model of Sapwood is expected"),
        (sapwood.HoeffdingTreeClassifier(), TypeError, "no classifier"),
    ):
        with pytest.raises(error, match=message):
            train(module, given, matrix, y)
