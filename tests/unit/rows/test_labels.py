"""Columns of labels by codes: they are read as lists of the same labels would be."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood import HoeffdingTreeRegressor
from sapwood.rows.labels import Labels
from sapwood.streams import open_stream

KNOWN = ["red", "blue", None, 7, "red"]


@given(st.lists(st.integers(0, 4)), st.data())
def test_they_behave_like_lists(codes, data):
    labels = Labels(np.array(codes, np.int8), KNOWN)
    expected = [KNOWN[code] for code in codes]
    assert labels == expected
    assert list(labels) == labels.tolist() == expected
    assert len(labels) == len(expected)
    assert repr(labels) == repr(expected)
    assert np.asarray(labels).tolist() == expected
    assert pickle.loads(pickle.dumps(labels)) == expected
    part = data.draw(st.slices(len(codes)))
    assert labels[part] == expected[part]
    assert isinstance(labels[part], Labels)
    rows = data.draw(st.lists(st.integers(0, max(0, len(codes) - 1)), max_size=len(codes)))
    assert labels[np.array(rows, np.intp)] == [expected[row] for row in rows]
    for row in range(-len(codes), len(codes)):
        assert labels[row] == expected[row]


def test_they_differ_from_other_labels_and_have_no_hash():
    labels = Labels(np.array([0, 1]), KNOWN)
    assert labels == Labels(np.array([4, 1]), KNOWN)
    assert labels != Labels(np.array([1, 1]), KNOWN)
    assert labels != ["red"]
    assert labels != ("red", "blue")
    with pytest.raises(TypeError, match="unhashable"):
        hash(labels)


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), min_size=1, max_size=6),
    st.permutations(["a", "b", "c", None, "a"]),
)
def test_a_model_learns_the_same_as_from_lists(batches, known):
    """Also codes, and so files, are the same: labels get them in the order of their rows."""
    by_codes, by_lists = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    for codes in batches:
        labels = Labels(np.array(codes), known)
        y = np.arange(len(codes), dtype=float)
        by_codes.learn_many({"colour": labels}, y)
        by_lists.learn_many({"colour": labels.tolist()}, y)
        assert by_codes.to_bytes() == by_lists.to_bytes()
        told = by_codes.predict_many({"colour": labels})
        assert told.tobytes() == by_lists.predict_many({"colour": labels.tolist()}).tobytes()


def test_a_label_where_numbers_were_is_refused_at_its_first_row():
    tree = HoeffdingTreeRegressor()
    tree.learn_many({"x": np.arange(3.0)}, np.arange(3.0))
    labels = Labels(np.array([2, 2, 1, 0, 1]), ["red", "blue", None])
    for column in (labels, labels.tolist()):
        with pytest.raises(ValueError, match=r"^x\['x'\] = 'blue' at position 2"):
            tree.learn_many({"x": column}, np.arange(5.0))


@pytest.mark.parametrize("coded", [True, False], ids=["dictionary", "text"])
def test_columns_of_files_stay_codes(tmp_path, coded):
    colours = pa.array(["red", "blue", None, "red"])
    table = pa.table({"colour": colours.dictionary_encode() if coded else colours, "y": [1.0] * 4})
    path = tmp_path / "colours.parquet"
    pa.parquet.write_table(table, path)
    (chunk,) = open_stream(path, target="y").chunks()
    assert isinstance(chunk.columns["colour"], Labels)
    assert chunk.columns["colour"] == ["red", "blue", None, "red"]
    assert chunk.columns["colour"].known == ["red", "blue", None]
