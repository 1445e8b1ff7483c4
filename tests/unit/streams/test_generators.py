"""Streams that are computed: against slow twins, river, and the law that chunks mean nothing."""

import math
import pickle
import random
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood.streams import formulas
from sapwood.streams.generators import (
    GENERATORS,
    demand,
    friedman,
    friedman_drift,
    generator,
    hyperplane,
    mv,
    planes2d,
)
from sapwood.streams.stream import StreamError

BLOCK = 4096
FRIEDMAN = [f"x{i}" for i in range(10)]


def read(stream, start=None, most_rows=8192):
    """All rows from a position on, as one set of columns and one array of targets."""
    chunks = list(stream.chunks(start, most_rows))
    columns = {
        name: [value for chunk in chunks for value in chunk.columns[name]]
        for name in stream.features
    }
    return columns, np.concatenate([chunk.y for chunk in chunks])


def matrix(columns):
    return np.array(list(columns.values()))


def same(one, other):
    """Whether two columns are the same, NaN being the same as NaN."""
    is_text = isinstance(one[0], str)
    return list(one) == list(other) if is_text else np.array_equal(one, other, equal_nan=True)


def friedman_twin(x):
    return 10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]


def swapped_twin(x):
    return 10 * math.sin(math.pi * x[3] * x[4]) + 20 * (x[1] - 0.5) ** 2 + 10 * x[0] + 5 * x[2]


def third_twin(x):
    return 10 * math.sin(math.pi * x[1] * x[4]) + 20 * (x[3] - 0.5) ** 2 + 10 * x[2] + 5 * x[0]


def recurring_twin(x, row, changes):
    return swapped_twin(x) if changes[0] <= row < changes[1] else friedman_twin(x)


def gradual_twin(x, row, coin, changes, transition):
    concepts = [friedman_twin, swapped_twin, third_twin]
    last = sum(row >= change for change in changes)
    if last == 0:
        return friedman_twin(x)
    chance_of_last = min((row - changes[last - 1] + 1) / (transition + 1), 1.0)
    return concepts[last if coin < chance_of_last else last - 1](x)


def local_twin(x, row, changes):
    if row < changes[0]:
        return friedman_twin(x)
    first, second = x[1] < 0.3 and x[2] < 0.3, x[1] > 0.7 and x[2] > 0.7
    if row < changes[2]:
        first, second = first and x[3] > 0.7, second and x[3] < 0.3
    if row < changes[1]:
        first, second = first and x[4] < 0.3, second and x[4] > 0.7
    if first:
        return 10 * x[0] * x[1] + 20 * (x[2] - 0.5) + 10 * x[3] + 5 * x[4]
    if second:
        return 10 * math.cos(x[0] * x[1]) + 20 * (x[2] - 0.5) + math.exp(x[3]) + 5 * x[4] ** 2
    return friedman_twin(x)


def mv_twin(x):
    if x["x2"] > 2:
        return 35 - 0.5 * x["x4"]
    if -2 <= x["x4"] <= 2:
        return 10 - 2 * x["x1"]
    if x["x7"] == "yes":
        return 3 - x["x1"] / x["x4"]
    if x["x8"] == "normal":
        return x["x6"] + x["x1"]
    return x["x1"] / 2


def planes2d_twin(x):
    if x["x1"] == 1:
        return 3 + 3 * x["x2"] + 2 * x["x3"] + x["x4"]
    return -3 + 3 * x["x5"] + 2 * x["x6"] + x["x7"]


def hyperplane_twin(values, weights, directions, drifting, speed):
    """The target of a row, after which weights and directions go on."""
    y = sum(w * (x - 0.5) for w, x in zip(weights, values, strict=True))
    for i in range(drifting):
        weights[i] += directions[i] * speed
        if not 0 <= weights[i] <= 1:
            directions[i] *= -1
            weights[i] = (2 if weights[i] > 1 else 0) - weights[i]
    return y


def usual_demand_twin(row, temperature, changes):
    city, hours = row % 3, row // 3
    hour, day = hours % 24, hours // 24
    y = [320, 360, 270][city] + [4, 9, 12][city] * max(15 - temperature, 0)
    if 17 <= hour < 22:
        y += 120 if row < changes[0] else 20
    if hour < 6 and row >= changes[0]:
        y += 80
    if day % 7 in (5, 6) or day % 365 in (0, 120, 136, 358, 359):
        y -= 40
    if city == 1 and row >= changes[1]:
        y *= 1 + 0.5 * min((row - changes[1]) / (changes[1] - changes[0]), 1)
    return y


