"""The last layer and the memory of what was said, beside their slow twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_layer import Layer, Memory
from sapwood.corrector._layer import ErrorCorrectionLayer, fresh_layer, layer_parts
from sapwood.corrector._pending import PendingPredictions, pending_bytes


def walk(count, seed=0):
    """A series that wanders, and a model that knows some of it."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.normal(size=count))
    known = rng.normal(size=count) * 2
    return known + 0.3 * rng.normal(size=count), level + known


# -- the layer -------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [0, 1, 24, 300])
@pytest.mark.parametrize("weights", ["ones", "wild"])
def test_the_layer_is_its_twin(late, weights):
    model, y = walk(900)
    rng = np.random.default_rng(1)
    w = np.ones(900) if weights == "ones" else 10.0 ** rng.uniform(-2, 1, 900)
    layer, twin, said = ErrorCorrectionLayer(), None, {}
    for row in range(900 + late):
        if row < 900 and row % 7:  # each seventh row is never predicted
            found, notes = layer.predict(model[row : row + 1])
            if twin is None:
                assert found[0] == model[row]
                said[row] = notes, None
            else:
                expected, saying = twin.predict(model[row])
                assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
                said[row] = notes, (saying, layer.rows)
        if row >= late:
            at = slice(row - late, row - late + 1)
            notes, judged = said.get(row - late, (None, None))
            if twin is None:
                twin = Layer(y[0])
            else:
                if judged is not None:
                    twin.judge(judged[0], y[at][0], w[at][0], layer.rows - judged[1])
                twin.follow(model[at][0], y[at][0], w[at][0])
            layer.learn(model[at], y[at], notes, w[at])
    part = {name: layer.state[start : start + size] for name, start, size in layer_parts()}
    np.testing.assert_allclose(part["theta"], twin.theta, atol=1e-9)
    np.testing.assert_allclose(part["coefficient"], twin.coefficients, atol=1e-7)
    assert part["lateness"][0] == pytest.approx(twin.lateness)


@pytest.mark.parametrize("kind", ["zeros", "trend", "shift", "fall"])
def test_the_range_of_y_is_that_of_the_reference(kind):
    """A model that is right but for what is below 0, where y is 0."""
    rng, rows = np.random.default_rng(2), 1400
    time = np.arange(rows)
    drawn = rng.normal(size=rows)
    moved = {
        "zeros": 0.0 * time,
        "trend": 0.05 * time,
        "shift": 50.0 * (time > 700),
        "fall": -np.sqrt(time),
    }[kind]
    model, y = drawn + moved, np.maximum(drawn, 0.0) + moved
    layer, twin, held = ErrorCorrectionLayer(), None, 0
    for row in range(rows):
        at = slice(row, row + 1)
        found, notes = layer.predict(model[at])
        if twin is None:
            twin = Layer(y[0])
        else:
            expected, saying = twin.predict(model[row])
            assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            held += found[0] in twin.held_to()
            twin.judge(saying, y[row], 1.0, 0)
            twin.follow(model[row], y[row], 1.0)
        layer.learn(model[at], y[at], notes)
    if kind in ("zeros", "shift"):
        assert held > 100
    if kind == "zeros":
        assert layer.predict(np.array([-50.0, 50.0]))[0].tolist() == [y.min(), y.max()]
    if kind == "trend":
        assert layer.predict(np.array([500.0]))[0] > y.max()


def test_labels_at_once_are_notes_that_are_handed_back_at_once():
    model, y = walk(400)
    layer, twin = ErrorCorrectionLayer(), ErrorCorrectionLayer()
    expected = []
    for row in range(400):
        at = slice(row, row + 1)
        said, notes = twin.predict(model[at])
        expected.append(said[0])
        twin.learn(model[at], y[at], notes)
    assert layer.predict_learn(model, y).tolist() == expected
    assert layer.state.tolist() == twin.state.tolist()


def test_what_follows_a_walk_is_believed_at_once_and_not_by_the_thousand():
    model, y = walk(20_000)
    at_once, late = ErrorCorrectionLayer(), ErrorCorrectionLayer()
    error = np.mean((at_once.predict_learn(model, y) - y)[2000:] ** 2)
    assert error < 1.6 * (1 + 0.3**2)  # of what can be known, the walk's last step and the noise
    said = []
    for start in range(0, 20_000, 1000):
        part = slice(start, start + 1000)
        found, notes = late.predict(model[part])
        said.append(found)
        late.learn(model[part], y[part], notes)
    ratio = np.mean((np.concatenate(said) - y)[5000:] ** 2) / np.mean((model - y)[5000:] ** 2)
    assert ratio < 1.0


