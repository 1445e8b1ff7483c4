"""What a tree knows of its columns: the numbers that rows become, and what is learned of them."""

import json
import pickle
import re
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import run_apart
from feature_cases import LONG, NAN, known, names, plain_values, same
from sapwood.rows._dict_row import RowReader, shared_place
from sapwood.rows.column import IDS
from sapwood.rows.features import MOST_LABELS, OTHERS, Features


@pytest.fixture
def features():
    return known()


# What rows become.


def test_names_and_codes_are_given_in_order_of_appearance():
    features = Features()
    X = {"b": [1, True, None], "a": ["y", None, "x"], 7: [NAN, NAN, NAN]}
    same(features.matrix(X, learn=True), [[1, 0, NAN], [1, NAN, NAN], [NAN, 1, NAN]])
    assert features.names == ["b", "a", 7]
    assert features.index == {"b": 0, "a": 1, 7: 2}
    assert features.kinds == ["number", "category", "unknown"]
    assert features.categories == [{}, {"y": 0, "x": 1}, {}]
    more = {"new": [2.5], 7: ["z"], "a": ["w"]}
    same(features.matrix(more, learn=True), [[NAN, 2, 0, 2.5]])
    assert features.names == ["b", "a", 7, "new"]
    assert features.kinds == ["number", "category", "category", "number"]


def test_without_learning_all_that_is_new_is_missing(features):
    before = features.copy()
    X = {"a": [2.0, 3.0], "c": ["blue", "red"], "u": [5.0, "text"], "new": ["?", object()]}
    same(features.matrix({**X, (1, 2): [0, 0]}, learn=False), [[2, NAN, NAN], [3, 0, NAN]])
    with pytest.warns(UserWarning, match="x names 'elsewhere' and no feature that the model knows"):
        same(features.matrix({"elsewhere": [1.0, 2.0]}, learn=False), [[NAN] * 3] * 2)
    dates = np.array(["2020-01-01"], dtype="M8[D]")
    with pytest.warns(UserWarning, match="'when'"):
        same(features.matrix({"when": dates}, learn=False), [[NAN] * 3])
    assert features == before
    same(Features().matrix(np.ones((2, 5)), learn=False), np.empty((2, 0)))


def test_columns_without_names_are_the_features_in_their_order():
    features = Features()
    same(features.matrix([[1, 2.5], [None, 4]], learn=True), [[1, 2.5], [NAN, 4]])
    assert features.names == [0, 1]
    same(features.matrix({1: [7]}, learn=True), [[NAN, 7]])
    features = known()
    same(
        features.matrix([[5, "red", None], [6, None, 1.5]], learn=True),
        [[5, 0, NAN], [6, NAN, 1.5]],
    )
    same(features.matrix(np.array([[5, "red", 2.5]], dtype=object), learn=False), [[5, 0, 2.5]])
    same(Features().matrix([["a", 1.0], ["b", 2]], learn=True), [[0, 1], [1, 2]])
    same(Features().matrix(np.array([["a", "b"], ["c", "a"]]), learn=True), [[0, 0], [1, 1]])


def test_an_array_of_doubles_is_copied_before_it_is_validated():
    """Another thread may write to the memory of the caller at any time."""
    features, X = Features(), np.arange(6.0).reshape(3, 2)
    for learn in (True, True, False):
        matrix = features.matrix(X, learn=learn)
        same(matrix, X)
        assert not np.shares_memory(matrix, X)
    X.flags.writeable = False
    same(features.matrix(X, learn=True), X)
    same(features.matrix(X[::-1], learn=True), X[::-1])
    same(features.matrix(np.asfortranarray(X), learn=True), X)
    same(features.matrix(X.astype(">f8"), learn=True), X)


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "i8", "f2", "f4", "g", ">i4", "O"])
def test_numbers_of_every_type_are_numbers(dtype):
    X = np.array([[0, 1], [1, 0]]).astype(dtype)
    same(Features().matrix(X, learn=True), [[0, 1], [1, 0]])
    features = Features()
    same(features.matrix({"a": X[:, 0], "b": X[:, 1]}, learn=True), [[0, 1], [1, 0]])
    same(features.read_one({"a": X[1, 0], "b": X[1, 1]}, learn=True).matrix, [[1, 0]])
    assert features.kinds == ["number", "number"]


