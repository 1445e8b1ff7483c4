"""What stages offer: every public name of every model under every nesting, setters included."""

import numpy as np
import pytest

import sapwood
from hybrid_cases import MeanEstimator
from sapwood import (
    AdaptiveTreeRegressor,
    CorrectedRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
    MonitoredRegressor,
)
from sapwood.drift import Monitor
from sapwood.intervals import IntervalRegressor
from sapwood.lags import LaggedModel, Lags
from sapwood.schema import Schema
from sapwood.stages import Stage
from sapwood.stages.intervals import OfferedIntervals

WITHOUT_LAYER = {"track": None, "threads": 1}
MODELS = {
    "tree": lambda: HoeffdingTreeRegressor(grace_period=50, track=None),
    "adaptive": lambda: AdaptiveTreeRegressor(**WITHOUT_LAYER),
    "forest": lambda: ForestRegressor(members=2, **WITHOUT_LAYER),
    "hybrid": lambda: HybridRegressor(
        ForestRegressor(members=2, **WITHOUT_LAYER), MeanEstimator(), min_rows=100, background=False
    ),
}
STAGES = {
    "lags": lambda model: LaggedModel(model, Lags([1, 3])),
    "interval": IntervalRegressor,
    "lags(interval)": lambda model: LaggedModel(IntervalRegressor(model), Lags([1, 3])),
    "interval(lags)": lambda model: IntervalRegressor(LaggedModel(model, Lags([1, 3]))),
    "corrected": CorrectedRegressor,
    "interval(corrected)": lambda model: IntervalRegressor(CorrectedRegressor(model)),
    "monitored(interval)": lambda model: MonitoredRegressor(IntervalRegressor(model)),
    "lags(monitored)": lambda model: LaggedModel(MonitoredRegressor(model), Lags([1, 3])),
}

# The definition: how a stage offers each public name of the model inside. Rows get their lags, if
# the stage adds lags, and are as they are for other stages. Predictions are as they are, unless they
# are corrected.
ROW = {
    "predict_one": (),
    "explain": (),
    "predict_region_one": (),
    "predict_interval_one": (0.8,),
    "predict_intervals_one": (),
    "predict_quantile_one": (0.3,),
    "tell_one": (),
}
ROWS = {"predict_many", "predict_regions", "predict_intervals_many", "predict_interval_many"}
LEARNING = {
    *("predict_learn_many", "predict_learn_regions", "predict_learn_intervals", "learn_telling"),
}
CALLED = {"summary", "to_text", "to_rules", "to_frame", "draw"}
PASSED_ON = {
    *("feature_importances", "overall_importances", "tree", "member", "replacements", "listen"),
    *("unit_changes", "prune", "region_parents", "no_splits", "targets", "attach", "corrector"),
    *("drift_events", "monitor"),
    *(
        "batch_name",
        "is_refitting",
        "refit_now",
        "refits",
        "rows",
        "staleness",
        "weight_history",
        "weights",
    ),
}
OF_INTERVALS = {"levels", "widths", "region_tree"}  # which stages without intervals pass on
REJECTED = {"merge"}
NOT_OFFERED = {
    *("fit", "score", "get_params", "lags", "forecast", "forecast_path"),
    *("anomaly_score_one", "anomaly_score_many", "ignored"),
}
OWN = {
    *("learn_one", "learn_many", "features", "feature_kinds", "n_leaves", "nbytes"),
    *("several_targets", "all_or_nothing", "copy", "save", "to_bytes", "to_state", "from_bytes"),
    *("from_state", "kind", "format", "can_be_saved", "model", "rows_learned", "predict", "learn"),
    *("schema", "column_formats", "of_target", "parameters", *OF_INTERVALS),
}
SETTABLE = {"schema", "column_formats"}

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*does not hold the hybrid's batch model:UserWarning"
)


def series(rows=300, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, rows).astype(float)
    y = np.cumsum(rng.normal(size=rows)) + 2 * x
    return {"x": x}, y


