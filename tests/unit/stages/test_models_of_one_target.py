"""What all models around a tree or forest of one target have in common, with rows and files."""

import numpy as np
import pytest

import sapwood
from cases import predicted_one_by_one
from count_cases import counts
from hybrid_cases import small
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
    IntervalRegressor,
    LossRegressor,
    MultiViewRegressor,
    RecurringRegressor,
    ScreenedRegressor,
    TransformedRegressor,
)
from sapwood.evaluate import prequential
from sapwood.hybrid import HistGradientBoosting
from sapwood.lags import LaggedModel, Lags


def hybrid(model):
    return small(online=model, batch=HistGradientBoosting(max_iter=5))


AROUND = {
    "poisson": lambda model: LossRegressor(model, "poisson"),
    "huber": lambda model: LossRegressor(model, "huber"),
    "sqrt": lambda model: TransformedRegressor(model, "sqrt"),
    "log1p": lambda model: TransformedRegressor(model, "log1p"),
    "auto": lambda model: TransformedRegressor(model, "auto"),
    "views": lambda model: MultiViewRegressor(model, without=["b"], crosses=[("a", "b")]),
    "recurring": RecurringRegressor,
    "screened": lambda model: ScreenedRegressor(model, features=1),
    "hybrid": hybrid,
}
every = pytest.mark.parametrize("around", AROUND)
alone = pytest.mark.parametrize("around", [name for name in AROUND if name != "hybrid"])
other_labels = pytest.mark.parametrize(
    "around", [name for name in AROUND if name not in ("hybrid", "recurring")]
)


def rows_of(X):
    return [dict(zip(X, row, strict=True)) for row in np.column_stack([*X.values()]).tolist()]


def part_of(X, start, stop=None):
    return {name: column[start:stop] for name, column in X.items()}


@every
@pytest.mark.parametrize("kind", [HoeffdingTreeRegressor, AdaptiveTreeRegressor, ForestRegressor])
def test_a_batch_is_its_rows_one_by_one(around, kind):
    X, y = counts(500)
    w = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y))
    batch, single, learned = (AROUND[around](kind()) for _ in range(3))
    found = batch.predict_learn_many(X, y, w)
    learned.learn_many(X, y, w)
    expected = []
    for x, label, weight in zip(rows_of(X), y.tolist(), w.tolist(), strict=True):
        expected.append(single.predict_one(x))
        single.learn_one(x, label, weight)
    assert found.tolist() == expected
    assert batch.predict_many(X).tolist() == [single.predict_one(x) for x in rows_of(X)]
    assert learned.model.summary.rows == 500


@every
def test_a_model_continues_after_saving_and_copying(around, tmp_path):
    X, y = counts(900)
    first, rest = part_of(X, 0, 500), part_of(X, 500)
    model = AROUND[around](HoeffdingTreeRegressor())
    model.learn_many(first, y[:500])
    model.save(tmp_path / "model.sapwood")
    others = [sapwood.load(tmp_path / "model.sapwood"), model.copy()]
    expected = model.predict_learn_many(rest, y[500:]).tolist()
    for other in others:
        assert other.predict_learn_many(rest, y[500:]).tolist() == expected
        assert other.to_bytes() == model.to_bytes()
        assert other.nbytes == model.nbytes


def pending_in(model):
    """How many predictions wait in each store of a model."""
    if isinstance(model, HybridRegressor):
        return [model._core.pending.count]
    inner = getattr(model, "_models", [model.model])
    return [each._kernel.pending.count for each in inner]


@every
def test_labels_find_their_predictions_by_id(around):
    X, y = counts(400)
    rows = rows_of(X)
    model, late = (AROUND[around](HoeffdingTreeRegressor()) for _ in range(2))
    for number, x in enumerate(rows):
        model.predict_one(x, id=number)
        if number >= 24:
            model.learn_one(rows[number - 24], y[number - 24], id=number - 24)
    assert {*pending_in(model)} == {24}
    late.predict_many(X, ids=list(range(400)))
    late.predict_learn_many(X, y, delayed=True, ids=list(range(400)))
    assert {*pending_in(late)} == {0}


@every
def test_intervals_and_lags_around_it(around):
    X, y = counts(3_000)
    model = IntervalRegressor(AROUND[around](HoeffdingTreeRegressor()), [0.9])
    found = prequential(model, X, y)
    assert abs(found.intervals.levels[0.9].total.coverage - 0.9) < 0.02
    lagged, single = (
        LaggedModel(AROUND[around](HoeffdingTreeRegressor()), Lags([1])) for _ in range(2)
    )
    short = part_of(X, 0, 400)
    lagged.learn_many(short, y[:400])
    for x, label in zip(rows_of(short), y[:400].tolist(), strict=True):
        single.learn_one(x, label)
    x = {"a": 0.5, "b": 0.7}
    assert lagged.predict_one(x) == single.predict_one(x) > 0.0