def test_masked_entries_are_missing():
    mask = [[False, True], [False, False]]
    for dtype in ("f8", "i8", "O"):
        X = np.ma.array(np.array([[1, 2], [3, 4]], dtype=dtype), mask=mask)
        same(Features().matrix(X, learn=True), [[1, NAN], [3, 4]])
        same(Features(categorical=[1]).matrix(X, learn=True), [[1, NAN], [3, 0]])
        same(Features().matrix({"a": X[:, 0], "b": X[:, 1]}, learn=True), [[1, NAN], [3, 4]])


def test_no_rows_teach_nothing():
    for X in (np.empty((0, 3)), {"a": []}, {}, {"a": np.empty(0)}):
        features = Features()
        same(features.matrix(X, learn=True), np.empty((0, 0)))
        assert features == Features()
    same(known().matrix({"new": []}, learn=True), np.empty((0, 3)))
    same(known().read_one({}, learn=True).matrix, [[NAN, NAN, NAN]])


def test_a_plan_changes_nothing_before_it_is_committed(features):
    before = features.copy()
    plan = features.read({"c": ["blue"], "u": [1.0], "new": ["x"]}, learn=True)
    same(plan.matrix, [[NAN, 1, 1, 0]])
    assert features == before
    plan.commit()
    assert features.categories[1] == {"red": 0, "blue": 1}
    assert features.kinds == ["number", "category", "number", "category"]
    with pytest.raises(RuntimeError, match="changed while rows were read"):
        plan.commit()
    stale = features.read({"a": [1.0]}, learn=False)
    stale.commit()
    features.matrix({"newer": [1.0]}, learn=True)
    with pytest.raises(RuntimeError, match="changed while rows were read"):
        stale.commit()


# Categories.


def test_the_64th_label_makes_a_category_one_of_many():
    features = Features()
    labels = [f"label {number}" for number in range(100)]
    same(features.matrix({"c": labels[:OTHERS]}, learn=True)[:, 0], range(OTHERS))
    same(features.matrix({"c": ["never seen"]}, learn=False), [[OTHERS]])
    assert features.known.places(MOST_LABELS) == [-1]
    same(features.matrix({"c": labels}, learn=True)[:, 0], range(100))
    assert list(features.categories[0]) == labels
    assert features.known.places(MOST_LABELS) == [128]
    same(features.matrix({"c": labels[::-1]}, learn=False)[:, 0], range(99, -1, -1))
    # What was never learned has a code beyond all places.
    beyond = MOST_LABELS + MOST_LABELS // 4
    same(features.matrix({"c": ["never seen"]}, learn=False), [[beyond]])
    reader = RowReader(features)
    assert reader.read({"c": "never seen"}, learn=False)
    assert reader.row == [beyond]
    assert not reader.read({"c": "never seen"}, learn=True)
    assert reader.read({"c": "label 99"}, learn=True)
    assert reader.row == [99]


def test_labels_beyond_the_most_share_codes_and_are_not_stored():
    features = Features(most_labels=80)
    labels = [f"label {number}" for number in range(100)]
    expected = [*range(80), *(80 + shared_place(label, 20) for label in labels[80:])]
    same(features.matrix({"c": labels}, learn=True)[:, 0], expected)
    assert list(features.categories[0]) == labels[:80]
    assert features.known.places(80) == [100]
    assert set(expected[80:]) <= set(range(80, 100))
    size, reader = features.nbytes, RowReader(features)
    for number in range(1000):
        label = f"more {number}"
        assert reader.read({"c": label}, learn=number % 2 == 0)
        assert reader.row == [80 + shared_place(label, 20)]
    more = [f"yet more {number}" for number in range(1000)]
    shared = [80 + shared_place(label, 20) for label in more]
    same(features.matrix({"c": more}, learn=True)[:, 0], shared)
    assert np.bincount(np.array(shared) - 80, minlength=20).min() > 20
    assert features.nbytes == size


