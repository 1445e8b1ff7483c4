"""Frames: the same table in every library is the same model, and predictions come back in kind."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import run_apart
from feature_cases import NAN, known, same
from sapwood import HoeffdingTreeRegressor
from sapwood.rows.column import Coded
from sapwood.rows.features import Features
from tree_cases import unchanged

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
nw = pytest.importorskip("narwhals.stable.v2")

QUICK = {"grace_period": 5, "delta": 0.9, "tau": 0.9}
LABELS = ["red", "blue", "", "é", "3"]
UNUSED = ["yellow", "black"]

# The ways to write a column of each kind; the last two of text are categories.

PANDAS = {
    "number": ["float64", "Float64", "double[pyarrow]", "object"],
    "single": ["float32", "Float32", "float[pyarrow]"],
    "whole": ["Int64", "int64[pyarrow]", "object"],
    "flag": ["boolean", "bool[pyarrow]", "object"],
    "text": ["str", "string[python]", "string[pyarrow]", "object", "category", "dictionary"],
}
POLARS = {
    "number": [pl.Float64], "single": [pl.Float32], "whole": [pl.Int64], "flag": [pl.Boolean],
    "text": [pl.String, pl.Categorical, pl.Enum],
}  # fmt: skip
ARROW = {
    "number": [pa.float64()], "single": [pa.float32()], "whole": [pa.int64()], "flag": [pa.bool_()],
    "text": [pa.string(), pa.large_string(), pa.string_view(), "dictionary", "dictionary"],
}  # fmt: skip
VALUES = {
    "number": st.floats(-1e9, 1e9) | st.just(NAN),
    "single": st.floats(width=32, min_value=-(2.0**20), max_value=2.0**20),
    "whole": st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9),
    "flag": st.booleans(),
    "text": st.sampled_from(LABELS),
}


@st.composite
def tables(draw):
    """The kinds of columns, columns of values, and y."""
    rows = draw(st.integers(1, 30))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = {}
    for place, kind in enumerate(kinds):
        values = VALUES[kind] | st.none() if draw(st.booleans()) else VALUES[kind]
        columns[f"{kind} {place}"] = draw(st.lists(values, min_size=rows, max_size=rows))
    y = draw(st.lists(st.integers(-99, 99), min_size=rows, max_size=rows))
    return columns, [float(value) for value in y]


def entries_of(values, draw):
    """The entries of a dictionary for values: in any order, and some that do not occur."""
    occurring = {value for value in values if value is not None}
    return draw(st.permutations([*sorted(occurring), *UNUSED]))


def dictionary(values, draw):
    entries = entries_of(values, draw)
    indices = [None if value is None else entries.index(value) for value in values]
    index_type = draw(st.sampled_from([pa.int8(), pa.uint16(), pa.int64()]))
    return pa.DictionaryArray.from_arrays(pa.array(indices, index_type), pa.array(entries))


def chosen(draw, ways, name, values):
    """A way to write a column; text that is missing everywhere is no category."""
    kind = name.split()[0]
    plain = len(ways["text"]) - 2 if kind == "text" and set(values) == {None} else None
    return draw(st.sampled_from(ways[kind][:plain]))


def pandas_series(values, dtype, draw):
    if dtype == "category":
        return pd.Series(pd.Categorical(values, categories=entries_of(values, draw)))
    if dtype == "dictionary":
        return pd.Series(pd.arrays.ArrowExtensionArray(dictionary(values, draw)))
    if dtype == "object" or None not in values:
        return pd.Series(values, dtype=dtype)
    return pd.Series([NAN if value is None else value for value in values], dtype=dtype)


def as_pandas(columns, draw):
    dtypes = {name: chosen(draw, PANDAS, name, values) for name, values in columns.items()}
    frame = pd.DataFrame(
        {name: pandas_series(columns[name], dtypes[name], draw) for name in dtypes}
    )
    return frame.set_axis(draw(st.permutations(range(len(frame)))))


def as_polars(columns, draw):
    series = []
    for name, values in columns.items():
        dtype = chosen(draw, POLARS, name, values)
        dtype = pl.Enum(entries_of(values, draw)) if dtype is pl.Enum else dtype
        cut = draw(st.integers(0, len(values)))
        parts = [pl.Series(name, part, dtype) for part in (values[:cut], values[cut:])]
        series.append(parts[0].append(parts[1]))
    return pl.DataFrame(series)


def arrow_array(values, kind, draw):
    """An array that starts and ends within a longer one."""
    longer = [*values[:2], *values, *values[:1]]
    array = dictionary(longer, draw) if kind == "dictionary" else pa.array(longer, kind)
    return array.slice(len(values[:2]), len(values))


def as_table(columns, draw):
    arrays = {}
    for name, values in columns.items():
        kind = chosen(draw, ARROW, name, values)
        cut = draw(st.integers(0, len(values)))
        parts = [part for part in (values[:cut], values[cut:]) if part]
        index = pa.dictionary(pa.int16(), pa.string()) if kind == "dictionary" else kind
        arrays[name] = pa.chunked_array([arrow_array(p, kind, draw).cast(index) for p in parts])
    return pa.table(arrays)


def as_batch(columns, draw):
    kinds = {name: chosen(draw, ARROW, name, values) for name, values in columns.items()}
    return pa.record_batch({name: arrow_array(columns[name], kinds[name], draw) for name in kinds})


class Source:
    """Something that streams a table, and is no frame of any library."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


