"""The tree in scikit-learn: its checks, its tools and frames, and the same tree underneath."""

import inspect
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

import sapwood
from sapwood import EBSTObserver, QuantizerObserver
from sapwood.sklearn import (
    AdaptiveTreeClassifier,
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
)
from sapwood.sklearn import __main__ as program
from tree_cases import beside_notes, friedman, unchanged

IN_ORDER = {"passes": 1, "shuffle": False}
QUICK = {"grace_period": 20, "delta": 0.5, "tau": 0.5}
MODELS = [
    HoeffdingTreeRegressor(),
    HoeffdingTreeRegressor(**QUICK, leaf="linear", observer=EBSTObserver(), max_depth=4),
    HoeffdingTreeRegressor(**QUICK, leaf="mean", track=None, observer=QuantizerObserver(0.1)),
]
OF_NO_OTHER_TEST = (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HybridRegressor,
    AdaptiveTreeClassifier,
)


@pytest.fixture
def array_api(monkeypatch):
    """Else scikit-learn skips its check of array API input."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


# -- the contract ---------------------------------------------------------------------------------


def expected_failures(model):
    # A tree of means alone does not depend on the order of so few rows.
    return {} if model is MODELS[2] else program.OF_MODELS


@pytest.mark.usefixtures("array_api")
@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures, xfail_strict=True)
def test_a_check_of_scikit_learns_passes(estimator, check):
    check(estimator)


def test_weights_are_repetitions_where_neither_order_nor_fading_matters():
    model = HoeffdingTreeRegressor(leaf="mean", track=None, max_depth=0)
    check_sample_weight_equivalence_on_dense_data("HoeffdingTreeRegressor", model)


@pytest.mark.filterwarnings("ignore:X .*feature names:UserWarning")
def test_scikit_learns_check_of_column_names():
    check_dataframe_column_names_consistency("HoeffdingTreeRegressor", HoeffdingTreeRegressor())


@pytest.mark.usefixtures("array_api")
@pytest.mark.parametrize(
    "models", [OF_NO_OTHER_TEST, pytest.param(program.MODELS, marks=pytest.mark.long)]
)
def test_the_program_lists_every_check(capsys, monkeypatch, models):
    monkeypatch.setattr(program, "MODELS", models)
    assert program.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= len(models) * 55 + 50
    others = [line for line in lines if not line.endswith(": ok")]
    expected = {f"{kind.__name__}, {name}" for kind in models for name in program.OF_MODELS}
    expected |= {f"Lags, {name}" for name in program.OF_LAGS}
    assert {line.split(": ")[0] for line in others} == expected
    assert "expected failure (an online learner" in others[0]


@pytest.mark.usefixtures("array_api")
def test_the_program_tells_a_failure(capsys, monkeypatch):
    failure = {"check_name": "check_x", "status": "failed", "exception": AssertionError("wrong")}
    monkeypatch.setattr(program, "check_estimator", lambda *args, **options: [failure])
    assert program.main() == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{name}, check_x: FAILED: AssertionError('wrong')"
        for name in (*(kind.__name__ for kind in program.MODELS), "Lags")
    ]


def test_the_parameters_are_those_of_the_tree():
    ours, theirs = HoeffdingTreeRegressor(), sapwood.HoeffdingTreeRegressor
    defaults = {p.name: p.default for p in inspect.signature(theirs).parameters.values()}
    own = {"passes": 2, "shuffle": True, "random_state": 0}
    assert ours.get_params() == {**defaults, **own}
    assert list(inspect.signature(HoeffdingTreeRegressor).parameters) == [*defaults, *own]
    assert clone(MODELS[1]).fit([[1.0]], [2.0]).tree_.parameters["max_depth"] == 4


def test_bad_parameters_are_refused_by_fit():
    with pytest.raises(ValueError, match="grace_period = -1"):
        HoeffdingTreeRegressor(grace_period=-1).fit([[1.0]], [1.0])
    with pytest.raises(ValueError, match="can be read but once"):
        HoeffdingTreeRegressor(categorical=iter([0])).fit([[1.0]], [1.0])


def test_the_tags_tell_what_it_takes():
    tags = get_tags(HoeffdingTreeRegressor())
    assert (tags.input_tags.allow_nan, tags.input_tags.categorical) == (True, True)
    assert (tags.input_tags.sparse, tags.input_tags.string) == (False, False)
    assert (tags.estimator_type, tags.target_tags.required) == ("regressor", True)


# -- the same tree underneath ---------------------------------------------------------------------


def test_it_learns_and_predicts_as_the_tree_does():
    x, y = friedman(1500)
    x[::7, 2] = math.nan
    w = np.random.default_rng(1).uniform(0.5, 2.0, 1500)
    model = HoeffdingTreeRegressor(**QUICK, **IN_ORDER)
    tree = sapwood.HoeffdingTreeRegressor(**QUICK)
    tree.learn_many(x, y, w)
    for part in np.array_split(np.arange(1500), 4):
        assert model.partial_fit(x[part], y[part], w[part]) is model
    assert model.tree_.to_bytes() == tree.to_bytes()
    assert model.fit(x, y, sample_weight=w).tree_.to_bytes() == tree.to_bytes()
    np.testing.assert_array_equal(model.predict(x), tree.predict_many(x))
    np.testing.assert_array_equal(
        model.feature_importances_, list(tree.feature_importances.values())
    )


def test_fit_starts_anew_also_when_it_fails():
    x, y = friedman(400)
    model = HoeffdingTreeRegressor(**QUICK).fit(x, y)
    again = model.fit(x[:, :5], -y).tree_.to_bytes()
    assert again == HoeffdingTreeRegressor(**QUICK).fit(x[:, :5], -y).tree_.to_bytes()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(x, np.full(400, math.nan))
    with pytest.raises(NotFittedError):
        model.predict(x)
    assert model.partial_fit(x, y).n_features_in_ == 10


def test_a_refused_batch_changes_nothing():
    frame, y = mixed(300)
    model = HoeffdingTreeRegressor(**QUICK).fit(frame, y)
    bad = frame.assign(a=math.inf)
    with unchanged(model.tree_):
        with pytest.raises(ValueError, match=r"x\['a'\] = inf at position 0 must be finite"):
            model.partial_fit(bad, y)
        with pytest.raises(ValueError, match="y = nan at position 0"):
            model.partial_fit(frame, np.full(300, math.nan))
        with pytest.raises(ValueError, match="Negative values"):
            model.partial_fit(frame, y, np.full(300, -1.0))
        with pytest.raises(ValueError, match="300 rows and y has 299 values"):
            model.partial_fit(frame, y[1:])
        with pytest.raises(ValueError, match="inconsistent numbers"):
            model.partial_fit(frame, y[1:], np.arange(300))
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            model.partial_fit(frame[:0], y[:0])
        with pytest.raises(ValueError, match="at least one non-zero"):
            model.partial_fit(frame, y, np.zeros(300))
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.predict(frame[:0])
    with pytest.raises(ValueError, match="at least one"):
        HoeffdingTreeRegressor().fit(frame[[]], y)


@pytest.mark.parametrize("as_frame", [False, True])
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.3, 0.99]))
def test_a_weight_of_zero_leaves_its_row_out(as_frame, seed, share):
    rng = np.random.default_rng(seed)
    x, y = friedman(120, seed)
    w = rng.integers(1, 4, 120) * (rng.random(120) > share)
    w[rng.integers(120)] = 2.0
    if as_frame:
        x = pd.DataFrame(x, columns=[f"x{i}" for i in range(10)])
        x["label"] = [f"row {i}" for i in range(120)]  # of rows left out no label is kept
    kept = x[w > 0]
    model = HoeffdingTreeRegressor(**QUICK).fit(x, y, sample_weight=w)
    other = HoeffdingTreeRegressor(**QUICK).fit(kept, y[w > 0], sample_weight=w[w > 0])
    assert model.tree_.to_bytes() == other.tree_.to_bytes()


def test_importances_are_shares_in_the_order_of_columns():
    x, y = friedman(4000)
    frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(10)]).assign(never=math.nan)
    model = HoeffdingTreeRegressor().fit(frame, y)
    assert model.feature_importances_.shape == (11,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[:5].sum() > 0.9
    assert model.feature_importances_[10] == 0.0
    np.testing.assert_array_equal(
        HoeffdingTreeRegressor().fit(frame[:10], y[:10]).feature_importances_, np.zeros(11)
    )
    with pytest.raises(NotFittedError):
        _ = HoeffdingTreeRegressor().feature_importances_


def test_pickles_go_on_as_the_model_would():
    x, y = friedman(600)
    model = HoeffdingTreeRegressor(**QUICK).fit(x[:300], y[:300])
    twin = pickle.loads(pickle.dumps(model))
    model.partial_fit(x[300:], y[300:])
    twin.partial_fit(x[300:], y[300:])
    assert twin.tree_.to_bytes() == model.tree_.to_bytes()
    assert not hasattr(clone(model), "tree_")


# -- frames ---------------------------------------------------------------------------------------


def mixed(count):
    """A pandas frame of numbers, categories, strings and missing values, and its y."""
    rng = np.random.default_rng(3)
    a, city, day = rng.random(count), rng.choice(["Oslo", "Rome"], count), rng.integers(0, 3, count)
    y = 10 * a * (city == "Oslo") + np.array([0.0, 9.0, -9.0])[day]
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(count) < 0.1, math.nan, a),
            "city": pd.Series(city).where(rng.random(count) > 0.05),
            "day": pd.Categorical(np.array(["mo", "tu", "we"])[day]),
            "code": pd.Series(pd.Categorical(day)),
        }
    )
    return frame, y


def test_frames_of_three_libraries_keep_their_categories():
    frame, y = mixed(2000)
    frame = frame.drop(columns="code")  # only pandas has categories that are numbers
    w = np.arange(2000) % 3  # with zeros
    expected = sapwood.HoeffdingTreeRegressor()
    expected.learn_many(frame[w > 0], y[w > 0], w[w > 0])
    table = pa.Table.from_pandas(frame)
    days = pl.Series("day", frame["day"].astype(str).tolist(), dtype=pl.Categorical)
    for each in (frame, pl.from_arrow(table), pl.from_arrow(table).with_columns(days), table):
        model = HoeffdingTreeRegressor(**IN_ORDER).fit(each, y, sample_weight=w)
        assert beside_notes(model.tree_) == beside_notes(expected)
        assert model.feature_names_in_.tolist() == ["a", "city", "day"]
        np.testing.assert_array_equal(model.predict(each), expected.predict_many(frame))
        assert model.score(each[-500:] if each is not table else each.slice(1500), y[-500:]) > 0.9


def test_categories_that_are_numbers_are_categories():
    frame, y = mixed(1000)
    model = HoeffdingTreeRegressor().fit(frame, y)
    assert [model.tree_._features.kinds[i] for i in (1, 2, 3)] == ["category"] * 3
    declared = HoeffdingTreeRegressor(categorical=[1], **IN_ORDER).fit(
        [[0.5, 3], [0.25, 7]], [1.0, 2.0]
    )
    assert declared.tree_._features.categories[1] == {3: 0, 7: 1}


def test_columns_are_known_by_names_or_by_places_as_scikit_learn_has_it():
    x, y = friedman(300)
    named = pd.DataFrame(x, columns=[f"x{i}" for i in range(10)])
    with_names = HoeffdingTreeRegressor().fit(named, y)
    without = HoeffdingTreeRegressor().fit(x, y)
    expected = without.predict(x)
    np.testing.assert_array_equal(with_names.predict(named), expected)
    np.testing.assert_array_equal(without.predict(pd.DataFrame(x, columns=range(5, 15))), expected)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        np.testing.assert_array_equal(without.predict(named), expected)
    for nameless in (x, x.tolist(), pd.DataFrame(x, columns=range(5, 15))):
        with pytest.warns(UserWarning, match="was fitted with feature names"):
            np.testing.assert_array_equal(with_names.predict(nameless), expected)
    with pytest.raises(ValueError, match="must be in the same order"):
        with_names.predict(named[named.columns[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        with_names.partial_fit(named.rename(columns={"x1": "z"}), y)
    with pytest.raises(ValueError, match="expecting 10 features"):
        without.partial_fit(x[:, :9], y)


def test_fit_makes_passes_over_shuffled_rows():
    x, y = friedman(2000)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 2000)
    model = HoeffdingTreeRegressor(passes=3, random_state=7).fit(x, y, sample_weight=w)
    tree, random = sapwood.HoeffdingTreeRegressor(), np.random.RandomState(7)
    for _ in range(3):
        order = random.permutation(2000)
        tree.learn_many(x[order], y[order], w[order])
    assert model.tree_.to_bytes() == tree.to_bytes()
    frame, y = pd.DataFrame(x, columns=[f"x{i}" for i in range(10)]), {"u": y, "v": -y}
    several = HoeffdingTreeRegressor().fit(frame, pd.DataFrame(y))
    assert list(several.model_.targets) == ["u", "v"]
    assert several.model_.summary.rows == 4000


def test_rows_that_are_sorted_by_the_target_are_no_obstacle_to_fit():
    x, y = friedman(4000)
    order, test = np.argsort(y), friedman(1000, seed=5)
    in_order = HoeffdingTreeRegressor(**IN_ORDER).fit(x[order], y[order]).score(*test)
    shuffled = HoeffdingTreeRegressor().fit(x[order], y[order]).score(*test)
    assert in_order < 0.6
    assert shuffled > 0.85


def test_bad_passes_are_rejected_and_leave_no_model():
    x, y = friedman(50)
    model = HoeffdingTreeRegressor(passes=0)
    with pytest.raises(ValueError, match="passes = 0"):
        model.fit(x, y)
    assert not hasattr(model, "model_")


# -- with the rest of scikit-learn ----------------------------------------------------------------


def test_a_pipeline_and_a_search_in_parallel():
    x, y = friedman(1200)
    model = make_pipeline(StandardScaler(), HoeffdingTreeRegressor(**IN_ORDER))
    tree = sapwood.HoeffdingTreeRegressor()
    scaled = StandardScaler().fit_transform(x)
    tree.learn_many(scaled, y)
    np.testing.assert_array_equal(model.fit(x, y).predict(x), tree.predict_many(scaled))
    search = GridSearchCV(
        model,
        {"hoeffdingtreeregressor__leaf": ["mean", "adaptive"]},
        cv=TimeSeriesSplit(3),
        n_jobs=2,
    ).fit(x, y)
    assert search.best_params_ == {"hoeffdingtreeregressor__leaf": "adaptive"}
    scores = cross_val_score(HoeffdingTreeRegressor(**IN_ORDER), x, y, cv=TimeSeriesSplit(3))
    assert search.best_score_ == pytest.approx(scores.mean(), abs=0.02)


def test_an_ensemble_takes_it():
    x, y = friedman(1200)
    model = BaggingRegressor(HoeffdingTreeRegressor(), n_estimators=3, random_state=1).fit(x, y)
    assert model.score(*friedman(500, seed=5)) > 0.75
    assert len({member.tree_.to_bytes() for member in model.estimators_}) == 3


def test_weights_are_routed():
    x, y = friedman(300)
    w = np.arange(300) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        model = HoeffdingTreeRegressor().set_fit_request(sample_weight=True)
        model.set_partial_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(x, y, sample_weight=w)
    scaled = StandardScaler().fit_transform(x)
    expected = HoeffdingTreeRegressor().fit(scaled[1::2], y[1::2])
    assert pipeline[-1].tree_.to_bytes() == expected.tree_.to_bytes()


def test_output_of_frames_is_of_no_effect():
    x, y = friedman(100)
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(HoeffdingTreeRegressor().fit(x, y).predict(x), np.ndarray)
    assert not hasattr(HoeffdingTreeRegressor, "set_output")


def test_predictions_are_an_array_for_a_frame_too():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["x", "y", "z"])
    predictions = HoeffdingTreeRegressor().fit(frame, [1.0, 2.0, 3.0]).predict(frame)
    assert type(predictions) is np.ndarray
    assert predictions.shape == (3,)
