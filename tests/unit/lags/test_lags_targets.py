"""Lags of several targets: in front of a model, in evaluations, on the command line."""

import pickle

import numpy as np
import pandas as pd
import pytest

import sapwood
from cli_cases import invoke, read_csv
from sapwood import HoeffdingTreeRegressor, IntervalRegressor
from sapwood.evaluate import prequential
from sapwood.evaluate.prequential import Prequential
from sapwood.lags import LaggedModel, Lags
from sapwood.streams.memory import ArrayStream

NAMES = ("warm", "wet")


def rows(count=200):
    rng = np.random.default_rng(4)
    x = {"a": rng.random(count), "shop": rng.choice(["n", "s"], count)}
    Y = np.cumsum(rng.normal(size=(count, 2)), axis=0)
    Y[rng.random((count, 2)) < 0.2] = np.nan
    Y[np.isnan(Y).all(axis=1), 0] = 0.0
    return x, Y


def made(**own):
    return Lags(**{"lags": [1, 3], "means": [4], "by": "shop", "target": list(NAMES), **own})


def by_hand(x, Y):
    """What is known of each row, by name."""
    found, past = [], {"n": [], "s": []}
    for shop, y in zip(x["shop"], Y.tolist(), strict=True):
        before = past[shop]
        own = {}
        for place, name in enumerate(NAMES):
            values = [each[place] for each in before]
            for lag in (1, 3):
                own[f"{name}.lag{lag}"] = values[-lag] if len(values) >= lag else np.nan
            known = [each for each in values[-4:] if not np.isnan(each)]
            own[f"{name}.mean4"] = sum(known) / len(known) if known else np.nan
        found.append(own)
        before.append(y)
    return found


def row_of(x, place):
    return {"a": float(x["a"][place]), "shop": str(x["shop"][place])}


def named(Y, place):
    return dict(zip(NAMES, Y[place].tolist(), strict=True))


def test_each_target_has_its_lags_and_means():
    x, Y = rows()
    right = by_hand(x, Y)
    lags = made()
    assert sorted(lags.features) == sorted(right[0])
    columns = lags.transform_learn_many(x, Y)
    for name in right[0]:
        np.testing.assert_allclose(columns[name], [each[name] for each in right], rtol=1e-12)
    singly, frame = made(), made()
    for place in range(len(Y)):
        own = singly.transform_one(row_of(x, place))
        told = {name: columns[name][place] for name in right[0]}
        assert {name: own.get(name, np.nan) for name in told} == pytest.approx(told, nan_ok=True)
        y = {name: None if np.isnan(v) else v for name, v in named(Y, place).items()}
        singly.learn_one(row_of(x, place), y)
    frame.learn_many(pd.DataFrame(x), pd.DataFrame(Y[:, ::-1], columns=NAMES[::-1]))
    assert singly.to_state()[0] == lags.to_state()[0] == frame.to_state()[0]
    for name, array in lags.to_state()[1].items():
        assert np.array_equal(array, singly.to_state()[1][name], equal_nan=True)
        assert np.array_equal(array, frame.to_state()[1][name], equal_nan=True)
    assert pickle.loads(pickle.dumps(lags)).target == lags.target == NAMES
    assert lags.parameters["lags"] == (1, 3)
    assert lags.columns == ["shop"]


def test_labels_that_come_late_fill_in_what_they_have():
    lags = Lags([1, 2], target=["p", "q"], lags_of={"a": [1]})
    _, first = lags.arrive({"a": 5.0})
    lags.arrive({"a": 6.0})
    lags.label(first, {"p": 7.0, "q": None})
    row, _ = lags.arrive({})
    assert row == {"p.lag1": None, "p.lag2": 7.0, "q.lag1": None, "q.lag2": None, "a.lag1": 6.0}
    lags.label(first, [8.0, 9.0])
    assert lags.transform_one({}) == {}


@pytest.mark.parametrize(
    ("target", "y", "words"),
    [
        (["p", "q"], 1.0, "one is expected for each of 'p', 'q'"),
        (["p", "q"], {"p": 1.0, "z": 2.0}, "'z'"),
        (["p", "q"], {"p": np.inf}, "inf"),
        ("p", {"p": 1.0}, "must be a number"),
    ],
)
def test_other_targets_are_refused(target, y, words):
    lags = Lags([1], target=target)
    before = lags.to_state()[0]
    with pytest.raises(ValueError, match=words):
        lags.learn_one({}, y)
    assert lags.to_state()[0] == before


@pytest.mark.parametrize("target", [["p"], ["p", "p"], [], [1.5, 2], None])
def test_names_are_names(target):
    with pytest.raises(ValueError, match="target = "):
        Lags([1], target=target)


# -- in front of a model ---------------------------------------------------------------------------


def lagged(bounds=False):
    tree = HoeffdingTreeRegressor(grace_period=50)
    return LaggedModel(IntervalRegressor(tree) if bounds else tree, made())