MAKERS = {
    "pandas": as_pandas,
    "polars": as_polars,
    "table": as_table,
    "record batch": as_batch,
    "reader": lambda columns, draw: as_table(columns, draw).to_reader(),
    "source": lambda columns, draw: Source(as_table(columns, draw)),
    "narwhals": lambda columns, draw: nw.from_native(as_polars(columns, draw)),
}


@pytest.mark.parametrize("library", MAKERS)
@settings(max_examples=settings.default.max_examples // 3)
@given(tables(), st.data())
def test_a_table_is_the_same_in_every_library_and_row_by_row(library, table, data):
    columns, y = table
    single, plain, tree = (HoeffdingTreeRegressor(**QUICK) for _ in range(3))
    make = MAKERS[library]
    cut = data.draw(st.integers(0, len(y) - 1))
    for start, stop in ((0, cut), (cut, len(y))):
        if start < stop:
            rows = {name: values[start:stop] for name, values in columns.items()}
            targets = y[start:stop]
            one_by_one = []
            for place, target in enumerate(targets):
                x = {name: values[place] for name, values in rows.items()}
                one_by_one.append(single.predict_one(x))
                single.learn_one(x, target)
            predictions = tree.predict_learn_many(make(rows, data.draw), targets)
            assert np.asarray(predictions).tolist() == one_by_one
            assert plain.predict_learn_many(rows, targets).tolist() == one_by_one
    assert tree.to_bytes() == plain.to_bytes() == single.to_bytes()
    predictions = np.asarray(tree.predict_many(make(columns, data.draw)))
    assert predictions.tolist() == plain.predict_many(columns).tolist()


# -- categories -----------------------------------------------------------------------------------


def categoricals(values, entries):
    """The same categorical in each library."""
    codes = [None if value is None else entries.index(value) for value in values]
    arrow = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(entries))
    yield pd.DataFrame({"c": pd.Categorical(values, categories=entries)})
    yield pd.DataFrame({"c": pd.arrays.ArrowExtensionArray(arrow)})
    yield pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(entries))})
    yield pl.DataFrame({"c": pl.Series([*entries, *values], dtype=pl.Categorical)})[len(entries) :]
    yield pa.table({"c": arrow})
    yield {"c": pd.Categorical(values, categories=entries)}
    yield {"c": pd.Series(values, dtype=pd.CategoricalDtype(entries))}


def test_only_labels_that_occur_are_learned_in_the_order_of_their_rows():
    for X in categoricals(["b", None, "a", "b"], ["unused", "a", "b", "c"]):
        features = Features()
        same(features.matrix(X, learn=True), [[0], [NAN], [1], [0]])
        assert features.to_header()["labels"] == [["b", "a"]]


def test_of_a_long_list_of_categories_but_few_rows():
    entries = [f"label {number}" for number in range(1000)]
    for X in categoricals(["label 999", "label 7", None, "label 999"], entries):
        same(Features().matrix(X, learn=True), [[0], [1], [NAN], [0]])
    for X in categoricals(["label 999", "label 7"], entries):
        same(Features().matrix(X, learn=True), [[0], [1]])


def test_the_64th_label_has_a_code_too():
    labels = [f"label {number}" for number in range(100)]
    codes = np.arange(100)
    for X in categoricals(labels[::-1] + labels, labels):
        same(Features().matrix(X, learn=True)[:, 0], [*codes, *codes[::-1]])


def test_missing_everywhere_a_categorical_is_a_category_still():
    for X in categoricals([None, None], ["a"]):
        features = Features()
        same(features.matrix(X, learn=True), [[NAN], [NAN]])
        assert features.kinds == ["category"]


