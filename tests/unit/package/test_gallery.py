"""The gallery: six scripts, each of which runs without a warning."""

import gzip
import os
import subprocess
import sys

import pytest

from cases import PATIENCE
from places import ROOT

GALLERY = ROOT / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))


def test_there_are_six_with_a_title_each():
    titles = [path.read_text(encoding="utf-8").splitlines()[1] for path in SCRIPTS]
    assert len(set(titles)) == len(SCRIPTS) == 6


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(script):
    ended = subprocess.run(
        [sys.executable, "-W", "error", script.name],
        cwd=GALLERY,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout


def test_data_are_small_and_their_sources_are_named():
    sources = (GALLERY / "data" / "SOURCES.md").read_text(encoding="utf-8")
    for path in (GALLERY / "data").glob("*.csv.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = sum(1 for _ in file) - 1
        assert f"| `{path.name}` | {rows:,} |" in sources
        assert path.stat().st_size < 100_000