def test_friedman_is_its_formula():
    columns, y = read(friedman(rows=5000, seed=3, noise=0.0))
    assert list(columns) == FRIEDMAN
    x = matrix(columns)
    np.testing.assert_array_equal(x[:, :BLOCK], np.random.default_rng([3, 0]).random((10, BLOCK)))
    assert x[:, 4999].tolist() == np.random.default_rng([3, 1]).random((10, BLOCK))[:, 903].tolist()
    np.testing.assert_allclose(y, [friedman_twin(row) for row in x.T], rtol=1e-13)


def test_the_noise_is_normal_and_of_the_given_size():
    _, still = read(friedman(rows=50_000, noise=0.0))
    for noise in (1.0, 2.5):
        _, y = read(friedman(rows=50_000, noise=noise))
        assert np.std(y - still) == pytest.approx(noise, rel=0.02)
        assert abs(np.mean(y - still)) < 0.02 * noise
        assert np.mean(np.abs(y - still) < noise) == pytest.approx(0.6827, abs=0.01)


def test_the_moments_of_friedman():
    grid = (np.arange(1000) + 0.5) / 1000
    sine = 10 * np.sin(np.pi * np.outer(grid, grid))
    square = 20 * (grid - 0.5) ** 2
    mean = sine.mean() + square.mean() + 7.5
    variance = sine.var() + square.var() + 100 / 12 + 25 / 12
    assert mean == pytest.approx(14.41, abs=0.005)
    assert variance == pytest.approx(23.8, abs=0.05)
    _, y = read(friedman(rows=300_000))
    assert y.mean() == pytest.approx(mean, abs=0.04)
    assert y.var() == pytest.approx(variance + 1, abs=0.25)


def test_mv_is_torgos():
    stream = mv(rows=20_000)
    kinds = [stream.features[f"x{i}"] for i in range(1, 11)]
    assert [i for i, kind in enumerate(kinds, 1) if kind == "category"] == [3, 7, 8]
    for x, y in stream:
        assert -5 <= x["x1"] < 5
        assert -15 <= x["x2"] < -10
        assert x["x3"] == "green" if x["x1"] > 0 else x["x3"] in ("red", "brown")
        if x["x3"] == "green":
            assert x["x4"] == x["x1"] + 2 * x["x2"]
        else:
            assert x["x4"] in (x["x1"] / 2, x["x2"] / 2)
        assert -1 <= x["x5"] < 1
        assert 0 <= x["x6"] / x["x4"] <= 5
        assert x["x8"] == ("normal" if x["x5"] < 0.5 else "large")
        assert 100 <= x["x9"] < 500
        assert y == mv_twin(x)
    columns, _ = read(stream)
    labels = columns["x3"] + columns["x7"] + columns["x8"]
    shares = {"green": 0.5, "red": 0.2, "brown": 0.3, "yes": 0.3, "normal": 0.75}
    for label, share in shares.items():
        assert labels.count(label) / 20_000 == pytest.approx(share, abs=0.015)
    assert set(columns["x10"]) == set(range(1000, 1201))
    halved = [x1 for x1, x4 in zip(columns["x1"], columns["x4"], strict=True) if x4 == x1 / 2]
    assert len(halved) / 20_000 == pytest.approx(0.15, abs=0.015)


@pytest.mark.parametrize("x7", ["yes", "no"])
@pytest.mark.parametrize("x8", ["normal", "large"])
@pytest.mark.parametrize(
    ("x1", "x2", "x4"), [(1.0, 3.0, 5.0), (1.0, -12.0, -4.0), (0.0, -12.0, 0.0)]
)
def test_mv_by_each_of_its_rules(x1, x2, x4, x7, x8):
    given = {"x1": x1, "x2": x2, "x4": x4, "x6": 7.0}
    arrays = {name: np.array([value]) for name, value in given.items()}
    flags = {"yes": np.array([x7 == "yes"]), "normal": np.array([x8 == "normal"])}
    expected = mv_twin({**given, "x7": x7, "x8": x8})
    assert formulas.mv_target(**arrays, **flags).tolist() == [expected]


