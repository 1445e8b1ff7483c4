"""Hybrids of an online model and a batch learner."""

import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline

import sapwood
from cases import predicted_one_by_one
from hybrid_cases import MeanEstimator, small, stream, timed
from naive_hybrid import NaiveHybrid
from sapwood import HybridRegressor
from sapwood.hybrid import FitFailedWarning, HistGradientBoosting, LightGBM, _stack

pytest.importorskip("lightgbm")


@pytest.mark.parametrize("timing", ["at once", "by 100", "24 late", "never"])
def test_it_predicts_as_the_reference_implementation(timing):
    X, y = stream(900, drift=500)
    naive = NaiveHybrid(window=300, min_rows=100, rounds=5)
    batch = LightGBM(rounds=5)
    hybrid = HybridRegressor(batch=batch, window=300, min_rows=100)
    expected, found = [], []
    for what, start, end in timed(len(y), timing):
        if what == "predict":
            expected += [naive.predict(row, X[row].tolist()) for row in range(start, end)]
            found += hybrid.predict_many(X[start:end]).tolist()
        else:
            for row in range(start, end):
                naive.learn(row, X[row].tolist(), y[row])
            hybrid.learn_many(X[start:end], y[start:end])
    assert found == expected
    assert timing == "never" or len(hybrid.refits) >= 5


def test_batches_are_the_same_as_single_rows():
    X, y = stream(700)
    rows = [dict(enumerate(row)) for row in X.tolist()]
    whole, single, blocks = small(), small(), small()
    expected = whole.predict_learn_many(X, y)
    found = predicted_one_by_one(single, rows, y)
    parts = [blocks.predict_learn_many(X[s : s + 97], y[s : s + 97]) for s in range(0, 700, 97)]
    assert found == expected.tolist() == np.concatenate(parts).tolist()
    assert single.to_bytes() == whole.to_bytes() == blocks.to_bytes()


def test_where_a_fit_runs_changes_nothing():
    X, y = stream(800)

    class Slow(LightGBM):
        def fit(self, X, y, w):
            time.sleep(0.05)
            return super().fit(X, y, w)

    found = [
        small(batch=batch, background=background).predict_learn_many(X, y).tolist()
        for batch, background in (
            (LightGBM(rounds=10), True),
            (LightGBM(rounds=10), False),
            (Slow(rounds=10), True),
        )
    ]
    assert found[0] == found[1] == found[2]


def test_it_is_ahead_of_both_members():
    X, y = stream(4000)
    hybrid = HybridRegressor(batch=LightGBM(rounds=50))
    error = np.mean((hybrid.predict_learn_many(X, y) - y)[1000:] ** 2)
    forest = np.mean((sapwood.ForestRegressor().predict_learn_many(X, y) - y)[1000:] ** 2)
    assert error < 0.5 * forest
    known = hybrid.staleness
    assert known["rmse"] <= known["batch_rmse"]
    assert known["rmse"] < known["online_rmse"]


def test_predictions_lie_between_those_of_members():
    X, y = stream(1500, drift=700)
    hybrid = small()
    for start in range(0, 1500, 100):
        part = slice(start, start + 100)
        found = hybrid.predict_many(X[part])
        if hybrid._core.batch is not None:
            batch = hybrid._core.batch.predict(X[part])[:, 0]
            online = hybrid.model.copy().predict_many(X[part])
            corrector = hybrid.corrector.copy().predict_many(
                {**dict(enumerate(X[part].T)), "batch.prediction": batch}
            )
            members = np.array([batch, online, corrector])
            assert (found >= members.min(axis=0) - 1e-9).all()
            assert (found <= members.max(axis=0) + 1e-9).all()
        hybrid.learn_many(X[part], y[part])


def test_rows_that_were_never_predicted_train_weights_by_backtests():
    X, y = stream(3000)
    history = small(batch=LightGBM(rounds=50))
    history.learn_many(X[:2000], y[:2000])
    assert history.weights["online"] < 0.1
    assert history.weights["batch"] > 0.3
    single = small(batch=LightGBM(rounds=50))
    for row, label in zip(X[:2000].tolist(), y[:2000].tolist(), strict=True):
        single.learn_one(dict(enumerate(row)), label)
    assert single.to_bytes() == history.to_bytes()
    delayed = small(batch=LightGBM(rounds=50))
    parts = [
        delayed.predict_learn_many(X[start : start + 67], y[start : start + 67], delayed=True)
        for start in range(0, 2000, 67)
    ]
    other = small(batch=LightGBM(rounds=50))
    found = other.predict_learn_many(X[:2000], y[:2000], delayed=True)
    assert np.concatenate(parts)[:2000].tolist() == found.tolist()


