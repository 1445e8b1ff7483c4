"""Models of sparse rows: properties, files, delayed labels, and stages around them."""

import numpy as np
import pytest

import sapwood
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    HybridRegressor,
    IntervalRegressor,
    SparseRegressor,
)
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags
from sapwood.sparse.regressor import LINEAR

KINDS = pytest.mark.parametrize(
    "kind", [HoeffdingTreeRegressor, AdaptiveTreeRegressor, lambda: ForestRegressor(members=3)]
)


def bags(rows=1_300, seed=0, words=400):
    """Words whose effects add up, two of which have an effect of their own together; a city."""
    rng = np.random.default_rng(seed)
    effects, shares = rng.normal(size=words), 1.0 / np.arange(2, words + 2)
    found, y = [], np.empty(rows)
    for place in range(rows):
        own = np.unique(rng.choice(words, 8, p=shares / shares.sum()))
        x = {f"w{word}": 1 for word in own.tolist()}
        x["hour"] = float(rng.random())
        x["city"] = str(rng.choice(["Oslo", "Rome"]))
        x["gap"] = None if place % 2 else float("nan")
        y[place] = effects[own].sum() + 4.0 * ({0, 1} <= set(own.tolist())) + 0.1 * rng.normal()
        y[place] += 3.0 * np.sin(6.0 * x["hour"]) + 2.0 * (x["city"] == "Rome") + 50.0
        found.append(x)
    return found, y


def r2(found, y):
    found, y = np.asarray(found)[-600:], y[-600:]
    return 1.0 - np.sum((found - y) ** 2) / np.sum((y - y.mean()) ** 2)


@KINDS
def test_a_batch_is_its_rows_one_by_one(kind):
    rows, y = bags()
    w = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y))
    batch, single = SparseRegressor(kind()), SparseRegressor(kind())
    found = batch.predict_learn_many(rows[:30], y[:30], w[:30]).tolist()
    found += batch.predict_learn_many(rows[30:], y[30:], w[30:]).tolist()
    expected = []
    for x, label, weight in zip(rows, y.tolist(), w.tolist(), strict=True):
        expected.append(single.predict_one(x))
        single.learn_one(x, label, weight)
    assert found == expected
    assert batch.predict_many(rows[:50]).tolist() == [single.predict_one(x) for x in rows[:50]]
    assert batch.names == single.names
    assert {"hour", "city"} <= set(batch.names) <= {f"w{j}" for j in range(400)} | {"hour", "city"}
    assert batch._weights.state()[3].tobytes() == single._weights.state()[3].tobytes()


def test_columns_frames_and_matrices_are_dicts():
    pandas = pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(4)
    X = rng.random((300, 40)) * (rng.random((300, 40)) < 0.1)
    y = X @ rng.normal(size=40)
    rows = [{j: value for j, value in enumerate(row) if value} for row in X.tolist()]
    named = [{f"c{j}": value for j, value in x.items()} for x in rows]

    def predicted(X):
        return list(SparseRegressor(HoeffdingTreeRegressor()).predict_learn_many(X, y))

    expected = predicted(rows)
    assert predicted(X) == predicted(sparse.csr_matrix(X)) == expected
    assert predicted(sparse.coo_array(X)) == expected
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(40)])
    assert predicted(frame) == predicted(dict(frame)) == predicted(named)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_words_are_learned_where_a_tree_alone_fails(seed):
    rows, y = bags(3_000, seed)
    found = SparseRegressor(HoeffdingTreeRegressor()).predict_learn_many(rows, y)
    alone = HoeffdingTreeRegressor().predict_learn_many(rows, y)
    assert r2(found, y) > 0.8
    assert r2(found, y) > r2(alone, y) + 0.2


@KINDS
def test_a_model_continues_after_saving_and_copying(kind, tmp_path):
    rows, y = bags()
    model = SparseRegressor(kind(), always=["hour"], features=5, max_bytes=200_000)
    model.learn_many(rows[:523], y[:523])
    model.predict_many(rows[523:600])
    model.save(tmp_path / "model.sapwood")
    others = [sapwood.load(tmp_path / "model.sapwood"), model.copy()]
    expected = model.predict_learn_many(rows[523:], y[523:], delayed=True).tolist()
    for other in others:
        assert other.predict_learn_many(rows[523:], y[523:], delayed=True).tolist() == expected
        assert other.to_bytes() == model.to_bytes()
        assert other.nbytes == model.nbytes
        assert other.names == model.names