def test_planes2d_is_breimans():
    columns, y = read(planes2d(rows=60_000, noise=0.0))
    assert list(columns) == [f"x{i}" for i in range(1, 11)]
    assert [set(values) for values in columns.values()] == [{-1, 1}, *[{-1, 0, 1}] * 9]
    for value in (-1, 0, 1):
        assert columns["x9"].count(value) / 60_000 == pytest.approx(1 / 3, abs=0.01)
    rows = (dict(zip(columns, row, strict=True)) for row in matrix(columns).T)
    assert y.tolist() == [planes2d_twin(x) for x in rows]
    _, noisy = read(planes2d(rows=60_000))
    assert noisy.mean() == pytest.approx(0.0, abs=0.08)
    assert noisy.var() == pytest.approx(9 + 14 * 2 / 3 + 1, rel=0.03)


@pytest.mark.parametrize(("count", "drifting", "speed"), [(10, 2, 1e-4), (3, 3, 0.01), (4, 0, 0.5)])
def test_hyperplane_turns(count, drifting, speed):
    parameters = {"features": count, "drifting": drifting, "speed": speed, "noise": 0}
    columns, y = read(hyperplane(rows=9000, seed=5, **parameters))
    state = np.random.default_rng([5, 0, 1]).random(count).tolist(), [1] * count
    expected = [hyperplane_twin(x, *state, drifting, speed) for x in matrix(columns).T]
    np.testing.assert_allclose(y, expected, atol=1e-9)


def test_recurring_drift_is_where_it_is_said_to_be():
    changes = (1500, 5000)
    columns, y = read(friedman_drift("gra", rows=9000, changes=changes))
    steady_columns, steady = read(friedman(rows=9000))
    assert columns == steady_columns
    assert np.flatnonzero(y != steady).tolist() == list(range(1500, 5000))
    _, still = read(friedman_drift("gra", rows=9000, changes=changes, noise=0.0))
    expected = [recurring_twin(x, row, changes) for row, x in enumerate(matrix(columns).T)]
    np.testing.assert_allclose(still, expected, rtol=1e-12)


def test_local_drift_expands():
    changes = (1000, 3000, 6000)
    columns, y = read(friedman_drift("lea", rows=9000, changes=changes, noise=0.0))
    expected = [local_twin(x, row, changes) for row, x in enumerate(matrix(columns).T)]
    np.testing.assert_allclose(y, expected, rtol=1e-12)
    _, steady = read(friedman(rows=9000, noise=0.0))
    parts = np.split(y != steady, changes)
    shares = [2 * 0.3**4, 2 * 0.3**3, 2 * 0.3**2]
    assert not parts[0].any()
    assert [part.mean() for part in parts[1:]] == pytest.approx(shares, rel=0.2)


def test_gradual_drift_is_gradual():
    when = {"changes": (10_000, 40_000), "transition": 20_000}
    columns, y = read(friedman_drift("gsg", rows=60_000, noise=0.0, **when))
    x, twins = matrix(columns), (friedman_twin, swapped_twin, third_twin)
    concepts = [np.abs(y - [twin(row) for row in x.T]) < 1e-12 for twin in twins]
    assert (concepts[0] | concepts[1] | concepts[2]).all()
    assert concepts[0][:10_000].all()
    assert concepts[1][30_000:40_000].all()
    for new, change in ((concepts[1], 10_000), (concepts[2], 40_000)):
        tenths = new[change : change + 20_000].reshape(10, -1).mean(axis=1)
        np.testing.assert_allclose(tenths, np.arange(0.05, 1, 0.1), atol=0.04)


