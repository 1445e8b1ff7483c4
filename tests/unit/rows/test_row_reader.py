"""The quick way in for one dict, and the law that all ways in are the same."""

import doctest
import sys
import warnings
from collections import OrderedDict, UserDict
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import run_apart
from feature_cases import INF, NAN, Key, known, names, same, values
from sapwood.rows import _dict_row
from sapwood.rows._dict_row import RowReader, first_infinite
from sapwood.rows.features import Features


@pytest.fixture
def features():
    return known()


@pytest.mark.parametrize("kind", [UserDict, OrderedDict, MappingProxyType])
def test_any_mapping_may_be_read_slowly(features, kind):
    x = kind({"c": "blue", "a": 2})
    assert not RowReader(features).read(x, learn=True)
    same(features.read_one(x, learn=True).matrix, [[2, 1, NAN]])


def test_the_reader_reads_what_is_plain(features):
    features.matrix({"c": ["blue", 3]}, learn=True)
    reader = RowReader(features)
    for x, row in [
        ({"a": 2.5, "c": "blue"}, [2.5, 1, NAN]),
        ({"c": 3, "a": True}, [1, 2, NAN]),
        ({"c": None, "a": -7}, [-7, NAN, NAN]),
        ({"a": NAN, "c": NAN, "u": None}, [NAN, NAN, NAN]),
        ({}, [NAN, NAN, NAN]),
        ({"a": 1e308}, [1e308, NAN, NAN]),
        ({"a": np.float64(0.5), "c": np.str_("red")}, [0.5, 0, NAN]),
        ({"a": np.float32(0.5), "c": np.int8(3)}, [0.5, 2, NAN]),
        ({"a": np.int64(-3)}, [-3, NAN, NAN]),
        ({"a": np.bool(True)}, [1, NAN, NAN]),
        ({"".join(["a", ""]): 4.0, "c": "".join(["bl", "ue"])}, [4, 1, NAN]),
    ]:
        for learn in (True, False):
            assert reader.read(x, learn)
            same(reader.row, row)
            same(features.read_one(x, learn).matrix[0], row)
    for x in ({"c": "new"}, {"u": 1.0}, {"u": "text"}, {"new": None}, {"new": 1.0}):
        assert not reader.read(x, learn=True)
        for _ in range(2):
            # Where no name is known, the slow way has a word to say.
            assert reader.read(x, learn=False) == ("new" not in x)
            same(reader.row, [NAN, NAN, NAN])
    for x in (
        {"a": "1"},
        {"c": 1.5},
        {"a": INF},
        {"a": 10**400},
        {"c": 10**400},
        {"a": np.str_("1")},
    ):
        assert not reader.read(x, learn=False)
    for x in ({True: 1.0}, {None: 1.0}, {1.0: 1.0}, {Key("a"): 1.0}):
        assert not reader.read(x, learn=False)


def test_the_reader_reads_declared_categories():
    features = Features(categorical=["day"])
    features.matrix({"day": [6, "x"]}, learn=True)
    reader = RowReader(features)
    for value, code in [
        (6, 0),
        (6.0, 0),
        (np.float64(6), 0),
        (np.float32(6), 0),
        ("x", 1),
        (NAN, NAN),
    ]:
        assert reader.read({"day": value}, learn=True)
        same(reader.row, [code])
    assert not reader.read({"day": 7.0}, learn=True)
    assert reader.read({"day": 7.0}, learn=False)
    for value in (2.5, INF, 1e300, 2**70):
        assert not reader.read({"day": value}, learn=False)


def test_the_reader_follows_the_features(features):
    reader = RowReader(features)
    row = reader.row
    features.read_one({"new": 1.0, "c": "blue", "u": 2.0}, learn=True).commit()
    assert reader.read({"new": 3.0}, learn=True)  # a new column is noticed
    assert reader.row is not row
    same(reader.row, [NAN, NAN, NAN, 3])
    reader.refresh()
    assert reader.read({"new": 3.0, "u": 2.0, "c": "blue"}, learn=True)
    same(reader.row, [NAN, 1, 2, 3])
    assert reader.width == 4
    assert reader.nbytes > 4 * 8


def test_a_reader_that_was_never_initialised_says_so():
    raw = RowReader.__new__(RowReader)
    for use in (raw.refresh, lambda: raw.read({}, learn=True)):
        with pytest.raises(RuntimeError):
            use()


def test_long_dicts_are_read(features):
    reader = RowReader(features)
    x = {f"unknown {number}": float(number) for number in range(10_000)} | {"a": 2.0}
    for _ in range(3):
        assert reader.read(x, learn=False)
        same(reader.row, [2, NAN, NAN])
    assert reader.nbytes < 300_000


