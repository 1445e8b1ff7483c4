"""Every benchmark that a workflow, the Makefile or a page names exists."""

import ast
import re
from pathlib import Path

import pytest

from places import ROOT

COMMAND = re.compile(r"-m benchmarks[ ]+([a-z][a-z_]*)")
MODULE = re.compile(r"-m benchmarks\.([a-z_]+)")
FOLDERS = (".github", "docs", "benchmarks", "tests", "src")
KINDS = (".yml", ".md", ".py")


def questions():
    """The names that `python -m benchmarks` knows, read without what it imports."""
    tree = ast.parse((ROOT / "benchmarks" / "__main__.py").read_text(encoding="utf-8"))
    [table] = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "QUESTIONS"
    ]
    return {key.value for key in table.keys}


def pages():
    found = [ROOT / "Makefile", ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    return [path for path in found if "_build" not in path.parts and path != Path(__file__)]


def named(text):
    return {*COMMAND.findall(text)}


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="needs the repository")
def test_named_benchmarks_exist():
    known = questions()
    texts = {path: path.read_text(encoding="utf-8") for path in pages()}
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts.items()
        for name in named(text) - known
    }
    assert missing == set()
    modules = {name for text in texts.values() for name in MODULE.findall(text)}
    folder = ROOT / "benchmarks"
    assert [
        n for n in modules if not ((folder / f"{n}.py").exists() or (folder / n).is_dir())
    ] == []
    assert sum(len(named(text)) for text in texts.values()) > 5


def test_an_unknown_benchmark_is_noticed():
    assert named("run: .venv/bin/python -m benchmarks package_size") == {"package_size"}
    assert "package_size" not in questions()
