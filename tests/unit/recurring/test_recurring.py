"""Models with a pool of retired models: when one is retired, tried and used again."""

import numpy as np
import pytest

import sapwood
from sapwood import (
    AdaptiveTreeRegressor,
    ForestRegressor,
    HoeffdingTreeRegressor,
    IntervalRegressor,
    ModelFileError,
    RecurringRegressor,
)
from sapwood.drift import ChangeDetector
from sapwood.evaluate import prequential
from sapwood.recurring import learning as learning_module
from sapwood.recurring import pool as rules
from sapwood.recurring.pool import LOOK, TRIAL_LOOKS
from sapwood.row_methods import RowsToLearn

BLOCK = 800  # rows of a concept


def stream(rows, concepts=2, seed=0, block=BLOCK):
    """Return columns and labels of concepts that take turns."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, rows))
    means = np.array([10 * a + b, 8 - 6 * a + b, 20 * b])
    concept = np.arange(rows) // block % concepts
    return {"a": a, "b": b}, means[concept, np.arange(rows)] + rng.normal(0, 0.1, rows)


def curves(rows, block=3_000):
    """Return a stream of two concepts that take long to learn."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, rows))
    y = np.where(np.arange(rows) // block % 2, np.sin(12 * a) * b, np.sin(12 * b) * a)
    return {"a": a, "b": b}, 10 * y + rng.normal(0, 0.3, rows)


def part_of(X, start, stop=None):
    return {name: column[start:stop] for name, column in X.items()}


def rows_of(X):
    return [dict(zip(X, row, strict=True)) for row in np.column_stack([*X.values()]).tolist()]


def tree(**own):
    return HoeffdingTreeRegressor(grace_period=50, **own)


def naive(make, X, y, most):
    """Return the predictions of a model with a pool, and its events: the rule, with live copies."""
    model, retired, trial, detector = make(), [], None, ChangeDetector(1_000_000, "up")
    found, events = [], []
    for start in range(0, len(y), LOOK):
        part, own = part_of(X, start, start + LOOK), y[start : start + LOOK]
        said = model.predict_learn_many(part, own)
        others = []
        if trial is not None:
            others = [each.predict_learn_many(part, own, delayed=True) for each in trial["models"]]
        found += said.tolist()
        if len(own) < LOOK:
            break
        changes = detector.update_many(np.abs(own - said))
        if trial is None:
            if changes:
                copies = [each.copy() for each in retired]
                trial = {"models": copies, "old": model.copy(), "said": [], "start": start + LOOK}
            continue
        trial["said"].append((own, said, others))
        label, use = (np.concatenate([each[place] for each in trial["said"]]) for place in (0, 1))
        tried = [
            np.concatenate([each[2][place] for each in trial["said"]])
            for place in range(len(retired))
        ]
        leads = [(label - use) ** 2 - (label - each) ** 2 for each in tried]
        sure = [lead.sum() if lead.sum() > 4 * np.sqrt((lead**2).sum()) else 0 for lead in leads]
        best = int(np.argmax(sure)) if any(sure) else None
        if best is None and len(label) < 500:
            continue
        error = ((label - use) ** 2).sum()
        retired = [
            each
            for place, each in enumerate(retired)
            if place != best and ((use - tried[place]) ** 2).sum() > 0.1 * error
        ]
        retired = [*retired, trial["old"]][-most:]
        if best is not None:
            model, detector = trial["models"][best], ChangeDetector(1_000_000, "up")
        events.append(("new" if best is None else "returned", start + LOOK, len(retired)))
        trial = None
    return found, events


def told(model):
    return [(each["event"], each["rows"], each["pool"]) for each in model.events]


@pytest.mark.parametrize("concepts", [2, 3])
@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("kind", [tree, AdaptiveTreeRegressor, lambda: ForestRegressor(members=2)])
def test_it_follows_the_rule(kind, most, concepts):
    X, y = stream(6_030, concepts)
    model = RecurringRegressor(kind(), pool=most)
    found = model.predict_learn_many(X, y)
    expected, events = naive(kind, X, y, most)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert told(model) == events
    assert len(events) >= 4
    assert model.retired == events[-1][2] <= most
    assert model.rows_learned == 6_030


def test_it_predicts_better_when_concepts_return():
    X, y = curves(24_000)
    plain = ForestRegressor(members=4).predict_learn_many(X, y)
    model = RecurringRegressor(ForestRegressor(members=4))
    found = model.predict_learn_many(X, y)
    errors = [np.mean((each - y)[6_000:] ** 2) for each in (found, plain)]
    assert errors[0] < 0.7 * errors[1]
    assert [event["event"] for event in model.events] == ["new", *["returned"] * 6]
    assert model.retired == 1  # models of the same concept replace each other


def test_without_drift_it_predicts_the_same_as_the_model_inside():
    X, y = stream(4_000, 1)
    model, plain = RecurringRegressor(ForestRegressor()), ForestRegressor()
    assert (model.predict_learn_many(X, y) == plain.predict_learn_many(X, y)).all()
    assert model.model.to_bytes() == plain.to_bytes()
    assert model.events == []
    assert model.retired == 0


def test_batches_of_any_size_are_their_rows_one_by_one():
    X, y = stream(3_900, 3)
    w = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y))
    rows, rng = rows_of(X), np.random.default_rng(2)
    batch, single = (RecurringRegressor(tree(), pool=2) for _ in range(2))
    start, states = 0, set()
    while start < len(y):
        stop = min(len(y), start + int(rng.integers(1, 170)))
        found = batch.predict_learn_many(part_of(X, start, stop), y[start:stop], w[start:stop])
        for place in range(start, stop):
            assert single.predict_one(rows[place]) == found[place - start]
            single.learn_one(rows[place], float(y[place]), float(w[place]))
        assert single.to_bytes() == batch.to_bytes()
        states.add((batch.retired, len(batch._held.candidates), batch._held.trial is None))
        start = stop
    assert {(2, 2, False), (2, 0, True), (0, 0, False)} <= states


