"""The tests themselves: their names are the same in every process that collects them."""

import os
import subprocess
import sys
from pathlib import Path

from cases import PATIENCE

ROOT = Path(__file__).parents[1]

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


def start_collecting(folder, *options, umask=0o022, **environment):
    """Start a process that tells the names of all tests, in their order."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *options],
        cwd=ROOT,
        env={**kept, **environment, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
        umask=umask,
    )


def names_told(process):
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    return [line for line in told.splitlines() if "::" in line]


def test_the_names_of_tests_depend_on_nothing_but_the_code(tmp_path) -> None:
    # Processes of pytest-xdist have to agree on them, and so have runs that are compared.
    (tmp_path / "later.py").write_text(LATER, encoding="utf-8")
    one = start_collecting(
        tmp_path / "one",
        PYTHONHASHSEED="1",
        TZ="UTC",
        LC_ALL="C.UTF-8",
    )
    other = start_collecting(
        tmp_path / "an other",
        *("-p", "later"),
        umask=0o077,
        PYTHONHASHSEED="2",
        TZ="Asia/Kathmandu",
        LC_ALL="C",
        PYTHONPATH=str(tmp_path),
    )
    first, second = names_told(one), names_told(other)
    assert len(first) > 5000
    assert len(set(first)) == len(first)
    assert first == second
