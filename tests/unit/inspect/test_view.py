"""A tree as text, as a table, and in numbers."""

import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.formatting import plain
from sapwood.inspect.explanation import path_to
from sapwood.inspect.view import (
    feature_importances,
    summary,
    to_frame,
    to_records,
    to_text,
)
from view_cases import (
    EMPTY,
    LEAF,
    SMALL,
    chain,
    leaf,
    picture,
    split,
    trees,
)

# Text


def test_a_small_tree_as_text():
    assert to_text(SMALL).splitlines() == [
        "temp < 12.5  (missing: no)",
        "├─ yes: 3.25  (weight 120, linear)",
        "└─ no:  city in {Oslo, Rome}  (unseen or missing: yes)",
        "   ├─ yes: 8  (weight 60, mean)",
        "   └─ no:  10.5  (weight 20, mean, not watching)",
    ]


def test_guides_lead_to_the_second_child():
    deep = picture(split(split(leaf(1), leaf(2)), split(leaf(3), leaf(4)), threshold=-1.5))
    assert to_text(deep).splitlines() == [
        "temp < -1.5  (missing: no)",
        "├─ yes: temp < 0  (missing: no)",
        "│  ├─ yes: 1  (weight 1, mean)",
        "│  └─ no:  2  (weight 1, mean)",
        "└─ no:  temp < 0  (missing: no)",
        "   ├─ yes: 3  (weight 1, mean)",
        "   └─ no:  4  (weight 1, mean)",
    ]


def test_what_is_too_deep_is_told_in_one_line():
    assert to_text(SMALL, max_depth=1).splitlines()[2] == "└─ no:  … 2 leaves: 8.625  (weight 80)"
    assert to_text(SMALL, max_depth=0) == "… 3 leaves: 5.4  (weight 200)"
    assert to_text(SMALL, max_depth=2) == to_text(SMALL)


def test_an_empty_tree_as_text():
    assert to_text(EMPTY) == "no rows learned yet"
    assert to_text(picture(leaf(2.5, 3))) == "2.5  (weight 3, mean)"


def test_others_are_told_once_all_codes_are_taken():
    labels = [f"c{code}" for code in range(63)]
    tree = picture(
        split(leaf(), leaf(), feature=1, subset=1 << 63 | 2), categories=((), labels, ())
    )
    assert to_text(tree).startswith("city in {c1, others}  ")


@pytest.mark.parametrize(
    ("subset", "told"),
    [
        (0b1111, "city in {Oslo, Bonn, Rome, Lima}"),
        (0b11111, "city in {Oslo, Bonn, Rome, +2 more}"),
        (0b111110, "city in {Bonn, Rome, Lima, +2 more}"),
        (1 << 63 | 1 << 20 | 1, "city in {Oslo}"),  # codes that no label has yet
        (0, "city in {}"),
    ],
)
def test_sets_of_categories(subset, told):
    tree = picture(split(leaf(), leaf(), feature=1, subset=subset))
    assert to_text(tree).splitlines()[0] == f"{told}  (unseen or missing: no)"


def test_names_stay_in_their_line():
    names = ["a\nb\x1b[31m", "x" * 50]
    labels = ["Rome, Italy", "", " Oslo", "\u202eevil", "it's"]
    category = split(leaf(), leaf(), feature=0, subset=0b111)
    tree = picture(split(category, leaf(), feature=1), names, [labels, []])
    lines = to_text(tree).splitlines()
    assert len(lines) == 5
    assert lines[0] == f"{'x' * 39}… < 0  (missing: no)"
    assert lines[1].startswith(r"├─ yes: a\nb\x1b[31m in {'Rome, Italy', '', ' Oslo'}  (")
    assert [plain(label) for label in labels[3:]] == [r"\u202eevil", "'it's'"]


@given(tree=trees(), max_depth=st.none() | st.integers(0, 6))
def test_text_has_one_line_for_each_node(tree, max_depth):
    lines = to_text(tree, max_depth).split("\n")
    depths = tree.nodes["depth"]
    shown = len(depths) if max_depth is None else np.count_nonzero(depths <= max_depth)
    assert len(lines) == shown
    assert all(line.isprintable() for line in lines)


@given(tree=trees())
def test_the_indentation_is_the_depth(tree):
    deep_first = [depth for _, depth in tree.walk()]
    for line, depth in zip(to_text(tree).split("\n"), deep_first, strict=True):
        guides = line[: 3 * depth]
        assert guides.strip("│├└─ ") == ""
        assert line[3 * depth :].startswith(("yes: ", "no:  ")) == (depth > 0)