def test_labels_find_their_predictions():
    rows, y = bags(400)
    by_id, by_row = (SparseRegressor(HoeffdingTreeRegressor()) for _ in range(2))
    for number, x in enumerate(rows):
        by_id.predict_one(x, id=number)
        by_row.predict_one(x)
        if number >= 24:
            by_id.learn_one(rows[number - 24], y[number - 24], id=number - 24)
            by_row.learn_one(rows[number - 24], y[number - 24])
    # The linear prediction of a row is another one when its label comes: it is found nevertheless.
    for model in (by_id, by_row):
        notes = model.model._kernel.pending
        assert (notes.count, notes.misses) == (24, 0)


def test_delayed_labels_in_batches_and_one_by_one_are_the_same():
    rows, y = bags(600)
    batch, single = (SparseRegressor(HoeffdingTreeRegressor()) for _ in range(2))
    for start in range(0, 600, 50):
        part = slice(start, start + 50)
        first = batch.predict_many(rows[part]).tolist()
        assert first == [single.predict_one(x) for x in rows[part]]
        batch.learn_many(rows[part], y[part])
        for x, label in zip(rows[part], y[part].tolist(), strict=True):
            single.learn_one(x, label)
    assert batch.predict_many(rows).tolist() == single.predict_many(rows).tolist()


