"""Print what an extra of pyproject.toml needs, so that pip installs it while kernels compile."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, with those of the extras that it names."""
    found = []
    for requirement in PROJECT["optional-dependencies"][extra]:
        nested = re.fullmatch(r"sapwood\[([\w,]+)\]", requirement)
        if nested:
            for name in nested[1].split(","):
                found += requirements(name)
        else:
            found.append(requirement)
    return found


print(*PROJECT["dependencies"], *requirements(sys.argv[1]), sep="\n")
