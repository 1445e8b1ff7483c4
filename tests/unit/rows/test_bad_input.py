"""What is refused: with which error and words, and never with a change of state."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sapwood
from cases import OBSERVERS, assert_finite_answers, every_observer, run_apart, unchanged, watching
from places import SUPPORT
from sapwood import EBSTObserver, QuantizerObserver, TEBSTObserver
from sapwood.evaluate import prequential

BAD_NUMBERS = {
    "x": [math.nan, math.inf, -math.inf],
    "y": [math.nan, math.inf, -math.inf],
    "w": [0.0, -0.0, -1.0, -5e-324, math.nan, math.inf, -math.inf],
}
bad_number = pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, some in BAD_NUMBERS.items() for value in some]
)


@pytest.fixture(params=OBSERVERS.values(), ids=OBSERVERS.keys())
def observer(request):
    """An observer that has seen something."""
    return watching(request.param(), [1.0, 2.0, 3.5], [0.5, 1.5, 7.0])


@bad_number
def test_update_names_the_bad_value(observer, name, value):
    row = {"x": 1.0, "y": 2.0, "w": 3.0, name: value}
    with unchanged(observer), pytest.raises(ValueError, match=f"^{name} = {value!r} must be"):
        observer.update(**row)


@bad_number
@pytest.mark.parametrize("position", [0, 2, 4])
def test_update_many_names_the_bad_value_and_its_position(observer, name, value, position):
    rows = {"x": np.arange(5.0), "y": np.arange(5.0), "w": np.ones(5)}
    rows[name][position:] = value  # the first of several is named
    words = f"^{name} = {value!r} at position {position} must be"
    with unchanged(observer), pytest.raises(ValueError, match=words):
        observer.update_many(**rows)


@every_observer
@bad_number
def test_an_empty_observer_refuses_too(make, name, value):
    observer = make()
    row = {"x": 1.0, "y": 2.0, "w": 3.0, name: value}
    with unchanged(observer):
        with pytest.raises(ValueError, match=f"^{name} = {value!r} must be"):
            observer.update(**row)
        with pytest.raises(ValueError, match=f"^{name} = {value!r} at position 0 must be"):
            observer.update_many(**{key: [number] for key, number in row.items()})
    assert len(observer) == 0


@every_observer
@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("value", BAD_NUMBERS["y"])
def test_a_bad_target_is_named(make, target, value):
    observer = watching(make(targets=3), [1.0, 2.0], [[1, 2, 3], [4, 5, 6]])
    y = np.ones((4, 3))
    y[2, target] = value
    with unchanged(observer):
        words = re.escape(f"y[{target}] = {value!r} must be")
        with pytest.raises(ValueError, match=words):
            observer.update(1.0, y[2])
        words = re.escape(f"y[{target}] = {value!r} at position 2 must be")
        with pytest.raises(ValueError, match=words):
            observer.update_many(np.ones(4), y)


def test_of_several_bad_rows_the_first_is_named(observer):
    x, y, w = np.ones(4), np.ones(4), np.ones(4)
    x[3], y[1], w[2] = math.nan, math.inf, -1
    with unchanged(observer), pytest.raises(ValueError, match=r"^y = inf at position 1 "):
        observer.update_many(x, y, w)


MASKED = np.ma.array([1.0, 2.0], mask=[False, True])

BAD_COLUMNS = [
    ([1.0, 2.0], [1.0], None, "x has 2 values and y has 1"),
    ([1.0], [1.0, 2.0], None, "x has 1 values and y has 2"),
    ([1.0, 2.0], [1.0, 2.0], [1.0], "w has 1 values and y has 2"),
    ([], [1.0], None, "x has 0 values and y has 1"),
    ([[1.0, 2.0]], [1.0, 2.0], None, r"x has shape \(1, 2\)"),
    ([1.0, 2.0], [[1.0], [2.0]], None, r"y has shape \(2, 1\)"),
    ([1.0, 2.0], [1.0, 2.0], [[1.0, 2.0]], r"w has shape \(1, 2\)"),
    (1.0, [1.0], None, r"x has shape \(\)"),
    ([1.0], 1.0, None, r"y has shape \(\)"),
    ([1.0], [1.0], 1.0, r"w has shape \(\)"),
    (None, [1.0], None, "x"),
    ("abc", [1.0], None, "'abc'"),
    (["1.5", "b"], [1.0, 2.0], None, "x .*'1.5'"),
    ([1.0, 2.0], [b"1", b"2"], None, "y .*b'1'"),
    ([1.0, "b"], [1.0, 2.0], None, "x = 'b' at position 1 "),
    (np.array([1.0, "b"], dtype=object), [1.0, 2.0], None, "x = 'b' at position 1"),
    ([1.0, None], [1.0, 2.0], None, "x = None at position 1"),
    ([1.0, 2.0], [None, 2.0], None, "y = None at position 0"),
    ([1.0, 2.0], [1.0, 2.0], [1.0, None], "w = None at position 1"),
    ([1.0, 2j], [1.0, 2.0], None, "x .*complex"),
    ([1.0, 2.0], np.array([1.0, 2j], dtype=object), None, "y = 2j at position 1"),
    (np.array(["2020-01-01"], dtype="M8[D]"), [1.0], None, "x .*datetime64"),
    (MASKED, [1.0, 2.0], None, "x = nan at position 1"),
    ([1.0, 2.0], MASKED, None, "y = nan at position 1"),
    ([1.0, 2.0], [1.0, 2.0], MASKED, "w = nan at position 1"),
    (np.ma.array([1j, 2j]), [1.0, 2.0], None, "x .*complex"),
    (np.ma.array(["1", "2"]), [1.0, 2.0], None, "x .*'1'"),
    ([[1.0], [1.0, 2.0]], [1.0, 2.0], None, "inhomogeneous"),
    ([{}, {}], [1.0, 2.0], None, "x = {} at position 0"),
]


@pytest.mark.parametrize(("x", "y", "w", "words"), BAD_COLUMNS)
def test_columns_that_are_not_numbers_of_one_length_are_refused(observer, x, y, w, words):
    with unchanged(observer), pytest.raises(ValueError, match=words):
        observer.update_many(x, y, w)


def test_a_masked_array_without_masked_values_is_an_array(observer):
    observer.update_many(np.ma.array([4.0, 5.0]), np.ma.array([1, 2]), np.ma.array([1.0, 1.0]))
    assert observer.total.n == 5


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, 2.0], r"y has shape \(2,\): \(rows, 2\) is expected"),
        ([[1.0], [2.0]], r"y has shape \(2, 1\)"),
        ([[1.0, 2.0, 3.0]] * 2, r"y has shape \(2, 3\)"),
        ([[1.0, 2.0]], "x has 2 values and y has 1"),
        ([[1.0, 2.0], [3.0, None]], r"y\[1\] = None at position 1"),
    ],
)
@every_observer
def test_targets_of_another_shape_are_refused(make, y, words):
    observer = watching(make(targets=2), [0.0], [[1.0, 2.0]])
    with unchanged(observer), pytest.raises(ValueError, match=words):
        observer.update_many([1.0, 2.0], y)


@every_observer
@pytest.mark.parametrize("y", [[], [1.0], [1.0, 2.0, 3.0]])
def test_a_row_of_another_number_of_targets_is_refused(make, y):
    observer = watching(make(targets=2), [0.0], [[1.0, 2.0]])
    with unchanged(observer), pytest.raises(ValueError, match=f"y has {len(y)} values: 2 "):
        observer.update(1.0, y)


@every_observer
def test_a_number_where_several_targets_are_expected_is_refused(make):
    observer = watching(make(targets=2), [0.0], [[1.0, 2.0]])
    with unchanged(observer), pytest.raises((TypeError, ValueError)):
        observer.update(1.0, 2.0)


NOT_A_NUMBER = ["1.0", b"1", None, 1j, [1.0, 2.0], {}, object()]


@pytest.mark.parametrize("value", NOT_A_NUMBER, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", ["x", "y", "w"])
def test_update_refuses_what_is_no_number(observer, name, value):
    """As Python's own functions of numbers do: with a TypeError, or a ValueError."""
    row = {"x": 1.0, "y": 2.0, "w": 3.0, name: value}
    with unchanged(observer), pytest.raises((TypeError, ValueError)):
        observer.update(**row)