def test_long_labels_share_codes_where_memory_is_limited():
    features, long = Features(most_labels=80), "x" * 65
    few = [f"label {number}" for number in range(OTHERS)]
    same(features.matrix({"c": [*few, long]}, learn=True)[-1], [OTHERS])
    same(features.matrix({"c": [long, "y" * 65, "y" * 64]}, learn=True)[:, 0],
         [OTHERS, 80 + shared_place("y" * 65, 20), OTHERS + 1])  # fmt: skip
    reader = RowReader(features)
    assert reader.read({"c": "z" * 65}, learn=True)
    assert reader.row == [80 + shared_place("z" * 65, 20)]
    features = Features()
    features.matrix({"c": [*few, long, "y" * 65]}, learn=True)
    assert features.categories[0]["y" * 65] == OTHERS + 1


def fnv(label):
    """FNV-1a by its definition, over the characters of a label or over a number as one."""
    found = 14695981039346656037
    for each in [ord(letter) for letter in label] if isinstance(label, str) else [label % 2**64]:
        found = (found ^ each) * 1099511628211 % 2**64
    return found ^ found >> 32


@given(st.text(max_size=20) | st.integers(-(2**63), 2**64 - 1), st.integers(1, 2**14))
def test_shared_places_are_those_of_the_hash(label, places):
    assert shared_place(label, places) == fnv(label) % places


def test_what_is_planned_but_not_committed_leaves_no_trace():
    features = Features()
    labels = [f"label {number}" for number in range(70)]
    features.matrix({"c": labels}, learn=True)
    before, header = features.known, features.to_header()
    never = features.read({"c": ["lost", "lost too"]}, learn=True)
    assert never.known().counts == [72]
    assert features.known is before
    assert features.to_header() == header
    beyond = MOST_LABELS + MOST_LABELS // 4
    same(features.matrix({"c": ["lost"]}, learn=False), [[beyond]])
    reader = RowReader(features)
    assert reader.read({"c": "lost"}, learn=False)
    assert reader.row == [beyond]
    same(features.matrix({"c": ["found", "lost"]}, learn=True), [[70], [71]])
    assert list(features.categories[0]) == [*labels, "found", "lost"]
    twin = features.copy()
    features.matrix({"c": ["mine"]}, learn=True)
    twin.matrix({"c": ["yours"]}, learn=True)
    assert list(features.categories[0])[72:] == ["mine"]
    assert list(twin.categories[0])[72:] == ["yours"]
    rebuilt = Features.from_header(features.to_header())
    assert rebuilt == features
    assert rebuilt.nbytes == features.nbytes


def test_labels_that_come_one_by_one_are_not_copied_each_time():
    features = Features()
    features.matrix({"c": [f"label {number}" for number in range(100)]}, learn=True)
    table = features.known.tables[0]
    for number in range(50):
        features.matrix({"c": [f"new {number}"]}, learn=True)
        assert features.known.tables[0] is table


def test_ids_are_noticed_and_forgotten():
    features = Features(categorical=["id"])
    features.matrix({"id": list(range(IDS - 1))}, learn=True)
    last = features.read({"id": [IDS, 5, IDS + 1]}, learn=True)
    # With one row in fifty that brought nothing new they are labels, with one in two hundred ids.
    assert last.known(IDS * 1.02).kinds == ["category"]
    known = last.known(IDS * 1.005)
    assert (known.kinds, known.counts, known.places(MOST_LABELS)) == (["identifier"], [0], [0])
    features.known = known
    same(features.matrix({"id": [5, 7.0, None]}, learn=True), [[NAN]] * 3)
    reader = RowReader(features)
    assert reader.read({"id": 9.0}, learn=True)
    assert np.isnan(reader.row[0])
    assert not reader.read({"id": 9.5}, learn=True)
    assert features.nbytes < 5000
    assert Features.from_header(features.to_header()) == features
    assert features.known.nbytes == Features.from_header(features.to_header()).known.nbytes


