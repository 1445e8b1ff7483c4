"""The site, searched by Sphinx's own script: a term of the field finds the right page first."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pytest

from cases import PATIENCE
from places import ROOT

NODE = shutil.which("node")
NEEDED = ("sphinx", "sphinx_gallery", "myst_parser", "pydata_sphinx_theme", "sphinx_design")
PAGES = {
    "prediction intervals": "howto/prediction-intervals",
    "conformal prediction": "explanation/conformal-intervals",
    "concept drift": "explanation/forests-and-drift",
    "drift detection": "howto/drift-alerts",
    "feature importance": "explanation/model-trees",
    "Hoeffding tree": "explanation/model-trees",
    "online learning": "start/quickstart-python",
    "prequential evaluation": "explanation/evaluating-honestly",
    "time series": "howto/many-series",
    "forecasting": "tutorials/hourly-forecasting",
    "lag features": "tutorials/hourly-forecasting",
    "delayed labels": "howto/delayed-labels",
    "exactly once": "howto/kafka",
    "high-cardinality categories": "explanation/categories",
    "target encoding": "explanation/categories",
    "distributed training": "howto/distributed-training",
    "memory limit": "howto/memory-limits",
    "throughput": "benchmarks/index",
    "limitations": "explanation/limitations",
    "scikit-learn": "howto/scikit-learn",
    "ONNX": "howto/export",
    "SHAP": "howto/export",
    "river": "howto/migrating-from-river",
    "missing values": "reference/columns",
}


def missing():
    libraries = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return libraries if NODE else ["node", *libraries]


@pytest.mark.long
@pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")
def test_terms_of_the_field_find_the_right_page_first(tmp_path):
    build = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "-q"]
    settings = ["-D", "plot_gallery=0", "-d", tmp_path / "trees"]
    subprocess.run(
        [*build, *settings, ROOT / "docs", tmp_path / "site"], check=True, timeout=PATIENCE
    )
    script = ROOT / "tests" / "support" / "site_search.js"
    run = subprocess.run(
        [NODE, script, tmp_path / "site", *PAGES],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    first = [json.loads(line)[:1] for line in run.stdout.splitlines()]
    assert dict(zip(PAGES, first, strict=True)) == {term: [page] for term, page in PAGES.items()}


def test_each_page_that_is_to_be_found_names_its_term():
    """Without a site, at least: the terms are index entries of their pages."""
    for term, page in PAGES.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        entries = re.search(r"^```\{index\} (.*)$", text, re.MULTILINE)[1].split(", ")
        assert f"! {term}" in entries, page