HOSTILE_ROWS = """
import gc
from sapwood.rows._dict_row import RowReader
from sapwood.rows.features import Features
import numpy as np

features = Features()
features.matrix({"a": [1.0], "b": [1.0], "c": ["x"]}, learn=True)
reader = RowReader(features)

class Number:
    def __init__(self, act):
        self.act = act
    def __float__(self):
        self.act()
        return 1.0

class Name(str):
    def __hash__(self):
        self.act()
        return hash("a")
    def __eq__(self, other):
        self.act()
        return True

acts = [
    lambda: x.clear(),
    lambda: x.update({str(n): n for n in range(1000)}),
    lambda: features.matrix({f"new {len(features)}": [1.0]}, learn=True),
    lambda: features.matrix({"c": [f"new {features.version}"]}, learn=True),
    lambda: reader.read({"a": 2.0}, True),
    lambda: reader.refresh(),
    gc.collect,
]
uses = [
    reader.read,
    lambda *both: features.read_one(*both).commit(),
    lambda *both: features.read(*both).commit(),
]
told = set()
for act in acts:
    for value in (Number(act), [Number(act)]):
        for learn in (True, False):
            for use in uses:
                name = Name("b")
                name.act = int
                x = {"a": value, "b": np.float32(1), "c": Name("x"), "d": value}
                x[name] = 1.0
                name.act = act
                try:
                    use(x, learn)
                except (ValueError, RuntimeError) as error:
                    told.add(type(error).__name__)
reader.refresh()
assert reader.read({"a": 2.5, "b": 1, "c": "x"}, True)
print(reader.row[:3], sorted(told))
"""


def test_rows_that_change_what_they_are_read_by_do_not_crash():
    assert run_apart(HOSTILE_ROWS) == "[2.5 1.  0. ] ['RuntimeError', 'ValueError']\n"


def test_the_reader_leaks_nothing(features):
    reader = RowReader(features)
    names = ["".join(["a"]), "".join(["c"])]
    values = [1.5, np.float32(2.5), "red"]
    before = [sys.getrefcount(thing) for thing in (*names, *values)]
    for _ in range(100):
        reader.read({names[0]: values[0], names[1]: values[2]}, learn=True)
        reader.read({names[1]: values[2], names[0]: values[1]}, learn=True)
        reader.read({names[0]: values[1], names[1]: object()}, learn=True)
    del reader
    assert [sys.getrefcount(thing) for thing in (*names, *values)] == before


def test_the_examples_of_the_compiled_module():
    failed, attempted = doctest.testmod(_dict_row)
    assert attempted > 0
    assert failed == 0


# Laws.


@given(
    st.lists(st.dictionaries(names, values), max_size=12),
    st.lists(st.booleans(), min_size=12),
)
def test_the_quick_way_and_the_slow_way_agree(rows, learned):
    """What the reader reads is what `read_one` reads; what it cannot is judged by that alone."""
    features = known(categorical=["day"])
    reader = RowReader(features)
    for x, learn in zip(rows, learned, strict=False):
        before = features.copy()
        is_plain = reader.read(x, learn)
        row = reader.row.copy()
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "x names .* and no feature that the model knows")
                plan = features.read_one(x, learn)
        except ValueError:
            assert not is_plain
            assert features == before
            continue
        plan.commit()
        assert learn or features == before
        if is_plain:
            same(row, plan.matrix[0])
            assert features == before
        reader.refresh()
        assert reader.width == plan.matrix.shape[1] == len(features.names)


@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=8))
def test_rows_one_by_one_and_all_at_once_are_the_same(rows):
    """The same numbers, the same features; or the same complaint, about the first bad row."""
    single, batch, array = (Features(categorical=["day", 2]) for _ in range(3))
    rows = [dict(zip(("a", "b", "day"), row, strict=True)) for row in rows]
    numbers, complaint = [], None
    for position, x in enumerate(rows):
        try:
            plan = single.read_one(x, learn=True)
        except ValueError as error:
            complaint = str(error), position
            break
        plan.commit()
        numbers.append(plan.matrix[0])
    columns = {name: [x[name] for x in rows] for name in rows[0]}
    table = np.empty((len(rows), 3), dtype=object)
    for place, column in enumerate(columns.values()):
        for row, value in enumerate(column):
            table[row, place] = value
    if complaint is None:
        same(batch.matrix(columns, learn=True), numbers)
        assert batch == single
        same(array.matrix(table, learn=True), numbers)
        assert (array.kinds, array.categories) == (single.kinds, single.categories)
    else:
        with pytest.raises(ValueError, match=f" at position {complaint[1]} ") as caught:
            batch.read(columns, learn=True)
        assert str(caught.value).replace(f" at position {complaint[1]} ", " ") == complaint[0]
        with pytest.raises(ValueError, match=f" at position {complaint[1]} "):
            array.read(table, learn=True)
        assert batch == array.copy() == Features(categorical=["day", 2])


@given(st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=1, max_size=6))
def test_arrays_and_columns_of_doubles_are_the_same(rows):
    X = np.array(rows)
    array, columns = Features(), Features()
    bad = np.argwhere(np.isinf(X))
    if len(bad):
        assert first_infinite(X) == tuple(bad[0])
        for features, form in (
            (array, X),
            (array, rows),
            (columns, {n: X[:, n] for n in range(3)}),
        ):
            with pytest.raises(
                ValueError, match=rf"^x\[{bad[0][1]}\] = -?inf at position {bad[0][0]} "
            ):
                features.matrix(form, learn=True)
        assert array == columns == Features()
        return
    assert first_infinite(X) is None
    same(array.matrix(X, learn=True), X)
    same(columns.matrix({n: X[:, n] for n in range(3)}, learn=True), X)
    assert array == columns
    reader = RowReader(array)
    for row, x in zip(X, rows, strict=True):
        if reader.read(dict(enumerate(x)), learn=True):
            same(reader.row, row)
        else:
            assert "unknown" in array.kinds or np.isnan(row).any()
