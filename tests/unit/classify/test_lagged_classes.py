"""Lags around classifiers: labels and numbers of earlier rows as features."""

import numpy as np
import pytest

from sapwood import ForestClassifier, HoeffdingTreeClassifier, HoeffdingTreeRegressor
from sapwood.classify import LaggedClassifier
from sapwood.lags import LaggedModel, Lags
from sapwood.model import from_bytes

HOW = {"lags": [1, 3], "lags_of": {"x": 1}, "means_of": {"x": 2}, "by": "shop", "target": "state"}


def weather(rows, seed=1, labels=("dry", "wet", "snow")):
    """Rows of two series whose label follows from the one before it in most rows."""
    rng = np.random.default_rng(seed)
    shops, x = rng.choice(["a", "b"], rows), rng.integers(-99, 99, rows) / 64.0
    codes, last = np.zeros(rows, int), {"a": 0, "b": 1}
    for row, shop in enumerate(shops):
        stays = rng.random() < 0.8
        codes[row] = last[shop] = (last[shop] + (not stays)) % len(labels)
    X = {"shop": shops.tolist(), "x": x}
    return X, [labels[code] for code in codes]


def rows_of(X):
    return [{"shop": shop, "x": x} for shop, x in zip(X["shop"], X["x"].tolist(), strict=True)]


def naive_rows(rows, y):
    """Rows with the lags of `HOW`, by one loop over all rows before."""
    made = []
    for at, x in enumerate(rows):
        past = [before for before in range(at) if rows[before]["shop"] == x["shop"]]
        label = [None if y[before] is None else str(y[before]) for before in past]
        own = [rows[before]["x"] for before in past]
        made.append(
            {
                **x,
                "state.lag1": label[-1] if past else None,
                "state.lag3": label[-3] if len(past) > 2 else None,
                "x.lag1": own[-1] if past else None,
                "x.mean2": np.mean(own[-2:]).item() if past else None,
            }
        )
    return made


def made(**own):
    return LaggedClassifier(HoeffdingTreeClassifier(**own), Lags(**HOW))


@pytest.mark.parametrize("labels", [("dry", "wet", "snow"), (7, 8), (True, False), ("1", 1, "b")])
def test_predictions_are_those_of_rows_with_naive_lags(labels):
    X, y = weather(1500, labels=labels)
    y[10] = y[500] = None
    model, plain = made(), HoeffdingTreeClassifier()
    for x, naive, label in zip(rows_of(X), naive_rows(rows_of(X), y), y, strict=True):
        assert model.predict_proba_one(x) == plain.predict_proba_one(naive)
        model.learn_one(x, label)
        plain.learn_one(naive, label)
    assert model.rows_unlabelled == 2
    assert model.classes == list(dict.fromkeys(label for label in y if label is not None))


def test_lags_of_labels_help():
    X, y = weather(4000)
    lagged, plain = (
        each.predict_learn_many(X, y)[1000:] == np.array(y)[1000:]
        for each in (made(), HoeffdingTreeClassifier())
    )
    assert lagged.mean() > plain.mean() + 0.15


@pytest.mark.parametrize("as_columns", [True, False])
@pytest.mark.parametrize("with_missing", [True, False])
def test_batches_are_one_by_one(as_columns, with_missing):
    X, y = weather(900)
    if with_missing:
        y[3] = y[400] = y[401] = None
    one, many, rows = made(), made(), rows_of(X)
    single = []
    for x, label in zip(rows, y, strict=True):
        single.append(one.predict_one(x))
        one.learn_one(x, label)
    found = []
    for start, end in ((0, 1), (1, 300), (300, 420), (420, 900)):
        part = {name: column[start:end] for name, column in X.items()}
        given = part if as_columns else rows[start:end]
        found += many.predict_learn_many(given, y[start:end]).tolist()
    assert found == single
    last = [{"shop": "a", "x": 0.5}, {"shop": "b", "x": 0.25}]
    shares = many.predict_proba_many(last, record=False).tolist()
    assert shares == [list(one.predict_proba_one(x, record=False).values()) for x in last]
    assert many.lags.to_state()[0] == one.lags.to_state()[0]


