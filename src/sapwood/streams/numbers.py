"""Numbers as people write them: 1.234,56 and 1,234.56, 12,5 %, € 1 200, 1'000, (5.00).

The decimal mark is detected from the data: by a value with two different marks, by a mark that
occurs twice, or by one that is not followed by three digits. If the data leave it open, as "1,234"
does, it is the decimal mark of the other columns of the file; if these leave it open too, a comma is
the decimal mark where fields are not separated by commas, and `NumbersFound.doubt` is set.

Signs of percent and currencies are left out, so that 12,5 % is 12.5; a column has one of them, or
none. Values without the sign are numbers, too.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows.words import BLANK, NumberFormat, number_pattern
from sapwood.streams.arrow import NUMBER, as_numpy
from sapwood.streams.stream import FloatArray, StreamError

__all__ = ["NumberFormat", "NumbersFound", "read_numbers", "recognise_written", "sign_of"]

ENOUGH = 0.9
"""The share of the values that decides: a few broken ones do not make text of numbers."""
MARKS = ((".", ","), (",", "."), (",", " "), (".", " "), (".", "'"), (",", "'"))
"""What stands before decimals, and between thousands."""
SIGNS = (
    r"%|‰|[A-Z]{0,2}[$€£¥₹₽₩₺₫₪฿₴]|kr\.?|zł|Kč|Ft|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|"
    "HUF|RUB|BRL|CAD|AUD|NZD|MXN|ZAR|TRY|KRW|SGD|HKD"
)
SIGNED = re.compile(
    rf"\(?[-+−]?(?P<front>{SIGNS})?{BLANK}?[-+−]?[\d.,].*?(?:{BLANK}?(?P<end>{SIGNS}))?\)?"
)
PLAIN = re.compile(NUMBER, re.ASCII)
EITHER = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+", re.ASCII)
"""A plain number that could also be one with marks between thousands."""
GLANCE = 20
"""Distinct values of which at least half must be numbers for all others to be looked at."""


@dataclass(frozen=True, slots=True)
class NumbersFound:
    """How the numbers of a column are written, and what else could be meant."""

    format: NumberFormat
    doubt: str = ""


def read_numbers(text: pa.Array, example: str) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return numbers, NaN where text is none or is missing; and which values are none.

    - `text`: trimmed; null where a number is missing.
    - `example`: their format: the number 1234.5 as it is written there.

    Examples
    --------
    >>> numbers, bad = read_numbers(pa.array(["1.234,56 €", "(5,00)", "1.5", None]), "1.234,5 €")
    >>> numbers, bad
    (array([1234.56,   -5.  ,     nan,     nan]), array([False, False,  True, False]))
    """
    try:
        format = NumberFormat.of(example)
    except ValueError as error:
        raise StreamError(str(error)) from None
    fits = pc.match_substring_regex(text, number_pattern(format))
    plain = pc.if_else(fits, text, None)
    if format.sign:
        plain = pc.replace_substring(plain, format.sign, "")
    plain = pc.replace_substring_regex(plain, r"[^-+−(0-9.,eE]", "")
    if format.thousands in (".", ","):
        plain = pc.replace_substring(plain, format.thousands, "")
    for written, meant in ((format.decimal, "."), ("−", "-"), ("(", "-")):
        plain = pc.replace_substring(plain, written, meant)
    numbers = as_numpy(plain.cast(pa.float64()).fill_null(np.nan))
    return numbers, ~as_numpy(fits.fill_null(True))


