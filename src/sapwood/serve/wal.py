"""The write-ahead log: operations in order, each checked by a CRC, in segments.

A segment begins with a magic number and the sequence number of its first record. A record is a
header (magic, length of the payload, CRC-32, sequence number, time) and the payload. A record that
a crash has cut short is dropped when the log is opened: it was never acknowledged. Damage before
intact records is an error, as acknowledged records would be lost without notice.
"""

import errno
import os
import re
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from sapwood.system import system

__all__ = ["FsyncPolicy", "LogError", "Record", "WriteAheadLog"]

FsyncPolicy = Literal["always", "interval", "never"]

SEGMENT_MAGIC = b"SAPWAL\x00\x01"
SEGMENT = struct.Struct("<8sQ")
MAGIC = b"\xf5rec"
HEADER = struct.Struct("<4sIIQd")  # magic, length, CRC, sequence number, time
CHECKED = struct.Struct("<IQd")  # what the CRC covers in addition to the payload
NAME = re.compile(r"wal-(\d{20})\.log")
INTERVAL = 1.0
"""Seconds between two calls of fsync under the policy "interval"."""


class LogError(ValueError):
    """The log cannot be used; the message names the place and the remedy."""


class Record(NamedTuple):
    """One operation of the log."""

    seq: int
    time: float
    payload: bytes