def test_numbers_beyond_the_doubles_are_refused(observer):
    with unchanged(observer):
        with pytest.raises((OverflowError, ValueError)):
            observer.update(10**400, 1.0)
        with pytest.raises((OverflowError, ValueError)):
            observer.update_many([1.0], [10**400])


# Statistics that would overflow.


@pytest.mark.parametrize(
    ("y", "w", "words"),
    [
        (1e200, 1.0, r"y = 1e\+200"),
        (-1.7e308, 1.0, r"y = -1.7e\+308"),
        (1e10, 1e290, r"y = 10000000000.0"),
        (0.5, 1.7e308, r"w = 1.7e\+308"),
    ],
)
def test_a_statistic_that_would_overflow_is_refused(observer, y, w, words):
    with unchanged(observer):
        with pytest.raises(OverflowError, match=f"^{words} "):
            observer.update(2.0, y, w)
        with pytest.raises(OverflowError, match=f"^{words} at position 1 "):
            observer.update_many([1.0, 2.0, 3.0], [0.5, y, 0.5], [1.0, w, 1.0])
    assert_finite_answers(observer)


@every_observer
def test_merging_what_would_overflow_is_refused(make):
    low, high = watching(make(), [1.0], [-1e200]), watching(make(), [2.0], [1e200])
    heavy = watching(make(), [1.0], [-1e200], [4e307])
    with unchanged(low, high, heavy):
        with pytest.raises(OverflowError):
            low.merge(high)
        with pytest.raises(OverflowError):
            heavy.merge(heavy)
        with pytest.raises(OverflowError):
            high + low