def test_it_continues_the_same_after_saving_and_copying_at_any_state():
    X, y = stream(3_900, 3)
    model, expected = RecurringRegressor(tree(), pool=2), RecurringRegressor(tree(), pool=2)
    for start in range(0, len(y), 37):
        part, own = part_of(X, start, start + 37), y[start : start + 37]
        model = sapwood.model.from_bytes(model.to_bytes()) if start % 2 else model.copy()
        assert (model.predict_learn_many(part, own) == expected.predict_learn_many(part, own)).all()
        assert model.to_bytes() == expected.to_bytes()
        assert model.nbytes == expected.nbytes
    assert len(model.events) >= 2
    assert model.events == expected.events


def test_retired_models_stay_within_bytes():
    X, y = stream(7_000, 3)
    model, free = RecurringRegressor(tree(), max_bytes=1 << 16), RecurringRegressor(tree())
    most = 0
    for start in range(0, len(y), 500):
        for each in (model, free):
            each.learn_many(part_of(X, start, start + 500), y[start : start + 500])
        held = sum(map(len, model._held.pool))
        most = max(most, sum(map(len, free._held.pool)))
        assert held <= 1 << 16
    assert most > 1 << 16
    empty = RecurringRegressor(tree())
    grown = free.nbytes - free.model.nbytes - sum(map(len, free._held.pool))
    assert free._held.trial is None
    assert grown == empty.nbytes - empty.model.nbytes


def test_models_that_are_tried_count_in_nbytes():
    X, y = stream(4 * BLOCK)
    model = RecurringRegressor(tree())
    for start in range(0, len(y), LOOK):
        model.learn_many(part_of(X, start, start + LOOK), y[start : start + LOOK])
        if model._held.candidates:
            break
    (tried,) = model._held.candidates
    known = model.model.nbytes + tried.nbytes + sum(map(len, model._held.pool))
    assert model.nbytes >= known + len(model._held.trial.retired)