@pytest.fixture(scope="module")
def learned():
    """Each model under each nesting, after some rows."""
    X, y = series()
    made = {}
    for stage, around in STAGES.items():
        for kind, model in MODELS.items():
            made[stage, kind] = around(model())
            made[stage, kind].predict_learn_many(X, y)
    return {names: model.to_bytes() for names, model in made.items()}


@pytest.fixture(params=STAGES)
def stage(request):
    return request.param


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


def restored(learned, stage, kind):
    model = sapwood.model.from_bytes(learned[stage, kind])
    if kind == "hybrid":
        model.attach(MeanEstimator())
    return model


def same(found, expected):
    if isinstance(expected, tuple | list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            same(found[name], expected[name]) for name in expected
        )
    if isinstance(expected, np.ndarray) and expected.dtype.names:
        return all(same(found[name], expected[name]) for name in expected.dtype.names)
    if isinstance(expected, np.ndarray | float):
        return np.array_equal(found, expected, equal_nan=True)
    if isinstance(expected, str | int | None):
        return found == expected
    return repr(found) == repr(expected)


def own_of(outer):
    """The names that a stage has whatever is inside."""
    if isinstance(outer, MonitoredRegressor):
        return {"drift_events", "monitor", "ignored"}
    if not isinstance(outer, IntervalRegressor):
        return set()
    own = {name for name in public(outer) if "interval" in name or "quantile" in name}
    return own | OF_INTERVALS


def corrected(outer, name, expected, y):
    """What a stage returns of a result of the model inside: its predictions corrected."""
    if not isinstance(outer, CorrectedRegressor) or name == "explain":
        return expected
    layer = outer._held.own[0].copy()
    values = expected[0] if isinstance(expected, tuple) else expected
    members = np.atleast_1d(np.array(values, float))
    if name in LEARNING:
        issued = layer.learn(members, np.array(y), at_once=name != "learn_telling")
    else:
        issued = layer.predict(members)[0]
    issued = issued if isinstance(values, np.ndarray) else issued[0]
    return (issued, *expected[1:]) if isinstance(expected, tuple) else issued


def public(model):
    return {name for name in dir(type(model)) if not name.startswith("_")}


def is_there(model, name):
    return name in public(model) and (name in OWN - OF_INTERVALS or hasattr(model, name))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_each_name_of_a_model_is_offered_as_its_definition_says(learned, stage, kind):
    outer = restored(learned, stage, kind)
    inner = outer.model
    with_lags = isinstance(outer, LaggedModel)
    x, (X, y) = {"x": 2.0}, series(2)
    y = y.tolist()
    for name in sorted(public(inner)):
        if name in ROW or name in ROWS or name in LEARNING:  # copies of large models take a while
            twin, other = inner.copy(), outer.copy()
        if name in own_of(outer):
            assert hasattr(outer, name), name
        elif not is_there(inner, name):
            assert name not in public(outer) or not is_there(outer, name), name
        elif name in ROW:
            row = outer.lags.plan_one(x)[0] if with_lags else x
            expected = corrected(outer, name, getattr(twin, name)(row, *ROW[name]), y)
            assert same(getattr(other, name)(x, *ROW[name]), expected), name
        elif name in ROWS:
            rows = outer.lags.transform_many(X) if with_lags else X
            expected = corrected(outer, name, getattr(twin, name)(rows), y)
            assert same(getattr(other, name)(X), expected), name
        elif name in LEARNING:
            rows = outer.lags.plan(X, y).features if with_lags else X
            expected = corrected(outer, name, getattr(twin, name)(rows, y), y)
            assert same(getattr(other, name)(X, y), expected), name
            assert other.rows_learned == outer.rows_learned + 2
        elif name in CALLED:
            expected, found = getattr(inner, name), getattr(outer, name)
            assert same(found() if callable(found) else found, _called(expected)), name
        elif name in PASSED_ON or (name in OF_INTERVALS and isinstance(outer, OfferedIntervals)):
            expected, found = getattr(inner, name), getattr(outer, name)
            assert found == expected if callable(expected) else same(found, expected), name
        elif name in REJECTED:
            with pytest.raises(ValueError, match="merge the models inside"):
                getattr(outer, name)(inner)
        elif name in NOT_OFFERED:
            assert not hasattr(outer, name)
        else:
            assert name in OWN, f"{name} is neither offered nor rejected"