def test_history_credits_nobody():
    model, y = walk(5000)
    layer = ErrorCorrectionLayer()
    layer.learn(model, y)
    said, _ = layer.predict(model)
    assert said.tolist() == model.tolist()


def test_rows_that_do_not_fit_are_refused():
    layer = ErrorCorrectionLayer()
    with pytest.raises(ValueError, match="do not fit together"):
        layer.learn(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="records do not fit"):
        layer.learn(np.zeros(2), np.zeros(2), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="do not fit together"):
        layer.predict_learn(np.zeros(2), np.zeros(3))


def test_parts_of_a_layer_cover_it():
    ends = [start + size for _, start, size in layer_parts()]
    assert ends[-1] == len(fresh_layer())
    assert [start for _, start, _ in layer_parts()] == [0, *ends[:-1]]


# -- the memory ------------------------------------------------------------------------------------


def id_key(number):
    """The key of a number that stands for an id."""
    notes = PendingPredictions(1, 1)
    notes.put_id(number, np.zeros(1))
    return int(notes.state()[1][0])


steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "leave",
                "leave",
                "take",
                "take",
                "leave id",
                "take id",
                "copy",
                "labels",
                "unrecorded",
            ]
        ),
        st.integers(0, 5),
    ),
    max_size=200,
)


@given(steps=steps, most=st.sampled_from([1, 2, 8, 64]))
def test_the_memory_is_its_twin(steps, most):
    notes, twin, labels = PendingPredictions(2, most), Memory(most), 0
    for number, (what, value) in enumerate(steps):
        row = np.array([value / 3, np.nan, -0.0])
        if what == "leave":
            notes.put_row(row, np.array([labels, number], dtype=float))
            twin.leave(value, labels, number)
        elif what == "take":
            found, expected = notes.take_row(row, labels), twin.take(value, labels)
            assert (found is None) == (expected is None)
            assert found is None or found[1] == expected
        elif what == "leave id":
            notes.put_id(value, np.array([labels, number], dtype=float))
            twin.leave(str(value), labels, number)
        elif what == "take id":
            found = notes.take_one(id_key(value), labels)
            expected = twin.take(str(value), labels)
            assert (None if found is None else found[1]) == expected
        elif what == "labels":
            labels += value
        elif what == "unrecorded":
            notes.add_unrecorded(value)
            twin.unrecorded = min(twin.unrecorded + value, most)
        else:
            copy = PendingPredictions(2, most)
            copy.restore(*notes.state())
            assert [each.tolist() for each in copy.state()] == [
                each.tolist() for each in notes.state()
            ]
            notes = copy
        assert notes.count == sum(note is not None for note in twin.notes)
        assert notes.reach == twin.reach
        expected = twin.misses, twin.left, twin.unrecorded, twin.owed
        assert (notes.misses, notes.left, notes.unrecorded, notes.owed) == expected
    _, _, ages, contents = notes.state()
    kept = [(len(twin.notes) - at, note[2]) for at, note in enumerate(twin.notes) if note]
    assert [(age, content[1]) for age, content in zip(ages, contents, strict=True)] == kept


def test_the_memory_grows_as_far_as_its_bound_and_is_given_back():
    notes = PendingPredictions(3, 256)
    rows = np.arange(1000.0)[:, None]
    for row in rows:
        notes.put_row(row, np.repeat(row, 3))
    assert (notes.count, notes.room) == (256, 256)
    assert notes.nbytes == 256 * pending_bytes(3)
    assert notes.take_row(rows[744], 0).tolist() == [744.0] * 3
    _, _, _, contents = notes.state()
    assert contents[:, 0].tolist() == list(range(745, 1000))


def test_labels_of_rows_that_are_never_recognised_are_taken_in_order():
    notes, twin, taken = PendingPredictions(2, 64), Memory(64), []
    for number in range(60):
        notes.put_row(np.array([float(number)]), np.array([number, number], float))
        twin.leave(number, number, number)
        if number >= 3:
            found = notes.take_row(np.array([number + 0.5]), number)
            expected = twin.take(number + 0.5, number)
            assert (None if found is None else found[1]) == expected
            taken.append(expected)
    # Three predictions later, each; the first of them to see whether it is so.
    assert taken == [None] * 20 + list(range(20, 57))


