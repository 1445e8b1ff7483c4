"""The detector of change: beside its slow twin, its rate of false alarms, its delays, its files."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_drift
import sapwood
from sapwood import ModelFileError
from sapwood.drift import Change, ChangeDetector
from sapwood.storage import container

STREAMS = {
    "level": lambda rng: np.r_[rng.normal(5, 1, 900), rng.normal(7, 1, 900)],
    "spread": lambda rng: np.abs(np.r_[rng.normal(0, 1, 1500), rng.normal(0, 2, 900)]),
    "down": lambda rng: np.r_[rng.exponential(3, 900), rng.exponential(1, 900)],
    "constant": lambda rng: np.r_[np.full(400, 3.0), np.full(400, 3.5), np.full(400, 1.0)],
    "tails": lambda rng: np.r_[rng.pareto(1.2, 1500), 4 + rng.pareto(1.2, 500)],
    "far": lambda rng: 1e12 + np.r_[rng.normal(0, 1, 800), rng.normal(3, 1, 400)],
    "large": lambda rng: 1e139 * np.r_[rng.normal(0, 1, 800), rng.normal(3, 1, 400)].clip(-9, 9),
    "often": lambda rng: np.repeat(rng.integers(0, 9, 12), 260) + rng.normal(0, 0.1, 3120),
}


def told(changes):
    return [(change.row, change.since, change.before, change.after) for change in changes]


@pytest.mark.parametrize("direction", ["both", "up", "down"])
@pytest.mark.parametrize("name", STREAMS)
def test_the_kernel_tells_what_its_twin_does(name, direction):
    values = STREAMS[name](np.random.default_rng(3))
    found = told(ChangeDetector(1e4, direction).update_many(values))
    right = naive_drift.changes(values.tolist(), 1e4, direction)
    assert [change[:2] for change in found] == [change[:2] for change in right]
    for ours, twins in zip(found, right, strict=True):
        assert ours[2:] == pytest.approx(twins[2:], rel=1e-9)
    if direction == "both":
        assert found


@given(
    st.lists(st.floats(-1e140, 1e140) | st.sampled_from([0.0, 1.0, 2.0]), max_size=40),
    st.integers(0, 50),
    st.sampled_from(["both", "up", "down"]),
)
def test_many_are_the_same_as_one_by_one_and_so_is_a_saved_detector(odd, cut, direction):
    values = [*np.random.default_rng(1).normal(0, 1, 250), *odd, *[9.0] * 30]
    at_once, singly = ChangeDetector(1e3, direction), ChangeDetector(1e3, direction)
    changes = at_once.update_many(values)
    seen = []
    for place, value in enumerate(values):
        if place == 200 + cut:
            singly = ChangeDetector.from_bytes(singly.to_bytes())
        if singly.update(value):
            seen.append(singly.last)
    assert seen == changes
    assert at_once.last == singly.last == (changes[-1] if changes else None)
    assert at_once.to_bytes() == singly.to_bytes()


DISTRIBUTIONS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "errors": lambda rng, n: np.abs(rng.normal(size=n)),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "Pareto": lambda rng, n: rng.pareto(1.5, size=n),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_false_alarms_are_as_rare_as_was_asked_for(name):
    rows, once_in = 1_000_000, 5_000
    values = DISTRIBUTIONS[name](np.random.default_rng(5), rows)
    for direction in ("up", "both"):
        alarms = len(ChangeDetector(once_in, direction).update_many(values))
        assert 0 < alarms <= 1.1 * rows / once_in


@pytest.mark.parametrize(("shift", "most"), [(0.5, 170), (1.0, 40), (3.0, 15)])
def test_a_change_is_noticed_soon_and_its_beginning_found(shift, most):
    delays, beginnings = [], []
    for seed in range(20):
        values = np.random.default_rng(seed).normal(0, 1, 6000)
        values[4000:] += shift
        changes = ChangeDetector().update_many(values)
        assert len(changes) == 1
        assert changes[0].row > 4000
        delays.append(changes[0].row - 4000)
        beginnings.append(changes[0].since - 4001)
    assert np.median(delays) <= most
    assert abs(np.median(beginnings)) <= 0.1 * most


def test_what_it_saw_is_told_in_words_and_numbers():
    detector = ChangeDetector(1000, "up")
    detector.update_many(np.tile([2.0, 0.0], 500))
    assert detector.rows == 1000
    assert (detector.mean, detector.deviation) == pytest.approx((1.0, 1.0))
    assert detector.last is None
    assert 0 < detector.evidence < 1
    while not detector.update(5.0):
        assert detector.evidence < 1
    assert detector.last == Change(1004, 1001, detector.last.before, detector.last.after)
    assert (detector.last.before, detector.last.after) == pytest.approx((1.0, 5.0))
    assert str(detector.last) == "mean 1 → 5 since row 1,001, noticed at row 1,004"
    assert (detector.mean, detector.evidence) == (0.0, 0.0)
    assert repr(detector) == "<ChangeDetector(once_in=1000.0, direction='up'): 1004 values>"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e141, "3", None, [1.0]])
def test_a_bad_value_is_refused_and_changes_nothing(bad):
    detector = ChangeDetector()
    detector.update_many([1.0, 2.0])
    before = detector.to_bytes()
    with pytest.raises(ValueError, match="value"):
        detector.update(bad)
    with pytest.raises(ValueError, match=r"value|array"):
        detector.update_many([3.0, bad])
    assert detector.to_bytes() == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"once_in": 10},
        {"once_in": np.inf},
        {"once_in": "x"},
        {"direction": "left"},
        {"direction": ["up"]},
    ],
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ChangeDetector(**wrong)


def seen(rows=2000):
    detector = ChangeDetector(1000, "up")
    detector.update_many(np.r_[np.random.default_rng(2).normal(0, 1, rows), np.full(20, 9.0)])
    return detector


def test_copies_are_equal_and_independent(tmp_path):
    detector = seen()
    detector.save(tmp_path / "detector")
    data = (tmp_path / "detector").read_bytes()
    assert data == detector.to_bytes()
    for twin in (
        detector.copy(),
        copy.copy(detector),
        copy.deepcopy(detector),
        pickle.loads(pickle.dumps(detector)),
        ChangeDetector.from_bytes(data),
        sapwood.load(tmp_path / "detector"),
    ):
        assert twin.to_bytes() == data
        assert twin.last == detector.last
        assert twin.nbytes == detector.nbytes > len(twin._state) * 8
        twin.update(1.0)
        assert detector.to_bytes() == data


def lies():
    header, arrays = seen().to_state()
    state = arrays["state"]

    def with_number(place, value):
        changed = state.copy()
        changed[place] = value
        return header, {**arrays, "state": changed}

    yield "entry", ({**header, "more": 1}, arrays)
    yield "parameter", ({"parameters": {"once_in": 1000, "direction": "up", "x": 1}}, arrays)
    yield "mended", ({"parameters": {"once_in": True, "direction": "up"}}, arrays)
    yield "short", (header, {**arrays, "state": state[:-1]})
    yield "dtype", (header, {**arrays, "state": state.astype(np.float32)})
    yield "arrays", (header, {"state": state})
    yield "nan", with_number(2, np.nan)
    yield "rows", with_number(0, 0.5)
    yield "known", with_number(1, 1e9)
    yield "variance", with_number(3, -1.0)
    yield "evidence", with_number(4, -1.0)
    yield "since", with_number(6, 1e9)
    yield "last", (header, {**arrays, "last": np.array([5.0, 6.0, 0.0, 1.0])})
    yield "last nan", (header, {**arrays, "last": np.array([6.0, 5.0, np.nan, 1.0])})


@pytest.mark.parametrize("lie", list(lies()), ids=lambda lie: lie[0])
def test_lies_in_a_file_are_noticed(lie):
    header, arrays = lie[1]
    data = container.pack("ChangeDetector", {"format": 1, "model": header}, arrays)
    with pytest.raises(ModelFileError, match="the buffer is damaged"):
        ChangeDetector.from_bytes(data)
