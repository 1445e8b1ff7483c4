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