@pytest.mark.parametrize("values", [["a", 3, "b", 3.0], ["a", 3.0, "b", 3], ["a", True, "b", 1.0]])
def test_whole_floats_are_labels_of_any_category(values):
    """JSON does not distinguish 3.0 from 3, and pandas makes floats of integers with gaps."""
    features, one_by_one = Features(), Features()
    assert features.matrix({"c": values}, learn=True).ravel().tolist() == [0, 1, 2, 1]
    codes = []
    for value in values:
        plan = one_by_one.read_one({"c": value}, learn=True)
        plan.commit()
        codes.append(plan.matrix[0, 0])
    assert codes == [0, 1, 2, 1]
    assert features == one_by_one


def test_a_declared_category_takes_numbers_as_labels():
    features = Features(categorical=["day", "never"])
    same(features.matrix({"day": [6.0, 7, None, np.int8(6)]}, learn=True), [[0], [1], [NAN], [0]])
    same(features.matrix({"day": np.array([7.0, NAN, 9.0])}, learn=True), [[1], [NAN], [2]])
    same(features.matrix({"day": np.array([9, 6])}, learn=False), [[2], [0]])
    same(features.matrix({"day": ["holiday", -0.0]}, learn=True), [[3], [4]])
    assert list(features.categories[0]) == [6, 7, 9, "holiday", 0]
    same(features.matrix(np.array([[7.0], [0.0]]), learn=True), [[1], [4]])
    assert Features(categorical=[1]).matrix([["a", 5], ["b", 5]], learn=True).tolist() == [
        [0, 0],
        [1, 0],
    ]


def test_whole_numbers_and_bools_are_labels_of_a_category(features):
    matrix = features.matrix({"c": [3, True, np.bool(True), 1, "3"]}, learn=True)
    assert matrix[:, 1].tolist() == [1, 2, 2, 2, 3]
    assert list(features.categories[1]) == ["red", 3, True, "3"]


def test_strings_of_digits_are_no_numbers():
    features = Features()
    features.matrix({"a": ["1", "2.5"]}, learn=True)
    assert features.kinds == ["category"]


class Colour(str):
    """A string that claims to be another."""

    __slots__ = ()

    def __str__(self):
        return "other"


def test_subclasses_become_what_they_are():
    features = Features()
    same(features.matrix({Colour("c"): [Colour("red"), np.str_("red")]}, learn=True), [[0], [0]])
    assert features.to_header()["labels"] == [["red"]]
    assert type(next(iter(features.categories[0]))) is type(features.names[0]) is str


# Frames.


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    frame = pandas.DataFrame(
        {
            "number": [1.5, None],
            "whole": pandas.array([1, None], dtype="Int64"),
            "flag": pandas.array([True, None], dtype="boolean"),
            "text": ["x", None],
            "kind": pandas.Categorical([20, 10], categories=[10, 20, 30]),
            "mixed": pandas.Series([Decimal("0.5"), pandas.NA], dtype=object),
            "no date": pandas.Series([pandas.NaT, 1], dtype=object),
            "none": [None, None],
        }
    ).set_axis([5, 5])
    features = Features()
    rows = [[1.5, 1, 1, 0, 0, 0.5, NAN, NAN], [NAN, NAN, NAN, NAN, 1, NAN, 1, NAN]]
    same(features.matrix(frame, learn=True), rows)
    kinds = ["number", "number", "number", "category", "category", "number", "number", "unknown"]
    assert features.kinds == kinds
    assert features.categories[4] == {20: 0, 10: 1}
    assert (
        Features().matrix({name: frame[name] for name in frame}, learn=True).tolist()[0][:6]
        == rows[0][:6]
    )
    same(features.matrix(frame[["text", "whole"]], learn=False)[0], [NAN, 1, NAN, 0] + 4 * [NAN])
    same(features.matrix(pandas.DataFrame(index=range(2)), learn=True), np.full((2, 8), NAN))
    same(Features().matrix(pandas.DataFrame(np.eye(2)), learn=True), np.eye(2))
    late = pandas.DataFrame({"number": [2.5], "when": pandas.to_datetime(["2020-01-01"])})
    assert features.matrix(late, learn=False)[0, 0] == 2.5
    assert features.matrix(late, learn=True)[0, -1] == 1_577_836_800.0  # seconds since 1970
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="unique column names"):
        features.matrix(twice, learn=True)
    with pytest.raises(ValueError, match=r"X has shape \(2,\)"):
        features.matrix(frame["number"], learn=True)
    intervals = pandas.DataFrame({"bin": pandas.cut([1.0, 2.0], [0, 1, 2])})
    with pytest.raises(ValueError, match=r"x\['bin'\] = Interval.* at position 0 must be"):
        features.matrix(intervals, learn=True)


