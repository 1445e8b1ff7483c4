"""Whole lines of bytes from a text: a file, a pipe, or either of them in gzip."""

import hashlib
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from sapwood.streams.quotes import Quotes, Rows, line_ends
from sapwood.streams.stream import MOST_ROWS, IntArray, StreamError

__all__ = ["HEAD", "LONGEST_LINE", "Block", "TextSource"]

BLOCK = 1 << 20
"""About how many bytes a block has, unless its lines are limited or a pipe has no more."""
LONGEST_LINE = 1 << 24
"""Bytes of a line; one that is longer is no line of a text."""
HEAD = 1 << 18
"""Bytes at the beginning that are looked at to know what is in a text."""
LONGEST_SIGN = 1 << 16
"""Bytes of each line that count for the fingerprint."""

RAW = 1 << 16
"""Bytes to read from a file in gzip at a time."""

BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
GZIP_BITS = 31
CONVERT = "save it as UTF-8, as by `iconv -f UTF-16 -t UTF-8`"
OTHERS = {
    b"\xff\xfe": f"is UTF-16 text: {CONVERT}",
    b"\xfe\xff": f"is UTF-16 text: {CONVERT}",
    b"PK\x03\x04": "is a zip archive or a workbook, not text: unpack it, or save it as CSV",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd: unpack it, or compress it by gzip",
    b"\xfd7zXZ": "is compressed by xz: unpack it, or compress it by gzip",
    b"BZh": "is compressed by bzip2: unpack it, or compress it by gzip",
    b"PAR1": "is a Parquet file, not text: name it .parquet, or give its format",
    b"ARROW1": "is an Arrow file, not text: name it .arrow, or give its format",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Whole rows of a text.

    Parameters
    ----------
    data : bytes
        The rows, the ends of lines included; only the last line of a text may lack its end.
    line : int
        The number of its first line, from 1.
    lines : int
        How many lines end in it.
    start, end : int
        Where it is in the text, in bytes, uncompressed.
    read : int
        How many bytes of the file were consumed, as it is on disk.
    unclosed : bool
        Whether some of its rows are lines with a quote that never closes.
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

    Parameters
    ----------
    path : str
        A file, a named pipe, or "-" for the standard input. Content in gzip is found by its first
        bytes.

    Attributes
    ----------
    name : str
        What messages call it.
    size : int or None
        Its bytes on disk, None for a pipe.

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

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "standard input" if path == "-" else path
        status = None if path == "-" else os.stat(path)
        regular = status is not None and stat.S_ISREG(status.st_mode)
        self.size = status.st_size if status is not None and regular else None
        self._pipe = None if regular else self._open()
        self._begun = False

    def _open(self) -> "_Reader":
        if self.path != "-":
            return _Reader(open(self.path, "rb", buffering=0), self.size is not None)
        if sys.stdin is None:
            raise StreamError("the standard input is closed: name a file, or pipe rows into it")
        buffered: Any = getattr(sys.stdin, "buffer", sys.stdin)
        return _Reader(getattr(buffered, "raw", buffered), regular=False)

    def head(self, lines: int, most: int = HEAD) -> tuple[bytes, bool]:
        """Return the beginning, and whether it is all; a pipe will give it again.

        Parameters
        ----------
        lines : int
            How many lines are enough. There may be more, and an unfinished one at the end.
        most : int
            How many bytes are enough.

        Raises
        ------
        StreamError
            If it is no text: it is empty, or an archive, or UTF-16.
        """
        reader = self._pipe or self._open()
        try:
            reader.peek(lines, most)
        finally:
            if reader is not self._pipe:
                reader.close()
        head = bytes(reader.head)
        if not head and reader.fault is not None:
            raise StreamError(f"{self.name} cannot be read: {reader.fault}")
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
    ) -> Iterator[Block]:
        """Yield the rows of the text from one on.

        Parameters
        ----------
        start_byte, start_line : int
            Where that row starts: `Block.end`, and the number of its line.
        most_lines : int
            No block has more lines, unless a single row has.
        quotes : Quotes, optional
            Finds where rows end. Without it each line is a row.

        Raises
        ------
        StreamError
            If the text cannot be read further, or a line has no end within 16 MiB.
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
            yield from self._blocks(reader, start, start_line, most_lines, quotes)
        finally:
            if self.path != "-":
                reader.close()

    def _go_to(self, reader: "_Reader", start: int, line: int) -> int:
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

    def _blocks(
        self, reader: "_Reader", start: int, line: int, most_lines: int, quotes: Quotes | None
    ) -> Iterator[Block]:
        data = b""
        ended = False
        while not ended:
            data, ended = reader.fill(data)
            whole = ended and reader.fault is None
            lines = line_ends(data, whole)
            rows = Rows(lines) if quotes is None else quotes.split(data, lines, whole)
            more = not ended and reader.ready()
            done = 0
            for end, count, unclosed in _groups(rows, lines, most_lines, more):
                read = start + end if reader.plain else reader.consumed
                yield Block(data[done:end], line, count, start + done, start + end, read, unclosed)
                line += count
                done = end
            start += done
            data = data[done:]
            if len(data) > LONGEST_LINE:
                raise StreamError(
                    f"{self.name}, line {line}: it has no end within {LONGEST_LINE >> 20} MiB; "
                    "check that it is text with a row in each line"
                )
        if reader.fault is not None:
            raise StreamError(
                f"{self.name} cannot be read beyond line {line - 1}: {reader.fault}; the lines "
                "before were read"
            )


class _Reader:
    """The bytes of a text in order, uncompressed.

    Parameters
    ----------
    raw : file of bytes
        Without a buffer: it gives what is there, and waits only if there is nothing.
    regular : bool
        Whether it can be read anywhere, and is never waited for.

    Attributes
    ----------
    head : bytearray
        What was read first: at least `HEAD` bytes, if there are as many.
    consumed : int
        How many bytes of the file were used up.
    plain : bool
        Whether it is not compressed.
    fault : str or None
        Why the text ends before its end.
    ended : bool
        Whether all was read.
    """

    def __init__(self, raw: BinaryIO, regular: bool) -> None:
        self._raw = raw
        self._regular = regular
        self._input = b""  # of the file, to be inflated
        self._ahead = b""  # of the text, to be handed out
        self._keep = HEAD
        self.head = bytearray()
        self.consumed = 0
        self.fault: str | None = None
        self.ended = False
        while len(self._input) < len(GZIP) and (piece := self._read_raw(RAW)):
            self._input += piece
        self.plain = not self._input.startswith(GZIP)
        self._inflate = zlib.decompressobj(wbits=GZIP_BITS)

    def close(self) -> None:
        self._raw.close()

    def ready(self) -> bool:
        """Whether there are bytes, or the end, that need not be waited for."""
        if self._regular or self._input or self._ahead:
            return True
        try:
            return bool(select.select([self._raw], [], [], 0)[0])
        except io.UnsupportedOperation:  # it is in memory
            return True
        except (OSError, ValueError):  # there is no telling, as for pipes on Windows
            return False

    def peek(self, lines: int, most: int) -> None:
        """Let the head have some lines or bytes."""
        self._keep = max(self._keep, most)
        while not self.ended and self.head.count(b"\n") < lines and len(self.head) < most:
            self._ahead += self._next(BLOCK)

    def drop(self, start: bytes) -> bool:
        """Leave out the next bytes if they are these, and say whether they were."""
        while not self.ended and len(self._ahead) < len(start):
            self._ahead += self._next(BLOCK)
        found = self._ahead.startswith(start)
        self._ahead = self._ahead.removeprefix(start)
        return found

    def skip(self, count: int) -> None:
        """Leave out bytes, or all if there are fewer."""
        if self.plain and self._regular:
            self._raw.seek(count)
            self._input = b""
            return
        while count and (data := self.read(min(count, BLOCK))):
            count -= len(data)

    def fill(self, data: bytes) -> tuple[bytes, bool]:
        """Return data with more behind it, and whether that is the end.

        It may wait for the first bytes; others are added, up to about a block, if they are there.
        """
        size = BLOCK if len(data) < BLOCK // 2 else len(data) + BLOCK
        pieces = [data]
        missing = size - len(data)
        while missing:
            piece = self.read(missing)
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)
            missing -= len(piece)
            if not self.ready():
                break
        return b"".join(pieces), False

    def read(self, most: int) -> bytes:
        """Return some of the next bytes; none at the end."""
        if not self._ahead:
            return self._next(most)
        data, self._ahead = self._ahead[:most], self._ahead[most:]
        return data

    def _next(self, most: int) -> bytes:
        data = self._next_plain(most) if self.plain else self._next_inflated(most)
        self.ended = not data
        if len(self.head) < self._keep:
            self.head += data
        return data

    def _next_plain(self, most: int) -> bytes:
        if not self._input:
            return self._read_raw(most)
        data, self._input = self._input[:most], self._input[most:]
        return data

    def _next_inflated(self, most: int) -> bytes:
        while self.fault is None:
            try:
                data = self._inflate.decompress(self._input, most)
            except zlib.error:
                self.fault = "its gzip data are damaged"
                break
            self._input = self._inflate.unconsumed_tail
            if data:
                return data
            if self._inflate.eof and not self._next_member():
                return b""
            if not self._input:
                self._input = self._read_raw(RAW)
                if not self._input:
                    self.fault = "its gzip data are cut off"
        return b""

    def _next_member(self) -> bool:
        """Go on to the next part of a gzip file, if there is one behind zeros that fill it up."""
        self._input = self._inflate.unused_data.lstrip(b"\0")
        while not self._input:
            piece = self._read_raw(RAW)
            if not piece:
                return False
            self._input = piece.lstrip(b"\0")
        self._inflate = zlib.decompressobj(wbits=GZIP_BITS)
        return True

    def _read_raw(self, most: int) -> bytes:
        while (data := self._raw.read(most)) is None:  # a pipe that does not wait
            select.select([self._raw], [], [])
        self.consumed += len(data)
        return data


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
        raise StreamError(f"{name} is empty")
    for start, complaint in OTHERS.items():
        if head.startswith(start):
            raise StreamError(f"{name} {complaint}")
    if b"\0" in head.partition(b"\n")[0]:
        raise StreamError(
            f"{name} has zero bytes in its first line: it is UTF-16 or no text at all; {CONVERT}"
        )
