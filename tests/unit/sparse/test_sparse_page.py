"""The figures of the page about sparse rows are those of the results file."""

import csv
import re
from collections import defaultdict

import numpy as np

from places import ROOT

PAGE = (ROOT / "docs" / "howto" / "sparse-rows.md").read_text(encoding="utf-8")
FILE = ROOT / "docs" / "benchmarks" / "results" / "sparse.csv"
MODELS = (
    "tree alone",
    "forest alone",
    "sparse, tree",
    "sparse, forest",
    "river",
    "river, scaled y",
)


def test_the_table_is_that_of_the_file():
    found = defaultdict(list)
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            stream = row["stream"].split(", seed")[0]
            found[stream, row["model"]].append((float(row["r2"]), float(row["microseconds"])))
    shown = re.findall(r"^\| ([^|-]+?) \| ((?:[^|]+ \| ){5}[^|]+) \|$", PAGE, re.M)[1:]
    assert [stream for stream, _ in shown] == list(dict.fromkeys(key for key, _ in found))
    for stream, cells in shown:
        expected = []
        for model in MODELS:
            if (stream, model) in found:
                r2, cost = np.mean(found[stream, model], axis=0)
                expected.append(f"{r2:.3f}, {cost:.0f} µs")
            else:
                expected.append("\u2013")
        assert cells.split(" | ") == expected
