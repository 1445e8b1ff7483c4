"""The bytes of a file or a pipe, as they come: unpacked, and in UTF-8."""

import io
from typing import BinaryIO

from sapwood.streams.compression import MAGIC, Archived, compression_of, open_packed
from sapwood.streams.encoding import UTF8, Recoder
from sapwood.system import system

__all__ = ["BLOCK", "HEAD", "Reader"]

BLOCK = 1 << 20
"""About how many bytes a block has, unless its lines are limited or a pipe has no more."""
HEAD = 1 << 18
"""Bytes at the beginning that are looked at to know what is in a text."""
RAW = 1 << 16
"""Bytes to read first."""


class Reader:
    """The bytes of a text in order, uncompressed, in UTF-8.

    - `raw`: without a buffer: it gives what is there, and waits only if there is nothing.
    - `regular`: whether it can be read anywhere, and is never waited for.
    - `head`: what was read first: at least `HEAD` bytes, if there are as many.
    """

    def __init__(self, path: str, raw: BinaryIO, regular: bool) -> None:
        self._raw = raw
        self._regular = regular
        self._input = b""  # of the file, to be handed out or unpacked
        self._ahead = b""  # of the text, to be handed out
        self._keep = HEAD
        self._recoder: Recoder | None = None
        self.head = bytearray()
        self._consumed = 0
        self.ended = False
        while _may_become_magic(self._input) and (piece := self._read_raw(RAW)):
            self._input += piece
        kind = compression_of(self._input)
        self._packed = kind and open_packed(
            kind, path, raw, first=self._input, read=self._read_raw, regular=regular
        )

    @property
    def plain(self) -> bool:
        """Whether its bytes are those of the file: not compressed, and in UTF-8."""
        return not self._packed and self._recoder is None

    @property
    def fault(self) -> str | None:
        """Why the text ends before its end, if it does."""
        return self._packed.fault if self._packed else None

    @property
    def consumed(self) -> int:
        """How many bytes of the file were used up."""
        return self._raw.tell() if isinstance(self._packed, Archived) else self._consumed

    def use(self, encoding: str) -> None:
        """Take the text for one in some encoding; nothing of it was handed out yet."""
        if encoding != UTF8:
            self._recoder = Recoder(encoding)
            self._ahead = self._recoder.recode(self._ahead, final=self.ended)
            self.head = bytearray(self._ahead)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def ready(self) -> bool:
        """Whether there are bytes, or the end, that need not be waited for."""
        if self._regular or self._ahead:
            return True
        if not self._packed.waiting if self._packed else self._input:
            return True
        try:
            return system.wait_for_input(self._raw, 0)
        except io.UnsupportedOperation:  # it is in memory
            return True
        except (OSError, ValueError):  # unknown, as for pipes on Windows
            return False

    def peek(self, lines: int, most: int) -> None:
        """Let the head have some lines or bytes."""
        self._keep = max(self._keep, most)
        while not self.ended and self.head.count(b"\n") < lines and len(self.head) < most:
            self._ahead += self._next(BLOCK)

    def drop(self, start: bytes) -> bool:
        """Skip the next bytes if they are these; return whether they were."""
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
            self._ahead = self._next(most)  # which may be more, in another encoding
        data, self._ahead = self._ahead[:most], self._ahead[most:]
        return data

    def _next(self, most: int) -> bytes:
        data = b""
        while not data and not self.ended:
            data = self._packed.read(most) if self._packed else self._next_plain(most)
            self.ended = not data
            if self._recoder is not None:
                data = self._recoder.recode(data, final=self.ended)
        if len(self.head) < self._keep:
            self.head += data
        return data

    def _next_plain(self, most: int) -> bytes:
        if not self._input:
            return self._read_raw(most)
        data, self._input = self._input[:most], self._input[most:]
        return data

    def _read_raw(self, most: int) -> bytes:
        while (data := self._raw.read(most)) is None:  # a pipe that does not wait
            system.wait_for_input(self._raw, None)
        self._consumed += len(data)
        return data


def _may_become_magic(start: bytes) -> bool:
    """Whether bytes could be the beginning of one of the beginnings of compressed files."""
    return any(len(start) < len(magic) and magic.startswith(start) for magic in MAGIC.values())
