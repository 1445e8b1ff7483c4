"""Rows as lists of dicts, and columns of NumPy's times, wherever columns are taken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from sapwood.evaluate import prequential

QUICK = {"grace_period": 20, "delta": 0.5, "tau": 0.5}
rows_of_dicts = st.lists(
    st.fixed_dictionaries(
        {"a": st.none() | st.integers(-9, 9).map(float)},
        optional={"b": st.none() | st.floats(-5, 5), "c": st.none() | st.sampled_from("uvw")},
    ),
    min_size=1,
    max_size=60,
)


def targets(rows):
    return [float(place % 7) + (row.get("a") or 0.0) for place, row in enumerate(rows)]


@given(rows=rows_of_dicts)
def test_dicts_are_learned_one_by_one(rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    trees = [sapwood.HoeffdingTreeRegressor(**QUICK) for _ in range(4)]
    y = targets(rows)
    trees[0].learn_many(rows, y)
    found, expected = trees[2].predict_learn_many(tuple(rows), y), []
    for row, target in zip(rows, y, strict=True):
        trees[1].learn_one(row, target)
        expected.append(trees[3].predict_one(row))
        trees[3].learn_one(row, target)
    assert trees[0].to_bytes() == trees[1].to_bytes()
    assert found.tolist() == expected
    assert trees[2].to_bytes() == trees[3].to_bytes()
    assert trees[0].features == names
    assert len(found) == len(rows)
    expected = [trees[0].predict_one(row) for row in rows]
    assert trees[0].predict_many(rows).tolist() == expected


@given(rows=rows_of_dicts)
def test_dicts_that_name_all_features_are_learned_as_columns_are(rows):
    rows[0] = {"a": None, "b": None, "c": None} | rows[0]
    columns = {name: [row.get(name) for row in rows] for name in "abc"}
    trees = [sapwood.HoeffdingTreeRegressor(**QUICK) for _ in range(2)]
    found = trees[0].predict_learn_many(rows, targets(rows))
    assert trees[1].predict_learn_many(columns, targets(rows)).tolist() == found.tolist()
    assert trees[0].to_bytes() == trees[1].to_bytes()


@pytest.mark.parametrize("model", ["HoeffdingTreeRegressor", "ForestRegressor"])
@pytest.mark.parametrize("around", [None, "MonitoredRegressor", "IntervalRegressor"])
def test_dicts_without_features_are_rows(model, around):
    made = getattr(sapwood, model)()
    if around is not None:
        made = getattr(sapwood, around)(made)
    assert made.predict_learn_many([{}, {}], [4.0, 4.0]).tolist() == [0.0, 4.0]
    assert made.predict_many([{}]).tolist() == [4.0]
    made.learn_many([{}, {"a": 1.0}], [4.0, 4.0])
    assert made.predict_many([{"a": 1.0}, {}], record=False).tolist() == [4.0, 4.0]
    with pytest.raises(ValueError, match="X has 1 rows and y has 2 values"):
        made.learn_many([{}], [1.0, 2.0])


def test_a_class_is_learned_from_a_row_without_features():
    model = sapwood.HoeffdingTreeClassifier()
    model.learn_one({}, "a")
    model.learn_many([{}, {}], ["b", "b"])
    assert model.predict_many([{}, {}]).tolist() == ["b", "b"]


def test_dicts_are_evaluated():
    rows = [{"a": float(row % 5), "c": "uv"[row % 2]} for row in range(300)]
    y = [3 * row["a"] for row in rows]
    by_rows = prequential(sapwood.HoeffdingTreeRegressor(), rows, y)
    by_pairs = prequential(sapwood.HoeffdingTreeRegressor(), list(zip(rows, y, strict=True)))
    assert by_rows.total == by_pairs.total


@pytest.mark.parametrize(("bad", "words"), [(3.0, r"X\[1\] = 3.0"), (None, r"X\[1\] = None")])
def test_what_is_no_dict_among_dicts_is_refused(bad, words):
    tree = sapwood.HoeffdingTreeRegressor()
    with pytest.raises(ValueError, match=f"{words}: a dict of features is expected"):
        tree.learn_many([{"a": 1.0}, bad], [1.0, 2.0])
    assert tree.features == []


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
def test_times_of_numpy_are_seconds(unit):
    days = np.arange("1999-12-01", "2000-06-01", dtype="datetime64[D]")
    times = days.astype(f"datetime64[{unit}]")
    seconds = days.astype("datetime64[s]").astype(float)
    y = np.arange(len(days)) % 9 * 1.0
    trees = [sapwood.HoeffdingTreeRegressor(**QUICK) for _ in range(3)]
    trees[0].learn_many({"sold": times}, y)
    trees[1].learn_many({"sold": seconds}, y)
    assert trees[0].to_bytes() == trees[1].to_bytes()
    trees[2].learn_many(times[:, None], y)
    expected = trees[2].predict_one({0: seconds[3]})
    assert trees[2].predict_many(times[3:4, None]).tolist() == [expected]


def test_a_time_that_is_missing_is_missing_and_a_duration_its_seconds():
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(
        {
            "sold": np.array(["2026-01-01", "NaT"], dtype="M8[D]"),
            "took": np.array([90, 30], dtype="m8[m]"),
        },
        [1.0, 2.0],
    )
    assert tree.predict_many({"took": np.array([90], "m8[m]")}).tolist() == [
        tree.predict_one({"took": 5400.0, "sold": None})
    ]
    both = {"sold": np.array(["NaT"], "M8[s]"), "took": [1800.0]}
    assert tree.predict_many(both).tolist() == [tree.predict_one({"took": 1800.0})]