def test_a_prediction_that_was_issued_ends_the_backtest():
    X, y = stream(600)
    hybrid = small()
    hybrid.learn_many(X[:500], y[:500])
    assert hybrid._core.learned.backtest is not None
    before = hybrid.weights
    hybrid.predict_many(X[500:550])
    hybrid.learn_many(X[500:550], y[500:550])
    assert hybrid._core.learned.backtest is None
    assert hybrid._core.learned.unscored == 0
    assert hybrid.weights != before
    hybrid.learn_many(X[550:], y[550:])
    assert hybrid._core.learned.unscored == 50


def test_a_label_is_compared_with_the_prediction_that_was_issued():
    X, y = stream(1000)
    late, twice = small(), small()
    for model in (late, twice):
        model.learn_many(X[:500], y[:500])
        model.predict_many(X[500:600])
    twice.predict_one(dict(enumerate(X[500].tolist())), record=False)  # is not issued
    for model in (late, twice):
        model.learn_many(X[600:900], y[600:900])
        model.learn_many(X[500:600], y[500:600])
    assert late.weights == twice.weights
    state = late._core.learned.state[0]
    delays, weight = state[_stack.FIRST_DELAY : _stack.FIRST_DELAY + 2]
    assert delays / weight == pytest.approx(350, rel=0.01)  # 300 to 399 rows


# -- when the batch learner fails ------------------------------------------------------------------


def test_a_fit_that_fails_leaves_the_last_model():
    X, y = stream(900)
    hybrid = small(batch=MeanEstimator(fail_at=300))
    with pytest.warns(FitFailedWarning, match="RuntimeError: no fit today") as caught:
        found = hybrid.predict_learn_many(X, y)
    assert np.isfinite(found).all()
    errors = [refit.error for refit in hybrid.refits]
    assert errors[0] == ""
    assert errors[-1] == "RuntimeError: no fit today"
    assert len(caught) == sum(map(bool, errors))
    assert hybrid.weights["batch"] > 0


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_what_is_not_finite_does_not_count(value):
    X, y = stream(400)
    hybrid, forest = small(batch=MeanEstimator(value=value)), sapwood.ForestRegressor(members=3)
    with pytest.warns(FitFailedWarning, match="a prediction is not finite"):
        found = hybrid.predict_learn_many(X, y)
    assert found.tolist() == forest.predict_learn_many(X, y).tolist()


def test_a_feature_without_any_value_does_not_stop_a_fit():
    X, y = stream(300)
    late = np.where(np.arange(300) < 250, np.nan, X[:, 3])
    X = np.column_stack([X[:, :3], late])
    hybrid = small(batch=HistGradientBoosting(max_iter=5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitFailedWarning)
        hybrid.predict_learn_many(X, y)
    assert len(hybrid.refits) == 2


def test_a_fit_that_takes_too_long_is_given_up():
    X, y = stream(300)
    ends = threading.Event()

    class Endless(LightGBM):
        def fit(self, X, y, w):
            ends.wait(60)
            return super().fit(X, y, w)

    hybrid = small(batch=Endless(rounds=5), timeout=0.01)
    with pytest.warns(FitFailedWarning, match=r"longer than timeout = 0.01 seconds"):
        found = hybrid.predict_learn_many(X, y)
    ends.set()
    assert np.isfinite(found).all()


def test_a_failing_model_is_warned_of_once():
    X, y = stream(400)
    hybrid = small(batch=MeanEstimator(value=np.nan), refit=9.0)
    with pytest.warns(FitFailedWarning):
        hybrid.learn_many(X[:150], y[:150])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hybrid.predict_learn_many(X[150:], y[150:])


@pytest.mark.parametrize(
    "returned",
    [lambda n: 1.0, lambda n: np.ones(1), lambda n: np.ones((n, 2)), lambda n: np.ones(n - 1)],
)
def test_predictions_of_another_number_of_rows_do_not_count(returned):
    class Odd(MeanEstimator):
        def predict(self, X):
            return returned(len(X)) if len(X) > 1 else np.array(["a"])

    X, y = stream(150)
    hybrid, forest = small(batch=Odd()), sapwood.ForestRegressor(members=3)
    with pytest.warns(FitFailedWarning, match="cannot predict .ValueError: it predicts"):
        found = hybrid.predict_learn_many(X, y)
    assert found.tolist() == forest.predict_learn_many(X, y).tolist()


def test_a_learner_that_changes_its_rows_does_not_change_the_window():
    class Careless(MeanEstimator):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y)
            X *= 0.0
            y -= 100.0
            sample_weight *= 3.0
            return self

        def predict(self, X):
            X *= 0.0
            return super().predict(X)

    X, y = stream(300)
    w = np.where(np.arange(300) % 2, 1.0, 2.0)
    hybrid = small(batch=Careless())
    hybrid.predict_learn_many(X, y, w)
    rows = hybrid._core.learned.window.latest()
    assert len(hybrid.refits) == 2
    assert rows.X.tolist() == X.tolist()
    assert (rows.y[:, 0].tolist(), rows.w.tolist()) == (y.tolist(), w.tolist())