def test_a_categorical_of_pandas_is_a_category_even_if_all_are_missing():
    pandas = pytest.importorskip("pandas")
    features = Features()
    features.matrix({"c": pandas.Categorical([None], categories=[1.0, 2.5])}, learn=True)
    assert features.kinds == ["category"]
    same(features.matrix({"c": pandas.Categorical([1.0, None])}, learn=True), [[0], [NAN]])
    assert features.categories == [{1: 0}]
    with pytest.raises(
        ValueError, match=r"x\['c'\] = 2.5 at position 1 must be a string or a whole"
    ):
        features.matrix({"c": pandas.Categorical([1.0, 2.5])}, learn=True)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_polars_and_pyarrow(library):
    module = pytest.importorskip(library)
    pytest.importorskip("narwhals")
    content = {"a": [1, None], "t": ["x", None], "f": [True, None], "d": [Decimal("0.5"), None]}
    if library == "polars":
        frame = module.DataFrame(content).with_columns(
            k=module.Series(["v", "w"], dtype=module.Categorical)
        )
        frame = frame.with_columns(e=module.Series(["w", None], dtype=module.Enum(["v", "w"])))
    else:
        coded = module.array(["v", "w"]).dictionary_encode()
        numbers = module.DictionaryArray.from_arrays(module.array([1, None]), module.array([5, 6]))
        frame = module.table({**content, "k": coded, "e": numbers})
    features = Features()
    rows = [[1, 0, 1, 0.5, 0, 0], [NAN, NAN, NAN, NAN, 1, NAN]]
    same(features.matrix(frame, learn=True), rows)
    assert features.names == ["a", "t", "f", "d", "k", "e"]
    assert features.kinds == ["number", "category", "number", "number", "category", "category"]


def test_frames_need_narwhals_and_arrays_do_not_import_pandas():
    program = """
import sys
sys.modules["narwhals"] = sys.modules["narwhals.stable.v2"] = None
from sapwood.rows.features import Features
Features().matrix({"a": [1.0, None], "b": ["x", "y"]}, learn=True)
Features().matrix([[1.0]], learn=True)
class Frame:
    __arrow_c_stream__ = None
try:
    Features().matrix(Frame(), learn=True)
except ImportError as error:
    print(error)
print("pandas" in sys.modules)
"""
    assert run_apart(program).startswith("X is a Frame: install narwhals")
    assert run_apart(program).endswith("False\n")


# Saving.


def richly():
    features = Features(categorical=["day", 5])
    features.matrix({"a": [1.0], "day": [6], "c": ["é"], 3: [None], "d": [""]}, learn=True)
    features.matrix({"day": [True, 2**64 - 1, "x"]}, learn=True)
    return features


