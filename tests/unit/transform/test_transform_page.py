"""The figures of the page about skewed targets are those of the results file."""

import csv
import re

from places import ROOT

PAGE = (ROOT / "docs" / "howto" / "skewed-targets.md").read_text(encoding="utf-8")
FILE = ROOT / "docs" / "benchmarks" / "results" / "transforms.csv"


def scores():
    with FILE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    keys = ("stream", "labels", "model", "transform")
    return {tuple(row[key] for key in keys): row for row in rows}


def test_the_table_is_that_of_the_file():
    found, shown = scores(), re.findall(r"^\| (.+) \| (at once|by 1,000) \| (.+) \|$", PAGE, re.M)
    assert len(shown) == 12
    for stream, labels, cells in shown:
        own = [
            found[stream, labels, model, transform]
            for model in ("tree", "forest")
            for transform in ("", "auto")
        ]
        expected = [f"{float(row['r2']):.3f} / {float(row['deviance']):.4g}" for row in own]
        assert cells.split(" | ") == expected


def test_the_sentences_are_those_of_the_file():
    found = scores()
    alone = [key for key in found if not key[3]]
    assert f"In all {len(alone)} cases" in PAGE
    for key in alone:
        auto = found[(*key[:3], "auto")]
        assert float(auto["r2"]) > float(found[key]["r2"])
        assert float(auto["deviance"]) < float(found[key]["deviance"])
        assert float(auto["negative"]) == 0.0
    worst = float(found["Beijing PM2.5", "by 1,000", "tree", "log1p"]["r2"])
    assert f"R² −{-worst:.3f}" in PAGE