@every_observer
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize(
    ("y", "w"),
    [(1e100, 1e-290), (1e200, 1e-300), (1e160, 1e-20), (1e307, 1e-308), (1e-200, 1e-300)],
)
def test_extreme_weights_never_make_a_merit_that_is_not_finite(make, targets, y, w):
    observer = make(targets=targets)
    column = np.array([0.0, y])
    y = column if targets == 1 else np.stack([column, [0.0, 1.0]], axis=1)
    try:
        observer.update_many([0.0, 1.0], y, [w, w])
    except OverflowError:
        assert len(observer) == 0
    assert_finite_answers(observer)


@every_observer
@pytest.mark.parametrize("y", [1.4e-162, 1e-310, 5e-324])
def test_squares_that_underflow_do_no_harm(make, y):
    observer = watching(make(), [0.0, 1.0, 1.0, 1.0], [0.0, y, y, y])
    assert_finite_answers(observer)
    assert observer.copy().to_bytes() == observer.to_bytes()
    assert observer.total.mean == pytest.approx(0.75 * y, abs=5e-324)


@every_observer
@pytest.mark.parametrize("y", [1.7e308, -1.7e308])
def test_a_large_but_constant_target_is_legal(make, y):
    observer = watching(make(), [0.0, 1.0, 2.0], [y, y, y], [1.0, 2.0, 0.5])
    assert (observer.total.n, observer.total.mean, observer.total.m2) == (3.5, y, 0)
    assert observer.best_split().merit == 0
    assert observer.copy().to_bytes() == observer.to_bytes()


def test_a_merge_that_cannot_tell_the_coarser_slot_changes_nothing():
    fine = watching(QuantizerObserver(1e-300), [1.0, 1e308], [0.0, 1.0])
    coarse = watching(QuantizerObserver(2e-300), [1.0, 2.0], [0.0, 1.0])
    for a, b in ((fine, coarse), (coarse, fine)):
        with unchanged(a, b), pytest.raises((ValueError, OverflowError), match="radi"):
            a.merge(b)
        assert a.copy().to_bytes() == a.to_bytes()


# Arguments of the constructors.


@pytest.mark.parametrize(
    ("make", "argument", "values"),
    [
        (
            QuantizerObserver,
            "radius",
            [0, 0.0, -1.0, math.nan, math.inf, -math.inf, "abc", "1.0", None, [1.0], 1j, 10**400],
        ),
        (QuantizerObserver, "slots", [1, 0, -3, 2.0, "8", None, True, math.nan, 2**40]),
        (QuantizerObserver, "cut", ["middle", "", None, 1, ["border"]]),
        (QuantizerObserver, "targets", [0, -1, 1.0, "2", None, True, 2**40]),
        (EBSTObserver, "targets", [0, -1, 1.0, "2", None, True, 2**40]),
        (TEBSTObserver, "targets", [0, -1, 1.0, "2", None, True, 2**40]),
        (TEBSTObserver, "digits", [-1, 16, 1.0, "3", None, True, 2**40]),
    ],
)
def test_bad_arguments_are_named(make, argument, values):
    for value in values:
        with pytest.raises(ValueError, match=re.escape(f"{argument} = {value!r}"[:30])):
            make(**{argument: value})


@pytest.mark.parametrize("radius", [5e-324, 1e308, 3, np.float32(0.5), np.int64(2)])
def test_any_positive_finite_number_is_a_radius(radius):
    assert QuantizerObserver(radius).radius == radius


# Use that nobody intends.


@pytest.mark.parametrize(
    "use",
    [
        lambda raw: raw.update(1.0, 1.0),
        lambda raw: raw.update_many([1.0], [1.0]),
        lambda raw: raw.best_split(),
        lambda raw: raw.candidates(),
        lambda raw: raw.to_bytes(),
        lambda raw: raw.total,
        lambda raw: raw.nbytes,
        lambda raw: type(raw)().merge(raw),
    ],
)
@pytest.mark.parametrize("kind", [QuantizerObserver, EBSTObserver, TEBSTObserver])
def test_an_observer_that_was_never_initialised_says_so(kind, use):
    raw = kind.__new__(kind)
    assert len(raw) == 0
    with pytest.raises((RuntimeError, ValueError)):
        use(raw)