def test_rows_that_are_recognised_do_not_take_notes_of_others():
    notes = PendingPredictions(1, 256)
    notes.put_row(np.array([-1.0]), np.array([0.0]))
    for number in range(100):
        notes.put_row(np.array([float(number)]), np.array([float(number)]))
        assert notes.take_row(np.array([float(number)]), number).tolist() == [number]
    for other in (0.5, 1.5, 2.5):
        assert notes.take_row(np.array([other]), 100) is None
    assert notes.count == 1


@pytest.mark.parametrize("arrival", ["one by one", "two by two", "by batches", "after a pause"])
@pytest.mark.parametrize("kinds", [1, 2, 3, 16])
def test_equal_rows_are_matched_in_the_order_of_arrival(kinds, arrival):
    found = [number - taken for number, taken in matches(kinds, arrival, never=0)]
    assert len(found) > 700
    assert set(found) == {0}


@pytest.mark.parametrize("arrival", ["one by one", "two by two", "by batches", "after a pause"])
@pytest.mark.parametrize(("kinds", "never"), [(2, 20), (3, 20), (3, 7), (16, 7)])
def test_labels_that_never_come_do_not_move_those_of_equal_rows(kinds, never, arrival):
    found = np.array([number - taken for number, taken in matches(kinds, arrival, never)])
    assert found.max() <= 4
    assert found.min() >= 0  # no label takes a prediction that is too young
    assert found[-200:].mean() < 0.5


def matches(kinds, arrival, never, late=24, rows=900):
    """Return the numbers of rows, and of those whose prediction their labels took."""
    rng = np.random.default_rng(kinds)
    row = rng.integers(0, kinds, rows).astype(float)
    notes, labels, found = PendingPredictions(2, 2048), 0, []
    for number in range(rows):
        notes.put_row(row[number : number + 1], np.array([labels, number], float))
        due = {
            "one by one": [number - late],
            "two by two": [number - late - 1, number - late] if number % 2 else [],
            "by batches": range(number - 49, number + 1) if number % 50 == 49 else [],
            "after a pause": [number - late - 99 * (number >= 400)]
            if not 300 < number < 400
            else [],
        }[arrival]
        for at in due:
            if at >= 0 and not (never and at % never == 3):
                taken = notes.take_row(row[at : at + 1], labels)
                found.append((at, int(taken[1])))
                labels += 1
    return found


def test_reach_stays_where_labels_never_come():
    rng = np.random.default_rng(2)
    row = rng.integers(0, 3, 4_000).astype(float)
    notes, labels, reach = PendingPredictions(2, 2048), 0, []
    for number in range(len(row)):
        notes.put_row(row[number : number + 1], np.array([labels, number], float))
        if number >= 24 and number % 20:
            notes.take_row(row[number - 24 : number - 23], labels)
            labels += 1
        reach.append(notes.reach)
    assert max(reach) <= 27
    assert notes.count < 100  # predictions whose labels never come are dropped


def test_values_that_appear_are_no_part_of_keys_of_predictions_before_them():
    notes, row = PendingPredictions(2, 64), np.array([1.0, 5.0, 0.25])
    before = np.array([1.0, np.nan, np.nan])  # neither the category 5 nor the feature is known
    between = np.array([1.0, 5.0, np.nan])
    for number, (labels, said) in enumerate([(1, before), (2, before), (3, between), (5, row)]):
        notes.put_row(said, np.array([labels, number], float))
    notes.add_appearance(1, 5.0, 2.0)
    notes.add_appearance(2, np.nan, 4.0)
    copy = PendingPredictions(2, 64)
    copy.restore(*notes.state())
    for each in (notes, copy):
        assert [each.take_row(row, labels)[1] for labels in range(6, 10)] == [0.0, 1.0, 2.0, 3.0]
        assert (each.count, each.appearance_count) == (0, 0)


def test_other_rows_do_not_take_predictions_from_before_an_appearance():
    notes = PendingPredictions(2, 64)
    notes.put_row(np.array([1.0, np.nan]), np.array([1.0, 0.0]))
    notes.add_appearance(1, 5.0, 1.0)
    assert notes.take_row(np.array([1.0, 4.0]), 3) is None  # 4 was known before
    assert notes.take_row(np.array([2.0, 5.0]), 4) is None
    assert notes.take_row(np.array([1.0, 5.0]), 5) is not None