def delayed(model, rows, y, *, late=4, until=None, start=0):
    """Predict rows by ids, and learn each `late` rows later; return the classes."""
    found = []
    for at in range(start, len(rows) if until is None else until):
        if at >= late:
            model.learn_one(rows[at - late], y[at - late], id=at - late)
        found.append(model.predict_one(rows[at], id=at))
    return found


def test_delayed_labels_have_the_lags_of_their_prediction():
    X, y = weather(300)
    rows, late = rows_of(X), 5
    model, plain = made(), HoeffdingTreeClassifier()
    asked = []
    for at, x in enumerate(rows):
        if at >= late:
            model.learn_one(rows[at - late], y[at - late], id=at - late)
            plain.learn_one(asked[at - late], y[at - late], id=at - late)
        labels = y[: max(0, at - late + 1)] + [None] * min(at, late - 1)
        asked.append(naive_rows(rows[: at + 1], [*labels[:at], None])[-1])
        assert model.predict_proba_one(x, id=at) == plain.predict_proba_one(asked[at], id=at)


def test_batches_of_ids_are_one_by_one():
    X, y = weather(400)
    rows, ids = rows_of(X), list(range(400))
    one, many = made(), made()
    found, single = [], []
    for start in range(0, 400, 50):
        span = slice(start, start + 50)
        found += many.predict_many(rows[span], ids=ids[span]).tolist()
        many.learn_many(rows[span], y[span], ids=ids[span])
        single += [one.predict_one(rows[at], id=at) for at in ids[span]]
        for at in ids[span]:
            one.learn_one(rows[at], y[at], id=at)
    assert found == single
    assert one.to_bytes() == many.to_bytes()


@pytest.mark.parametrize("method", ["predict_learn_many", "predict_proba_learn_many"])
def test_pending_rows_learned_as_a_batch(method):
    X, y = weather(300, labels=("dry", "wet"))
    rows, ids = rows_of(X), list(range(300))
    one, many = made(), made()
    for model in (one, many):
        model.predict_many(rows, ids=ids)
    single = []
    for at in ids:
        ask = one.predict_one if method == "predict_learn_many" else one.predict_proba_one
        single.append(ask(rows[at], id=at, record=False))
        one.learn_one(rows[at], y[at], id=at)
    found = getattr(many, method)(rows, y, delayed=True, ids=ids).tolist()
    if method == "predict_proba_learn_many":
        single = [[each.get(label, 0.0) for label in one.classes] for each in single]
    assert found == single
    assert one.to_bytes() == many.to_bytes()


@pytest.mark.parametrize("until", [0, 1, 3, 7, 150])
def test_a_saved_model_continues_identically(until):
    X, y = weather(300)
    rows = rows_of(X)
    model = made()
    delayed(model, rows, y, until=until)
    restored, copied = from_bytes(model.to_bytes(), "it"), model.copy()
    assert type(restored) is LaggedClassifier
    expected = delayed(model, rows, y, start=until)
    assert delayed(restored, rows, y, start=until) == expected
    assert delayed(copied, rows, y, start=until) == expected
    assert restored.to_bytes() == model.to_bytes() == copied.to_bytes()


def test_rejected_rows_change_nothing():
    X, y = weather(100)
    rows = rows_of(X)
    model = made()
    model.learn_many(rows, y)
    before = model.to_bytes()
    for label, x, words in (
        (0.5, rows[0], "label of a class"),
        ("new", {"shop": "a", "x": float("inf")}, "inf"),
    ):
        with pytest.raises(ValueError, match=words):
            model.learn_one(x, label)
        with pytest.raises(ValueError, match=words):
            model.learn_many([rows[0], x], ["newer", label])
    with pytest.raises(ValueError, match="lengths"):
        model.predict_many(rows, ids=[1])
    assert model.to_bytes() == before


