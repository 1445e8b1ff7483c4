"""The figures about error correction around other models are those of the results file."""

import csv
import re

from places import ROOT

PAGE = (ROOT / "docs" / "explanation" / "error-correction.md").read_text(encoding="utf-8")
FILE = ROOT / "docs" / "benchmarks" / "results" / "corrections.csv"
MODELS = ("tree, track=None", "linear", "hybrid", "fitted once")


def scores():
    with FILE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("r2", "corrected")
    return {
        (row["stream"], row["labels"], row["model"]): [float(row[name]) for name in names]
        for row in rows
    }


def test_the_table_is_that_of_the_file():
    found, shown = scores(), re.findall(r"^\| (.+) \| (at once|by 1,000) \| (.+) \|$", PAGE, re.M)
    assert len(shown) == 6
    for stream, labels, cells in shown:
        own = [found[stream, labels, model] for model in MODELS]
        expected = [f"{one:.3f} / {other:.3f}".replace("-", "\u2212") for one, other in own]
        assert cells.split(" | ") == expected


def test_the_sentences_are_those_of_the_file():
    found = scores()
    at_once = [each for key, each in found.items() if key[1] == "at once"]
    assert f"in all {len(at_once)} cases" in PAGE
    assert all(corrected > alone for alone, corrected in at_once)
    late = [each for key, each in found.items() if key[1] == "by 1,000"]
    assert min(corrected - alone for alone, corrected in late) > -0.005
