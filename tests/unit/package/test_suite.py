"""The tests themselves: their names are the same in every process that collects them."""

import os
import subprocess
import sys

from cases import PATIENCE
from places import ROOT

# A plugin of pytest that lets a process live some years later than the others.
LATER = """
import time

def moved(clock, by):
    return lambda: clock() + by

time.time, time.time_ns = moved(time.time, 1e8 + 0.625), moved(time.time_ns, 10**17 + 625_000_000)
for name in ("gmtime", "localtime", "ctime"):
    original = getattr(time, name)
    setattr(time, name, lambda seconds=None, *, original=original: original(
        time.time() if seconds is None else seconds))
"""


def names_collected(folder, selection, umask, **environment):
    """The names that another process tells, in their order."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    folder.mkdir()
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    told = subprocess.run(
        [*command, "-p", "later", *selection],
        cwd=ROOT,
        env={**kept, **environment, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        umask=umask,
        timeout=PATIENCE,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return [line for line in told.stdout.splitlines() if "::" in line]


def test_the_names_of_tests_depend_on_nothing_but_the_code(request, tmp_path) -> None:
    # Processes of pytest-xdist have to agree on them, and so have runs that are compared.
    (tmp_path / "later.py").write_text(LATER, encoding="utf-8")
    options = request.config.option
    here = [item.nodeid for item in request.session.items]
    there = names_collected(
        tmp_path / "an other",
        ["-m", options.markexpr, "-k", options.keyword, *request.config.args],
        umask=0o077,
        PYTHONHASHSEED="2",
        TZ="Asia/Kathmandu",
        LC_ALL="C",
        PYTHONPATH=str(tmp_path),
    )
    assert len(set(here)) == len(here)
    assert here == there