def test_an_interrupted_row_is_finished(monkeypatch):
    X, y = weather(50)
    rows = rows_of(X)
    for label in ("dry", "newest", None):
        model, other = made(), made()
        for each in (model, other):
            each.learn_many(rows, y)
        learn = HoeffdingTreeClassifier._learn_row

        def interrupted(self, *given, learn=learn, **own):
            learn(self, *given, **own)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(HoeffdingTreeClassifier, "_learn_row", interrupted)
            with pytest.raises(KeyboardInterrupt):
                model.learn_one(rows[0], label)
        other.learn_one(rows[0], label)
        assert model.to_bytes() == other.to_bytes()


def test_sets_hold_the_class_of_the_highest_probability():
    X, y = weather(500)
    model = made()
    model.learn_many(X, y)
    rows, other = rows_of(X)[:5], model.copy()
    for x in rows:
        held = model.predict_set_one(x, 0.8, record=False)
        sets = model.predict_set_many([x], 0.8, record=False)[0].tolist()
        assert {label for label, there in zip(model.classes, sets, strict=True) if there} == set(
            held
        )
        assert held[0] == model.predict_one(x, record=False)
    found = model.predict_set_many(rows, 0.8, ids=[1, 2, 3, 4, 5]).tolist()
    single = [other.predict_set_one(x, 0.8, id=1 + at) for at, x in enumerate(rows)]
    assert found == [[label in held for label in other.classes] for held in single]


def test_lags_that_are_not_known_are_warned_of():
    X, y = weather(50)
    model = made()
    model.learn_many(X, y)
    with pytest.warns(UserWarning, match=r"state.lag1' is not known .*: predict fewer rows"):
        model.predict_many([{"shop": "a", "x": 0.0}] * 3)


def test_lags_that_no_class_has_are_rejected():
    tree = HoeffdingTreeClassifier()
    with pytest.raises(ValueError, match="no mean"):
        LaggedClassifier(tree, Lags(1, means=3))
    with pytest.raises(ValueError, match="one target"):
        LaggedClassifier(tree, Lags(1, target=["a", "b"]))
    with pytest.raises(ValueError, match="a classifier"):
        LaggedClassifier(HoeffdingTreeRegressor(), Lags(1))
    with pytest.raises(ValueError, match="one past"):
        LaggedClassifier(made(), Lags(1))
    with pytest.raises(ValueError, match="LaggedClassifier"):
        LaggedModel(tree, Lags(1))
    past = Lags(1)
    past.learn_one({}, 2.5)
    with pytest.raises(ValueError, match="has not learned"):
        LaggedClassifier(tree, past)


def test_methods_of_numbers_are_not_offered():
    model = made()
    for name in ("forecast", "forecast_path", "predict", "learn", "of_target"):
        assert not hasattr(model, name)


def test_numbers_of_rows_stand_for_lags():
    model = LaggedClassifier(HoeffdingTreeClassifier(), [1, 2])
    model.learn_one({}, "red")
    assert model.lags.features == ["y.lag1", "y.lag2"]
    assert model.lags.transform_one({}) == {"y.lag1": "red"}


def test_the_model_inside_can_be_exchanged():
    X, y = weather(400)
    model, other = made(), HoeffdingTreeClassifier()
    model.learn_many(X, y)
    with pytest.raises(ValueError, match="first classes"):
        model.model = other
    with pytest.raises(ValueError, match="a classifier"):
        model.model = HoeffdingTreeRegressor()
    row = {"shop": "a", "x": 0.5}
    lags = model.lags.transform_one(row)
    one = model.model
    other.learn_many([lags] * 3, y[:3])
    model.model = one.merge(other)
    assert isinstance(model.model, ForestClassifier)
    assert model.lags.transform_one(row) == lags


def test_by_time():
    lags = Lags("2h", time="at", target="state")
    model = LaggedClassifier(HoeffdingTreeClassifier(), lags)
    for at, label in (("2026-11-18 10:00", "on"), ("2026-11-18 11:00", "off")):
        model.learn_one({"at": at}, label)
    assert model.lags.transform_one({"at": "2026-11-18 13:00"})["state.lag2h"] == "off"
    assert "state.lag2h" not in model.lags.transform_one({"at": "2026-11-18 15:00"})