@given(
    st.integers(0, 2**16),
    st.lists(st.integers(0, 3000), min_size=3, max_size=3).map(sorted),
    st.integers(0, 3000),
)
def test_drifting_targets_are_those_of_the_twins(seed, changes, transition):
    rng = np.random.default_rng(seed)
    row, coin, x = rng.integers(0, 4000, 40), rng.random(40), rng.random((10, 40))
    two = tuple(changes[:2])
    transition = min(transition, two[1] - two[0])

    def drifting(kind, at):
        return formulas.drifting_target(kind, x, row, coin, changes=at, transition=transition)

    rows = list(zip(x.T, row, coin, strict=True))
    expected = [recurring_twin(values, at, two) for values, at, _ in rows]
    np.testing.assert_allclose(drifting("gra", two), expected, rtol=1e-12)
    expected = [gradual_twin(values, at, flip, two, transition) for values, at, flip in rows]
    np.testing.assert_allclose(drifting("gsg", two), expected, rtol=1e-12)
    expected = [local_twin(values, at, tuple(changes)) for values, at, _ in rows]
    np.testing.assert_allclose(drifting("lea", tuple(changes)), expected, rtol=1e-12)


def test_changes_are_at_the_papers_places():
    assert friedman_drift("gra", rows=1_000_000).parameters["changes"] == (500_000, 750_000)
    gradual = friedman_drift("gsg", rows=1_000_000).parameters
    assert (gradual["changes"], gradual["transition"]) == ((500_000, 750_000), 100_000)
    local = friedman_drift("lea", rows=1_000_000).parameters
    assert local["changes"] == (250_000, 500_000, 750_000)
    assert demand(rows=None).parameters == demand().parameters == {"changes": (50_000, 75_000)}
    assert friedman_drift("gsg", rows=1000, changes=[10, 20]).parameters["transition"] == 10


def test_demand_is_its_formula():
    rows, changes, seed = 20_000, (6000, 12_000), 4
    columns, y = read(demand(rows=rows, seed=seed, changes=changes))
    shocks = [np.random.default_rng([seed, block, 1]).standard_normal(BLOCK) for block in range(5)]
    level, compared = 0.0, 0
    for row, shock in enumerate(np.concatenate(shocks)[:rows]):
        level = 0.98 * level + 3 * shock
        hours = row // 3
        assert columns["city"][row] == ("Bergen", "Oslo", "Tromsø")[row % 3]
        assert columns["hour"][row] == hours % 24
        assert columns["weekday"][row] == hours // 24 % 7
        assert columns["holiday"][row] == (hours // 24 % 365 in (0, 120, 136, 358, 359))
        temperature = columns["temperature"][row]
        if abs(temperature) < 100:  # not of those missing or garbage
            compared += 1
            usual = usual_demand_twin(row, temperature, changes)
            assert y[row] == pytest.approx(usual + level, abs=1e-9)
    assert compared > 0.9 * rows


def test_the_sensors_of_demand_fail_as_said():
    columns, y = read(demand(rows=300_000))
    temperature = np.array(columns["temperature"])
    assert np.isnan(temperature).mean() == pytest.approx(0.05, abs=0.002)
    assert (np.abs(temperature) > 1e4).mean() == pytest.approx(0.001 * 0.95, abs=0.0003)
    assert np.isfinite(y).all()
    good = np.abs(temperature) < 100
    for city, mean in (("Bergen", 8), ("Oslo", 6), ("Tromsø", 3)):
        of_city = temperature[good & (np.array(columns["city"]) == city)]
        season = -10 * np.cos(2 * np.pi * np.arange(100_000) / 8760).mean()
        assert of_city.mean() == pytest.approx(mean + season, abs=0.1)
        assert of_city.var() == pytest.approx(50 + 4.5 + 9, rel=0.05)


SMALL = {name: make(rows=9000, seed=2) for name, make in GENERATORS.items()}
WHOLE = {name: read(stream) for name, stream in SMALL.items()}


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(SMALL)),
    st.integers(0, 8999) | st.sampled_from([0, 1, 4095, 4096, 4097, 8191, 8192, 8999]),
    st.integers(100, 20_000) | st.sampled_from([1, 2, 4095, 4096, 4097, 2**40]),
)
def test_chunks_mean_nothing(name, start, most_rows):
    stream, (columns, y) = SMALL[name], WHOLE[name]
    row = start
    stop = min(start + 40, 9000) if most_rows <= 2 else 9000
    for chunk in stream.chunks({"row": start}, most_rows):
        end = row + len(chunk)
        assert 0 < len(chunk) <= most_rows
        assert chunk.numbers.tolist() == list(range(row + 1, end + 1))
        assert (chunk.next, chunk.done, chunk.source) == ({"row": end}, end, name)
        assert (list(chunk.columns), chunk.bad, chunk.times) == (list(stream.features), (), None)
        np.testing.assert_array_equal(chunk.y, y[row:end])
        for feature, column in chunk.columns.items():
            assert isinstance(column, np.ndarray) == (stream.features[feature] == "number")
            assert same(column, columns[feature][row:end])
        row = end
        if row >= stop:
            break
    assert row >= stop


