"""What depends on the operating system: one class for POSIX systems, one for Windows.

All other modules use `system`, an instance of the class for the system at hand. Both classes can be
made on any system, so that tests can put one in the place of the other.
"""

import errno
import os
import select
import signal
import sys
import time
from importlib import import_module
from typing import Any

__all__ = ["HeldError", "Posix", "Windows", "system"]

StrPath = str | os.PathLike[str]

HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""Error numbers of a lock that another process holds."""


class HeldError(Exception):
    """Another process holds the lock."""


class Posix:
    """Linux, macOS and other POSIX systems."""

    removes_open_files = True
    """Whether a file that is open can be removed."""

    @property
    def binary(self) -> int:
        """Flags of `os.open` for files of bytes that child processes do not inherit."""
        return getattr(os, "O_CLOEXEC", 0)

    @property
    def no_link(self) -> int:
        """Flags of `os.open` to reject symbolic links."""
        return getattr(os, "O_NOFOLLOW", 0)

    @property
    def stop_signals(self) -> tuple[int, ...]:
        """The signals that ask a process to stop."""
        return signal.SIGINT, signal.SIGTERM

    @property
    def cores(self) -> int:
        """The number of cores that this process may use."""
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    @property
    def resident_bytes(self) -> int | None:
        """Resident memory of the process, None if the system does not report it."""
        try:
            with open("/proc/self/statm", "rb") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return None

    def stay_on_one_core(self) -> None:
        """Keep the process on one core, where the system can do that."""
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    def lock(self, handle: int) -> bool:
        """Lock an open file until it is closed; return False if the system cannot do that there.

        - Raises HeldError if another process holds the lock.
        """
        fcntl = import_module("fcntl")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in HELD:
                raise HeldError from None
            return False
        return True

    def replace(self, source: StrPath, target: StrPath) -> None:
        """Move a file to the place of another one: others find the old file or the new one."""
        os.replace(source, target)

    def flush_data(self, handle: int) -> None:
        """Write the data of a file to the disk."""
        getattr(os, "fdatasync", os.fsync)(handle)

    def flush_folder(self, folder: StrPath) -> None:
        """Make the names in a folder survive a power cut."""
        try:
            handle = os.open(folder, os.O_RDONLY)
        except PermissionError:  # a folder that may be written, but not listed
            return
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems flush no folders
                raise
        finally:
            os.close(handle)

    def wait_for_input(self, stream: Any, seconds: float | None) -> bool:
        """Wait until a stream has bytes or has ended; return whether that is so."""
        return bool(select.select([stream], [], [], seconds)[0])

    def quoted(self, text: str) -> str:
        """Return a text as an argument in the system's shell."""
        import shlex

        return shlex.quote(text)


class Windows:
    """Windows.

    - `msvcrt`, `kernel32`: what stands for the C runtime and the system's library; those of the
      system by default.
    - `sleep`: waits for some seconds.
    """

    removes_open_files = False
    no_link = 0

    LOCKED = 1 << 30
    """The byte that is locked: others can read all bytes before it."""
    IN_USE = (5, 32, 33)
    """Errors of a file that another process has open: access denied, sharing and lock violation."""
    PAUSES = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
    """Seconds before each further attempt to replace a file that is in use."""

    def __init__(self, msvcrt: Any = None, kernel32: Any = None, sleep: Any = time.sleep) -> None:
        self._msvcrt, self._kernel32, self._sleep = msvcrt, kernel32, sleep

    @property
    def binary(self) -> int:
        """Flags of `os.open`; without O_BINARY, each line feed would be written as two bytes."""
        return getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)

    @property
    def stop_signals(self) -> tuple[int, ...]:
        """The signals that ask a process to stop: Ctrl-C, a call of kill, Ctrl-Break."""
        breaks = getattr(signal, "SIGBREAK", None)
        return signal.SIGINT, signal.SIGTERM, *(() if breaks is None else (breaks,))

    @property
    def cores(self) -> int:
        """The number of cores that this process may use."""
        return getattr(os, "process_cpu_count", os.cpu_count)() or 1

    @property
    def resident_bytes(self) -> int | None:
        """Resident memory (the working set) of the process, None if it is not reported."""
        import ctypes

        library = self._kernel32 or (getattr(ctypes, "windll", None) and ctypes.windll.kernel32)  # type: ignore[attr-defined]
        if library is None:
            return None
        # PROCESS_MEMORY_COUNTERS: two numbers of 32 bits, then eight sizes, the second of which
        # is the working set.
        counters = (ctypes.c_size_t * 10)()
        size = 8 + 8 * ctypes.sizeof(ctypes.c_size_t)
        ctypes.cast(counters, ctypes.POINTER(ctypes.c_uint32))[0] = size
        process = ctypes.c_void_p(library.GetCurrentProcess())
        if not library.K32GetProcessMemoryInfo(process, ctypes.byref(counters), size):
            return None
        first = 8 // ctypes.sizeof(ctypes.c_size_t)
        return int(counters[first + 1])

    def stay_on_one_core(self) -> None:
        """Do nothing: the system has no call for it that the standard library knows."""

    def lock(self, handle: int) -> bool:
        """Lock an open file until it is closed, as `Posix.lock`."""
        msvcrt = self._msvcrt or import_module("msvcrt")
        try:
            os.lseek(handle, self.LOCKED, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
        except OSError as error:
            if error.errno in HELD:
                raise HeldError from None
            return False
        return True

    def replace(self, source: StrPath, target: StrPath) -> None:
        """Move a file to the place of another one, as soon as no other process has that open."""
        for pause in (*self.PAUSES, None):
            try:
                os.replace(source, target)
                return
            except OSError as error:
                if pause is None or getattr(error, "winerror", None) not in self.IN_USE:
                    raise
                self._sleep(pause)

    def flush_data(self, handle: int) -> None:
        """Write the data of a file to the disk."""
        os.fsync(handle)

    def flush_folder(self, folder: StrPath) -> None:
        """Do nothing: the journal of the file system keeps names."""

    def wait_for_input(self, stream: Any, seconds: float | None) -> bool:
        """Return False, as the system waits for sockets only; a read of a pipe waits itself."""
        if seconds is None:
            self._sleep(0.01)
        return False

    def quoted(self, text: str) -> str:
        """Return a text as an argument in the system's shell."""
        return f'"{text}"'


system: Posix | Windows = Windows() if sys.platform == "win32" else Posix()