@pytest.mark.parametrize("kind", [tree, lambda: ForestRegressor(members=2)])
@pytest.mark.parametrize("ids", [False, True])
def test_labels_that_are_late_when_a_model_returns_find_their_predictions_afterwards(kind, ids):
    X, y = stream(6 * BLOCK)
    model, rows, late = RecurringRegressor(kind()), rows_of(X), 60
    for place, x in enumerate(rows):
        model.predict_one(x, id=place if ids else None)
        if place >= late:
            own = place - late
            model.learn_one(rows[own], float(y[own]), id=own if ids else None)
    assert "returned" in [event["event"] for event in model.events]
    notes = model.model._kernel.pending
    assert notes.count == late
    assert ids or notes.unrecorded == 0


def test_a_batch_that_is_rejected_changes_nothing():
    X, y = stream(3 * BLOCK)
    model = RecurringRegressor(tree(max_bytes=200_000))
    model.learn_many(X, y)
    before = model.to_bytes()
    bad = y.copy()
    bad[700] = np.inf
    with pytest.raises(ValueError, match="y = inf at position 700"):
        model.learn_many(X, bad)
    mixed = {**X, "a": [*X["a"][:900].tolist(), "warm", *X["a"][901:].tolist()]}
    with pytest.raises(ValueError, match="'warm'"):
        model.learn_many(mixed, y)
    wide = {**X, **{f"more {place}": X["a"] for place in range(400)}}
    with pytest.raises((ValueError, OverflowError), match="max_bytes"):
        model.learn_many(wide, y)
    assert model.to_bytes() == before


def test_features_that_appear_later_are_in_their_order_after_a_return():
    X, y = stream(5 * BLOCK)
    model = RecurringRegressor(tree())
    model.learn_many(part_of(X, 0, BLOCK), y[:BLOCK])
    later = part_of({**X, "c": 1 - X["a"], "d": X["b"]}, BLOCK)
    model.learn_many(later, y[BLOCK:])
    assert "returned" in [event["event"] for event in model.events]
    assert model.features == ["a", "b", "c", "d"]
    array = np.column_stack([column[:50] for column in later.values()])
    assert (model.predict_many(array) == model.predict_many(part_of(later, 0, 50))).all()


def test_a_retired_model_that_rejects_rows_is_dropped():
    """A column is of categories for the retired model, and of numbers since another one returned."""
    X, y = stream(3 * BLOCK)
    words = np.array(["u", "v"], object)[(X["a"] > 0.5).astype(int)]
    model = RecurringRegressor(tree())
    model.learn_many(part_of({**X, "c": words}, 0, BLOCK), y[:BLOCK])
    model.learn_many(part_of({**X, "c": words}, BLOCK, 2 * BLOCK), y[BLOCK : 2 * BLOCK])
    assert model.retired == 1
    made = tree()
    made.learn_many(part_of({**X, "c": X["a"]}, BLOCK, 2 * BLOCK), y[BLOCK : 2 * BLOCK])
    model._held = model._held._replace(model=made, learned=made.summary.rows)
    numbers = {**X, "c": X["a"]}
    single = sapwood.model.from_bytes(model.to_bytes())
    rest = part_of(numbers, 2 * BLOCK)
    model.learn_many(rest, y[2 * BLOCK :])
    for x, label in zip(rows_of(rest), y[2 * BLOCK :].tolist(), strict=True):
        single.learn_one(x, label)
    assert [event["event"] for event in model.events] == ["new", "new"]
    assert model.retired == 1
    assert "c" in made.features
    assert single.to_bytes() == model.to_bytes()


