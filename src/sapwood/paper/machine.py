"""On what a study was run."""

import platform
from importlib.metadata import version
from pathlib import Path

from sapwood.system import system

__all__ = ["describe_machine"]

PACKAGES = ("sapwood", "numpy", "scipy", "scikit-posthocs", "matplotlib", "pandas", "pyarrow")


def describe_machine() -> dict[str, str]:
    """Return the processor, the system and the versions of all software that affects results."""
    return {
        "processor": _processor(),
        "cores": str(system.cores),
        "system": platform.platform(),
        "Python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