@pytest.mark.parametrize("left", [True, False])
def test_a_deep_chain_is_shown_without_recursion_and_in_bounded_lines(left):
    tree = chain(10_000, left)
    lines = to_text(tree).splitlines()
    assert len(lines) == 20_001
    assert max(map(len, lines)) < 130
    assert sum(line.startswith("(+9975) ") for line in lines) == 2
    assert tree.below.leaves[0] == 10_001
    assert len(to_records(tree)["condition"]) == 20_001
    assert len(path_to(tree, 20_000 if left else 19_999, {"x": 1.0})) == 10_001


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [
        ({"max_depth": -1}, "max_depth = -1: a number from 0 to"),
        ({"max_depth": 1.5}, "max_depth = 1.5: a whole number"),
        ({"digits": 0}, "digits = 0: a number from 1 to"),
        ({"digits": "4"}, "digits = '4': a whole number"),
    ],
)
def test_bad_limits_are_refused(limits, complaint):
    with pytest.raises(ValueError, match=complaint):
        to_text(SMALL, **limits)


# The table


def test_a_small_tree_as_records():
    records = to_records(SMALL)
    gain, threshold = records.pop("gain"), records.pop("threshold")
    assert records == {
        "node": [0, 1, 2, 3, 4],
        "parent": [-1, 0, 0, 2, 2],
        "depth": [0, 1, 1, 2, 2],
        "kind": ["number", "leaf", "category", "leaf", "leaf"],
        "feature": ["temp", None, "city", None, None],
        "condition": [
            "root",
            "temp < 12.5",
            "temp >= 12.5 or missing",
            "city in {Oslo, Rome}, unseen or missing",
            "city not in {Oslo, Rome}",
        ],
        "left": [1, -1, 3, -1, -1],
        "right": [2, -1, 4, -1, -1],
        "weight": [100, 120, 40, 60, 20],
        "mean": [5, 3.25, 8.5, 8, 10.5],
        "deviation": [3, 0, 1.5, 0, 0],
        "model": [None, "linear", None, "mean", "mean"],
        "watching": [False, True, False, True, False],
    }
    np.testing.assert_equal(gain, [225, math.nan, 75, math.nan, math.nan])
    np.testing.assert_equal(threshold, [12.5] + [math.nan] * 4)


def test_records_tell_thresholds_and_sets_in_full():
    tree = picture(
        split(
            split(leaf(), leaf(), feature=1, subset=0b111111),
            leaf(),
            threshold=0.1 + 0.2,
            missing_left=1,
        )
    )
    conditions = to_records(tree)["condition"]
    assert conditions[1] == "temp < 0.30000000000000004 or missing"
    assert conditions[3] == "city in {Oslo, Bonn, Rome, Lima, Bern, Kyiv}"


@pytest.mark.parametrize("tree", [SMALL, EMPTY], ids=["small", "empty"])
def test_the_frame_has_the_records_with_types_of_their_own(tree):
    frame = to_frame(tree)
    assert list(frame) == list(to_records(tree))
    assert frame["watching"].dtype == bool
    for column in ("node", "parent", "depth", "left", "right"):
        assert frame[column].dtype == np.int64
    for column in ("threshold", "weight", "mean", "deviation", "gain"):
        assert frame[column].dtype == np.float64


def test_the_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="not installed: run `pip install pandas`"):
        to_frame(SMALL)


# Numbers


def test_importances_are_shares_of_the_merit():
    assert feature_importances(SMALL) == {"temp": 0.75, "city": 0.25, "wind": 0.0}
    assert feature_importances(EMPTY) == {"temp": 0.0, "city": 0.0, "wind": 0.0}


@pytest.mark.parametrize("gain", [5e-324, 1.0, 1.7e308])
def test_importances_of_extreme_merits(gain):
    inner = split(leaf(), leaf(), gain=gain)
    tree = picture(split(inner, inner, feature=2, gain=gain))
    assert feature_importances(tree) == pytest.approx({"temp": 2 / 3, "city": 0.0, "wind": 1 / 3})


@given(tree=trees())
def test_importances_sum_to_one(tree):
    shares = feature_importances(tree).values()
    assert all(share >= 0 for share in shares)
    assert sum(shares) == pytest.approx(1 if any(shares) else 0)


def test_the_summary():
    told = summary(SMALL, rows=250, weight=200.5, nbytes=1_234_567)
    assert told._asdict() == {
        "rows": 250,
        "weight": 200.5,
        "features": 3,
        "nodes": 5,
        "leaves": 3,
        "watching": 2,
        "depth": 2,
        "nbytes": 1_234_567,
        "identifiers": (),
        "counters": (),
        "targets": 1,
        "unit_changes": (),
    }
    assert json.loads(json.dumps(told._asdict())) == {
        **told._asdict(),
        "identifiers": [],
        "counters": [],
        "unit_changes": [],
    }
    assert str(told).splitlines()[:2] == ["rows          250", "weight      200.5"]
    assert str(told).splitlines()[-1] == "nbytes    1234567"


@given(tree=trees())
def test_the_leaves_below_a_node_are_summed_up(tree):
    leaves = tree.nodes[tree.nodes["kind"] == LEAF]
    assert tree.below.leaves[0] == len(leaves)
    assert tree.below.weight[0] == leaves["weight"].sum()
    if leaves["weight"].any():
        mean = np.average(leaves["mean"], weights=leaves["weight"])
        assert tree.below.mean[0] == pytest.approx(
            mean, rel=1e-9, abs=1e-12 * abs(leaves["mean"]).max()
        )