def _called(found):
    return found() if callable(found) else found


def test_a_name_that_the_model_has_not_is_not_there(learned, stage, kind):
    outer = restored(learned, stage, kind)
    own = OWN | REJECTED | {"lags", "predict_one", "predict_many", "predict_learn_many"}
    own |= {"forecast", "forecast_path"}  # of lags alone
    own |= {"targets"} if not isinstance(outer, LaggedModel) else set()
    own |= own_of(outer)
    for name in public(outer) - own:
        assert hasattr(outer, name) == hasattr(outer.model, name), name
    for name in ROW.keys() | ROWS | LEARNING:
        if name in public(outer) - own and not hasattr(outer.model, name):
            with pytest.raises(AttributeError, match="if the model inside does"):
                getattr(outer, name)


def test_what_a_stage_has_of_its_own_follows_the_model_inside(learned, stage, kind):
    outer = restored(learned, stage, kind)
    inner = outer.model
    innermost = inner
    while isinstance(innermost, Stage):
        innermost = innermost.model
    assert outer.features == ["x"]
    assert outer.feature_kinds == {"x": "number"}
    assert outer.n_leaves == inner.n_leaves
    assert outer.nbytes > inner.nbytes
    assert outer.rows_learned == 300
    assert outer.all_or_nothing == inner.all_or_nothing
    assert outer.schema is innermost.schema or outer.schema == innermost.schema
    assert outer.copy().to_bytes() == outer.to_bytes()
    if isinstance(outer, IntervalRegressor):
        assert outer.parameters == {"model": inner, "levels": outer.levels, "by": None}
        has_leaves = kind == "tree"
        assert (outer.region_tree is inner) == has_leaves
        assert not outer.several_targets or outer.targets == []
    else:
        with pytest.raises(ValueError, match="no model of one target"):
            outer.of_target("u")
    if isinstance(outer, CorrectedRegressor):
        assert outer.parameters == {"model": inner}
    if isinstance(outer, MonitoredRegressor):
        monitor = outer.parameters["monitor"]
        assert monitor.parameters == {"once_in": 1_000_000.0, "target": "y"}
        assert (outer.monitor.rows, outer.ignored) == (300, ())


def test_only_what_reaches_the_model_can_be_set(learned, stage, kind):
    outer = restored(learned, stage, kind)
    grows = kind in ("tree", "adaptive", "forest")
    may = SETTABLE | ({"no_splits"} if grows else set())
    may |= {"model"} if isinstance(outer, LaggedModel) else set()
    before = outer.to_bytes()
    methods = {name for name in public(outer) if callable(getattr(type(outer), name))}
    constants = {"kind", "format", "all_or_nothing"}
    for name in (public(outer) | {"foo", "max_depth"}) - may - methods - constants:
        with pytest.raises(AttributeError, match=name):
            setattr(outer, name, ["x"])
    assert outer.to_bytes() == before
    outer.schema = Schema()
    if grows:
        outer.no_splits = ["x"]
        inner = outer
        while isinstance(inner, Stage):
            inner = inner.model
        assert outer.no_splits == inner.no_splits == ("x",)


def test_a_pruned_tree_is_that_of_its_intervals():
    X, y = series(4000)
    y = np.where(X["x"] > 1, 100.0, 0.0) + y / 10
    model = LaggedModel(IntervalRegressor(HoeffdingTreeRegressor(grace_period=50)), Lags([1]))
    model.learn_many(X, y)
    leaves = model.n_leaves
    assert leaves > 1
    model.prune(0)
    assert model.n_leaves == 1
    assert len(model.widths) == 1
    assert model.predict_interval_one({"x": 1.0}).prediction == model.predict_one({"x": 1.0})