def test_dictionaries_of_arrow_may_repeat_miss_and_differ():
    def coded(codes, entries):
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(entries))

    for chunks, codes, labels in [
        ([coded([1, 0, 2], ["a", "a", "b"])], [0, 0, 1], ["a", "b"]),
        ([coded([1, 0, None], ["a", None])], [NAN, 0, NAN], ["a"]),
        ([coded([1, 0], ["a", "b"]), coded([0, 1], ["c", "b"])], [0, 1, 2, 0], ["b", "a", "c"]),
        ([coded([1, 0], ["a", None]), coded([0], ["b"])], [NAN, 0, 1], ["a", "b"]),
        ([coded([1, 0], [2.0, 1.0]), coded([0], [2.0])], [0, 1, 1], [1, 2]),
        ([], [], []),
    ]:
        features = Features()
        column = pa.chunked_array(chunks, None if chunks else pa.dictionary(pa.int8(), pa.utf8()))
        same(features.matrix(pa.table({"c": column}), learn=True)[:, :1].ravel(), codes)
        assert features.to_header()["labels"] == ([labels] if chunks else [])


@given(st.lists(st.integers(-1, 5) | st.integers(0, 10**9), max_size=30))
def test_codes_are_what_a_loop_makes_of_them(codes):
    coded = Coded(np.array(codes, dtype=np.int64), lambda rows: [f"value {codes[r]}" for r in rows])
    first = [row for row, code in enumerate(codes) if code >= 0 and code not in codes[:row]]
    assert coded.first_rows.tolist() == first
    assert coded.distinct() == [f"value {codes[row]}" for row in first]
    numbers = {codes[row]: float(place) for place, row in enumerate(first)}
    spread = coded.spread(np.arange(len(first), dtype=float))
    np.testing.assert_array_equal(spread, [numbers.get(code, NAN) for code in codes])
    assert [coded[row] for row in first] == coded.distinct()
    assert len(coded) == len(codes)


# -- numbers --------------------------------------------------------------------------------------


def test_a_frame_that_is_a_matrix_already_is_copied_at_once():
    X = np.arange(12.0).reshape(4, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], copy=False)
    features = Features()
    for table in (frame, {name: X[:, place] for place, name in enumerate("abc")}):
        matrix = features.matrix(table, learn=True)
        same(matrix, X)
        assert not np.shares_memory(matrix, X)
    column = np.arange(5.0)
    for table in (pl.DataFrame({"a": column}), pa.table({"a": column}), {"a": column}):
        matrix = Features().matrix(table, learn=True)
        same(matrix[:, 0], column)
        assert not np.shares_memory(matrix, np.asarray(table["a"]))
    for table, expected in [
        (frame[["b", "a", "c"]], X),
        (frame[["a", "b"]], np.column_stack([X[:, :2], np.full(4, NAN)])),
        (frame[::-1], X[::-1]),
        (frame[:1], X[:1]),
        ({"a": X[:, 0], "b": X[:, 2], "c": X[:, 1]}, X[:, [0, 2, 1]]),
        ({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2].copy()}, X),
        (
            {"a": X[:, 0], "b": X.ravel()[1:5], "c": X[:, 2]},
            [[0, 1, 2], [3, 2, 5], [6, 3, 8], [9, 4, 11]],
        ),
        ({"a": X[::2, 0], "b": X[::2, 1], "c": X[::2, 2]}, X[::2]),
    ]:
        same(features.matrix(table, learn=True), expected)


def test_a_matrix_that_is_not_copied_is_checked_all_the_same():
    X = np.array([[1.0, 2.0, 3.0], [4.0, NAN, 6.0]])
    frame = pd.DataFrame(X, columns=["a", "u", "b"], copy=False)
    features = Features(categorical=["b"])
    same(features.matrix(frame, learn=True), [[1, 2, 0], [4, NAN, 1]])
    features = Features()
    features.matrix({"a": [1.0], "u": [None], "b": [1.0]}, learn=True)
    same(features.matrix(frame, learn=False), [[1, NAN, 3], [4, NAN, 6]])
    same(features.matrix(frame, learn=True), X)
    assert features.kinds == ["number"] * 3
    X[1, 2] = math.inf
    with pytest.raises(ValueError, match=r"x\['b'\] = inf at position 1 must be finite"):
        features.matrix({"b": X[:, 2], "u": X[:, 1], "a": X[:, 0]}, learn=True)


