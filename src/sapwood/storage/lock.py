"""A lock on a file that dies with its process."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from sapwood.system import HeldError, system

__all__ = ["Held", "hold"]

MOST_DIGITS = 20


class Held(Exception):  # noqa: N818 - the caller knows the purpose, and makes an error of it
    """The lock is held by another; `process` is its number, None if that is not known."""

    def __init__(self, process: int | None):
        super().__init__(process)
        self.process = process


@contextlib.contextmanager
def hold(path: str) -> Iterator[bool]:
    """Hold a lock, and yield whether the system keeps others from it.

    - `path`: a file for the lock alone. It is made, holds the number of the process, and is removed
      in the end; one that was left by a process that was killed does no harm.
    - Raises Held if another process holds it, or this one already.
    - Raises OSError if the file cannot be made, or there is one that is no lock, which stays as it
      is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "lock")
    ...     with hold(path) as is_sure:
    ...         try:
    ...             with hold(path):
    ...                 pass
    ...         except Held as error:
    ...             is_sure, error.process == os.getpid()
    ...     os.listdir(folder)
    (True, True)
    []
    """
    handle, is_sure = _locked(path)
    try:
        with contextlib.suppress(OSError):  # of a full disk: the holder is then unknown to others
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, str(os.getpid()).encode())
        yield is_sure
    finally:
        # Removed while it is still held, where that is possible: a process that waits for this very
        # file then finds that the path is gone.
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(handle)
        if not system.removes_open_files:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _locked(path: str) -> tuple[int, bool]:
    """Return a handle of the file that is at the path while it is locked."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | system.no_link | system.binary, 0o666)
        try:
            _check_is_lock(handle, path)
            is_sure = _lock(handle)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle, is_sure
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder has removed it in between


def _check_is_lock(handle: int, path: str) -> None:
    """Raise an error if the path is another file, which would be lost."""
    found = os.stat(handle)
    content = os.read(handle, MOST_DIGITS + 1) if stat.S_ISREG(found.st_mode) else b"?"
    if content and not (content.isdigit() and len(content) <= MOST_DIGITS):
        words = "is no lock, but one has to be there; rename it, or choose another place"
        raise FileExistsError(errno.EEXIST, words, path)


def _lock(handle: int) -> bool:
    """Lock an open file or raise `Held`; return False if the system cannot do that there."""
    try:
        return system.lock(handle)
    except HeldError:
        raise Held(_holder(handle)) from None


def _holder(handle: int) -> int | None:
    """Return the number that the holder has written, None if it has not yet."""
    with contextlib.suppress(OSError, ValueError):
        os.lseek(handle, 0, os.SEEK_SET)
        return int(os.read(handle, MOST_DIGITS))
    return None