def test_fits_go_on_where_warnings_are_errors():
    X, y = stream(320)
    hybrid, warned = small(batch=MeanEstimator(fail_at=150), refit=100), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            try:
                hybrid.learn_one(dict(enumerate(x)), label)
            except FitFailedWarning as warning:
                warned.append(str(warning))
    assert hybrid.rows == 320
    assert [refit.row for refit in hybrid.refits] == [100, 200, 300]
    assert len(warned) == 2


def test_no_fit_is_started_while_one_that_was_given_up_is_running():
    X, y = stream(330)
    go = threading.Event()

    class Held(MeanEstimator):
        def fit(self, X, y):
            if len(y) == 100:
                go.wait(20)
            return super().fit(X, y)

    hybrid = small(batch=Held(), timeout=0.01, refit=100, lag=20)
    with pytest.warns(FitFailedWarning, match="longer than timeout"):
        hybrid.learn_many(X[:250], y[:250])
    held = hybrid._core.given_up
    with pytest.raises(RuntimeError, match="longer than timeout is still running"):
        hybrid.refit_now()
    go.set()
    held.wait(20)
    hybrid.learn_many(X[250:], y[250:])
    assert [refit.row for refit in hybrid.refits] == [100, 200, 300]
    assert [refit.error.split(",")[0] for refit in hybrid.refits] == [
        "it takes longer than timeout = 0.01 seconds",
        "not started",
        "",
    ]


# -- rows -----------------------------------------------------------------------------------------


def test_rows_that_are_rejected_change_nothing():
    X, y = stream(500)
    hybrid = small()
    hybrid.learn_many(X[:300], y[:300])
    before = hybrid.to_bytes()
    bad_X, bad_y = X[300:].copy(), y[300:].copy()
    bad_X[150, 1], bad_y[150] = np.inf, np.nan
    for X_part, y_part, w in (
        (bad_X, y[300:], None),
        (X[300:], bad_y, None),
        (X[300:], y[300:], np.zeros(200)),
        (X[300:], y[300:-1], None),
        (X[300:, :3], y[300:], None),
    ):
        with pytest.raises(ValueError, match=r"inf|nan|a positive finite|lengths|columns|shape"):
            hybrid.learn_many(X_part, y_part, w)
        assert hybrid.to_bytes() == before


def test_no_row_changes_nothing():
    X, y = stream(200)
    for hybrid in (small(), small(batch=MeanEstimator().fit(X, y), refit=None)):
        assert hybrid.predict_many(np.empty((0, 4))).tolist() == []
        hybrid.learn_many(X, y)
        weights = hybrid.weights
        assert hybrid.predict_many(np.empty((0, 4))).tolist() == []
        assert hybrid.predict_learn_many(np.empty((0, 4)), []).tolist() == []
        assert (hybrid.rows, hybrid.weights) == (200, weights)


def test_a_feature_of_the_corrector_is_no_other_feature():
    with pytest.raises(ValueError, match=r"'batch\.prediction' already: rename it"):
        small().learn_one({"batch.prediction": 1.0}, 1.0)