def test_of_many_appearances_the_latest_are_remembered():
    notes = PendingPredictions(2, 256)
    for number in range(100):
        notes.put_row(np.array([number / 7, np.nan]), np.array([1.0, number]))
    for value in range(70):
        notes.add_appearance(1, float(value), 1.0 + value)
    assert notes.appearance_count == 64
    assert notes.take_row(np.array([1 / 7, 69.0]), 80)[1] == 1.0
    assert notes.take_row(np.array([2 / 7, 5.0]), 81) is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([-1], "in order -1"),
        ([17], "in order 17"),
        ([0.5], "in order 0.5"),
        ([0, 2, 1, 0, 1, 1, 0], "not in order"),
        ([0, np.nan, 1, 0], "not in order"),
        ([0, 1, 1, -1], "of no features"),
        ([0, 1, 1, 0.5], "of no features"),
        ([0, *[1, 1, 0] * 65], "65 appearances"),
    ],
)
def test_appearances_that_cannot_be_are_not_restored(more, words):
    notes = PendingPredictions(1, 16)
    sizes = np.array([16, 0, 0, 0, 0, 0, 0, *more], dtype=float)
    with pytest.raises(ValueError, match=words):
        notes.restore(sizes, np.ones(1, np.uint64), np.array([1]), np.ones((1, 1)))
    assert notes.count == 0


def test_appearances_of_features_that_there_are_not_are_rejected():
    notes = PendingPredictions(2, 16)
    notes.put_row(np.array([1.0]), np.array([1.0, 0.0]))
    notes.add_appearance(3, 1.0, 1.0)
    with pytest.raises(ValueError, match="feature 3 of 2 has appeared"):
        notes.take_row(np.array([1.0, 2.0]), 3)


def test_rows_are_known_by_their_values_and_where_they_stand():
    rows = [[1.0, 2.0], [2.0, 1.0], [1.0, np.nan], [np.nan, 1.0], [0.0, 0.0], [np.nan, np.nan]]
    notes = PendingPredictions(1, 16)
    for number, row in enumerate(rows):
        notes.put_row(np.array(row), np.array([float(number)]))
    assert notes.take_row(np.array([1.0]), 9).tolist() == [2.0]  # a feature came since
    assert notes.take_row(np.array([-0.0, 0.0]), 9).tolist() == [4.0]
    assert notes.take_row(np.array([]), 9).tolist() == [5.0]
    assert notes.take_row(np.array([2.0, 1.0]), 9).tolist() == [1.0]


def test_keys_of_whole_numbers_differ():
    notes, grid = PendingPredictions(1, 65536), np.arange(32.0)
    rows = np.array(np.meshgrid(grid, grid, grid)).reshape(3, -1).T.copy()
    for row in rows:
        notes.put_row(row, np.zeros(1))
    _, keys, _, _ = notes.state()
    assert len(np.unique(keys)) == len(rows)


@pytest.mark.parametrize(
    ("sizes", "ages", "words"),
    [
        ((24, 0, 0, 0, 0), [1], "room for 24"),
        ((32, 0, 0, 0, 0), [1], "room for 32"),
        ((8, 0, 0, 0, 0), [1], "room for 8"),
        ((16, -1, 0, 0, 0), [1], "-1.0 labels late"),
        ((16, np.inf, 0, 0, 0), [1], "inf labels late"),
        ((16, 0, 21, 0, 0), [1], "21.0 labels cannot have been missed"),
        ((16, 0, 0, -1, 0), [1], "there cannot be -1.0 predictions"),
        ((16, 0, 0, 0, 17), [1], "there cannot be 17.0 predictions"),
        ((16, 0, 0, 0, 0), [17], "age of prediction 0"),
        ((16, 0, 0, 0, 0), [2, 2], "age of prediction 0"),
        ((16, 0, 0, 0, 0), [0], "age of prediction 0"),
    ],
)
def test_what_cannot_be_is_not_restored(sizes, ages, words):
    notes = PendingPredictions(1, 16)
    count = len(ages)
    with pytest.raises(ValueError, match=words):
        notes.restore(
            np.array(sizes, float), np.zeros(count, np.uint64), np.array(ages), np.zeros((count, 1))
        )


@pytest.mark.parametrize(("width", "most"), [(0, 16), (1, 0), (1, 12)])
def test_a_memory_has_a_size(width, most):
    with pytest.raises(ValueError, match="a power of 2"):
        PendingPredictions(width, most)
