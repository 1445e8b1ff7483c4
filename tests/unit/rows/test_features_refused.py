"""What is refused of rows: with which words, and never with a change of the features."""

import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from feature_cases import INF, LONG, Key, known
from sapwood.rows._dict_row import RowReader
from sapwood.rows.features import MAX_FEATURES, Features

UNFIT = "must be a number or a string; use NaN or None"
FINITE = "must be finite; use NaN or None for a missing value"
NUMBER = "must be a number, as the values of this feature before it"
LABEL = "must be a string or a whole number, as the values of this feature are categories"


@pytest.fixture
def features():
    return known()


class Hostile:
    """Cannot be shown, compared or hashed, and its number cannot be had."""

    def __float__(self):
        raise ValueError("no")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __float__


HOSTILE_VALUES = [
    ("a", INF, f"x['a'] = inf{{}} {FINITE}"),
    ("a", -INF, f"x['a'] = -inf{{}} {FINITE}"),
    ("a", np.float32("inf"), f"x['a'] = inf{{}} {FINITE}"),
    ("a", np.longdouble("1e4000"), "{} is beyond the largest double; scale it down"),
    ("a", Decimal("Infinity"), f"{{}} {FINITE}"),
    ("a", Decimal("sNaN"), f"{{}} {UNFIT}"),
    ("a", 10**400, "x['a'] = 1000000000"),
    ("a", 10**400, "{} is beyond the largest double; scale it down"),
    ("a", 10**5000, "x['a'] = <int>{} is beyond the largest double"),
    ("a", Fraction(10**400), "{} is beyond the largest double"),
    ("a", "2.5", f"x['a'] = '2.5'{{}} {NUMBER}"),
    ("a", LONG, "...xxxxx"),
    ("a", b"1", f"x['a'] = b'1'{{}} {UNFIT}"),
    ("a", 1j, f"x['a'] = 1j{{}} {UNFIT}"),
    ("a", np.complex64(1), f"{{}} {UNFIT}"),
    ("a", [1.0], f"x['a'] = [1.0]{{}} {UNFIT}"),
    ("a", {}, f"x['a'] = {{{{}}}}{{}} {UNFIT}"),
    ("a", np.array([1.0]), f"x['a'] = array([1.]){{}} {UNFIT}"),
    ("a", object(), f"{{}} {UNFIT}"),
    ("a", Hostile(), "Hostile"),
    ("a", Hostile(), f"{{}} {UNFIT}"),
    ("a", Hostile, f"{{}} {UNFIT}"),
    ("a", np.datetime64("2020-01-01"), f"{{}} {UNFIT}"),
    ("a", np.timedelta64(1, "s"), f"{{}} {UNFIT}"),
    ("c", 2.5, f"x['c'] = 2.5{{}} {LABEL}"),
    ("c", np.float32(3.5), f"x['c'] = 3.5{{}} {LABEL}"),
    ("c", Decimal("3.5"), f"{{}} {LABEL}"),
    ("c", INF, f"x['c'] = inf{{}} {FINITE}"),
    ("c", LONG, "{} must have at most 1000 characters"),
    ("c", 2**64, "x['c'] = 18446744073709551616{} must be from -2**63 to 2**64 - 1"),
    ("c", (1, 2), f"x['c'] = (1, 2){{}} {UNFIT}"),
    ("c", b"red", f"x['c'] = b'red'{{}} {UNFIT}"),
    ("c", Hostile(), f"{{}} {UNFIT}"),
    ("u", INF, f"x['u'] = inf{{}} {FINITE}"),
    ("u", LONG, "{} must have at most 1000 characters"),
    ("u", [], f"x['u'] = []{{}} {UNFIT}"),
    ("day", 2.5, f"x['day'] = 2.5{{}} {LABEL}"),
    ("day", 1e300, "x['day'] = 1e+300{} must be from -2**63"),
    ("day", -INF, f"x['day'] = -inf{{}} {FINITE}"),
]
hostile_value = pytest.mark.parametrize(
    ("name", "value", "words"), HOSTILE_VALUES, ids=range(len(HOSTILE_VALUES))
)


@pytest.mark.parametrize("learn", [True, False])
@hostile_value
def test_bad_values_are_refused_and_nothing_is_learned(name, value, words, learn):
    features = known(categorical=["day"])
    features.matrix({"day": [3]}, learn=True)
    before, size = features.copy(), features.nbytes
    x = {"a": 5.0, "c": "blue", "new": "label", "u": None, "day": 4, name: value}
    assert not RowReader(features).read(x, learn)
    with pytest.raises(ValueError, match=re.escape(words.format(""))):
        features.read_one(x, learn)
    columns = {key: [good, None, good] for key, good in x.items()}
    columns[name] = [None, None, value]
    words = re.escape(words.format(" at position 2"))
    with pytest.raises(ValueError, match=words):
        features.read(columns, learn)
    table = np.empty((3, 4), dtype=object)
    table[2, features.index[name]] = value
    with pytest.raises(ValueError, match=words):
        features.read(table, learn)
    assert features == before
    assert features.nbytes == size


