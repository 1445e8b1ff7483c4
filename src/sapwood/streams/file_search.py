"""Which files a name means: one, those of a folder, or all that a pattern fits, in order."""

import glob
import os
import re
import zlib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from sapwood.streams.stream import StreamError

__all__ = ["check_sign", "find_files", "in_natural_order", "sign_of", "would_find"]

ASIDE = (".", "_")
"""How names of files and folders begin that are passed over."""
ANY_FOLDERS = "**"


def sign_of(name: str) -> int:
    """Return what positions have of the name of the file that is being read."""
    return zlib.crc32(os.fsencode(name))


def check_sign(source: str, names: Sequence[str], place: int, sign: int) -> None:
    """Raise StreamError unless the file that was being read is at its place still."""
    if place >= len(names) or sign_of(names[place]) != sign:
        raise StreamError(
            f"{source}: file {place + 1} is not the one that was being read; files must be added "
            "behind it, by their names, and those before it must stay"
        )


def in_natural_order(paths: Sequence[str]) -> list[str]:
    """Return paths in the order of their names, where numbers count by their values.

    Examples
    --------
    >>> in_natural_order(["day10.csv", "day9.csv", "a/day1.csv"])
    ['a/day1.csv', 'day9.csv', 'day10.csv']
    """

    def key(path: str) -> tuple[list[list[tuple[str, int]]], str]:
        parts = [re.findall(r"(\D*)(\d*)", part) for part in path.split(os.sep)]
        return [[(text, int(digits or -1)) for text, digits in part] for part in parts], path

    return sorted(paths, key=key)


def find_files(name: str, suffixes: tuple[str, ...]) -> list[str] | None:
    """Return the files that a name means, if it is that of a folder or a pattern; else None.

    - `name`: a path; a pattern has ``*``, ``?`` or ``[``, and ``**`` for folders within folders.
    - `suffixes`: how the names of files in a folder end that are meant.
    - Raises StreamError if there are none.
    """
    if os.path.isdir(name):
        found = []
        for parent, folders, files in os.walk(name):
            folders[:] = [folder for folder in folders if not folder.startswith(ASIDE)]
            found += [
                os.path.join(parent, file)
                for file in files
                if not file.startswith(ASIDE) and file.lower().endswith(suffixes)
            ]
        return in_natural_order(found)
    if os.path.exists(name) or not glob.has_magic(name):
        return None
    found = [path for path in glob.glob(name, recursive=True) if os.path.isfile(path)]
    if not found:
        raise StreamError(f"{name}: no file has such a name; check the pattern")
    return in_natural_order(found)


def would_find(path: str, name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether `find_files` would find a file, be it there yet or not.

    Examples
    --------
    >>> would_find("days/new.csv", "days/*.csv", ()), would_find("new.csv", "days/*.csv", ())
    (True, False)
    >>> would_find("days/in/new.csv", "days/**/*.csv", ())
    True
    """
    if os.path.isdir(name):
        parts = _parts_below(path, name)
        return (
            bool(parts)
            and not any(part.startswith(ASIDE) for part in parts)
            and parts[-1].lower().endswith(suffixes)
        )
    if os.path.exists(name) or not glob.has_magic(name):
        return False
    pattern = name.split(os.sep)
    plain = next(place for place, part in enumerate(pattern) if glob.has_magic(part))
    folder = os.sep.join(pattern[:plain]) or (os.sep if plain else os.curdir)
    parts = _parts_below(path, folder)
    return bool(parts) and _fits(parts, pattern[plain:])


def _parts_below(path: str, folder: str) -> list[str]:
    """Return the parts of a path from a folder on; none if it is not below it."""
    path, start = os.path.realpath(path), os.path.join(os.path.realpath(folder), "")
    return path.removeprefix(start).split(os.sep) if path.startswith(start) else []


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a pattern fits the parts of a path, as `glob.glob` sees it."""
    if not pattern or not parts:
        return not parts and all(part == ANY_FOLDERS for part in pattern)
    first, rest = pattern[0], pattern[1:]
    hidden = parts[0].startswith(".") and not first.startswith(".")
    if first == ANY_FOLDERS:
        return _fits(parts, rest) or (not hidden and _fits(parts[1:], pattern))
    return not hidden and fnmatchcase(parts[0], first) and _fits(parts[1:], rest)