class WriteAheadLog:
    """The segments of a folder, the last of which grows.

    - `folder`: the folder of the segments. Only one process may use it.
    - `fsync`: whether `append` calls fsync, fsync is called every second, or the system decides.
      All policies survive the end of the process; only "always" survives a power cut without loss.
    """

    def __init__(self, folder: Path, fsync: FsyncPolicy = "always") -> None:
        self._folder = folder
        self._fsync = fsync
        self._file = -1
        self._length = 0
        self._path = folder
        self._unsynced = False
        self._synced_at = time.monotonic()
        self._failed: str | None = None
        self.seq = 0
        self.dropped = 0  # bytes at the end that `open` has dropped

    # -- opening ----------------------------------------------------------------------------------

    def open(self, after: int) -> Iterator[Record]:
        """Yield the records after a sequence number; then the log can grow.

        - `after`: the sequence number of the checkpoint.
        - Raises LogError if records are missing or damaged.
        """
        self.seq = after
        found = segments_of(self._folder)
        for place, (first, path) in enumerate(found):
            is_last = place == len(found) - 1
            if not is_last and found[place + 1][0] <= after + 1:
                continue  # all of it is in the checkpoint
            yield from self._read(first, path, is_last)
        if self._file < 0:
            self._start(self.seq + 1)

    def _read(self, first: int, path: Path, is_last: bool) -> Iterator[Record]:
        data = path.read_bytes()
        if is_last and len(data) < SEGMENT.size:  # killed while the segment was started
            self._drop(path, data, 0)
            return
        magic, own = SEGMENT.unpack_from(data) if len(data) >= SEGMENT.size else (b"", 0)
        if magic != SEGMENT_MAGIC or own != first:
            raise LogError(f"{path} does not begin as a log segment does; restore it from a copy")
        if first > self.seq + 1:
            raise LogError(
                f"{path} begins with record {first} and record {self.seq + 1} is missing; restore "
                "the segment before it, or the checkpoint, from a copy"
            )
        place = SEGMENT.size
        expected = first
        while place < len(data):
            record = record_at(data, place)
            if record is None or record.seq != expected:
                self._check_tail(path, data, place, expected, is_last)
                self._drop(path, data, place)
                return
            place += HEADER.size + len(record.payload)
            expected += 1
            if record.seq > self.seq:
                self.seq = record.seq
                yield record
        if is_last:
            self._continue(path, place)

    @staticmethod
    def _check_tail(path: Path, data: bytes, place: int, seq: int, is_last: bool) -> None:
        """Raise LogError unless what is damaged is the end of the log."""
        later = data.find(MAGIC, place + 1)
        while later >= 0:
            record = record_at(data, later)
            if record is not None and record.seq > seq:
                break
            later = data.find(MAGIC, later + 1)
        if later >= 0 or not is_last:
            raise LogError(
                f"{path} is damaged at byte {place} (record {seq}), and acknowledged records "
                "follow; restore it from a copy. To start without them, move the file away"
            )

    def _drop(self, path: Path, data: bytes, place: int) -> None:
        """Cut off the end of the last segment; a file of its own keeps a copy of it."""
        rest = data[place:]
        self.dropped = len(rest)
        if rest:
            path.with_suffix(".dropped").write_bytes(rest)
        if place < SEGMENT.size:
            path.unlink()
            return
        self._continue(path, place)

    def _continue(self, path: Path, length: int) -> None:
        self._file = os.open(path, os.O_WRONLY | system.binary)
        os.ftruncate(self._file, length)
        os.lseek(self._file, length, os.SEEK_SET)
        self._path, self._length = path, length

    def _start(self, first: int) -> None:
        """Start a segment; the one before is as it was if that fails."""
        path = self._folder / f"wal-{first:020d}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | system.binary
        file = os.open(path, flags, 0o640)
        try:
            write_whole(file, SEGMENT.pack(SEGMENT_MAGIC, first))
            os.fsync(file)
            system.flush_folder(self._folder)
        except BaseException:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._path, self._length = file, path, SEGMENT.size

    # -- growing ----------------------------------------------------------------------------------

    @property
    def failed(self) -> str | None:
        """Why the log can no longer grow, until the process is restarted; None if it can."""
        return self._failed

    @property
    def nbytes(self) -> int:
        """Bytes of the last segment."""
        return self._length

    def append(self, payloads: Sequence[bytes], moment: float, sync: bool = True) -> list[Record]:
        """Append records, all or none of them.

        - `moment`: the time that the records carry, in seconds since 1970.
        - `sync`: whether the policy "always" applies to them.
        - Raises OSError if they cannot be written; the log is then as it was before.
        """
        if self._failed is not None:
            raise OSError(errno.EIO, self._failed)
        records = [
            Record(self.seq + 1 + place, moment, payload) for place, payload in enumerate(payloads)
        ]
        data = b"".join(map(packed, records))
        try:
            write_whole(self._file, data)
        except OSError:
            self._take_back()
            raise
        self._unsynced = True
        if sync and self._fsync == "always":
            try:
                self._sync()
            except OSError as error:
                # What the disk holds is not known any more, so nothing may be appended to it.
                self._failed = f"fsync has failed ({error.strerror}): restart the server"
                self._take_back()
                raise
        self._length += len(data)
        self.seq += len(records)
        return records

    def _take_back(self) -> None:
        """Cut off what was not written as a whole."""
        try:
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, self._length, os.SEEK_SET)
        except OSError as error:
            self._failed = f"the log cannot be cut back ({error.strerror}): restart the server"

    def sync_if_due(self) -> None:
        """Call fsync if the policy is "interval" and a second has passed since the last call."""
        due = self._fsync == "interval" and time.monotonic() - self._synced_at >= INTERVAL
        if due and self._unsynced:
            try:
                self._sync()
            except OSError as error:
                self._failed = f"fsync has failed ({error.strerror}): restart the server"

    def _sync(self) -> None:
        system.flush_data(self._file)
        self._unsynced = False
        self._synced_at = time.monotonic()

    def rotate(self) -> None:
        """Start a new segment, so that the ones before can be removed after a checkpoint."""
        if self._length > SEGMENT.size:
            if self._unsynced and self._fsync != "never":
                self._sync()
            self._start(self.seq + 1)

    def remove_before(self, seq: int) -> None:
        """Remove the segments whose records all have sequence numbers of at most `seq`."""
        found = segments_of(self._folder)
        for (_, path), (following, _) in pairwise(found):
            if following <= seq + 1 and path != self._path:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Write all to the disk and close the file."""
        if self._file >= 0:
            try:
                if self._fsync != "never" and self._unsynced and self._failed is None:
                    self._sync()
            finally:
                os.close(self._file)
                self._file = -1


def segments_of(folder: Path) -> list[tuple[int, Path]]:
    """Return the segments of a folder in order, each with its first sequence number."""
    matches = ((NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match)


def packed(record: Record) -> bytes:
    """Return a record as it is written.

    Examples
    --------
    >>> record = Record(7, 1.5, b"row")
    >>> record_at(packed(record), 0) == record
    True
    """
    checked = CHECKED.pack(len(record.payload), record.seq, record.time)
    crc = zlib.crc32(record.payload, zlib.crc32(checked))
    size = len(record.payload)
    return HEADER.pack(MAGIC, size, crc, record.seq, record.time) + record.payload


def record_at(data: bytes, place: int) -> Record | None:
    """Return the record at a place, None if there is no intact one."""
    start = place + HEADER.size
    if start > len(data):
        return None
    magic, size, crc, seq, moment = HEADER.unpack_from(data, place)
    payload = data[start : start + size]
    if magic != MAGIC or len(payload) != size:
        return None
    if zlib.crc32(payload, zlib.crc32(CHECKED.pack(size, seq, moment))) != crc:
        return None
    return Record(seq, moment, payload)


def write_whole(file: int, data: bytes) -> None:
    """Write all bytes, however many calls that takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