@every
def test_an_interruption_before_the_model_learns_changes_nothing(around, monkeypatch):
    X, y = counts(300)
    model = AROUND[around](HoeffdingTreeRegressor())
    model.learn_many(X, y)
    expected = model.copy()
    learn, interruptions = HoeffdingTreeRegressor._learn_row, [KeyboardInterrupt]

    def interrupted(self, *arguments):
        if interruptions:
            raise interruptions.pop()
        learn(self, *arguments)

    monkeypatch.setattr(HoeffdingTreeRegressor, "_learn_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_one({"a": 0.5, "b": 0.5}, 3.0)
    assert model.to_bytes() == expected.to_bytes()
    for each in (model, expected):
        each.learn_one({"a": 0.6, "b": 0.5}, 4.0)
    assert model.to_bytes() == expected.to_bytes()


@alone
def test_what_it_cannot_be_around_is_rejected(around):
    with pytest.raises(ValueError, match="put lags and prediction intervals around"):
        AROUND[around](IntervalRegressor(HoeffdingTreeRegressor()))
    with pytest.raises(ValueError, match="a tree or forest of Sapwood is expected"):
        AROUND[around](HybridRegressor(batch=HistGradientBoosting()))


@other_labels
def test_a_model_that_has_learned_y_itself_is_rejected(around):
    tree = HoeffdingTreeRegressor()
    tree.learn_one({"a": 1.0}, 2.0)
    with pytest.raises(ValueError, match="has learned y itself"):
        AROUND[around](tree)


@alone
def test_labels_that_are_rejected_change_nothing(around):
    X, y = counts(300)
    model = AROUND[around](HoeffdingTreeRegressor())
    model.learn_many(X, y)
    before = model.to_bytes()
    two = {"a": [0.1, 0.2], "b": [0.3, 0.4]}
    with pytest.raises(ValueError, match="y = nan"):
        model.learn_many(two, [1.0, float("nan")])
    with pytest.raises(ValueError, match="several targets"):
        model.learn_many(two, {"u": [1.0, 2.0], "v": [2.0, 2.0]})
    with pytest.raises(ValueError, match="'warm'"):
        model.learn_many([{"a": 0.1}, {"a": "warm"}], [1.0, 2.0])
    with pytest.raises(ValueError, match="2 rows"):
        model.learn_many(two, [1.0])
    assert model.to_bytes() == before


@alone
@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_weights_that_are_rejected_are_named_and_change_nothing(around, weight):
    model = AROUND[around](HoeffdingTreeRegressor())
    model.learn_one({"a": 0.1}, 1.0)
    before = model.to_bytes()
    with pytest.raises(ValueError, match=f"w = {weight}.*positive finite"):
        model.learn_one({"a": 0.1}, 2.0, weight)
    with pytest.raises(ValueError, match=f"w = {weight} at position 0.*positive finite"):
        model.learn_many({"a": [0.1]}, [2.0], [weight])
    assert model.to_bytes() == before


@alone
def test_the_least_weights_are_learned(around):
    model = AROUND[around](HoeffdingTreeRegressor())
    for label in (1.0, 2.0, 3.0):
        model.learn_one({"a": 0.1}, label, 5e-324)
    assert 1.0 <= model.predict_one({"a": 0.1}) <= 3.0


@alone
def test_a_batch_whose_rows_bring_features_is_its_rows_one_by_one(around):
    X, y = counts(300)
    rows = rows_of(X)
    for place, x in enumerate(rows):
        if place >= 110:
            x["c"] = f"label {place % 3}"
        if place >= 120 and place % 2:
            x["d"] = float(place % 7)
    batch, single = (AROUND[around](HoeffdingTreeRegressor(grace_period=30)) for _ in range(2))
    found = batch.predict_learn_many(rows, y).tolist()
    expected = predicted_one_by_one(single, rows, y)
    assert found == expected
    assert batch.feature_kinds == single.feature_kinds
    assert batch.features == single.features == list(batch.feature_kinds)


@alone
def test_rows_without_features_are_rows(around):
    batch, single = (AROUND[around](HoeffdingTreeRegressor()) for _ in range(2))
    expected = []
    for label in (1.0, 2.0):
        expected.append(single.predict_one({}))
        single.learn_one({}, label)
    assert batch.predict_learn_many([{}, {}], [1.0, 2.0]).tolist() == expected
    assert batch.predict_many([{}, {}, {}]).tolist() == 3 * [single.predict_one({})]
    assert batch.model.summary.rows == 2


@alone
def test_too_few_ids_are_rejected_before_anything_is_learned(around):
    X, y = counts(300)
    model = AROUND[around](HoeffdingTreeRegressor())
    with pytest.raises(ValueError, match="ids has 2 values and X has 300 rows"):
        model.learn_many(X, y, ids=[1, 2])
    assert model.model.summary.rows == 0


def test_what_the_model_inside_does_not_offer_is_named():
    inside = "if the model inside does, and a ForestRegressor does not"
    with pytest.raises(AttributeError, match=r"has no draw: .* draw a member"):
        sapwood.ForestClassifier().draw()
    with pytest.raises(AttributeError, match=f"IntervalRegressor offers draw {inside}"):
        IntervalRegressor(ForestRegressor()).draw()