# -- orders ----------------------------------------------------------------------------------------


def lagged(model):
    return LaggedModel(model, Lags([1]))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: IntervalRegressor(IntervalRegressor(tree())), "name all levels in one"),
        (lambda: IntervalRegressor(lagged(IntervalRegressor(tree()))), "name all levels in one"),
        (lambda: lagged(lagged(tree())), "name all lags in one Lags"),
        (lambda: lagged(IntervalRegressor(lagged(tree()))), "name all lags in one Lags"),
        (lambda: IntervalRegressor(sapwood.HoeffdingTreeClassifier()), "predict_proba_one"),
        (lambda: lagged(sapwood.ForestClassifier(members=2)), "LaggedClassifier"),
        (lambda: CorrectedRegressor(sapwood.HoeffdingTreeClassifier()), "need no layer"),
        (lambda: MonitoredRegressor(sapwood.HoeffdingTreeClassifier()), "evaluate_classes"),
        (lambda: CorrectedRegressor(CorrectedRegressor(bare())), "same errors"),
        (lambda: CorrectedRegressor(lagged(CorrectedRegressor(bare()))), "same errors"),
        (lambda: CorrectedRegressor(tree()), "make it with track=None"),
        (lambda: CorrectedRegressor(lagged(ForestRegressor(members=2))), "make it with track=None"),
        (lambda: CorrectedRegressor(IntervalRegressor(bare())), "around the corrected model"),
        (lambda: MonitoredRegressor(lagged(MonitoredRegressor(tree()))), "one monitor watches"),
        (lambda: HybridRegressor(CorrectedRegressor(bare())), "put it around the hybrid"),
        (lambda: sapwood.TransformedRegressor(MonitoredRegressor(tree())), "tree or forest"),
        (lambda: MonitoredRegressor(tree(), seen()), "has seen 1 rows"),
        (lambda: MonitoredRegressor(tree(), 7), "a sapwood.drift.Monitor is expected"),
        (lambda: HybridRegressor(lagged(tree())), "put it around the hybrid"),
        (lambda: HybridRegressor(IntervalRegressor(tree())), "put it around the hybrid"),
    ],
)
def test_orders_that_make_no_sense_are_rejected_with_the_reason(make, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        make()


@pytest.mark.parametrize(
    "stage", [CorrectedRegressor, IntervalRegressor, MonitoredRegressor, lagged]
)
def test_a_class_in_place_of_a_model_is_rejected_with_the_remedy(stage):
    with pytest.raises(TypeError, match="is the class ForestRegressor: give an object of it"):
        stage(ForestRegressor)


def test_another_model_inside_lags_is_checked_too():
    model = lagged(tree())
    with pytest.raises(ValueError, match="name all lags in one Lags"):
        model.model = lagged(tree())
    model.model = IntervalRegressor(model.model)
    model.learn_one({"x": 1.0}, 2.0)


def tree():
    return HoeffdingTreeRegressor()


def bare():
    return HoeffdingTreeRegressor(track=None)


def seen():
    monitor = Monitor()
    monitor.update({"x": 1.0}, 2.0)
    return monitor


NO_ROWS = {"list": [], "array": np.empty((0, 1)), "columns": {"x": []}}


@pytest.mark.parametrize("X", NO_ROWS.values(), ids=NO_ROWS)
def test_a_batch_of_no_rows_has_no_predictions_and_teaches_nothing(learned, stage, kind, X):
    models = [STAGES[stage](MODELS[kind]()), MODELS[kind](), restored(learned, stage, kind)]
    for model in models:
        before = model.to_bytes()
        for name in ROWS:
            if hasattr(model, name):
                found = getattr(model, name)(X)
                parts = found if isinstance(found, tuple) else (found,)
                assert all(len(part) == 0 for part in parts), name
        assert len(model.predict_learn_many(X, [])) == 0
        model.learn_many(X, [])
        assert model.to_bytes() == before