@given(st.lists(st.dictionaries(names, plain_values, min_size=1), max_size=12))
def test_a_header_brings_all_back(rows):
    features = Features(categorical=["day"])
    for x in rows:
        try:
            features.read_one(x, learn=True).commit()
        except ValueError:
            continue
    for twin in (
        Features.from_header(json.loads(json.dumps(features.to_header()))),
        features.copy(),
        pickle.loads(pickle.dumps(features)),
    ):
        assert twin == features
        assert twin.nbytes == pytest.approx(features.nbytes, rel=0.5)
        assert (twin.index, twin.kinds) == (features.index, features.kinds)
        twin.matrix({"another": [1.0]}, learn=True)
        assert twin != features


def test_a_header_keeps_types():
    header = richly().to_header()
    twin = Features.from_header(json.loads(json.dumps(header)))
    assert json.dumps(twin.to_header()) == json.dumps(header)
    assert header["categorical"] == [5, "day"]
    assert richly() != "something else"


def changed(**fields):
    return richly().to_header() | fields


BAD_HEADERS = [
    (None, "fields"),
    ([], "fields"),
    ({}, "fields"),
    (changed(more=1), "fields"),
    (changed(names="abcde"), "no list"),
    (changed(names={}), "no list"),
    (changed(names=["a"]), "lengths"),
    (changed(names=["a", "day", "c", 3, "a"]), "a name occurs twice"),
    (changed(names=["a", "day", "c", 3, 3.0]), "3.0 is no name"),
    (changed(names=["a", "day", "c", 3, True]), "True is no name"),
    (changed(names=["a", "day", "c", 3, None]), "None is no name"),
    (changed(names=["a", "day", "c", 3, ["d"]]), "is no name"),
    (changed(names=["a", "day", "c", 3, 2**63]), "is no name"),
    (changed(names=["a", "day", "c", 3, LONG]), "is no name"),
    (changed(kinds=["number"] * 5), "has labels"),
    (changed(kinds=["colour"] * 5), "'colour' is no kind"),
    (changed(kinds=[[]] * 5), "is no kind"),
    (changed(labels=[[], [6, 6], [], [], []]), "a label occurs twice"),
    (changed(labels=[[], [1, True], [], [], []]), "a label occurs twice"),
    (changed(labels=[[], [1.5], [], [], []]), "1.5 is no label"),
    (changed(labels=[[], [None], [], [], []]), "None is no label"),
    (changed(labels=[[], [2**64], [], [], []]), "is no label"),
    (changed(labels=[[], [LONG], [], [], []]), "is no label"),
    (changed(labels=[[], list(range(2**16 + 1)), [], [], []]), "labels are wrong"),
    (changed(labels=[[], {}, [], [], []]), "labels are wrong"),
    (changed(labels=[["x"], [], [], [], []]), "'a' has labels"),
    (changed(categorical=["a"]), "a kind is wrong"),
    (changed(categorical=["day", "day"]), "a declared name occurs twice"),
    (changed(categorical=[1.5]), "1.5 is no declared name"),
    (
        {
            "names": list(range(5000)),
            "kinds": ["number"] * 5000,
            "labels": [[]] * 5000,
            "categorical": [],
        },
        "too many features",
    ),
]


@pytest.mark.parametrize(("header", "words"), BAD_HEADERS)
def test_a_bad_header_is_refused(header, words):
    with pytest.raises(
        ValueError, match=f"^the features are not as they were saved: .*{re.escape(words)}"
    ):
        Features.from_header(header)


def test_bytes_are_counted():
    features = Features()
    features.matrix({f"name {n}": [f"label {n}"] for n in range(500)}, learn=True)
    parts = [features, features.categorical, features.names, features.index, features.kinds]
    parts += [features.categories, *features.names, *features.index.values(), *features.categories]
    shared = sum(map(sys.getsizeof, range(257)))
    labels = sum(sys.getsizeof(label) for table in features.categories for label in table)
    # Never less than there is, whatever led to it; and each name twice, as the reader keeps keys.
    least = sum(map(sys.getsizeof, parts)) + labels - shared
    least += sum(map(sys.getsizeof, features.names))
    assert least <= features.nbytes < 1.5 * least
    assert repr(features) == "<Features: 0 number, 500 category, 0 unknown, 0 identifier>"
