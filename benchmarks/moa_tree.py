"""MOA's FIMT-DD in pure Java: what it costs without any bridge to Python.

MOA is taken from the jar in capymoa's wheel, which is looked up and not imported: neither its
other dependencies nor a Java machine inside Python are needed.
"""

import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MoaTiming", "moa_command", "time_fimtdd"]

FloatArray = NDArray[np.float64]

PROGRAM = Path(__file__).with_name("Fimtdd.java")


class MoaTiming(NamedTuple):
    """The CPU time for one row in seconds, the best of all passes, and R²."""

    seconds: float
    r2: float


def time_fimtdd(x: FloatArray, y: FloatArray, passes: int) -> MoaTiming | str:
    """Let FIMT-DD predict and then learn every row, or tell why it cannot be done.

    Parameters
    ----------
    x : array
        The rows.
    y : array
        Their targets.
    passes : int
        How often, each time with a fresh learner: the first ones warm Java's compiler up.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        np.column_stack([x, y]).astype(">f8").tofile(path)
        command = moa_command(str(PROGRAM), str(path), str(x.shape[1]), str(passes))
        if isinstance(command, str):
            return command
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    results = [line.split() for line in output.splitlines()]
    return MoaTiming(min(int(ns) for ns, _ in results) / 1e9 / len(y), float(results[-1][1]))


def moa_command(*arguments: str) -> list[str] | str:
    """Return the command that runs something with MOA, or why that cannot be done."""
    java, jar = which("java"), _jar()
    if java is None:
        return "there is no java"
    if jar is None:
        return "capymoa is not installed"
    # Of Java's collectors, the one that MOA is quickest with.
    return [java, "-XX:+UseSerialGC", "-cp", str(jar), *arguments]


def _jar() -> Path | None:
    spec = find_spec("capymoa")
    if spec is None or not spec.submodule_search_locations:
        return None
    jar = Path(spec.submodule_search_locations[0]) / "jar" / "moa.jar"
    return jar if jar.exists() else None