def test_of_several_bad_values_that_in_the_first_row_is_named(features):
    X = {"a": [1, 2, "x"], "c": ["red", 1.5, object()], "u": [object(), 1, 2]}
    for learn in (True, False):
        with pytest.raises(ValueError, match=r"^x\['u'\] = .* at position 0 "):
            features.read(X, learn)
        with pytest.raises(ValueError, match=r"^x\['c'\] = 1.5 at position 1 "):
            features.read({**X, "u": [None] * 3}, learn)
    Y = {"b": [1.0, "x", object()], "d": ["x", "y", 3.5]}
    with pytest.raises(ValueError, match=r"^x\['b'\] = 'x' at position 1 "):
        features.read(Y, learn=True)


X_OF_BAD_SHAPE = [
    (np.ones(3), "X has shape (3,): (rows, features) is expected"),
    (np.ones((2, 3, 1)), "X has shape (2, 3, 1)"),
    (1.0, "X has shape ()"),
    ("abc", "X has shape ()"),
    (None, "X has shape ()"),
    (object(), "X has shape ()"),
    ([[1.0, 2.0], [1.0]], "X has shape (2,)"),
    (np.ones((2, 2)), "X has 2 columns and there are 3 features"),
    (np.ones((0, 4)), "X has 4 columns and there are 3 features"),
    (np.ones((2, 3), dtype=complex), "X holds complex128"),
    (np.ones((2, 3), dtype="i4,f8"), "X holds ["),
    ([[1, b"red", 2]], "x['c'] = b'red' at position 0"),
    ({"a": [1, 2], "c": ["red"]}, "x['c'] has 1 values and x['a'] has 2"),
    ({"a": 1.0}, "x['a'] = 1.0: a column of values is expected"),
    ({"a": "abc"}, "x['a'] = 'abc': a column of values is expected"),
    ({"a": iter([1.0])}, "a column of values is expected"),
    ({"a": {1.0, 2.0}}, "x['a'] has shape ()"),
    ({"a": np.ones((1, 2))}, "x['a'] has shape (1, 2): one dimension is expected"),
    ({None: [1.0]}, "None is the name of a feature: a string of at most 1000 characters"),
    ({1.5: [1.0]}, "1.5 is the name of a feature"),
    ({True: [1.0]}, "True is the name of a feature"),
    ({("a", 1): [1.0]}, "('a', 1) is the name of a feature"),
    ({LONG: [1.0]}, "is the name of a feature"),
    ({2**63: [1.0]}, "9223372036854775808 is the name of a feature"),
]


@pytest.mark.parametrize(("X", "words"), X_OF_BAD_SHAPE)
def test_what_is_no_table_is_refused(features, X, words):
    before = features.copy()
    with pytest.raises(ValueError, match=re.escape(words)):
        features.read(X, learn=True)
    assert features == before


def test_tables_of_more_features_than_there_may_be_are_refused():
    with pytest.raises(ValueError, match="4097 features"):
        Features().read(np.ones((1, MAX_FEATURES + 1)), learn=True)
    with pytest.raises(ValueError, match="4097 features"):
        Features().read([dict.fromkeys(range(MAX_FEATURES + 1), 1.0)], learn=True)
    with pytest.raises(ValueError, match="4097 features"):
        Features().read_one(dict.fromkeys(range(MAX_FEATURES + 1), 1.0), learn=True)


def test_names_that_come_when_there_are_too_many_are_ignored():
    features = Features()
    features.matrix(np.ones((1, MAX_FEATURES)), learn=True)
    before = features.copy()
    assert RowReader(features).read({4095: 1.0}, learn=True)
    with pytest.warns(UserWarning, match="4096 features, the most .* further names are ignored"):
        row = features.read_one({"one more": 1.0, 5: 2.0}, learn=True)
    row.commit()
    assert (row.matrix.shape, row.matrix[0, 5]) == ((1, MAX_FEATURES), 2.0)
    with pytest.warns(UserWarning, match="4096 features"):
        features.read({"one more": [1.0], "another": [2.0]}, learn=True).commit()
    assert features == before


def test_a_stream_of_ever_new_names_goes_on_in_batches_and_one_by_one():
    rows = [{f"word {number}": 1.0, f"word {number + 1}": 2.0} for number in range(4200)]
    one, many = Features(), Features()
    with pytest.warns(UserWarning, match="further names are ignored"):
        matrix = many.matrix(rows, learn=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for row in rows:
            found = one.read_one(row, learn=True)
            found.commit()
    assert one == many
    assert len(one.names) == MAX_FEATURES
    np.testing.assert_array_equal(matrix[-1:], found.matrix)


@pytest.mark.parametrize("x", [None, 1.0, "abc", [("a", 1.0)], np.ones(2), {"a"}, object()])
def test_what_is_no_dict_is_refused(features, x):
    assert not RowReader(features).read(x, learn=True)
    with pytest.raises(ValueError, match=r"^x = .*: a dict of features is expected"):
        features.read_one(x, learn=True)


def test_a_feature_that_is_given_twice_is_refused(features):
    for name in ("a", "new"):
        x = {Key(name): 1.0, Key(name): 2.0}
        assert not RowReader(features).read(x, learn=True)
        with pytest.raises(ValueError, match=rf"x\['{name}'\] is given twice"):
            features.read_one(x, learn=True)


@pytest.mark.parametrize("categorical", ["abc", b"a", 3, None, [None], [1.5], [True], [("a",)]])
def test_names_of_categories_are_checked(categorical):
    with pytest.raises(ValueError, match=r"list of names is expected|is the name of"):
        Features(categorical)
