"""Which files a name means: one, those of a folder, or all that a pattern fits, in order."""

import glob
import os
import re
from collections.abc import Sequence

from sapwood.streams.stream import StreamError

__all__ = ["find_files", "in_natural_order"]

ASIDE = (".", "_")
"""How names of files and folders begin that are passed over."""


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

    Parameters
    ----------
    name : str
        A path; a pattern has ``*``, ``?`` or ``[``, and ``**`` for folders within folders.
    suffixes : tuple of str
        How the names of files in a folder end that are meant.

    Raises
    ------
    StreamError
        If there are none.
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
