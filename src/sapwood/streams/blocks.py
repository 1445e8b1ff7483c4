"""Whole lines of bytes from a text: a file or a pipe, compressed or not, in any encoding."""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from sapwood.streams.encoding import UTF8, check_encoding, guess_encoding
from sapwood.streams.quotes import Quotes, Rows, line_ends
from sapwood.streams.reader import HEAD, Reader
from sapwood.streams.stream import MOST_ROWS, IntArray, StreamError

__all__ = ["HEAD", "LONGEST_LINE", "Block", "TextSource"]

LONGEST_LINE = 1 << 24
"""Bytes of a line; one that is longer is no line of a text."""
LONGEST_SIGN = 1 << 16
"""Bytes of each line that count for the fingerprint."""

BOM = b"\xef\xbb\xbf"
OTHERS = {
    b"PK\x05\x06": "is a zip archive without a file in it",
    b"PAR1": "is a Parquet file, not text: name it .parquet, or give its format",
    b"ARROW1": "is an Arrow file, not text: name it .arrow, or give its format",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Whole rows of a text.

    - `data`: the rows, the ends of lines included; only the last line of a text may lack its end.
    - `line`: the number of its first line, from 1.
    - `start`, `end`: where it is in the text, in bytes, uncompressed.
    - `read`: how many bytes of the file were consumed, as it is on disk.
    - `unclosed`: whether some of its rows are lines with a quote that never closes.
    """

    data: bytes
    line: int
    lines: int
    start: int
    end: int
    read: int
    unclosed: bool = False


class TextSource:
    r"""A text that can be read in blocks of whole lines; a pipe only once.

    - `path`: a file, a named pipe, or "-" for the standard input. Compressed content is found by
      its first bytes.
    - `encoding`: the encoding of the text; see `find_encoding`. Places in the text are those in
      UTF-8.
    - `raw`: where the text is read from, once, instead of from the path, which is a name then.
    - `size`: its bytes on disk, None for a pipe.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a,b\n1,2\n3,4\n")
    ...     file.flush()
    ...     source = TextSource(file.name)
    ...     blocks = list(source.blocks(most_lines=2))
    >>> [(block.line, block.data) for block in blocks]
    [(1, b'a,b\n1,2\n'), (3, b'3,4\n')]
    """

    def __init__(self, path: str, encoding: str | None = None, raw: BinaryIO | None = None) -> None:
        self.path = path
        self.name = "standard input" if path == "-" else path
        self._encoding = None if encoding is None else check_encoding(encoding)
        status = None if path == "-" or raw is not None else os.stat(path)
        regular = status is not None and stat.S_ISREG(status.st_mode)
        self.size = status.st_size if status is not None and regular else None
        if raw is not None:
            self._pipe: Reader | None = Reader(path, raw, regular=False)
        else:
            self._pipe = None if regular else self._open()
        self._begun = False
        if self._pipe is not None and self._encoding is not None:
            self._pipe.use(self._encoding)

    @property
    def encoding(self) -> str:
        """The encoding of the text, as it was given or found."""
        return self._encoding or UTF8

    def find_encoding(self, lines: int) -> None:
        """Find the encoding by so many first lines, unless it is known already."""
        if self._encoding is not None:
            return
        with self._beginning(lines, HEAD) as reader:
            start = b"".join(bytes(reader.head[:HEAD]).splitlines(keepends=True)[:lines])
            self._encoding = guess_encoding(start)
        if self._pipe is not None:
            self._pipe.use(self._encoding)

    @contextmanager
    def _beginning(self, lines: int, most: int) -> Iterator[Reader]:
        """Let some lines or bytes be read ahead."""
        reader = self._pipe or self._open()
        try:
            reader.peek(lines, most)
            yield reader
        finally:
            if reader is not self._pipe:
                reader.close()

    def _open(self) -> Reader:
        if self.path == "-":
            if sys.stdin is None:
                raise StreamError("the standard input is closed: name a file, or pipe rows into it")
            buffered: Any = getattr(sys.stdin, "buffer", sys.stdin)
            return Reader("-", getattr(buffered, "raw", buffered), regular=False)
        regular = self.size is not None
        raw = open(self.path, "rb", buffering=0)  # noqa: SIM115 - the reader closes it
        try:
            reader = Reader(self.path, raw, regular)
        except StreamError:
            raw.close()
            raise
        if regular and self._encoding is not None:
            reader.use(self._encoding)
        return reader

    def head(self, lines: int, most: int = HEAD) -> tuple[bytes, bool]:
        """Return the beginning, and whether it is all; a pipe will give it again.

        - `lines`: how many lines are enough. There may be more, and an unfinished one at the end.
        - Raises StreamError if it is no text, or empty.
        """
        with self._beginning(lines, most) as reader:
            head = bytes(reader.head)
        if not head and reader.fault is not None:
            raise StreamError(f"{self.name} cannot be read: {reader.fault}; copy or make it again")
        _check_text(self.name, head)
        return head, reader.ended and reader.fault is None

    def fingerprint(self, lines: int) -> str:
        """Return a digest of the first lines, each up to 64 KiB."""
        if self._pipe is not None and self._begun:
            head = bytes(self._pipe.head)
        else:
            head, _ = self.head(lines, lines * LONGEST_SIGN)
        digest = hashlib.blake2b(digest_size=16)
        for line in head.split(b"\n", lines)[:lines]:
            digest.update(line.rstrip(b"\r")[:LONGEST_SIGN] + b"\n")
        return digest.hexdigest()

    def blocks(
        self,
        start_byte: int = 0,
        start_line: int = 1,
        most_lines: int = MOST_ROWS,
        quotes: Quotes | None = None,
        end_byte: int | None = None,
    ) -> Iterator[Block]:
        """Yield the rows of the text from one on.

        - `start_byte`, `start_line`: where that row starts: `Block.end`, and the number of its
          line.
        - `most_lines`: no block has more lines, unless a single row has.
        - `quotes`: finds where rows end. Without it each line is a row.
        - `end_byte`: where a line starts with which to stop, or with the first row behind it if
          that line is within one; the end of the text by default.
        - Raises StreamError if the text cannot be read further, or a line has no end within 16 MiB.
        """
        if self._pipe is not None and self._begun:
            raise StreamError(f"{self.name} can be read only once: save it to a file to read again")
        self._begun = True
        reader = self._pipe or self._open()
        # Once so much was freed, glibc does not return the memory of each block to the system,
        # to get it back page by page for the next; that would take longer than the reading.
        bytes(LONGEST_LINE)
        try:
            start = self._go_to(reader, start_byte, start_line)
            yield from self._blocks(reader, (start, end_byte), start_line, most_lines, quotes)
        finally:
            if self.path != "-":
                reader.close()

    def _go_to(self, reader: Reader, start: int, line: int) -> int:
        """Make a row the next to be read, and return where it starts."""
        if start == 0:
            return len(BOM) * reader.drop(BOM)
        reader.skip(start - 1)
        before = reader.read(1)
        if not before:
            raise StreamError(
                f"{self.name} has become shorter: byte {start} is not there any more; start again "
                "from its beginning"
            )
        if before == b"\n":
            return start
        # The text had ended within a line, which was taken for a whole one.
        for end in (b"\n", b"\r\n"):
            if reader.drop(end):
                return start + len(end)
        if reader.read(1):
            raise StreamError(
                f"{self.name}, line {line - 1}: it has grown since it was read as the last line; "
                "start again from the beginning, and let whole lines be appended"
            )
        return start

    def line_start(self, byte: int) -> int:
        """Return where the first line starts at a byte of a plain file or behind it."""
        if byte == 0:
            return 0
        with open(self.path, "rb") as file:
            file.seek(byte - 1)
            file.readline()
            return file.tell()

    @property
    def is_plain(self) -> bool:
        """Whether places in the text are places in a file, so that any of them can be gone to."""
        if self.size is None or self.encoding != UTF8:
            return False
        with self._beginning(1, 1) as reader:
            return reader.plain

    def _blocks(
        self,
        reader: Reader,
        span: tuple[int, int | None],
        line: int,
        most_lines: int,
        quotes: Quotes | None,
    ) -> Iterator[Block]:
        data = beyond = b""
        start, stop = span
        ended = False
        while not ended:
            if beyond:
                data, beyond = data + beyond, b""
            else:
                data, ended = reader.fill(data)
            if stop is not None and start + len(data) >= stop:
                beyond, data = data[stop - start :], data[: stop - start]
                # A row that has begun goes on to the end of its next line at least.
                stop += beyond.find(b"\n") + 1 or len(beyond) + 1
                ended = ended and not beyond
                is_last = True
            else:
                is_last = False
            whole = ended and reader.fault is None
            lines = line_ends(data, whole)
            rows = Rows(lines) if quotes is None else quotes.split(data, lines, whole)
            more = not (ended or is_last) and reader.ready()
            done = 0
            for end, count, unclosed in _groups(rows, lines, most_lines, more):
                read = start + end if reader.plain else reader.consumed
                yield Block(data[done:end], line, count, start + done, start + end, read, unclosed)
                line += count
                done = end
            start += done
            data = data[done:]
            if is_last and not data:
                return
            if len(data) > LONGEST_LINE:
                raise StreamError(
                    f"{self.name}, line {line}: it has no end within {LONGEST_LINE >> 20} MiB; "
                    "check that it is text with a row in each line"
                )
        if reader.fault is not None:
            raise StreamError(
                f"{self.name} cannot be read beyond line {line - 1}: {reader.fault}; the lines "
                "before were read; copy or make it again"
            )


def _groups(
    rows: Rows, lines: IntArray, most_lines: int, more: bool
) -> Iterator[tuple[int, int, bool]]:
    """Yield the end of each block, its number of lines, and whether a quote in it never closes.

    If there is more to read, rows at the end that would make a small block are left for the next.
    """
    plain = rows.ends is lines
    line_of = np.arange(1, len(lines) + 1) if plain else np.searchsorted(lines, rows.ends) + 1
    first = done = 0
    while first < len(rows.ends):
        last = max(int(np.searchsorted(line_of, done + most_lines, "right")), first + 1)
        if last == len(rows.ends) and first and more and line_of[-1] - done < most_lines:
            return
        count = int(line_of[last - 1]) - done
        unclosed = (rows.unclosed >= first) & (rows.unclosed < last)
        yield int(rows.ends[last - 1]), count, bool(unclosed.any())
        first = last
        done += count


def _check_text(name: str, head: bytes) -> None:
    if not head:
        raise StreamError(f"{name} is empty: write it again, or leave it out")
    for start, complaint in OTHERS.items():
        if head.startswith(start):
            raise StreamError(f"{name} {complaint}")
    if b"\0" in head.partition(b"\n")[0]:
        raise StreamError(
            f"{name} has zero bytes in its first line: it is no text, or in an encoding that has "
            "to be named, such as --encoding utf-16-le"
        )