def test_categories_and_features_that_come_later():
    X, y = stream(900)
    names = np.array(["a", "b", "c", "d"])
    label = names[np.clip((X[:, 3] * 2 + 2).astype(int), 0, 3)]
    label[:300][label[:300] == "d"] = "a"
    rows = [{"x": row[0], "z": row[1], "k": k} for row, k in zip(X.tolist(), label, strict=True)]
    for place, row in enumerate(rows):
        if place >= 450:
            row["late"] = X[place, 2]
    y = y + 5.0 * (label == "c")
    single, whole = small(), small()
    found = predicted_one_by_one(single, rows, y)
    expected = np.concatenate(
        [
            whole.predict_learn_many(rows[:450], y[:450]),
            whole.predict_learn_many(rows[450:], y[450:]),
        ]
    )
    assert found == expected.tolist()
    assert single.features == ["x", "z", "k", "late"]
    assert single._core.batch.labels.tolist() == [np.inf, np.inf, 4.0, np.inf]


def test_several_targets():
    X, y = stream(1200)
    both = {"up": y, "down": -3.0 * y}
    columns = {f"x{place}": column for place, column in enumerate(X.T)}
    hybrid = small()
    found = hybrid.predict_learn_many(columns, both)
    assert hybrid.targets == ["up", "down"]
    assert np.mean((found["down"] - both["down"])[600:] ** 2) < 0.5 * np.var(both["down"])
    row = {name: float(column[0]) for name, column in columns.items()}
    assert hybrid.predict_one(row).keys() == {"up", "down"}
    assert hybrid.weights["up"].keys() == {"online", "corrector", "batch"}
    again = HybridRegressor.from_bytes(hybrid.to_bytes())
    assert again.predict_one(row) == hybrid.predict_one(row)


def test_targets_that_are_missing_are_left_to_the_others():
    X, y = stream(600)
    both = np.column_stack([y, 2 * y])
    both[::3, 1] = np.nan
    both[:400, 0] = np.nan
    hybrid = small()
    good = ~np.isnan(both).all(axis=1)
    found = hybrid.predict_learn_many(X[good], both[good])
    assert np.isfinite(found).all()


def test_weights_of_rows_reach_the_batch_learner():
    X, y = stream(400)
    w = np.where(np.arange(400) % 2 == 0, 1000.0, 1e-3)
    y = np.where(np.arange(400) % 2 == 0, 5.0, -5.0)
    hybrid = small(batch=LightGBM(rounds=50, min_data_in_leaf=5))
    hybrid.learn_many(X, y, w)
    assert hybrid._core.batch.predict(X).mean() > 4.5


@pytest.mark.parametrize("batch", [HistGradientBoosting(max_iter=10), LightGBM(rounds=10)])
def test_learners(batch):
    X, y = stream(600)
    hybrid = small(batch=batch)
    found = hybrid.predict_learn_many(X, y)
    assert np.mean((found - y)[300:] ** 2) < np.var(y[300:])
    assert hybrid._core.batch.is_flat


def pipeline():
    linear = pytest.importorskip("sklearn.linear_model")
    compose = pytest.importorskip("sklearn.pipeline").make_pipeline
    impute = pytest.importorskip("sklearn.impute").SimpleImputer
    return compose(impute(), linear.Ridge())


def boosted(library, name):
    return getattr(pytest.importorskip(library), name)(n_estimators=10, n_jobs=1, random_state=1)


@pytest.mark.parametrize(
    "make",
    [
        pipeline,
        lambda: boosted("xgboost", "XGBRegressor"),
        lambda: boosted("lightgbm", "LGBMRegressor"),
    ],
    ids=["pipeline", "xgboost", "lightgbm"],
)
@pytest.mark.filterwarnings("ignore:.*attach:sapwood.hybrid.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_estimators_of_other_libraries(make):
    """Numbers, missing values and categories reach them; a file continues once they are given."""
    X, y = stream(700)
    columns = {"a": X[:, 0], "b": np.where(X[:, 1] > 0.8, np.nan, X[:, 1]), "c": X[:, 2]}
    columns["k"] = np.where(X[:, 3] > 0, "high", "low")
    y = y + (X[:, 3] > 0)
    hybrid = small(batch=make())
    found = hybrid.predict_learn_many({n: c[:600] for n, c in columns.items()}, y[:600])
    assert [fit.error for fit in hybrid.refits if fit.error] == []
    assert len(hybrid.refits) > 2
    assert np.mean((found - y[:600])[300:] ** 2) < 0.8 * np.var(y[300:600])
    again = HybridRegressor.from_bytes(hybrid.to_bytes())
    if again._core.lost:
        again.attach(make())
    rest = {n: c[600:] for n, c in columns.items()}
    assert (
        again.predict_learn_many(rest, y[600:]).tolist()
        == hybrid.predict_learn_many(rest, y[600:]).tolist()
    )


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({"subsample": 0.3}, {"bagging_fraction": 0.3}),
        ({"random_state": 7, "colsample_bytree": 0.5}, {"seed": 7, "feature_fraction": 0.5}),
        ({"loss": "regression_l1"}, {"objective": "regression_l1"}),
    ],
)
def test_parameters_of_lightgbm_may_have_their_other_names(given, same):
    X, y = stream(400)
    found = [LightGBM(20, **own).fit(X, y, None).predict(X).tolist() for own in (given, same, {})]
    assert found[0] == found[1] != found[2]


