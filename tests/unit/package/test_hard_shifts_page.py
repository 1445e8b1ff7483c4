"""The figures about shifts, first rows and outliers are those of the results file."""

import csv
import re
from collections import defaultdict

import numpy as np
import pytest

from places import ROOT

PAGE = (ROOT / "docs" / "benchmarks" / "hard-cases.md").read_text(encoding="utf-8")
FILE = ROOT / "docs" / "benchmarks" / "results" / "hard_shifts.csv"
PAIRS = [(model, when) for model in ("tree", "adaptive", "forest") for when in ("before", "now")]
METHODS = ("plain", "huber", "winsorized")
COLUMNS = {
    "Rows beyond the learned range": [("beyond the range", *pair) for pair in PAIRS],
    "The first 100 rows": [
        *(("cold start", *pair) for pair in PAIRS),
        ("cold start", "last value", "alternative"),
    ],
    "Outliers among labels": [
        (case, "tree", method) for case in ("labels as they are", "outliers") for method in METHODS
    ],
}


def scores():
    found = defaultdict(lambda: defaultdict(list))
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            column = row["case"], row["model"], row["method"]
            found[column][row["stream"].split(", seed")[0]].append(float(row["r2"]))
    return found


@pytest.mark.parametrize("title", COLUMNS)
def test_a_table_is_that_of_the_file(title):
    found, columns = scores(), COLUMNS[title]
    section = PAGE.split(f"### {title}\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| ((?!stream|---).+?) \| (.+) \|$", section, re.M)
    assert [stream for stream, _ in rows] == list(found[columns[0]])
    for stream, cells in rows:
        expected = [f"{np.mean(found[column][stream]):.3f}" for column in columns]
        assert cells.split(" | ") == expected


def test_the_largest_loss_and_gain_with_labels_at_once_are_those_of_the_file():
    found, case = scores(), "beyond the range, at once"
    gains = [
        np.mean(own) - np.mean(found[case, model, "before"][stream])
        for model in ("tree", "adaptive", "forest")
        for stream, own in found[case, model, "now"].items()
    ]
    text = " ".join(PAGE.split())
    assert f"largest loss is {-min(gains):.4f}, and the largest gain {max(gains):.4f}" in text


def test_the_score_of_lightgbm_is_that_of_the_file():
    (score,) = scores()["beyond the range", "LightGBM", "alternative"]["california in order"]
    assert f"LightGBM has {score:.3f} there" in PAGE