@pytest.mark.parametrize("name", GENERATORS)
def test_more_rows_only_follow(name):
    fixed = {"changes": (100, 200, 300)[: 3 if name == "friedman-lea" else 2]}
    fixed = fixed if name == "demand" or "-" in name else {}
    if name == "friedman-gsg":
        fixed["transition"] = 50
    short, long = (GENERATORS[name](rows=rows, **fixed) for rows in (5000, 9000))
    assert short.fingerprint == long.fingerprint
    target = "demand" if name == "demand" else "y"
    assert (short.size, short.length, short.target) == (5000, 5000, target)
    (few, y_few), (many, y_many) = read(short), read(long)
    assert all(same(few[feature], many[feature][:5000]) for feature in few)
    assert y_few.tolist() == y_many[:5000].tolist()


@pytest.mark.parametrize("name", GENERATORS)
def test_far_rows_need_none_before(name):
    stream = GENERATORS[name](rows=None)
    assert (stream.size, stream.length) == (None, None)
    chunk = next(stream.chunks({"row": 10**12}, 10))
    assert chunk.numbers.tolist() == list(range(10**12 + 1, 10**12 + 11))
    assert np.isfinite(chunk.y).all()
    assert list(GENERATORS[name](rows=10).chunks({"row": 10})) == []


@pytest.mark.parametrize("name", GENERATORS)
def test_a_fingerprint_is_a_spec(name):
    stream = GENERATORS[name](rows=5000, seed=9)
    again = generator(f"{stream.fingerprint},rows=5e3")
    assert (again.fingerprint, again.name, again.length) == (stream.fingerprint, name, 5000)
    assert read(again)[1].tolist() == read(stream)[1].tolist()
    copy = pickle.loads(pickle.dumps(stream))
    assert read(copy)[1].tolist() == read(stream)[1].tolist()


def test_specs():
    assert generator("friedman").fingerprint == "friedman:seed=1,noise=1.0"
    stream = generator("friedman:rows=1e6,seed=3,noise=.5")
    assert (stream.length, stream.fingerprint) == (1_000_000, "friedman:seed=3,noise=0.5")
    assert generator("demand:rows=none").length is None
    assert generator("friedman-lea:changes=1e1/20/20").parameters["changes"] == (10, 20, 20)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("fridman", "there is no generator 'fridman': did you mean 'friedman'"),
        ("", "there is no generator '': there are 'friedman', 'friedman-gra'"),
        ("mv:noise=1", "mv: there is no parameter 'noise': there are 'rows', 'seed'"),
        ("friedman:sed=1", "there is no parameter 'sed': did you mean 'seed'?"),
        ("friedman:sed=1", "(as in friedman:rows=1000; its parameters are rows, seed, noise)"),
        ("friedman:rows", "friedman: 'rows' gives no parameter a value"),
        ("friedman:", "friedman: '' gives no parameter a value"),
        ("friedman:seed=1,seed=2", "friedman: seed is given twice"),
        ("friedman:rows=-1", "friedman: rows = -1: a number from 1 to"),
        ("friedman:rows=0", "friedman: rows = 0: a number from 1 to"),
        ("friedman:rows=2.5", "friedman: rows = 2.5: a whole number is expected"),
        ("friedman:seed=x", "friedman: seed = 'x' must be a number"),
        ("friedman:seed=-1", "friedman: seed = -1: a number from 0 to 4294967295"),
        ("friedman:noise=nan", "friedman: noise = nan: a number from 0 to below"),
        ("friedman:noise=-1", "friedman: noise = -1: a number from 0 to below"),
        ("friedman-gra:changes=5", "changes = 5: 2 rows in order are expected"),
        ("friedman-lea:changes=5/6", "changes = (5, 6): 3 rows in order are expected"),
        ("friedman-gra:changes=6/5", "changes = (6, 5): 2 rows in order are expected"),
        ("demand:changes=1/2.5", "demand: changes = 2.5: a whole number is expected"),
        ("friedman-gra:transition=5", "friedman-gra changes abruptly: leave transition out"),
        ("friedman-gsg:changes=5/9,transition=5", "transition = 5: a number from 0 to 4"),
        ("hyperplane:features=0", "hyperplane: features = 0: a number from 1 to 1000"),
        ("hyperplane:drifting=11", "hyperplane: drifting = 11: a number from 0 to 10"),
        ("hyperplane:speed=1", "hyperplane: speed = 1: a number from 0 to below 1"),
    ],
)
def test_what_is_wrong_is_said(spec, words):
    with pytest.raises(StreamError) as error:
        generator(spec)
    assert words in str(error.value)


