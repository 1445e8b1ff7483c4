"""What the values of a column of text look like."""

import re
from collections.abc import Collection, Iterable

from sapwood.streams.arrow import BLANKS, MISSING, NUMBER
from sapwood.streams.schema import Found
from sapwood.streams.times import is_iso

__all__ = ["first_look", "is_number", "looks_of"]

ENOUGH = 0.9
"""The share of the values that decides: a few broken ones do not make text of numbers."""

_MISSING = frozenset(MISSING)
_NUMBER = re.compile(NUMBER, re.ASCII)
_BOOLEANS = frozenset(("true", "false"))


def is_number(text: str) -> bool:
    """Whether text is a number, as it is read here.

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("1,5")
    (True, False)
    """
    return _NUMBER.fullmatch(text) is not None


def looks_of(values: Iterable[str]) -> Found:
    """Return what most values look like, nine of ten at least; text if that is nothing else.

    Missing values do not count; if there are no others, they look like numbers.

    Examples
    --------
    >>> looks_of(["1.5", " 2", "", "?"]), looks_of(["true", "False"]), looks_of(["2026-11-15"])
    ('number', 'boolean', 'time')
    >>> looks_of(["1"] * 10 + ["x"]), looks_of(["1"] * 8 + ["x"])
    ('number', 'text')
    """
    trimmed = (value.strip(BLANKS) for value in values)
    present = [value for value in trimmed if value not in _MISSING]
    enough = ENOUGH * len(present)
    if sum(map(is_number, present)) >= enough:
        return "number"
    if sum(value.lower() in _BOOLEANS for value in present) >= enough:
        return "boolean"
    return "time" if sum(map(is_iso, present)) >= enough else "text"


def first_look(values: Iterable[str], possible: Collection[Found]) -> Found | None:
    """Return what the first value looks like that looks like something possible; None if none does.

    Examples
    --------
    >>> first_look(["", "x", "true", "1"], ["number", "boolean"]), first_look(["NA"], ["number"])
    ('boolean', None)
    """
    found = (looks_of([value]) for value in values if value.strip(BLANKS) not in _MISSING)
    return next((looks for looks in found if looks in possible), None)
