"""The encoding of a text: given by the caller, or detected from its first bytes.

A text is UTF-8 unless its first lines show otherwise. UTF-16 and UTF-32 are detected by a byte order
mark or by zeros in every second byte. If at least half of the characters beyond ASCII are valid
UTF-8, the text is read as UTF-8, and rows with invalid bytes are bad rows. Otherwise it is read as
Windows-1252 (the superset of Latin-1 that most programs mean by Latin-1), or as Latin-1 if it has
bytes that Windows-1252 does not define.
"""

import codecs

from sapwood import validation
from sapwood.streams.stream import StreamError

__all__ = ["UTF8", "Recoder", "check_encoding", "guess_encoding"]

UTF8 = "utf-8"
MARKS = {
    codecs.BOM_UTF8: UTF8,
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UNREADABLE = "\ufffd"
SAMPLE = "a,b\n1,2.5\n"
"""What every encoding of tables can write and read again."""
ENOUGH_ZEROS = 0.3
"""The share of zeros in every second byte from which on a text is UTF-16."""


def check_encoding(name: str) -> str:
    """Return the name of an encoding as Python knows it, or raise StreamError.

    Examples
    --------
    >>> check_encoding("Latin1"), check_encoding("UTF8")
    ('iso8859-1', 'utf-8')
    >>> check_encoding("latin17")
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: 'latin17' is no encoding: give one such as utf-8, ...
    """
    try:
        found = codecs.lookup(name)
        text = SAMPLE.encode(found.name)
        if Recoder(found.name).recode(text, final=True) != SAMPLE.encode():
            raise ValueError
    except (LookupError, TypeError, ValueError):
        raise StreamError(
            f"{validation.shown(name)} is no encoding: give one such as utf-8, cp1252, latin-1 or utf-16"
        ) from None
    return UTF8 if found.name == "utf-8-sig" else found.name


def guess_encoding(start: bytes) -> str:
    r"""Return the encoding of a text that begins so.

    Examples
    --------
    >>> guess_encoding("Köln".encode()), guess_encoding("Köln".encode("latin-1"))
    ('utf-8', 'cp1252')
    >>> guess_encoding("Köln".encode("utf-16")), guess_encoding("a,b\n".encode("utf-16-be"))
    ('utf-16', 'utf-16-be')
    """
    marked = next((name for mark, name in MARKS.items() if start.startswith(mark)), None)
    if marked is not None:
        return marked
    for first, name in ((0, "utf-16-be"), (1, "utf-16-le")):
        zeros = start[first::2].count(0)
        if zeros > ENOUGH_ZEROS * len(start) / 2 and start[1 - first :: 2].count(0) < zeros / 10:
            return name
    try:
        codecs.getincrementaldecoder(UTF8)().decode(start)
    except UnicodeDecodeError:
        pass
    else:
        return UTF8
    letters = [letter for letter in start.decode(errors="replace") if not letter.isascii()]
    if letters.count(UNREADABLE) <= len(letters) / 2:
        return UTF8
    try:
        start.decode("cp1252")
    except UnicodeDecodeError:
        return "iso8859-1"
    return "cp1252"


class Recoder:
    r"""Turns a text in some encoding into UTF-8, piece by piece.

    Bytes that are no text stay as they are, so that they make their rows bad; in UTF-16 and UTF-32
    they become the sign for what cannot be shown.

    Examples
    --------
    >>> Recoder("latin-1").recode(b"K\xf6ln", final=True).decode()
    'Köln'
    """

    def __init__(self, encoding: str) -> None:
        wide = encoding.startswith(("utf-16", "utf-32"))
        decoder = codecs.getincrementaldecoder(encoding)
        self._decoder = decoder("replace" if wide else "surrogateescape")

    def recode(self, data: bytes, final: bool) -> bytes:
        """Return the next bytes in UTF-8; some may be kept until more are there."""
        return self._decoder.decode(data, final).encode(errors="surrogateescape")
