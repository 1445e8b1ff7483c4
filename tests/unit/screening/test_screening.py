"""Screened features: which the model inside gets, from when on, and that nothing else changes."""

import math

import numpy as np
import pytest

import sapwood
from cases import predicted_one_by_one
from sapwood import ForestRegressor, HoeffdingTreeRegressor, ScreenedRegressor
from sapwood.screening.evidence import AT_LEAST, FIRST, SIGNIFICANT, SLOW


def stream(rows, width=40, seed=1):
    """Rows of which x3 shifts the mean, x5 matters on both sides of 0, and x7 if it is missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    gaps = rng.random(rows) < 0.3
    y = 2.0 * X[:, 3] + np.abs(X[:, 5]) + 2.0 * gaps + rng.normal(0, 0.2, rows)
    X[gaps, 7] = np.nan
    return {f"x{place}": column.copy() for place, column in enumerate(X.T)}, y


def small(features=4, model=HoeffdingTreeRegressor):
    return ScreenedRegressor(model(), features=features)


def rows_of(X):
    return [dict(zip(X, row, strict=True)) for row in zip(*map(list, X.values()), strict=True)]


def naive_evidence(columns, y, before):
    """The evidence of each feature, in plain Python."""
    tracks = {"y": [0.0, 0.0, 0.0, 0.999], "error": [0.0, 0.0, 0.0, 0.99]}
    scores = []
    for row, (label, prediction) in enumerate(zip(y, before, strict=True)):
        own = [0.0, 0.0]
        for place, (name, value) in enumerate((("y", label), ("error", label - prediction))):
            if name == "error" and row == 0:
                continue
            weight, mean, variance, rate = tracks[name]
            if weight > 1 and variance > 0:
                own[place] = max(-3.0, min(3.0, (value - mean) / math.sqrt(variance)))
            weight = rate * weight + 1
            share, difference = 1 / weight, value - mean
            variance = (1 - share) * (variance + share * difference * difference)
            tracks[name] = [weight, mean + share * difference, variance, rate]
        scores.append(own)
    found = []
    for column in columns:
        first = sorted(value for value in column[:FIRST] if not math.isnan(value))
        limits = [first[eighth * len(first) // 8] for eighth in range(1, 8)]
        bins = [8 if math.isnan(v) else sum(v > limit for limit in limits) for v in column]
        best = 0.0
        for place in (0, 1):
            own = [score[place] for score in scores]
            mean = sum(own) / len(own)
            total = 0.0
            for slot in range(9):
                inside = [s for s, b in zip(own, bins, strict=True) if b == slot]
                if inside:
                    total += len(inside) * (sum(inside) / len(inside) - mean) ** 2
            best = max(best, total)
        found.append(best)
    return found


def test_evidence_is_that_of_the_reference_implementation():
    X, y = stream(124)
    model = small()
    before = model.predict_learn_many(X, y)
    evidence = model._held.evidence
    assert evidence.due == FIRST + FIRST // 4 == 125
    names = [*X]
    expected = naive_evidence(
        [X[names[place]].tolist() for place in evidence.places], y.tolist(), before.tolist()
    )
    assert evidence._found().tolist() == pytest.approx(expected, rel=1e-9)
    assert len(expected) == 40


def test_features_with_evidence_are_chosen_and_the_others_are_not_learned():
    X, y = stream(3_000)
    model = small(features=20)
    model.learn_many({name: column[:FIRST] for name, column in X.items()}, y[:FIRST])
    assert model.names[0] == "x3"
    model.learn_many({name: column[FIRST:] for name, column in X.items()}, y[FIRST:])
    assert {*model.names[:4]} >= {"x3", "x5", "x7"}
    assert len(model.names) == AT_LEAST == min(AT_LEAST, 3_000 // SLOW)
    assert {*model.model.features} == {*model.names, "(constant)"}
    assert model.features == [*X]


def test_it_is_ahead_of_the_model_alone_where_few_features_matter():
    X, y = stream(3_000, width=200)
    errors = [
        float(np.mean(np.abs(model.predict_learn_many(X, y) - y)[1_000:]))
        for model in (small(64, ForestRegressor), ForestRegressor())
    ]
    assert errors[0] < 0.75 * errors[1]


def test_rows_of_few_numbers_are_those_of_the_model_alone():
    X, y = stream(1_000, width=10)
    X |= {f"word {place}": [f"w{row % 7}" for row in range(1_000)] for place in range(3)}
    model, alone = small(features=10), HoeffdingTreeRegressor()
    assert model.predict_learn_many(X, y).tolist() == alone.predict_learn_many(X, y).tolist()
    assert model.model.to_bytes() == alone.to_bytes()
    assert model.names == [*X]


def test_strings_and_features_that_come_later_are_always_used():
    X, y = stream(300)
    X["word"] = ["ab"[row % 2] for row in range(300)]
    model = small(features=1)
    model.learn_many({name: column[:200] for name, column in X.items()}, y[:200])
    assert model.names == ["x3", "word"]
    later = {name: column[200:] for name, column in X.items()} | {"new": np.arange(100.0)}
    model.learn_many(later, y[200:])
    assert model.names == ["x3", "word", "new"]


@pytest.mark.parametrize("size", [7, 400])
def test_batches_of_dicts_that_bring_features_are_rows_one_by_one(size):
    X, y = stream(400)
    rows = rows_of(X)
    for row, x in enumerate(rows):  # row 30 has more numbers than may be chosen; x3 comes at 140
        for place in range(40):
            if (place >= 3 and row < 30) or (place == 3 and row < 140):
                del x[f"x{place}"]
    batch, single = small(), small()
    found = []
    for start in range(0, 400, size):
        part = slice(start, start + size)
        found += batch.predict_learn_many(rows[part], y[part]).tolist()
    expected = predicted_one_by_one(single, rows, y)
    assert found == expected
    assert batch.names == single.names
    assert "x3" in batch.names


def test_a_label_finds_its_prediction_after_another_choice():
    X, y = stream(200)
    rows, model = rows_of(X), small()
    for place, x in enumerate(rows):
        model.predict_one(x)
        if place >= 60:
            model.learn_one(rows[place - 60], y[place - 60])
    assert model.model._kernel.pending.count == 60
    for x, label in zip(rows[-60:], y[-60:].tolist(), strict=True):
        model.learn_one(x, label)
    assert model.model._kernel.pending.count == 0


def test_the_evidence_is_dropped_where_no_more_can_be_chosen():
    X, y = stream(1_000, width=300)
    model = small(features=3)
    model.learn_many({name: column[:120] for name, column in X.items()}, y[:120])
    held = model.nbytes - model.model.nbytes
    model.learn_many({name: column[120:] for name, column in X.items()}, y[120:])
    assert len(model._held.evidence.places) == 0
    assert model.nbytes - model.model.nbytes < held - 300 * 27 * 8
    assert len(model._held.evidence.chosen) == 3


def test_chance_exceeds_the_limit_of_evidence_as_seldom_as_stated():
    rng = np.random.default_rng(1)
    X = {f"x{place}": column for place, column in enumerate(rng.normal(size=(2_000, 124)))}
    model = small(features=4)
    model.learn_many(X, rng.normal(size=124))
    found = model._held.evidence._found()
    assert np.mean(found > SIGNIFICANT) <= 0.001
    assert 6.0 < np.mean(found) < 11.0  # the larger one of two sums of about χ² with 8 - 1 degrees


def test_bad_parameters_and_rows_are_rejected():
    for features in (0, 1.5, "all"):
        with pytest.raises((ValueError, TypeError), match="features"):
            ScreenedRegressor(HoeffdingTreeRegressor(), features=features)
    X, y = stream(150)
    model = small()
    model.learn_many(X, y)
    data = model.to_bytes()
    with pytest.raises(ValueError, match="'warm'"):  # of a feature that the model does not get
        model.learn_one({**rows_of(X)[0], "x9": "warm"}, 1.0)
    with pytest.raises(ValueError, match="y = inf at position 140"):
        model.learn_many(X, [*y[:140], math.inf, *y[141:]])
    assert model.to_bytes() == data
    assert repr(model) == f"<ScreenedRegressor({model.model!r}): {len(model.names)} of 40>"


@pytest.mark.parametrize("rows", [60, 150])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda header, arrays: header.update(rows=header["rows"] + 1)),
        ("due", lambda header, arrays: header.update(due=1)),
        ("chosen", lambda header, arrays: header.update(chosen=[99])),
        ("hidden", lambda header, arrays: header.update(hidden=["y"])),
        ("features", lambda header, arrays: header.update(features=0)),
        ("tracks", lambda header, arrays: arrays.update(tracks=-arrays["tracks"])),
        ("first", lambda header, arrays: arrays.update(first=np.full((3, 40), np.inf))),
        ("places", lambda header, arrays: arrays.update(places=np.array([41]))),
        ("sums", lambda header, arrays: arrays.update(sums=np.full((40, 27), -1.0))),
        ("thresholds", lambda header, arrays: arrays.update(thresholds=np.zeros((40, 6)))),
    ],
)
def test_damage_is_found(rows, name, change):
    X, y = stream(rows)
    model = small()
    model.learn_many(X, y)
    state = model.to_state()
    header, arrays = dict(state.header), dict(state.arrays)
    change(header, arrays)
    with pytest.raises((ValueError, TypeError)):
        ScreenedRegressor.from_state(sapwood.model.State(header, arrays), 1)
    again = ScreenedRegressor.from_state(model.to_state(), 1)
    assert again.to_bytes() == model.to_bytes()
    assert name