def test_an_observer_is_initialised_only_once(observer):
    with unchanged(observer), pytest.raises(RuntimeError):
        observer.__init__()


SHARING = """
import sys, threading
sys.path.insert(0, {folder!r})
import numpy as np
from cases import OBSERVERS

sys.setswitchinterval(1e-6)
errors = []
threading.excepthook = lambda arguments: errors.append(arguments.exc_value)
observer = OBSERVERS[{name!r}]()
observer.update_many(np.arange(5000.0), np.zeros(5000))
taken = [5000]

def watch(x):
    observer.update_many(x, x)
    taken.append(len(x))

def watch_one(x):
    observer.update(x[0], x[0])
    taken.append(1)

def ask(x):
    observer.best_split(), observer.candidates(), observer.total, observer.nbytes, len(observer)

def use(job, seed):
    rng = np.random.default_rng(seed)
    for turn in range(100):
        x = rng.normal(size=2000) * 2.0 ** (turn // 10)
        try:
            job(x)
        except RuntimeError as error:
            assert "in use" in str(error), error

jobs = [watch, watch, watch_one, ask, ask]
threads = [threading.Thread(target=use, args=pair) for pair in zip(jobs, range(len(jobs)))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(observer.total.n == sum(taken), len(taken) > 1, errors)
"""


@pytest.mark.parametrize("name", OBSERVERS)
def test_threads_that_share_an_observer_do_not_crash(name):
    """They may be told that it is in use; of what they were not told so, nothing is lost."""
    folder = str(SUPPORT)
    assert run_apart(SHARING.format(folder=folder, name=name)) == "True True []\n"


# -- numbers that no double reaches ---------------------------------------------------------------

BEYOND = {
    "int": 10**400,
    "negative": -(10**400),
    "more digits than Python prints": 10**5000,
    "decimal": Decimal("1e400"),
    "fraction": Fraction(10**400, 3),
    "long double": np.longdouble("1e400"),
}


@pytest.mark.parametrize("number", BEYOND.values(), ids=BEYOND)
def test_numbers_beyond_the_doubles_are_told_to_be_too_large(number) -> None:
    if isinstance(number, np.longdouble) and np.isinf(number):
        pytest.skip("a long double is a double here")
    tree = sapwood.HoeffdingTreeRegressor
    mixed = np.array([1.0, number], dtype=object)
    calls = [
        ("y", lambda: tree().learn_one({"a": 1.0}, number)),
        ("w", lambda: tree().learn_one({"a": 1.0}, 1.0, w=number)),
        (r"x\['a'\]", lambda: tree().learn_one({"a": number}, 1.0)),
        ("y", lambda: tree().learn_many([[1.0], [2.0]], [1.0, number])),
        ("y", lambda: tree().learn_many([[1.0], [2.0]], mixed)),
        ("w", lambda: tree().learn_many([[1.0], [2.0]], [1.0, 2.0], w=[1.0, number])),
        (r"x\[0\]", lambda: tree().learn_many(mixed.reshape(2, 1), [1.0, 2.0])),
        (r"x\['a'\]", lambda: tree().learn_many({"a": [1.0, number]}, [1.0, 2.0])),
        ("y", lambda: sapwood.Moments().update_many([1.0, number])),
        ("y", lambda: prequential(tree(), ([[1.0], [2.0]], [1.0, number]))),
        ("x", lambda: prequential(tree(), [({"a": 1.0}, 1.0), ({"a": number}, 1.0)])),
    ]
    for name, call in calls:
        with pytest.raises(ValueError, match=rf"{name}.* is beyond the largest double") as told:
            call()
        assert len(str(told.value)) < 250
        assert "inf" not in str(told.value).split(" is beyond")[0]
    with pytest.raises(ValueError, match=r"row 2, column 'y': not finite .*below 1.8e308"):
        prequential(tree(), [({"a": 1.0}, 1.0), ({"a": 1.0}, number)])


@pytest.mark.parametrize("name", ["delta", "grace_period", "max_bytes", "max_depth"])
def test_parameters_beyond_the_doubles_are_told_in_short(name) -> None:
    for value in (10**400, 10**5000):
        with pytest.raises(ValueError, match=f"{name} = .* is expected") as told:
            sapwood.HoeffdingTreeRegressor(**{name: value})
        assert len(str(told.value)) < 200
