"""How a prediction is explained, and the words that all views use."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.formatting import aligned, number, table
from sapwood.inspect.explanation import Contribution, Expert, Explanation, is_missing, path_to
from view_cases import EMPTY, LEAF, SMALL, trees


def explanation(**changes):
    fields = {
        "path": path_to(SMALL, 3, {"temp": 20.123456789, "city": None}),
        "experts": [Expert("mean", 8.0, 0.25), Expert("linear", 8.43, 0.75)],
        "intercept": 8.0,
        "contributions": [Contribution("temp", -1.2, 0.3), Contribution("wind", 2.0, 0.395)],
        "leaf_prediction": 8.3225,
        "bounds": (0.0, 8.25),
        "tracking": 0.0412,
        "prediction": 8.2912,
    }
    return Explanation(**(fields | changes))


def test_an_explanation_reads_as_an_account():
    assert str(explanation()).splitlines() == [
        "path                                       value    mean  weight",
        "root                                              5.0000     100",
        "temp >= 12.5 or missing                  20.1235  8.5000      40",
        "city in {Oslo, Rome}, unseen or missing  missing  8.0000      60",
        "",
        "leaf model  predicts  share",
        "mean          8.0000  25.0%",
        "linear        8.4300  75.0%",
        "",
        "linear model  standardised  coefficient     adds",
        "intercept                                 8.0000",
        "wind                     2        0.395   0.7900",
        "temp                  -1.2          0.3  -0.3600",
        "",
        "leaf               8.3225",
        "held to 0 … 8.25   8.2500",
        "recent errors add  0.0412",
        "prediction         8.2912",
    ]


def test_an_explanation_leaves_out_what_did_nothing():
    told = str(explanation(contributions=[], bounds=(0.0, 9.0), tracking=0.0, prediction=8.3225))
    assert told.splitlines()[-3:] == ["", "leaf        8.3225", "prediction  8.3225"]
    assert "linear model" not in told
    unbounded = explanation(contributions=[], bounds=None, tracking=0.0, prediction=8.3225)
    assert str(unbounded) == told


def test_an_explanation_sums_up_small_terms():
    terms = [Contribution(f"x{i}", 1.0, float(i)) for i in range(30)]
    lines = str(explanation(contributions=terms)).split("\n\n")[2].splitlines()
    assert len(lines) == 13
    assert lines[2].split() == ["x29", "1", "29", "29.00"]
    assert lines[-1].split() == ["+20", "more", "190.00"]


def test_an_explanation_as_a_dict_can_be_written_as_json():
    told = explanation().to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["path"][2] == {
        "node": 3,
        "condition": "city in {Oslo, Rome}, unseen or missing",
        "feature": "city",
        "value": None,
        "missing": True,
        "mean": 8.0,
        "weight": 60.0,
    }
    assert told["experts"][0] == {"name": "mean", "prediction": 8.0, "share": 0.25}
    assert told["contributions"][1]["amount"] == 0.79
    assert told["bounds"] == [0.0, 8.25]


def test_values_of_numpy_become_plain():
    x = {"temp": np.float32(20), "city": np.str_("Oslo")}
    values = [step.value for step in path_to(SMALL, 3, x)]
    assert values == [None, 20.0, "Oslo"]
    assert list(map(type, values[1:])) == [float, str]


def test_a_row_in_a_tree_without_splits():
    (step,) = path_to(EMPTY, 0, {})
    assert step == (0, "root", None, None, False, 0.0, 0.0)


@given(tree=trees(), data=st.data())
def test_a_path_leads_from_the_root_to_the_leaf(tree, data):
    leaf = data.draw(st.sampled_from(np.flatnonzero(tree.nodes["kind"] == LEAF).tolist()))
    nodes = [step.node for step in path_to(tree, leaf, {})]
    assert nodes[0] == 0
    assert nodes[-1] == leaf
    assert tree.nodes["parent"][nodes[1:]].tolist() == nodes[:-1]


def test_what_is_missing():
    pd = pytest.importorskip("pandas")
    assert all(map(is_missing, [None, math.nan, np.float64("nan"), pd.NA, pd.NaT]))
    assert not any(map(is_missing, [0, 0.0, "", "nan", False, math.inf, 10**400]))


# Words


@pytest.mark.parametrize(
    ("value", "digits", "told"),
    [
        (0.1 + 0.2, 4, "0.3"),
        (0.1 + 0.2, None, "0.30000000000000004"),
        (3.0, None, "3"),
        (-0.0, 4, "0"),
        (9999.9, 4, "10000"),
        (1234567.8, 4, "1234568"),
        (1e15, 4, "1e+15"),
        (1.5e-7, 4, "1.5e-07"),
        (math.inf, 4, "inf"),
        (-math.inf, None, "-inf"),
        (math.nan, 4, "nan"),
    ],
)
def test_numbers(value, digits, told):
    assert number(value, digits) == told


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([12.5, -0.25], ["12.500", "-0.250"]),
        ([123456.7, 0.25], ["123457", "0"]),
        ([0.0, -0.0], ["0", "0"]),
        ([1e-20, 2e-20], ["1e-20", "2e-20"]),
        ([1e300, 1.0], ["1e+300", "1"]),
        ([math.nan, math.inf, 1.0], ["nan", "inf", "1.0000"]),
        ([], []),
    ],
)
def test_aligned_numbers(values, told):
    assert aligned(values) == told


def test_a_table_is_aligned_for_wide_letters():
    assert table([["温度", "1"], ["x", "23"]]) == "温度   1\nx     23"
