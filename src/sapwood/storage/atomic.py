"""Files that are always whole: written beside their place, then moved into it."""

import contextlib
import errno
import os
import secrets
import stat

__all__ = ["write_atomically"]

StrPath = str | os.PathLike[str]


def write_atomically(path: StrPath, data: bytes) -> None:
    """Write a file so that whoever looks finds the old content or the new, never a part.

    Parameters
    ----------
    path : str or path-like
        Where to write. A link is followed, as `open` would.
    data : bytes
        The whole content.

    Raises
    ------
    OSError
        If the file cannot be written. The old file is then as it was, and nothing is left beside
        it; only if the folder cannot be flushed is the new one already there.

    Notes
    -----
    The content goes to the disk before the name does, and the name before this returns. A process
    that is killed at work may leave a hidden ``.<name>.<random>.tmp``, which nothing reads.

    A new file has the permissions that `open` would give it, an old one keeps those it had. An
    old file that may not be written is refused, although its folder would let it be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "numbers.bin")
    ...     write_atomically(file, b"old")
    ...     write_atomically(file, b"new")
    ...     file.read_bytes(), len(list(file.parent.iterdir()))
    (b'new', 1)
    """
    mode = _mode_to_keep(path)
    folder, name = os.path.split(os.path.realpath(path))
    unfinished = os.path.join(folder, f".{name[:32]}.{secrets.token_hex(8)}.tmp")

    def create(file: str, flags: int) -> int:
        # Never wider than the old file, so that nobody can open it early.
        return os.open(file, flags, 0o666 if mode is None else mode)

    try:
        with open(unfinished, "xb", opener=create) as stream:
            if mode is not None and stat.S_IMODE(os.fstat(stream.fileno()).st_mode) != mode:
                os.chmod(unfinished, mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, os.path.join(folder, name))
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        if isinstance(error, OSError):  # name the file that the caller knows
            error.filename, error.filename2 = os.fsdecode(path), None
        raise
    _flush_folder(folder)


def _mode_to_keep(path: StrPath) -> int | None:
    """Return the permissions of an old file, None if there is none; raise if it must stay."""
    name = os.fsdecode(path)
    try:
        found = os.stat(name).st_mode
    except FileNotFoundError:
        if os.path.basename(name):
            return None
        found = stat.S_IFDIR  # an empty path, or one that ends with a slash
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(found):
        raise OSError(errno.EINVAL, "Not a regular file", name)
    if not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return stat.S_IMODE(found)


def _flush_folder(folder: str) -> None:
    """Make the names in a folder outlast a power cut, where the system can do that."""
    if os.name != "posix":
        return
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
