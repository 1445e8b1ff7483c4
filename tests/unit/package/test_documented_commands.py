"""Every command in the documentation is run, in the order in which a reader would type it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cases import PATIENCE
from places import ROOT
from warm_program import serving

GENERATED = ("_build", "commands")  # folders that the site generator writes
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not set(GENERATED) & set(page.parts)
    ),
]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What sets the project up, or takes longer than a test may; both are run otherwise.
NOT_HERE = re.compile(r"^(make|pip|git|sapwood paper|python -m benchmarks)\b")


def commands(page: Path) -> str:
    lines = "".join(BLOCK.findall(page.read_text(encoding="utf-8"))).splitlines()
    return "\n".join(line for line in lines if not NOT_HERE.match(line))


def test_there_are_commands_to_run() -> None:
    assert sum("sapwood " in commands(page) for page in PAGES) >= 3


FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SERVICES = {"serving", "deployment"}
"""Pages with a client, which the tests of the service run, and with commands for containers."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_snippet_is_one_that_runs(page: Path) -> None:
    for language, text in FENCED.findall(page.read_text(encoding="utf-8")):
        if page.stem not in SERVICES:
            assert language not in ("console", "bash"), text
            assert language != "python" or ">>> " in text, text


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("program")) as folder:
        yield folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_run_one_after_the_other(
    page: Path, tmp_path: Path, program: Path
) -> None:
    script = commands(page)
    if not script.strip():
        return
    programs = str(Path(sys.executable).parent)
    if "kill " not in script:  # a signal has to reach the program itself
        programs = f"{program}{os.pathsep}{programs}"
    result = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        stdin=subprocess.DEVNULL,  # whatever it is that runs the tests
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "Traceback" not in result.stderr