def test_many_rows_are_copied_in_blocks():
    X = np.random.default_rng(1).random((100_000, 3))
    columns = {"a": X[:, 0].copy(), "b": X[:, 1].copy(), "c": X[:, 2].copy()}
    features = Features()
    for table in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        same(features.matrix(table, learn=True), X)
    X[:, :2] = NAN
    same(features.matrix({"c": columns["c"]}, learn=True), X)


def test_numbers_that_numpy_has_no_type_for():
    whole, decimals = pl.Series([2**100, None], dtype=pl.Int128), [Decimal(2**100), None]
    for X in (*map(pl.DataFrame, ({"a": whole}, {"a": decimals})), pa.table({"a": decimals})):
        same(Features().matrix(X, learn=True), [[2.0**100], [NAN]])


def test_a_declared_category_has_whole_numbers_to_the_last_digit():
    days = [2**60 + 1, None, 2**60]
    by_pandas = [pd.DataFrame({"day": days}, dtype=dtype) for dtype in ("Int64", "int64[pyarrow]")]
    for X in (*by_pandas, pl.DataFrame({"day": days}), pa.table({"day": days})):
        features = Features(categorical=["day"])
        same(features.matrix(X, learn=True), [[0], [NAN], [1]])
        assert features.to_header()["labels"] == [[2**60 + 1, 2**60]]


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("a", [1.0, None, math.inf]),
        ("a", ["warm", None, "cold"]),
        ("c", [None, 2.5, 3.0]),
        ("c", ["red", None, "x" * 2000]),
        ("u", ["red", None, "x" * 2000]),
        ("a", [b"warm", None]),
        ("c", [[1], None]),
    ],
)
def test_the_words_are_the_same_for_all(name, values):
    X = {"new": [1.0] * len(values), name: values}
    for learn in (True, False):
        features = known()
        with pytest.raises(ValueError, match=r" at position \d must ") as plain:
            features.read(X, learn)
        tables = [pd.DataFrame(X), pl.DataFrame(X), pa.table(X), pa.record_batch(X)]
        if isinstance(values[0], str):
            tables += [X | {name: pd.Categorical(values)}]
            tables += [pl.DataFrame(X, schema_overrides={name: pl.Categorical})]
        for table in tables:
            with pytest.raises(ValueError, match=r" at position \d must ") as error:
                features.read(table, learn)
            assert str(error.value) == str(plain.value)
        assert features == known()


def test_text_that_is_no_utf8_is_refused_with_its_place():
    ends = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]
    text = pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(b"a\xffa")])
    with pytest.raises(ValueError, match=r"x\['t'\] = b'\\xff' at position 1 must be a number or"):
        Features().matrix(pa.table({"t": text}), learn=True)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (pl.LazyFrame({"a": [1.0]}), r"X is a LazyFrame, .*: give X\.collect\(\)"),
        (nw.from_native(pl.LazyFrame({"a": [1.0]})), r"X is a LazyFrame, .*: give X\.collect\(\)"),
        (Source(pa.chunked_array([[1.0]])), "X is a Source that cannot be read: "),
        (Source(None), "X is a Source that cannot be read: "),
        (pa.chunked_array([[1.0]]), r"X has shape \(1,\)"),
        (pl.Series([1.0]), r"X has shape \(1,\)"),
        (pa.table([[1], [2]], names=["a", "a"]), "unique column names"),
        (pa.record_batch([pa.array([1])] * 2, names=["a", "a"]), "unique column names"),
        (pl.DataFrame({"t": [1]}).cast(pl.Time), r"x\['t'\] holds Time: turn dates"),
    ],
)
def test_what_is_no_table_is_refused(X, words):
    for learn in (True, False) if "turn" not in words else (True,):
        with pytest.raises(ValueError, match=words):
            known().read(X, learn)


def test_without_narwhals_a_frame_of_pandas_is_read_all_the_same():
    program = """
import sys
sys.modules["narwhals"] = sys.modules["narwhals.stable.v2"] = None
import pandas, pyarrow
from sapwood import HoeffdingTreeRegressor
frame = pandas.DataFrame({
    "number": [1.5, None], "whole": pandas.array([1, None]), "flag": [True, False],
    "text": ["x", None], "kind": pandas.Categorical(["v", "w"]),
}, index=["one", "two"])
tree = HoeffdingTreeRegressor()
print(tree.predict_learn_many(frame, [1.0, 2.0]).to_dict())
print(list(tree.feature_kinds.values()))
frame.columns = ["a"] * 5
for X in (frame, pyarrow.table({"a": [1.0]})):
    try:
        tree.predict_many(X)
        tree.learn_many(X, [1.0, 2.0])
    except (ImportError, ValueError) as error:
        print(error)
"""
    lines = run_apart(program).splitlines()
    assert lines[0] == "{'one': 0.0, 'two': 1.0}"
    assert lines[1] == "['number', 'number', 'number', 'category', 'category']"
    assert lines[2].startswith("x['a'] is given twice")
    assert lines[3].startswith("X is a Table: install narwhals")