def test_any_model_of_sapwood_is_the_online_one():
    X, y = stream(500)
    for online in (sapwood.HoeffdingTreeRegressor(), sapwood.AdaptiveTreeRegressor()):
        hybrid = small(online=online)
        assert np.isfinite(hybrid.predict_learn_many(X, y)).all()
        assert type(hybrid.corrector) is type(online)
        assert HybridRegressor.from_bytes(hybrid.to_bytes()).to_bytes() == hybrid.to_bytes()


def test_bad_parameters():
    for options, message in (
        ({"batch": "lightbgm"}, "lightgbm, hist_gradient_boosting or an estimator is expected"),
        ({"refit": None}, "a fitted model is expected"),
        ({"refit": True}, "refit = True"),
        ({"refit": 100}, "refit = 100: at least min_rows = 200 is expected"),
        ({"refit": 0.001}, "refit"),
        ({"window": 3}, "window"),
        ({"lag": -1}, "lag"),
        ({"correct": 3}, "correct"),
        ({"min_rows": 1}, "min_rows"),
    ):
        with pytest.raises(ValueError, match=message):
            HybridRegressor(**options)
    for options in ({"online": 3}, {"batch": 3}, {"batch": 3, "refit": None}):
        with pytest.raises(TypeError, match="is expected"):
            HybridRegressor(**options)


def test_models_of_classes_are_rejected_with_the_remedy():
    for online in (sapwood.ForestClassifier(), sapwood.HoeffdingTreeClassifier()):
        with pytest.raises(TypeError, match="predicts classes; give a regressor such as Forest"):
            HybridRegressor(online)
    for batch in (RidgeClassifier(), LogisticRegression(), make_pipeline(RidgeClassifier())):
        for refit in (0.25, None):
            with pytest.raises(
                TypeError, match="this estimator predicts classes; give a regressor"
            ):
                HybridRegressor(batch=batch, refit=refit)


def test_the_window_is_bounded_in_rows_and_bytes():
    X, y = stream(3000)
    hybrid = small(batch=MeanEstimator(), window=500, refit=200)
    hybrid.learn_many(X, y)
    assert {refit.rows for refit in hybrid.refits[4:]} == {500}
    tight = small(batch=MeanEstimator(), window_bytes=20_000, refit=200)
    tight.learn_many(X, y)
    assert tight._core.learned.window.nbytes <= 20_000
    assert tight.refits[-1].rows == 20_000 // (2 * 8 * 6)


def test_refits_follow_the_schedule():
    X, y = stream(1000)
    hybrid = small(batch=MeanEstimator(), refit=150, lag=30)
    hybrid.learn_many(X, y)
    starts = [refit.row for refit in hybrid.refits]
    assert starts == [150, 300, 450, 600, 750, 900]
    assert [refit.used_from for refit in hybrid.refits] == [start + 30 for start in starts]
    assert [refit.rows for refit in hybrid.refits] == starts


def test_threads_may_predict_while_another_learns():
    X, y = stream(1500)
    hybrid = small()
    hybrid.learn_many(X[:200], y[:200])
    rows = [dict(enumerate(row)) for row in X.tolist()]
    failures = []

    def ask() -> None:
        try:
            for x in rows[:300]:
                assert np.isfinite(hybrid.predict_one(x))
        except Exception as error:  # pragma: no cover
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for x, label in zip(rows[200:], y[200:].tolist(), strict=True):
        hybrid.learn_one(x, label)
    for thread in threads:
        thread.join()
    assert not failures