def test_nothing_is_changed_by_rows_that_are_rejected():
    rows, y = bags(700)
    model = SparseRegressor(HoeffdingTreeRegressor())
    model.learn_many(rows, y)
    before = model.to_bytes()
    bad = {**rows[0], "hour": "noon"}  # a number so far
    for learn in (
        lambda: model.learn_one(bad, 1.0),
        lambda: model.learn_many([*rows[:20], bad], y[:21]),
        lambda: model.learn_many([rows[0], {"w1": float("inf")}], y[:2]),
        lambda: model.learn_many(rows[:2], [1.0, float("nan")]),
        lambda: model.learn_many(rows[:2], y[:2], [1.0, 0.0]),
        lambda: model.learn_many(rows[:2], y[:3]),
        lambda: model.learn_one(rows[0], float("inf")),
        lambda: model.learn_one(rows[0], 1.0, -1.0),
        lambda: model.learn_many(rows[:1], {"u": [1.0], "v": [2.0]}),
    ):
        with pytest.raises(ValueError, match=r"."):
            learn()
        assert model.to_bytes() == before


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("many", [False, True])
def test_an_interruption_leaves_both_models_before_or_after_rows(monkeypatch, when, many):
    rows, y = bags(700)
    model = SparseRegressor(HoeffdingTreeRegressor())
    model.learn_many(rows[:490], y[:490])
    before, after = model.copy(), model.copy()
    part = slice(490, 510 if many else 491)

    def learn(model):
        if many:
            model.learn_many(rows[part], y[part])
        else:
            model.learn_one(rows[490], y[490])

    learn(after)
    name = "_learn_into" if many else "_learn_row"
    own = getattr(HoeffdingTreeRegressor, name)

    def interrupted(self, *arguments, **named):
        if when == "after":
            own(self, *arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(HoeffdingTreeRegressor, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(model)
    monkeypatch.undo()
    expected = after if when == "after" else before
    assert model.to_bytes() == expected.to_bytes()
    model.learn_many(rows[510:], y[510:])
    expected.learn_many(rows[510:], y[510:])
    assert model.to_bytes() == expected.to_bytes()


def test_absent_numbers_are_zero_or_missing():
    rows = [{"a": 1.0} if place % 2 else {} for place in range(600)]
    y = np.arange(600) % 2 * 4.0
    zero = SparseRegressor(HoeffdingTreeRegressor())
    missing = SparseRegressor(HoeffdingTreeRegressor(), absent="missing")
    for model in (zero, missing):
        model.learn_many(rows, y)
        assert model.names == ["a"]
        assert abs(model.predict_one({}) - 0.0) < 0.2
        assert abs(model.predict_one({"a": 1.0}) - 4.0) < 0.2
    assert zero._inner_row(zero._chosen.names, {}, 1.0) == {LINEAR: 1.0, "a": 0.0}
    assert missing._inner_row(missing._chosen.names, {}, 1.0) == {LINEAR: 1.0, "a": None}


def test_names_that_are_always_given_are_features_from_the_first_row_on():
    model = SparseRegressor(HoeffdingTreeRegressor(), always=["hour"], features=0)
    rows, y = bags(700)
    model.learn_one(rows[0], y[0])
    assert model.model.features == ["hour"]
    model.learn_many(rows[1:], y[1:])
    assert model.names == ["hour"]
    assert model.features == ["hour", LINEAR]


def test_names_that_no_model_can_have_are_terms_only():
    rng = np.random.default_rng(5)
    model = SparseRegressor(HoeffdingTreeRegressor())
    odd = [("a", 1), LINEAR, "x" * 100_000, None]
    for _ in range(600):
        chosen = rng.random(len(odd)) < 0.7
        x = {name: 1.0 for name, is_there in zip(odd, chosen, strict=True) if is_there}
        model.learn_one(x, float(chosen @ [1.0, 2.0, 3.0, 4.0]))
    assert model.names == []
    assert model.predict_one(dict.fromkeys(odd, 1.0)) > 8.0
    assert model.predict_one({}) < 2.0
    with pytest.raises(ValueError, match="'linear prediction' is the name of"):
        SparseRegressor(HoeffdingTreeRegressor(), always=[LINEAR])


def test_any_number_of_names_fits_into_the_memory_that_is_given():
    rng = np.random.default_rng(6)
    model = SparseRegressor(HoeffdingTreeRegressor(), max_bytes=100_000)
    for _ in range(20):
        rows = [{f"id {j}": 1.0 for j in rng.integers(0, 10**9, 50)} for _ in range(200)]
        model.learn_many(rows, rng.normal(size=200))
    assert model._weights.nbytes <= 100_000
    assert model.weight("id -1") != model.weight("id -1")  # NaN


def test_a_default_forest_learns_rows_of_any_number_of_names():
    rng = np.random.default_rng(7)
    model = SparseRegressor(ForestRegressor(threads=1))
    for start in range(0, 6_000, 500):
        columns = {f"f{j}": rng.normal(size=20) for j in range(start, start + 500)}
        model.learn_many(columns, rng.normal(size=20))
    assert model._weights.names == 6_000
    assert len(model.model.features) <= 17
    wide = rng.normal(size=(20, 5_000))
    assert np.isfinite(model.predict_learn_many(wide, wide[:, 0])).all()


def test_intervals_and_lags_around_it():
    rows, y = bags(2_000)
    model = IntervalRegressor(SparseRegressor(HoeffdingTreeRegressor()), [0.9])
    found = prequential(model, rows, y)
    assert abs(found.intervals.levels[0.9].total.coverage - 0.9) < 0.03
    lagged = LaggedModel(SparseRegressor(HoeffdingTreeRegressor()), Lags([1]))
    single = LaggedModel(SparseRegressor(HoeffdingTreeRegressor()), Lags([1]))
    lagged.learn_many(rows[:700], y[:700])
    for x, label in zip(rows[:700], y[:700].tolist(), strict=True):
        single.learn_one(x, label)
    assert lagged.predict_one(rows[0]) == single.predict_one(rows[0])


def test_empty_batches_and_empty_rows():
    model = SparseRegressor(HoeffdingTreeRegressor())
    assert model.predict_one({}) == model.predict_one({"a": 1.0}) == 0.0
    assert len(model.predict_learn_many({"a": []}, [])) == 0
    model.learn_many([{}, {}, {}], [3.0, 3.0, 3.0])
    assert model.predict_one({}) == model.predict_one({"a": 1.0}) == 3.0
    assert model.predict_many([{}, {"b": "text"}]).tolist() == [3.0, 3.0]


def test_what_cannot_be_sparse_is_rejected():
    with pytest.raises(ValueError, match="put lags and prediction intervals around"):
        SparseRegressor(IntervalRegressor(HoeffdingTreeRegressor()))
    with pytest.raises(ValueError, match="a tree or forest of Sapwood is expected"):
        SparseRegressor(HybridRegressor())
    with pytest.raises(ValueError, match="absent = 'none'"):
        SparseRegressor(HoeffdingTreeRegressor(), absent="none")
    with pytest.raises(ValueError, match="max_bytes = 10"):
        SparseRegressor(HoeffdingTreeRegressor(), max_bytes=10)
    tree = HoeffdingTreeRegressor()
    tree.learn_one({"a": 1.0}, 2.0)
    with pytest.raises(ValueError, match="has learned y itself"):
        SparseRegressor(tree)


@pytest.mark.parametrize(
    "change", ["sums", "model", "absent", "rows", "names", "wanted", "slots", "features", "shape"]
)
def test_a_damaged_file_is_rejected(change):
    rows, y = bags(600)
    model = SparseRegressor(HoeffdingTreeRegressor(), always=["hour"])
    model.learn_many(rows, y)
    header, arrays = model.to_state()
    if change == "sums":
        arrays["sums"][0] += 1.0
    elif change == "model":
        arrays["model"] = arrays["model"][:-7]
    elif change == "rows":
        model.learn_one(rows[0], 1.0)
        arrays["model"] = model.to_state().arrays["model"]
    elif change == "wanted":
        arrays["wanted"] = arrays["wanted"].astype(float)
    elif change == "shape":
        arrays["keys"] = arrays["keys"][:-1]
    else:
        header[change] = {"absent": 0, "names": [["x", True]], "slots": 10**30, "features": 0}[
            change
        ]
    with pytest.raises((ValueError, TypeError, OverflowError), match=r"."):
        SparseRegressor.from_state((header, arrays), 1)
