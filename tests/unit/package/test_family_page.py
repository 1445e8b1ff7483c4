"""The tables and figures of the page about the paper's family are those of the results files."""

import re

import pytest

import family_tables
from places import ROOT

PAGE = (ROOT / "docs" / "explanation" / "family-of-the-paper.md").read_text(encoding="utf-8")
REMEDY = "paste what `python tests/support/family_tables.py` prints"


@pytest.mark.parametrize("name", family_tables.tables())
def test_a_table_is_that_of_its_file(name):
    table = "\n".join(family_tables.tables()[name])
    assert table in PAGE, REMEDY


def test_each_command_of_the_page_is_a_question():
    from benchmarks.__main__ import QUESTIONS

    named = set(re.findall(r"`python -m benchmarks (\w+)`", PAGE))
    assert named == {"anomalies", "losses", "transforms", "family", "bounds", "bins"}
    assert named <= set(QUESTIONS)


def test_the_decisions_are_those_of_the_tables():
    found = {(row["stream"], row["learner"]): row["r2"] for row in family_tables.read("family")}
    streams = dict.fromkeys(stream for stream, _ in found)
    ahead = {
        learner: sum(
            float(found[stream, learner])
            > max(
                float(found[stream, name] or "nan") if found[stream, name] != "nan" else -1e9
                for name in ("river AMRules", "MOA AMRules")
            )
            for stream in streams
        )
        for learner in ("tree", "tree of depth 2")
    }
    assert ahead == {"tree": 7, "tree of depth 2": 7}
    leads = {
        stream: float(found[stream, "adaptive tree"]) - float(found[stream, "pruning tree"])
        for stream in streams
    }
    drifting = [leads[stream] for stream in family_tables.DRIFTING]
    assert sum(lead > 0 for lead in drifting) == 2
    assert f"by up to {max(drifting):.3f}" in PAGE
    assert f"by up to {-min(drifting):.3f}" in PAGE
    assert f"loses {leads['california']:.3f} on california" in PAGE


def test_bins_are_described_as_they_are_measured():
    rows = [row for row in family_tables.read("bins") if row["model"] == "tree"]
    r2 = {(row["stream"], row["bins"]): float(row["r2"]) for row in rows}
    streams = {stream for stream, _ in r2}
    assert len(streams) == 7
    lower = sum(r2[stream, "16"] < r2[stream, "32"] - 0.001 for stream in streams)
    assert lower == 4
    assert "cost R² on four of seven streams" in PAGE