STEPS = [
    (learning_module.Learning, "_after"),
    (learning_module.Learning, "_tried"),
    (learning_module, "looked"),
    (rules, "_begun"),
    (rules, "_tried"),
    (rules, "_ended"),
    (rules, "_expect_labels"),
]


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
def test_what_an_interruption_leaves_undone_is_done_by_the_next_call(
    owner, name, is_after, monkeypatch
):
    X, y = stream(4 * BLOCK)
    expected = RecurringRegressor(tree())
    found = expected.predict_learn_many(X, y)
    step, calls = getattr(owner, name), []

    def interrupted(*arguments):
        calls.append(name)
        done = step(*arguments) if is_after else None
        if len(calls) == (3 if name in ("_after", "looked") else 1):
            raise KeyboardInterrupt
        return done if is_after else step(*arguments)

    monkeypatch.setattr(owner, name, interrupted)
    model, out = RecurringRegressor(tree()), np.empty(len(y))
    with pytest.raises(KeyboardInterrupt):
        model._learn_many(RowsToLearn(X, y, delayed=False, predicting=out))
    assert model.predict_one({"a": 0.5, "b": 0.5}, record=False) == expected.predict_one(
        {"a": 0.5, "b": 0.5}, record=False
    )
    assert model.to_bytes() == expected.to_bytes()
    assert (out == found).all()


def test_intervals_around_it_keep_their_coverage():
    X, y = stream(6 * BLOCK)
    model = IntervalRegressor(RecurringRegressor(tree()), [0.9])
    found = prequential(model, X, y)
    assert abs(found.intervals.levels[0.9].total.coverage - 0.9) < 0.02
    assert "returned" in [event["event"] for event in model.model.events]


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"pool": 0}, "pool"),
        ({"pool": 33}, "pool"),
        ({"pool": 2.5}, "pool"),
        ({"max_bytes": 100}, "max_bytes"),
        ({"max_bytes": None}, "max_bytes"),
    ],
)
def test_bounds_that_cannot_be_are_rejected(own, message):
    with pytest.raises((ValueError, TypeError), match=message):
        RecurringRegressor(tree(), **own)


def test_a_model_of_several_targets_is_rejected():
    model = tree()
    model.learn_one({"a": 1.0}, {"u": 1.0, "v": 2.0})
    with pytest.raises(ValueError, match="use a model for each"):
        RecurringRegressor(model)
    with pytest.raises(ValueError, match="use a model for each"):
        RecurringRegressor(tree()).learn_many({"a": [1.0]}, {"u": [1.0], "v": [2.0]})


def in_trial():
    X, y = stream(4 * BLOCK)
    model = RecurringRegressor(tree())
    for start in range(0, len(y), 30):
        model.learn_many(part_of(X, start, start + 30), y[start : start + 30])
        if model._held.candidates and model._held.filled:
            return model
    raise AssertionError


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("rows", -1),
        ("retired", 0),
        ("retired", 2),
        ("tried", [True, True]),
        ("tried", ["yes"]),
        ("tried", None),
        ("looks", TRIAL_LOOKS),
        ("looks", None),
        ("pool", 0),
        ("max_bytes", 1),
        ("names", ["a", "a"]),
        ("names", [1.5]),
        ("events", [{"event": "lost", "rows": 1, "pool": 1}]),
        ("events", [{"event": "new", "rows": 10**9, "pool": 1}]),
    ],
)
def test_a_file_with_a_wrong_entry_is_rejected(entry, value):
    header, arrays = in_trial().to_state()
    assert header[entry] != value
    state = sapwood.model.State(
        {"format": 1, "schema": None, "model": header | {entry: value}}, arrays
    )
    with pytest.raises(ModelFileError, match="the buffer"):
        RecurringRegressor._restored(state, "the buffer")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sums", lambda array: array[:, :2]),
        ("sums", lambda array: -np.abs(array) - 1),
        ("sums", lambda array: array * np.nan),
        ("square", lambda array: -array - 1),
        ("recent", lambda array: array[:, 1:]),
        ("recent", lambda array: array * np.inf),
        ("retired 0", lambda array: array[:-1]),
        ("tried 0", lambda array: np.frombuffer(ForestRegressor().to_bytes(), np.uint8)),
        ("detector", lambda array: np.frombuffer(ChangeDetector().to_bytes(), np.uint8)),
    ],
)
def test_a_file_with_a_wrong_array_is_rejected(name, change):
    header, arrays = in_trial().to_state()
    own = {**arrays, name: change(arrays[name])}
    state = sapwood.model.State({"format": 1, "schema": None, "model": header}, own)
    with pytest.raises(ModelFileError):
        RecurringRegressor._restored(state, "the buffer")
