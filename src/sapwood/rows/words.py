"""Text and other single values as numbers and labels: the rules by which files are read.

`sapwood.streams` applies them to whole columns with pyarrow; here a value is read at a time, and
nothing but Python is needed.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sapwood import validation
from sapwood.validation import Label

__all__ = [
    "BLANK",
    "BLANKS",
    "EXAMPLE",
    "MISSING",
    "NumberFormat",
    "boolean_of_word",
    "is_missing",
    "label_of",
    "number_of_word",
    "number_pattern",
]

MISSING = (
    *("", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
"""Text that stands for a missing value: pyarrow's null values, and the ? of ARFF."""
BLANKS = " \t"
EXAMPLE = re.compile(r"1(?P<thousands>[.,' ]?)234(?P<decimal>[.,])5(?: (?P<sign>\S+))?")
"""The number 1234.5 as it is written in some way: the format of such numbers."""
BLANK = "[ \u00a0\u202f\u2009]"
SAME_MARKS = {" ": BLANK, "'": "['\u2019]", "": "(?:)", ".": r"\.", ",": ","}
WHOLE = re.compile(r"0|-?[1-9]\d{0,19}", re.ASCII)

_MISSING = frozenset(MISSING)


def is_missing(text: str) -> bool:
    """Whether text stands for a missing value, but for blanks around it."""
    return text in _MISSING or text.strip(BLANKS) in _MISSING


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How numbers are written.

    - `thousands`: what may stand between thousands; a blank for all kinds of them.
    - `sign`: a sign of percent or of a currency that may stand before or behind.

    Examples
    --------
    >>> str(NumberFormat(",", ".", "€"))
    '1.234,5 €'
    >>> NumberFormat.of("1 234,5")
    NumberFormat(decimal=',', thousands=' ', sign='')
    """

    decimal: str = "."
    thousands: str = ""
    sign: str = ""

    def __str__(self) -> str:
        return f"1{self.thousands}234{self.decimal}5" + (f" {self.sign}" if self.sign else "")

    @classmethod
    def of(cls, example: str) -> "NumberFormat":
        """Return the format of the number 1234.5 as it is written."""
        found = EXAMPLE.fullmatch(example)
        if found is None or found["thousands"] == found["decimal"]:
            raise ValueError(
                f"{validation.shown(example)} is no format of numbers: write 1234.5, as in 1.234,5"
            )
        return cls(found["decimal"], found["thousands"], found["sign"] or "")


@lru_cache
def number_pattern(format: NumberFormat) -> str:
    """Return the pattern of a number: minus is before a sign, behind it, or brackets."""
    decimal, thousands = SAME_MARKS[format.decimal], SAME_MARKS[format.thousands]
    grouped = rf"[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|" if format.thousands else ""
    number = rf"(?:(?:{grouped}\d+)(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?"
    sign = re.escape(format.sign)
    front, end = (f"(?:{sign}{BLANK}?)?", f"(?:{BLANK}?{sign})?") if sign else ("", "")
    minus = "[-+−]?"
    return (
        rf"^(?:{minus}{front}{number}{end}|{front}{minus}{number}{end}|\({front}{number}{end}\))$"
    )


def number_of_word(text: str, example: str) -> float | None:
    """Return the number that text is in a format; None if it is none.

    - `example`: the format: the number 1234.5 as it is written there.

    Examples
    --------
    >>> number_of_word("1.234,56 €", "1.234,5 €"), number_of_word("(5,00)", "1.234,5 €")
    (1234.56, -5.0)
    >>> number_of_word("1.5", "1.234,5 €")
    """
    format = NumberFormat.of(example)
    if "\n" in text or re.match(number_pattern(format), text, re.ASCII) is None:
        return None
    plain = text.replace(format.sign, "") if format.sign else text
    plain = re.sub(r"[^-+−(0-9.,eE]", "", plain)
    if format.thousands in (".", ","):
        plain = plain.replace(format.thousands, "")
    for written, meant in ((format.decimal, "."), ("−", "-"), ("(", "-")):
        plain = plain.replace(written, meant)
    return float(plain)


def boolean_of_word(text: str) -> float | None:
    """Return 1 for true and 0 for false, in any case; None for other text.

    Examples
    --------
    >>> boolean_of_word("True"), boolean_of_word("0"), boolean_of_word("yes")
    (1.0, 0.0, None)
    """
    return {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}.get(text.lower())


def label_of(value: Any, declared: bool) -> Label | None:
    """Return the label that a value is, None if it is missing.

    - `declared`: whether whole numbers are labels of their own; else they are their text.
    - Raises sapwood.validation.Unfit if it can be no label.

    Examples
    --------
    >>> label_of("7", declared=True), label_of("07", declared=True), label_of(7.0, declared=True)
    (7, '07', 7)
    >>> label_of(7, declared=False), label_of(True, declared=False), label_of("?", declared=False)
    ('7', 'true', None)
    """
    if isinstance(value, str):
        if is_missing(value):
            return None
        if len(value) > validation.LONGEST:
            raise validation.Unfit(validation.LABEL_LENGTH)
        return _whole_label(value) if declared else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isinf(value):
        raise validation.Unfit(validation.FEATURE_FINITE)
    if declared and value == int(value) and -(2**63) <= value < 2**64:
        return int(value)
    return str(value) if isinstance(value, Decimal) else repr(value)


def _whole_label(text: str) -> Label:
    """Return the whole number that text is, if Python writes it so; else the text."""
    whole = int(text) if WHOLE.fullmatch(text) else _whole_float(text)
    return text if whole is None or not -(2**63) <= whole < 2**64 else whole


def _whole_float(text: str) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() and repr(number) == text else None
