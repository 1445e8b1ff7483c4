"""Atomic writes: a file is written under a temporary name in its folder, then renamed."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat

from sapwood.system import system

__all__ = ["remove_unfinished", "write_atomically"]

StrPath = str | os.PathLike[str]
SHOWN = 32  # letters of a name that the name of its unfinished file begins with


def write_atomically(path: StrPath, data: bytes) -> None:
    """Write a file atomically: readers find the old content or the new one, never a part.

    - `path`: where to write. A link is followed, as `open` would.
    - Raises OSError if the file cannot be written. The old file is then unchanged, and no temporary
      file is left. The only exception: if the folder cannot be flushed, the new file is already
      there.

    Notes
    -----
    The content goes to the disk before the name does, and the name before this returns. A process
    that is killed at work may leave a hidden ``.<name>.<digest of the name><random>.tmp``, which
    nothing reads, and `remove_unfinished` removes.

    A new file has the permissions that `open` would give it, an old one keeps those it had. An
    old file without write permission raises an error, although its folder allows to replace it.

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
    unfinished = os.path.join(folder, f"{_stem(name)}{secrets.token_hex(8)}.tmp")

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
        system.replace(unfinished, os.path.join(folder, name))
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        if isinstance(error, OSError):  # name the file that the caller knows
            error.filename, error.filename2 = os.fsdecode(path), None
        raise
    system.flush_folder(folder)


def remove_unfinished(path: StrPath) -> None:
    """Remove what processes that were killed while they wrote a file have left of it.

    - `path`: the file, which no other process may be writing. Files of other names are not touched,
      however similar these are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a", "b"):
    ...         left = os.path.join(folder, f"{_stem(name)}0123456789abcdef.tmp")
    ...         os.close(os.open(left, os.O_CREAT | os.O_WRONLY))
    ...     remove_unfinished(os.path.join(folder, "a"))
    ...     [name[:3] for name in os.listdir(folder)]
    ['.b.']
    """
    folder, name = os.path.split(os.path.realpath(path))
    stems = [re.escape(_stem(name))]
    if len(name) <= SHOWN:  # as older releases wrote them
        stems.append(re.escape(f".{name}."))
    with contextlib.suppress(OSError):  # of a folder that is not there, or not ours
        for found in os.listdir(folder):
            if re.fullmatch(rf"({'|'.join(stems)})[0-9a-f]{{16}}\.tmp", found):
                os.unlink(os.path.join(folder, found))


def _stem(name: str) -> str:
    """Return how the names of unfinished files begin: by a name that may be long, and its digest.

    Examples
    --------
    >>> _stem("a"), _stem("a" * 40) == _stem("a" * 41)
    ('.a.40f89e395b66422f', False)
    """
    digest = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
    return f".{name[:SHOWN]}.{digest}"


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