def test_other_errors_are_said_before_the_first_row():
    with pytest.raises(StreamError, match="there is no drift 'grb': did you mean 'gra'"):
        friedman_drift("grb")
    with pytest.raises(StreamError, match="friedman: row = 11: a number from 0 to 10"):
        friedman(rows=10).chunks({"row": 11})
    with pytest.raises(StreamError, match=r"friedman has no position {'byte': 3}: give"):
        friedman(rows=10).chunks({"byte": 3})
    with pytest.raises(StreamError, match="friedman: most_rows = 0: a number from 1"):
        friedman(rows=10).chunks(None, 0)


@pytest.fixture
def synth(monkeypatch):
    monkeypatch.setattr(random.Random, "gauss", lambda self, mu=0.0, sigma=1.0: 0.0)
    return pytest.importorskip("river.datasets.synth")


def river_rows(stream, rows=3000):
    x, y = zip(*islice(stream, rows), strict=True)
    return np.array([list(row.values()) for row in x], dtype=object).T, np.array(y)


def test_friedman_and_planes2d_are_rivers(synth):
    x, y = river_rows(synth.Friedman(seed=1))
    np.testing.assert_allclose(formulas.friedman_target(x.astype(float)), y, rtol=1e-12)
    x, y = river_rows(synth.Planes2D(seed=1))
    assert formulas.planes2d_target(x.astype(float)).tolist() == y.tolist()


def test_drift_is_rivers_but_where_it_departs_from_the_paper(synth):
    two, three = (1000, 2000), (500, 1000, 2000)
    stream = synth.FriedmanDrift("lea", position=three, seed=1)
    x, y = river_rows(stream)
    row, coin, x = np.arange(3000), np.zeros(3000), x.astype(float)
    ours = formulas.drifting_target("lea", x, row, coin, changes=three)
    np.testing.assert_allclose(ours, y, rtol=1e-12)
    stream = synth.FriedmanDrift("gsg", position=two, transition_window=0, seed=1)
    ours = formulas.drifting_target("gsg", x, row, coin, changes=two)
    np.testing.assert_allclose(ours, river_rows(stream)[1], rtol=1e-12)
    stream = synth.FriedmanDrift("gra", position=two, seed=1)
    x[5] = x[4]  # river takes x5 where the paper has x4
    theirs = [
        stream._global_recurring_abrupt_gen(values, index) for index, values in enumerate(x.T)
    ]
    ours = formulas.drifting_target("gra", x, row, coin, changes=two)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_mv_is_rivers(synth):
    x, y = river_rows(synth.Mv(seed=1))
    numbers = x[[0, 1, 3, 5]].astype(float)
    ours = formulas.mv_target(*numbers, yes=x[6] == "yes", normal=x[7] == "normal")
    assert ours.tolist() == y.tolist()


def test_the_sign_of_hyperplane_is_rivers_class(synth):
    stream = synth.Hyperplane(
        seed=1, n_drift_features=2, mag_change=1e-5, noise_percentage=0, sigma=0
    )
    x, y = river_rows(stream)
    weights = np.array(stream._weights)
    weights[:2] -= 3000 * 1e-5  # river's have moved after each row
    assert weights[:2].max() + 3000 * 1e-5 < 1
    ours = formulas.hyperplane_target(x.astype(float), weights, np.arange(3000), 2, 1e-5)
    assert (ours >= 0).tolist() == (y == 1).tolist()
