"""Lags and means: against a slow twin, whatever the batches, series and labels."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sapwood
from interrupted import interrupted_at
from sapwood.lags import LaggedModel, Lags
from sapwood.storage import container


class NaiveLags:
    """All rows in lists, and the least recently used series forgotten."""

    def __init__(self, lags, means, *, of=(), mean_of=(), by=None, most=10**9):
        self.lags, self.means, self.of, self.mean_of = lags, means, of, mean_of
        self.by, self.most = by, most
        self.series = {}  # the least recently used first

    def features(self, x):
        past = self.series.get(x.get(self.by), [])
        found = {f"y.lag{k}": self._back(past, k, "y") for k in self.lags}
        found |= {f"y.mean{k}": self._mean(past, k, "y") for k in self.means}
        found |= {f"temp.lag{k}": self._back(past, k, "temp") for k in self.of}
        found |= {f"temp.mean{k}": self._mean(past, k, "temp") for k in self.mean_of}
        return found

    def arrive(self, x, y=None):
        key = x.get(self.by)
        if key not in self.series and len(self.series) == self.most:
            del self.series[next(iter(self.series))]
        past = self.series.pop(key, [])
        past.append({"y": y, "temp": x.get("temp")})
        self.series[key] = past
        return past[-1]

    @staticmethod
    def _back(past, k, name):
        return past[-k][name] if len(past) >= k else None

    @staticmethod
    def _mean(past, k, name):
        known = [row[name] for row in past[-k:] if row[name] is not None]
        return float(np.mean(known)) if known else None


numbers = st.integers(-50, 50).map(float)
rows_of_stream = st.lists(
    st.tuples(st.sampled_from("ABCDE"), st.none() | numbers, st.none() | numbers), max_size=40
)
spans = st.lists(st.integers(1, 7), max_size=3, unique=True)


def assert_same(one, other):
    """Two that remember the same, to the last bit."""
    header, arrays = one.to_state()
    other_header, other_arrays = other.to_state()
    assert header == other_header
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name])


def agree(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if value is None or np.isnan(value):
            assert found[name] is None or np.isnan(found[name]), name
        else:
            assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-12), name


@given(rows_of_stream, st.tuples(spans, spans, spans, spans), st.booleans(), st.data())
def test_batches_and_rows_are_as_the_twin_says(rows, wanted, grouped, data):
    assume(any(wanted))
    lags, means, of, mean_of = wanted
    most, height = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    settings = {
        "lags": lags,
        "means": means,
        "lags_of": {"temp": of},
        "means_of": {"temp": mean_of},
        "by": "shop" if grouped else (),
        "max_series": most,
    }
    one_by_one, batches = Lags(**settings), Lags(**settings)
    by = "shop" if grouped else None
    naive = NaiveLags(lags, means, of=of, mean_of=mean_of, by=by, most=most)
    for start in range(0, len(rows), height):
        part = rows[start : start + height]
        shops, temps, targets = map(list, zip(*part, strict=True))
        y = np.array([np.nan if target is None else target for target in targets])
        columns = batches.transform_learn_many({"shop": shops, "temp": temps}, y)
        for place, (shop, temp, target) in enumerate(part):
            x = {"shop": shop, "temp": temp}
            expected = naive.features(x)
            row = {name: columns[name][place] for name in batches.features}
            agree(row, expected)
            known = one_by_one.transform_one(x)
            agree({name: known.get(name) for name in one_by_one.features}, expected)
            one_by_one.learn_one(x, target)
            naive.arrive(x, target)
    assert_same(batches, one_by_one)


@given(rows_of_stream, st.integers(0, 12), st.integers(1, 4))
def test_a_label_is_known_from_when_it_comes(rows, late, most):
    lags = Lags([1, 3], means=[4], lags_of={"temp": [2]}, by="shop", max_series=most)
    naive = NaiveLags([1, 3], [4], of=[2], by="shop", most=most)
    waiting = []
    for shop, temp, target in rows:
        x = {"shop": shop, "temp": temp}
        expected = naive.features(x)
        found, ticket = lags.arrive(x)
        agree({name: found[name] for name in lags.features}, expected)
        waiting.append((ticket, naive.arrive(x), target))
        if len(waiting) > late:
            ticket, row, label = waiting.pop(0)
            if label is not None:
                lags.label(ticket, label)
                row["y"] = label


@given(rows_of_stream, st.integers(1, 3))
def test_what_was_saved_goes_on_to_the_same_bits(rows, most):
    lags = Lags([1, 2], means=3, lags_of={"temp": 1}, by=["shop"], max_series=most)
    half = len(rows) // 2
    for shop, temp, target in rows[:half]:
        lags.learn_one({"shop": shop, "temp": temp}, target)
    twins = [
        Lags.from_state(*lags.to_state()),
        copy.deepcopy(lags),
        pickle.loads(pickle.dumps(lags)),
    ]
    for shop, temp, target in rows[half:]:
        for twin in (*twins, lags):
            twin.learn_one({"shop": shop, "temp": temp}, target)
    for twin in twins:
        assert_same(twin, lags)


def test_rows_to_come_have_no_labels():
    lags = Lags([1, 2], by="shop")
    lags.learn_many({"shop": ["A", "B", "A"]}, [1.0, 2.0, 3.0])
    before = lags.copy()
    found = lags.transform_many({"shop": ["A", "A", "A", "B"]})
    np.testing.assert_array_equal(found["y.lag1"], [3.0, np.nan, np.nan, 2.0])
    np.testing.assert_array_equal(found["y.lag2"], [1.0, 3.0, np.nan, np.nan])
    assert_same(lags, before)


def test_the_series_without_rows_for_the_longest_time_is_forgotten():
    lags = Lags(1, by="shop", max_series=2)
    for shop, sold in [("A", 1.0), ("B", 2.0), ("A", 3.0), ("C", 4.0)]:
        lags.learn_one({"shop": shop}, sold)
    assert lags.transform_one({"shop": "A"})["y.lag1"] == 3.0
    assert lags.transform_one({"shop": "B"}) == {"shop": "B"}
    assert lags.n_series == 2


def test_a_label_of_a_series_that_was_forgotten_meanwhile_is_left_out():
    lags = Lags(1, by="shop", max_series=1)
    _, ticket = lags.arrive({"shop": "A"})
    lags.arrive({"shop": "B"})
    lags.arrive({"shop": "A"})
    lags.label(ticket, 5.0)
    assert lags.transform_one({"shop": "A"}) == {"shop": "A"}


def test_series_are_told_by_numbers_text_and_what_is_missing():
    lags = Lags(1, by="shop")
    for shop, sold in [(7, 1.0), ("7", 2.0), (None, 3.0), (True, 4.0)]:
        lags.learn_one({"shop": shop}, sold)
    told = [lags.transform_one({"shop": shop})["y.lag1"] for shop in (7.0, "7", np.nan, 1)]
    assert told == [1.0, 2.0, 3.0, 4.0]
    assert Lags.from_state(*lags.to_state()).transform_one({"shop": 7})["y.lag1"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "no lag and no mean"),
        ({"lags": [0]}, "lags = 0: a number from 1 to 100000"),
        ({"lags": "12"}, "lags = '12': a duration is expected"),
        ({"lags": [1.5]}, "lags = 1.5: a whole number"),
        ({"lags": 1, "max_series": 0}, "max_series = 0"),
        ({"lags": 1, "target": 3}, "target = 3"),
        ({"lags": 1, "lags_of": {"y": [1]}}, "two features would be called 'y.lag1'"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Lags(**arguments)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ({"temp": "warm"}, 1.0, "'temp'"),
        ({"temp": np.inf}, 1.0, "must be finite"),
        ({"temp": 1.0}, np.inf, "y = inf"),
        ({"temp": 1.0}, "much", "y = 'much'"),
        ({"temp": 1.0, "y.lag1": 3.0}, 1.0, "a feature 'y.lag1' already"),
        ({"temp": 1.0, "shop": "\ud800"}, 1.0, "which identifies a series"),
        ({"temp": 1.0, "shop": np.inf}, 1.0, "which identifies a series"),
    ],
)
def test_a_row_that_cannot_be_used_changes_nothing(x, y, words):
    lags = Lags(1, lags_of={"temp": 1}, by="shop")
    lags.learn_one({"temp": 5.0}, 7.0)
    before = lags.copy()
    with pytest.raises(ValueError, match=words):
        lags.learn_one(x, y)
    with pytest.raises(ValueError, match=words):
        lags.learn_many({name: [value] for name, value in x.items()}, [y])
    assert_same(lags, before)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header["past"].update(clock=1),
        lambda header, arrays: header["past"].update(clock=True),
        lambda header, arrays: header["past"]["series"].append(["D"]),
        lambda header, arrays: header["past"]["series"].__setitem__(0, ["B"]),
        lambda header, arrays: header["past"]["series"].__setitem__(0, [[]]),
        lambda header, arrays: header["parameters"].update(max_series=1),
        lambda header, arrays: header["parameters"].update(lags=[1, 2, 3, 4, 5]),
        lambda header, arrays: header["parameters"].update(more=1),
        lambda header, arrays: header.update(more=1),
        lambda header, arrays: arrays.update(values=arrays["values"].astype(np.float32)),
        lambda header, arrays: arrays.update(values=arrays["values"] + np.inf),
        lambda header, arrays: arrays.update(counts=arrays["counts"] + 5),
        lambda header, arrays: arrays.update(starts=arrays["starts"] - 5),
        lambda header, arrays: arrays.update(used=arrays["used"] * 0 + 3),
        lambda header, arrays: arrays.pop("used"),
    ],
)
def test_a_state_that_nobody_saved_is_refused(change):
    lags = Lags([1, 2], by="shop", max_series=3)
    lags.learn_many({"shop": list("AABB")}, [1.0, 2.0, 3.0, 4.0])
    header, arrays = lags.to_state()
    header = copy.deepcopy(header)
    change(header, arrays)
    with pytest.raises((ValueError, TypeError)):
        Lags.from_state(header, arrays)


def test_memory_is_bounded_by_series_and_spans():
    lags = Lags([1, 24], means=100, lags_of={"temp": [5]}, by="shop", max_series=50)
    for shop in range(500):
        lags.learn_one({"shop": shop, "temp": 1.0}, 2.0)
    assert lags.n_series == 50
    assert lags.nbytes <= 2 * 50 * (100 * 2 + 3) * 8


def shops(rows):
    """Two shops whose sales repeat after three rows of each."""
    columns = {"shop": ["A", "B"] * (rows // 2), "noise": np.arange(rows) % 7 * 1.0}
    step = np.arange(rows) // 2
    return columns, np.where(np.arange(rows) % 2 == 0, 10.0, 100.0) * (1 + step % 3)


def test_a_model_with_lags_learns_what_one_without_cannot():
    columns, y = shops(3000)
    with_lags = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(3, by="shop"))
    found = with_lags.predict_learn_many(columns, y)
    bare = sapwood.HoeffdingTreeRegressor().predict_learn_many(columns, y)
    assert np.abs(found - y)[2000:].mean() < 1.0
    assert np.abs(bare - y)[2000:].mean() > 10.0


def test_a_model_with_lags_is_the_same_row_by_row():
    columns, y = shops(300)
    batch = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 3], by="shop"))
    loop = batch.copy()
    expected = batch.predict_learn_many(columns, y)
    for row, target in enumerate(y.tolist()):
        x = {name: column[row] for name, column in columns.items()}
        assert loop.predict_one(x) == expected[row]
        loop.learn_one(x, target)
    assert loop.to_bytes() == batch.to_bytes()
    assert loop.features == ["shop", "noise"]
    assert loop.nbytes == loop.model.nbytes + loop.lags.nbytes
    assert loop.n_leaves == loop.model.n_leaves


def test_a_model_that_refuses_rows_lets_none_become_past():
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(1))
    model.learn_many({"x": [1.0, 2.0]}, [1.0, 2.0])
    before = model.to_bytes()
    with pytest.raises(ValueError, match="must be a number"):
        model.learn_many({"x": [3.0, "much"]}, [3.0, 4.0])
    assert model.to_bytes() == before


def test_a_model_with_lags_is_saved_and_loaded(tmp_path):
    columns, y = shops(300)
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 3], by="shop"))
    model.learn_many(columns, y)
    model.column_formats = {"sold": "%d.%m.%Y"}
    model.save(tmp_path / "m.sapwood")
    twin = sapwood.load(tmp_path / "m.sapwood")
    assert type(twin) is LaggedModel
    assert twin.column_formats == model.column_formats
    assert twin.to_bytes() == model.to_bytes() == copy.deepcopy(model).to_bytes()
    np.testing.assert_array_equal(twin.predict_many(columns), model.predict_many(columns))


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(more=1),
        lambda header, arrays: arrays.pop("model"),
        lambda header, arrays: arrays.pop("past.used"),
        lambda header, arrays: arrays.update(model=arrays["model"][:-8]),
        lambda header, arrays: header["lags"]["past"].update(clock=-1),
    ],
)
def test_a_damaged_model_with_lags_is_refused(change):
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(1))
    model.learn_many({"x": [1.0, 2.0]}, [1.0, 2.0])
    header, arrays = model.to_state()
    change(header, arrays)
    data = container.pack("LaggedModel", {"format": 1, "model": header}, arrays)
    with pytest.raises(sapwood.ModelFileError, match="damaged"):
        LaggedModel.from_bytes(data)


@pytest.mark.parametrize("way", ["learn_one", "learn_many"])
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_an_interruption_leaves_a_model_as_before_or_as_after(way, step):
    columns, y = shops(40)
    start = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 3], by="shop", max_series=2))
    start.learn_many(columns, y)
    rows = (
        ({"shop": "C", "new": 1.0}, 5.0) if way == "learn_one" else ({"shop": ["A", "C"]}, [5, 6])
    )
    before = start.to_bytes()
    getattr(start, way)(*rows)
    after = start.to_bytes()
    outcomes = set()
    for line in itertools.count(1, step):
        model = LaggedModel.from_bytes(before)
        was_struck = interrupted_at(line, lambda each=model: getattr(each, way)(*rows))
        found = model.to_bytes()
        assert found in (before, after), line
        if not was_struck:
            break
        outcomes.add(found == after)
    assert line > 50
    assert outcomes == {False, True}


# -- which series is evicted -----------------------------------------------------------------------


class Slow:
    """The last value of each series, of the most recently used ones: one row after the other."""

    def __init__(self, most):
        self.most, self.last = most, {}

    def see(self, key, value):
        known = self.last.pop(key, None)
        if known is None and len(self.last) == self.most:
            del self.last[next(iter(self.last))]  # they are in the order of their last rows
        self.last[key] = value
        return known


@pytest.mark.parametrize("seed", range(40))
def test_evicted_is_the_series_without_a_row_for_the_longest_time(seed):
    """Whether rows come in batches or alone, whether series come back, and after loading."""
    rng = np.random.default_rng(seed)
    most = int(rng.choice([1, 2, 3, 7]))
    lags, slow = Lags(1, by="shop", max_series=most), Slow(most)
    for _ in range(12):
        count = int(rng.choice([0, 1, 1, 2, 5, 30]))
        shops = rng.integers(0, rng.choice([2, 4, 12]), count).tolist()
        y = rng.normal(size=count)
        expected = [slow.see(shop, value) for shop, value in zip(shops, y.tolist(), strict=True)]
        found = lags.transform_learn_many({"shop": shops}, y)["y.lag1"].tolist()
        assert [None if np.isnan(value) else value for value in found] == expected
        assert lags.n_series == len(slow.last)
        history = lags._history
        assert {key: place for place, key in enumerate(history.keys)} == history.places
        twin = lags.copy()
        assert (twin.nbytes, twin.n_series) == (lags.nbytes, lags.n_series)
        lags = twin if rng.random() < 0.3 else lags


def test_new_series_do_not_copy_the_table_of_all():
    lags = Lags(1, by="shop", max_series=6)
    lags.learn_many({"shop": list("abc")}, [1.0, 2.0, 3.0])
    places = lags._history.places
    for shop in "defghij":
        lags.learn_one({"shop": shop}, 4.0)
        assert lags._history.places is places
    assert sorted(places) == [(shop,) for shop in "efghij"]


def test_rows_that_were_planned_before_others_became_past():
    lags = Lags(1, by="shop", max_series=2)
    lags.learn_one({"shop": "a"}, 1.0)
    plans = [lags.plan({"shop": [shop]}, [value]) for shop, value in [("b", 2.0), ("c", 3.0)]]
    for plan in plans:
        plan.push()
    assert [lags.transform_one({"shop": shop}).get("y.lag1") for shop in "abc"] == [None, 2.0, 3.0]
    assert Lags.from_state(*lags.to_state()).n_series == 2