def test_without_pyarrow_polars_reads_streams():
    program = """
import sys
sys.modules["pyarrow"] = None
import polars
from sapwood.rows.features import Features
class Source:
    def __arrow_c_stream__(self, requested_schema=None):
        return polars.DataFrame({"a": [1.0], "b": ["x"]}).__arrow_c_stream__(requested_schema)
try:
    print(Features().matrix(Source(), learn=True).tolist())
except ImportError as error:
    print(error)
"""
    assert run_apart(program) == "[[1.0, 0.0]]\n"
    neither = run_apart(program.replace("import polars", "sys.modules['polars'] = None"))
    assert neither.startswith("X is a Source: install pyarrow or polars to read Arrow streams")


# -- predictions, targets and weights -------------------------------------------------------------


def test_predictions_come_back_in_kind():
    columns = {"a": [1.0, 2.0, 3.0], "c": ["x", "y", "x"]}
    plain = HoeffdingTreeRegressor()
    learning = plain.predict_learn_many(columns, [5.0, 6.0, 7.0])
    expected = plain.predict_many(columns)
    assert type(learning) is type(expected) is type(plain.predict_many([[1.0, "x"]])) is np.ndarray
    index = pd.MultiIndex.from_tuples([("p", 1), ("p", 1), ("q", 2)], names=["city", "day"])
    for X, kind in [
        (pd.DataFrame(columns, index=index), pd.Series),
        (pl.DataFrame(columns), pl.Series),
        (pa.table(columns), pa.DoubleArray),
        (pa.record_batch(columns), pa.DoubleArray),
        (nw.from_native(pl.DataFrame(columns)), np.ndarray),
        (Source(pa.table(columns)), np.ndarray),
    ]:
        tree = HoeffdingTreeRegressor()
        for predictions, values in [
            (tree.predict_learn_many(X, [5.0, 6.0, 7.0]), learning),
            (tree.predict_many(X), expected),
        ]:
            assert type(predictions) is kind
            assert np.asarray(predictions).tolist() == values.tolist()
            assert np.asarray(predictions).dtype == np.float64
            if kind in (pd.Series, pl.Series):
                assert predictions.name == "prediction"
            if kind is pd.Series:
                assert predictions.index.equals(index)
                assert predictions.index.names == ["city", "day"]
    reader = pa.table(columns).to_reader()
    assert type(tree.predict_many(reader)) is pa.DoubleArray
    assert len(tree.predict_many(pd.DataFrame(columns)[:0])) == 0


def test_targets_and_weights_may_be_series():
    x, y, w = {"a": [1.0, 2.0, 3.0, 4.0]}, [5, 6, 7, 9], [1, 2, 3, 4]
    plain = HoeffdingTreeRegressor()
    plain.predict_learn_many(x, y, w)
    for make in (
        lambda values: pd.Series(values, index=[3, 0, 9, 0]),
        lambda values: pd.Series(values, dtype="Int64"),
        lambda values: pd.Series(values, dtype="int64[pyarrow]"),
        pl.Series,
        pa.array,
        lambda values: pa.chunked_array([values[:1], values[1:]]),
        lambda values: pa.array([0, *values]).slice(1),
        lambda values: nw.from_native(pl.Series(values), series_only=True),
    ):
        tree = HoeffdingTreeRegressor()
        tree.predict_learn_many(pd.DataFrame(x, index=[7, 7, 1, 2]), make(y), make(w))
        assert tree.to_bytes() == plain.to_bytes()
        for bad in ([5, None, 7, 8], [5, 6, 7]):
            try:
                series = make(bad)
            except ValueError:  # pandas wants as many as the index has
                continue
            words = "= nan at position 1" if None in bad else "lengths must agree"
            with unchanged(tree), pytest.raises(ValueError, match=f"y .*{words}"):
                tree.predict_learn_many(pd.DataFrame(x), series)
            with unchanged(tree), pytest.raises(ValueError, match=f"w .*{words}"):
                tree.learn_many(pd.DataFrame(x), y, series)