@pytest.mark.parametrize("bounds", [False, True])
def test_a_model_learns_rows_with_their_lags(bounds):
    x, Y = rows()
    whole, singly = lagged(bounds), lagged(bounds)
    said = whole.predict_learn_many(x, dict(zip(NAMES, Y.T, strict=True)))
    assert list(said) == whole.targets == list(NAMES)
    right = by_hand(x, Y)
    columns = {**x, **{name: np.array([each[name] for each in right]) for name in made().features}}
    plain = HoeffdingTreeRegressor(grace_period=50)
    expected = plain.predict_learn_many(columns, dict(zip(NAMES, Y.T, strict=True)))
    for name in NAMES:
        np.testing.assert_allclose(said[name], expected[name], rtol=1e-9)
    for place in range(len(Y)):
        if place:
            assert singly.predict_one(row_of(x, place)) == {n: said[n][place] for n in NAMES}
        singly.learn_one(row_of(x, place), Y[place].tolist())
    assert singly.predict_one({"a": 0.5, "shop": "n"}) == whole.predict_one({"a": 0.5, "shop": "n"})
    again = LaggedModel.from_bytes(whole.to_bytes())
    assert again.to_bytes() == whole.to_bytes()
    assert again.predict_many(pd.DataFrame(x)).columns.tolist() == list(NAMES)
    with pytest.raises(ValueError, match=r"in lags, as target=\['warm', 'wet'\]"):
        LaggedModel(plain, Lags([1]))
    assert LaggedModel(plain, [1, 3]).lags.features == [
        "warm.lag1",
        "warm.lag3",
        "wet.lag1",
        "wet.lag3",
    ]


@pytest.mark.parametrize("late", [None, 5])
def test_evaluations_take_lags(late):
    x, Y = rows()
    y = dict(zip(NAMES, Y.T, strict=True))
    run = Prequential(lagged(), ArrayStream(x, y), delay=late)
    said = [part.predictions for step in run.steps(32) for part in step.predicted]
    found = run.finish()
    assert found.rows_learned == len(Y)
    if late is None:
        right = lagged().predict_learn_many(x, y)
        assert (
            np.concatenate(said)[1:].tobytes() == np.column_stack([*right.values()])[1:].tobytes()
        )
        return
    tree, lags, waiting, right = HoeffdingTreeRegressor(grace_period=50), made(), [], []
    for place in range(len(Y)):
        row, ticket = lags.arrive(row_of(x, place))
        told = tree.predict_one(row, id=place)
        right.append([*told.values()] if isinstance(told, dict) else [0.0, 0.0])
        waiting.append((row, ticket, place))
        if len(waiting) > late:
            row, ticket, old = waiting.pop(0)
            lags.label(ticket, named(Y, old))
            tree.learn_one(row, named(Y, old), id=old)
    assert np.concatenate(said).tolist() == right
    with pytest.raises(ValueError, match="name the same in this order"):
        prequential(lagged(), x, dict(zip(NAMES[::-1], Y.T[::-1], strict=True)))


def test_the_command_line_takes_lags(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, Y = rows(300)
    frame = pd.DataFrame({**x, **dict(zip(NAMES, Y.T, strict=True))})
    frame.to_csv("rows.csv", index=False)
    typed = ("-t", "warm", "-t", "wet", "--lags", "1,3", "--means", "4", "--by", "shop")
    found = invoke("evaluate", "rows.csv", *typed, "--json", "--save", "model.sap")
    assert found.code == 0, found.stderr
    model = sapwood.load("model.sap")
    assert model.lags.target == NAMES
    assert {"warm.lag3", "wet.mean4"} <= set(model.model.features)
    right = prequential(
        LaggedModel(HoeffdingTreeRegressor(max_bytes=12_000_000), made()),
        x,
        dict(zip(NAMES, Y.T, strict=True)),
    )
    assert found.json()["targets"]["wet"]["total"]["rmse"] == right.targets["wet"].total.rmse
    frame.iloc[:5].to_csv("next.csv", index=False)
    alone = invoke("predict", "model.sap", "next.csv", "-o", "alone.csv")
    known = invoke("predict", "model.sap", "next.csv", "-t", "warm", "-t", "wet", "-o", "known.csv")
    assert (alone.code, known.code) == (0, 0), alone.stderr + known.stderr
    first, second = read_csv("alone.csv"), read_csv("known.csv")
    assert list(first[0]) == ["prediction_warm", "prediction_wet"]
    assert first[0] == second[0]
    assert first[4] != second[4]
    for wrong in (["-t", "wet"], ["-t", "wet", "-t", "warm"]):
        refused = invoke("predict", "model.sap", "next.csv", *wrong)
        assert (refused.code, refused.stderr.count("\n")) == (2, 1)
        assert "the lags of the model are of warm, wet" in refused.stderr


@pytest.mark.parametrize("several", [False, True])
def test_a_batch_is_learned_as_its_rows_are(several):
    x, Y = rows()
    whole, singly = (
        LaggedModel(HoeffdingTreeRegressor(), made() if several else made(target="y"))
        for _ in range(2)
    )
    one = np.nan_to_num(Y[:, 0])
    whole.learn_many(x, Y if several else one)
    for place in range(len(Y)):
        singly.learn_one(row_of(x, place), named(Y, place) if several else one[place])
    assert whole.to_bytes() == singly.to_bytes()


def test_one_target_alone_would_not_know_the_lags_of_others():
    x, Y = rows()
    lagged = LaggedModel(HoeffdingTreeRegressor(), made())
    bounded = IntervalRegressor(LaggedModel(HoeffdingTreeRegressor(), made()))
    for model in (lagged, bounded):
        model.learn_many(x, Y)
        with pytest.raises(ValueError, match=r"'wet'.*would not know"):
            model.of_target("wet")
    row = lagged.lags.transform_one(row_of(x, 0))
    alone = lagged.model.of_target("wet")
    assert alone.predict_one(row) == lagged.predict_one(row_of(x, 0))["wet"]
