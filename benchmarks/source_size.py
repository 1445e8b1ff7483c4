"""Report the sizes of all packages and the longest functions, before and now.

Lines are those of .py, .pyx and .pxd files; a function includes all lines indented below it.
Before is the last commit before there was a family of models.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath

from benchmarks.tables import Answer, Cell, Table

BEFORE, NOW = "f32a7d1", "HEAD"
SOURCE = "src/sapwood"
SUFFIXES = {".py", ".pyx", ".pxd"}
LONGEST = 8  # functions that are listed
LARGE_FILE, LONG_FUNCTION = 500, 60
FUNCTION = re.compile(r"( *)(?:async )?(?:def|cdef|cpdef) (?!class )[^=]*?(\w+)\(")


def run(quick: bool) -> Answer:
    """Count both.

    Parameters
    ----------
    quick : bool
        Makes no difference.
    """
    files = {commit: sources(commit) for commit in (BEFORE, NOW)}
    packages = {commit: by_package(files[commit]) for commit in files}
    names = sorted({*packages[BEFORE], *packages[NOW]})
    rows: list[tuple[Cell, ...]] = [
        (name, *(size for commit in files for size in packages[commit].get(name, (0, 0))))
        for name in names
    ]
    columns = ("files before", "lines before", "files", "lines")
    sizes = Table("Files and lines by package", ("package", *columns), rows)
    functions = {commit: lengths(files[commit]) for commit in files}
    totals = [
        (commit, len(files[commit]), sum(map(len, files[commit].values())),
         sum(len(lines) > LARGE_FILE for lines in files[commit].values()),
         sum(length > LONG_FUNCTION for length, _ in functions[commit]))
        for commit in files
    ]  # fmt: skip
    over = (f"files above {LARGE_FILE}", f"functions above {LONG_FUNCTION}")
    longest = [
        (when, length, where)
        for when, commit in (("before", BEFORE), ("now", NOW))
        for length, where in functions[commit][:LONGEST]
    ]
    return Answer(
        tables=[
            sizes,
            Table("In all", ("commit", "files", "lines", *over), totals),
            Table("The longest functions", ("when", "lines", "function"), longest),
        ],
        records=sizes,
    )


def sources(commit: str) -> dict[str, list[str]]:
    """Return the lines of each file of the package, by its path below it."""
    listed = git("ls-tree", "-r", "--name-only", commit, SOURCE).splitlines()
    return {
        str(PurePosixPath(path).relative_to(SOURCE)): git("show", f"{commit}:{path}").splitlines()
        for path in listed
        if PurePosixPath(path).suffix in SUFFIXES
    }


def git(*arguments: str) -> str:
    """Return the output of git, run in the folder of the project."""
    folder = Path(__file__).parents[1]
    output = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, encoding="utf-8", check=True
    )
    return output.stdout


def by_package(files: dict[str, list[str]]) -> dict[str, tuple[int, int]]:
    """Return how many files and lines each package has; top-level files count as sapwood."""
    count: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path, own in files.items():
        package = path.split("/")[0] + "/" if "/" in path else "sapwood"
        count[package] += 1
        lines[package] += len(own)
    return {package: (count[package], lines[package]) for package in count}


def lengths(files: dict[str, list[str]]) -> list[tuple[int, str]]:
    """Return the lines of each function, and where it is, the longest first."""
    found = []
    for path, lines in files.items():
        for start, line in enumerate(lines):
            if match := FUNCTION.match(line):
                end = start + 1
                while end < len(lines) and goes_on(lines[end], len(match[1])):
                    end += 1
                while not lines[end - 1].strip():
                    end -= 1
                found.append((end - start, f"{path}: {match[2]}"))
    return sorted(found, key=lambda each: (-each[0], each[1]))


def goes_on(line: str, indented: int) -> bool:
    """Whether a line belongs to a function that is indented so far: its signature, or its body."""
    own = len(line) - len(line.lstrip())
    return not line.strip() or own > indented or line.strip().startswith(")")
