"""Files that are compressed: which are known by their first bytes, and their text piece by piece.

Gzip, bzip2 and xz are unpacked as they come, from pipes too. Zstandard and zip archives are read
from files only: there, a read waits for the requested bytes, and an archive has its list of
contents at its end.
"""

import bz2
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from sapwood import validation
from sapwood.streams.stream import StreamError

__all__ = ["MAGIC", "Packed", "compression_of", "member_of", "open_packed"]

MAGIC = {
    "gzip": b"\x1f\x8b",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "zstd": b"\x28\xb5\x2f\xfd",
    "zip": b"PK\x03\x04",
}
"""How compressed files begin."""
GZIP_BITS = 31
DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=GZIP_BITS),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}
BROKEN = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, zipfile.BadZipFile)
RAW = 1 << 16
"""Bytes of a compressed file to read at a time."""
ASIDE = ("__MACOSX/", ".", "_")
"""How names of files in archives begin that nobody put there."""
WORKBOOK = "[Content_Types].xml"


def compression_of(start: bytes) -> str | None:
    """Return how a file is compressed that begins so; None if it is not, or that is not known yet.

    Examples
    --------
    >>> compression_of(b"BZh91AY"), compression_of(b"a,b")
    ('bzip2', None)
    """
    return next((name for name, magic in MAGIC.items() if start.startswith(magic)), None)


class Packed:
    """The text of compressed bytes that come piece by piece; members are read one after another.

    Examples
    --------
    >>> Packed("bzip2", bz2.compress(b"a,b"), lambda most: b"").read(2)
    b'a,'
    """

    def __init__(self, kind: str, first: bytes, read: Callable[[int], bytes]) -> None:
        self._kind = kind
        self._input = first
        self._read = read
        self._decoder = DECODERS[kind]()
        self.fault: str | None = None

    @property
    def waiting(self) -> bool:
        """Whether there is nothing left to unpack without reading more."""
        return not self._input and getattr(self._decoder, "needs_input", True)

    def read(self, most: int) -> bytes:
        """Return some of the next bytes of the text; none at the end."""
        while self.fault is None:
            if self._decoder.eof and not self._next_member():
                return b""
            try:
                data: bytes = self._decoder.decompress(self._input, most)
            except BROKEN:
                self.fault = f"its {self._kind} data are damaged"
                break
            self._input = getattr(self._decoder, "unconsumed_tail", b"")
            if data:
                return data
            if not self._decoder.eof and self.waiting:
                self._input = self._read(RAW)
                if not self._input:
                    self.fault = f"its {self._kind} data are cut off"
        return b""

    def _next_member(self) -> bool:
        """Go on to the next part of the file, if there is one behind zeros that fill it up."""
        self._input = self._decoder.unused_data.lstrip(b"\0")
        while not self._input:
            piece = self._read(RAW)
            if not piece:
                return False
            self._input = piece.lstrip(b"\0")
        self._decoder = DECODERS[self._kind]()
        return True


class Archived:
    """The text of a file in Zstandard, or of the one file in a zip archive."""

    def __init__(self, kind: str, path: str, raw: IO[bytes]) -> None:
        self._kind = kind
        self._file = _zstd(raw) if kind == "zstd" else _member(path, raw)
        self.fault: str | None = None
        self.waiting = False

    def read(self, most: int) -> bytes:
        """Return some of the next bytes of the text; none at the end."""
        try:
            return bytes(self._file.read(most)) if self.fault is None else b""
        except (*BROKEN, NotImplementedError) as error:
            words = "cut off" if "runcated" in str(error) or not str(error) else "damaged"
            self.fault = f"its {self._kind} data are {words}"
            return b""


def open_packed(
    kind: str,
    path: str,
    raw: IO[bytes],
    *,
    first: bytes,
    read: Callable[[int], bytes],
    regular: bool,
) -> Packed | Archived:
    """Return what unpacks a file.

    - Raises StreamError if it is an archive of several files or of none, or cannot be read from a
      pipe.
    """
    if kind in DECODERS:
        return Packed(kind, first, read)
    if not regular:
        tool = "zstd -dc" if kind == "zstd" else "unzip -p"
        name = "standard input" if path == "-" else path
        raise StreamError(
            f"{name} is compressed by {kind}, which is read from files only: unpack it before, as "
            f"by `{tool} FILE`"
        )
    raw.seek(0)
    return Archived(kind, path, raw)


def member_of(path: str) -> str:
    """Return the name of the one file in a zip archive, or raise StreamError."""
    with open(path, "rb") as raw:
        return _only_member(path, _archive(path, raw)).filename


def _zstd(raw: IO[bytes]) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")


def _member(path: str, raw: IO[bytes]) -> Any:
    archive = _archive(path, raw)
    try:
        return archive.open(_only_member(path, archive))
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise StreamError(f"{path} cannot be unpacked: {error}; unpack it before") from None


def _archive(path: str, raw: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(raw)
    except (zipfile.BadZipFile, io.UnsupportedOperation) as error:
        raise StreamError(f"{path} is a damaged zip archive ({error}): make it again") from None


def _only_member(path: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    names = archive.namelist()
    if WORKBOOK in names:
        raise StreamError(f"{path} is a workbook, not text: save its sheet as CSV")
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir()
        and not member.filename.startswith(ASIDE)
        and not os.path.basename(member.filename).startswith(ASIDE)
    ]
    if len(members) == 1:
        return members[0]
    if not members:
        raise StreamError(f"{path} is a zip archive without a file in it")
    some = ", ".join(validation.shown(member.filename) for member in members[:2])
    raise StreamError(
        f"{path} is a zip archive of {len(members)} files, such as {some}: unpack it, and name the "
        "folder or one of the files"
    )