def recognise_written(
    columns: Mapping[str, Sequence[str]],
    comma_between: bool = False,
    decimal: str | None = None,
    thousands: str | None = None,
) -> dict[str, NumbersFound]:
    """Return the columns whose numbers are not written plainly, and how they are.

    - `columns`: the first values of columns of a file that look like text or numbers, trimmed;
      without missing ones.
    - `decimal`, `thousands`: the requested marks.

    Examples
    --------
    >>> found = recognise_written({"price": ["1.234,56 €", "99,90 €"], "share": ["5 %", "12,5 %"]})
    >>> {name: str(numbers.format) for name, numbers in found.items()}
    {'price': '1.234,5 €', 'share': '1.234,5 %'}
    >>> recognise_written({"price": ["1,234", "5,678"]}, comma_between=True)["price"].doubt
    "'1,234' is taken for 1234 and could be 1.234; pass --decimal , if it is"
    """
    marks = [
        (point, mark)
        for point, mark in MARKS
        if decimal in (None, point) and thousands in (None, mark)
    ] or [(decimal or ".", thousands or "")]
    fitting = {name: _fitting(values, marks) for name, values in columns.items()}
    decided = {
        formats[0].decimal
        for formats in fitting.values()
        if len({format.decimal for format in formats}) == 1
    }
    usual = decided.pop() if len(decided) == 1 else None
    chosen = {
        name: _chosen(columns[name], formats, usual, comma_between)
        for name, formats in fitting.items()
        if formats
    }
    return {name: numbers for name, numbers in chosen.items() if numbers is not None}


def _fitting(values: Sequence[str], marks: Sequence[tuple[str, str]]) -> list[NumberFormat]:
    """Return the formats that explain most values, nine of ten at least; none if there is none.

    Of values that are plain numbers with a point, the plain format is meant, unless they could be
    numbers with points between thousands.
    """
    counts = Counter(values)
    plain = sum(count for value, count in counts.items() if PLAIN.fullmatch(value))
    if plain == len(values):
        pointed = [value for value in counts if "." in value]
        if not pointed:
            return []
        may_be_either = all(map(EITHER.fullmatch, pointed)) and (",", ".") in marks
        return [NumberFormat(), *([NumberFormat(",", ".")] if may_be_either else [])]
    signs = {sign for value in counts if (sign := sign_of(value))}
    if len(signs) > 1:
        return []  # amounts of several currencies cannot be compared
    formats = [NumberFormat(point, mark, next(iter(signs), "")) for point, mark in marks]
    glance = list(counts)[:GLANCE]
    if sum(any(_is(value, format) for format in formats) for value in glance) < len(glance) / 2:
        return []
    fits = {
        format: sum(count for value, count in counts.items() if _is(value, format))
        for format in formats
    }
    most = max(fits.values())
    if most < ENOUGH * len(values) or most <= plain:
        return []
    return [format for format in formats if fits[format] == most]


def _is(value: str, format: NumberFormat) -> bool:
    return re.match(number_pattern(format), value) is not None


def sign_of(value: str) -> str:
    """Return the sign of percent or of a currency that a value has; empty if it has none.

    Examples
    --------
    >>> sign_of("-5,50 €"), sign_of("5"), sign_of("€uro")
    ('€', '', '')
    """
    found = SIGNED.fullmatch(value)
    return "" if found is None else found["front"] or found["end"] or ""


def _chosen(
    values: Sequence[str], formats: Sequence[NumberFormat], usual: str | None, comma_between: bool
) -> NumbersFound | None:
    """Return the one of some formats that is meant; None if that is the plain one."""
    by_point = {format.decimal: format for format in reversed(formats)}
    marked = next((value for value in values if "," in value or "." in value), None)
    point = formats[0].decimal
    if usual in by_point:
        point = usual
    elif len(by_point) > 1 and marked is not None and "," in marked:
        point = "." if comma_between else ","
    format = by_point[point]
    if format == NumberFormat():
        return None
    doubt = ""
    if len(by_point) > 1 and marked is not None:
        other = by_point["." if point == "," else ","]
        taken, possible = (_shown(marked, each) for each in (format, other))
        doubt = f"{validation.shown(marked)} is taken for {taken} and could be {possible}; pass --decimal "
        doubt += f"{other.decimal} if it is"
    return NumbersFound(format, doubt)


def _shown(value: str, format: NumberFormat) -> str:
    numbers, _ = read_numbers(pa.array([value]), str(format))
    return f"{numbers[0]:.15g}"
