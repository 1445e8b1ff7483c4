"""The figures of the page about hard cases are those of the results file."""

import csv
import re
from collections import defaultdict

import numpy as np

from places import ROOT

PAGE = (ROOT / "docs" / "benchmarks" / "hard-cases.md").read_text(encoding="utf-8")
FILE = ROOT / "docs" / "benchmarks" / "results" / "hard_cases.csv"
MODELS = ("tree", "adaptive", "forest")


def records():
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def pair(scores):
    return " → ".join(f"{score:.3f}" for score in np.mean(scores, axis=0))


def test_the_table_is_that_of_the_file():
    scores, others = defaultdict(list), defaultdict(list)
    for row in records():
        if row["labels"] == "by 1,000":
            stream = row["stream"].split(", seed")[0]
            stream = f"missing values, {stream}" if row["case"] == "missing" else stream
            scores[stream, row["model"]].append((float(row["before"]), float(row["now"])))
            others[stream].append(float(row["lightgbm"]))
    shown = re.findall(r"^\| (.+?) \| (.+→.+) \| (\S+) \|$", PAGE, re.M)
    assert len(shown) == len(others)
    for stream, cells, other in shown:
        assert cells.split(" | ") == [pair(scores[stream, model]) for model in MODELS]
        assert other == f"{np.mean(others[stream]):.3f}"


def test_the_means_and_the_largest_loss_are_those_of_the_file():
    text, rows = " ".join(PAGE.split()), records()
    for model in MODELS:
        for labels in ("by 1,000", "at once"):
            own = [
                (float(row["before"]), float(row["now"]))
                for row in rows
                if (row["case"], row["model"], row["labels"]) == ("real", model, labels)
            ]
            assert f"{model} {pair(own)}" in text
    loss = max(0.0, *(float(row["before"]) - float(row["now"]) for row in rows))
    assert f"largest loss in all {len(rows)} cases is {loss:.4f}" in text
