"""Where the rows of a text end, if fields in quotes may hold the ends of lines.

A quote opens a field only where the field starts; elsewhere it is a letter. In a row of one line
that is all. A row over several lines has to be strict: each closing quote is followed by the
delimiter or the end of the line. Therefore a quote that is never closed spoils its own line and not
the rows that follow: the next quote there opens a field, and does not close one.
"""

import re
from dataclasses import dataclass, field

import numpy as np

from sapwood.streams.stream import IntArray

__all__ = ["LONGEST_ROW", "Quotes", "Rows", "line_ends"]

LONGEST_ROW = 1 << 20
"""Bytes of a row over several lines; a quote that is open for longer was never closed."""

QUOTE = ord('"')
NEWLINE = ord("\n")
RETURN = ord("\r")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows at the beginning of a text.

    - `ends`: where each row ends, its line's end included. What follows the last needs more text.
    - `unclosed`: which of them are lines with a quote that never closes.
    """

    ends: IntArray
    unclosed: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


def line_ends(text: bytes, ended: bool) -> IntArray:
    r"""Return where each line ends, including the last one that lacks its end if text has ended.

    Examples
    --------
    >>> line_ends(b"a\nbc", ended=False), line_ends(b"a\nbc", ended=True)
    (array([2]), array([2, 4]))
    """
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE) + 1
    if ended and text and not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    return ends


class Quotes:
    r"""Finds the rows of a text whose fields may be in double quotes.

    Examples
    --------
    >>> quotes = Quotes(b",")
    >>> text = b'1,"two\nlines"\n3,4\n5'
    >>> quotes.split(text, line_ends(text, ended=False), ended=False).ends
    array([14, 18])
    >>> quotes.fields(b'1,"so ""big""!",')
    [b'1', b'so "big"!', b'']
    """

    def __init__(self, delimiter: bytes) -> None:
        self.delimiter = delimiter
        separator = re.escape(delimiter)
        # Groups repeat within (?>...), as possessive ones miss matches before Python 3.11.5.
        inside = rb'"[^"]*+(?>(?:""[^"]*+)*)'
        value = rb'(?>%b"\r*+(?=[%b\n]|\Z)|(?!")[^%b\n]*+)' % (inside, separator, separator)
        self._row = re.compile(rb"%b(?>(?:%b%b)*)(?:\n|\Z)" % (value, separator, value))
        self._open = re.compile(rb'(?>(?:%b%b)*)%b"?\r*\Z' % (value, separator, inside))
        # Within a line text may follow a closing quote, as for pyarrow.
        tail = rb"[^%b\n]*+" % separator
        closed = rb'(?:%b"%b|(?!")%b)' % (inside, tail, tail)
        self._ends_open = re.compile(rb"(?>(?:%b%b)*)%b\Z" % (closed, separator, inside))
        self._field = re.compile(rb'(%b")?(%b)' % (inside, tail))

    def parts(self, row: bytes) -> list[tuple[bytes, bytes]]:
        """Return the fields of a row, each as its quoted part, if any, and its unquoted part.

        The row is without its line's end, and closes its quotes.
        """
        if b'"' not in row:
            return [(b"", field) for field in row.split(self.delimiter)]
        parts = []
        end = -1
        while end < len(row):
            found = self._field.match(row, end + 1)
            assert found is not None  # as all of it is optional
            parts.append((found[1] or b"", found[2]))
            end = found.end()
        return parts

    def fields(self, row: bytes) -> list[bytes]:
        """Return the fields of a row as `parts` does, but without their quotes."""
        return [quoted[1:-1].replace(b'""', b'"') + rest for quoted, rest in self.parts(row)]

    def split(self, text: bytes, lines: IntArray, ended: bool) -> Rows:
        """Return the rows that end in a text."""
        if b'"' not in text:
            return Rows(lines)
        quotes = np.flatnonzero(np.frombuffer(text, np.uint8) == QUOTE)
        before = np.searchsorted(quotes, lines)
        if self._is_strict(text, quotes):
            ends = lines[before % 2 == 0]
            # Rows of one line may be longer, but distinguishing them is not worth the time.
            short = np.diff(ends, prepend=0).max(initial=0) <= LONGEST_ROW
            rest = len(text) - (int(ends[-1]) if len(ends) else 0)
            if short and (rest == 0 or not (ended or rest > LONGEST_ROW)):
                return Rows(ends)
        return self._split_slowly(text, lines, before, ended)

    def _is_strict(self, text: bytes, quotes: IntArray) -> bool:
        """Whether quotes open and close alternately, so that counting them finds quoted text."""
        letters = np.frombuffer(text, np.uint8)
        opening, closing = quotes[::2], quotes[1::2]
        before = letters[opening[opening > 0] - 1]
        behind = letters[closing[closing < len(text) - 1] + 1]
        # Two quotes in a row stand for one in the field, and change nothing.
        allowed = np.zeros(256, np.bool_)
        allowed[[QUOTE, NEWLINE, ord(self.delimiter)]] = True
        if not allowed[before].all():
            return False
        if b"\r" in text:
            allowed[RETURN] = text.count(b'"\r') == text.count(b'"\r\n')
        return bool(allowed[behind].all())

    def _split_slowly(self, text: bytes, lines: IntArray, before: IntArray, ended: bool) -> Rows:
        """Find the rows line by line; only lines with quotes are looked at closely."""
        quoted = np.diff(before, prepend=0) > 0
        ends: list[int] = []
        unclosed: list[int] = []
        start = 0
        for line, has_quote in zip(lines.tolist(), quoted.tolist(), strict=True):
            if line <= start:
                continue  # the line belongs to the row before
            end = line
            if has_quote and self._ends_open.match(text, start, line):
                found = self._end_of_row(text, start, ended)
                if found is None:
                    break
                end = found or line
                if not found:
                    unclosed.append(len(ends))
            ends.append(end)
            start = end
        return Rows(np.array(ends, np.int64), np.array(unclosed, np.int64))

    def _end_of_row(self, text: bytes, start: int, ended: bool) -> int | None:
        """Return where a row over several lines ends; 0 if nowhere, None if more text is needed."""
        stop = min(len(text), start + LONGEST_ROW)
        whole = ended and stop == len(text)
        row = self._row.match(text, start, stop)
        if row and (text[row.end() - 1] == NEWLINE or whole):
            return row.end()
        if ended or stop < len(text):
            return 0
        return None if row or self._open.match(text, start, stop) else 0
